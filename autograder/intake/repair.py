"""Puts a submission's cells back in their places, by what the released lesson asks for.

A cell is known by its id, then by nbgrader's grade id, then by its text: the released text itself,
the class or function it defines, or most of the released lines. Nothing else of a student's
notebook is believed: no metadata, tags, points or outputs. Pure functions; each repair is said in
one sentence.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.lesson import Cell, Lesson, Role
from autograder.intake.matching import (
    Answer,
    answer_for,
    asked_for,
    defined,
    is_answered,
    moved_home,
    same_text,
)
from autograder.intake.submission import RawCell, StudentCell, Submission

LIKE = 0.6  # the share of a released cell's lines that must be left for it to be recognised
ID_LENGTH = 200


def raw_cells(notebook: Any) -> list[RawCell]:
    """The cells of a notebook, in any state: of nbformat 4, or 3 with its worksheets."""
    notebook = notebook if isinstance(notebook, dict) else {}
    cells = list(_list(notebook.get("cells")))
    for sheet in _list(notebook.get("worksheets")):
        cells += _list(sheet.get("cells") if isinstance(sheet, dict) else None)
    return [_raw(cell) for cell in cells if isinstance(cell, dict)]


def _raw(cell: dict) -> RawCell:
    kind = cell.get("cell_type")
    if kind not in ("code", "raw"):
        kind = "markdown"
    text = cell.get("source", cell.get("input", ""))
    if isinstance(text, list):
        text = "".join(line for line in text if isinstance(line, str))
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return RawCell(kind, _id(cell.get("id")), _id(grade_id), clean(text))


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _id(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= ID_LENGTH else ""


def clean(text: Any) -> str:
    """Text that can be stored, shown and compiled: LF line ends, no half characters, no NUL."""
    if not isinstance(text, str):
        return ""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def match(
    lesson: Lesson, cells: Iterable[RawCell]
) -> tuple[tuple[StudentCell, ...], tuple[str, ...]]:
    """The student's cells in the student's order, each with its part in the lesson, and repairs.

    Every exercise, question, setup and demo cell of the lesson is there exactly once. Check cells
    and the lesson's own text are left out: they come from the lesson alone.
    """
    cells = [RawCell(*cell) for cell in cells]
    found = identify(lesson, cells)
    cells, repairs = moved_home(lesson, cells, found)
    answers: dict[str, Answer] = {}
    taken: dict[int, Answer] = {}
    for target in lesson.cells:
        if target.role in (Role.EXERCISE, Role.QUESTION):
            answer = answer_for(target, cells, found, taken)
            if answer is not None:
                answers[target.id] = answer
                taken.update(dict.fromkeys(answer.places, answer))
                repairs += answer.repairs
    placed = _in_order(lesson, cells, found, taken, repairs)
    placed = _with_missing(lesson, placed, repairs)
    return _numbered(placed), tuple(repairs)


def identify(lesson: Lesson, cells: list[RawCell]) -> list[Cell | None]:
    """For each of the student's cells the released cell that it is; several may be the same."""
    by_id = {c.id: c for c in lesson.cells}
    by_text = {same_text(c.source): c for c in lesson.cells}
    found: list[Cell | None] = []
    for cell in cells:
        target = by_id.get(cell.id)
        if target is not None and target.role in (Role.TEXT, Role.DEMO):
            # Ids of these count places, so that another edition of the lesson has them elsewhere.
            text = same_text(cell.source)
            moved = text != same_text(target.source) and text in by_text
            if moved or target.kind != cell.kind:
                target = None
        if target is None:
            target = by_id.get(cell.grade_id)
            target = None if target is not None and _belies(lesson, target, cell) else target
        found.append(target)
    _by_text(lesson, cells, found)
    _by_names(lesson, cells, found)
    _by_likeness(lesson, cells, found)
    _by_place(lesson, cells, found)
    return found


def _belies(lesson: Lesson, target: Cell, cell: RawCell) -> bool:
    """Whether a cell's text speaks against its grade id: it defines what another exercise asks."""
    names = defined(cell.source, cell.kind)
    if names & (asked_for(target) if target.role == Role.EXERCISE else defined(target.source)):
        return False
    return any(asked_for(other) & names for other in lesson.with_role(Role.EXERCISE))


