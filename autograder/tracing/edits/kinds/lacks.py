"""Slips by an operand that is not there: the other side of a difference, the item by which each
weight of a sum is multiplied, the root of a factor; and what stands for more than it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import is_a_size, names_of, sizes, used_in
from autograder.tracing.edits.kinds.operators import turned_back
from autograder.tracing.edits.kinds.sharing import SHARE
from autograder.tracing.edits.kinds.source import Edit, Source, arguments_of, number, parts_of_index
from autograder.tracing.text import callee

SIGNS = (("-", "is not taken from it"), ("+", "is not added to it"))
ROOTS = ("** -0.5", "** 0.5")
FACTORS = ("mul", "mul_", "div", "div_", "true_divide")  # methods that take a factor
SCALE = re.compile(r"scal|fact|norm|temp|root|sqrt|div|denom")  # how a factor is named
SHARED = ("sum()", "sum(-1, keepdim=True)", "sum(0)", "norm(dim=-1, keepdim=True)")
TAKEN = ("max()", "amax(-1, keepdim=True)", "mean(-1, keepdim=True)", "mean(0)")
WALL = -1000  # what hides a score that it is added to
PLACE = re.compile(r"\bpos|_pos|place")  # how it is called where a token stands
MOST = 8  # names that could be the one that is not there


def of_what_it_lacks(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that give an expression the operand which the text has ready."""
    function = source.function(node)
    if function is None:
        return
    if isinstance(node, ast.Assign):
        yield from _of_the_other_side(source, function, node)
        yield from _of_a_root(source, function, node)
        yield from _of_a_share(source, function, node)
        yield from _of_a_first_one(source, node)
        yield from _of_itself(source, function, node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _of_what_is_left(source, node)
        yield from _of_an_axis(source, function, node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _of_the_diagonal(source, node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        yield from _of_a_square(source, function, node)
        yield from _of_an_axis(source, function, node)
        yield from _of_all_of_itself(source, node, TAKEN)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _of_an_axis(source, function, node)
        yield from _of_all_of_itself(source, node, SHARED)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield from _of_each_item(source, function, node)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield from _of_the_next_place(source, node)
    elif isinstance(node, ast.ListComp) and _gives_its_item(node):
        yield from _of_its_neighbours(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "log":
        yield from _of_the_maximum(source, function, node)


def _of_the_next_place(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`{"position_ids": positions[:, -1:]}`, which is where the token before stands."""
    parts, parent = parts_of_index(node), source.parent[node]
    last = parts[-1] if parts else None
    alone = isinstance(last, ast.Slice) and last.upper is None
    begins = last.lower if alone else last
    whole = isinstance(parent, ast.Dict | ast.Assign | ast.keyword | ast.Return)
    if whole and number(begins) == -1 and PLACE.search(source.of(node.value)):
        how = f"`{source.shown(node)}` is the place of the one before"
        yield source.with_expression(node, f"{source.of(node)} + 1", how, 1)


def _of_the_maximum(source: Source, function: ast.FunctionDef, node: ast.Call) -> Iterator[Edit]:
    """`torch.log(total)` of `total = torch.exp(x - m).sum(-1)`, where `m` belongs to it again."""
    read = [n for n in source.names(node) if isinstance(n.ctx, ast.Load)]
    made = [node, *(value for n in read for value in source.made(function, n.id))]
    powers = [n for value in made for n in source.calls(value) if callee(n) == "exp"]
    taken = [n for call in powers for n in source.inside(call) if isinstance(n, ast.BinOp)]
    taken = [n.right for n in taken if isinstance(n.op, ast.Sub)]
    beside = {n.id for n in source.names(source.parent[node])}
    for name in dict.fromkeys(n.id for each in taken for n in source.names(each)):
        if name not in beside:
            how = f"`{source.shown(node)}` lacks the `{name}` that was taken off before"
            for more in (name, f"{name}.squeeze(-1)"):
                yield source.with_expression(node, f"{more} + {source.of(node)}", how, 1)


def _of_an_axis(source: Source, function: ast.FunctionDef, node: ast.BinOp) -> Iterator[Edit]:
    """`scores - lse[i:j]`, where one number is taken from each row."""
    for side in (node.left, node.right):
        made = source.made(function, side.id) if isinstance(side, ast.Name) else [side]
        if made and all(isinstance(each, ast.Subscript) and _is_cut(each) for each in made):
            how = f"`{source.shown(side)}` has a number for each row, and no axis for the columns"
            new = f"{source.in_brackets(side)}.unsqueeze(-1)"
            yield source.with_parts(node, {side: new}, how, 1)
        elif isinstance(side, ast.Name) and side.id in {*arguments_of(function)} - sizes(
            source, function
        ):
            how = f"`{source.shown(side)}` has no axes for the last ones in `{source.shown(node)}`"
            for index in ("[:, None, None]", "[:, None]"):
                yield source.with_text(side, f"{side.id}{index}", how, 2)


def _is_cut(node: ast.Subscript) -> bool:
    """Whether a variable is cut along its first axis alone: `lse[i:j]`."""
    return isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Slice)


def _of_all_of_itself(source: Source, node: ast.BinOp, ways: tuple[str, ...]) -> Iterator[Edit]:
    """`e / e`, which is 1 everywhere, and `s - s`, which is 0."""
    if source.of(node.left) == source.of(node.right) and number(node.right) is None:
        how = f"`{source.shown(node)}` takes a thing by itself, where one number of many belongs"
        for way in ways:
            yield source.with_text(node.right, f"{source.in_brackets(node.right)}.{way}", how)


def _of_the_diagonal(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`upper + upper.T`, which has the diagonal twice."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        turned = turned_back(other)
        if turned is not None and source.of(turned) == source.of(one):
            how = f"`{source.shown(node)}` has the diagonal twice"
            for part in ("triu(1)", "tril(-1)"):
                new = f"{source.in_brackets(one)}.{part}"
                yield source.with_parts(node, {turned: new}, how, 1)


def _of_a_square(source: Source, function: ast.FunctionDef, node: ast.BinOp) -> Iterator[Edit]:
    """`squares - mean ** 2`, of a sum of squares: as often as there are numbers."""
    power = node.right
    squared = isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow)
    if squared and number(power.right) == 2:
        read = {n.id for n in source.names(node)}
        for name in [a.arg for a in function.args.args if a.arg not in ("self", *read)][:MOST]:
            how = f"`{source.shown(power)}` is taken off once, and not `{name}` times"
            yield source.with_text(power, f"{name} * {source.of(power)}", how, 1)


def _of_what_is_left(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`mask * -1e9`, where what the mask leaves out should become so small."""
    for mask, wall in ((node.left, node.right), (node.right, node.left)):
        low = number(wall)
        if isinstance(mask, ast.Name | ast.Attribute) and low is not None and low <= WALL:
            how = f"`{source.shown(node)}` hides what is 1, and should hide what is 0"
            yield source.with_parts(node, {mask: f"(1 - {source.of(mask)})"}, how)


def _of_the_other_side(
    source: Source, function: ast.FunctionDef, node: ast.Assign
) -> Iterator[Edit]:
    """`difference = f(up)`, where `down` was made as `up` was, and nothing reads it."""
    if isinstance(node.value, ast.Name | ast.BinOp):
        return
    made = {n.id for n in source.names(function) if isinstance(n.ctx, ast.Store)}
    unread = made - used_in(source, function)
    called = [n.func for n in source.calls(node.value)]
    known = names_of(source, function, node.lineno)
    names = [n for n in source.names(node.value) if n.id in known and n not in called]
    for name in names if len(names) == 1 else ():
        for other in names_of(source, function, node.lineno - 1):
            apart = other in unread and other != name.id
            if apart and not _is_made_alike(source, function, other, node.value):
                text = source.of(node.value)
                new = source.instead(node.value, {name: other})
                for sign, how in SIGNS:
                    yield source.with_text(node.value, f"{text} {sign} {new}", f"`{new}` {how}", 1)


def _is_made_alike(source: Source, function: ast.FunctionDef, name: str, value: ast.expr) -> bool:
    """Whether a variable is made by the call that a value is: `a = f(x)` beside `b = f(y)`. Where
    both are read, one is taken from the other."""
    calls = [n for n in source.made(function, name) if isinstance(n, ast.Call)]
    return isinstance(value, ast.Call) and callee(value) in map(callee, calls)


def _of_a_root(source: Source, function: ast.FunctionDef, node: ast.Assign) -> Iterator[Edit]:
    """`scale = hidden`, or `scale = 1`, where only products and quotients read the scale."""
    value, target, numbers = node.value, source.of(node.targets[0]), _numbers(source, function)
    size = source.of(value) in numbers or (number(value) is None and is_a_size(value, numbers))
    if not SCALE.search(target.lower()) or not (size or number(value) == 1):
        return  # `self.dim = hidden` is what it says
    read = [n for n in source.inside(source.tree) if isinstance(n, ast.Name | ast.Attribute)]
    read = [n for n in read if isinstance(n.ctx, ast.Load) and source.of(n) == target]
    if not read or not all(_is_a_factor(source, n) for n in read):
        return
    if size:
        how = f"`{target}` is `{source.shown(value)}` itself, where its root counts"
        for root in ROOTS:
            yield source.with_text(value, f"{source.in_brackets(value)} {root}", how, 1)
        return
    known = names_of(source, function, node.lineno - 1)
    for name in [n for n in known if n in numbers][:MOST]:
        how = f"`{target}` is 1, where the root of a size counts"
        for root in ROOTS:
            yield source.with_text(value, f"{name} {root}", how, 1)


def _of_a_first_one(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`met = counts.get(pair, 0)`, where each pair counts once more than it was met."""
    call = node.value
    counts = isinstance(call, ast.Call) and callee(call) == "get" and len(call.args) == 2
    if counts and number(call.args[1]) == 0 and isinstance(node.targets[0], ast.Name):
        how = f"`{source.shown(call)}` is one less than what belongs there"
        yield source.with_text(call, f"{source.of(call)} + 1", how, 1)


def _of_a_share(source: Source, function: ast.FunctionDef, node: ast.Assign) -> Iterator[Edit]:
    """`keep = 1.0`, where `1.0 - p` stays."""
    given = [a.arg for a in function.args.args if SHARE.match(a.arg)]
    if number(node.value) == 1 and len(given) == 1:
        how = f"`{source.shown(node)}` is all of it, whatever `{given[0]}` is"
        yield source.with_text(node.value, f"{source.of(node.value)} - {given[0]}", how)


def _of_itself(source: Source, function: ast.FunctionDef, node: ast.Assign) -> Iterator[Edit]:
    """`scores = x`, where the products of its rows were meant."""
    value = node.value
    if isinstance(value, ast.Name) and value.id not in sizes(source, function):
        how = f"`{source.shown(node)}` is another name, and no product"
        yield source.with_text(value, f"{value.id} @ {value.id}.mT", how, 2)


def _numbers(source: Source, function: ast.FunctionDef) -> set[str]:
    """The names that hold a whole number, those that an object is made of, too."""
    given = {a.arg for a in function.args.args} if function.name == "__init__" else set()
    return sizes(source, function) | given


def _is_a_factor(source: Source, node: ast.expr) -> bool:
    """Whether a name is read as a factor, or handed on by itself to something that takes it."""
    parent = source.parent[node]
    alone = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.Div)
    handed = isinstance(parent, ast.Call) and node in parent.args
    handed = handed and (callee(parent) in FACTORS or callee(parent) in source.defined())
    changes = isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Mult | ast.Div)
    return alone or handed or changes


def _of_each_item(source: Source, function: ast.FunctionDef, node: ast.AugAssign) -> Iterator[Edit]:
    """`context[i] += weights[i, j]`, where each weight belongs to the item of its number."""
    if not isinstance(node.value, ast.Subscript | ast.Name | ast.Call):
        return
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    places = [n.target.id for n in loops if isinstance(n.target, ast.Name)]
    read = {n.id for n in source.names(node)}
    for place in (each for each in places if each in {n.id for n in source.names(node.value)}):
        for name in names_of(source, function, node.lineno)[:MOST]:
            if name not in read and name not in sizes(source, function):
                item = f"{name}[{place}]"
                how = f"`{source.shown(node.value)}` is not multiplied with `{item}`"
                yield source.with_text(node.value, f"{source.of(node.value)} * {item}", how, 1)


def _gives_its_item(node: ast.ListComp) -> bool:
    """Whether a comprehension gives what it goes through as it is: `[j for j in places]`."""
    one = len(node.generators) == 1 and not node.generators[0].ifs
    same = (
        one and isinstance(node.elt, ast.Name) and isinstance(node.generators[0].target, ast.Name)
    )
    return same and node.elt.id == node.generators[0].target.id


def _of_its_neighbours(source: Source, node: ast.ListComp) -> Iterator[Edit]:
    """`[j for j in places]`, where something was to be made of each."""
    name = node.elt.id
    for new, what in ((f"{name} + 1", "less"), (f"{name} - 1", "more")):
        how = f"each `{name}` of `{source.shown(node)}` is one {what} than what belongs there"
        yield source.with_text(node.elt, new, how, 1)
