"""Which known mistakes an answer's steps show: the bank, from the first wrong line on.

A known wrong program is run step by step too. Where a wrong step of a student's has its numbers,
all that came before it is that mistake, whatever comes after. What follows from it is then as good
as right, and the next wrong step is looked at: with the same mistake and one more.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch

from autograder.course.general.exchanged import EXCHANGED
from autograder.course.steps.bank import Bank, KnownSteps
from autograder.course.steps.traces import (
    LEAF,
    Signature,
    Step,
    Trace,
    alike,
    same_order,
    signature,
)
from autograder.tracing.alike import HIDDEN, plain
from autograder.tracing.binding import names_given
from autograder.tracing.first_wrong import (
    LAYOUT,
    Judged,
    Wrong,
    first_wrong,
    taken_for_another,
)
from autograder.tracing.names import Slip, as_its_program_makes_it, by_its_name
from autograder.tracing.proof.across import across_items
from autograder.tracing.proof.as_known import hides_the_same, the_same_mixed
from autograder.tracing.proof.handed import made_of_whole_numbers
from autograder.tracing.proof.mends import JOINS
from autograder.tracing.proof.repair import Proof, can_prove, in_words, prove, put_right
from autograder.tracing.proof.standing import (
    factor_of,
    has_a_stranger,
    is_refuted,
    may_come_to,
    of_no_landmark,
    runs_as_it_should,
    stands_as_the_answers,
    stays_multiplied,
)
from autograder.tracing.reference import PRODUCTS, extended
from autograder.tracing.text import Text, callee, means

MOST = 3  # mistakes that are named in one answer
FURTHEST = 6  # wrong steps between the first and the one that a known mistake explains
ON_THE_WAY = ("exp", "sub", "__sub__", "__rsub__", "rsub", "sum", "amax", "max", "mul", "__mul__")
ON_THE_WAY += ("__rmul__", "div", "__truediv__", "__rtruediv__", "pow", "__pow__", "sqrt", "add")
ON_THE_WAY += ("__add__", "__radd__", "neg", "__neg__", "log", "mean", "norm", "amin", "exp2")
ON_THE_WAY += ("logsumexp", "cumsum", "abs", "__imul__", "__itruediv__", "__iadd__", "__isub__")
ON_THE_WAY += ("mul_", "div_", "add_", "sub_", "__setitem__", "copy_", "zeros_like", "where")


def slips(
    judged: Judged,
    bank: Bank,
    place: int,
    text: Text,
    named: str = "",
    proofs: bool = True,
    among: Sequence[str] = (),
) -> tuple[list[Slip], Judged | None]:
    """What is wrong, one after the other, each named where it is known; and the trace as it is with
    that mended, unless all is right then.

    named: the one known mistake that explains all, if it is known which.
    proofs: whether a step is looked for that mends the rest; else the bank alone tells.
    among: the known mistakes that together explain all, if it is known which.
    """
    found: list[Slip] = []
    told: tuple[int, ...] = ()
    silent = not named and not among and _gives_one_number(judged.trace)
    while len(found) < MOST and time.thread_time() < judged.until:
        proof = prove(judged, judged.until, text) if proofs else None
        strict = proofs and proof is None and can_prove(judged)
        wrong = _as_wrong(judged, proof) if proof else first_wrong(judged, bool(named))
        if wrong is None or wrong.maker in [slip.number for slip in found]:
            break  # what is told already made it, and no tensor in the place of another
        start = None if proof and _is_turned_alone(judged, proof) else _root(judged, wrong)
        seen = judged
        if proof is not None and proof.alone is not None:
            seen = Judged(proof.alone, judged.own, judged.until, judged.work)
            start = _root(seen, wrong)
        candidates = _reached(seen, start)[: FURTHEST + 1] if start is not None else []
        if proof is not None and proof.number not in candidates:  # what stays before it is right
            candidates = [i for i in candidates if i > proof.number]
        values = {i: _alone_and_together(seen, i) for i in candidates}
        there = told if proof is None or judged.own.goal is not None else ()  # else they are mended
        sizes = {value.numel() for own in values.values() for value in own}
        mistakes = bank.wrong(place, there, sizes, named) if not silent else ()

        def refuted(
            mistake: KnownSteps, at: int, judged: Judged = judged, wrong: Wrong = wrong
        ) -> bool:
            trace = bank.trace(place, (mistake.number,))
            as_it_should = runs_as_it_should(judged.steps[at], trace)
            return as_it_should or is_refuted(judged, wrong.number, trace)

        slip = _named(judged, wrong, values, mistakes, text, proof, strict, refuted)
        if among and slip is not None and slip.cause is None:
            own = [m for check in among for m in bank.wrong(place, there, sizes, check)]
            slip = replace(slip, cause=the_same_mixed(judged, slip.number, own, bank, place))
        if slip is not None and slip.cause is None and not named:
            slip = replace(slip, cause=hides_the_same(judged, slip.number, bank, place))
        slip = by_its_name(slip, text) if slip is not None else None
        if slip is None or named and _is_another(slip, proof, named):
            break
        if proof is not None and proof.number in [each.number for each in found]:
            return [], judged  # what mended that step did not
        found.append(slip)
        if among and (slip.cause is None or slip.cause.check not in among):
            break  # they do not explain all
        if proof is not None:
            if proof.all_right:
                return found, None
            judged = Judged(proof.trace, judged.own, judged.until, judged.work)
            continue
        if slip.cause is None or named:
            break
        told = (*told, slip.cause.number)
        after = bank.trace(place, told)
        mended = put_right(judged, slip.number, wrong.should) if proofs else None
        if mended is not None and (after is None or _hides_otherwise(judged, slip.number, after)):
            judged = Judged(mended, judged.own, judged.until, judged.work)
            continue
        if after is None:
            break
        own = extended(judged.own, [after])
        judged = Judged(judged.trace, own, judged.until, judged.work)
    if not found and named:
        shown = as_its_program_makes_it(judged, bank, place, named, text)
        found += [slip for slip in shown if not made_of_whole_numbers(judged, slip.number)]
    elif not found and proofs:
        found += [Slip(judged, w, w.number, mend=how) for w, how in across_items(judged)]
    return found, judged


def _is_another(slip: Slip, proof: Proof | None, named: str) -> bool:
    """Whether a step mends a part of what is wrong where one known mistake explains all of it, and
    is not that mistake: then it makes good what the mistake did before it. Of two that are
    exchanged each shows alone, and so does a factor."""
    own = slip.cause is not None and slip.cause.check == named
    own = own or named.startswith(EXCHANGED) or factor_of(slip.judged, slip.number) is not None
    return proof is not None and not proof.all_right and not own


def _gives_one_number(trace: Trace) -> bool:
    """Whether what comes back is one number in all its places: of that no known mistake is proved,
    whatever steps it shares."""
    back = [trace.steps[i].value.flatten() for i in trace.returned if i < len(trace.steps)]
    return bool(back) and all(len(v) > 1 and bool((v == v[0]).all()) for v in back)


def _hides_otherwise(judged: Judged, number: int, after: Trace) -> bool:
    """Whether a step hides with a large number, where the program with the same mistake has other
    numbers behind it: rows in which nothing is left."""
    value = judged.steps[number].value
    hides = bool(value.isfinite().all() and (plain(value) == HIDDEN).any())
    return hides and any(step.value.isnan().any() for step in after.steps)


def _as_wrong(judged: Judged, proof: Proof) -> Wrong:
    """What is proved, as the first wrong step."""
    number, should = proof.number, proof.should
    sources = [i for i in judged.steps[number].inputs if i in judged.right and i in judged.like]
    found = judged.like.get(number)
    instead = None
    another = found is not None and found.in_order and found.known is not should
    if another and should is not None and all(found.known is not k for k in judged.own.also):
        instead = (found.known, should)
    step = judged.steps[number]
    made = all(i in judged.like for i in step.inputs if judged.steps[i].kind == "float")
    if found is None and should is not None and step.op in PRODUCTS and made:
        maker, taken = taken_for_another(judged, number)
        instead = taken if maker is None else None  # else where it was made may be to blame
    return Wrong(number, max(sources, default=None), should, None, instead)


def _is_turned_alone(judged: Judged, proof: Proof) -> bool:
    """Whether the axes of a right tensor are all that is wrong with a step, and something else is
    wrong behind it: the numbers of what follows are that one's."""
    like = judged.like.get(proof.number)
    own = like is not None and like.known is proof.should
    return own and proof.number not in judged.bad and not proof.all_right


