"""What is handed to a function before a step that belongs in front of the call: it is the call that
comes too early, and not the first line of the function."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from autograder.tracing.alike import likeness
from autograder.tracing.first_wrong import LEAF, Judged
from autograder.tracing.proof.replay import Bench
from autograder.tracing.text import Text

MISSING = "a step is missing before what is handed over here"


def called_too_early(judged: Judged, number: int, text: Text) -> int | None:
    """The line of the call that handed a wrong step its operand, where the step is right with what
    the answer makes of that operand in its place; in a loop, in every round."""
    step = judged.steps[number]
    handed = []
    for other in judged.steps:
        if (other.place, other.op) == (step.place, step.op):
            own = [n for n in other.inputs if n in judged.like and judged.steps[n].op != LEAF]
            handed += [n for n in own if judged.steps[n].outer == other.outer[1:]]
    if not step.outer or not handed:
        return None
    bench = Bench(judged, judged.until, text)
    for values in _made_of_them(judged, handed):
        outcome = bench.outcome(values)
        if outcome is None:
            continue
        changed = outcome[0].get(number)
        found = likeness(changed.double(), judged.own.right) if changed is not None else None
        if outcome[1] or (found is not None and found.in_order and not found.turned):
            return text.first_line(step.outer[0])
    return None


def _made_of_them(judged: Judged, handed: list[int]) -> Iterator[dict[int, torch.Tensor]]:
    """What the answer makes of one right tensor, in the places of it or of its slices."""
    own, known = judged.own, judged.like[handed[0]].known
    for later in own.known:
        if later is known or later.value.shape != known.value.shape:
            continue
        if not own.comes_of(later, known):
            continue
        values = {}
        for number in handed:
            like, shape = judged.like[number], judged.steps[number].value.shape
            part = later.value
            if not like.whole:
                parts = part.movedim(like.axes, tuple(range(len(like.axes))))
                part = parts.flatten(0, len(like.axes) - 1)[like.index]
            straight = like.known is known and like.order and list(like.order) == sorted(like.order)
            if not straight or part.numel() != shape.numel():
                break
            values[number] = part.reshape(shape)
        else:
            yield values
