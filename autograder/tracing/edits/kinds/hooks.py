"""Slips with hooks: one that nothing takes away again, one that gives nothing back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source, arguments_of, number
from autograder.tracing.edits.kinds.statements import SURE, block_of, rows_of
from autograder.tracing.text import callee

HANDLE, HANDLES, RESULT = "_the_hook", "_the_hooks", "_the_result"


def of_hooks(source: Source, node: ast.AST) -> Iterator[Edit]:
    """A hook that stays in, taken away at the end of the block that puts it in; where that is a
    loop which does no more, at the end of the block around it. In a hook what goes in for what
    comes out, and what it makes that is not handed back."""
    if isinstance(node, ast.FunctionDef):
        yield from _of_what_it_makes(source, node)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield from _of_what_goes_in(source, node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_the_first_of_a_tuple(source, node)
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from _of_the_rest(source, node)
    if isinstance(node, ast.Attribute):
        yield from _of_a_part(source, node)
    if not isinstance(node, ast.Expr | ast.Assign) or not isinstance(node.value, ast.Call):
        return
    if not callee(node.value).endswith("_hook") or "remove" in source.called:
        return
    loop, end = source.parent[node], source.span(node)[1]
    first = source.starts[node.lineno - 1]
    if source.text[first : source.span(node)[0]].strip():
        return  # it stands behind something in its line
    block = block_of(source, node)
    how = f"`{source.shown(node.value)}` puts in a hook that nothing takes away"
    call = source.of(node.value)
    one = source.of(node.targets[0]) if isinstance(node, ast.Assign) else HANDLE
    if len(block) > 1 or not isinstance(loop, ast.For):
        text = f"{' ' * node.col_offset}{one} = {call}"
        yield _with(source, node, block[-1], (first, text, end), f"{one}.remove()", how)
        return
    around = block_of(source, loop)
    begin, indent = rows_of(source, loop)[0], " " * loop.col_offset
    head = source.text[begin : source.span(node)[0]]
    text = f"{indent}{HANDLES} = []\n{head}{one} = {call}; {HANDLES}.append({one})"
    away = f"[each.remove() for each in {HANDLES}]"
    yield _with(source, node, around[-1], (begin, text, end), away, how)


def _of_what_it_makes(source: Source, node: ast.FunctionDef) -> Iterator[Edit]:
    """A hook that makes something of what it is given, and returns nothing."""
    hooks = [c for c in source.calls(source.tree) if callee(c).endswith("_hook") and c.args]
    inside = source.inside(node)
    ends = any(isinstance(n, ast.Return) and n.value is not None for n in inside)
    if ends or node.name not in {source.of(c.args[0]) for c in hooks}:
        return
    of_it, last = {a.arg for a in node.args.args}, node.body[-1]
    for made in (n for n in node.body if isinstance(n, ast.Assign)):
        name, read = source.of(made.targets[0]), {n.id for n in source.names(made.value)}
        if name.isidentifier() and of_it & read:
            of_it.add(name)
            how = f"`{node.name}` makes `{name}` and hands nothing back, so that nothing changes"
            end = source.span(last)[1]
            new = f"\n{' ' * last.col_offset}return {name}"
            yield source.with_span(last, (end, end), new, how, SURE).told_of(last.end_lineno)


def _of_what_goes_in(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`args[0]` in a function that is given a module, what goes in, and what comes out."""
    function = source.function(node)
    given = [a.arg for a in function.args.args][-3:] if function is not None else []
    hooks = any(name.endswith("_hook") for name in source.called)
    if hooks and len(given) == 3 and source.of(node.value) == given[1]:
        how = f"`{source.shown(node)}` is what goes in, and not what comes out"
        yield source.with_text(node, given[2], how, 1)
    if hooks and len(given) == 3 and source.of(node.value) == given[2] and number(node.slice) == 0:
        how = f"`{source.shown(node)}` is the first of the batch where a layer gives no tuple"
        new = f"{source.of(node)} if isinstance({given[2]}, tuple) else {given[2]}"
        yield source.with_expression(node, new, how, 1)


def _of_the_first_of_a_tuple(source: Source, node: ast.Name) -> Iterator[Edit]:
    """`x - y`, or `x.detach()`, in a function that is given a module, what goes in, which is a
    tuple, and perhaps what comes out."""
    function, parent = source.function(node), source.parent[node]
    names = arguments_of(function) if function is not None else []
    hooks = any(name.endswith("_hook") for name in source.called)
    alone = isinstance(parent, ast.BinOp | ast.Attribute | ast.Assign | ast.Return)
    if hooks and len(names) in (2, 3) and node.id == names[1] and alone:
        how = f"`{node.id}` is a tuple of all that goes in, and not the first of it"
        yield source.with_text(node, f"{node.id}[0]", how)


def _of_the_rest(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`return (x, args[1:])`, which hands on a tuple within a tuple."""
    for each in node.elts if len(node.elts) > 1 else ():
        if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice):
            how = f"`{source.shown(each)}` is a tuple within a tuple, where its parts belong"
            yield source.with_text(each, f"*{source.of(each)}", how, 1)


def _of_a_part(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """`block.mlp.register_forward_hook(..)`, where the whole block is meant."""
    if node.attr.endswith("_hook") and isinstance(node.value, ast.Attribute):
        how = f"`{source.shown(node.value)}` is a part of what the hook belongs on"
        yield source.with_text(node.value, source.of(node.value.value), how, 2)


def _with(
    source: Source, node: ast.stmt, last: ast.stmt, put: tuple[int, str, int], away: str, how: str
) -> Edit:
    """What is put in from one place to another, and what takes it away behind the last statement of
    a block, or before what that returns is handed back."""
    begin, text, end = put
    indent, stop = " " * last.col_offset, rows_of(source, last)[1]
    if isinstance(last, ast.Return) and last.value is not None:
        start = source.span(last)[0]
        rest = f"{RESULT} = {source.of(last.value)}\n{indent}{away}\n{indent}return {RESULT}\n"
        new = text + source.text[end:start] + rest
    else:
        new = (text + source.text[end:stop]).rstrip("\n") + f"\n{indent}{away}\n"
    return source.with_span(node, (begin, stop), new, how, SURE)