def _left(lesson: Lesson, found: list[Cell | None]) -> list[Cell]:
    """Released cells that were not found yet, of those that have a text of their own."""
    seen = {target.id for target in found if target is not None}
    texts = Counter(same_text(target.source) for target in lesson.cells)
    return [
        target
        for target in lesson.cells
        if target.id not in seen and texts[same_text(target.source)] == 1
    ]


def _by_text(lesson: Lesson, cells: list[RawCell], found: list) -> None:
    waiting = {same_text(target.source): target for target in _left(lesson, found)}
    for place, cell in enumerate(cells):
        if found[place] is None:
            found[place] = waiting.pop(same_text(cell.source), None)


def _by_names(lesson: Lesson, cells: list[RawCell], found: list) -> None:
    """Cells that define what a lost exercise asks for; where two exercises ask for the same name,
    the one that is more like the released text."""
    lost = [(t, defined(t.source)) for t in _left(lesson, found) if t.role == Role.EXERCISE]
    if not lost:
        return
    used: set[str] = set()
    for place, cell in enumerate(cells):
        if found[place] is not None:
            continue
        names = defined(cell.source, cell.kind)
        fits = [t for t, wanted in lost if wanted & names]
        fresh = [t for t in fits if t.id not in used]
        if fits:
            best = max(fresh or fits, key=lambda t: _likeness(t.source, cell.source))
            found[place] = best
            used.add(best.id)


def _by_likeness(lesson: Lesson, cells: list[RawCell], found: list) -> None:
    lost = _left(lesson, found)
    wanted, pairs = [_lines(target.source) for target in lost], []
    for place, cell in enumerate(cells):
        if found[place] is None:
            kept = _lines(cell.source)
            for order, target in enumerate(lost):
                share = _share(wanted[order], kept)
                if share >= LIKE:
                    pairs.append((-share, order, place, target))
    gone: set[str] = set()
    for _, _, place, target in sorted(pairs, key=lambda pair: pair[:3]):
        if found[place] is None and target.id not in gone:
            found[place] = target
            gone.add(target.id)


def _by_place(lesson: Lesson, cells: list[RawCell], found: list) -> None:
    """Cells whose released text says nothing ('YOUR ANSWER HERE'), by what stands around them."""
    places: dict[str, int] = {}
    for place, target in enumerate(found):
        if target is not None:
            places.setdefault(target.id, place)
    low = -1
    told_apart = {t.id for t in _left(lesson, found) if t.role == Role.EXERCISE and asked_for(t)}
    for order, target in enumerate(lesson.cells):
        if target.id in places:
            low = places[target.id]
            continue
        later = (places[t.id] for t in lesson.cells[order + 1 :] if t.id in places)
        high = next(later, len(cells))
        if target.role not in (Role.QUESTION, Role.DEMO, Role.EXERCISE) or target.id in told_apart:
            continue
        for place in range(low + 1, high):
            if found[place] is None and cells[place].kind == target.kind:
                found[place], places[target.id], low = target, place, place
                break


def _likeness(released: str, text: str) -> float:
    """The share of the released lines that the text still has."""
    return _share(_lines(released), _lines(text))


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


def _share(lines: set[str], kept: set[str]) -> float:
    return len(lines & kept) / len(lines) if lines else 0.0


def _in_order(
    lesson: Lesson, cells: list[RawCell], found: list, taken: dict[int, Answer], repairs: list[str]
) -> list[StudentCell]:
    placed: list[StudentCell] = []
    done: set[str] = set()
    anchor = ""

    def keep(cell: RawCell) -> None:
        if cell.source.strip():
            role, kind = (Role.ADDED, "code") if cell.kind == "code" else (Role.NOTE, "markdown")
            placed.append(StudentCell("", role, kind, cell.source, True, anchor))

    for place, (cell, target) in enumerate(zip(cells, found, strict=True)):
        if place in taken:
            answer = taken[place]
            if place == answer.places[0]:
                target = answer.target
                answered = is_answered(target, answer.source)
                placed.append(
                    StudentCell(target.id, target.role, target.kind, answer.source, answered)
                )
                done.add(target.id)
                anchor = target.id
            continue
        if target is None:
            keep(cell)
            continue
        own = same_text(cell.source) != same_text(target.source)
        again = target.id in done
        if target.role in (Role.EXERCISE, Role.QUESTION):
            if own:  # an untouched copy would undo the answer
                keep(cell)
            continue
        if not again:
            anchor = target.id
            done.add(target.id)
        if target.role == Role.SETUP:
            if not again:
                placed.append(_released(target))
            if own:
                repairs.append(
                    f"{says(target)} was changed: it runs as released"
                    + (", and your text after it." if cell.source.strip() else ".")
                )
                keep(cell)
        elif target.role == Role.DEMO:
            if again:
                keep(cell)
            else:
                placed.append(StudentCell(target.id, Role.DEMO, "code", cell.source, own))
        elif target.role == Role.CHECK:
            if own and not again:
                repairs.append(f"{says(target)} was changed: the released one counts.")
        elif own:
            repairs.append(f"{says(target)} was changed: your text is kept after it.")
            keep(cell)
    _say_lost_checks(lesson, done, repairs)
    return placed


