"""Adds to what is found in an answer the line where it goes wrong, and mistakes beyond the first.

A finding stays what it is: its name and its verdict decide about marks, and neither is touched.
"""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from autograder.course.answers import Answers
from autograder.course.asking import STOPS, Exercise, Finding, Verdict, Where
from autograder.course.calls import Call, Outcome
from autograder.course.general.operations import OPERATION
from autograder.course.steps.traces import MOST_OF_ONE, Trace
from autograder.judging.difference import difference, is_nameless, matches
from autograder.judging.look_again import PREFIX
from autograder.judging.relations.partly import IN_PLACES
from autograder.judging.verdict import findings
from autograder.sandbox.inside.sandbox_wire import Failure
from autograder.tracing.binding import kept_between_calls
from autograder.tracing.differs import ZEROS
from autograder.tracing.edits.ask import steps_of
from autograder.tracing.edits.idle import beside_what_is_thrown_away, where_nothing_is_done
from autograder.tracing.edits.parts import of_parts
from autograder.tracing.edits.returned import the_call_named
from autograder.tracing.edits.told import ANOTHER, SEVERAL, by_its_edit
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.edits.within import at_its_own_line, in_source_order
from autograder.tracing.layers import and_twice, of_training, with_lines
from autograder.tracing.look import TWO_AT_ONCE, Look, Told, by_habit, cut_short, in_its_words
from autograder.tracing.proof.as_known import gives_as_changed, is_other_nan
from autograder.tracing.proof.taken_there import where_it_is_made
from autograder.tracing.raised import nothing, plainly, stopped, with_the_error, without_advice
from autograder.tracing.say import (
    ANOTHER_TENSOR,
    IN_ORDER,
    NO_CAUSE,
    keeps,
    listed,
    mend_first,
    sentence,
)
from autograder.tracing.text import Text, callee

# A number that is made of the length of an axis, as changed operations are told.
ONE = r"the number of {} is {}the length of axis \d+ of its first side\."
AGAIN = ONE.format(r"[^.]*?", r"[^.]*?")
OF_AN_AXIS = re.compile(
    ONE.format("([^.]*?)", "((?:1 over )?(?:the root of )?)")
    + rf"(?: Or, what comes to the same: {AGAIN})*"
)
# Mistakes in which places a mask hides, but for one that is not there at all.
JOINS = ("stack", "cat", "concat", "vstack", "hstack")  # calls that put a list of tensors together
OF_A_MASK = re.compile(r"^mask\.(?!none)|diagonal|not masked")
HIDING = {"masked_fill", "masked_fill_", "where", "softmax", "log_softmax", "exp", "tril", "triu"}
OR = "Or, what comes to the same: "
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

    It is one of whose result the most parts are wrong, whose sizes are larger than 1 (of one token
    nothing shows), whose tensors have the most axes (of one row the wrong axis does not show), and
    whose steps are known and can be written down.
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
        wrong = _wrong_parts(outcomes[place].value, known.expected[place].value, exercise.rtol)
        return -wrong, _ones(calls[place]), unlike, -_axes(calls[place])

    return min(shown, key=tells_least, default=None)


def _wrong_parts(got, expected, rtol: float) -> int:
    """How many parts of a result are wrong: of several mistakes a call may show one alone."""
    if not isinstance(expected, tuple | list) or not isinstance(got, tuple | list):
        return 1
    pairs = zip(got, expected, strict=False)
    return sum(difference(one, other, rtol) is not None for one, other in pairs)


def _given(call: Call) -> list[torch.Tensor]:
    """The tensors of a call."""
    return [t for t in (*call.args, *call.kwargs.values()) if isinstance(t, torch.Tensor)]


def _is_large(call: Call) -> bool:
    """Whether a tensor of a call has more numbers than are written down."""
    return any(t.numel() > MOST_OF_ONE for t in _given(call))


def _ones(call: Call) -> int:
    """How many axes of a call's tensors have size 1, and how many numbers are 0 or 1: such sizes
    and shares hide what is wrong."""
    given = (*call.args, *call.kwargs.values())
    numbers = [v for v in given if isinstance(v, int | float) and not isinstance(v, bool)]
    return sum(n == 1 for t in _given(call) for n in t.shape) + sum(n in (0, 1) for n in numbers)


def _axes(call: Call) -> int:
    """How many axes a call's tensors have, all together."""
    return sum(t.dim() for t in _given(call))


