"""An answer's recorded steps made again, with other tensors in the place of some; and a bench that
says what comes of it.

The steps say how each was made: an operation with its arguments, as data. What follows from a step
can so be computed here for another value of it, and nothing of a student's runs: an operation is
one of a list, works on numbers that were recorded, and may give no more numbers than it gave. A
step that does not come out as it was recorded (another order of random numbers, an operation that
is not on the list) is never made again: what depends on it stays unknown.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch

from autograder.course.steps.traces import LEAF, Done, Step, Trace
from autograder.tracing.alike import Known, likeness, near, plain, tells
from autograder.tracing.first_wrong import LAYOUT as MOVES
from autograder.tracing.first_wrong import PARTS, Judged
from autograder.tracing.proof.operations import NotAgain, call
from autograder.tracing.reference import is_constant
from autograder.tracing.text import Text

MOST_TRIES = 600  # ways to mend the steps of one answer
MOST_STEPS = 6_000  # that are made again or compared for them; most answers take a tenth of it
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
    earlier: Proof | None = None  # one that makes more right, where this one is not one statement
    alone: Trace | None = None  # the trace with all mended but this, where that is known
    line: int | None = None  # the line to blame, where it is none that made a step


class Replay:
    """A trace that can be made again from some step on."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.steps = trace.steps
        self.sound: dict[int, bool] = {}
        self.typed: dict[int, torch.Tensor] = {}
        self.made = 0  # steps made again

    def value(self, number: int) -> torch.Tensor:
        """What a step gave, in the dtype of its kind."""
        if number not in self.typed:
            step = self.steps[number]
            kinds = {"bool": torch.bool, "int": torch.int64}
            self.typed[number] = step.value.to(kinds.get(step.kind, torch.float64))
        return self.typed[number]

    def after(
        self,
        values: Mapping[int, torch.Tensor],
        calls: Mapping[int, tuple[Done, ...]] | None = None,
    ) -> dict[int, torch.Tensor]:
        """All steps that change, with their new values, where some have other values or are made
        in another way; raises `NotAgain` where that cannot be known."""
        changed = dict(values)
        calls = calls or {}
        first = min([*changed, *calls], default=len(self.steps))
        for number in range(first, len(self.steps)):
            step = self.steps[number]
            if changed.keys().isdisjoint(step.inputs) and number not in calls:
                continue
            if number in values:
                continue
            if number not in calls and not self.is_sound(number):
                raise NotAgain
            new = self._made(step, calls.get(number, step.calls), changed)
            if new.numel() > max(step.value.numel(), 1):
                raise NotAgain
            if number in calls or not torch.equal(new, self.value(number)):
                changed[number] = new
        return changed

    def is_sound(self, number: int) -> bool:
        """Whether a step comes out as it was recorded when it is made again."""
        if number not in self.sound:
            self.sound[number] = self._comes_out(self.steps[number])
        return self.sound[number]

    def _comes_out(self, step: Step) -> bool:
        if step.op == LEAF or step.calls is None:
            return False
        try:
            new = self._made(step, step.calls, {})
        except NotAgain:
            return False
        return new.shape == step.value.shape and near(plain(new.double()), plain(step.value))

    def _made(self, step: Step, calls, changed: Mapping[int, torch.Tensor]) -> torch.Tensor:
        self.made += 1
        before = None
        for done in calls or ():
            before = self._one(done, before, changed)
        if before is None:
            raise NotAgain
        return before

    def _one(self, done: Done, before, changed: Mapping[int, torch.Tensor]) -> torch.Tensor:
        given, named = [], {}
        try:
            for each in done.given:
                if each[0] == "k":
                    named = {name: self._argument(a, before, changed) for name, a in each[1]}
                else:
                    given.append(self._argument(each, before, changed))
            made = call(done.op, given, named)
        except NotAgain:
            raise
        except Exception:  # what a recorded operation may raise is as wide as torch
            raise NotAgain from None
        if done.which >= 0 and isinstance(made, tuple | list):
            made = made[done.which] if done.which < len(made) else None
        if not isinstance(made, torch.Tensor):
            raise NotAgain
        return made

    def _argument(self, each: tuple, before, changed):
        kind, *rest = each
        if kind == "c":  # a tensor that was not recorded
            return rest[0]
        if kind == "t":
            return changed[rest[0]] if rest[0] in changed else self.value(rest[0])
        if kind == "p":
            return before
        if kind == "v":
            return rest[0]
        if kind == "e":
            return Ellipsis
        if kind == "s":
            return slice(*(self._argument(part, before, changed) for part in rest))
        if kind == "l":
            return [self._argument(part, before, changed) for part in rest]
        if kind == "u":
            return tuple(self._argument(part, before, changed) for part in rest)
        kinds = {"float32": torch.float64, "float64": torch.float64, "float16": torch.float64}
        kinds |= {"bool": torch.bool, "int64": torch.int64, "int32": torch.int64}
        return kinds[rest[0]]

    def trace_with(self, changed: Mapping[int, torch.Tensor]) -> Trace:
        """The trace with these values in the place of the recorded ones."""
        steps = tuple(
            replace(step, value=changed[i].double()) if i in changed else step
            for i, step in enumerate(self.steps)
        )
        return replace(self.trace, steps=steps)


