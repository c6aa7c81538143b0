"""An axis that is cut in sizes of the wrong order, where the new axes are only moved afterwards.

`view(batch, seq, head_size, heads)` keeps all numbers in their order, so that nothing is wrong yet;
no later move of axes can make it right. Whether it is the cut or the move is tried out: all orders
of the sizes, and of the axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import torch

from autograder.tracing.alike import merges, near, plain
from autograder.tracing.first_wrong import LAYOUT
from autograder.tracing.proof.mends import siblings
from autograder.tracing.proof.replay import Bench, Proof

CUTS = ("view", "reshape", "unflatten")
MOVES = ("transpose", "permute", "movedim", "swapaxes", "moveaxis", "swapdims", "contiguous")
IN_PARTS = ("unbind", "__iter__")
MOST_AXES = 5
CUT = "an axis is cut in sizes of the wrong order"


def before_a_move(bench: Bench, pivot: Proof) -> Proof | None:
    """The step that cut an axis, where no order of the axes that it gave makes right what is made
    of them alone, and some order does of the same sizes in another order."""
    steps, number = bench.judged.steps, pivot.number
    right = pivot.trace.steps[number].value
    if steps[number].op in IN_PARTS:
        parts = siblings(bench.judged, number)
        right = torch.stack([pivot.trace.steps[i].value for i in parts])
        number = steps[number].inputs[0]
        if steps[number].value.shape != right.shape:
            return None
    while steps[number].op in MOVES and len(steps[number].inputs) == 1:
        number = steps[number].inputs[0]
    cut = steps[number]
    if cut.op not in CUTS or len(cut.inputs) != 1 or cut.value.dim() > MOST_AXES:
        return None
    before = steps[cut.inputs[0]].value
    if cut.value.dim() <= before.dim() or number not in bench.group_of:
        return None
    if not bench.one_statement((number,)) or _can_be_moved(cut.value, right):
        return None
    others = (before.reshape(sizes) for sizes in _other_sizes(before, cut.value))
    if not any(_can_be_moved(other, right) for other in others):
        return None
    return replace(pivot, number=number, suspects=(number,), should=None, mend=CUT)


def before_a_merge(bench: Bench, pivot: Proof) -> Proof | None:
    """The step that moved the axes of a right tensor, or gave it in such an order, where they are
    merged next as no answer has them: once merged, no later step can have put them right."""
    steps, like = bench.judged.steps, bench.judged.like
    *moved, merging = pivot.suspects
    if not pivot.all_right or merging != pivot.number or not moved:
        return None
    if not bench.one_statement(moved):
        return None
    first, row = moved[0], pivot.suspects
    is_next = all(
        steps[after].inputs == (before,) and bench.judged.users[before] == [after]
        for before, after in itertools.pairwise(row)
    )
    joins = steps[merging].op in LAYOUT and steps[merging].value.dim() < steps[first].value.dim()
    same = first in like and like[first].known is pivot.should
    if is_next and joins and same and steps[first].op in (*LAYOUT, "einsum"):
        mend = "its axes are merged next in another order than asked for"
        return replace(pivot, number=first, suspects=(first,), should=None, mend=mend)
    return None


def _other_sizes(before: torch.Tensor, cut: torch.Tensor) -> Iterator[tuple[int, ...]]:
    """The sizes of a cut in other orders that cut the same axes."""
    whole = [n for n in before.shape if n > 1]
    for sizes in set(itertools.permutations(cut.shape)) - {tuple(cut.shape)}:
        if merges([n for n in sizes if n > 1], whole):
            yield sizes


def _can_be_moved(value: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether a tensor is right in some order of its axes."""
    if value.dim() != right.dim():
        return False
    wanted = plain(right)
    for order in itertools.permutations(range(value.dim())):
        fits = tuple(value.shape[i] for i in order) == tuple(right.shape)
        if fits and near(plain(value.permute(order)), wanted):
            return True
    return False
