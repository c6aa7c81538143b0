"""Proof that a step is the wrong one: with what belongs in its place, all that follows is right.

The recorded steps are made again (`replay`) with one of them mended: a right tensor of the answer's
in its place, its axes in another order, or its operation with another axis or operand. Where the
result then comes out right, or more of the way to it, what is wrong lies at this step or before it.
The line is known where all that it may be stands in one statement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.course.steps.traces import Trace
from autograder.tracing.alike import HIDDEN, Known, likeness, near, plain
from autograder.tracing.first_wrong import LAYOUT, PARTS, Judged
from autograder.tracing.proof.cuts import before_a_merge, before_a_move
from autograder.tracing.proof.exchanges import exchanged, swapped, turned_before
from autograder.tracing.proof.fillings import in_slices, right_ones
from autograder.tracing.proof.meeting import is_open, where_it_comes_in, where_they_meet
from autograder.tracing.proof.mends import Mend, siblings, ways_to_mend
from autograder.tracing.proof.operations import NotAgain
from autograder.tracing.proof.pairs import (
    before_a_small_change,
    first_of_several,
    in_the_place_of_a_missing_one,
    one_after_the_other,
)
from autograder.tracing.proof.replay import Bench, Proof, Replay
from autograder.tracing.proof.standing import (
    are_the_same,
    as_the_answer_has_it,
    begins_alone,
    changes_nothing,
    has_right_siblings,
    hides_later,
    is_a_part_as_it_is,
    is_another,
    is_right_alone,
    lacks_a_term,
    made_of_others,
    may_be_meant,
    may_turn,
    merges_in_order,
    of_rounds,
    one_of_the_other,
    takes_out_what_is_needed,
    took_another,
    would_turn,
)
from autograder.tracing.reference import PRODUCTS, multiple
from autograder.tracing.text import Text


def can_prove(judged: Judged) -> bool:
    """Whether all that follows from a wrong step can be made again."""
    if judged.trace.full or not judged.whole or judged.trace.stopped is not None:
        return False
    replay = Replay(judged.trace)
    return bool(judged.trace.returned) and all(replay.is_sound(i) for i in judged.bad)


def prove(judged: Judged, until: float, text: Text) -> Proof | None:
    """The step that is surely wrong, with what mends it; None where none can be proved.

    What only another right program has on its way (queries scaled by half of it) may be there by
    chance. Where one step makes all right without that, it is no such form.
    """
    proof = _prove(judged, until, text)
    if proof is None or proof.all_right:
        return proof
    taken = {id(each.known) for each in judged.like.values()}
    also = [each for each in judged.own.also if id(each) not in taken]
    if len(also) == len(judged.own.also):
        return proof
    own = replace(judged.own, also=also)
    alone = _prove(Judged(judged.trace, own, until, judged.work), until, text)
    return alone if alone is not None and alone.all_right else proof


def _prove(judged: Judged, until: float, text: Text) -> Proof | None:
    """The same, of a trace as it is judged."""
    if judged.trace.full or not judged.whole or judged.trace.stopped is not None:
        return None
    bench = Bench(judged, until, text)
    if bench.is_right({}):
        return None
    suspects = bench.suspects()
    returned = bench.places_returned_wrong()
    if not suspects and not returned:
        return None
    pivot = _pivot(bench, suspects or returned)
    likely = pivot is None or pivot.all_right or took_another(judged, pivot)
    likely = likely or made_of_others(judged, pivot)
    swap = swapped(bench) if likely else None
    if swap is not None:
        return exchanged(bench, swap, pivot)
    if pivot is None:
        return _mended(bench, suspects) or first_of_several(bench, suspects)
    if not pivot.all_right and took_another(judged, pivot):  # a right tensor that may be meant
        several = first_of_several(bench, suspects)
        if several is not None:
            return several
    crossed = turned_before(bench, pivot)
    if crossed is not None:
        return exchanged(bench, crossed, pivot) or one_after_the_other(bench, pivot)
    if is_open(bench, pivot):
        return None
    if bench.one_statement(pivot.suspects):
        return where_it_comes_in(bench, pivot) or pivot
    earlier = before_a_merge(bench, pivot) or before_a_move(bench, pivot)
    if earlier is not None:
        return earlier
    same = _same_in_every_round(bench, pivot)
    if same is not None:
        return same
    mended = _mended(bench, list(pivot.suspects), pivot)
    if mended is None and pivot.earlier is not None:
        return pivot.earlier
    mended = mended or one_after_the_other(bench, pivot) or first_of_several(bench, suspects)
    mended = mended or in_the_place_of_a_missing_one(bench, prove)
    return mended or (before_a_small_change(bench, _mended) if pivot.all_right else None)


def put_right(judged: Judged, number: int, should: Known | None) -> Trace | None:
    """The trace with what belongs in the place of a step, where that is known and can be made."""
    step = judged.steps[number]
    own = [v for v in should.shapes if v.shape == step.value.shape] if should is not None else []
    least = step.value.min() if step.value.numel() else torch.tensor(0.0)
    if step.value.isfinite().all() and plain(step.value).min() == HIDDEN:  # by a large number
        own = [v.masked_fill(v == -torch.inf, least.item()) for v in own]
    replay = Replay(judged.trace)
    try:
        return replay.trace_with(replay.after({number: own[0]})) if own else None
    except NotAgain:
        return None


def in_words(judged: Judged, proof: Proof, text: Text) -> str:
    """How the operation of a proved step could be made right, where one small change of it does."""
    bench = Bench(judged, judged.until, text)
    if not proof.all_right or proof.number not in bench.group_of:
        return ""
    unsure = [i for i in judged.steps[proof.number].inputs if i in judged.bad | judged.unsure]
    there = [i for i in unsure if i in bench.group_of and bench.one_statement((i, proof.number))]
    groups = dict.fromkeys(bench.group_of[i] for i in (proof.number, *there))
    return next((mend.words for group in groups for mend, _ in _tried(bench, group)), "")


def _pivot(bench: Bench, suspects: list[int]) -> Proof | None:
    """The first step in whose place a right tensor makes right what follows."""
    judged = bench.judged
    tried: set[tuple[int, ...]] = set()
    best: Proof | None = None
    for wrong in suspects[:40]:
        for number in [*bench.before(wrong), wrong]:
            group = bench.group_of.get(number)
            if group is None:
                continue
            found = None
            parts = tuple(siblings(judged, number))
            for each in dict.fromkeys((group, bench.wide_group_of[number], parts, (number,))):
                alone = len(each) == 1 and each != bench.group_of[number]
                if each in tried or (alone and not is_right_alone(judged, number)):
                    continue
                if len(each) == 1 and has_right_siblings(judged, number, parts):
                    continue
                tried.add(each)
                again = _with_a_right_one(bench, each)
                again = None if alone and again is not None and not again[3] else again
                found, group = (again, each) if again is not None else (found, group)
                if found is not None and found[3]:
                    break
            if found is None or (not found[3] and may_be_meant(judged, found[0])):
                continue
            if begins_alone(judged, group, found[1]):  # what should change it is missing elsewhere
                continue
            values, should, changed, all_right = found
            ahead = bench.ancestors(group) & (judged.bad | judged.unsure)
            moved = set() if is_another(judged, group, should) else _moved_before(judged, group)
            moved |= _the_same_before(judged, group) | _handed_in(judged, values)
            to_blame = tuple(sorted(ahead | moved | {min(group)}))
            several = any(not torch.equal(v, values[group[0]]) for v in values.values())
            proof = Proof(
                min(judged.bad & set(group), default=min(group)),
                bench.replay.trace_with(changed),
                all_right,
                None if several else should,
                of_rounds(judged, values),
                to_blame,
            )
            if all_right:
                if best is not None and bench.one_statement(best.suspects):
                    proof.earlier = best
                return proof
            best = best or proof
        if best is not None and wrong > max(best.suspects):
            break
        if time.thread_time() > bench.until:
            break
    return best


def _moved_before(judged: Judged, group: tuple[int, ...]) -> set[int]:
    """The steps just before these that stand in another order than the answer's: they may be what
    is wrong. A product may have its operands in any order."""
    found: set[int] = set()
    left = [i for number in group for i in judged.steps[number].inputs]
    op = judged.steps[group[0]].op
    if op in PRODUCTS:
        return found
    while left:
        number = left.pop()
        step, like = judged.steps[number], judged.like.get(number)
        if number in found or like is None or not like.whole or not like.in_order:
            continue
        if step.op not in LAYOUT and (op in LAYOUT or list(like.order) == sorted(like.order)):
            continue
        if not merges_in_order(step, like) and not any(
            v.shape == step.value.shape and near(plain(v), plain(step.value))
            for v in like.known.shapes
        ):
            found.add(number)
            left += step.inputs
    return found


def _the_same_before(judged: Judged, group: Sequence[int]) -> set[int]:
    """The steps before those of several rounds that give one and the same part in each: a round
    may need its own. What a line took out of several that were there is that line's affair."""
    found: set[int] = set()
    left, seen = [tuple(group)] if len(group) > 1 else [], set()
    while left:
        own = left.pop()
        if own in seen:  # steps meet again further up, by many ways
            continue
        seen.add(own)
        for operand in zip(*(judged.steps[i].inputs for i in own), strict=False):
            if judged.steps[operand[0]].place is None:
                continue
            if not are_the_same(judged, operand):
                if not any(i in judged.like or i in own for i in operand):
                    left.append(operand)  # a wrong step, or too few numbers
            elif len(set(operand)) > 1 or len(siblings(judged, operand[0])) < len(group):
                found |= set(operand)
                left.append(operand)
    return found


