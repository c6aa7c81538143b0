"""The first step that is wrong: what it is made of is right, and it is not.

A step is right where it is one of the landmarks, or where a landmark was made of it later. What is
no result (masks, positions, sizes) is neither right nor wrong. Where a step cannot be judged (part
of a tensor, numbers that came from outside), nothing is said of what follows from it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import torch

from autograder.course.steps.traces import LEAF, Step, Trace
from autograder.tracing.alike import Known, Likeness, among, near, plain, tells
from autograder.tracing.reference import (
    PRODUCTS,
    Reference,
    gives_new_nan,
    gives_ones,
    is_constant,
    is_wiped,
    made_of,
)

PARTS = ("__getitem__", "narrow", "select", "split", "chunk", "unbind", "index_select", "gather")
LAYOUT = ("__get__", "transpose", "permute", "view", "reshape", "unflatten", "flatten", "squeeze")
LAYOUT += ("unsqueeze", "contiguous", "movedim", "swapaxes", "t", "expand", "clone", "to", "float")
SORTS = ("sort", "msort", "topk")  # what they give has the numbers of what it is made of
PLACES = (*SORTS, "argsort")  # and what gives the places of such an order
COPIES = ("cat", "concat", "stack", "repeat", "tile", "repeat_interleave")  # of one tensor
EXTREMES = ("max", "amax", "min", "amin")  # numbers that a softmax is shifted by
WHOLE = ("int", "long", "short", "char", "to", "type")  # casts that may give whole numbers
DIVISIONS = ("div", "truediv", "__truediv__", "true_divide", "divide")
POWERS = ("exp", "exp2", "softmax", "log_softmax", "logsumexp")
UNSET = ("empty", "new_empty", "empty_like", "empty_strided")  # whatever was in memory
MOST_TELLING = 1_000  # steps that are compared


@dataclass(frozen=True)
class Wrong:
    """The first wrong step, by its number.

    last: the last right step that it was made of. should: the landmark that belongs in its place.
    maker: the step that made a wrong operand, where it is a landmark in the place of another.
    """

    number: int
    last: int | None
    should: Known | None = None
    maker: int | None = None
    instead: tuple[Known, Known] | None = None  # what was taken, and what belongs there


@dataclass
class Work:
    """How often steps were made again for one question: a bound that no machine's speed moves.

    tries: ways to mend. steps: those that were made again or compared for it. open: steps that
    could be changed to make all right, and as well another where they come in.
    """

    tries: int = 0
    steps: int = 0
    open: set[int] = field(default_factory=set)


class Judged:
    """A trace whose steps are judged: `like` (what a step is), `right`, `bad`, `unsure`.

    whole: whether all of it was looked at, within the time. work: what was done for it so far.
    """

    def __init__(
        self, trace: Trace, own: Reference, until: float = math.inf, work: Work | None = None
    ):
        self.trace, self.own, self.until = trace, own, until
        self.work = work if work is not None else Work()
        steps = trace.steps[:MOST_TELLING]
        self.steps = steps
        self.like: dict[int, Likeness] = {}
        self.whole = not trace.full and len(steps) == len(trace.steps)
        self.telling: set[int] = set()  # of these it can be told what they are
        self.users: dict[int, list[int]] = {i: [] for i in range(len(steps))}
        for number, step in enumerate(steps):
            for source in step.inputs:
                self.users[source].append(number)
        known = own.all
        for number, step in enumerate(steps):
            if time.thread_time() > until:
                self.whole = False
                break
            if step.kind != "float" or step.op in UNSET or not tells(step.value):
                continue
            self.telling.add(number)
            found = among(step.value, known)
            if found is not None and (found.in_order or not self._sorts(step)):
                self.like[number] = found
        self.open: set[int] = set()  # of these what is left out again was made
        self.right = self._right()
        self.bad, self.unsure = self._bad()

    def _sorts(self, step: Step) -> bool:
        """Whether a step puts in order what it is made of, by the places of it, too."""
        by_places = step.op in PARTS and any(self.steps[i].op in PLACES for i in step.inputs)
        return step.op in SORTS or by_places

    def _right(self) -> set[int]:
        """Landmarks, and all that landmarks were made of; of what an extreme was taken that says
        too little. Of what is divided or taken out again a landmark tells nothing."""
        given = (s.op == LEAF and i in self.like for i, s in enumerate(self.steps))
        made = made_of(self.steps, ({i} if own else set() for i, own in enumerate(given)))
        found: set[int] = set()
        left = [i for i, each in self.like.items() if each.in_order]
        left += [i for i in self.telling if i not in self.like and self._is_shifted(i)]
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                inputs = self.steps[number].inputs if self.steps[number].op not in EXTREMES else ()
                inputs = [i for i in inputs if not self.weighs_alike(i)]
                own = self.like[number].known if number in self.like else None
                known = {i: [self.like[n].known for n in made[i]] for i in inputs}
                out = {i for i in inputs if own is not None and self.own.lacks(own, known[i])}
                self.open |= out & self.telling
                left += [i for i in inputs if i not in out]
        for number in sorted(self.open | found, reverse=True):
            if number not in found:  # all of which that was made is open, too
                self.open |= (self.telling & {*self.steps[number].inputs}) - found
        return found

    def _is_shifted(self, number: int) -> bool:
        """Whether a step gave right scores but for a number that each row is shifted by, of which
        the softmax that follows takes no notice; or the exponentials of such, not divided by their
        sums so far."""
        value = self.steps[number].value
        weights = self.own.weights_of(value.shape)
        if not weights:
            return False
        ways = [value.softmax(-1)] if self._comes_to_powers(number) else []
        if bool((value >= 0).all()) and not any(map(self.is_divided, self.steps[number].inputs)):
            ways.append(value / value.sum(-1, keepdim=True))
        return any(near(plain(way), plain(each)) for way in ways for each in weights)

    def _comes_to_powers(self, number: int) -> bool:
        """Whether exponentials are made of what a step gave."""
        after = self.made_of(number) - {number}
        return any(self.steps[i].op.strip("_") in POWERS for i in after)

    def made_of(self, number: int) -> set[int]:
        """A step and all that is made of it."""
        after, left = {number}, [number]
        while left:
            new = {user for user in self.users[left.pop()] if user not in after}
            after |= new
            left += new
        return after

    def sources(self, number: int) -> set[int]:
        """All steps that a step was made of."""
        before: set[int] = set()
        left = [number]
        while left:
            new = {i for i in self.steps[left.pop()].inputs if i not in before}
            before |= new
            left += new
        return before

    def is_divided(self, number: int) -> bool:
        """Whether the rows of what a step gave sum to 1."""
        value = self.steps[number].value
        return value.dim() > 1 and bool((value.sum(-1) - 1).abs().max() < 1e-4)

    def _bad(self) -> tuple[set[int], set[int]]:
        bad: set[int] = set()
        unsure: set[int] = set()
        data: set[int] = set()  # what depends on what the answer was given
        veiled: set[int] = set()  # complex numbers, which are not compared, and what is made of it
        for number, step in enumerate(self.steps):
            counted = step.op == LEAF and step.kind == "int" and step.value.numel() > 1
            if number in self.like or counted or (data & {*step.inputs} and not is_constant(step)):
                data.add(number)
            if number in self.right:
                continue
            if step.kind == "complex" or veiled & {*step.inputs}:
                veiled.add(number)
            if number in self.open | veiled:
                unsure.add(number)
                continue
            if step.kind == "int" and number in data and self._is_cut_off(step):
                bad.add(number)
                continue
            if self._is_neutral(number, step):
                if number in data and step.kind == "float" and step.op not in EXTREMES:
                    unsure.add(number)  # too few numbers to tell what they are
                continue
            if self._is_summed_up(number, step):
                self.right.add(number)
                continue
            part = step.op in PARTS and not set(step.inputs) & bad and number not in self.like
            from_outside = step.op == LEAF or step.place is None
            copied = step.op in COPIES and len(set(step.inputs)) == 1 and number not in self.like
            copied = copied and not set(step.inputs) & bad
            (unsure if part or from_outside or copied else bad).add(number)
        return bad, unsure

    def _is_cut_off(self, step: Step) -> bool:
        """Whether numbers were made whole ones, which they were not."""
        if step.op not in WHOLE or len(step.inputs) != 1:
            return False
        before = self.steps[step.inputs[0]]
        same = before.kind == "float" and before.value.shape == step.value.shape
        return same and not torch.equal(before.value, step.value)

    def _is_summed_up(self, number: int, step: Step) -> bool:
        """Whether a step multiplies two right tensors number by number, and the sums along one of
        its axes are a landmark, and none of the two: a product before it is summed up."""
        if step.op.strip("_") not in ("mul", "rmul") or number not in self.telling:
            return False
        if any(i not in self.like for i in step.inputs) or len(step.inputs) != 2:
            return False
        taken = [self.like[i].known for i in step.inputs]
        sums = (step.value.sum(axis) for axis in range(step.value.dim()))
        made = [found for one in sums if tells(one) if (found := among(one, self.own.known))]
        whole = [found for found in made if found.whole and found.in_order]
        return any(all(found.known is not known for known in taken) for found in whole)

    def _is_neutral(self, number: int, step: Step) -> bool:
        if step.kind != "float" or step.op in UNSET:
            return True
        if gives_new_nan(step, self.steps):
            return False
        if is_wiped(step, self.steps) or self.weighs_alike(number):
            return False
        if not self._tells(number) and not (step.op == "softmax" and step.value.numel() > 5):
            return True
        users = self.users[number]
        return bool(users) and all(self.steps[u].kind != "float" for u in users)

    def weighs_alike(self, number: int) -> bool:
        """Whether a softmax runs over an axis of size 1, in all rounds of a loop, so that it gives
        ones whatever comes in, and the answer has no such step."""
        step, steps, own = self.steps[number], self.steps, self.own.trace.steps
        if not gives_ones(step, steps) or any(gives_ones(each, own) for each in own):
            return False
        rounds = (s for s in steps if s.spot == step.spot)
        return all(gives_ones(each, steps) for each in rounds)

    def _tells(self, number: int) -> bool:
        return number in self.telling or (not self.whole and tells(self.steps[number].value))

    def places(self, number: int) -> set[int]:
        """The landmarks that a step was made of, by their places in the answer's trace."""
        known = (self.like[i].known for i in self.steps[number].inputs if i in self.like)
        return {k.place for k in known}

    def begins(self) -> set[int]:
        """The steps that are wrong though nothing that they were made of is known to be."""
        return {i for i in self.bad if not self.bad & {*self.steps[i].inputs}}

    def frontier(self) -> list[int]:
        """Those of which it is known that all they were made of is right, in order."""
        found = []
        for number in sorted(self.bad):
            sources = set(self.steps[number].inputs)
            if sources & self.unsure:
                self.unsure.add(number)
            elif not sources & self.bad:
                found.append(number)
        return found


