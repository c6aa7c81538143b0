"""Slips in what is looked up: a place of an index, a key, the order in which a loop runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.source import Edit, Source
from autograder.tracing.text import callee

MOST_KEYS = 6
# Texts that are settings, by what they are taken for.
SETTINGS = {"mean": "sum", "sum": "mean", "ij": "xy", "xy": "ij", "none": "tanh", "tanh": "none"}


def of_indices(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one index, one key, or what a loop runs over."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load | ast.Store):
        yield from _of_places(source, node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _of_texts(source, node)
    elif isinstance(node, ast.For | ast.comprehension):
        yield from _of_order(source, node)
    elif isinstance(node, ast.IfExp | ast.If):
        how = f"`{source.shown(node.test)}` is asked the other way round"
        yield source.with_expression(node.test, f"not ({source.of(node.test)})", how, 2)
    elif isinstance(node, ast.Call) and callee(node) == "range":
        for each in node.args:
            how = f"`{source.shown(node)}` runs over other numbers than it should"
            for sign in "+-":
                yield source.with_expression(each, f"({source.of(each)}) {sign} 1", how, 1)


def _of_places(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """A loop's number where all of an axis is taken, or all of it where one number is."""
    inside = node.slice
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    rounds = _numbers_of_loops(source, node)
    how = f"the places in `{source.shown(node)}` are other ones than they should be"
    for place, each in enumerate(parts):
        texts = [source.of(p) for p in parts]
        if isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step):
            for name in rounds:
                other = [*texts[:place], name, *texts[place + 1 :]]
                yield source.with_text(inside, ", ".join(other), how, 2)
        elif isinstance(each, ast.Name) and each.id in rounds and len(parts) > 1:
            other = [*texts[:place], ":", *texts[place + 1 :]]
            yield source.with_text(inside, ", ".join(other), how, 2)


def _numbers_of_loops(source: Source, node: ast.AST) -> list[str]:
    """The names that the loops around a node give its rounds."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    targets = [t for loop in loops for t in ast.walk(loop.target)]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _of_texts(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """Another key of the same function in the place of a key; another setting."""
    parent = source.parent[node]
    if node.value in SETTINGS and isinstance(parent, ast.keyword):
        how = f"`{source.shown(parent)}` is not what belongs there"
        yield source.with_text(node, repr(SETTINGS[node.value]), how, 1)
    is_key = isinstance(parent, ast.Subscript | ast.Dict | ast.Tuple | ast.List)
    if is_key or (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)):
        others = {
            n.value: None
            for n in source.inside(source.tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str)
            if type(source.parent.get(n)) is type(parent) and n.value != node.value
        }
        how = f"`{source.shown(node)}` is taken where another belongs"
        for other in list(others)[:MOST_KEYS]:
            yield source.with_text(node, repr(other), how, 2)


def _of_order(source: Source, node: ast.For | ast.comprehension) -> Iterator[Edit]:
    """The rounds of a loop in reverse order, or no longer so."""
    over = node.iter
    how = f"the rounds over `{source.shown(over)}` run in another order than they should"
    if isinstance(over, ast.Call) and callee(over) == "reversed" and over.args:
        yield source.with_expression(over, source.of(over.args[0]), how, 2)
    else:
        yield source.with_expression(over, f"reversed(list({source.of(over)}))", how, 3)
