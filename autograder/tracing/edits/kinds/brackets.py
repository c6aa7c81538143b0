"""Slips in what a call is of: its bracket closes elsewhere, or two calls change places."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.operators import SIGNS
from autograder.tracing.edits.kinds.source import Edit, Source, number, of_library
from autograder.tracing.text import callee

# Functions of sizes, and what takes numbers apart: nothing is computed in them.
BOUNDS = ("min", "max", "minimum", "maximum")
OTHERS = ("size", "len", "range", "int", "float", "append", "print", "zip", "list", "tuple", "dim")


def of_brackets(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of a call's bracket."""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        if isinstance(node.op, ast.Pow):
            yield from _of_an_exponent(source, node)
        yield from _of_wider(source, node)
        yield from _of_a_part(source, node)
        yield from _of_an_early_norm(source, node)
        yield from _of_one_term(source, node)
        yield from _of_a_divisor(source, node)
        yield from _of_a_whole_sum(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_narrower(source, node)
        yield from _of_nested(source, node)
        yield from _of_a_norm(source, node)
        yield from _of_the_least(source, node)
    elif isinstance(node, ast.Compare):
        yield from _of_a_comparison(source, node)
    elif isinstance(node, ast.BoolOp):
        yield from _of_and_before_or(source, node)


def _of_an_exponent(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`2 ** -8 * i / n`, for `2 ** (-8 * i / n)`."""
    how = f"`**` comes before the products in `{source.shown(source.statement(node))}`"
    (start, _), (first, _) = source.span(node), source.span(node.right)
    around = source.parent[node]
    while _is_product(around) and source.span(around)[0] == start:
        end = source.span(around)[1]
        new = f"{source.text[start:first]}({source.text[first:end]})"
        yield source.with_expression(around, new, how, 1)
        around = source.parent[around]


def _of_the_least(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`min(k, n - 1)`, for `min(k, n) - 1`."""
    last = node.args[-1] if len(node.args) > 1 and callee(node) in BOUNDS else None
    if isinstance(last, ast.BinOp) and type(last.op) in (ast.Add, ast.Sub):
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        (start, end), (first, until) = source.span(node), source.span(last)
        inner = source.span(last.left)[1]
        text = source.text
        new = f"{text[start:first]}{source.of(last.left)}{text[until:end]}{text[inner:until]}"
        yield source.with_expression(node, new, how, 1)


def _operand(source: Source, node: ast.expr) -> ast.expr | None:
    """What a call is of: its first argument, or what its method belongs to."""
    if not isinstance(node, ast.Call) or isinstance(node.func, ast.Name) and node.func.id in OTHERS:
        return None
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in OTHERS:
            return None
        own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        if not own and not of_library(node.func):
            return node.func.value if not source.of(node.func).startswith("self.") else None
    first = node.args[0] if node.args else None
    return None if isinstance(first, ast.Starred) else first


def _with(source: Source, node: ast.Call, operand: ast.expr, new: str) -> str:
    """A call with another operand."""
    start, end = source.span(node)
    first, last = source.span(operand)
    return f"{source.text[start:first]}({new}){source.text[last:end]}"


def _of_wider(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`f(a) + b` for `f(a + b)`."""
    sign = SIGNS[type(node.op)]
    how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
    for call, other in ((node.left, node.right), (node.right, node.left)):
        operand = _operand(source, call)
        if operand is None or isinstance(operand, ast.Constant):
            continue
        one, two = source.in_brackets(operand), source.in_brackets(other)
        pair = f"{one} {sign} {two}" if call is node.left else f"{two} {sign} {one}"
        # The square of a sum for the sum of squares is easily written.
        rank = 1 if isinstance(node.op, ast.Pow) else 2
        yield source.with_expression(node, _with(source, call, operand, pair), how, rank)
        # Of a sum the bracket may have taken one part alone.
        if isinstance(call, ast.Call) and call is node.left and _is_sum(node):
            parent = source.parent[node]
            if _is_sum(parent) and parent.left is node:
                pair = f"{pair} {SIGNS[type(parent.op)]} {source.in_brackets(parent.right)}"
                yield source.with_expression(parent, _with(source, call, operand, pair), how, 2)


def _of_a_part(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`a / f(b) + c` for `a / f(b + c)`."""
    inner = node.left
    operand = _operand(source, inner.right) if isinstance(inner, ast.BinOp) else None
    if operand is not None and _is_sum(node) and type(inner.op) in SIGNS and not _is_sum(inner):
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        pair = f"{source.of(operand)} {SIGNS[type(node.op)]} {source.in_brackets(node.right)}"
        left, sign = source.in_brackets(inner.left), SIGNS[type(inner.op)]
        new = f"{left} {sign} {_with(source, inner.right, operand, pair)}"
        yield source.with_expression(node, new, how, 1)


def _of_one_term(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`(a + b) / c` for `a / c + b`, or for `a + b / c`."""
    if isinstance(node.op, ast.Div | ast.Mult) and _is_sum(node.left):
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        inner, sign = SIGNS[type(node.left.op)], SIGNS[type(node.op)]
        one, other = map(source.in_brackets, (node.left.left, node.left.right))
        by = source.in_brackets(node.right)
        yield source.with_expression(node, f"{one} {sign} {by} {inner} {other}", how, 1)
        yield source.with_expression(node, f"{one} {inner} {other} {sign} {by}", how, 2)


def _of_a_divisor(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`a / b - c` for `a / (b - c)`."""
    inner = node.left
    if _is_sum(node) and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        of, sign = source.in_brackets(inner.left), SIGNS[type(node.op)]
        by = f"{source.of(inner.right)} {sign} {source.in_brackets(node.right)}"
        rank = -1 if number(inner.right) == 1 else 1  # nobody divides by 1
        yield source.with_expression(node, f"{of} / ({by})", how, rank)


def _of_a_whole_sum(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`a * (b + c + d) * e` for `a * b + c + d * e`, or with one of the two factors alone."""
    if not _is_sum(node) or _is_sum(source.parent[node]):
        return
    terms, signs = _terms(node)
    texts = [source.of(each) for each in terms]
    how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
    first, last = (terms[i] if _is_product(terms[i]) else None for i in (0, -1))
    for one, two in ((first, None), (None, last), (first, last)):
        if one is None and two is None:
            continue
        own = [*texts]
        if one is not None:
            own[0] = source.of(one.right)
        if two is not None:
            own[-1] = source.of(two.left)
        inner = own[0] + "".join(f" {s} {t}" for s, t in zip(signs, own[1:], strict=True))
        front = f"{source.of(one.left)} {SIGNS[type(one.op)]} " if one is not None else ""
        behind = (
            f" {SIGNS[type(two.op)]} {source.in_brackets(two.right)}" if two is not None else ""
        )
        yield source.with_expression(node, f"{front}({inner}){behind}", how, 1)


def _of_a_comparison(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`a + b == c` for `a + (b == c)`."""
    left = node.left
    if isinstance(left, ast.BinOp) and type(left.op) in SIGNS and number(left.right) is None:
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        compared = source.text[source.span(left.right)[0] : source.span(node)[1]]
        front = source.text[source.span(left)[0] : source.span(left.right)[0]]
        yield source.with_expression(node, f"{front}({compared})", how, 1)


def _of_and_before_or(source: Source, node: ast.BoolOp) -> Iterator[Edit]:
    """`a or b and c` for `(a or b) and c`."""
    if not isinstance(node.op, ast.Or):
        return
    how = f"`and` comes before `or` in `{source.shown(node)}`"
    for place, each in enumerate(node.values):
        if not isinstance(each, ast.BoolOp) or source.text[source.span(each)[0] - 1] == "(":
            continue
        before, behind = node.values[:place], node.values[place + 1 :]
        first, last = source.of(each.values[0]), source.of(each.values[-1])
        joined = [source.of(n) for n in each.values]
        if before and not behind:
            wider = " or ".join([*map(source.of, before), first])
            yield source.with_text(node, " and ".join([f"({wider})", *joined[1:]]), how, 0)
        elif behind and not before:
            wider = " or ".join([last, *map(source.of, behind)])
            yield source.with_text(node, " and ".join([*joined[:-1], f"({wider})"]), how, 0)


def _terms(node: ast.expr) -> tuple[list[ast.expr], list[str]]:
    """What a sum is made of, and the signs between."""
    if not _is_sum(node):
        return [node], []
    terms, signs = _terms(node.left)
    return [*terms, node.right], [*signs, SIGNS[type(node.op)]]


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _of_narrower(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`f(a + b)` for `f(a) + b`."""
    operand = _operand(source, node)
    if not isinstance(operand, ast.BinOp) or type(operand.op) not in SIGNS:
        return
    sign = SIGNS[type(operand.op)]
    how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
    left, right = source.in_brackets(operand.left), source.in_brackets(operand.right)
    of_left = _with(source, node, operand, source.of(operand.left))
    yield source.with_expression(node, f"{of_left} {sign} {right}", how, 2)
    if number(operand.right) is None:
        of_right = _with(source, node, operand, source.of(operand.right))
        yield source.with_expression(node, f"{left} {sign} {of_right}", how, 2)


def _of_a_norm(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`norm(x + layer(x))` for `x + layer(norm(x))`."""
    inside = node.args[0] if len(node.args) == 1 else None
    if not _is_sum(inside) or not source.of(node.func).startswith("self."):
        return
    for own, layer in ((inside.left, inside.right), (inside.right, inside.left)):
        is_call = isinstance(layer, ast.Call) and len(layer.args) >= 1
        if is_call and source.of(layer.args[0]) == source.of(own):
            how = f"`{source.shown(node.func)}` is of the sum, and belongs before the other layer"
            given = f"{source.of(node.func)}({source.of(own)})"
            new = f"{source.of(own)} + {_with(source, layer, layer.args[0], given)}"
            yield source.with_expression(node, new, how, 1)


def _of_an_early_norm(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`x + layer(norm(x))` for `norm(x + layer(x))`."""
    for own, layer in ((node.left, node.right), (node.right, node.left)):
        norm = layer.args[0] if isinstance(layer, ast.Call) and layer.args else None
        if not _is_sum(node) or not isinstance(norm, ast.Call) or len(norm.args) != 1:
            continue
        if source.of(norm.func).startswith("self.") and source.of(norm.args[0]) == source.of(own):
            how = f"`{source.shown(norm.func)}` is before the other layer, and belongs to the sum"
            bare = _with(source, layer, norm, source.of(own))
            yield source.with_expression(
                node, f"{source.of(norm.func)}({source.of(own)} + {bare})", how, 1
            )


def _of_nested(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`f(g(x))` for `g(f(x))`."""
    inner = _operand(source, node)
    innermost = _operand(source, inner) if inner is not None else None
    if innermost is None or source.of(node.func) == source.of(inner.func):
        return
    how = f"the steps of `{source.shown(node)}` come in another order than they should"
    if source.of(inner.func) == "sum":  # Python's own, of whatever can be gone through
        new = f"sum({source.of(node.func)}(_each) for _each in {source.of(innermost)})"
        yield source.with_text(node, new, how, 1)
    new = _with(source, inner, innermost, _with(source, node, inner, source.of(innermost)))
    yield source.with_expression(node, new, how, 2 if callee(inner) in source.defined() else 3)
