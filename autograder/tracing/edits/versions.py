"""Versions of one wrong answer: what they give in the call that is looked at, and in all."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autograder.course.answers import Answers
from autograder.course.asking import Exercise
from autograder.course.calls import Call, Outcome
from autograder.course.steps.traces import Trace
from autograder.judging.difference import matches
from autograder.judging.verdict import right
from autograder.sandbox.inside.edited import keeps
from autograder.tracing.edits.ask import Send, outcomes_of, steps_of
from autograder.tracing.edits.kinds.source import line_before
from autograder.tracing.edits.place import (
    by_chance,
    by_itself,
    changes_more,
    looked_at,
)
from autograder.tracing.look import Look, Told
from autograder.tracing.proof.taken_there import where_it_is_made
from autograder.tracing.text import Text

MOST_STEPS = 1_500  # of versions that are looked at step by step, one after the other


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that is wrong: what was asked of it, what came, and how its versions are asked.

    place: the call whose steps are looked at, where there is one.
    """

    exercise: Exercise
    calls: Sequence[Call]
    outcomes: Sequence[Outcome]
    known: Answers
    source: str
    send: Send
    place: int | None = None


@dataclass(frozen=True)
class Versions:
    """What is asked of versions, and whether they are right.

    pair: the known mistakes that together explain all that is wrong, if it is known which.
    """

    wrong: WrongAnswer
    pair: tuple[str, ...] = ()
    _traces: dict[int, Trace | None] = field(default_factory=dict)
    _looked: list[int] = field(default_factory=list)  # how many steps the looks at versions took

    @cached_property
    def rtol(self) -> float:
        """How far right numbers may be apart."""
        return self.wrong.exercise.rtol

    @cached_property
    def place(self) -> int | None:
        """The call that is looked at."""
        wrong = self.wrong
        return looked_at(wrong.calls, wrong.outcomes, wrong.known, self.rtol, self.pair)

    @cached_property
    def by_chance(self) -> bool:
        """Whether what comes back there is left to chance."""
        found = self.place is not None
        return found and by_chance(self.wrong.calls, self.wrong.known, self.place)

    @cached_property
    def changes_alone(self) -> bool:
        """Whether all that is wrong there is what is changed in place."""
        got, wanted = (of[self.place] for of in (self.wrong.outcomes, self.wrong.known.expected))
        return changes_more(got, wanted) and matches(got, wanted, self.rtol)

    @cached_property
    def keeps(self) -> bool:
        """Whether the answer may keep things from call to call."""
        try:
            return keeps(ast.parse(self.wrong.source))
        except (SyntaxError, ValueError, RecursionError):
            return False

    def in_the_call(self, texts: list[str], base: str = "") -> list[Outcome | None]:
        """What versions give in the call that is looked at."""
        if not texts:
            return []
        calls, label = self.wrong.calls, self.wrong.calls[self.place].on
        before = [c for c in calls[: self.place] if self.keeps or (label and c.on == label)]
        wanted = self.wrong.known.expected[self.place].error is not None
        ends = self.wrong.outcomes[self.place].error is not None
        one = [replace(call, work=False) for call in (*before, calls[self.place])]
        base = base or self.wrong.source
        found = outcomes_of(self.wrong.send, texts, one, wanted, base, ends)
        return [None if each is None else each[-1] for each in found]

    def fits(self, gave: Outcome | None) -> bool:
        if gave is None:
            return False
        if self.by_chance:  # nobody knows the numbers: the judges look at what changes something
            as_it_is = self.wrong.outcomes[self.place]
            return gave.error is None and not matches(gave, as_it_is, self.rtol)
        wanted = self.wrong.known.expected[self.place]
        if not self.same(gave, wanted):
            return False
        by_value = not matches(self.wrong.outcomes[self.place], wanted, self.rtol)
        return by_value or not changes_more(gave, wanted)  # else that alone was wrong

    def all_right(self, texts: list[str]) -> list[bool]:
        """Which versions are right in all calls."""
        found = self.on_all(texts)
        wrong = self.wrong
        return [
            self._comes_out(each) and right(wrong.exercise, wrong.calls, each, wrong.known, text)
            for text, each in zip(texts, found, strict=True)
        ]

    def _comes_out(self, gave: Sequence[Outcome] | None) -> bool:
        """Whether what leaves nothing to chance comes out right: the judges look at the rest, for
        they take their time with what is wrong."""
        wanted = self.wrong.known.expected
        return gave is not None and all(
            self.same(got, wanted[i]) for i, got in enumerate(gave) if not self.is_by_chance(i)
        )

    def is_by_chance(self, place: int) -> bool:
        """Whether what a call gives is left to chance, or drawn by the object for itself."""
        calls = self.wrong.calls
        return by_chance(calls, self.wrong.known, place) or by_itself(calls[place], calls)

    def same(self, gave: Outcome, wanted: Outcome) -> bool:
        """Whether a version gives what is asked for; but for gradients where its layers go by names
        of their own, which the judges know."""
        own, asked = gave.gradients, wanted.gradients
        if isinstance(own, Mapping) and isinstance(asked, Mapping) and own.keys() != asked.keys():
            gave, wanted = replace(gave, gradients=None), replace(wanted, gradients=None)
        return matches(gave, wanted, self.rtol)

    def on_all(self, texts: list[str]) -> list[tuple[Outcome, ...] | None]:
        wanted = any(each.error is not None for each in self.wrong.known.expected)
        return outcomes_of(self.wrong.send, texts, self.wrong.calls, wanted) if texts else []

    def told_in(self, source: str, check: str, whole: bool = False) -> list[Told]:
        """What the steps of a version say, told of the lines of the answer as it is. check: a known
        mistake that is left in it. whole: only if all lines run that did; with half of them left
        out, what is left may be mended easily."""
        place, bank = self.wrong.place, self.wrong.known.bank
        if place is None or bank is None:
            return []
        if sum(self._looked) > MOST_STEPS:
            return []
        trace = steps_of(self.wrong.send, source, self.wrong.calls[place])
        self._looked.append(len(trace.steps) if trace is not None else 0)
        if trace is None or (whole and self._lines - _lines_of(trace)):
            return []
        text, as_it_is = Text(source), self.wrong.source
        told = [where_it_is_made(t, text) for t in Look(trace, bank, place, text).told(check)]
        lines = [line_before(t.where.first_wrong or 0, source, as_it_is) or None for t in told]
        return [
            replace(t, where=replace(t.where, first_wrong=line))
            for t, line in zip(told, lines, strict=True)
        ]

    @cached_property
    def lines_only_where_wrong(self) -> set[int]:
        """The lines that make a step in the call that is looked at, and none in one that is right;
        none where no call is right."""
        wrong = self.wrong
        right = [
            i
            for i, (got, wanted) in enumerate(
                zip(wrong.outcomes, wrong.known.expected, strict=True)
            )
            if wanted.error is None and matches(got, wanted, self.rtol)
            if not self.is_by_chance(i)
        ]
        if not right or self.place is None:
            return set()
        text = Text(wrong.source)
        traces = [self.steps(place) for place in dict.fromkeys((self.place, right[0], right[-1]))]
        if None in traces:
            return set()
        here, *there = ({text.line(step) for step in trace.steps} - {None} for trace in traces)
        return here.difference(*there)

    def steps(self, place: int) -> Trace | None:
        """The steps of one call of the answer as it is; recorded once."""
        if place not in self._traces:
            call = replace(self.wrong.calls[place], work=False)
            self._traces[place] = steps_of(self.wrong.send, self.wrong.source, call)
        return self._traces[place]

    @cached_property
    def _lines(self) -> set[int]:
        """The lines of the answer as it is that made a step."""
        trace = self.steps(self.wrong.place)
        return _lines_of(trace) if trace is not None else set()


def _lines_of(trace: Trace) -> set[int]:
    return {step.place[0] for step in trace.steps if step.place is not None}
