"""The steps of an exercise's answer and of its mistakes as data, for a hand-out without programs.

Kept are the answer's own steps for a few of the public calls, and of each known mistake the
signatures of its steps: enough to say where an answer goes wrong and by which mistake. Several
mistakes at once are programs, and so are known to the instructor's side only.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import torch

from autograder.course.calls import Call, Made
from autograder.course.steps.bank import Keeps, KnownSteps, Programs
from autograder.course.steps.traces import Step, Trace, alike, signature

CALLS = 2  # of an exercise, whose steps are kept
MOST_NUMBERS = 40_000  # of one call's steps: what has more is left out
SHORT = 7  # digits of a signature's numbers


def pack(programs: Programs, tensors: dict[str, torch.Tensor]) -> dict:
    """The steps of the first calls that can be looked at, by their places; tensors go into
    `tensors`."""
    kept: dict[str, dict] = {}
    for place, call in enumerate(programs.calls):
        if len(kept) == CALLS:
            break
        trace = programs.right(place) if _can_be_kept(call) else None
        size = sum(s.value.numel() for s in trace.steps) if trace else 0
        if trace is None or trace.full or not trace.steps or size > MOST_NUMBERS:
            continue
        real = {s.value.numel() for s in trace.steps if s.kind == "float"}
        traces = (trace, *programs.others(place))
        usual = [signature(s.value) for t in traces for s in t.steps if s.kind == "float"]
        wrong = []
        for each in programs.wrong(place, (), _All()):
            new = [s for s in each.signatures if not any(alike(s, u) for u in usual)]
            wrong.append([each.number, each.check, each.message, _unique(new)])
        if real:
            kept[str(place)] = {"right": _packed(trace, f"step{place}_", tensors), "wrong": wrong}
    return kept


def _can_be_kept(call: Call) -> bool:
    given = (*call.args, *call.kwargs.values(), *(call.init or ()), *call.init_kwargs.values())
    made = any(isinstance(g, Made) for g in given)
    ones = any(1 in g.shape for g in given if isinstance(g, torch.Tensor))
    return not (made or ones or call.inspect or call.on or call.train)


def _unique(marks: list) -> list:
    return [list(mark) for mark in dict.fromkeys(tuple(map(_short, mark)) for mark in marks)]


def _short(number: float) -> float:
    return float(f"{number:.{SHORT}g}")


def _packed(trace: Trace, prefix: str, tensors: dict) -> dict:
    rows = []
    for number, step in enumerate(trace.steps):
        key = ""
        if step.kind == "float":
            key = f"{prefix}{number}"
            tensors[key] = step.value.float().contiguous()
        rows.append([step.op, list(step.inputs), step.kind, step.name, key])
    return {"steps": rows, "returned": list(trace.returned)}


class _All:
    """Every size."""

    def __contains__(self, size: object) -> bool:
        return True


@dataclass(frozen=True)
class Stored(Keeps):
    """What `pack` kept, as a bank."""

    kept: Mapping[str, dict]
    tensors: Mapping[str, torch.Tensor]

    def knows(self, place: int) -> bool:
        """Whether the steps of this call were kept."""
        return str(place) in self.kept

    def right(self, place: int) -> Trace | None:
        """The steps of the answer, where they were kept."""
        if not self.knows(place):
            return None
        return self.once(("right", place), lambda: self._right(place))

    def _right(self, place: int) -> Trace:
        raw = self.kept[str(place)]["right"]
        steps = tuple(self._step(*row) for row in raw["steps"])
        return Trace(steps, tuple(raw["returned"]))

    def _step(self, op: str, inputs: list, kind: str, name: str, key: str) -> Step:
        value = self.tensors[key].double() if key else torch.zeros(0, dtype=torch.float64)
        return Step(op, None, tuple(inputs), value, kind, name)

    def others(self, place: int) -> list[Trace]:
        """None: what they have on their way is no mark of a mistake's."""
        return []

    def wrong(
        self, place: int, told: tuple[int, ...], sizes: Container[int], named: str = ""
    ) -> Iterator[KnownSteps]:
        """Each known mistake; none on top of another, which only programs can show."""
        for number, check, message, marks in self.kept[str(place)]["wrong"] if not told else ():
            if not named or check == named:
                own = tuple(tuple(m) for m in marks if int(m[0]) in sizes)
                yield KnownSteps(number, check, message, own)

    def trace(self, place: int, numbers: tuple[int, ...]) -> Trace | None:
        """Nothing: a mistake's steps are not kept."""
        return None
