"""The steps of an exercise's answer and of its known mistakes, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import torch

from autograder.course.calls import Call
from autograder.course.exercises import Written, variant
from autograder.course.steps.traces import (
    Signature,
    Trace,
    signature,
    trace_here,
    values_here,
)

T = TypeVar("T")
MOST_KEPT = 1_000  # programs of several mistakes whose steps are kept, of a few kB each


@dataclass(frozen=True)
class KnownSteps:
    """A known mistake: its number in the bank, its name, and the signatures of its steps."""

    number: int
    check: str
    message: str
    signatures: tuple[Signature, ...]


class Bank(Protocol):
    """What is known of the steps of an exercise's calls; a call is named by its place."""

    def knows(self, place: int) -> bool:
        """Whether the steps of this call are known."""

    def right(self, place: int) -> Trace | None:
        """The steps of the answer."""

    def others(self, place: int) -> list[Trace]:
        """The steps of the author's other right answers, as far as they are known."""

    def wrong(
        self, place: int, told: tuple[int, ...], sizes: Container[int], named: str = ""
    ) -> Iterator[KnownSteps]:
        """Each known mistake, on top of those that are told already, by their numbers.

        sizes: how many numbers the steps have that are asked for. named: only mistakes of that
        name.
        """

    def trace(self, place: int, numbers: tuple[int, ...]) -> Trace | None:
        """The steps of the program with these mistakes; None where that is not known."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is the same for everybody who is asked these calls: made once, and kept."""


@dataclass(frozen=True)
class Keeps:
    """Keeps what is the same for everybody who is asked the same calls, as those of a class are."""

    _kept: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What goes by this key: made when it is first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


@dataclass(frozen=True)
class Programs(Keeps):
    """An exercise's own programs: the answer, each mistake, and several mistakes at once."""

    written: Written
    calls: Sequence[Call]  # in float64

    def knows(self, place: int) -> bool:
        """Whether the steps of this call are known: those of all."""
        return True

    def right(self, place: int) -> Trace | None:
        """The steps of the answer."""
        return self.once(
            ("right", place), lambda: self._trace(self.written.namespace, place, named=True)
        )

    def others(self, place: int) -> list[Trace]:
        """The steps of the other right answers that can be looked at."""
        name = self.written.exercise.name
        traces = (self._trace({name: answer}, place) for answer in self.written.also)
        return [trace for trace in traces if trace is not None and not trace.full]

    def wrong(
        self, place: int, told: tuple[int, ...], sizes: Container[int], named: str = ""
    ) -> Iterator[KnownSteps]:
        """Each known mistake, on top of those that are told already."""
        for number, mistake in enumerate(self.written.mistakes):
            if number in told or (named and mistake.check != named):
                continue
            marks = self._marks(place, (*told, number))
            if marks is not None:
                own = tuple(mark for mark in marks if int(mark[0]) in sizes)
                yield KnownSteps(number, mistake.check, mistake.message, own)

    def trace(self, place: int, numbers: tuple[int, ...]) -> Trace | None:
        """The steps of the program with these mistakes; None where they cannot be made at once."""
        namespace = self._with(numbers)
        return self._trace(namespace, place) if namespace is not None else None

    def _marks(self, place: int, numbers: tuple[int, ...]) -> tuple[Signature, ...] | None:
        """The signatures of the steps of the program with these mistakes; None where they cannot be
        made at once. Those of several are kept up to a number: there are thousands."""

        def made() -> tuple[Signature, ...] | None:
            namespace = self._with(numbers)
            if namespace is None:
                return None
            with _in_float64():
                return tuple(map(signature, values_here(namespace, self.calls[place])))

        key = "marks", place, numbers
        if len(numbers) > 1 and len(self._kept) >= MOST_KEPT and key not in self._kept:
            return made()
        return self.once(key, made)

    def _with(self, numbers: tuple[int, ...]) -> dict[str, object] | None:
        """What the program with these mistakes defines; None where they cannot be made at once."""
        mistakes = [self.written.mistakes[n] for n in numbers]
        if len(numbers) == 1:
            return mistakes[0].namespace
        switches: dict = {}
        for number in numbers:
            own = self.written.switches[number]
            if not own or own.keys() & switches.keys():
                return None
            switches |= own
        return {self.written.exercise.name: variant(self.written.answer, switches)}

    def _trace(self, namespace, place: int, named: bool = False) -> Trace | None:
        with _in_float64():
            try:
                return trace_here(namespace, [self.calls[place]], named)
            except ValueError:
                return None


@contextmanager
def _in_float64() -> Iterator[None]:
    """Runs programs of ours in float64, and leaves the dice as they were."""
    default, state = torch.get_default_dtype(), torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(state)
