"""The steps of an exercise's answer and of its known mistakes, made when they are asked for."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from autograder.course.calls import Call
from autograder.course.exercises import Written, variant
from autograder.course.steps.traces import Signature, Trace, signature, trace_here


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

    def wrong(
        self, place: int, told: tuple[int, ...], sizes: Container[int], named: str = ""
    ) -> Iterator[KnownSteps]:
        """Each known mistake, on top of those that are told already, by their numbers.

        sizes: how many numbers the steps have that are asked for. named: only mistakes of that
        name.
        """

    def trace(self, place: int, numbers: tuple[int, ...]) -> Trace | None:
        """The steps of the program with these mistakes; None where that is not known."""


@dataclass(frozen=True)
class Programs:
    """An exercise's own programs: the answer, each mistake, and several mistakes at once."""

    written: Written
    calls: Sequence[Call]  # in float64

    def knows(self, place: int) -> bool:
        """Whether the steps of this call are known: those of all."""
        return True

    def right(self, place: int) -> Trace | None:
        """The steps of the answer."""
        return self._trace(self.written.namespace, place, named=True)

    def wrong(
        self, place: int, told: tuple[int, ...], sizes: Container[int], named: str = ""
    ) -> Iterator[KnownSteps]:
        """Each known mistake, on top of those that are told already."""
        for number, mistake in enumerate(self.written.mistakes):
            if named and mistake.check != named:
                continue
            trace = None if number in told else self.trace(place, (*told, number))
            if trace is not None:
                steps = [s.value for s in trace.steps if s.value.numel() in sizes]
                marks = tuple(map(signature, steps))
                yield KnownSteps(number, mistake.check, mistake.message, marks)

    def trace(self, place: int, numbers: tuple[int, ...]) -> Trace | None:
        """The steps of the program with these mistakes; None where they cannot be made at once."""
        mistakes = [self.written.mistakes[n] for n in numbers]
        if len(numbers) == 1:
            return self._trace(mistakes[0].namespace, place)
        switches: dict = {}
        for number in numbers:
            own = self.written.switches[number]
            if not own or own.keys() & switches.keys():
                return None
            switches |= own
        program = variant(self.written.answer, switches)
        return self._trace({self.written.exercise.name: program}, place)

    def _trace(self, namespace, place: int, named: bool = False) -> Trace | None:
        default, state = torch.get_default_dtype(), torch.get_rng_state()
        torch.set_default_dtype(torch.float64)
        try:
            return trace_here(namespace, [self.calls[place]], named)
        except ValueError:
            return None
        finally:
            torch.set_default_dtype(default)
            torch.set_rng_state(state)
