"""How learning platforms name the files of their exports: each convention in a function of its own,
with an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from autograder.intake.collect import Entry
from autograder.intake.read import Unreadable

LONGEST_INFO = 1_000_000  # bytes of Blackboard's text beside a submission
LESSON = re.compile(r"\d\d_\w+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+")
_CANVAS = re.compile(
    r"(?:(?P<name>.*?)_)??(?P<id>[0-9]+|anon_[0-9A-Za-z]{5,})_"
    r"(?:(?P<number>[0-9]+)_(?P<file>.+)|(?:text|link)\.html)",
    re.DOTALL,
)
_ATTEMPT = re.compile(r"_attempt_([0-9]{4}(?:-[0-9]{2}){5})(?:_(?P<file>.+)|\.txt)?\Z", re.DOTALL)
_INFO_NAME = re.compile(r"Name: (?P<name>[^\n]{1,300}) \((?P<id>[^()\n]{1,300})\)\s*$")
TIMESTAMP = "timestamp.txt"  # beside submissions, and nobody's


class Owner(NamedTuple):
    """What a path says of who handed in what lies there.

    key: equal for the same student only. attempt and number: the larger, the newer. file: the
    path that the student gave it. its_own: whether it is a file of the platform's, not a student's.
    """

    key: tuple
    id: str
    name: str
    file: tuple[str, ...] = ()
    lesson: str | None = None
    late: bool | None = None
    handed_in: str = ""
    attempt: str = ""
    number: int = 0
    section: str = ""
    its_own: bool = False


# --- Canvas --------------------------------------------------------------------------------------
def canvas(name: str) -> Owner | None:
    """'doejane_LATE_1234_56789_05_homework-1.ipynb': name, LATE, user's id, file's id, file.

    The name is the sortable one in small letters without blanks and marks; without one, the
    assignment is anonymous: 'anon_x7Kd2_56789_x.ipynb'. Words typed in, or an address:
    'doejane_1234_text.html', 'doejane_1234_link.html'. (Canvas, lib/content_zipper.rb)
    """
    match = _CANVAS.fullmatch(name)
    if match is None:
        return None
    student, late = without_late(match["name"] or "")
    number = int(match["number"][:18]) if match["number"] else 0
    file = (match["file"] or name.rpartition("_")[2],)
    who = match["id"]
    return Owner(("canvas", who), who, student or who, file, late=late, number=number)


def without_late(name: str) -> tuple[str, bool]:
    """A name without the word LATE that a platform put before or behind it, and whether it did.

    Canvas writes names in small letters and LATE in large ones. The word in small letters, as older
    exports have it, stands beside a name; a name that is nothing else is a name.
    """
    words = name.split("_")
    for place in (-1, 0):
        if words[place] == "LATE" or (words[place].lower() == "late" and len(words) > 1):
            del words[place]
            return "_".join(words), True
    return name, False


# --- Moodle --------------------------------------------------------------------------------------
def moodle(parts: tuple[str, ...]) -> Owner | None:
    """'Jane Doe_1234567_assignsubmission_file/05_homework.ipynb': full name, participant's id.

    Before Moodle 4 with '_' at the end of the folder; with folders off
    'Jane Doe_1234567_assignsubmission_file_05_homework.ipynb'; words typed in lie in
    'Jane Doe_1234567_assignsubmission_onlinetext/onlinetext.html'. Of a group the group's name and
    id; nobody's group has no id. (Moodle, mod/assign/classes/downloader.php)
    """
    before, found, after = parts[0].partition("_assignsubmission_")
    if not found:
        return None
    name, _, number = before.rpartition("_")
    if not _NUMBER.fullmatch(number):
        name, number = before, ""
    file = after.partition("_")[2]
    rest = (file,) if len(parts) == 1 else parts[1:]
    return Owner(("moodle", number or name), number or name, name or number, rest)


# --- Blackboard ----------------------------------------------------------------------------------
def blackboard(name: str, info: Mapping[str, tuple[str, str]]) -> Owner | None:
    """'Homework 5_jdoe_attempt_2024-01-31-12-00-00_05_homework.ipynb': assignment, login, time.

    Beside it lies 'Homework 5_jdoe_attempt_2024-01-31-12-00-00.txt', which begins with
    'Name: Jane Doe (jdoe)'; each attempt has its own. nbgrader's zip_collect reads such names too.
    info: (login, name) by what stands before '_attempt_'.
    """
    match = _ATTEMPT.search(name)
    if match is None:
        return None
    before = name[: match.start()]
    login, full = info.get(before, (before.rpartition("_")[2], ""))
    day, time = match[1][:10], match[1][11:].replace("-", ":")
    return Owner(
        ("blackboard", login),
        login,
        full or login,
        (match["file"],) if match["file"] else (),
        handed_in=f"{day} {time}",
        attempt=match[1],
        its_own=not match["file"],
    )


def blackboard_names(entries: Iterable[Entry]) -> dict[str, tuple[str, str]]:
    """Login and name of each student, from Blackboard's own texts, by the start of file names."""
    found = {}
    for entry in entries:
        match = _ATTEMPT.search(entry.name) if len(entry.parts) == 1 else None
        if match is None or match["file"] or not entry.name.endswith(".txt"):
            continue
        try:
            text = entry.read(LONGEST_INFO)[:2_000].decode("utf-8-sig", "replace")
        except Unreadable:
            continue
        before = entry.name[: match.start()]
        for line in text.splitlines()[:10]:
            said = _INFO_NAME.fullmatch(line)
            if said and before.endswith("_" + said["id"]):
                found[before] = (said["id"], said["name"].strip())
                break
    return found


# --- folders of one student each, nbgrader's tree, notebooks side by side ------------------------
def folder(parts: tuple[str, ...]) -> Owner:
    """'submitted/jdoe/05_homework/05_homework.ipynb' as nbgrader keeps it; 'jdoe/work.ipynb'."""
    lesson = parts[1] if len(parts) > 1 and LESSON.fullmatch(parts[1]) else None
    rest = parts[2:] if lesson else parts[1:]
    its_own = rest == (TIMESTAMP,) and lesson is not None
    return Owner(("folder", parts[0]), parts[0], parts[0], rest, lesson, its_own=its_own)


def single(entry: Entry) -> Owner:
    """'jdoe.ipynb' among others."""
    stem = entry.stem if entry.notebook else entry.name.rpartition(".")[0] or entry.name
    name, late = without_late(stem)
    return Owner(("folder", name), name, name, entry.parts, late=late or None)
