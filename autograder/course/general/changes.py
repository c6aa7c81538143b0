"""What can be done to one operation: left out, done twice, over another axis, its operands swapped.

Each change is a function that is called in the operation's place, with the function, its arguments
and its named arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

Change = tuple[str, str, Callable]  # name, sentence with {} for the operation, what is done instead

WORDS = {
    "add": "addition", "sub": "subtraction", "mul": "multiplication", "div": "division",
    "matmul": "matrix product", "bmm": "matrix product", "mm": "matrix product",
    "einsum": "product (einsum)", "linear": "linear layer", "pow": "power", "neg": "minus sign",
    "exp": "exponential", "log": "logarithm", "sqrt": "root", "rsqrt": "root", "square": "square",
    "T": "transpose", "mT": "transpose", "transpose": "transpose", "permute": "transpose",
    "softmax": "softmax", "log_softmax": "log_softmax", "sum": "sum", "mean": "mean",
    "amax": "maximum", "max": "maximum", "maximum": "maximum", "amin": "minimum",
    "min": "minimum", "minimum": "minimum", "cumsum": "running sum", "masked_fill": "masking",
    "invert": "not (~)", "logical_not": "not (~)", "var": "variance", "std": "spread",
    "lt": "comparison <", "le": "comparison <=", "gt": "comparison >", "ge": "comparison >=",
    "eq": "comparison ==", "ne": "comparison !=", "and": "and (&)", "or": "or (|)",
    "cos": "cosine", "sin": "sine", "getitem": "index", "arange": "row of numbers (arange)",
    "abs": "absolute value", "clamp": "cut-off (clamp)", "flip": "reversal (flip)",
}  # fmt: skip
RENAMED = {
    "truediv": "div", "rtruediv": "rdiv", "multiply": "mul", "divide": "div", "subtract": "sub",
    "radd": "add", "rmul": "mul", "swapaxes": "transpose", "bitwise_and": "and",
    "bitwise_or": "or", "logical_and": "and", "logical_or": "or", "bitwise_not": "invert",
    "concat": "cat", "vstack": "cat", "rmatmul": "matmul", "iadd": "add_",
}  # fmt: skip
TRANSPOSES = ("T", "mT", "transpose", "permute", "movedim", "t")
SAME = ("reshape", "view", "flatten", "unflatten", "unsqueeze", "squeeze", "expand", "to", "float",
        "double", "long", "bool", "clone", "contiguous", "detach", "type_as", "expand_as",
        "view_as", "reshape_as", "zeros_like", "ones_like", "full_like", "empty_like", "new_full",
        "new_zeros", "new_ones", "size", "dim", "numel", "item", "tolist")  # fmt: skip
# What may stand in an operation's place, with the same arguments.
INSTEAD: dict[str, tuple[str, ...]] = {
    "sum": ("mean", "amax"), "mean": ("sum", "amax"), "amax": ("amin", "mean", "sum"),
    "amin": ("amax",), "argmax": ("argmin",), "argmin": ("argmax",), "maximum": ("minimum", "add"),
    "minimum": ("maximum",), "add": ("sub", "mul"), "sub": ("add",), "mul": ("div", "add"),
    "div": ("mul", "sub"), "rdiv": ("mul",), "tril": ("triu",), "triu": ("tril",),
    "sin": ("cos",), "cos": ("sin",), "log": ("log2", "log10", "log1p"), "exp": ("exp2", "expm1"),
    "lt": ("le", "gt", "ge"), "le": ("lt", "ge", "gt"), "gt": ("ge", "lt", "le"),
    "ge": ("gt", "le", "lt"), "eq": ("ne",), "ne": ("eq",), "and": ("or",), "or": ("and",),
    "sigmoid": ("tanh", "relu"), "tanh": ("sigmoid", "relu"), "relu": ("gelu", "silu", "abs"),
    "square": ("abs",), "sqrt": ("square",), "elu": ("relu", "sigmoid", "tanh"),
    "ceil": ("floor", "round"), "floor": ("ceil", "round"),
    "gelu": ("relu", "silu", "tanh", "sigmoid"), "silu": ("relu", "gelu", "sigmoid"),
}  # fmt: skip
ACTIVATIONS = ("relu", "silu", "tanh", "sigmoid", "gelu")
OPERATORS = {"and": "logical_and", "or": "logical_or", "rdiv": "div"}
COMMUTE = ("add", "mul", "maximum", "minimum", "and", "or", "eq", "ne")
PAIRS = ("sub", "div", "matmul", "bmm", "mm", "pow", "rdiv", "lt", "le", "gt", "ge")
SIGNS = ("add", "sub", "mul", "div", "and", "or", "maximum", "minimum", "pow")  # of two sides
PRODUCTS = ("matmul", "bmm", "mm", "einsum")
REDUCES = ("sum", "mean", "amax", "amin", "var", "std", "logsumexp")
ALONG = (*REDUCES, "softmax", "log_softmax", "cumsum", "argmax", "flip", "sort", "argsort")


@dataclass(frozen=True)
class Asked:
    """An operation as it was asked for the first time: its name, what it was given, what it gave.

    place: of the axis among the arguments.
    """

    name: str
    args: tuple
    kwargs: dict
    value: object

    @classmethod
    def of(cls, func: Callable, args: tuple, kwargs: dict, value: object) -> Asked:
        return cls(plain(func), args, dict(kwargs), value)


def plain(func: Callable) -> str:
    """The name of an operation, whether it was written as a sign, a method or a function."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return str(getattr(getattr(func, "__self__", None), "__name__", ""))
    name = name.strip("_") if name.startswith("__") else name
    return RENAMED.get(name, name)


