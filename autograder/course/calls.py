"""What a check asks of a student's code, and what came of it: plain data on both sides of the wall.

A `Call` says what to build and call with which tensors; an `Observation` holds one `Outcome` a
call. Both are made of numbers, text and tensors only, so that they can cross into the sandbox.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.sandbox.inside.runner import MAX_HELD, Runner
from autograder.sandbox.inside.sandbox_modules import Kept
from autograder.sandbox.inside.sandbox_values import decode, encode
from autograder.sandbox.inside.sandbox_wire import Failure

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@dataclass(frozen=True)
class Namespace:
    """An argument that the student's code sees as an object with these attributes."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """An argument that is made on the student's side, by a function of the course's library.

    by: 'module:function'. values: its keyword arguments, as plain data and tensors.
    """

    by: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One call of a function, or of an object built from a class.

    name: the function or class in the student's namespace. init: the class's arguments, or None
    for a function. weights: tensors by attribute path. on: a label under which the object is kept
    for later calls. method: a method or a part to call, by default the object itself. train: in
    training mode. seed: set before the call. gradients: also return gradients. work: count the
    work that it does (instead of gradients). inspect: build only. mend: build
    even where `__init__` stops with an error, and put right layers in these places.
    says: what is tried, in words ('3 sequences of 5 tokens').
    """

    name: str
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    init: tuple | None = None
    init_kwargs: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)
    on: str | None = None
    method: str | None = None
    train: bool = False
    seed: int | None = None
    gradients: bool = False
    work: bool = False
    inspect: bool = False
    mend: tuple[str, ...] = ()
    says: str = ""

    def double(self) -> Call:
        """The same call with every floating tensor in float64, for a reference."""
        return replace(
            self,
            args=tuple(_double(a) for a in self.args),
            kwargs={k: _double(v) for k, v in self.kwargs.items()},
            init=None if self.init is None else tuple(_double(a) for a in self.init),
            weights={k: _double(v) for k, v in self.weights.items()},
        )


@dataclass(frozen=True)
class Outcome:
    """What one call came to: a value, or the error that stopped it."""

    value: Any = None
    error: Mapping[str, Any] | None = None
    parameters: Mapping[str, tuple] = field(default_factory=dict)
    buffers: Mapping[str, tuple] = field(default_factory=dict)
    state: tuple[str, ...] = ()
    unset: Mapping[str, str] = field(default_factory=dict)
    gradients: Any = None
    after: Mapping[str, Any] = field(default_factory=dict)  # arguments that it changed in place
    left: tuple[str, ...] = ()  # what was left behind in a model that was given: hooks, weights
    work: Mapping[str, Any] = field(default_factory=dict)  # where asked for: see `read_work`
    held: tuple[torch.Tensor, ...] = ()  # where an error stopped it: what its variables held

    @property
    def missing(self) -> bool:
        """Whether there is nothing of the name that was to be called."""
        return self.error is not None and self.error["kind"] == Failure.MISSING


@dataclass(frozen=True)
class Observation:
    """All that was seen of one question: what stopped the cell, or one outcome a call."""

    outcomes: tuple[Outcome, ...] = ()
    error: Mapping[str, Any] | None = None  # the cell itself did not run, or the child died
    source: str = ""  # the student's cell
    alone: bool = False  # seen without the student's own cells, one of which ended the child
    again: Any = None  # what else was seen in the same child
    right: bool = False  # known to be right already


def _double(value):
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.to(torch.complex128) if value.is_complex() else value.double()
    if isinstance(value, Made):
        return replace(value, values=_double(dict(value.values)))
    if isinstance(value, (list, tuple)):
        return type(value)(_double(v) for v in value)
    if isinstance(value, dict):
        return {k: _double(v) for k, v in value.items()}
    return value


def _wire(value, tensors: dict):
    """As `encode`, for the arguments that only we send."""
    if isinstance(value, Namespace):
        return {"$namespace": [[k, _wire(v, tensors)] for k, v in value.values.items()]}
    if isinstance(value, Made):
        values = [[k, _wire(v, tensors)] for k, v in value.values.items()]
        return {"$made": {"by": value.by, "values": values}}
    return encode(value, tensors)


