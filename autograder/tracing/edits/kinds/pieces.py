"""Slips in what is joined of pieces, or filled piece by piece."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import is_about_its_size
from autograder.tracing.edits.kinds.slices import at_its_other_end
from autograder.tracing.edits.kinds.source import Edit, Source, number
from autograder.tracing.text import callee

JOINS = ("cat", "concat", "concatenate", "hstack", "vstack")
COPIES = ("clone", "copy", "deepcopy", "copy_")
BEGUN = ("zeros", "empty", "zeros_like", "empty_like", "new_zeros", "new_empty")


def of_pieces(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of two pieces that are joined, of where a piece ends, and of a tensor that rounds
    fill."""
    function = source.function(node)
    if isinstance(node, ast.Slice):
        yield from _of_its_end(source, node.lower, node.upper)
    elif isinstance(node, ast.Call) and callee(node) == "slice" and len(node.args) > 1:
        yield from _of_its_end(source, *node.args[:2])
    elif isinstance(node, ast.Call) and callee(node) in JOINS and node.args:
        yield from _of_two(source, node.args[0])
        yield from _of_a_shift(source, node, node.args[0])
    elif isinstance(node, ast.Call) and callee(node) in BEGUN and function is not None:
        yield from _of_one_more(source, function, node)
    elif isinstance(node, ast.Call) and callee(node) == "narrow":
        yield from _of_a_block(source, node)
    elif isinstance(node, ast.Assign) and function is not None:
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            made = source.made(function, target.value.id)
            begun = [callee(n) for each in made for n in source.calls(each)]
            yield from _of_its_own_place(source, function, node, begun)
            yield from _of_what_stands_there(source, node, begun)


def _of_two(source: Source, node: ast.expr) -> Iterator[Edit]:
    """`cat([mask, zeros(n, m)])`, where the zeros belong in front."""
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 2:
        one, other = node.elts
        if any(isinstance(each, ast.Call) for each in node.elts):  # else names may be wrong
            how = f"`{source.shown(one)}` and `{source.shown(other)}` stand in each other's place"
            new = {one: source.of(other), other: source.of(one)}
            yield source.with_parts(node, new, how, 1)


def _of_a_shift(source: Source, node: ast.Call, row: ast.expr) -> Iterator[Edit]:
    """`cat([x[:, 1:], pad], 1)` for `cat([pad, x[:, :-1]], 1)`: moved to the other side."""
    if not isinstance(row, ast.List | ast.Tuple) or len(row.elts) != 2:
        return
    turned = [at_its_other_end(source, part) for part in row.elts]
    if sum(map(bool, turned)) == 1:
        moved = list(map(source.instead, row.elts, turned))
        how = f"`{source.shown(node)}` moves to the other side"
        yield source.with_parts(row, dict(zip(row.elts, reversed(moved), strict=True)), how, 1)


def _of_a_block(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.narrow(2, i, width)`, where the i-th block begins at `i * width`."""
    start, width = node.args[-2:] if len(node.args) > 2 else (None, None)
    if isinstance(start, ast.Name) and isinstance(width, ast.Name | ast.Attribute):
        how = f"`{source.shown(node)}` takes its block by its number, and not by where it begins"
        yield source.with_text(start, f"{start.id} * {source.of(width)}", how, 1)


def _of_its_end(source: Source, begin: ast.expr | None, end: ast.expr | None) -> Iterator[Edit]:
    """`x[i * width : i + 1]`, where the block ends at `(i + 1) * width`."""
    times = isinstance(begin, ast.BinOp) and isinstance(begin.op, ast.Mult)
    more = isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add) and number(end.right) == 1
    sides = [(begin.left, begin.right), (begin.right, begin.left)] if times and more else []
    for place, width in sides:
        if source.of(place) == source.of(end.left):
            how = f"`{source.shown(end)}` is the number of a block, and not where one begins"
            yield source.with_text(end, f"({source.of(end)}) * {source.in_brackets(width)}", how)


def _of_one_more(source: Source, function: ast.FunctionDef, node: ast.Call) -> Iterator[Edit]:
    """`states = zeros(n, d)`, of which rounds fill `states[t + 1]`."""
    made = source.parent[node]
    target = source.of(made.targets[0]) if isinstance(made, ast.Assign) else ""
    filled = [n for n in source.inside(function) if isinstance(n, ast.Subscript)]
    filled = [n.slice for n in filled if source.of(n.value) == target]
    later = [n for n in filled if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    if any(number(n.right) == 1 for n in later):
        for size in (each for each in node.args if isinstance(each, ast.Name)):
            how = f"`{source.shown(node)}` has no place for the last one"
            yield source.with_text(size, f"{size.id} + 1", how, 1)


def _of_its_own_place(
    source: Source, function: ast.FunctionDef, node: ast.Assign, begun: list[str]
) -> Iterator[Edit]:
    """`result[i] = turn @ result[i]`, where nothing stands yet in the result."""
    read = {n.id for n in source.names(function) if not is_about_its_size(source, n)}
    unread = [a.arg for a in function.args.args if a.arg not in ("self", *read)]
    own = [n for n in source.inside(node.value) if isinstance(n, ast.Subscript)]
    for each in (n for n in own if source.of(n) == source.of(node.targets[0])):
        for other in unread if begun and begun[0] in BEGUN else ():
            how = f"`{source.shown(each)}` is what is filled here, and nothing stands there yet"
            yield source.with_text(each.value, other, how)


def _of_what_stands_there(source: Source, node: ast.Assign, begun: list[str]) -> Iterator[Edit]:
    """`moved[i] = step`, where the step was to be added to what the copy has there."""
    target = node.targets[0]
    if not isinstance(node.value, ast.Constant):
        how = f"`{source.shown(target)}` is replaced, where something should be added to it"
        new = f"{source.of(target)} += {source.of(node.value)}"
        yield source.with_text(node, new, how, 1 if any(n in COPIES for n in begun) else 3)
