"""How a step stands to the answer's tensors: whether it is one, a part of one, or another one."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from autograder.course.steps.traces import LEAF, Step, Trace
from autograder.tracing.alike import HIDDEN, Known, Likeness, near, plain
from autograder.tracing.differs import moved
from autograder.tracing.first_wrong import (
    DIVISIONS,
    LAYOUT,
    PARTS,
    Judged,
    taken_for_another,
)
from autograder.tracing.proof.mends import ATTENTION, JOINS
from autograder.tracing.proof.replay import Proof
from autograder.tracing.reference import PRODUCTS, TERMS, Reference, multiple
from autograder.tracing.text import Text

MOST_ROWS = 300  # that are compared
WRITTEN_OUT = ("sub", "rsub", "isub", "exp", "exp2")  # before the sums of a softmax
MADE = ("zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full")
FILLS = ("masked_fill", "where", "tril", "triu")
FACTORS = ("mul", "rmul", "imul", "div", "truediv", "itruediv", "pow")


def is_right_alone(judged: Judged, number: int) -> bool:
    """Whether one of several steps that a line makes is a whole right tensor of its own: of those
    that a list is made of, one may be the wrong one."""
    found = judged.like.get(number)
    return found is not None and found.whole and found.in_order


def is_another(judged: Judged, group: tuple[int, ...], should: Known) -> bool:
    """Whether these are another right tensor, in order: what they were made of is right then."""
    own = [judged.like.get(i) for i in group]
    return all(each and each.whole and each.in_order and each.known is not should for each in own)


def lacks_a_term(judged: Judged, text: Text, one: Known, other: Known) -> bool:
    """Whether the answer adds something it was given to one of them and has the other: a bias, or
    a number. It belongs to the line of what it is added to, unless the student adds such terms in
    lines of their own."""
    own = judged.own
    steps = own.trace.steps
    for step in (steps[i] for i in own.terms if own.of_step[i] is other):
        first = [i for i in step.inputs if own.of_step.get(i) is one]
        rest = [i for i in step.inputs if i not in first]
        if first and all(steps[i].value.dim() < 2 for i in rest):
            together = _added_where_it_is_made(judged, text)
            product = steps[first[0]].op in PRODUCTS
            return all(together) and (bool(together) or product)
    return False


def _added_where_it_is_made(judged: Judged, text: Text) -> list[bool]:
    """Of each right tensor to which the student adds a number or a vector, whether that is done in
    the line that makes it."""
    found = []
    for number, step in enumerate(judged.steps):
        if step.op.strip("_") not in TERMS or number not in judged.like or not step.inputs:
            continue
        large = [i for i in step.inputs if judged.steps[i].value.dim() > 1]
        if len(large) == 1 and judged.steps[large[0]].op != LEAF:
            found.append(text.line(judged.steps[large[0]]) == text.line(step))
    return found


def changes_nothing(judged: Judged, number: int) -> bool:
    """Whether an arithmetic step gave what it was given: a factor that is 1, a term that is 0, a
    mask that hides nothing."""
    step = judged.steps[number]
    before = [judged.steps[i].value for i in step.inputs]
    same = any(v.shape == step.value.shape and torch.equal(v, step.value) for v in before)
    return same and step.op.strip("_") in (*TERMS, *FACTORS, *FILLS)


def may_come_to(step: Step, should: Known) -> bool:
    """Whether a step may stand on another way to a right tensor: it only leaves something out, or
    holds all of its numbers and more."""
    there, wanted = (plain(v.flatten()).sort().values for v in (step.value, should.value))
    if step.op.strip("_") in FILLS or not there.numel():
        return step.op.strip("_") in FILLS
    at = torch.searchsorted(there, wanted).clamp(1, max(len(there) - 1, 1))
    apart = torch.minimum((there[at] - wanted).abs(), (there[at - 1] - wanted).abs())
    return len(there) > len(wanted) and near(wanted + apart, wanted)


def begins_alone(judged: Judged, group: Sequence[int], should: Known) -> bool:
    """Whether steps make one number in all places, of sizes alone, where a tensor of several
    numbers belongs: a start that no line changes any more."""
    steps = [judged.steps[i] for i in group]
    made = all(step.op.removesuffix("_like") in MADE for step in steps)
    return made and bool((should.value != should.value.flatten()[:1]).any())


def merges_in_order(step, like) -> bool:
    """Whether a step only joined neighbouring axes of a right tensor, as `flatten` does."""
    long = [sum(n > 1 for n in t.shape) for t in (step.value, like.known.value)]
    return list(like.order) == sorted(like.order) and long[0] <= long[1]


def are_the_same(judged: Judged, group: Sequence[int]) -> bool:
    """Whether these steps all gave one part of one right tensor."""
    own = [judged.like.get(i) for i in group]
    parts = {(each.known.place, each.axes, each.index) for each in own if each and not each.whole}
    return None not in own and len(parts) == 1 and not any(each.whole for each in own)


def is_a_part_as_it_is(judged: Judged, number: int) -> bool:
    """Whether a step gave a part of a right tensor with its axes in the same order."""
    found, value = judged.like.get(number), judged.steps[number].value
    if found is None or found.whole:
        return False
    whole = found.known.value
    parts = whole.movedim(found.axes, tuple(range(len(found.axes)))).flatten(0, len(found.axes) - 1)
    own = parts[found.index].squeeze()
    return own.shape == value.squeeze().shape and near(plain(own), plain(value.squeeze()))


def may_turn(step, value: torch.Tensor) -> bool:
    """Whether a step may itself have brought its axes in another order than this one: what it was
    made of may stand in that order already."""
    if step.op in (*LAYOUT, *PARTS, *JOINS, "__setitem__", "einsum"):
        return True
    turned = step.value.mT if step.value.dim() > 1 else step.value
    same = turned.shape == value.shape and near(plain(turned), plain(value))
    return (step.op in (*PRODUCTS, "softmax") or divides_by_its_sums(step)) and same


def divides_by_its_sums(step: Step) -> bool:
    """Whether a step may be a softmax written out, over another axis than the last."""
    value = step.value
    along = (value.sum(axis) for axis in range(value.dim() - 1))
    return step.op in DIVISIONS and any(bool((each - 1).abs().max() < 1e-4) for each in along)


def would_turn(judged: Judged, number: int, known: Known, value: torch.Tensor) -> bool:
    """Whether a right tensor stands in another order of its axes than what a step was made of,
    though the step's operation moves no axes: no small change of it could give that."""
    step = judged.steps[number]
    if step.op in (*LAYOUT, *PARTS, *PRODUCTS, *JOINS, "__setitem__"):
        return False
    before = [(i, judged.steps[i].value) for i in step.inputs if i in judged.like]
    straight = any(
        near(plain(own), plain(shape))
        for i, own in before
        for shape in judged.like[i].known.shapes
        if own.shape == shape.shape == step.value.shape
    )
    scaled = any(multiple(value, own) is not None for _, own in before)
    return straight and not scaled and not as_the_answer_has_it(known, value)


