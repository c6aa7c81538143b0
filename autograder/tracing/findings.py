"""Adds to what is found in an answer the line where it goes wrong, and mistakes beyond the first.

A finding stays what it is: its name and its verdict decide about marks, and neither is touched.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from autograder.course.answers import Answers
from autograder.course.asking import Exercise, Finding, Verdict, Where
from autograder.course.calls import Call, Outcome
from autograder.course.general.operations import OPERATION
from autograder.course.steps.traces import MOST_OF_ONE, Trace
from autograder.judging.compare import WHERE_IT_RUNS
from autograder.judging.difference import difference, is_nameless
from autograder.judging.explain import CAUSES, RAISED
from autograder.judging.look_again import PREFIX
from autograder.sandbox.inside.sandbox_wire import Failure
from autograder.tracing.binding import kept_between_calls, of_another_axis
from autograder.tracing.layers import DROPPED_BEHIND, of_dropout, of_training, with_lines
from autograder.tracing.look import TWO_AT_ONCE, Look, Told, by_habit, cut_short, in_its_words
from autograder.tracing.proof.as_known import is_other_nan
from autograder.tracing.raised import by_cause, made_of_a_tensor
from autograder.tracing.say import keeps
from autograder.tracing.text import Text, last_assigned, without_return

# A number that is made of the length of an axis, as changed operations are told.
ONE = r"the number of {} is {}the length of axis \d+ of its first side\."
AGAIN = ONE.format(r"[^.]*?", r"[^.]*?")
OF_AN_AXIS = re.compile(
    ONE.format("([^.]*?)", "((?:1 over )?(?:the root of )?)")
    + rf"(?: Or, what comes to the same: {AGAIN})*"
)
Named = tuple[str, str]  # a mistake as (check, message)


@dataclass(frozen=True)
class Steps:
    """The steps of one of the calls, by its place among them, and what came of it."""

    place: int
    trace: Trace
    outcome: Outcome


def wrong_call(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
) -> int | None:
    """The place of a call that went wrong and whose steps tell most; None where there is none.

    It is one whose sizes are larger than 1, if there is such a one (of one token nothing shows),
    whose tensors have the most axes (of one row the wrong axis does not show), and whose steps are
    known and can be written down.
    """
    wrong = []
    for place, (call, got) in enumerate(zip(calls, outcomes, strict=True)):
        if call.inspect or call.on or call.train or got.unset or _is_large(call):
            continue
        if got.error is not None and got.error["kind"] != Failure.RAISED:
            continue
        right = known.expected[place]
        if right.error is None and (
            got.error is not None or difference(got.value, right.value, exercise.rtol) is not None
        ):
            wrong.append(place)
    shown = [place for place in wrong if known.bank is not None and known.bank.knows(place)]

    def tells_least(place: int) -> tuple:
        unlike = (outcomes[place].error is None) != (outcomes[shown[0]].error is None)
        return _ones(calls[place]), unlike, -_axes(calls[place])

    return min(shown, key=tells_least, default=None)


def _given(call: Call) -> list[torch.Tensor]:
    """The tensors of a call."""
    return [t for t in (*call.args, *call.kwargs.values()) if isinstance(t, torch.Tensor)]


def _is_large(call: Call) -> bool:
    """Whether a tensor of a call has more numbers than are written down."""
    return any(t.numel() > MOST_OF_ONE for t in _given(call))


def _ones(call: Call) -> int:
    """How many axes of a call's tensors have size 1."""
    return sum(n == 1 for t in _given(call) for n in t.shape)


def _axes(call: Call) -> int:
    """How many axes a call's tensors have, all together."""
    return sum(t.dim() for t in _given(call))


def with_where(
    found: list[Finding], steps: Steps | None, known: Answers, exercise: Exercise, source: str
) -> list[Finding]:
    """The findings, the first that fails with the place where it goes wrong. Never raises."""
    try:
        placed = _with_where(found, steps, known, exercise, source)
        placed = with_lines(placed, Text(source))
        placed = placed if steps is not None else of_training(placed, Text(source))
        return placed if exercise.stages else _and_twice(placed, known, Text(source))
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        logging.getLogger(__name__).exception("looking at the steps failed")
        return found


