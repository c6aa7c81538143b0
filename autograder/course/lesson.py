"""A lesson as it was released: the cells, what each is for, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import nbformat
from nbformat import NotebookNode


class Role(StrEnum):
    """What a cell is for."""

    TEXT = "text"
    DEMO = "demo"  # code to run and change
    SETUP = "setup"  # imports; locked, run before every question
    EXERCISE = "exercise"  # the student's answer
    CHECK = "check"  # worth points
    QUESTION = "question"  # marked by a person
    ADDED = "added"  # a code cell of the student's own
    NOTE = "note"  # a text of the student's own


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson as it was released.

    of: for a check, the id of the exercise that it judges. needs: ids of exercises whose model
    answer is loaded before this one is judged.
    """

    id: str
    kind: str  # "code" | "markdown"
    role: Role
    source: str
    task: str = ""
    points: float = 0.0
    of: str = ""
    needs: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()  # for shape comments: how to build and call what is defined


@dataclass(frozen=True)
class Lesson:
    """A released notebook, read as the manifest of what is asked and what it is worth."""

    name: str
    cells: tuple[Cell, ...]
    notebook: NotebookNode = field(compare=False, repr=False)

    def with_role(self, role: Role) -> tuple[Cell, ...]:
        return tuple(c for c in self.cells if c.role == role)

    def cell(self, cell_id: str) -> Cell:
        return next(c for c in self.cells if c.id == cell_id)

    @property
    def tasks(self) -> tuple[Cell, ...]:
        """The cells that are worth points, in order: checks and questions."""
        return tuple(c for c in self.cells if c.role in (Role.CHECK, Role.QUESTION))


def read_lesson(name: str, text: str) -> Lesson:
    """A released notebook from its file's text; our own, so that its metadata is to be trusted."""
    notebook = nbformat.reads(text, as_version=4)
    return Lesson(name, tuple(_cell(c) for c in notebook.cells), notebook)


def _cell(cell: NotebookNode) -> Cell:
    course = cell.metadata.get("course", {})
    return Cell(
        id=cell.id,
        kind=cell.cell_type,
        role=Role(course.get("role", Role.TEXT if cell.cell_type == "markdown" else Role.DEMO)),
        source=cell.source,
        task=course.get("task", ""),
        points=float(cell.metadata.get("nbgrader", {}).get("points", 0)),
        of=course.get("of", ""),
        needs=tuple(course.get("needs", ())),
        calls=tuple(course.get("calls", ())),
    )
