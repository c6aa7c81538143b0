"""From a notebook file to a report; keeps the warm sandboxes between notebooks.

It runs in the trusted process; the student's code runs only where `observe` and `comments` send
it, in the sandbox. What judges needs torch and is imported when the first answer is judged: a
process that lets others judge never needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course.course import Course
from autograder.course.lesson import Lesson, Role
from autograder.course.settings import CourseError, Given
from autograder.intake.read import read
from autograder.intake.submission import Submission
from autograder.reports.findings import told_once
from autograder.reports.report import Report, Result
from autograder.sandbox import ChildFailed, Limits, Sandbox, copies, files

if TYPE_CHECKING:
    from autograder.course.asking import Exercise
    from autograder.course.calls import Call
    from autograder.grading.marking import Asked

MOST_TOLD = 5000  # answers of which is kept what was found in them
FAULT = (
    "The grader itself failed on this notebook: it has no marks yet, and a person has to look at "
    "it. Please report this with the notebook."
)


class Grader:
    """Grades notebooks one after the other; keeps the warm sandboxes between them.

    A context manager. tier: 'auto' takes the strongest isolation the machine offers. private: a
    seed that makes marks repeatable; by default each question draws its own. limits: what one
    question may use.
    """

    def __init__(
        self,
        tier: str = "auto",
        private: int | None = None,
        course: Course | None = None,
        limits: Limits | None = None,
    ):
        self.course = course or Course.find()
        self.lessons = self.course.lessons
        self.tier, self.private, self.limits = tier, private, limits
        self._stack = ExitStack()
        self._boxes: dict[Given, Sandbox] = {}
        self._kept: dict[str, tuple[int, Asked]] = {}  # by task: a seed, and what it gave
        self._told: tuple[Hashable, dict] = (None, {})  # see `_told_before`
        self._shapes: dict[str, object] = {}  # what was seen of shapes, by the code

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()
        self._boxes.clear()

    @property
    def boxes(self) -> tuple[Sandbox, ...]:
        """The sandboxes that are warm."""
        return tuple(self._boxes.values())

    def box(self, lesson: Lesson) -> Sandbox:
        """The warm sandbox for this lesson's questions."""
        from autograder.course.handout import sandbox_course

        given = replace(self.course.settings.given_to(lesson.name), lessons=())
        if given not in self._boxes:
            files = self._stack.enter_context(sandbox_course(self.course, given))
            box = Sandbox(
                files,
                tier=self.tier,
                limits=self.limits,
                preload=given.preload,
                hide=hidden(self.course),
            )
            self._boxes[given] = self._stack.enter_context(box)
        return self._boxes[given]

    def grade(self, path: Path, expected: str | None = None) -> Report:
        """Grades one notebook file. Never raises for what a student handed in."""
        submission = read(Path(path), self.lessons, expected)
        return self.grade_submission(submission, str(path))

    def grade_submission(
        self,
        submission: Submission,
        name: str = "",
        seed: int | None = None,
        only: Sequence[str] = (),
    ) -> Report:
        """Grades what was read from a file.

        seed: the private seed of this submission, where it is not the grader's. only: the tasks
        that are judged, all where none is named; the report is of these.
        """
        name = name or submission.notebook
        lesson = self.lessons.get(submission.lesson or "")
        lesson = part_of(lesson, only) if lesson else None
        if submission.error or lesson is None:
            error = submission.error or "This is not a notebook of the course."
            worst = nothing_earned(lesson) if lesson else ()
            return Report(
                name,
                submission.lesson,
                "none",
                worst,
                submission.repairs,
                error,
                most(lesson) if lesson else 0.0,
            )
        from autograder.grading.marking import Marking

        box = self.box(lesson)
        models = model_answers(self.course, lesson.name)
        error = None
        private = self.private if seed is None else seed
        ask, told = partial(self._asked, private=private), self._told_before(lesson.name, seed)
        try:
            shapes = {} if seed is None else self._shapes  # of a class, as `told` is
            marking = Marking(self.course, box, lesson, submission, models, ask, told, shapes)
            results = marking.results()
            results = _told_once(results, lesson)
        except (CourseError, ChildFailed):
            raise
        except Exception:  # a fault of ours; the other submissions are graded all the same
            logging.getLogger(__name__).exception("grading %s failed", name)
            results, error = nothing_earned(lesson), FAULT
        return Report(name, lesson.name, box.tier, results, submission.repairs, error, most(lesson))

    def _asked(self, exercise: Exercise, private: int | None) -> Asked:
        """What is asked of an exercise: with one seed the same of everybody, and worked out once.

        Only what the last seed gave is kept, so that the memory does not grow.
        """
        from autograder.grading.marking import Asked

        if private is None:
            return Asked(
                partial(self._draw, exercise, None), partial(self.course.answers, exercise)
            )
        kept_for, asked = self._kept.get(exercise.task, (None, None))
        if asked is None or kept_for != private:
            calls = cache(partial(self._draw, exercise, private))
            asked = Asked(calls, partial(self.course.answers, exercise))
            self._kept[exercise.task] = private, asked
        return asked

    def _told_before(self, lesson: str, seed: int | None) -> dict:
        """What was found in answers of a class's run that were asked the same, by their text.

        Answers that are equal word for word, as those of two who work together, are so judged once.
        """
        if seed is None:
            return {}
        kept_for, told = self._told
        if kept_for != (lesson, seed) or len(told) > MOST_TOLD:
            self._told = (lesson, seed), (told := {})
        return told

    def _draw(self, exercise: Exercise, private: int | None) -> list[Call]:
        """Fresh cases; in the hand-out, which has no reference, the public ones."""
        from autograder.course.calls import Draw
        from autograder.grading.observe import seed_for

        if not self.course.has_answers:
            return self.course.public_calls(exercise)
        return exercise.cases(Draw(seed_for(exercise.task, private)))


