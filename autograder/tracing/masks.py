"""Which line is told of a wrong mask: the one that makes it, where another only lays it on."""

from __future__ import annotations

import ast
from dataclasses import replace

from autograder.tracing.edits.kinds.names import keeps
from autograder.tracing.edits.kinds.source import made_for
from autograder.tracing.look import Told
from autograder.tracing.text import Text, callee

PLACES = ("inverted", "diagonal hidden", "one step late", "past hidden", "top left", "transposed")
PLACES += ("upside down", "square")  # what is wrong with which places are hidden
FILLS = ("masked_fill", "masked_fill_", "where")


def at_its_mask(told: Told, text: Text) -> Told:
    """A mistake in a mask that is told of the line that fills what it hides, told of the line above
    that makes it for that one place; not where its name says that it should be turned round."""
    line = told.where.first_wrong
    check = told.cause[0] if told.cause else ""
    if line is None or not (check.startswith("mask.") and check.endswith(PLACES)):
        return told
    made = made_for(line, text.source).get(_laid_on(line, text))
    if made is None:
        return told
    where = replace(told.where, first_wrong=made, last_right=None, landmark="")
    return replace(told, where=where, statement=text.statement(made))


def _laid_on(line: int, text: Text) -> str:
    """The one variable that says, just as it is, what a statement fills; '' where there is none, or
    its name says that it should be turned round."""
    inside = ast.walk(text.around(line) or ast.Module([], []))
    fills = [n for n in inside if isinstance(n, ast.Call) and callee(n) in FILLS and n.args]
    masks = [n.args[0] for n in fills if isinstance(n.args[0], ast.Name)]
    return masks[0].id if len(masks) == 1 and keeps(masks[0]) is not True else ""
