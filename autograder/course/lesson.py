"""What the course consists of: its folder, its lessons, its exercises."""

from __future__ import annotations

import importlib
import os
import pkgutil
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

import nbformat
from nbformat import NotebookNode

from autograder.course import released
from autograder.course.asking import Exercise
from autograder.course.released import CourseError

__all__ = ["Cell", "CourseError", "Lesson", "exercises", "lessons", "read_lesson", "root"]


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson as it was released.

    role: 'text', 'demo' (code to run and change), 'setup' (imports; locked), 'exercise' (the
    student's answer), 'check' (worth points), 'question' (marked by a person). of: for a check,
    the id of the exercise that it judges. needs: ids of exercises whose model answer is loaded
    before this one is judged.
    """

    id: str
    kind: str  # "code" | "markdown"
    role: str
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

    def with_role(self, role: str) -> tuple[Cell, ...]:
        return tuple(c for c in self.cells if c.role == role)

    def cell(self, cell_id: str) -> Cell:
        return next(c for c in self.cells if c.id == cell_id)

    @property
    def tasks(self) -> tuple[Cell, ...]:
        """The cells that are worth points, in order: checks and questions."""
        return tuple(c for c in self.cells if c.role in ("check", "question"))


def root() -> Path:
    """The course's folder: `AUTOGRADER_COURSE`, or the nearest one that holds `notebooks/`."""
    named = os.environ.get("AUTOGRADER_COURSE")
    if named:
        return Path(named).resolve()
    here = Path.cwd().resolve()
    package = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, package):
        if (folder / "notebooks").is_dir() and (folder / "transformer_lm").is_dir():
            return folder
    raise CourseError(
        f"No course was found at {here} or above it. Run this from the course's folder (the one "
        "with notebooks/ and transformer_lm/), or set AUTOGRADER_COURSE to it."
    )


@cache
def lessons(folder: Path | None = None) -> dict[str, Lesson]:
    """All lessons by name, such as '05_homework', in order, as they were released.

    Built from the sources, or read from the hand-out's data file; never from `notebooks/`, which
    is where people write their answers.
    """
    texts = released.texts(folder or root())
    return {name: read_lesson(name, text) for name, text in texts.items()}


def read_lesson(name: str, text: str) -> Lesson:
    """A released notebook from its file's text; our own, so that its metadata is to be trusted."""
    notebook = nbformat.reads(text, as_version=4)
    return Lesson(name, tuple(_cell(c) for c in notebook.cells), notebook)


def _cell(cell: NotebookNode) -> Cell:
    course = cell.metadata.get("course", {})
    return Cell(
        id=cell.id,
        kind=cell.cell_type,
        role=course.get("role", "text" if cell.cell_type == "markdown" else "demo"),
        source=cell.source,
        task=course.get("task", ""),
        points=float(cell.metadata.get("nbgrader", {}).get("points", 0)),
        of=course.get("of", ""),
        needs=tuple(course.get("needs", ())),
        calls=tuple(course.get("calls", ())),
    )


@cache
def exercises() -> dict[str, Exercise]:
    """Every exercise that a machine marks, by task name: all `EXERCISES` of `checks/`."""
    import autograder.checks

    found: dict[str, Exercise] = {}
    for module in _modules(autograder.checks):
        for exercise in module.EXERCISES:
            if exercise.task in found:
                raise CourseError(f"two exercises are called {exercise.task!r}")
            found[exercise.task] = exercise
    return found | {task: w.exercise for task, w in written().items()}


@cache
def written() -> dict:
    """The exercises of `solutions/exercises/`, as their authors wrote them."""
    from autograder.course.exercises import load

    return load(root() / "solutions" / "exercises")


@cache
def reference_modules() -> tuple[ModuleType, ...]:
    """The modules of `reference/`, each with `SOLVE` and `MISTAKES`."""
    return tuple(_modules(importlib.import_module("autograder.reference")))


def _modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    found = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return [m for m in found if hasattr(m, "EXERCISES") or hasattr(m, "SOLVE")]
