"""The line within a statement of several lines on which the part stands that is told.

What goes wrong is looked for by statements. A student counts lines: so in the end all lines of a
finding are those of the cell on which the parts themselves stand.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from autograder.course.asking import Finding, Where
from autograder.course.steps.traces import LEAF, Step
from autograder.tracing.look import Look, Told
from autograder.tracing.say import IN_ORDER, called, mend_first, sentence
from autograder.tracing.text import Text


def line_of_part(told: Told, look: Look) -> int:
    """The line on which the operation stands that is told; that of its statement where it is not
    known, or where another statement is told than the operation's."""
    line, steps = told.where.first_wrong, look.trace.steps
    step = steps[told.at] if told.at < len(steps) else None
    own = step is not None and look.text.line(step) == line
    return _line_of(step, look.text) if own else line


def in_source_order(told: list[Told], look: Look) -> list[Told]:
    """What is told, with the parts of one statement in the order in which they are written."""
    lines = [each.where.first_wrong for each in told]

    def written(each: Told) -> tuple[int, int]:
        return lines.index(each.where.first_wrong), line_of_part(each, look)

    found = sorted(told, key=written) if len({*lines}) < len(lines) else told
    if found[:1] == told[:1]:
        return found
    # What came out right before it, once another part was right, does not so as it stands.
    first = replace(found[0].where, last_right=None, landmark="")
    return [replace(found[0], where=first), *found[1:]]


def at_its_own_line(
    finding: Finding, told: Sequence[Told], look: Look | None, text: Text
) -> Finding:
    """A finding, its lines those on which the parts stand that are told."""
    where, message = finding.where, finding.message
    if where is None:
        return finding
    lines = [(each, line_of_part(each, look)) for each in told] if look is not None else []
    for each, line in lines:
        words = each.cause[1] if each.cause else sentence(each.where.how)
        first = each.where.first_wrong
        if f"Line {first}: {words}" in message and each is lines[0][0]:
            message = message.replace(mend_first(first), mend_first(line))
        message = message.replace(f"Line {first}: {words}", f"Line {line}: {words}", 1)
        message = message.replace(f"come in at line {first}.", f"come in at line {line}.")
    if len({line for _, line in lines}) > 1:
        message = message.replace(IN_ORDER, mend_first(lines[0][1]))
    statement = text.around(where.first_wrong)
    if statement is None or statement.lineno == statement.end_lineno:
        return replace(finding, message=message)
    at, own = where.first_wrong, finding.line
    if at == statement.lineno and own is not None and at < own <= statement.end_lineno:
        at = own
    elif at == statement.lineno:
        at = next((line for each, line in lines if each.where == where), at)
    inside = own is None or statement.lineno <= own <= statement.end_lineno
    where = replace(where, first_wrong=at, last_right=_before(where, at, look))
    if not inside:
        return replace(finding, message=message, where=where)
    return replace(finding, message=message, line=at, statement=text.line_alone(at), where=where)


def _before(where: Where, at: int, look: Look | None) -> int | None:
    """The last right line, where it is in the statement of the first wrong one: the one on which
    what is right ends, or that of the wrong part itself."""
    if where.last_right != where.first_wrong or look is None or look.judged is None:
        return where.last_right
    ends = [
        step.place[1]
        for step, found in ((look.trace.steps[i], f) for i, f in look.judged.like.items())
        if step.op != LEAF and look.text.line(step) == where.first_wrong
        if called(found.known) == where.landmark and step.place[1] < at
    ]
    return max(ends, default=at)


def _line_of(step: Step, text: Text) -> int:
    """The line on which an operator's second side stands, or the name of what is called."""
    node = next((n for n in text.nodes if _place(n) == step.place), None)
    if isinstance(node, ast.BinOp):
        return node.right.lineno
    if isinstance(node, ast.Call):
        return node.func.end_lineno
    if isinstance(node, ast.Attribute):
        return node.end_lineno
    return step.place[0]


def _place(node: ast.AST) -> tuple | None:
    if not isinstance(node, ast.expr):
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
