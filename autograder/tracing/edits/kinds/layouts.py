"""Slips in how numbers are laid out: heads cut or merged as they lie, axes spread or repeated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.counts import HEADS
from autograder.tracing.edits.kinds.numbers import TURNS
from autograder.tracing.edits.kinds.source import Edit, Source, number, of_library
from autograder.tracing.text import callee

JOINS = ("reshape", "view", "flatten", "unflatten")
MOST_HEADS = 2  # names that may be how many there are


def of_layout(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Axes that have to be exchanged before a tensor's numbers are put into another shape."""
    name = callee(node)
    if name not in JOINS or not isinstance(node.func, ast.Attribute):
        return
    if of_library(node.func) or isinstance(node.func.value, ast.Call | ast.Name | ast.Attribute):
        value = node.args[0] if of_library(node.func) and node.args else node.func.value
        text = source.of(value)
        how = (
            f"`{name}` keeps the order of the numbers in `{source.shown(value)}`, so that axes mix"
        )
        rank = 2 if _is_turned(source, value) else 1  # then in another way than it should be
        for a, b in ((1, 2), (-2, -1), (0, 1)):
            yield source.with_text(value, f"({text}).transpose({a}, {b}).contiguous()", how, rank)
        if len(node.args) == 2:
            yield source.with_expression(node, f"({text}).transpose(-2, -1)", how, rank)
    if name == "view":
        how = "`view` needs numbers that lie one after the other"
        start, end = source.span(node.func)
        yield source.with_span(node, (end - len(name), end), "reshape", how)
    # The new axes in another order, and then exchanged.
    if name in ("reshape", "view") and [*map(number, node.args)] == [-1, 1]:
        how = f"`{source.shown(node)}` makes a table of whatever comes in"
        yield source.with_expression(node, f"{source.of(node.func.value)}.unsqueeze(-1)", how, 1)
    if len(node.args) > 2 and name in ("reshape", "view"):
        texts = [source.of(each) for each in node.args]
        for i in range(len(texts) - 1):
            other = [*texts[:i], texts[i + 1], texts[i], *texts[i + 2 :]]
            receiver = source.of(node.func)
            several = any(isinstance(n, ast.Starred) for n in node.args[:i])
            at = i - len(texts) if several else i  # counted from the end, where that is known
            new = f"{receiver}({', '.join(other)}).transpose({at}, {at + 1})"
            how = f"`{name}` takes the numbers as they lie, and another order is meant"
            yield source.with_expression(node, new, how, 1)
    yield from _of_folded(source, node)


def of_axes_that_lie_so(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`w.view(d, heads, size).permute(1, 2, 0)`, of what lies in the order of the result."""
    cut, order = getattr(node.func, "value", None), [*map(number, node.args)]
    if not isinstance(cut, ast.Call) or callee(cut) not in ("view", "reshape"):
        return
    if not all(isinstance(axis, int) for axis in order):
        return
    sizes = [source.of(each) for each in cut.args]
    if callee(node) in ("transpose", "swapaxes") and len(order) == 2:
        (one, other), order = order, [*range(len(sizes))]
        if max(abs(one), abs(other)) < len(sizes):
            order[one], order[other] = order[other], order[one]
    if sorted(order) == [*range(len(sizes))]:
        turned = ", ".join(sizes[place] for place in order)
        how = f"`{source.shown(cut)}` cuts the axes in another order than they lie in"
        yield source.with_text(node, f"{source.of(cut.func)}({turned})", how, 1)


def of_axes_beside(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.flatten(1, 2)`, where the axes in front of these, or behind them, are to be joined."""
    axes = [*map(number, node.args)]
    if callee(node) != "flatten" or len(axes) != 2 or not all(isinstance(n, int) for n in axes):
        return
    (start, _), (_, end) = map(source.span, node.args)
    how = f"`{source.shown(node)}` joins other axes than it should"
    for by in (-1, 1):
        one, other = (axis + by for axis in axes)
        if (one < 0) == (axes[0] < 0) and (other < 0) == (axes[1] < 0):
            yield source.with_span(node, (start, end), f"{one}, {other}", how, 1)


def _is_turned(source: Source, value: ast.expr) -> bool:
    """Whether the axes of an expression, or of the variable in it, are exchanged there."""
    function = source.function(value)
    names = {n.id for n in source.inside(value) if isinstance(n, ast.Name)}
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)] if function else []
    own = [n for n in made if names & set(map(source.of, n.targets))]
    calls = (n for each in (value, *own) for n in source.inside(each) if isinstance(n, ast.Call))
    return any(callee(n) in (*TURNS, "permute") for n in calls)


