"""The job for the recorder, and what may be believed of its answer.

`job` is made of trusted text only. A recording comes from a process that ran a student's code, so
it is checked for types, lengths and ranges before a word of it is used: a lie in it can only be
about that student's own shapes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from autograder.notation import value_of
from autograder.shapes.plan import Plan
from autograder.shapes.text.names import normal
from autograder.shapes.tracer import Traced, helper_names, trace

MAX_RUNS, MAX_ROWS, MAX_EXECUTIONS, MAX_EVENTS, MAX_RANK = 64, 200_000, 64, 4_000, 12
MAX_SEEN = 2_000_000  # events of a recording

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    shape: Shape


@dataclass(frozen=True)
class Sequence:
    parts: tuple  # Tensor | Sequence | int | None
    length: int


@dataclass
class Execution:
    """One execution of a statement: values in the order they came about, and the names around.

    settled: what `binding.Scope` has found of names so far; the names around do not change.
    """

    config: int
    unit: tuple[int, int]  # which call of the plan, and which call of the function in it
    events: list[tuple[int, object]]
    before: dict[str, object]
    after: dict[str, object]
    finished: bool
    settled: dict[str, tuple[int | None, str]] = field(default_factory=dict, repr=False)

    def last(self, node: int | None):
        """The value an expression had (the last, in a comprehension)."""
        found = [v for n, v in self.events if n == node]
        return found[-1] if found else None

    def size(self, name: str) -> int | None:
        for scope in (self.after, self.before):
            if isinstance(scope.get(name), int):
                return scope[name]
        return None


@dataclass
class Evidence:
    """Executions by statement, and where the code stopped, if it did."""

    executions: dict[int, list[Execution]]
    configs: tuple[int, ...]  # those in which the code ran to its end at least once
    errors: list[dict] = field(default_factory=list)
    problem: dict | None = None
    constants: dict[str, int] = field(default_factory=dict)


class BadRecording(ValueError):
    """The recording is not what the recorder writes."""


def prepare(source: str, plan: Plan, *, setup: str = "") -> dict:
    """A JSON-able job for `record.run`. Raises SyntaxError or ValueError for a bad source."""
    traced = trace(source)
    sizes = [*plan.sizes, *([plan.public] if plan.public else [])]
    return {
        "version": 1,
        "names": list(helper_names(source)),
        "setup": _parts([("", ast.unparse(s)) for s in ast.parse(setup).body], "setup", ()),
        "source": _parts(traced.parts, "source", plan.entries),
        "future": traced.future,
        "owner": [n.stmt for n in traced.nodes],
        "configs": len(sizes),
        "calls": [_filled(call, sizes) for call in plan.calls],
    }


def _parts(parts: list[tuple[str, str]], file: str, entries: tuple[str, ...]) -> list[dict]:
    return [{"text": t, "file": f"<{file}>", "entry": n in entries} for n, t in parts]


def _filled(tree: dict, sizes: list[dict[str, int]]) -> dict:
    """The call with every size in numbers, one for each run."""
    filled = dict(tree)
    if tree["kind"] == "size":
        filled["values"] = [value_of(tree["expr"], s) for s in sizes]
    elif tree["kind"] == "tensor":
        filled["shapes"] = [[value_of(d, s) for d in tree["dims"]] for s in sizes]
        if "below" in tree:
            filled["limits"] = [value_of(tree["below"], s) for s in sizes]
            filled["dtype"] = "full" if tree["dtype"] == "full" else "ints"
    elif tree["kind"] in ("list", "tuple", "dict"):
        filled["items"] = [_filled(t, sizes) for t in tree["items"]]
    elif tree["kind"] in ("call", "attribute"):
        filled["of"] = _filled(tree["of"], sizes)
        filled["args"] = [_filled(t, sizes) for t in tree.get("args", [])]
        filled["kwargs"] = {k: _filled(t, sizes) for k, t in tree.get("kwargs", {}).items()}
    return filled


def read_recording(recording: object, traced: Traced, configs: int) -> Evidence:
    """Checks a recording and sorts it by statement. Raises BadRecording."""
    try:
        return _read(recording, traced, configs)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadRecording(f"not a recording: {type(error).__name__}") from None


def _read(recording, traced: Traced, configs: int) -> Evidence:
    rows, runs = recording["table"], recording["runs"]
    _demand(isinstance(rows, list) and len(rows) <= MAX_ROWS, "table")
    _demand(isinstance(runs, list) and len(runs) <= MAX_RUNS, "runs")
    values = [_value(row) for row in rows]
    executions: dict[int, list[Execution]] = {}
    ok, errors, seen = set(), [], 0
    for run in runs:
        config, call = run["config"], run["call"]
        _demand(type(config) is int and 0 <= config < configs, "config")
        _demand(type(call) is int and 0 <= call < MAX_RUNS, "call")
        if run["error"] is None:
            ok.add(config)
        else:
            errors.append({"config": config, **_error(run["error"], len(traced.stmts))})
        for key, kept in run["stmts"].items():
            stmt = int(key)
            _demand(0 <= stmt < len(traced.stmts) and len(kept) <= MAX_EXECUTIONS, "statement")
            for events, before, after, frame in kept:
                seen += len(events)
                _demand(seen <= MAX_SEEN and type(frame) is int, "events")
                executions.setdefault(stmt, []).append(
                    Execution(
                        config,
                        (call, frame),
                        [_event(e, values, traced, stmt) for e in events[:MAX_EVENTS]],
                        _names(values, before),
                        _names(values, after),
                        after is not None,
                    )
                )
    problem = recording.get("problem")
    constants = {str(k): v for k, v in recording.get("constants", {}).items() if type(v) is int}
    return Evidence(
        {s: _distinct(e) for s, e in executions.items()},
        tuple(sorted(ok)),
        errors,
        _error(problem, len(traced.stmts)) if problem else None,
        constants,
    )


def _event(event, values: list, traced: Traced, stmt: int) -> tuple[int, object]:
    node, row = event
    _demand(type(node) is int and 0 <= node < len(traced.nodes), "node")
    _demand(traced.nodes[node].stmt == stmt and type(row) is int and row >= 0, "owner")
    return node, values[row]


def _names(values: list, row) -> dict:
    if row is None:
        return {}
    _demand(type(row) is int and row >= 0 and isinstance(values[row], dict), "names")
    return values[row]


def _value(row, depth: int = 0):
    if isinstance(row, dict):
        _demand(depth == 0 and len(row) <= 5_000, "names")
        return {str(k)[:100]: _value(v, 1) for k, v in row.items()}
    if row is None:
        return None
    kind, content = row[0], row[1]
    if kind == "i":
        _demand(type(content) is int, "integer")
        return content
    if kind in ("t", "m"):
        if content is None:
            return None
        _demand(
            len(content) <= MAX_RANK and all(type(n) is int and n >= 0 for n in content), "shape"
        )
        return Tensor(tuple(content)) if kind == "t" else Weight(tuple(content))
    if kind == "s":
        _demand(depth < 5 and len(content) <= 64 and type(row[2]) is int, "sequence")
        return Sequence(tuple(_value(p, depth + 1) for p in content), row[2])
    raise BadRecording(f"unknown kind {str(kind)[:20]!r}")


@dataclass(frozen=True)
class Weight:
    """A module, by the shape of its weight."""

    shape: Shape


def _error(error: dict, stmts: int) -> dict:
    stmt = error.get("stmt", -1)
    return {
        "type": str(error["type"])[:80],
        "message": str(error["message"])[:300],
        "stmt": stmt if type(stmt) is int and 0 <= stmt < stmts else None,
    }


def _distinct(executions: list[Execution]) -> list[Execution]:
    seen, kept = set(), []
    for e in executions:
        key = repr((e.config, e.unit, e.events, e.before, e.after))
        if key not in seen:
            seen.add(key)
            kept.append(e)
    return kept


def _demand(condition: bool, what: str) -> None:
    if not condition:
        raise BadRecording(f"not a recording: {what}")


def tensors(value) -> list[Shape]:
    """The shapes of every tensor in a value, in order."""
    if isinstance(value, Tensor):
        return [value.shape]
    if isinstance(value, Sequence):
        return [s for p in value.parts for s in tensors(p)]
    return []


def wholes(value) -> list[list[tuple[int, ...]]]:
    """The shapes of a value; and of a list of like tensors, with its length before or behind; of
    lists in a list with all lengths before."""
    shapes = tensors(value)
    if not isinstance(value, Sequence) or len(set(shapes)) != 1:
        return [shapes]
    whole = _nested(value) or ()
    nested = [[whole]] if len(whole) > len(shapes[0]) + 1 else []
    return [shapes, [(value.length, *shapes[0])], [(*shapes[0], value.length)], *nested]


def _nested(value) -> Shape | None:
    """The shape of like lists of like tensors, as if they were one tensor."""
    if not isinstance(value, Sequence):
        return value.shape if isinstance(value, Tensor) else None
    inner = {_nested(part) for part in value.parts}
    one = inner.pop() if len(inner) == 1 else None
    return None if one is None else (value.length, *one)


def hides(value) -> bool:
    """Whether the first of several results has no shape that can be seen: packed sequences."""
    return isinstance(value, Sequence) and value.length > 1 and value.parts[:1] == (None,)


# --- what executions tell -------------------------------------------------------------------------
def arguments(built: list[Execution]) -> dict[int, dict[str, int]]:
    """The integers among the arguments, by configuration, where they were always the same."""
    found: dict[int, dict[str, int | None]] = {}
    for execution in built:
        known = found.setdefault(execution.config, {})
        for name, value in execution.after.items():
            if isinstance(value, int) and "." not in name:
                plain = normal(name)
                known[plain] = value if known.get(plain, value) == value else None
    return {c: {n: v for n, v in k.items() if v is not None} for c, k in found.items()}


def different_units(runs: dict[int, list[Execution]]) -> list[tuple[int, int]]:
    """The calls of a function that differ, the first of each kind."""
    seen: dict[tuple[int, int], list] = {}
    for i, executions in runs.items():
        for e in executions:
            seen.setdefault(e.unit, []).append((i, e.config, e.events, e.before, e.after))
    first: dict[str, tuple[int, int]] = {}
    for unit in sorted(seen):
        first.setdefault(repr(seen[unit]), unit)
    return list(first.values())


def names_seen(executions: list[Execution]) -> tuple[set[str], set[str]]:
    """The names of tensors, and those of sizes."""
    made, sizes = set(), set()
    for execution in executions:
        for name, value in [*execution.before.items(), *execution.after.items()]:
            if isinstance(value, int):
                sizes |= {name, normal(name)}
            elif tensors(value):
                made.add(name)
    return made, sizes