def first_wrong(judged: Judged, named: bool = False) -> Wrong | None:
    """The first wrong step; None where the evidence is not strict.

    named: whether one known mistake explains all that comes back. What has too few numbers to be
    judged is then right where it is equal to a step of the answer.
    """
    if not judged.whole:
        return None
    found = judged.frontier()
    if not found or any(not (named and _is_sound(judged, u, found[0])) for u in _before(judged)):
        return None
    number = found[0]
    sources = [i for i in judged.steps[number].inputs if i in judged.right and i in judged.like]
    last = max(sources, default=None)
    turned = _turned(judged, number)
    if turned is not None:
        return turned
    should = judged.own.makes(judged.places(number))
    maker, instead = (None, None) if should else taken_for_another(judged, number)
    return Wrong(number, last, should, maker, instead)


def _before(judged: Judged) -> list[int]:
    """The steps before the first wrong one of which nobody can tell whether they are right."""
    first = min(judged.frontier(), default=0)
    return [u for u in judged.unsure if u < first and judged.steps[u].op != LEAF]


def _is_sound(judged: Judged, number: int, first: int) -> bool:
    """Whether a step is equal to one of the answer's, or an earlier round of the first wrong one's
    statement, or made of such a round."""
    step, wrong = judged.steps[number], judged.steps[first]
    if step.spot == wrong.spot:
        return True
    if any(i in judged.unsure and _is_sound(judged, i, first) for i in step.inputs):
        return True
    own = (s.value for s in judged.own.trace.steps if s.value.numel() == step.value.numel())
    return any(near(plain(step.value.flatten()), plain(value.flatten())) for value in own)


