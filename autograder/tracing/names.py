"""A right tensor in the place of another: is it the line that uses it, or one that misnamed it?

A statement such as `q, v, k = parts` computes nothing, so that no step shows it. Where a wrong step
is made of right tensors alone, it may be right itself and be given the wrong ones. Then it is told
only where the text shows no statement before it that hands them on, or where the names prove which.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

import torch

from autograder.course.steps.bank import Bank, KnownSteps
from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.alike import HIDDEN, plain
from autograder.tracing.binding import (
    Binding,
    bound_last,
    calls_one_of_a_row,
    handed_on,
    handed_on_after,
    handed_to,
    joins_a_row,
    lines_of,
    names_at_once,
    names_given,
    unpacked,
)
from autograder.tracing.first_wrong import LAYOUT, Judged, Wrong
from autograder.tracing.proof.as_known import made_as_known, where_it_was_cut
from autograder.tracing.proof.handed import MISSING, called_too_early
from autograder.tracing.proof.mends import ATTENTION, JOINS
from autograder.tracing.proof.standing import factor_of
from autograder.tracing.reference import PRODUCTS
from autograder.tracing.text import Text, function_around, means, own_nodes

HIDES = ("masked_fill", "inf", "where", "-1e")  # what hides scores in a text
SKIPPED = "what hides scores stands under a condition that did not hold here"
# How the words of such mends begin.
OTHER_OPERANDS = ("an operand", "another tensor", "its operands", "what the rounds give")


@dataclass(frozen=True)
class Slip:
    """One thing that is wrong: the step, what it should be, and the known mistake, if it is one."""

    judged: Judged
    wrong: Wrong
    number: int  # the step that is said to be wrong
    cause: KnownSteps | None = None
    mend: str = ""  # what was made in another way to prove it
    line: int | None = None  # where another line than the step's is to blame
    last: bool = False  # whether all is right with this mended
    words: str = ""  # a small change that makes the result right, where no cause is known
    mended: Trace | None = None  # the trace with what belongs there, where it is proved


def as_its_program_makes_it(
    judged: Judged, bank: Bank, place: int, named: str, text: Text
) -> list[Slip]:
    """The known mistake that explains all, at the step where its own program makes it, too."""
    made = made_as_known(judged, bank, place, named)
    if made is None:
        return []
    wrong, cause = made
    beside = [text.line(judged.steps[i]) for i in sorted(judged.work.open)][-1:]
    mend = "it can be mended here, or in line {}, where what comes in is made"
    slip = Slip(judged, wrong, wrong.number, cause, mend.format(*beside) if beside else "")
    cut = where_it_was_cut(judged, wrong.number)
    line = text.line(judged.steps[wrong.number])
    if cut is not None and text.line(judged.steps[cut]) not in (line, None):
        wrong = replace(wrong, number=cut)
        words = f"the parts that line {line} takes of it are not the ones asked for"
        slip = replace(slip, wrong=wrong, number=cut, mend=words)
    return [each for each in [by_its_name(slip, text)] if each is not None]


def by_its_name(slip: Slip, text: Text) -> Slip | None:
    """The slip, at the line that surely made it; None where the text leaves that open."""
    judged, number = slip.judged, slip.number
    step, line = judged.steps[number], text.line(judged.steps[number])
    if slip.line is not None or line is None or factor_of(judged, number) is not None:
        return slip
    left = _where_places_are_left(slip, text) or _where_rounds_are_missing(slip, text)
    if left is not None:
        return left
    early = called_too_early(judged, number, text) if step.outer and slip.cause else None
    if early is not None:
        return replace(slip, line=early, mend=MISSING, words="")
    skipped = _condition_of_a_mask(judged, number, text)
    if skipped is not None:
        return replace(slip, line=skipped, mend=SKIPPED, words="")
    if _meet_scaled(judged, number):
        return _where_scaled_again(slip, text)
    if _in_another_order(judged, number, text):
        return slip if _in_one_row(slip, text, line) else None
    made = {text.line(s) for s in judged.steps}
    like, instead = judged.like.get(number), slip.wrong.instead
    makes = like is not None and not (step.op in LAYOUT and _used_there(judged, number, text))
    if instead is not None and makes and like.known is instead[0]:
        return _made_or_named(slip, text, line, made)
    if step.op in JOINS and (like is None or not like.in_order):
        return slip if joins_a_row(text, line, step.op) else None
    if _took_another(slip):
        names = text.operands(step)
        words = [judged.like[i].known.name if i in judged.like else "" for i in step.inputs[:2]]
        if like is not None and like.turned and len(names) == 2 and _are_crossed(names, words):
            return _at(slip, [bound_last(text, name, line) for name in names])
        if _comes_with_the_call(slip, text, line, names, words):
            return None
    return _past_what_hands_on(slip, text, line, made)


def _condition_of_a_mask(judged: Judged, number: int, text: Text) -> int | None:
    """The line of the `if` in front of a softmax under which scores are hidden, where that did not
    run and the answer hides them there."""
    step, line = judged.steps[number], text.line(judged.steps[number])
    ran, shape = {text.line(s) for s in judged.steps}, step.value.shape
    if step.op != "softmax" or any(_hides(judged.steps[i].value) for i in step.inputs):
        return None
    if not any(_hides(v) for known in judged.own.known for v in known.shapes if v.shape == shape):
        return None
    function = function_around(text, line)
    for node in own_nodes(function) if function is not None else ():
        if isinstance(node, ast.If) and node.lineno < line:
            body = ast.unparse(ast.Module(node.body, []))
            if not ran & {n.lineno for n in node.body} and any(w in body for w in HIDES):
                return node.lineno
    return None


def _hides(scores: torch.Tensor) -> bool:
    return bool((plain(scores) == HIDDEN).any())


def _where_places_are_left(slip: Slip, text: Text) -> Slip | None:
    """The slip at the loop that writes into a tensor, where what it writes is right and the rest is
    as it was: the loop ends too early, or leaves places out. None where this is not so."""
    judged, number = slip.judged, slip.number
    while judged.steps[number].op in LAYOUT and len(judged.steps[number].inputs) == 1:
        number = judged.steps[number].inputs[0]
    step = judged.steps[number]
    if step.op != "__setitem__" or step.place is None:
        return None
    last = max(i for i, s in enumerate(judged.steps) if s.spot == step.spot)
    value, should = judged.steps[last].value, slip.wrong.should
    loops = [n for n in text.nodes if isinstance(n, ast.For) and step.place[0] in lines_of(n)]
    for right in should.shapes if should is not None and loops else ():
        if right.shape != value.shape:
            continue
        apart = (value - right).abs() > 1e-4 * right.abs().max()
        if apart.any() and not apart.all() and not value[apart].any():
            line = min(loops, key=lambda n: step.place[0] - n.lineno).lineno
            line = step.place[0] if _fills_a_part(text, step.place[0]) else line
            words = "it leaves places out, which stay as they were made"
            return replace(slip, line=line, mend=words, words="")
    return None


def _fills_a_part(text: Text, line: int) -> bool:
    """Whether the statement of a line fills places between bounds: `weights[b, :n] = ...`."""
    targets = getattr(text.around(line), "targets", ())
    slices = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Slice)]
    return any(n.lower or n.upper for n in slices)


def _where_rounds_are_missing(slip: Slip, text: Text) -> Slip | None:
    """The slip at a loop that ends too early: behind it stands a step of what the answer's own loop
    makes on the way, and of which it makes more. None where this is not so."""
    judged, line = slip.judged, text.line(slip.judged.steps[slip.number])
    known = {each.known.place for each in judged.like.values()}
    for number in judged.steps[slip.number].inputs:
        made, found = text.line(judged.steps[number]), judged.like.get(number)
        more = judged.own.next_round(found.known) if found is not None and found.in_order else None
        if made is None or more is None or more.place in known:
            continue
        loops = [n for n in text.nodes if isinstance(n, ast.For) and made in lines_of(n)]
        loops = [n for n in loops if line not in lines_of(n)]
        if len(loops) == 1:
            words = "it ends before all rounds are made"
            return replace(slip, line=loops[0].lineno, mend=words, words="")
    return None


def _meet_scaled(judged: Judged, number: int) -> bool:
    """Whether a product is of two tensors that are both scaled, each of them as other right
    programs scale one alone."""
    step = judged.steps[number]
    own = [judged.like[i].known for i in step.inputs if i in judged.like]
    scaled = [any(known is other for other in judged.own.also) for known in own]
    return step.op in PRODUCTS and len(own) > 1 and all(scaled)


def _where_scaled_again(slip: Slip, text: Text) -> Slip | None:
    """The slip at the later of the two lines that scaled what meets in a product."""
    judged = slip.judged
    makers = []
    for number in judged.steps[slip.number].inputs:
        while judged.steps[number].op in LAYOUT and len(judged.steps[number].inputs) == 1:
            number = judged.steps[number].inputs[0]
        makers.append(number)
    last = max(makers)
    if text.line(judged.steps[last]) is None:
        return None
    wrong = replace(slip.wrong, number=last, should=None, maker=None, instead=None)
    words = "what it is multiplied with is scaled already"
    return replace(slip, wrong=wrong, number=last, mend=words, words="", mended=None)


def _took_another(slip: Slip) -> bool:
    """Whether a step may be wrong only in what it was made of, all of it right tensors."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    if slip.wrong.instead is not None or (slip.mend or slip.words).startswith(OTHER_OPERANDS):
        return True
    given = [i for i in step.inputs if judged.steps[i].kind == "float"]
    combines = step.op in (*PRODUCTS, ATTENTION)
    return combines and all(i in judged.like for i in given) and len(given) > 1