def with_where(
    found: list[Finding],
    steps: Steps | None,
    known: Answers,
    exercise: Exercise,
    source: str,
    asked: WrongAnswer | None = None,
    more: bool = True,
) -> list[Finding]:
    """The findings, the first that fails with the place where it goes wrong. Never raises.

    asked: how versions of the answer with a small change are asked, where they can be. more:
    whether it is looked at what is still wrong in such a version.
    """

    def again(version: str, outcomes: Sequence[Outcome]) -> list[Finding]:
        return _in_a_version(replace(asked, source=version, outcomes=outcomes))

    try:
        look, text = None, Text(source)
        if steps is not None and known.bank is not None:
            look = Look(steps.trace, known.bank, steps.place, text)
        placed, told = _with_where(found, steps, look, known, exercise)
        placed = [_as_it_is_taken(_without_a_guess(f, exercise), text, exercise) for f in placed]
        if asked is not None:
            said = by_its_edit(found, placed, asked, look, again if more else None)
            refuted = steps is not None and _is_refuted(told, steps, known, exercise.rtol)
            placed = found if refuted and said == placed else said
        placed = with_lines(placed, text)
        placed = placed if steps is not None else of_training(placed, text)
        placed = [_by_chance(f) if f.fails else f for f in placed]
        placed = placed if exercise.stages else and_twice(placed, known.mistakes, text)
        placed = [at_its_own_line(f, told, look, text) if f.fails else f for f in placed]
        placed = [where_nothing_is_done(f, text) if f.fails else f for f in placed]
        return [beside_what_is_thrown_away(f, text) if f.fails else f for f in placed]
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        logging.getLogger(__name__).exception("looking at the steps failed")
        return found


def _in_a_version(asked: WrongAnswer) -> list[Finding]:
    """What is found in a version of an answer, and where."""
    exercise, known, source = asked.exercise, asked.known, asked.source
    found = findings(exercise, asked.calls, asked.outcomes, known, source)
    place, steps = wrong_call(exercise, asked.calls, asked.outcomes, known), None
    if place is not None:
        trace = steps_of(asked.send, source, asked.calls[place])
        steps = Steps(place, trace, asked.outcomes[place]) if trace is not None else None
    asked = replace(asked, place=place)
    return with_where(found, steps, known, exercise, source, asked, more=False)


def _is_refuted(told: list[Told], steps: Steps, known: Answers, rtol: float) -> bool:
    """Whether the steps show what a known mistake makes, and a result is right that this mistake
    spoils: then something else is made of it here, and that is right so far."""
    if len(told) != 1 or told[0].cause is None or told[0].last:
        return False
    got, wanted = (of_parts(o.value) for o in (steps.outcome, known.expected[steps.place]))
    own = [gives for _, message, gives in known.mistakes if message == told[0].cause[1]]
    spoiled = [of_parts(gives[steps.place].value) for gives in own]
    right = {k for k in wanted if k in got and difference(got[k], wanted[k], rtol) is None}
    return bool(spoiled) and all(
        any(k in each and difference(each[k], wanted[k], rtol) for k in right) for each in spoiled
    )


def _without_a_guess(finding: Finding, exercise: Exercise) -> Finding:
    """A finding without the line of a step of which nothing is known but that it is not right, or
    that it gives zeros: what it takes may have been chosen elsewhere."""
    where = finding.where
    nameless = finding.verdict == Verdict.WRONG and is_nameless(finding.check, exercise.task)
    nameless = nameless or finding.verdict == Verdict.ERROR or finding.check.endswith(ANOTHER)
    chance = where is not None and where.how == ZEROS and not nameless
    if not chance and (where is None or where.how or not nameless):
        return finding
    if finding.message.startswith((*SEVERAL, f"Line {where.first_wrong} goes wrong before")):
        return finding
    return replace(finding, where=None, line=None, statement="")


def _as_it_is_taken(finding: Finding, text: Text, exercise: Exercise) -> Finding:
    """A finding without the line that only takes what a wrong mask was laid on, or adds up what
    another line chose: what it takes is made before."""
    where = finding.where
    node = text.around(where.first_wrong) if where is not None else None
    if node is None or finding.verdict != Verdict.WRONG:
        return finding
    of_a_mask = OF_A_MASK.search(finding.check) and not where.how and not _hides(node)
    named = not is_nameless(finding.check, exercise.task)  # and not for this: it says what it is
    adds = named and isinstance(node, ast.AugAssign) and where.how == ANOTHER_TENSOR
    return replace(finding, where=None, line=None, statement="") if of_a_mask or adds else finding