def to_request(calls: list[Call]) -> tuple[dict, dict[str, torch.Tensor]]:
    """The header and tensors that ask a `Runner` for these calls."""
    tensors: dict[str, torch.Tensor] = {}
    wired = []
    for call in calls:
        build = None
        if call.init is not None:
            build = {
                "args": [_wire(a, tensors) for a in call.init],
                "kwargs": {k: _wire(v, tensors) for k, v in call.init_kwargs.items()},
            }
        wired.append(
            {
                "name": call.name,
                "build": build,
                "args": [_wire(a, tensors) for a in call.args],
                "kwargs": {k: _wire(v, tensors) for k, v in call.kwargs.items()},
                "weights": {k: _wire(v, tensors) for k, v in call.weights.items()},
                **{k: getattr(call, k) for k in ("on", "method", "train", "seed")},
                **{k: getattr(call, k) for k in ("gradients", "work", "inspect")},
                "mend": list(call.mend),
            }
        )
    return {"op": "call", "calls": wired}, tensors


def from_reply(header: Mapping, tensors: Mapping, count: int) -> tuple[Outcome, ...]:
    """Outcomes out of a reply; raises ValueError where the reply is not what was asked for."""
    raw = header.get("outcomes")
    if not isinstance(raw, list) or len(raw) != count:
        raise ValueError(f"asked for {count} outcomes, got something else")
    try:
        return tuple(_outcome(o, tensors) for o in raw)
    except (AttributeError, LookupError, RuntimeError, TypeError) as error:
        raise ValueError(f"an outcome is not readable ({type(error).__name__})") from None


def _outcome(raw: Mapping, tensors: Mapping) -> Outcome:
    error = raw.get("error")
    if error is not None:
        error = clean_error(error)
    return Outcome(
        value=decode(raw.get("value"), tensors),
        error=error,
        parameters={str(k): tuple(map(int, v)) for k, v in (raw.get("parameters") or {}).items()},
        buffers={str(k): tuple(map(int, v)) for k, v in (raw.get("buffers") or {}).items()},
        state=tuple(map(str, raw.get("state") or ())),
        unset={str(k): str(v)[:200] for k, v in (raw.get("unset") or {}).items()},
        gradients=decode(raw.get("gradients"), tensors),
        after={str(k)[:100]: decode(v, tensors) for k, v in (raw.get("after") or {}).items()},
        left=tuple(str(each)[:100] for each in list(raw.get("left") or ())[:10]),
        work=read_work(raw.get("work") or {}),
        held=tuple(tensors[key] for key in list(raw.get("held") or ())[:MAX_HELD]),
    )


def read_work(raw: Mapping) -> dict:
    """The work of a call, as the other side counted it, with every field of the type we expect.

    flops and exponentials: numbers. made: (dtype, shape, count) of the tensors made, the largest
    first. kernels: how often each was called. Empty where nothing was counted.
    """
    if not raw:
        return {}
    return {
        "flops": int(raw["flops"]),
        "exponentials": int(raw["exponentials"]),
        "made": [(str(d), tuple(map(int, shape)), int(n)) for d, shape, n in raw["made"]],
        "kernels": {str(name): int(n) for name, n in raw["kernels"].items()},
    }


def clean_error(error: Mapping) -> dict:
    """An error that came from the other side, with every field of the type we expect."""
    line = error.get("line")
    return {
        "kind": _kind(error.get("kind")),
        "type": str(error.get("type", ""))[:100],
        "message": str(error.get("message", ""))[:500],
        "line": line if isinstance(line, int) and 0 < line < 1_000_000 else None,
        "statement": str(error.get("statement", ""))[:500],
        "cell": str(error.get("cell", ""))[:100],
        "names": [str(n)[:100] for n in list(error.get("names") or [])[:40]],
    }


def _kind(said: object) -> Failure:
    try:
        return Failure(said)
    except ValueError:
        return Failure.RAISED


