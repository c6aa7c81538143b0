"""Runs a student's cells and calls what they define; the only module of ours beside student code.

It stands alone (standard library and torch only), because it is loaded by file path where the rest
of `autograder` must not be: inside the sandbox. In a notebook the same code calls the student's
functions in place. It decides nothing: it is told what to call and says what happened.

A request is a JSON header and a dict of tensors; `Runner.handle` answers with the same pair.
Values cross as plain JSON in which `{"$tensor": key}` stands for a tensor of the dict.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import importlib
import inspect
import io
import linecache
import math
import sys
import traceback
import types
from collections.abc import Mapping, Sequence

import torch

AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CELL_FILE = "<cell {}>"
MAX_TEXT = 500
MAX_ITEMS = 10_000
MAX_DEPTH = 12
MAX_PRINTED = 20_000
MAX_PICTURES = 6
MAX_HELD = 20  # tensors that are shown of a call which an error stopped
MAX_HELD_SIZE = 5_000


# --- values that cross the wall ------------------------------------------------------------------
def encode(value, tensors: dict[str, torch.Tensor], depth: int = 0):
    """`value` as JSON; tensors and arrays go into `tensors` and leave `{"$tensor": key}` behind.

    What is not plain data is named, not sent: `{"$other": "module.Type"}`.
    """
    if depth > MAX_DEPTH:
        return {"$other": "data nested too deeply"}
    if value is None or type(value) in (bool, int, str):
        return value if not isinstance(value, str) else value[: 20 * MAX_TEXT]
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value).__module__ == "numpy":
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            value = torch.as_tensor(value)
    if isinstance(value, torch.Tensor):
        plain = value.detach().to("cpu").to_dense().clone().contiguous()
        if type(plain) is not torch.Tensor:
            plain = plain.as_subclass(torch.Tensor)
        key = f"t{len(tensors)}"
        tensors[key] = plain
        return {"$tensor": key}
    if isinstance(value, Mapping):
        items = list(value.items())[:MAX_ITEMS]
        return {"$dict": [[str(k)[:MAX_TEXT], encode(v, tensors, depth + 1)] for k, v in items]}
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (bytes, bytearray)):
        kind = "$tuple" if isinstance(value, tuple) else "$list"
        return {kind: [encode(v, tensors, depth + 1) for v in list(value)[:MAX_ITEMS]]}
    return {"$other": f"{type(value).__module__}.{type(value).__qualname__}"[:MAX_TEXT]}


def decode(value, tensors: Mapping[str, torch.Tensor], make: Mapping | None = None):
    """The inverse of `encode`. `make` says how to make what is more than data (see `MAKERS`)."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "$tensor":
            return tensors[content]
        case "$float":
            return float(content)
        case "$tuple":
            return tuple(decode(v, tensors, make) for v in content)
        case "$list":
            return [decode(v, tensors, make) for v in content]
        case "$dict":
            return {k: decode(v, tensors, make) for k, v in content}
        case "$other":
            return Other(content)
    if make and kind in make:
        return make[kind](content, tensors)
    raise ValueError(f"unknown kind of value: {kind}")


class Other:
    """Something a student returned that is not plain data; only its type's name crosses."""

    def __init__(self, name: str):
        self.name = name


def _namespace(content: list, tensors: Mapping[str, torch.Tensor]):
    """An object with these attributes."""
    return types.SimpleNamespace(**{k: decode(v, tensors, MAKERS) for k, v in content})


def _made(content: dict, tensors: Mapping[str, torch.Tensor]):
    """What a function of the course's library makes of these values."""
    module, _, name = content["by"].partition(":")
    make = getattr(importlib.import_module(module), name)
    return make(**{k: decode(v, tensors, MAKERS) for k, v in content["values"]})


# Arguments that the trusted side may send; a reply may hold data only.
MAKERS = {"$namespace": _namespace, "$made": _made}


