"""Marks one submission: every task on its own, then the rubric of each exercise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from autograder.course.answers import Answers
from autograder.course.asking import Exercise, Finding, Verdict
from autograder.course.calls import Call, Observation, Outcome
from autograder.course.course import Course
from autograder.course.lesson import Cell, Lesson, Role
from autograder.course.settings import Rubric
from autograder.course.steps.traces import read, to_steps_request
from autograder.grading.observe import (
    FAILURES,
    STEPS_SECONDS,
    Question,
    asked_in,
    observe,
    question,
)
from autograder.grading.shape_comments import UNSEEN, comment_findings
from autograder.intake.magics import plain_python
from autograder.intake.submission import StudentCell, Submission
from autograder.judging import rubric
from autograder.judging.explain import explain_error
from autograder.judging.verdict import findings, right
from autograder.reports.report import Result
from autograder.sandbox import ChildFailed, Failure, Sandbox, Shared
from autograder.tracing.edits.ask import in_time
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.findings import Steps, with_where, wrong_call


@dataclass
class Asked:
    """What is asked of an exercise. draw: makes its calls. answers: what should come of calls.

    The answers to the calls that were asked for last are worked out once.
    """

    draw: Callable[[], list[Call]]
    answers: Callable[[list[Call]], Answers]
    _kept: tuple[list[Call], Answers] | None = None

    def to(self, calls: list[Call]) -> Answers:
        """The answers to these calls."""
        if self._kept is None or self._kept[0] is not calls:
            self._kept = calls, self.answers(calls)
        return self._kept[1]


@dataclass
class Marking:
    """One submission on its way to its results.

    models: model answers by cell id. asked: what is asked of an exercise. told: what was found in
    answers to the same questions before, by their whole text; what is found now is added. shapes:
    the same for what was seen of shapes, by the code (see `shape_comments`).
    stopped: by cell, what ended a child, so that no hang is waited for twice. alone: whether the
    student's own cells are left out, since one of them ended a child.
    """

    course: Course
    box: Sandbox
    lesson: Lesson
    submission: Submission
    models: dict[str, str]
    asked: Callable[[Exercise], Asked]
    told: dict[Hashable, list[Finding]] = field(default_factory=dict)
    shapes: dict[str, object] = field(default_factory=dict)
    stopped: dict[str, list[Finding]] = field(default_factory=dict)
    alone: bool = False

    def __post_init__(self):
        self.shared = Shared(self.box)

    def results(self) -> tuple[Result, ...]:
        """The result of every task, in the lesson's order."""
        with self.shared:
            return self._results()

    def _results(self) -> tuple[Result, ...]:
        results = {cell.task: self._judge(cell) for cell in self.lesson.tasks}
        for exercise in self.lesson.with_role(Role.EXERCISE):
            by = self.course.settings.rubric.get(exercise.id)
            if by is not None and exercise.id not in self.stopped:
                for result in self._by_rubric(by, exercise, results):
                    results[result.task] = result
        return tuple(results.values())

    def _judge(self, cell: Cell) -> Result:
        own = self._own(cell)
        if cell.role == Role.QUESTION:
            blank = () if own.answered else (_unanswered("No answer is written."),)
            return Result(cell.task, 0.0, cell.points, False, own.answered, blank)
        if not own.answered:
            blank = (_unanswered("This exercise is not filled in."),)
            return Result(cell.task, 0.0, cell.points, False, findings=blank)
        found = self.stopped.get(own.id) or self._findings(cell)
        if found and found[0].check == Failure.TIMED_OUT:
            self.stopped[own.id] = found
        passed = not any(f.fails for f in found)
        points = cell.points if passed else 0.0
        return Result(cell.task, points, cell.points, passed, findings=tuple(found))

    def _own(self, cell: Cell) -> StudentCell:
        """The student's cell that answers a check or a question."""
        wanted = cell.of or cell.id
        return next(c for c in self.submission.cells if c.id == wanted)

    def _findings(self, cell: Cell) -> list[Finding]:
        exercise = self.course.exercise(cell.task)
        asked = question(self.lesson, self.submission, cell, self.models)
        asked = asked.without_added() if self.alone else asked
        before, pressed = asked.text, self.box.pressed
        if before in self.told:
            return self.told[before]
        found, certain = self._found_in(exercise, asked)
        if certain and pressed == self.box.pressed:
            self.told[before] = found
        return found

    def _found_in(self, exercise: Exercise, asked: Question) -> tuple[list[Finding], bool]:
        """What is found in an answer, and whether the same text will always give the same."""
        known = self.asked(exercise)

        def look(child, asked: Question, calls: list[Call], outcomes) -> list[Finding]:
            """What is found in an answer; of one that is wrong with what the same child tells of
            its steps and of small changes of it."""
            answers, source = known.to(calls), asked.cell.source

            def ask(others: list[Call]) -> Sequence[Outcome]:
                """What comes of other calls of the same answer, in a child of its own."""
                return observe(self.box, asked, lambda: others)[1].outcomes

            found = findings(exercise, calls, outcomes, answers, source, ask)
            if child is None or not any(f.fails for f in found):
                return found
            steps, place = None, wrong_call(exercise, calls, outcomes, answers)
            with contextlib.suppress(ChildFailed, ValueError):
                if place is not None:
                    request = to_steps_request([calls[place]])
                    reply = child.request(*request, seconds=STEPS_SECONDS)
                    steps = Steps(place, read(*reply, 1)[0], outcomes[place])
            own = in_time(asked_in(child)), place
            wrong = WrongAnswer(exercise, calls, outcomes, answers, source, *own)
            return with_where(found, steps, answers, exercise, source, wrong)

        def is_right(calls: list[Call], seen: Observation) -> bool:
            return right(exercise, calls, seen.outcomes, known.to(calls), seen.source)

        calls, seen = observe(self.box, asked, known.draw, look, self.shared, is_right)
        self.alone = self.alone or seen.alone
        certain = not seen.alone and not (seen.error and seen.error["kind"] in FAILURES)
        if seen.right:
            return [], certain
        if seen.error is not None:
            return [explain_error(seen.error, exercise.name, seen.source)], certain
        if seen.again is not None:
            return seen.again, certain
        asked = asked.without_added() if seen.alone else asked
        return look(None, asked, calls, seen.outcomes), certain

    def _by_rubric(self, by: Rubric, exercise: Cell, results: dict[str, Result]) -> list[Result]:
        own = next(c for c in self.submission.cells if c.id == exercise.id)
        checks = [c for c in self.lesson.with_role(Role.CHECK) if c.of == exercise.id]
        if not own.answered or not checks:
            return []
        source = plain_python(own.source)
        comments = self._comments(exercise, source)
        judged = [results[c.task] for c in checks]
        return rubric.apply(by, judged, source, exercise.source, comments)

    def _comments(self, exercise: Cell, source: str) -> list[Finding]:
        text, pressed = ("comments", self.lesson.name, exercise.id, source), self.box.pressed
        if text in self.told:
            return self.told[text]
        found = comment_findings(self.box, self.lesson, exercise, source, self.shared, self.shapes)
        if pressed == self.box.pressed and not any(f.message.startswith(UNSEEN) for f in found):
            self.told[text] = found
        return found


def _unanswered(text: str) -> Finding:
    return Finding("unanswered", Verdict.ERROR, text)
