"""Layers that are not as they were asked for: other names, other widths, no bias, one for two.

Weights are put into an answer by name, so that one slip in the layers would make all values wrong.
Where the layers of an answer differ from what was asked for, the same calls are put to it once
more, with right layers in their places and under the names that the student gave them. What is
wrong then is wrong beside the layers; where nothing is, the layers are all that there is to say.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from autograder.course.asking import Exercise, Finding, Verdict
from autograder.course.calls import Call, Outcome
from autograder.sandbox.inside.sandbox_wire import Failure

PREFIX = "layer."  # of the checks of findings that say: all is right but for the layers
MISSING = "missing layer"  # of a layer that is nowhere in an answer
TRIES = 6  # ways to match a student's layers with those asked for
SECONDS = 60.0  # after which no other way is tried, whatever the code does with its time
NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_MOST = 200  # layers of one answer that are looked at


@dataclass(frozen=True)
class Part:
    """One of `count` equal parts of a layer that was asked for, cut along its outputs."""

    layer: str
    place: int = 0
    count: int = 1


# What a student's layers hold, by their names: one layer, several in a row, or a part of one.
Plan = dict[str, tuple[Part, ...]]


def look_again(
    exercise: Exercise,
    calls: list[Call],
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    first: Callable[[], list[Finding]],
    ask: Callable[[list[Call]], Sequence[Outcome]],
    judge: Callable[[Sequence[Outcome]], list[Finding]],
) -> list[Finding]:
    """The findings of an answer that is not right, with the slips in its layers told apart.

    first: gives what was found at the first look; most answers that have all but the layers right
    can be told so without it. ask: puts calls to the answer. judge: judges outcomes.
    """
    if not _worth_it(outcomes):
        return first()
    seen = list(zip(outcomes, expected, strict=True))
    ways = [plans(exercise.layers, wanted.parameters, got.parameters) for got, wanted in seen]
    itself = any(call.inspect for call in calls)  # the layers are what is asked for
    said = _say(seen, [each[0] for each in ways], itself)
    if itself and (said is None or not all(_renamed(each[0]) for each in ways)):
        return [said] if said else first()
    likeliest, until = None, time.monotonic() + SECONDS
    for way in range(max(map(len, ways))):
        if time.monotonic() > until:
            break
        chosen = [each[min(way, len(each) - 1)] for each in ways]
        again = ask([_with(c, plan, itself) for c, plan in zip(calls, chosen, strict=True)])
        if len(again) != len(calls):
            return first()
        right = [{} if itself else wanted.parameters for _, wanted in seen]
        back = zip(again, chosen, right, strict=True)
        others = judge([_back(*each) for each in back])
        if not others:
            return [_but_for(_say(seen, chosen, itself) or first()[0], chosen[0])]
        likeliest = likeliest or others
    if said is None:
        return first()
    if said.check == MISSING:  # it is nowhere, so that nothing can be said of the values
        return [*[f for f in first() if f.verdict == Verdict.ERROR], said]
    return [said, *likeliest] if itself else [*likeliest, said]


def _worth_it(outcomes: Sequence[Outcome]) -> bool:
    """Whether another look may show more: weights found no place, or nothing could be built."""
    built = [o for o in outcomes if not _unbuilt(o)]
    if built:
        return any(o.unset for o in built)
    return all(o.error["kind"] == Failure.RAISED for o in outcomes)


def _unbuilt(outcome: Outcome) -> bool:
    """Whether the object itself could not be made."""
    return outcome.error is not None and not outcome.parameters


# --- which layer stands for which ----------------------------------------------------------------
def plans(layers: Sequence[str], wanted: Mapping, own: Mapping) -> list[Plan]:
    """Ways to match a student's layers with those asked for, the likeliest first; never empty.

    wanted, own: shapes of parameters by name. A layer without a match is left out of the plan's
    values: it keeps its own name, in case the answer looks for it there.
    """
    asked = {n: tuple(wanted[f"{n}.weight"]) for n in layers if f"{n}.weight" in wanted}
    mine = _linear(own)
    missing = [n for n in asked if n not in mine]
    spare = {n: s for n, s in mine.items() if n not in asked and f"{n}.weight" not in wanted}
    ways: list[Plan] = [{}]
    for shape in dict.fromkeys(asked[n] for n in missing):
        group = [n for n in missing if asked[n] == shape]
        options = _matches(group, shape, spare)
        ways = [{**way, **option} for way in ways for option in options][:TRIES]
    ways = [_by_name_alone(way, missing, spare) for way in ways]
    done = [_layers_in(way) for way in ways]
    return [
        {**{n: (Part(n),) for n in asked if n not in there}, **way}
        for way, there in zip(ways, done, strict=True)
    ]


def _linear(parameters: Mapping) -> dict[str, tuple[int, int]]:
    """The layers with a matrix as their weight, in the order in which they were made."""
    found = {}
    for name, shape in itertools.islice(parameters.items(), 2 * _MOST):
        layer, _, kind = name.rpartition(".")
        if kind == "weight" and len(shape) == 2 and len(layer) < 60 and NAME.fullmatch(layer):
            found[layer] = tuple(shape)
    return found


def _layers_in(plan: Plan) -> set[str]:
    return {part.layer for parts in plan.values() for part in parts}


def _matches(group: list[str], shape: tuple, spare: Mapping) -> list[Plan]:
    """Ways to find layers of one shape among the spare ones."""
    same = [n for n, s in spare.items() if s == shape]
    plan, left = {}, list(group)
    for name, layer in _alike(same, left):
        plan[name] = (Part(layer),)
        left.remove(layer)
    rest = [n for n in same if n not in plan]
    if left and len(rest) >= len(left):
        orders = itertools.islice(itertools.permutations(rest, len(left)), TRIES)
        return [
            plan | {n: (Part(layer),) for n, layer in zip(order, left, strict=True)}
            for order in orders
        ]
    if not left:
        return [plan]
    return [plan | option for option in _in_one(left, shape, spare) + _in_parts(left, shape, spare)]


def _in_one(group: list[str], shape: tuple, spare: Mapping) -> list[Plan]:
    """One layer that holds several in a row: first in the order in which its name spells them."""
    rows, columns = shape
    for name, own in spare.items():
        if len(group) > 1 and own == (len(group) * rows, columns):
            spelled = sorted(group, key=lambda n: (name.find(n) < 0, name.find(n)))
            orders = list(itertools.islice(itertools.permutations(spelled), TRIES))
            return [{name: tuple(map(Part, order))} for order in orders]
    return []


def _in_parts(group: list[str], shape: tuple, spare: Mapping) -> list[Plan]:
    """Many layers that each hold a part of one, such as the layers of one head."""
    rows, columns = shape
    for small in dict.fromkeys(spare.values()):
        pieces = [n for n, s in spare.items() if s == small]
        count = rows // max(small[0], 1)
        if small[1] != columns or count < 2 or count * small[0] != rows:
            continue
        if len(pieces) == count * len(group):
            heads = [pieces[i :: len(group)] for i in range(len(group))]
            rows_of = [pieces[i * count : (i + 1) * count] for i in range(len(group))]
            named = [[p for p in pieces if _likeness(p, n)] for n in group]
            fits = all(len(own) == count for own in named)
            ways = [named] if fits else [heads, rows_of]
            return [_spread(group, way, count) for way in ways]
    return [{}]


def _spread(group: list[str], pieces: list[list[str]], count: int) -> Plan:
    return {
        piece: (Part(layer, place, count),)
        for layer, own in zip(group, pieces, strict=True)
        for place, piece in enumerate(own)
    }


def _by_name_alone(way: Plan, missing: list[str], spare: Mapping) -> Plan:
    """What no shape could match, matched by likeness of names: a layer of another width."""
    left = [n for n in missing if n not in _layers_in(way)]
    free = [n for n in spare if n not in way]
    return way | {name: (Part(layer),) for name, layer in _alike(free, left)}


def _alike(names: Iterable[str], layers: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of a student's name and a layer that are like each other, and like no other as much."""
    pairs = []
    names, layers = list(names), list(layers)
    for level in (3, 2, 1):
        for layer in list(layers):
            close = [n for n in names if _likeness(n, layer) == level]
            rivals = [x for x in layers if close and _likeness(close[0], x) == level]
            if len(close) == 1 and len(rivals) == 1:
                pairs.append((close[0], layer))
                names.remove(close[0])
                layers.remove(layer)
    return pairs


