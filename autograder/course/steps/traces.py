"""The steps of a call: what each operation of an answer gave, in order, and what it was made of.

Those of the course's own answers are made here, in float64. What comes back from the sandbox is
read with bounds: whatever a child says, it can only cost what `read` allows.
"""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from autograder.course.calls import Call, to_request
from autograder.sandbox.inside import steps as recorder
from autograder.sandbox.inside.runner import Runner

MOST_STEPS = recorder.MAX_STEPS
MOST_NUMBERS = recorder.MAX_ALL
MOST_OF_ONE = recorder.MAX_ONE
LEAF = recorder.LEAF


@dataclass(frozen=True)
class Done:
    """One operation: its name, its arguments as data, and which of its results is meant (-1: the
    only one). An argument is [its kind, ...]: ("t", the step) for a tensor, ("p",) for the tensor
    as it was before, ("v", a plain value), ("l" or "u", ...) for a list or a tuple, ("s", ...) for
    a slice, ("e",) for `...`, ("d", a dtype), ("k", ((name, argument), ...)) for named ones.
    """

    op: str
    given: tuple
    which: int = -1


@dataclass(frozen=True)
class Step:
    """One tensor that an operation gave.

    place: line, end line, column, end column, or None. inputs: the steps that it was made from, by
    their place in the trace. kind: float | int | bool | complex. name: a variable of an answer.
    outer: the lines that called the function it stands in, the nearest first. calls: how it was
    made, one change after the other, where that is known.
    """

    op: str
    place: tuple[int, int, int, int] | None
    inputs: tuple[int, ...]
    value: torch.Tensor
    kind: str = "float"
    name: str = ""
    outer: tuple[int, ...] = ()
    calls: tuple[Done, ...] | None = None

    @property
    def spot(self) -> tuple:
        """Where it stands in the text, and its operation: the same in all rounds of a loop."""
        return self.place, self.op


@dataclass(frozen=True)
class Stopped:
    """The operation that an error stopped: the steps it was given, and where it stands."""

    op: str
    inputs: tuple[int, ...]
    place: tuple[int, int, int, int] | None
    outer: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trace:
    """The steps of one call, in order. full: there were more than are written down."""

    steps: tuple[Step, ...] = ()
    returned: tuple[int, ...] = ()
    stopped: Stopped | None = None
    full: bool = False


def to_steps_request(calls: Sequence[Call], named: bool = False) -> tuple[dict, dict]:
    """The header and tensors that ask a `Runner` for the steps of these calls."""
    plain = [replace(call, gradients=False, work=False) for call in calls]
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
        kind = row["kind"] if row["kind"] in ("float", "int", "bool", "complex") else "int"
        name = str(row["name"])[:80]
        outer = _lines(row["outer"])
        calls, op = _calls(row["calls"], place_of), str(row["op"])[:60]
        steps.append(Step(op, _place(row["place"]), inputs, value, kind, name, outer, calls))
    stopped = None
    if raw.get("stopped"):
        end = raw["stopped"]
        given = tuple(place_of[i] for i in end["inputs"][:64] if i in place_of)
        stopped = Stopped(str(end["op"])[:60], given, _place(end["place"]), _lines(end["outer"]))
    returned = tuple(place_of[i] for i in raw["returned"][:8] if i in place_of)
    return Trace(tuple(steps), returned, stopped, bool(raw["full"]))


def _lines(raw) -> tuple[int, ...]:
    return tuple(n for n in raw[:4] if isinstance(n, int) and 0 < n < 1_000_000)


