"""What is said of a tensor away from its statement: in the docstring or above the `def`, by its
name or as what is returned, or behind the line that makes its layer.

Nothing is proven by it, and nothing accused. But nobody can say that such a shape is missing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from autograder.shapes.places.docstrings import comment_above, comment_below, entries
from autograder.shapes.text.lexer import Token, plain, tokens
from autograder.shapes.text.perhaps import perhaps_one
from autograder.shapes.text.reader import read
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import Function, Stmt, flat, parsed

NAMES = (":", "(", "-", "=")  # what follows the name of a tensor in such a text
BULLETS = ("-", "*", "`", "``", "param", ":", "@")
RESULTS = ("return", "returns")  # before the name of a result


@dataclass(frozen=True)
class Told:
    """The names of tensors that a text tells the shapes of, and whether it does so of results."""

    names: set[str] = field(default_factory=set)
    result: bool = False


def told_of(
    function: Function, lines: list[str], given: frozenset[str], vocabulary: Vocabulary
) -> Told:
    """What the texts of a function tell. given: lines of the hand-out, which nobody wrote here."""
    names, result = set(), False
    for text in (function, comment_above(function, lines), comment_below(function, lines)):
        name = ""
        for _, line, results in entries(text):
            if line.strip() in given:
                continue
            name = named(line) or (name if line.strip() else "")
            if has_shape(line, vocabulary):
                names |= {name} if name else set()
                returns = text is function and _first_word(line) in RESULTS
                result = result or returns or bool(results)
    return Told(names, result)


def is_told(stmt: Stmt, after: Stmt | None, room) -> bool:
    """Whether a shape is told of what a statement makes. after: the statement that follows."""
    own, told = set(flat(stmt.targets)), room.told_before
    back = stmt.kind == "return"
    if after is not None and after.kind == "return":
        back = back or [room.matcher.node(after).text] == stmt.targets
    return bool(own & told.names) or (back and told.result) or _of_its_layer(stmt, room)


def has_shape(text: str, vocabulary: Vocabulary) -> bool:
    """Whether a line may tell a shape: one that can be read, or one in a notation of its own; also
    one whose brackets do not fit."""
    if read([(1, text)], vocabulary):
        return True
    found = tokens(plain(text))
    if perhaps_one(found, vocabulary):
        return True
    opens = [i for i, t in enumerate(found) if t.kind == "open"]
    ends = [i for i, t in enumerate(found) if t.kind == "close"]
    return any(
        sum(t.kind == "comma" for t in found[start:end]) > 1
        for start, end in zip(opens[-1:], ends[-1:], strict=False)
    )


def _first_word(line: str) -> str:
    return next((t.text.lower() for t in tokens(line[:80])), "")


def named(text: str) -> str:
    """The name that a line begins with."""
    found = [t for t in tokens(text[:80]) if t.text not in BULLETS or t.text in NAMES]
    while found and (found[0].text in BULLETS or _is_of_results(found)):
        found = found[1:]
    follows = len(found) > 1 and found[0].word and found[1].text in NAMES
    return found[0].text if follows else ""


def _is_of_results(found: list[Token]) -> bool:
    """Whether a line goes on with the name of a result: `return: output: [b, t, d]`, or
    `:return memory (b, t, d)`."""
    texts = [t.text for t in found[:4]]
    if len(texts) < 4 or texts[0].lower() not in RESULTS:
        return False
    return texts[3 if texts[1] == ":" else 2] in NAMES and (found[1].word or found[2].word)


def _of_its_layer(stmt: Stmt, room) -> bool:
    """Whether the line that makes a layer of the object tells what comes out of it."""
    value = parsed(room.matcher.node(stmt).text)
    calls = (n for n in ast.walk(value) if isinstance(n, ast.Call)) if value is not None else ()
    called = {ast.unparse(n.func) for n in calls}
    layers = {name for name in called if name.startswith("self.")}
    made = [s for s in room.source.traced.stmts if layers & set(flat(s.targets))]
    return any(tells_a_shape(s.line, s.end_line, room) for s in made)


def tells_a_shape(first: int, last: int, room, alone: bool = False) -> bool:
    """Whether a comment behind some lines, but for the hand-out's own, may tell a shape; or one
    that stands alone on them."""
    lines, given = room.source.lines, room.source.given.lines
    there = (c for c in room.source.comments if c.own == alone and first <= c.line <= last)
    own = (c.text for c in there if lines[c.line - 1].strip() not in given)
    return any(has_shape(text, room.vocabulary) for text in own)