def _likeness(name: str, layer: str) -> int:
    """3 where a word of the name is the layer, 2 where one begins so, 1 where one ends so."""
    words = [w for w in re.split(r"[._\d]+", name.lower()) if w]
    layer = layer.lower()
    tests = (str.__eq__, str.startswith, str.endswith)
    return next((3 - i for i, test in enumerate(tests) if any(test(w, layer) for w in words)), 0)


# --- the same calls under the student's names ----------------------------------------------------
def _with(call: Call, plan: Plan, itself: bool) -> Call:
    """The call with its weights under the student's names, in right layers unless the layers
    themselves are what is asked for."""
    layers = _layers_in(plan)
    weights = {n: w for n, w in call.weights.items() if n.rpartition(".")[0] not in layers}
    for name, parts in plan.items():
        for kind in ("weight", "bias"):
            held = [_cut(call.weights.get(f"{p.layer}.{kind}"), p) for p in parts]
            if all(t is not None for t in held):
                weights[f"{name}.{kind}"] = torch.cat(held)
    named = {p.layer: name for name, (p, *more) in plan.items() if p.count == 1 and not more}
    method = named.get(call.method, call.method)
    return replace(call, weights=weights, method=method, mend=() if itself else tuple(plan))


def _cut(tensor: torch.Tensor | None, part: Part) -> torch.Tensor | None:
    return None if tensor is None else tensor.chunk(part.count)[part.place]


