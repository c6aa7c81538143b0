"""Makes true shape comments false: swaps, drops, insertions, other names, reversed arrows.

A mutant that says the same as the original (two names of one size) is no mistake: both are read
with the same sizes for the same names, and mutants that come out equal are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.shapes import judge, plan, prepare, record
from autograder.shapes.text.names import choices, concept
from tests.shapes.reading import Snippet

SHAPE = re.compile(r"(?<![\w.])([\[(])([^\[\]()#@]*,[^\[\]()#@]*)([\])])")
ROLES = {"batch": 2, "seq": 3, "input": 5, "hidden": 7 * 11, "heads": 7, "head_size": 11}
MEANT = {"C": "input", "E": "input", "d_in": "input", "n": "heads", "N": "batch", "D": "head_size"}


@dataclass(frozen=True)
class Mutant:
    """A source with one comment changed: where, how, and what the comment now says."""

    line: int
    kind: str
    source: str
    comment: str


def size(name: str) -> object:
    """A size for a name: that of its role, or one of its own."""
    meant = concept(name) or MEANT.get(name) or (choices(name) or (None,))[0]
    return ROLES.get(meant, name)


def sizes(dims: list[str]) -> list[object]:
    """Each dimension as the number, or the expression, that it stands for."""
    found = []
    for dim in dims:
        text = re.sub(r"[^\W\d][\w.]*", lambda m: str(size(m[0])), dim.replace(" ", ""))
        try:
            found.append(round(eval(text.replace("//", "/"), {"__builtins__": {}}), 6))
        except (NameError, SyntaxError, TypeError, ZeroDivisionError):
            found.append(text)
    return found


def mutants(snippet: Snippet) -> Iterator[Mutant]:
    """Every mutant of every true comment behind a line."""
    lines = snippet.source.splitlines()
    marked = {line for line, _ in snippet.expected}
    names = _names(lines)
    for i, line in enumerate(lines):
        code, hash_, comment = line.partition("#")
        if not hash_ or not code.strip() or i + 1 in marked or "nn." in code:
            continue
        if code.lstrip().startswith((")", ".", "]", "def ")) or ".shape  " in code:
            continue  # one line of a longer statement, or a line that makes no tensor
        found = list(SHAPE.finditer(comment))
        if len(found) != 1 and "->" not in comment:
            continue
        if not found or "or " in comment or "*," in comment or "..." in comment:
            continue
        last = found[-1]
        dims = [d.strip() for d in last[2].split(",")]
        for kind, new in _changed(dims, names):
            if sizes(new) == sizes(dims) or len(new) < 2:
                continue
            text = f"{comment[: last.start(2)]}{', '.join(new)}{comment[last.end(2) :]}"
            yield _mutant(lines, i, kind, f"{code}#{text}", text)
        if len(found) == 2 and comment.count("->") == 1 and "@" not in comment:
            first = [d.strip() for d in found[0][2].split(",")]
            if sizes(first) != sizes(dims):
                text = f" {last[0]} -> {found[0][0]}"
                yield _mutant(lines, i, "reversed", f"{code}#{text}", text)


def _names(lines: list[str]) -> list[str]:
    """The names of dimensions that the snippet's comments use."""
    found = {}
    for line in lines:
        for match in SHAPE.finditer(line.partition("#")[2]):
            for dim in match[2].split(","):
                if re.fullmatch(r"[^\W\d]\w*", dim.strip()):
                    found[dim.strip()] = None
    return list(found)


def _changed(dims: list[str], names: list[str]) -> Iterator[tuple[str, list[str]]]:
    for i in range(len(dims)):
        if i + 1 < len(dims):
            yield "swapped", [*dims[:i], dims[i + 1], dims[i], *dims[i + 2 :]]
        yield "dropped", dims[:i] + dims[i + 1 :]
        other = next((n for n in names if size(n) != size(dims[i])), None)
        if other:
            yield "renamed", [*dims[:i], other, *dims[i + 1 :]]
    if names:
        yield "inserted", [*dims[:1], names[-1], *dims[1:]]


def _mutant(lines: list[str], i: int, kind: str, line: str, text: str) -> Mutant:
    return Mutant(i + 1, kind, "\n".join([*lines[:i], line, *lines[i + 1 :]]) + "\n", text)


class Bench:
    """Runs a snippet once and judges any number of changes to its comments."""

    def __init__(self, snippet: Snippet):
        self.plan = plan(snippet.call)
        self.recording = record.run(prepare(snippet.source, self.plan))
        self.usual = self._accused(snippet.source)

    def _accused(self, source: str) -> set[tuple[int, str]]:
        found = judge(source, self.plan, self.recording)
        return {(v.line, v.verdict) for v in found if v.verdict in ("false", "missing")}

    def named(self, mutant: Mutant) -> tuple[bool, bool]:
        """Whether the mutated line is accused, and whether another one is."""
        new = self._accused(mutant.source) - self.usual
        return any(line == mutant.line for line, _ in new), any(
            line != mutant.line for line, _ in new
        )
