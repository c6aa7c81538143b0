"""Where in a text an operation stands: the variable that its line gives a value to."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from types import CodeType

SHORTEST = 3  # letters of a name that says something


def made_there(code: CodeType, last: int) -> str:
    """The variable that the line of an instruction is on the way to; '' where none has a name."""
    at = next(itertools.islice(code.co_positions(), last // 2, None), None)
    line = at[0] if at else None
    return _names(code.co_filename).get(line, "") if line else ""


@functools.lru_cache(maxsize=64)
def _names(file: str) -> dict[int, str]:
    """For each line of a file the variable that it gives a value to, the innermost one."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, str] = {}
    for node in ast.walk(tree):  # outer statements come first
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return):
            continue
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        name = targets[0].id if isinstance(targets[0], ast.Name) else ""
        name = name if len(name) >= SHORTEST and not name.isupper() else ""  # no constant's
        found |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), name)
    return found
