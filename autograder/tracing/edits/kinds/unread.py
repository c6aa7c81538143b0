"""Slips by a name that is read in the place of another: of what was made of it, or of what nobody
reads."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import MAKERS, names_of, read_in
from autograder.tracing.edits.kinds.source import Edit, Source, number
from autograder.tracing.text import callee, made_in

SHIFTS = ("tril", "triu", "roll", "arange", "range")  # what takes a number for where to begin
MOST = 4  # names or expressions that are put in one place


def of_what_is_read(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of what a statement reads, or of the name that it gives."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from _of_older_states(source, node)
    if isinstance(node, ast.BinOp | ast.Call):
        yield from _computed_as_it_was(source, node)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from _kept_as_it_was(source, node)
    if isinstance(node, ast.Call) and callee(node) in (*MAKERS, *SHIFTS):
        yield from _of_what_is_given(source, node)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    yield from _as_an_argument(source, node, node.targets[0])
    yield from _put_together_too_early(source, node, node.targets[0])
    if isinstance(node.value, ast.Name) and isinstance(node.targets[0], ast.Name):
        yield from _of_what_was_made_of_it(source, node, node.value)
        yield from _of_what_it_was_made_of(source, node, node.value)
    elif isinstance(node.targets[0], ast.Name):
        yield from _under_another_name(source, node, node.targets[0])


def _of_what_was_made_of_it(source: Source, node: ast.Assign, value: ast.Name) -> Iterator[Edit]:
    """`last = raw`, where a statement before makes something of `raw` that was meant. Not of a name
    that gets another one later: it may have been meant there."""
    function, target = source.function(node), source.of(node.targets[0])
    inside = source.inside(function) if function is not None else []
    aliases = (n for n in inside if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name))
    if any(n.value.id == target for n in aliases):
        return
    how = f"`{value.id}` is taken as it is, and not what was made of it"
    for text in _kept_before(source, node, value.id):
        yield source.with_text(value, text, how, 1)
    for other in _before(source, node):
        read = [n.id for n in source.names(other.value) if isinstance(n.ctx, ast.Load)]
        if value.id in read and not isinstance(other.value, ast.Name):
            made = [t for t in other.targets if isinstance(t, ast.Name | ast.Subscript)]
            for text in dict.fromkeys(map(source.of, (*made, other.value))):
                yield source.with_text(value, text, how, 1)
        how_whole = f"`{value.id}` is all of it, and not what was joined to it"
        for text in _joined_to(source, other, value.id):
            yield source.with_text(value, text, how_whole, 1)


def _of_what_it_was_made_of(source: Source, node: ast.Assign, value: ast.Name) -> Iterator[Edit]:
    """`kept = safe` behind `safe = torch.where(new.isinf(), 0, new)`, where `new` was meant."""
    made = [n for n in _before(source, node) if source.of(n.targets[0]) == value.id]
    function = source.function(node)
    known = names_of(source, function, made[0].lineno) if made and function is not None else []
    read = [n.id for n in source.names(made[0].value) if n.id in known] if known else []
    how = f"`{value.id}` is taken, and not what it was made of"
    for name in [n for n in dict.fromkeys(read) if n != value.id][:MOST]:
        yield source.with_text(value, name, how, 1)


def _computed_as_it_was(source: Source, node: ast.expr) -> Iterator[Edit]:
    """`(a / b).sum()` behind `p = a / b` and a change of `p`, which belongs there as it is now."""
    function, text = source.function(node), source.of(node)
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)] if function else []
    begun = [n for n in made if source.of(n.value) == text and n.lineno < node.lineno]
    for first in begun[:1]:
        name = source.of(first.targets[0])
        between = range(first.lineno + 1, source.statement(node).lineno)
        if any(n.lineno in between and name in map(source.of, n.targets) for n in made):
            how = f"`{source.shown(node)}` is what `{name}` was before it was changed"
            yield source.with_text(node, name, how, 1)


def _kept_as_it_was(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """`exp(self.m - m)` behind `old, self.m = self.m, m`, where nobody reads `old`."""
    function = source.function(node)
    if function is None:
        return
    text = source.of(node)
    for other in (n for n in source.inside(function) if isinstance(n, ast.Assign)):
        kept = [t.id for t, v in made_in(other) if isinstance(t, ast.Name) and source.of(v) == text]
        for name in kept if other.lineno < node.lineno else ():
            if name not in read_in(source, function):
                how = f"`{text}` is the new one there, and nothing reads `{name}`"
                yield source.with_text(node, name, how)


def _of_what_is_given(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.arange(n)`, in a function that is given `positions` and does not read them."""
    function = source.function(node)
    if function is None or function.name == "__init__":
        return
    read = {n.id for n in source.names(function)}
    unread = [a.arg for a in function.args.args if a.arg not in read and a.arg != "self"]
    shifts = [n for n in node.args if number(n) is not None and callee(node) in SHIFTS]
    for name in unread[:MOST]:
        how = f"`{source.shown(node)}` is made with no regard to `{name}`, which is given"
        if callee(node) in MAKERS:
            yield source.with_text(node, name, how, 1)
        for each, sign in itertools.product(shifts, "+-"):
            yield source.with_text(each, f"{source.of(each)} {sign} {name}", how, 1)