def _hides(node: ast.stmt) -> bool:
    """Whether a statement lays a mask on, makes one, or takes a softmax of what was masked."""
    inside = list(ast.walk(node))
    calls = {callee(n) for n in inside if isinstance(n, ast.Call)}
    return bool(calls & HIDING) or any(isinstance(n, ast.Compare | ast.Subscript) for n in inside)


def _by_chance(finding: Finding) -> Finding:
    """A finding that another share is dropped, without a line that nothing but its place in the
    known mistake speaks for: how many are dropped is drawn somewhere before."""
    shares = ("dropout.share", "dropout.missing")
    share = finding.check.endswith(shares) and finding.where is not None
    if not share or finding.where.how:
        return finding
    return replace(finding, where=None, line=None, statement="")


def _with_where(
    found: list[Finding],
    steps: Steps | None,
    look: Look | None,
    known: Answers,
    exercise: Exercise,
) -> tuple[list[Finding], list[Told]]:
    """The same by the steps alone, and what they tell."""
    number = next((i for i, f in enumerate(found) if f.fails), None)
    if number is None or look is None:
        return found, []
    finding = found[number]
    named = _is_named(finding, exercise)
    pair = _pair(finding, known)
    observed = named and not pair and not _is_of_the_bank(finding, known)
    told = look.told(finding.check if named and not (pair or observed) else "")
    if named and not pair and _is_at_several(told, finding.check):
        told = []
    shown = {each.cause[0] for each in told if each.cause}
    if any(look.refutes(check) for check, _ in pair if check not in shown):
        finding, pair, named = replace(finding, message=_without(pair, finding.message)), (), False
    elif named and not pair and is_other_nan(look.trace, look.bank, look.place, finding.check):
        own = max((m for c, m, *_ in known.mistakes if c == finding.check), key=len, default="")
        finding, named = replace(finding, message=finding.message.removeprefix(own).strip()), False
    elif named and finding.check.startswith(OPERATION):
        made = known.changed(finding.check, steps.place)
        before, (finding, told) = finding, _by_its_operation(finding, told, look, made)
        named = finding is before
    topic = finding.check.split(".")[0]
    if observed and told and told[0].cause and told[0].cause[0].split(".")[0] == topic:
        finding, named = replace(finding, message=_without_the_first(finding.message)), False
    elif observed and told and told[-1].last and all(each.cause for each in told):
        named = False  # what the steps prove says more than what a judge saw
    alone = pair and _one_change(told)
    told = _of_the_pair(told, pair, look) if pair and not alone else told
    check = finding.check if named and not pair else ""
    told = in_source_order([where_it_is_made(each, look.text, check) for each in told], look)
    if pair and not _all_show(pair, known, steps.place, exercise.rtol):  # no line mends both
        told = [replace(each, last=False) for each in told]
    unbuilt = finding.check.startswith(PREFIX) and finding.line is not None
    kept = kept_between_calls(look.text) if not named else None
    if kept is not None:
        said = keeps(plainly(finding), look.text, *kept)
    elif finding.verdict == Verdict.ERROR or unbuilt:
        said = stopped(finding, told, look, steps.outcome.error)
    elif not named and steps.outcome.error is None and steps.outcome.value is None:
        said = nothing(finding, look, exercise)
    else:
        finding = with_the_error(finding, look, steps.outcome.error)
        told = _by_elimination(told, pair)
        said = _values(finding, told, look, named, pair)
        said = replace(said, message=in_its_words(said.message, told))
        said = _by_the_change(said, told[0], pair) if alone else _with_its_line(said)
        own = any(each.cause and each.cause[0] == finding.check for each in told)
        said = said if own or pair or not named else _beside_what_it_names(said, look.text)
        said = cut_short(said, look) if said.where is None and not named else said
    return [*found[:number], said, *found[number + 1 :]], told


def _beside_what_it_names(finding: Finding, text: Text) -> Finding:
    """A finding of what a judge saw, whose words name a call on another line than the steps tell:
    those are two things."""
    call, where = the_call_named(finding.message, text), finding.where
    if call is None or where is None or not where.how or call.lineno == where.first_wrong:
        return finding
    parts = sorted([(where.first_wrong, sentence(where.how)), (call.lineno, finding.message)])
    return replace(finding, message=f"Two things are wrong. {listed(parts)}")