def _and_twice(found: list[Finding], known: Answers, text: Text) -> list[Finding]:
    """The findings, the first that fails with a word on a second dropout, on one behind the weights
    or on one that is never used, where the exercise counts one behind the weights as a mistake.
    Dice do not show beside what is wrong without them."""
    number = next((i for i, f in enumerate(found) if f.fails), None)
    if number is None or not any(check in DROPPED_BEHIND for check, *_ in known.mistakes):
        return found
    finding, said = found[number], of_dropout(text)
    if finding.verdict != Verdict.WRONG or "dropout." in finding.check or not said:
        return found
    message = f"{finding.message} And beside that: {said}"
    return [*found[:number], replace(finding, message=message), *found[number + 1 :]]


def _with_where(
    found: list[Finding], steps: Steps | None, known: Answers, exercise: Exercise, source: str
) -> list[Finding]:
    number = next((i for i, f in enumerate(found) if f.fails), None)
    if number is None or steps is None or known.bank is None:
        return found
    finding = found[number]
    named = _is_named(finding, exercise)
    look = Look(steps.trace, known.bank, steps.place, Text(source))
    pair = _pair(finding, known)
    observed = named and not pair and not _is_of_the_bank(finding, known)
    told = look.told(finding.check if named and not (pair or observed) else "")
    shown = {each.cause[0] for each in told if each.cause}
    if any(look.refutes(check) for check, _ in pair if check not in shown):
        finding, pair, named = replace(finding, message=_without(pair, finding.message)), (), False
    elif named and not pair and is_other_nan(look.trace, look.bank, look.place, finding.check):
        own = max((m for c, m, *_ in known.mistakes if c == finding.check), key=len, default="")
        finding, named = replace(finding, message=finding.message.removeprefix(own).strip()), False
    topic = finding.check.split(".")[0]
    if observed and told and told[0].cause and told[0].cause[0].split(".")[0] == topic:
        finding, named = replace(finding, message=_without_the_first(finding.message)), False
    elif observed and told and told[-1].last and all(each.cause for each in told):
        named = False  # what the steps prove says more than what a judge saw
    alone = pair and _one_change(told)
    told = _of_the_pair(told, pair, look) if pair and not alone else told
    unbuilt = finding.check.startswith(PREFIX) and finding.line is not None
    kept = kept_between_calls(look.text) if not named else None
    if kept is not None:
        said = keeps(_plainly(finding), look.text, *kept)
    elif finding.verdict == Verdict.ERROR or unbuilt:
        said = _error(finding, told, look, steps)
    elif not named and steps.outcome.error is None and steps.outcome.value is None:
        said = _nothing(finding, look, exercise)
    else:
        finding = _with_the_error(finding, look, steps)
        told = _by_elimination(told, pair)
        said = _values(finding, told, look, named, pair)
        said = replace(said, message=in_its_words(said.message, told))
        said = _by_the_change(said, told[0], pair) if alone else _with_its_line(said)
        said = cut_short(said, look) if said.where is None and not named else said
    return [*found[:number], said, *found[number + 1 :]]


def _is_named(finding: Finding, exercise: Exercise) -> bool:
    """Whether a known mistake explains all that came back."""
    return finding.verdict == Verdict.WRONG and not is_nameless(finding.check, exercise.task)


def _is_of_the_bank(finding: Finding, known: Answers) -> bool:
    """Whether a known mistake has this name; else a judge of the exercise's own saw something."""
    named = (*known.mistakes, *known.exchanged, *known.altered, *known.pairs)
    return any(finding.check in (check, *check.split(" + ")) for check, *_ in named)


def _without_the_first(message: str) -> str:
    """A message without its first sentence, which says what a judge of the exercise's own saw."""
    return message.partition(". ")[2]


# --- values --------------------------------------------------------------------------------------
def _pair(finding: Finding, known: Answers) -> tuple[Named, ...]:
    """The two known mistakes that together explain a finding; empty where it is none of two. Of a
    task about one step a finding has the name of one alone."""
    for check, message, _ in known.pairs if finding.verdict == Verdict.WRONG else ():
        slips = check.split(" + ")
        if finding.check in (check, *slips) and finding.message.startswith(message):
            said = [(c, m) for c, m, _ in known.mistakes if c in slips and m in message]
            own = [max((m for c, m in said if c == slip), key=len, default="") for slip in slips]
            return tuple(zip(slips, own, strict=True)) if all(own) else ()
    return ()


def _of_the_pair(told: list[Told], pair: tuple[Named, ...], look: Look) -> list[Told]:
    """What is told of two known mistakes that explain all; where proofs do not show both, what
    their own steps show."""
    checks = sorted(check for check, _ in pair)
    found = _of_these(told, pair)
    if sorted(each.cause[0] for each in found if each.cause) == checks:
        return found
    return look.both(checks) or found


