"""Runs instrumented student code and writes down shapes. Loaded by its path inside the sandbox.

Standard library and torch only. What goes in and what comes out is JSON-able; what comes out is a
list of runs, each with what the expressions of each statement were, and the integers and tensors
that had a name there. Everything is described when it is seen (an in-place operation may change it
later), and what repeats itself is kept once.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import math
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

MAX_EVENTS = 60_000  # a run
MAX_KEPT = 24  # different executions of a statement in a run
MAX_FRAMES = 6  # calls of a function in a run
MAX_PARTS = 48
SLOW = 2.0  # seconds of the processor, from which on shapes alone are worked out where they will do
LARGE, IMAGE = 5_000_000, 4  # numbers of a call of which that is known; axes of an image
COMPILER = "torch._dynamo"
MAX_FAILED = 20  # statements of setup and source that are told
MODULE = "course_shapes"


@contextlib.contextmanager
def in_bounds(more: int) -> Iterator[None]:
    """So many bytes more than are in use, and no more, where the system can bound it: a loop may
    make a tensor grow with each round, or a list of all orders of many things. What passes the
    bound stops with a `MemoryError`, or the error that torch raises in its place."""
    try:
        import resource

        page = resource.getpagesize()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * page
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = used + more if soft == resource.RLIM_INFINITY else min(used + more, soft)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def run(job: dict) -> dict:
    """Executes the job's runs; see `autograder.shapes.prepare` for what is in a job."""
    table = _Table()
    runs = []
    with contextlib.redirect_stdout(_Quiet()), contextlib.redirect_stderr(_Quiet()):
        recorder = _Recorder(table, job["owner"])
        namespace, problem, failed = _load(job, recorder)
        slow: dict[int, bool] = {}  # calls that take long: whether shapes alone will do
        if problem is None:
            for config in range(job["configs"]):
                for number, call in enumerate(job["calls"]):
                    runs.append(_one(recorder, namespace, config, number, call, slow))
    return {
        "version": 1,
        "problem": problem,
        "runs": runs,
        "table": table.rows,
        "constants": _integers(namespace),
        "failed": failed[:MAX_FAILED],
    }


def _one(recorder, namespace, config, number, call, slow: dict[int, bool]) -> dict:
    """One run of one call. What takes long is run without numbers, where it does without them and
    is done sooner: a fake tensor has a shape, and raises an error where its numbers are asked for.
    """
    error: BaseException | None = _TakesLong()
    if number not in slow:
        large = _numbers(call, config) > LARGE
        error = error if large else _run(recorder, namespace, config, call, SLOW)
        slow.update({number: True} if isinstance(error, _TakesLong) else {})
    if slow.get(number):
        error = _run_without_numbers(recorder, namespace, config, call)
        slow[number] = error is None
    if error is not None and number in slow:  # it asks for numbers, or would stop with them too
        error = _run(recorder, namespace, config, call)
    told = {**_told(error), "stmt": recorder.last} if error is not None else None
    recorder.stop()
    return {"config": config, "call": number, "error": told, "stmts": recorder.result()}


def _numbers(tree, config: int) -> int:
    """How many numbers the tensors of a call have; those of images for each of their places, which
    an attention over them compares with one another."""
    if not isinstance(tree, dict):
        parts = tree if isinstance(tree, list) else ()
        return sum(_numbers(part, config) for part in parts)
    if tree.get("kind") == "tensor":
        shape = tree["shapes"][config]
        return math.prod(shape) * (math.prod(shape[2:]) if len(shape) >= IMAGE else 1)
    return sum(_numbers(part, config) for part in (*tree.values(),) if part)


def _run_without_numbers(recorder, namespace, config, call) -> BaseException | None:
    """The same with shapes alone. Whether something holds of numbers is not known: first nothing
    does, as where a tensor is looked through for what should not be there; then all does."""
    error = None
    for holds in (False, True):
        alone = functools.partial(FakeTensorMode, allow_non_fake_inputs=True)
        with _without_its_compiler(), alone(), _Answers(holds) as answers:
            torch.rand(1) + 1  # the first of all loads much
            error = _run(recorder, namespace, config, call, SLOW)
        if error is None or not answers.asked:
            break
    return error


class _Answers(TorchFunctionMode):
    """Answers each `if` that asks a tensor alike."""

    def __init__(self, holds: bool):
        super().__init__()
        self.holds, self.asked = holds, False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == "__bool__" and isinstance(args[0], FakeTensor):
            self.asked = True
            return self.holds
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _without_its_compiler():
    """torch loads its compiler, which takes seconds, when the first tensor without numbers is made;
    of that only its settings are needed, and a mark for what is not to be compiled."""
    if COMPILER in sys.modules:
        yield
        return
    sys.modules[COMPILER] = torch._dynamo = _settings_of_the_compiler()
    try:
        yield
    finally:
        del sys.modules[COMPILER], torch._dynamo


