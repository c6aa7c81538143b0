"""Slips in what is looked up: a place of an index, a key, the order in which a loop runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import sizes
from autograder.tracing.edits.kinds.source import (
    LIBRARIES,
    Edit,
    Source,
    is_alias,
    names_in,
    number,
    parts_of_index,
)
from autograder.tracing.text import callee, root_of

QKV = (("q", "k", "v"), ("query", "key", "value"))
MOST_KEYS = 6
PARTS = ("1:", ":-1", ":, 1:", ":, :-1", "-1", ":, -1")
ASKS = ("size", "dim", "len", "isinstance", "range", "type", "append", "items", "keys", "enumerate")
NUMBERED = re.compile(r"([A-Za-z_.]{1,40})(\d{1,2})([A-Za-z_.]{0,40})")  # a key with one number
# How the places that a function gives become one index for each axis.
AS_TUPLES = {
    "triu_indices": "tuple({})",
    "tril_indices": "tuple({})",
    "nonzero": "tuple({}.T)",
    "argwhere": "tuple({}.T)",
}
# Texts that are settings, by what they are taken for.
SETTINGS = {"mean": "sum", "sum": "mean", "ij": "xy", "xy": "ij", "none": "tanh", "tanh": "none"}


def of_indices(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one index, one key, or what a loop runs over."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load | ast.Store):
        yield from _of_places(source, node)
        yield from _of_a_later_axis(source, node)
        yield from _from_the_end(source, node)
        yield from _from_the_other_side(source, node)
        yield from _of_two_in_a_row(source, node)
        yield from _of_one_in_a_loop(source, node)
        yield from _of_one_of_an_axis(source, node)
        yield from _of_new_axes(source, node)
        yield from _of_one_for_all(source, node)
        yield from _of_neighbours(source, node)
        yield from _of_one_too_many(source, node)
        yield from _of_rows(source, node)
        yield from _of_the_last_axis(source, node)
        yield from _of_a_count(source, node)
        yield from _of_each_row(source, node)
        yield from _of_places_of_rows_and_columns(source, node)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from _of_blocks(source, node)
    elif isinstance(node, ast.ListComp) or isinstance(getattr(node, "left", None), ast.List):
        yield from _of_one_many_times(source, node)
    elif isinstance(node, ast.FunctionDef | ast.Lambda):
        yield from _of_the_last_round(source, node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _of_texts(source, node)
    elif isinstance(node, ast.For | ast.comprehension):
        yield from _of_order(source, node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_a_part(source, node)
        yield from _of_sorted(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "unsqueeze" and node.args:
        how = f"`{source.shown(node)}` makes one new axis too few"
        for axis in dict.fromkeys((source.of(node.args[-1]), "-2")):
            yield source.with_text(node, f"{source.of(node)}.unsqueeze({axis})", how, 2)
    elif isinstance(node, ast.Assign) or _called(node) in ("gather", "take_along_dim"):
        yield from _of_the_way_back(source, node)
    elif isinstance(node, ast.Call) and callee(node) in ("view", "reshape"):
        yield from _of_parts_in_front(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "range":
        if len(node.args) == 1:
            how = f"`{source.shown(node)}` begins with 0, which has no part in it"
            yield source.with_text(node.args[0], f"1, {source.of(node.args[0])}", how, 2)
        for each in node.args:
            how = f"`{source.shown(node)}` runs over other numbers than it should"
            rank = 2 if _is_a_quotient(source, each) else 1  # which may leave out what is left over
            for sign in "+-":
                yield source.with_expression(each, f"({source.of(each)}) {sign} 1", how, rank)
        for name in _numbers_of_loops(source, node) if node.args else ():
            how = f"`{source.shown(node)}` goes on behind the round of the loop around it"
            for end in (name, f"{name} + 1"):
                yield source.with_text(node.args[-1], end, how, 2)


def _of_parts_in_front(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.view(3, b, s, d)`, where the last axis holds the three parts side by side."""
    sizes = [source.of(each) for each in node.args]
    first = number(node.args[0]) if len(sizes) > 2 else None
    if first is None or first < 2 or not isinstance(node.func, ast.Attribute):
        return
    how = f"`{source.shown(node)}` cuts the first axis into parts that lie along the last"
    new = ", ".join([*sizes[1:-1], sizes[0], sizes[-1]])
    of = source.of(node.func.value)
    yield source.with_expression(node, f"{of}.reshape({new}).movedim(-2, 0)", how, 2)


