"""What an exercise is, and what is found when an answer to it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # findings are read where no torch is needed
    from autograder.course.calls import Call, Draw, Outcome


class Verdict(StrEnum):
    """What a finding says: of values, of a shape comment, or of what a rubric adds."""

    RIGHT = "right"
    WRONG = "wrong"
    ERROR = "error"
    TRUE = "true"
    FALSE = "false"
    MISSING = "missing"
    CANNOT_TELL = "cannot tell"
    DEDUCTION = "deduction"
    BONUS = "bonus"


STOPS = "it stops with an error"  # how a line goes wrong where the code raises


@dataclass(frozen=True)
class Where:
    """The last right line of a student's cell and the first wrong one, where they are known.

    landmark: what the last right line gives, '' where it has no name. how: how the first wrong
    line differs, '' where there are no words for it.
    """

    last_right: int | None
    first_wrong: int
    landmark: str = ""
    how: str = ""


def is_plural(landmark: str) -> bool:
    """Whether a landmark is called by a plural: 'the keys', and not 'the bias'."""
    noun = landmark.partition(" of ")[0]
    return noun.endswith("s") and not noun.endswith(("ss", "bias"))


@dataclass(frozen=True)
class Finding:
    """One thing found in an answer.

    A verdict of wrong or error fails the question. line: the line of the student's cell, from 1,
    on which what is meant stands, as all lines of findings and sentences are; statement: what is
    written there, of a statement over several lines that line alone. points: what a rubric adds for
    it, below zero for a deduction. mistake: the name of the known mistake that was recognised;
    empty where it is none. where: where it goes wrong; None where nothing can be said for sure.
    """

    check: str
    verdict: Verdict
    message: str
    line: int | None = None
    statement: str = ""
    tried: str = ""
    expected: str = ""
    got: str = ""
    points: float = 0.0
    mistake: str = ""
    where: Where | None = None

    @property
    def fails(self) -> bool:
        return self.verdict in (Verdict.WRONG, Verdict.ERROR)


class Lazy(Sequence):
    """What is made by `make(place)` when it is first asked for: outcomes of one program, mistakes.

    A known mistake that differs on the first call is so not run on the others.
    """

    def __init__(self, count: int, make: Callable[[int], object]):
        self._count, self._make = count, make
        self._made: dict[int, object] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place):
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(self._count)))
        place += self._count if place < 0 else 0
        if not 0 <= place < self._count:
            raise IndexError(f"{place} of {self._count}")
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(self._count))


class Late(Sequence):
    """A sequence that is made as a whole when it is first looked at."""

    def __init__(self, make: Callable[[], Iterable]):
        self._make = make

    @cached_property
    def _items(self) -> tuple:
        return tuple(self._make())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place):
        return self._items[place]


@dataclass(frozen=True)
class Sight:
    """All that a judge may look at: what was asked, what came back, what should have.

    mistakes: the known ones as (check, message, outcomes); an outcome is computed when it is looked
    at. stages: for some checks of mistakes, the steps that each belongs to (see `Mistake`).
    """

    exercise: Exercise
    calls: tuple[Call, ...]
    outcomes: tuple[Outcome, ...]
    expected: Sequence[Outcome]
    mistakes: Sequence[tuple[str, str, Sequence[Outcome]]] = ()
    source: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)

    def only(self, chosen: Iterable[int]) -> Sight:
        """What was seen of the calls at these places."""
        places = tuple(chosen)

        def pick(outcomes):
            return Lazy(len(places), lambda i: outcomes[places[i]])

        return replace(
            self,
            calls=tuple(self.calls[i] for i in places),
            outcomes=tuple(self.outcomes[i] for i in places),
            expected=pick(self.expected),
            mistakes=self._mistakes(pick),
        )

    def each(self, change: Callable[[Outcome], Outcome]) -> Sight:
        """The same with every outcome changed: what came back, what should have, the known ones."""

        def changed(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
            return Lazy(len(outcomes), lambda place: change(outcomes[place]))

        return replace(
            self,
            outcomes=tuple(map(change, self.outcomes)),
            expected=changed(self.expected),
            mistakes=self._mistakes(changed),
        )

    def _mistakes(self, change: Callable[[Sequence[Outcome]], Sequence[Outcome]]) -> Sequence:
        """The known mistakes with their outcomes changed: of thousands few are looked at."""

        def mistake(place: int):
            check, text, outcomes = self.mistakes[place]
            return check, text, change(outcomes)

        return Lazy(len(self.mistakes), mistake)


@dataclass(frozen=True)
class Exercise:
    """One question that a machine marks.

    task: its name, such as 'simple.softmax'. name: the function or class that answers it.
    cases: draws the calls, fresh each time. hints: three steps, from a nudge to nearly there.
    rtol: the largest difference allowed, relative to the largest expected value of the tensor.
    judge: replaces the comparison of values where that is not enough (see `judge.compare`).
    stages: the steps of the program, where several tasks are each about one step of it; every known
    mistake then names its step. layers: attributes that must be `nn.Linear` layers; an answer whose
    layers are not as asked is looked at again with right ones (see `layers`).
    """

    task: str
    name: str
    cases: Callable[[Draw], list[Call]]
    hints: tuple[str, str, str]
    rtol: float = 1e-4
    judge: Callable[[Sight], list[Finding]] | None = None
    stages: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mistake:
    """A wrong answer with a name: a student whose values equal its values made that mistake.

    stage: the steps that it belongs to, one or several words of `Exercise.stages`. where: file and
    line.
    """

    check: str
    message: str
    namespace: Mapping[str, object]
    stage: str = ""
    where: str = ""


@dataclass(frozen=True)
class Fitted:
    """A kind of wrong answer with a free number in it, such as 'any other factor'.

    fit: given the calls and what came back, the program that explains each call if any of its kind
    does; None where none can.
    """

    check: str
    message: str
    fit: Callable[[Sequence[Call], Sequence[Outcome]], Sequence[Mapping[str, object] | None]]
    stage: str = ""


def mistake(name: str, check: str, message: str, function: object) -> Mistake:
    """A mistake made in one function, known to the notebook as `name`."""
    return Mistake(check, message, {name: function})
