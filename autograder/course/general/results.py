"""What can be done to the numbers of an operation, and to what comes out of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from autograder.course.general.asked import (
    PRODUCTS,
    REDUCES,
    SAME,
    TRANSPOSES,
    Asked,
    Change,
    alike,
    is_number,
)


# --- other numbers -------------------------------------------------------------------------------
def with_other_numbers(asked: Asked) -> Iterator[Change]:
    """A whole number that is one off, such as where a mask begins; a number that counts twice."""
    name = asked.name
    if name in ("triu", "tril", "roll", "topk"):
        for by, how in ((1, "more"), (-1, "less")):
            text = "{} begins one place " + ("later" if by > 0 else "earlier")
            yield f"one {how}", text, _off_by(by)
    number = asked.args[1] if len(asked.args) > 1 else None
    if name in ("add", "sub", "mul", "div", "pow") and is_number(number):
        for factor, how in ((2, "twice as large"), (0.5, "half as large"), (-1, "of another sign")):
            text = "the number of {} is " + how
            yield how, text, _other_number(factor)
    if name in ("mul", "div") and is_number(number) and isinstance(asked.args[0], torch.Tensor):
        for axis in range(asked.args[0].dim()):
            for power, how in (
                (-0.5, "1 over the root of"),
                (0.5, "the root of"),
                (-1.0, "1 over"),
            ):
                text = "the number of {} is " + f"{how} the length of axis {axis} of its first side"
                yield f"number {how} {axis}", text, _number_of_axis(axis, power)
    if name == "getitem" and not isinstance(asked.args[1], torch.Tensor):
        for by in (1, -1):
            text = "{} reads one place too " + ("far" if by > 0 else "early")
            yield f"index {by}", text, _shifted_index(by)
    if name == "arange":
        for by, how in ((1, "larger"), (-1, "smaller")):
            text = "each number of {} is one " + how
            yield f"one {how}", text, lambda func, args, kwargs, by=by: func(*args, **kwargs) + by
        text = "{} runs backwards"
        yield "backwards", text, lambda func, args, kwargs: func(*args, **kwargs).flip(0)


def _off_by(by: int) -> Callable:
    def change(func, args, kwargs):
        if "diagonal" in kwargs:
            return func(*args, **{**kwargs, "diagonal": kwargs["diagonal"] + by})
        start = args[1] if len(args) > 1 else 0
        return func(args[0], start + by, *args[2:], **kwargs)

    return change


def _other_number(factor: float) -> Callable:
    return lambda func, args, kwargs: func(args[0], args[1] * factor, *args[2:], **kwargs)


def _number_of_axis(axis: int, power: float) -> Callable:
    return lambda func, args, kwargs: func(
        args[0], args[0].shape[axis] ** power, *args[2:], **kwargs
    )


def _shifted_index(by: int) -> Callable:
    def moved(part):
        if isinstance(part, slice) and part.step is None:
            ends = [end if end is None else end + by for end in (part.start, part.stop)]
            return slice(*ends)
        return part + by if is_number(part) else part

    def change(func, args, kwargs):
        index = args[1]
        index = tuple(map(moved, index)) if isinstance(index, tuple) else moved(index)
        value = func(args[0], index)
        if value.shape != func(*args).shape:
            raise IndexError
        return value

    return change


# --- what comes out ------------------------------------------------------------------------------
def of_several(name: str, value) -> Iterator[Change]:
    """Several results, such as parts of a tensor."""
    if name in ("chunk", "split", "unbind", "tensor_split") and 1 < len(value) < 4:
        for order in list(itertools.permutations(range(len(value))))[1:]:
            text = "the parts that {} gives are taken in another order"
            yield (
                f"order {order}",
                text,
                lambda func, args, kwargs, order=order: tuple(
                    func(*args, **kwargs)[n] for n in order
                ),
            )


def of_the_result(name: str, asked: Asked, value: torch.Tensor) -> Iterator[Change]:
    """What is done to a result on its way on."""

    def then(step: Callable) -> Callable:
        return lambda func, args, kwargs: step(func(*args, **kwargs))

    if value.dtype == torch.bool:
        yield "inverted", "what {} gives is the wrong way round", then(torch.logical_not)
        for axis in range(value.dim()):
            for by, where in ((1, "behind"), (-1, "before")):
                text = "what {} gives stands one place " + where + f" its own along axis {axis}"
                yield f"moved {axis} {by}", text, then(lambda t, n=by, a=axis: t.roll(n, a))
    if value.dim() > 1 and value.shape[-1] == value.shape[-2] > 1 and name not in TRANSPOSES:
        text = "what {} gives is transposed, or is not"
        yield "transposed", text, then(lambda t: t.mT)
    if not value.is_floating_point():
        return
    yield "negative", "what {} gives has the other sign", then(torch.neg)
    yield "nothing", "what {} gives counts as 0", then(torch.zeros_like)
    yield "times 2", "what {} gives counts twice", then(lambda t: 2 * t)
    yield "times half", "what {} gives counts half", then(lambda t: t / 2)
    if name == "linear" and alike(asked.args[0], value):
        text = "what goes into {} is added to what comes out"
        yield "added", text, lambda func, args, kwargs: args[0] + func(*args, **kwargs)
    if name not in SAME:
        yield from _once_more(value, then)
    if name in (*PRODUCTS, *REDUCES):
        yield from _by_sizes(asked, value)
    if name in (*PRODUCTS, *REDUCES, "exp", "softmax", "div", "mul") and value.dim() > 1:
        for axis in range(value.dim()):
            if value.shape[axis] > 1:
                text = f"along axis {axis} what " + "{} gives is made to sum to 1"
                yield f"normalised {axis}", text, then(lambda t, a=axis: t / t.sum(a, keepdim=True))


def _once_more(value: torch.Tensor, then: Callable) -> Iterator[Change]:
    """A step too many on the way on."""
    for name, says, step in (
        ("root", "a root is taken of", torch.sqrt),
        ("square", "a square is taken of", torch.square),
        ("absolute", "the absolute value is taken of", torch.abs),
        ("inverse", "one is divided by", torch.reciprocal),
        ("rest", "one minus", lambda t: 1 - t),
        ("tanh", "a tanh is taken of", torch.tanh),
        ("exp", "an exponential is taken of", torch.exp),
    ):  # fmt: skip
        text = f"{says} " + "what {} gives"
        yield f"then {name}", f"{text} stands in its place" if name == "rest" else text, then(step)
    for axis in range(value.dim()):
        if value.shape[axis] > 1:
            for what, step in (
                ("is used in reverse", lambda t, a: t.flip(a)),
                ("stands one place behind its own", lambda t, a: t.roll(1, a)),
                ("stands one place before its own", lambda t, a: t.roll(-1, a)),
                ("is averaged", lambda t, a: t.mean(a, keepdim=True).expand_as(t)),
                ("is added up as it comes", lambda t, a: t.cumsum(a)),
                ("is the first one's for all", lambda t, a: t.narrow(a, 0, 1).expand_as(t)),
                ("is the last one's for all", lambda t, a: t.narrow(a, -1, 1).expand_as(t)),
            ):
                text = "what {} gives " + f"{what}, along axis {axis}"
                yield f"{what} {axis}", text, then(lambda t, s=step, a=axis: s(t, a))


def _by_sizes(asked: Asked, value: torch.Tensor) -> Iterator[Change]:
    """Too large or too small by the length of an axis, as a mean is for a sum."""
    ways = [
        (f"its axis {axis}", lambda t, given, n=axis: t.shape[n]) for axis in range(value.dim())
    ]
    if isinstance(asked.args[0], torch.Tensor):
        ways.append(("the axis that it sums over", lambda t, given: given.shape[-1]))
    for says, size in ways:
        for power in (-1.0, -0.5, 0.5, 1.0):
            by = f"{'' if abs(power) == 1 else 'the root of '}the length of {says}"
            done = "divided by" if power < 0 else "multiplied by"
            yield f"{done} {by}", "what {} gives is " + f"{done} {by}", _scaled(size, power)


def _scaled(size: Callable, power: float) -> Callable:
    def change(func, args, kwargs):
        value = func(*args, **kwargs)
        return value * size(value, args[0]) ** power

    return change