def _used_there(judged: Judged, number: int, text: Text) -> bool:
    """Whether the line of a step also computes something of what it gave."""
    users = [(u, judged.steps[u]) for u in judged.users[number]]
    here = [(u, s) for u, s in users if text.line(s) == text.line(judged.steps[number])]
    return any(s.op not in LAYOUT or _used_there(judged, u, text) for u, s in here)


def _are_crossed(names: list[str], words: list[str]) -> bool:
    """Whether two variables are called by what the other one holds."""
    return all(map(means, names, reversed(words))) and not any(map(means, names, words))


def _at(slip: Slip, bound: list[Binding | None]) -> Slip | None:
    """The slip at the one statement that gave all these variables their values."""
    one = set(bound) if len(set(bound)) == 1 else {None}
    own = one.pop()
    return replace(slip, line=own.lineno) if own is not None else None


def _comes_with_the_call(slip: Slip, text: Text, line: int, names: list, words: list) -> bool:
    """Whether a helper's own arguments are what is wrong, as far as can be told: then its call may
    have handed them over. Names that say what they hold acquit the call."""
    step, function = slip.judged.steps[slip.number], function_around(text, line)
    given = {a.arg for a in function.args.args} if function is not None else set()
    given -= {"self"}
    if not step.outer or not set(names) & given:
        return False
    taken = slip.wrong.instead[0].name if slip.wrong.instead is not None else ""
    if taken:
        return not any(means(name, taken) for name in names)
    return not all(map(means, names, words))


