"""Runs a student's cells and calls what they define.

It is loaded by file path where the rest of `autograder` must not be: inside the sandbox. In a
notebook the same code calls the student's functions in place. It decides nothing: it is told what
to call and says what happened.

A request is a JSON header and a dict of tensors; `Runner.handle` answers with the same pair.
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
import sys
import traceback
import types
from collections.abc import Mapping
from functools import partial

import torch

if __package__:
    from . import sandbox_modules as modules
    from .sandbox_values import MAKERS, MAX_TEXT, copied, decode, encode, has_numbers, same
else:  # in the sandbox, where the engine is not
    import sandbox_modules as modules
    from sandbox_values import MAKERS, MAX_TEXT, copied, decode, encode, has_numbers, same

AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CELL_FILE = "<cell {}>"
MAX_PRINTED = 20_000
MAX_PICTURES = 6
MAX_HELD = 20  # tensors that are shown of a call which an error stopped
MAX_HELD_SIZE = 5_000


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
        self.brief = False  # whether of an error nothing is wanted but where it came
        self.kept: modules.Kept | None = None  # what gives models once more, where that may be

    def handle(self, header: dict, tensors: dict) -> tuple[dict, dict]:
        """Answers one request: `load` cells, `call` what they define, record their `shapes` or
        their `steps`, call `edited` versions of them, or `show` what a cell prints and draws."""
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
            case "edited":
                return sys.modules["course_edited"].run(self, header, tensors)
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
        held: list = []  # the modules that were given, as they were
        try:
            if call["name"] not in self.namespace and call.get("on") not in self.objects:
                return {"error": _missing(call["name"], self.namespace)}
            if call.get("seed") is not None:
                throw_from(call["seed"])
            target, parameters = self.target(call, tensors, outcome)
            for name in call["method"].split(".") if call.get("method") else ():
                target = getattr(target, name)
            if call.get("inspect"):
                outcome["value"] = None
                return outcome
            given = self.kept.given if self.kept else partial(decode, make=MAKERS)
            asked = [given(a, tensors) for a in call["args"]]
            named = {k: given(v, tensors) for k, v in call["kwargs"].items()}
            args, kwargs = [copied(a) for a in asked], {k: copied(v) for k, v in named.items()}
            handed = {**{str(i): a for i, a in enumerate(args)}, **kwargs}
            before = {**{str(i): a for i, a in enumerate(asked)}, **named}  # no code sees these
            held = [(m, modules.state(m)) for m in args if isinstance(m, torch.nn.Module)]
            if call.get("work"):
                value, outcome["work"] = _counted(target, args, kwargs)
            elif call.get("gradients"):
                inputs = [a for a in args if isinstance(a, torch.Tensor)]
                inputs = [a.requires_grad_() if a.is_floating_point() else a for a in inputs]
                with torch.enable_grad():  # a cell may have switched them off for all that follows
                    value = target(*args, **kwargs)
                    outcome["gradients"] = encode(_gradients(value, inputs, parameters), out)
            else:
                with self.watch:
                    value = target(*args, **kwargs)
            self.last = value
            outcome["value"] = encode(value, out)
            changed = [name for name in handed if not same(handed[name], before[name])]
            outcome["after"] = {name: encode(handed[name], out) for name in changed}
        except BaseException as error:
            if self.brief:
                return {"error": describe(error)}
            outcome["error"] = describe(error)
            outcome["held"] = _held(error, out)
        outcome["left"] = sorted({t for m, state in held for t in modules.left_behind(m, state)})
        return outcome

    def target(self, call: dict, tensors: Mapping, outcome: dict):
        """What is called, or has the method that is: the function itself, or the object built
        (once, if it has a name); and its parameters."""
        found = self.objects.get(call.get("on") or "")
        if found is None:
            found = self.namespace[call["name"]]
            if call.get("build") is not None:
                # An object with a name stays, and the model that it was built with is its own.
                again = self.kept is not None and not call.get("on")
                given = self.kept.given if again else partial(decode, make=MAKERS)
                args = [given(a, tensors) for a in call["build"]["args"]]
                kwargs = call["build"]["kwargs"].items()
                kwargs = {k: given(v, tensors) for k, v in kwargs}
                mends = call.get("mend")
                found = modules.mended(found, args, kwargs) if mends else found(*args, **kwargs)
            if call.get("on"):
                self.objects[call["on"]] = found
        parameters = {}
        if isinstance(found, torch.nn.Module):
            parameters = modules.parameters(found)
            outcome["parameters"] = {n: list(p.shape) for n, p in parameters.items()}
            outcome["buffers"] = {n: list(b.shape) for n, b in found.named_buffers()}
            outcome["state"] = list(found.state_dict())
        if call.get("mend"):
            modules.put_layers(found, call["mend"], call["weights"], tensors)
        if call.get("weights"):
            outcome["unset"] = modules.set_weights(found, call["weights"], tensors)
            parameters = modules.parameters(found)
        if isinstance(found, torch.nn.Module):
            found.train(bool(call.get("train")))
        return found, parameters


def throw_from(seed: int) -> None:
    """Begins all random numbers from a seed, as `torch.manual_seed` does, which takes a hundred
    times as long where there is no other device than the processor."""
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


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
    shown = [value for value in found.values() if has_numbers(value) and not value.is_complex()]
    last = shown[: -MAX_HELD - 1 : -1]
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
