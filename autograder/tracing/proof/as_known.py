"""A known mistake by more than its signatures: by its own program's step, or by what it hides.

The known wrong program has steps of its own. Where the student's first step that is not right has
the numbers of one of its wrong steps, in the same order up to that of the axes, and all that it was
made of is right, it is there that the same mistake was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from autograder.course.steps.bank import Bank, KnownSteps
from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.alike import HIDDEN, Known, Shelf, among, near, plain, tells
from autograder.tracing.first_wrong import COPIES, LAYOUT, PARTS, Judged, Wrong, taken_for_another
from autograder.tracing.proof.meeting import is_right_but_for_its_sign, visible
from autograder.tracing.proof.standing import FACTORS
from autograder.tracing.reference import PRODUCTS, Reference, multiple

CUTS = ("view", "reshape", "unflatten")  # they may make several axes of one


def made_as_known(
    judged: Judged, bank: Bank, place: int, named: str
) -> tuple[Wrong, KnownSteps] | None:
    """The step at which the known mistake of this name was made, as its own program makes it, and
    the mistake; None where the steps do not show it."""
    if not judged.whole or judged.trace.full or judged.trace.stopped is not None:
        return None
    found = []
    for mistake in bank.wrong(place, (), (), named):
        trace = bank.trace(place, (mistake.number,))
        if trace is not None and not trace.full and _comes_to_the_same(judged.trace, trace):
            number = _same_step(judged, _wrong_steps(trace, judged.own))
            if number is None or not _is_of_right_ones(judged, number):
                return None
            if _takes_all_in_turn(judged, number):
                return None
            found.append((number, mistake))
    if len({number for number, _ in found}) != 1 or found[0][0] in judged.work.open:
        return None
    number, mistake = found[0]
    own = (i for i in judged.steps[number].inputs if i in judged.right and i in judged.like)
    return Wrong(number, max(own, default=None)), mistake


def the_same_mixed(
    judged: Judged, number: int, mistakes: Iterable[KnownSteps], bank: Bank, place: int
) -> KnownSteps | None:
    """The one known mistake that brings the numbers of a right tensor to the same wrong places, in
    the same shape, as a step does that no signature tells from the right one."""
    like, value = judged.like.get(number), judged.steps[number].value
    if like is None or like.in_order:
        return None

    def makes_it(mistake: KnownSteps) -> bool:
        trace = bank.trace(place, (mistake.number,))
        own = [s.value for s in trace.steps] if trace is not None else []
        return any(v.shape == value.shape and near(plain(v), plain(value)) for v in own)

    found = [m for m in mistakes if makes_it(m)]
    return found[0] if len(found) == 1 else None


def hides_the_same(judged: Judged, number: int, bank: Bank, place: int) -> KnownSteps | None:
    """The one known mistake that hides the same places as a step does, where others should be:
    whatever scores it hides, and by which number."""
    places = plain(judged.steps[number].value) == HIDDEN
    shape = places.shape
    right = [plain(v) == HIDDEN for k in judged.own.known for v in k.shapes if v.shape == shape]
    as_right = any(torch.equal(places, h) for h in right)
    if as_right or not places.any() or not any(h.any() for h in right):
        return None

    def hidden(number: int) -> list[torch.Tensor]:
        trace = bank.trace(place, (number,))
        return [plain(s.value) == HIDDEN for s in trace.steps] if trace else []

    def hides_them(mistake: KnownSteps) -> bool:
        own = bank.once(("hidden", place, mistake.number), lambda: hidden(mistake.number))
        return any(h.shape == shape and torch.equal(h, places) for h in own)

    found = [m for m in bank.wrong(place, (), ()) if hides_them(m)]
    return found[0] if len({m.check for m in found}) == 1 else None


def gives_as_changed(judged: Judged, made: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The first wrong step that has the numbers which a changed operation of the answer gives, up
    to the order of the axes and a factor, and is made of nothing wrong; else what is first made of
    such numbers, where they are right so far. With the steps that are not called right then."""
    own = [thin for value in made if tells(thin := _thin(value.detach().double()))]
    known = Shelf(Known(i, [value]) for i, value in enumerate(own))

    def has_them(number: int) -> bool:
        value = _thin(judged.steps[number].value)
        found = among(value, known)
        same = found is not None and found.in_order and found.whole
        return same or any(v.shape == value.shape and multiple(value, v) for v in own)

    found = [i for i in sorted(judged.telling) if has_them(i)] if own else []
    for number in (i for i in found if i in judged.bad):
        joined = judged.steps[number].op in COPIES  # what is joined may come from another line
        return () if joined or judged.sources(number) & judged.bad else (number,)
    first = judged.frontier()
    return next(((i, n) for n in found for i in first if n in judged.sources(i)), ())


def _thin(value: torch.Tensor) -> torch.Tensor:
    """A tensor without the axes along which all its numbers are the same."""
    for axis in range(value.dim()):
        first = value.narrow(axis, 0, min(1, value.shape[axis]))
        if torch.equal(first.expand_as(value), value):
            value = first
    return value


def is_other_nan(trace: Trace, bank: Bank, place: int, named: str) -> bool:
    """Whether all that came back is NaN, and the known mistake of this name gets its first NaN by a
    product and these steps by none, or the other way round: then it is not that mistake."""
    back = [trace.steps[i].value for i in trace.returned]
    if not back or not all(bool(value.isnan().all()) for value in back):
        return False
    known = [bank.trace(place, (m.number,)) for m in bank.wrong(place, (), (), named)]
    return bool(known) and all(t and _by_a_product(t) != _by_a_product(trace) for t in known)


