"""One of several results is wrong in a way that is known, and the others are right.

A known mistake may spoil two results of three; who makes it in one of them only gives no more what
the mistake gives, but that one result does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from autograder.course.asking import Sight
from autograder.course.calls import Outcome
from autograder.course.general.altered import ALTERED, BEGINS
from autograder.judging.relations.two import FEW, Named, same, tells

LARGEST = 10**6  # numbers; a larger result is not looked at

Part = tuple[str, torch.Tensor, torch.Tensor]  # what it is called, what came back, what should


def as_tensor(value) -> torch.Tensor | None:
    """A value as a tensor of float64, or of True and False."""
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.numel() > LARGEST:
        return None
    return value if value.dtype == torch.bool else value.double()


def parts_of(got, expected, label: str = "the result") -> list[Part] | None:
    """Each tensor or number beside the one expected; None where they can't be paired."""
    if isinstance(expected, tuple | list):
        if not isinstance(got, tuple | list) or len(got) != len(expected):
            return None
        found: list[Part] = []
        for place, (mine, wanted) in enumerate(zip(got, expected, strict=True), 1):
            inner = parts_of(mine, wanted, f"part {place} of {label}")
            if inner is None:
                return None
            found += inner
        return found
    pair = [_number(v) if isinstance(v, int | float) else as_tensor(v) for v in (got, expected)]
    if pair[0] is None or pair[1] is None:
        return None
    return [(label, pair[0], pair[1])]


def _number(value: float) -> torch.Tensor | None:
    try:
        return torch.tensor(float(value), dtype=torch.float64)
    except OverflowError:
        return None


def is_one_number(outcomes: Sequence[Outcome], expected: Sequence[Outcome]) -> bool:
    """Whether all that is wrong is one number in all its places, such as 0: many a pair of mistakes
    gives that, and each with a factor that is free to choose."""
    seen = []
    for got, wanted in zip(outcomes, expected, strict=True):
        if got.error or wanted.error:
            continue
        pairs = parts_of(got.value, wanted.value)
        if pairs is None:
            return False
        seen += [pair for pair in pairs if not same(*pair[1:])]
    constant = all(not got.numel() or bool((got == got.flatten()[0]).all()) for _, got, _ in seen)
    return constant and any(got.numel() >= FEW and tells(right) for _, got, right in seen)


def in_one_part(sight: Sight) -> Named | None:
    """The known mistake that gives just what is wrong, where another result is right."""
    rtol, seen = sight.exercise.rtol, []
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        pairs = None if got.error or expected.error else parts_of(got.value, expected.value)
        if pairs is None or len(pairs) < 2:
            return None
        seen.append(pairs)
    if len({len(pairs) for pairs in seen}) > 1:
        return None
    places = range(len(seen[0]))
    wrong = [
        place for place in places if not all(same(*pairs[place][1:], rtol=rtol) for pairs in seen)
    ]
    if not wrong or len(wrong) == len(places):
        return None
    if sum(pairs[place][1].numel() for pairs in seen for place in wrong) < FEW:
        return None
    for check, message, outcomes in sight.mistakes:
        if " + " not in check and _gives(outcomes, seen, sight.expected, wrong, rtol):
            where = " and ".join(seen[0][place][0] for place in wrong)
            said = message.removeprefix(BEGINS) if check.startswith(ALTERED) else message
            return check, f"Only {where} is wrong, and in this way: {said}"
    return None


def _gives(outcomes, seen: Sequence[list[Part]], expected, wrong: list[int], rtol: float) -> bool:
    """Whether a mistake gives, on every call, what came back in these places."""
    for pairs, other, right in zip(seen, outcomes, expected, strict=True):
        theirs = None if other.error else parts_of(other.value, right.value)
        if theirs is None or len(theirs) != len(pairs):
            return False
        if not all(same(pairs[n][1], theirs[n][1], rtol=rtol) for n in wrong):
            return False
    return True
