"""Slips in how a module is begun: by no `super().__init__()`, or by one that is not called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source, first_statement
from autograder.tracing.text import callee

BEGINS = "super().__init__()"


def of_what_is_not_begun(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that begin a module before anything is kept in it."""
    if isinstance(node, ast.Expr) and source.of(node) in ("super()", "super().__init__"):
        how = f"`{source.shown(node)}` begins nothing: `__init__` is not called"
        yield source.with_text(node, BEGINS, how)
    elif isinstance(node, ast.stmt) and _is_first(source, node):
        how = f"`{BEGINS}` is missing, before a layer is kept in `self`"
        yield source.with_text(node, source.in_front(node, BEGINS), how)


def _is_first(source: Source, node: ast.stmt) -> bool:
    """Whether a statement is the first of an `__init__` that does not begin what its class is
    made of."""
    function = source.parent[node]
    if not isinstance(function, ast.FunctionDef) or function.name != "__init__":
        return False
    begun = any(callee(call) == "__init__" for call in source.calls(function))
    return node is first_statement(function) and is_of_a_class(source, function) and not begun


def is_of_a_class(source: Source, function: ast.FunctionDef) -> bool:
    """Whether a function is a method of a class that is made of another one."""
    around = source.parent.get(function)
    return isinstance(around, ast.ClassDef) and bool(around.bases)
