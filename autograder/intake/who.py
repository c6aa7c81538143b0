"""Who handed in what, by the names that learning platforms give to files (see `platforms`).

What tells students apart is the platform's number or login wherever there is one: two students of
one name stay two. A student with a folder, an entry or a file, but without a notebook, stays in
the list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from autograder.intake import gradescope
from autograder.intake.collect import ARCHIVE, Entry, leads_out, shown
from autograder.intake.platforms import (
    LESSON,
    TIMESTAMP,
    Owner,
    blackboard,
    blackboard_names,
    canvas,
    folder,
    moodle,
    single,
)
from autograder.intake.read import Unreadable

MOST_NOTEBOOKS = 20  # that are looked at for one student and lesson
LONGEST_TIMESTAMP = 200
_EXPORT = re.compile(r"assignment_[0-9]+_export")
_NBGRADER = {"nbgrader_config.py", "gradebook.db", "source", "release", "autograded", "feedback"}
# Beside notebooks in one folder, such files were handed in too; others (a list, notes) were not.
_DOCUMENTS = (".pdf", ".html", ".htm", ".py", ".doc", ".docx", ".odt", ".rtf", *ARCHIVE)


@dataclass(frozen=True)
class Student:
    """Whose work it is. id: what tells students apart; label: a name that no two share."""

    id: str
    name: str
    label: str
    section: str = ""


@dataclass(frozen=True)
class Notebook:
    """One notebook that a student handed in. late: None where nothing says so."""

    entry: Entry
    late: bool | None = None
    handed_in: str = ""


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in for one lesson; for an unknown one where lesson is None.

    notebooks: the one that should count first. without: a sentence that says what there is instead
    of a notebook.
    """

    student: Student
    lesson: str | None
    notebooks: tuple[Notebook, ...]
    without: str = ""
    late: bool | None = None
    handed_in: str = ""


def sort_out(entries: Iterable[Entry], name: str = "") -> tuple[list[HandedIn], list[str]]:
    """Who handed in what, sorted by their names; and sentences about what is left out.

    name: what the source itself is called, for a folder that is one student's.
    """
    entries, said = list(entries), []
    for entry in entries:
        if leads_out(entry):
            said.append(f"{shown(entry.shown)}: {entry.problem}")
    entries = [entry for entry in entries if not leads_out(entry)]
    return _handed_in(_owned(entries, name, said), said), said


# --- from paths to owners ------------------------------------------------------------------------
Owned = tuple[Owner, Entry | None]  # without an entry: somebody of whom nothing lies there


def _owned(entries: list[Entry], name: str, said: list[str]) -> list[Owned]:
    while (top := _wrapper(entries)) is not None:
        entries = _inside(entries, top)
    exports = sorted({e.parts[0] for e in entries if _EXPORT.fullmatch(e.parts[0])})
    if len(exports) > 1:
        return [pair for top in exports for pair in _owned(_inside(entries, top), "", said)]
    metadata = next((e for e in entries if e.parts == (gradescope.METADATA,)), None)
    if metadata is not None:
        return _by_gradescope(entries, metadata, said)
    return _by_names(entries, name, said)


def _inside(entries: list[Entry], top: str) -> list[Entry]:
    below = [e for e in entries if e.parts[0] == top and len(e.parts) > 1]
    return [replace(e, parts=e.parts[1:]) for e in below]


def _wrapper(entries: list[Entry]) -> str | None:
    """The folder that merely holds all the submissions; None where they lie here."""
    tops = {e.parts[0] for e in entries if e.folder or len(e.parts) > 1}
    beside = {e.name for e in entries if len(e.parts) == 1}
    if "submitted" in tops and (len(tops) == 1 or _NBGRADER & beside):
        return "submitted"
    files = [e for e in entries if len(e.parts) == 1 and not e.folder]
    if len(tops) != 1 or any(e.notebook or e.name == gradescope.METADATA for e in files):
        return None
    (top,) = tops
    return None if _is_a_student(top, _inside(entries, top)) else top


