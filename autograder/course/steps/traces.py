"""The steps of a call: what each operation of an answer gave, in order, and what it was made of.

Those of the course's own answers are made here, in float64. What comes back from the sandbox is
read with bounds: whatever a child says, it can only cost what `read` allows.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from autograder.course.calls import Call, to_request
from autograder.sandbox.inside import steps as recorder
from autograder.sandbox.inside.runner import Runner

MOST_STEPS = recorder.MAX_STEPS
MOST_NUMBERS = recorder.MAX_ALL
LEAF = recorder.LEAF


@dataclass(frozen=True)
class Step:
    """One tensor that an operation gave.

    place: line, end line, column, end column, or None. inputs: the steps that it was made from, by
    their place in the trace. kind: float | int | bool. name: a variable that held it, of an answer.
    """

    op: str
    place: tuple[int, int, int, int] | None
    inputs: tuple[int, ...]
    value: torch.Tensor
    kind: str = "float"
    name: str = ""


@dataclass(frozen=True)
class Stopped:
    """The operation that an error stopped: the steps it was given, and where it stands."""

    op: str
    inputs: tuple[int, ...]
    place: tuple[int, int, int, int] | None


@dataclass(frozen=True)
class Trace:
    """The steps of one call, in order. full: there were more than are written down."""

    steps: tuple[Step, ...] = ()
    returned: tuple[int, ...] = ()
    stopped: Stopped | None = None
    full: bool = False


def to_steps_request(calls: Sequence[Call], named: bool = False) -> tuple[dict, dict]:
    """The header and tensors that ask a `Runner` for the steps of these calls."""
    plain = [replace(call, gradients=False) for call in calls]
    header, tensors = to_request(plain)
    return {**header, "op": "steps", "named": named}, tensors


def read(header: Mapping, tensors: Mapping, count: int) -> tuple[Trace, ...]:
    """The traces of a reply; raises ValueError where it is not what was asked for."""
    raw = header.get("traces")
    if not isinstance(raw, list) or len(raw) != count:
        raise ValueError("asked for the steps of calls, got something else")
    try:
        return tuple(_trace(each, tensors[f"values{i}"]) for i, each in enumerate(raw))
    except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError) as error:
        raise ValueError(f"the steps are not readable ({type(error).__name__})") from None


def _trace(raw: Mapping, values: torch.Tensor) -> Trace:
    rows = raw["steps"]
    if not isinstance(rows, list) or len(rows) > MOST_STEPS or values.numel() > MOST_NUMBERS:
        raise ValueError("more steps than are written down")
    if values.dtype != torch.float64 or values.dim() != 1:
        raise ValueError("numbers of another kind")
    steps: list[Step] = []
    place_of: dict[int, int] = {}
    start = 0
    for row in rows:
        shape = [int(n) for n in row["shape"][:20]]
        if any(n < 0 or n > MOST_NUMBERS for n in shape):
            raise ValueError("a shape that cannot be")
        size = 1
        for n in shape:
            size *= n
        if size > MOST_NUMBERS or start + size > values.numel():
            raise ValueError("a shape without numbers")
        value = values[start : start + size].reshape(shape)
        start += size
        place_of[int(row["number"])] = len(steps)
        inputs = tuple(place_of[i] for i in row["inputs"][:64] if i in place_of)
        kind = row["kind"] if row["kind"] in ("float", "int", "bool") else "int"
        name = str(row["name"])[:80]
        steps.append(Step(str(row["op"])[:60], _place(row["place"]), inputs, value, kind, name))
    stopped = None
    if raw.get("stopped"):
        given = tuple(place_of[i] for i in raw["stopped"]["inputs"][:64] if i in place_of)
        stopped = Stopped(str(raw["stopped"]["op"])[:60], given, _place(raw["stopped"]["place"]))
    returned = tuple(place_of[i] for i in raw["returned"][:8] if i in place_of)
    return Trace(tuple(steps), returned, stopped, bool(raw["full"]))


def _place(raw) -> tuple[int, int, int, int] | None:
    if not isinstance(raw, list) or len(raw) != 4:
        return None
    numbers = [n if isinstance(n, int) and 0 <= n < 1_000_000 else 0 for n in raw]
    return tuple(numbers) if numbers[0] else None


def trace_here(namespace: Mapping, calls: Sequence[Call], named: bool = False) -> Trace:
    """The steps of the last of these calls, made in this process: of our own programs, and in a
    student's own notebook."""
    sys.modules.setdefault("course_steps", recorder)
    header, tensors = to_steps_request(calls, named)
    reply, out = Runner(dict(namespace)).handle(header, tensors)
    return read(reply, out, len(calls))[-1]


def text_of(target: object) -> str:
    """The text of the file or the cell that a function or a class was written in; '' for none."""
    file = recorder.file_of(target)
    return "".join(linecache.getlines(file)) if file else ""


# --- a few numbers that tell one step from another ------------------------------------------------
Signature = tuple[float, ...]
FAR = 1e37  # beyond are infinities, and what hides scores as they do
HIDES = -1e4


def signature(value: torch.Tensor) -> Signature:
    """How many numbers, how many of them are NaN or hide, and the rest's means and ends.

    It is the same for all orders of the numbers, for an answer's axes may stand in any; but for
    the last number, a sum with waves as weights, by which `same_order` tells them apart.
    """
    flat = value.flatten()
    nan = flat.isnan()
    numbers = flat[~nan]
    shown = numbers[(numbers > HIDES) & (numbers < FAR)]
    if shown.numel() and shown.abs().max() > -HIDES / 10:  # numbers so large that none hides
        shown = numbers[numbers.abs() < FAR]
    sizes = (flat.numel(), int(nan.sum()), numbers.numel() - shown.numel())
    if not shown.numel():
        return (*map(float, sizes), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    waves = torch.cos(0.7 * torch.arange(1, len(shown) + 1, dtype=torch.float64))
    means = [(shown**k).mean().item() for k in (1, 2, 3)]
    return (
        *map(float, sizes),
        *means,
        shown.min().item(),
        shown.max().item(),
        (shown * waves).mean().item(),
    )


def alike(one: Signature, two: Signature) -> bool:
    """Whether two steps may hold the same numbers."""
    if one[:3] != two[:3]:
        return False
    size = max(abs(two[6]), abs(two[7]), 1e-9)
    powers = (1, 2, 3, 1, 1)
    pairs = zip(one[3:8], two[3:8], powers, strict=True)
    return all(abs(a - b) <= 4e-4 * size**power + 1e-8 for a, b, power in pairs)


def same_order(one: Signature, two: Signature) -> bool:
    """Whether the numbers of two steps that are alike stand in one order, too."""
    return abs(one[8] - two[8]) <= 4e-4 * max(abs(two[6]), abs(two[7]), 1e-9)
