"""What can be done to one operation: left out, done twice, over another axis, its operands swapped.

Each change is a function that is called in the operation's place, with the function, its arguments
and its named arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from autograder.course.general.asked import (
    ACTIVATIONS,
    ALONG,
    INSTEAD,
    OPERATORS,
    PAIRS,
    REDUCES,
    SAME,
    SIGNS,
    TRANSPOSES,
    Asked,
    Change,
    alike,
    is_number,
    plain,
    words,
)  # fmt: skip
from autograder.course.general.results import of_several, of_the_result, with_other_numbers


def changes(asked: Asked) -> Iterator[Change]:
    """All that can be done to it instead, the likeliest first."""
    name, value = asked.name, asked.value
    if name.endswith("_"):
        yield from _in_place(name)
        return
    if name in SAME or not asked.args:
        return
    if name in ("cat", "stack") and isinstance(asked.args[0], tuple | list):
        yield "reversed", "{} puts its parts together in reverse order", _parts_reversed
    if isinstance(value, tuple | list):
        yield from of_several(name, value)
        return
    if not isinstance(value, torch.Tensor) or not value.dim():
        return
    first, second = (*asked.args, None, None)[:2]
    yield from _left_out(name, first, second, value)
    if name in ALONG and isinstance(first, torch.Tensor):
        yield from _other_axes(asked, first)
    yield from _instead(name)
    if name == "add" and isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        yield "side by side", "the two sides of {} are put side by side, not added", _side_by_side
    if name in PAIRS and isinstance(second, torch.Tensor | int | float):
        yield "swapped", "the two sides of {} have changed places", _swapped
    yield from with_other_numbers(asked)
    yield from of_the_result(name, asked, value)


# --- left out, or done twice ---------------------------------------------------------------------
def _left_out(name: str, first, second, value: torch.Tensor) -> Iterator[Change]:
    if name in ("getitem", "arange", "triu", "tril", "lt", "le", "gt", "ge", "eq", "ne"):
        pass
    elif name in ("mul", "div") and is_number(second) and abs(second) in (0, 1):
        pass  # a sign, or a switch: the result with the other sign says it better
    elif alike(first, value):
        yield "left out", "{} is left out", lambda func, args, kwargs: args[0]
    elif name in SIGNS and isinstance(first, torch.Tensor) and first.dim() <= value.dim():
        yield "left out", "{} is left out", _broadcast(0)
    fits = isinstance(second, torch.Tensor) and second.dtype == value.dtype
    if name in SIGNS and fits and second.dim() <= value.dim():
        text = "{} is left out: only its second side counts"
        yield "only the second", text, _broadcast(1)
    if name in ("triu", "tril"):
        yield "left out", "{} is left out: nothing is cut off", lambda func, args, kwargs: args[0]
    if name in TRANSPOSES and isinstance(first, torch.Tensor) and first.numel() == value.numel():
        text = "the numbers are only given another shape where {} belongs"
        yield (
            "reshaped",
            text,
            lambda func, args, kwargs: args[0].reshape(func(*args, **kwargs).shape),
        )
    switch = is_number(second) and abs(second) in (0, 1)
    if (
        not switch
        and alike(first, value)
        and name not in (*TRANSPOSES, "neg", "invert", "getitem", "flip")
    ):
        text = "{} is done twice"
        yield (
            "twice",
            text,
            lambda func, args, kwargs: func(func(*args, **kwargs), *args[1:], **kwargs),
        )
    if name in ("mul", "add") and alike(first, value) and isinstance(second, torch.Tensor):
        text = "the first side of {} counts twice"
        yield (
            "first twice",
            text,
            lambda func, args, kwargs: func(args[0], func(*args, **kwargs), **kwargs),
        )


def _broadcast(place: int) -> Callable:
    def change(func, args, kwargs):
        value = func(*args, **kwargs)
        return args[place].to(value.dtype).expand_as(value)

    return change


def _in_place(name: str) -> Iterator[Change]:
    if name == "add_":
        text = "what {} adds to is overwritten"
        yield "overwritten", text, lambda func, args, kwargs: args[0].copy_(args[1])
        yield "left out", "{} is left out", lambda func, args, kwargs: args[0]
        text = "{} takes away"
        yield "taken", text, lambda func, args, kwargs: args[0].sub_(args[1])


# --- another axis, another function --------------------------------------------------------------
def _other_axes(asked: Asked, first: torch.Tensor) -> Iterator[Change]:
    """The same over each other axis, and of a sum or a mean over more axes."""
    for axis in range(first.dim()):
        text = "{} runs along axis " + str(axis)
        yield f"along {axis}", text, _along(axis)
    if asked.name in REDUCES and asked.kwargs.get("keepdim"):
        for axes in itertools.combinations(range(first.dim()), 2):
            text = "{} runs along axes " + " and ".join(map(str, axes))
            yield f"along {axes}", text, _along(axes)
        if first.dim() > 2:
            axes = tuple(range(first.dim()))
            yield "along all", "{} runs over everything", _along(axes)


def _along(axis) -> Callable:
    def change(func, args, kwargs):
        if "dim" in kwargs or "axis" in kwargs:
            return func(*args, **{**kwargs, "dim" if "dim" in kwargs else "axis": axis})
        return func(args[0], axis, *args[2:], **kwargs)

    return change


def _instead(name: str) -> Iterator[Change]:
    for other in INSTEAD.get(name, ()):
        text = "{} is " + _article(words(other))
        yield f"as {other}", text, _by_name(other)
    if name == "softmax":
        yield "as sigmoid", "{} is a sigmoid", lambda func, args, kwargs: args[0].sigmoid()
        yield "as exp", "{} is an exponential that nothing is divided by", _exponential
        yield "as share", "{} is a division by the sum", _share
    if name == "cumsum":
        yield "whole", "{} is the sum of all, also of what comes later", _whole
        yield (
            "before",
            "{} ends one before its place",
            lambda func, args, kwargs: func(*args, **kwargs) - args[0],
        )
        yield "backwards", "{} runs backwards", _backwards
    if name == "repeat_interleave":
        yield "repeat", "all is repeated as a whole, as by `repeat`", _repeat
    if name == "masked_fill":
        yield (
            "inverted",
            "{} hides the others",
            lambda func, args, kwargs: func(args[0], ~args[1], *args[2:], **kwargs),
        )
        for number in (0.0, -1.0, -1e9):
            text = "{} fills with " + f"{number:g}"
            yield f"with {number:g}", text, lambda func, args, kwargs, n=number: func(*args[:2], n)
    if name == "where":
        yield (
            "inverted",
            "the two cases of {} have changed places",
            lambda func, args, kwargs: func(args[0], args[2], args[1], **kwargs),
        )
    if name in ("matmul", "bmm", "mm"):
        for place, which in ((0, "first"), (1, "second")):
            text = "the " + which + " side of {} is transposed, or is not"
            yield f"{which} transposed", text, _one_transposed(place)
    if name == "mean":
        yield (
            "median",
            "{} is a median",
            lambda func, args, kwargs: (
                args[0].median(_axis(args, kwargs), keepdim=kwargs.get("keepdim", False)).values
            ),
        )
    if name == "linear":
        yield (
            "bias twice",
            "the bias of {} is added twice",
            lambda func, args, kwargs: (
                func(*args, **kwargs) + (args[2] if len(args) > 2 else kwargs["bias"])
            ),
        )
        yield (
            "no bias",
            "the bias of {} is left out",
            lambda func, args, kwargs: func(*args[:2], None),
        )
        yield (
            "transposed",
            "the weight of {} is transposed",
            lambda func, args, kwargs: func(args[0], args[1].mT, *args[2:], **kwargs),
        )
    if name in ("var", "std"):
        for unbiased, by in ((True, "n - 1"), (False, "n")):
            text = "{} is divided by " + by
            yield f"by {by}", text, _variance(unbiased)


def _article(said: str) -> str:
    return said if said.startswith("`") else f"{'an' if said[0] in 'aeiou' else 'a'} {said}"


def _by_name(other: str) -> Callable:
    called = OPERATORS.get(other, other)

    def change(func, args, kwargs):
        left, *more = args
        if not isinstance(left, torch.Tensor):
            left = torch.tensor(left)
        if called in ACTIVATIONS:
            return getattr(torch.nn.functional, called)(left)
        return getattr(left, called)(*more, **kwargs)

    return change


def _swapped(func, args, kwargs):
    sides = [a if isinstance(a, torch.Tensor) else torch.tensor(a) for a in args[:2]]
    if plain(func) == "rdiv":
        return sides[0] / sides[1]
    return func(sides[1], sides[0], *args[2:], **kwargs)


def _parts_reversed(func, args, kwargs):
    return func(tuple(reversed(args[0])), *args[1:], **kwargs)


def _side_by_side(func, args, kwargs):
    return torch.cat(torch.broadcast_tensors(*args[:2]), -1)


def _exponential(func, args, kwargs):
    return (args[0] - args[0].amax()).exp() * args[0].amax().exp()


def _axis(args, kwargs) -> int:
    return kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else -1))


def _share(func, args, kwargs):
    kept = torch.where(args[0].isinf(), 0.0, args[0])
    return kept / kept.sum(_axis(args, kwargs), keepdim=True)


def _whole(func, args, kwargs):
    return args[0].sum(_axis(args, kwargs), keepdim=True).expand_as(args[0])


def _backwards(func, args, kwargs):
    axis = _axis(args, kwargs)
    return func(args[0].flip(axis), *args[1:], **kwargs).flip(axis)


def _repeat(func, args, kwargs):
    times, axis = args[1], kwargs.get("dim", args[2] if len(args) > 2 else 0)
    return torch.cat([args[0]] * times, axis)


def _one_transposed(place: int) -> Callable:
    def change(func, args, kwargs):
        sides = [a.mT if n == place else a for n, a in enumerate(args[:2])]
        return func(*sides, *args[2:], **kwargs)

    return change


def _variance(unbiased: bool) -> Callable:
    return lambda func, args, kwargs: func(*args[:2], **{**kwargs, "unbiased": unbiased})