def _by_its_operation(
    finding: Finding, told: list[Told], look: Look, made: Sequence[torch.Tensor]
) -> tuple[Finding, list[Told]]:
    """A finding that one operation of the answer is changed, and what is told: the line that gives
    what it gives then. Where no line does, and others are told that mend all, these are it."""
    at = gives_as_changed(look.judged, made) if look.judged is not None else ()
    if not at and made and told and told[-1].last and told[0].where.how:
        rest = finding.message.partition(". ")[2]
        while rest.startswith(OR):  # what comes to the same is told of no line either
            rest = rest.partition(". ")[2]
        return replace(finding, message=rest), told
    lines = [look.text.line(look.trace.steps[i]) for i in at]
    if told or not lines or None in lines:
        return finding, told
    where = Where(first_wrong=lines[0], how="", **look.right_before(min(lines)))
    return finding, [Told(where, look.text.statement(lines[0]), None, at[0], at[0])]


def _is_named(finding: Finding, exercise: Exercise) -> bool:
    """Whether a known mistake explains all that came back."""
    return finding.verdict == Verdict.WRONG and not is_nameless(finding.check, exercise.task)


def _is_at_several(told: list[Told], check: str) -> bool:
    """Whether the steps tell one and the same mistake on several lines: then none is sure."""
    own = [each for each in told if each.cause and each.cause[0] == check]
    return len({each.where.first_wrong for each in own}) > 1


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


def _all_show(pair: tuple[Named, ...], known: Answers, place: int, rtol: float) -> bool:
    """Whether each of two known mistakes shows by itself in the call that is looked at."""
    gives = {check: own for check, _, own in (*known.mistakes, *known.exchanged, *known.altered)}
    right = known.expected[place]
    own = [gives[check][place] for check, _ in pair if check in gives]
    return not any(matches(each, right, rtol) for each in own)


def _of_the_pair(told: list[Told], pair: tuple[Named, ...], look: Look) -> list[Told]:
    """What is told of two known mistakes that explain all; where proofs do not show both, what
    their own steps show."""
    checks = sorted(check for check, _ in pair)
    found = _of_these(told, pair)
    if sorted(each.cause[0] for each in found if each.cause) == checks:
        return found
    return look.both(checks) or found


def _of_these(told: list[Told], pair: tuple[Named, ...]) -> list[Told]:
    """Of what is told, what two known mistakes can be that explain all: each once, and no third;
    without a name only where all is right in the end."""
    checks = [check for check, _ in pair]
    found: list[Told] = []
    for each in told:
        own = each.cause[0] if each.cause else ""
        if not own and not told[-1].last:
            continue
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


def _only_joins(text: Text, line: int) -> bool:
    """Whether a line puts tensors together that lines above make."""
    node = text.around(line)
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
    return any(callee(n) in JOINS and isinstance(n.args[0], ast.Name) for n in calls if n.args)


def _values(
    finding: Finding, told: list[Told], look: Look, named: bool, pair: tuple[Named, ...]
) -> Finding:
    """A finding with what its steps say; as it is, where they tell of something else."""
    checks = {each.cause[0] for each in told if each.cause}
    ours = checks & ({check for check, _ in pair} or {finding.check})
    if finding.line is not None and told and told[0].where.first_wrong < finding.line:
        first = told[0]
        here = first.where.first_wrong
        another = first.cause is not None and first.cause[0] != finding.check
        before = f"Line {here} goes wrong before: {first.cause[1]} " if another else ""
        message = f"{before}{finding.message}"
        return replace(
            finding, message=message, where=first.where, line=here, statement=first.statement
        )
    if finding.line is not None and _only_joins(look.text, finding.line):
        return finding  # what does not fit is made above
    if finding.line is not None:  # an error that a known mistake explains
        before = look.right_before(finding.line)
        where = Where(first_wrong=finding.line, how=STOPS, **before)
        return replace(finding, message=without_advice(finding.message), where=where)
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
        said = habit or told[0].cause[1]
        return f"{said} {message.replace(f'{IN_PLACES}{said}', '')}".rstrip()
    parts = []
    for number, each in enumerate(told):
        how = each.where.how or NO_CAUSE
        what = each.cause[1] if each.cause else f"{how[:1].upper()}{how[1:]}."
        parts.append(f"Line {each.where.first_wrong}: {habit if habit and not number else what}")
    count = {2: "Two", 3: "Three"}[len(told)]
    first = told[0].where.first_wrong
    others = {each.where.first_wrong for each in told} - {first}
    order = f" {mend_first(first) if others else IN_ORDER}"
    rest = message.partition(TWO_AT_ONCE)[0].strip()  # without what the lines say already
    return f"{count} things are wrong. {' '.join(parts)}{order} {rest}"
