"""The right answer to inputs that were changed on their way in: a loop that stops one early, an
argument that is not used, a mask the wrong way round.

An answer that gives, on every call, just what the right one gives for an altered input says by that
what it does with the input, whatever its code looks like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, product

import torch

from autograder.course.calls import Call

ALTERED = "altered."  # how the checks begin
MOST = 12  # inputs that are looked at; of more there would be thousands
SCALED = 4  # inputs that are tried with factors
SIZES = 7  # and sizes that they are tried with, besides 2
TWO = ("2", lambda call: 2)
DEEPEST = 4  # axes
BEGINS = "What comes back is right but for this: "

Change = tuple[str, str, Callable]  # name, sentence with {} for the input, value -> value or None
Alteration = tuple[str, str, Callable[[Call], Call]]  # check, sentence, what it does to a call


def altered(calls: Sequence[Call], names: Sequence[str]) -> Iterator[Alteration]:
    """All changes of one input that can be made in every call, the likeliest first.

    names: what the answer calls its inputs, in order.
    """
    seen: dict[tuple, list] = {}  # inputs by their shapes in all calls
    every: list[tuple] = []  # inputs of one kind in all calls, with their values
    for place in islice(_places(calls[0], names), MOST):
        find, _, name = place
        try:
            values = [find(call) for call in calls]
        except (LookupError, TypeError):  # a call that has another number of inputs
            continue
        for what, says, change in (*_changes(values), *_cuts(values)):
            text = f"{BEGINS}{says.format(f'`{name}`')}."
            yield f"{ALTERED}{name} {what}", text, _altering([place], change)
        if len({_kind(v) for v in values}) == 1:
            every.append((place, values))
        if all(isinstance(v, torch.Tensor) and v.dim() for v in values):
            seen.setdefault(tuple((v.shape, v.dtype) for v in values), []).append((place, values))
    for alike in seen.values():
        if len(alike) > 1:
            yield from _together([place for place, _ in alike], alike[0][1])
    floats = [
        (p, values) for p, values in every if _kind(values[0]) == "floats" and values[0].dim()
    ]
    yield from _scaled(floats[:SCALED], every)
    floats = [p for p, _ in floats]
    for what, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        text = f"{BEGINS}the inputs went through {what}."
        if len(floats) > 1:
            yield f"{ALTERED}all {what}", text, _altering(floats, _rounded_to(dtype))


def _scaled(places: Sequence, sized: Sequence) -> Iterator[Alteration]:
    """Inputs that are too large or too small by a size of the call, such as a scale that is wrong.

    places: the inputs that are tried, each with its values. sized: those whose sizes are tried.
    """
    tried = [(*TWO, power) for power in (-0.5, 0.5)]  # "twice" and "half" are tried of all inputs
    sizes = islice(_sizes(sized), SIZES)
    tried += [(*size, power) for size, power in product(sizes, (-1.0, -0.5, 0.5, 1.0))]
    for (says, size, power), ((find, put, name), values) in product(tried, places):
        done = "divided by" if power < 0 else "multiplied by"
        by = says if abs(power) == 1 else f"the root of {says}"
        check = f"{ALTERED}{name} {done} {by}".replace("`", "")
        factor = partial(_power_of, size, power)
        yield check, f"{BEGINS}`{name}` is {done} {by}.", partial(_times, find, put, factor)
        if power == -0.5 and says != TWO[0] and min(v.dim() for v in values) > 1:
            right = f"the root of the size of `{name}`'s last axis"
            check = f"{ALTERED}{name} scaled by {by}".replace("`", "")
            ratio = partial(_root_of_ratio, partial(_size_of, find, -1), size)
            text = f"{BEGINS}it is as if divided by {by} where {right} belongs."
            yield check, text, partial(_times, find, put, ratio)


def _sizes(sized: Sequence) -> Iterator[tuple[str, Callable]]:
    """The sizes of a call that differ from each other in some call: what they are called, and how
    to read them."""
    sizes: dict[tuple, tuple[str, Callable]] = {}
    for (find, _, name), values in sized:
        if _kind(values[0]) == "int" and min(values) > 1:
            sizes.setdefault(tuple(values), (f"`{name}`", find))
        if not isinstance(values[0], torch.Tensor):
            continue
        for axis in range(min(v.dim() for v in values)):
            of_calls = tuple(v.shape[axis] for v in values)
            if min(of_calls) > 0 and max(of_calls) > 1:
                size = partial(_size_of, find, axis)
                sizes.setdefault(of_calls, (f"the size of axis {axis} of `{name}`", size))
    yield from sizes.values()


def _size_of(find: Callable, axis: int, call: Call) -> int:
    return find(call).shape[axis]


def _power_of(size: Callable, power: float, call: Call) -> float:
    return size(call) ** power


def _root_of_ratio(one: Callable, other: Callable, call: Call) -> float:
    return (one(call) / other(call)) ** 0.5


def _times(find: Callable, put: Callable, factor: Callable, call: Call) -> Call:
    return put(call, find(call) * factor(call))


def _rounded_to(dtype: torch.dtype) -> Callable:
    return lambda t: t.to(dtype).to(t.dtype)


def _together(places: list, values: list) -> Iterator[Alteration]:
    """One change made to all inputs of one form."""
    names = [f"`{name}`" for *_, name in places]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    plain = ", ".join(name for *_, name in places)
    for what, says, change in (*_changes(values), *_cuts(values)):
        text = says.format("each of {}").format(listed)
        yield f"{ALTERED}{plain} {what}", f"{BEGINS}{text}.", _altering(places, change)


def _cuts(values: Sequence[torch.Tensor]) -> Iterator[Change]:
    """Inputs of which one entry is not there at all, such as keys and values."""
    if not all(isinstance(v, torch.Tensor) for v in values):
        return
    for axis in range(min(v.dim() for v in values)):
        if all(v.shape[axis] > 2 for v in values):
            for which, start in (("first", 1), ("last", 0)):
                text = f"along axis {axis} the {which} entry of {{}} is not looked at"
                yield f"cut {which} {axis}", text, _shorter(axis, start)


def _shorter(axis: int, start: int) -> Callable:
    return lambda t: t.narrow(axis, start, t.shape[axis] - 1)


def _altering(places: Sequence, change: Callable) -> Callable[[Call], Call]:
    """What puts changed inputs into a call."""

    def altering(call: Call) -> Call:
        for find, put, _ in places:
            call = put(call, change(find(call)))
        return call

    return altering


# --- where inputs stand --------------------------------------------------------------------------
def _places(call: Call, names: Sequence[str]) -> Iterator[tuple[Callable, Callable, str]]:
    """Each input of a call: how to read it, how to put another in its place, and its name."""
    given = list(enumerate(zip(call.args, names, strict=False)))
    for place, (value, name) in given:
        if isinstance(value, torch.Tensor | bool | int | float):
            yield _argument(place, name)
    for place, (value, _) in given:
        if isinstance(value, Mapping):
            for key in value:
                if isinstance(value[key], torch.Tensor):
                    yield _entry(place, key)


def _argument(place: int, name: str) -> tuple[Callable, Callable, str]:
    def put(call: Call, value) -> Call:
        return replace(call, args=(*call.args[:place], value, *call.args[place + 1 :]))

    return lambda call: call.args[place], put, name


def _entry(place: int, key: str) -> tuple[Callable, Callable, str]:
    """A tensor in a dict, such as one of several weights."""

    def put(call: Call, value) -> Call:
        whole = {**call.args[place], key: value}
        return replace(call, args=(*call.args[:place], whole, *call.args[place + 1 :]))

    return lambda call: call.args[place][key], put, key


# --- what can be done to them --------------------------------------------------------------------
def _changes(values: Sequence) -> Iterator[Change]:
    """The changes that can be made to an input in every call."""
    kinds = {_kind(v) for v in values}
    if len(kinds) > 1:
        return
    kind = kinds.pop()
    yield from _OF_KIND.get(kind, ())
    if kind in ("floats", "truths", "numbers"):
        dims = {v.dim() for v in values}
        if len(dims) == 1 and 0 < (dim := dims.pop()) <= DEEPEST:
            yield from _along_axes(values, dim, kind)


def _kind(value) -> str:
    if isinstance(value, torch.Tensor):
        if value.dtype == torch.bool:
            return "truths"
        return "floats" if value.is_floating_point() else "numbers"
    return type(value).__name__


def _along_axes(values: Sequence[torch.Tensor], dim: int, kind: str) -> Iterator[Change]:
    for axis in range(dim):
        if all(v.shape[axis] > 1 for v in values):
            yield from _along(axis, kind)
    for one, other in combinations(range(dim), 2):
        if all(v.shape[one] == v.shape[other] for v in values):
            yield (
                f"transposed {one} {other}",
                f"{{}} is used with its axes {one} and {other} swapped",
                lambda t, one=one, other=other: t.transpose(one, other),
            )
    if kind == "floats" and dim > 1 and all(v.shape[-1] == v.shape[-2] > 1 for v in values):
        yield from _OF_SQUARES


def _along(axis: int, kind: str) -> Iterator[Change]:
    """What can be done along an axis of more than one entry."""
    if kind == "floats":
        for which, place in (("last", -1), ("first", 0)):
            text = f"along axis {axis} the {which} entry of {{}} does not count"
            yield f"without the {which} {axis}", text, _emptied(axis, place)
            text = f"along axis {axis} only the {which} entry of {{}} counts"
            yield f"only the {which} {axis}", text, _alone(axis, place)
        text = f"the running sums of {{}} along axis {axis} stand in its place"
        yield f"running {axis}", text, lambda t: t.cumsum(axis)
        text = f"along axis {axis} the mean of {{}} stands for each entry"
        yield f"averaged {axis}", text, lambda t: t.mean(axis, keepdim=True).expand_as(t)
    for which, place in (("first", 0), ("last", -1)):
        text = f"along axis {axis} the {which} entry of {{}} stands for all"
        yield f"{which} for all {axis}", text, _one_for_all(axis, place)
    yield f"reversed {axis}", f"{{}} is used in reverse along axis {axis}", lambda t: t.flip(axis)
    for by, where in ((1, "before"), (-1, "behind")):
        text = f"along axis {axis} the entry {where} the right one of {{}} is used"
        yield f"shifted {axis} {by}", text, lambda t, by=by: t.roll(by, axis)


def _emptied(axis: int, place: int) -> Callable:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        left = tensor.clone()
        left.select(axis, place).zero_()
        return left

    return change


def _alone(axis: int, place: int) -> Callable:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        left = torch.zeros_like(tensor)
        left.select(axis, place).copy_(tensor.select(axis, place))
        return left

    return change


def _one_for_all(axis: int, place: int) -> Callable:
    return lambda t: t.select(axis, place).unsqueeze(axis).expand_as(t).clone()


def _root(tensor: torch.Tensor) -> float:
    return math.sqrt(tensor.shape[-1]) if tensor.dim() else 1.0


_OF_SQUARES: tuple[Change, ...] = (
    ("below", "of {} only what is on and below the diagonal counts", torch.tril),
    ("above", "of {} only what is on and above the diagonal counts", torch.triu),
    ("far below", "of {} only what is below the diagonal counts", lambda t: t.tril(-1)),
    ("far above", "of {} only what is above the diagonal counts", lambda t: t.triu(1)),
    ("diagonal", "of {} only the diagonal counts", lambda t: t.tril().triu()),
    ("no diagonal", "of {} the diagonal does not count", lambda t: t - t.tril().triu()),
)
_OF_KIND: dict[str, tuple[Change, ...]] = {
    "floats": (
        ("left out", "{} is left out (as if it were 0)", torch.zeros_like),
        ("as ones", "{} is left out (as if it were 1)", torch.ones_like),
        ("negative", "{} has the other sign", torch.neg),
        ("scaled down", "{} is divided by the root of its last axis", lambda t: t / _root(t)),
        ("scaled up", "{} is multiplied by the root of its last axis", lambda t: t * _root(t)),
        ("twice", "{} counts twice", lambda t: 2 * t),
        ("half", "{} counts half", lambda t: t / 2),
        ("softened", "{} goes through a softmax first", lambda t: t.softmax(-1) if t.dim() else t),
        ("as exponentials", "{} goes through an exponential first", torch.exp),
        ("absolute", "{} loses its signs", torch.abs),
        ("squared", "{} is squared first", torch.square),
        ("inverse", "1 / {} stands in its place", torch.reciprocal),
    ),
    "truths": (
        ("inverted", "True and False of {} are taken for one another", torch.logical_not),
        ("left out", "{} is left out (as if it were False)", torch.zeros_like),
        ("as True", "{} is left out (as if it were True)", torch.ones_like),
    ),
    "numbers": (
        ("one more", "{} is used as if it were one larger", lambda t: t + 1),
        ("one less", "{} is used as if it were one smaller", lambda t: t - 1),
        ("left out", "{} is left out (as if it were 0)", torch.zeros_like),
        ("squared", "{} is squared first", torch.square),
        ("from the first", "{} counts from its first entry", lambda t: t - t.flatten()[:1]),
    ),
    "bool": (("inverted", "{} is taken the other way round", lambda b: not b),),
    "int": (
        ("one more", "{} is used as if it were one larger", lambda n: n + 1),
        ("one less", "{} is used as if it were one smaller", lambda n: n - 1),
        ("as 1", "{} is left out (as if it were 1)", lambda n: 1),
    ),
    "float": (
        ("the rest", "1 minus {} stands in its place", lambda x: 1 - x),
        ("left out", "{} is left out (as if it were 0)", lambda x: 0.0),
        ("as 1", "{} is left out (as if it were 1)", lambda x: 1.0),
        (
            "inverse",
            "it is divided by {} where it should be multiplied, or the other way round",
            lambda x: 1 / x if x else math.inf,
        ),
        ("squared", "{} is squared", lambda x: x * x),
        ("root", "the root of {} is taken", lambda x: math.sqrt(max(x, 0.0))),
        ("negative", "{} has the other sign", lambda x: -x),
    ),
}
