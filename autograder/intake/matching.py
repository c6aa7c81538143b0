"""Which of a student's cells is the answer to an exercise or a question."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from autograder.course.lesson import Cell, Lesson, Role
from autograder.intake import magics
from autograder.intake.magics import REMEMBERED, parse, parses, plain_python
from autograder.intake.submission import RawCell

PIECES = 4  # a cell may have been split into this many
_NAME = re.compile(r"^(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """The places of the cells that hold an answer, in order, and their joined text."""

    target: Cell
    places: tuple[int, ...]
    source: str
    repairs: tuple[str, ...]


def same_text(source: str) -> str:
    """Text without what an editor changes by itself: blanks at line ends, blank lines around."""
    return "\n".join(line.rstrip() for line in source.split("\n")).strip("\n")


def is_answered(target: Cell, source: str) -> bool:
    """Whether there is text, and it is not the released one."""
    return bool(source.strip()) and same_text(source) != same_text(target.source)


@lru_cache(maxsize=REMEMBERED)
def defined(source: str, kind: str = "code") -> frozenset[str]:
    """The classes, functions and (where it parses) variables that a cell defines at its top."""
    tree = parse(plain_python(source))
    if tree is None:
        return frozenset(_NAME.findall(source) if kind == "code" else ())
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
            names |= {p.id for p in parts if isinstance(p, ast.Name)}
    return frozenset(names)


def forget() -> None:
    """Lets go of the texts that were read; called between notebooks, which may be large."""
    defined.cache_clear()
    magics.forget()


def asked_for(target: Cell) -> frozenset[str]:
    """What an exercise's scaffold defines: its classes and functions, or else its variables."""
    return frozenset(_NAME.findall(target.source)) or defined(target.source)


def moved_home(
    lesson: Lesson, cells: list[RawCell], found: list[Cell | None]
) -> tuple[list[RawCell], list[str]]:
    """The cells, with what was asked for and stands in another exercise's answer put in its own
    blank cell, and a sentence for each. It stays there too where the rest of that answer uses it.
    """
    cells, repairs = list(cells), []
    homes = {t.id: i for i, t in enumerate(found) if t is not None and t.role == Role.EXERCISE}
    everything = frozenset().union(*(asked_for(t) for t in lesson.with_role(Role.EXERCISE)))
    for target in lesson.with_role(Role.EXERCISE):
        wanted, home = asked_for(target), homes.get(target.id)
        own = [cells[i].source for i, t in enumerate(found) if t is target]
        if home is None or any(is_answered(target, source) for source in own):
            continue
        if _elsewhere(cells, found, {}, wanted) is not None:
            continue
        for place, there in enumerate(found):
            guest = there is not None and there.role == Role.EXERCISE and there is not target
            if not guest or cells[place].kind != "code" or wanted & asked_for(there):
                continue
            if not wanted & defined(cells[place].source):
                continue
            rest, cut = _cut_out(cells[place].source, wanted)
            if cut and everything & defined(rest):  # something of its own has to stay
                if not wanted & _used(rest):
                    cells[place] = cells[place]._replace(source=rest)
                cells[home] = cells[home]._replace(kind="code", source=cut)
                repairs.append(f"The answer {target.id!r} was found in the cell {there.id!r}.")
                break
    return cells, repairs


def _cut_out(source: str, names: frozenset[str]) -> tuple[str, str]:
    """A cell's text without the definitions of these names, and those definitions."""
    tree = parse(plain_python(source))
    rest, cut, lines = [], [], source.split("\n")
    starts = [_first_line(node) for node in tree.body] if tree else []
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else len(lines)
        kept = cut if getattr(tree.body[place], "name", None) in names else rest
        kept += lines[start:end]
    return "\n".join([*lines[: min(starts, default=0)], *rest]), "\n".join(cut)


def _used(source: str) -> set[str]:
    """The names that a text of Python mentions."""
    tree = parse(plain_python(source))
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} if tree else set()


def _first_line(node: ast.stmt) -> int:
    """The line, from 0, on which a statement begins, decorators included."""
    return min(n.lineno for n in (node, *getattr(node, "decorator_list", ()))) - 1


def answer_for(
    target: Cell, cells: list[RawCell], found: list, taken: Mapping[int, Answer]
) -> Answer | None:
    """The cell or cells that count as the answer to `target`; None where there is none.

    Of several copies the last one counts that is filled in (and, for an exercise, defines what
    was asked for, and parses). taken: places that answer an earlier exercise.
    """
    own = [i for i, t in enumerate(found) if t is not None and t.id == target.id]
    own = [i for i in own if i not in taken]
    wanted = asked_for(target) if target.role == Role.EXERCISE else frozenset()
    best = max(own, key=lambda i: (*_worth(target, cells[i], wanted), i), default=None)
    if wanted and (best is None or not _worth(target, cells[best], wanted)[1]):
        elsewhere = _elsewhere(cells, found, taken, wanted)
        best = best if elsewhere is None else elsewhere
    if best is None:
        return None
    filled = [i for i in own if is_answered(target, cells[i].source)]
    places = _pieces(target, best, filled, cells, found, taken, wanted)
    repairs = _said(target, places, own, filled, cells)
    glue = "\n" if target.kind == "code" else "\n\n"
    return Answer(target, places, glue.join(cells[i].source for i in places), repairs)


