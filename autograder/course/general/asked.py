"""An operation of an answer: how it was asked for, what it is called in words, and its kind."""

from __future__ import annotations

from collections.abc import Callable
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
    "rpow": "power", "rsub": "subtraction", "floordiv": "whole division (//)",
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
    "sin": ("cos",), "cos": ("sin",), "log": ("log2", "log10", "log1p"),
    "exp": ("exp2", "expm1", "sigmoid"),
    "lt": ("le", "gt", "ge"), "le": ("lt", "ge", "gt"), "gt": ("ge", "lt", "le"),
    "ge": ("gt", "le", "lt"), "eq": ("ne",), "ne": ("eq",), "and": ("or",), "or": ("and",),
    "sigmoid": ("tanh", "relu"), "tanh": ("sigmoid", "relu"), "relu": ("gelu", "silu", "abs"),
    "square": ("abs",), "sqrt": ("square",), "elu": ("relu", "sigmoid", "tanh"),
    "ceil": ("floor", "round"), "floor": ("ceil", "round"),
    "gelu": ("relu", "silu", "tanh", "sigmoid"), "silu": ("relu", "gelu", "sigmoid"),
}  # fmt: skip
ACTIVATIONS = ("relu", "silu", "tanh", "sigmoid", "gelu")
OPERATORS = {"and": "logical_and", "or": "logical_or", "rdiv": "div"}
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


def is_number(value) -> bool:
    """Whether a value is a plain number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def alike(one, value: torch.Tensor) -> bool:
    """Whether a value is a tensor of the form of another."""
    return isinstance(one, torch.Tensor) and one.shape == value.shape and one.dtype == value.dtype