def _named(
    judged: Judged,
    wrong: Wrong,
    values: dict[int, list[torch.Tensor]],
    mistakes: Iterable[KnownSteps],
    text: Text,
    proof: Proof | None = None,
    strict: bool = False,
    refuted: Callable[[KnownSteps, int], bool] = lambda mistake, at: False,
) -> Slip | None:
    """The slip with the known mistake that explains it; None where it cannot be claimed.

    values: what may have a known mistake's numbers, by its steps.
    strict: whether a proof was looked for and none was found. Only a known mistake's own numbers
    count then. refuted: whether the steps show that a known mistake was not made at a step.
    """
    if _handed_over(judged, wrong, text) and _of_the_call(judged, wrong, text) is None:
        return None  # the call may have exchanged them, or the function
    if made_of_whole_numbers(judged, wrong.number):
        return None
    candidates = list(values)
    marks = [(i, [signature(v) for v in own]) for i, own in values.items()]
    sizes = {value.numel() for own in values.values() for value in own}
    own = [k.shapes[0] for k in judged.own.all if k.value.numel() in sizes]
    usual = [signature(v) for v in (*own, *of_no_landmark(judged.own, sizes))]
    best: tuple[tuple, int, KnownSteps] | None = None
    in_order = proof is not None and stands_as_the_answers(judged, proof)
    for mistake in mistakes:
        if time.thread_time() > judged.until:
            break
        new = [s for s in mistake.signatures if not any(alike(s, u) for u in usual)]
        found = _explained(marks, new, in_order)
        better = found is not None and (best is None or found < best[0])
        if better and not refuted(mistake, candidates[found[0]]):
            best = (found, candidates[found[0]], mistake)
        if best is not None and best[0][:2] == (0, -len(candidates)):  # none could explain more
            break
    cause = best[2] if best is not None else None
    if proof is not None:
        line = proof.line or _of_the_call(judged, wrong, text)
        # A mistake may have the numbers of many such steps.
        joined = judged.steps[proof.number].op in JOINS
        known = cause is not None and not joined
        words = "" if known or proof.mend else in_words(judged, proof, text)
        if cause is None and not (words or proof.mend) and has_a_stranger(judged, proof.number):
            return None
        made = proof.mend, line, proof.all_right, words, proof.trace
        return Slip(judged, wrong, proof.number, cause, *made)
    if strict and (best is None or _made_of_moved(judged, wrong.number)):
        return None
    if wrong.number in judged.work.open:
        return None
    if best is not None:
        number = _line_of(judged, wrong, best[1])
        between = [i for i in candidates if i <= best[1]] if wrong.maker is None else []
        lines = {text.line(judged.steps[i]) for i in (*between, number)}
        line = _of_the_call(judged, wrong, text) if _handed_over(judged, wrong, text) else None
        mend = "two tensors are handed over in each other's place" if line is not None else ""
        return Slip(judged, wrong, number, cause, mend, line) if len(lines) == 1 else None
    return Slip(judged, wrong, wrong.number) if _is_strict(judged, wrong) else None