def _put_together_too_early(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`present = (k, v)` in front of the lines that change `k` and `v`, where it is read in one
    place alone, behind them."""
    function, value = source.function(node), node.value
    if function is None or not isinstance(target, ast.Name) or not isinstance(value, ast.Tuple):
        return
    parts = {n.id for n in value.elts if isinstance(n, ast.Name)}
    names = source.names(function)
    read = [n for n in names if n.id == target.id and isinstance(n.ctx, ast.Load)]
    if len(parts) != len(value.elts) or len(read) != 1:
        return
    between = range(node.lineno + 1, read[0].lineno)
    changed = {n.id for n in names if isinstance(n.ctx, ast.Store) and n.lineno in between}
    if parts & changed:
        how = f"`{source.shown(value)}` is put together before its parts are what they should be"
        edit = source.with_expression(read[0], source.of(value), how)
        yield edit.told_of(node.lineno)


def _joined_to(source: Source, node: ast.Assign, name: str) -> list[str]:
    """What a statement joins to a variable: `x` of `text = torch.cat((text, x), dim=1)`."""
    call = node.value
    if not isinstance(call, ast.Call) or callee(call) not in ("cat", "concat", "hstack"):
        return []
    parts = getattr(call.args[0], "elts", []) if call.args else []
    own = [each for each in parts if isinstance(each, ast.Name) and each.id == name]
    return [source.of(each) for each in parts if own and each not in own]


def _of_older_states(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`(k, v)`, where what was made of each belongs: `keys` and `values`."""
    if len(node.elts) < 2 or not all(isinstance(n, ast.Name) for n in node.elts):
        return
    function = source.function(node)
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)] if function else []
    before = [n for n in made if n.lineno < node.lineno]
    pairs = [(t, v) for n in before for t, v in made_in(n) if isinstance(t, ast.Name)]
    later = []
    for each in node.elts:
        own = [t.id for t, v in pairs if each.id in {n.id for n in source.names(v)}]
        later.append([name for name in dict.fromkeys(own) if name != each.id])
    if all(later):
        how = f"`{source.shown(node)}` is taken as it was, and not what was made of it"
        for names in zip(*later, strict=False):
            span = source.span(node.elts[0])[0], source.span(node.elts[-1])[1]
            yield source.with_span(node, span, ", ".join(names), how, 1)


def _as_an_argument(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`past = out.past`, which nothing reads: it goes on as the argument of that name."""
    function = source.function(node)
    if not (isinstance(target, ast.Name) and isinstance(node.value, ast.Attribute)) or not function:
        return
    name, argument = target.id, node.value.attr
    if any(n.id == name and isinstance(n.ctx, ast.Load) for n in source.names(function)):
        return
    begun = [n for n in source.names(function) if n.id == name and n.lineno < node.lineno]
    for call in source.calls(function):
        if not call.args and not call.keywords or argument in {k.arg for k in call.keywords}:
            continue
        own = any(isinstance(n, ast.Assign) and n.value is call for n in source.around(call))
        if own and (begun or call.lineno > node.lineno):
            how = f"`{source.shown(call)}` does not take `{name}`, which nothing reads"
            last = [*call.args, *(k.value for k in call.keywords)][-1]
            end = source.span(last)[1]
            yield source.with_span(call, (end, end), f", {argument}={name}", how)


def _kept_before(source: Source, node: ast.Assign, name: str) -> list[str]:
    """What was made of a variable alone and put into a list, in the same block before a statement:
    `states.append(torch.tanh(raw))`."""
    body = getattr(source.parent[node], "body", [])
    kept = [n.value for n in body if isinstance(n, ast.Expr) and n.lineno < node.lineno]
    kept = [n.args[0] for n in kept if isinstance(n, ast.Call) and len(n.args) == 1]
    own = [n for n in kept if isinstance(n, ast.Call)]
    return [source.of(n) for n in own if name in {each.id for each in source.names(n)}][:MOST]


def _before(source: Source, node: ast.Assign) -> list[ast.Assign]:
    """The statements in front of one, in the same block, the last first."""
    body = getattr(source.parent[node], "body", [])
    found = [n for n in body if isinstance(n, ast.Assign) and n.lineno < node.lineno]
    return found[: -MOST - 1 : -1]


def _under_another_name(source: Source, node: ast.Assign, target: ast.Name) -> Iterator[Edit]:
    """`out = layer(x)`, where nobody reads `out` and `x` goes on, by its own name."""
    function = source.function(node)
    names = source.names(function) if function is not None else []
    if any(n.id == target.id and isinstance(n.ctx, ast.Load) for n in names):
        return
    inside = source.inside(function) if function is not None else []
    later = [n for n in inside if isinstance(n, ast.Assign) and n.lineno > node.lineno]
    if any(isinstance(n.value, ast.Name) for n in later):
        return  # it may have been meant there
    later = {n.id for n in names if isinstance(n.ctx, ast.Load) and n.lineno > node.lineno}
    how = f"`{target.id}`, which it makes, is read nowhere"
    own = dict.fromkeys(n.id for n in source.names(node.value) if n.id in later)
    returned = {source.of(n.value) for n in inside if isinstance(n, ast.Return) and n.value}
    for name in list(own)[:MOST]:
        yield source.with_text(target, name, how, 1 + (name in returned))