@functools.cache
def _settings_of_the_compiler() -> types.ModuleType:
    """A module of the compiler's name, in which its settings are found and nothing is compiled."""
    spec = importlib.util.find_spec(COMPILER)
    module = types.ModuleType(COMPILER)
    module.__path__, module.__spec__ = list(spec.submodule_search_locations), spec
    module.disable = _not_compiled
    return module


def _not_compiled(function, *args, **kwargs):
    return function


def _run(recorder, namespace, config, call, seconds: float | None = None) -> BaseException | None:
    """Records what a call does; what it raised. seconds: of the processor that it may take."""
    recorder.start(seconds)
    torch.manual_seed(0)
    try:
        _make(call, config, namespace)
    except BaseException as problem:  # a student's code may raise anything, SystemExit too
        if isinstance(problem, KeyboardInterrupt):
            raise
        return problem
    return None


class _TakesLong(BaseException):
    """A run takes longer than it may."""


def _told(error: BaseException) -> dict:
    return {"type": type(error).__name__[:80], "message": str(error)[:300]}


def _load(job: dict, recorder: _Recorder) -> tuple[dict, dict | None, list[dict]]:
    """The namespace after setup and source, why there is no entry, and what failed on the way.

    A statement of setup or source that fails is left out.
    """
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    namespace = module.__dict__
    exec(
        compile(
            "import math, torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
            "from torch import Tensor, einsum",
            "setup",
            "exec",
        ),
        namespace,
    )
    namespace[job["names"][0]], namespace[job["names"][1]] = recorder.rec, recorder.at
    problem, failed = None, []
    flags = annotations.compiler_flag if job.get("future") else 0
    for part in [*job["setup"], *job["source"]]:
        try:
            exec(compile(part["text"], part["file"], "exec", flags, dont_inherit=True), namespace)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append({"file": part["file"], "text": part["text"][:300], **_told(error)})
            if part.get("entry"):
                problem = _told(error)
    return namespace, problem, failed


def _make(tree: dict, config: int, namespace: dict):
    kind = tree["kind"]
    if kind == "constant":
        return tree["value"]
    if kind == "size":
        return tree["values"][config]
    if kind in ("list", "tuple", "dict"):
        items = [_make(item, config, namespace) for item in tree["items"]]
        if kind == "dict":
            return dict(zip(tree["keys"], items, strict=True))
        return items if kind == "list" else tuple(items)
    if kind == "tensor":
        shape = tree["shapes"][config]
        dtype = tree.get("dtype", "float")
        if dtype == "ints":
            return torch.randint(max(tree["limits"][config], 1), shape)
        if dtype == "full":
            return torch.full(shape, tree["limits"][config])
        if dtype in ("long", "int"):
            return getattr(torch.zeros(shape), dtype)()
        return getattr(torch.rand(shape), dtype)()
    if kind == "name":
        if tree["name"] in namespace:
            return namespace[tree["name"]]
        if tree["name"][:1].isupper() and "onfig" in tree["name"]:
            return types.SimpleNamespace
        raise NameError(f"name '{tree['name']}' is not defined")
    if kind == "attribute":
        return getattr(_make(tree["of"], config, namespace), tree["name"])
    function = _make(tree["of"], config, namespace)
    args = [_make(a, config, namespace) for a in tree["args"]]
    return function(*args, **{k: _make(v, config, namespace) for k, v in tree["kwargs"].items()})


class _Table:
    """Descriptions, each kept once and known by its number."""

    def __init__(self):
        self.rows: list = []
        self.index: dict = {}

    def number(self, row) -> int:
        key = repr(row)
        found = self.index.get(key)
        if found is None:
            found = self.index[key] = len(self.rows)
            self.rows.append(row)
        return found


