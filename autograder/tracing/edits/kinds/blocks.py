"""Slips in how an axis is cut: every n-th of it is taken, where blocks lie one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source, number


def of_blocks(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Blocks in the place of every n-th, for all parts of a row at once."""
    if not isinstance(node, ast.Tuple) or not isinstance(node.ctx, ast.Load):
        return
    texts = [_block(source, each) for each in node.elts]
    if len(texts) > 1 and all(texts):
        shown = source.shown(node.elts[0])
        how = f"`{shown}` takes numbers that lie apart, and not a block of them"
        yield source.with_text(node, ", ".join(texts), how, 2)


def _block(source: Source, node: ast.expr) -> str | None:
    """The block for a slice with a step: for `x[:, 1::3]` the second of three. None of anything
    else."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    steps = [i for i, p in enumerate(parts) if isinstance(p, ast.Slice) and p.step is not None]
    if len(steps) != 1 or parts[steps[0]].upper is not None:
        return None
    cut = parts[steps[0]]
    first = number(cut.lower) if cut.lower is not None else 0
    several = number(cut.step)
    if not (isinstance(first, int) and isinstance(several, int) and 0 <= first < several):
        return None
    axis = steps[0] if source.of(parts[0]) != "..." else steps[0] - len(parts)
    return f"{source.of(node.value)}.chunk({several}, {axis})[{first}]"
