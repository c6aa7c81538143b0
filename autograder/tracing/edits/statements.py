"""Slips in whole statements: too early, too late, in a loop or outside, one too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.source import Edit, Source

PLAIN = (ast.Assign, ast.AugAssign, ast.Expr, ast.AnnAssign)
BLOCKS = (ast.For, ast.If, ast.With)


def of_statements(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one statement as a whole."""
    if isinstance(node, PLAIN):
        yield from _none(source, node)
        yield from _later(source, node)
    if isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
        yield from _out_of_its_block(source, node)
    if isinstance(node, ast.For):
        yield from _last_into_the_loop(source, node)
        yield from _first_into_the_loop(source, node)


def _shown(source: Source, node: ast.stmt) -> str:
    return source.shown(node)


def _none(source: Source, node: ast.stmt) -> Iterator[Edit]:
    text = "pass" + "\n" * source.of(node).count("\n")
    how = f"`{_shown(source, node)}` does not belong there"
    yield source.with_text(node, text, how, 3)


def _block(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """The statements that a statement is one of."""
    parent = source.parent[node]
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
    return next((b for b in blocks if isinstance(b, list) and node in b), [node])


def _later(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """Two statements in a row, exchanged."""
    block = _block(source, node)
    place = block.index(node)
    if place + 1 == len(block) or not isinstance(block[place + 1], PLAIN):
        return
    other = block[place + 1]
    start, end = source.span(node)[0], source.span(other)[1]
    between = source.text[source.span(node)[1] : source.span(other)[0]]
    how = f"it runs before line {other.lineno}, and belongs behind it"
    new = source.of(other) + between + source.of(node)
    yield source.with_span(node, (start, end), new, how, 3)


def _rows(source: Source, node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement as a part of the text, with the last line's end."""
    return source.starts[node.lineno - 1], source.starts[node.end_lineno]


def _moved(text: str, by: int) -> str:
    """Lines with another indentation."""
    rows = text.split("\n")
    if by < 0:
        return "\n".join(r[-by:] if not r[:-by].strip() else r for r in rows)
    return "\n".join(" " * by + r if r.strip() else r for r in rows)


def _out_of_its_block(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """The last statement of a loop, behind it."""
    parent = source.parent[node]
    block = _block(source, node)
    if not isinstance(parent, BLOCKS) or block[-1] is not node or len(block) < 2:
        return
    start, end = _rows(source, node)
    text = source.text[start:end]
    how = f"it runs in every round of the loop of line {parent.lineno}, and belongs behind it"
    if isinstance(parent, ast.If):
        how = f"it runs under the `if` of line {parent.lineno} alone, and belongs behind it"
    new = _moved(text, parent.col_offset - node.col_offset)
    yield source.with_span(node, (start, end), new, how, 2)


def _last_into_the_loop(source: Source, node: ast.For) -> Iterator[Edit]:
    """The statement behind a loop, as its last one."""
    block = _block(source, node)
    place = block.index(node)
    after = block[place + 1] if place + 1 < len(block) else None
    if not isinstance(after, PLAIN):
        return
    start, end = _rows(source, after)
    how = f"it runs once, and belongs into the loop of line {node.lineno}"
    new = _moved(source.text[start:end], node.body[0].col_offset - after.col_offset)
    yield source.with_span(after, (start, end), new, how, 2)


def _first_into_the_loop(source: Source, node: ast.For) -> Iterator[Edit]:
    """The statement before a loop, as its first one: what should begin anew in each round."""
    block = _block(source, node)
    place = block.index(node)
    before = block[place - 1] if place else None
    if not isinstance(before, PLAIN) or node.body[0].lineno == node.lineno:
        return
    start, end = _rows(source, before)
    head_start, head_end = source.starts[node.lineno - 1], source.starts[node.body[0].lineno - 1]
    moved = _moved(source.text[start:end], node.body[0].col_offset - before.col_offset)
    between = source.text[end:head_start]
    new = between + source.text[head_start:head_end] + moved
    how = f"it runs once, and belongs into each round of the loop of line {node.lineno}"
    yield source.with_span(before, (start, head_end), new, how, 2)