def _back(outcome: Outcome, plan: Plan, right: Mapping) -> Outcome:
    """An outcome with the names that were asked for.

    right: the shapes of the parameters of the layers that were put in, by name.
    """
    gradients = outcome.gradients
    if isinstance(gradients, Mapping):
        gradients = _joined(gradients, plan)
    renamed = {}
    for name, shape in outcome.parameters.items():
        layer, _, kind = name.rpartition(".")
        parts = plan.get(layer, ())
        alone = len(parts) == 1 and parts[0].count == 1
        renamed[f"{parts[0].layer}.{kind}" if alone else name] = shape
        if alone:
            own = {f"{parts[0].layer}.{each}" for each in ("weight", "bias")}
            renamed |= {n: right[n] for n in own if n in right}
    return replace(outcome, gradients=gradients, parameters=renamed)


def _joined(gradients: Mapping, plan: Plan) -> dict:
    """Gradients by the names that were asked for, out of those by the student's."""
    found = dict(gradients)
    parts: dict[str, dict[int, torch.Tensor | None]] = {}
    for name, held in plan.items():
        for kind in ("weight", "bias"):
            whole = found.pop(f"{name}.{kind}", None)
            fits = isinstance(whole, torch.Tensor) and whole.dim() > 0
            pieces = whole.chunk(len(held)) if fits else []
            for part, piece in itertools.zip_longest(held, pieces):
                if part is not None:
                    parts.setdefault(f"{part.layer}.{kind}", {})[part.place] = piece
    return found | {name: _whole(pieces) for name, pieces in parts.items()}


def _whole(pieces: Mapping[int, torch.Tensor | None]) -> torch.Tensor | None:
    ordered = [pieces[i] for i in sorted(pieces)]
    if any(p is None or p.shape[1:] != ordered[0].shape[1:] for p in ordered):
        return None
    return torch.cat(ordered)


