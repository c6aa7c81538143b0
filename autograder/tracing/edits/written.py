"""The line that wrote what is wrong, in a result that several lines fill place by place.

Where all places that are wrong were written by one line, and all that is right by others, it is
that line: what both are made of is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from autograder.course.asking import Finding, Verdict, Where
from autograder.course.steps.traces import Trace
from autograder.tracing.alike import RTOL, plain
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.look import Look

NOBODY = -1
ALONE = "what it writes is wrong, and what other lines write is right"


def at_what_it_wrote(finding: Finding, asked: WrongAnswer, look: Look | None) -> Finding:
    """A finding without a line, with that of the one that wrote all that is wrong."""
    if finding.where is not None or finding.verdict != Verdict.WRONG or look is None:
        return finding
    wanted = asked.known.expected[look.place].value
    line = _line(look, wanted) if isinstance(wanted, torch.Tensor) else None
    if line is None:
        return finding
    where = Where(first_wrong=line, how=ALONE, **look.right_before(line))
    return replace(finding, where=where, line=line, statement=look.text.statement(line))


def _line(look: Look, wanted: torch.Tensor) -> int | None:
    trace = look.trace
    value = trace.steps[trace.returned[0]].value if len(trace.returned) == 1 else None
    if value is None or trace.full or value.shape != wanted.shape or not value.numel():
        return None
    own, right = plain(value), plain(wanted.double())
    wrong = (own - right).abs() > RTOL * right.abs().max() + 1e-7
    by = torch.full(value.shape, NOBODY)  # the line that wrote each place last
    for number, before in reversed([*_writes(trace)]):
        line = look.text.line(trace.steps[number])
        if line is None:
            return None
        by[trace.steps[number].value != trace.steps[before].value] = line
    lines, others = (set(by[at].tolist()) for at in (wrong, ~wrong))
    alone = len(lines) == 1 and NOBODY not in lines and not lines & others
    return lines.pop() if alone and others - {NOBODY} else None


def _writes(trace: Trace) -> Iterator[tuple[int, int]]:
    """The steps that wrote into what is returned, the last first, each with what was there."""
    number = trace.returned[0]
    while trace.steps[number].op == "__setitem__" and trace.steps[number].inputs:
        before = trace.steps[number].inputs[0]
        if trace.steps[before].value.shape != trace.steps[number].value.shape:
            return
        yield number, before
        number = before
