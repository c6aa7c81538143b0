"""What a student handed in, as plain data: the cells that count, in the student's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from autograder.course.lesson import Role


class RawCell(NamedTuple):
    """A cell as it stands in the student's file; only its text will be believed."""

    kind: str  # "code" | "markdown" | "raw"
    id: str
    grade_id: str
    source: str


@dataclass(frozen=True)
class StudentCell:
    """One cell of a submission, after repair.

    id: the released cell's id; "added-1", "added-2", ... for the student's own cells.
    role: as in the lesson; ADDED or NOTE for a cell of the student's own. kind: "code" |
    "markdown". answered: whether the
    text differs from the released one. after: for an own cell, the released cell that it stands
    behind, "" at the top.
    """

    id: str
    role: Role
    kind: str
    source: str
    answered: bool
    after: str = ""


@dataclass(frozen=True)
class Submission:
    """One notebook file, read and repaired.

    notebook: the path as it was given. lesson: the lesson's name, if it could be told. repairs:
    what was put right, one sentence each. error: why nothing could be read, else None.
    """

    notebook: str
    lesson: str | None
    cells: tuple[StudentCell, ...]
    repairs: tuple[str, ...]
    error: str | None
