"""Slips in counts: of another axis; and what is divided by is the number or sum of another."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import made_from, names_of, sizes
from autograder.tracing.edits.kinds.source import Edit, Source, number, of_library
from autograder.tracing.text import callee, made_in

COUNTS = ("len", "numel", "size", "sum")
PLACED = ("bit_length", "index", "bisect", "bisect_left", "bisect_right")  # one off, easily
HALF, LAYER = 0.5, "Linear"
HEADS = re.compile(r"^(?:num|n|nr)?_?heads?$")
LATE = 3  # how unlikely one of many counts is
IN_TURN = "deals them out in turn, where neighbours belong together"
FILLED = ("full", "full_like", "new_full", "tensor", "new_tensor", "as_tensor")
SHORT, LONG = 12, 8  # how long a probe is at most that may be too short, and by how much
MADE_OF_SIZES = ("eye", "zeros", "ones", "randn", "rand", "arange", "full", "linspace")
MASKS = ("tril", "triu", "tril_", "triu_")
A_SIZE = re.compile(r"size|dim|width|per_")
MOST_SIZES = 6  # that are tried in the place of one sum


def of_counts(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Other counts and sums in the place of one."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
        above, below = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        function = source.function(node)
        if function is not None and _is_count(source, function, below):
            yield from _of_its_sum(source, above, below)
            yield from _of_one_more(source, above, below)
            yield from _others(source, function, above, below)
        elif function is not None:
            yield from _of_a_size(source, function, above, below)
        if function is not None:
            yield from _of_all_numbers(source, function, below)
    elif isinstance(node, ast.BinOp):
        yield from _of_neighbours(source, node)
        yield from _of_a_group(source, node)
        yield from _of_a_whole_block(source, node)
        yield from _of_a_window(source, node)
        yield from _of_what_is_seen(source, node)
    elif isinstance(node, ast.Compare):
        yield from _of_neighbours_on_both_sides(source, node)
    elif isinstance(node, ast.Assign):
        yield from _up_to_it(source, node)
        yield from _of_one_of_many(source, node)
        yield from _of_a_term_beside(source, node)
        yield from _of_those_before(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "len" and len(node.args) == 1:
        how = f"another axis than the first belongs in `{source.shown(node)}`"
        for axis in (1, -1):
            new = f"{source.in_brackets(node.args[0])}.shape[{axis}]"
            yield source.with_text(node, new, how, 1)
    elif isinstance(node, ast.Call) and callee(node) in PLACED:
        how = f"`{source.shown(node)}` is not the number that belongs there"
        for by in ("- 1", "+ 1"):
            yield source.with_expression(node, f"{source.of(node)} {by}", how, 1)
    elif isinstance(node, ast.Call) and callee(node) == "kthvalue":
        yield from _of_the_smallest(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "arange" and len(node.args) == 1:
        yield from _of_the_last(source, node.args[0])
    elif isinstance(node, ast.Call) and callee(node) in FILLED and node.args:
        yield from _of_a_place(source, node.args[-1])
    elif isinstance(node, ast.Subscript | ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_a_layer(source, node)
        if isinstance(node, ast.Name):
            yield from _of_one_head(source, node)
        yield from _of_a_part(source, node)
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Compare):
        how = f"`{source.shown(node)}` counts some of them, and not each"
        yield source.with_text(node.value, "1", how, 2)
    if isinstance(node, ast.Assign):
        yield from _of_the_last_place(source, node)
        yield from _longer(source, node)
    elif isinstance(node, ast.While):
        yield from _of_what_was_there(source, node)


def _of_a_window(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`place // window * window`, where blocks begin: each place has a window of its own."""
    for inner, width in ((node.left, node.right), (node.right, node.left)):
        blocks = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv)
        size = source.of(width)
        if isinstance(node.op, ast.Mult) and blocks and source.of(inner.right) == size:
            how = f"`{source.shown(node)}` is where a block begins, which is the same for all of it"
            place = source.in_brackets(inner.left)
            for new in (f"max(0, {place} - {size} + 1)", f"max(0, {place} - {size})"):
                yield source.with_text(node, new, how, 1)


