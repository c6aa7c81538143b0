"""The first wrong line in words: what was right before it, and how it differs. No expected value.

Lines and statements are those of the student's cell. A landmark is called by the name that it has
in the course's own answer; one without a name is not called anything.
"""

from __future__ import annotations

import torch

from autograder.course.asking import Where
from autograder.course.steps.traces import LEAF
from autograder.tracing.alike import Known, near, plain
from autograder.tracing.first_wrong import LAYOUT, Judged, factor_of
from autograder.tracing.names import Slip
from autograder.tracing.proof.mends import JOINS
from autograder.tracing.reference import multiple
from autograder.tracing.text import Text

MOST_ITEMS = 16  # that are compared with one another


def called(known: Known | None) -> str:
    """A landmark in words: `the scaled scores`; '' where it has no name."""
    return f"the {known.name.strip('_').replace('_', ' ')}" if known and known.name else ""


def where(slip: Slip, text: Text) -> Where | None:
    """What a finding says of the first wrong line; None where the text does not show it."""
    judged = slip.judged
    first = slip.line or text.line(judged.steps[slip.number])
    if first is None:
        return None
    last, landmark = _last_right(judged, slip, text, first) if slip.line is None else (None, "")
    how = "; ".join(dict.fromkeys(filter(None, (_how(judged, slip), slip.words))))
    return Where(last, first, landmark, how)


def _last_right(judged: Judged, slip: Slip, text: Text, first: int) -> tuple[int | None, str]:
    """The line of the last right step that the wrong one was made of, and what it gives."""
    best: tuple[int, int | None, str] = (-1, None, "")
    left, seen = list(judged.steps[slip.number].inputs), set()
    while left:
        number = left.pop()
        if number in seen:
            continue
        seen.add(number)
        step = judged.steps[number]
        if number in judged.bad:
            left += step.inputs
            continue
        found, line = judged.like.get(number), text.line(step)
        if step.op == LEAF or line is None or number not in judged.right:
            left += step.inputs
            continue
        if found is None or step.op in LAYOUT:
            left += step.inputs
        if number > best[0] and (found is not None or best[1] is None):
            best = (number, line, called(found.known if found else None))
    return best[1], best[2]


# --- how a step differs --------------------------------------------------------------------------
def _how(judged: Judged, slip: Slip) -> str:
    step, should = judged.steps[slip.number], slip.wrong.should
    if slip.wrong.instead is not None:
        taken, wanted = map(called, slip.wrong.instead)
        if taken and wanted:
            are, belong = "are" if _many(taken) else "is", "belong" if _many(wanted) else "belongs"
            return f"{taken} {are} taken where {wanted} {belong}"
    if slip.mend:
        return slip.mend
    found = judged.like.get(slip.number)
    if slip.number not in judged.bad and found is not None and found.turned:
        if step.op == "softmax":
            return _sums(step.value)
        if _last_two(found.order):
            return "its last two axes are exchanged"
        return "its axes are in another order than they are used in"
    if found is not None and not found.in_order and step.op in JOINS:
        return "the right numbers come to stand in the wrong places"
    if found is not None and not found.in_order:
        return "the right numbers come to stand in the wrong places: axes are mixed"
    new_nan = int(step.value.isnan().sum())
    if new_nan:
        return _nan(step.value, new_nan)
    if step.op == "softmax" and _sums(step.value):
        return _sums(step.value)
    factor = factor_of(judged, slip.number)
    if factor is not None and abs(factor + 1) < 1e-3:
        return "the sign is wrong"
    alike = [v for v in should.shapes if v.shape == step.value.shape] if should is not None else []
    if alike:
        return _against(step.value, alike[0])
    return f"it multiplies by {factor:.3g}" if factor is not None else ""


def _many(words: str) -> bool:
    """Whether a landmark's words are a plural: `the keys`."""
    return words.endswith("s") and not words.endswith("ss")


