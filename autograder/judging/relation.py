"""How a wrong result stands to the right one, or to what went in: a cause that needs no author.

A known mistake (`reference`, `.wrong`) is told by its name. Where none fits, the result may still
be the right one times a number, or transposed, or averaged; it may be an input as it came in. One
relation must hold on every call that is wrong, or nothing is said. No expected value is shown, and
of results so small that a relation would give them away nothing is said either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import torch

from autograder.course.asking import Sight
from autograder.course.calls import Outcome
from autograder.course.sketch import weight
from autograder.judging.relations import two
from autograder.judging.relations.parts import as_tensor, parts_of
from autograder.judging.relations.two import FEW, Named, finite, same, tells
from autograder.judging.relations.where import PLACE, places

SOME = 4  # plain numbers, one a call, that may show a relation
# Relations that say little of a cause: how their names begin.
VAGUE = (
    "numbers",
    "result.moved",
    "result.rows",
    "result.left at 0",
    "result.NaN instead",
    "result.inf instead",
    "result.-inf instead",
    "result.signs",
    "result.alike",
)

Pair = tuple[torch.Tensor, torch.Tensor]  # what came back, what was expected


def relation(sight: Sight) -> Named | None:
    """The relation that holds wherever a result is wrong, as (name, sentence); None without one."""
    wrong = []  # one item a call: its tensors that differ, and its inputs
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if got.error or expected.error:
            return None
        parts = parts_of(got.value, expected.value)
        if parts is None:
            return _of_several(sight) or _of_texts(sight)
        differ = [(mine, wanted) for _, mine, wanted in parts if not same(mine, wanted)]
        if differ:
            wrong.append((differ, call.args))
    if not wrong:
        return _of_gradients(sight)
    swapped = _of_several(sight)
    if swapped is not None:
        return swapped
    numbers = _of_numbers([pair for pairs, _ in wrong for pair in pairs])
    if numbers is not None:
        return numbers
    whole = sum(weight(got) for got in sight.outcomes)  # plain numbers, of which few may do
    if max(sum(got.numel() for pairs, _ in wrong for got, _ in pairs), whole) < FEW:
        return None
    candidates = (_names(sight, pairs, args) for pairs, args in wrong)
    told = next(candidates)
    for other in candidates:
        told = {name: said for name, said in told.items() if name in other}
    causes = [item for item in told.items() if not item[0].startswith(PLACE)]
    where = [said for name, said in told.items() if name.startswith(PLACE)]
    if not causes:
        return ("", where[0]) if where else None
    name, said = causes[0]
    return name, f"{said} {where[0]}" if where and name.startswith(VAGUE) else said


# --- gradients ---------------------------------------------------------------------------------
def _of_gradients(sight: Sight) -> Named | None:
    """How gradients stand to the right ones, where all values are right."""
    told: dict[str, str] | None = None
    right: set[str] | None = None
    count = 0
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        asked = {n: g.double() for n, g in (expected.gradients or {}).items() if g is not None}
        if not asked:  # a call that does not look at gradients
            continue
        mine = got.gradients if isinstance(got.gradients, dict) else {}
        size = max((two.largest(g) for g in asked.values()), default=0.0)
        there = {n: as_tensor(mine.get(n)) for n in asked}
        if any(t is None or t.shape != asked[n].shape for n, t in there.items()):
            missing = any(t is None for t in there.values())
            return ("gradient.none", _right_gradients(there, asked, size)) if missing else None
        wrong = [n for n in asked if not same(there[n], asked[n], size)]
        right = (right if right is not None else set(asked)) - set(wrong)
        for name in wrong:
            count += asked[name].numel()
            found = dict(_of_one_gradient(there[name], asked[name]))
            told = found if told is None else {n: s for n, s in told.items() if n in found}
    which = f"Right are the gradients of: {', '.join(sorted(right))}." if right else ""
    if told and count >= FEW:
        name, said = next(iter(told.items()))
        return (
            f"gradient.{name}",
            f"Of the gradients that are wrong this holds: {said} {which}".strip(),
        )
    return ("", which) if which else None


def _right_gradients(there: dict, asked: dict, size: float) -> str:
    names = [n for n, g in there.items() if g is not None and same(g, asked[n], size)]
    return f"Right are the gradients of: {', '.join(sorted(names))}." if names else ""


def _of_one_gradient(got, expected) -> Iterator[Named]:
    if tells(expected):
        yield from two.scaled(got, expected)
        yield from two.moved(got, expected)
        yield from two.left_at_zero(got, expected)
        yield from two.by_rows(got, expected)


# --- texts -------------------------------------------------------------------------------------
def _of_texts(sight: Sight) -> Named | None:
    """Right words in another spelling: capital letters, spaces."""
    pairs = [(o.value, e.value) for o, e in zip(sight.outcomes, sight.expected, strict=True)]
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        return None
    wrong = [(got, wanted) for got, wanted in pairs if got != wanted]
    if wrong and all("".join(g.split()).lower() == w.lower() for g, w in wrong):
        return "result.spelling", "The word is right, but for capital letters or spaces."
    return None


# --- several results -----------------------------------------------------------------------------
def _several(outcome: Outcome) -> list[torch.Tensor] | None:
    value = outcome.value
    if not isinstance(value, tuple | list):
        return None
    there = [v for v in value if v is not None]
    parts = [as_tensor(torch.tensor(float(v)) if isinstance(v, int | float) else v) for v in there]
    return None if any(p is None for p in parts) else parts


def _of_several(sight: Sight) -> Named | None:
    """The right results in another order, some of them missing, all in one, or one of many."""
    in_one = _the_same(sight, _in_one) or _the_same(sight, _one_of_many)
    if in_one is not None:
        return in_one
    said = []
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        wanted = _several(expected)
        if wanted is None or len(wanted) < 2 or not any(w.numel() > 1 for w in wanted):
            return None
        alone = as_tensor(got.value)
        parts = [alone] if alone is not None else _several(got)
        if not parts:
            return None
        found = [[n for n, w in enumerate(wanted) if same(part, w)] for part in parts]
        if not all(len(places) == 1 for places in found):
            return None
        said.append(tuple(places[0] for places in found))
    order, count = said[0], len(_several(sight.expected[0]))
    if len(set(said)) > 1 or order == tuple(range(count)):
        return None
    if sorted(order) == list(range(count)):
        return "results.order", "The results are right, but come in another order than asked for."
    which = " and ".join(str(n + 1) for n in range(count) if n not in order)
    if len(set(order)) == len(order):
        text = f"What comes back is right; of {count} results there is no number {which}."
        return "results.missing", text
    return "results.twice", f"One result comes back twice, and there is no number {which}."


def _the_same(sight: Sight, told) -> Named | None:
    """What is told of every call alike."""
    pairs = zip(sight.outcomes, sight.expected, strict=True)
    said = {told(got, expected) for got, expected in pairs}
    return said.pop() if len(said) == 1 else None


def _in_one(got: Outcome, expected: Outcome) -> Named | None:
    """Several right results that come as one tensor."""
    wanted, whole = _several(expected), as_tensor(got.value)
    if whole is None or wanted is None or len({w.shape for w in wanted}) != 1 or len(wanted) < 2:
        return None
    if not tells(whole):
        return None
    for join, how, axes in ((torch.stack, "an axis of their own", 1), (torch.cat, "axis", 0)):
        for axis in range(wanted[0].dim() + axes):
            if same(whole, join(wanted, axis)):
                along = f"{how}, number {axis}" if axes else f"{how} {axis}"
                text = (
                    f"The {len(wanted)} results are right, but come as one tensor, along {along}. "
                    "Each is asked for by itself."
                )
                return "results.in one", text
    return None


def _one_of_many(got: Outcome, expected: Outcome) -> Named | None:
    """One right result among others that nobody asked for, or one that comes in pieces."""
    parts, wanted = _several(got), as_tensor(expected.value)
    if not parts or wanted is None or not tells(wanted):
        return None
    for place, part in enumerate(parts, 1):
        if same(part, wanted):
            text = (
                f"Number {place} of the {len(parts)} things that come back is right; it is asked "
                "for alone."
            )
            return "results.too many", text
    if len({p.shape for p in parts}) == 1:
        for axis in range(wanted.dim()):
            if any(p.dim() > axis and same(torch.cat(parts, axis), wanted) for p in parts[:1]):
                return "results.in pieces", f"The result comes in pieces: cat them, axis {axis}."
            if parts[0].dim() + 1 == wanted.dim() and same(torch.stack(parts, axis), wanted):
                return "results.in pieces", f"The result comes in pieces: stack them, axis {axis}."
    return None


# --- plain numbers -------------------------------------------------------------------------------
def _of_numbers(pairs: Sequence[Pair]) -> Named | None:
    """One relation of plain numbers through all calls; it does not say how large."""
    if len(pairs) < SOME or any(tensor.dim() for pair in pairs for tensor in pair):
        return None
    got, expected = (torch.stack(list(side)).double() for side in zip(*pairs, strict=True))
    if len(expected.unique()) < SOME or not finite(got, expected):
        return None
    if same(got - expected, (got - expected)[:1].expand_as(got)):
        text = "In every call that is wrong the number is off by one and the same amount."
        return "numbers.offset", text
    factor = got / torch.where(expected == 0, 1e-300, expected)
    if same(factor, factor[:1].expand_as(factor)):
        text = (
            "In every call that is wrong the number is the right one times one and the same factor."
        )
        return "numbers.factor", text
    return None


# --- one result ----------------------------------------------------------------------------------
def _names(sight: Sight, pairs: Sequence[Pair], args: tuple) -> dict[str, str]:
    """The relations that hold of all these pairs, by name, the likeliest first."""
    told: dict[str, str] | None = None
    for got, expected in pairs:
        found = dict(_found(sight, got, expected, args))
        told = found if told is None else {n: s for n, s in told.items() if n in found}
    return told or {}


def _found(sight: Sight, got, expected, args: tuple) -> Iterator[Named]:
    if (got.dtype == torch.bool) != (expected.dtype == torch.bool):
        yield from two.as_numbers(got, expected)
        return
    inputs = _inputs(sight, args)
    if got.shape == expected.shape:
        yield from _by_a_size(got, expected, _sizes(sight, args))
        if not tells(expected):
            return
        yield from _as_it_came(got, inputs)
        yield from two.scaled(got, expected)
        yield from two.rounded(got, expected)
        yield from two.moved(got, expected)
        yield from two.added(got, expected, inputs)
        yield from two.put_through(got, expected)
        yield from two.signs(got, expected)
        yield from two.left_at_zero(got, expected)
        yield from two.one_instead(got, expected)
        yield from two.by_rows(got, expected)
        yield from two.all_alike(got, expected)
        yield from places(got, expected)
    else:
        yield from _as_it_came(got, inputs)
        yield from two.cut(got, expected)
        yield from two.other_axes(got, expected)


def _inputs(sight: Sight, args: tuple) -> list[tuple[str, torch.Tensor]]:
    """The floating inputs of a call, by the names that the student gave them."""
    return [
        (name, value.double())
        for name, value in _named(sight, args)
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() >= FEW
    ]


def _named(sight: Sight, args: tuple) -> list[tuple[str, object]]:
    names = _parameters(sight.source, sight.exercise.name)
    named = [f"`{names[n]}`" if n < len(names) else f"input {n + 1}" for n in range(len(args))]
    return list(zip(named, args, strict=True))


def _sizes(sight: Sight, args: tuple) -> Iterator[tuple[str, float]]:
    """The sizes and numbers of a call that a result may be too large or too small by."""
    for name, value in _named(sight, args):
        if isinstance(value, torch.Tensor):
            for axis, size in enumerate(value.shape):
                yield f"the size of axis {axis} of {name}", size
                yield f"the root of the size of axis {axis} of {name}", size**0.5
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
            yield f"1 - {name}", 1 - value


def _parameters(source: str, name: str) -> list[str]:
    """What a student calls the parameters of a function, or of a class's `forward`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            inner = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"]
            return [a.arg for a in inner[0].args.args[1:]] if inner else []
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return [a.arg for a in node.args.args]
    return []


def _as_it_came(got, inputs) -> Iterator[Named]:
    for name, value in inputs:
        if same(got, value):
            yield "result.input", f"What comes back is {name} as it went in."


def _by_a_size(got, expected, sizes) -> Iterator[Named]:
    """Too large or too small by a size, which is told by its name, so that few numbers do."""
    if got.dtype == torch.bool or not got.any() or not finite(got, expected):
        return
    for name, size in sizes:
        if size > 0 and abs(size - 1) > 1e-3:
            if same(got, expected / size):
                yield f"result.divided {name}", f"The numbers are right, but divided by {name}."
            if same(got, expected * size):
                yield f"result.times {name}", f"The numbers are right, but multiplied by {name}."
        if size > 2 and name.startswith("the size"):
            if same(got, expected * (size - 1) / size):
                text = f"It is as if divided by {name} where one less belongs."
                yield f"result.one more {name}", text
            if same(got, expected * size / (size - 1)):
                text = f"It is as if divided by one less than {name}, where {name} itself belongs."
                yield f"result.one less {name}", text
