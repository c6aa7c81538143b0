"""Slips that what stands beside them shows: a neighbour that is made another type, a condition that
is known and not asked, one spread after another axis was averaged, objects for what they hold, what
each round of a loop begins with, the other half of a symmetric table, what a round leaves there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import names_of
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee, made_in, root_of

CASTS = ("double", "float", "half", "long", "bool", "detach", "clone", "cpu")
SPREADS = ("var", "std")
CONDITIONS = (ast.Compare, ast.BoolOp)
MOST = 3  # conditions that are put behind a term


def of_neighbours(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that what stands beside a part of a program asks for."""
    if isinstance(node, ast.Tuple | ast.Call):
        yield from _of_what_is_cast(source, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _of_a_condition(source, node)
    if isinstance(node, ast.Call) and callee(node) == "mean":
        yield from _of_one_spread(source, node)
    if isinstance(node, ast.Call) and source.of(node.func) == "id":
        yield from _of_one_storage(source, node)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _of_each_round(source, node, node.targets[0])
        yield from _of_the_other_half(source, node, node.targets[0])
        yield from _of_what_stays(source, node, node.targets[0])


def _of_what_is_cast(source: Source, node: ast.Tuple | ast.Call) -> Iterator[Edit]:
    """`a.double(), b`, where both belong in one type."""
    parts = node.elts if isinstance(node, ast.Tuple) else node.args
    casts = [
        part.func.attr
        for part in parts
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        if part.func.attr in CASTS and not part.args
    ]
    for cast in dict.fromkeys(casts):
        for part in parts:
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                how = f"`{part.id}` lacks the `{cast}()` of what stands beside it"
                yield source.with_expression(part, f"{part.id}.{cast}()", how)


def _of_a_condition(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A term that is added whether or not something holds which the function has found out."""
    function = source.function(node)
    line = source.statement(node).lineno
    for name in _conditions(source, function, line)[:MOST] if function is not None else ():
        for asked in (name, f"(not {name})"):
            verb = "added" if isinstance(node.op, ast.Add) else "taken off"
            how = f"`{source.shown(node.right)}` is {verb} whether or not `{name}` holds"
            new = f"{source.in_brackets(node.right)} * {asked}"
            yield source.with_expression(node.right, new, how, 2)


def _conditions(source: Source, function: ast.FunctionDef, line: int) -> list[str]:
    """The variables that hold whether something is so."""
    known = names_of(source, function, line)
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    found = [
        source.of(target)
        for n in made
        for target, value in made_in(n)
        if isinstance(value, CONDITIONS)
    ]
    return [name for name in known if name in found]


def _of_one_spread(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.var(0).mean(-1)`, the average of several spreads, where all numbers have one."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not isinstance(inner, ast.Call) or callee(inner) not in SPREADS:
        return
    if not isinstance(inner.func, ast.Attribute):
        return
    of_all = source.of(inner.func.value) == "torch"
    if of_all and not inner.args:
        return
    of = source.of(inner.args[0] if of_all else inner.func.value)
    one, other = _axis(inner, int(of_all)), _axis(node, 0)
    if one is None or other is None:
        return
    how = f"`{source.shown(node)}` is the average of several spreads, each around its own mean"
    more = "".join(
        f", {source.of(k)}" for k in inner.keywords if k.arg not in ("dim", "axis", "keepdim")
    )
    for axis in dict.fromkeys((other, other + (1 if other >= 0 else -1))):
        if axis != one:
            new = f"({of}).{callee(inner)}(({one}, {axis}){more})"
            yield source.with_expression(node, new, how, 1)


def _axis(call: ast.Call, first: int) -> int | None:
    """The one axis that a call is about."""
    axes = [k.value for k in call.keywords if k.arg in ("dim", "axis")] + call.args[first:]
    try:
        axis = ast.literal_eval(axes[0]) if axes else None
    except ValueError:
        return None
    return axis if isinstance(axis, int) and not isinstance(axis, bool) else None


def _of_one_storage(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`id(tensor)`: what a table of weights hands out are new objects, of the same storage."""
    function = source.function(node)
    calls = [
        n
        for n in (source.inside(function) if function is not None else [node])
        if isinstance(n, ast.Call) and source.of(n.func) == "id" and len(n.args) == 1
    ]
    if not calls or calls[0] is not node:
        return
    start, end = source.span(calls[0])[0], source.span(calls[-1])[1]
    new, at = "", start
    for call in calls:
        first, last = source.span(call)
        new += f"{source.text[at:first]}{source.in_brackets(call.args[0])}.data_ptr()"
        at = last
    how = f"`{source.shown(node)}` tells objects apart, and two of them may share their numbers"
    yield source.with_span(node, (start, end), new, how, 1)


def _of_each_round(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`z = cut(args[0], p)` in a loop behind `z = args[0]`, which each round begins with anew."""
    function = source.function(node)
    in_a_loop = any(isinstance(n, ast.For | ast.While) for n in source.around(node))
    if function is None or not in_a_loop or not isinstance(target, ast.Name):
        return
    begun = {
        source.of(n.value)
        for n in source.inside(function)
        if isinstance(n, ast.Assign) and n.lineno < node.lineno
        if [source.of(t) for t in n.targets] == [target.id]
    }
    for part in source.inside(node.value):
        if isinstance(part, ast.expr) and part is not node.value and source.of(part) in begun:
            how = f"each round begins with `{source.shown(part)}` again, and not with `{target.id}`"
            yield source.with_text(part, target.id, how)


def _of_the_other_half(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`table[i, j] = value` in two loops, where `table[j, i]` has the same value and none."""
    index = target.slice if isinstance(target, ast.Subscript) else None
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2:
        return
    one, other = map(source.of, index.elts)
    if not all(isinstance(n, ast.Name) for n in index.elts) or one == other:
        return
    mirrored = f"{source.of(target.value)}[{other}, {one}]"
    how = f"`{source.of(target)}` is filled, and its mirror image `{mirrored}` is not"
    yield source.with_text(target, f"{mirrored} = {source.of(target)}", how, 1)


def _of_what_stays(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`step[i] = epsilon` in a loop that reads `step`, and never takes it back."""
    name = root_of(target) if isinstance(target, ast.Subscript) else ""
    loop = next((n for n in source.around(node) if isinstance(n, ast.For | ast.While)), None)
    if loop is None or not name:
        return
    named = [n for n in source.names(loop) if n.id == name]
    apart = [n for n in named if n not in source.names(node)]
    if apart and all(isinstance(n.ctx, ast.Load) for n in named):
        how = f"what it writes into `{name}` in one round is still there in the next"
        start = source.span(node)[0]
        yield source.with_span(node, (start, start), f"{name}.zero_(); ", how, 1)
