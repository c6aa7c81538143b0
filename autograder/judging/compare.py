"""Right or wrong, and if wrong, why: compares what came back with what should have.

Where the values differ (see `difference`), the wrong answers that we know are compared too: the one
that matches on every call names the mistake.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache

import torch

from autograder.course.asking import Finding, Sight, Verdict
from autograder.course.calls import Call, Outcome
from autograder.course.general.altered import ALTERED
from autograder.course.general.exchanged import EXCHANGED
from autograder.course.general.operations import OPERATION
from autograder.course.sketch import Sketch, weight
from autograder.judging.difference import (
    Difference,
    large,
    matches,
    odd_numbers,
    outcome_difference,
    sentence,
)
from autograder.judging.explain import explain_error
from autograder.judging.relation import VAGUE, relation
from autograder.judging.relations.partly import of_author, partly
from autograder.judging.relations.parts import is_one_number, parts_of
from autograder.judging.relations.two import FEW, same
from autograder.judging.relations.where import what_is_right

Outcomes = Sequence[Outcome]  # of one program, a call each
WHERE_IT_RUNS = "And where it does not stop: "  # a known mistake that the rest shows
# What a call may leave behind in a model that it was given: (its trace, what is said of it).
LEFT = {
    "hook left in": (
        "a hook",
        "the values are right, but a hook is still in the model afterwards: it will run in every "
        "later experiment. Remove it, also where the model raises an error (`try` ... `finally`)",
    ),
    "model changed": (
        "changed weights",
        "the values are right, but the model's weights are not what they were: every later "
        "experiment runs on a damaged model. Leave the weights alone, or put them back",
    ),
    "another mode": (
        "another mode",
        "the values are right, but the model is left in another mode (training or evaluation) "
        "than it was given in",
    ),
}


def failures(sight: Sight) -> list[tuple[Call, Outcome, Difference | None]]:
    """The calls that do not give what is expected, what came, and how it differs; None: an error.

    Where a call changed its input in place, that is a mistake too (call it 'input changed').
    """
    rtol = sight.exercise.rtol
    failed = []
    outcomes = _with_zeros(sight)
    for call, got, expected in zip(sight.calls, outcomes, sight.expected, strict=True):
        if expected.error is not None:
            if not got.error or got.error["type"] != expected.error["type"]:
                text = f"this should raise a {expected.error['type']}"
                found = Difference(
                    "no error",
                    text,
                    expected.error["type"],
                    got.error["type"] if got.error else "no error",
                )
                failed.append((call, got, found))
            elif got.left:
                failed.append((call, got, _left(got)))
        elif got.error is not None:
            failed.append((call, got, None))
        else:
            found = outcome_difference(got, expected, rtol)
            if found is None and _changed_tensors(call, got) - set(expected.after):
                found = Difference("input changed", "the input was changed in place")
            if found is None and got.left:
                found = _left(got)
            if found is not None:
                failed.append((call, got, found))
    return failed


def _with_zeros(sight: Sight) -> list[Outcome]:
    """What came, with zeros for a gradient that is exactly zero and of which nothing is recorded,
    where another call has it: of one token alone the weight is 1, whatever its query."""
    own = [got.gradients if isinstance(got.gradients, dict) else {} for got in sight.outcomes]
    known = {name for each in own for name, gradient in each.items() if gradient is not None}
    found = []
    for got, has, expected in zip(sight.outcomes, own, sight.expected, strict=True):
        wanted = (expected.gradients or {}).items()
        zero = {n: w for n, w in wanted if w is not None and has.get(n) is None and not w.any()}
        zero = {name: gradient for name, gradient in zero.items() if name in known}
        found.append(replace(got, gradients={**has, **zero}) if zero else got)
    return found


def compare(sight: Sight, named: tuple[str, str] | None = None) -> list[Finding]:
    """The usual judge: every call must give what is expected; else say which mistake it was.

    named: the mistake that it is known to be, as (check, message); else it is looked for.
    """
    failed = failures(sight)
    if not failed:
        return []
    call, got, found = failed[0]
    named = named or name_mistake(sight)
    if found is not None and found.lost and not _of_the_input(found.lost, call):
        found = replace(found, text=f"{found.text}; {', '.join(found.lost)} is missing")
    if found is None:
        given = (*call.args, *call.kwargs.values())
        finding = explain_error(got.error, sight.exercise.name, sight.source, given)
        finding = replace(finding, tried=call.says)
    else:
        finding = Finding(
            f"{sight.exercise.task}.{found.kind}",
            Verdict.WRONG,
            sentence(found.text),
            tried=call.says,
            expected=found.expected,
            got=found.got,
        )
        if found.kind == "input changed":
            finding = replace(
                finding,
                message="Your code changes its input in place: whoever "
                "called it finds other numbers there afterwards. Work on a copy.",
            )
    if found is not None and (named is None or named[0].startswith(ALTERED)):
        stands = relation(sight)
        if stands is None or not stands[0] or stands[0].startswith(VAGUE):
            # What was done to an input says more, and so does a mistake that explains a part.
            by_author = named is not None and named[0].startswith(OPERATION) and of_author(sight)
            stands = by_author or (None if named is not None else partly(sight) or stands)
        if stands is not None:
            named = None
            text = f"{finding.message} {stands[1]}".rstrip()
            finding = replace(finding, mistake=stands[0], message=text)
        if named is None and not finding.mistake and (right := what_is_right(sight)):
            finding = replace(finding, message=f"{finding.message} {right}")
    if named is not None and not (found is not None and found.kind in LEFT):
        check, message = named
        text = f"{message} {finding.message}"
        if found is None:
            text = f"{message} ({finding.message})"
            if _only_where_it_runs(sight, named, call):
                text = f"{finding.message} {WHERE_IT_RUNS}{message}"
        finding = replace(finding, check=check, verdict=Verdict.WRONG, message=text)
    return [finding]


def _of_the_input(keys: Iterable[str], call: Call) -> bool:
    """Whether some key of an expected dict comes out of what was given: then it is a value, and no
    name that the exercise asks for."""
    given = repr((call.args, call.kwargs))
    return any(not key.isidentifier() or key in given for key in keys)


def _changed_tensors(call: Call, got: Outcome) -> set[str]:
    """The arguments that are tensors and were changed in place."""
    tensors = {str(i) for i, a in enumerate(call.args) if isinstance(a, torch.Tensor)}
    return tensors & set(got.after)


def _left(got: Outcome) -> Difference:
    """The values are right, but the model is not as it was."""
    kind = next((k for k, (trace, _) in LEFT.items() if trace in got.left), "another mode")
    return Difference(kind, LEFT[kind][1])


def name_mistake(
    sight: Sight,
    first: Collection[int] = (),
    together: Callable[[Outcomes, Outcomes], bool] = lambda one, other: True,
) -> tuple[str, str] | None:
    """The first known mistake whose outcomes equal the student's on every call.

    first: the calls to look at before others, since more is asked of them. together: whether two
    slips, of which the outcomes of each alone are given, may both be in it.

    Two at once are none where one is enough, see `_hidden_by_a_number`. Where there is none, and
    some calls stopped with an error that only the student's code makes: the first that gives the
    same wrong values wherever it ran.
    """
    failed = [i for i in range(len(sight.outcomes)) if _is_wrong(sight, i)]
    if failed and all(unanswered(sight.outcomes[i]) for i in failed):
        return None  # no known mistake leaves an exercise open
    # A small call that is wrong tells most mistakes apart, and running them there costs least.
    every = sorted(range(len(sight.outcomes)), key=lambda i: tells_apart(sight, i, first))
    ran = [i for i in every if not sight.outcomes[i].error or sight.expected[i].error]
    asked = [every]
    by_steps = bool(sight.exercise.stages)  # there an error says which step it is in
    if len(ran) < len(every) and not by_steps and any(_is_wrong(sight, i) for i in ran):
        asked.append(ran)
    wrong = cache(lambda: sum(weight(sight.outcomes[i]) for i in every if _gives_wrong(sight, i)))
    slips = slips_at_once(sight)
    for places, of in itertools.product(asked, (_as_it_is, _without_nan)):
        for check, message, outcomes in sight.mistakes:
            two = slips(check)
            if two and not (_could_be_both(sight, places[0], two, wrong) and together(*two)):
                continue
            if check.startswith(ALTERED) and wrong() < FEW:
                break  # they are the last
            if check.startswith(EXCHANGED) and not wrong():
                continue  # a lost gradient proves nothing of inputs
            if all(_is_same(sight, i, of(outcomes[i])) for i in places):
                if of is _without_nan and is_one_number(sight.outcomes, sight.expected):
                    break  # zeros are no trace of what would be NaN everywhere
                one = _hidden_by_a_number(sight) if " + " in check else None
                return one or (check, message)
    return _hidden_by_a_number(sight)


def slips_at_once(sight: Sight) -> Callable[[str], list[Outcomes]]:
    """Takes the name of two mistakes at once to the outcomes of each alone; of one to nothing."""
    alone = {check: outcomes for check, _, outcomes in sight.mistakes if " + " not in check}

    def of(check: str) -> list[Outcomes]:
        found = [alone[slip] for slip in check.split(" + ") if slip in alone]
        return found if len(found) == 2 else []

    return of


def _could_be_both(
    sight: Sight, place: int, slips: Sequence[Outcomes], wrong: Callable[[], int]
) -> bool:
    """Whether two slips at once are worth a run, as each alone was at a call: an error that neither
    makes is none of theirs, and two of which one gives wrong values are no lost gradient."""
    if sight.outcomes[place].error:
        return any(slip[place].error for slip in slips)
    if wrong():
        return True
    wanted, rtol = sight.expected[place], sight.exercise.rtol
    return all(_same_values(slip[place], wanted, rtol) for slip in slips)


def unanswered(outcome: Outcome) -> bool:
    """Whether a call met a part of the exercise that is not filled in."""
    error = outcome.error
    return error is not None and explain_error(error, "", "").check == "unanswered"


def tells_apart(sight: Sight, place: int, first: Collection[int] = ()) -> tuple:
    """How well a call tells mistakes apart, for its cost; the smallest first."""
    call = sight.calls[place]
    given = (*call.args, *call.kwargs.values())
    size = sum(t.numel() for t in given if isinstance(t, torch.Tensor))
    return not _is_wrong(sight, place), place not in first, bool(call.gradients), size


def _hidden_by_a_number(sight: Sight) -> tuple[str, str] | None:
    """The one mistake that leaves NaN where the student's answer has equal shares: of hidden scores
    alone a softmax makes those where a large number hides them, and NaN where infinity does."""
    for check, message, outcomes in sight.mistakes:
        if " + " in check or check.startswith((EXCHANGED, ALTERED)):
            continue
        shares = 0
        for got, other in zip(sight.outcomes, outcomes, strict=True):
            found = _with_equal_shares(got, other, sight.exercise.rtol)
            if found is None:
                break
            shares += found
        else:
            if shares >= FEW:
                return check, message
    return None


def _with_equal_shares(got: Outcome, other: Outcome, rtol: float) -> int | None:
    """How many equal shares stand where a mistake gives NaN; None where the two differ elsewhere.
    What is made of such shares cannot be compared."""
    parts = None if got.error or other.error else parts_of(got.value, other.value)
    if parts is None or any(g.shape != o.shape or g.dtype != o.dtype for _, g, o in parts):
        return None
    shares = 0
    for _, mine, theirs in parts:
        lost = theirs.isnan()
        if not same(mine[~lost], theirs[~lost], rtol=rtol):
            return None
        shares += int(lost.sum()) if _is_equal_share(mine[lost]) else 0
    return shares


def _is_equal_share(numbers: torch.Tensor) -> bool:
    """Whether all of these are one over a whole number: each of so many has the same share."""
    if not numbers.numel() or not 0 < numbers.flatten()[0] <= 1:
        return False
    count = (1 / numbers.flatten()[0]).round()
    return same(numbers, torch.full_like(numbers, 1 / count.item()))


def _only_where_it_runs(sight: Sight, named: tuple[str, str], stopped: Call) -> bool:
    """Whether a known mistake says nothing of why a call stopped: it gives a value there."""
    place = next(i for i, call in enumerate(sight.calls) if call is stopped)
    own = [m for m in sight.mistakes if m[:2] == named]
    return bool(own) and all(outcomes[place].error is None for _, _, outcomes in own)


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def _without_nan(outcome: Outcome) -> Outcome:
    """With 0 for NaN, as a loop over nothing gives it, or `nan_to_num`."""
    value = outcome.value
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.isnan().any():
        return replace(outcome, value=value.masked_fill(value.isnan(), 0.0))
    return outcome


def _is_wrong(sight: Sight, place: int) -> bool:
    return not matches(sight.outcomes[place], sight.expected[place], sight.exercise.rtol)


def _gives_wrong(sight: Sight, place: int) -> bool:
    """Whether more is wrong than gradients."""
    return not _same_values(sight.outcomes[place], sight.expected[place], sight.exercise.rtol)


def _same_values(one: Outcome, other: Outcome, rtol: float) -> bool:
    """Whether two outcomes differ in gradients at most."""
    return matches(replace(one, gradients=None), replace(other, gradients=None), rtol)


def _is_same(sight: Sight, place: int, other: Outcome) -> bool:
    """Whether a program gave what the student's did, and changed the same in place."""
    got, asked = sight.outcomes[place], sight.expected[place].after.keys()
    if not matches(got, other, sight.exercise.rtol):
        return False
    if got.error and other.error:
        kinds = {explain_error(each, "", "").check for each in (got.error, other.error)}
        return len(kinds) == 1 or "raised" in kinds  # two tensors that do not fit are no wrong view
    whole = not isinstance(other.value, Sketch)
    return not whole or got.after.keys() & asked == other.after.keys() & asked