def _is_a_quotient(source: Source, node: ast.expr) -> bool:
    """Whether a variable is made by a division of whole numbers."""
    function = source.function(node)
    inside = source.inside(function) if function is not None else []
    made = [n.value for n in inside if isinstance(n, ast.Assign) and is_named(n, node)]
    return any(isinstance(v, ast.BinOp) and isinstance(v.op, ast.FloorDiv) for v in made)


def is_named(statement: ast.Assign, node: ast.expr) -> bool:
    """Whether a statement gives a variable its value, alone."""
    target = statement.targets[0]
    return isinstance(node, ast.Name) and isinstance(target, ast.Name) and target.id == node.id


def _of_places(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """A loop's number where all of an axis is taken, or all of it where one number is."""
    inside = node.slice
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    rounds = _numbers_of_loops(source, node)
    how = f"the places in `{source.shown(node)}` are other ones than they should be"
    for place, each in enumerate(parts):
        texts = [source.of(p) for p in parts]
        if isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step):
            for name in rounds:
                other = [*texts[:place], name, *texts[place + 1 :]]
                yield source.with_text(inside, ", ".join(other), how, 2)
        elif isinstance(each, ast.Name) and each.id in rounds and len(parts) > 1:
            other = [*texts[:place], ":", *texts[place + 1 :]]
            yield source.with_text(inside, ", ".join(other), how, 2)


