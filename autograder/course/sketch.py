"""A few numbers that tell one outcome from another: enough to recognise it, not to read it.

A hand-out holds what each pair of slips gives; whole, that would be hundreds of megabytes. Sums of
the values with fixed waves as weights are equal where the values are, and differ where they do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from autograder.course.asking import Lazy
from autograder.course.calls import Outcome

SIZE = 6
SMALL = 1000  # whole numbers below it may be equal by accident
TOLERANCE = 1e-4
WEIRD = ((torch.isnan, 7.1), (torch.isposinf, 11.3), (torch.isneginf, -13.7))


def sketch(outcome: Outcome) -> list[float] | None:
    """The numbers of an outcome: how large, of what shape, and `SIZE` sums; None for an error."""
    if outcome.error is not None:
        return None
    parts = list(_tensors([outcome.value, dict(outcome.after)]))
    if not parts:
        return None
    total = torch.zeros(SIZE, dtype=torch.float64)
    largest, shapes = 0.0, 0.0
    for place, part in enumerate(parts, start=1):
        flat = part.double().flatten()
        for test, value in WEIRD:
            flat = torch.where(test(flat), torch.full_like(flat, value), flat)
        if flat.numel():
            largest = max(largest, flat.abs().max().item())
        steps = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
        waves = torch.stack([torch.cos(steps * (0.7 + 0.9 * k) + place) for k in range(SIZE)])
        total += waves @ flat / math.sqrt(max(flat.numel(), 1))
        shapes += place * sum((i + 2) * size for i, size in enumerate(part.shape)) + 0.1 * place
    return [float(f"{x:.7g}") for x in (largest, shapes, *total.tolist())]


def count(outcome: Outcome) -> int:
    """How many numbers an outcome holds."""
    return sum(part.numel() for part in _tensors(outcome.value))


def weight(outcome: Outcome) -> int:
    """How many numbers an outcome holds; one that no accident gives counts as two."""
    value = outcome.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return count(outcome)
    number = _as_float(value)
    rare = math.isfinite(number) and (number != round(number) or abs(number) >= SMALL)
    return 2 if rare else 1


def alike(one: Sequence[float], two: Sequence[float]) -> bool:
    """Whether two sketches are of equal outcomes."""
    allowed = TOLERANCE * max(one[0], two[0], 1e-6)
    return abs(one[1] - two[1]) < 1e-6 and all(
        abs(a - b) <= allowed for a, b in zip(one[2:], two[2:], strict=True)
    )


def sketched(numbers: list[float], count: int) -> Lazy:
    """Outcomes of which only the first is known, and only by its sketch."""
    return Lazy(count, lambda place: Outcome(value=Sketch(numbers) if place == 0 else Sketch(())))


class Sketch:
    """Stands where a value would: it can be compared, and nothing else."""

    def __init__(self, numbers: Sequence[float]):
        self.numbers = numbers

    def fits(self, outcome: Outcome) -> bool:
        """Whether an outcome has this sketch; where there is none, nothing speaks against it."""
        own = sketch(outcome)
        return not self.numbers or (own is not None and alike(own, self.numbers))


def _tensors(value):
    """All numbers of a value, as tensors, in order; those of a dict in the order of its keys."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, bool | int | float):
        yield torch.tensor(_as_float(value))
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from _tensors(value[key])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def _as_float(number: bool | int | float) -> float:
    """The number, infinite where it is too large for a float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