def _is_a_student(top: str, inside: list[Entry]) -> bool:
    """Whether a folder that lies alone is one student's, by what is in it."""
    files = [e for e in inside if len(e.parts) == 1 and not e.folder]
    tops = {e.parts[0] for e in inside if e.folder or len(e.parts) > 1}
    if moodle((top,)):
        return True
    if "submitted" in tops or any(moodle(e.parts) for e in inside) or _is_canvas(files):
        return False
    if any(e.name == gradescope.METADATA or blackboard(e.name, {}) for e in files):
        return False
    notebooks = [e.name for e in files if e.notebook]
    if notebooks:
        return len(notebooks) == 1 or any(re.match(r"\d\d_", name) for name in notebooks)
    return len(tops) < 2 or any(LESSON.fullmatch(name) for name in tops)


def _by_names(entries: list[Entry], name: str, said: list[str]) -> list[Owned]:
    if name and _one_students(entries):
        entries = [replace(entry, parts=(name, *entry.parts)) for entry in entries]
    info = blackboard_names(entries)
    side_by_side = [e for e in entries if len(e.parts) == 1 and not e.folder]
    of_canvas = _is_canvas(side_by_side)
    notebooks = any(entry.notebook for entry in side_by_side)
    folders = len(side_by_side) < len(entries)
    owned: list[Owned] = []
    for entry in entries:
        owner = moodle(entry.parts)
        if owner is None and (entry.folder or len(entry.parts) > 1):
            owner = folder(entry.parts)
        elif owner is None:
            owner = blackboard(entry.name, info) or (canvas(entry.name) if of_canvas else None)
            document = (notebooks or not folders) and entry.name.lower().endswith(_DOCUMENTS)
            if owner is None and (entry.notebook or document or (entry.problem and folders)):
                owner = single(entry)
        if owner is not None:
            owned.append((owner, entry))
        elif entry.problem:
            said.append(f"{shown(entry.name)}: {entry.problem}")
    return owned


def _is_canvas(entries: list[Entry]) -> bool:
    """Whether files lie here as Canvas names them: more than half of the notebooks, or, where
    there is none, of all files. 'ada_1_2_tries.ipynb' among others is no file of Canvas's."""
    names = [e.name for e in entries if e.notebook] or [e.name for e in entries]
    return 2 * sum(canvas(name) is not None for name in names) > len(names)


def _one_students(entries: list[Entry]) -> bool:
    """Whether the source is one student's folder, with a folder for each lesson."""
    tops = {entry.parts[0] for entry in entries if entry.folder or len(entry.parts) > 1}
    return bool(tops) and all(LESSON.fullmatch(top) for top in tops)


def _by_gradescope(entries: list[Entry], metadata: Entry, said: list[str]) -> list[Owned]:
    try:
        found = gradescope.read(metadata.read(gradescope.LARGEST))
    except gradescope.Broken as broken:
        found = broken.found
        said.append(f"{gradescope.METADATA}: {broken}; {len(found)} submissions were read from it.")
    except Unreadable as error:
        found = {}
        said.append(f"{gradescope.METADATA} cannot be read: {error}")
    inside: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry is not metadata:
            inside.setdefault(entry.parts[0], []).append(entry)
    owned: list[Owned] = []
    for key, submission in found.items():
        files = inside.pop(key, [])
        for owner in _submitters(key, submission):
            owned += [(owner._replace(file=e.parts[1:] or e.parts), e) for e in files]
            owned += [] if files else [(owner, None)]
    for key, files in inside.items():  # of what the metadata do not name
        owner = Owner(("submission", key), key, key)
        if any(e.folder or e.notebook or len(e.parts) > 1 for e in files):
            owned += [(owner._replace(file=e.parts[1:] or e.parts), e) for e in files]
    return owned


def _submitters(key: str, submission: gradescope.Submission) -> list[Owner]:
    """The people of one submission: one row each, also where they worked as a group."""
    owners = []
    for person in submission.people:
        if not (person.sid or person.email or person.name):
            continue
        apart = (person.sid, person.email, person.name)
        if not (person.sid or person.email):  # a name alone may be another student's too
            apart = (key, *apart)
        who = person.sid or person.email or key
        owner = Owner(("gradescope", *apart), who, person.name or who, section=person.section)
        owners.append(owner)
    if not owners:
        owners.append(Owner(("submission", key), key, key))
    time = submission.created_at
    return [
        owner._replace(
            late=submission.late,
            handed_in=time,
            attempt=time,
            section=owner.section or submission.section,
        )
        for owner in owners
    ]


