"""Parameters that go by other names: said as such, and put where they belong.

Weights are put into an answer by name. Where a parameter of the answer is nowhere in a student's
class, but one of its shape is there under another name, the same calls are put to it once more
with the weights under the student's names. What is wrong then is wrong beside the names; where
nothing is, the names are all that there is to say. Layers are looked at by `look_again`, which also
knows layers that are cut or joined.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from autograder.course.asking import Exercise, Finding, Verdict
from autograder.course.calls import Call, Outcome
from autograder.judging.difference import is_nameless
from autograder.judging.layers import likeness
from autograder.judging.look_again import NAME, PREFIX, SECONDS, listed

TRIES = 2  # ways to match names that are tried
MOST = 30  # ways that are looked at
Ask = Callable[[list[Call]], Sequence[Outcome]]  # puts calls to an answer
Names = dict[str, str]  # what the exercise calls a parameter, and what the student does


def look(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    ask: Ask,
    judge: Callable[[Sequence[Outcome], Ask], list[Finding]],
) -> list[Finding]:
    """The findings of an answer whose parameters go by other names; [] where they do not.

    ask: puts calls to the answer. judge: judges outcomes, given how to ask for more of them.
    """
    ways = _ways(exercise, calls, outcomes, expected)
    if not ways or any(call.inspect for call in calls):
        return []
    found = judge(outcomes, ask)
    if not found:
        return []
    if found[0].verdict == Verdict.WRONG and not is_nameless(found[0].check, exercise.task):
        return found  # a mistake with a name, or a judge that looks at names itself
    likeliest: list[Finding] = []
    said, until = None, time.monotonic() + SECONDS
    for names in ways:
        if said and time.monotonic() > until:
            break
        put = partial(_asked, ask, names)
        again = put(calls)
        if len(again) != len(calls):
            return found
        others = judge(again, put)
        said = said or _said(names)
        if not others:
            which = "that name" if len(names) == 1 else "those names"
            text = f"{_said(names).message} With {which} everything else is right."
            return [replace(said, message=text)]
        likeliest = likeliest or others
    return [*likeliest, said] if said else found


def _ways(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
) -> list[Names]:
    """Names that fit by their shapes in all calls, the likeliest first."""
    seen = [s for s in zip(calls, outcomes, expected, strict=True) if s[1].parameters]
    if not seen:
        return []
    _, got, wanted = seen[0]
    lost = [n for n in wanted.parameters if n in got.unset and not _of_a_layer(n, exercise)]
    spare = [n for n in got.parameters if n not in wanted.parameters and _is_name(n)]
    ways = itertools.islice(_matches(lost, spare, wanted.parameters, got.parameters), MOST)
    likely = sorted(ways, key=lambda names: -sum(likeness(*pair) for pair in names.items()))
    fits = [
        names
        for names in likely
        if names and all(_fits(names, own.parameters, right.parameters) for _, own, right in seen)
    ]
    return fits[:TRIES]


def _matches(
    lost: Sequence[str], spare: Sequence[str], wanted: Mapping, own: Mapping
) -> Iterator[Names]:
    """Each way to give every lost parameter a spare one of its shape, where there is one."""
    if not lost:
        yield {}
        return
    first, *rest = lost
    alike = [n for n in spare if own[n] == wanted[first]]
    for name in alike:
        left = [n for n in spare if n != name]
        for names in _matches(rest, left, wanted, own):
            yield {first: name, **names}
    if not alike:
        yield from _matches(rest, spare, wanted, own)


def _fits(names: Names, own: Mapping, wanted: Mapping) -> bool:
    return all(own.get(o) is not None and own[o] == wanted.get(n) for n, o in names.items())


def _of_a_layer(name: str, exercise: Exercise) -> bool:
    layer, _, kind = name.rpartition(".")
    return layer in exercise.layers and kind in ("weight", "bias")


def _is_name(text: str) -> bool:
    return len(text) < 60 and NAME.fullmatch(text) is not None


def _with(call: Call, names: Names) -> Call:
    """The call with its weights under the student's names."""
    return replace(call, weights={names.get(n, n): w for n, w in call.weights.items()})


def _asked(ask: Ask, names: Names, calls: Sequence[Call]) -> list[Outcome]:
    """What comes of the calls with the weights under the student's names, told in ours."""
    return [_back(outcome, names) for outcome in ask([_with(call, names) for call in calls])]


def _back(outcome: Outcome, names: Names) -> Outcome:
    """An outcome with the names that were asked for."""
    asked = {own: name for name, own in names.items()}

    def turned(held: Mapping) -> dict:
        return {asked.get(name, name): value for name, value in held.items()}

    gradients = outcome.gradients
    return replace(
        outcome,
        parameters=turned(outcome.parameters),
        gradients=turned(gradients) if isinstance(gradients, Mapping) else gradients,
        unset=turned(outcome.unset),
    )


def _said(names: Names) -> Finding:
    are = "parameter is" if len(names) == 1 else "parameters are"
    text = f"Your {are} called {listed(names.values())}; the exercise asks for {listed(names)}."
    return Finding(f"{PREFIX}name", Verdict.WRONG, text)
