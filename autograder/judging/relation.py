"""How a wrong result stands to the right one, or to what went in: a cause that needs no author.

A known mistake (`reference`, `.wrong`) is told by its name. Where none fits, the result may still
be the right one times a number, or transposed, or averaged; it may be an input as it came in. One
relation must hold on every call that is wrong, or nothing is said. No expected value is shown, and
of results so small that a relation would give them away nothing is said either.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence

import torch

from autograder.course.asking import Sight
from autograder.course.calls import Outcome

FEW = 6  # of fewer numbers a relation may hold by accident, and says too much
LONGEST = 200  # of longer axes it is not looked up where they are right
LARGEST = 10**6  # numbers; a larger result is not looked at
VAGUE = ("result.moved",)  # relations that say little of a cause
PLACE = "place."  # how a relation's name begins that says where, and not why
TOLERANCE = 1e-4  # relative to the largest number, as `Exercise.rtol` is

Named = tuple[str, str]  # the relation's name, '' where it is a place only, and its sentence
Pair = tuple[torch.Tensor, torch.Tensor]  # what came back, what was expected


def relation(sight: Sight) -> Named | None:
    """The relation that holds wherever a result is wrong, as (name, sentence); None without one."""
    wrong = []  # one item a call: its tensors that differ, and its inputs
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if got.error or expected.error:
            return None
        pairs = _pairs(got, expected)
        if pairs is None:
            return _of_several(sight)
        differ = [p for p in pairs if not _same(*p)]
        if differ:
            wrong.append((differ, call.args))
    if not wrong:
        return None
    swapped = _of_several(sight)
    if swapped is not None:
        return swapped
    if sum(got.numel() for pairs, _ in wrong for got, _ in pairs) < FEW:
        return None
    candidates = (_names(sight, pairs, args) for pairs, args in wrong)
    told = next(candidates)
    for other in candidates:
        told = {name: said for name, said in told.items() if name in other}
    first = next(iter(told.items()), None)
    return ("", first[1]) if first and first[0].startswith(PLACE) else first


# --- several results -----------------------------------------------------------------------------
def _several(outcome: Outcome) -> list[torch.Tensor] | None:
    value = outcome.value
    if not isinstance(value, tuple | list):
        return None
    there = [v for v in value if v is not None]
    parts = [_tensor(torch.tensor(float(v)) if isinstance(v, int | float) else v) for v in there]
    return None if any(p is None for p in parts) else parts


def _of_several(sight: Sight) -> Named | None:
    """The right results in another order, or some of them missing."""
    said = []
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        wanted = _several(expected)
        if wanted is None or len(wanted) < 2 or not any(w.numel() > 1 for w in wanted):
            return None
        alone = _tensor(got.value)
        parts = [alone] if alone is not None else _several(got)
        if not parts:
            return None
        found = [[n for n, w in enumerate(wanted) if _same(part, w)] for part in parts]
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
        return
    inputs = _inputs(sight, args)
    if got.shape == expected.shape:
        yield from _by_a_size(got, expected, _sizes(sight, args))
        if not _tells(expected):
            return
        yield from _as_it_came(got, inputs)
        yield from _scaled(got, expected)
        yield from _rounded(got, expected)
        yield from _moved(got, expected)
        yield from _added(got, expected, inputs)
        yield from _put_through(got, expected)
        yield from _all_alike(got, expected)
        yield from _in_part(got, expected)
    else:
        yield from _as_it_came(got, inputs)
        yield from _other_axes(got, expected)


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
        if _same(got, value):
            yield "result.input", f"What comes back is {name} as it went in."


def _scaled(got, expected) -> Iterator[Named]:
    if not got.any():
        yield "result.zero", "Every number that comes back is 0."
        return
    if got.dtype == torch.bool:
        return
    large = expected.abs() > 0.05 * _largest(expected)
    factor = (got[large] / expected[large]).median().item()
    if not _finite(got, expected) or not _same(got, expected * factor) or abs(factor) < 1e-6:
        return
    if abs(factor + 1) < 1e-3:
        yield "result.sign", "The numbers are right, but each has the other sign."
    else:
        text = f"Each number is the right one times one and the same factor, here {factor:.3g}."
        yield "result.factor", text


def _by_a_size(got, expected, sizes) -> Iterator[Named]:
    """Too large or too small by a size, which is told by its name, so that few numbers do."""
    if got.dtype == torch.bool or not got.any() or not _finite(got, expected):
        return
    for name, size in sizes:
        if size > 0 and abs(size - 1) > 1e-3:
            if _same(got, expected / size):
                yield f"result.divided {name}", f"The numbers are right, but divided by {name}."
            if _same(got, expected * size):
                yield f"result.times {name}", f"The numbers are right, but multiplied by {name}."


def _rounded(got, expected) -> Iterator[Named]:
    """All that comes back are numbers of half precision, near the right ones."""
    if got.dtype == torch.bool or not _finite(got, expected):
        return
    for kind, off in ((torch.float16, 2**-9), (torch.bfloat16, 2**-6)):
        coarse = torch.equal(got, got.to(kind).double()) and not torch.equal(got, got.round())
        if coarse and (got - expected).abs().max() <= off * _largest(expected):
            text = "The numbers are right in their first digits: they went through {}."
            yield f"result.{kind}", text.format(str(kind).removeprefix("torch."))


def _moved(got, expected) -> Iterator[Named]:
    """The right numbers at other places."""
    if got.dtype == torch.bool and _same(got, ~expected):
        yield "result.inverted", "True stands where False belongs, and False where True does."
        return
    ordered = got.flatten().sort().values
    if not _same(ordered, expected.flatten().sort().values):
        return
    yield from _transposed(got, expected)
    for axis, size in enumerate(got.shape):
        if size < 2:
            continue
        if _same(got, expected.flip(axis)):
            yield f"result.reversed {axis}", f"It stands in reverse order along axis {axis}."
        for by in (1, -1):
            if _same(got, expected.roll(by, axis)):
                text = f"All stands {'behind' if by > 0 else 'before'} its place, by one along "
                yield f"result.shifted {axis} {by}", f"{text}axis {axis}."
    if len(ordered.unique()) >= FEW:
        yield "result.moved", "The right numbers are there, but at other places."


def _transposed(got, expected) -> Iterator[Named]:
    if not 2 <= expected.dim() <= 4:
        return
    plain = tuple(range(expected.dim()))
    for order in itertools.permutations(plain):
        if order == plain or [expected.shape[n] for n in order] != list(got.shape):
            continue
        if _same(got, expected.permute(order)):
            yield f"result.transposed {order}", _changed_places(order)


def _changed_places(order: tuple[int, ...]) -> str:
    others = [n for n, axis in enumerate(order) if n != axis]
    if len(others) == 2:
        return f"The numbers are right, but the axes {others[0]} and {others[1]} are swapped."
    return "The numbers are right, but the axes stand in another order."


def _added(got, expected, inputs) -> Iterator[Named]:
    if got.dtype == torch.bool or not _finite(got, expected):
        return
    rest = got - expected
    if _same(rest, rest.flatten()[0].expand_as(rest)):
        yield "result.offset", "All numbers are off by one and the same amount."
    for name, value in inputs:
        if value.shape != rest.shape:
            continue
        if _same(rest, value):
            yield f"result.added {name}", f"The result is right, but for {name}, which is added."
        if _same(rest, -value):
            yield f"result.taken {name}", f"The result is right, but for {name}, taken from it."


def _put_through(got, expected) -> Iterator[Named]:
    """A step too many or too few at the end."""
    if got.dtype == torch.bool or not _finite(got, expected):
        return
    for name, step in _STEPS.items():
        if _same(got, step(expected)):
            yield f"result.{name} too many", f"The result is right, but went through {name} too."
        if _same(step(got), expected):
            yield f"result.{name} missing", f"What is missing is the last step, {name}."
    for axis in range(got.dim()):
        if got.shape[axis] < 2:
            continue
        if _same(got, expected.softmax(axis)):
            text = f"The result is right, but went through a softmax over axis {axis} too."
            yield f"result.softmax {axis} too many", text
        if _same(got.softmax(axis), expected):
            text = f"What is missing is the last step, a softmax over axis {axis}."
            yield f"result.softmax {axis} missing", text
        if _same(got, expected.cumsum(axis)):
            yield f"result.running {axis}", f"The numbers are added up along axis {axis}."
        total = expected.sum(axis, keepdim=True)
        if total.abs().min() > 1e-6 and _same(got, expected / total):
            text = f"The result is right, but was divided by its sum along axis {axis}."
            yield f"result.normalised {axis}", text
        for what, merged in (("averaged", expected.mean), ("added up", expected.sum)):
            if _same(got, merged(axis, keepdim=True).expand_as(got)):
                yield f"result.{what} {axis}", f"The numbers are {what} along axis {axis}."


_STEPS: dict[str, Callable] = {
    "an exponential": torch.exp,
    "a logarithm": lambda x: x.clamp(min=1e-300).log(),
    "a square": torch.square,
    "a root": lambda x: x.clamp(min=0).sqrt(),
    "the absolute value": torch.abs,
    "a cut at 0": torch.relu,
    "rounding": torch.round,
    "cutting off decimals": torch.trunc,
    "1 / x": lambda x: 1 / torch.where(x == 0, 1e-300, x),
    "1 - x": lambda x: 1 - x,
}


def _all_alike(got, expected) -> Iterator[Named]:
    for axis, size in enumerate(got.shape):
        alike = [_same(t, t.narrow(axis, 0, 1).expand_as(t)) for t in (got, expected) if size > 1]
        if alike == [True, False]:
            yield f"result.alike {axis}", f"Along axis {axis} all that comes back is the same."


def _in_part(got, expected) -> Iterator[Named]:
    """Right at some places of an axis: where to look."""
    size = _largest(expected)
    for axis, length in enumerate(got.shape):
        if not 3 <= length <= LONGEST:
            continue
        pairs = zip(got.unbind(axis), expected.unbind(axis), strict=True)
        right = [_same(g, e, size) for g, e in pairs]
        for name, only in (("first", right[:1]), ("last", right[-1:])):
            rest = right[1:] if name == "first" else right[:-1]
            if only[0] and not any(rest):
                text = f"Along axis {axis} only the {name} one is right."
                yield f"{PLACE}only the {name} {axis}", text
            if not only[0] and all(rest):
                text = f"Along axis {axis} all are right but the {name}."
                yield f"{PLACE}all but the {name} {axis}", text


def _other_axes(got, expected) -> Iterator[Named]:
    """The right numbers in another form; or an axis that was summed over, or never was."""
    if got.numel() < 2:
        return
    if _same(got.flatten(), expected.flatten()):
        yield "result.form", "The numbers are right; only the form is not."
    yield from _transposed(got, expected)
    if got.dtype == torch.bool or not _tells(got) or not _tells(expected):
        return
    for axis in range(expected.dim()):
        for what, merged in (("averaged", expected.mean), ("added up", expected.sum)):
            if any(_same(got, merged(axis, keepdim=keep)) for keep in (True, False)):
                yield f"result.{what} {axis}", f"The numbers are {what} along axis {axis}."
    for axis in range(got.dim()):
        for what, merged in (("averaged", got.mean), ("added up", got.sum)):
            if any(_same(merged(axis, keepdim=keep), expected) for keep in (True, False)):
                text = f"What is missing: the numbers are to be {what} along axis {axis}."
                yield f"result.not {what} {axis}", text


# --- its parts -----------------------------------------------------------------------------------
def _pairs(got: Outcome, expected: Outcome) -> list[Pair] | None:
    """Each tensor that came back beside the one expected; None where they can't be paired."""
    wanted = _tensor(expected.value)
    if wanted is not None:
        mine = _tensor(got.value)
        return None if mine is None else [(mine, wanted)]
    wanted, mine = _several(expected), _several(got)
    if wanted is None or mine is None or len(mine) != len(wanted):
        return None
    return list(zip(mine, wanted, strict=True))


def _tensor(value) -> torch.Tensor | None:
    """A value as a tensor of float64, or of True and False."""
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.numel() > LARGEST:
        return None
    return value if value.dtype == torch.bool else value.double()


def _tells(tensor: torch.Tensor) -> bool:
    """Whether there are enough numbers, of which not all are equal."""
    return tensor.numel() >= FEW and bool((tensor != tensor.flatten()[0]).any())


def _same(one: torch.Tensor, two: torch.Tensor, size: float = 0.0) -> bool:
    """Whether two tensors are equal up to rounding; infinities at the same places."""
    if one.shape != two.shape or (one.dtype == torch.bool) != (two.dtype == torch.bool):
        return False
    if one.dtype == torch.bool:
        return torch.equal(one, two)
    if not torch.equal(one.isfinite(), two.isfinite()):
        return False
    finite = two.isfinite()
    if not torch.equal(one[~finite].nan_to_num(0.5), two[~finite].nan_to_num(0.5)):
        return False
    allowed = TOLERANCE * max(_largest(two), size, 1e-9)
    return not finite.any() or (one[finite] - two[finite]).abs().max().item() <= allowed


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].double()
    return finite.abs().max().item() if finite.numel() else 0.0


def _finite(*tensors: torch.Tensor) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors)
