"""Which of the calls that went wrong is looked at when versions of an answer are tried."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from autograder.course.answers import Answers
from autograder.course.calls import Call, Outcome
from autograder.judging.difference import matches


def looked_at(
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
    rtol: float,
    pair: Sequence[str] = (),
) -> int | None:
    """The place of the call, None where there is none: one that stops, shows both of two known
    mistakes, leaves nothing to chance and is no training, as far as there is such; the smallest.

    pair: the known mistakes that together explain all, if it is known which.
    """

    def shows(place: int) -> bool:
        own = (gives for check, _, gives in (*known.mistakes, *known.exchanged) if check in pair)
        return not any(matches(g[place], known.expected[place], rtol) for g in own)

    pairs = enumerate(zip(outcomes, known.expected, strict=True))
    failed = [i for i, (got, wanted) in pairs if not matches(got, wanted, rtol)]
    failed = [i for i in failed if not (calls[i].inspect or by_itself(calls[i], calls))]
    for fits in (
        lambda i: outcomes[i].error is not None,
        shows,
        lambda i: calls[i].seed is None,
        lambda i: not calls[i].train,
    ):
        failed = [i for i in failed if fits(i)] or failed
    return min(failed, key=lambda i: _size(calls[i]), default=None)


def by_itself(call: Call, calls: Sequence[Call]) -> bool:
    """Whether a call shows the numbers that an object draws for itself, unlike the others."""
    given = any(each.weights for each in calls)
    return call.init is not None and given and not call.weights


def _size(call: Call) -> tuple[int, int]:
    """How many axes of size 1 a call is given, which hide what is wrong, and how many numbers."""
    given = (*call.args, *call.kwargs.values(), *call.weights.values())
    tensors = [each for each in given if isinstance(each, torch.Tensor)]
    return sum(n == 1 for t in tensors for n in t.shape), sum(t.numel() for t in tensors)