def _turned(judged: Judged, number: int) -> Wrong | None:
    """Where a softmax over the last axis meets scores whose last axis is another: they are wrong
    already, although all their numbers are right."""
    step = judged.steps[number]
    for source in step.inputs:
        if _over_another_axis(judged, source):
            last = max(judged.steps[source].inputs, default=None)
            return Wrong(source, last, judged.like[source].known)
    if step.op != "softmax":
        return None
    for source in step.inputs:
        found = judged.like.get(source)
        if found is None or not found.turned:
            continue
        value = judged.steps[source].value
        if torch.allclose(value.softmax(-1), step.value, atol=1e-4):
            made = source
            while judged.steps[made].inputs:
                before = [
                    i
                    for i in judged.steps[made].inputs
                    if i in judged.like and judged.like[i].turned
                ]
                if not before:
                    break
                made = before[0]
            last = max((i for i in judged.steps[made].inputs if i in judged.like), default=None)
            return Wrong(made, last, found.known)
    return None


def _over_another_axis(judged: Judged, number: int) -> bool:
    """Whether a softmax over another axis made a right one with its axes exchanged: of scores that
    are the same from both sides."""
    step, found = judged.steps[number], judged.like.get(number)
    if step.op != "softmax" or found is None or not found.turned or judged.is_divided(number):
        return False
    before = [judged.like[i] for i in step.inputs if i in judged.like]
    return bool(before) and not before[0].turned


