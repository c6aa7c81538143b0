"""Slips in which place of a table is taken: where a number is taken apart into two, an order is
turned back, places of one order are asked in another, and some of an axis are counted with it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import sizes
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee, made_in

ORDERS = ("argsort", "sort", "topk", "randperm")  # what gives places in another order
MOST = 6  # sizes that are tried in one place


def of_tables(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of which place is taken."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _taken_apart(source, node, node.targets[0])
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        if isinstance(node.slice, ast.Name):
            yield from _not_turned_back(source, node, node.slice)
            yield from _of_another_order(source, node, node.slice)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _with_the_first_ones(source, node)


def _taken_apart(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`head, item = divmod(number, items)`, for `item, head = divmod(number, heads)`."""
    function, parts = source.function(node), getattr(target, "elts", [])
    found = _quotient(source, node.value)
    if function is None or found is None or len(parts) != 2:
        return
    number, size, divides_first = found
    one, other = map(source.of, parts if divides_first else parts[::-1])
    how = f"`{source.shown(node)}` takes the number apart in another order than it is put together"
    others = sorted(sizes(source, function) - {size, number, one, other})[:MOST]
    for each in (size, *others):
        new = f"{other}, {one} = ({number}) // ({each}), ({number}) % ({each})"
        yield source.with_text(node, new, how, 1)


def _quotient(source: Source, value: ast.expr) -> tuple[str, str, bool] | None:
    """What is divided, by what, and whether the quotient stands before the rest; None of what is
    no such pair."""
    if isinstance(value, ast.Call) and source.of(value.func) == "divmod" and len(value.args) == 2:
        return *map(source.of, value.args), True
    pair = getattr(value, "elts", [])
    if len(pair) != 2 or not all(isinstance(n, ast.BinOp) for n in pair):
        return None
    whole, rest = sorted(pair, key=lambda n: isinstance(n.op, ast.Mod))
    if not (isinstance(whole.op, ast.FloorDiv) and isinstance(rest.op, ast.Mod)):
        return None
    texts = [(source.of(n.left), source.of(n.right)) for n in (whole, rest)]
    return (*texts[0], whole is pair[0]) if texts[0] == texts[1] else None


def _not_turned_back(source: Source, node: ast.Subscript, index: ast.Name) -> Iterator[Edit]:
    """`sorted_rows[order]`, which sorts once more, where the rows belong back in their places."""
    made = _made(source, node, index.id)
    if any(callee(n) in ORDERS for value in made for n in source.calls(value)):
        how = f"`{source.shown(node)}` takes the order itself, and not the way back"
        yield source.with_text(index, f"{index.id}.argsort()", how, 1)


def _of_another_order(source: Source, node: ast.Subscript, index: ast.Name) -> Iterator[Edit]:
    """`ranked[kept]` behind `kept = tokens[:count]`, where `ranked[:count]` are theirs."""
    for value in _made(source, node, index.id):
        taken = value.slice if isinstance(value, ast.Subscript) else None
        if taken is not None and source.of(value.value) != source.of(node.value):
            how = f"`{source.shown(node)}` asks for places of another order"
            yield source.with_text(node, f"{source.of(node.value)}[{source.of(taken)}]", how, 1)


def _made(source: Source, node: ast.AST, name: str) -> list[ast.expr]:
    """What the statements of the functions around give a variable, also with others."""
    inside = _in_the_widest(source, node)
    pairs = itertools.chain.from_iterable(made_in(n) for n in inside if isinstance(n, ast.Assign))
    return [value for target, value in pairs if source.of(target) == name]


def _in_the_widest(source: Source, node: ast.AST) -> list[ast.AST]:
    """All syntax of the outermost function that a node stands in."""
    around = source.functions_around(node)
    return source.inside(around[-1]) if around else []


def _with_the_first_ones(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`count = batch * tokens`, where `x[:, first:]` is counted."""
    cuts = [n for n in _in_the_widest(source, node) if isinstance(n, ast.Slice)]
    cuts = [n for n in cuts if n.upper is None and n.step is None]
    begins = dict.fromkeys(n.lower.id for n in cuts if isinstance(n.lower, ast.Name))
    factors = [side for side in (node.left, node.right) if isinstance(side, ast.Name)]
    for first, factor in itertools.product(begins, factors):
        if first != factor.id:
            how = f"`{factor.id}` counts those before `{first}`, in `{source.shown(node)}`"
            yield source.with_expression(factor, f"{factor.id} - {first}", how, 2)
