"""Slips in what one round of a loop takes and gives: of all rounds, of another one, in turn."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.counts import IN_TURN
from autograder.tracing.edits.kinds.names import sizes
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.edits.kinds.statements import added_to
from autograder.tracing.text import callee

EXTREMES = ("max", "min", "amax", "amin", "sum", "mean")
MOST = 4  # sizes or names that are tried in one place


def of_rounds(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of what a round takes or gives."""
    if isinstance(node, ast.BinOp):
        yield from _dealt_out_in_turn(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_all_in_a_round(source, node)
        yield from _with_the_rounds_before(source, node)
        yield from _up_to_this_round(source, node)
    elif isinstance(node, ast.Compare):
        yield from _of_this_round(source, node)
        yield from _of_the_whole(source, node)
        yield from _of_the_last_block(source, node)
    elif isinstance(node, ast.List) and isinstance(node.ctx, ast.Load):
        yield from _every_one(source, node)
    elif isinstance(node, ast.Assign | ast.AugAssign):
        yield from _to_another_maximum(source, node)
        yield from _dropped_in_each_round(source, node)
        yield from _alike_in_all_rounds(source, node)
    elif isinstance(node, ast.For):
        yield from _not_put_back(source, node)
        yield from _through_some_keys(source, node)
        yield from _read_while_it_is_filled(source, node)
        yield from _by_the_outer_name(source, node)
        yield from _what_is_counted(source, node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_all_for_each(source, node)


def _of_the_last_block(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`while start + block <= count`, which leaves out a last block that is shorter."""
    begin, ends = node.left, isinstance(source.parent[node], ast.While)
    up = len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE)
    if ends and up and isinstance(begin, ast.BinOp) and isinstance(begin.op, ast.Add):
        how = f"`{source.shown(node)}` leaves out a last round that takes less"
        new = f"{source.of(begin.left)} < {source.of(node.comparators[0])}"
        yield source.with_text(node, new, how)


def _not_put_back(source: Source, node: ast.For) -> Iterator[Edit]:
    """`x[i] += h` and `x[i] -= 2 * h` in a round, behind which the entry stays where it is; or
    `x[i] = old + h`, where nothing gives it the `old` one again."""
    yield from _not_as_it_was(source, node)
    changes = [n for n in node.body if isinstance(n, ast.AugAssign)]
    changes = [n for n in changes if isinstance(n.op, ast.Add | ast.Sub)]
    changes = [n for n in changes if isinstance(n.target, ast.Subscript)]
    targets = {source.of(n.target) for n in changes}
    if len(targets) != 1 or len(changes) > 2:
        return
    first, last, end = changes[0], changes[-1], node.body[-1]
    up = isinstance(first.op, ast.Add)
    sign = "+" if up == (len(changes) == 2) else "-"  # the second goes past where it was
    name, much = targets.pop(), source.of(first.value)
    how = f"`{name}` stays where it is moved to, and the next round begins with that"
    new = f"{source.of(end)}; {name} {sign}= {much}"
    yield source.with_text(end, new, how, 1).told_of(_where_put_back(node, last))


def _not_as_it_was(source: Source, node: ast.For) -> Iterator[Edit]:
    """`old = x[i]` in a round that gives `x[i]` other values, and never `old`."""
    made = [n for n in node.body if isinstance(n, ast.Assign) and len(n.targets) == 1]
    kept = {source.of(n.value).removesuffix(".item()").removesuffix(".clone()"): n for n in made}
    for place, first in kept.items():
        changed = [n for n in made if source.of(n.targets[0]) == place]
        if not changed or not isinstance(first.targets[0], ast.Name) or "[" not in place:
            continue
        old, last = first.targets[0].id, node.body[-1]
        if not any(source.of(n.value) == old for n in changed):
            how = f"`{place}` is not given its `{old}` value again, and the next round begins so"
            new = f"{source.of(last)}; {place} = {old}"
            where = _where_put_back(node, changed[-1])
            yield source.with_text(last, new, how, 1).told_of(where)


def _where_put_back(loop: ast.For, moved: ast.stmt) -> int:
    """The line at the end of a round, where something is to be put back; that which moves it where
    one statement alone stands behind, for nothing else."""
    behind = loop.body[loop.body.index(moved) + 1 :]
    return behind[-1].lineno if len(behind) > 1 else moved.lineno


def _read_while_it_is_filled(source: Source, node: ast.For) -> Iterator[Edit]:
    """`h[i]` gets another value in each round, and the rounds after it need the one before."""
    subscripts = [n for n in source.inside(node) if isinstance(n, ast.Subscript)]
    filled = [n for n in subscripts if isinstance(n.ctx, ast.Store)]
    for place in [n for n in filled if isinstance(n.value, ast.Name)][:MOST]:
        name, index = place.value.id, source.of(place.slice)
        read = [n for n in source.names(node) if n.id == name and isinstance(n.ctx, ast.Load)]
        read = [n for n in read if n is not place.value and not _is_at(source, n, index)]
        made = [n for n in source.names(node) if n.id == name and isinstance(n.ctx, ast.Store)]
        if not read or made or node.lineno == node.body[0].lineno:
            continue
        start, end = source.span(node)
        new = source.text[start:end]
        for each in sorted(read, key=source.span, reverse=True):
            first, last = (p - start for p in source.span(each))
            new = f"{new[:first]}{name}_before{new[last:]}"
        copy = f'{name}_before = {name}.clone() if hasattr({name}, "clone") else {name}[:]'
        new = f"{copy}\n{' ' * node.col_offset}{new}"
        how = f"`{source.shown(place)}` is filled while others still need `{name}` as it was"
        yield source.with_span(place, (start, end), new, how, 1)


def _by_the_outer_name(source: Source, node: ast.For) -> Iterator[Edit]:
    """`for i in ...` in a round of `for i in ...`, which needs its own `i` afterwards."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    taken = {t.id for n in loops for t in ast.walk(n.target) if isinstance(t, ast.Name)}
    for name in sorted({t.id for t in ast.walk(node.target) if isinstance(t, ast.Name)} & taken):
        how = f"`{name}` is the number of the round around this loop, too, which is lost here"
        within = [n for each in (node.target, *node.body) for n in source.names(each)]
        new = {n: f"{name}_within" for n in within if n.id == name}
        yield source.with_parts(node, new, how, 1)


def _what_is_counted(source: Source, node: ast.For) -> Iterator[Edit]:
    """`for start in range(len(starts))`, where nothing looks up what stands at this number."""
    count = node.iter.args[0] if isinstance(node.iter, ast.Call) and node.iter.args else None
    is_length = isinstance(count, ast.Call) and callee(count) == "len" and len(count.args) == 1
    if not is_length or callee(node.iter) != "range" or not isinstance(node.target, ast.Name):
        return
    items, number = source.of(count.args[0]), node.target.id
    parts = [n for each in node.body for n in source.inside(each)]
    looked_up = [n for n in parts if isinstance(n, ast.Subscript) and source.of(n.value) == items]
    if not any(number in {n.id for n in source.names(part.slice)} for part in looked_up):
        how = f"`{number}` counts what stands in `{items}`, where that itself belongs"
        yield source.with_text(node.iter, items, how, 0)


def _dropped_in_each_round(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """`_, memory = step(token, memory)` in a loop that never gets another `token`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    parts = target.elts if isinstance(target, ast.Tuple) else []
    dropped = [n for n in parts if isinstance(n, ast.Name) and n.id.startswith("_")]
    loop = next((n for n in source.around(node) if isinstance(n, ast.For | ast.While)), None)
    if not dropped or loop is None:
        return
    kept = {n.id for n in source.names(loop) if isinstance(n.ctx, ast.Store)}
    read = [n.id for n in source.names(node.value) if isinstance(n.ctx, ast.Load)]
    for name in [n for n in dict.fromkeys(read) if n not in kept][:MOST]:
        how = f"`{name}` stays as it is in all rounds, and what comes for it is dropped"
        yield source.with_text(dropped[0], name, how, 1)


def _alike_in_all_rounds(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """`seen = past + 1` in a loop over `t`, which is the same in each round."""
    loop = next((n for n in source.around(node) if isinstance(n, ast.For)), None)
    value, function = node.value, source.function(node)
    added = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub)
    if not (added and isinstance(node, ast.Assign)) or loop is None or function is None:
        return
    read, counted = {n.id for n in source.names(value)}, sizes(source, function)
    made = {n.id for n in source.names(loop) if isinstance(n.ctx, ast.Store)}
    rounds = isinstance(loop.target, ast.Name) and loop.target.id in counted
    if rounds and read and read <= counted - made:
        how = f"`{source.shown(value)}` is the same in each round of line {loop.lineno}"
        yield source.with_text(value, f"{source.of(value)} + {loop.target.id}", how, 2)


def _is_at(source: Source, node: ast.Name, index: str) -> bool:
    """Whether a variable is read at this place of it."""
    parent = source.parent[node]
    return isinstance(parent, ast.Subscript) and source.of(parent.slice) == index


def _through_some_keys(source: Source, node: ast.For) -> Iterator[Edit]:
    """`for name in "qk": table[name]`, where the table has more."""
    if not isinstance(node.iter, ast.Constant | ast.Tuple | ast.List):
        return
    parts = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else [node.iter]
    if not all(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in parts):
        return
    target, function = source.of(node.target), source.function(node)
    looked = [n for each in node.body for n in source.inside(each) if isinstance(n, ast.Subscript)]
    tables = {source.of(n.value) for n in looked if source.of(n.slice) == target}
    for made in source.inside(function) if function is not None else ():
        held = isinstance(made, ast.Assign) and isinstance(made.value, ast.Dict)
        if held and source.of(made.targets[0]) in tables:
            name = source.of(made.targets[0])
            how = f"`{source.shown(node.iter)}` leaves out some of what `{name}` holds"
            yield source.with_text(node.iter, name, how, 1)


def _dealt_out_in_turn(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`row * heads + head`, where all rows of a head stand together: `head * size + row`."""
    function, outer = source.function(node), node.left
    if function is None or not isinstance(node.op, ast.Add) or not isinstance(outer, ast.BinOp):
        return
    if not isinstance(outer.op, ast.Mult) or not isinstance(node.right, ast.Name):
        return
    counts = _counts_of_loops(source, node)
    within = [n for n in (outer.left, outer.right) if source.of(n) in counts]
    if len(within) != 1 or node.right.id not in counts:
        return
    first, last = source.of(within[0]), node.right.id
    known = [counts[first]] if counts[first] else sorted(sizes(source, function))[:MOST]
    how = f"`{source.shown(node)}` {IN_TURN}"
    for count in known:
        yield source.with_expression(node, f"{last} * {count} + {first}", how, 1)


def _counts_of_loops(source: Source, node: ast.AST) -> dict[str, str]:
    """The numbers of the loops around a node, each with the text of how many rounds there are, ''
    where the loop does not tell."""
    found = {}
    for loop in (n for n in source.around(node) if isinstance(n, ast.For)):
        name = callee(loop.iter) if isinstance(loop.iter, ast.Call) else ""
        if name == "range" and len(loop.iter.args) == 1 and isinstance(loop.target, ast.Name):
            found[loop.target.id] = source.in_brackets(loop.iter.args[0])
        elif name == "enumerate" and isinstance(loop.target, ast.Tuple):
            found[source.of(loop.target.elts[0])] = ""
    return found


def _with_the_rounds_before(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`total = total + part` and `kept.append(total)`, where what this round gives is kept."""
    if callee(node) != "append" or len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
        return
    name = node.args[0].id
    for loop in (n for n in source.around(node) if isinstance(n, ast.For | ast.While)):
        for each in loop.body:
            added = added_to(source, each, name)
            if added is not None and each.lineno < node.lineno:
                how = f"`{name}` holds what the rounds before gave, too"
                edit = source.with_text(node.args[0], source.of(added), how)
                # What has a name of its own could be kept; else all is to begin anew in a round.
                begun = None if isinstance(added, ast.Name) else _begun(source, loop, name)
                how = f"`{name}` begins once, and so it holds what the rounds before gave, too"
                yield replace(edit, how=how).told_of(begun) if begun else edit


def _begun(source: Source, loop: ast.For | ast.While, name: str) -> int | None:
    """The last line in front of a loop that gives a variable its value."""
    function = source.function(loop)
    stored = [n for n in source.names(function) if n.id == name and isinstance(n.ctx, ast.Store)]
    return max((n.lineno for n in stored if n.lineno < loop.lineno), default=None)


def _up_to_this_round(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`range(row + 1)` in a loop over rows, where all are meant."""
    function, end = source.function(node), node.args[-1] if node.args else None
    if callee(node) != "range" or function is None or not isinstance(end, ast.BinOp):
        return
    loops = [n for n in source.around(node) if isinstance(n, ast.For) and n.iter is not node]
    rounds = {t.id for n in loops for t in ast.walk(n.target) if isinstance(t, ast.Name)}
    if rounds & {n.id for n in source.names(end)}:
        how = f"`{source.shown(node)}` ends with the round around it"
        own = source.parent[node]
        asked = [n for n in source.inside(own) if isinstance(n, ast.Compare)]
        pairs = [{n.id for n in source.names(each)} for each in asked]
        mine = {n.id for n in source.names(getattr(own, "target", own))}
        both = any(pair & rounds and pair & mine for pair in pairs)  # `if i == j`, and else
        for count in sorted(sizes(source, function))[:MOST]:
            yield source.with_text(end, count, how, 0 if both else 2)


def _of_this_round(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`j == count - 1` in a loop within a loop, where the other one's round is asked for."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    left, right = node.left, node.comparators[0]
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    rounds = [t.id for n in loops for t in ast.walk(n.target) if isinstance(t, ast.Name)]
    for own, other in ((left, right), (right, left)):
        if isinstance(own, ast.Name) and own.id in rounds and isinstance(other, ast.BinOp):
            how = f"`{source.shown(other)}` is another round than `{own.id}` is to be compared with"
            for name in [n for n in dict.fromkeys(rounds) if n != own.id][:MOST]:
                yield source.with_text(other, name, how, 1)


def _every_one(source: Source, node: ast.List) -> Iterator[Edit]:
    """`[past.index(word) + 1]`, which is of the first one alone."""
    calls = [n for n in source.inside(node) if isinstance(n, ast.Call) and callee(n) == "index"]
    alone = len(node.elts) == len(calls) == 1 and len(calls[0].args) == 1
    if not alone or not isinstance(calls[0].func, ast.Attribute):
        return
    of, word = source.of(calls[0].func.value), source.of(calls[0].args[0])
    (start, end), (first, last) = source.span(node.elts[0]), source.span(calls[0])
    new = f"{source.text[start:first]}_place{source.text[last:end]}"
    how = f"`{source.shown(calls[0])}` is the first of them, and there may be several"
    text = f"[{new} for _place, _each in enumerate({of}) if _each == {word}]"
    yield source.with_text(node, text, how, 0)


def _of_the_whole(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`arange(len(k))[None, :] > arange(len(q))[:, None]` of two tiles, whose places are compared
    as if both were the first ones."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    starts = [n.target.id for n in loops if isinstance(n.target, ast.Name)]
    sides = [node.left, *node.comparators]
    counted = [any(callee(n) == "arange" for n in source.calls(side)) for side in sides]
    if len(sides) != 2 or not all(counted) or len(starts) < 2:
        return
    left, right = map(source.in_brackets, sides)
    sign = source.text[source.span(sides[0])[1] : source.span(sides[1])[0]].strip()
    how = f"`{source.shown(node)}` compares places in two tiles, and not in the whole"
    for one, other in itertools.permutations(starts[:2], 2):
        yield source.with_expression(node, f"{one} + {left} {sign} {other} + {right}", how, 1)


def _to_another_maximum(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """`total = total + exp(x - new)` in front of `most = new`: what was added up before is of the
    exponentials less the old maximum."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    name, loop = source.of(target), source.parent[node]
    added = added_to(source, node, name)
    calls = source.calls(added) if added is not None else []
    if not isinstance(loop, ast.For) or "exp" not in map(callee, calls):
        return
    behind = [n for n in loop.body[loop.body.index(node) :] if isinstance(n, ast.Assign)]
    for each in (n for n in behind if isinstance(n.value, ast.Name)):
        most, new = source.of(each.targets[0]), each.value.id
        if new in {n.id for n in source.names(added)}:
            how = f"`{name}` goes on without what `{new}` is more than `{most}`"
            text = f"{name} = {name} * torch.exp({most} - {new}) + {source.in_brackets(added)}"
            yield source.with_text(node, text, how, 1)


def _of_all_in_a_round(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`lengths.max()` in a round of a loop over items, each of which has a length of its own."""
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    if callee(node) not in EXTREMES or node.args or node.keywords or not isinstance(of, ast.Name):
        return
    how = f"`{source.shown(node)}` is one number for all rounds, and each has its own"
    for loop in (n for n in source.around(node) if isinstance(n, ast.For)):
        for target in [t for t in ast.walk(loop.target) if isinstance(t, ast.Name)][:1]:
            yield source.with_text(node, f"{of.id}[{target.id}]", how, 1)


def _of_all_for_each(source: Source, node: ast.Name) -> Iterator[Edit]:
    """`longest = lengths.max()`, where each round of a loop has a length of its own."""
    function = source.function(node)
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    if function is None or not loops:
        return
    made = source.made(function, node.id)
    calls = source.calls(made[0]) if len(made) == 1 else []
    reduced = [n for n in calls if callee(n) in EXTREMES]
    if len(reduced) != 1 or len(calls) > len(reduced) + 2:
        return
    of = reduced[0].func.value if isinstance(reduced[0].func, ast.Attribute) else None
    is_function = of is None or (isinstance(of, ast.Name) and of.id == "torch")
    of = next(iter(reduced[0].args), None) if is_function else of
    if isinstance(of, ast.Name):
        how = f"`{node.id}` is one number for all rounds, and each has its own in `{of.id}`"
        for loop in loops:
            for target in [t for t in ast.walk(loop.target) if isinstance(t, ast.Name)][:1]:
                # As a change of what it stands in: that is wrong, and not how the one is made.
                outer = source.parent[node]
                outer = source.statement(node) if isinstance(outer, ast.comprehension) else outer
                around, own = source.span(outer), source.span(node)
                before, behind = source.text[around[0] : own[0]], source.text[own[1] : around[1]]
                new = f"{before}{of.id}[{target.id}]{behind}"
                yield source.with_span(node, around, new, how, 1)