# --- the line that made a tensor ------------------------------------------------------------------
def _made_or_named(slip: Slip, text: Text, line: int, made: set) -> Slip | None:
    """The slip of a step that gave a right tensor where another belongs: it is that line where the
    other was never made, or where the names that the statement itself gives are those used."""
    judged, (taken, belongs) = slip.judged, slip.wrong.instead
    others = [i for i, each in judged.like.items() if each.known is belongs and each.in_order]
    if not any(judged.steps[i].op != LEAF for i in others):
        return None if calls_one_of_a_row(text, line) else slip
    names = names_at_once(text, line)
    if names:
        target = text.target(judged.steps[slip.number])
        straight = means(target, taken.name) and not means(target, belongs.name)
        return None if straight or handed_on_after(text, names, line, made) else slip
    parameter = handed_to(text, line, judged.steps[slip.number].place)
    if parameter is not None:
        straight = means(parameter, taken.name) and not means(parameter, belongs.name)
        return None if straight else slip
    own = unpacked(text, line, judged.steps[slip.number].outer)
    row = [i for i, s in enumerate(judged.steps) if text.line(s) == line and i in judged.like]
    row = [i for i in row if judged.steps[i].op == judged.steps[slip.number].op]
    given = names_given(own) if own is not None else []
    if len(given) != len(row):
        return None
    words = [judged.like[i].known.name for i in row]
    crossed = [
        not means(name, word) and any(means(name, other) for other in words)
        for name, word in zip(given, words, strict=True)
    ]
    return replace(slip, line=own.lineno) if sum(crossed) > 1 else None