def _of_what_is_seen(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`batch * seq * seq` pairs, where a mask says which of them count."""
    function, right = source.function(node), node.right
    if function is None or not isinstance(node.op, ast.Mult) or not isinstance(right, ast.Name):
        return
    left, rest = node.left, ""
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
        left, rest = left.right, f"{source.of(left.left)} * "
    if source.of(left) != right.id:
        return
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    masks = [n for n in made if any(callee(c) in MASKS for c in source.calls(n.value))]
    names = [t.id for n in masks for t in n.targets if isinstance(t, ast.Name)]
    how = f"`{source.shown(node)}` counts the hidden pairs, too"
    for name in list(dict.fromkeys(names))[:MOST_SIZES]:
        yield source.with_expression(node, f"{rest}{name}.sum()", how, 1)


def _of_a_whole_block(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`number * part.shape[0]`, of a part that may be shorter than a whole one, as the last is."""
    function = source.function(node)
    lengths = [n for n in (node.left, node.right) if _is_length(n)]
    names = [n for n in (node.left, node.right) if isinstance(n, ast.Name)]
    if function is None or not isinstance(node.op, ast.Mult) or not (lengths and names):
        return
    inside = source.inside(function)
    parts = [n.value for n in inside if isinstance(n, ast.Attribute | ast.Subscript)]
    of_parts = {n.id for n in parts if isinstance(n, ast.Name)}
    given = {a.arg for a in function.args.args} - of_parts  # what is a number, as it is used
    how = f"`{source.shown(lengths[0])}` is how long this part is, and not the ones before it"
    for name in sorted(given)[:MOST_SIZES]:
        yield source.with_text(lengths[0], name, how, 1)


def _of_those_before(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`past = k.size(2)`, where `k` holds the new ones as well by then."""
    function, value = source.function(node), node.value
    if function is None or not _is_length(value):
        return
    of = value.value if isinstance(value, ast.Subscript) else value.func  # `k.shape`, `k.size`
    of = getattr(of, "value", None) or next(iter(getattr(value, "args", ())), None)
    if of is None:
        return
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    joined = any(
        isinstance(n.value, ast.Call)
        and callee(n.value) in ("cat", "concat", "concatenate")
        and [source.of(t) for t in n.targets] == [source.of(of)]
        and n.lineno < node.lineno
        for n in made
    )
    others = [n for n in source.inside(function) if isinstance(n, ast.expr) and _is_length(n)]
    others = [source.of(n) for n in others if n.lineno != node.lineno]
    others += sorted(sizes(source, function))
    how = f"`{source.shown(value)}` counts the new ones, too"
    for other in list(dict.fromkeys(others))[:MOST_SIZES] if joined else ():
        yield source.with_text(value, f"{source.of(value)} - {other}", how, 0)


def _is_length(node: ast.expr) -> bool:
    """Whether an expression is the length of an axis of something."""
    if isinstance(node, ast.Subscript):
        return getattr(node.value, "attr", "") == "shape"
    return isinstance(node, ast.Call) and callee(node) in ("len", "size")


def _of_a_place(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A length that is the number in a tensor, where the place before it is meant, or behind it."""
    inner = node
    while isinstance(inner, ast.List | ast.Tuple) and inner.elts:
        inner = inner.elts[-1]
    if _is_length(inner):
        how = f"`{source.shown(inner)}` is how many there are, and not the place that belongs there"
        for sign in "-+":
            yield source.with_text(inner, f"{source.of(inner)} {sign} 1", how, 1)


def _of_the_last(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Places that are counted from 0, where they are the last ones of more."""
    function = source.function(node)
    counted = sizes(source, function) if function is not None else set()
    if isinstance(node, ast.Name) and node.id in counted:
        how = f"`{source.shown(source.parent[node])}` counts from 0, and not from where it should"
        known = names_of(source, function, node.lineno)
        for other in [name for name in known if name in counted and name != node.id]:
            yield source.with_text(node, f"{other} - {node.id}, {other}", how, 1)


def _of_the_last_place(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """A number of places with which a place is compared: places are counted from 0."""
    function, target = source.function(node), node.targets[0]
    if function is None or not isinstance(target, ast.Name):
        return
    compared = [n for n in source.inside(function) if isinstance(n, ast.Compare)]
    equal = [n for n in compared if isinstance(n.ops[0], ast.Eq | ast.NotEq)]
    meets = any(target.id in (source.of(n.left), source.of(n.comparators[0])) for n in equal)
    if meets and _is_count(source, function, node.value):
        how = f"`{source.shown(node.value)}` is one more than the last place"
        yield source.with_text(node.value, f"{source.of(node.value)} - 1", how, 1)


def _of_a_part(source: Source, node: ast.Subscript | ast.Name) -> Iterator[Edit]:
    """The size of all parts under a root, where a variable holds that of one of them."""
    if not _is_under_a_root(source, node):
        return
    for other in source.inside(source.tree):
        value = other.value if isinstance(other, ast.Assign) else None
        value = value.args[0] if isinstance(value, ast.Call) and callee(value) == "int" else value
        divided = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv | ast.Div)
        if divided and source.of(value.left) == source.of(node):
            how = f"`{source.shown(node)}` is the size of all of them, and not that of one"
            yield source.with_expression(
                node, f"{source.of(node)} // {source.of(value.right)}", how
            )
    function = source.function(node)
    given = [a.arg for a in function.args.args] if function is not None else []
    for heads in [name for name in given if HEADS.search(name) and name != source.of(node)][:1]:
        how = f"`{source.shown(node)}` is the size of all of them, and not that of one"
        yield source.with_expression(node, f"{source.of(node)} // {heads}", how, 1)


def _of_one_head(source: Source, node: ast.Name) -> Iterator[Edit]:
    """The number of heads by which a place is divided, where the size of one belongs."""
    parent, function = source.parent[node], source.function(node)
    divides = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.FloorDiv | ast.Mod)
    if not (divides and parent.right is node and HEADS.search(node.id)) or function is None:
        return
    if A_SIZE.search(source.given_to(node)):
        return  # `head_size = hidden // num_heads` is as it says
    how = f"`{node.id}` is how many there are, and not the size of one, in `{source.shown(parent)}`"
    counted = sizes(source, function) - {node.id}
    for name in [n for n in names_of(source, function, node.lineno) if n in counted][:3]:
        yield source.with_text(node, f"({name} // {node.id})", how, 1)


def _of_neighbours(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Places that are dealt out in turn, `i % n`, where neighbours belong together."""
    how = f"`{source.shown(node)}` {IN_TURN}"
    for new in _as_neighbours(source, node):
        yield source.with_expression(node, new, how, 1)


def _of_neighbours_on_both_sides(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """The same of two places that are compared."""
    how = f"`{source.shown(node)}` {IN_TURN}"
    for one, other in itertools.pairwise((node.left, *node.comparators)):
        between = source.text[source.span(one)[1] : source.span(other)[0]]
        span = source.span(one)[0], source.span(other)[1]
        pairs = zip(_as_neighbours(source, one), _as_neighbours(source, other), strict=False)
        for pair in pairs:
            yield source.with_span(node, span, between.join(pair), how, 1)


def _as_neighbours(source: Source, node: ast.expr) -> list[str]:
    """`i // (size // n)` for `i % n`, with each size that the function knows."""
    function = source.function(node)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod) or function is None:
        return []
    if isinstance(node.left, ast.Constant):
        return []
    counted = sizes(source, function)
    known = names_of(source, function, node.lineno)
    right, left = source.of(node.right), source.in_brackets(node.left)
    others = [n for n in known if n in counted and n != right][:4]
    return [f"{left} // ({other} // {right})" for other in others]


def _is_under_a_root(source: Source, node: ast.expr) -> bool:
    parent = source.parent[node]
    power = getattr(parent, "right", None) if isinstance(parent, ast.BinOp) else None
    is_root = isinstance(parent, ast.Call) and callee(parent) == "sqrt"
    return is_root or (power is not node and abs(number(power) or 0) == HALF)


def _of_a_layer(source: Source, node: ast.Subscript | ast.Name) -> Iterator[Edit]:
    """A size under a root that is not that of what a layer gives."""
    function = source.function(node)
    if function is None or function.name == "__init__" or not _is_under_a_root(source, node):
        return
    if _is_count(source, function, node):
        layers = [n for n in source.inside(source.tree) if isinstance(n, ast.Assign)]
        layers = [n for n in layers if isinstance(n.value, ast.Call) and callee(n.value) == LAYER]
        targets = [source.of(each.targets[0]) for each in layers]
        how = f"`{source.shown(node)}` is not the size that belongs under the root"
        for name in [each for each in targets if each.startswith("self.")][:1]:
            yield source.with_text(node, f"{name}.out_features", how, 1)


def _up_to_it(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """One size that has a second name, where all numbers up to it are meant."""
    function, value = source.function(node), node.value
    one = isinstance(value, ast.Name | ast.Call) or _is_count_of_one(value)
    if function is None or not one or not _is_count(source, function, value):
        return
    if isinstance(value, ast.Name) or _is_indexed(source, function, node.targets[0]):
        how = f"`{source.shown(value)}` is one number, where all up to it belong"
        yield source.with_text(value, f"torch.arange({source.of(value)})", how, 1)


def _of_one_of_many(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """A count by which something is divided, where there are several of what is counted."""
    function, target = source.function(node), node.targets[0]
    if function is None or not isinstance(target, ast.Name):
        return
    if not _is_count(source, function, node.value) or not _divides(source, function, target.id):
        return
    own = {n.id for n in source.names(node.value)} | {target.id}
    known = [n for n in names_of(source, function, node.lineno) if n not in own]
    how = f"`{source.shown(node.value)}` counts one of them, and there are several"
    for name in [n for n in known if n in sizes(source, function)][:MOST_SIZES]:
        yield source.with_text(node.value, f"{source.in_brackets(node.value)} * {name}", how, 2)


def _of_a_term_beside(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """A sum of sizes that lacks one which a sum beside it has."""
    function, value = source.function(node), node.value
    if function is None or not _is_sum_of_sizes(source, function, value):
        return
    own = {n.id for n in source.names(value)}
    sums = [n.value for n in source.inside(function) if isinstance(n, ast.Assign) and n is not node]
    sums = [each for each in sums if _is_sum_of_sizes(source, function, each)]
    terms = [t.id for each in sums for t in (each.left, each.right) if isinstance(t, ast.Name)]
    how = f"`{source.shown(value)}` lacks a part of what is to be counted"
    for name in [n for n in dict.fromkeys(terms) if n not in own][:MOST_SIZES]:
        yield source.with_text(value, f"{source.of(value)} + {name}", how, 1)


def _is_sum_of_sizes(source: Source, function: ast.FunctionDef, node: ast.expr) -> bool:
    counted = sizes(source, function)
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    return is_sum and all(
        n.id in counted or _is_made_of(source, function, n.id, counted) for n in source.names(node)
    )


def _is_made_of(source: Source, function: ast.FunctionDef, name: str, counted: set[str]) -> bool:
    """Whether a variable is given, or made of sizes and numbers alone."""
    given = {a.arg for a in function.args.args}
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    made = [n for n in made if source.of(n.targets[0]) == name]
    return name in given or any(
        {n.id for n in source.names(m.value)} <= counted | given for m in made
    )


def _divides(source: Source, function: ast.FunctionDef, name: str) -> bool:
    """Whether something is divided by a variable, or by that and a number."""
    quotients = [n for n in source.inside(function) if isinstance(n, ast.BinOp)]
    below = [n.right for n in quotients if isinstance(n.op, ast.Div)]
    return any(each.id == name for side in below for each in source.names(side))


def _is_count_of_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)


def _is_indexed(source: Source, function: ast.FunctionDef, target: ast.expr) -> bool:
    """Whether a variable has places somewhere."""
    parts = [n for n in source.inside(function) if isinstance(n, ast.Subscript)]
    return isinstance(target, ast.Name) and any(source.of(n.value) == target.id for n in parts)


def _is_count(source: Source, function: ast.FunctionDef, node: ast.expr) -> bool:
    """Whether an expression counts or sums up all of something, as far as its text tells."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return any(_is_count(source, function, each) for each in (node.left, node.right))
    if isinstance(node, ast.Name):
        return node.id in sizes(source, function)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Call) and callee(node) in COUNTS


def _others(
    source: Source, function: ast.FunctionDef, above: ast.expr, below: ast.expr
) -> Iterator[Edit]:
    how = f"`{source.shown(below)}` is not what `{source.shown(above)}` is divided by"
    counted = sizes(source, function)
    for name in names_of(source, function, source.statement(below).lineno):
        if name not in counted:
            for new in (f"len({name})", f"{name}.numel()", f"(len({name}) - 1)", f"{name}.sum()"):
                if new != source.of(below):
                    yield source.with_text(below, new, how, LATE)


def _of_its_sum(source: Source, above: ast.expr, below: ast.expr) -> Iterator[Edit]:
    """A number of values, where their sum belongs: that of what is divided, or of what is counted,
    which may be True and False."""
    how = f"`{source.shown(below)}` is not what `{source.shown(above)}` is divided by"
    if isinstance(above, ast.Name):
        yield source.with_text(below, f"{above.id}.sum()", how, 2)
        yield source.with_text(below, f"{above.id}.sum(-1, keepdim=True)", how, 2)
    counts = isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute)
    if counts and callee(below) in ("numel", "size"):
        yield source.with_text(below, f"{source.of(below.func.value)}.sum()", how, 1)


def _of_one_more(source: Source, above: ast.expr, below: ast.expr) -> Iterator[Edit]:
    """A count of borders or places, by which what lies between them is divided: one less; or one
    of what lies between, where that of the places belongs."""
    how = f"`{source.shown(below)}` is not what `{source.shown(above)}` is divided by"
    for sign in "-+" if isinstance(below, ast.Call | ast.Subscript | ast.Name) else "":
        yield source.with_text(below, f"({source.of(below)} {sign} 1)", how, 1)


def _of_a_size(
    source: Source, function: ast.FunctionDef, above: ast.expr, below: ast.expr
) -> Iterator[Edit]:
    """A sum of what is there, where the number of all belongs."""
    root = below.value if isinstance(below, ast.Subscript) else below
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    own = [n.value for n in made if source.of(n.targets[0]) == source.of(root)]
    if len(own) != 1 or not isinstance(own[0], ast.Call) or callee(own[0]) != "sum":
        return
    how = f"`{source.shown(below)}` is not what `{source.shown(above)}` is divided by"
    shapes = [n for n in source.inside(function) if isinstance(n, ast.Subscript)]
    shapes = [source.of(n) for n in shapes if source.of(n.value).endswith(".shape")]
    known = names_of(source, function, below.lineno)
    found = [*shapes, *(name for name in known if name in sizes(source, function))]
    for new in [*dict.fromkeys(found)][:MOST_SIZES]:
        yield source.with_text(below, new, how, 2)


def _of_all_numbers(source: Source, function: ast.FunctionDef, below: ast.expr) -> Iterator[Edit]:
    """`counts / (counts.sum() * width)`, where how many numbers there are belongs."""
    totals = [n for n in source.inside(below) if isinstance(n, ast.Call) and callee(n) == "sum"]
    for total in totals if isinstance(below, ast.BinOp) else ():
        how = f"`{source.shown(total)}` is what was counted, and not how many numbers there are"
        counted = {n.id for n in source.names(total)}
        made = {name for each in counted for name in made_from(source, function, each)}
        for name in sorted(made & set(names_of(source, function, below.lineno))):
            yield source.with_text(total, f"{name}.numel()", how, 1)


def _longer(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """A small number as the length of what is tried out."""
    length, target = number(node.value), node.targets[0]
    function = source.function(node)
    if not isinstance(length, int) or not isinstance(target, ast.Name) or function is None:
        return
    made = (
        n for n in source.inside(function) if isinstance(n, ast.Call) and callee(n) in MADE_OF_SIZES
    )
    sizes = {n.id for call in made for n in source.names(call)}
    if 1 < length <= SHORT and target.id in sizes:
        how = f"`{length}` may be too few for what is to be seen"
        yield source.with_text(node.value, str(length * LONG), how, 1)


def _of_what_was_there(source: Source, node: ast.While) -> Iterator[Edit]:
    """`while len(text) < count`, where `text` begins with what was given."""
    test, function = node.test, source.function(node)
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1 or function is None:
        return
    given = {a.arg for a in function.args.args}
    read = {n.id for n in source.names(test.left)}
    made = (n for n in source.inside(function) if isinstance(n, ast.Assign))
    pairs = [pair for n in made if n.lineno < node.lineno for pair in made_in(n)]
    begun = [(source.of(t), v) for t, v in pairs if isinstance(t, ast.Name) and t.id in read]
    for own, value in begun:
        for name in sorted({n.id for n in source.names(value)} & given - {own}):
            text = re.sub(rf"\b{own}\b", name, source.of(test.left))
            count = source.in_brackets(test.comparators[0])
            how = f"`{source.shown(test)}` counts what was there before, too"
            yield source.with_text(test.comparators[0], f"{count} + {text}", how, 1)


def _of_a_group(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`i // n`, where `n` is how many groups there are: one of them has `all // n` numbers."""
    function = source.function(node)
    if function is None or not isinstance(node.op, ast.FloorDiv) or number(node.right) is not None:
        return
    count, inside = source.of(node.right), source.inside(source.statement(node))
    same = [n for n in inside if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)]
    places = sorted(source.span(n.right) for n in same if source.of(n.right) == count)
    if source.span(node.right) != places[0] or not isinstance(node.left, ast.Name):
        return
    if A_SIZE.search(source.given_to(node)):
        return
    start, end = places[0][0], places[-1][1]
    how = f"`{count}` is how many groups there are, and not the size of one"
    read = {n.id for n in source.names(node)}
    for whole in sorted(sizes(source, function) - read)[:MOST_SIZES]:
        changed = source.text[start:end]
        for first, last in reversed(places):
            changed = f"{changed[: first - start]}({whole} // {count}){changed[last - start :]}"
        yield source.with_span(node, (start, end), changed, how, 1)


def _of_the_smallest(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`kthvalue(x, k)`, which counts from the smallest, for the k-th largest."""
    library = of_library(node.func)
    given = node.args[library:]
    of = node.args[0] if library else node.func.value
    if given:
        how = f"`{source.shown(node)}` counts from the smallest"
        new = f"{source.in_brackets(of)}.shape[-1] - {source.in_brackets(given[0])} + 1"
        yield source.with_text(given[0], new, how)
