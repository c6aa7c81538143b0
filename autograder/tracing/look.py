"""What the steps of one call say of an answer: where it goes wrong, and which mistakes it shows."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autograder.course.asking import Finding, Where
from autograder.course.steps.bank import Bank
from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.alike import Known, near, plain
from autograder.tracing.binding import overwritten_in_rounds, reorders, returns_in_a_round
from autograder.tracing.causes import MOST, slips
from autograder.tracing.first_wrong import COPIES, LAYOUT, Judged, first_wrong
from autograder.tracing.names import Slip
from autograder.tracing.proof.around_softmax import (
    TOO_EARLY,
    hides_weights,
    is_hidden_afterwards,
    sets_zeros_before,
)
from autograder.tracing.proof.handed import may_be_handed_in, reordered_by_the_return
from autograder.tracing.proof.made import (
    comes_from_outside,
    is_at_numbers_made_before,
    lines_of_hooks,
    made_elsewhere,
)
from autograder.tracing.proof.standing import is_laid_out_so
from autograder.tracing.reference import PRODUCTS, Reference, multiple, reference
from autograder.tracing.say import MISSING, as_it_was, called, one_place, taken_for_another, where
from autograder.tracing.text import Text, function_around, half_power, thrown_away

OF_ONE_SIDE = "one side has"  # how a line gives its result an axis too many
TWO_AT_ONCE = "Two things at once. "  # how what two relations tell of a result begins
SECONDS = 2.0  # for all that is compared for one question; a wrong answer takes a tenth of it


@dataclass(frozen=True)
class Told:
    """One thing that is wrong: where, its statement, and the known mistake as (check, message)."""

    where: Where
    statement: str
    cause: tuple[str, str] | None = None
    at: int = 0  # its step
    when: int = 0  # the first step that its line may spoil: what runs first is to be mended first
    last: bool = False  # whether all is right with this mended
    # The right tensor that was taken, and the one that belongs there.
    instead: tuple[Known, Known] | None = field(default=None, compare=False)
    change: str = ""  # the one small change that makes all right, in words
    taken: str = ""  # that its line takes one tensor for another, in a sentence


@dataclass(frozen=True)
class Look:
    """A look at the steps of one call, by its place among those that the bank knows."""

    trace: Trace
    bank: Bank
    place: int
    text: Text

    @cached_property
    def own(self) -> Reference | None:
        """The landmarks of the course's own answer."""
        return self.bank.once(("landmarks", self.place), self._landmarks)

    def _landmarks(self) -> Reference | None:
        right = self.bank.right(self.place)
        if right is None or right.full:
            return None
        return reference(right, self.bank.others(self.place))

    @cached_property
    def judged(self) -> Judged | None:
        until = time.thread_time() + SECONDS
        return Judged(self.trace, self.own, until) if self.own is not None else None

    def both(self, checks: Sequence[str]) -> list[Told]:
        """Two known mistakes that together explain all, each with its line; else nothing."""
        told = self.told(proofs=False, among=checks) if self.judged is not None else []
        causes = [each.cause[0] for each in told if each.cause]
        if len({each.at for each in told}) < len(told) and any(map(self.turned_before, told)):
            return []  # what turned it comes before, wherever that is
        return told if sorted(causes) == sorted(checks) else []

    def refutes(self, check: str) -> bool:
        """Whether the steps show that an answer has not made a known mistake of this name: the
        right tensor that the mistake has no longer is there, and what follows is made of it."""
        if self.judged is None or not self.judged.whole:
            return False
        own = list(self.bank.wrong(self.place, (), (), check))
        return bool(own) and all(self._has_what_is_lost(mistake.number) for mistake in own)

    def _has_what_is_lost(self, number: int) -> bool:
        """Whether the first right tensor that a known mistake spoils stands in these steps."""
        lost = self.bank.once(("lost", self.place, number), lambda: self._lost(number))
        return lost is not None and any(
            found.whole and found.in_order and found.known is lost and self.judged.users[i]
            for i, found in self.judged.like.items()
        )

    def _lost(self, number: int) -> Known | None:
        """The first right tensor that a known mistake spoils, where that can be told."""
        trace = self.bank.trace(self.place, (number,))
        wrong = first_wrong(Judged(trace, self.own)) if trace is not None else None
        return wrong.should if wrong is not None else None

    def told(self, named: str = "", proofs: bool = True, among: Sequence[str] = ()) -> list[Told]:
        """What is wrong, the first first; empty where nothing can be said for sure.

        named: the known mistake that explains all, where there is one; among: those that do so
        together.
        """
        if self.judged is None:
            return []
        back = self._back_in_another_order()
        if back is not None:
            return back
        told: list[Told] = []
        found, left = slips(self.judged, self.bank, self.place, self.text, named, proofs, among)
        joined = 0
        for slip in found:
            said = where(slip, self.text, self.trace)
            own = self.judged, slip.number, self.text, slip.last
            handed_in = slip.line is None and may_be_handed_in(*own)
            known = slip.cause is not None or said is None
            again = not known and any(t.where.first_wrong == said.first_wrong for t in told)
            if said is None or (again and slip.mended is None) or handed_in:
                break  # what follows on the same line follows from it
            if said.last_right == said.first_wrong and not said.landmark:  # it says nothing
                said = replace(said, **self.right_before(said.first_wrong))
            elsewhere = made_elsewhere(slip, said.first_wrong, self.text)
            if elsewhere is not None and slip.line is None:
                if is_at_numbers_made_before(elsewhere, self.text):
                    break
                said = replace(said, first_wrong=elsewhere, **self.right_before(elsewhere))
            elif comes_from_outside(slip, self.text):
                break
            product = self._product_not_scaled(slip)
            if product is not None and product < said.first_wrong:
                said = Where(first_wrong=product, **self.right_before(product))
            if again:
                joined += 1
                continue
            cause = (slip.cause.check, slip.cause.message) if slip.cause else None
            statement = self.text.statement(said.first_wrong)
            change = (slip.mend or slip.words) if slip.last else ""
            when = self.when(said.first_wrong, slip.number)
            more = when, slip.last, slip.wrong.instead, change, taken_for_another(slip)
            own = Told(said, statement, cause, slip.number, *more)
            late = next((i for i, each in enumerate(told) if self._is_late(each, slip)), None)
            if late is not None:
                line = told[late].where.first_wrong
                how = f"which line {said.first_wrong} hides only afterwards"
                there = Where(None, line, how=f"it sees what should be hidden, {how}")
                told[late] = replace(told[late], where=there, last=slip.last)
                joined += 1
                continue
            other = next((i for i, each in enumerate(told) if _exchanged(each, own)), None)
            if other is None:
                told.append(own)
            else:
                first = min(told[other].when, own.when)
                told[other] = replace(told[other], at=min(told[other].at, own.at), when=first)
                joined += 1
        if not told:
            return self._returned(self.judged)
        if left is not None and left is not self.judged and len(told) + joined == len(found) < MOST:
            told += self._returned(left)
        told = self._hidden_too_late(self._zeros_too_early(told))
        told = sorted(told, key=lambda each: each.when)
        return told if named else _each_once(told)

    def _product_not_scaled(self, slip: Slip) -> int | None:
        """The line of a product that nothing scales, where a known mistake leaves out just that: it
        could be scaled up to the line that takes it as if it were, but is looked for here."""
        if slip.cause is None or slip.line is not None:
            return None
        key = "not scaled", self.place, slip.cause.number
        products = self.bank.once(key, lambda: self._not_scaled(slip.cause.number))
        like, steps = slip.judged.like, slip.judged.steps
        made = [
            (i, factor)
            for i in range(slip.number)
            for product, factor in products
            if i in like and like[i].known is product
            if steps[i].op in PRODUCTS and not steps[i].outer
        ]
        if not made or self._comes_in_later(slip.judged, *made[-1]):
            return None
        return self.text.line(steps[made[-1][0]])

    def _comes_in_later(self, judged: Judged, product: int, factor: float) -> bool:
        """Whether something made of a product is multiplied by this number."""
        pairs = [
            (judged.steps[i].value, judged.steps[source].value)
            for i in judged.made_of(product) - {product}
            for source in judged.steps[i].inputs
        ]
        found = (multiple(one, other) for one, other in pairs)
        return any(own is not None and math.isclose(own, factor, rel_tol=1e-3) for own in found)

    def _not_scaled(self, number: int) -> list[tuple[Known, float]]:
        """The products of which the answer makes the first right tensor that a known mistake has
        not, by a factor alone, each with that; where the mistake has no multiple of them."""
        trace = self.bank.trace(self.place, (number,))
        if trace is None:
            return []
        like = Judged(trace, self.own).like
        there = {id(found.known) for found in like.values()}
        gone = next((own for own in self.own.of_step.values() if id(own) not in there), None)
        return [
            (product, factor)
            for product in (self.own.scaled_to(gone) if gone is not None else [])
            for made in [trace.steps[i].value for i in like if like[i].known is product]
            if not any(multiple(step.value, made) for step in trace.steps)
            if (factor := multiple(gone.value, product.value)) is not None
        ]

    def _is_late(self, told: Told, slip: Slip) -> bool:
        """Whether a step hides what the softmax that is told already should not have seen."""
        right = slip.judged.steps[told.at].value
        return is_hidden_afterwards(self.trace.steps, told.at, slip.number, right)

    def _zeros_too_early(self, told: list[Told]) -> list[Told]:
        """What is told, as one thing where a step sets zeros in front of a softmax that belong
        behind it: neither the softmax nor that they are missing there is a second mistake."""
        wanted = [self.own.trace.steps[i].value for i in self.own.trace.returned]
        one = told[0] if 0 < len(told) < 3 and not any(each.cause for each in told) else None
        if one is None or not any(sets_zeros_before(self.judged, one.at, w) for w in wanted):
            return told
        steps = self.trace.steps
        rest = (t.at >= len(steps) or (t.last and steps[t.at].op == "softmax") for t in told[1:])
        if not all(rest):
            return told
        where = Where(None, one.where.first_wrong, how="it sets to 0 what the softmax still sees")
        return [replace(one, where=where, cause=TOO_EARLY)]

    def _hidden_too_late(self, told: list[Told]) -> list[Told]:
        """What is told, as one thing where weights are set to 0 that the answer hides before its
        softmax: that nothing hides them there is no other mistake."""
        late = told[-1] if told and told[-1].last and told[-1].cause is None else None
        if late is None or not hides_weights(self.judged, late.at):
            return told
        rest = [each for each in told if not (each.cause and each.cause[0].startswith("mask"))]
        if len(rest) == len(told):
            return told
        where = replace(late.where, how="it hides behind the softmax what belongs before it")
        return [*rest[:-1], replace(late, where=where)]

    def when(self, line: int, number: int) -> int:
        """The first step that ran on this line or behind it in its function: a statement such as
        `v = k` makes none of its own. number: the step that it spoils, which is no later."""
        function, steps = function_around(self.text, line), self.trace.steps[:number]
        lines = ((i, self.text.line(step)) for i, step in enumerate(steps))
        own = (i for i, at in lines if at is not None and at >= line)
        inside = (
            i for i in own if function_around(self.text, self.text.line(steps[i])) is function
        )
        return next(inside, number)

    def _back_in_another_order(self) -> list[Told] | None:
        """Where the rounds of a loop make what is asked for, one after the other, and another order
        comes back: the `return` that orders them. None where this is not what is wrong."""
        steps, back = self.trace.steps, self.trace.returned
        wanted = [self.own.trace.steps[i].value for i in self.own.trace.returned]
        if len(back) != len(wanted) or len(set(back)) < 2 or back[-1] >= len(self.judged.steps):
            return None
        if len({steps[i].spot for i in back}) != 1:
            return None

        def in_order(numbers: Sequence[int]) -> bool:
            pairs = [(steps[i].value, w) for i, w in zip(numbers, wanted, strict=True)]
            return all(a.shape == b.shape and near(plain(a), plain(b)) for a, b in pairs)

        made = sorted(back)
        if not in_order(made) or in_order(back):
            return None
        line = self.text.line(steps[made[-1]])
        last = self.text.return_after(line) if line is not None else None
        node = self.text.around(last) if last is not None else None
        if not isinstance(node, ast.Return) or last == line or not reorders(node.value):
            return []
        if any(reorders(n.value) for n in self.text.between(line, last)):
            return []
        how = "what the loop made comes back in another order"
        where = Where(first_wrong=last, how=how, last_right=line)
        return [Told(where, self.text.statement(last), None, len(steps), len(steps), last=True)]

    def _returned(self, judged: Judged) -> list[Told]:
        """Where all steps are right and another of them is returned than the result."""
        if not judged.whole or judged.bad or judged.own is not self.own:
            return []
        line = reordered_by_the_return(judged, self.text)
        if line is not None:
            how, end = "what is asked for comes back in another order", len(self.trace.steps)
            where = Where(first_wrong=line, how=how, **self.right_before(line))
            return [Told(where, self.text.statement(line), None, end, end, last=True)]
        pairs = zip(self.trace.returned, self.own.trace.returned, strict=False)
        for place, (number, wanted) in enumerate(pairs):
            known = self.own.of_step.get(wanted)
            shape = self.own.trace.steps[wanted].value.shape
            found = self._returned_for(judged, number, known, shape) if known is not None else None
            if found is not None:
                many = len(self.trace.returned)
                at = self.text.part_line(found.where.first_wrong, place, many)
                return [replace(found, where=replace(found.where, first_wrong=at))]
        return []

    def _returned_for(self, judged: Judged, number: int, wanted: Known, shape) -> Told | None:
        """What is returned in the place of a result, where it is a right step, but another."""
        found = judged.like.get(number)
        step = self.trace.steps[number]
        line = self.text.line(step)
        called_at = step.outer[-1] if step.outer else line  # in the function that is asked for
        back = self.text.return_after(called_at, len(self.trace.returned)) if called_at else None
        own = judged is self.judged and found is not None and found.known is wanted
        if own and self._is_the_last_round(number):
            how = (
                "each round replaces what the round before gave, so that only the last one is left"
            )
            where = Where(first_wrong=line, how=how, last_right=line, landmark=called(wanted))
            return Told(where, self.text.statement(line), None, number, number, last=True)
        if found is None or not found.whole or back is None:
            return None  # none of the kind, or several returns of which any may have run
        if self.own.trace.steps[found.known.place].op == LEAF:
            how = as_it_was(judged, number)
            where = Where(first_wrong=line, how=how, **self.right_before(line))
            return Told(where, self.text.statement(line), None, number, number) if how else None
        name, step = called(found.known), self.trace.steps[number]
        before = {self.text.line(self.trace.steps[i]) for i in (number, *step.inputs)}
        if found.known is not wanted and before & lines_of_hooks(self.text):
            return None  # what it was told to keep may be wrong
        if found.known is wanted:
            laid_out = step.op in (*LAYOUT, *COPIES)  # then its line may be the wrong one
            other = step.value.shape != shape and (judged is not self.judged or not laid_out)
            if not (found.turned or other):
                return None
            how = "its axes are in another order than asked for"
            how = how if found.turned else "it comes in another shape than asked for"
            if not found.turned and (grows := self._with_one_axis_more(number, shape)) is not None:
                return grows
        elif name and name != called(wanted):
            how = f"what is returned is {name}"
        elif self.own.comes_of(wanted, found.known) or any(found.known is k for k in self.own.also):
            how = MISSING
        else:
            return None
        landmark = name if name != called(wanted) else ""
        where = Where(first_wrong=back, how=how, last_right=line, landmark=landmark)
        end = len(self.trace.steps)
        return Told(where, self.text.statement(back), None, end, end)

    def _with_one_axis_more(self, number: int, shape) -> Told | None:
        """The step in which what is returned got the axis that nobody asked for: one of its sides
        has more axes than the other, as a mask of four axes laid on scores of three."""
        steps, at, found = self.trace.steps, number, None
        while at is not None and steps[at].value.dim() > len(shape):
            dims = {i: steps[i].value.dim() for i in steps[at].inputs}
            many = [i for i, n in dims.items() if n == steps[at].value.dim()]
            few = [i for i, n in dims.items() if n == len(shape)]
            line = self.text.line(steps[at])
            if many and few and line is not None:
                one = "1 axis" if len(shape) == 1 else f"{len(shape)} axes"
                how = f"{OF_ONE_SIDE} {one}, and the other {dims[many[0]]}"
                where = Where(first_wrong=line, how=how, **self.right_before(line))
                found = Told(where, self.text.statement(line), None, at, at)
            at = many[0] if many else None
        return found

    def _is_the_last_round(self, number: int) -> bool:
        """Whether a step gave the last part of a right tensor, the rounds before it gave the others
        with the same statement, and nothing was made of those."""
        steps, like = self.trace.steps, self.judged.like
        step = steps[number]
        rounds = [i for i, s in enumerate(steps) if s.spot == step.spot]
        own = [like.get(i) for i in rounds]
        known = like[number].known
        if len(rounds) < 2 or number != rounds[-1] or step.place is None or not self.judged.whole:
            return False
        if any(f is None or f.known is not known or f.whole or not f.in_order for f in own):
            return False
        parts = math.prod(known.value.shape[a] for a in own[0].axes)
        each_once = {(f.axes, f.index) for f in own}
        unused = not any(self.judged.users[i] for i in rounds)
        statement = self.text.around(self.text.line(step))
        is_set = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        return len(each_once) == len(rounds) == parts and unused and is_set

    def turned_before(self, told: Told) -> bool:
        """Whether what a told step was made of was turned by another line, as no product needs."""
        if told.at >= len(self.trace.steps) or self.trace.steps[told.at].op in PRODUCTS:
            return False
        likes, steps = self.judged.like, self.trace.steps
        turned = [i for i in steps[told.at].inputs if i in likes and likes[i].turned]
        return any(self.text.line(steps[i]) != told.where.first_wrong for i in turned)

    def ran(self, line: int) -> bool:
        """Whether a step stands on this line."""
        return any(self.text.line(step) == line for step in self.trace.steps)

    def ran_in(self, first: int, last: int) -> bool:
        """Whether a step stands on one of these lines."""
        return any(self.ran(line) for line in range(first, last + 1))

    def unused(self, line: int) -> bool:
        """Whether nothing is made of what the statement on this line gives."""
        steps = self.trace.steps
        there = [i for i, step in enumerate(steps) if self.text.line(step) == line]
        last = there[-1]
        return not any(last in step.inputs for step in steps) and last not in self.trace.returned

    def right_before(self, line: int) -> dict:
        """The last line before this one that gives a landmark, and which, as a `Where` has it."""
        if self.judged is None:
            return {"last_right": None, "landmark": ""}
        best: tuple[int, str] | None = None
        wrong = {self.text.line(self.trace.steps[i]) for i in self.judged.bad}
        for number, found in self.judged.like.items():
            step = self.trace.steps[number]
            at = self.text.line(step)
            if step.op == LEAF or at is None or at >= line or not found.in_order:
                continue
            if at in wrong or (step.op in LAYOUT and not is_laid_out_so(found, step)):
                continue
            if best is None or at >= best[0]:
                best = (at, called(found.known))
        if best is None:
            return {"last_right": None, "landmark": ""}
        return {"last_right": best[0], "landmark": best[1]}