class _Recorder:
    """What `rec` and `at` of the instrumented text call."""

    def __init__(self, table: _Table, owner: list[int]):
        self.table, self.owner = table, owner
        self.start()
        self.stop()

    def start(self, seconds: float | None = None) -> None:
        self.active, self.last, self.count = True, -1, 0
        self.until = math.inf if seconds is None else time.process_time() + seconds
        self.open: dict[int, list] = {}
        self.kept: dict[int, list] = {}
        self.calls: dict[int, int] = {}  # of each function, by the number of its `def`
        self.frames: dict[int, int] = {}  # which call of its function a frame is

    def stop(self) -> None:
        self.active = False

    def rec(self, node: int, value):
        """Notes the value of expression `node` and hands it on."""
        if self.active and self.count < MAX_EVENTS:
            execution = self.open.get(self.owner[node])
            row = describe(value) if execution is not None else None
            if row is not None:
                self.count += 1
                execution[0].append((node, self.table.number(row)))
        return value

    def at(self, stmt: int, when: int, names: dict) -> None:
        """A statement begins (`when` = 0) or has just ended (1); a function was entered (2)."""
        if self.active and time.process_time() > self.until:
            raise _TakesLong
        if not self.active or self.count >= MAX_EVENTS:
            return
        frame = id(sys._getframe(1))
        if when == 2:
            self.frames[frame] = self.calls.get(stmt, 0)
            self.calls[stmt] = self.frames[frame] + 1
        call = self.frames.get(frame, 0)
        if call >= MAX_FRAMES:
            return
        self.count += 1
        self.last = stmt
        if len(self.kept.get(stmt, ())) >= MAX_KEPT:  # no other execution of it will be kept
            self.open.pop(stmt, None)
            return
        scope = self.table.number(_scope(names))
        if when == 2:
            self._keep(stmt, [[], scope, scope, call])
        elif when == 1 and stmt in self.open:
            self.open[stmt][2] = scope
            self._keep(stmt, self.open.pop(stmt))
        elif when == 0:
            if stmt in self.open:  # a loop came round, or a return ended the last call
                self._keep(stmt, self.open[stmt])
            self.open[stmt] = [[], scope, None, call]

    def _keep(self, stmt: int, execution: list) -> None:
        kept = self.kept.setdefault(stmt, [])
        if execution not in kept and len(kept) < MAX_KEPT:
            kept.append(execution)

    def result(self) -> dict:
        for stmt in list(self.open):
            self._keep(stmt, self.open.pop(stmt))
        return {str(s): kept for s, kept in self.kept.items()}


def describe(value, depth: int = 0):
    """A JSON-able description of a value that has a shape or is an integer; None for the rest."""
    if isinstance(value, torch.Tensor):
        shape = _shape(value)
        return ["t", shape] if shape is not None else None
    if isinstance(value, torch.nn.Module):
        weight = value.__dict__.get("_parameters", {}).get("weight")
        return ["m", _shape(weight) if isinstance(weight, torch.Tensor) else None]
    if type(value) is int:
        return ["i", value] if abs(value) < 2**53 else None
    no_list = torch.Size | torch.nn.utils.rnn.PackedSequence  # which have no shape, or are one
    if isinstance(value, tuple | list) and not isinstance(value, no_list) and depth < 3:
        parts = [describe(v, depth + 1) for v in value[:MAX_PARTS]]
        return ["s", parts, len(value)] if any(p and p[0] in "ts" for p in parts) else None
    return None


def _shape(tensor) -> list | None:
    """None for the weight of a lazy layer, which has no shape before the first call."""
    try:
        return [int(n) for n in tensor.shape]
    except (RuntimeError, TypeError, ValueError):
        return None


def _scope(names: dict) -> dict:
    """Integers, tensors and weights by the name that the code calls them."""
    found: dict = {}
    for name, value in list(names.items())[:200]:
        row = describe(value)
        if row is not None and row[0] != "m":
            found[name] = row
        elif isinstance(value, torch.nn.Module) or hasattr(value, "__dict__"):
            if isinstance(value, types.ModuleType | types.FunctionType | type):
                continue
            found.update(_attributes(name, value))
    return found


def _attributes(name: str, value) -> dict:
    parts: dict = {}
    for place in (type(value).__dict__, value.__dict__):
        parts.update({k: v for k, v in list(place.items())[:100] if type(v) is int})
    own = value.__dict__
    for store in ("_parameters", "_buffers", "_modules"):
        if isinstance(own.get(store), dict):
            parts.update(own[store])
    parts.update({k: v for k, v in own.items() if isinstance(v, torch.Tensor)})
    if "config" in own and hasattr(own["config"], "__dict__"):
        parts.update({f"config.{k}": v for k, v in vars(own["config"]).items() if type(v) is int})
    rows = {f"{name}.{k}": describe(v) for k, v in list(parts.items())[:200]}
    return {k: row for k, row in rows.items() if row is not None}


def _integers(namespace: dict) -> dict:
    return {k: v for k, v in list(namespace.items())[:500] if type(v) is int and abs(v) < 2**53}


class _Quiet(io.StringIO):
    """Swallows what is printed."""

    def write(self, text: str) -> int:
        return len(text)
