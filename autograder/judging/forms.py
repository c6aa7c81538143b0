"""Other forms of a right answer: what may stand for what was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from autograder.course.asking import Finding, Sight
from autograder.course.calls import Outcome
from autograder.judging.compare import compare

HIDDEN_SCORE = -1e8  # what a student may write for minus infinity lies below this


def read_as(turn: Callable[[Outcome, Outcome], Outcome]) -> Callable[[Sight], list[Finding]]:
    """The usual judge, after turn(outcome, expected) brought what came back to the usual form."""

    def judge(sight: Sight) -> list[Finding]:
        pairs = zip(sight.outcomes, sight.expected, strict=True)
        return compare(replace(sight, outcomes=tuple(turn(got, wanted) for got, wanted in pairs)))

    return judge


def _apart(got: Outcome, expected: Outcome) -> Outcome:
    value, wanted = got.value, expected.value
    if not isinstance(value, torch.Tensor) or not isinstance(wanted, (tuple, list)):
        return got
    if value.dim() == 0 or len(value) != len(wanted):
        return got
    return replace(got, value=tuple(value.unbind(0)))


def _hidden_as_inf(got: Outcome, expected: Outcome) -> Outcome:
    value = got.value
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return got
    return replace(got, value=value.masked_fill(value < HIDDEN_SCORE, -math.inf))


# One tensor may stand for several results: it can be taken apart along its first axis.
results_in_one_tensor = read_as(_apart)
# A large negative number may stand for minus infinity.
large_negative_as_inf = read_as(_hidden_as_inf)
