"""Proof that a step is the wrong one: with what belongs in its place, all that follows is right.

The recorded steps are made again (`replay`) with one of them mended: a right tensor of the answer's
in its place, its axes in another order, or its operation with another axis or operand. Where the
result then comes out right, or more of the way to it, what is wrong lies at this step or before it.
The line is known where all that it may be stands in one statement.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import torch

from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.alike import Known, likeness, near, plain, tells
from autograder.tracing.first_wrong import LAYOUT, PARTS, Judged
from autograder.tracing.mends import Mend, right_ones, ways_to_mend
from autograder.tracing.reference import PRODUCTS, multiple
from autograder.tracing.replay import NotAgain, Replay
from autograder.tracing.text import Text

MOST_TRIES = 400
JOINS = ("cat", "concat", "stack", "hstack", "vstack", "__setitem__")
REACH = 10  # steps after a mended one that are looked at


@dataclass
class Proof:
    """The step that is to blame, the trace as it is with that mended, and what mends it.

    all_right: whether the result is right then. mend: how the operation was mended, in words.
    """

    number: int
    trace: Trace
    all_right: bool
    should: Known | None = None
    mend: str = ""
    suspects: tuple[int, ...] = ()


@dataclass
class Bench:
    """A judged trace on which steps can be mended."""

    judged: Judged
    until: float
    text: Text
    tries: int = 0
    replay: Replay = field(init=False)

    def __post_init__(self):
        self.replay = Replay(self.judged.trace)
        self.group_of = self._groups(lambda step: step.outer)
        self.wide_group_of = self._groups(lambda step: ())
        own = self.judged.own
        self.wanted = [plain(own.trace.steps[i].value) for i in own.trace.returned]

    def _groups(self, more) -> dict[int, tuple[int, ...]]:
        """The steps that one place in the text made, by each of them."""
        groups: dict = {}
        for number, step in enumerate(self.judged.steps):
            if step.place is not None:
                key = (step.place, step.op, step.calls[-1].which if step.calls else 0, more(step))
                groups.setdefault(key, []).append(number)
        return {i: tuple(group) for group in groups.values() for i in group}

    # --- what comes of a mended step -------------------------------------------------------------
    def outcome(self, values: dict, calls: dict | None = None) -> tuple[dict, bool] | None:
        """What changes, and whether the result is right; None where that cannot be known."""
        self.tries += 1
        if self.tries > MOST_TRIES or time.thread_time() > self.until:
            return None
        try:
            changed = self.replay.after(values, calls)
        except NotAgain:
            return None
        return changed, self.is_right(changed)

    def is_right(self, changed: dict) -> bool:
        """Whether what is returned is right."""
        returned = self.judged.trace.returned
        if len(returned) != len(self.wanted) or not returned:
            return False
        for number, wanted in zip(returned, self.wanted, strict=True):
            value = changed[number] if number in changed else self.judged.steps[number].value
            if value.shape != wanted.shape or not near(plain(value.double()), wanted):
                return False
        return True

    def gains(self, changed: dict, mended: dict) -> int:
        """How many of the next steps are right now that were not, beside what was put in."""
        own = [plain(v.double()).flatten().sort().values for v in mended.values()]
        count = 0
        after = [i for i in sorted(changed) if i not in mended][:REACH]
        for number in after:
            old = self.judged.like.get(number)
            if (old is not None and old.in_order) or number in self.judged.right:
                continue
            value = changed[number]
            if not value.is_floating_point() or not tells(value.double()):
                continue
            found = likeness(value.double(), self.judged.own.known)
            if found is None or not found.in_order or found.turned:
                continue
            ordered = plain(value.double()).flatten().sort().values
            count += not any(len(o) == len(ordered) and near(o, ordered) for o in own)
        return count

    def places_returned_wrong(self) -> list[int]:
        """The returned steps that are not what is wanted there."""
        returned = self.judged.trace.returned
        pairs = zip(returned, self.wanted, strict=False)
        steps = self.judged.steps
        return [
            i
            for i, wanted in pairs
            if i < len(steps)
            and (steps[i].value.shape != wanted.shape or not near(plain(steps[i].value), wanted))
        ]

    # --- which steps may be wrong ----------------------------------------------------------------
    def ancestors(self, numbers) -> set[int]:
        """These steps and all that they were made from."""
        left, seen = list(numbers), set()
        while left:
            number = left.pop()
            if number not in seen:
                seen.add(number)
                left += self.judged.steps[number].inputs
        return seen

    def suspects(self) -> list[int]:
        """The steps that are not right and that the result depends on, in order."""
        judged = self.judged
        roots = self.places_returned_wrong() or list(judged.trace.returned)
        on_the_way = self.ancestors(i for i in roots if i < len(judged.steps))
        return sorted(i for i in on_the_way & (judged.bad | judged.unsure))

    def before(self, number: int) -> list[int]:
        """The right steps that a wrong one was made of, through changes of layout, in order."""
        judged, found = self.judged, set()
        left = list(judged.steps[number].inputs)
        while left:
            each = left.pop()
            step = judged.steps[each]
            if each in found or step.op == LEAF or step.kind != "float" or step.place is None:
                continue
            found.add(each)
            like = judged.like.get(each)
            moved = like is not None and like.order is not None
            moved = moved and list(like.order) != sorted(like.order)
            if step.op in LAYOUT or step.op in PARTS or moved:
                left += step.inputs
        return sorted(found - judged.bad)


def can_prove(judged: Judged) -> bool:
    """Whether all that follows from a wrong step can be made again."""
    if judged.trace.full or not judged.whole or judged.trace.stopped is not None:
        return False
    replay = Replay(judged.trace)
    return bool(judged.trace.returned) and all(replay.is_sound(i) for i in judged.bad)


def prove(judged: Judged, until: float, text: Text) -> Proof | None:
    """The step that is surely wrong, with what mends it; None where none can be proved."""
    if judged.trace.full or not judged.whole or judged.trace.stopped is not None:
        return None
    bench = Bench(judged, until, text)
    suspects = bench.suspects()
    returned = bench.places_returned_wrong()
    if not suspects and not returned:
        return None
    pivot = _pivot(bench, suspects or returned)
    exchanged = swapped(bench) if pivot is None or pivot.all_right else None
    if exchanged is not None:
        return _exchanged(bench, exchanged, pivot)
    if pivot is None:
        return _mended(bench, suspects)
    if _one_statement(bench, pivot.suspects):
        return pivot
    return _mended(bench, list(pivot.suspects), pivot)


def _exchanged(bench: Bench, swap: Swap, pivot: Proof | None) -> Proof | None:
    """Two tensors changed places where they were named, or where they are used; None where that
    cannot be told."""
    judged, text = bench.judged, bench.text
    one, two = swap.one, swap.two
    crossed = text.crossed(*((judged.steps[i], judged.like[i].known.name) for i in (one, two)))
    used = pivot is not None and _one_statement(bench, pivot.suspects)
    if used and crossed is False:
        return pivot
    if crossed or (not used and _one_statement(bench, (one, two))):
        should = judged.like[two].known
        trace = bench.replay.trace_with(swap.changed)
        return Proof(min(one, two), trace, True, should, "", (one, two))
    return None


def _one_statement(bench: Bench, numbers) -> bool:
    lines = {bench.text.line(bench.judged.steps[i]) for i in numbers}
    return len(lines) == 1 and None not in lines


def _pivot(bench: Bench, suspects: list[int]) -> Proof | None:
    """The first step in whose place a right tensor makes right what follows."""
    judged = bench.judged
    tried: set[tuple[int, ...]] = set()
    best: Proof | None = None
    for wrong in suspects[:40]:
        for number in [*bench.before(wrong), wrong]:
            group = bench.group_of.get(number)
            if group is None or group in tried:
                continue
            tried.add(group)
            found = _with_a_right_one(bench, group)
            wide = bench.wide_group_of[number]
            if wide not in tried and (found is None or not found[3]):
                tried.add(wide)
                again = _with_a_right_one(bench, wide)
                found, group = (again, wide) if again is not None else (found, group)
            if found is None:
                continue
            values, should, changed, all_right = found[:4]
            ahead = bench.ancestors(group) & (judged.bad | judged.unsure)
            to_blame = tuple(sorted(ahead | _moved_before(judged, group) | {min(group)}))
            proof = Proof(
                min(group),
                bench.replay.trace_with(changed),
                all_right,
                should,
                _of_rounds(judged, values),
                to_blame,
            )
            if all_right:
                return proof
            best = best or proof
        if best is not None and wrong > max(best.suspects):
            break
        if time.thread_time() > bench.until:
            break
    return best


def _moved_before(judged: Judged, group: tuple[int, ...]) -> set[int]:
    """The steps just before these that stand in another order than the answer's: they may be what
    is wrong. A product may have its operands in any order."""
    found: set[int] = set()
    left = [i for number in group for i in judged.steps[number].inputs]
    op = judged.steps[group[0]].op
    if op in PRODUCTS:
        return found
    while left:
        number = left.pop()
        step, like = judged.steps[number], judged.like.get(number)
        if number in found or like is None or not like.whole or not like.in_order:
            continue
        if step.op not in LAYOUT and (op in LAYOUT or list(like.order) == sorted(like.order)):
            continue
        if not any(
            v.shape == step.value.shape and near(plain(v), plain(step.value))
            for v in like.known.shapes
        ):
            found.add(number)
            left += step.inputs
    return found


def _of_rounds(judged: Judged, values: dict[int, torch.Tensor]) -> str:
    """How steps that one line makes in several rounds differ from what belongs there."""
    old = [plain(judged.steps[i].value) for i in values]
    new = [plain(v) for v in values.values()]
    if len(old) < 2 or any(v.shape != old[0].shape for v in (*old, *new)):
        return ""
    if all(near(v, old[0]) for v in old) and not all(near(v, new[0]) for v in new):
        return "it is the same in every round, where each round needs its own"
    if all(sum(near(v, other) for other in new) == 1 for v in old):
        return "what the rounds give comes in another order"
    return ""


def _may_turn(step, value: torch.Tensor) -> bool:
    """Whether a step may itself have brought its axes in another order than this one: what it was
    made of may stand in that order already."""
    if step.op in (*LAYOUT, *PARTS, *JOINS, "einsum"):
        return True
    turned = step.value.mT if step.value.dim() > 1 else step.value
    same = turned.shape == value.shape and near(plain(turned), plain(value))
    return step.op in (*PRODUCTS, "softmax") and same


def _as_the_answer_has_it(known: Known, value: torch.Tensor) -> bool:
    return any(v.shape == value.shape and torch.equal(v, value) for v in known.shapes)


def _one_of_the_other(judged: Judged, one: Known, two: Known) -> bool:
    own = judged.own
    return one is not two and (own.comes_of(one, two) or own.comes_of(two, one))


def _with_a_right_one(bench: Bench, group: tuple[int, ...]):
    """What makes more right in the place of these steps: (values, which, changes, all, gain)."""
    judged = bench.judged
    steps = [judged.steps[i] for i in group]
    if steps[0].kind != "float" or any(s.value.shape != steps[0].value.shape for s in steps):
        return None
    best = None
    should = judged.own.makes(judged.places(group[0])) if len(group) == 1 else None
    there = [judged.like[i].known for i in group if i in judged.like and judged.like[i].in_order]
    if any(own is other for own in there for other in judged.own.also):
        return None  # it stands on the way of another right program
    exact = len(group) == 1 and any(
        near(plain(steps[0].value), plain(v))
        for own in there
        for v in own.shapes
        if v.shape == steps[0].value.shape
    )
    for known, values in right_ones(judged, group, steps):
        if exact and not _as_the_answer_has_it(known, values[0]):
            continue
        if any(known is own for own in there) and (exact or not _may_turn(steps[0], values[0])):
            continue
        if any(_one_of_the_other(judged, known, own) for own in there):
            continue  # what comes between is missing, or is there twice: this one is right
        new = dict(zip(group, values, strict=True))
        if any(v.shape != s.value.shape for v, s in zip(values, steps, strict=True)):
            continue
        if all(near(plain(v), plain(s.value)) for v, s in zip(values, steps, strict=True)):
            continue
        outcome = bench.outcome(new)
        if outcome is None:
            continue
        changed, all_right = outcome
        if all_right:
            return new, known, changed, True, REACH
        gain = bench.gains(changed, new)
        if known is should and multiple(steps[0].value, values[0]) is not None:
            return new, known, changed, False, gain  # it is what should be there, but for a factor
        if gain and (best is None or gain > best[4]):
            best = new, known, changed, False, gain
    return best


# --- an operation made in another way ------------------------------------------------------------
def _mended(bench: Bench, suspects: list[int], pivot: Proof | None = None) -> Proof | None:
    """The one statement in which another axis, operand or sign makes the result right."""
    judged = bench.judged
    found: list[tuple[Mend, tuple[int, ...], dict]] = []
    tried: set[tuple[int, ...]] = set()
    for number in suspects:
        group = bench.group_of.get(number)
        if group is None or group in tried:
            continue
        tried.add(group)
        for mend in ways_to_mend(judged, bench.replay, group):
            outcome = bench.outcome(mend.values, mend.calls)
            if outcome is not None and outcome[1]:
                found.append((mend, group, outcome[0]))
                break
        if time.thread_time() > bench.until:
            return None
    if not found or not _one_statement(bench, [min(group) for _, group, _ in found]):
        return None
    mend, group, changed = found[0]
    number = min(group)
    trace = bench.replay.trace_with(changed)
    return Proof(number, trace, True, pivot.should if pivot else None, mend.words, (number,))


@dataclass(frozen=True)
class Swap:
    """Two right tensors that stand in each other's place, by the steps that made them."""

    one: int
    two: int
    changed: dict


def swapped(bench: Bench) -> Swap | None:
    """Two tensors of the answer's that have only to be exchanged to make the result right."""
    judged = bench.judged
    makers: dict[int, int] = {}  # a landmark's place: the first step that gave it
    for number in sorted(judged.like):
        found, step = judged.like[number], judged.steps[number]
        if found.whole and found.in_order and step.place and step.op not in LAYOUT:
            makers.setdefault(found.known.place, number)
    for one, two in itertools.combinations(makers.values(), 2):
        a, b = judged.steps[one].value, judged.steps[two].value
        known = judged.like[one].known, judged.like[two].known
        if a.shape != b.shape or judged.own.comes_of(*known) or judged.own.comes_of(*known[::-1]):
            continue
        outcome = bench.outcome({one: b, two: a})
        if outcome is not None and outcome[1]:
            return Swap(one, two, outcome[0])
    return None
