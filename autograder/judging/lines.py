"""Answers that are lists, one item a line: the first wrong item says where to look."""

from __future__ import annotations

from dataclasses import replace

from autograder.course.asking import Finding, Sight
from autograder.judging.compare import compare, difference


def line_by_line(sight: Sight, *, what: str, message: str) -> list[Finding]:
    """The usual judge; where no known mistake explains what came back, the first wrong item does.

    what: what an item is ('shape'). message: what a student is told; `{line}` is the item's number,
    counted from 1. Lists of another length than expected are left to the usual judge.
    """
    findings = compare(sight)
    if not findings or not findings[0].check.startswith(f"{sight.exercise.task}."):
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
