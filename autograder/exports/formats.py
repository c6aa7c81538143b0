"""Marks as learning platforms read them: plain CSV, Canvas's gradebook, Moodle's grade import."""

from __future__ import annotations

from collections.abc import Callable

from autograder.exports.marked import Class, Marked
from autograder.exports.tables import as_csv

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


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
    one of that title, or a new one. The row 'Points Possible' says what it is worth. A blank cell
    would take away the mark that Canvas has: who has none here gets no row. A name that several
    have, of whom Canvas may know no number, is followed by the id, so that Canvas asks whose it is.
    """
    rows: list[tuple] = [(*CANVAS, column or marked.lesson.name)]
    rows.append(("    Points Possible", "", "", "", "", marked.most))
    apart = {s.id: s.name for s in marked.told_apart().students}
    for s in with_points(marked, zeros):
        plain_number = s.id.isascii() and s.id.isdecimal()
        number = s.platform or (s.id if plain_number and not s.sis else "")
        sis = s.sis if s.sis != number else ""
        login = s.login or ("" if number or sis else s.id)
        name = _one_line(s.name if s.listed else apart[s.id])
        rows.append((name, number, sis, login, s.section, points(s, zeros)))
    return as_csv(rows)


def moodle(marked: Class, zeros: bool = False, column: str = "") -> str:
    """Moodle's grade import (Grades > Import > CSV file): one grade item and its feedback.

    Map 'ID number' or 'Email address' to the user, and the last two columns to the item and to its
    feedback: Moodle wants both, or it loses the other. Each column that may say who it is has
    something in every row, for Moodle gives the marks of a row with a blank one to the student
    before it. A user whom Moodle does not know stops the whole import, so who is not in the roster
    gets no row, nor who has no mark: a blank cell would take away the one that Moodle has.
    """
    item = column or marked.lesson.name
    students, _ = _for_moodle(marked, zeros)
    columns = [name for name, of in MOODLE_KEYS.items() if students and all(map(of, students))]
    rows: list[tuple] = [(*MOODLE_NAMES, *columns, item, f"{item} (feedback)")]
    for s in students:
        said = feedback(s) if s.marks else "nothing handed in"
        names = map(_one_line, _two_names(s.name))
        rows.append((*names, *(MOODLE_KEYS[c](s) for c in columns), points(s, zeros), said))
    return as_csv(rows)


def _moodle_number(s: Marked) -> str:
    """The ID number: the roster's; the id, where nothing else is known of the student."""
    return s.sis or ("" if s.listed or s.email or "@" in s.id else s.id)


def _moodle_address(s: Marked) -> str:
    return s.email or (s.id if "@" in s.id else "")


MOODLE_NAMES = ("First name", "Last name")
MOODLE_KEYS = {"ID number": _moodle_number, "Email address": _moodle_address}


def _for_moodle(marked: Class, zeros: bool) -> tuple[list[Marked], list[Marked]]:
    """Who gets a row: who has a mark, is in the roster where there is one, and has what most have
    of number and address. And who has a mark and gets none."""
    some = with_points(marked, zeros)
    roster = any(s.listed for s in marked.students)
    known = [s for s in some if s.listed or not roster]
    best = max(MOODLE_KEYS.values(), key=lambda of: sum(bool(of(s)) for s in known))
    rows = [s for s in known if best(s)]
    return rows, [s for s in some if s not in rows]


def with_points(marked: Class, zeros: bool) -> list[Marked]:
    """Those whose mark goes to a platform."""
    return [s for s in marked.students if points(s, zeros) is not None]


def remarks(marked: Class, format: str, zeros: bool) -> list[str]:
    """What one has to know before a file goes to a platform, in sentences."""
    if format not in ("canvas", "moodle"):
        return []
    said = []
    platform, roster = format.capitalize(), any(s.listed for s in marked.students)
    if not roster and format == "canvas":
        said.append(
            "Without --roster a student's number or login has to be Canvas's own; Canvas's "
            "gradebook (Grades > Export) is the roster that makes sure."
        )
    if not roster and format == "moodle":
        said.append(
            "Without --roster a student's id has to be Moodle's ID number or address; Moodle's "
            "list of participants is the roster that makes sure."
        )
    nothing = len(marked.students) - len(with_points(marked, zeros))
    if nothing:
        said.append(
            f"{nothing} handed in nothing and {'have' if nothing > 1 else 'has'} no row, so that "
            f"{platform} keeps what it has; with --zeros they get 0."
        )
    if format == "moodle":
        rows, left = _for_moodle(marked, zeros)
        names = [name for name, of in MOODLE_KEYS.items() if rows and all(map(of, rows))]
        if rows:
            said.append(f"In Moodle, map {' or '.join(map(repr, names))} to the user.")
        if left:
            said.append(
                f"Not in the file, because Moodle would not know them: "
                f"{', '.join(s.id for s in left)}."
            )
    return said


def _one_line(text: str) -> str:
    return " ".join(text.split())


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
