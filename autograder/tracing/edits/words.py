"""What the name of a mask says of its True: that the place is seen, or that it is hidden."""

from __future__ import annotations

import ast
import re

SEEN = {"keep", "kept", "keeps", "real", "seen", "sees", "visible", "allowed", "allow", "valid"}
SEEN |= {"past", "attend", "attended", "open", "lower", "tril", "earlier", "known", "present"}
HIDDEN = {"hide", "hides", "hidden", "future", "later", "pad", "padding", "padded", "blocked"}
HIDDEN |= {"block", "banned", "forbidden", "upper", "triu", "dropped", "drop", "invalid", "removed"}
WORD = re.compile(r"[a-z]+")


def keeps(node: ast.AST) -> bool | None:
    """Whether the names in an expression say that True means what is seen; None where they say
    nothing, or both."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    names += [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    words = {word for name in names for word in WORD.findall(name.lower())}
    seen, hidden = bool(words & SEEN), bool(words & HIDDEN)
    return seen if seen != hidden else None
