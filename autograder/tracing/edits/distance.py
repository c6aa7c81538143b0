"""How far what came is from what is asked for, and a quick look whether two may be equal."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from autograder.course.calls import Outcome
from autograder.course.sketch import Sketch
from autograder.tracing.alike import plain
from autograder.tracing.reference import multiple

CLOSE = 1e-3  # how far apart the sums of equal values are at most, as a share of their size
LARGEST = 1e300  # numbers beyond are not told apart
FEW = 4  # numbers, of which any may be a factor off
FAR = 2.0  # how far from what is asked for another shape is


def mark(outcome: Outcome) -> list[tuple] | None:
    """Shape, sum and size of each part of what came, by which most that differ are told apart
    quickly; None where nothing is told."""
    if isinstance(outcome.value, Sketch):
        return None
    found = []
    for part in _parts(outcome.value) if outcome.error is None else ():
        if isinstance(part, torch.Tensor) and not part.is_complex():
            value = part.double().nan_to_num(0.0, 0.0, 0.0)
            found.append((part.shape, float(value.sum()), float(value.abs().sum())))
        elif isinstance(part, int | float) and math.isfinite(part) and abs(part) < LARGEST:
            found.append(((), float(part), abs(float(part))))
        else:
            found.append(((), 0.0, math.inf))
    return found


def may_match(one: list[tuple] | None, other: list[tuple] | None) -> bool:
    """Whether two such marks may be of equal values."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= CLOSE * max(a[2], b[2], CLOSE)
        for a, b in zip(one, other, strict=True)
    )


def all_one(outcome: Outcome) -> bool:
    """Whether what came is one number in all places."""
    value = outcome.value
    several = isinstance(value, torch.Tensor) and value.numel() > 1
    return outcome.error is None and several and bool((value == value.flatten()[0]).all())


def distance(gave: Outcome | None, wanted: Outcome) -> float:
    """How far what came is from what is asked for, part by part, at most FAR for each."""
    if gave is None or gave.error is not None:
        return math.inf
    own, right_ones = _parts(gave.value), _parts(wanted.value)
    if len(own) != len(right_ones):
        return FAR * (1 + len(right_ones))
    return sum(_apart(one, other) for one, other in zip(own, right_ones, strict=True))


def _parts(value) -> list:
    if isinstance(value, Mapping):
        return [part for key in sorted(value, key=str) for part in _parts(value[key])]
    if isinstance(value, tuple | list):
        return [part for each in value for part in _parts(each)]
    return [value]


def _apart_as_numbers(one, other) -> float:
    """How far one number is from another, as a share of the larger; FAR of what is none."""
    one, other = _as_number(one), _as_number(other)
    if type(one) is type(other) and one == other:
        return 0.0
    numbers = [n for n in (one, other) if isinstance(n, int | float) and not isinstance(n, bool)]
    try:
        one, other = map(float, numbers)
    except (OverflowError, ValueError):  # a whole number that is too large; none
        return FAR
    if not (math.isfinite(one) and math.isfinite(other)):
        return FAR
    return min(FAR, abs(one - other) / max(abs(one), abs(other)))


def _as_number(value):
    """A tensor that holds one number, as that number."""
    alone = isinstance(value, torch.Tensor) and not value.dim() and not value.is_complex()
    return value.item() if alone else value


def _apart(one, other) -> float:
    """How far one tensor is from another, as a share of its size."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return _apart_as_numbers(one, other)
    if one.shape != other.shape or one.is_complex() or not other.numel():
        return FAR
    one, other = plain(one.double()), plain(other.double())
    apart = (one - other).abs().nan_to_num(math.inf, math.inf)
    size = float(other.abs().nan_to_num(0.0, 0.0, 0.0).mean()) or 1.0
    wrong = float((apart > 1e-4 * size).double().mean())
    return wrong + min(float(apart.clamp(max=10 * size).mean()) / size, 10.0) / 10.0


def is_a_factor_off(gave: Outcome | None, wanted: Outcome) -> bool:
    """Whether one factor alone, which is not 1 or 0, is between what came and what is asked for."""
    both = [each.value for each in (gave, wanted) if each is not None and each.error is None]
    if len(both) < 2 or not all(isinstance(v, torch.Tensor) and not v.is_complex() for v in both):
        return False
    return both[1].numel() >= FEW and multiple(both[0].double(), both[1].double()) is not None


def are_apart(as_it_is: Outcome, one: Outcome | None, other: Outcome | None) -> bool:
    """Whether two outcomes differ from a third one in places of their own, and no place is in both;
    of parts of other shapes that is not so."""
    came = [each for each in (as_it_is, one, other) if each is not None and each.error is None]
    parts = [_parts(each.value) for each in came]
    if len(parts) < 3 or len({len(each) for each in parts}) != 1:
        return False
    return not any(_both_differ(*three) for three in zip(*parts, strict=True))


def _both_differ(base, one, other) -> bool:
    """Whether two parts differ from a third one in the same place."""
    three = base, one, other
    if not all(isinstance(t, torch.Tensor) and t.shape == base.shape for t in three):
        return True
    differ = [(t != base) & ~(t.isnan() & base.isnan()) for t in (one, other)]
    return bool((differ[0] & differ[1]).any())
