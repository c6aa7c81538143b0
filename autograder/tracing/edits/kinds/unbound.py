"""Slips by a name that nothing has been given before its line: the code stops there with an error,
so it is surely another that belongs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import names_of, read_in, shown_around, sizes
from autograder.tracing.edits.kinds.source import Edit, Source

COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
MOST = 8  # names that are tried in the place of one


def of_unbound_names(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The names that a function has, in the place of one that it does not have yet."""
    function = source.function(node)
    if function is None or not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
        return
    known = names_of(source, function, source.statement(node).lineno - 1)
    if node.id in known or _is_bound(source, function, node):
        return
    how = f"`{node.id}` is taken where another belongs, in `{shown_around(source, node)}`"
    read, counted = read_in(source, function), sizes(source, function)
    for name in known[:MOST]:
        same = (name in counted) == (node.id in counted) or node.id not in counted
        rank = 1 if name not in read else 2 if same else 3
        yield replace(source.with_text(node, name, how, rank), by_name=True)


def _is_bound(source: Source, function: ast.FunctionDef, node: ast.Name) -> bool:
    """Whether something gives a name its value: around the functions, before its line, or in the
    statement itself, as the number of a comprehension's round."""
    if hasattr(builtins, node.id) or node.id in source.once("bound", lambda: _outside(source)):
        return True
    own = [n for n in source.names(function) if n.id == node.id and isinstance(n.ctx, ast.Store)]
    rounds = [n for n in source.around(node) if isinstance(n, COMPREHENSIONS)]
    if any(n in own for each in rounds for n in source.names(each)):
        return True
    loops = any(isinstance(n, ast.For | ast.While) for n in source.around(node))
    line = source.statement(node).lineno
    return any(n.lineno < line or (loops and n.lineno != line) for n in own)


def _outside(source: Source) -> set[str]:
    """The names of a text that are no variables of its functions: imports, functions and classes,
    errors that are caught, all arguments, and what is set outside."""
    found: set[str] = set()
    for node in source.inside(source.tree):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            found.add(node.name or "")
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    names = (n for n in source.names(source.tree) if isinstance(n.ctx, ast.Store))
    return found | {n.id for n in names if source.function(n) is None}
