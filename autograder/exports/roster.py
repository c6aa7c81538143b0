"""The roster of a class: a CSV with names, sections, extensions, and the numbers platforms use.

Columns may come in any order and under the names that platforms give them: a gradebook that Canvas
exported and Moodle's list of participants are rosters as they are. Only one that tells students
apart is needed: `id`, `email`, `login` or `canvas_id`.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
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
    def keys(self) -> dict[str, str]:
        """What may stand for this student elsewhere, by what kind of number or name it is."""
        kinds = {"id": self.id, "login": self.login, "canvas": self.canvas_id, "email": self.email}
        return {kind: key.casefold() for kind, key in kinds.items() if key}


def read_roster(path: Path) -> list[Entry]:
    """The students of a roster; a sentence with file and line for what cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(
            f"The roster {path} cannot be read as UTF-8 ({error}). A spreadsheet saves it so as "
            "'CSV UTF-8'."
        ) from None
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
        for key in entry.keys.items():
            if seen.setdefault(key, line) != line:
                raise CourseError(
                    f"{path}, line {line}: {key[1]!r} stands in line {seen[key]} too. A student of "
                    "several sections has one line, with all of them in its section."
                )
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
    if not re.match(r"\d{4}-\d{1,2}-\d{1,2}\b", text):
        raise ValueError("the 5th of March and the 3rd of May look the same in other forms")
    return parse_utc(text)


def joined(marked: Class, roster: Sequence[Entry]) -> tuple[Class, list[str]]:
    """The class with what the roster says of it, and sentences about who is in one of them only.

    Who is in the roster and handed in nothing gets a place without marks. A student is found by
    any of the roster's numbers, or else by a name that nobody else has in either of them.
    """
    found, told = _found(marked, roster)
    students, met = [], {id(entry) for entry in found.values()}
    by_days = {id(entry) for entry in roster if isinstance(entry.extension, timedelta)}
    for student in marked.students:
        entry = found.get(student.id)
        if entry is None and not told.get(student.id):
            told[student.id] = f"{student.id} is not in the roster."
        students.append(_with(student, entry) if entry else student)
    for entry in roster:
        if id(entry) not in met:
            who = entry.id or entry.login or entry.email or entry.canvas_id
            students.append(_with(Marked(who, entry.name or who, due=marked.due), entry))
    if any(s.due is None and id(found.get(s.id)) in by_days for s in marked.students):
        told[""] = (
            "The roster extends by days, but nothing says when the lesson is due: "
            "[tool.autograder.late] can."
        )
    students.sort(key=lambda s: (s.name.casefold(), s.id))
    return replace(marked, students=tuple(students)), list(told.values())


def _found(marked: Class, roster: Sequence[Entry]) -> tuple[dict[str, Entry], dict[str, str]]:
    """The roster's entry of each student by the student's id; and why somebody has none."""
    by_key: dict[str, list[Entry]] = {}
    by_name: dict[str, list[Entry]] = {}
    for entry in roster:
        for key in set(entry.keys.values()):
            by_key.setdefault(key, []).append(entry)
        for name in _names(entry.name):
            by_name.setdefault(name, []).append(entry)
    found: dict[str, Entry] = {}
    told: dict[str, str] = {}
    met: set[int] = set()

    def take(student: Marked, entries: Sequence[Entry]) -> None:
        if len(entries) != 1:
            return
        if id(entries[0]) in met:
            told[student.id] = (
                f"{student.id} is a second one for "
                f"{entries[0].name or next(iter(entries[0].keys.values()))}."
            )
            return
        met.add(id(entries[0]))
        found[student.id] = entries[0]

    for student in marked.students:
        keys = dict.fromkeys(k.casefold() for k in (student.id, student.email) if k)
        fits = {id(entry): entry for key in keys for entry in by_key.get(key, ())}
        if len(fits) > 1:  # one student's number is another's of another kind
            fits = {k: e for k, e in fits.items() if _names(student.name) & _names(e.name)}
            if len(fits) != 1:
                told[student.id] = f"{student.id} stands for several students of the roster."
        take(student, list(fits.values()))
    times = Counter(name for s in marked.students for name in _names(s.name))
    for student in marked.students:
        if student.id in found or student.id in told:
            continue
        names = {name for name in _names(student.name) if times[name] == 1}
        fits = {id(e): e for name in names for e in by_name.get(name, ())}
        take(student, list(fits.values()))
    return found, told


def _names(name: str) -> set[str]:
    """A name as it is compared: whatever its capitals, blanks and way of writing accents; of
    'Lovelace, Ada' also 'Ada Lovelace'."""
    plain = " ".join(unicodedata.normalize("NFC", name).casefold().split())
    last, comma, first = plain.partition(", ")
    return {plain, f"{first} {last}"} if comma else {plain} if plain else set()


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
        listed=True,
    )
