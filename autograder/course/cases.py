"""What is tried on an answer: calls drawn from the notation, or by a function of the author's."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from autograder.course.calls import Call, Draw, Made, Namespace
from autograder.notation import NotationError, called_name, names_in, read_call, value_of

FAN_IN_SPREAD = 1.5  # of weights, in units of 1 / sqrt(inputs): scores spread enough to tell apart


def cases_from(
    cases: Sequence, answer: Callable, name: str, times: int, sizes: Mapping, gradients: bool
) -> Callable[[Draw], list[Call]]:
    """A function that draws all calls of an exercise afresh."""
    drawers = [_reader(c, answer, name, sizes) if isinstance(c, str) else c for c in cases]
    _know_sizes([c for c in cases if isinstance(c, str)], sizes)

    def draw_all(draw: Draw) -> list[Call]:
        calls: list[Call] = []
        for drawer in drawers:
            drawn = drawer(draw)
            if isinstance(drawn, Call):
                drawn = [drawn, *(drawer(draw) for _ in range(times - 1))]
                if gradients:
                    drawn[-1] = replace(drawn[-1], gradients=True)
            calls += [c if c.name else replace(c, name=name) for c in drawn]
        return calls

    return draw_all


def _know_sizes(texts: Sequence[str], sizes: Mapping) -> None:
    """Raises `NotationError` where `sizes=` names what is in no call."""
    known = {n for text in texts for n in read_call(text.partition(" where ")[0])[1]}
    known |= {n for text in texts for n in re.findall(r"\w+", text.partition(" where ")[2])}
    known |= {n for rule in sizes.values() if isinstance(rule, str) for n in names_in(rule)}
    # A rule that follows from others may be left over, where exercises share a table of sizes.
    unknown = sorted(n for n in set(sizes) - known if not isinstance(sizes[n], str))
    if unknown:
        raise NotationError(f"sizes=: `{unknown[0]}` is a size of no call.")


def _reader(text: str, answer: Callable, name: str, sizes: Mapping) -> Callable[[Draw], Call]:
    """Draws one call from its notation: `Model(a, b)(x[n, a], causal=True) where b = 2 * a`."""
    text, _, rules = text.partition(" where ")
    tree, names = read_call(text)
    if called_name(tree) != name:
        raise NotationError(f"`{text}` calls `{called_name(tree)}`; the answer is `{name}`.")
    given = dict(sizes)
    for rule in filter(None, (r.strip() for r in rules.split(","))):
        left, sign, right = rule.partition("=")
        if not sign:
            raise NotationError(f"`where {rule}`: expected `name = expression`.")
        given[left.strip()] = right.strip()
        used = {n for r in given.values() if isinstance(r, str) for n in names_in(r)}
        if left.strip() not in {*names, *used}:
            raise NotationError(f"`where {rule}`: `{left.strip()}` is no size of `{text}`.")
    is_class = inspect.isclass(answer)

    def draw_one(draw: Draw) -> Call:
        known = _draw_sizes(draw, names, given)
        says = ", ".join([*(f"{n} {known[n]}" for n in names), *_given_by_name(tree)])
        if not names:  # nothing is drawn: the call as it stands says all
            says = text.strip()
        return replace(_call(tree, name, is_class, answer, draw, known), says=says)

    draw_one(Draw(0))  # what cannot be drawn is said when the course is opened
    return draw_one


def _given_by_name(tree: Mapping) -> list[str]:
    """What is handed over by name and is no size, such as `causal=True`."""
    calls = [tree]
    while "of" in calls[-1]:
        calls.append(calls[-1]["of"])
    given = [pair for call in reversed(calls) for pair in call.get("kwargs", {}).items()]
    return [f"{name}={v['value']!r}" for name, v in given if v["kind"] == "constant"]


def _draw_sizes(draw: Draw, names: list[str], given: Mapping) -> dict[str, int]:
    """A size for every name: pairwise different primes where nothing else is said."""
    follows = {n: rule for n, rule in given.items() if isinstance(rule, str)}
    wanted = [*names, *(n for rule in follows.values() for n in names_in(rule))]
    known: dict[str, int] = {}
    for name, choice in given.items():
        if isinstance(choice, int):
            known[name] = choice
        elif not isinstance(choice, str):
            left = [c for c in choice if c not in known.values()]
            known[name] = draw.choice(left or choice)
    free = [n for n in dict.fromkeys(wanted) if n not in known and n not in follows]
    known |= dict(zip(free, draw.sizes(len(free), other_than=known.values()), strict=True))
    for name, rule in follows.items():
        try:
            known[name] = value_of(rule, known)
        except KeyError as error:
            text = (
                f"`{name} = {rule}`: {error.args[0]} is not known there; rules are read in order."
            )
            raise NotationError(text) from None
    return known


def _call(tree: Mapping, name: str, is_class: bool, answer, draw: Draw, sizes: Mapping) -> Call:
    """The call that a tree describes, with numbers drawn for its tensors."""
    method, inner = None, tree["of"]
    if inner["kind"] == "attribute":
        method, inner = inner["name"], inner["of"]
    args, kwargs = _arguments(tree, draw, sizes)
    if inner["kind"] == "name":
        if not is_class:
            return Call(name, args, kwargs)
        return Call(name, init=args, init_kwargs=kwargs, inspect=True)
    init, init_kwargs = _arguments(inner, draw, sizes)
    with torch.random.fork_rng(devices=[]):  # its own first weights are not used
        built = answer(*init, **init_kwargs)
    weights = draw_weights(draw, built) if isinstance(built, nn.Module) else {}
    return Call(name, args, kwargs, init, init_kwargs, weights, method=method)


def _arguments(tree: Mapping, draw: Draw, sizes: Mapping) -> tuple[tuple, dict]:
    args = tuple(_value(a, draw, sizes) for a in tree["args"])
    return args, {k: _value(v, draw, sizes) for k, v in tree["kwargs"].items()}


def _value(tree: Mapping, draw: Draw, sizes: Mapping):
    match tree["kind"]:
        case "constant":
            return tree["value"]
        case "size":
            return value_of(tree["expr"], sizes)
        case "list":
            return [_value(i, draw, sizes) for i in tree["items"]]
        case "tuple":
            return tuple(_value(i, draw, sizes) for i in tree["items"])
        case "dict":
            items = (_value(i, draw, sizes) for i in tree["items"])
            return dict(zip(tree["keys"], items, strict=True))
        case "tensor":
            return _tensor(tree, draw, sizes)
    raise NotationError(
        "an argument that is a call itself cannot be drawn: use a function. (Kinds of tensors are "
        ".long(n), .int(n), .bool(), .float(), .half() and .double().)"
    )


def _tensor(tree: Mapping, draw: Draw, sizes: Mapping):
    shape = [value_of(d, sizes) for d in tree["dims"]]
    match tree.get("dtype", "float"):
        case "long" | "int" | "ints" as dtype:
            below = value_of(tree["below"], sizes) if "below" in tree else 10
            return getattr(draw.integers(0, below, *shape), dtype.removesuffix("s"))()
        case "full":
            return draw.integers(0, 1, *shape) + value_of(tree["below"], sizes)
        case "bool":
            return draw.integers(0, 2, *shape).bool()
        case dtype:
            return getattr(draw.normal(*shape), dtype)()


def linear_layers(answer: Callable, draw_all: Callable[[Draw], list[Call]]) -> list[str]:
    """The attributes that are `nn.Linear` layers in an answer that is a class."""
    if not (inspect.isclass(answer) and issubclass(answer, nn.Module)):
        return []
    call = next((c for c in draw_all(Draw(0)) if c.init is not None), None)
    given = (*call.init, *call.init_kwargs.values()) if call else ()
    if call is None or any(isinstance(g, Made | Namespace) for g in given):
        return []
    with torch.random.fork_rng(devices=[]):
        built = answer(*call.init, **call.init_kwargs)
    return [name for name, part in built.named_children() if isinstance(part, nn.Linear)]


def draw_weights(draw: Draw, module: nn.Module) -> dict:
    """Fresh numbers for every parameter of a module: no bias zero, no two alike."""
    drawn = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        inputs = parameter.shape[-1] if parameter.dim() > 1 else 4
        drawn[name] = draw.normal(*parameter.shape, scale=FAN_IN_SPREAD / inputs**0.5)
        if parameter.dim() <= 1 and name.endswith("weight"):  # a gain, around 1
            drawn[name] += 1
    return drawn
