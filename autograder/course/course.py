"""A course is a folder: its settings, its lessons, its exercises, and what their answers are.

`Course.find()` opens the one that this process works in, and it is passed on from there. An
instructor's folder holds sources and answers; the students' hand-out holds the same lessons and
checks as data (`course/data.py`), and no answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course import released
from autograder.course.lesson import Cell, Lesson, Role, read_lesson
from autograder.course.settings import (
    CourseError,
    NoCourse,
    Settings,
    did_you_mean,
    has_settings,
    read_settings,
)

if TYPE_CHECKING:  # who reads lessons and settings waits for no torch
    from autograder.course.answers import Answers
    from autograder.course.asking import Exercise
    from autograder.course.calls import Call
    from autograder.course.data import Checks
    from autograder.course.exercises import Exercises, Written

SECRET = ("*.py", "*.ipynb")  # what of sources and exercises no student's code may read


_stayed: list[Path] = []  # the last is the course of folders that are none


@dataclass(frozen=True)
class Course:
    """One course. `Course.find` and `Course.at` open it; what is asked for is read then, once."""

    folder: Path
    settings: Settings

    @classmethod
    def find(cls, start: Path | None = None) -> Course:
        """The course at `start` (by default the current folder) or above it.

        `AUTOGRADER_COURSE` names another. Where there is none, the one that this process was told
        to stay in (see `stay`), then the one that the engine's own folder lies in, as in a clone
        of this repository. Raises `NoCourse` where there is none at all.
        """
        named = os.environ.get("AUTOGRADER_COURSE")
        if named:
            return cls.at(Path(named))
        here = Path(start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if has_settings(folder):
                return cls.at(folder)
        for folder in (*_stayed[-1:], Path(__file__).parents[2]):
            if has_settings(folder):
                return cls.at(folder)
        raise NoCourse(
            f"No course was found at {here} or above it: no pyproject.toml with a table "
            "[tool.autograder]. Run this from the course's folder, or set AUTOGRADER_COURSE to it."
        )

    def stay(self) -> Course:
        """Makes this the course of folders that are none: nbgrader may work in such a one."""
        _stayed.append(self.folder)
        return self

    @classmethod
    def at(cls, folder: Path) -> Course:
        """The course in this very folder, the same object each time."""
        return _opened(Path(folder).resolve())

    @cached_property
    def lessons(self) -> dict[str, Lesson]:
        """All lessons by name, in order, as they were released."""
        texts = released.texts(self.folder, self.settings.sources)
        return {name: read_lesson(name, text) for name, text in texts.items()}

    @property
    def has_answers(self) -> bool:
        """Whether expected values can be computed here: not so in the students' hand-out."""
        return (self.folder / self.settings.exercises).is_dir()

    def need_answers(self) -> None:
        """Raises `CourseError` in the students' hand-out, where there are none."""
        if not self.has_answers:
            raise CourseError(
                "This command is the instructor's; the hand-out has no answers in it."
            )

    @cached_property
    def written(self) -> dict[str, Written]:
        """The exercises as their authors wrote them, by task; empty in the hand-out."""
        if not self.has_answers:
            return {}
        return dict(self._library)

    @cached_property
    def _library(self) -> Exercises:
        """The same; of its files only those are imported that are asked for."""
        from autograder.course.exercises import Exercises

        return Exercises(self.folder / self.settings.exercises)

    def exercise(self, task: str) -> Exercise:
        """One exercise that a machine marks."""
        return self._library[task].exercise if self.has_answers else self._checks.exercises[task]

    @cached_property
    def _checks(self) -> Checks:
        from autograder.course.data import CHECKS, Checks

        path = self.folder / CHECKS
        if not path.exists():
            raise CourseError(
                f"{self.folder} has neither exercises ({self.settings.exercises}) nor a hand-out's "
                f"{CHECKS}. Take the missing files anew from where you got the folder."
            )
        return Checks(path)

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """Every exercise that a machine marks, by task."""
        if self.has_answers:
            return {task: each.exercise for task, each in self.written.items()}
        return self._checks.exercises

    def public_calls(self, exercise: Exercise) -> list[Call]:
        """What `check` tries in a student's notebook."""
        from autograder.course.answers import PUBLIC_SEED
        from autograder.course.calls import Draw

        return exercise.cases(Draw(PUBLIC_SEED))

    def answers(self, exercise: Exercise, calls: Sequence[Call]) -> Answers:
        """What should come back for these calls, and what each known mistake gives.

        In the hand-out they are known for the public calls only.
        """
        if self.has_answers:
            from autograder.course.answers import compute

            return compute(self._library[exercise.task], calls)
        return self._checks.answers(exercise.task)

    @cached_property
    def secret_files(self) -> list[Path]:
        """The files that hold answers."""
        folders = [self.folder / self.settings.sources, self.folder / self.settings.exercises]
        return sorted({path for each in folders for name in SECRET for path in each.rglob(name)})

    def check(self) -> None:
        """Raises `CourseError` where something named is not there, with its file and line."""
        for name in self.lessons:
            if not re.match(r"\d\d\w*_", name):
                where = self.folder / self.settings.sources / f"{name}.py"
                raise CourseError(
                    f"{where}: a lesson's name begins with two digits and an underscore, such as "
                    f"01_{name}.py. A file that is no lesson begins with an underscore."
                )
        tasks = {c.task for lesson in self.lessons.values() for c in lesson.with_role(Role.CHECK)}
        checks = (Role.CHECK, Role.DEMO)  # the latter without points: for the student only
        asked = {c.task for x in self.lessons.values() for c in x.cells if c.role in checks}
        for lesson in self.lessons.values():
            for cell in lesson.with_role(Role.CHECK):
                if cell.task not in self.exercises:
                    raise CourseError(
                        f"{self._place(lesson, cell)}: the check {cell.task!r} has no exercise in "
                        f"{self.settings.exercises}.{did_you_mean(cell.task, self.exercises)}"
                    )
        for task, each in self.written.items():
            if task not in asked:
                raise CourseError(
                    f"{each.where}: no lesson asks for {task!r}: a cell "
                    f'`# %% check="{task}" points=1` would, with check("{task}") in it.'
                    f"{did_you_mean(task, tasks)}"
                )
            _check_stages(each)
        cells = {c.id for lesson in self.lessons.values() for c in lesson.with_role(Role.EXERCISE)}
        where = f"{self.folder / 'pyproject.toml'}: [tool.autograder.rubric"
        for name, rubric in self.settings.rubric.items():
            if name not in cells:
                raise CourseError(
                    f"{where}.{name}]: no lesson has an exercise cell of that name."
                    f"{did_you_mean(name, cells)}"
                )
            for task in filter(None, (rubric.layers, rubric.short_task)):
                if task not in tasks:
                    raise CourseError(
                        f"{where}.{name}]: no lesson has a check {task!r}."
                        f"{did_you_mean(task, tasks)}"
                    )
        for lesson in self.lessons.values():
            for cell in lesson.with_role(Role.EXERCISE):
                self._check_calls(lesson, cell)

    def _check_calls(self, lesson: Lesson, cell: Cell) -> None:
        """Raises `CourseError` where the calls for shape comments cannot be read."""
        from autograder.shapes import PlanError, plan

        try:
            if cell.calls:
                plan("; ".join(cell.calls))
        except PlanError as error:
            said = f"{self._place(lesson, cell)}: calls={'; '.join(cell.calls)!r}: {error}"
            raise CourseError(said) from None

    def _place(self, lesson: Lesson, cell: Cell) -> str:
        """File and line of a cell in the lesson's source."""
        path = self.folder / self.settings.sources / f"{lesson.name}.py"
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        for number, line in enumerate(lines, start=1):
            if line.startswith("# %%") and f'"{cell.task}"' in line.replace("'", '"'):
                return f"{path}:{number}"
        return str(path)


@cache
def _opened(folder: Path) -> Course:
    return Course(folder, read_settings(folder))


def _check_stages(each: Written) -> None:
    """Raises `CourseError` where a mistake names a step that the exercise does not have."""
    for mistake in (*each.mistakes, *each.fitted):
        unknown = set(mistake.stage.split() or [""]) - set(each.exercise.stages or [""])
        if unknown:
            steps = ", ".join(each.exercise.stages) or "none (`stages=` names them)"
            raise CourseError(
                f"{getattr(mistake, 'where', '') or each.where}: the mistake {mistake.check!r} "
                f"belongs to the step {mistake.stage!r}; the steps are {steps}."
            )
