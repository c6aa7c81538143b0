"""The line that makes what is wrong, where another only takes it: a mask, a count, a scale.

The steps show tensors. A number that a loop counts or an object keeps is none, and a mask shows
where it is laid on.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from autograder.tracing.edits.kinds.names import keeps
from autograder.tracing.edits.kinds.source import made_for
from autograder.tracing.look import Told
from autograder.tracing.text import Text, callee, made_in

PLACES = ("inverted", "diagonal hidden", "one step late", "past hidden", "top left", "transposed")
PLACES += ("upside down", "square")  # what is wrong with which places are hidden
FILLS = ("masked_fill", "masked_fill_", "where")
BY_A_SIZE = "it divides by the root of"  # how a wrong scale is told


def where_it_is_made(told: Told, text: Text) -> Told:
    """What is told, of the line that makes the mask, the count or the scale that is wrong."""
    line = told.where.first_wrong
    if line is None:
        return told
    made = _of_its_mask(told, line, text) or _of_its_count(told, line, text)
    made = made or _of_its_scale(told, line, text)
    if made is None:
        return told
    how = told.where.how and f"in line {line}, which takes it, {told.where.how}"
    where = replace(told.where, first_wrong=made, last_right=None, landmark="", how=how)
    return replace(told, where=where, statement=text.statement(made))


# --- a mask --------------------------------------------------------------------------------------
def _of_its_mask(told: Told, line: int, text: Text) -> int | None:
    """Of a line that fills what a mask hides, the one that makes it for that place alone; not where
    its name says that it should be turned round."""
    check = told.cause[0] if told.cause else ""
    if not (check.startswith("mask.") and check.endswith(PLACES)):
        return None
    return made_for(line, text.source).get(_laid_on(line, text))


def _laid_on(line: int, text: Text) -> str:
    """The one variable that says, just as it is, what a statement fills; '' where there is none, or
    its name says that it should be turned round."""
    inside = ast.walk(text.around(line) or ast.Module([], []))
    fills = [n for n in inside if isinstance(n, ast.Call) and callee(n) in FILLS and n.args]
    masks = [n.args[0] for n in fills if isinstance(n.args[0], ast.Name)]
    return masks[0].id if len(masks) == 1 and keeps(masks[0]) is not True else ""


# --- a number ------------------------------------------------------------------------------------
def _of_its_count(told: Told, line: int, text: Text) -> int | None:
    """Of a line that divides by what a loop counts, `total / count`, the one that counts: what is
    divided was right, or told before."""
    by = _divisor(line, text) if told.cause else None
    if not isinstance(by, ast.Name):
        return None
    counts = [n for n in text.nodes if isinstance(n, ast.AugAssign) and text.of(n.target) == by.id]
    begun = [value for name, value in _kept(text) if name == by.id]
    zero = len(begun) == 1 and isinstance(begun[0], ast.Constant)
    return counts[0].lineno if zero and len(counts) == 1 else None


def _of_its_scale(told: Told, line: int, text: Text) -> int | None:
    """Of a line that scales by what the object keeps, the one that computes it for that place."""
    node = text.around(line)
    if BY_A_SIZE not in told.where.how or node is None:
        return None
    factors = {text.of(n.right) for n in ast.walk(node) if isinstance(n, ast.BinOp)}
    made = [(name, v) for name, v in _kept(text) if name in factors and name.startswith("self.")]
    name, value = made[0] if len(made) == 1 else ("", None)
    named = [n for n in text.nodes if isinstance(n, ast.Attribute) and text.of(n) == name]
    computed = isinstance(value, ast.BinOp | ast.Call) and len(named) == 2  # there and here
    return value.lineno if computed else None


def _divisor(line: int, text: Text) -> ast.expr | None:
    value = getattr(text.around(line), "value", None)
    divides = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
    return value.right if divides else None


def _kept(text: Text) -> list[tuple[str, ast.expr]]:
    """What gets a value, by its text, with the value."""
    made = (n for n in text.nodes if isinstance(n, ast.Assign))
    return [(text.of(target), value) for node in made for target, value in made_in(node)]