# --- what is said --------------------------------------------------------------------------------
def _say(seen: list, chosen: list[Plan], itself: bool) -> Finding | None:
    """What is to be said of the layers; None where nothing is.

    seen: what came back and what was expected, by call. itself: whether the exercise asks for the
    layers alone, whose judge says all but the names.
    """
    built = [i for i, (got, _) in enumerate(seen) if not _unbuilt(got)]
    if not built:
        return None
    (got, wanted), plan = seen[built[0]], chosen[built[0]]
    said = [(f"{PREFIX}name", _names(plan))] if _names(plan) else []
    said += [] if itself else _slips(plan, got, wanted.parameters)[:1]
    if not said:
        return None
    checks, texts = zip(*said, strict=True)
    return Finding(MISSING if MISSING in checks else checks[0], Verdict.WRONG, " ".join(texts))


def _slips(plan: Plan, got: Outcome, wanted: Mapping) -> list[tuple[str, str]]:
    """What is wrong with the layers beside their names, as (check, sentence)."""
    found = []
    for path, parts in plan.items():
        own = got.parameters.get(f"{path}.weight")
        shapes = [wanted[f"{p.layer}.weight"] for p in parts]
        right = [sum(s[0] // p.count for s, p in zip(shapes, parts, strict=True)), shapes[0][1]]
        if own is None:
            text = f"There is no layer `{path}` that learns. Make it an `nn.Linear` in `__init__`."
            found.append((MISSING, text))
        elif list(own) != right:
            text = f"`{path}.weight` has shape {list(own)}, expected {right}."
            found.append((f"{PREFIX}width", text))
        elif f"{path}.bias" not in got.parameters:
            text = f"`{path}` has no bias. An `nn.Linear` has one unless it is switched off."
            found.append((f"{PREFIX}bias", text))
    for path, why in got.unset.items():
        if why.startswith("the same tensor"):
            one, other = path.rpartition(".")[0], why.split("'")[1].rpartition(".")[0]
            text = f"`{one}` and `{other}` are one layer; each needs weights of its own."
            found.append((f"{PREFIX}shared", text))
    return found


def _names(plan: Plan) -> str:
    """Which layers go by other names, in a sentence; '' where none does."""
    other = _other(plan)
    asked = list(dict.fromkeys(p.layer for parts in other.values() for p in parts))
    if not other:
        return ""
    if _renamed(plan):
        are = "layer is" if len(other) == 1 else "layers are"
        return f"Your {are} called {listed(other)}; the exercise asks for {listed(asked)}."
    subject = f"layer {listed(other)} does" if len(other) == 1 else f"layers {listed(other)} do"
    return f"Your {subject} the work of {listed(asked)}, which the exercise asks for."


def _other(plan: Plan) -> Plan:
    """The layers that do not stand under the names that were asked for."""
    return {n: parts for n, parts in plan.items() if parts != (Part(n),)}


def _renamed(plan: Plan) -> bool:
    """Whether each layer of another name is one whole layer that was asked for."""
    return all(len(parts) == 1 and parts[0].count == 1 for parts in _other(plan).values())


def listed(names: Iterable[str]) -> str:
    """`a`, `b` and `c`; the first few of many."""
    quoted = [f"`{n}`" for n in names]
    if len(quoted) > 4:
        return ", ".join(quoted[:3]) + ", ..."
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def _but_for(said: Finding, plan: Plan) -> Finding:
    """What is said of the layers where all else is right."""
    check = said.check if said.check.startswith(PREFIX) else f"{PREFIX}{said.check}"
    ending = "Everything else is right."
    if said.message == _names(plan) and _renamed(plan):
        which = "that name" if len(_other(plan)) == 1 else "those names"
        ending = f"With {which} everything else is right."
    return replace(said, check=check, verdict=Verdict.WRONG, message=f"{said.message} {ending}")