def words(name: str) -> str:
    """What an operation is called."""
    return WORDS.get(name, "division" if name == "rdiv" else f"`{name}`")


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
        yield from _of_several(name, value)
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
    yield from _with_other_numbers(asked)
    yield from _of_the_result(name, asked, value)


# --- left out, or done twice ---------------------------------------------------------------------
def _left_out(name: str, first, second, value: torch.Tensor) -> Iterator[Change]:
    if name in ("getitem", "arange", "triu", "tril", "lt", "le", "gt", "ge", "eq", "ne"):
        pass
    elif name in ("mul", "div") and _is_number(second) and abs(second) in (0, 1):
        pass  # a sign, or a switch: the result with the other sign says it better
    elif _alike(first, value):
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
    switch = _is_number(second) and abs(second) in (0, 1)
    if (
        not switch
        and _alike(first, value)
        and name not in (*TRANSPOSES, "neg", "invert", "getitem", "flip")
    ):
        text = "{} is done twice"
        yield (
            "twice",
            text,
            lambda func, args, kwargs: func(func(*args, **kwargs), *args[1:], **kwargs),
        )


def _alike(one, value: torch.Tensor) -> bool:
    return isinstance(one, torch.Tensor) and one.shape == value.shape and one.dtype == value.dtype


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
    if name == "linear":
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


# --- other numbers -------------------------------------------------------------------------------
def _with_other_numbers(asked: Asked) -> Iterator[Change]:
    """A whole number that is one off, such as where a mask begins; a number that counts twice."""
    name = asked.name
    if name in ("triu", "tril", "roll", "topk"):
        for by, how in ((1, "more"), (-1, "less")):
            text = "{} begins one place " + ("later" if by > 0 else "earlier")
            yield f"one {how}", text, _off_by(by)
    number = asked.args[1] if len(asked.args) > 1 else None
    if name in ("add", "sub", "mul", "div", "pow") and _is_number(number):
        for factor, how in ((2, "twice as large"), (0.5, "half as large"), (-1, "of another sign")):
            text = "the number of {} is " + how
            yield how, text, _other_number(factor)
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


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _off_by(by: int) -> Callable:
    def change(func, args, kwargs):
        if "diagonal" in kwargs:
            return func(*args, **{**kwargs, "diagonal": kwargs["diagonal"] + by})
        start = args[1] if len(args) > 1 else 0
        return func(args[0], start + by, *args[2:], **kwargs)

    return change


def _other_number(factor: float) -> Callable:
    return lambda func, args, kwargs: func(args[0], args[1] * factor, *args[2:], **kwargs)


def _shifted_index(by: int) -> Callable:
    def moved(part):
        if isinstance(part, slice) and part.step is None:
            ends = [end if end is None else end + by for end in (part.start, part.stop)]
            return slice(*ends)
        return part + by if _is_number(part) else part

    def change(func, args, kwargs):
        index = args[1]
        index = tuple(map(moved, index)) if isinstance(index, tuple) else moved(index)
        value = func(args[0], index)
        if value.shape != func(*args).shape:
            raise IndexError
        return value

    return change


# --- what comes out ------------------------------------------------------------------------------
def _of_several(name: str, value) -> Iterator[Change]:
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


def _parts_reversed(func, args, kwargs):
    return func(tuple(reversed(args[0])), *args[1:], **kwargs)


def _of_the_result(name: str, asked: Asked, value: torch.Tensor) -> Iterator[Change]:
    """What is done to a result on its way on."""

    def then(step: Callable) -> Callable:
        return lambda func, args, kwargs: step(func(*args, **kwargs))

    if value.dtype == torch.bool:
        yield "inverted", "what {} gives is the wrong way round", then(torch.logical_not)
        for axis in range(value.dim()):
            for by, where in ((1, "behind"), (-1, "before")):
                text = "what {} gives stands one place " + where + f" its own along axis {axis}"
                yield f"moved {axis} {by}", text, then(lambda t, n=by, a=axis: _moved(t, n, a))
    if value.dim() > 1 and value.shape[-1] == value.shape[-2] > 1 and name not in TRANSPOSES:
        text = "what {} gives is transposed, or is not"
        yield "transposed", text, then(lambda t: t.mT)
    if not value.is_floating_point():
        return
    yield "negative", "what {} gives has the other sign", then(torch.neg)
    yield "times 2", "what {} gives counts twice", then(lambda t: 2 * t)
    yield "times half", "what {} gives counts half", then(lambda t: t / 2)
    if name in REDUCES:
        for axis in range(value.dim()):
            if value.shape[axis] > 1:
                for place, which in ((0, "first"), (-1, "last")):
                    text = f"along axis {axis} all get what " + "{} gives for the " + which
                    yield (
                        f"{which} for all {axis}",
                        text,
                        then(lambda t, a=axis, p=place: t.select(a, p).unsqueeze(a).expand_as(t)),
                    )
    if name in (*PRODUCTS, *REDUCES):
        yield from _by_sizes(asked, value)
    if name in (*PRODUCTS, *REDUCES, "exp", "softmax", "div", "mul") and value.dim() > 1:
        for axis in range(value.dim()):
            if value.shape[axis] > 1:
                text = f"along axis {axis} what " + "{} gives is made to sum to 1"
                yield f"normalised {axis}", text, then(lambda t, a=axis: t / t.sum(a, keepdim=True))


def _moved(tensor: torch.Tensor, by: int, axis: int) -> torch.Tensor:
    return tensor.roll(by, axis)


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
