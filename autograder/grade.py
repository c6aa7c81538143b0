"""From a notebook to a report: every task judged on its own, then the rubric.

This is the whole of grading, read top to bottom. It runs in the trusted process; the student's
code runs only where `observe` and `comments` send it, in the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from autograder import answers, course, rubric
from autograder.build import read_source, readable
from autograder.calls import Call, Draw
from autograder.comments import comment_findings
from autograder.course import Cell, Lesson
from autograder.exercise import Exercise, Finding
from autograder.explain import explain_error
from autograder.intake import read
from autograder.observe import observe, question, seed_for
from autograder.release import sandbox_course
from autograder.report import Report, Result
from autograder.sandbox import Sandbox
from autograder.submission import Submission

FIRST_LESSON_WITH_MODELS = "09"  # from here on setup cells import transformers


class Grader:
    """Grades notebooks one after the other; keeps the warm sandboxes between them.

    A context manager. tier: 'auto' takes the strongest isolation the machine offers. private: a
    seed that makes marks repeatable; by default each question draws its own.
    """

    def __init__(self, tier: str = "auto", private: int | None = None, folder: Path | None = None):
        self.folder = folder or course.root()
        self.lessons = course.lessons(self.folder)
        self.tier, self.private = tier, private
        self._stack = ExitStack()
        self._boxes: dict[bool, Sandbox] = {}

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()
        self._boxes.clear()

    def box(self, lesson: Lesson) -> Sandbox:
        """The warm sandbox for this lesson's questions."""
        models = lesson.name >= FIRST_LESSON_WITH_MODELS
        if models not in self._boxes:
            files = self._stack.enter_context(sandbox_course(self.folder, complete=models))
            preload = ("transformers",) if models else ()
            box = Sandbox(files, tier=self.tier, preload=preload)
            self._boxes[models] = self._stack.enter_context(box)
        return self._boxes[models]

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
        stopped: dict[str, list[Finding]] = {}
        results = {
            cell.task: self._judge(box, lesson, submission, cell, stopped) for cell in lesson.tasks
        }
        for exercise in lesson.with_role("exercise"):
            if exercise.id in rubric.RUBRICS and exercise.id not in stopped:
                self._apply_rubric(box, lesson, submission, exercise, results)
        return Report(
            name,
            lesson.name,
            box.tier,
            tuple(results.values()),
            submission.repairs,
            None,
            _most(lesson),
        )

    def _judge(self, box, lesson: Lesson, submission, cell: Cell, stopped: dict) -> Result:
        """One task. `stopped` keeps, by cell, what ended a child: it is not waited for twice."""
        if cell.role == "question":
            own = next((c for c in submission.cells if c.id == cell.id), None)
            answered = own is not None and own.answered
            blank = () if answered else (Finding("unanswered", "error", "No answer is written."),)
            return Result(cell.task, 0.0, cell.points, False, answered, blank)
        own = next(c for c in submission.cells if c.id == cell.of)
        if not own.answered:
            finding = Finding("unanswered", "error", "This exercise is not filled in.")
            return Result(cell.task, 0.0, cell.points, False, findings=(finding,))
        findings = stopped.get(own.id) or self._findings(box, lesson, submission, cell)
        if findings and findings[0].check == "timed out":
            stopped[own.id] = findings
        passed = not any(f.fails for f in findings)
        points = cell.points if passed else 0.0
        return Result(cell.task, points, cell.points, passed, findings=tuple(findings))

    def _findings(self, box, lesson, submission, cell: Cell) -> list[Finding]:
        exercise = course.exercises()[cell.task]
        asked = question(lesson, submission, cell, model_answers(self.folder, lesson.name))
        calls, seen = observe(box, asked, lambda: self._draw(exercise))
        if seen.error is not None:
            return [explain_error(seen.error, exercise.name, seen.source)]
        return answers.findings(exercise, calls, seen.outcomes, seen.source)

    def _draw(self, exercise: Exercise) -> list[Call]:
        """Fresh cases; in the hand-out, which has no reference, the public ones."""
        if not answers.have_reference():
            return exercise.cases(Draw(answers.PUBLIC_SEED))
        return exercise.cases(Draw(seed_for(exercise.task, self.private)))

    def _apply_rubric(self, box, lesson, submission, exercise: Cell, results: dict) -> None:
        own = next(c for c in submission.cells if c.id == exercise.id)
        if not own.answered:
            return
        tasks = [c.task for c in lesson.with_role("check") if c.of == exercise.id]
        comments = comment_findings(box, lesson, submission, exercise, own.source)
        judged = [results[t] for t in tasks]
        marked = rubric.apply(exercise.id, judged, own.source, exercise.source, comments)
        results.update({r.task: r for r in marked})


def _all_zero(lesson: Lesson) -> tuple[Result, ...]:
    return tuple(Result(c.task, 0.0, c.points, False) for c in lesson.tasks)


def _most(lesson: Lesson) -> float:
    return sum(c.points for c in lesson.with_role("check"))


@cache
def model_answers(folder: Path, lesson: str) -> dict[str, str]:
    """The model answers of a lesson by cell id; empty where its source is not at hand."""
    path = folder / "solutions" / f"{lesson}.py"
    if not path.exists():
        return {}
    notebook = readable(read_source(path))
    return {c.id: c.source for c in notebook.cells if c.metadata.get("course", {}).get("task")}


def grade_all(
    paths: Iterable[Path], grader: Grader, expected: str | None = None
) -> Iterator[Report]:
    """Reports in the order given; a failure of ours on one file does not stop the others."""
    for path in paths:
        yield grader.grade(path, expected)