def takes_out_what_is_needed(judged: Judged, group: tuple[int, ...], known: Known) -> bool:
    """Whether steps are left out, by a right tensor that they were made of, though the answer does
    the same to it later: what would be missing then is no mistake of the student's."""
    step, own = judged.steps[group[0]], judged.own
    if not any(i in judged.like and judged.like[i].known is known for i in step.inputs):
        return False
    same = [i for i, s in enumerate(own.trace.steps) if s.op == step.op]
    done = [own.of_step[i] for i in same if i in own.of_step]
    done = [each for each in done if each is not known]
    before = any(own.comes_of(known, each) for each in done)
    return not before and any(own.comes_of(each, known) for each in done)


def hides_later(judged: Judged, group: tuple[int, ...], values: dict[int, torch.Tensor]) -> bool:
    """Whether these steps lie on the way to a softmax that is written out, and a right tensor in
    their place hides what the student hides only behind them: that line need not hide anything."""
    if judged.steps[group[0]].op.strip("_") not in WRITTEN_OUT:
        return False
    for number, value in values.items():
        own = plain(judged.steps[number].value)
        new = (plain(value) == HIDDEN) & (own != HIDDEN)
        left, seen = [number], set()
        while left and new.any():
            for user in judged.users[left.pop()]:
                there = judged.steps[user].value
                if user in seen or there.shape != own.shape:
                    continue
                seen.add(user)
                left.append(user)
                if (there[new] == 0).any() and judged.steps[user].op.strip("_") in FACTORS:
                    return True
    return False


def as_the_answer_has_it(known: Known, value: torch.Tensor) -> bool:
    return any(v.shape == value.shape and torch.equal(v, value) for v in known.shapes)


def is_laid_out_so(found: Likeness, step: Step) -> bool:
    """Whether a right tensor stands here with its axes in an order that the answer has, too."""
    own = [v for v in found.known.shapes if v.shape == step.value.shape]
    return any(near(plain(v), plain(step.value)) for v in own)


def one_of_the_other(judged: Judged, one: Known, two: Known) -> bool:
    own = judged.own
    return one is not two and (own.comes_of(one, two) or own.comes_of(two, one))