def _last_two(order: tuple[int, ...] | None) -> bool:
    return bool(order) and len(order) > 1 and order[-2] > order[-1] == sorted(order)[-2]


def _nan(value: torch.Tensor, count: int) -> str:
    rows = value.reshape(-1, value.shape[-1]) if value.dim() > 1 else value.reshape(1, -1)
    if value.dim() > 1:
        rows = value.reshape(-1, *value.shape[-2:]) if value.dim() > 2 else value[None]
        hit = rows.isnan().any(-1).any(0).nonzero().flatten().tolist()
        if len(hit) == 1:
            return f"after it, {count} numbers are NaN, all in row {hit[0] + 1}"
        if len(hit) < value.shape[-2]:
            return f"after it, {count} numbers are NaN, the first in row {hit[0] + 1}"
    return f"after it, {count} of {value.numel()} numbers are NaN"


def _sums_to_one(value: torch.Tensor, axis: int) -> bool:
    if value.dim() == 0 or value.shape[axis] < 2:
        return False
    sums = value.sum(axis)
    return bool((sums - 1).abs().max() < 1e-3) and bool((value >= 0).all())


def _sums(value: torch.Tensor) -> str:
    """How rows that should sum to 1 do not."""
    if value.dim() == 0 or _sums_to_one(value, -1):
        return ""
    other = [a for a in range(value.dim()) if _sums_to_one(value, a)]
    if other:
        return f"the rows do not sum to 1; the sums along axis {other[0]} do"
    return "the rows do not sum to 1"


def _against(value: torch.Tensor, right: torch.Tensor) -> str:
    """How a tensor differs from the right one of its shape, in words that give no value away."""
    factor = multiple(value, right)
    if factor is not None:
        if abs(factor + 1) < 1e-3:
            return "the sign is wrong"
        if factor < 1:
            return (
                f"it is too small by a factor of {1 / factor:.3g}"
                if factor > 0
                else ("the sign and the size are wrong")
            )
        return f"it is too large by a factor of {factor:.3g}"
    one, two = plain(value), plain(right)
    shares = bool((one >= 0).all() and (one <= 1).all())
    unlike = _sums_to_one(right, -1) and not _sums_to_one(value, -1)
    if shares and unlike:
        return _sums(value)
    zeros = int(((one == 0) & (two != 0)).sum())
    hidden, wanted = one.abs() > 1e37, two.abs() > 1e37
    if not torch.equal(hidden, wanted):
        more, fewer = int((hidden & ~wanted).sum()), int((wanted & ~hidden).sum())
        if more and fewer:
            return "other places are hidden than should be"
        return f"{more} places too many are hidden" if more else f"{fewer} places are not hidden"
    if zeros and zeros * 10 >= one.numel():
        return "there are zeros where values were expected"
    if _one_vector(one - two):
        return "it differs by one vector, the same at all places, as where a bias is left out"
    axis = _exchanged(one, two)
    if axis is not None:
        return f"the values are those of other items along axis {axis}"
    return _sums(value) if unlike else ""


def _one_vector(rest: torch.Tensor) -> bool:
    """Whether what two tensors differ by is the same for all items and tokens: their first axes."""
    if rest.dim() < 2 or rest.abs().max() > 1e30 or rest.numel() < 3 * rest.shape[-1]:
        return False
    same = (rest - rest[:1, :1]).abs().max() <= 1e-5 * rest.abs().max()
    return bool(same and rest.abs().max() > 0)


def _exchanged(one: torch.Tensor, two: torch.Tensor) -> int | None:
    """The axis along which two tensors hold the same slices in another order."""
    for axis in range(one.dim()):
        count = one.shape[axis]
        if not 1 < count <= MOST_ITEMS:
            continue
        a, b = (t.movedim(axis, 0).reshape(count, -1).sort(-1).values for t in (one, two))
        equal = [[near(x, y) for y in b] for x in a]
        moved = any(not equal[i][i] for i in range(count))
        if moved and all(sum(row) == 1 for row in equal):
            return axis
    return None