def _of_the_call(judged: Judged, wrong: Wrong, text: Text) -> int | None:
    """The line that called a function with one tensor in the place of another, where the function's
    own names, or that of what the call gives, show that the other is meant."""
    step = judged.steps[wrong.number]
    if _handed_over(judged, wrong, text):
        names = text.operands(step)
        words = [judged.like[i].known.name for i in step.inputs[:2]]
        if len(names) != 2 or not all(map(means, names, reversed(words))):
            return None
        return None if any(map(means, names, words)) else step.outer[0]
    if wrong.instead is None or not step.outer:
        return None
    taken, wanted = (known.name for known in wrong.instead)
    statement = text.around(step.outer[0])
    names = text.names_at(step)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        given = names_given(statement)
        names |= {*given} if len(given) == 1 and _is_own(statement.value, text) else set()
    if any(means(n, wanted) and not means(n, taken) for n in names):
        return step.outer[0]
    return None


def _is_own(call: ast.Call, text: Text) -> bool:
    """Whether a call is of a function of the student's own."""
    return text.function(callee(call)) is not None


def _handed_over(judged: Judged, wrong: Wrong, text: Text) -> bool:
    """Whether the operands of a turned product were handed to a function: its own names may be
    right, and what was handed over exchanged."""
    step, like = judged.steps[wrong.number], judged.like.get(wrong.number)
    if wrong.number in judged.bad or like is None or not like.turned or not step.outer:
        return False
    if all(_made_in(judged, i, step.outer) for i in step.inputs[:2]):
        return False
    own = [judged.like[i].known.name for i in step.inputs[:2] if i in judged.like]
    names = text.operands(step)
    straight = len(names) == len(own) == 2 and all(map(means, names, own))
    return step.op in PRODUCTS and not straight