def took_another(judged: Judged, pivot: Proof) -> bool:
    """Whether a step gave one right tensor where another belongs."""
    return pivot.should is not None and is_another(judged, (pivot.number,), pivot.should)


def made_of_others(judged: Judged, pivot: Proof) -> bool:
    """Whether a product was made of other right tensors than the answer makes it of."""
    given = [judged.like.get(i) for i in judged.steps[pivot.number].inputs]
    if judged.steps[pivot.number].op not in PRODUCTS or None in given or pivot.should is None:
        return False
    return judged.own.makes(judged.places(pivot.number)) is not pivot.should


def has_right_siblings(judged: Judged, number: int, parts: tuple[int, ...]) -> bool:
    """Whether a part is no right tensor though others that the same operation gave are used as they
    should be: what those go through may be missing here."""
    others = [i for i in parts if i != number]
    return number not in judged.like and any(i in judged.right for i in others)


def may_be_meant(judged: Judged, values: dict[int, torch.Tensor]) -> bool:
    """Whether steps hold right numbers whose rows, or items, only stand in another order: that may
    be meant, and undone later. What a `view` scrambles is not."""
    for number, value in values.items():
        step = judged.steps[number]
        one, two = plain(step.value), plain(value.double())
        if step.op not in LAYOUT and (moved(one, two) or _same_rows(one, two)):
            return True
    return False


def of_rounds(judged: Judged, values: dict[int, torch.Tensor]) -> str:
    """How steps that one line makes in several rounds differ from what belongs there."""
    old = [plain(judged.steps[i].value) for i in values]
    new = [plain(v) for v in values.values()]
    if len(old) < 2 or any(v.shape != old[0].shape for v in (*old, *new)):
        return ""
    if all(near(v, old[0]) for v in old) and not all(near(v, new[0]) for v in new):
        return "it is the same in every round, where each round needs its own"
    places = [[i for i, other in enumerate(new) if near(v, other)] for v in old]
    if all(len(row) == 1 for row in places) and len({row[0] for row in places}) == len(new):
        return "what the rounds give comes in another order"
    return ""