def _said(target: Cell, places, own, filled, cells) -> tuple[str, ...]:
    repairs = []
    if own and not set(own) & set(places):
        repairs.append(f"The answer {target.id!r} was found in another cell than its own.")
    elif set(filled) - set(places):
        repairs.append(
            f"The cell {target.id!r} was there more than once: the last one that is filled in "
            "counts, the others stay as cells of your own."
        )
    if len(places) > 1:
        repairs.append(f"The answer {target.id!r} was split in {len(places)} cells: joined.")
    other = {cells[i].kind for i in places} - {target.kind}
    if other:
        repairs.append(f"The cell {target.id!r} was of type {min(other)}: read as {target.kind}.")
    return tuple(repairs)


def _worth(target: Cell, cell: RawCell, wanted: set[str]) -> tuple[bool, int, bool]:
    """How good a candidate is: filled in, defines how much of what was asked for, parses."""
    answered = is_answered(target, cell.source)
    if not wanted or not answered:
        return answered, 0, False
    fits = len(wanted & defined(cell.source))
    return answered, fits, bool(fits) and parses(cell.source)


def _elsewhere(cells, found, taken, wanted) -> int | None:
    """The last code cell of the student's own (or a changed example or check) that defines it."""
    best = None
    for i, cell in enumerate(cells):
        there = found[i]
        if i in taken or cell.kind != "code" or not wanted & defined(cell.source):
            continue
        if there is None or (
            there.role in (Role.DEMO, Role.CHECK)
            and is_answered(there, cell.source)
            and not wanted & defined(there.source)
        ):
            best = i
    return best


def _pieces(target, best, filled, cells, found, taken, wanted) -> tuple[int, ...]:
    """The places of an answer that was split: `best` and those beside it; often just the one."""
    first = best
    while first - 1 in filled and best - first < PIECES - 1:
        first -= 1
    if target.role == Role.QUESTION:
        return _prose(target, first, best, cells, found)
    runs = (
        _joined_from(start, best, filled, cells, found, taken, wanted)
        for start in range(first, best + 1)
    )
    return max((run for run in runs if best in run), key=len)


def _joined_from(start, best, filled, cells, found, taken, wanted) -> tuple[int, ...]:
    """The places of one text that was cut, from `start` on: cell after cell, as long as needed."""
    places, ahead = (start,), 1
    while len(places) + ahead <= PIECES and places[-1] + ahead < len(cells):
        end = places[-1] + ahead
        free = (found[end] is None and cells[end].kind == "code") or end in filled
        if end != best and (not free or end in taken):
            break
        more = tuple(range(places[-1] + 1, end + 1))
        if _belong(_text(places, cells), _text(more, cells), wanted):
            places, ahead = places + more, 1
        else:
            ahead += 1
    return places


def _prose(target, first, best, cells, found) -> tuple[int, ...]:
    """An answer in words; where its cell was left as it is, the text cells right after it, or the
    lesson's own text right before it if something was written there."""
    if is_answered(target, cells[best].source):
        texts = {same_text(cells[i].source): i for i in range(first, best + 1)}  # each but once
        return tuple(sorted(texts.values()))
    end = best + 1
    while end < len(cells) and found[end] is None and cells[end].kind != "code":
        end += 1
    written = tuple(i for i in range(best + 1, end) if cells[i].source.strip())
    if written or best == 0:
        return written or (best,)
    before = found[best - 1]
    typed_above = (
        before is not None
        and before.role == Role.TEXT
        and is_answered(before, cells[best - 1].source)
    )
    return (best - 1,) if typed_above else (best,)


def _text(places: tuple[int, ...], cells: list[RawCell]) -> str:
    return "\n".join(cells[i].source for i in places)


def _belong(before: str, after: str, wanted: frozenset[str]) -> bool:
    """Whether two texts are one that was cut: together they parse, but not each alone; or each
    defines another part of what was asked for."""
    if not parses(before + "\n" + after):
        return False
    if not (_stands_alone(before) and _stands_alone(after)):
        return True
    first, second = wanted & defined(before), wanted & defined(after)
    return bool(first and second) and not first & second


def _stands_alone(text: str) -> bool:
    indented = text.lstrip("\n")[:1].isspace()
    return not indented and parses(text)
