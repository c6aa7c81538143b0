"""How a tensor differs from the right one, in words that give no value away."""

from __future__ import annotations

import torch

from autograder.tracing.alike import HIDDEN, near, plain, tells
from autograder.tracing.reference import multiple

MOST_ITEMS = 16  # that are compared with one another
ZEROS = "there are zeros where values were expected"
OTHER_ZEROS = "zeros stand in other places than they should"
FEW = 0.5  # the share of an axis up to which one says that only these places differ
SIGN = "the sign is wrong"


def differs(value: torch.Tensor, right: torch.Tensor) -> str:
    """How a tensor differs from the right one of its shape; '' where no few words say it."""
    factor = multiple(value, right)
    if factor is not None:
        return _by_a_factor(factor)
    one, two = plain(value), plain(right)
    shares = bool((one >= 0).all() and (one <= 1).all())
    if shares and _sums_to_one(right, -1) and not _sums_to_one(value, -1):
        return sums(value)
    infinite = (one == -HIDDEN) & (two != -HIDDEN)
    if infinite.any():
        count = int(infinite.sum())
        if (two[infinite] == HIDDEN).all():
            return f"plus infinity stands in {count} places where minus infinity belongs"
        return f"{count} numbers are infinite"
    hidden, wanted = one.abs() > 1e37, two.abs() > 1e37
    if not torch.equal(hidden, wanted):
        said = _hidden_otherwise(hidden, wanted)
        if said:
            return said
        more, fewer = int((hidden & ~wanted).sum()), int((wanted & ~hidden).sum())
        if more and fewer:
            return "other places are hidden than should be"
        if more and not wanted.any() and not two[hidden].any():
            return f"minus infinity stands in {more} places where a number belongs"
        return f"{more} places too many are hidden" if more else f"{fewer} places are not hidden"
    if near(one, two):
        return ""
    zeros = int(((one == 0) & (two != 0)).sum())
    if zeros and zeros * 10 >= one.numel():
        both = bool(((one != 0) & (two == 0)).any())
        return OTHER_ZEROS if both else ZEROS
    if _one_number(one, two):
        return "one and the same number is added to all of it, or left out"
    if _one_vector(one - two):
        return "it differs by one vector, the same at all places, as where a bias is left out"
    said = moved(one, two) or _normalised(one, two) or _by_slices(one, two)
    return said or _changed_one_by_one(one, two) or _only_there(one, two)


def _hidden_otherwise(hidden: torch.Tensor, wanted: torch.Tensor) -> str:
    """How what is hidden stands to what should be, where a pattern says it; of two keys or fewer
    several would."""
    if hidden.dim() < 2 or min(hidden.shape[-2:]) < 3 or not hidden.any() or not wanted.any():
        return ""
    if torch.equal(hidden, ~wanted):
        return "what should be seen is hidden, and what should be hidden is seen"
    if hidden.shape[-1] != hidden.shape[-2]:
        return ""
    diagonal = torch.eye(hidden.shape[-1], dtype=torch.bool).expand_as(hidden)
    if torch.equal(hidden, wanted | diagonal):
        return "the diagonal is hidden too, so that no token sees itself"
    if torch.equal(hidden, ~(wanted | diagonal)):
        return "what should be seen is hidden, but for the diagonal, and the rest is seen"
    return ""


def _by_a_factor(factor: float) -> str:
    if abs(factor + 1) < 1e-3:
        return SIGN
    if factor < 0:
        return "the sign and the size are wrong"
    if factor < 1:
        return f"it is too small by a factor of {1 / factor:.3g}"
    return f"it is too large by a factor of {factor:.3g}"


def has_nan(value: torch.Tensor, count: int) -> str:
    rows = value.reshape(-1, value.shape[-1]) if value.dim() > 1 else value.reshape(1, -1)
    if value.dim() > 1:
        rows = value.reshape(-1, *value.shape[-2:]) if value.dim() > 2 else value[None]
        hit = rows.isnan().any(-1).any(0).nonzero().flatten().tolist()
        if len(hit) == 1:
            return f"after it, {count} numbers are NaN, all in row {hit[0] + 1}"
        if len(hit) < value.shape[-2]:
            return f"after it, {count} numbers are NaN, the first in row {hit[0] + 1}"
    return f"after it, {count} of {value.numel()} numbers are NaN"