def _exchanged(one: Told, other: Told) -> bool:
    """Whether one statement gives right tensors to one another's places: that is one mistake."""
    if not one.instead or not other.instead or one.where.first_wrong != other.where.first_wrong:
        return False
    return one.instead[0] is other.instead[1] or one.instead[1] is other.instead[0]


def in_its_words(message: str, told: list[Told]) -> str:
    """A message that speaks of no layer where a line takes one tensor for another, and of no two
    things where one line is all that is wrong."""
    for each in told:
        if each.cause and each.taken:
            message = message.replace(each.cause[1], each.taken)
    one = len(told) == 1 and told[0].last and told[0].cause is None
    return (message.partition(TWO_AT_ONCE)[0].strip() if one else "") or message


def by_habit(told: list[Told], look: Look) -> tuple[list[Told], str]:
    """What the text says of the first thing that is wrong: its place may be another line."""
    first, text = told[0], look.text
    thrown = thrown_away(text, first.where.first_wrong)
    if thrown is not None and look.ran(thrown[0]) and look.unused(thrown[0]):
        line, method = thrown
        how = f"what `{method}` makes is thrown away"
        where = replace(first.where, first_wrong=line, how=how, **look.right_before(line))
        moved = replace(first, where=where, statement=text.statement(line), cause=None)
        return [moved, *told[1:]], (
            f"`{method}` makes a new tensor and leaves the old one as it is: give its result a "
            "name."
        )
    half = half_power(text)
    if half is not None and "factor" in first.where.how:
        others = [each for each in told[1:] if each.where.first_wrong != first.where.first_wrong]
        return [first, *others], (
            f"`{half[1]}` in line {half[0]} is no root, since `**` comes before `/`: it divides "
            "by 2. The root is `** 0.5`."
        )
    again = overwritten_in_rounds(text, first.where.first_wrong) if not first.cause else None
    if again is not None and not first.where.how:
        how, said = one_place(first.where.first_wrong, *again)
        where = replace(first.where, how=how, last_right=None, landmark="")
        return [replace(first, where=where), *told[1:]], said
    return told, ""


