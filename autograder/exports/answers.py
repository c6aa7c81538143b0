"""Questions that a person marks: a class' answers on one page, and marks from a sheet.

Marks go where formgrader puts them: into nbgrader's gradebook, as a person's score and comment. So
no regrade touches them, and the feedback page shows them.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.classroom.book import Book
from autograder.course.course import Course
from autograder.course.lesson import Cell, Lesson
from autograder.course.settings import CourseError, did_you_mean
from autograder.exports.marked import Class, Marked, grade_ids, questions
from autograder.exports.tables import as_csv
from autograder.grading.grade import model_answers
from autograder.reports.feedback import render
from autograder.reports.report import number

SHEET = ("student", "name", "points", "of", "comment", "answer")
SCHEME = "**Marking scheme.**"
LONGEST_COMMENT = 10_000


@dataclass(frozen=True)
class HandMark:
    """A mark that a person gives. line: of the sheet, for what is said of it."""

    student: str
    points: float
    comment: str = ""
    line: int = 0


def question(lesson: Lesson, task: str) -> Cell:
    """The question of that name; a sentence where there is none."""
    found = {cell.task: cell for cell in questions(lesson)}
    if task in found:
        return found[task]
    there = ", ".join(found) or "none"
    raise CourseError(
        f"{lesson.name} has no question {task!r} that a person marks; it has {there}."
        f"{did_you_mean(task, found)}"
    )


def answer_of(student: Marked, cell: Cell) -> str:
    """What a student wrote; '' where it is empty, or as it was released."""
    cells = student.record.submission.cells if student.record else ()
    return next((c.source.strip() for c in cells if c.id == cell.id and c.answered), "")


def page(marked: Class, course: Course, task: str) -> str:
    """All answers to one question on one page, each text once; with the scheme in view."""
    marked, cell = marked.told_apart(), question(marked.lesson, task)
    model, _, scheme = model_answers(course, marked.lesson.name).get(cell.id, "").partition(SCHEME)
    groups: dict[str, list[Marked]] = {}
    for student in marked.handed_in:
        groups.setdefault(answer_of(student, cell), []).append(student)
    blank = groups.pop("", [])
    return render(
        "answers.html",
        lesson=marked.lesson.name,
        task=task,
        most=cell.points,
        asked=_asked(marked.lesson, cell),
        model=model.strip(),
        scheme=scheme.strip(),
        steps=[number(step) for step in steps(scheme, cell.points)],
        groups=[(text, [(s, s.marks.get(task)) for s in who]) for text, who in groups.items()],
        blank=[s.name for s in blank],
        open=sum(s.marks[task].points is None for s in marked.handed_in if task in s.marks),
    )


def _asked(lesson: Lesson, cell: Cell) -> str:
    """The text that stands above the answer."""
    place = lesson.cells.index(cell)
    return lesson.cells[place - 1].source if place else ""


def steps(scheme: str, most: float) -> list[float]:
    """The points that a scheme gives for parts, and what they add up to: 0, 0.25, ... 1."""
    named = {float(n) for n in re.findall(r"(?<![\w.])\d+\.\d+(?!\w|\.\d)", scheme)}
    parts = [n for n in named if 0 < n < most and (n * 8).is_integer()]
    step = min(parts, default=most)
    whole = all(math.isclose(n / step % 1, 0, abs_tol=1e-9) for n in [*parts, most])
    return [step * i for i in range(round(most / step) + 1)] if whole else sorted({0, *parts, most})


def sheet(marked: Class, task: str) -> str:
    """A CSV to write marks into: one row for each student who handed in something."""
    cell = question(marked.lesson, task)
    rows: list[Sequence] = [SHEET]
    for s in marked.handed_in:
        mark = s.marks.get(task)
        points, comment = (mark.points, mark.comment) if mark and mark.by_hand else (None, "")
        rows.append((s.id, s.name, points, cell.points, comment, answer_of(s, cell)))
    return as_csv(rows)


def read_sheet(path: Path) -> list[HandMark]:
    """The marks of a sheet; rows without points are left alone."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        first = text.partition("\n")[0]
        comma = ";" if first.count(";") > first.count(",") else ","
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=comma))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"The sheet {path} cannot be read as CSV in UTF-8 ({error}).") from None
    if rows and not {"student", "points"} <= set(rows[0]):
        raise CourseError(f"The sheet {path} needs the columns student and points.")
    out = []
    for line, row in enumerate(rows, start=2):
        given = (row["points"] or "").strip().replace(",", ".")
        if given:
            who, said = _plain(row["student"]), _plain(row.get("comment"))
            out.append(HandMark(who, _number(given, f"{path}, row {line}"), said, line))
    return out


def one(student: str, points: str, comment: str = "") -> HandMark:
    """A mark as it is typed."""
    return HandMark(student, _number(points.replace(",", "."), student), comment)


def _plain(text: str | None) -> str:
    """A cell without the quote that keeps spreadsheets from running it."""
    return re.sub(r"^'(?=\s*[=+@-])", "", (text or "").strip())


def _number(text: str, where: str) -> float:
    with suppress(ValueError):
        found = float(text)
        if math.isfinite(found):
            return found
    raise CourseError(f"{where}: {text!r} is no number of points.")


def write(course: Course, marked: Class, task: str, marks: Sequence[HandMark], url: str) -> int:
    """Writes a person's marks and comments, all or none; how many were written."""
    cell, lesson = question(marked.lesson, task), marked.lesson.name
    known = {s.id: s for s in marked.handed_in}
    for each in marks:
        where = f"row {each.line}: " if each.line else ""
        if each.student not in known:
            near = did_you_mean(each.student, known)
            raise CourseError(f"{where}{each.student!r} has handed in nothing.{near}")
        if not 0 <= each.points <= cell.points:
            raise CourseError(
                f"{where}{number(each.points)} points for {each.student}: {task} is worth "
                f"{number(cell.points)}. More is nbgrader's extra credit, in formgrader."
            )
    if len({m.student for m in marks}) < len(marks):
        raise CourseError("A student stands twice in the sheet; nothing was written.")
    book, cell_id = Book(course, url, lambda text: None), grade_ids(marked.lesson)[task]
    try:
        with Gradebook(book.url, course.settings.id) as gradebook:
            for each in marks:
                where = cell_id, lesson, lesson, each.student
                grade = gradebook.find_grade(*where)
                grade.manual_score, grade.needs_manual_grade = each.points, False
                if each.comment:
                    found = gradebook.find_comment(*where)
                    found.manual_comment = each.comment[:LONGEST_COMMENT]
            gradebook.db.commit()
        for each in marks:  # so that nbgrader makes the feedback pages anew
            with suppress(OSError):
                os.utime(book.notebook(each.student, lesson))
    finally:
        book.close()
    return len(marks)
