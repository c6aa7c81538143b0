"""Errors of Python's or PyTorch's whose text says which slip was made: what it is, what to do.

A name is printed only where the cell's text proves it.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from autograder.tracing import habits
from autograder.tracing.text import Text


@dataclass(frozen=True)
class Error:
    """An error in a student's cell: its match, the cell's text, the line, the operands' sizes."""

    found: re.Match
    text: Text
    line: int | None
    shapes: tuple[tuple[int, ...], ...] = ()

    def names(self) -> Iterator[tuple[str, ast.expr]]:
        """The variables of the statement, each with what it was assigned last before it."""
        statement = self.text.around(self.line or 0)
        for node in ast.walk(statement) if statement is not None else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                value = self.text.assigned(node.id, self.line or 0)
                if value is not None:
                    yield node.id, value

    def calls(self, attribute: str) -> bool:
        """Whether the statement calls, or takes, something of this name."""
        statement = self.text.around(self.line or 0)
        nodes = ast.walk(statement) if statement is not None else ()
        return any(isinstance(n, ast.Attribute) and n.attr == attribute for n in nodes)


def no_super(error: Error) -> str:
    return (
        "`super().__init__()` is missing: it comes first in `__init__`, before a layer is kept in "
        "`self`."
    )


def no_self(error: Error) -> str:
    function = error.text.function(error.found.group(1))
    if function is None or not error.text.is_method(function):
        return ""
    names = [a.arg for a in function.args.args]
    if names[:1] != ["self"]:
        return f"`{function.name}` is a method: its first argument is `self`, the object itself."
    return ""


def a_list(error: Error) -> str:
    makes = (ast.List, ast.ListComp)
    name = next((name for name, value in error.names() if isinstance(value, makes)), "")
    what = f"`{name}` is a Python list" if name else "One side is a Python list"
    return f"{what}: `torch.stack(...)` makes one tensor of a list of tensors of one shape."


def a_none(error: Error) -> str:
    for name, value in error.names():
        if not isinstance(value, ast.Call):
            continue
        called = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        called = value.func.id if isinstance(value.func, ast.Name) else called
        function = error.text.function(called)
        if function is not None and not habits.gives_back(function):
            return f"`{called}` returns nothing, so that `{name}` is None. End it with a `return`."
        if called == "append":
            return f"`append` changes its list and returns nothing, so that `{name}` is None."
    return "One side is None: a function without a `return` gives that."


def a_layer(error: Error) -> str:
    for name, value in error.names():
        if isinstance(value, ast.Attribute):
            layer = error.text.of(value)
            return f"`{name}` is the layer itself: call it with its input, `{layer}(...)`."
    return "One side is a layer itself: a layer is called with its input."


def size_called(error: Error) -> str:
    return "`shape` is no function: write `.shape[...]`, or `.size(...)`."


def size_indexed(error: Error) -> str:
    if error.calls("size"):
        return "`size` is a function: write `.size(...)`, or `.shape[...]`."
    return "A function is indexed: it has to be called, with round brackets."


def a_number(error: Error) -> str:
    name, kind = error.found.group(1), error.found.group(2)
    instead = f" `math.{name}` takes numbers." if hasattr(math, name) else ""
    return f"`torch.{name}` takes a tensor and is given a number ({kind}).{instead}"


def no_list(error: Error) -> str:
    name = error.found.group(1)
    return (
        f"`torch.{name}` takes its tensors together, in one list: `torch.{name}([a, b], dim=...)`."
    )


def not_joined(error: Error) -> str:
    shapes = " and ".join(str(list(s)) for s in error.shapes[:3])
    given = f" They have the shapes {shapes}." if shapes else ""
    return f"Only along the axis on which tensors are joined may their sizes differ.{given}"


def no_such_shape(error: Error) -> str:
    asked = [int(n) for n in re.findall(r"-?\d+", error.found.group(1))]
    there = int(error.found.group(2))
    own = f" (its shape is {list(error.shapes[0])})" if error.shapes else ""
    if -1 in asked or not asked:
        known = math.prod(n for n in asked if n != -1)
        return f"{there} numbers cannot be cut into parts of {known}{own}."
    product = " * ".join(map(str, asked))
    return f"The new shape has {product} = {math.prod(asked)} numbers, the tensor {there}{own}."


def numpy_array(error: Error) -> str:
    return "It is given a numpy array. `torch.from_numpy(...)` makes a tensor of one."


def no_bools(error: Error) -> str:
    return "The mask holds numbers: `mask.bool()` or `mask == 1` makes one of True and False."


def without_an_argument(error: Error) -> str:
    called, lost = error.found.group(1).rpartition(".")[2], re.findall(r"'(\w+)'", error.found[2])
    function = error.text.function(called)
    if function is None:
        return ""
    names = [f"`{a.arg}`" for a in function.args.args if a.arg != "self"]
    quoted = " and ".join(f"`{name}`" for name in lost)
    return f"`{called}` takes {', '.join(names)}, in this order; {quoted} is left out here."


