"""Wrong programs that nobody has to write: one input taken for another, one layer for another.

`k` where `v` belongs, `w_q` and `w_k` swapped, the keys made by the queries' layer: these are made
out of the calls, for every exercise, and looked at where no mistake of the author's fits.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from autograder.course.calls import Call

EXCHANGED = "exchanged."  # how the checks begin
MOST = 6  # inputs or layers; of more, the exchanges would be hundreds
MOST_NUMBERS = 8  # plain numbers, such as sizes
MOST_ENTRIES = 12  # tensors in dicts, of which few have one shape
NOT_THERE = (LookupError, AttributeError, TypeError)  # in a call that has other inputs

Exchange = tuple[str, str, list[Call]]  # name, sentence, the calls that a right answer is put to


def exchanged(calls: Sequence[Call], names: Sequence[str]) -> Iterator[Exchange]:
    """All calls with one tensor in the place of another, or two swapped, or one for all alike.

    names: what the answer calls its inputs, in order. A tensor takes the place of another where
    both have one shape and type in every call.
    """
    inputs = [n for n in _tensors(calls[0].args) if n < len(names)]
    if len(inputs) <= MOST:
        called = {n: f"`{names[n]}`" for n in inputs}
        yield from _all(called, lambda call, n: [call.args[n]], calls, _inputs)
    numbers = [n for n in _numbers(calls[0].args) if n < len(names)]
    if len(numbers) <= MOST_NUMBERS:
        called = {n: f"`{names[n]}`" for n in numbers}
        yield from _pairs(called, lambda call, n: [call.args[n]], calls, _inputs)
    entries = {entry: f"`{entry[1]}`" for entry in _entries(calls[0].args)}
    if len(entries) <= MOST_ENTRIES:
        yield from _all(entries, lambda call, e: [call.args[e[0]][e[1]]], calls, _in_dicts)
    layers = sorted({_owner(key) for key in calls[0].weights})
    if len(layers) <= MOST:
        called = {n: f"`{n}`" if n in calls[0].weights else f"the layer `{n}`" for n in layers}
        yield from _all(called, lambda call, name: _layer(call, name).values(), calls, _layers)


def _all(called: Mapping, of: Callable, calls: Sequence[Call], exchange) -> Iterator[Exchange]:
    """called: what each of these things is called, by the thing. of: the tensors of one."""
    yield from _pairs(called, of, calls, exchange)
    groups: dict[tuple, list] = {}
    for thing in called:
        with contextlib.suppress(*NOT_THERE):
            groups.setdefault(tuple(map(str, (_forms(of(c, thing)) for c in calls))), []).append(
                thing
            )
    for alike in groups.values():
        for taken in alike if len(alike) > 2 else ():
            others = [thing for thing in alike if thing != taken]
            listed = " and ".join(called[thing] for thing in others)
            text = f"{called[taken]} is used where {listed} belong."
            places = dict.fromkeys(others, taken)
            check = f"{EXCHANGED}{_plain(called[taken])} for all"
            yield check, text[:1].upper() + text[1:], [exchange(c, places) for c in calls]


def _pairs(called: Mapping, of: Callable, calls: Sequence[Call], exchange) -> Iterator[Exchange]:
    for one, other in _alike(list(called), of, calls):
        yield from _both(called, one, other, calls, exchange)


def _plain(called: str) -> str:
    """The name alone, as it stands in a check."""
    return called.split("`")[1]


def _both(called: Mapping, one, other, calls, exchange) -> Iterator[Exchange]:
    """Each in the other's place, and both swapped."""
    for taken, there in ((one, other), (other, one)):
        text = f"{called[taken]} is used where {called[there]} belongs."
        check = f"{EXCHANGED}{_plain(called[taken])} for {_plain(called[there])}"
        yield check, text[:1].upper() + text[1:], [exchange(c, {there: taken}) for c in calls]
    text = f"{called[one]} and {called[other]} have changed places."
    check = f"{EXCHANGED}{_plain(called[one])} and {_plain(called[other])}"
    swapped = [exchange(c, {one: other, other: one}) for c in calls]
    yield check, text[:1].upper() + text[1:], swapped


def _tensors(args: tuple) -> list[int]:
    return [n for n, value in enumerate(args) if isinstance(value, torch.Tensor) and value.dim()]


def _numbers(args: tuple) -> list[int]:
    return [n for n, v in enumerate(args) if isinstance(v, int | float) and not isinstance(v, bool)]


def _entries(args: tuple) -> list[tuple[int, str]]:
    """The tensors in dicts, such as the weights of several layers: (which input, its key)."""
    return [
        (n, key)
        for n, value in enumerate(args)
        if isinstance(value, Mapping)
        for key, tensor in value.items()
        if isinstance(tensor, torch.Tensor) and tensor.dim()
    ]


def _alike(things: Sequence, of, calls: Sequence[Call]) -> Iterator[tuple]:
    """The pairs of inputs or layers that could stand for one another in every call."""
    for one, other in itertools.combinations(things, 2):
        try:
            alike = all(_forms(of(c, one)) == _forms(of(c, other)) for c in calls)
        except NOT_THERE:  # a call that has another number of them
            continue
        if alike:
            yield one, other


def _forms(tensors) -> list[tuple]:
    """Of numbers the type: a size may stand where another belongs."""
    return [
        (tuple(t.shape), t.dtype) if isinstance(t, torch.Tensor) else ((), type(t)) for t in tensors
    ]


def _inputs(call: Call, places: Mapping[int, int]) -> Call:
    """The call with input `there` taken from `from`, for each `there: from`."""
    return replace(call, args=tuple(call.args[places.get(n, n)] for n in range(len(call.args))))


def _in_dicts(call: Call, places: Mapping[tuple, tuple]) -> Call:
    args = list(call.args)
    for (n, key), (taken, from_key) in places.items():
        args[n] = {**args[n], key: call.args[taken][from_key]}
    return replace(call, args=tuple(args))


def _layers(call: Call, places: Mapping[str, str]) -> Call:
    weights = dict(call.weights)
    for there, taken in places.items():
        weights |= {f"{there}{end}": t for end, t in _layer(call, taken).items()}
    return replace(call, weights=weights)


def _layer(call: Call, name: str) -> dict[str, torch.Tensor]:
    """The weights of one layer, by the end of their names; a parameter's own is ''."""
    keys = [key for key in sorted(call.weights) if _owner(key) == name]
    return {key.removeprefix(name): call.weights[key] for key in keys}


def _owner(key: str) -> str:
    """The layer that a weight belongs to; a parameter of the class itself is its own."""
    return key.rpartition(".")[0] or key