def _in_one_row(slip: Slip, text: Text, line: int) -> bool:
    """Whether one statement makes two exchanged tensors out of a row that it holds itself, and
    gives them names that say nothing of what they are, while they are used in different statements:
    those would both have to be wrong."""
    judged, statement = slip.judged, text.around(line)
    if slip.wrong.instead is None or not isinstance(statement, ast.Assign):
        return False
    if calls_one_of_a_row(text, line):
        return False
    op, given = judged.steps[slip.number].op, names_given(statement)
    row = [i for i, s in enumerate(judged.steps) if text.line(s) == line and i in judged.like]
    row = [i for i in row if judged.steps[i].op == op]
    if len(given) != len(row) or any(
        means(name, judged.like[i].known.name) for name in given for i in row
    ):
        return False
    two = [i for i in row if any(judged.like[i].known is known for known in slip.wrong.instead)]
    if len(two) != 2:
        return False
    used = [{text.line(judged.steps[u]) for u in judged.users[i]} for i in two]
    here = text.line(judged.steps[two[0]])
    return all(used) and not used[0] & used[1] and here not in used[0] | used[1]


# --- what only hands on ---------------------------------------------------------------------------
def _past_what_hands_on(slip: Slip, text: Text, line: int, made: set) -> Slip | None:
    """The slip, if nothing before it only hands on what its statement uses; at the line that does,
    if it is the only one and a name there says what belongs there; else None."""
    instead = slip.wrong.instead
    between = handed_on(text, line, made)
    if _took_another(slip) and _chosen_by_a_loop(slip, text, line):
        return None
    if not between:
        return slip
    at = min(between)
    own = text.around(at)
    given = names_given(own) if isinstance(own, ast.Assign) else []
    if instead is None or len(between) > 1:
        return None
    taken, wanted = (known.name for known in instead)
    proven = any(means(n, wanted) and not means(n, taken) for n in given)
    return replace(slip, line=at) if proven else None


def _chosen_by_a_loop(slip: Slip, text: Text, line: int) -> bool:
    """Whether what meets in the rounds of a loop is chosen by the loop and not by the line."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    own = [judged.like[i] for i in step.inputs if i in judged.like]
    if all(each.whole for each in own):
        return False
    names = text.operands(step) or text.names_at(step)
    bound = [bound_last(text, name, line) for name in names]
    return any(isinstance(b, ast.For) and line not in lines_of(b.iter) for b in bound)


def _in_another_order(judged: Judged, number: int, text: Text) -> bool:
    """Whether the rounds of a loop take the parts of a right tensor in another order: then what
    chose them may be wrong, and not the line."""
    step = judged.steps[number]
    own = step.place, step.op, step.outer
    rounds = [i for i, s in enumerate(judged.steps) if (s.place, s.op, s.outer) == own]
    taken: dict[tuple, list[int]] = {}
    for each in rounds if len(rounds) > 1 else ():
        for key, place in _taken(judged, each, text).items():
            taken.setdefault(key, []).append(place)
    rows = [row for row in taken.values() if len(row) == len(rounds)]
    return not all(row in (sorted(row), _again_and_again(row)) for row in rows)


def _again_and_again(row: list[int]) -> list[int]:
    """The different numbers of a row in order, as often as a loop in a loop takes them."""
    one = sorted(set(row))
    return one * (len(row) // len(one))


def _taken(judged: Judged, number: int, text: Text) -> dict[tuple, int]:
    """Which parts of right tensors a line takes from outside for one of its steps, and which right
    tensors of one shape: each kind with its place in the answer's order."""
    step, found = judged.steps[number], {}
    left, seen = list(step.inputs), set()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        like, own = judged.like.get(each), judged.steps[each]
        if text.line(own) == text.line(step) and own.outer == step.outer:
            left += own.inputs
        elif like is not None and like.whole:
            found[own.value.shape] = like.known.place
        if like is not None and not like.whole:
            found[like.known.place, like.axes] = like.index
    return found
