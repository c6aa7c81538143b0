"""Right programs with one statement changed by a machine."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

OPPOSITES = {ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Add: ast.Sub, ast.Sub: ast.Add}
ADDED = ("torch.relu({})", "{} + 0.1", "-({})", "({}).flip(0)", "({}) * 2", "({}).tanh()")


def mutants(source: str) -> Iterator[tuple[int, str]]:
    """Each program that differs from this one in one statement: (the statement's line, program).

    What is changed makes a tensor: its axis, its operator, or one operation that is too many.
    """
    tree = ast.parse(source)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            row = value if isinstance(value, list) else [value]
            for place, old in enumerate(row):
                for new in _others(old):
                    row[place] = new
                    setattr(parent, name, row if isinstance(value, list) else new)
                    yield old.lineno, ast.unparse(ast.fix_missing_locations(tree)) + "\n"
                row[place] = old
                setattr(parent, name, value)


def _others(node: object) -> Iterator[ast.expr]:
    """What may stand in the place of an expression."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPPOSITES:
        yield ast.BinOp(node.left, OPPOSITES[type(node.op)](), node.right)
    if not isinstance(node, ast.Call):
        return
    for number, keyword in enumerate(node.keywords):
        if keyword.arg == "dim":
            other = copy.deepcopy(node)
            other.keywords[number].value = ast.Constant(0)
            yield other
    if getattr(node.func, "attr", "") in ("q", "k", "v", "softmax", "matmul", "bmm", "exp"):
        for added in ADDED:
            yield ast.parse(added.format(ast.unparse(node)), mode="eval").body
