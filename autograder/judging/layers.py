"""Whether a class has the layers, parameters and buffers that it should, before its values count.

What the answer has is what is asked for: each of its parameters must be there under its name,
learn, and have its shape. A layer under another name is said as such. What stands beside it is a
student's own affair. The words and the names of the findings can be given by an exercise:

    judge=judge_layers
    judge=partial(judge_layers, prefix="projections", says={"missing layer": "No `{layer}`!"})
    judge=partial(judge_layers, buffers=True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from autograder.course.asking import Finding, Sight, Verdict
from autograder.course.calls import Call, Outcome
from autograder.judging.compare import compare
from autograder.judging.difference import outcome_difference

# What is said of each kind of problem. `{name}` is a parameter or buffer, `{layer}` whose it is.
SAYS = {
    "missing layer": "There is no `{layer}` that learns. Make it in __init__, under this name.",
    "another name": "Something has another name than the exercise gives it: {pairs}. "
    "Only what has the right name can be found.",
    "plain list": "PyTorch finds no parameters in `{top}`. Layers in a plain Python list are "
    "invisible to it: use `nn.ModuleList`.",
    "lost bias": "`{layer}` has no {part}. An `nn.Linear` has one unless it is switched off.",
    "wrong width": "`{name}` has shape {got}, expected {expected}.",
    "not registered": "The module does not know `{name}` as a parameter, so no optimiser will ever "
    "move it. A plain tensor is not registered; wrap it in `nn.Parameter`.",
    "wrong layer": "`{layer}` has the right size, but called by itself it gives other values than "
    "its weights say.",
    "not set": "`{name}` could not be given numbers: {problem}.",
    "buffer.is a parameter": "`{name}` is a parameter: an optimiser would train it. Register it "
    "as a buffer.",
    "buffer.not registered": "The module has no buffer, so `.to(device)` leaves `{name}` behind. "
    "Use `self.register_buffer`.",
    "buffer.stored": "`{name}` is stored in the state_dict, though it can be made again: register "
    "it with persistent=False.",
    "buffer.not stored": "`{name}` is not stored in the state_dict: it would be lost when the "
    "module is saved.",
    "buffer.name": "The buffer should be called `{name}`.",
    "buffer.shape": "The buffer `{name}` has shape {got}, expected {expected}.",
}
KEPT = ("is a parameter", "stored", "not stored")  # how checks of such tensors may end
Problem = tuple[str, dict]  # its kind, and what the sentence about it needs


def judge_layers(sight: Sight, **options) -> list[Finding]:
    """As usual, once the layers are as they should be; of a tensor that is only kept otherwise than
    it should be, what it gives is looked at all the same. options: see `layer_findings`."""
    found = layer_findings(sight, **options)
    kept = bool(found) and found[0].check.rpartition(".")[2] in KEPT
    return [*found, *(compare(sight) if kept or not found else [])]


def layer_findings(
    sight: Sight,
    *,
    prefix: str = "",
    names: Mapping[str, str] | None = None,
    says: Mapping[str, str] | None = None,
    buffers: bool = False,
) -> list[Finding]:
    """The first thing that is wrong with what a class has; empty where nothing is.

    A layer that a call asks by itself (`method='q'`) must also give what it should. prefix: goes
    before the findings' names. names: other names for kinds of problems (a layer under another
    name is a 'missing layer' where nothing else is said). says: other sentences, by kind, with
    the fields that those of `SAYS` have. buffers: those of the answer are asked for as well.
    """
    named = {"another name": (names or {}).get("missing layer", "missing layer"), **(names or {})}
    for call, problem in _problems(sight, buffers):
        kind, fields = problem
        check = named.get(kind, kind)
        if prefix and "." not in check:
            check = f"{prefix}.{check}"
        text = {**SAYS, **(says or {})}[kind].format_map(fields) + fields.get("more", "")
        shapes = {k: f"shape {fields[k]}" for k in ("expected", "got") if k in fields}
        return [Finding(check, Verdict.WRONG, text, tried=call.says, **shapes)]
    return []


def _problems(sight: Sight, buffers: bool) -> Iterator[tuple[Call, Problem]]:
    seen = list(zip(sight.calls, sight.outcomes, sight.expected, strict=True))
    for call, got, expected in seen:
        if got.error is not None and not got.unset:
            continue  # perhaps nothing was built: what stopped it is more to the point
        problem = _parameter_problem(call, got, expected)
        if problem is None and buffers:
            problem = _buffer_problem(got, expected)
        if problem is not None:
            yield call, problem
    for call, got, expected in seen:
        layer = call.method
        is_layer = layer in _layers(expected.parameters) and layer in _layers(got.parameters)
        if is_layer and (got.error or outcome_difference(got, expected, sight.exercise.rtol)):
            yield call, ("wrong layer", {"layer": layer})


# --- parameters ----------------------------------------------------------------------------------
def _parameter_problem(call: Call, got: Outcome, expected: Outcome) -> Problem | None:
    for name, shape in expected.parameters.items():
        if name not in got.parameters:
            return _lost(name, call, got, expected)
        if got.parameters[name] != shape:
            return "wrong width", _fields(name, expected=shape, got=got.parameters[name])
    for name, problem in got.unset.items():
        # One tensor under two names was set twice: its values show it, under their own name.
        if name not in expected.unset and not problem.startswith("the same tensor"):
            return "not set", _fields(name, problem=problem)
    return None


def _lost(name: str, call: Call, got: Outcome, expected: Outcome) -> Problem:
    """Why the module does not have this parameter."""
    fields = _fields(name)
    found, wanted = _layers(got.parameters), _layers(expected.parameters)
    if name in call.weights and name not in got.unset:
        return "not registered", fields  # there is a tensor that could be set
    if fields["layer"] in found:
        return ("lost bias" if fields["part"] == "bias" else "missing layer"), fields
    others = {layer: sizes for layer, sizes in found.items() if layer not in wanted}
    renamed = _renamed({w: s for w, s in wanted.items() if w not in found}, others)
    if fields["layer"] in renamed:
        pairs = dict.fromkeys(_without_common_end(w, o) for w, o in renamed.items())
        said = [f"there is no `{w}`, but `{o}` of the same sizes" for w, o in pairs]
        return "another name", {**fields, "pairs": "; ".join(said)}
    if fields["index"] and (not got.parameters or got.unset.get(name, "").endswith(".0'")):
        return "plain list", fields
    if others:
        learns = ", ".join(f"`{layer}`" for layer in others)
        fields["more"] = f" What learns here beside what is asked for: {learns}."
    return "missing layer", fields


def _fields(name: str, **more) -> dict:
    """A parameter's name in parts: its layer, the parts' names, and where a list's index stands."""
    parts = name.split(".")
    layer = ".".join(parts[:-1]) or name
    index = next((p for p in parts if p.isdecimal()), "")
    top = ".".join(parts[: parts.index(index)]) if index else layer
    shapes = {k: list(v) if isinstance(v, tuple) else v for k, v in more.items()}
    return {"name": name, "layer": layer, "part": parts[-1], "index": index, "top": top, **shapes}


