"""Slips by which part of a tensor is taken: another one that the program names, the middle of two
neighbours, or in later rounds what is new alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import made_from
from autograder.tracing.edits.kinds.source import Edit, Source, of_library
from autograder.tracing.text import callee, made_in

NORMALISES = ("softmax", "log_softmax")
MOST = 4  # other parts that are tried in one place
FROM, UNTIL = "1:", ":-1"


def of_what_stands_elsewhere(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one part, or of what one is taken of."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_another_part(source, node)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield from _of_the_middle(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_what_is_new(source, node)
        yield from _normalised_too_late(source, node)
    elif isinstance(node, ast.Assign | ast.AugAssign):
        yield from _of_rounds_exchanged(source, node)
    if isinstance(node, ast.stmt) and not hasattr(node, "body"):
        yield from _of_parts_exchanged(source, node)


def _normalised_too_late(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`log_softmax(picked)`, where `picked` is a part of what all of it is to be normalised."""
    function = source.function(node)
    of_all = of_library(node.func)
    value = (node.args[0] if node.args else None) if of_all else getattr(node.func, "value", None)
    if callee(node) not in NORMALISES or not isinstance(value, ast.Name) or function is None:
        return
    made = source.made(function, value.id)
    if len(made) != 1:
        return
    whole = made[0].value if isinstance(made[0], ast.Subscript) else None
    if isinstance(made[0], ast.Call) and callee(made[0]) in ("gather", "take_along_dim"):
        given = made[0].args[0] if made[0].args else None
        own = of_library(made[0].func)
        whole = given if own else getattr(made[0].func, "value", None)
    if whole is not None:
        how = f"`{source.shown(node)}` comes too late: all of it is to be normalised"
        (first, last), (start, end) = source.span(value), source.span(node)
        before, behind = source.text[start:first], source.text[last:end]
        inner = f"{before}{source.in_brackets(whole)}{behind}"
        (a, b), (c, d) = source.span(made[0]), source.span(whole)
        new = f"{source.text[a:c]}({inner}){source.text[d:b]}"
        yield source.with_expression(node, new, how, 1)


def _of_another_part(source: Source, node: ast.Name) -> Iterator[Edit]:
    """`query`, which is `inputs[i]`, where `inputs[j]` belongs."""
    function = source.function(node)
    around = [n for n in source.around(node) if isinstance(n, ast.For)]
    if not around or not isinstance(source.parent[node], ast.BinOp | ast.Call) or function is None:
        return
    of = made_from(source, function, node.id)
    rounds = {n.id for loop in around for n in source.names(loop.target)}
    others = [
        n
        for n in source.inside(function)
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in of
        if isinstance(n.slice, ast.Name) and n.slice.id in rounds
    ]
    shown = source.shown(source.parent[node])
    how = f"`{node.id}` is taken where another part of what it is taken of belongs, in `{shown}`"
    for text in [*dict.fromkeys(map(source.of, others))][:MOST]:
        yield replace(source.with_text(node, text, how, 2), by_name=True)


def _of_rounds_exchanged(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """The numbers of two loops in each other's places: in a whole statement, or in all of it but
    what is taken of one tensor."""
    loops = [n.target for n in source.around(node) if isinstance(n, ast.For)]
    rounds = [target.id for target in loops if isinstance(target, ast.Name)][:2]
    own = [n for n in source.names(node) if n.id in rounds]
    if len(rounds) < 2 or len({n.id for n in own}) < 2:
        return
    parts = [n for n in source.inside(node) if isinstance(n, ast.Subscript)]
    how = f"`{rounds[1]}` and `{rounds[0]}` have changed places in `{source.shown(node)}`"
    for stays in (None, *dict.fromkeys(source.of(part) for part in parts)):
        kept = {n for part in parts if source.of(part) == stays for n in source.names(part)}
        new = {name: rounds[1 - rounds.index(name.id)] for name in set(own) - kept}
        yield source.with_parts(node, new, how, 2 if stays else 3)


def _of_parts_exchanged(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`x[1:]` and `y[:-1]` in one statement, each cut where the other should be."""
    parts = [n for n in source.inside(node) if isinstance(n, ast.Slice) and (n.lower or n.upper)]
    if len(parts) != 2 or len({*map(source.of, parts)}) < 2:
        return
    one, other = sorted(parts, key=source.span)
    (start, middle), (again, end) = source.span(one), source.span(other)
    new = source.of(other) + source.text[middle:again] + source.of(one)
    both = f"`{source.of(one)}` and `{source.of(other)}`"
    how = f"{both} have changed places in `{source.shown(node)}`"
    yield source.with_span(node, (start, end), new, how, 1)


def _of_the_middle(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """The first or the second of each two neighbours, where the middle between them belongs."""
    text = source.of(node.slice).replace(" ", "")
    if text not in (FROM, UNTIL):
        return
    of = source.of(node.value)
    how = f"`{source.shown(node)}` takes one of each two neighbours, and not the middle between"
    yield source.with_expression(node, f"({of}[{UNTIL}] + {of}[{FROM}]) / 2", how, 2)


def _of_what_is_new(source: Source, node: ast.Call) -> Iterator[Edit]:
    """All that there is so far, where a call that is given what earlier rounds left takes the last
    place alone."""
    first = node.args[0] if node.args else None
    in_a_loop = any(isinstance(n, ast.For | ast.While) for n in source.around(node))
    left = [k.value for k in node.keywords if isinstance(k.value, ast.Name)]
    if not isinstance(first, ast.Name) or not in_a_loop:
        return
    for past in [name for name in left if _begins_with_none(source, name)]:
        how = f"`{first.id}` holds what `{past.id}` has already, in `{source.shown(node)}`"
        new = f"{first.id} if {past.id} is None else {first.id}[:, -1:]"
        yield source.with_expression(first, new, how, 1)


def _begins_with_none(source: Source, name: ast.Name) -> bool:
    """Whether a variable is None before the rounds of a loop give it a value."""
    function = source.function(name)
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)] if function else []
    own = [v for n in made for t, v in made_in(n) if getattr(t, "id", "") == name.id]
    nothing = [isinstance(v, ast.Constant) and v.value is None for v in own]
    return any(nothing) and not all(nothing)