def _numbers_of_loops(source: Source, node: ast.AST) -> list[str]:
    """The names that the loops around a node give its rounds."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    for around in source.around(node):
        loops += getattr(around, "generators", [])
    targets = [t for loop in loops for t in ast.walk(loop.target)]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _of_texts(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """Another key of the same function in the place of a key; another setting."""
    parent = source.parent[node]
    if node.value in SETTINGS and isinstance(parent, ast.keyword):
        how = f"`{source.shown(parent)}` is not what belongs there"
        yield source.with_text(node, repr(SETTINGS[node.value]), how, 1)
    if isinstance(parent, ast.keyword | ast.Call):
        yield from _of_what_it_is_compared_with(source, node)
    if NUMBERED.fullmatch(node.value):
        yield from _of_its_number(source, node)
    is_key = isinstance(parent, ast.Subscript | ast.Dict | ast.Tuple | ast.List)
    if is_key or (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)):
        others = {
            n.value: None
            for n in source.inside(source.tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str)
            if type(source.parent.get(n)) is type(parent) and n.value != node.value
        }
        how = f"`{source.shown(node)}` is taken where another belongs"
        if isinstance(parent, ast.Tuple | ast.List):  # one that stands there already
            beside = {getattr(each, "value", None) for each in parent.elts}
            others = {other: None for other in others if other not in beside}
        alike = [*_mixed(node.value, others)]
        alike += [other for other in others if other not in alike]
        for other in alike[:MOST_KEYS]:
            yield source.with_text(node, repr(other), how, 2)


def _of_its_number(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """`norm("ln_1")`, copied to where `"ln_2"` belongs."""
    name, count, rest = NUMBERED.fullmatch(node.value).groups()
    how = f"`{source.shown(node)}` is taken where another belongs"
    same = [n for n in source.inside(source.tree) if getattr(n, "value", None) == node.value]
    copied = any(source.span(n) < source.span(node) for n in same)
    for other in (int(count) + 1, int(count) - 1):
        yield source.with_text(node, repr(f"{name}{other}{rest}"), how, 1 if copied else 2)


def _of_what_it_is_compared_with(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """`where="output"`, where something asks for `where == "input"`."""
    compared = [n for n in source.inside(source.tree) if isinstance(n, ast.Compare)]
    texts = [c.value for n in compared for c in n.comparators if isinstance(c, ast.Constant)]
    around = source.shown(source.parent[node])
    how = f"`{source.shown(node)}` is not the text that belongs in `{around}`"
    for other in dict.fromkeys(t for t in texts if isinstance(t, str) and t != node.value):
        yield source.with_text(node, repr(other), how)


def _mixed(key: str, others: Iterable[str]) -> Iterator[str]:
    """A key with one part of another in its place: `v.weight` for `k.weight`, beside `v.bias`."""
    parts = key.split(".")
    rows = [other.split(".") for other in others if other.count(".") == key.count(".") > 0]
    for place in range(len(parts)):
        beside = [row[place] for row in rows]
        beside += [word for words in QKV if parts[place] in words for word in words]
        for part in (each for each in dict.fromkeys(beside) if each != parts[place]):
            yield ".".join([*parts[:place], part, *parts[place + 1 :]])


def _of_order(source: Source, node: ast.For | ast.comprehension) -> Iterator[Edit]:
    """The rounds of a loop in reverse order, or no longer so."""
    over = node.iter
    how = f"the rounds over `{source.shown(over)}` run in another order than they should"
    if isinstance(over, ast.Call) and callee(over) == "reversed" and over.args:
        yield source.with_expression(over, source.of(over.args[0]), how, 2)
    else:
        yield source.with_expression(over, f"reversed(list({source.of(over)}))", how, 3)
    if isinstance(over, ast.Call) and callee(over) == "zip":
        how = f"`{source.shown(over)}` puts together what does not belong together"
        for each in over.args:
            yield source.with_expression(each, f"list({source.of(each)})[::-1]", how, 3)


def _of_a_later_axis(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """An index for the second or the last axis that stands on the first, wherever it does so in
    one statement."""
    if isinstance(node.slice, ast.Slice) and isinstance(node.value, ast.Attribute):
        how, index = f"`{source.shown(node)}` cuts one of two axes", source.of(node.slice)
        yield source.with_text(node.slice, f"{index}, {index}", how, 1)
    named = isinstance(getattr(node.slice, "value", None), str)  # of a dict
    if isinstance(node.slice, ast.Tuple) or isinstance(node.value, ast.Attribute) or named:
        return
    statement, text = source.statement(node), source.of(node)
    same = [n for n in source.inside(statement) if isinstance(n, ast.Subscript)]
    same = [n for n in same if source.of(n) == text]
    if same[0] is not node or not isinstance(
        node.slice, ast.Name | ast.Constant | ast.UnaryOp | ast.BinOp | ast.Slice
    ):
        return
    how = f"`{source.shown(node)}` takes from the first axis what belongs to another"
    start, end = source.span(statement)
    for before in (":, ", "..., "):
        new = f"{source.of(node.value)}[{before}{source.of(node.slice)}]"
        changed = source.text[start:end].replace(text, new)
        yield source.with_span(node, (start, end), changed, how, 2)
    index = source.of(node.slice)
    alike = [n for n in source.inside(statement) if isinstance(n, ast.Subscript)]
    alike = [n for n in alike if source.of(n.slice) == index and isinstance(n.ctx, ast.Load)]
    if len(alike) > 1 and alike[0] is node:
        yield source.with_parts(statement, {n.slice: f":, {index}" for n in alike}, how, 2)


def _of_the_last_axis(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`x[i, n:]` for `x[i, :, n:]`: what is cut of an axis, cut of one beside it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if len(parts) < 2 or not isinstance(parts[-1], ast.Slice) or source.of(parts[-1]) == ":":
        return
    whole = source.of(parts[-2]) == ":"
    how = f"`{source.shown(node)}` cuts of one axis what belongs to "
    if whole or isinstance(parts[-2], ast.Name):
        start = source.span(parts[-1])[0]
        yield source.with_span(node, (start, start), ":, ", f"{how}the next", int(whole))
    if whole:
        span = source.span(parts[-2])[0], source.span(parts[-1])[0]
        yield source.with_span(node, span, "", f"{how}the one before", 1)


def _of_each_row(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`ranked[0, places]`, where each row has its own place."""
    parts = parts_of_index(node)
    if len(parts) == 2 and number(parts[0]) is not None and isinstance(parts[1], ast.Name):
        how = f"`{source.shown(node)}` is of one row, where each row has a place of its own"
        rows = f"torch.arange(len({source.of(node.value)}))"
        yield source.with_text(parts[0], rows, how, 1)


