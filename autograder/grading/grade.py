"""From a notebook file to a report; keeps the warm sandboxes between notebooks.

It runs in the trusted process; the student's code runs only where `observe` and `comments` send
it, in the sandbox.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

from autograder.course.asking import Exercise
from autograder.course.build import read_source, readable
from autograder.course.calls import Call, Draw
from autograder.course.course import Course
from autograder.course.handout import sandbox_course
from autograder.course.lesson import Lesson, Role
from autograder.course.settings import CourseError, Given
from autograder.grading.marking import Marking
from autograder.grading.observe import seed_for
from autograder.intake.read import read
from autograder.intake.submission import Submission
from autograder.reports.findings import told_once
from autograder.reports.report import Report, Result
from autograder.sandbox import ChildFailed, Limits, Sandbox, copies, files

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

    def grade_submission(self, submission: Submission, name: str = "") -> Report:
        """Grades what was read from a file."""
        name = name or submission.notebook
        lesson = self.lessons.get(submission.lesson or "")
        if submission.error or lesson is None:
            error = submission.error or "This is not a notebook of the course."
            worst = _all_zero(lesson) if lesson else ()
            return Report(
                name,
                submission.lesson,
                "none",
                worst,
                submission.repairs,
                error,
                _most(lesson) if lesson else 0.0,
            )
        box = self.box(lesson)
        models = model_answers(self.course, lesson.name)
        error = None
        try:
            results = Marking(self.course, box, lesson, submission, models, self._draw).results()
            results = _told_once(results, lesson)
        except (CourseError, ChildFailed):
            raise
        except Exception:  # a fault of ours; the other submissions are graded all the same
            logging.getLogger(__name__).exception("grading %s failed", name)
            results, error = _all_zero(lesson), FAULT
        most = _most(lesson)
        return Report(name, lesson.name, box.tier, results, submission.repairs, error, most)

    def _draw(self, exercise: Exercise) -> list[Call]:
        """Fresh cases; in the hand-out, which has no reference, the public ones."""
        if not self.course.has_answers:
            return self.course.public_calls(exercise)
        return exercise.cases(Draw(seed_for(exercise.task, self.private)))


def _told_once(results: tuple[Result, ...], lesson: Lesson) -> tuple[Result, ...]:
    """The results, with what is wrong in a cell told for the first task that it fails."""
    cells = {cell.task: cell.of or cell.id for cell in lesson.tasks}
    found: dict[str, dict] = {}
    for result in results:
        found.setdefault(cells[result.task], {})[result.task] = result.findings
    told = {task: said for of_cell in found.values() for task, said in told_once(of_cell).items()}
    return tuple(replace(result, findings=told[result.task]) for result in results)


def _all_zero(lesson: Lesson) -> tuple[Result, ...]:
    return tuple(Result(c.task, 0.0, c.points, False) for c in lesson.tasks)


def _most(lesson: Lesson) -> float:
    return sum(c.points for c in lesson.with_role(Role.CHECK))


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
    notebook = readable(read_source(path))
    return {c.id: c.source for c in notebook.cells if c.metadata.get("course", {}).get("task")}


def model_answers(course: Course, lesson: str) -> dict[str, str]:
    """The model answers of a lesson by cell id; empty where its source is not at hand."""
    return _model_answers(course.folder, course.settings.sources, lesson)