# --- running -------------------------------------------------------------------------------------
class Runner:
    """One namespace of student code, and the requests it answers."""

    def __init__(self, namespace: dict | None = None):
        if namespace is None:
            module = types.ModuleType("__main__")
            module.__builtins__ = builtins
            sys.modules["__main__"] = module
            namespace = module.__dict__
        self.namespace = namespace
        self.objects: dict[str, object] = {}
        self.watch = contextlib.nullcontext()  # stands around the answer's code, for `steps`
        self.last: object = None  # what the last call returned, for `steps`

    def handle(self, header: dict, tensors: dict) -> tuple[dict, dict]:
        """Answers one request: `load` cells, `call` what they define, record their `shapes` or
        their `steps`, or `show` what a cell prints and draws."""
        match header["op"]:
            case "load":
                return {"errors": [self.run_cell(cell) for cell in header["cells"]]}, {}
            case "call":
                out: dict[str, torch.Tensor] = {}
                return {"outcomes": [self.call(c, tensors, out) for c in header["calls"]]}, out
            case "shapes":
                return {"recording": sys.modules["course_record"].run(header["job"])}, {}
            case "steps":
                return sys.modules["course_steps"].run(self, header, tensors)
            case "show":
                return self.show(header["cell"])
        raise ValueError(f"unknown request: {header['op']!r}")

    def show(self, cell: dict) -> tuple[dict, dict]:
        """Runs one cell as a notebook does: its printed text with its last value, its error, and
        its figures as the bytes of PNG files."""
        printed = _Printed()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            error = self.run_cell(cell, last="single")
            pictures = {f"figure {i}": png for i, png in enumerate(_pictures())}
        return {"text": printed.getvalue(), "error": error}, pictures

    def run_cell(self, cell: dict, last: str = "exec") -> dict | None:
        """Executes one cell in the namespace; what stopped it, or None. last: 'single' prints the
        value of the last line, as a notebook does."""
        filename = CELL_FILE.format(cell["id"])
        source = cell["source"]
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        try:
            for part, mode in _parts(source, last):
                code = compile(part, filename, mode, AWAIT, dont_inherit=True)
                pending = eval(code, self.namespace)
                if inspect.iscoroutine(pending):  # the cell awaits something, as notebooks allow
                    asyncio.run(pending)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the student's too
            return describe(error)
        return None

    def call(self, call: dict, tensors: Mapping, out: dict) -> dict:
        """Builds (where asked), loads weights, calls, and reports what came back."""
        outcome: dict = {}
        modules: list = []
        try:
            if call["name"] not in self.namespace and call.get("on") not in self.objects:
                return {"error": _missing(call["name"], self.namespace)}
            if call.get("seed") is not None:
                torch.manual_seed(call["seed"])
            target, parameters = self._target(call, tensors, outcome)
            if call.get("inspect"):
                outcome["value"] = None
                return outcome
            args = [_own(decode(a, tensors, MAKERS)) for a in call["args"]]
            kwargs = {k: _own(decode(v, tensors, MAKERS)) for k, v in call["kwargs"].items()}
            inputs = [a for a in args if isinstance(a, torch.Tensor)]
            before = [a.clone() for a in inputs]
            modules = [(m, _state(m)) for m in args if isinstance(m, torch.nn.Module)]
            if call.get("work"):
                value, outcome["work"] = _counted(target, args, kwargs)
            elif call.get("gradients"):
                inputs = [a.requires_grad_() if a.is_floating_point() else a for a in inputs]
                with torch.enable_grad():  # a cell may have switched them off for all that follows
                    value = target(*args, **kwargs)
                    outcome["gradients"] = encode(_gradients(value, inputs, parameters), out)
            else:
                with self.watch:
                    value = target(*args, **kwargs)
            self.last = value
            outcome["value"] = encode(value, out)
            outcome["changed"] = [
                i for i, (a, b) in enumerate(zip(inputs, before, strict=True)) if not _same(a, b)
            ]
        except BaseException as error:
            outcome["error"] = describe(error)
            outcome["held"] = _held(error, out)
        outcome["left"] = sorted({trace for m, state in modules for trace in _left(m, state)})
        return outcome

    def _target(self, call: dict, tensors: Mapping, outcome: dict):
        """What to call: the function itself, or the object built (once, if it has a name)."""
        found = self.objects.get(call.get("on") or "")
        if found is None:
            found = self.namespace[call["name"]]
            if call.get("build") is not None:
                args = [decode(a, tensors, MAKERS) for a in call["build"]["args"]]
                kwargs = call["build"]["kwargs"].items()
                kwargs = {k: decode(v, tensors, MAKERS) for k, v in kwargs}
                mends = call.get("mend")
                found = _mended(found, args, kwargs) if mends else found(*args, **kwargs)
            if call.get("on"):
                self.objects[call["on"]] = found
        parameters = {}
        if isinstance(found, torch.nn.Module):
            parameters = _parameters(found)
            outcome["parameters"] = {n: list(p.shape) for n, p in parameters.items()}
            outcome["buffers"] = {n: list(b.shape) for n, b in found.named_buffers()}
            outcome["state"] = list(found.state_dict())
        if call.get("mend"):
            _put_layers(found, call["weights"], tensors)
        if call.get("weights"):
            outcome["unset"] = _set_weights(found, call["weights"], tensors)
            parameters = _parameters(found)
        if isinstance(found, torch.nn.Module):
            found.train(bool(call.get("train")))
        for name in call["method"].split(".") if call.get("method") else ():
            found = getattr(found, name)
        return found, parameters


