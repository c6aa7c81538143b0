"""How one tensor stands to another: times a factor, transposed, averaged, a step too many.

Each function yields the relations that hold, as (name, sentence). Shapes are equal where nothing
else is said. Numbers are float64, or True and False.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

FEW = 6  # of fewer numbers a relation may hold by accident, and says too much
TOLERANCE = 1e-4  # relative to the largest number, as `Exercise.rtol` is
NEAR = 0.02  # of what is wrong, that a relation with many free factors may leave unexplained

Named = tuple[str, str]


def scaled(got, expected) -> Iterator[Named]:
    if not got.any():
        yield "result.zero", "Every number that comes back is 0."
        return
    if got.dtype == torch.bool:
        return
    large = expected.abs() > 0.05 * largest(expected)
    factor = (got[large] / expected[large]).median().item()
    if not finite(got, expected) or not same(got, expected * factor) or abs(factor) < 1e-6:
        return
    if abs(factor + 1) < 1e-3:
        yield "result.sign", "The numbers are right, but each has the other sign."
    else:
        text = f"Each number is the right one times one and the same factor, here {factor:.3g}."
        yield "result.factor", text


def rounded(got, expected) -> Iterator[Named]:
    """All that comes back are numbers of half precision, near the right ones."""
    if got.dtype == torch.bool or not finite(got, expected):
        return
    for kind, off in ((torch.float16, 2**-9), (torch.bfloat16, 2**-6)):
        coarse = torch.equal(got, got.to(kind).double()) and not torch.equal(got, got.round())
        if coarse and (got - expected).abs().max() <= off * largest(expected):
            text = "The numbers are right in their first digits: they went through {}."
            yield f"result.{kind}", text.format(str(kind).removeprefix("torch."))


def moved(got, expected) -> Iterator[Named]:
    """The right numbers at other places."""
    if got.dtype == torch.bool and same(got, ~expected):
        yield "result.inverted", "True stands where False belongs, and False where True does."
        return
    ordered = got.flatten().sort().values
    if not same(ordered, expected.flatten().sort().values):
        return
    yield from transposed(got, expected)
    for axis, size in enumerate(got.shape):
        if size < 2:
            continue
        if same(got, expected.flip(axis)):
            yield f"result.reversed {axis}", f"It stands in reverse order along axis {axis}."
        for by in (1, -1):
            if same(got, expected.roll(by, axis)):
                text = f"All stands {'behind' if by > 0 else 'before'} its place, by one along "
                yield f"result.shifted {axis} {by}", f"{text}axis {axis}."
    if len(ordered.unique()) >= FEW:
        yield "result.moved", "The right numbers are there, but at other places."


def transposed(got, expected) -> Iterator[Named]:
    if not 2 <= expected.dim() <= 4:
        return
    plain = tuple(range(expected.dim()))
    for order in itertools.permutations(plain):
        if order == plain or [expected.shape[n] for n in order] != list(got.shape):
            continue
        if same(got, expected.permute(order)):
            yield f"result.transposed {order}", _changed_places(order)


def _changed_places(order: tuple[int, ...]) -> str:
    others = [n for n, axis in enumerate(order) if n != axis]
    if len(others) == 2:
        return f"The numbers are right, but the axes {others[0]} and {others[1]} are swapped."
    return "The numbers are right, but the axes stand in another order."


def added(got, expected, inputs) -> Iterator[Named]:
    if got.dtype == torch.bool or not finite(got, expected):
        return
    rest = got - expected
    if same(rest, rest.flatten()[0].expand_as(rest)):
        yield "result.offset", "All numbers are off by one and the same amount."
    for name, value in inputs:
        if value.shape != rest.shape:
            continue
        if same(rest, value):
            yield f"result.added {name}", f"The result is right, but for {name}, which is added."
        if same(rest, -value):
            yield f"result.taken {name}", f"The result is right, but for {name}, taken from it."


def put_through(got, expected) -> Iterator[Named]:
    """A step too many or too few at the end."""
    if got.dtype == torch.bool or not finite(got, expected):
        return
    for name, step in _STEPS.items():
        if same(got, step(expected)):
            yield f"result.{name} too many", f"The result is right, but went through {name} too."
        if same(step(got), expected):
            yield f"result.{name} missing", f"What is missing is the last step, {name}."
    for axis in range(got.dim()):
        if got.shape[axis] < 2:
            continue
        if same(got, expected.softmax(axis)):
            text = f"The result is right, but went through a softmax over axis {axis} too."
            yield f"result.softmax {axis} too many", text
        if same(got.softmax(axis), expected):
            text = f"What is missing is the last step, a softmax over axis {axis}."
            yield f"result.softmax {axis} missing", text
        if same(got, expected.cumsum(axis)):
            yield f"result.running {axis}", f"The numbers are added up along axis {axis}."
        total = expected.sum(axis, keepdim=True)
        if total.abs().min() > 1e-6 and same(got, expected / total):
            text = f"The result is right, but was divided by its sum along axis {axis}."
            yield f"result.normalised {axis}", text
    for axes, named in _one_or_two(got.dim()):
        for what, merged in (("averaged", expected.mean), ("added up", expected.sum)):
            if same(got, merged(axes, keepdim=True).expand_as(got)):
                yield f"result.{what} {named}", f"The numbers are {what} along {named}."


_STEPS: dict[str, Callable] = {
    "an exponential": torch.exp,
    "a logarithm": lambda x: x.clamp(min=1e-300).log(),
    "a square": torch.square,
    "a root": lambda x: x.clamp(min=0).sqrt(),
    "the absolute value": torch.abs,
    "a cut at 0": torch.relu,
    "rounding": torch.round,
    "cutting off decimals": torch.trunc,
    "1 / x": lambda x: 1 / torch.where(x == 0, 1e-300, x),
    "1 - x": lambda x: 1 - x,
}


def all_alike(got, expected) -> Iterator[Named]:
    for axis, size in enumerate(got.shape):
        alike = [same(t, t.narrow(axis, 0, 1).expand_as(t)) for t in (got, expected) if size > 1]
        if alike == [True, False]:
            yield f"result.alike {axis}", f"Along axis {axis} all that comes back is the same."


def other_axes(got, expected) -> Iterator[Named]:
    """The right numbers in another form; or an axis that was summed over, or never was."""
    if got.numel() < 2:
        return
    if same(got.flatten(), expected.flatten()):
        yield "result.form", "The numbers are right; only the form is not."
    yield from transposed(got, expected)
    if got.dtype == torch.bool or not tells(got) or not tells(expected):
        return
    for axes, named in _one_or_two(expected.dim()):
        for what, merged in (("averaged", expected.mean), ("added up", expected.sum)):
            if any(same(got, merged(axes, keepdim=keep)) for keep in (True, False)):
                yield f"result.{what} {named}", f"The numbers are {what} along {named}."
    for axes, named in _one_or_two(got.dim()):
        for what, merged in (("averaged", got.mean), ("added up", got.sum)):
            if any(same(merged(axes, keepdim=keep), expected) for keep in (True, False)):
                text = f"What is missing: the numbers are to be {what} along {named}."
                yield f"result.not {what} {named}", text


def _one_or_two(count: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """The axes of a tensor, one by one and in pairs, and how they are called."""
    for axis in range(count):
        yield (axis,), f"axis {axis}"
    for one, other in itertools.combinations(range(count), 2):
        yield (one, other), f"axes {one} and {other}"


def by_rows(got, expected) -> Iterator[Named]:
    """Each row, or each entry of one axis, with a factor of its own, or an amount of its own.

    A normaliser that is wrong and a bias that is left out look like this.
    """
    if got.dtype == torch.bool or not finite(got, expected) or got.dim() < 2:
        return
    wrong = (got - expected).abs().max().item()
    plain = tuple(range(got.dim()))
    others = [tuple(n for n in plain if n != axis) for axis in plain]
    ways = [*others, *((axis,) for axis in plain)] if got.dim() > 2 else others
    for along in ways:
        (axis,) = along if len(along) == 1 else set(plain) - set(along)
        which = "row" if len(along) == 1 else "place"
        squares = expected.square().sum(along, keepdim=True)
        factor = (got * expected).sum(along, keepdim=True) / squares.clamp(min=1e-300)
        counted = expected.abs() > 1e-6 * largest(expected)
        free = counted.any(dim=along[0], keepdim=True) if len(along) == 1 else factor != 0
        if counted.sum() >= free.sum() + FEW and _explains(got, expected * factor, wrong):
            text = (
                f"Each row along axis {axis} is the right one times a factor of its own: look at "
                "what a row is divided by, or multiplied with."
                if which == "row"
                else f"The numbers at one place of axis {axis} are all the right ones times one "
                "factor, which is another one at each place."
            )
            yield f"result.rows scaled {which} {axis}", text
        amount = (got - expected).mean(along, keepdim=True)
        if got.numel() >= amount.numel() + FEW and _explains(got, expected + amount, wrong):
            text = (
                f"Along axis {axis} all numbers are off by one and the same amount, another one "
                "in each row."
                if which == "row"
                else "Something is added, or left out, that is the same everywhere but for its "
                f"place along axis {axis} (such as a bias)."
            )
            yield f"result.rows offset {which} {axis}", text


def _explains(got, guess, wrong: float) -> bool:
    """Whether next to nothing of what is wrong is left."""
    left = (got - guess).abs().max().item()
    return left <= min(TOLERANCE * largest(guess), NEAR * wrong)


def as_numbers(got, expected) -> Iterator[Named]:
    """1 and 0 for True and False."""
    if expected.dtype != torch.bool or got.shape != expected.shape:
        return
    for text, right in (("else it is right", expected), ("and the wrong way round", ~expected)):
        if torch.equal(got, right.double()):
            said = f"Numbers 1 and 0 stand where True and False are asked for, {text}."
            yield f"result.numbers {text}", said
        if torch.equal(got == -torch.inf, right) and not got[~right].any():
            said = f"-inf and 0 stand where True and False are asked for, {text}."
            yield f"result.numbers -inf {text}", said


def signs(got, expected) -> Iterator[Named]:
    if got.dtype != torch.bool and finite(got, expected) and same(got.abs(), expected.abs()):
        yield "result.signs", "Each number has the right size, but some have the other sign."


def left_at_zero(got, expected) -> Iterator[Named]:
    if got.dtype == torch.bool or not finite(got, expected) or same(expected, expected.round()):
        return
    wrong = (got - expected).abs() > TOLERANCE * largest(expected)
    if not got[wrong].any() and got[~wrong].any():
        yield "result.left at 0", "Wherever a number is wrong, 0 came back."


def one_instead(got, expected) -> Iterator[Named]:
    """Wherever a number is wrong, one and the same came back that no number should be."""
    if got.dtype == torch.bool:
        return
    wrong = ~((got - expected).abs() <= TOLERANCE * max(largest(expected), 1e-9))
    wrong &= ~(got == expected) & ~(got.isnan() & expected.isnan())
    if not wrong.any() or wrong.all():
        return
    for name, there in (
        ("NaN", got.isnan()),
        ("inf", got == torch.inf),
        ("-inf", got == -torch.inf),
    ):
        if there[wrong].all():
            if not expected[wrong].any():
                yield f"result.{name} for 0", f"{name} came back where 0 belongs, else it is right."
            yield f"result.{name} instead", f"Wherever a number is wrong, {name} came back."


def cut(got, expected) -> Iterator[Named]:
    """Of another shape: one entry of an axis, some missing at its end, or too many."""
    if not (tells(got) and tells(expected)):
        return
    for axis, size in enumerate(expected.shape):
        for which, place in (("first", 0), ("last", -1)):
            only = expected.select(axis, place)
            if size > 1 and (same(got, only) or same(got, only.unsqueeze(axis))):
                text = f"Of axis {axis} only the {which} entry comes back."
                yield f"result.only {which} {axis}", text
        if got.dim() != expected.dim():
            continue
        less = got.shape[axis]
        for which, there in (("last", 0), ("first", size - less)):
            if 1 < less < size and same(got, expected.narrow(axis, there, less)):
                gone = f"along axis {axis} the {which} {size - less} are missing"
                text = f"What comes back is right; {gone}."
                yield f"result.missing {which} {axis}", text
        for which, there in (("behind", 0), ("in front", less - size)):
            if 1 < size < less and same(got.narrow(axis, there, size), expected):
                text = (
                    f"It is right, but along axis {axis} there are {less - size} too many {which}."
                )
                yield f"result.too many {which} {axis}", text


# --- what is compared ----------------------------------------------------------------------------
def tells(tensor: torch.Tensor) -> bool:
    """Whether there are enough numbers, of which not all are equal."""
    return tensor.numel() >= FEW and bool((tensor != tensor.flatten()[0]).any())


def same(one: torch.Tensor, two: torch.Tensor, size: float = 0.0, rtol: float = TOLERANCE) -> bool:
    """Whether two tensors are equal up to rounding; infinities at the same places."""
    if one.shape != two.shape or (one.dtype == torch.bool) != (two.dtype == torch.bool):
        return False
    if one.dtype == torch.bool:
        return torch.equal(one, two)
    if not torch.equal(one.isfinite(), two.isfinite()):
        return False
    finite = two.isfinite()
    if not torch.equal(one[~finite].nan_to_num(0.5), two[~finite].nan_to_num(0.5)):
        return False
    allowed = rtol * max(largest(two), size, 1e-9)
    return not finite.any() or (one[finite] - two[finite]).abs().max().item() <= allowed


def largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].double()
    return finite.abs().max().item() if finite.numel() else 0.0


def finite(*tensors: torch.Tensor) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors)