def _same_rows(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors hold the same rows, in whatever order."""
    if one.dim() < 2 or one.shape != two.shape or one.shape[-1] < 2:
        return False
    rows = [t.reshape(-1, t.shape[-1]) for t in (one, two)]
    if len(rows[0]) > MOST_ROWS:
        return False
    found = [int((rows[1] - row).abs().amax(-1).argmin()) for row in rows[0]]
    return len(set(found)) == len(found) and near(rows[0], rows[1][found])


def is_refuted(judged: Judged, number: int, trace: Trace | None) -> bool:
    """Whether a softmax is made of the right scores, which a known mistake no longer has: it is not
    that mistake, though its numbers may be the same. Nor is it one that leaves out what is done,
    or one that hides the right places where others are hidden."""
    step = judged.steps[number]
    if _comes_in_later(judged, number):
        return True
    if trace is not None and _does_what_is_left_out(judged, number, trace):
        return True
    if trace is not None and _hides_elsewhere(judged, number, trace):
        return True
    before = [judged.like.get(i) for i in step.inputs]
    if step.op != "softmax" or trace is None or not before or before[0] is None:
        return False
    found = before[0]
    if not found.in_order or found.turned or all(k is not found.known for k in judged.own.known):
        return False
    own = Judged(trace, judged.own)
    same = [each for each in own.like.values() if each.known is found.known]
    return not any(each.in_order and not each.turned for each in same)


def runs_as_it_should(step: Step, trace: Trace | None) -> bool:
    """Whether a softmax runs over the last axis, and those of a known mistake over another one."""
    own = [each for each in trace.steps if each.op == "softmax"] if trace is not None else []
    if step.op != "softmax" or not own or any(map(_is_over_the_last_axis, own)):
        return False
    return _is_over_the_last_axis(step)


def _is_over_the_last_axis(step: Step) -> bool:
    """Whether the rows that a softmax gave sum to 1."""
    value = step.value
    return value.dim() > 1 and bool((value.sum(-1) - 1).abs().max() < 1e-4)


def _does_what_is_left_out(judged: Judged, number: int, trace: Trace) -> bool:
    """Whether a known mistake leaves out a softmax, or hides nothing, and what is made of this step
    goes through a softmax, or is hidden in the right places."""
    steps = judged.own.trace.steps
    after = judged.made_of(number)
    if _has_a_softmax(steps) and not _has_a_softmax(trace.steps):
        return _has_a_softmax([judged.steps[i] for i in after])
    shape = judged.steps[number].value.shape
    right = [gone(s.value) for s in steps if s.value.shape == shape]
    right = [gone for gone in right if gone.any() and not gone.all()]
    if not right or any(gone(s.value).any() for s in trace.steps if s.value.shape == shape):
        return False
    own = [judged.steps[i].value for i in after - {number}]
    own = [gone(value) for value in own if value.shape == shape]
    return any(torch.equal(one, gone) for one in own for gone in right)


def _comes_in_later(judged: Judged, number: int) -> bool:
    """Whether a vector that was given and did not go into a step is added to what the step gave:
    then it is added too late, and not left out."""
    steps, before, left = judged.steps, {number}, [number]
    while left:
        inputs = steps[left.pop()].inputs
        left += [i for i in inputs if i not in before and not steps[i].op.endswith("_like")]
        before |= {*inputs}
    given = {i for i, s in enumerate(steps) if s.op == LEAF and s.value.dim() == 1} - before
    users = [steps[i] for i in judged.users[number]]
    return any(s.op.strip("_") in TERMS and given & {*s.inputs} for s in users)


def _hides_elsewhere(judged: Judged, number: int, trace: Trace) -> bool:
    """Whether a step hides other places than any right tensor, and a known mistake does not."""
    own, shape = _hidden(judged.steps[number].value), judged.steps[number].value.shape
    right = [_hidden(s.value) for s in judged.own.trace.steps if s.value.shape == shape]
    if not own.any() or not any(places.any() for places in right):
        return False
    given = [judged.like[i] for i in judged.steps[number].inputs if i in judged.like]
    straight = any(e.whole and e.in_order and list(e.order) == sorted(e.order) for e in given)
    turned = own if straight or own.dim() < 2 else own.mT  # its rows may be the keys
    if any(torch.equal(way, places) for way in (own, turned) for places in right):
        return False
    theirs = (_hidden(s.value) for s in trace.steps if s.value.shape == shape)
    return all(any(torch.equal(places, each) for each in right) for places in theirs)


def _hidden(scores: torch.Tensor) -> torch.Tensor:
    return plain(scores) == HIDDEN


def _has_a_softmax(steps: Sequence[Step]) -> bool:
    """Whether numbers go through a softmax, by its name or written out."""
    return any(
        s.op.strip("_") in ("softmax", "exp", "exp2", "log_softmax", ATTENTION) for s in steps
    )


def gone(value: torch.Tensor) -> torch.Tensor:
    """The places of scores that are hidden, or of weights that are 0."""
    return (value == 0) | (plain(value) == HIDDEN)


def has_a_stranger(judged: Judged, number: int) -> bool:
    """Whether a product takes a right tensor that was made for nothing else and belongs elsewhere:
    the line that made it may be the wrong one."""
    return judged.steps[number].op in PRODUCTS and taken_for_another(judged, number)[0] is not None


def stands_as_the_answers(judged: Judged, proof: Proof) -> bool:
    """Whether what belongs in the place of a wrong step is laid out as the answer has it: so are
    then the numbers of a mistake that this step is."""
    wrong = proof.number in judged.bad and judged.steps[proof.number].op in PRODUCTS
    right = proof.trace.steps[proof.number].value
    own = (v for k in judged.own.known for v in k.shapes if v.shape == right.shape)
    return wrong and any(near(plain(v), plain(right)) for v in own)


def of_no_landmark(own: Reference, sizes: set[int]) -> list[torch.Tensor]:
    """What the answer makes that is no landmark: positions, of which a mistake has the same."""
    steps = (s for i, s in enumerate(own.trace.steps) if i not in own.of_step)
    return [s.value for s in steps if s.value.numel() in sizes and s.value.numel() > 1]


def stays_multiplied(judged: Judged, number: int) -> bool:
    """Whether a wrong factor is still in what is used as a result: nothing takes it out again."""
    while True:
        users = [u for u in judged.users[number] if u in judged.bad]
        again = [u for u in users if _multiple_of_any(judged, u)]
        if not again:
            return bool(users) and _multiple_of_any(judged, number)
        number = again[0]


def _multiple_of_any(judged: Judged, number: int) -> bool:
    value = judged.steps[number].value
    return any(
        multiple(value, shape) is not None
        for known in judged.own.known
        for shape in known.shapes
        if shape.shape == value.shape
    )


def factor_of(judged: Judged, number: int) -> float | None:
    """The number by which a step multiplied a right tensor, if that is all it did."""
    step = judged.steps[number]
    for source in step.inputs:
        if source in judged.like:
            found = multiple(step.value, judged.steps[source].value)
            if found is not None:
                return found
    return None