def _say_lost_checks(lesson: Lesson, done: set[str], repairs: list[str]) -> None:
    for target in lesson.with_role(Role.CHECK):
        if target.id not in done:
            repairs.append(f"{says(target)} was missing: it is put back.")


def _with_missing(
    lesson: Lesson, placed: list[StudentCell], repairs: list[str]
) -> list[StudentCell]:
    """Puts released cells that are not there behind the one that they follow in the lesson."""
    placed, before = list(placed), None
    order = {target.id: i for i, target in enumerate(lesson.cells)}
    for target in lesson.cells:
        if target.role not in (Role.EXERCISE, Role.QUESTION, Role.SETUP, Role.DEMO):
            continue
        if not any(cell.id == target.id for cell in placed):
            place = next((i + 1 for i, cell in enumerate(placed) if cell.id == before), 0)
            while place < len(placed) and _stands_before(placed[place], target, order):
                place += 1
            placed.insert(place, _released(target))
            repairs.append(f"{says(target)} was missing: it is put back as released.")
        before = target.id
    return placed


def _stands_before(cell: StudentCell, target: Cell, order: dict[str, int]) -> bool:
    own = cell.role in (Role.ADDED, Role.NOTE)
    return own and order.get(cell.after, -1) < order[target.id]


def _released(target: Cell) -> StudentCell:
    return StudentCell(target.id, target.role, target.kind, target.source, False)


def _numbered(placed: list[StudentCell]) -> tuple[StudentCell, ...]:
    count, out = 0, []
    for cell in placed:
        if cell.role in (Role.ADDED, Role.NOTE):
            count += 1
            name = f"added-{count}"
            cell = StudentCell(name, cell.role, cell.kind, cell.source, True, cell.after)
        out.append(cell)
    return tuple(out)


def says(target: Cell) -> str:
    """A released cell in words, at the start of a sentence."""
    words = {
        Role.EXERCISE: "The answer cell",
        Role.QUESTION: "The question",
        Role.SETUP: "The setup cell",
        Role.CHECK: "The check",
        Role.DEMO: "The example cell",
    }
    name = target.task if target.role == Role.CHECK else target.id
    return f"{words.get(target.role, 'The text cell')} {name!r}"


def rebuild(lesson: Lesson, submission: Submission) -> NotebookNode:
    """The released notebook with the student's text in it, and nothing else of the student's.

    Answers and examples stand in the released cells; the student's own cells stand behind the
    released cell that they followed. Metadata is the lesson's; there are no outputs.
    """
    notebook = copy.deepcopy(lesson.notebook)
    text = {
        c.id: c.source
        for c in submission.cells
        if c.role in (Role.EXERCISE, Role.QUESTION, Role.DEMO)
    }
    own: dict[str, list[NotebookNode]] = {}
    for cell in submission.cells:
        if cell.role in (Role.ADDED, Role.NOTE):
            own.setdefault(cell.after, []).append(_new(cell))
    cells = own.get("", [])
    for cell in notebook.cells:
        cell.source = text.get(cell.id, cell.source)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells += [cell, *own.get(cell.id, [])]
    notebook.cells = cells
    return notebook


def _new(cell: StudentCell) -> NotebookNode:
    make = nbformat.v4.new_code_cell if cell.role == Role.ADDED else nbformat.v4.new_markdown_cell
    return make(cell.source, id=cell.id)
