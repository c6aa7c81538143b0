"""Submissions that are alike in more than the exercise makes them: hints for a person, no verdict.

Each answer becomes a row of syntax: names of variables are numbered in the order in which they
appear; comments, docstrings, annotations and layout are gone. What two students share counts only
where it is rare: pieces of the released text, of the course's own answers, and of what many in the
class wrote are left out. So two usual right answers share nothing, whatever they look like.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from autograder.course.lesson import Role
from autograder.exports.marked import Class, Marked
from autograder.intake.magics import plain_python

PIECE = 8  # pieces of syntax in a row that are compared
FEWEST = 25  # rare pieces that two have to share
SHARE = 0.6  # of the rarer pieces of the one with fewer
MOST = 10  # students who may share a piece before it counts as usual
LONGEST = 50_000  # characters of an answer that is looked at


@dataclass(frozen=True)
class Pair:
    """Two students whose answers are alike. shared: rare pieces in common; share: of the fewer."""

    one: str
    other: str
    tasks: tuple[str, ...]
    shared: int
    share: float
    same_text: bool


def alike(marked: Class, answers: Mapping[str, str]) -> list[Pair]:
    """The pairs that a person might look at, the most alike first."""
    lesson = marked.lesson
    exercises = {cell.id: cell for cell in lesson.with_role(Role.EXERCISE)}
    texts: dict[str, dict[str, str]] = {}  # by student, by cell
    for student in marked.handed_in:
        texts[student.id] = dict(_answers(student, exercises))
    many = max(2, min(MOST, len(texts) // 5))
    rare: dict[tuple[str, str], frozenset] = {}
    for cell, exercise in exercises.items():
        usual = pieces(exercise.source) | pieces(answers.get(cell, ""))
        own = {who: pieces(mine[cell]) for who, mine in texts.items() if cell in mine}
        times = Counter(piece for each in own.values() for piece in each)
        common = {piece for piece, count in times.items() if count > many} | usual
        for who, each in own.items():
            rare[who, cell] = each - common
    return _pairs(marked, exercises, texts, rare)


def _answers(student: Marked, exercises: Mapping) -> Iterator[tuple[str, str]]:
    for cell in student.record.submission.cells if student.record else ():
        if cell.id in exercises and cell.answered:
            yield cell.id, cell.source


def _pairs(marked: Class, exercises, texts, rare) -> list[Pair]:
    names = {s.id: s.name for s in marked.students}
    holders: dict[tuple, set[str]] = {}
    for (who, cell), each in rare.items():
        for piece in each:
            holders.setdefault((cell, piece), set()).add(who)
    shared: Counter = Counter()
    where: dict[tuple[str, str], Counter] = {}
    for (cell, _), whose in holders.items():
        for pair in combinations(sorted(whose), 2):
            shared[pair] += 1
            where.setdefault(pair, Counter())[cell] += 1
    own = Counter()
    for (who, _), each in rare.items():
        own[who] += len(each)
    out = []
    for (one, other), count in shared.items():
        share = count / min(own[one], own[other])
        if count < FEWEST or share < SHARE:
            continue
        cells = [cell for cell, _ in where[one, other].most_common()]
        same = all(texts[one].get(c) == texts[other].get(c) for c in exercises)
        tasks = tuple(exercises[c].task or c for c in cells)
        out.append(Pair(names[one], names[other], tasks, count, share, same))
    return sorted(out, key=lambda p: (-p.share, -p.shared, p.one, p.other))


def pieces(source: str) -> frozenset[tuple[str, ...]]:
    """All runs of `PIECE` pieces of syntax of a program; none of one that cannot be read."""
    row = syntax(source)
    return frozenset(tuple(row[i : i + PIECE]) for i in range(len(row) - PIECE + 1))


def syntax(source: str) -> Sequence[str]:
    """A program as a row of its syntax, the same whatever its names and its layout are."""
    if len(source) > LONGEST:
        return ()
    try:
        tree = ast.parse(plain_python(source))
        return tuple(_row(tree, {}))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _row(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """The nodes in the order of the text; a variable's name by the place where it first stands."""
    yield type(node).__name__
    if isinstance(node, ast.Name):
        yield names.setdefault(node.id, f"v{len(names)}")
    elif isinstance(node, ast.arg):
        yield names.setdefault(node.arg, f"v{len(names)}")
    elif isinstance(node, ast.Attribute):
        yield node.attr  # a method's name is no name of the student's
    elif isinstance(node, ast.Constant):
        yield repr(node.value)[:40]
    for child in _children(node):
        yield from _row(child, names)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    skipped = {"annotation", "returns", "type_comment", "ctx"}
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        found = value if isinstance(value, list) else [value]
        if name == "body" and found and _is_text(found[0]):
            found = found[1:]
        yield from (each for each in found if isinstance(each, ast.AST))


def _is_text(node) -> bool:
    """Whether a statement is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
