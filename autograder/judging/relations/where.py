"""What of a wrong result is right: rows, one side of a diagonal, one of several results, a call.

These are facts and no causes. No number of what was expected is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from autograder.course.asking import Sight
from autograder.course.calls import Call
from autograder.judging.relations.parts import parts_of
from autograder.judging.relations.two import TOLERANCE, Named, finite, largest, same

PLACE = "place."  # how a relation's name begins that says where, and not why
LONGEST = 200  # of longer axes it is not looked up where they are right


def places(got: torch.Tensor, expected: torch.Tensor) -> Iterator[Named]:
    """Where two tensors of one shape are equal, if it is at places that can be told."""
    size = 0.0 if got.dtype == torch.bool else largest(expected)
    wrong = _wrong(got, expected, size)
    if wrong is not None and got.dim() > 1 and got.shape[-1] == got.shape[-2] > 2:
        yield from _beside_the_diagonal(wrong)
    for axis, length in enumerate(got.shape):
        if not 2 <= length <= LONGEST:
            continue
        pairs = zip(got.unbind(axis), expected.unbind(axis), strict=True)
        right = [same(g, e, size) for g, e in pairs]
        if any(right) and not all(right):
            yield from _along(axis, right)
    for value in (True, False) if got.dtype == torch.bool else ():
        if (got[wrong] == value).all():
            yield f"{PLACE}{value}", f"Wherever it is wrong, it is {value}."


def _wrong(got: torch.Tensor, expected: torch.Tensor, size: float) -> torch.Tensor | None:
    """Which numbers differ; None where some are not finite."""
    if got.dtype == torch.bool:
        return got ^ expected
    return (got - expected).abs() > TOLERANCE * size if finite(got, expected) else None


def _along(axis: int, right: Sequence[bool]) -> Iterator[Named]:
    """What can be said of the places of an axis, some of which are right."""
    count = sum(right)
    if count == 1:
        for name, there in (("first", right[0]), ("last", right[-1])):
            if there:
                yield (
                    f"{PLACE}only {name} {axis}",
                    f"Along axis {axis} only the {name} one is right.",
                )
    if count == len(right) - 1:
        for name, there in (("first", right[0]), ("last", right[-1])):
            if not there:
                text = f"Along axis {axis} all are right but the {name}."
                yield f"{PLACE}all but {name} {axis}", text
    if all(right[:count]):
        text = f"Along axis {axis} the first {count} of {len(right)} are right, and none behind."
        yield f"{PLACE}begin {axis}", text
    if all(right[-count:]):
        text = f"Along axis {axis} the last {count} of {len(right)} are right, and none before."
        yield f"{PLACE}end {axis}", text
    listed = [str(place) for place, ok in enumerate(right) if ok]
    if len(listed) > 3:
        listed = [*listed[:2], "others"]
    text = f"Along axis {axis} some are right (number {', '.join(listed)}, counted from 0)."
    yield f"{PLACE}some {axis}", text


def _beside_the_diagonal(wrong: torch.Tensor) -> Iterator[Named]:
    of = "the diagonal of the last two axes"
    if not wrong.tril().any():
        yield f"{PLACE}above", f"It is right on and below {of}, and wrong above."
    elif not wrong.triu().any():
        yield f"{PLACE}below", f"It is right on and above {of}, and wrong below."
    elif not (wrong.tril(-1) | wrong.triu(1)).any():
        yield f"{PLACE}diagonal", f"It is wrong on {of} only."
    elif not wrong.diagonal(dim1=-2, dim2=-1).any():
        yield f"{PLACE}off the diagonal", f"It is right on {of} only."


def _right(got: torch.Tensor, expected: torch.Tensor, rtol: float) -> bool:
    """Whether one result is right; whole numbers must be equal, however large they are."""
    whole = all(torch.equal(t, t.round()) for t in (got, expected) if t.dtype != torch.bool)
    return torch.equal(got, expected) if whole else same(got, expected, rtol=rtol)


def what_is_right(sight: Sight) -> str:
    """Which of several results are right everywhere, and how many of the calls; '' for none."""
    said, right_calls, wrong_calls = [], [], []
    rtol = sight.exercise.rtol
    wrong: set[str] = set()
    labels: list[str] = []
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        pairs = None if got.error or expected.error else parts_of(got.value, expected.value)
        if pairs is None:
            labels = []
            break
        labels = [label for label, *_ in pairs]
        differ = {label for label, g, e in pairs if not _right(g, e, rtol)}
        wrong |= differ
        (wrong_calls if differ else right_calls).append(call)
    if not labels or not wrong:
        return ""
    right = [label for label in labels if label not in wrong]
    if right and len(labels) > 1:
        said.append(f"Right in every call: {', '.join(right)}.")
    if right_calls:
        give = "gives what it should" if len(right_calls) == 1 else "give what they should"
        alone = right_calls[0].says if len(right_calls) == 1 else ""
        in_common = alone or _in_common(right_calls, wrong_calls)
        such = f" ({in_common})" if in_common else ""
        said.append(f"{len(right_calls)} of {len(sight.calls)} calls {give}{such}.")
    return " ".join(said)


def _in_common(right: Sequence[Call], wrong: Sequence[Call]) -> str:
    """What sizes of 1 tell calls that are right from all that are wrong, in words; '' for none."""
    each = [_ones(call) for call in right]
    shared = [said for said in each[0] if all(said in other for other in each)]
    apart = [said for said in shared if not any(said in _ones(call) for call in wrong)]
    return f"those with {' and '.join(apart)}" if apart else ""


def _ones(call: Call) -> list[str]:
    """Along which axes all tensors of a call have size 1, and which numbers that it is built with
    or given by name are 1."""
    shapes = [t.shape for t in call.args if isinstance(t, torch.Tensor)]
    least = min((len(shape) for shape in shapes), default=0)
    axes = [axis for axis in range(least) if all(shape[axis] == 1 for shape in shapes)]
    given = {**call.kwargs, **call.init_kwargs}
    numbers = [f"{name}=1" for name, n in given.items() if type(n) is int and n == 1]
    return [*(f"size 1 along axis {axis}" for axis in axes), *numbers]