def _of_these(told: list[Told], pair: tuple[Named, ...]) -> list[Told]:
    """Of what is told, what two known mistakes can be that explain all: each once, and no third."""
    checks = [check for check, _ in pair]
    found: list[Told] = []
    for each in told:
        own = each.cause[0] if each.cause else ""
        if own and (own not in checks or own in [t.cause[0] for t in found if t.cause]):
            continue
        found.append(each)
    if len(found) == 1 and len(told) == len(pair):  # the other line is the other's: see below
        return [each if each is found[0] else replace(each, cause=None) for each in told]
    named = [each for each in found if each.cause]
    return named if len(named) == len(pair) else found[: len(pair)]


def _with_its_line(finding: Finding) -> Finding:
    """A finding that speaks of the length of some axis, with the line of that number instead."""
    line = finding.line if finding.where is not None else None
    if line is None or not finding.check.startswith(OPERATION):
        return finding
    said = rf"in line {line} the number of \1 is \2another size than the one that belongs there."
    return replace(finding, message=OF_AN_AXIS.sub(said, finding.message, count=1))


def _one_change(told: list[Told]) -> bool:
    """Whether one small change of one step makes all right. Then that is what is wrong, and no two
    mistakes that together come to the same."""
    return len(told) == 1 and told[0].cause is None and bool(told[0].change)


def _by_the_change(finding: Finding, told: Told, pair: tuple[Named, ...]) -> Finding:
    """A finding that tells of one changed step, and of no two mistakes."""
    line, rest = told.where.first_wrong, _without(pair, finding.message)
    rest = rest.removeprefix(f"Both come in at line {line}. ")
    said = f"One thing is wrong, in line {line}: {told.where.how}."
    return replace(finding, message=f"{said} {rest}".rstrip())


def _by_elimination(told: list[Told], pair: tuple[Named, ...]) -> list[Told]:
    """Of two known mistakes that explain all, the one is where the other is not."""
    left = [slip for slip in pair if slip not in [each.cause for each in told]]
    if len(told) != 2 or len(pair) != 2 or len(left) != 1:
        return told
    return [each if each.cause in pair else replace(each, cause=left[0]) for each in told]


def _values(
    finding: Finding, told: list[Told], look: Look, named: bool, pair: tuple[Named, ...]
) -> Finding:
    """A finding with what its steps say; as it is, where they tell of something else."""
    checks = {each.cause[0] for each in told if each.cause}
    ours = checks & ({check for check, _ in pair} or {finding.check})
    if finding.line is not None and told and told[0].where.first_wrong < finding.line:
        first = told[0]
        return replace(
            finding, where=first.where, line=first.where.first_wrong, statement=first.statement
        )
    if finding.line is not None:  # an error that a known mistake explains
        before = look.right_before(finding.line)
        where = Where(first_wrong=finding.line, how="it stops with an error", **before)
        return replace(finding, message=_without_advice(finding.message), where=where)
    if not told or (named and checks and not ours):
        return finding
    told, habit = by_habit(told, look)
    first = told[0]
    placed = replace(
        finding, where=first.where, line=first.where.first_wrong, statement=first.statement
    )
    if named and not pair and _is_told_later(finding, told):
        own = next(each.cause[1] for each in told if each.cause and each.cause[0] == finding.check)
        return replace(placed, message=_causes(told, habit, finding.message.removeprefix(own)))
    if named and (not pair or len(checks) < 2):
        message = _both_there(finding.message, told, pair, look)
        return replace(placed, message=f"{habit} {message}".strip())
    several = len(told) > 1 and all(each.cause or each.where.how for each in told)
    if not (habit or checks or several):
        return placed
    return replace(placed, message=_causes(told, habit, _without(pair, finding.message)))


def _is_told_later(finding: Finding, told: list[Told]) -> bool:
    """Whether a known mistake that a finding names is told of a later line than the first, and
    something else of that one."""
    causes = [each.cause[0] if each.cause else "" for each in told]
    later = finding.check in causes[1:] and causes[0] != finding.check
    return later and all(each.cause or each.where.how for each in told)


def _both_there(message: str, told: list[Told], pair: tuple[Named, ...], look: Look) -> str:
    """A message of two known mistakes, with the line where one statement mends them both."""
    if len(told) != 1 or not pair or not told[0].last or look.turned_before(told[0]):
        return message
    last = pair[1][1]
    return message.replace(last, f"{last} Both come in at line {told[0].where.first_wrong}.", 1)