def _handed_in(judged: Judged, values: dict[int, torch.Tensor]) -> set[int]:
    """The steps before those of several calls or rounds that are another right tensor than what
    belongs there: what was handed in may be wrong, and not the line."""
    found: set[int] = set()
    left = []
    for number, value in values.items() if len(values) > 1 else ():
        own, other = judged.like.get(number), likeness(value.double(), judged.own.known)
        if own is None or other is None or not (own.whole and own.in_order and other.whole):
            continue
        if own.known is not other.known:
            left += judged.steps[number].inputs
    while left:
        number = left.pop()
        own = judged.like.get(number)
        if number not in found and own is not None and judged.steps[number].place is not None:
            found.add(number)
            left += judged.steps[number].inputs if judged.steps[number].op in LAYOUT else ()
    return found


def _same_in_every_round(bench: Bench, pivot: Proof) -> Proof | None:
    """The one place in a loop that takes the same part of a right tensor in every round, where all
    is right with one part after the other, or at least the pivot gives some right tensor then."""
    judged, found = bench.judged, []
    groups = {bench.group_of[i] for i in pivot.suspects if i in bench.group_of}
    before = {i for group in groups for i in _the_same_before(judged, group)}
    groups |= {bench.group_of[i] for i in before if i in bench.group_of}
    for group in sorted(groups) if pivot.all_right else ():
        steps = [judged.steps[i] for i in group]
        if len(group) < 2 or steps[0].op not in PARTS or not are_the_same(judged, group):
            continue
        known = judged.like[group[0]].known
        for values in in_slices(known, [step.value.shape for step in steps]):
            new = dict(zip(group, values, strict=True))
            outcome = bench.outcome(new)
            if outcome is not None and (outcome[1] or _gives_a_right_one(bench, pivot, outcome[0])):
                trace = bench.replay.trace_with(outcome[0])
                mend = of_rounds(judged, new)
                found.append(Proof(group[0], trace, outcome[1], None, mend, (group[0],)))
                break
    return found[0] if len(found) == 1 and found[0].mend else None


