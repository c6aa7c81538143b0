"""One program, several tasks: each is judged by its own step, whatever the other steps do.

    judge=partial(by_stage, stage="scores", shown_by="return_scores")
    judge=partial(by_stage, stage="output", shown_by="return_scores")

The exercises on one class name its steps (`stages=("scores", "output")`) and each known mistake the
step that it is made in (`stage="scores"`). A slip so costs the task that is about its step, and no
other. `shown_by` is the argument with which a call also returns what a step before the last made:
the value is then a pair, (result, what was made). Other ways to look at it: a `Shown` of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from autograder.course.asking import Finding, Sight
from autograder.course.calls import Call, Outcome
from autograder.judging.compare import (
    Outcomes,
    compare,
    name_mistake,
    slips_at_once,
    tells_apart,
)
from autograder.judging.difference import difference, is_nameless
from autograder.judging.relations.where import what_is_right

Named = tuple[str, str]  # a mistake as (check, message)


@dataclass(frozen=True)
class Shown:
    """What a step before the last made, as the calls with the argument `by` return it."""

    by: str

    def places(self, sight: Sight) -> list[int]:
        """Which calls ask for it."""
        return [i for i, call in enumerate(sight.calls) if call.kwargs.get(self.by)]

    def read(self, outcome: Outcome, like: torch.Tensor) -> torch.Tensor | None:
        """It, in the form of `like`; where an error came up later, among what the variables held.

        None where nothing can be read.
        """
        value = outcome.value
        if isinstance(value, tuple | list) and len(value) == 2:
            return formed(value[1], like)
        held = (formed(each, like) for each in outcome.held)
        return next((t for t in held if difference(t, like, 1e-4) is None), None)

    def same(self, call: Call, one: torch.Tensor, other: torch.Tensor, rtol: float) -> bool:
        """Whether two of them, in the same form, are the same."""
        return difference(one, other, rtol) is None

    def right(self, sight: Sight) -> bool:
        """Whether it is right in every call that shows it."""
        return self.alike(sight, sight.expected)

    def alike(self, sight: Sight, others: Outcomes, places: Sequence[int] = ()) -> bool:
        """Whether another program gives the same wherever it is asked for, whatever the rest.

        places: the order in which these calls are looked at.
        """
        places = places or self.places(sight)
        for i in places:
            like = sight.expected[i].value[1]
            one, other = self.read(sight.outcomes[i], like), self.read(others[i], like)
            if one is None or other is None:
                return False
            if not self.same(sight.calls[i], one, other, sight.exercise.rtol):
                return False
        return bool(places)

    def seen(self, sight: Sight) -> bool:
        """Whether it came back wherever it was asked for."""
        like = {i: sight.expected[i].value[1] for i in self.places(sight)}
        found = [self.read(sight.outcomes[i], t) for i, t in like.items()]
        return bool(found) and all(t is not None for t in found)


def formed(value, like: torch.Tensor) -> torch.Tensor | None:
    """A tensor of as many numbers, in this form; None for all else."""
    if not isinstance(value, torch.Tensor) or value.numel() != like.numel():
        return None
    return value.reshape(like.shape)


# --- the judge -----------------------------------------------------------------------------------
def by_stage(sight: Sight, *, stage: str, shown_by: str) -> list[Finding]:
    """The judge of a task about one step. The last of the exercise's stages makes the result."""
    if stage == sight.exercise.stages[-1]:
        return last_stage(sight, stage, Shown(shown_by))
    return early_stage(sight, stage, Shown(shown_by))


def early_stage(
    sight: Sight,
    stage: str,
    shown: Shown,
    name: Callable[[Sight, Named | None], Named | None] = lambda sight, known: known,
) -> list[Finding]:
    """A step before the last is right where what is shown is, or the result.

    What is wrong is this step's unless a known mistake explains it that belongs to another. name:
    names what is wrong, given the known mistake if there is one.
    """
    if shown.right(sight) or result_alike(sight, sight.expected):
        return []
    for check, message in explanations(sight, shown):
        if stage not in steps(sight, check):
            return []
        return _for_stage(sight, compare(sight, name(sight, (check, message))), stage)
    return compare(sight, name(sight, None))


def still(call: Call) -> bool:
    """Whether a call is made in evaluation."""
    return not call.train


