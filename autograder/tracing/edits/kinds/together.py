"""Slips that show in several places of one expression: a variable or an axis that is taken for
another one wherever it stands there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import names_of, of_one_type, shown_around
from autograder.tracing.edits.kinds.source import Edit, Source, number
from autograder.tracing.text import callee

MOST = 8  # other variables that are tried, those of the lines before first
AXES = (1, 2, 0, -1, -2, -3)


def of_what_stands_together(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of all that is alike in one call, or in the two sides of one operation."""
    if isinstance(node, ast.Call):
        yield from _without_its_helper(source, node)
        yield from _of_a_variable(source, node, [*node.args, *(k.value for k in node.keywords)])
    elif isinstance(node, ast.BinOp):
        yield from _of_a_variable(source, node, [node.left, node.right])
        yield from _of_a_size(source, node)
    elif isinstance(node, ast.Assign):
        yield from _of_a_slice(source, node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        yield from _of_a_place_of_two_lines(source, node)


def _of_a_variable(source: Source, node: ast.expr, parts: list[ast.expr]) -> Iterator[Edit]:
    """`dot(a, a)`, where `dot(b, b)` belongs."""
    function = source.function(node)
    inside = [source.names(part) for part in parts]
    names = [{n.id for n in own if isinstance(n.ctx, ast.Load)} for own in inside]
    twice = {name for one in names for name in one if sum(name in o for o in names) > 1}
    if function is None or len(twice) != 1:
        return
    (name,) = twice
    own = [n for part in inside for n in part if n.id == name]
    known = names_of(source, function, source.statement(node).lineno)
    for other in [o for o in known if o != name][:MOST] if name in known else ():
        if of_one_type(source, own[0], other):
            how = f"`{name}` is taken where another belongs, in `{shown_around(source, own[0])}`"
            edit = source.with_parts(node, dict.fromkeys(own, other), how, 3)
            yield replace(edit, by_name=True)


def _of_a_slice(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`x[1:] = norm(x[1:])`, where all but the last, and not all but the first, are meant."""
    parts = [n for n in source.inside(node) if isinstance(n, ast.Subscript)]
    cuts = [n.slice for n in parts if isinstance(n.slice, ast.Slice)]
    texts = {source.of(cut) for cut in cuts}
    if len(cuts) < 2 or len(texts) != 1 or node.targets[0] not in parts:
        return
    (text,) = texts
    start, _, end = text.partition(":")
    turned = f":-({start})" if not end else f"-({end}):" if not start else ""
    if turned and ":" not in end:
        how = f"`[{text}]` stands for the other end of it, in `{source.shown(node)}`"
        yield source.with_parts(node, dict.fromkeys(cuts, turned), how, 1)


def _of_a_place_of_two_lines(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`real = x[b, :n, :n]` and `out[b, :n, :n] = ...`, where one of the axes is taken whole."""
    text, function = source.of(node.slice), source.function(node)
    inside = source.inside(function) if function is not None else []
    own = [n for n in inside if isinstance(n, ast.Subscript) and source.of(n.slice) == text]
    lines = {source.statement(n).lineno for n in own}
    if len(lines) < 2 or node is not own[0]:
        return
    for i, cut in enumerate(node.slice.elts):
        if isinstance(cut, ast.Slice) and (cut.lower or cut.upper):
            how = f"`[{text}]` leaves out some of an axis of which all belong there"
            new = {n.slice.elts[i]: ":" for n in own}
            yield source.with_parts(function, new, how, 1).told_of(min(lines))


def _without_its_helper(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`self.scaled(self.v, x)`, beside the same of `self.q`, where `self.v(x)` belongs."""
    layer = node.args[0] if len(node.args) > 1 and not node.keywords else None
    own = callee(node) in source.defined()
    if own and isinstance(layer, ast.Attribute) and source.of(layer).startswith("self."):
        given = ", ".join(map(source.of, node.args[1:]))
        how = f"`{callee(node)}` does more to `{source.of(layer)}` than belongs there"
        yield source.with_text(node, f"{source.of(layer)}({given})", how, 1)


def _of_a_size(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`k.size(1) - q.size(1)`, where the sizes of another axis belong."""
    axes = [_axis(source, side) for side in (node.left, node.right)]
    if None in axes or number(axes[0]) != number(axes[1]):
        return
    how = f"`{source.shown(node)}` is about another axis than it should be"
    for other in (n for n in AXES if n != number(axes[0])):
        yield source.with_parts(node, dict.fromkeys(axes, str(other)), how)


def _axis(source: Source, node: ast.expr) -> ast.expr | None:
    """The number of the axis of which a size is taken; None of anything else."""
    if isinstance(node, ast.Call) and callee(node) == "size" and len(node.args) == 1:
        axis = node.args[0]
    elif isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
        axis = node.slice
    else:
        return None
    return axis if isinstance(number(axis), int) else None