def _made_in(judged: Judged, number: int, call: tuple) -> bool:
    """Whether a tensor was made in one call of a function, and not handed to it."""
    step = judged.steps[number]
    while step.op in LAYOUT and len(step.inputs) == 1:
        step = judged.steps[step.inputs[0]]
    return step.op != LEAF and step.place is not None and step.outer == call


def _alone_and_together(judged: Judged, number: int) -> list[torch.Tensor]:
    """What a step gave; and what its line gave in all rounds of a loop, as the answer may have it
    in one tensor."""
    step = judged.steps[number]
    rounds = [s.value for s in judged.steps if (s.place, s.op, s.outer) == _key(step)]
    if len(rounds) < 2 or step.place is None:
        return [step.value]
    return [step.value, torch.cat([value.flatten() for value in rounds])]


def _key(step: Step) -> tuple:
    return step.place, step.op, step.outer


def _explained(
    marks: list[tuple[int, list[Signature]]], new: list[Signature], in_order: bool = False
) -> tuple | None:
    """How well a known mistake explains wrong steps, the smaller the better: how far behind the
    first is the first that it explains, whether in another order, and how many it leaves.

    in_order: whether its numbers must stand in the same order, too.
    """
    equal = [[s for s in new if any(alike(s, mark) for mark in own)] for _, own in marks]
    first = next((place for place, them in enumerate(equal) if them), None)
    if first is None:
        return None
    ordered = [
        any(same_order(s, mark) for s in them for mark in own if alike(s, mark))
        for (_, own), them in zip(marks, equal, strict=True)
    ]
    if in_order and not ordered[first]:
        return None
    return first, -sum(ordered), -sum(map(bool, equal))


def _made_of_moved(judged: Judged, number: int) -> bool:
    """Whether a step was made of right numbers whose axes stand in another order than the answer's:
    what is wrong may be that order."""
    own = [judged.like[i] for i in judged.steps[number].inputs if i in judged.like]
    return any(each.order and list(each.order) != sorted(each.order) for each in own)


def _root(judged: Judged, wrong: Wrong) -> int | None:
    """The first wrong step by its numbers (what made it so may stand before it)."""
    return wrong.number if wrong.number in judged.bad else min(judged.frontier(), default=None)


def _reached(judged: Judged, start: int) -> list[int]:
    """The wrong steps from this one on that nothing else wrong goes into, in order."""
    only = {start}
    for number in range(start + 1, len(judged.steps)):
        if number in judged.bad:
            before = set(judged.steps[number].inputs) & judged.bad
            if before and before <= only:
                only.add(number)
    return sorted(only)


def _line_of(judged: Judged, wrong: Wrong, explained: int) -> int:
    """The step to blame where a known mistake explains a later one."""
    if wrong.maker is not None:
        return wrong.maker
    first = wrong.number
    if first == explained or first not in judged.bad or first in judged.like:
        return first
    if judged.steps[first].op not in ON_THE_WAY or factor_of(judged, first) is not None:
        return first
    return explained


def _is_strict(judged: Judged, wrong: Wrong) -> bool:
    """Whether a step that no known mistake explains is surely wrong."""
    number, step = wrong.number, judged.steps[wrong.number]
    if number not in judged.bad:  # scores whose axes are turned
        return True
    if number in judged.like or wrong.maker is not None or step.value.isnan().any():
        return True
    if not step.value.any():  # all of it multiplied by 0
        return True
    if factor_of(judged, number) is not None:
        return stays_multiplied(judged, number)
    if step.op in ON_THE_WAY:  # a step on the way to a result, unless it is used as one
        users = [u for u in judged.users[number] if u in judged.bad]
        used = bool(users) or number in judged.trace.returned  # else nothing came of it yet
        return used and all(judged.steps[u].op in (*PRODUCTS, "softmax") for u in users)
    return wrong.should is not None and not may_come_to(step, wrong.should)
