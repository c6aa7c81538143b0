"""The roster of a class: a CSV with names, sections, extensions, and the numbers platforms use.

Columns may come in any order and under the names that platforms give them: a gradebook that Canvas
exported and Moodle's list of participants are rosters as they are. Only one that tells students
apart is needed: `id`, `email`, `login` or `canvas_id`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.course.settings import CourseError
from autograder.exports.marked import Class, Marked

LARGEST = 20_000_000  # characters
# What a column may be called; compared without case, blanks and marks.
NAMES = {
    "id": ("id", "studentid", "idnumber", "sid", "sisuserid", "studentnumber", "matriculation"),
    "name": ("name", "student", "fullname", "studentname"),
    "first_name": ("firstname", "givenname"),
    "last_name": ("lastname", "surname", "familyname"),
    "email": ("email", "emailaddress", "mail"),
    "section": ("section", "sections", "group", "groups"),
    "extension": ("extension", "extensiondays", "due", "duedate"),
    "login": ("login", "username", "sisloginid", "user"),
    "canvas_id": ("canvasid",),
}


@dataclass(frozen=True)
class Entry:
    """One student of the roster. extension: a due date of their own, or days more."""

    id: str = ""
    name: str = ""
    email: str = ""
    section: str = ""
    extension: datetime | timedelta | None = None
    login: str = ""
    canvas_id: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """What may stand for this student elsewhere."""
        return tuple(k.casefold() for k in (self.id, self.login, self.canvas_id, self.email) if k)


def read_roster(path: Path) -> list[Entry]:
    """The students of a roster; a sentence with file and line for what cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"The roster {path} cannot be read as UTF-8 ({error}).") from None
    lines = text[:LARGEST].splitlines()
    comma = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    try:
        rows = list(csv.reader(io.StringIO(text[:LARGEST]), delimiter=comma))
    except csv.Error as error:
        raise CourseError(f"The roster {path} is no CSV ({error}).") from None
    if not rows:
        raise CourseError(f"The roster {path} is empty.")
    columns = _columns(rows[0])
    if not {"id", "email", "login", "canvas_id"} & set(columns.values()):
        raise CourseError(
            f"The roster {path} has the columns {', '.join(map(repr, rows[0])) or 'nothing'}; one "
            "of them has to tell students apart: id, email, login or canvas_id."
        )
    entries, seen = [], {}
    for line, row in enumerate(rows[1:], start=2):
        cells = {name: row[place].strip() for place, name in columns.items() if place < len(row)}
        if not any(cells.values()) or "Points Possible" in row[0]:  # Canvas's second row
            continue
        entry = _entry(cells, path, line)
        for key in entry.keys:
            if seen.setdefault(key, line) != line:
                raise CourseError(f"{path}, line {line}: {key!r} stands in line {seen[key]} too.")
        entries.append(entry)
    return entries


def _columns(header: Sequence[str]) -> dict[int, str]:
    """The columns that are known, by place. Canvas calls its own number 'ID', beside the SIS's."""
    plain = [re.sub(r"[^a-z]", "", each.lower()) for each in header]
    of_canvas = "sisloginid" in plain or "sisuserid" in plain
    found: dict[int, str] = {}
    for place, name in enumerate(plain):
        known = next((k for k, names in NAMES.items() if name in names), None)
        if of_canvas and name == "id":
            known = "canvas_id"
        if known is not None and known not in found.values():
            found[place] = known
    return found


def _entry(cells: dict[str, str], path: Path, line: int) -> Entry:
    whole = " ".join(filter(None, (cells.pop("first_name", ""), cells.pop("last_name", ""))))
    extension = cells.pop("extension", "")
    try:
        more = _extension(extension)
    except (ValueError, OverflowError):
        raise CourseError(
            f"{path}, line {line}: the extension {extension!r} is neither a number of days, such "
            "as 2, nor a date, such as 2026-03-05 12:00 UTC."
        ) from None
    return Entry(**{**cells, "name": cells.get("name") or whole, "extension": more})


def _extension(text: str) -> datetime | timedelta | None:
    if not text:
        return None
    if re.fullmatch(r"\d{1,3}(?:\.\d+)?", text):
        return timedelta(days=float(text))
    return parse_utc(text)


def joined(marked: Class, roster: Sequence[Entry]) -> tuple[Class, list[str]]:
    """The class with what the roster says of it, and sentences about who is in one of them only.

    Who is in the roster and handed in nothing gets a place without marks. A student is found by
    any of the roster's numbers, or else by a name that only one of them has.
    """
    by_key = {key: entry for entry in roster for key in entry.keys}
    names: dict[str, list[Entry]] = {}
    for entry in roster:
        names.setdefault(entry.name.casefold(), []).append(entry)
    told, students, met = [], [], set()
    for student in marked.students:
        entry = by_key.get(student.id.casefold()) or by_key.get(student.email.casefold())
        same = names.get(student.name.casefold(), []) if student.name else []
        if entry is None and len(same) == 1:
            entry = same[0]
        if entry is None:
            told.append(f"{student.id} is not in the roster.")
            students.append(student)
        elif id(entry) in met:
            told.append(f"{student.id} is a second one for {entry.name or entry.keys[0]}.")
            students.append(student)
        else:
            met.add(id(entry))
            students.append(_with(student, entry))
    for entry in roster:
        if id(entry) not in met:
            who = entry.id or entry.login or entry.email or entry.canvas_id
            students.append(_with(Marked(who, entry.name or who), entry))
    students.sort(key=lambda s: (s.name.casefold(), s.id))
    return replace(marked, students=tuple(students)), told


def _with(student: Marked, entry: Entry) -> Marked:
    due = student.due
    if isinstance(entry.extension, datetime):
        due = entry.extension
    elif entry.extension is not None and due is not None:
        due = due + entry.extension
    return replace(
        student,
        name=entry.name or student.name,
        email=entry.email or student.email,
        section=entry.section,
        due=due,
        login=entry.login,
        platform=entry.canvas_id,
        sis=entry.id,
    )
