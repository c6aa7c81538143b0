"""What may mend steps of a wrong answer: another way, axis, sign or operand, or none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from autograder.course.steps.traces import LEAF, Done, Step
from autograder.tracing.alike import plain
from autograder.tracing.differs import SIGN
from autograder.tracing.first_wrong import LAYOUT, Judged
from autograder.tracing.proof.operations import REDUCED
from autograder.tracing.proof.replay import Replay

OVER_AN_AXIS = REDUCED.split()
MASKED = ("masked_fill", "masked_fill_", "where", "__mul__", "mul")
PRODUCTS = ("matmul", "__matmul__", "bmm", "mm")
ATTENTION = "scaled_dot_product_attention"
WITH_A_TERM = ("addmm", "baddbmm", "addmv", "addbmm")  # products and what is added to them
JOINS = ("cat", "concat", "stack", "hstack", "vstack")
OPPOSITES = (  # (operations, the one that undoes them, what is wrong then)
    (("add", "radd"), "sub", "it is added and should be taken away"),
    (("add", "radd"), "rsub", "it is added and should be taken away"),
    (("sub", "subtract"), "add", "it is taken away and should be added"),
    (("mul", "rmul", "multiply"), "div", "it multiplies where it should divide"),
    (("div", "truediv", "true_divide", "divide"), "mul", "it divides where it should multiply"),
)
HUGE = 1e37  # what hides a score counts as
MOST_OTHERS = 12  # steps that are tried in the place of an operand


@dataclass(frozen=True)
class Mend:
    """What is changed: steps' values, or how steps are made; and what that is, in words."""

    values: dict[int, torch.Tensor] = field(default_factory=dict)
    calls: dict[int, tuple[Done, ...]] = field(default_factory=dict)
    words: str = ""
    makers: tuple[int, ...] = ()  # steps that may be wrong instead: they made what is replaced
    skipped: tuple[int, ...] = ()  # steps of which nothing is made any more: they are left out


def ways_to_mend(judged: Judged, replay: Replay, group: Sequence[int]) -> Iterator[Mend]:
    """Each small change of these steps, which one place in the text made."""
    steps = [judged.steps[i] for i in group]
    first = steps[0]
    if any(step.calls is None for step in steps):
        return
    if first.kind != "float":
        yield from _left_out(judged, group, steps)
        return
    if first.calls[-1].op.strip("_") in OVER_AN_AXIS:
        yield from _other_axes(group, steps)
    if first.calls[-1].op in MASKED:
        yield from _other_masks(replay, group, steps)
    if first.calls[-1].op in (*PRODUCTS, "einsum"):
        yield from _turned_operands(replay, group, steps)
    if first.calls[-1].op == ATTENTION:
        yield from _other_switches(replay, group, steps)
    if first.calls[-1].op in JOINS:
        yield from _other_axes(group, steps)
        yield from _joined_otherwise(group, steps, replay)
    yield Mend({i: -s.value for i, s in zip(group, steps, strict=True)}, {}, SIGN)
    yield from _other_signs(group, steps)
    yield from _other_diagonals(group, steps)
    yield from _with_keepdim(judged, group, steps)
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
            runs = "joins" if name in JOINS else "runs"
            yield Mend({}, calls, f"`{name}` {runs} along dim={now}")


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
        ((0,), "the axes of its left operand stand the wrong way round"),
        ((1,), "the axes of its right operand stand the wrong way round"),
        ((0, 1), "its operands stand in the wrong order"),
    ):
        calls = {}
        for i, step in zip(group, steps, strict=True):
            done = step.calls[-1]
            given, put = _operands_of(done)
            tensors = [replay.value(g[1]) if g[0] == "t" else None for g in given[:2]]
            if len(tensors) < 2 or any(t is None or t.dim() < 2 for t in tensors):
                break
            if len(places) == 2 and done.op == "einsum":
                break  # its letters say which is which
            for place in places:
                given[place] = ("c", tensors[place].mT)
            if len(places) == 2:
                given[:2] = ("c", tensors[1].mT), ("c", tensors[0].mT)
                # (A B)^T: the same product with its axes exchanged
            calls[i] = (*step.calls[:-1], replace(done, given=put(given)))
        if len(calls) == len(steps):
            yield Mend({}, calls, words)


def _operands_of(done: Done) -> tuple[list, Callable[[list], tuple]]:
    """The operands of a product, and what makes its arguments of others; those of `einsum` come
    behind its letters, one by one or in a list."""
    if done.op != "einsum":
        return list(done.given), tuple
    letters, *rest = done.given
    if rest and rest[0][0] in ("l", "u"):
        kind, *row = rest[0]
        return row, lambda own: (letters, (kind, *own), *rest[1:])
    return rest, lambda own: (letters, *own)


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
            own = replace(step.calls[-1], given=((kind, *turn(parts)), *rest))
            calls[i] = (*step.calls[:-1], own)
        return calls

    def minus(part: tuple) -> tuple:
        return ("c", -replay.value(part[1])) if part[0] == "t" else part

    if any(not s.calls[-1].given or s.calls[-1].given[0][0] not in ("l", "u") for s in steps):
        return
    if all(len(set(s.inputs)) < 2 for s in steps):  # copies of one tensor
        return
    yield Mend({}, joined(lambda p: p[::-1]), "what is joined stands in the wrong order")
    yield Mend({}, joined(lambda p: [minus(p[0]), *p[1:]]), "its first part has the wrong sign")
    yield Mend({}, joined(lambda p: [*p[:-1], minus(p[-1])]), "its last part has the wrong sign")