def _of_folded(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Two axes in one, `[a * b, c, d]`, cut from what lies in the order a, c, b."""
    first = node.args[0] if len(node.args) == 3 and not of_library(node.func) else None
    if isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult):
        a, b = source.in_brackets(first.left), source.in_brackets(first.right)
        own, (c, d) = source.of(node.func.value), map(source.of, node.args[1:])
        new = f"{own}.view({a}, {c}, {b}, {d}).transpose(1, 2).reshape({a} * {b}, {c}, {d})"
        how = f"`{callee(node)}` takes the numbers as they lie, and another order is meant"
        yield source.with_expression(node, new, how, 1)
    elif first is not None:
        yield from _of_heads_that_are_items(source, node)


def _of_heads_that_are_items(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.view(b, t, heads * size)` of `[b * heads, t, size]`: the heads have to be turned first."""
    own, (b, t, all_) = source.of(node.func.value), map(source.of, node.args)
    last = node.args[2]
    if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Mult):
        heads = [source.of(last.left), source.of(last.right)]
    else:
        names = {n.id for n in source.names(source.function(node))}
        every = [n for n in source.inside(source.tree) if isinstance(n, ast.Attribute)]
        names |= {text for n in every if (text := source.of(n)).startswith("self.")}
        heads = sorted(each for each in names if HEADS.match(each.rpartition(".")[2]))
    how = f"`{source.shown(node)}` takes the heads for items as they lie, and mixes their tokens"
    for each in heads[:MOST_HEADS]:
        new = f"{own}.reshape({b}, {each}, {t}, -1).transpose(1, 2).reshape({b}, {t}, {all_})"
        yield source.with_expression(node, new, how, 1)


def of_heads_first(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`wide.view(b, t, heads, 3 * size)`, of what holds all queries, all keys and all values."""
    sizes = node.args if isinstance(node.func, ast.Attribute) else []
    if callee(node) not in ("view", "reshape") or len(sizes) < 3:
        return
    heads, last = sizes[-2:]
    three = isinstance(last, ast.BinOp) and 3 in (number(last.left), number(last.right))
    apart = number(heads) == 3
    if not (three or apart) or (apart and len(sizes) < 4):
        return
    heads = sizes[-3] if apart else heads
    own = source.in_brackets(node.func.value)
    new = f"{own}.unflatten(-1, (3, {source.of(heads)}, -1)).transpose(-3, -2)"
    given = source.text[source.span(node.func)[1] : source.span(node)[1]]
    how = f"`{source.shown(node)}` cuts into heads what lies in three blocks"
    yield source.with_expression(node, f"{new}.reshape{given}", how, 0)


def of_heads_as_items(source: Source, node: ast.Call) -> Iterator[Edit]:
    """An average over the second axis, where that is joined with the first."""
    function = node.func
    axes = [*map(number, node.args), *(number(k.value) for k in node.keywords if k.arg == "dim")]
    if callee(node) != "mean" or axes != [1] or of_library(function):
        return
    how = f"`{source.shown(node)}` averages over an axis that is to be joined with the first"
    if isinstance(function, ast.Attribute):
        yield source.with_expression(node, f"{source.of(function.value)}.flatten(0, 1)", how, 2)


def of_repeats(source: Source, node: ast.Call) -> Iterator[Edit]:
    """The whole axis again and again, where each of its places is to be repeated; or each, where
    the whole axis is."""
    yield from _of_each(source, node)
    many = [i for i, each in enumerate(node.args) if number(each) != 1]
    if callee(node) == "repeat" and len(node.args) > 1 and len(many) == 1:
        (axis,) = many
        receiver, times = source.of(node.func.value), source.of(node.args[axis])
        how = f"`{source.shown(node)}` repeats all one after the other, and not each"
        new = f"{receiver}.repeat_interleave({times}, dim={axis})"
        yield source.with_expression(node, new, how)


def _of_each(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.repeat_interleave(x, 2, dim=-1)`, where `torch.cat((x, x), dim=-1)` belongs."""
    own = [] if of_library(node.func) else [getattr(node.func, "value", None)]
    given = [*own, *node.args]
    axes = [source.of(k.value) for k in node.keywords if k.arg in ("dim", "axis")]
    if callee(node) == "repeat_interleave" and len(given) == 2 and len(axes) == 1:
        how = f"`{source.shown(node)}` repeats each one, and not all of them one after the other"
        new = f"torch.cat([{source.of(given[0])}] * {source.in_brackets(given[1])}, dim={axes[0]})"
        yield source.with_text(node, new, how, 1)


def of_spread(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A new axis, along which each is repeated, on the other side of its neighbour."""
    value = getattr(node.func, "value", None)
    if callee(node) != "expand" or of_library(node.func) or value is None:
        return
    place, base = None, getattr(value, "value", None)
    if isinstance(value, ast.Call) and callee(value) == "unsqueeze" and len(value.args) == 1:
        place, base = number(value.args[0]), getattr(value.func, "value", None)
    elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple):
        new = [i for i, n in enumerate(value.slice.elts) if getattr(n, "value", 0) is None]
        rest = [n for n in value.slice.elts if getattr(n, "value", 0) is not None]
        place = new[0] if len(new) == 1 and {source.of(n) for n in rest} <= {":", "..."} else None
    sizes = [source.of(n) for n in node.args]
    for other in (place + 1, place - 1) if isinstance(place, int) and base is not None else ():
        if 0 <= place < len(sizes) and 0 <= other < len(sizes):
            own = list(sizes)
            own[place], own[other] = own[other], own[place]
            how = f"`{source.shown(node)}` has its new axis in another place than it should"
            new = f"{source.of(base)}.unsqueeze({other}).expand({', '.join(own)})"
            yield source.with_expression(node, new, how)