def _gives_a_right_one(bench: Bench, pivot: Proof, changed: dict) -> bool:
    """Whether the pivot's step is a whole right tensor now, in order, of which what it should be is
    made: a step after it is missing."""
    value, judged = changed.get(pivot.number), bench.judged
    found = likeness(value.double(), judged.own.known) if value is not None else None
    if found is None or not (found.whole and found.in_order) or pivot.should is None:
        return False
    return judged.own.comes_of(pivot.should, found.known)


def _with_a_right_one(bench: Bench, group: tuple[int, ...]):
    """What makes most right in the place of these steps: (values, which, changes, all)."""
    judged = bench.judged
    steps = [judged.steps[i] for i in group]
    if steps[0].kind != "float" or any(s.value.shape != steps[0].value.shape for s in steps):
        return None
    best, most = None, 0
    should = judged.own.makes(judged.places(group[0]))
    there = [judged.like[i].known for i in group if i in judged.like and judged.like[i].in_order]
    if any(own is other for own in there for other in judged.own.also):
        return None  # it stands on the way of another right program
    exact = len(group) == 1 and any(
        near(plain(steps[0].value), plain(v))
        for own in there
        for v in own.shapes
        if v.shape == steps[0].value.shape
    )
    repeated = len(group) > 1 and are_the_same(judged, group)
    exact = exact or (len(group) > 1 and all(is_a_part_as_it_is(judged, i) for i in group))
    for known, values in right_ones(judged, group, steps):
        if exact and len(group) == 1 and not as_the_answer_has_it(known, values[0]):
            continue
        if len(group) == 1 and would_turn(judged, group[0], known, values[0]):
            continue
        mine = len(there) == len(group) and any(known is own for own in there)
        if mine and not repeated and (exact or not may_turn(steps[0], values[0])):
            continue
        joins = mine and len(group) == 1 and steps[0].op in ("reshape", "view", "flatten")
        if joins and merges_in_order(steps[0], judged.like[group[0]]):
            continue  # it stands as the answer's: what it meets may be in another order
        missing = any(lacks_a_term(judged, bench.text, own, known) for own in there)
        missing = missing or any(changes_nothing(judged, i) for i in group)
        if any(one_of_the_other(judged, known, own) for own in there) and not missing:
            continue  # what comes between is missing, or is there twice: this one is right
        new = dict(zip(group, values, strict=True))
        if any(v.shape != s.value.shape for v, s in zip(values, steps, strict=True)):
            continue
        if all(near(plain(v), plain(s.value)) for v, s in zip(values, steps, strict=True)):
            continue
        outcome = bench.outcome(new)
        if outcome is None:
            if bench.spent:
                break
            continue
        changed, all_right = outcome
        if all_right:
            return new, known, changed, True
        if takes_out_what_is_needed(judged, group, known) or hides_later(judged, group, new):
            continue
        pairs = zip(steps, values, strict=True)
        if known is should and all(multiple(s.value, v) is not None for s, v in pairs):
            # It is what should be there, but for a factor; unless another makes all right.
            best, most = (new, known, changed, False), math.inf
        gain = bench.gains(changed, new, most) if most < math.inf else 0
        if gain > most:
            best, most = (new, known, changed, False), gain
    return best