def judge(sight: Sight) -> list[Finding]:
    """The findings of one question; empty where all is right. Never raises."""
    if sight.outcomes and all(o.missing for o in sight.outcomes):
        return [explain_error(sight.outcomes[0].error, sight.exercise.name, sight.source)]
    try:
        found = (sight.exercise.judge or compare)(sight)
        return found or _not_finite(sight)
    except Exception:
        # A custom judge met a value of a kind it did not expect: the plain comparison says which.
        return compare(sight) or [
            Finding(
                f"{sight.exercise.task}.type",
                Verdict.WRONG,
                "What came back cannot be compared with what was expected: it is another "
                "kind of thing. Look at what the exercise asks you to return.",
            )
        ]


def _not_finite(sight: Sight) -> list[Finding]:
    """NaN or infinity where the right answer has neither, which a judge of its own let pass.

    Comparisons with NaN are all False, so that `if abs(value - right) > slack` finds nothing in it.
    Where tasks share steps, what is not finite may be another step's.
    """
    if sight.exercise.judge is None or sight.exercise.stages:
        return []
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if got.error or expected.error:
            continue
        pairs = [(got.value, expected.value)]
        pairs += [(got.after.get(name), value) for name, value in expected.after.items()]
        for mine, right in pairs:
            odd, allowed = odd_numbers(mine), odd_numbers(right)
            if odd and not allowed and not (odd == {"infinity"} and large(right)):
                which = " and ".join(sorted(odd))
                text = (
                    f"What comes back holds {which}, where only finite numbers are right. Look for "
                    "a division by zero, a root or logarithm of what has none, or a softmax over "
                    "nothing."
                )
                name = f"{sight.exercise.task}.nan"
                return [Finding(name, Verdict.WRONG, text, tried=call.says)]
    return []


def named_errors(sight: Sight, *, errors: Sequence[tuple[str, str, str]]) -> list[Finding]:
    """The usual judge, but errors that are known by their text are told apart first.

    errors: (a pattern of `re`, the finding's name, its message); the first that is found in the
    text of a call's error counts.

        judge=partial(named_errors, errors=[("leaf Variable", "in-place.input", "...")])
    """
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        for pattern, check, message in errors if got.error else ():
            if re.search(pattern, got.error["message"]):
                line, statement = got.error["line"], got.error["statement"]
                return [Finding(check, Verdict.WRONG, message, line, statement, tried=call.says)]
    return compare(sight)