def _counted(target, args: list, kwargs: dict) -> tuple:
    """What a call gives, and the work that it did. In the sandbox the counter has another name."""
    counter = sys.modules.get("course_work")
    counter = counter or importlib.import_module("autograder.sandbox.inside.work")
    with counter.Work() as work:
        value = target(*args, **kwargs)
    return value, work.told()


def _held(error: BaseException, out: dict) -> list[str]:
    """The tensors in the student's variables where an error came up, the last made first."""
    found: dict[int, torch.Tensor] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith("<cell "):
            for value in frame.f_locals.values():
                if type(value) is torch.Tensor and value.numel() <= MAX_HELD_SIZE:
                    found[id(value)] = value
    last = list(found.values())[: -MAX_HELD - 1 : -1]
    return [encode(value, out)["$tensor"] for value in last]


def _parts(source: str, last: str) -> list[tuple]:
    """What to compile of a cell, and how: with 'single' its last line on its own."""
    if last == "single":
        tree = ast.parse(source)
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            value = ast.Interactive([tree.body.pop()])
            return [(tree, "exec"), (value, "single")]
    return [(source, "exec")]


class _Printed(io.StringIO):
    """Keeps the first characters that are printed."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, MAX_PRINTED - self.tell())])
        return len(text)


def _pictures() -> list[torch.Tensor]:
    """The open figures as PNG files, of uint8[bytes]; closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    figures = list(map(pyplot.figure, pyplot.get_fignums())) if pyplot else []
    pictures = []
    for figure in figures[:MAX_PICTURES]:
        with contextlib.suppress(Exception):  # a figure that cannot be drawn is not shown
            file = io.BytesIO()
            figure.savefig(file, format="png", bbox_inches="tight")
            pictures.append(torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8))
    if pyplot:
        pyplot.close("all")
    return pictures


