"""What may mend steps of a wrong answer: a right tensor in their place, or their operation made in
another way (an axis, a sign, an operand)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from autograder.course.steps.traces import LEAF, Done
from autograder.tracing.alike import Known, merges
from autograder.tracing.first_wrong import LAYOUT, Judged
from autograder.tracing.proof.operations import REDUCED
from autograder.tracing.proof.replay import Replay

OVER_AN_AXIS = REDUCED.split()
MASKED = ("masked_fill", "masked_fill_", "where", "__mul__", "mul")
PRODUCTS = ("matmul", "__matmul__", "bmm", "mm")
ATTENTION = "scaled_dot_product_attention"
JOINS = ("cat", "concat", "stack", "hstack", "vstack")
MOST_WAYS = 24  # to lay one right tensor out in one shape
MOST_OTHERS = 12  # steps that are tried in the place of an operand


@dataclass(frozen=True)
class Mend:
    """What is changed: steps' values, or how steps are made; and what that is, in words."""

    values: dict[int, torch.Tensor] = field(default_factory=dict)
    calls: dict[int, tuple[Done, ...]] = field(default_factory=dict)
    words: str = ""
    makers: tuple[int, ...] = ()  # steps that may be wrong instead: they made what is replaced


def ways_to_mend(judged: Judged, replay: Replay, group: Sequence[int]) -> Iterator[Mend]:
    """Each small change of these steps, which one place in the text made."""
    steps = [judged.steps[i] for i in group]
    first = steps[0]
    if first.calls is None or first.kind != "float":
        return
    if first.calls[-1].op.strip("_") in OVER_AN_AXIS:
        yield from _other_axes(group, steps)
    if first.calls[-1].op in MASKED:
        yield from _other_masks(replay, group, steps)
    if first.calls[-1].op in PRODUCTS:
        yield from _turned_operands(replay, group, steps)
    if first.calls[-1].op == ATTENTION:
        yield from _other_switches(replay, group, steps)
    if first.calls[-1].op in JOINS:
        yield from _joined_otherwise(group, steps, replay)
    yield Mend({i: -s.value for i, s in zip(group, steps, strict=True)}, {}, "the sign is wrong")
    yield from _left_out(judged, group, steps)
    yield from _other_operands(judged, group, steps)


def _other_axes(group, steps) -> Iterator[Mend]:
    done = steps[0].calls[-1]
    given = list(done.given)
    for place, each in enumerate(given):
        if each[0] == "v" and type(each[1]) is int:
            yield from _axes(group, steps, lambda new, p=place: _put(given, p, new), each[1])
        if each[0] == "k":
            names = dict(each[1])
            for name in ("dim", "axis"):
                if names.get(name, ("", None))[0] == "v" and type(names[name][1]) is int:

                    def other(new, p=place, name=name, names=names):
                        pairs = tuple((names | {name: ("v", new)}).items())
                        return _put(given, p, pairs, "k")

                    yield from _axes(group, steps, other, names[name][1])


def _axes(group, steps, other, now: int) -> Iterator[Mend]:
    rank = max(steps[0].value.dim(), 1) + 1
    for new in [-1, -2, *range(rank - 1)]:
        if new != now:
            calls = {
                i: (*s.calls[:-1], replace(s.calls[-1], given=other(new)))
                for i, s in zip(group, steps, strict=True)
            }
            name = steps[0].calls[-1].op.strip("_")
            yield Mend({}, calls, f"`{name}` runs along dim={now}")


def _put(given: list, place: int, new, kind: str = "v") -> tuple:
    return (*given[:place], (kind, new), *given[place + 1 :])


def _other_masks(replay: Replay, group, steps) -> Iterator[Mend]:
    for turn, words in (
        (lambda m: m.mT, "the mask stands the wrong way round: its rows and columns are exchanged"),
        (lambda m: ~m, "the mask is the wrong way round"),
        (lambda m: ~m.mT, "the mask is the wrong way round"),
    ):
        calls = {}
        for i, step in zip(group, steps, strict=True):
            given = []
            for each in step.calls[-1].given:
                value = replay.value(each[1]) if each[0] == "t" else None
                is_mask = value is not None and value.dtype == torch.bool and value.dim() > 1
                if is_mask and value.shape[-1] == value.shape[-2]:
                    each = ("c", turn(value))
                given.append(each)
            calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=tuple(given)))
        if any(
            c[-1].given != s.calls[-1].given for c, s in zip(calls.values(), steps, strict=True)
        ):
            yield Mend({}, calls, words)