PACKED = ("name", "on", "method", "train", "seed", "gradients", "work", "inspect", "says")


def pack_call(call: Call, tensors: dict[str, torch.Tensor]) -> dict:
    """A call as plain data, to be written down; its tensors go into `tensors`."""
    values = {"args": call.args, "kwargs": dict(call.kwargs), "init": call.init}
    values |= {"init_kwargs": dict(call.init_kwargs), "weights": dict(call.weights)}
    return {
        **{name: getattr(call, name) for name in PACKED},
        **{name: _packed(value, tensors) for name, value in values.items()},
    }


def _packed(value, tensors: dict):
    """As `_wire`, down into lists and dicts, which may hold what is made on the other side."""
    if isinstance(value, (Made, Namespace)):
        return _wire(value, tensors)
    if isinstance(value, dict):
        items = encode(dict.fromkeys(value), {})["$dict"]  # the keys as they are written
        return {
            "$dict": [
                [k, _packed(v, tensors)] for (k, _), v in zip(items, value.values(), strict=True)
            ]
        }
    if isinstance(value, (list, tuple)):
        kind = "$tuple" if isinstance(value, tuple) else "$list"
        return {kind: [_packed(v, tensors) for v in value]}
    return encode(value, tensors)


def unpack_call(packed: Mapping, tensors: Mapping[str, torch.Tensor]) -> Call:
    """The inverse of `pack_call`."""
    names = ("args", "kwargs", "init", "init_kwargs", "weights")
    values = {name: decode(packed[name], tensors, UNPACK) for name in names}
    return Call(**{name: packed[name] for name in PACKED}, **values)


def _unpack_namespace(content: list, tensors: Mapping) -> Namespace:
    return Namespace({k: decode(v, tensors, UNPACK) for k, v in content})


def _unpack_made(content: Mapping, tensors: Mapping) -> Made:
    values = {k: decode(v, tensors, UNPACK) for k, v in content["values"]}
    return Made(content["by"], values)


UNPACK = {"$namespace": _unpack_namespace, "$made": _unpack_made}


def run_here(namespace: dict, calls: list[Call], kept: Kept | None = None) -> tuple[Outcome, ...]:
    """Runs the calls in this process: for references, and in a student's own notebook.

    kept: the models that were made for calls before, where programs of ours are called alone.
    """
    header, tensors = to_request(calls)
    runner = Runner(namespace)
    runner.kept = kept
    reply, out = runner.handle(header, tensors)
    return from_reply(reply, out, len(calls))


class Draw:
    """Random sizes and tensors from one seed. A check draws all it needs from here."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed % 2**63)

    def sizes(self, count: int, low: int = 2, high: int = 13, other_than=()) -> list[int]:
        """`count` pairwise different primes between low and high, in random order.

        other_than: sizes that are taken. Where the primes do not suffice, larger ones follow.
        """
        free = [p for p in _PRIMES if p >= low and p not in other_than]
        small = [p for p in free if p <= high]
        return self.random.sample(small if len(small) >= count else free[:count], count)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self.random.randint(low, high)

    def choice(self, items):
        """One of the items."""
        return self.random.choice(list(items))

    def normal(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Independent N(0, scale^2) numbers of that shape."""
        return torch.randn(shape, generator=self.generator) * scale

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Independent numbers between low and high of that shape."""
        return torch.rand(shape, generator=self.generator) * (high - low) + low

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Independent whole numbers in [low, high) of that shape."""
        return torch.randint(low, high, shape, generator=self.generator)

    def seed(self) -> int:
        """A seed for the student's side, for calls that draw random numbers there."""
        return self.random.randrange(2**31)

    def linear(self, name: str, inputs: int, outputs: int, bias: bool = True) -> dict:
        """Weights for an `nn.Linear(inputs, outputs)` under that attribute name."""
        bound = 1 / math.sqrt(inputs)
        weights = {f"{name}.weight": self.normal(outputs, inputs, scale=1.5 * bound)}
        if bias:
            weights[f"{name}.bias"] = self.normal(outputs, scale=0.5)
        return weights