def _calls(raw, place_of: Mapping[int, int]) -> tuple[Done, ...] | None:
    """How a step was made; None where that is not told, or not in a way that can be read."""
    if not isinstance(raw, list) or not 0 < len(raw) <= recorder.MAX_CALLS:
        return None
    try:
        return tuple(
            Done(str(op)[:60], tuple(_argument(a, place_of) for a in given[:64]), int(which))
            for op, given, which in raw
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _argument(raw, place_of: Mapping[int, int], depth: int = 0) -> tuple:
    kind, *rest = raw
    if depth > 4 or len(rest) > 64:
        raise ValueError("an argument without an end")
    if kind == "t":
        return "t", place_of[rest[0]]
    if kind == "v" and (rest[0] is None or isinstance(rest[0], bool | int | float | str)):
        value = rest[0]
        if isinstance(value, int) and abs(value) > MOST_NUMBERS:
            raise ValueError("a number that cannot be")
        return "v", value[:200] if isinstance(value, str) else value
    if kind == "f" and rest[0] in ("inf", "-inf", "nan"):
        return "v", float(rest[0])
    if kind == "k":
        pairs = list(rest[0].items())[:20]
        return "k", tuple((str(k)[:40], _argument(v, place_of, depth + 1)) for k, v in pairs)
    if kind in ("l", "u", "s"):
        return kind, *(_argument(each, place_of, depth + 1) for each in rest)
    if kind in ("e", "p"):
        return (kind,)
    if kind == "d":
        return "d", str(rest[0])[:20]
    raise ValueError("an argument of another kind")


def _place(raw) -> tuple[int, int, int, int] | None:
    if not isinstance(raw, list) or len(raw) != 4:
        return None
    numbers = [n if isinstance(n, int) and 0 <= n < 1_000_000 else 0 for n in raw]
    return tuple(numbers) if numbers[0] else None


def trace_here(namespace: Mapping, calls: Sequence[Call], named: bool = False) -> Trace:
    """The steps of the last of these calls, made in this process: of our own programs, and in a
    student's own notebook."""
    return read(*_recorded(namespace, calls, named), len(calls))[-1]


def values_here(namespace: Mapping, call: Call) -> list[torch.Tensor]:
    """What the steps of a call give, of our own programs: their numbers alone, each in one row."""
    reply, out = _recorded(namespace, [call])
    sizes = [math.prod(row["shape"]) for row in reply["traces"][0]["steps"]]
    return list(out["values0"].split(sizes)) if sizes else []


def _recorded(namespace: Mapping, calls: Sequence[Call], named: bool = False) -> tuple[dict, dict]:
    """The steps of calls made in this process, as a `Runner` tells them."""
    sys.modules.setdefault("course_steps", recorder)
    return Runner(dict(namespace)).handle(*to_steps_request(calls, named))


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
    flat = value.detach().double().flatten().numpy()
    if flat.size and flat.min() > HIDES and flat.max() < FAR:  # so for most
        sizes, shown = (flat.size, 0, 0), flat
    else:
        numbers = flat[~np.isnan(flat)]
        shown = numbers[(numbers > HIDES) & (numbers < FAR)]
        if shown.size and np.abs(shown).max() > -HIDES / 10:  # so large that none of them hides
            shown = numbers[np.abs(numbers) < FAR]
        sizes = (flat.size, flat.size - numbers.size, numbers.size - shown.size)
    if not shown.size:
        return (*map(float, sizes), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    square = shown * shown
    sums = shown.sum(), square.sum(), square.dot(shown), shown.dot(_waves(shown.size))
    first, second, third, waves = (float(each) / shown.size for each in sums)
    ends = float(shown.min()), float(shown.max())
    return (*map(float, sizes), first, second, third, *ends, waves)


@lru_cache(maxsize=64)
def _waves(count: int) -> np.ndarray:
    """The weights of the last number of a signature."""
    return np.cos(0.7 * np.arange(1, count + 1))


def alike(one: Signature, two: Signature) -> bool:
    """Whether two steps may hold the same numbers. Means are compared by the usual size of a
    number: by the largest, the weights of any two softmaxes would be alike."""
    if one[:3] != two[:3]:
        return False
    largest = max(abs(two[6]), abs(two[7]), 1e-9)
    for place in (7, 6):  # the ends differ in most
        if abs(one[place] - two[place]) > 4e-4 * largest + 1e-8:
            return False
    usual = math.sqrt(max(two[4], 0))
    means = zip(one[3:6], two[3:6], (usual, usual**2, usual**3), strict=True)
    return all(abs(a - b) <= 4e-4 * size + 1e-8 for a, b, size in means)


def same_order(one: Signature, two: Signature) -> bool:
    """Whether the numbers of two steps that are alike stand in one order, too."""
    return abs(one[8] - two[8]) <= 4e-4 * max(abs(two[6]), abs(two[7]), 1e-9)
