"""Several steps that are wrong at once, where none alone makes the result right.

They know nothing of each other (each is made of right tensors), or the second is made of the first.
Right tensors are put in the places of all of them; the first of them is told, and the others when
it is mended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from autograder.course.steps.traces import Step
from autograder.tracing.alike import Known
from autograder.tracing.first_wrong import LAYOUT, Judged, taken_for_another
from autograder.tracing.proof.fillings import arrangements, right_ones
from autograder.tracing.proof.replay import Bench, Proof
from autograder.tracing.proof.standing import (
    FACTORS,
    as_the_answer_has_it,
    hides_later,
    may_be_meant,
)
from autograder.tracing.reference import PRODUCTS, multiple

MOST_AT_ONCE = 3
MOST_WAYS = (16, 3)  # right tensors tried in the place of each of two steps, and of each of three
# Operations that programs use for one another.
FAMILIES = (
    tuple(op.strip("_") for op in PRODUCTS),
    ("masked_fill", "where", "setitem", "add", "iadd", "sub", "isub", "tril", "triu"),
)


def first_of_several(bench: Bench, suspects: list[int]) -> Proof | None:
    """The first of two or three wrong steps that know nothing of each other, where right tensors in
    the places of all make the result right, and in the place of one alone do not; all of them,
    where they stand in one statement."""
    judged = bench.judged
    groups = {
        bench.wide_group_of[i]
        for i in suspects
        if i in judged.bad and i in bench.wide_group_of
        if not set(judged.steps[i].inputs) & (judged.bad | judged.unsure)
    }
    several = sorted(groups)
    if not 2 <= len(several) <= MOST_AT_ONCE or not all(map(bench.one_statement, several)):
        return None
    together = bench.one_statement([i for group in several for i in group])
    if all(_is_multiple(judged, group) for group in several):  # one may take out another's factor
        return None
    most = MOST_WAYS[len(several) - 2]
    ways = [list(itertools.islice(_likely(judged, group), most)) for group in several]
    for chosen in itertools.product(*ways):
        if bench.spent:
            return None
        should, one = chosen[0]
        rest = {number: value for _, them in chosen[1:] for number, value in them.items()}
        outcome = bench.outcome({**one, **rest})
        if outcome is None or not outcome[1]:
            continue
        if sum(may_be_meant(judged, them) for _, them in chosen) > 1:
            return None  # in one order, and that may be right
        without = bench.outcome(rest)
        done = outcome if together else bench.outcome(one)
        if done is None or without is None or without[1]:
            return None
        first = min(several[0])
        trace = bench.replay.trace_with(done[0])
        return Proof(first, trace, together, should, "", (first,))
    return None


def one_after_the_other(bench: Bench, pivot: Proof) -> Proof | None:
    """The first of two wrong steps of which the second is made: its axes stand in another order,
    and the second gives a multiple of what it should, in whatever order.

    pivot: the second, in whose place a right tensor makes the result right.
    """
    judged, should, second = bench.judged, pivot.should, pivot.number
    before = [i for i in pivot.suspects if i != second]
    if not pivot.all_right or should is None or not before or not bench.one_statement(before):
        return None
    first, step = before[-1], judged.steps[second]
    like = judged.like.get(first)
    ways = arrangements(should, step.value.shape)
    if like is None or not any(multiple(step.value, way) is not None for way in ways):
        return None
    for value in like.known.shapes:
        if value.shape != judged.steps[first].value.shape:
            continue
        one = bench.outcome({first: value})
        if one is None or one[1] or second not in one[0]:
            continue
        for right in should.shapes:
            if right.shape == step.value.shape and multiple(one[0][second], right) is not None:
                both = bench.outcome({first: value, second: right})
                if both is not None and both[1]:
                    trace = bench.replay.trace_with(one[0])
                    return Proof(first, trace, False, like.known, "", (first,))
    return None


def in_the_place_of_a_missing_one(bench: Bench, prove) -> Proof | None:
    """The one step that makes a right tensor once more, where another that the result comes of is
    never made: with that in its place, one statement is left that can be proved wrong.

    prove: finds the step that is wrong in a trace.
    """
    judged, own = bench.judged, bench.judged.own
    makers: dict[int, list[int]] = {}
    for number, found in sorted(judged.like.items()):
        step = judged.steps[number]
        if found.whole and found.in_order and step.place and step.op not in LAYOUT:
            makers.setdefault(found.known.place, []).append(number)
    missing = [
        known
        for known in own.known
        if known.place not in makers and any(own.comes_of(r, known) for r in own.results())
    ]
    proved = []
    for number in (i for row in makers.values() if len(row) > 1 for i in row):
        for known in missing:
            if bench.spent:  # nothing is proved any more
                break
            shape = judged.steps[number].value.shape
            value = next((v for v in known.shapes if v.shape == shape), None)
            outcome = bench.outcome({number: value}) if value is not None else None
            if outcome is None or outcome[1] or own.comes_of(known, judged.like[number].known):
                continue
            trace = bench.replay.trace_with(outcome[0])
            rest = prove(Judged(trace, own, bench.until, judged.work), bench.until, bench.text)
            if rest is None or not rest.all_right or number in bench.ancestors((rest.number,)):
                continue
            other = bench.outcome({rest.number: rest.trace.steps[rest.number].value})
            if other is not None:
                alone = bench.replay.trace_with(other[0])  # with this mistake and no other
                found = Proof(number, trace, False, known, "", (number,), None, alone)
                proved.append(found)
    return proved[0] if len(proved) == 1 else None


def before_a_small_change(bench: Bench, mended) -> Proof | None:
    """The first of two wrong steps of which the second is made of the first: with a right tensor in
    the place of the first, one small change of the second makes all right, or the tensor that
    belongs there in the place of one that it takes, and neither does alone.

    mended: finds the statement in which a small change makes all right, in a trace.
    """
    judged, found = bench.judged, []
    front = judged.frontier()
    group = bench.group_of.get(front[0]) if front else None
    if group is None or not bench.one_statement(group):
        return None
    steps = [judged.steps[i] for i in group]
    operands = (judged.like[i].known for s in steps for i in s.inputs if i in judged.like)
    if any(known is other for known in operands for other in judged.own.also):
        return None  # right on the way of another program, which would go on otherwise
    for known, values in itertools.islice(_likely(judged, group), MOST_WAYS[0]):
        straight = len(group) > 1 or as_the_answer_has_it(known, values[group[0]])
        if not straight or not _may_make(judged, steps[0], known):
            continue
        if hides_later(judged, group, values):
            continue
        outcome = bench.outcome(values)
        if outcome is None or outcome[1]:
            return None
        trace = bench.replay.trace_with(outcome[0])
        rest = Bench(Judged(trace, judged.own, bench.until, judged.work), bench.until, bench.text)
        suspects = [i for i in rest.suspects() if i not in group]
        second = mended(rest, suspects) if suspects else None
        if second is not None or (suspects and _takes_another(rest, suspects)):
            found.append(Proof(min(group), trace, False, known, "", (min(group),)))
    return found[0] if len({id(each.should) for each in found}) == 1 else None


def _takes_another(bench: Bench, suspects: list[int]) -> bool:
    """Whether the first wrong step is a product that takes a right tensor in the place of another,
    and all is right with what the answer makes of that one."""
    judged, number = bench.judged, suspects[0]
    if judged.steps[number].op not in PRODUCTS or number not in judged.frontier():
        return False
    instead = taken_for_another(judged, number)[1]
    if instead is None or instead[0] is instead[1]:
        return False
    return any(
        (outcome := bench.outcome(values)) is not None and outcome[1]
        for known, values in itertools.islice(_likely(judged, (number,)), MOST_WAYS[0])
        if judged.own.comes_of(known, instead[1])
    )


def _may_make(judged: Judged, step: Step, known: Known) -> bool:
    """Whether a step's operation may be what gives a right tensor: the answer makes it so as well;
    or the step only changes the size of what it is made of, which stays as it is without it."""
    own, op = judged.own, step.op.strip("_")
    if op in FACTORS:
        return any(multiple(step.value, shape) is not None for shape in known.shapes)
    made = {own.trace.steps[i].op.strip("_") for i, k in own.of_step.items() if k is known}
    given = [judged.like[i].known for i in step.inputs if i in judged.like]
    alike = next((family for family in FAMILIES if op in family), (op,))
    return bool(made & {*alike}) or any(each is known for each in given)


def _likely(judged: Judged, group: tuple[int, ...]) -> Iterator[tuple[Known, dict]]:
    """Right tensors that may belong in the place of these steps: what their numbers are, or what
    the answer makes of all that they were made of."""
    steps = [judged.steps[i] for i in group]
    if steps[0].kind != "float" or any(s.value.shape != steps[0].value.shape for s in steps):
        return
    own = [judged.like[i].known for i in group if i in judged.like]
    places = {judged.like[i].known.place for s in steps for i in s.inputs if i in judged.like}
    before = [known for known in judged.own.known if known.place in places]
    for known, values in right_ones(judged, group, steps):
        if own and all(known is not each for each in own):
            continue
        if all(known is k or judged.own.comes_of(known, k) for k in before):
            yield known, dict(zip(group, values, strict=True))


def _is_multiple(judged: Judged, group: tuple[int, ...]) -> bool:
    """Whether these steps give a right tensor times a number."""
    shapes = [shape for known in judged.own.known for shape in known.shapes]
    return all(any(multiple(judged.steps[i].value, t) is not None for t in shapes) for i in group)
