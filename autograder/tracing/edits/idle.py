"""A statement that does nothing: what it says is kept nowhere, so that a step is missing there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.course.asking import STOPS, Finding, Where
from autograder.tracing.text import Text, callee, own_nodes, thrown_away

OWN = "it gives the value to a variable of its own, and the one outside stays as it was"
HOW = "what it says is kept nowhere, so that it does nothing"
LOOKED_AT = ("shape", "dtype", "device", "ndim", "grad", "T", "mT")  # as in a last line of a cell


def where_nothing_is_done(finding: Finding, text: Text) -> Finding:
    """A finding without a line, or with the one that stops with an error, with the one statement
    that does nothing; as it is, where there is none, or there are several."""
    where = finding.where
    idle = [n for f in text.functions for n in own_nodes(f) if _does_nothing(n)]
    sure = len(idle) == 1 and (_is_a_hook(idle[0], text) or _is_taken(idle[0], where, text))
    if where is not None and where.how not in ("", STOPS) and not sure:
        return finding
    lines = [n.lineno for n in idle]
    outside = {n.lineno: n.targets[0].id for f in text.functions for n in _of_its_own(f)}
    lines = [*dict.fromkeys((*lines, *outside))]
    if len(lines) != 1 or (where is not None and where.first_wrong < lines[0] and not sure):
        return finding
    (line,) = lines
    how, said = HOW, f"Line {line} does nothing: what it says is kept nowhere."
    if (name := outside.get(line)) is not None:
        how, said = OWN, f"Line {line} makes a `{name}` of its own, without `nonlocal {name}`."
    return replace(
        finding,
        message=f"{said} {finding.message}",
        where=Where(last_right=None, first_wrong=line, how=how),
        line=line,
        statement=text.statement(line),
    )


def beside_what_is_thrown_away(finding: Finding, text: Text) -> Finding:
    """A finding with the line where it goes wrong, and the one other statement that makes a tensor
    and keeps it nowhere, of which nothing is said yet."""
    where, last = finding.where, len(text.source.splitlines())
    found = thrown_away(text, last)
    if where is None or found is None or thrown_away(text, found[0] - 1) is not None:
        return finding
    line, method = found
    if line == where.first_wrong or f"ine {line}" in finding.message or not where.how:
        return finding
    said = f"And line {line}: what `{method}` makes is thrown away."
    return replace(finding, message=f"{finding.message} {said}")


def _is_taken(node: ast.AST, where: Where | None, text: Text) -> bool:
    """Whether a statement is the name alone of what the line takes that is told: it should have
    been changed there."""
    name = node.value if isinstance(node, ast.Expr) else None
    told = text.around(where.first_wrong) if where is not None else None
    if told is None or not isinstance(name, ast.Name) or told.lineno < node.lineno:
        return False
    return any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(told))


def _is_a_hook(node: ast.AST, text: Text) -> bool:
    """Whether a statement is the name alone of a hook that should be taken away there."""
    name = node.value if isinstance(node, ast.Expr) else None
    hooks = [
        target
        for n in text.nodes
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
        if callee(n.value).endswith("_hook")
        for target in map(text.of, n.targets)
    ]
    return isinstance(name, ast.Name) and name.id in hooks


def _of_its_own(function: ast.FunctionDef) -> Iterator[ast.Assign]:
    """The statements of functions inside one that give a value to a variable which only the outer
    one reads: it is another one there."""
    outer = {n.id for n in own_nodes(function) if isinstance(n, ast.Name)}
    for inner in (n for n in own_nodes(function) if isinstance(n, ast.FunctionDef)):
        own = list(own_nodes(inner))
        shared = {name for n in own if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
        names = [n for n in ast.walk(inner) if isinstance(n, ast.Name)]
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)} | shared
        for node in (n for n in own if isinstance(n, ast.Assign) and len(n.targets) == 1):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in outer - read:
                yield node


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
    return isinstance(value, ast.Name | ast.BinOp | ast.UnaryOp | ast.Compare)