def _turned_operands(replay: Replay, group, steps) -> Iterator[Mend]:
    for places, words in (
        ((0,), "its left operand is used transposed"),
        ((1,), "its right operand is used transposed"),
        ((0, 1), "its operands stand in the wrong order"),
    ):
        calls = {}
        for i, step in zip(group, steps, strict=True):
            given = list(step.calls[-1].given)
            tensors = [replay.value(g[1]) if g[0] == "t" else None for g in given[:2]]
            if len(tensors) < 2 or any(t is None or t.dim() < 2 for t in tensors):
                break
            for place in places:
                given[place] = ("c", tensors[place].mT)
            if len(places) == 2:
                given[:2] = ("c", tensors[1].mT), ("c", tensors[0].mT)
                # (A B)^T: the same product with its axes exchanged
            calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=tuple(given)))
        if len(calls) == len(steps):
            yield Mend({}, calls, words)


def _other_switches(replay: Replay, group, steps) -> Iterator[Mend]:
    """The library's attention with one of its arguments left out or turned."""
    named = dict(next((g[1] for g in steps[0].calls[-1].given if g[0] == "k"), ()))
    for name, words in (
        ("scale", "the `scale` that is given is not the one asked for"),
        ("is_causal", "`is_causal=True` hides later tokens, which is not asked for here"),
        ("attn_mask", "its mask hides what should be seen"),
    ):
        if name in named:
            rest = {n: value for n, value in named.items() if n != name}
            yield Mend({}, _named_otherwise(group, steps, rest), words)
    if "attn_mask" not in named:
        words = "later tokens are seen: `is_causal` is not set"
        later = named | {"is_causal": ("v", True)}
        yield Mend({}, _named_otherwise(group, steps, later), words)
    elif named["attn_mask"][0] == "t" and len(group) == 1:
        mask = replay.value(named["attn_mask"][1])
        if mask.dtype == torch.bool:
            words = "its mask has the wrong sense: True means that a key may be seen"
            other = named | {"attn_mask": ("c", ~mask)}
            yield Mend({}, _named_otherwise(group, steps, other), words)


def _named_otherwise(group, steps, named: dict) -> dict[int, tuple[Done, ...]]:
    """The steps with other named arguments."""
    calls = {}
    for i, step in zip(group, steps, strict=True):
        given = [each for each in step.calls[-1].given if each[0] != "k"]
        own = (*given, ("k", tuple(named.items())))
        calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=own))
    return calls


def _joined_otherwise(group, steps, replay: Replay) -> Iterator[Mend]:
    """Parts joined in the opposite order, or the first or the last with the other sign."""

    def joined(turn) -> dict[int, tuple[Done, ...]]:
        calls = {}
        for i, step in zip(group, steps, strict=True):
            (kind, *parts), *rest = step.calls[-1].given
            given = ((kind, *turn(parts)), *rest)
            calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=given))
        return calls

    def minus(part: tuple) -> tuple:
        return ("c", -replay.value(part[1])) if part[0] == "t" else part

    if any(not s.calls[-1].given or s.calls[-1].given[0][0] not in ("l", "u") for s in steps):
        return
    yield Mend({}, joined(lambda parts: parts[::-1]), "what is joined stands in the wrong order")
    yield Mend({}, joined(lambda p: [minus(p[0]), *p[1:]]), "its first part has the wrong sign")
    yield Mend({}, joined(lambda p: [*p[:-1], minus(p[-1])]), "its last part has the wrong sign")


def _left_out(judged: Judged, group, steps) -> Iterator[Mend]:
    values = {}
    for i, step in zip(group, steps, strict=True):
        same = [n for n in step.inputs if judged.steps[n].value.shape == step.value.shape]
        if not same or judged.steps[same[0]].kind != "float":
            return
        values[i] = judged.steps[same[0]].value
    yield Mend(values, {}, "this step is one too many")


