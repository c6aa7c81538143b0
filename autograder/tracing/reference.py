"""The right tensors that an answer's steps are compared with: the landmarks.

They are taken from a trace of the course's own answer. A landmark's name is that of the variable
that holds it there, so that an author names one by giving it a variable. To them come forms that
other right programs have on their way: queries scaled in the place of scores, scores masked before
they are scaled, a softmax written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from autograder.course.steps.traces import LEAF, Step, Trace
from autograder.tracing.alike import (
    HIDDEN,
    REAL,
    Known,
    Shelf,
    holding,
    near,
    order_of,
    plain,
    tells,
)

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "dot", "einsum", "linear")
TERMS = ("add", "radd", "iadd", "sub", "rsub", "isub")
SHORTEST = 3  # letters of a name that is a word; shorter ones are the author's own affair
# Words that are no names of a tensor: "these are the kept" tells nobody anything, and "this is the
# token" no more, of what each round of a loop takes.
NO_NOUNS = {"new", "old", "own", "kept", "past", "first", "last", "mixed", "grown", "tmp", "res"}
NO_NOUNS |= {"after", "all", "before", "below", "clean", "each", "entering", "every", "flat"}
NO_NOUNS |= {"found", "fresh", "fused", "one", "ordered", "read", "said", "scaled", "token"}
NO_NOUNS |= {"written"}


@dataclass(frozen=True)
class Reference:
    """A trace of the answer, its right tensors, and which of them each step gave."""

    trace: Trace
    known: list[Known]
    of_step: dict[int, Known]
    also: list[Known]  # forms on the way of other right programs
    told: list[Known] = field(default_factory=list)  # what comes of mistakes that are told already
    goal: Trace | None = None  # the answer with those mistakes: what comes back if no other is made

    def wanted(self) -> list[torch.Tensor]:
        """What comes back where nothing is wrong but what is told already."""
        goal = self.goal or self.trace
        return [plain(goal.steps[i].value) for i in goal.returned]

    @cached_property
    def right(self) -> Shelf:
        """What right programs have, the answer and others."""
        return Shelf([*self.known, *self.also])

    @cached_property
    def all(self) -> Shelf:
        return Shelf([*self.right, *self.told])

    def weights_of(self, shape: torch.Size) -> list[torch.Tensor]:
        """What softmaxes over the last axis give, in this shape."""
        return [value for value in self._weights if value.shape == shape]

    @cached_property
    def _weights(self) -> list[torch.Tensor]:
        steps = (self.trace.steps[i] for i in self.of_step)
        own = [s.value for s in steps if s.op == "softmax" and s.value.dim() > 1]
        return [v for v in own if (v.sum(-1) - 1).abs().max() < 1e-4]

    def results(self) -> list[Known]:
        """The tensors that are to be returned."""
        return [self.of_step[i] for i in self.trace.returned if i in self.of_step]

    def comes_of(self, later: Known, earlier: Known) -> bool:
        """Whether the answer makes one of the other."""
        return id(earlier) in self._sources.get(id(later), ())

    def lacks(self, one: Known, given: Iterable[Known]) -> bool:
        """Whether the answer makes a tensor, and not of all of these where it does so first."""
        made = self._first_made_of.get(id(one))
        return made is not None and any(id(each) not in made for each in given)

    def next_round(self, one: Known) -> Known | None:
        """What the statement of the answer that gave a tensor makes of it in the next round of a
        loop; None where there is no such round."""
        steps, number = self.trace.steps, one.place
        if self.of_step.get(number) is not one or steps[number].place is None:
            return None
        for later in range(number + 1, len(steps)):
            same = steps[later].spot == steps[number].spot
            if same and later in self.of_step and id(one) in self._made_of[later]:
                return self.of_step[later]
        return None

    def is_as_large(self, one: int, other: int) -> bool:
        """Whether two of its steps gave as many numbers."""
        return self.trace.steps[one].value.numel() == self.trace.steps[other].value.numel()

    @cached_property
    def _sources(self) -> dict[int, set[int]]:
        """What each right tensor is made of, and itself, by their identities."""
        found: dict[int, set[int]] = {}
        for number, own in enumerate(self._made_of):
            if number in self.of_step:
                found.setdefault(id(self.of_step[number]), set()).update(own)
        return found

    @cached_property
    def _first_made_of(self) -> dict[int, set[int]]:
        """The same of the first step alone that gave it: a later one may have come to it again."""
        steps = reversed(self.of_step.items())
        return {id(known): self._made_of[number] for number, known in steps}

    @cached_property
    def _made_of(self) -> list[set[int]]:
        """The right tensors of which each step was made, and its own."""
        steps = self.trace.steps
        known = [{id(self.of_step[i])} if i in self.of_step else set() for i in range(len(steps))]
        return made_of(steps, known)

    @cached_property
    def terms(self) -> list[int]:
        """The steps that add or take away."""
        steps = enumerate(self.trace.steps)
        return [i for i, s in steps if i in self.of_step and s.op.strip("_") in TERMS]

    def scaled_to(self, known: Known) -> list[Known]:
        """The products that the answer makes a right tensor of by a factor alone."""
        steps = self.trace.steps
        return [
            self.of_step[before]
            for number, own in self.of_step.items()
            if own is known
            for before in steps[number].inputs
            if before in self.of_step and steps[before].op in PRODUCTS
            if multiple(steps[number].value, steps[before].value) is not None
        ]

    def makes(self, given: set[int]) -> Known | None:
        """What the answer makes of these known tensors (by their places), and of nothing else."""
        for number, step in enumerate(self.trace.steps):
            made = self.of_step.get(number)
            own = {self.of_step[i].place for i in step.inputs if i in self.of_step}
            if made is not None and own and own == given and made.place not in given:
                return made
        return None


def reference(trace: Trace, others: Iterable[Trace] = ()) -> Reference:
    """The landmarks of a trace; others: of other right answers, whose steps are right, too."""
    known, of_step = _known(trace)
    for number in trace.returned[:1]:
        if number in of_step and not of_step[number].name:
            of_step[number].name = "result"
    also = _on_the_way(trace, known, of_step)
    for each in (each for other in others for each in _known(other)[0]):
        if next(holding(each.in_order(), [*known, *also]), None) is None:
            also.append(Known(trace.returned[-1] if trace.returned else 0, each.shapes))
    return Reference(trace, known, of_step, also)


def _known(trace: Trace) -> tuple[list[Known], dict[int, Known]]:
    known: list[Known] = []
    of_step: dict[int, Known] = {}
    for number, step in enumerate(trace.steps):
        if step.kind != "float" or not tells(step.value):
            continue
        ordered = plain(step.value.flatten()).sort().values
        found = next(holding(ordered, known), None)
        if found is None:
            found = Known(number, [])
            known.append(found)
        found.add(step.value)
        is_word = len(step.name) >= SHORTEST and step.name.split("_")[-1] not in NO_NOUNS
        if is_word and not found.name and step.op != LEAF:
            found.name = step.name
        if step.name and step.op != LEAF and step.name not in found.called:
            found.called.append(step.name)
        of_step[number] = found
    return known, of_step


# --- other right programs ------------------------------------------------------------------------
def _on_the_way(trace: Trace, known: list[Known], of_step: dict[int, Known]) -> list[Known]:
    found: list[Known] = []

    def add(number: int, value: torch.Tensor) -> None:
        if not tells(value):
            return
        ordered = plain(value.flatten()).sort().values
        if next(holding(ordered, [*known, *found]), None) is None:
            found.append(Known(of_step[number].place, [value]))

    for number, step in enumerate(trace.steps):
        if number not in of_step:
            continue
        for source in (i for i in step.inputs if i in of_step):
            before = trace.steps[source]
            if before.value.shape != step.value.shape:
                continue
            factor = multiple(step.value, before.value)
            if factor is not None and before.op in PRODUCTS:
                _scaled_operands(trace, source, factor, add, of_step)
            if _hides(step.value, before.value):
                _masked_earlier(trace, number, source, add, of_step)
            if step.op == "softmax":
                _softmax_by_hand(number, before.value, add)
    return found


def multiple(value: torch.Tensor, of: torch.Tensor) -> float | None:
    """The number that makes one tensor out of the other, where there is one and it is not 1."""
    if value.shape != of.shape:
        return None
    one, two = plain(value).flatten(), plain(of).flatten()
    real = (two.abs() < REAL) & (one.abs() < REAL)
    if not real.all():
        if not torch.equal(one[~real], two[~real]) or not real.any():
            return None
        one, two = one[real], two[real]
    if not two.numel():
        return None
    largest = two.abs().argmax()
    if two[largest] == 0:
        return None
    factor = (one[largest] / two[largest]).item()
    if factor == 0 or abs(factor - 1) < 1e-3:
        return None
    return factor if near(one, factor * two) else None


def _hides(value: torch.Tensor, before: torch.Tensor) -> bool:
    return bool((plain(value) == HIDDEN).any() and not (plain(before) == HIDDEN).any())


def _scaled_operands(trace, product: int, factor: float, add, of_step) -> None:
    """Queries or keys that are scaled before they meet."""
    for number in trace.steps[product].inputs:
        if number in of_step and factor > 0:
            add(number, trace.steps[number].value * factor)
            add(number, trace.steps[number].value * factor**0.5)


def _masked_earlier(trace, number: int, source: int, add, of_step) -> None:
    """Scores that are masked before they are scaled."""
    hidden = plain(trace.steps[number].value) == HIDDEN
    for earlier in trace.steps[source].inputs:
        value = trace.steps[earlier].value
        if earlier in of_step and multiple(trace.steps[source].value, value) is not None:
            add(number, value.masked_fill(hidden, -torch.inf))


def _softmax_by_hand(number: int, scores: torch.Tensor, add) -> None:
    top = scores.amax(-1, keepdim=True)
    for shifted in (scores, scores - top, scores - scores.max()):
        powers = shifted.exp()
        for value in (shifted, powers, powers.sum(-1)):
            add(number, value)
    add(number, top)


def extended(own: Reference, traces: list[Trace]) -> Reference:
    """The landmarks, and what comes of known mistakes that are told already."""
    others: list[Known] = []
    for trace in traces:
        known, _ = _known(trace)
        for each in known:
            same = list(holding(each.in_order(), [*own.all, *others]))
            if not same:
                others.append(each)
            for value in each.shapes if same else ():  # a mistake may have mixed its axes
                if all(order_of(value, k.value) is None for k in [*same, *others]):
                    others.append(Known(each.place, [value]))
    return replace(own, told=[*own.told, *others], goal=traces[-1] if traces else own.goal)


def gives_ones(step: Step, steps: tuple[Step, ...]) -> bool:
    """Whether a softmax, or a division by sums, made ones of numbers that tell something."""
    if step.kind != "float" or 1 not in step.value.shape or len(step.inputs) not in (1, 2):
        return False
    if step.op.strip("_") in ("div", "truediv", "itruediv") and len(step.inputs) == 2:
        below = steps[step.inputs[1]]
        alone = below.op == "sum" and step.inputs[0] in below.inputs
        if not alone or below.value.shape != step.value.shape:
            return False
    elif step.op != "softmax":
        return False
    ones = bool(((step.value == 1) | step.value.isnan()).all())
    return ones and step.value.numel() > 1 and tells(steps[step.inputs[0]].value)


def is_constant(step: Step) -> bool:
    """Whether an operation takes a tensor for its shape alone."""
    return step.op.endswith("_like") or step.op.startswith("new_")


def gives_new_nan(step: Step, steps: tuple[Step, ...]) -> bool:
    """Whether a step made NaN out of numbers that were none."""
    return bool(step.value.isnan().any()) and not any(
        steps[i].value.isnan().any() for i in step.inputs
    )


def is_wiped(step: Step, steps: tuple[Step, ...]) -> bool:
    """Whether a step multiplied all that it was given by 0."""
    wiped = step.op in ("mul", "__mul__", "__rmul__", "mul_", "__imul__")
    return bool(wiped and step.value.numel() > 5 and not step.value.any()) and any(
        tells(steps[i].value) for i in step.inputs
    )


def made_of(steps: Sequence[Step], own: Iterable[set[int]]) -> list[set[int]]:
    """For each step what it and all that it was made of have of their own."""
    made: list[set[int]] = []
    for step, new in zip(steps, own, strict=True):
        made.append(new.union(*(made[i] for i in step.inputs)))
    return made
