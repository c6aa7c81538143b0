"""Grades answers to the homework in this process: as marks are given, but for the sandbox.

For programs of our own only: nothing holds them.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from autograder.course.asking import Exercise
from autograder.course.calls import Draw
from autograder.course.course import Course
from autograder.grading.grade import model_answers
from autograder.grading.marking import Asked, Marking
from autograder.grading.observe import seed_for
from autograder.intake.submission import StudentCell, Submission
from autograder.reports.report import Result
from autograder.sandbox.inside import steps
from autograder.sandbox.inside.runner import Runner
from autograder.shapes import record
from tests.asked import known
from tests.conftest import ROOT

LESSON = "05_homework"
SEED = 20260301


class Here:
    """Stands for the sandbox: each child is a namespace of this process."""

    branches, pressed = False, 0

    @contextlib.contextmanager
    def child(self) -> Iterator[Here]:
        child = Here()
        child.runner = Runner({})
        yield child

    def request(self, header: dict, tensors: dict, seconds: float) -> tuple[dict, dict]:
        sys.modules["course_record"] = record  # as they are called in the sandbox
        sys.modules["course_steps"] = steps
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return self.runner.handle(header, tensors)


def asked(exercise: Exercise, seed: int) -> Asked:
    """The homework's calls of one seed, with the answers made once a process."""
    drawn = seed_for(exercise.task, seed)
    return Asked(lambda: exercise.cases(Draw(drawn)), lambda calls: known(exercise.task, drawn))


@dataclass(frozen=True)
class Marks:
    """What one class of the homework earned."""

    results: tuple[Result, ...]

    @property
    def points(self) -> dict[str, float]:
        """By the last word of each task, before deductions and bonus."""
        return {r.task.rpartition(".")[2]: r.earned for r in self.results}

    @property
    def total(self) -> float:
        return sum(r.points for r in self.results)

    @property
    def taken(self) -> dict[str, float]:
        """Deductions and bonus by the name of their check."""
        return {f.check: f.points for r in self.results for f in r.findings if f.points}

    @property
    def said(self) -> list[str]:
        """What is said where something is wrong, each sentence once."""
        found = [f for r in self.results for f in r.findings if f.fails or f.points]
        return list(dict.fromkeys(f.message for f in found))


def grade(cell: str, source: str, seed: int = SEED) -> Marks:
    """Marks of one exercise cell of the homework, 'self_attention' or 'multi_head'."""
    whole = Course.at(ROOT).lessons[LESSON]
    kept = tuple(
        c
        for c in whole.cells
        if c.role == "setup" or c.id == cell or c.role == "check" and c.of == cell
    )
    lesson = replace(whole, cells=kept)
    cells = tuple(
        StudentCell(c.id, c.role, c.kind, source if c.id == cell else c.source, c.id == cell)
        for c in kept
    )
    marking = Marking(
        course=Course.at(ROOT),
        box=Here(),
        lesson=lesson,
        submission=Submission("", LESSON, cells, (), None),
        models=dict(model_answers(Course.at(ROOT), LESSON)),
        asked=lambda exercise: asked(exercise, seed),
    )
    results = marking.results()
    return Marks(tuple(r for r in results if r.max_points))
