"""Hiding on the wrong side of a softmax: one mistake, though two steps are wrong by it.

What a softmax should not see has to be hidden before it, and what it gives may be set to 0 behind
it. Where a program hides the right places on the other side, the softmax is wrong and the hiding is
too, or the hiding and what is missing behind the softmax.
"""

from __future__ import annotations

import torch

from autograder.course.steps.traces import Step
from autograder.tracing.alike import near, plain
from autograder.tracing.first_wrong import Judged
from autograder.tracing.proof.standing import FILLS, gone

TOO_EARLY = (
    "mask.before softmax",
    "The softmax sees the zeros of the mask as scores, and exp(0) is 1: that is a weight like any "
    "other.",
)


def is_hidden_afterwards(steps: tuple[Step, ...], first: int, then: int, right) -> bool:
    """Whether a softmax saw what should be hidden, and a later step only hides that in what it
    gave. right: what the softmax should have given."""
    seen, hidden = steps[first], steps[then]
    if seen.op != "softmax" or not seen.value.shape == hidden.value.shape == right.shape:
        return False
    places = gone(right)
    if not places.any() or gone(seen.value).any() or not torch.equal(gone(hidden.value), places):
        return False
    return near(hidden.value[~places], seen.value[~places])


def sets_zeros_before(judged: Judged, number: int, right: torch.Tensor) -> bool:
    """Whether a step sets those places to 0 that should be 0 behind the softmax, and a softmax is
    made of it."""
    step = judged.steps[number]
    zeros = step.value == 0
    if step.value.shape != right.shape or not zeros.any() or not torch.equal(zeros, right == 0):
        return False
    before = [judged.steps[i] for i in step.inputs if i in judged.like]
    if not before or any((s.value == 0).any() for s in before):
        return False
    return any(judged.steps[user].op == "softmax" for user in judged.users[number])


def hides_weights(judged: Judged, number: int) -> bool:
    """Whether a step sets weights to 0 where the answer's are 0: behind a softmax that saw them."""
    step = judged.steps[number] if number < len(judged.steps) else None
    if step is None or step.op.strip("_") not in FILLS:
        return False
    zeros = plain(step.value) == 0
    return any(
        torch.equal(zeros, plain(each) == 0) for each in judged.own.weights_of(step.value.shape)
    )
