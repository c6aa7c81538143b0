"""Calls as one would type them, with the shape of every tensor, read into trees of plain data.

`SelfAttention(input_size, hidden)(x[batch_size, seq_len, input_size], causal=True)`: a name in
brackets is a size; `ids[b, s].long(vocab)` are whole numbers below `vocab` (so is `.ints(vocab)`),
`lengths[b].full(s)` is that number everywhere, `keep[b, s].bool()` are truth values; a bare name or
a sum or product of names is a size handed over as a number.
Exercises draw their inputs by it, the shape checker its recordings. Standard library only.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

DTYPES = ("long", "int", "bool", "float", "half", "double", "ints", "full")
SIZE_PARTS = (ast.BinOp, ast.Constant, ast.operator, ast.UnaryOp, ast.expr_context, ast.unaryop)


class NotationError(ValueError):
    """A call that could not be read; the message says which and why."""


def read_call(text: str) -> tuple[dict, list[str]]:
    """The tree of one call, and the names of its sizes in the order in which they appear.

    A tree is a dict with a `kind`: 'call' (of, args, kwargs), 'attribute' (of, name), 'name',
    'tensor' (dims, and dtype and below where they are said), 'constant' (value), 'list' or
    'tuple' (items), 'dict' (keys, items), 'size' (expr).
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise NotationError(f"`{text}` is not a call in Python: {error.msg}.") from None
    sizes: list[str] = []
    tree = _tree(node, sizes, text)
    if tree["kind"] != "call":
        raise NotationError(f"`{text}` calls nothing: expected `Model(size)(x[batch, size])`.")
    if _begin(tree)["kind"] != "name":
        raise NotationError(f"`{text}`: what it begins with cannot be called: a name can.")
    return tree, sizes


def called_name(tree: Mapping) -> str:
    """The function or class that a call begins with."""
    return _begin(tree)["name"]


def _begin(tree: Mapping) -> Mapping:
    while tree["kind"] in ("call", "attribute"):
        tree = tree["of"]
    return tree


def _tree(node: ast.expr, sizes: list[str], text: str, called: bool = False) -> dict:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as of, attr=dtype), args=args) if (
            dtype in DTYPES
        ):
            if dtype in ("ints", "full") and not args:
                raise NotationError(f"`{text}`: `.{dtype}()` needs a size, such as `.{dtype}(n)`.")
            below = {"below": _size(args[0], sizes, text)} if args else {}
            return {**_tree(of, sizes, text), "dtype": dtype, **below}
        case ast.Call():
            return {
                "kind": "call",
                "of": _tree(node.func, sizes, text, called=True),
                "args": [_tree(a, sizes, text) for a in node.args],
                "kwargs": {k.arg: _tree(k.value, sizes, text) for k in node.keywords if k.arg},
            }
        case ast.Attribute():
            of = _tree(node.value, sizes, text, called=True)
            return {"kind": "attribute", "of": of, "name": node.attr}
        case ast.Name() if called:
            return {"kind": "name", "name": node.id}
        case ast.Subscript():
            dims = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return {"kind": "tensor", "dims": [_size(d, sizes, text) for d in dims]}
        case ast.Constant(value=value) if value is None or isinstance(value, bool | float | str):
            return {"kind": "constant", "value": value}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() as value)):
            return {"kind": "constant", "value": -value}
        case ast.List() | ast.Tuple():
            kind = "list" if isinstance(node, ast.List) else "tuple"
            return {"kind": kind, "items": [_tree(e, sizes, text) for e in node.elts]}
        case ast.Dict(keys=keys) if all(isinstance(k, ast.Constant) for k in keys):
            items = [_tree(e, sizes, text) for e in node.values]
            return {"kind": "dict", "keys": [k.value for k in keys], "items": items}
    return {"kind": "size", "expr": _size(node, sizes, text)}


def _size(node: ast.expr, sizes: list[str], text: str) -> str:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if part.id not in sizes:
                sizes.append(part.id)
        elif not isinstance(part, SIZE_PARTS):
            raise NotationError(f"`{text}`: `{ast.unparse(node)}` is no size.")
    return ast.unparse(node)


def names_in(expr: str) -> list[str]:
    """The names of the sizes in an expression, in order."""
    return [n.id for n in ast.walk(ast.parse(expr, mode="eval")) if isinstance(n, ast.Name)]


def value_of(expr: str, sizes: Mapping[str, int]) -> int:
    """The size that an expression has where its names have these sizes."""
    return _value(ast.parse(expr, mode="eval").body, sizes, expr)


def _value(node: ast.expr, sizes: Mapping[str, int], expr: str) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes, expr)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, sizes, expr), _value(right, sizes, expr)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv() | ast.Div() if b:
                    return a // b
    raise NotationError(f"`{expr}` is no size: names, numbers and + - * // only.")
