"""Whether a tensor is one of the answer's own, whatever the order of its axes.

Values are compared sorted, in float64; then the order of the axes is solved for: a tensor is in
order where it is a right one with its axes moved, merged or split, and out of order where it has
the right numbers in places that no such change explains. Nothing is said on weak evidence: of few
or constant numbers nobody can tell what they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import torch

RTOL = 2e-4  # of the largest number in a tensor
FEWEST = 3  # different numbers that make a tensor one that can be recognised
MOST_SLICES = 128
MOST_EQUAL = 4  # slices with the same numbers whose order is looked at
HIDDEN, NOT_A_NUMBER = -8e37, 7e37  # stand for minus infinity (and what serves as it) and NaN
REAL = 1e37  # what is smaller is a number and stands for nothing
FAR_BELOW = -5e3  # where all other numbers are small, this and less hides


def plain(value: torch.Tensor) -> torch.Tensor:
    """The numbers with one number for all that hides a score, and one for NaN.

    What is far below all the rest (-1e9, the smallest number of a dtype) hides as infinity does.
    Most tensors hold neither and come back as they are.
    """
    if value.is_floating_point() and value.numel():
        least, most = value.aminmax()  # of NaN both are NaN
        if least.item() > FAR_BELOW and most.item() < math.inf:
            return value
    finite = value[value.isfinite()]
    if finite.numel():
        near = finite[finite > FAR_BELOW]
        rest = near.abs().max().item() if near.numel() else math.inf
        if rest < 1e3:
            value = torch.where(value <= FAR_BELOW, torch.full_like(value, HIDDEN), value)
    return torch.nan_to_num(value, nan=NOT_A_NUMBER, posinf=-HIDDEN, neginf=HIDDEN)


def tells(value: torch.Tensor) -> bool:
    """Whether a tensor holds enough different numbers to be recognised."""
    numbers = plain(value.flatten()).numpy()
    if numbers.size < FEWEST:
        return False
    sizes = np.abs(numbers)
    finite = numbers if sizes.max() < REAL else numbers[sizes < REAL]
    if finite.size < FEWEST:
        return False
    ordered = np.sort(finite[:2_000])
    scale = max(abs(ordered[0]), abs(ordered[-1]), 1e-30)
    different = int(np.count_nonzero(ordered[1:] - ordered[:-1] > 1e-5 * scale)) + 1
    return different >= FEWEST and not _is_count(ordered, different)


def _is_count(ordered: np.ndarray, different: int) -> bool:
    """Whether these are 0, 1, 2, ...: positions, not results."""
    return different <= ordered[-1] + 2 and bool((ordered == ordered.round()).all())


def near(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors of one shape, made `plain`, are equal up to rounding."""
    if not two.numel():
        return True
    size = _largest(two)
    if size < REAL and _largest(one) < REAL:  # most hide nothing
        return (one - two).abs().max().item() <= RTOL * size + 1e-7
    real = (one.abs() < REAL) & (two.abs() < REAL)
    if not torch.equal(one[~real], two[~real]):
        return False
    if not real.any():
        return True
    size = two[real].abs().max().item()
    return bool((one[real] - two[real]).abs().max() <= RTOL * size + 1e-7)


def _largest(value: torch.Tensor) -> float:
    """The largest size of a number."""
    return value.abs().max().item()


@dataclass
class Known:
    """One right tensor in all the shapes that the answer has it in; the finest says its axes."""

    place: int  # in the answer's trace, the first of them
    shapes: list[torch.Tensor]
    name: str = ""
    called: list[str] = field(default_factory=list)  # all names that it has, short ones too
    _sorted: dict = field(default_factory=dict)

    @cached_property
    def value(self) -> torch.Tensor:
        """The shape with the most axes."""
        return max(self.shapes, key=lambda t: sum(n > 1 for n in t.shape))

    def add(self, value: torch.Tensor) -> None:
        """Another shape of it."""
        self.shapes.append(value)
        for kept in ("value", "size", "ends"):
            self.__dict__.pop(kept, None)
        self._sorted.clear()

    @cached_property
    def size(self) -> int:
        """How many numbers it has."""
        return self.value.numel()

    @cached_property
    def ends(self) -> tuple[float, float, float]:
        """The least and the largest of its numbers, and how far another's may be from them."""
        ordered = self.in_order()
        real = ordered[ordered.abs() < REAL]
        room = RTOL * _largest(real) + 1e-7 if real.numel() else 0.0
        return ordered[0].item(), ordered[-1].item(), room

    def in_order(self) -> torch.Tensor:
        """All its numbers, sorted."""
        return self.slices(()).reshape(-1)

    def slices(self, axes: tuple[int, ...]) -> torch.Tensor:
        """The sorted numbers of each slice along these axes, as [slices, numbers]."""
        if axes not in self._sorted:
            value = self.value
            moved = value.movedim(axes, tuple(range(len(axes))))
            count = math.prod(value.shape[a] for a in axes)
            self._sorted[axes] = plain(moved.reshape(count, -1)).sort(-1).values
        return self._sorted[axes]


@dataclass(frozen=True)
class Likeness:
    """What a tensor is: a known one, or the slices of it along some axes; whether in order."""

    known: Known
    axes: tuple[int, ...] = ()
    index: int = 0
    order: tuple[int, ...] | None = None  # of the known tensor's axes; None where out of order

    @property
    def whole(self) -> bool:
        return not self.axes

    @property
    def in_order(self) -> bool:
        return self.order is not None

    @property
    def turned(self) -> bool:
        """Whether its last axis is another than that of the known tensor, or of such a slice."""
        long = [a for a in self.order or () if self.known.value.shape[a] > 1]
        return bool(long) and long[-1] != max(long)