# --- from owners to students ---------------------------------------------------------------------
def _handed_in(owned: list[Owned], said: list[str]) -> list[HandedIn]:
    students = _students([owner for owner, _ in owned])
    groups: dict[tuple, list[Owned]] = {}
    for owner, entry in owned:
        groups.setdefault((owner.key, owner.lesson), []).append((owner, entry))
    out = []
    lessons = Counter(key for key, _ in groups)
    for (key, lesson), group in groups.items():
        one = _one(students[key], lesson, group, said)
        beside = lesson is None and lessons[key] > 1  # the folders of lessons say what counts
        if one.notebooks or not beside:
            out.append(one)
    return sorted(out, key=_by_student)


def _by_student(one: HandedIn) -> tuple:
    return one.student.label.casefold(), one.lesson is None, one.lesson


def _one(student: Student, lesson: str | None, group: list[Owned], said: list[str]) -> HandedIn:
    ranked = []
    for owner, entry in group:
        if entry is not None and entry.notebook and not entry.problem:
            stem = entry.stem
            named = stem == lesson if lesson else bool(LESSON.fullmatch(stem))
            rank = (owner.attempt, owner.number, named, -len(owner.file), entry.changed, stem)
            ranked.append((rank, Notebook(entry, owner.late, owner.handed_in)))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    if len(ranked) > MOST_NOTEBOOKS:
        said.append(
            f"{student.label} handed in {len(ranked)} notebooks; {MOST_NOTEBOOKS} of them are "
            "looked at."
        )
    notebooks = tuple(notebook for _, notebook in ranked[:MOST_NOTEBOOKS])
    problems = [
        f"{shown(entry.name)}: {entry.problem}"
        for _, entry in group
        if entry is not None and entry.problem
    ]
    if notebooks:
        said += [f"{student.label}: {problem}" for problem in problems[:3]]
    late = [owner.late for owner, _ in group if owner.late is not None]
    time = max((owner.handed_in for owner, _ in group), default="") or _timestamp(group)
    if time:
        notebooks = tuple(replace(n, handed_in=n.handed_in or time) for n in notebooks)
    return HandedIn(
        student,
        lesson,
        notebooks,
        "" if notebooks else _instead(group, problems),
        any(late) if late else None,
        time,
    )


def _instead(group: list[Owned], problems: list[str]) -> str:
    """What there is where there is no notebook, in a sentence."""
    if problems:
        return problems[0]
    files = [
        shown(entry.name if not owner.file else owner.file[-1])
        for owner, entry in group
        if entry is not None and not entry.folder and not owner.its_own
    ]
    if not files:
        return "No notebook was handed in."
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    packed = any(name.lower().endswith(ARCHIVE) for name in files)
    advice = " If it holds the notebook, unpack it first." if packed else ""
    return f"No notebook was handed in, only {', '.join(files[:3])}{more}.{advice}"


def _timestamp(group: list[Owned]) -> str:
    """When nbgrader took it: what stands in timestamp.txt."""
    for owner, entry in group:
        if owner.its_own and entry is not None and entry.name == TIMESTAMP:
            try:
                text = entry.read(LONGEST_TIMESTAMP).decode("utf-8")
            except (Unreadable, UnicodeDecodeError):
                return ""
            return shown(" ".join(text.split()), 60)
    return ""


def _students(owners: Iterable[Owner]) -> dict[tuple, Student]:
    """Everybody once, each with a label of their own."""
    first: dict[tuple, Owner] = {}
    for owner in owners:
        known = first.setdefault(owner.key, owner)
        if known.name == known.id and owner.name != owner.id:
            first[owner.key] = owner
    clean = {key: (_told(owner.id), _told(owner.name)) for key, owner in first.items()}
    shared = Counter(name.casefold() for _, name in clean.values())
    taken = {name for name, times in shared.items() if times == 1}
    numbers: dict[str, count] = {}
    out = {}
    for key, (who, name) in clean.items():
        label = name
        if shared[name.casefold()] > 1:
            base = label = name if who == name else f"{name} ({who})"
            while label.casefold() in taken:
                label = f"{base}-{next(numbers.setdefault(base.casefold(), count(2)))}"
            taken.add(label.casefold())
        section = _told(first[key].section, "")
        out[key] = Student(label if who == name else who, name, label, section)
    return out


def _told(text: str, empty: str = "nobody") -> str:
    """A student's name or number as it may stand in a table, and in a path."""
    return shown(re.sub(r"[/\\]+", "_", text)).strip(". ") or empty