def _told_once(results: tuple[Result, ...], lesson: Lesson) -> tuple[Result, ...]:
    """The results, with what is wrong in a cell told for the first task that it fails."""
    cells = {cell.task: cell.of or cell.id for cell in lesson.tasks}
    found: dict[str, dict] = {}
    for result in results:
        found.setdefault(cells[result.task], {})[result.task] = result.findings
    told = {task: said for of_cell in found.values() for task, said in told_once(of_cell).items()}
    return tuple(replace(result, findings=told[result.task]) for result in results)


def part_of(lesson: Lesson, only: Sequence[str]) -> Lesson:
    """The lesson with no other checks and questions than these; as it is where none is named.

    Checks of one exercise are judged together: what a rubric takes off one, it may forgive in
    another.
    """
    if not only:
        return lesson
    named = {c.of or c.id for c in lesson.tasks if c.task in only}
    kept = tuple(c for c in lesson.cells if c not in lesson.tasks or (c.of or c.id) in named)
    return replace(lesson, cells=kept)


def nothing_earned(lesson: Lesson) -> tuple[Result, ...]:
    """No points for any task."""
    return tuple(Result(c.task, 0.0, c.points, False) for c in lesson.tasks)


def most(lesson: Lesson) -> float:
    """The most that a machine can give."""
    return sum(c.points for c in lesson.with_role(Role.CHECK))


@cache
def hidden(course: Course) -> list[Path]:
    """What of this machine no student's code may see: the course, and installed copies of it."""
    folders = files.libraries()
    found = [course.folder, *map(Path, copies.installed_copies(course.secret_files, folders))]
    if course.settings.library:
        found += [Path(folder) / course.settings.library for folder in folders]
    return found


@cache
def _model_answers(folder: Path, sources: str, lesson: str) -> dict[str, str]:
    path = folder / sources / f"{lesson}.py"
    if not path.exists():
        return {}
    from autograder.course.build import read_source, readable

    notebook = readable(read_source(path))
    return {c.id: c.source for c in notebook.cells if c.metadata.get("course", {}).get("task")}


def model_answers(course: Course, lesson: str) -> dict[str, str]:
    """The model answers of a lesson by cell id; empty where its source is not at hand."""
    return _model_answers(course.folder, course.settings.sources, lesson)
