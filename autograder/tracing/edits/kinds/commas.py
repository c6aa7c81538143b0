"""Slips of one character: a comma that makes a tuple, at the end of a line, or none in brackets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import ends_in_a_comma


def of_commas(source: Source, node: ast.AST) -> Iterator[Edit]:
    """`x = f(y)` for `x = f(y),`, and the same behind `return`; `(n,)` for `(n)`."""
    if isinstance(node, ast.Assign | ast.Return) and ends_in_a_comma(node.value, source.text):
        _, end = source.span(node.value)
        own = isinstance(node, ast.Assign)
        what = f"`{source.shown(node.targets[0])}`" if own else "what is returned"
        how = f"the comma at the end makes a tuple of {what}"
        yield source.with_span(node, (end - 1, end), "", how)
    if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Name):
        start, end = source.span(node.value)
        if (source.text[start - 1], source.text[end : end + 1]) == ("(", ")"):
            how = f"`({node.value.id})` is what is in the brackets, and no tuple of it"
            yield source.with_text(node.value, f"{node.value.id},", how)