def _with_keepdim(judged: Judged, group, steps) -> Iterator[Mend]:
    """An operand that lost an axis where it was made, with that axis in its place."""
    for place, each in enumerate(steps[0].calls[-1].given):
        kinds = {s.calls[-1].given[place][0] for s in steps if place < len(s.calls[-1].given)}
        if each[0] != "t" or kinds != {"t"} or any(len(s.calls[-1].given) <= place for s in steps):
            continue
        own = [judged.steps[s.calls[-1].given[place][1]] for s in steps]
        if own[0].op not in OVER_AN_AXIS or own[0].value.dim() != steps[0].value.dim() - 1:
            continue
        if own[0].value.dim() and own[0].value.shape[-1] == 1:
            continue
        calls = {}
        for i, step, operand in zip(group, steps, own, strict=True):
            given = _put(list(step.calls[-1].given), place, operand.value.unsqueeze(-1), "c")
            calls[i] = (*step.calls[:-1], replace(step.calls[-1], given=given))
        lost = f"what `{own[0].op}` gave meets the wrong axis: `keepdim=True` keeps its own"
        yield Mend({}, calls, lost)


def _left_out(judged: Judged, group, steps) -> Iterator[Mend]:
    """Each of what the steps were made of in their place, as if they had not been made."""
    for place in range(min(len(s.inputs) for s in steps)):
        own = [s.inputs[place] for s in steps]
        if all(map(_can_stand_for, (judged.steps[i] for i in own), steps)):
            values = {i: judged.steps[n].value.double() for i, n in zip(group, own, strict=True)}
            yield Mend(values, {}, _too_many(steps[0].op))
    if steps[0].op in WITH_A_TERM:
        named = dict(next((g[1] for g in steps[0].calls[-1].given if g[0] == "k"), ()))
        alone = _named_otherwise(group, steps, named | {"beta": ("v", 0)})
        yield Mend({}, alone, "something is added that is not asked for")


def _too_many(op: str) -> str:
    """That an operation should not be there, in words."""
    bare = op.strip("_")
    if bare in ("add", "radd", "iadd"):
        return "something is added that is not asked for: this step is one too many"
    return f"this step is one too many (`{bare}`)" if op == bare else "this step is one too many"


def _can_stand_for(other: Step, step: Step) -> bool:
    return other.value.shape == step.value.shape and other.kind in (step.kind, "float", "int")


def _other_signs(group, steps) -> Iterator[Mend]:
    """Added for taken away, and multiplied for divided."""
    done = steps[0].calls[-1]
    if any((plain(step.value).abs() > HUGE).any() for step in steps):  # a mask is added
        return
    for one, two, words in OPPOSITES:
        bare = done.op.strip("_").removeprefix("i" if done.op.startswith("__i") else "")
        if bare in one and len(done.given) == 2 and done.given[1][0] != "k":
            calls = {
                i: (*s.calls[:-1], replace(s.calls[-1], op=two))
                for i, s in zip(group, steps, strict=True)
            }
            yield Mend({}, calls, words)


def _other_diagonals(group, steps) -> Iterator[Mend]:
    """The triangle that begins a place earlier or later, or that is the other one."""
    done = steps[0].calls[-1]
    name = done.op.strip("_")
    if name not in ("tril", "triu"):
        return
    named = dict(next((g[1] for g in done.given if g[0] == "k"), ()))
    plain = [g for g in done.given[1:] if g[0] == "v" and type(g[1]) is int]
    now = plain[0][1] if plain else named.get("diagonal", ("v", 0))[1]
    if type(now) is not int:
        return
    other = "triu" if name == "tril" else "tril"
    for op, diagonal, words in (
        (name, now - 1, "the diagonal of its triangle is one place off"),
        (name, now + 1, "the diagonal of its triangle is one place off"),
        (other, now, "its triangle is the other one"),
        (other, now - 1, "its triangle is the other one"),
        (other, now + 1, "its triangle is the other one"),
    ):
        calls = {
            i: (
                *s.calls[:-1],
                replace(s.calls[-1], op=op, given=(s.calls[-1].given[0], ("v", diagonal))),
            )
            for i, s in zip(group, steps, strict=True)
        }
        yield Mend({}, calls, words)


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
            words, makers = _instead(judged, old, others), _for_this_alone(judged, group, old)
            left_out = all(judged.steps[n].inputs == (o,) for n, o in zip(old, others, strict=True))
            yield Mend({}, calls, words, makers, makers if left_out else ())


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