BELOW_ZERO = {  # operations that numbers below zero do not have
    "sqrt": "a root",
    "rsqrt": "a root",
    "pow": "a broken power (`** 0.5` is a root)",
    "log": "a logarithm",
    "log2": "a logarithm",
    "log10": "a logarithm",
}


def of_below_zero(op: str, before: torch.Tensor, value: torch.Tensor) -> str:
    """That an operation made NaN of numbers below zero, and of those alone; '' where it did not."""
    what = BELOW_ZERO.get(op.strip("_"), "")
    if not what or before.shape != value.shape or not torch.equal(before < 0, value.isnan()):
        return ""
    return f"{what} of numbers below zero is NaN"


def _sums_to_one(value: torch.Tensor, axis: int) -> bool:
    if value.dim() == 0 or value.shape[axis] < 2:
        return False
    sums = value.sum(axis)
    return bool((sums - 1).abs().max() < 1e-3) and bool((value >= 0).all())


def sums(value: torch.Tensor) -> str:
    """How rows that should sum to 1 do not."""
    if value.dim() == 0 or _sums_to_one(value, -1):
        return ""
    other = [a for a in range(value.dim()) if _sums_to_one(value, a)]
    if other:
        return f"the rows do not sum to 1; the sums along axis {other[0]} do"
    return "the rows do not sum to 1"


def _one_vector(rest: torch.Tensor) -> bool:
    """Whether what two tensors differ by is the same for all items and tokens: their first axes."""
    if rest.dim() < 2 or rest.abs().max() > 1e30 or rest.numel() < 3 * rest.shape[-1]:
        return False
    same = (rest - rest[:1, :1]).abs().max() <= 1e-5 * rest.abs().max()
    return bool(same and rest.abs().max() > 0)


# --- the same numbers elsewhere -------------------------------------------------------------------
def moved(one: torch.Tensor, two: torch.Tensor) -> str:
    """The axis along which two tensors hold the same slices in another order, in words."""
    if one.shape != two.shape:
        return ""
    for axis in range(one.dim()):
        if one.shape[axis] < 2:
            continue
        if near(one, two.flip(axis)):
            return f"the right numbers stand in another order: reversed along axis {axis}"
        shifted = _shifted(one, two, axis)
        if shifted:
            return shifted
    for axis in range(one.dim()):
        if _exchanged(one, two, axis):
            return f"the values are those of other items along axis {axis}"
    return ""


def _shifted(one: torch.Tensor, two: torch.Tensor, axis: int) -> str:
    count = one.shape[axis]
    if count < 3:
        return ""
    late = near(one.narrow(axis, 1, count - 1), two.narrow(axis, 0, count - 1))
    early = near(one.narrow(axis, 0, count - 1), two.narrow(axis, 1, count - 1))
    if late == early:  # neither, or one number in all places
        return ""
    way = "late" if late else "early"
    return f"the right numbers stand one place too {way} along axis {axis}"


def _exchanged(one: torch.Tensor, two: torch.Tensor, axis: int) -> bool:
    """Whether two tensors hold the same slices along an axis in another order."""
    count = one.shape[axis]
    if not 1 < count <= MOST_ITEMS:
        return False
    a, b = (t.movedim(axis, 0).reshape(count, -1).sort(-1).values for t in (one, two))
    sums = [t.sum(-1).sort().values for t in (a, b)]
    if a.shape[1] < 2 or not near(*sums):
        return False
    equal = [[near(x, y) for y in b] for x in a]
    one_to_one = all(sum(row) == 1 for row in (*equal, *zip(*equal, strict=True)))
    return one_to_one and not all(equal[i][i] for i in range(count))


