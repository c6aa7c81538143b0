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


def results_in_one_tensor(sight: Sight) -> list[Finding]:
    """The usual judge, but one tensor may stand for several results, along its first axis."""
    return _read_as(_apart, sight)


def large_negative_as_inf(sight: Sight) -> list[Finding]:
    """The usual judge, but a large negative number may stand for minus infinity."""
    return _read_as(_hidden_as_inf, sight)


def _read_as(turn: Callable[[Outcome, Outcome], Outcome], sight: Sight) -> list[Finding]:
    """The usual judge, after turn(outcome, expected) brought what came back to the usual form."""
    pairs = zip(sight.outcomes, sight.expected, strict=True)
    return compare(replace(sight, outcomes=tuple(turn(got, wanted) for got, wanted in pairs)))


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
