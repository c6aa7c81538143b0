"""Slips in sums: over all places or up to each one, and places that are added to more than once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import names_of, of_one_type
from autograder.tracing.edits.kinds.source import Edit, Source, number, of_library
from autograder.tracing.edits.kinds.statements import SURE, added_to, block_of, right_before
from autograder.tracing.text import callee

BENDS = ("log", "exp", "sqrt", "square", "abs")  # of each number by itself
REDUCES = ("mean", "sum")
# What runs up to each place, and what gives one for all of them.
OF_A_GROUP = ("sum", "mean", "var", "std", "amax", "amin")
UP_TO = {
    "cumsum": "sum",
    "cumprod": "prod",
    "cummax": "max",
    "cummin": "min",
    "logcumsumexp": "logsumexp",
}


def of_sums(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of what is added up."""
    if isinstance(node, ast.Call):
        yield from _one_at_least(source, node)
        yield from _put_each_time(source, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _up_to_each_place(source, node)
        yield from _over_all_places(source, node)
        yield from _over_all_axes(source, node)
        yield from _not_turned_back(source, node)
        yield from _of_each_number_first(source, node)
        yield from _of_a_mean(source, node)
        yield from _of_one_less(source, node)
        yield from _without_its_shift(source, node)
        yield from _of_groups(source, node)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield from _each_time(source, node)
        yield from _to_itself(source, node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _by_how_many_they_are(source, node)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _of_a_replaced_sum(source, node, node.targets[0])
        yield from _of_what_it_begins_with(source, node, node.targets[0])
        yield from _to_one_again(source, node)
    if isinstance(node, ast.Assign | ast.AugAssign):
        yield from _of_a_rescaled_one_beside(source, node)


def _to_one_again(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`w = w / w.sum(-1, keepdim=True)` right behind a dropout, which has rescaled them already."""
    name, value, before = source.of(node.targets[0]), node.value, right_before(source, node)
    drops = isinstance(before, ast.Assign) and [source.of(t) for t in before.targets] == [name]
    drops = drops and any("drop" in callee(n) for n in source.calls(before.value))
    by_itself = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
    if drops and by_itself and source.of(value.left) == name and name in source.of(value.right):
        how = f"`{source.shown(value)}` makes rows sum to 1 again, behind the dropout"
        yield source.with_text(value, name, how)


def _not_turned_back(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.flip(1).cumsum(1)`: what runs from behind, and still stands the other way round."""
    if callee(node) not in UP_TO:
        return
    whole, of = source.parent[node], node.func.value
    of = node.args[0] if of_library(node.func) and node.args else of
    turned = isinstance(of, ast.Call) and callee(of) == "flip"
    back = isinstance(whole, ast.Attribute) and whole.attr == "flip"
    back = back or (isinstance(whole, ast.Call) and callee(whole) == "flip")
    if turned and not back:
        axis = of.args[1:] if of_library(of.func) else of.args
        given = ", ".join(source.of(each) for each in (*axis, *of.keywords))
        how = f"`{source.shown(node)}` is not turned back"
        yield source.with_text(node, f"{source.of(node)}.flip({given})", how, 1)


def _by_how_many_they_are(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`x.sum() / n`, where `n` is not how many there are."""
    total = node.left
    function = getattr(total, "func", None)
    if isinstance(function, ast.Attribute) and function.attr == "sum":
        (first, _), (_, last) = source.span(total), source.span(function)
        text = source.text[first : last - len("sum")] + "mean"
        text += source.text[last : source.span(total)[1]]
        how = f"`{source.shown(node.right)}` is not how many numbers are added up there"
        yield source.with_expression(node, text, how, 1)


def _of_groups(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.stack([g.std() for g in groups]).mean()`, where all that the groups hold counts."""
    stacked = node.func.value
    rows = stacked.args[0] if isinstance(stacked, ast.Call) and stacked.args else None
    if callee(node) != "mean" or not isinstance(rows, ast.ListComp) or len(rows.generators) > 1:
        return
    each, of = rows.elt, rows.generators[0]
    alone = isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
    if callee(stacked) in ("stack", "tensor") and alone and not of.ifs:
        values = f"[({source.of(each.func.value)}).flatten() for {source.of(of.target)} in "
        given = source.text[source.span(each.func)[1] : source.span(each)[1]]
        new = f"torch.cat({values}{source.of(of.iter)}]).{each.func.attr}{given}"
        how = f"`{source.shown(node)}` is an average over groups, and not of all that they hold"
        yield source.with_expression(node, new, how, 1)


def _without_its_shift(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`(x - m).exp().sum(-1).log()`, to which the shift is not added again."""
    if callee(node) != "log":
        return
    powers = [n for n in source.inside(node) if isinstance(n, ast.Call) and callee(n) == "exp"]
    totals = [n for n in source.inside(node) if isinstance(n, ast.Call) and callee(n) == "sum"]
    for power in powers if totals else ():
        given = power.args or [getattr(power.func, "value", None)]
        for each in (n for n in given if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub)):
            how = f"`{source.shown(each.right)}`, which is taken away, is not added again"
            new = f"{source.of(node)} + {source.in_brackets(each.right)}"
            yield source.with_expression(node, new, how)


def _up_to_each_place(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A sum over all of an axis, where each place should have that of those before it."""
    axes = [k.value for k in node.keywords if k.arg in ("dim", "axis")]
    of_all = getattr(node.func.value, "id", "") == "torch"
    axes += node.args[1:] if of_all else node.args
    if callee(node) == "sum" and len(axes) == 1:
        text = source.of(node.args[0] if of_all else node.func.value)
        how = f"`{source.shown(node)}` adds up all places, what comes later too"
        yield source.with_expression(node, f"({text}).cumsum({source.of(axes[0])})", how, 1)


def _over_all_places(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What goes up to each place of an axis, where one for all of them belongs."""
    name = callee(node)
    if name in UP_TO and (node.args or node.keywords):
        start, end = source.span(node.func)[1] - len(name), source.span(node)[1] - 1
        given = source.text[start + len(name) : end]
        how = f"`{source.shown(node)}` goes up to each place, where one for all of them belongs"
        for keeps in (", keepdim=True", ""):
            new = f"{UP_TO[name]}{given}{keeps})"
            yield source.with_span(node, (start, end + 1), new, how)


def _over_all_axes(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.mean(dim=-1, keepdim=True)`, where all numbers of `x` are one group."""
    own = getattr(node.func.value, "id", "") != "torch"
    if own and callee(node) in OF_A_GROUP and (node.args or node.keywords):
        how = f"`{source.shown(node)}` is of each part alone, where one of all numbers belongs"
        rest = [k for k in node.keywords if k.arg in ("unbiased", "correction")]
        kept = ", ".join(source.of(k) for k in rest)
        yield source.with_expression(node, f"{source.of(node.func)}({kept})", how, 1)


def _one_at_least(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`max(count, 1)` and `counts.clamp(min=1)`, where each count grows by one."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "min")]
    if callee(node) == "max" and isinstance(node.func, ast.Name):
        own = [n for n in given if number(n) != 1] if len(given) == 2 else []
    elif callee(node) in ("clamp", "clamp_min", "clip") and isinstance(node.func, ast.Attribute):
        own = [node.func.value] if len(given) == 1 and number(given[0]) == 1 else []
    else:
        return
    if len(own) == 1:
        how = f"`{source.shown(node)}` leaves what is more than 0 as it is"
        yield source.with_expression(node, f"{source.in_brackets(own[0])} + 1", how, SURE)
        how = f"`{source.shown(node)}` makes 1 of what is less than that, too"
        yield source.with_text(next(n for n in given if number(n) == 1), "1e-12", how)


def _of_each_number_first(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`log(x.mean())`, where the logarithms are to be averaged, or the other way round."""
    of_all = getattr(node.func.value, "id", "") in ("torch", "math")
    inner = (node.args[0] if node.args else None) if of_all else node.func.value
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return
    one, other = callee(node), callee(inner)
    if {one in BENDS, other in BENDS} != {True, False} or {one, other} - {*BENDS, *REDUCES}:
        return
    within = getattr(inner.func.value, "id", "") == "torch"
    of = source.of(inner.args[0] if within and inner.args else inner.func.value)
    axes = source.of(inner.args[0]) if inner.args and not within else ""
    how = f"`{other}` comes before `{one}` in `{source.shown(node)}`"
    if one in BENDS:
        yield source.with_expression(node, f"({of}).{one}().{other}({axes})", how, 1)
    elif not (node.args and not of_all) and not node.keywords:
        yield source.with_expression(node, f"({of}).{one}().{other}()", how, 1)


def _of_a_mean(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`math.log(average)` behind `average = sum(parts) / len(parts)`."""
    of, function = (node.args[0] if len(node.args) == 1 else None), source.function(node)
    if callee(node) not in BENDS or not isinstance(of, ast.Name) or function is None:
        return
    made = source.made(function, of.id)
    mean = made[0] if len(made) == 1 and isinstance(made[0], ast.BinOp) else None
    total = mean.left if mean is not None and isinstance(mean.op, ast.Div) else None
    if isinstance(total, ast.Call) and source.of(total.func) == "sum" and len(total.args) == 1:
        parts, count = source.of(total.args[0]), source.in_brackets(mean.right)
        how = f"`{source.shown(node)}` is taken of the mean, which comes after it"
        new = f"sum({source.of(node.func)}(each) for each in {parts}) / {count}"
        yield source.with_expression(node, new, how, 1)


def _of_one_less(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`squares.mean(1)` of deviations: of a sample they are divided by one less than they are."""
    of_all = getattr(node.func.value, "id", "") == "torch"
    axes = node.args[1:] if of_all else node.args
    axes = [*axes, *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
    if callee(node) != "mean" or len(axes) > 1 or (of_all and not node.args):
        return
    value = node.args[0] if of_all else node.func.value
    if not _is_squared(source, value):
        return
    own = source.in_brackets(value)
    count = f"{own}.size({source.of(axes[0])})" if axes else f"{own}.numel()"
    how = f"`{source.shown(node)}` divides by the number of values, and not by one less"
    new = f"{source.of(node)} * {count} / ({count} - 1)"
    yield source.with_expression(node, new, how, 1)


def _is_squared(source: Source, node: ast.expr) -> bool:
    """Whether an expression, or the variable that it is, is made by squaring."""
    function = source.function(node)
    if isinstance(node, ast.Name) and function is not None:
        made = source.made(function, node.id)
        return len(made) == 1 and not isinstance(made[0], ast.Name) and _is_squared(source, made[0])
    if isinstance(node, ast.BinOp):
        same = source.of(node.left) == source.of(node.right)
        power = isinstance(node.op, ast.Pow) and number(node.right) == 2
        return power or (isinstance(node.op, ast.Mult) and same)
    if not isinstance(node, ast.Call):
        return False
    return callee(node) == "square" or (
        callee(node) == "pow" and bool(node.args) and number(node.args[-1]) == 2
    )


def _of_a_replaced_sum(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`total = part` where lines before add to `total`, or others like it do to their own."""
    function = source.function(node)
    name, read = source.of(target), {source.of(n) for n in source.names(node.value)}
    if function is None or name in read:
        return
    sums = [n for n in source.inside(function) if isinstance(n, ast.AugAssign)]
    sums = [n for n in sums if isinstance(n.op, ast.Add)]
    before = any(source.of(n.target) == name and n.lineno < node.lineno for n in sums)
    alike = isinstance(target, ast.Subscript) and any(
        isinstance(n.target, ast.Subscript) and source.parent[n] is source.parent[node]
        for n in sums
    )
    if before or alike:
        how = f"`{source.shown(node)}` replaces what `{name}` holds already, and adds nothing to it"
        yield source.with_text(node, f"{name} += {source.of(node.value)}", how)


def _of_what_it_begins_with(source: Source, node: ast.Assign, target: ast.expr) -> Iterator[Edit]:
    """`total = x[i]` in front of a loop that adds to `total`: it begins with nothing."""
    block = block_of(source, node)
    behind = block[block.index(node) + 1 :][:1]
    if not isinstance(node.value, ast.Subscript | ast.Name) or not behind:
        return
    if not isinstance(behind[0], ast.For | ast.While) or not isinstance(target, ast.Name):
        return
    inside = [n for n in source.inside(behind[0]) if isinstance(n, ast.Assign | ast.AugAssign)]
    if any(added_to(source, n, target.id) is not None for n in inside):
        how = f"`{source.shown(node.value)}` is not what a sum begins with"
        new = f"torch.zeros_like({source.of(node.value)})"
        yield source.with_text(node.value, new, how, 1)


def _of_a_rescaled_one_beside(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """`out = out + b` beside `total = total * factor + a`: the factor belongs to both."""
    own = _grown(source, node)
    if own is None or isinstance(own[0], ast.BinOp):
        return
    for other in block_of(source, node):
        grown = _grown(source, other) if isinstance(other, ast.Assign) else None
        old = grown[0] if grown is not None else None
        if other is node or not isinstance(old, ast.BinOp) or not isinstance(old.op, ast.Mult):
            continue
        names = [source.of(each) for each in (old.left, old.right)]
        factors = [name for name in names if name != source.of(other.targets[0])]
        name = source.of(own[0])
        how = (
            f"`{name}` is not rescaled as `{source.of(other.targets[0])}` is in line {other.lineno}"
        )
        for factor in factors[:1]:
            for much in (factor, f"({factor})[..., None]", f"({factor})[..., 0]"):
                new = f"{name} = {name} * {much} + {source.in_brackets(own[1])}"
                yield source.with_text(node, new, how)


def _grown(source: Source, node: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """Of a sum that grows what it was before, perhaps times something, and what is added."""
    if isinstance(node, ast.AugAssign):
        named = isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add)
        return (node.target, node.value) if named else None
    target, value = getattr(node, "targets", [None])[0], getattr(node, "value", None)
    if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp):
        return None
    first = value.left
    parts = [first.left, first.right] if isinstance(first, ast.BinOp) else [first]
    own = isinstance(value.op, ast.Add) and target.id in map(source.of, parts)
    return (first, value.right) if own else None


def _put_each_time(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`counts.index_put_(places, ones)` and `counts.scatter_(0, places, ones)`, by default."""
    name = callee(node)
    how = f"a place that comes more than once is set once by `{source.shown(node)}`"
    if name in ("index_put", "index_put_") and not node.keywords and node.args:
        end = source.span(node.args[-1])[1]
        yield source.with_span(node, (end, end), ", accumulate=True", how, 1)
    elif name in ("scatter", "scatter_") and isinstance(node.func, ast.Attribute):
        (start, _), (_, end) = source.span(node), source.span(node.func)
        adds = "scatter_add_" if name.endswith("_") else "scatter_add"
        new = source.text[start : end - len(name)] + adds
        yield source.with_span(node, (start, end), new, how, 1)


def _to_itself(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    """`count += count`, which adds a variable to itself, for another one."""
    function, own = source.function(node), source.of(node.target)
    if function is None or source.of(node.value) != own:
        return
    how = f"`{own}` is added to itself, in `{source.shown(node)}`"
    for other in names_of(source, function, node.lineno):
        if other != own and of_one_type(source, node.value, other):
            yield source.with_text(node.value, other, how)


def _each_time(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    """`counts[a, b] += 1` with tensors of places: one that comes twice is added to once."""
    if isinstance(node.target, ast.Subscript) and isinstance(
        node.target.slice, ast.Tuple | ast.Name
    ):
        whole, places = source.of(node.target.value), source.of(node.target.slice)
        places = places if isinstance(node.target.slice, ast.Tuple) else f"{places},"
        value = f"torch.as_tensor({source.of(node.value)}).to({whole}.dtype)"
        how = f"a place that comes more than once is added to once by `{source.shown(node)}`"
        new = f"{whole}.index_put_(({places}), {value}, accumulate=True)"
        yield source.with_text(node, new, how, 1)
