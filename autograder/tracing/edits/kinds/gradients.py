"""Slips with gradients that are asked for more than once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee

MOST = 3  # tensors whose gradients are begun anew


def of_gradients(source: Source, node: ast.AST) -> Iterator[Edit]:
    """`out.backward()`, which adds to what `x.grad` holds from the calls before."""
    call = node.value if isinstance(node, ast.Expr) else None
    function = source.function(node)
    if not isinstance(call, ast.Call) or callee(call) != "backward" or function is None:
        return
    inside = source.inside(function)
    again = any(isinstance(n, ast.For | ast.While) for n in source.around(node)) or any(
        isinstance(n, ast.Call) and callee(n) == "backward" and n.lineno < node.lineno
        for n in inside
    )
    read = [n for n in inside if isinstance(n, ast.Attribute) and n.attr == "grad"]
    for grad in list(dict.fromkeys(source.of(n) for n in read if again))[:MOST]:
        how = f"`{source.shown(call)}` adds to what `{grad}` holds from the calls before"
        yield source.with_text(node, f"{grad} = None; {source.of(node)}", how)
