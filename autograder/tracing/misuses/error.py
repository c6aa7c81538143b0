"""An error in a student's cell, with what its causes are looked for in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.tracing.text import (
    Text,
)


@dataclass(frozen=True)
class Error:
    """An error in a student's cell: its match, the cell's text, the line, the operands' sizes."""

    found: re.Match
    text: Text
    line: int | None
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def said(self) -> str:
        """The text of the error."""
        return self.found.string

    def nodes(self) -> list[ast.AST]:
        """The syntax of the statement that stopped."""
        statement = self.text.around(self.line or 0)
        return list(ast.walk(statement)) if statement is not None else []

    def names(self) -> Iterator[tuple[str, ast.expr]]:
        """The variables of the statement, each with what it was assigned last before it."""
        for node in self.nodes():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                value = self.text.assigned(node.id, self.line or 0)
                if value is not None:
                    yield node.id, value

    def calls(self, attribute: str) -> bool:
        """Whether the statement calls, or takes, something of this name."""
        return any(isinstance(n, ast.Attribute) and n.attr == attribute for n in self.nodes())
