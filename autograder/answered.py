"""Which of a student's cells is the answer to an exercise or a question."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.course import Cell
from autograder.magics import parse, plain_python
from autograder.submission import RawCell

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


def defined(source: str, kind: str = "code") -> set[str]:
    """The classes, functions and (where it parses) variables that a cell defines at its top."""
    tree = parse(plain_python(source))
    if tree is None:
        return set(_NAME.findall(source)) if kind == "code" else set()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
            names |= {p.id for p in parts if isinstance(p, ast.Name)}
    return names


def asked_for(target: Cell) -> set[str]:
    """What an exercise's scaffold defines: its classes and functions, or else its variables."""
    named = set(_NAME.findall(target.source))
    return named or defined(target.source)


def answer_for(
    target: Cell, cells: list[RawCell], found: list, taken: Mapping[int, Answer]
) -> Answer | None:
    """The cell or cells that count as the answer to `target`; None where there is none.

    Of several copies the last one counts that is filled in (and, for an exercise, defines what
    was asked for, and parses).
    """
    own = [i for i, t in enumerate(found) if t is not None and t.id == target.id]
    own = [i for i in own if i not in taken]
    wanted = asked_for(target) if target.role == "exercise" else set()
    best = max(own, key=lambda i: (*_worth(target, cells[i], wanted), i), default=None)
    repairs: list[str] = []
    if wanted and (best is None or not _worth(target, cells[best], wanted)[1]):
        elsewhere = _elsewhere(target, cells, found, taken, wanted)
        if elsewhere is not None:
            best = elsewhere
            repairs.append(
                f"The answer {target.id!r} was found in another cell than the one meant for it."
            )
    if best is None:
        return None
    if cells[best].kind != target.kind and target.kind in ("code", "markdown"):
        repairs.append(
            f"The cell {target.id!r} was of type {cells[best].kind}: read as {target.kind}."
        )
    places = _pieces(target, best, own, cells, found, taken, wanted)
    if len(places) > 1:
        repairs.append(f"The answer {target.id!r} was split in {len(places)} cells: joined.")
    others = [i for i in own if i not in places and is_answered(target, cells[i].source)]
    if others and any(i in own for i in places):
        repairs.append(
            f"The cell {target.id!r} was there more than once: the last one that is filled in "
            "counts, the others stay as code of your own."
        )
    glue = "\n" if target.kind == "code" else "\n\n"
    return Answer(target, places, glue.join(cells[i].source for i in places), tuple(repairs))


def _worth(target: Cell, cell: RawCell, wanted: set[str]) -> tuple[bool, bool, bool]:
    """How good a candidate is: filled in, defines what was asked for, parses."""
    answered = is_answered(target, cell.source)
    if not wanted or not answered:
        return answered, False, False
    fits = bool(wanted & defined(cell.source))
    return answered, fits, fits and parse(plain_python(cell.source)) is not None


def _elsewhere(target, cells, found, taken, wanted) -> int | None:
    """The last code cell of the student's own (or a changed example or check) that defines it."""
    best = None
    for i, cell in enumerate(cells):
        there = found[i]
        if i in taken or cell.kind != "code" or not wanted & defined(cell.source):
            continue
        if there is None or (
            there.role in ("demo", "check")
            and is_answered(there, cell.source)
            and not wanted & defined(there.source)
        ):
            best = i
    return best


def _pieces(target, first, own, cells, found, taken, wanted) -> tuple[int, ...]:
    """The places from `first` on that a split answer goes on in; often just the one."""
    free = [i for i in own if is_answered(target, cells[i].source)]
    if target.role == "question":
        run = [first]
        while run[0] - 1 in free:
            run.insert(0, run[0] - 1)
        return tuple(run)
    best = (first,)
    for start in sorted({first, first - 1} & {first, *free}):
        places = (start,)
        for after in range(start + 1, min(start + PIECES, len(cells))):
            is_free = found[after] is None or after in free
            if not is_free or after in taken or cells[after].kind != "code":
                break
            places = (*places, after)
            if first in places and _belong(places, cells, wanted):
                best = max(best, places, key=len)
    return best


def _belong(places: tuple[int, ...], cells: list[RawCell], wanted: set[str]) -> bool:
    """Whether cells are one text that was cut: together they parse, but not each alone; or each
    defines another part of what was asked for."""
    texts = [plain_python(cells[i].source) for i in places]
    if parse("\n".join(texts)) is None:
        return False
    if any(parse(text) is None for text in texts):
        return not all(wanted <= defined(text) and parse(text) for text in texts[:1])
    parts = [wanted & defined(text) for text in texts]
    return all(parts) and sum(map(len, parts)) == len(set.union(*parts))
