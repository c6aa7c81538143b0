"""A statement that does nothing: what it says is kept nowhere, so that a step is missing there."""

from __future__ import annotations

import ast
from dataclasses import replace

from autograder.course.asking import STOPS, Finding, Where
from autograder.tracing.text import Text, callee, own_nodes

HOW = "what it says is kept nowhere, so that it does nothing"
LOOKED_AT = ("shape", "dtype", "device", "ndim", "grad", "T", "mT")  # as in a last line of a cell


def where_nothing_is_done(finding: Finding, text: Text) -> Finding:
    """A finding without a line, or with the one that stops with an error, with the one statement
    that does nothing; as it is, where there is none, or there are several."""
    where = finding.where
    if where is not None and where.how not in ("", STOPS):
        return finding
    lines = [n.lineno for f in text.functions for n in own_nodes(f) if _does_nothing(n)]
    if len(lines) != 1 or (where is not None and where.first_wrong < lines[0]):
        return finding
    (line,) = lines
    said = f"Line {line} does nothing: what it says is kept nowhere."
    return replace(
        finding,
        message=f"{said} {finding.message}",
        where=Where(last_right=None, first_wrong=line, how=HOW),
        line=line,
        statement=text.statement(line),
    )


def _does_nothing(node: ast.AST) -> bool:
    """Whether a statement is a name or an operation alone, a function that is not called, or gives
    a variable the value that it has."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        same = isinstance(target, ast.Name) and isinstance(node.value, ast.Name)
        return same and target.id == node.value.id
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        return callee(value) == "super"
    if any(
        isinstance(n, ast.Call | ast.Await | ast.Yield | ast.YieldFrom) for n in ast.walk(value)
    ):
        return False
    if isinstance(value, ast.Attribute):
        return value.attr not in LOOKED_AT
    return isinstance(value, ast.Name | ast.BinOp | ast.Compare)