# --- an operation made in another way ------------------------------------------------------------
def _mended(bench: Bench, suspects: list[int], pivot: Proof | None = None) -> Proof | None:
    """The one statement in which another axis, operand or sign makes the result right."""
    found: list[tuple[Mend, tuple[int, ...], dict]] = []
    tried: set[tuple[int, ...]] = set()
    for number in suspects:
        group = bench.group_of.get(number)
        if group is None or group in tried:
            continue
        tried.add(group)
        found += [(mend, group, changed) for mend, changed in _tried(bench, group)]
        if time.thread_time() > bench.until:
            return None
    at = [i for mend, group, _ in found for i in (min(group), *mend.makers)]
    if not bench.one_statement(at):
        meet = where_they_meet(bench, [min(group) for _, group, _ in found])
        found = [each for each in found if min(each[1]) == meet]
    if not found:
        return None
    mend, group, changed = found[0]
    number = min(group)
    trace = bench.replay.trace_with(changed)
    return Proof(number, trace, True, pivot.should if pivot else None, mend.words, (number,))


def _tried(bench: Bench, group: tuple[int, ...]) -> list[tuple[Mend, dict]]:
    """The first small change of these steps that makes the result right, and all that changes."""
    for mend in ways_to_mend(bench.judged, bench.replay, group):
        if not bench.one_statement((*group, *mend.skipped)):
            continue  # it is those steps' own line that may do without them
        outcome = bench.outcome(mend.values, mend.calls)
        if outcome is not None and outcome[1]:
            return [(mend, outcome[0])]
    return []
