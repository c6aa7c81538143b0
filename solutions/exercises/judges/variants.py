"""Judges of lesson 08: what goes wrong only in 16 bits, and what was taken for what."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from autograder.course.asking import Finding, Sight
from autograder.course.calls import Call
from autograder.judging.compare import compare
from autograder.judging.difference import outcome_difference


def in_low_precision(sight: Sight) -> list[Finding]:
    """The usual judge; what is right in float32 and wrong in float16 is a matter of precision."""
    halves = {i for i, call in enumerate(sight.calls) if _is_half(call)}
    others = compare(sight.only(i for i in range(len(sight.calls)) if i not in halves))
    if others:
        return others
    for i in halves:
        call, got, expected = sight.calls[i], sight.outcomes[i], sight.expected[i]
        if got.error is None and outcome_difference(got, expected, sight.exercise.rtol):
            text = (
                "All is right in float32, and wrong in float16. Whole numbers above 2048 do not "
                "all exist there, and an angle of 2500 radians has no digits left behind the "
                "point. Compute angles, sines and cosines in float32, whatever x is."
            )
            return [Finding("rope.angles in half precision", "wrong", text, tried=call.says)]
    return compare(sight.only(halves))


def _is_half(call: Call) -> bool:
    return any(isinstance(a, torch.Tensor) and a.dtype == torch.float16 for a in call.args)


def confused(sight: Sight, *, says: Mapping[str, str]) -> list[Finding]:
    """Names the first kind that was taken for another.

    says: for each kind, what sets it apart. An answer that is no kind, or an error, is judged as
    usual.
    """
    given = [outcome.value for outcome in sight.outcomes]
    wrong = [
        (call, got, outcome.value)
        for call, got, outcome in zip(sight.calls, given, sight.expected, strict=True)
        if got != outcome.value
    ]
    if not wrong or any(not isinstance(got, str) or got not in says for got in given):
        return compare(sight)
    if len(set(given)) == 1:
        text = "All boxes got the same name. Each of the kinds is among them."
        return [Finding("find.one name for all", "wrong", text)]
    call, _, true = wrong[0]
    return [Finding(f"find.{true} not known", "wrong", says[true], tried=call.says)]
