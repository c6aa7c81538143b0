"""Looks for the one small change of a program with which all that is asked of it comes out right.

Whether a change does so is no guess: it is tried, on every call. What it undoes is what is wrong.
How many are tried is bound by counts, so that the same text always gets the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograder.course.answers import Answers
from autograder.course.asking import Exercise
from autograder.course.calls import Call, Outcome
from autograder.judging.difference import matches
from autograder.judging.verdict import right
from autograder.tracing.edits.all import edits
from autograder.tracing.edits.ask import Ask
from autograder.tracing.edits.source import Edit

MOST = 12_000  # steps that are made for all versions together; a hundred take a millisecond
OF_ONE = 60  # what it costs beside its steps to try one
SURVIVE = 8  # versions that are tried on all calls


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that is wrong: what was asked of it, what came, and how its versions are asked."""

    exercise: Exercise
    calls: Sequence[Call]
    outcomes: Sequence[Outcome]
    known: Answers
    source: str
    ask: Ask


def mended_by(asked: WrongAnswer, steps: int, likely: dict[int, int]) -> list[Edit]:
    """The changes that make all right, the likeliest first; empty where none of one place does.

    steps: those of one call. likely: by line how well what it gives is known to be right, from 0.
    """
    place = _first_wrong(asked)
    if place is None or any(outcome.unset for outcome in asked.outcomes):
        return []
    count = MOST // (OF_ONE + steps)
    order = sorted(edits(asked.source), key=lambda e: (likely.get(e.line, 1), e.rank))[:count]
    if not order:
        return []
    survive = [e for e, fits in zip(order, _fits(asked, order, place), strict=True) if fits]
    return [e for e, fits in zip(survive, _all_right(asked, survive), strict=False) if fits]


def _first_wrong(asked: WrongAnswer) -> int | None:
    """The place of a call that is not right: the one with the fewest numbers."""
    rtol = asked.exercise.rtol
    pairs = enumerate(zip(asked.outcomes, asked.known.expected, strict=True))
    return next((i for i, (got, wanted) in pairs if not matches(got, wanted, rtol)), None)


def _fits(asked: WrongAnswer, order: list[Edit], place: int) -> list[bool]:
    """Which versions give in one call what they should."""
    calls, wanted = asked.calls, asked.known.expected[place]
    label = calls[place].on
    own = [c for c in calls[:place] if label and c.on == label] + [calls[place]]
    found = asked.ask([e.source for e in order], own, wanted.error is not None)
    rtol = asked.exercise.rtol
    return [each is not None and matches(each[-1], wanted, rtol) for each in found]


def _all_right(asked: WrongAnswer, survive: list[Edit]) -> list[bool]:
    """Which versions are right in all calls."""
    if not survive:
        return []
    wanted = any(each.error is not None for each in asked.known.expected)
    found = asked.ask([e.source for e in survive[:SURVIVE]], list(asked.calls), wanted)
    return [
        each is not None and right(asked.exercise, asked.calls, each, asked.known, edit.source)
        for edit, each in zip(survive, found, strict=False)
    ]
