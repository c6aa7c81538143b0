"""Slips by a statement that stands a few lines too early or too late, or in the loop around its
own."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import Edit, Source, number
from autograder.tracing.edits.kinds.statements import PLAIN, added_to, block_of, moved, rows_of
from autograder.tracing.text import callee

JUMPS = (ast.Break, ast.Continue)
FAR = 4  # statements that lie between at most


def of_moves(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of where a statement stands."""
    if isinstance(node, ast.If):
        yield from _jumps_too_early(source, node)
    if isinstance(node, ast.AugAssign | ast.Assign):
        yield from _counts_too_early(source, node)
    if not isinstance(node, PLAIN):
        return
    yield from _unpacked_in_another_order(source, node)
    yield from _added_before_the_product(source, node)
    yield from _of_what_comes_out(source, node)
    yield from _behind_what_it_reads(source, node)
    yield from _behind_what_changes_it(source, node)
    yield from _into_a_loop_behind(source, node)
    yield from _last_of_its_block(source, node)
    yield from _before_its_block(source, node)


def _unpacked_in_another_order(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`mean, var = torch.var_mean(x)`: two names in a row that belong in each other's place."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    parts = target.elts if isinstance(target, ast.Tuple) else []
    value = getattr(node, "value", None)
    if isinstance(value, ast.Tuple | ast.List):
        return  # each has its own value beside it
    if isinstance(value, ast.Call) and callee(value) in source.defined():
        return  # in its own function's order: what is read later may be wrong as well
    texts = [source.of(each) for each in parts]
    function = source.function(node)
    made = source.made(function, source.of(value)) if isinstance(value, ast.Name) else []
    own = any(isinstance(each, ast.List | ast.ListComp) for each in made)  # in an order of its own
    for place, (one, other) in enumerate(itertools.pairwise(texts)):
        how = f"`{one}` and `{other}` stand in another order than what they are given comes in"
        new = [*texts[:place], other, one, *texts[place + 2 :]]
        span = source.span(parts[0])[0], source.span(parts[-1])[1]
        first = one.startswith("b") and not (place or other.startswith("b"))  # as all have it
        if "_" not in (one, other):
            yield source.with_span(node, span, ", ".join(new), how, 3 if own else 1 + first)


def _added_before_the_product(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`y = y + bias`, and then `y @ weight`, where the bias is added behind the product."""
    block = block_of(source, node)
    behind = block[block.index(node) + 1 :][:1]
    product = getattr(behind[0], "value", None) if behind else None
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.MatMult):
        return
    name = source.of(product.left)
    added = added_to(source, node, name)
    if added is not None and isinstance(behind[0], ast.Assign | ast.Return):
        how = f"`{source.shown(node)}` runs before the product of line {behind[0].lineno}"
        between = source.text[source.span(node)[1] : source.span(product)[0]]
        new = f"pass{between}({source.of(product)}) + {source.in_brackets(added)}"
        span = source.span(node)[0], source.span(product)[1]
        yield source.with_span(node, span, new, how, 1)


def _of_what_comes_out(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`x = x * mask`, of what a function is given, where what it returns is meant."""
    function, value = source.function(node), getattr(node, "value", None)
    last = function.body[-1] if function is not None else None
    name = source.of(node.targets[0]) if isinstance(node, ast.Assign) else ""
    given = [a.arg for a in function.args.args] if function is not None else []
    result = getattr(last, "value", None) if isinstance(last, ast.Return) else None
    around = source.parent[node]
    alone = isinstance(around, ast.If) and around.body == [node] and not around.orelse
    outer = around if alone else node
    if name not in given or result is None or outer not in function.body:
        return
    first = getattr(value, "left", None)
    if isinstance(value, ast.Call):
        of_itself = isinstance(value.func, ast.Attribute) and source.of(value.func.value) == name
        first = value.func.value if of_itself else next(iter(value.args), None)
    if first is not None and source.of(first) == name:
        how = f"`{source.shown(node)}` is for what comes in, and belongs behind what is returned"
        (start, end), (head, tail) = source.span(node), source.span(result)
        (begin, stop), (since, until) = source.span(first), source.span(value)
        result = f"({source.of(result)})"
        new = f"{source.text[since:begin]}{result}{source.text[stop:until]}"
        new = f"({new}) if {source.of(around.test)} else {result}" if alone else new
        yield source.with_span(node, (start, tail), f"pass{source.text[end:head]}{new}", how, 2)


def _jumps_too_early(source: Source, node: ast.If) -> Iterator[Edit]:
    """`if ...: break` in front of what the last round still has to do."""
    block = block_of(source, node)
    behind = block[block.index(node) + 1 :]
    if node.orelse or not isinstance(node.body[-1], JUMPS) or not 0 < len(behind) <= FAR:
        return
    for other in (behind[0], behind[-1]):
        how = f"it leaves the loop before line {other.lineno}, and belongs behind it"
        yield source.with_span(node, *_behind(source, node, other), how, 1)


def _counts_too_early(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`n += 1` in front of what reads `n`, or of an `if` that goes on with the next round."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    name, block = source.of(target), block_of(source, node)
    added = added_to(source, node, name)
    behind = block[block.index(node) + 1 :][:1]
    if added is None or number(added) != 1 or not behind:
        return
    jumps = isinstance(behind[0], ast.If) and isinstance(behind[0].body[-1], JUMPS)
    reads = name in {n.id for n in source.names(behind[0])}
    if jumps or (reads and isinstance(behind[0], PLAIN)):
        how = f"it counts before line {behind[0].lineno}, and belongs behind it"
        yield source.with_span(node, *_behind(source, node, behind[0]), how, -1)


def _behind(source: Source, node: ast.stmt, other: ast.stmt) -> tuple[tuple[int, int], str]:
    """A part of the text from one statement to another, and the same with the first behind it."""
    (start, middle), (_, end) = rows_of(source, node), rows_of(source, other)
    rest = source.text[middle:end]
    new = rest.rstrip("\n") + "\n" + source.text[start:middle].rstrip("\n")
    return (start, end), new + "\n" * rest.endswith("\n")


def _behind_what_it_reads(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """A statement that reads a variable before another one, some lines later, changes it: that one
    in front of it."""
    read = {n.id for n in source.names(node) if isinstance(n.ctx, ast.Load)}
    block = block_of(source, node)
    place = block.index(node)
    for other in block[place + 2 : place + 2 + FAR]:
        if not isinstance(other, PLAIN):
            return
        stored = {n.id for n in source.names(other) if isinstance(n.ctx, ast.Store)}
        if stored & read:
            (start, _), (first, end) = rows_of(source, node), rows_of(source, other)
            new = source.text[first:end] + source.text[start:first]
            name = min(stored & read)
            how = f"it reads `{name}` before line {other.lineno} changes it"
            grows = added_to(source, other, name) is not None
            yield source.with_span(node, (start, end), new, how, 1 if grows else 3)
            return


def _behind_what_changes_it(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """What is done to some variables before they are changed in the next lines, and belongs behind
    that: turned, and then split into heads."""
    if not isinstance(node, ast.Assign):
        return
    own = {n.id for n in source.names(node) if isinstance(n.ctx, ast.Store)}
    if not own <= {n.id for n in source.names(node) if isinstance(n.ctx, ast.Load)}:
        return
    block = block_of(source, node)
    place, last = block.index(node), None
    for other in block[place + 1 : place + 1 + FAR]:
        if not isinstance(other, PLAIN):
            break
        if own & {n.id for n in source.names(other) if isinstance(n.ctx, ast.Store)}:
            last = other
    if last is None or last is block[place + 1]:  # two in a row are exchanged anyway
        return
    (start, middle), (_, end) = rows_of(source, node), rows_of(source, last)
    new = source.text[middle:end].rstrip("\n") + "\n" + source.text[start:middle]
    how = f"it runs before line {last.lineno}, and belongs behind it"
    yield source.with_span(node, (start, end), new, how, 2)


def _into_a_loop_behind(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """A count that goes up once in a round, where it should in each round of a loop within."""
    block = block_of(source, node)
    loops = [n for n in block[block.index(node) + 1 :] if isinstance(n, ast.For)]
    if (
        not isinstance(node, ast.AugAssign)
        or not loops
        or loops[0].body[0].lineno == loops[0].lineno
    ):
        return
    inside = loops[0].body[0]
    start, end = rows_of(source, node)
    head = source.starts[inside.lineno - 1]
    text = moved(source.text[start:end], inside.col_offset - node.col_offset)
    how = f"it runs outside of the loop of line {loops[0].lineno}, and belongs inside it"
    yield source.with_span(node, (start, head), source.text[end:head] + text, how, 2)


def _before_its_block(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """What a `with` does first, and belongs before it: there nothing is changed yet."""
    around = source.parent[node]
    if not isinstance(around, ast.With) or around.body[0] is not node or len(around.body) < 2:
        return
    if node.lineno == around.lineno:
        return
    (start, end), head = rows_of(source, node), source.starts[around.lineno - 1]
    own = moved(source.text[start:end], around.col_offset - node.col_offset)
    how = f"it runs inside the `with` of line {around.lineno}, and belongs before it"
    yield source.with_span(node, (head, end), own + source.text[head:start], how, 1)


def _last_of_its_block(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """What is kept of each round, kept at its beginning instead of its end."""
    block = block_of(source, node)
    in_a_loop = isinstance(source.parent[node], ast.For)
    if not isinstance(node, ast.Expr) or not in_a_loop or len(block) - block.index(node) < 3:
        return
    how = f"it runs before line {block[-1].lineno}, and belongs behind it"
    yield source.with_span(node, *_behind(source, node, block[-1]), how, 3)