def _own(value):
    """A copy of a tensor, so that a call that edits its input spoils no later call."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _state(module: torch.nn.Module) -> tuple:
    """What a call must leave as it found it in a module that it was given."""
    weights = {name: w.detach().clone() for name, w in module.state_dict().items()}
    return weights, module.training, _hooks(module)


def _hooks(module: torch.nn.Module) -> int:
    """How many forward hooks the parts carry; those of transformers itself do not count."""
    found = [
        hook
        for part in module.modules()
        for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
    ]
    return sum(not str(getattr(h, "__module__", "")).startswith("transformers.") for h in found)


def _left(module: torch.nn.Module, state: tuple) -> list[str]:
    """What a call left behind in a module: hooks, other weights, training mode."""
    weights, training, hooks = state
    now = module.state_dict()
    left = ["a hook"] if _hooks(module) > hooks else []
    if now.keys() != weights.keys() or not all(_same(now[n], w) for n, w in weights.items()):
        left.append("changed weights")
    if module.training != training:
        left.append("another mode")
    return left


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a.detach().nan_to_num(), b.nan_to_num()))


def _mended(kind, args: list, kwargs: dict):
    """An object of a module class, as far as its __init__ gets."""
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        return kind(*args, **kwargs)
    made = kind.__new__(kind)
    torch.nn.Module.__init__(made)
    with contextlib.suppress(Exception):
        made.__init__(*args, **kwargs)
    return made


def _put_layers(target, weights: dict, tensors: Mapping) -> None:
    """Gives each layer that is named in the weights a weight and a bias of the right shape.

    An `nn.Linear` is changed in place, for it may have a second name; what is none, or was given
    weights under another name already, makes way for one.
    """
    used = set()
    for path in weights:
        *parents, name, kind = path.split(".")
        holder = target
        for parent in parents:
            holder = getattr(holder, parent, None)
        if kind != "weight" or not isinstance(holder, torch.nn.Module):
            continue
        layer = getattr(holder, name, None)
        if not isinstance(layer, torch.nn.Linear) or id(layer) in used:
            layer = torch.nn.Linear(1, 1)
            setattr(holder, name, layer)
        used.add(id(layer))
        weight = decode(weights[path], tensors)
        layer.out_features, layer.in_features = weight.shape
        layer.weight = torch.nn.Parameter(torch.zeros_like(weight))
        layer.bias = torch.nn.Parameter(weight.new_zeros(len(weight)))


def _set_weights(target, weights: dict, tensors: Mapping) -> dict:
    """Sets tensors by attribute path (`q.weight`); returns those that could not be set, and why."""
    unset, seen = {}, {}
    for path, reference in weights.items():
        tensor = decode(reference, tensors).clone()
        *parents, last = path.split(".")
        holder = target
        for i, name in enumerate(parents):
            holder = getattr(holder, name, None)
            if holder is None:
                unset[path] = f"no attribute {'.'.join(parents[: i + 1])!r}"
                break
        else:
            old = getattr(holder, last, None)
            if not isinstance(old, torch.Tensor):
                unset[path] = f"no {last!r}" if old is None else f"{last!r} is not a tensor"
            elif old.shape != tensor.shape:
                unset[path] = f"shape {list(old.shape)}, not {list(tensor.shape)}"
            else:
                old.data = tensor
                if id(old) in seen:
                    unset[path] = f"the same tensor as {seen[id(old)]!r}"
                seen.setdefault(id(old), path)
    return unset


def _parameters(module: torch.nn.Module) -> dict:
    """All parameters under all their names: a layer may be kept in a list too."""
    return dict(module.named_parameters(remove_duplicate=False))


def _gradients(value, inputs: list, parameters: Mapping) -> dict:
    """Gradients of a fixed weighted sum of the output, for each input and parameter."""
    tensor = value[0] if isinstance(value, (tuple, list)) else value
    weight = torch.arange(1, tensor.numel() + 1, dtype=tensor.dtype).reshape(tensor.shape)
    weight = torch.sin(weight)
    wanted = {f"input {i}": a for i, a in enumerate(inputs) if a.is_floating_point()}
    wanted.update(parameters)
    if not tensor.requires_grad:
        return dict.fromkeys(wanted)
    grads = torch.autograd.grad((tensor * weight).sum(), list(wanted.values()), allow_unused=True)
    return dict(zip(wanted, grads, strict=True))


def _missing(name: str, namespace: Mapping) -> dict:
    own = [k for k, v in namespace.items() if not k.startswith("_") and callable(v)]
    return {
        "kind": "missing",
        "type": "NameError",
        "message": name,
        "names": own[-40:],
        "line": None,
        "statement": "",
    }


def describe(error: BaseException) -> dict:
    """An exception as plain data: type, text, and the line of the student's cell it is about."""
    line, statement, cell = None, "", ""
    if isinstance(error, SyntaxError) and (error.filename or "").startswith("<cell "):
        line, statement, cell = error.lineno, (error.text or "").strip(), error.filename
    else:
        for frame in traceback.extract_tb(error.__traceback__, limit=200):
            if frame.filename.startswith("<cell "):
                line, statement, cell = frame.lineno, frame.line or "", frame.filename
    try:
        message = str(error)[:MAX_TEXT]
    except BaseException:
        message = ""
    return {
        "kind": "raised",
        "type": type(error).__name__[:MAX_TEXT],
        "message": message,
        "line": line,
        "statement": str(statement)[:MAX_TEXT],
        "cell": cell[6:-1],
    }
