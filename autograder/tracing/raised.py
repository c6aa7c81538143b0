"""Errors by their cause: what the operands are, which variable was overwritten, what is a pair.

Sizes are printed as numbers. What an operand is called is a landmark's name, where its numbers
prove that it is one, or the variable's own.
"""

from __future__ import annotations

import ast
import re

from autograder.course.steps.traces import Stopped, Trace
from autograder.tracing import habits
from autograder.tracing.alike import likeness
from autograder.tracing.misuse import misuse
from autograder.tracing.reference import Reference
from autograder.tracing.say import called
from autograder.tracing.text import Text

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm")
BROADCASTS = ("add", "__add__", "sub", "__sub__", "mul", "__mul__", "div", "__truediv__")
BROADCASTS += ("__radd__", "__rsub__", "__rmul__", "rsub", "masked_fill", "masked_fill_", "where")
OPERANDS = 3  # that are told of


def by_cause(error: dict, trace: Trace, own: Reference | None, text: Text) -> str:
    """What stopped the code, and why; '' where the likely cause is not known."""
    kind, said, line = error["type"], error["message"], error["line"]
    if kind == "NameError":
        return _unknown_name(said, text)
    if "return_types" in said or (
        kind in ("TypeError", "AttributeError") and "return_type" in said
    ):
        return _pair(said, text, line)
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


def _pair(said: str, text: Text, line: int | None) -> str:
    found = re.search(r"return_types\.(\w{1,30})", said)
    name = found.group(1) if found else "max"
    better = f"`.a{name}(...)`" if name in ("max", "min") else "`.values`"
    values = f"use {better} or take `.values`" if better != "`.values`" else "take `.values`"
    return f"`{name}` with `dim` gives a pair, the values and where they stand: {values}."


def _operands(trace: Trace, stopped: Stopped, own: Reference | None, text: Text) -> str:
    """What was combined that does not fit."""
    if stopped.place is None or len(stopped.inputs) < 1:
        return ""
    steps = [trace.steps[i] for i in stopped.inputs[:OPERANDS]]
    shapes = [list(s.value.shape) for s in steps]
    named = [_operand(i, trace, own, text) for i in stopped.inputs[:OPERANDS]]
    line = stopped.place[0]
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
        return f"The left operand is {named[0]}, the right one {named[1]}."
    if stopped.op in BROADCASTS and len(steps) >= 2:
        return f"`{_plain(stopped.op)}` is given {named[0]} and {named[1]}."
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
    before = habits.overwritten(text, name, line) if name else None
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