def without_dim(error: Error) -> str:
    return f"`{error.found.group(1)}` has to be told its axis: `dim=-1` is the last one."


def another_dtype(error: Error) -> str:
    return (
        "One tensor holds whole numbers (or bools) and the other floating ones: `.float()` makes "
        "floating numbers of them."
    )


def another_device(error: Error) -> str:
    return (
        "A tensor was made on another device than the one it meets: make it there, with "
        "`device=x.device`."
    )


def not_expanded(error: Error) -> str:
    own = f" Its shape is {list(error.shapes[0])}." if error.shapes else ""
    return f"`expand` lengthens axes of size 1 only; an axis of another size keeps it.{own}"


def no_attribute(error: Error) -> str:
    kind, name = error.found.group(1), error.found.group(2)
    if kind == "Tensor":
        known, start = [n for n in dir(torch.Tensor) if not n.startswith("_")], "A tensor has no"
    else:
        known, start = sorted(error.text.attributes), f"`{kind}` has no"
    likely = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    hint = f" `{likely[0]}` is there: is that the one?" if likely else ""
    if kind != "Tensor" and not likely:
        hint = f" `self.{name}` is set nowhere in this class." if error.calls(name) else ""
    return f"{start} `{name}`.{hint}" if hint else ""


def no_truth(error: Error) -> str:
    return (
        "A tensor of several numbers is neither true nor false: compare them one by one "
        "(`torch.where`), or ask for `.any()` or `.all()`."
    )


def tensor_called(error: Error) -> str:
    return (
        "A tensor is called as if it were a function: a `*` or `@` is missing, or a name is used "
        "twice."
    )


def not_unpacked(error: Error) -> str:
    sizes = f" ({list(error.shapes[0])})" if error.shapes else ""
    return (
        "There are other parts than names on the left. A tensor is unpacked along its first "
        f"axis{sizes}."
    )


_OPERANDS = r"unsupported operand type\(s\) for [^:]{1,9}: .*"
# (the error's type or '', a pattern in its text, what is said)
MISUSES: list[tuple[str, str, Callable[[Error], str]]] = [
    ("AttributeError", r"before Module\.__init__\(\) call", no_super),
    ("TypeError", r"(\w+)\(\) takes \d+ positional arguments? but \d+ (was|were) given", no_self),
    ("TypeError", _OPERANDS + r"'list'", a_list),
    ("TypeError", _OPERANDS + r"'NoneType'", a_none),
    ("AttributeError", r"'NoneType' object has no attribute", a_none),
    ("TypeError", _OPERANDS + r"'(Linear|Dropout|ModuleList|Softmax|Sequential)'", a_layer),
    ("AttributeError", r"'(list|tuple)' object has no attribute", a_list),
    ("TypeError", r"'torch\.Size' object is not callable", size_called),
    ("TypeError", r"'(builtin_function_or_method|method)' object is not subscriptable",
     size_indexed),
    ("TypeError", r"(cat|stack)\(\): argument 'tensors' .*must be tuple of Tensors", no_list),
    ("TypeError", r"(\w{1,30})\(\): argument '\w+' \(position 1\) must be Tensor, not (int|float)",
     a_number),
    ("TypeError", r"numpy\.ndarray", numpy_array),
    ("RuntimeError", r"Sizes of tensors must match except in dimension", not_joined),
    ("RuntimeError", r"shape '(\[[-\d, ]{1,200}\])' is invalid for input of size (\d{1,12})",
     no_such_shape),
    ("RuntimeError", r"only supports boolean masks|mask.{1,20}dtype float", no_bools),
    ("TypeError", r"^(?:\w+\.)*(softmax|log_softmax)\(\) missing .*dim", without_dim),
    ("TypeError", r"([\w.]{1,80})\(\) missing \d+ required positional arguments?: (.{1,200})",
     without_an_argument),
    ("RuntimeError", r"same dtype|expected scalar type|expected m1 and m2", another_dtype),
    ("RuntimeError", r"same device|expected device", another_device),
    ("RuntimeError", r"expanded size of the tensor", not_expanded),
    ("AttributeError", r"'(\w{1,60})' object has no attribute '(\w{1,60})'", no_attribute),
    ("RuntimeError", r"Boolean value of Tensor", no_truth),
    ("TypeError", r"'Tensor' object is not callable", tensor_called),
    ("ValueError", r"(not enough|too many) values to unpack", not_unpacked),
]  # fmt: skip


def misuse(kind: str, said: str, text: Text, line: int | None, shapes=()) -> str:
    """What an error means; '' where its text does not say."""
    for wanted, pattern, words in MISUSES:
        found = re.search(pattern, said[:2_000]) if wanted == kind else None
        if found is not None:
            sentence = words(Error(found, text, line, tuple(map(tuple, shapes))))
            if sentence:
                return sentence
    return ""
