"""Slips in whole statements: too early, too late, in a loop or outside, one too many."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import (
    is_sure,
    names_of,
    of_one_type,
    place_by_name,
)
from autograder.tracing.edits.kinds.source import (
    GROWS,
    LIBRARIES,
    OF_LISTS,
    Edit,
    Source,
    arguments_of,
    number,
)
from autograder.tracing.text import callee, made_in, root_of

PLAIN = (ast.Assign, ast.AugAssign, ast.Expr, ast.AnnAssign)
SURE = -1  # what keeps a hook in is wrong wherever something runs after it
MOST_NAMES = 7
BEFORE = 3  # statements in front of a loop, of which one may belong inside it
SOON = 3  # statements in which what was overwritten may be needed
BLOCKS = (ast.For, ast.If, ast.With)


def of_statements(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one statement as a whole."""
    if isinstance(node, PLAIN):
        yield from _none(source, node)
        yield from _later(source, node)
    if isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
        yield from _out_of_its_block(source, node)
    if isinstance(node, ast.Break | ast.Continue):
        how = f"`{source.of(node)}` leaves out rounds, or a part of them, that belong there"
        yield source.with_text(node, "pass", how, 2)
    if isinstance(node, ast.Assign):
        yield from _functions_exchanged(source, node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.BinOp):
        yield from _thrown_away(source, node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
        yield from _compared(source, node.value)
    if isinstance(node, ast.Expr | ast.Return) and _is_an_error(node.value):
        how = f"`{source.shown(node.value)}` is made there and not raised"
        yield source.with_text(node, f"raise {source.of(node.value)}", how)
    if isinstance(node, ast.For | ast.While):
        yield from _last_into_the_loop(source, node)
    if isinstance(node, ast.For):
        yield from _first_into_the_loop(source, node)
        yield from _first_out_of_the_loop(source, node)
    if isinstance(node, ast.FunctionDef):
        yield from _returned(source, node)
    if isinstance(node, ast.Assign):
        yield from _added(source, node)
        yield from _still_needed(source, node)
    if isinstance(node, ast.stmt) and not isinstance(node, BLOCKS):
        yield from _exchanged(source, node)


def _shown(source: Source, node: ast.stmt) -> str:
    return source.shown(node)


def _none(source: Source, node: ast.stmt) -> Iterator[Edit]:
    text = "pass" + "\n" * source.of(node).count("\n")
    how = f"`{_shown(source, node)}` does not belong there"
    yield replace(source.with_text(node, text, how, 3), takes=True)


def _thrown_away(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """What a statement makes of a variable, and gives to none."""
    first = next((n for n in source.inside(node.value) if isinstance(n, ast.Name)), None)
    keeps = isinstance(node.value, ast.Call) and callee(node.value) in OF_LISTS
    if first is not None and not keeps:
        how = f"what `{_shown(source, node)}` makes is thrown away"
        yield source.with_text(node, f"{first.id} = {source.of(node)}", how)


def _compared(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`a == b`, which asks, for `a = b`."""
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        how = f"`{source.shown(node)}` compares, and sets nothing"
        new = f"{source.of(node.left)} = {source.of(node.comparators[0])}"
        yield source.with_text(node, new, how, SURE)


def _is_an_error(node: ast.expr | None) -> bool:
    """Whether an expression makes an exception."""
    return isinstance(node, ast.Call) and callee(node).endswith(("Error", "Exception"))


def block_of(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """The statements that a statement is one of."""
    parent = source.parent[node]
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
    return next((b for b in blocks if isinstance(b, list) and node in b), [node])


def right_before(source: Source, node: ast.stmt) -> ast.stmt | None:
    """The statement in front of one in its block; None where it is the first."""
    block = block_of(source, node)
    place = block.index(node)
    return block[place - 1] if place else None


def _later(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """Two statements in a row, exchanged."""
    block = block_of(source, node)
    place = block.index(node)
    if place + 1 == len(block) or not isinstance(block[place + 1], PLAIN):
        yield from _behind_a_block(source, node, block[place + 1 : place + 2])
        return
    other = block[place + 1]
    start, end = source.span(node)[0], source.span(other)[1]
    between = source.text[source.span(node)[1] : source.span(other)[0]]
    how = f"it runs before line {other.lineno}, and belongs behind it"
    new = source.of(other) + between + source.of(node)
    rank = -2 if _is_kept_too_late(source, node, other) else 3
    rank = SURE if _is_another_name_too_early(source, node, other) else rank
    rank = 0 if _takes_away(other) or _is_not_made_yet(source, node, other) else rank
    yield source.with_span(node, (start, end), new, how, rank)


def _takes_away(node: ast.stmt) -> bool:
    """Whether a statement takes a hook away: `handle.remove()`."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and callee(call) == "remove" and not call.args


def _is_kept_too_late(source: Source, node: ast.stmt, other: ast.stmt) -> bool:
    """`m = max(m, x)`, and then `old = m`: whether the second keeps what the first makes anew."""
    both = isinstance(node, ast.Assign) and isinstance(other, ast.Assign)
    kept = other.value.id if both and isinstance(other.value, ast.Name) else ""
    made = [source.of(target) for target in node.targets] if both else []
    read = {n.id for n in source.names(node.value)} if both else set()
    return bool(kept) and made == [kept] and kept in read


def _is_another_name_too_early(source: Source, node: ast.stmt, other: ast.stmt) -> bool:
    """`top = best`, and then `exp(top - best)`: whether the second reads both names of one."""
    if not isinstance(node, ast.Assign) or not isinstance(other, ast.Assign):
        return False
    if not isinstance(node.value, ast.Name) or len(node.targets) > 1:
        return False
    read = {
        source.of(n)
        for n in source.inside(other.value)
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)
    }
    return {node.value.id, source.of(node.targets[0])} <= read


def _is_not_made_yet(source: Source, node: ast.stmt, other: ast.stmt) -> bool:
    """`out = probs @ v`, and then `probs = ..`: whether the first reads what the second one makes,
    and nothing has that name before."""
    function = source.function(node)
    if function is None or not isinstance(other, ast.Assign):
        return False
    made = {n.id for n in source.names(other) if isinstance(n.ctx, ast.Store)}
    read = {n.id for n in source.names(node) if isinstance(n.ctx, ast.Load)}
    return bool(made & read - set(names_of(source, function, node.lineno - 1)))


def _behind_a_block(source: Source, node: ast.stmt, after: list[ast.stmt]) -> Iterator[Edit]:
    """A statement that stands in front of a loop or a condition, behind it."""
    read = {n.id for n in source.inside(node) if isinstance(n, ast.Name)}
    for other in after:
        names = (n for n in source.inside(other) if isinstance(n, ast.Name))
        needed = any(n.id in read for n in names if isinstance(n.ctx, ast.Store))
        if isinstance(other, BLOCKS):
            (start, middle), (_, end) = rows_of(source, node), rows_of(source, other)
            new = source.text[middle:end].rstrip("\n") + "\n" + source.text[start:middle]
            how = f"it runs before line {other.lineno}, and belongs behind what stands there"
            yield source.with_span(node, (start, end), new, how, 1 if needed else 3)


def added_to(source: Source, node: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a variable."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value if source.of(node.target) == name else None
    value = node.value if isinstance(node, ast.Assign) else None
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    if [source.of(t) for t in node.targets] != [name]:
        return None
    sides = {source.of(value.left): value.right, source.of(value.right): value.left}
    return sides.get(name)


def rows_of(source: Source, node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement as a part of the text, with the last line's end."""
    return source.starts[node.lineno - 1], source.starts[node.end_lineno]


def moved(text: str, by: int) -> str:
    """Lines with another indentation."""
    rows = text.split("\n")
    if by < 0:
        return "\n".join(r[-by:] if not r[:-by].strip() else r for r in rows)
    return "\n".join(" " * by + r if r.strip() else r for r in rows)


def _out_of_its_block(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """The last statement of a loop, behind it."""
    parent = source.parent[node]
    block = block_of(source, node)
    if not isinstance(parent, BLOCKS) or block[-1] is not node or len(block) < 2:
        return
    start, end = rows_of(source, node)
    text = source.text[start:end]
    how = f"it runs in every round of the loop of line {parent.lineno}, and belongs behind it"
    if isinstance(parent, ast.If):
        how = f"it runs under the `if` of line {parent.lineno} alone, and belongs behind it"
    new = moved(text, parent.col_offset - node.col_offset)
    yield source.with_span(node, (start, end), new, how, 2)


def _last_into_the_loop(source: Source, node: ast.For | ast.While) -> Iterator[Edit]:
    """The statement behind a loop, as its last one."""
    block = block_of(source, node)
    place = block.index(node)
    after = block[place + 1] if place + 1 < len(block) else None
    if not isinstance(after, (*PLAIN, ast.If)) or node.body[0].lineno == node.lineno:
        return
    start, end = rows_of(source, after)
    how = f"it runs once, and belongs inside the loop of line {node.lineno}"
    new = moved(source.text[start:end], node.body[0].col_offset - after.col_offset)
    puts_in = any(
        isinstance(n, ast.Call) and callee(n).endswith("_hook") for n in source.inside(node)
    )
    rank = SURE if puts_in and _takes_away(after) else 2  # it takes away the last hook alone
    rank = min(rank, 0) if _adds_what_a_round_made(source, node, after) else rank
    yield source.with_span(after, (start, end), new, how, rank)


def _adds_what_a_round_made(source: Source, loop: ast.For | ast.While, after: ast.stmt) -> bool:
    """`total = total + exp(part).sum()` behind a loop whose rounds make each a `part` of their own,
    and which reads it nowhere else."""
    targets = getattr(after, "targets", None) or [getattr(after, "target", None)]
    if not isinstance(after, ast.Assign | ast.AugAssign) or not isinstance(targets[0], ast.Name):
        return False
    read = {n.id for n in source.names(after.value) if isinstance(n.ctx, ast.Load)}
    goes_on = isinstance(after, ast.AugAssign) or targets[0].id in read
    names = [n for statement in loop.body for n in source.names(statement)]
    made = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return goes_on and bool(made & read - {targets[0].id})


def _first_into_the_loop(source: Source, node: ast.For) -> Iterator[Edit]:
    """A statement before a loop, as its first one: what should begin anew in each round. It is the
    one right before it, or makes what the loop changes."""
    block = block_of(source, node)
    place = block.index(node)
    if node.body[0].lineno == node.lineno:
        return
    head_start, head_end = source.starts[node.lineno - 1], source.starts[node.body[0].lineno - 1]
    how = f"it runs once, and belongs in each round of the loop of line {node.lineno}"
    for before in block[max(0, place - BEFORE) : place][::-1]:
        if not isinstance(before, PLAIN):
            return
        if before is not block[place - 1] and not _makes_what_changes(source, before, node):
            continue
        start, end = rows_of(source, before)
        own = moved(source.text[start:end], node.body[0].col_offset - before.col_offset)
        new = source.text[end:head_start] + source.text[head_start:head_end] + own
        inner = [n for n in source.inside(node) if isinstance(n, ast.For | ast.While)]
        rank = 1 if any(_makes_what_changes(source, before, n) for n in inner[1:]) else 2
        yield source.with_span(before, (start, head_end), new, how, rank)


def _makes_what_changes(source: Source, node: ast.stmt, loop: ast.For | ast.While) -> bool:
    """Whether a statement makes a variable which a loop fills, or goes on with."""
    targets = [n for t in getattr(node, "targets", ()) for n in getattr(t, "elts", [t])]
    own = {t.id for t in targets if isinstance(t, ast.Name)}
    inside = [n for n in source.inside(loop) if isinstance(n, ast.Assign | ast.AugAssign)]
    changed = [t for n in inside for t in getattr(n, "targets", None) or [n.target]]
    calls = [n.func for n in source.inside(loop) if isinstance(n, ast.Call)]
    changed += [n.value for n in calls if isinstance(n, ast.Attribute) and n.attr in GROWS]
    return bool(own & set(map(root_of, changed)))


def _first_out_of_the_loop(source: Source, node: ast.For) -> Iterator[Edit]:
    """The first statement of a loop, before it: what should be done once."""
    first = node.body[0]
    if not isinstance(first, PLAIN) or len(node.body) < 2 or first.lineno == node.lineno:
        return
    start, end = rows_of(source, first)
    own = moved(source.text[start:end], node.col_offset - first.col_offset)
    head = source.starts[node.lineno - 1]
    how = f"it runs in each round of the loop of line {node.lineno}, and should run once"
    new = own + source.text[head:start]
    lost = _makes_what_changes(source, first, node) and _is_read_behind(source, first, node)
    yield source.with_span(first, (head, end), new, how, 1 if lost else 2)


def _is_read_behind(source: Source, node: ast.stmt, loop: ast.For) -> bool:
    """Whether something behind a loop reads what a statement makes."""
    own = {n.id for n in source.names(node) if isinstance(n.ctx, ast.Store)}
    names = source.names(source.function(loop) or source.tree)
    behind = {n.id for n in names if n.lineno > loop.end_lineno and isinstance(n.ctx, ast.Load)}
    return bool(own & behind)


def _returned(source: Source, node: ast.FunctionDef) -> Iterator[Edit]:
    """What a function inside another one makes last, and does not return."""
    last = node.body[-1]
    target = last.targets[0] if isinstance(last, ast.Assign) else None
    if isinstance(target, ast.Name) and not any(
        isinstance(n, ast.Return | ast.Yield) for n in source.inside(node)
    ):
        how = f"`{node.name}` makes `{target.id}` and returns nothing"
        yield source.with_text(last, f"{source.of(last)}; return {target.id}", how)


def _added(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """What each round should add to what there is."""
    target = node.targets[0]
    in_a_loop = any(isinstance(n, ast.For) for n in source.around(node))
    if in_a_loop and len(node.targets) == 1 and isinstance(target, ast.Name | ast.Subscript):
        name = source.of(target)
        how = f"each round replaces `{source.shown(target)}`, and adds nothing to it"
        if isinstance(node.value, ast.List) and len(node.value.elts) == 1:
            yield from _one_more(source, node, node.value.elts[0])
        if "max" in source.called:
            yield from _the_larger_one(source, node)
        rank = 0 if _is_for_later(source, node, target) else 2
        rank = min(rank, 1) if _begins_at_nothing(source, node, target) else rank
        yield source.with_text(node, f"{name} = {name} + ({source.of(node.value)})", how, rank)
        if isinstance(node.value, ast.Compare | ast.BoolOp) or _is_a_truth(node.value):
            how = f"each round replaces `{source.shown(target)}`, whatever the rounds before found"
            for word in ("or", "and"):
                new = f"{name} = {name} {word} ({source.of(node.value)})"
                yield source.with_text(node, new, how, 0)


def _one_more(source: Source, node: ast.Assign, item: ast.expr) -> Iterator[Edit]:
    """`kept = [x]` in a loop, in front of which `kept` is a list already."""
    name, before = source.of(node.targets[0]), node.lineno
    made = [n for n in source.inside(source.function(node) or source.tree) if n is not node]
    made = [n for n in made if isinstance(n, ast.Assign) and n.lineno < before]
    if any(source.of(n.targets[0]) == name and isinstance(n.value, ast.List) for n in made):
        how = f"each round begins `{name}` anew, and what the rounds before put there is lost"
        yield source.with_text(node, f"{name}.append({source.of(item)})", how, 0)


def _the_larger_one(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`most = here` in a loop, where `most` is to be the largest of all rounds so far."""
    name, new = source.of(node.targets[0]), source.of(node.value)
    loop = next(n for n in source.around(node) if isinstance(n, ast.For))
    read = [n for n in source.names(loop) if n.id == name and isinstance(n.ctx, ast.Load)]
    if read and name not in {n.id for n in source.names(node.value)}:
        how = f"each round replaces `{name}`, also where it was larger than what comes"
        for largest in ("max", "torch.maximum"):
            yield source.with_text(node, f"{name} = {largest}({name}, {new})", how, 1)


def _is_a_truth(node: ast.expr) -> bool:
    """Whether an expression is `not ...`, or `bool(...)` of something, or of any or all of it."""
    called = isinstance(node, ast.Call) and callee(node) in ("bool", "any", "all")
    return called or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _begins_at_nothing(source: Source, node: ast.Assign, target: ast.expr) -> bool:
    """Whether a variable begins at 0, and a loop makes another value of it that its rounds read."""
    loop = next(n for n in source.around(node) if isinstance(n, ast.For))
    own = [n for n in source.names(loop) if n.id == getattr(target, "id", "")]
    made = [n for n in source.inside(source.function(node)) if isinstance(n, ast.Assign)]
    pairs = [pair for each in made for pair in made_in(each)]
    begins = any(source.of(t) == source.of(target) and number(v) == 0 for t, v in pairs)
    return begins and any(isinstance(n.ctx, ast.Load) for n in own)


def _is_for_later(source: Source, node: ast.Assign, target: ast.expr) -> bool:
    """Whether a loop sets a variable that has a value before it, and reads it nowhere; or places
    that are the same in each of its rounds."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For | ast.While)]
    if isinstance(target, ast.Subscript) and loops:
        places = {n.id for n in source.names(target.slice)}
        inner = {n.id for n in source.names(loops[0]) if isinstance(n.ctx, ast.Store)}
        heads = [each.target if isinstance(each, ast.For) else each.test for each in loops[1:]]
        outer = {n.id for head in heads for n in source.names(head)}
        return len(loops) > 1 and not (inner & places and outer & places)
    if not loops or not isinstance(target, ast.Name):
        return False
    inside = source.inside(loops[-1])
    own = [n for n in inside if isinstance(n, ast.Name) and n.id == target.id]
    before = [n for n in source.inside(source.function(node)) if isinstance(n, ast.Assign)]
    begun = any(target.id in map(source.of, n.targets) for n in before if n not in inside)
    return begun and own == [target]


def _still_needed(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """A name that is given another value before a later statement needs the first one."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Name):
        return
    block = block_of(source, node)
    later = block[block.index(node) + 1 :]
    behind = later[:SOON] + [n for n in later[SOON:] if isinstance(n, ast.Return)]
    name, start = target.id, source.span(node)[0]
    for statement in behind:
        for read in source.inside(statement):
            if isinstance(read, ast.Name) and read.id == name and isinstance(read.ctx, ast.Load):
                first, end = source.span(read)
                between = source.text[source.span(node)[1] : first]
                value = source.of(node.value)
                new = f"{name}_before, {name} = {name}, ({value}){between}{name}_before"
                how = f"it overwrites `{name}`, which line {statement.lineno} needs as it was"
                yield source.with_span(node, (start, end), new, how, 2)


def _functions_exchanged(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """The functions of two statements in a row in each other's places: sine and cosine."""
    block = block_of(source, node)
    behind = block[block.index(node) + 1 :][:1]
    calls = [
        [n for n in source.inside(each) if isinstance(n, ast.Call) and callee(n) in ("sin", "cos")]
        for each in (node, *behind)
    ]
    if len(calls) != 2 or len(calls[0]) != 1 or len(calls[1]) != 1:
        return
    (one,), (two,) = calls
    if callee(one) != callee(two):
        start, end = source.span(node)[0], source.span(behind[0])[1]
        text = source.text[start:end]
        for call, other in ((two, callee(one)), (one, callee(two))):
            last = source.span(call.func)[1] - start
            text = text[: last - 3] + other + text[last:]
        how = f"`{callee(one)}` and `{callee(two)}` stand in each other's places"
        yield source.with_span(node, (start, end), text, how, 2)


def _exchanged(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """Two variables of one statement in each other's places."""
    yield from _attributes_exchanged(source, node)
    names = [
        n
        for n in source.inside(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        if not _is_called(source, n) and is_sure(source, n)
    ]
    names = sorted(names, key=source.span)[:MOST_NAMES]
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if one.id == other.id or not of_one_type(source, one, other.id):
                continue
            if _is_given(source, one) and source.parent[one] is source.parent[other]:
                continue  # the function may be wrong
            (start, middle), (again, end) = source.span(one), source.span(other)
            new = other.id + source.text[middle:again] + one.id
            how = f"`{one.id}` and `{other.id}` have changed places"
            yield replace(source.with_span(node, (start, end), new, how, 3), by_name=True)


def _attributes_exchanged(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """Two attributes of the object in one statement in each other's places: a weight and a bias."""
    own = [
        n
        for n in source.inside(node)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
        if isinstance(n.value, ast.Name) and n.value.id == "self"
        if not isinstance(source.parent[n], ast.Tuple | ast.List)  # whose order others decide on
    ]
    own = sorted(own, key=source.span)[:MOST_NAMES]
    straight = [n for n in own if _goes_where_it_says(source, node, n)]
    for one, other in itertools.combinations(own, 2):
        if one.attr != other.attr and not {one, other} <= set(straight):
            (start, middle), (again, end) = source.span(one), source.span(other)
            new = source.of(other) + source.text[middle:again] + source.of(one)
            how = f"`{source.of(one)}` and `{source.of(other)}` have changed places"
            yield replace(source.with_span(node, (start, end), new, how, 2), by_name=True)


def _goes_where_it_says(source: Source, node: ast.stmt, layer: ast.Attribute) -> bool:
    """Whether what a layer gives goes by the layer's name: `q, k = self.q(x), self.k(x)`, or to an
    argument that is called so."""
    call = source.parent[layer]
    around = source.parent.get(call)
    if not (isinstance(call, ast.Call) and call.func is layer):
        return False
    names, place = [], 0
    if isinstance(around, ast.Tuple) and isinstance(node, ast.Assign) and around is node.value:
        names = [source.of(each) for each in getattr(node.targets[0], "elts", ())]
        place = around.elts.index(call)
    elif isinstance(around, ast.Call) and call in around.args:
        place = around.args.index(call)
        called = [f for f in source.functions() if f.name == callee(around)]
        names = arguments_of(called[0]) if called else []
    own = place_by_name(layer.attr)
    return own >= 0 and any(place_by_name(name) == own for name in names[place : place + 1])


def _is_given(source: Source, node: ast.Name) -> bool:
    """Whether a name stands among the arguments of a function of the student's."""
    parent, own = source.parent[node], source.defined()
    return isinstance(parent, ast.Call) and node in parent.args and callee(parent) in own


def _is_called(source: Source, node: ast.Name) -> bool:
    """Whether a name is that of a function or a library."""
    parent = source.parent[node]
    if isinstance(parent, ast.Call) and parent.func is node:
        return True
    return node.id in LIBRARIES or node.id == "self"
