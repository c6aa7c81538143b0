"""Wrong programs that nobody has to write: one input taken for another, one layer for another.

`k` where `v` belongs, `w_q` and `w_k` swapped, the keys made by the queries' layer: these are made
out of the calls, for every exercise, and looked at where no mistake of the author's fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from autograder.course.calls import Call

EXCHANGED = "exchanged."  # how the checks begin
MOST = 6  # inputs or layers; of more, the exchanges would be hundreds

Exchange = tuple[str, str, list[Call]]  # name, sentence, the calls that a right answer is put to


def exchanged(calls: Sequence[Call], names: Sequence[str]) -> Iterator[Exchange]:
    """All calls with one tensor in the place of another, or two swapped.

    names: what the answer calls its inputs, in order. A tensor takes the place of another where
    both have one shape and type in every call.
    """
    inputs = [n for n in _tensors(calls[0].args) if n < len(names)]
    for one, other in _alike(inputs, lambda call, n: [call.args[n]], calls):
        yield from _both("`{}`", names, one, other, calls, _inputs)
    layers = sorted({_owner(key) for key in calls[0].weights})
    for one, other in _alike(layers, lambda call, name: _layer(call, name).values(), calls):
        what = "`{}`" if one in calls[0].weights else "the layer `{}`"
        yield from _both(what, {n: n for n in layers}, one, other, calls, _layers)


def _both(form: str, names, one, other, calls, exchange) -> Iterator[Exchange]:
    """Each in the other's place, and both swapped."""
    for taken, there in ((one, other), (other, one)):
        text = f"{form.format(names[taken])} is used where {form.format(names[there])} belongs."
        check = f"{EXCHANGED}{names[taken]} for {names[there]}"
        yield check, text[:1].upper() + text[1:], [exchange(c, {there: taken}) for c in calls]
    text = f"{form.format(names[one])} and {form.format(names[other])} have changed places."
    swapped = [exchange(c, {one: other, other: one}) for c in calls]
    yield f"{EXCHANGED}{names[one]} and {names[other]}", text[:1].upper() + text[1:], swapped


def _tensors(args: tuple) -> list[int]:
    return [n for n, value in enumerate(args) if isinstance(value, torch.Tensor) and value.dim()]


def _alike(things: Sequence, of, calls: Sequence[Call]) -> Iterator[tuple]:
    """The pairs of inputs or layers that could stand for one another in every call."""
    if len(things) > MOST:
        return
    for one, other in itertools.combinations(things, 2):
        try:
            alike = all(_forms(of(c, one)) == _forms(of(c, other)) for c in calls)
        except (LookupError, AttributeError):  # a call that has another number of them
            continue
        if alike:
            yield one, other


def _forms(tensors) -> list[tuple]:
    return [(tuple(t.shape), t.dtype) for t in tensors]


def _inputs(call: Call, places: Mapping[int, int]) -> Call:
    """The call with input `there` taken from `from`, for each `there: from`."""
    return replace(call, args=tuple(call.args[places.get(n, n)] for n in range(len(call.args))))


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