def _of_places_of_rows_and_columns(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`x[places]` of `places = torch.triu_indices(n, n)`: one tensor is an index of rows alone."""
    function, places = source.function(node), node.slice
    made = source.made(function, places.id) if function and isinstance(places, ast.Name) else []
    for way in dict.fromkeys(AS_TUPLES.get(_called(value), "") for value in made or [places]):
        if way:
            how = f"`{source.shown(places)}` is one index of rows in `{source.shown(node)}`"
            yield source.with_text(places, way.format(source.of(places)), how)


def _of_a_count(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """The k-th of some, `x[:, k]`: places are counted from 0."""
    function = source.function(node)
    parts = parts_of_index(node)
    given = {a.arg for a in function.args.args} if function is not None else set()
    for each in (n for n in parts if isinstance(n, ast.Name) and isinstance(node.ctx, ast.Load)):
        made = source.made(function, each.id) if function is not None else []
        counted = any(_called(value) in ("min", "max", "len", "int", "round") for value in made)
        if each.id in given or counted:
            how = f"`{each.id}` is one more than the last place, in `{source.shown(node)}`"
            yield source.with_text(each, f"{each.id} - 1", how, 1)
            how = f"`{each.id}` is not the place that belongs in `{source.shown(node)}`"
            yield source.with_text(each, "-1", how, 2)


def _of_one_in_a_loop(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """One item, in a loop over all of them, where the loop's own is meant."""
    place = isinstance(node.slice, ast.Constant) or number(node.slice) is not None
    if not (place and isinstance(node.ctx, ast.Load)):
        return
    for loop in source.around(node):
        one_by_one = isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
        if one_by_one and source.of(loop.iter) == source.of(node.value):
            how = f"`{source.shown(node)}` is the same in every round"
            yield source.with_text(node, loop.target.id, how, 1)
    used = {n.slice.id for n in source.inside(source.statement(node)) if _is_of_a_name(n)}
    for name in _numbers_of_loops(source, node):
        how = f"`{source.shown(node)}` is the same in every round"
        rank = 0 if _reads_nowhere(source, node, name) else 1 if name in used else 2
        yield source.with_text(node.slice, name, how, rank)


def _reads_nowhere(source: Source, node: ast.AST, name: str) -> bool:
    """Whether the loop around that counts by a name does not read it."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    own = [n for n in loops if name in {each.id for each in source.names(n.target)}][:1]
    read = (each for n in own for each in source.names(n) if isinstance(each.ctx, ast.Load))
    return bool(own) and name not in {each.id for each in read}


def _of_one_of_an_axis(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """One number for one of several axes, in a loop over such numbers."""
    for each in node.slice.elts if isinstance(node.slice, ast.Tuple) else ():
        for name in _numbers_of_loops(source, node) if isinstance(number(each), int) else ():
            how = f"`{source.shown(node)}` is the same in every round"
            yield source.with_text(each, name, how, 2)


def _of_new_axes(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """One new axis too few, or too many, beside another."""
    parts = parts_of_index(node)
    texts = [source.of(each) for each in parts]
    for place, text in enumerate(texts):
        if text == "None":
            how = f"`{source.shown(node)}` gets its new axes in other places than it should"
            more = [*texts[:place], "None", *texts[place:]]
            yield source.with_text(node.slice, ", ".join(more), how, 1)
    if texts.count("None") == 1 and set(texts) <= {"None", ":", "..."}:
        how = f"`{source.shown(node)}` gets its new axis in another place than it should"
        for other in ("None", ":, None", "..., None", ":, :, None"):
            yield source.with_text(node.slice, other, how, 1)


def _of_one_for_all(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`x[0, k]`, which takes the first row's number for all rows, and `x[:, k]`, whose numbers are
    laid on another axis than they come from."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if len(parts) < 2 or not isinstance(node.ctx, ast.Load):
        return
    texts = [source.of(each) for each in parts]
    one = [place for place, each in enumerate(parts) if isinstance(number(each), int)]
    for place in one[: len(parts) - 1]:
        how = f"`{source.shown(node)}` takes the numbers of one for all"
        own = ", ".join([*texts[:place], ":", *texts[place + 1 :]])
        for new in (own, f"{own}, None"):
            yield source.with_text(node.slice, new, how, 1)
    cut = isinstance(parts[-1], ast.Slice) or texts[-1] in ("None", "...")
    if texts[0] in (":", "...") and not cut and "None" not in texts:
        how = f"`{source.shown(node)}` has lost the axis along which it is laid on others"
        yield source.with_text(node.slice, ", ".join([*texts, "None"]), how, 1)


def _from_the_end(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`x[..., i]` for `x[..., i, :]`, and the other way round: the last axis, or the one before."""
    parts = list(map(source.of, getattr(node.slice, "elts", ())))
    how = f"`{source.shown(node)}` takes a place of another axis than it should"
    if len(parts) > 1 and parts[0] == "..." and ":" not in parts[1:]:
        yield source.with_text(node.slice, ", ".join([*parts, ":"]), how, 1)
    elif len(parts) > 2 and parts[0] == "..." and parts[-1] == ":":
        yield source.with_text(node.slice, ", ".join(parts[:-1]), how, 1)


def _from_the_other_side(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`ordered[:, k - 1]` for `ordered[:, -k]`, and the other way round."""
    how = f"`{source.shown(node)}` counts from the other end"
    for part in parts_of_index(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and number(part.right) == 1:
            rank = 3 if _is_sorted_upwards(source, node) else 1  # then the sort is the wrong one
            yield source.with_text(part, f"-{source.in_brackets(part.left)}", how, rank)
        elif isinstance(part, ast.UnaryOp) and number(part) is None:
            yield source.with_text(part, f"{source.of(part.operand)} - 1", how, 1)


def _is_sorted_upwards(source: Source, node: ast.Subscript) -> bool:
    """Whether a plain sort made it, under a name that does not say so."""
    function, name = source.function(node), root_of(node)
    sorts = [n for n in source.calls(function) if callee(n) == "sort"] if function else []
    sorts = [n for n in sorts if name in names_in(source.given_to(n)) and "asc" not in name]
    return any("descending" not in {k.arg for k in n.keywords} for n in sorts)


def _of_one_too_many(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """The first, or the last, of what is meant as a whole."""
    place = isinstance(node.slice, ast.Constant) or number(node.slice) is not None
    if not (place and isinstance(node.ctx, ast.Load)):
        return
    if isinstance(node.value, ast.Name | ast.Attribute | ast.Call):
        how = f"`[{source.of(node.slice)}]` does not belong there: `{source.shown(node)}`"
        edit = source.with_expression(node, source.of(node.value), how, 2)
        yield replace(edit, takes=True)


def _of_neighbours(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """The place before or behind the one that a loop is at."""
    parts = parts_of_index(node)
    rounds = _numbers_of_loops(source, node)
    for each in parts:
        if isinstance(each, ast.Name) and each.id in rounds:
            how = f"`{source.shown(node)}` takes the place beside the one that it should"
            for sign in "+-":
                yield source.with_text(each, f"{each.id} {sign} 1", how, 2)


def _of_rows(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """Columns of a table, turned, where its rows belong, and the other way round."""
    parent = source.parent[node]
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    columns = len(parts) == 2 and source.of(parts[0]) == ":" and isinstance(parts[1], ast.Slice)
    how = f"`{source.shown(node)}` takes columns, where rows belong"
    if columns and isinstance(parent, ast.Attribute):
        call = source.parent[parent]
        whole = call if isinstance(call, ast.Call) and call.func is parent else parent
        if parent.attr in ("T", "mT", "t", "transpose"):
            new = f"{source.of(node.value)}[{source.of(parts[1])}]"
            yield source.with_text(whole, new, how, 2)
    elif isinstance(node.slice, ast.Slice) and node.slice.upper is not None:
        how = f"`{source.shown(node)}` takes rows, where columns belong"
        new = f"{source.of(node.value)}[:, {source.of(node.slice)}].mT"
        yield source.with_text(node, new, how, 3)


def _of_sorted(source: Source, node: ast.Name) -> Iterator[Edit]:
    """A mask that was made of sorted numbers, laid on those that are not."""
    parent, function = source.parent[node], source.function(node)
    index = isinstance(parent, ast.Subscript) and parent.slice is node
    filled = isinstance(parent, ast.Call) and callee(parent).startswith("masked_fill")
    if function is None or not (index or (filled and node in parent.args)):
        return
    how = f"`{node.id}` is in the order of the sorted numbers, and is laid on those as they came"
    given = source.made(function, node.id) if is_alias(node.id, source.text) else []
    told = given[0].lineno if given else None
    for made in source.inside(function):
        target = made.targets[0] if isinstance(made, ast.Assign) else None
        is_sort = isinstance(target, ast.Tuple) and _called(made.value) == "sort"
        if is_sort and len(target.elts) == 2 and made.lineno < node.lineno:
            places = source.of(target.elts[1])
            new = f"{node.id}.gather(-1, {places}.argsort(-1))"
            yield source.with_expression(node, new, how, 1).told_of(told)


def _of_the_way_back(source: Source, node: ast.Call | ast.Assign) -> Iterator[Edit]:
    """Places by which something was sorted, by which it is to be put back; or another name for
    them, `back = order`."""
    given = [node.value] if isinstance(node, ast.Assign) else node.args
    names = [each for each in given if isinstance(each, ast.Name)]
    places = names[-1] if names else None
    function = source.function(node)
    if places is None or function is None:
        return
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    made = [n for n in made if _called(n.value) in ("sort", "argsort")]
    if any(places.id in {n.id for t in each.targets for n in source.names(t)} for each in made):
        how = f"`{source.shown(node)}` puts in order once more what is to be put back"
        yield source.with_text(places, f"{places.id}.argsort(-1)", how, 1)


def _called(node: ast.expr) -> str:
    """The last name of what an expression calls; '' where it calls nothing."""
    return callee(node) if isinstance(node, ast.Call) else ""


def _is_of_a_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)


def _of_two_in_a_row(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`x[:n][:n]`, which cuts one axis twice, for `x[:n, :n]`."""
    inner = node.value
    if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice):
        new = f"{source.of(inner.value)}[{source.of(inner.slice)}, {source.of(node.slice)}]"
        how = f"both brackets of `{source.shown(node)}` are about the first axis"
        yield source.with_text(node, new, how, 1)


def _of_a_part(source: Source, node: ast.Name) -> Iterator[Edit]:
    """All of a tensor, where all but one place of it, or its last, is meant."""
    parent, function = source.parent[node], source.function(node)
    of_method = isinstance(parent, ast.Attribute) and _is_called(source, parent)
    given = isinstance(parent, ast.Call) and node in parent.args and callee(parent) not in ASKS
    given = given or (isinstance(parent, ast.ListComp | ast.GeneratorExp) and parent.elt is node)
    if function is None or not (of_method or given) or node.id in sizes(source, function):
        return
    if node.id in LIBRARIES or node.id in ("self", "super"):
        return
    how = f"`{node.id}` is taken as a whole in `{source.shown(source.statement(node))}`"
    for part in PARTS:
        yield source.with_text(node, f"{node.id}[{part}]", how, 3)


def _is_called(source: Source, node: ast.Attribute) -> bool:
    """Whether an attribute is a method that is called, and not for a size."""
    parent = source.parent[node]
    return isinstance(parent, ast.Call) and parent.func is node and node.attr not in ASKS


def _of_one_many_times(source: Source, node: ast.BinOp | ast.ListComp) -> Iterator[Edit]:
    """One object that stands several times in a list: `[layer] * n`."""
    if isinstance(node, ast.ListComp):
        if not isinstance(node.elt, ast.Name):
            return
        each, rounds = node.elt, source.text[source.span(node.elt)[1] : source.span(node)[1]]
    elif isinstance(getattr(node, "op", None), ast.Mult) and len(node.left.elts) == 1:
        each, rounds = node.left.elts[0], f" for _ in range({source.of(node.right)})]"
    else:
        return
    made = _made_once(source, each) if isinstance(each, ast.Name) else each
    is_list = isinstance(getattr(made, "left", made), ast.List | ast.ListComp)
    if isinstance(made, ast.Call) or (is_list and made is each):
        how = f"`{source.shown(node)}` holds one and the same object several times"
        yield source.with_expression(node, f"[{source.of(made)}{rounds}", how)


def _made_once(source: Source, node: ast.Name) -> ast.expr | None:
    """What makes the object that a variable stands for, where one statement of its function does:
    a call of what is called as classes are."""
    function = source.function(node)
    inside = source.inside(function) if function is not None else []
    made = [n for n in inside if isinstance(n, ast.Assign)]
    values = [n.value for n in made if node.id in map(source.of, n.targets)]
    named = [v for v in values if isinstance(v, ast.Call) and callee(v)[:1].isupper()]
    return named[0] if len(values) == len(named) == 1 else None


def _of_the_last_round(source: Source, node: ast.FunctionDef | ast.Lambda) -> Iterator[Edit]:
    """A function that is made in a loop and reads the loop's number when it runs, much later."""
    inside = [n.id for n in source.inside(node) if isinstance(n, ast.Name)]
    body = node.body[0] if isinstance(node, ast.FunctionDef) else node.body
    own = [a.arg for a in node.args.args]
    changing = dict.fromkeys((*_numbers_of_loops(source, node), *_counted_on(source, node)))
    names = [n for n in changing if n in inside and n not in own]
    start = source.span(node)[0]
    end = source.text.rfind(":", start, source.span(body)[0])
    for name in names:
        how = f"it reads `{name}` when it runs, and by then that is the last round's"
        head = source.text[start:end]
        if isinstance(node, ast.FunctionDef):
            close = head.rfind(")")
            comma = ", " if own else ""
            new = f"{head[:close]}{comma}{name}={name}{head[close:]}"
        else:
            new = f"{head}{', ' if own else ' '}{name}={name}"
        read = min(n.lineno for n in source.inside(node) if getattr(n, "id", "") == name)
        yield source.with_span(node, (start, end), new, how).told_of(read)


def _counted_on(source: Source, node: ast.AST) -> list[str]:
    """The names that the loops around a function change by themselves: `layer += 1`."""
    loops = [n for n in source.around(node) if isinstance(n, ast.For | ast.While)]
    inside = [n for loop in loops for n in source.inside(loop) if isinstance(n, ast.AugAssign)]
    return [n.target.id for n in inside if isinstance(n.target, ast.Name)]


def _of_blocks(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """Blocks in the place of every n-th, for all parts of a row at once."""
    texts = [_block(source, each) for each in node.elts]
    if len(texts) > 1 and all(texts):
        shown = source.shown(node.elts[0])
        how = f"`{shown}` takes numbers that lie apart, and not a block of them"
        yield source.with_text(node, ", ".join(texts), how, 2)


def _block(source: Source, node: ast.expr) -> str | None:
    """The block for a slice with a step: for `x[:, 1::3]` the second of three. None of anything
    else."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = parts_of_index(node)
    steps = [i for i, p in enumerate(parts) if isinstance(p, ast.Slice) and p.step is not None]
    if len(steps) != 1 or parts[steps[0]].upper is not None:
        return None
    cut = parts[steps[0]]
    first = number(cut.lower) if cut.lower is not None else 0
    several = number(cut.step)
    if not (isinstance(first, int) and isinstance(several, int) and 0 <= first < several):
        return None
    axis = steps[0] if source.of(parts[0]) != "..." else steps[0] - len(parts)
    return f"{source.of(node.value)}.chunk({several}, {axis})[{first}]"