def cut_short(finding: Finding, look: Look) -> Finding:
    """A finding of an answer whose steps are right, as far as they go, where a loop returns in its
    first round, or all its rounds write to one place."""
    if look.judged is None or not look.judged.whole:
        return finding
    text = look.text
    bad, steps = look.judged.bad, look.trace.steps
    lines = {text.line(steps[i]) for i in bad if not bad & {*steps[i].inputs}}
    ends = returns_in_a_round(text) if not bad else None
    line = lines.pop() if len(lines) == 1 else None
    again = overwritten_in_rounds(text, line) if line is not None else None
    if ends is not None and look.ran_in(*ends):
        loop, line = ends
        how = f"it ends the loop of line {loop} in its first round"
        said = f"Line {line} returns in the first round of the loop of line {loop}: no other runs."
    elif again is not None:
        how, said = one_place(line, *again)
    else:
        return finding
    message, statement = f"{said} {finding.message}", text.statement(line)
    where = Where(None, line, how=how)
    return replace(finding, message=message, line=line, statement=statement, where=where)


def _each_once(told: list[Told]) -> list[Told]:
    """What is told, a known mistake where it is made first: what shows it later follows from it."""
    causes = [each.cause for each in told]
    return [t for i, t in enumerate(told) if t.cause is None or t.cause not in causes[:i]]
