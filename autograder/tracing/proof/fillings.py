"""Right tensors of the answer's in the place of an answer's steps: whole, cut, in another order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

from autograder.tracing.alike import HIDDEN, Known, merges, plain
from autograder.tracing.first_wrong import Judged
from autograder.tracing.reference import multiple

MOST_WAYS = 24  # to lay one right tensor out in one shape


def arrangements(known: Known, shape: torch.Size) -> Iterator[torch.Tensor]:
    """A right tensor's numbers in a shape, in each way that its axes can be ordered."""
    seen = []
    for value in known.shapes:
        if value.shape == shape:
            seen.append(value)
            yield value
    fine = known.value.squeeze()
    if fine.dim() > 5:
        return
    coarse = [n for n in shape if n > 1]
    for order in itertools.permutations(range(fine.dim())):
        if merges([fine.shape[i] for i in order], coarse):
            value = fine.permute(order).reshape(shape)
            if not any(torch.equal(value, other) for other in seen):
                seen.append(value)
                yield value
        if len(seen) >= MOST_WAYS:
            return


def in_slices(known: Known, shapes: list[torch.Size]) -> Iterator[list[torch.Tensor]]:
    """A right tensor cut in slices, one for each of several steps in a row."""
    count, size = len(shapes), math.prod(shapes[0])
    for fine in {tuple(t.shape): t for t in known.shapes}.values():
        axes = [i for i, n in enumerate(fine.shape) if n > 1]
        for k in (1, 2, 3):
            for own in itertools.permutations(axes, k):
                parts = math.prod(fine.shape[i] for i in own)
                if parts < 2 or count % parts or fine.numel() // parts != size:
                    continue
                rest = [i for i in range(fine.dim()) if i not in own]
                for order in itertools.permutations(rest):
                    if [fine.shape[i] for i in order if fine.shape[i] > 1] != [
                        n for n in shapes[0] if n > 1
                    ]:
                        continue
                    cut = fine.permute(*own, *order).reshape(parts, *shapes[0])
                    yield [cut[j % parts] for j in range(count)]
                    if parts != count:
                        yield [cut[j // (count // parts)] for j in range(count)]


def right_ones(judged: Judged, group, steps) -> Iterator[tuple[Known, list[torch.Tensor]]]:
    """Right tensors in the place of these steps: first what the answer makes there, last what it
    makes with the mistakes that are told already."""
    should = judged.own.makes(judged.places(group[0])) if len(group) == 1 else None
    known = [each for each in (*judged.own.known, *judged.own.told) if each is not should]
    if len(group) > 1:
        if len({step.outer for step in steps}) > 1:
            yield from _each_in_another_order(judged, group, steps)
            return
        yield from _in_turn(judged, group)
        if len({step.calls[-1].which if step.calls else 0 for step in steps}) > 1:
            yield from _each_in_another_order(judged, group, steps)
            return  # the parts that one operation gave
    for each in [should, *known] if should is not None else known:
        for values in _fillings(each, steps):
            yield each, values
    if len(steps) == 1 and group[0] in judged.bad:
        yield from _of_other_programs(judged, steps[0].value)
    yield from _wanted_back(judged, group)


def _of_other_programs(judged: Judged, wrong: torch.Tensor) -> Iterator:
    """What other right programs have in the place of a wrong tensor: where it is a multiple of it,
    or where both have numbers without end."""
    hides = bool((plain(wrong).abs() == -HIDDEN).any())
    for each in judged.own.also:
        if each.value.numel() != wrong.numel():
            continue
        for value in arrangements(each, wrong.shape):
            both = hides and value.shape == each.value.shape and (plain(value) == HIDDEN).any()
            if both or multiple(wrong, value) is not None:
                yield each, [value]


def _wanted_back(judged: Judged, group) -> Iterator[tuple[Known, list[torch.Tensor]]]:
    """What is to be returned in the place of a returned step, where it has too few numbers to be
    told from others."""
    own, returned = judged.own, judged.trace.returned
    if len(group) != 1 or len(returned) != len(own.trace.returned):
        return
    for number, wanted in zip(returned, own.trace.returned, strict=True):
        value = own.trace.steps[wanted].value
        if number == group[0] and wanted not in own.of_step:
            yield Known(wanted, [value]), [value]


def _each_in_another_order(judged: Judged, group, steps) -> Iterator:
    """Several calls of one function, each tensor with its own axes in another order."""
    own = [judged.like.get(i) for i in group]
    if any(each is None or not each.whole for each in own):
        return
    ways = [list(arrangements(e.known, s.value.shape)) for e, s in zip(own, steps, strict=True)]
    for values in zip(*ways, strict=False):
        yield own[0].known, list(values)


def _in_turn(judged: Judged, group: tuple[int, ...]) -> Iterator[tuple[Known, list[torch.Tensor]]]:
    """What the answer's own rounds give, one after the other; and what is wanted at the end."""
    own = judged.own
    shape, returned = judged.steps[group[0]].value.shape, judged.trace.returned
    rounds: dict = {}
    for number, step in enumerate(own.trace.steps):
        if number in own.of_step and step.value.shape == shape:
            rounds.setdefault((step.op, step.place), []).append(number)
    rows = [numbers for numbers in rounds.values() if len(numbers) == len(group)]
    if len(returned) == len(own.trace.returned) and set(group) <= set(returned):
        rows.append([own.trace.returned[returned.index(i)] for i in group])
    for numbers in rows:
        if all(i in own.of_step for i in numbers):
            yield own.of_step[numbers[0]], [own.trace.steps[i].value for i in numbers]


def _fillings(known: Known, steps) -> Iterator[list[torch.Tensor]]:
    shape = steps[0].value.shape
    if known.value.numel() == steps[0].value.numel():
        if len(steps) == 1:
            for value in arrangements(known, shape):
                yield [value]
        else:
            for value in known.shapes:
                if value.shape == shape:
                    yield [value] * len(steps)
    elif len(steps) > 1:
        yield from in_slices(known, [s.value.shape for s in steps])
