"""Errors by their cause: what the operands are, which variable was overwritten, what is a pair.

Sizes are printed as numbers. What an operand is called is a landmark's name, where its numbers
prove that it is one, or the variable's own.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from autograder.course.steps.traces import Step, Stopped, Trace
from autograder.tracing.alike import likeness
from autograder.tracing.reference import Reference
from autograder.tracing.say import called
from autograder.tracing.text import Text, callee, gives_back, overwritten

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm")
BROADCASTS = ("add", "__add__", "sub", "__sub__", "mul", "__mul__", "div", "__truediv__")
BROADCASTS += ("__radd__", "__rsub__", "__rmul__", "rsub", "masked_fill", "masked_fill_", "where")
OVER_AN_AXIS = ("sum", "mean", "amax", "amin", "max", "min", "norm", "logsumexp", "std", "var")
OPERANDS = 3  # that are told of


def by_cause(error: dict, trace: Trace, own: Reference | None, text: Text) -> str:
    """What stopped the code, and why; '' where the likely cause is not known."""
    kind, said, line = error["type"], error["message"], error["line"]
    if kind == "NameError":
        return _unknown_name(said, text)
    if "return_types" in said or (
        kind in ("TypeError", "AttributeError") and "return_type" in said
    ):
        return _pair(said)
    shapes = []
    if trace.stopped is not None:
        given = trace.stopped.inputs[:OPERANDS]
        shapes = [tuple(trace.steps[i].value.shape) for i in given]
    known = misuse(kind, said, text, line, shapes)
    if known or kind != "RuntimeError" or trace.stopped is None:
        return known
    return _operands(trace, trace.stopped, own, text)


def _unknown_name(said: str, text: Text) -> str:
    found = re.search(r"name '(\w{1,60})'", said)
    if found is None:
        return ""
    name = found.group(1)
    if name in text.attributes:
        return f"`{name}` is kept as `self.{name}`: write it so here, too."
    if name in text.stored:
        return (
            f"`{name}` gets its value in another function, or on a path that was not taken. A "
            "function sees its arguments and what it sets itself."
        )
    return (
        f"`{name}` is neither an argument nor set in this cell. If it is a variable of the "
        "notebook, hand it over as an argument or compute it here: your code is judged on its own."
    )


def _pair(said: str) -> str:
    found = re.search(r"return_types\.(\w{1,30})", said)
    name = found.group(1) if found else "max"
    better = f"use `.a{name}(...)` or " if name in ("max", "min") else ""
    return f"`{name}` with `dim` gives a pair, values and where they stand: {better}take `.values`."


def _operands(trace: Trace, stopped: Stopped, own: Reference | None, text: Text) -> str:
    """What was combined that does not fit."""
    if stopped.place is None or len(stopped.inputs) < 1:
        return ""
    steps = [trace.steps[i] for i in stopped.inputs[:OPERANDS]]
    shapes, line = [list(s.value.shape) for s in steps], stopped.place[0]
    named = [_operand(i, trace, own, text) for i in stopped.inputs[:OPERANDS]]
    if stopped.op == "linear" and len(steps) >= 2:
        return _linear(shapes, named[0], trace, stopped, text, line)
    if stopped.op in PRODUCTS and len(steps) >= 2:
        one, two = shapes[:2]
        if len(one) > 1 and len(two) > 1 and one[-1] != two[-2]:
            said = (
                f"The left operand is {named[0]}, the right one {named[1]}: the last size on the "
                f"left, {one[-1]}, and the last but one on the right, {two[-2]}, have to be equal."
            )
            if one[-1] == two[-1]:
                said += " The right one needs its last two axes exchanged."
            elif len(two) > 2 and one[-1] == two[0] and ".T" in text.statement(line):
                said += " `.T` turns all axes round, the batch too: `.mT` exchanges the last two."
            return said
        said = f"The left operand is {named[0]}, the right one {named[1]}."
        front = [shape[:-2] for shape in (one, two)]
        if min(len(one), len(two)) > 2 and one[-1] == two[-2] and front[0] != front[1]:
            said += f" In front of these both need the same sizes: here {front[0]} and {front[1]}."
            if len(one) != len(two):
                side = "left" if len(one) < len(two) else "right"
                said += f" The {side} one has an axis too few: was it split like the other?"
        return said
    if stopped.op in BROADCASTS and len(steps) >= 2:
        given = f"`{_plain(stopped.op)}` is given {named[0]} and {named[1]}."
        return given + _without_keepdim(trace, steps, text)
    return ""


def _without_keepdim(trace: Trace, steps: list[Step], text: Text) -> str:
    """That an axis was lost where one operand was made, if it is what the other still has."""
    for one, other in (steps[:2], steps[1::-1]):
        before = [trace.steps[i].value.shape for i in one.inputs[:1]]
        lost = before == [other.value.shape] and one.value.dim() == other.value.dim() - 1
        if one.op in OVER_AN_AXIS and lost and (line := text.line(one)) is not None:
            keep = "with `keepdim=True` it stays, with size 1, and the two fit."
            return f" `{one.op}` in line {line} took an axis away: {keep}"
    return ""


def _plain(op: str) -> str:
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "truediv": "/", "rsub": "-"}
    bare = op.strip("_")
    return signs.get(bare, signs.get(bare.removeprefix("r"), bare))


def _operand(number: int, trace: Trace, own: Reference | None, text: Text) -> str:
    """`the keys (shape [5, 13, 3])`, or a tensor by its sizes alone."""
    step = trace.steps[number]
    found = likeness(step.value, own.known) if own is not None and step.kind == "float" else None
    words = called(found.known) if found is not None and found.in_order and found.whole else ""
    sizes = str(list(step.value.shape))
    return f"{words} (shape {sizes})" if words else f"a tensor of shape {sizes}"


def _linear(shapes, named: str, trace: Trace, stopped: Stopped, text: Text, line: int) -> str:
    """A layer that is given another size than it takes."""
    given, weight = shapes[0], shapes[1]
    call = _call_at(text, stopped.place)
    layer = f"`{text.of(call.func)}`" if call is not None else "the layer"
    if not given or len(weight) != 2 or given[-1] == weight[1]:
        return ""
    name = call.args[0].id if call and call.args and isinstance(call.args[0], ast.Name) else ""
    before = overwritten(text, name, line) if name else None
    if before is not None:
        return (
            f"`{name}` was overwritten in line {before} with {named}; {layer} in line "
            f"{line} takes vectors of size {weight[1]}. Give the new tensor a name of its own."
        )
    return f"{layer} takes vectors of size {weight[1]} and is given {named}."


def _call_at(text: Text, place) -> ast.Call | None:
    """The call that stands exactly there."""
    line, end, column, last = place
    for node in text.nodes:
        if isinstance(node, ast.Call) and (node.lineno, node.end_lineno) == (line, end):
            there = (node.col_offset, node.end_col_offset)  # in bytes, as code objects count too
            if there == (column, last):
                return node
    return None


# --- slips that an error's own text says ----------------------------------------------------------
# A name is printed only where the cell's text proves it.
@dataclass(frozen=True)
class Error:
    """An error in a student's cell: its match, the cell's text, the line, the operands' sizes."""

    found: re.Match
    text: Text
    line: int | None
    shapes: tuple[tuple[int, ...], ...] = ()

    def nodes(self) -> list[ast.AST]:
        """The syntax of the statement that stopped."""
        statement = self.text.around(self.line or 0)
        return list(ast.walk(statement)) if statement is not None else []

    def names(self) -> Iterator[tuple[str, ast.expr]]:
        """The variables of the statement, each with what it was assigned last before it."""
        for node in self.nodes():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                value = self.text.assigned(node.id, self.line or 0)
                if value is not None:
                    yield node.id, value

    def calls(self, attribute: str) -> bool:
        """Whether the statement calls, or takes, something of this name."""
        return any(isinstance(n, ast.Attribute) and n.attr == attribute for n in self.nodes())


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
        called = callee(value)
        function = error.text.function(called)
        if function is not None and not gives_back(function):
            return f"`{called}` returns nothing, so that `{name}` is None. End it with a `return`."
        if called == "append":
            return f"`append` changes its list and returns nothing, so that `{name}` is None."
    silent = [f for f in error.text.functions if not gives_back(f) and error.text.is_used(f)]
    if len(silent) == 1:
        called = f"`{silent[0].name}` returns nothing, so that its call gives None"
        return f"{called}. End it with a `return`."
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
