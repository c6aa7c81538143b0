"""Text of a student's as what it is, text; and what else a graded notebook says to its page.

Nothing large is imported here: who marks a class needs this, and no page.
"""

from __future__ import annotations

import ast
import re

from autograder.intake.magics import plain_python

ISOLATION = "isolation: {}\n"  # what stands under each check, for who marks
UNCHANGED = "No response."  # nbgrader's own comment on a cell that nobody changed
MAX_OUTPUT = 20_000  # characters of text shown for one output
SCHEME = "scheme-"  # how the ids of cells begin that are for the grader only
LONGEST_SOURCE = 20_000  # characters of a cell that is looked through for alternative texts
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def plain(text) -> str:
    """Text without terminal codes, control characters and direction overrides."""
    text = "".join(text) if isinstance(text, list) else str(text)
    text = _CONTROL.sub("", _ANSI.sub("", text))
    if len(text) > MAX_OUTPUT:
        text = text[:MAX_OUTPUT] + f"\n... {len(text) - MAX_OUTPUT} more characters"
    return text


def inert(text: str) -> str:
    """Markdown whose raw HTML, links and pictures are text wherever it is shown, as in formgrader.

    A tag needs a letter, '/', '!' or '?' behind its '<', a link a '(' or ':' behind its ']':
    there stands a blank of no width. What the text looks like does not change.
    """
    text = _CONTROL.sub("", _ANSI.sub("", text))
    return re.sub(r"<(?=[A-Za-z/!?])|!(?=\[)|\](?=[(:])", "\\g<0>\u200b", text)


def descriptions(source: str) -> list[str]:
    """The alternative texts in a cell: the second argument of each `show(figure, "text")`."""
    try:
        tree = ast.parse(plain_python(source)) if len(source) <= LONGEST_SOURCE else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    found = []
    for call in sorted(calls, key=lambda n: (n.lineno, n.col_offset)):
        named = [k.value for k in call.keywords if k.arg == "alt"]
        texts = named or call.args[1:2]
        if getattr(call.func, "id", "") == "show" and texts:
            text = texts[0].value if isinstance(texts[0], ast.Constant) else None
            found.append(plain(text) if isinstance(text, str) else "A figure of the lesson")
    return found