def taken_for_another(judged: Judged, number: int):
    """Where one landmark stands in the place of another: (the step that made it, (it, other))."""
    given = judged.places(number)
    own = judged.own
    best = None
    for at, step in enumerate(own.trace.steps):
        wanted = {own.of_step[i].place for i in step.inputs if i in own.of_step}
        if at not in own.of_step or len(wanted) != 2 or len(given) not in (1, 2):
            continue
        missing, extra, common = wanted - given, given - wanted, wanted & given
        if len(missing) != 1 or len(common) != 1 or len(extra) > 1:
            continue
        if judged.steps[number].op not in (step.op, *PRODUCTS):
            continue
        if extra and not own.is_as_large(min(missing), min(extra)):
            continue  # one cannot stand in the place of the other
        if best is None or min(common) > best[0]:  # what was made last says what is meant
            best = (min(common), min(missing), extra or given)
    if best is None:
        return None, None
    source = next(
        i
        for i in reversed(judged.steps[number].inputs)
        if i in judged.like and judged.like[i].known.place in best[2]
    )
    taken = judged.like[source].known
    if any(taken is known for known in own.told):
        return None, None  # it follows from what is told already
    belongs = next(k for k in own.known if k.place == best[1])
    idle = (f for i, f in judged.like.items() if f.known is belongs and not judged.users[i])
    if own.comes_of(belongs, taken) and is_shifted(belongs, taken):
        return _idle_maker(judged, source), (taken, belongs)  # where it was made, it was left out
    if own.comes_of(belongs, taken) or any(f.whole and f.in_order for f in idle):
        return None, (taken, belongs)  # a step was left out, or what belongs there is not taken
    return _idle_maker(judged, source), (taken, belongs)


def is_shifted(one: Known, other: Known) -> bool:
    """Whether one landmark is another with a number added to it."""
    (first, *_), (second, *_) = one.shapes, other.shapes
    if first.shape != second.shape:
        return False
    apart = plain(first) - plain(second)
    return bool((apart - apart.flatten()[0]).abs().max() < 1e-9)


def _idle_maker(judged: Judged, number: int) -> int | None:
    """The step that made this tensor, if it serves nothing that is right."""
    made = number
    known = judged.like[number].known
    while True:
        before = [
            i
            for i in judged.steps[made].inputs
            if i in judged.like and judged.like[i].known is known and judged.steps[i].place
        ]
        if not before:
            break
        made = before[0]
    if judged.steps[made].place is None:
        return None
    left, seen = [made], set()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        found = judged.like.get(each)
        if found is not None and found.known is not known:
            return None
        left += judged.users[each]
    return made