class Shelf(list):
    """Known tensors, to be found by how many numbers they have."""

    def __init__(self, known: Iterable[Known] = ()):
        super().__init__(known)
        self._found: dict[tuple[int, bool], list[Known]] = {}

    def with_size(self, size: int, in_slices: bool = False) -> list[Known]:
        """Those of this many numbers, or those that can be cut in slices of so many."""
        if (size, in_slices) not in self._found:
            fits = [e for e in self if e.size % size == 0 and (e.size > size) == in_slices]
            self._found[size, in_slices] = fits
        return self._found[size, in_slices]


def likeness(value: torch.Tensor, known: list[Known]) -> Likeness | None:
    """What a tensor is among the known ones; None where it is none of them or cannot be told."""
    return among(value, known) if tells(value) else None


def among(value: torch.Tensor, known: list[Known]) -> Likeness | None:
    """The same, of a tensor that tells."""
    known = known if isinstance(known, Shelf) else Shelf(known)
    ordered = plain(value.flatten()).sort().values
    out_of_order = None
    for each in holding(ordered, known.with_size(value.numel())):
        order = order_of(value, each.value)
        if order is not None:
            return Likeness(each, order=order)
        out_of_order = out_of_order or Likeness(each)
    return out_of_order or _slice(value, ordered, known)


def holding(ordered: torch.Tensor, known: list[Known]) -> Iterator[Known]:
    """The known ones that hold these sorted numbers; most are told apart by the first or the
    last."""
    size, first, last = ordered.numel(), ordered[0].item(), ordered[-1].item()
    for each in known:
        if each.size != size:
            continue
        least, most, room = each.ends
        may_be = abs(least - first) <= room and abs(most - last) <= room
        if may_be and near(ordered, each.in_order()):
            yield each


def _slice(value: torch.Tensor, ordered: torch.Tensor, known: Shelf) -> Likeness | None:
    count = value.numel()
    larger = known.with_size(count, in_slices=True)
    if not larger:
        return None
    # Its own size counts: beside the largest number of all slices, small ones would look alike.
    own = ordered.numpy()
    room = RTOL * np.abs(own[np.abs(own) < REAL]).max() + 1e-7
    for each in larger:
        for axes in _axes_for(tuple(each.value.shape), count):
            slices = each.slices(axes).numpy()
            begin = np.flatnonzero(np.abs(slices[:, 0] - own[0]) <= room)
            if not begin.size:
                continue
            close = (np.abs(slices[begin] - own) <= room).all(-1)
            found = begin[close].tolist()[:MOST_EQUAL]
            orders = [(_order_in_slice(value, each, axes, index), index) for index in found]
            for order, index in sorted(orders, key=lambda one: one[0] is None)[:1]:
                return Likeness(each, axes, index, order)
    return None


def _order_in_slice(value: torch.Tensor, known: Known, axes: tuple[int, ...], index: int):
    """The order of the axes that are left in a slice, by their places in the known tensor."""
    fine = known.value
    left = [i for i in range(fine.dim()) if i not in axes]
    parts = fine.movedim(axes, tuple(range(len(axes)))).flatten(0, len(axes) - 1)
    order = order_of(value, parts[index])
    return None if order is None else tuple(left[i] for i in order)


@lru_cache(maxsize=1_000)
def _axes_for(shape: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    """The axes that slices of this many numbers leave out."""
    total = math.prod(shape)
    if size == 0 or size >= total or total % size or total // size > MOST_SLICES:
        return []
    places = [i for i, n in enumerate(shape) if n > 1]
    several = itertools.chain.from_iterable(itertools.combinations(places, k) for k in (1, 2, 3))
    return [a for a in several if math.prod(shape[i] for i in a) * size == total]


def order_of(value: torch.Tensor, fine: torch.Tensor) -> tuple[int, ...] | None:
    """The order of a known tensor's axes in which its numbers stand in `value`."""
    own = plain(value)
    shape = [n for n in value.shape if n > 1]
    long = [i for i, n in enumerate(fine.shape) if n > 1]
    if len(long) > 6:
        return None
    for order in itertools.permutations(long):
        sizes = [fine.shape[i] for i in order]
        if merges(sizes, shape):
            moved = plain(fine.squeeze().permute(_places(order, long)))
            if near(own.reshape(-1), moved.reshape(-1)):
                return order
    if len(shape) > len(long) and len(shape) <= 6:  # the answer has it in fewer axes
        for order in itertools.permutations(range(len(shape))):
            sizes = [shape[i] for i in order]
            if merges(sizes, [fine.shape[i] for i in long]):
                moved = own.reshape(shape).permute(order)
                if near(moved.reshape(-1), plain(fine).reshape(-1)):
                    return tuple(long)
    return None


def _places(order: tuple[int, ...], long: list[int]) -> list[int]:
    return [long.index(i) for i in order]


def merges(fine: list[int], coarse: list[int]) -> bool:
    """Whether axes of these sizes become the others by joining neighbours."""
    left = list(fine)
    for size in coarse:
        product = 1
        while left and product < size:
            product *= left.pop(0)
        if product != size:
            return False
    return not left