def _without(pair: tuple[Named, ...], message: str) -> str:
    """A message without the names of two mistakes at once: those are told by lines."""
    return message.partition(pair[1][1])[2].lstrip() if pair else message


def _causes(told: list[Told], habit: str, message: str) -> str:
    """All that is wrong, with its lines, and what to mend first."""
    if len(told) == 1:
        return f"{habit or told[0].cause[1]} {message}"
    parts = []
    for number, each in enumerate(told):
        how = each.where.how or "what it gives is not right"
        what = each.cause[1] if each.cause else f"{how[:1].upper()}{how[1:]}."
        parts.append(f"Line {each.where.first_wrong}: {habit if habit and not number else what}")
    count = {2: "Two", 3: "Three"}[len(told)]
    first = told[0].where.first_wrong
    others = {each.where.first_wrong for each in told} - {first}
    order = f" Mend line {first} first." if others else " Mend them in this order."
    rest = message.partition(TWO_AT_ONCE)[0].strip()  # without what the lines say already
    return f"{count} things are wrong. {' '.join(parts)}{order} {rest}"


# --- nothing came back, or an error --------------------------------------------------------------
def _nothing(finding: Finding, look: Look, exercise: Exercise) -> Finding:
    """None came back: a function without a `return`, where that is so."""
    function = without_return(look.text, exercise.name)
    if function is None:
        return finding
    line = function.body[-1].lineno
    meant = last_assigned(function)
    end = f" End it with `return {meant}`." if meant else " End it with a `return`."
    return replace(
        finding,
        message=f"`{function.name}` returns nothing, so that its call gives None.{end}",
        line=line,
        statement=look.text.statement(line),
        where=Where(how="nothing is returned", first_wrong=line, **look.right_before(line + 1)),
    )


def _with_the_error(finding: Finding, look: Look, steps: Steps) -> Finding:
    """A finding whose known mistake shows only where the code does not stop, with the cause of the
    error."""
    error = steps.outcome.error
    if WHERE_IT_RUNS not in finding.message or error is None or error["line"] != finding.line:
        return finding
    cause = by_cause(dict(error), steps.trace, look.own, look.text)
    said, middle, rest = finding.message.partition(WHERE_IT_RUNS)
    said = f"{_without_advice(said.rstrip())} {cause} " if cause else said
    return replace(finding, message=f"{said}{middle}{rest}")


def _error(finding: Finding, told: list[Told], look: Look, steps: Steps) -> Finding:
    """An error by its cause, with what is wrong before it."""
    error = steps.outcome.error
    if error is None or error["line"] != finding.line or error["type"] not in finding.message:
        return finding  # another call stops, or with another error
    cause = by_cause(dict(error), steps.trace, look.own, look.text)
    message = finding.message
    if not cause and error["type"] == "IndexError" and error["line"] is not None:
        _, cause = of_another_axis(error["message"], look.text, error["line"]) or (0, "")
    if cause:
        message = f"{_without_advice(message)} {cause}"
    if finding.line is None:
        return replace(finding, message=message)
    if told and told[0].where.first_wrong < finding.line:
        first = told[0]
        what = first.cause[1] if first.cause else ""
        if not what and first.where.how:
            what = f"{first.where.how[:1].upper()}{first.where.how[1:]}."
        start = f"Line {first.where.first_wrong} goes wrong before: {what} " if what else ""
        return replace(finding, message=f"{start}{message}", where=first.where)
    stopped = steps.trace.stopped
    if stopped is not None and look.judged is not None and look.judged.bad & {*stopped.inputs}:
        return replace(finding, message=message)  # an earlier line may be the one that is wrong
    layer = made_of_a_tensor(dict(error), steps.trace, look.text)
    line, how = finding.line, "it stops with an error"
    line, how = (layer[0], "it makes a layer and applies nothing") if layer else (line, how)
    where = Where(first_wrong=line, how=how, **look.right_before(line))
    return replace(finding, message=message, where=where)


def _plainly(finding: Finding) -> Finding:
    return replace(finding, message=_without_advice(finding.message))


def _without_advice(message: str) -> str:
    """An error's message without what such errors usually mean."""
    usual = [RAISED, *(words for *_, words in CAUSES)]
    advice = next((words for words in usual if words in message), "")
    return message.replace(f" {advice}", "") if advice else message