@dataclass
class Bench:
    """A judged trace on which steps can be mended."""

    judged: Judged
    until: float
    text: Text
    replay: Replay = field(init=False)

    def __post_init__(self):
        self.replay = Replay(self.judged.trace)
        self.group_of = self._groups(lambda step: step.outer)
        self.wide_group_of = self._groups(lambda step: ())
        self.wanted = self.judged.own.wanted()

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
        if self.spent:
            return None
        work, made = self.judged.work, self.replay.made
        work.tries += 1
        try:
            changed = self.replay.after(values, calls)
        except NotAgain:
            return None
        finally:
            work.steps += self.replay.made - made
        return changed, self.is_right(changed)

    @property
    def spent(self) -> bool:
        """Whether nothing more may be tried."""
        work = self.judged.work
        if work.tries >= MOST_TRIES or work.steps >= MOST_STEPS:
            return True
        return time.thread_time() > self.until

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

    def gains(self, changed: dict, mended: dict, most: int) -> int:
        """How many of the next steps are right now that were not, beside what was put in.

        most: what another has gained; no more is counted where it cannot be reached any more.
        """
        own = [plain(v.double()).flatten().sort().values for v in mended.values()]
        likes = ((i, self.judged.like.get(i)) for i in self.judged.right)
        there = [like.known for i, like in likes if like is not None and i not in changed]
        count = 0
        after = [i for i in sorted(changed) if i not in mended][:REACH]
        for left, number in zip(range(len(after), 0, -1), after, strict=True):
            if count + left <= most:
                break
            old = self.judged.like.get(number)
            if (old is not None and old.in_order) or number in self.judged.right:
                continue
            value = changed[number]
            if not value.is_floating_point() or not tells(value.double()):
                continue
            self.judged.work.steps += 1
            found = likeness(value.double(), self.judged.own.right)
            if found is None or not found.in_order or found.turned:
                continue
            if any(found.known is own for own in there):
                continue  # it comes from somewhere else, too
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

    def one_statement(self, numbers: Iterable[int]) -> bool:
        """Whether one statement made these steps."""
        lines = {self.text.line(self.judged.steps[i]) for i in numbers}
        return len(lines) == 1 and None not in lines

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
        """The steps that are not right, or whose numbers stand in no order that moved axes explain,
        and that the result depends on, in order."""
        judged = self.judged
        roots = self.places_returned_wrong() or list(judged.trace.returned)
        on_the_way = self.ancestors(i for i in roots if i < len(judged.steps))
        shuffled = {i for i, each in judged.like.items() if not each.in_order}
        return sorted(on_the_way & (judged.bad | judged.unsure | shuffled))

    def before(self, number: int) -> list[int]:
        """The right steps that a wrong one was made of, through changes of layout, in order."""
        judged, found = self.judged, set()
        left = list(judged.steps[number].inputs)
        while left:
            each = left.pop()
            step = judged.steps[each]
            if each in found or step.op == LEAF or step.kind != "float" or step.place is None:
                continue
            if not step.inputs or is_constant(step):  # what is written into it may be wrong
                continue
            found.add(each)
            like = judged.like.get(each)
            moved = like is not None and like.order is not None
            moved = moved and list(like.order) != sorted(like.order)
            if step.op in MOVES or step.op in PARTS or moved:
                left += step.inputs
        return sorted(found - judged.bad)
