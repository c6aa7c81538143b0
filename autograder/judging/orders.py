"""Answers that are lists: in any order, such as 'each pair once', or told item by item."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.course.asking import Finding, Sight
from autograder.judging.compare import compare
from autograder.judging.difference import difference, is_nameless


def in_any_order(sight: Sight, *, part: int | None = None) -> list[Finding]:
    """The usual judge, but the values of a result [n] may stand in any order.

    part: which of several results that is, counted from 0; the only one where None. A list of
    numbers may stand for the tensor.

        judge=partial(in_any_order, part=1)
    """
    return compare(sight.each(lambda o: replace(o, value=_with_sorted(o.value, part))))


def _with_sorted(value, part: int | None):
    if part is None:
        return _sorted(value)
    if not isinstance(value, (tuple, list)) or part >= len(value):
        return value
    return tuple(_sorted(v) if i == part else v for i, v in enumerate(value))


def _sorted(values):
    """The numbers in ascending order; whatever is no row of numbers stays as it is."""
    if isinstance(values, list):
        try:
            values = torch.tensor(values, dtype=torch.float64)
        except (OverflowError, TypeError, ValueError, RuntimeError):
            return values
    if not isinstance(values, torch.Tensor) or values.dim() != 1 or values.is_complex():
        return values
    return values.sort().values


def line_by_line(sight: Sight, *, what: str, message: str) -> list[Finding]:
    """The usual judge; where no known mistake explains what came back, the first wrong item does.

    what: what an item is ('shape'). message: what a student is told; `{line}` is the item's number,
    counted from 1. Lists of another length than expected are left to the usual judge.
    """
    findings = compare(sight)
    if not findings or not is_nameless(findings[0].check, sight.exercise.task):
        return findings
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        if not isinstance(got.value, (list, tuple)) or len(got.value) != len(expected.value):
            return findings
        pairs = enumerate(zip(got.value, expected.value, strict=True), 1)
        for line in (n for n, (g, e) in pairs if difference(g, e, sight.exercise.rtol)):
            told = replace(
                findings[0],
                message=message.format(line=line),
                expected=f"the {what} of line {line}",
                got=f"another {what}",
            )
            return [told]
    return findings
