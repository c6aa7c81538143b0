"""Slips in which part of an axis is taken: the ends of a slice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import names_of, sizes
from autograder.tracing.edits.kinds.source import Edit, Source, parts_of_index
from autograder.tracing.edits.kinds.statements import block_of
from autograder.tracing.text import callee

RUNNING = ("cumsum", "cumprod", "logcumsumexp")
NEAR = 4  # statements that slices are looked for in, with its own
FIRST = {":1": "-1:", "0": "-1"}
IN_TURN = "takes places that lie apart, where neighbours belong together"


def of_slices(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one slice."""
    if isinstance(node, ast.Slice):
        yield from _of_slice(source, node)
        yield from _of_all_its_names(source, node)
        if node.lower is not None and node.upper is not None and node.step is None:
            how = f"`{source.shown(node)}` ends there, and takes no steps of that size"
            new = f"{source.of(node.lower)}::{source.of(node.upper)}"
            yield source.with_text(node, new, how, 2)
    elif isinstance(node, ast.Call) and callee(node) == "slice":
        yield from _of_slice_object(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "pad":
        yield from _of_a_shift(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_parts_of_one(source, node)
    elif isinstance(node, ast.Assign):
        yield from _of_the_begin(source, node)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield from _of_columns_for_rows(source, node)
        yield from _of_a_running_sum(source, node)


def _of_parts_of_one(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`loss(x[:-1], x[1:])` of what takes `x` apart itself: all of it, in each place."""
    parts = [a for a in node.args if isinstance(a, ast.Subscript)]
    whole = {source.of(a.value) for a in parts}
    sliced = all(isinstance(n, ast.Slice) for a in parts for n in parts_of_index(a))
    if len(parts) > 1 and len(whole) == 1 and sliced and callee(node) in source.defined():
        how = f"`{source.shown(node)}` is given parts of `{min(whole)}`, and takes it apart itself"
        yield source.with_parts(node, dict.fromkeys(parts, min(whole)), how, 2)


def _of_the_begin(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`stop = head + width`, beside `x[start:stop]`: where something ends that does not begin
    there."""
    function, value, target = source.function(node), node.value, source.of(node.targets[0])
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add) or function is None:
        return
    slices = [n for n in source.inside(function) if isinstance(n, ast.Slice)]
    slices = [n for n in slices if n.upper is not None and source.of(n.upper) == target]
    begins = {source.of(n.lower) for n in slices if isinstance(n.lower, ast.Name)}
    known = names_of(source, function, node.lineno - 1)
    for start in [n for n in known if n in begins - {n.id for n in source.names(value)}]:
        how = f"`{source.shown(value)}` is reckoned from another place than `{start}`"
        for side in (n for n in (value.left, value.right) if isinstance(n, ast.Name)):
            yield source.with_parts(value, {side: start}, how)


def _of_columns_for_rows(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`weight[:, own].T` for `weight[own]`: the columns of a head, where its rows were meant."""
    parts, parent, own = parts_of_index(node), source.parent[node], source.of(node.value)
    turned = isinstance(parent, ast.Attribute) and parent.attr in ("T", "mT")
    how = f"`{source.shown(parent if turned else node)}` takes columns where rows belong"
    whole = [isinstance(n, ast.Slice) and n.lower is n.upper is n.step is None for n in parts]
    if len(parts) == 2 and whole[0] and not whole[1]:
        yield source.with_text(parent if turned else node, f"{own}[{source.of(parts[1])}]", how, 1)
    elif whole in ([False], [False, True]) and _is_a_part(parts[0]):
        how = f"`{source.shown(node)}` takes rows where columns belong"
        yield source.with_text(node, f"{own}[:, {source.of(parts[0])}].T", how, 2)


def _of_a_running_sum(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`counted[:, :1]` of what `cumsum` gives: all of it stands in the last place."""
    function, parts = source.function(node), parts_of_index(node)
    made = source.made(function, source.of(node.value)) if function is not None else []
    runs = any(isinstance(n, ast.Call) and callee(n) in RUNNING for n in made)
    text = source.of(parts[-1]).replace(" ", "") if runs and parts else ""
    if text in FIRST:
        how = f"`{source.shown(node)}` takes the first of a running sum"
        yield source.with_text(parts[-1], FIRST[text], how)


def _is_a_part(index: ast.expr) -> bool:
    """Whether an index is of several places, as far as the text tells."""
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Name) and len(index.id) > 1)


def _of_a_shift(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What is moved by one place and filled up at the other end, to the wrong side:
    `F.pad(x[:, 1:], (0, 1))` for `F.pad(x[:, :-1], (1, 0))`."""
    of, by = node.args[:2] if len(node.args) > 1 else (None, None)
    if not isinstance(of, ast.Subscript) or not isinstance(by, ast.Tuple) or len(by.elts) < 2:
        return
    ends = at_its_other_end(source, of)
    if not ends:
        return
    ((cut, turned),) = ends.items()
    numbers = [source.of(each) for each in by.elts]
    pairs = [numbers[i + 1 - 2 * (i % 2)] for i in range(len(numbers) // 2 * 2)]
    (start, end), (first, last) = source.span(cut), source.span(by)
    between = source.text[end:first]
    how = f"`{source.shown(node)}` moves to the other side"
    yield source.with_span(node, (start, last), f"{turned}{between}({', '.join(pairs)})", how, 1)


def at_its_other_end(source: Source, of: ast.expr) -> dict[ast.AST, str]:
    """The one slice of an index that leaves out one end of an axis, with that of the other end:
    `:-1` for `1:`; nothing where there is no such slice, or several."""
    parts = parts_of_index(of) if isinstance(of, ast.Subscript) else []
    ends = [n for n in parts if isinstance(n, ast.Slice) and n.step is None]
    ends = [n for n in ends if (n.lower is None) != (n.upper is None)]
    if len(ends) != 1:
        return {}
    lower, upper = (source.of(n) if n is not None else "" for n in (ends[0].lower, ends[0].upper))
    return {ends[0]: f":-({lower})" if lower else f"-({upper}):"}


def _of_all_its_names(source: Source, node: ast.Slice) -> Iterator[Edit]:
    """A part of an axis that takes one number for another wherever it stands: `h * n:h * n + n`."""
    function = source.function(node)
    names = [n for n in source.names(node) if isinstance(n.ctx, ast.Load)]
    counted = sizes(source, function) if function is not None else set()
    for name in dict.fromkeys(n.id for n in names):
        own = [n for n in names if n.id == name]
        if len(own) < 2 or name not in counted:
            continue
        how = f"`{name}` is taken where another belongs, in `{source.shown(source.parent[node])}`"
        for other in names_of(source, function, source.statement(node).lineno):
            if other in counted and other not in {n.id for n in names}:
                yield source.with_parts(node, dict.fromkeys(own, other), how)


def _of_the_last_ones(source: Source, node: ast.Slice, around: ast.AST) -> Iterator[Edit]:
    """`order[:, -k:]`, which has the largest of what is sorted upwards in that order."""
    parts = around.slice.elts if isinstance(around.slice, ast.Tuple) else [around.slice]
    if isinstance(around.ctx, ast.Load) and parts[-1] is node:
        how = f"`{source.shown(around)}` stands the wrong way round"
        turns = [".flip(-1)", *(["[..., ::-1]"] if "numpy" in source.called else [])]
        for turn in turns:
            yield source.with_text(around, source.of(around) + turn, how, 1)


def _of_slice(source: Source, node: ast.Slice) -> Iterator[Edit]:
    parts = [source.of(p) if p is not None else "" for p in (node.lower, node.upper, node.step)]
    around = source.parent[node]
    around = source.parent[around] if isinstance(around, ast.Tuple) else around
    start, end, step = parts
    if start.startswith("-") and not (end or step):
        yield from _of_the_last_ones(source, node, around)
    how = f"`{source.shown(around)}` takes another part than it should"
    ways = []
    if start and end:
        ways += [(end, start, step), ("", end, step), (start, "", step)]
    elif start:
        ways += [("", start, step), ("", "", step), (f"({start}) + 1", "", step)]
        ways += [(f"({start}) - 1", "", step)]
    elif end:
        ways += [(end, "", step), ("", "", step), ("", f"({end}) + 1", step)]
        ways += [("", f"({end}) - 1", step)]
    for width in _steps_from(source, node) if start and start == end else ():
        nothing = f"`{source.shown(around)}` ends where it begins"
        yield source.with_text(node, f"{start}:{start} + {width}", nothing)
    if start and end:
        length = f"(({end}) - ({start}))"
        ways += [(end, f"({end}) + {length}", step), (f"({start}) - {length}", start, step)]
        ways += [(f"({start}) {s} 1", f"({end}) {s} 1", step) for s in "+-"]
        ways += [(f"({start}) {s} 1", end, step) for s in "+-"]
        ways += [(start, f"({end}) {s} 1", step) for s in "+-"]
    if end and not start:
        ways += [("1", "", step), ("1", f"({end}) + 1", step)]
    if start and not start.isdigit():  # before the first place Python counts from the end
        ways += [(f"max(0, {start})", end, step)]
    width = _width(source, node)
    if width == "1" and not start.isdigit():  # from the last place on, -1, to 0 there is nothing
        yield source.with_text(node, f"[{start}]", how, 1)
        yield source.with_text(node, f"{start}:({end}) or None", how, 1)
    if width:  # the blocks of a loop lie one behind the other
        ways += [(f"{start} * ({width})", f"({start} + 1) * ({width})", step)]
    elif start and end:  # of a part of an axis, too: `first + i:first + i + width`
        first, number, wide = _width_of_a_part(source, node)
        if wide:
            ways += [
                (f"{first} + {number} * ({wide})", f"{first} + ({number} + 1) * ({wide})", step)
            ]
    if start and end:  # the next one of each
        others = [source.of(n.lower) for n in _slices_of_the_same(source, node, around)]
        ways += [(f"({other}) + 1", f"({other}) + 1 + {length}", step) for other in others]
    for other in _slices_beside(source, node):
        parts = (p if p is None else source.of(p) for p in (other.lower, other.upper, other.step))
        ways += [tuple(part or "" for part in parts)]
    if end and not start:  # from the end, and from behind what was cut off
        ways += [(end[1:], "", step)] if end.startswith("-") else [(f"-({end})", "", step)]
    if start and not end:
        first = start[1:] if start.startswith("-") else f"-({start})"  # those at the other end
        ways += [("", first, step)]
    if step:
        ways += [(start, end, "")]
    elif not (start or end) and isinstance(source.parent[node], ast.Tuple):
        ways += [("1", "", ""), ("", "-1", "")]
    for lower, upper, by in ways:
        new = f"{lower}:{upper}" + (f":{by}" if by else "")
        yield source.with_text(node, new, how, 1)
    yield from _of_blocks(source, node, around, start, end, step)
    inner = around.value
    if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice):
        how = f"the parts of `{source.shown(around)}` are taken in another order than they should"
        own, other = source.of(around.slice), source.of(inner.slice)
        new = f"{source.of(inner.value)}[{own}][{other}]"
        yield source.with_expression(around, new, how, 1)
    if end and not step and around.slice is node:  # as many, but every other one
        new = f"{source.of(around.value)}[{start}::2][:{end}]"
        yield source.with_expression(around, new, how, 2)


def _of_blocks(
    source: Source, node: ast.Slice, around: ast.Subscript, start: str, end: str, step: str
) -> Iterator[Edit]:
    """Every third one from a place on, `[i::3]`, where the i-th of three blocks belongs."""
    if start and step and not end and (around.slice is node or around.slice.elts[-1] is node):
        axis = 0 if around.slice is node or around.slice.elts[0] is node else -1
        how = f"`{source.shown(around)}` {IN_TURN}"
        new = ":".join(_block(start, f"({source.of(around.value)}).shape[{axis}]", step))
        yield source.with_text(node, new, how, 1)


def _block(place: str, size: str, count: str) -> tuple[str, str]:
    """Where one of some blocks of an axis begins and ends."""
    width = f"({size} // ({count}))"
    return f"({place}) * {width}", f"(({place}) + 1) * {width}"


def _of_slice_object(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`slice(h, h + d)`, where the blocks of a loop lie one behind the other; `slice(i, None, 3)`
    that is used for what lies in three blocks."""
    for each in node.args[:2]:
        if isinstance(each, ast.Name | ast.BinOp):
            how = f"`{source.shown(node)}` takes another part than it should"
            for sign in "+-":
                yield source.with_text(each, f"{source.of(each)} {sign} 1", how, 1)
    start, end = [*node.args, None, None][:2]
    around, step = source.parent[node], node.args[-1] if len(node.args) == 3 else None
    if step is not None and isinstance(around, ast.Assign) and source.of(end) == "None":
        name = source.of(around.targets[0])
        parts = [n for n in source.inside(source.tree) if isinstance(n, ast.Subscript)]
        used = [source.of(n.value) for n in parts if source.of(n.slice) == name]
        for whole in used[:1]:
            new = ", ".join(_block(source.of(start), f"({whole}).shape[0]", source.of(step)))
            span = source.span(start)[0], source.span(step)[1]
            yield source.with_span(node, span, new, f"`{source.shown(node)}` {IN_TURN}", 1)
    if isinstance(start, ast.Name) and end is not None:
        width = _width(source, ast.Slice(start, end))
        if width:
            how = f"`{source.shown(node)}` takes another part than it should"
            new = f"{start.id} * ({width}), ({start.id} + 1) * ({width})"
            span = source.span(start)[0], source.span(end)[1]
            yield source.with_span(node, span, new, how, 1)


def _width(source: Source, node: ast.Slice) -> str:
    """The `d` of a slice `h:h + d`; '' of any other."""
    end = node.upper
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Add):
        return ""
    is_name = isinstance(node.lower, ast.Name) and source.of(end.left) == node.lower.id
    return source.of(end.right) if is_name else ""


def _steps_from(source: Source, node: ast.Slice) -> list[str]:
    """How far a loop around goes on in each round, `n` of `for i in range(0, size, n)`; what other
    slices that begin at the same place are as wide as."""
    start, loops = source.of(node.lower), [n for n in source.around(node) if isinstance(n, ast.For)]
    over = [n.iter for n in loops if source.of(n.target) == start and isinstance(n.iter, ast.Call)]
    steps = [n.args[2] for n in over if callee(n) == "range" and len(n.args) == 3]
    function = source.function(node)
    others = source.inside(function) if function is not None else []
    others = [n for n in others if isinstance(n, ast.Slice) and n.lower is not None]
    others = [n for n in others if source.of(n.lower) == start]
    widths = [_width(source, n) for n in others]
    return list(dict.fromkeys([*map(source.in_brackets, steps), *filter(None, widths)]))


def _width_of_a_part(source: Source, node: ast.Slice) -> tuple[str, str, str]:
    """The `a`, `i` and `d` of a slice `a + i:a + i + d`; nothing of any other."""
    lower, upper = node.lower, node.upper
    sums = all(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add) for n in (lower, upper))
    if not sums or source.of(upper.left) != source.of(lower):
        return "", "", ""
    return source.of(lower.left), source.in_brackets(lower.right), source.of(upper.right)


def _slices_of_the_same(source: Source, node: ast.Slice, around: ast.Subscript) -> list[ast.Slice]:
    """Other slices of the same variable in the function, with both of their ends."""
    function = source.function(node)
    parts = source.inside(function) if function is not None else []
    parts = [n for n in parts if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice)]
    same = [
        n.slice for n in parts if n is not around and source.of(n.value) == source.of(around.value)
    ]
    return [n for n in same if n.lower is not None and n.upper is not None][:2]


def _slices_beside(source: Source, node: ast.Slice) -> list[ast.Slice]:
    """The slices of the same statement that begin somewhere, where this one does not; or of the
    nearest ones beside it, `weight[:, start:stop]` and `bias[:width]`."""
    if node.lower is not None or node.upper is None:
        return []
    statement = source.statement(node)
    block = block_of(source, statement) if source.function(node) is not None else [statement]
    near = sorted(block, key=lambda each: abs(each.lineno - statement.lineno))[:NEAR]
    parts = (n for each in near for n in source.inside(each) if isinstance(n, ast.Slice))
    return [n for n in parts if n.lower is not None][:2]
