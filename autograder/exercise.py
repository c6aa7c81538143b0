"""What an exercise is, and what is found when an answer to it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autograder.calls import Call, Draw, Outcome


@dataclass(frozen=True)
class Finding:
    """One thing found in an answer.

    verdict: 'right' | 'wrong' | 'error' for values, 'true' | 'false' | 'missing' | 'cannot tell'
    for shape comments, 'deduction' | 'bonus' | 'review' for what a rubric adds. A 'wrong' or an
    'error' fails the question. line and statement point into the student's cell.
    """

    check: str
    verdict: str
    message: str
    line: int | None = None
    statement: str = ""
    tried: str = ""
    expected: str = ""
    got: str = ""
    points: float = 0.0

    @property
    def fails(self) -> bool:
        return self.verdict in ("wrong", "error")


@dataclass(frozen=True)
class Sight:
    """All that a judge may look at: what was asked, what came back, what should have."""

    exercise: Exercise
    calls: tuple[Call, ...]
    outcomes: tuple[Outcome, ...]
    expected: tuple[Outcome, ...]
    mistakes: tuple[tuple[str, str, tuple[Outcome, ...]], ...] = ()  # (check, message, outcomes)
    source: str = ""


@dataclass(frozen=True)
class Exercise:
    """One question that a machine marks.

    task: its name, such as 'simple.softmax'. name: the function or class that answers it.
    cases: draws the calls, fresh each time. hints: three steps, from a nudge to nearly there.
    rtol: the largest difference allowed, relative to the largest expected value of the tensor.
    judge: replaces the comparison of values where that is not enough (see `judge.compare`).
    """

    task: str
    name: str
    cases: Callable[[Draw], list[Call]]
    hints: tuple[str, str, str]
    rtol: float = 1e-4
    judge: Callable[[Sight], list[Finding]] | None = None


@dataclass(frozen=True)
class Mistake:
    """A wrong answer with a name: a student whose values equal its values made that mistake."""

    check: str
    message: str
    namespace: Mapping[str, object]


def mistake(name: str, check: str, message: str, function: object) -> Mistake:
    """A mistake made in one function, known to the notebook as `name`."""
    return Mistake(check, message, {name: function})