def _layers(parameters: Mapping[str, tuple]) -> dict[str, dict[str, tuple]]:
    """The shapes of each layer's parameters; a parameter of the module itself stands alone."""
    layers: dict[str, dict[str, tuple]] = {}
    for name, shape in parameters.items():
        layer, _, part = name.rpartition(".")
        layers.setdefault(layer or name, {})[part if layer else ""] = shape
    return layers


def _renamed(lost: Mapping[str, dict], others: Mapping[str, dict]) -> dict[str, str]:
    """For each lost layer another one of its sizes, each used once: the nearest in its name."""
    left, renamed = dict(others), {}
    for layer, sizes in lost.items():
        alike = [o for o, own in left.items() if own.items() <= sizes.items()]
        if alike:
            renamed[layer] = max(alike, key=lambda other: likeness(layer, other))
            del left[renamed[layer]]
    return renamed


def likeness(one: str, two: str) -> float:
    """From 0 to 1: how many letters two names have in common, in the same order."""
    return SequenceMatcher(None, one.lower(), two.lower()).ratio()


def _without_common_end(one: str, two: str) -> tuple[str, str]:
    """`heads.0.q` and `layers.0.q` differ in `heads` and `layers`."""
    a, b = one.split("."), two.split(".")
    while len(a) > 1 and len(b) > 1 and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return ".".join(a), ".".join(b)


# --- buffers -------------------------------------------------------------------------------------
def _buffer_problem(got: Outcome, expected: Outcome) -> Problem | None:
    learned = {n: s for n, s in got.parameters.items() if n not in expected.parameters}
    others = [n for n in got.buffers if n not in expected.buffers]
    for name, shape in expected.buffers.items():
        if name not in got.buffers:
            if name in learned or shape in learned.values():
                return "buffer.is a parameter", _fields(name)
            return ("buffer.name" if others else "buffer.not registered"), _fields(name)
        if name in got.state and name not in expected.state:
            return "buffer.stored", _fields(name)
        if name not in got.state and name in expected.state:
            return "buffer.not stored", _fields(name)
        if got.buffers[name] != shape:
            return "buffer.shape", _fields(name, expected=shape, got=got.buffers[name])
    if learned and expected.buffers and not expected.parameters:
        return "buffer.is a parameter", _fields(next(iter(learned)))
    return None