# --- other numbers --------------------------------------------------------------------------------
def _normalised(one: torch.Tensor, two: torch.Tensor) -> str:
    """Rows whose length became 1, or whose mean became 0."""
    for axis, what in ((-1, "row"), (-2, "column")):
        if one.dim() < -axis or one.shape[axis] < 3 or one.abs().max() > 1e30:
            continue
        lengths = [t.norm(dim=axis) for t in (one, two)]
        if (lengths[0] - 1).abs().max() < 1e-3 < (lengths[1] - 1).abs().max():
            return f"it is normalised: each {what} has length 1"
        means = [t.mean(axis).abs().max() for t in (one, two)]
        if means[0] <= 1e-5 * one.abs().max() and means[1] > 1e-2 * two.abs().max():
            return f"the mean of each {what} was taken away"
    return ""


def _by_slices(one: torch.Tensor, two: torch.Tensor) -> str:
    """A factor or a shift that each row has of its own, or each column."""
    if (one.abs() > 1e30).any():
        return ""
    for axis, what in ((-1, "row"), (-2, "column")):
        if one.dim() < 2 or one.shape[axis] < 3:
            continue
        if _is_the_same_along(one - two, axis, one):
            return f"each {what} is shifted by a number of its own"
        if (two.abs() > 1e-6 * two.abs().max()).all():
            ratio = one / two
            if _is_the_same_along(ratio, axis, ratio) and (ratio != 0).all():
                return f"each {what} is multiplied by a number of its own"
    return ""


def _one_number(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether one number was added to all."""
    if one.numel() < 6 or (one.abs() > 1e30).any():
        return False
    return _is_the_same_along((one - two).reshape(1, -1), -1, one)


def _is_the_same_along(value: torch.Tensor, axis: int, of: torch.Tensor) -> bool:
    spread = value - value.narrow(axis, 0, 1)
    return bool(spread.abs().max() <= 1e-4 * of.abs().max())


CHANGES = (  # (what was made of the right one, in words)
    (lambda t: t.square(), "it is squared"),
    (lambda t: t.abs(), "the signs are lost"),
    (lambda t: t.clamp(min=0), "what is below zero was set to 0"),
    (lambda t: t.abs().sqrt() * t.sign(), "its root was taken"),
    (lambda t: t.exp(), "it is the exponential of what belongs there"),
    (lambda t: t.log(), "it is the logarithm of what belongs there"),
    (lambda t: 1 / t, "it is one divided by what belongs there"),
    (lambda t: 1 - t, "it is 1 minus what belongs there"),
    (lambda t: t.sigmoid(), "it went through a sigmoid"),
    (lambda t: t.tanh(), "it went through a tanh"),
    (lambda t: t.softmax(-1), "it went through a softmax"),
)


def _changed_one_by_one(one: torch.Tensor, two: torch.Tensor) -> str:
    """A function of each number."""
    if (one.abs() > 1e30).any():
        return ""
    for change, words in CHANGES:
        other = plain(change(two))
        if not tells(other):
            continue  # of one number in all places nobody can tell where it comes from
        if other.abs().max() < 1e30 and near(one, other):
            return words
    return ""


def _only_there(one: torch.Tensor, two: torch.Tensor) -> str:
    """The few places along one axis that differ, where all others are right."""
    size = two[two.abs() < 1e37].abs().max() if (two.abs() < 1e37).any() else 1.0
    apart = (one - two).abs() > 2e-4 * size + 1e-7
    if one.dim() > 1 and one.shape[-1] == one.shape[-2] > 2:
        diagonal = torch.eye(one.shape[-1], dtype=torch.bool).expand_as(apart)
        if torch.equal(apart, diagonal) or torch.equal(apart, ~diagonal):
            return f"only the diagonal is {'wrong' if apart[diagonal].all() else 'right'}"
    best: tuple[float, int, list[int]] | None = None
    for axis in range(one.dim()):
        count = one.shape[axis]
        if count < 3:
            continue
        hit = apart.movedim(axis, 0).reshape(count, -1).any(-1).nonzero().flatten().tolist()
        if 0 < len(hit) <= FEW * count and (best is None or len(hit) / count < best[0]):
            best = (len(hit) / count, axis, hit)
    if best is None:
        return ""
    _, axis, hit = best
    places = ", ".join(map(str, hit[:4])) + (", ..." if len(hit) > 4 else "")
    return f"along axis {axis} only index {places} is wrong"
