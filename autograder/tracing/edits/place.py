"""Which of the calls that went wrong is looked at when versions of an answer are tried."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.course.answers import Answers
from autograder.course.calls import Call, Outcome
from autograder.course.steps.traces import Trace
from autograder.judging.difference import matches

DRAWS = re.compile("drop|rand|bernoulli|uniform")  # what leaves something to chance
MANY, MOST = 100, 1_000  # so many steps are many; of a call whose steps are not known
EQUAL = 1e-9  # how far apart equal numbers are at most, as a share


def looked_at(
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
    rtol: float,
    pair: Sequence[str] = (),
) -> int | None:
    """The place of the call, None where there is none: one that stops and should not, shows both of
    two known mistakes, leaves nothing to chance and is no training, as far as there is such; the
    smallest.

    pair: the known mistakes that together explain all, if it is known which.
    """

    def shows(place: int) -> bool:
        own = (gives for check, _, gives in (*known.mistakes, *known.exchanged) if check in pair)
        return not any(matches(g[place], known.expected[place], rtol) for g in own)

    pairs = enumerate(zip(outcomes, known.expected, strict=True))
    pairs = list(pairs)
    failed = [i for i, (got, wanted) in pairs if not matches(got, wanted, rtol)]
    failed = failed or [i for i, (got, wanted) in pairs if changes_more(got, wanted)]
    failed = [i for i in failed if not (calls[i].inspect or by_itself(calls[i], calls))]
    for fits in (
        lambda i: outcomes[i].error is not None and known.expected[i].error is None,
        shows,
        lambda i: not by_chance(calls, known, i),
        lambda i: not calls[i].train,
    ):
        failed = [i for i in failed if fits(i)] or failed
    return min(failed, key=lambda i: _size(calls[i], _steps(known, i)), default=None)


def changes_more(got: Outcome, wanted: Outcome) -> bool:
    """Whether more of what was given is changed in place than should be."""
    return bool(got.after.keys() - wanted.after.keys())


def by_chance(calls: Sequence[Call], known: Answers, place: int) -> bool:
    """Whether what a call gives is left to chance: it has a seed, some step of the answer draws
    numbers there, and no call that asks the same with another seed is answered by the same ones."""
    if calls[place].seed is None or not _draws(calls[place], known, place):
        return False
    seeded = [i for i, call in enumerate(calls) if call.seed is not None]
    for one, other in itertools.combinations(seeded, 2):
        if calls[one].seed != calls[other].seed and _ask_the_same(calls[one], calls[other]):
            return not matches(known.expected[one], known.expected[other], EQUAL)
    return True


def _draws(call: Call, known: Answers, place: int) -> bool:
    """Whether a step of the answer draws numbers in a call, or may do so, as far as is known. What
    drops nothing gives what there was before it."""
    if known.bank is None or not known.bank.knows(place) or (call.init and not call.weights):
        return True
    trace = known.bank.right(place)
    if trace is None:
        return True
    drawn = [i for i, step in enumerate(trace.steps) if DRAWS.search(step.op)]
    return any(not _is_there_before(trace, i) for i in drawn)


def _is_there_before(trace: Trace, number: int) -> bool:
    """Whether an earlier step has the value of this one."""
    own = trace.steps[number].value
    values = (step.value for step in trace.steps[:number])
    return any(v is not None and v.shape == own.shape and v.equal(own) for v in values)


def _ask_the_same(one: Call, other: Call) -> bool:
    alike = replace(one, args=(), seed=0, says="") == replace(other, args=(), seed=0, says="")
    return alike and matches(Outcome(one.args), Outcome(other.args), EQUAL)


def by_itself(call: Call, calls: Sequence[Call]) -> bool:
    """Whether a call shows the numbers that an object draws for itself, unlike the others."""
    given = any(each.weights for each in calls)
    return call.init is not None and given and not call.weights


def _steps(known: Answers, place: int) -> int:
    """How many hundreds of steps the answer takes for a call, as far as it is known."""
    trace = known.bank.right(place) if known.bank is not None and known.bank.knows(place) else None
    return len(trace.steps) // MANY if trace is not None else MOST


def _size(call: Call, steps: int) -> tuple[int, int, int, bool]:
    """How many axes of size 1 and shares of 0 or 1 a call is given, which hide what is wrong, how
    many steps it takes, how many numbers it is given, and whether it is asked for many."""
    given = (*call.args, *call.kwargs.values(), *call.weights.values())
    tensors = [each for each in given if isinstance(each, torch.Tensor)]
    hiding = sum(n == 1 for t in tensors for n in t.shape)
    hiding += sum(isinstance(each, float) and each in (0, 1) for each in given)
    many = any(isinstance(each, int) and each > MANY for each in given)  # such as its tokens
    return hiding, steps, sum(t.numel() for t in tensors), many
