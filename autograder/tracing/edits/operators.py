"""Slips in operators: the wrong one, sides exchanged, one too many, brackets in other places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.source import Edit, Source

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}
OTHERS = {
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("/", "@", "+"),
    "/": ("*", "//"),
    "//": ("/", "%"),
    "%": ("//",),
    "@": ("*",),
    "&": ("|",),
    "|": ("&",),
    "**": ("*",),
}
ORDERED = ("-", "/", "//", "%", "**", "@")
COMPARED = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
ALIKE = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=",),
    "!=": ("==",),
}


def of_operators(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one operation."""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield from _of_two_sides(source, node)
        yield from _of_brackets(source, node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        yield from _of_comparison(source, node)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        sign = source.text[source.span(node)[0]]
        how = f"`{source.shown(node)}` turns around what should stay as it is"
        yield source.with_expression(node, source.of(node.operand), how, 1 if sign != "+" else 9)
    elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS:
        yield from _of_change_in_place(source, node)


def _of_two_sides(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    sign = SIGNS[type(node.op)]
    left, right = source.in_brackets(node.left), source.in_brackets(node.right)
    shown = source.shown(node)
    if sign in ORDERED:
        how = f"the two sides of `{sign}` have changed places in `{shown}`"
        yield source.with_expression(node, f"{right} {sign} {left}", how, 1)
    for other in OTHERS.get(sign, ()):
        how = f"`{sign}` is not the operation that belongs in `{shown}`"
        yield source.with_expression(node, f"{left} {other} {right}", how, 1)
    if sign == "@":
        for each, side in ((node.left, "left"), (node.right, "right")):
            text = source.in_brackets(each)
            other = f"{text}.transpose(-2, -1)"
            pair = f"{other} @ {right}" if side == "left" else f"{left} @ {other}"
            how = f"`{source.shown(each)}` needs its last two axes exchanged in this product"
            yield source.with_expression(node, pair, how, 2)
        return
    if sign != "**":
        how = f"`{sign} {source.shown(node.right)}` does not belong there"
    else:
        how = f"the power `{sign} {source.shown(node.right)}` does not belong there"
    yield replace(source.with_expression(node, source.of(node.left), how, 2), takes=True)
    if sign in ("+", "*", "-"):
        sign_too = "-" if sign == "-" else ""
        how = f"`{source.shown(node.left)} {sign}` does not belong there"
        yield replace(source.with_expression(node, f"{sign_too}{right}", how, 2), takes=True)


def _of_brackets(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`(a / b) ** c` for `a / b ** c` and the like, both ways."""
    sign = SIGNS[type(node.op)]
    for side in ("left", "right"):
        inner = getattr(node, side)
        if not isinstance(inner, ast.BinOp) or type(inner.op) not in SIGNS:
            continue
        own = SIGNS[type(inner.op)]
        if own == sign and own in "+*@":
            continue
        one, two = source.in_brackets(inner.left), source.in_brackets(inner.right)
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        if side == "left":
            other = source.in_brackets(node.right)
            yield source.with_expression(node, f"{one} {own} ({two} {sign} {other})", how, 2)
        else:
            other = source.in_brackets(node.left)
            yield source.with_expression(node, f"({other} {sign} {one}) {own} {two}", how, 2)


def _of_comparison(source: Source, node: ast.Compare) -> Iterator[Edit]:
    sign = COMPARED[type(node.ops[0])]
    left, right = source.in_brackets(node.left), source.in_brackets(node.comparators[0])
    how = f"`{sign}` is not the comparison that belongs in `{source.shown(node)}`"
    for other in ALIKE[sign]:
        yield source.with_expression(node, f"{left} {other} {right}", how, 1)


def _of_change_in_place(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    sign = SIGNS[type(node.op)]
    target, value = source.of(node.target), source.in_brackets(node.value)
    how = f"`{sign}=` changes in place what is still needed as it was"
    yield source.with_text(node, f"{target} = {target} {sign} ({value})", how, 3)
    how = f"`{sign}=` is not the change that belongs there"
    yield source.with_text(node, f"{target} = ({value})", how, 2)
    for other in OTHERS.get(sign, ()):
        yield source.with_text(node, f"{target} {other}= ({value})", how, 1)
