"""What is known of a task's calls, made once for all programs that are asked the same."""

from __future__ import annotations

from functools import lru_cache

from autograder.course.answers import Answers
from autograder.course.calls import Draw
from autograder.course.course import Course
from tests.conftest import ROOT


@lru_cache(maxsize=256)
def known(task: str, seed: int) -> Answers:
    """The answers to the calls that this seed draws, and what each known mistake gives on them.

    They have calls of their own: a program that is asked gets others, drawn anew from the same
    seed, so that it cannot spoil them for the next one.
    """
    exercise = Course.at(ROOT).exercises[task]
    return Course.at(ROOT).answers(exercise, exercise.cases(Draw(seed)))