def _other_operands(judged: Judged, group, steps) -> Iterator[Mend]:
    """Another tensor of the answer's own, of the same shape, in the place of an operand."""
    operands = [place for place, g in enumerate(steps[0].calls[-1].given) if g[0] == "t"]
    for place in operands:
        now = [s.calls[-1].given[place] if place < len(s.calls[-1].given) else None for s in steps]
        if any(each is None or each[0] != "t" for each in now):
            continue
        for others in _of_the_same_shape(judged, group, [each[1] for each in now]):
            calls = {}
            for i, step, other in zip(group, steps, others, strict=True):
                given = list(step.calls[-1].given)
                given[place] = ("t", other)
                calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=tuple(given)))
            old = [each[1] for each in now]
            words = _instead(judged, old, others)
            yield Mend({}, calls, words, _for_this_alone(judged, group, old))


def _for_this_alone(judged: Judged, group, now: list[int]) -> tuple[int, ...]:
    """The steps that made these operands, if they were made for nothing else."""
    left, own = list(now), set(now)
    while left:
        number = left.pop()
        for user in judged.users[number]:
            if user in group or user in own:
                continue
            if judged.steps[user].op not in LAYOUT:
                return ()
            own.add(user)
            left.append(user)
    return tuple(i for i in now if judged.steps[i].place is not None)


def _instead(judged: Judged, old: list[int], others: list[int]) -> str:
    """What an operand is, beside the one that belongs in its place."""
    steps, now, other = judged.steps, old[-1], others[-1]
    if len(old) > 1 and len(set(old)) == 1:
        return "an operand is the same in every round, where each round needs its own"
    if steps[other].inputs == (now,) and steps[other].op.isidentifier():
        return f"an operand is taken as it was before `{steps[other].op.strip('_')}`"
    if steps[now].inputs == (other,) and steps[now].op.isidentifier():
        return f"an operand went through `{steps[now].op.strip('_')}`, which is one step too many"
    return "another tensor belongs in the place of an operand"


def _of_the_same_shape(judged: Judged, group, now: list[int]) -> Iterator[list[int]]:
    if len(group) > 1:
        yield from _next_in_each_round(judged, group, now)
        return
    shape, kind = judged.steps[now[0]].value.shape, judged.steps[now[0]].kind
    found = 0
    for other in range(group[0] - 1, -1, -1):
        step = judged.steps[other]
        fits = step.value.shape == shape and step.kind == kind and other not in now
        if fits and (step.op == LEAF or other in judged.right):
            yield [other]
            found += 1
            if found >= MOST_OTHERS:
                return


def _next_in_each_round(judged: Judged, group, now: list[int]) -> Iterator[list[int]]:
    """What stands a step or two behind, or before, an operand in each round of a loop; where it is
    the same in all rounds, its neighbours of one operation, one for each."""
    steps = judged.steps
    if len(set(now)) == 1:
        own = siblings(judged, now[0])
        if len(own) == len(group) and max(own) < group[0]:
            yield own
        return
    for by in (1, 2, -1, -2):
        others = [n + by for n in now]
        if any(not 0 <= other < i for other, i in zip(others, group, strict=True)):
            continue
        alike = [
            steps[o].value.shape == steps[n].value.shape for o, n in zip(others, now, strict=True)
        ]
        if all(alike) and len({(steps[o].op, steps[o].place) for o in others[1:]}) == 1:
            yield others


def siblings(judged: Judged, number: int) -> list[int]:
    """The parts that one operation cut a tensor in, by one of them."""
    step = judged.steps[number]
    made = (step.op, step.place, step.inputs)
    return [
        i
        for i, s in enumerate(judged.steps)
        if s.place is not None and (s.op, s.place, s.inputs) == made
    ]


# --- right tensors in the place of steps ---------------------------------------------------------
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
    """Right tensors in the place of these steps: first what the answer makes there."""
    should = judged.own.makes(judged.places(group[0])) if len(group) == 1 else None
    known = [each for each in judged.own.known if each is not should]
    if len(group) > 1:
        if len({step.outer for step in steps}) > 1:
            yield from _each_in_another_order(judged, group, steps)
            return
        yield from _in_turn(judged, group)
    for each in [should, *known] if should is not None else known:
        for values in _fillings(each, steps):
            yield each, values


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
