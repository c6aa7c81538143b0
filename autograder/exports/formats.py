"""Marks as learning platforms read them: plain CSV, Canvas's gradebook, Moodle's grade import."""

from __future__ import annotations

from collections.abc import Callable

from autograder.exports.marked import Class, Marked
from autograder.exports.tables import as_csv

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Email address")


def points(student: Marked, zeros: bool) -> float | None:
    """The total; nothing for who handed in nothing, unless that is to be a zero."""
    return student.total if student.marks else 0.0 if zeros else None


def plain(marked: Class, zeros: bool = False) -> str:
    """Marks by task and in all, one student a row."""
    tasks = [cell.task for cell in marked.tasks]
    head = ("student", "id", "email", "section", "lesson", "handed_in", "late_hours", *tasks)
    rows = [(*head, "earned", "late_penalty", "total", "max", "not_marked_yet")]
    for s in marked.students:
        own = [s.marks[t].points if t in s.marks else None for t in tasks]
        there = bool(s.marks)
        rows.append(
            (
                s.name,
                s.id,
                s.email,
                s.section,
                marked.lesson.name,
                s.handed_in.isoformat(" ") if s.handed_in else "",
                s.late / 3600 if there else None,
                *([0.0] * len(tasks) if zeros and not there else own),
                s.earned if there or zeros else None,
                s.penalty if there or zeros else None,
                points(s, zeros),
                marked.most,
                s.waiting if there else 0.0,
            )
        )
    return as_csv(rows)


def canvas(marked: Class, zeros: bool = False, column: str = "") -> str:
    """Canvas's gradebook, as its own import reads it (Gradebook > Import).

    Five columns say who it is; Canvas looks for its own number first, then for the SIS's number and
    login, then for the name. A column 'Name (123)' is the assignment with that number, another name
    one of that title, or a new one. The row 'Points Possible' says what it is worth; a blank cell
    changes nothing.
    """
    rows: list[tuple] = [(*CANVAS, column or marked.lesson.name)]
    rows.append(("    Points Possible", "", "", "", "", marked.most))
    for s in marked.students:
        number = s.platform or (s.id if s.id.isdigit() and not s.sis else "")
        sis = s.sis if s.sis != number else ""
        login = s.login or ("" if number or sis else s.id)
        rows.append((s.name, number, sis, login, s.section, points(s, zeros)))
    return as_csv(rows)


def moodle(marked: Class, zeros: bool = False, column: str = "") -> str:
    """Moodle's grade import (Grades > Import > CSV file): one grade item and its feedback.

    Map 'ID number' or 'Email address' to the user, and the last two columns to the item and to its
    feedback: Moodle wants both, or it loses the other. Moodle refuses a file with a user whom the
    course does not have; a grade above the item's maximum is cut there.
    """
    item = column or marked.lesson.name
    rows: list[tuple] = [(*MOODLE, item, f"{item} (feedback)")]
    for s in marked.students:
        first, last = _two_names(s.name)
        said = feedback(s) if s.marks else ""
        number = s.sis or ("" if "@" in s.id else s.id)
        email = s.email or (s.id if "@" in s.id else "")
        rows.append((first, last, number, email, points(s, zeros), said))
    return as_csv(rows)


def _two_names(name: str) -> tuple[str, str]:
    """First and last name of 'Ada Lovelace', or of 'Lovelace, Ada' as Canvas writes it."""
    if ", " in name:
        last, _, first = name.partition(", ")
        return first, last
    first, _, last = name.rpartition(" ")
    return (first, last) if first else (last, "")


def feedback(student: Marked) -> str:
    """A student's marks in one line."""
    said = []
    for task, mark in student.marks.items():
        given = "not marked yet" if mark.points is None else f"{mark.points:g} of {mark.most:g}"
        said.append(f"{task}: {given}")
    if student.penalty:
        said.append(f"late: {-student.penalty:g}")
    return "; ".join(said)


FORMATS: dict[str, Callable[..., str]] = {"csv": plain, "canvas": canvas, "moodle": moodle}