def last_stage(
    sight: Sight,
    stage: str,
    shown: Shown,
    whole: Callable[[Sight], list[Finding]] = compare,
    certain: Callable[[Call], bool] = still,
) -> list[Finding]:
    """The last step is right where it makes the right thing of what it was given.

    Where an earlier step is wrong by a known mistake, what follows is compared with what right
    steps make of that. whole: judges a sight without looking at steps. certain: the calls that are
    compared by their values, so that a mistake can be known by them.
    """
    found = _for_stage(sight, whole(sight), stage)
    quiet = only(sight, certain)
    if not found or not compare(quiet):
        return found
    if found[0].check in sight.stages and stage in steps(sight, found[0].check):
        return found
    right = shown.right(quiet)
    for each in sight.mistakes:
        if stage in steps(sight, each[0]):
            continue  # it stays unrun
        alone = only(replace(sight, mistakes=(each,)), certain)
        explains = name_mistake(alone) if right else next(explanations(alone, shown), None)
        if explains:
            beside = replace(sight, expected=each[2], mistakes=())
            found = whole(beside)
            if not found:
                return []
            found = _said_of_right_ones(found, sight, beside, whole)
    return found


def _said_of_right_ones(
    found: list[Finding], sight: Sight, beside: Sight, whole: Callable[[Sight], list[Finding]]
) -> list[Finding]:
    """Findings by comparison with a wrong program, without what that says of right values.

    found: what is wrong beside an earlier step's mistake. beside: what was seen, with that
    program's values as those expected.
    """
    first, plain = found[0], whole(replace(sight, mistakes=()))
    if is_nameless(first.check, sight.exercise.task) and [f.check for f in plain] == [first.check]:
        return plain
    right = what_is_right(beside)
    message = first.message.removesuffix(right).rstrip() if right else first.message
    return [replace(first, message=message), *found[1:]]


# --- its parts, for judges that ask for more -----------------------------------------------------
def steps(sight: Sight, check: str) -> list[str]:
    """The steps that a mistake belongs to: all, where nobody says; of two slips those of both."""
    every = " ".join(sight.exercise.stages)
    found = " ".join(sight.stages.get(slip, every) for slip in check.split(" + "))
    return list(dict.fromkeys(found.split()))


def _for_stage(sight: Sight, found: list[Finding], stage: str) -> list[Finding]:
    """Of two slips at once a step answers for its own."""

    def own(check: str) -> str:
        slips = check.split(" + ")
        mine = [s for s in slips if s in sight.stages and stage in steps(sight, s)]
        return " + ".join(mine) if len(slips) > 1 and mine else check

    return [replace(f, check=own(f.check)) for f in found]


def only(sight: Sight, wanted: Callable[[Call], bool]) -> Sight:
    """What was seen of some of the calls; known mistakes stay unrun."""
    return sight.only(i for i, call in enumerate(sight.calls) if wanted(call))


def explanations(sight: Sight, shown: Shown) -> Iterator[Named]:
    """The known mistakes that could be this one, the likeliest first.

    One that gives the same in all is likelier than one that gives the same where a step is shown
    (or the same result, where nothing of it came back).
    """
    seen, slips = shown.seen(sight), slips_at_once(sight)
    together = _may_be_two(sight, shown) if seen else lambda one, other: True
    places = sorted(shown.places(sight), key=partial(tells_apart, sight))
    wholly = name_mistake(sight, places, together)
    if wholly is not None:
        yield wholly
    for check, text, outcomes in sight.mistakes:
        two = slips(check)
        if (check, text) == wholly or (two and not together(*two)):
            continue
        if shown.alike(sight, outcomes, places) if seen else result_alike(sight, outcomes):
            yield check, text


def _may_be_two(sight: Sight, shown: Shown) -> Callable[[Outcomes, Outcomes], bool]:
    """Whether two slips, of which the outcomes of each alone are given, may show what came back.

    One that shows what is right, alone, is of a later step: then it shows that with another, too,
    and what is shown is what the other shows. So most pairs need no run.
    """
    asked: dict[int, tuple[bool, bool]] = {}
    right = shown.right(sight)

    def of(slip: Outcomes) -> tuple[bool, bool]:
        """Whether it is of a later step, and whether it shows what came back."""
        if id(slip) not in asked:
            later = shown.right(replace(sight, outcomes=slip))
            asked[id(slip)] = later, shown.alike(sight, slip)
        return asked[id(slip)]

    def may(*two: Outcomes) -> bool:
        early = [shows_it for later, shows_it in map(of, two) if not later]
        return early[0] if len(early) == 1 else bool(early) or right

    return may


def results(value) -> Sequence:
    """What of a returned value may be the result."""
    return value if isinstance(value, tuple | list) else [value]


def result_alike(sight: Sight, others: Outcomes) -> bool:
    """Whether the results are those of another program, in whatever form the rest comes."""
    if any(got.error for got in sight.outcomes):
        return False  # then the other program need not run
    for got, other in zip(sight.outcomes, others, strict=True):
        if other.error:
            return False
        want, parts = results(other.value)[0], results(got.value)
        if all(difference(part, want, sight.exercise.rtol) is not None for part in parts):
            return False
    return True