def _by_a_product(trace: Trace) -> bool:
    """Whether the first NaN comes of a multiplication or a division."""
    return next((s.op.strip("_") in FACTORS for s in trace.steps if s.value.isnan().any()), False)


def where_it_was_cut(judged: Judged, number: int) -> int | None:
    """The step that cut an axis in several of which a step takes parts, if nothing but the order of
    the axes changed in between: which axis is which was said there."""
    if judged.steps[number].op not in PARTS:
        return None
    while len(judged.steps[number].inputs) == 1:
        number = judged.steps[number].inputs[0]
        step = judged.steps[number]
        if step.op not in LAYOUT or not step.inputs:
            return None
        if step.value.dim() > judged.steps[step.inputs[0]].value.dim() and step.op in CUTS:
            return number
    return None


def _takes_all_in_turn(judged: Judged, number: int) -> bool:
    """Whether a step takes a part of a tensor, and the same place in the text takes all the others
    too, each once: nothing is lost by that."""
    step, steps = judged.steps[number], judged.steps
    if step.op not in PARTS or len(step.inputs) != 1:
        return False
    same = [s for s in steps if s.spot == step.spot and s.op == step.op and s.inputs == step.inputs]
    return (
        len(same) > 1 and sum(s.value.numel() for s in same) == steps[step.inputs[0]].value.numel()
    )


def _comes_to_the_same(one: Trace, two: Trace) -> bool:
    """Whether two programs give the same back."""
    if not one.returned or len(one.returned) != len(two.returned):
        return False
    pairs = zip(one.returned, two.returned, strict=True)
    values = [(one.steps[i].value, two.steps[j].value) for i, j in pairs]
    return all(a.shape == b.shape and near(plain(a), plain(b)) for a, b in values)


def _wrong_steps(trace: Trace, own: Reference) -> list[Known]:
    """What the known wrong program has that the answer, and other right programs, do not have, and
    that nothing right was made of."""
    judged = Judged(trace, own)
    numbers = [i for i in judged.telling if i not in judged.right and trace.steps[i].op != LEAF]
    return Shelf([Known(i, [trace.steps[i].value]) for i in sorted(numbers)])


def _same_step(judged: Judged, wrong: Shelf) -> int | None:
    """The student's first step that is not right, if it is one of those; in every round of a loop,
    as far as it can be told."""
    doubtful = sorted(judged.bad | judged.unsure)
    passed: set[int] = set()  # it may be taken away where the answer adds it
    left = [i for i in doubtful if is_right_but_for_its_sign(judged, i)]
    while left:
        passed.add(number := left.pop())
        left += [i for i in judged.steps[number].inputs if i not in passed]
    for number in (i for i in doubtful if i not in passed):
        step = judged.steps[number]
        if _takes_the_right_places(judged, number) and judged.users[number]:
            continue  # what is made of them is wrong
        if step.op == LEAF or step.place is None:
            return None
        key = step.place, step.op, step.outer
        rounds = [i for i, s in enumerate(judged.steps) if (s.place, s.op, s.outer) == key]
        rounds = [i for i in rounds if i not in judged.right and tells(judged.steps[i].value)]
        same = rounds and all(_is_one_of(judged, i, wrong) for i in rounds)
        return number if same else None
    return None


def _takes_the_right_places(judged: Judged, number: int) -> bool:
    """Whether a step takes parts of a right tensor, at places that the answer has, too."""
    step = judged.steps[number]
    places = [judged.steps[i].value for i in step.inputs if judged.steps[i].kind == "int"]
    others = [i for i in step.inputs if judged.steps[i].kind == "float"]
    if step.op not in PARTS or len(places) != 1 or not set(others) <= judged.right:
        return False
    own = (s.value for s in judged.own.trace.steps if s.kind == "int")
    return any(torch.equal(places[0], value) for value in own if value.shape == places[0].shape)


def _is_one_of(judged: Judged, number: int, wrong: Shelf) -> bool:
    """Whether a step has the numbers of one of these; where the answer hides, any may stand."""
    value = judged.steps[number].value
    like = among(value, wrong)
    if like is not None and like.in_order:
        return True
    seen = visible(judged, value) if value.dim() > 1 else None
    if seen is None or seen.sum() < 2:
        return False
    return any(_same_where(seen, value, each.value) for each in wrong)


def _same_where(seen: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> bool:
    one, two = one.squeeze(), two.squeeze()
    if one.shape != two.shape or one.shape[-2:] != seen.shape:
        return False
    return near(plain(one[..., seen]), plain(two[..., seen]))


def _is_of_right_ones(judged: Judged, number: int) -> bool:
    """Whether a step was made of what belongs there: of no right tensor in the place of another,
    and of none whose axes were moved before."""
    step = judged.steps[number]
    known = all(i in judged.like for i in step.inputs if judged.steps[i].kind == "float")
    maker, instead = taken_for_another(judged, number) if known else (None, None)
    left_out = instead is not None and judged.own.comes_of(instead[1], instead[0])
    if maker is not None or (instead is not None and not left_out):
        return False
    orders = [judged.like[i].order or () for i in step.inputs if i in judged.like]
    moved = [order for order in orders if list(order) != sorted(order)]
    return all(step.op in PRODUCTS and _last_two_turned(order) for order in moved)


def _last_two_turned(order: tuple[int, ...]) -> bool:
    return [*order[:-2], *order[:-3:-1]] == sorted(order)
