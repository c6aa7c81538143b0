"""Values of another type than what is read of them: a tensor for a size, a list for a tensor.

The code stops where such a value is taken, which may be lines behind the one that makes it. So they
are tried where it stops, and what is made is changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import is_sure, names_of, of_one_type, shown_around
from autograder.tracing.edits.kinds.source import NATURAL, Edit, Source
from autograder.tracing.text import callee

# What stands around a value `{}` then, and what is said of the value without it.
SIZES = ("0", "1", "2", "-1", "-2")
OF_A_TENSOR = tuple(
    (f"({{}}).size({k})", "`{}` stands where one of its sizes belongs") for k in SIZES
)
OF_A_TENSOR += (
    ("({}).shape", "`{}` stands where its shape belongs"),
    ("({}).argsort(-1)", "`{}` are numbers, where their places in order belong"),
    ("({}).argsort(-1, descending=True)", "`{}` are numbers, where their places in order belong"),
    ("({}).tolist()", "`{}` stands where the list of its numbers belongs"),
    ("({}).unbind()", "`{}` stands where its parts belong, one by one"),
    ("({}).unbind(1)", "`{}` stands where its parts belong, one by one"),
)
OF_SEVERAL = (
    ("torch.stack(tuple({}))", "`{}` are several tensors, where one belongs"),
    ("torch.stack(tuple({}), -1)", "`{}` are several tensors, where one belongs"),
    ("torch.cat(tuple({}))", "`{}` are several tensors, where one belongs"),
    ("torch.cat(tuple({}), 1)", "`{}` are several tensors, where one belongs"),
    ("torch.cat(tuple({}), -1)", "`{}` are several tensors, where one belongs"),
    ("torch.tensor({})", "`{}` is a list, where a tensor belongs"),
)
OF_A_NUMBER = (
    ("torch.arange(min({}, 4096))", "`{}` is one number, where all numbers below it belong"),
    ("torch.tensor({})", "`{}` is a number, where a tensor belongs"),
)
OF_A_SHAPE = tuple(
    (f"torch.{way}({{}})", "`{}` is a shape, where a tensor of it belongs")
    for way in ("zeros", "ones")
)
OF_A_LIST = (
    ("len({})", "`{}` stands where its length belongs"),
    ("({})[-1]", "`{}` stands where one of its entries belongs"),
    ("({})[0]", "`{}` stands where one of its entries belongs"),
)
HOOKS = ("register_forward_hook", "register_forward_pre_hook")
WHOLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp)
WHOLE += (ast.List, ast.Tuple, ast.ListComp)


def of_another_type(source: Source) -> list[Edit]:
    """The changes of a text that make something of another type of what a statement keeps."""
    found: dict[str, Edit] = {}
    for node in source.nodes():
        for edit in _another_name(source, node):
            found.setdefault(edit.source, edit)
        if _is_half(source, node):
            for around, how in OF_A_TENSOR[: len(SIZES)]:
                edit = _put(source, node, around.format(source.of(node)), how.format(node.id))
                found.setdefault(edit.source, edit)
        if isinstance(node, WHOLE) and _is_kept(source, node):
            for edit in _changed(source, node):
                found.setdefault(edit.source, edit)
    return list(found.values())


def _another_name(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Variables that hold a size in the place of one that does not, and the other way round."""
    function = source.function(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node.ctx, ast.Load):
        return
    known = names_of(source, function, source.statement(node).lineno)
    how = f"`{node.id}` is taken where another belongs, in `{shown_around(source, node)}`"
    for other in known if node.id in known else ():
        if other != node.id and not of_one_type(source, node, other):
            edit = source.with_text(node, other, how, NATURAL)
            yield replace(edit, by_name=True, unsure=not is_sure(source, node))


def _is_half(source: Source, node: ast.AST) -> bool:
    """Whether it is the argument of which a whole number of parts is kept: `half = x // 2`."""
    around, function = source.parent.get(node), source.function(node)
    halved = isinstance(around, ast.BinOp) and isinstance(around.op, ast.FloorDiv)
    given = [a.arg for a in function.args.args] if function is not None else []
    return isinstance(node, ast.Name) and halved and around.left is node and node.id in given


def _is_kept(source: Source, node: ast.expr) -> bool:
    """Whether an expression is all that a statement gives a name, or puts into a list."""
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return False
    parent, whole = source.parent[node], node
    if isinstance(parent, ast.Tuple | ast.List) and isinstance(source.parent[parent], ast.Assign):
        whole, parent = parent, source.parent[parent]
    if isinstance(parent, ast.Call):
        return callee(parent) == "append" and node in parent.args
    return isinstance(parent, ast.Assign) and parent.value is whole


def _changed(source: Source, node: ast.expr) -> Iterator[Edit]:
    text, shown = source.of(node), source.shown(node)
    several = isinstance(node, ast.List | ast.Tuple | ast.ListComp)
    ways = OF_SEVERAL if several else (*OF_A_TENSOR, *OF_A_NUMBER, *OF_SEVERAL, *OF_A_LIST)
    if getattr(node, "attr", "") == "shape":  # of any numbers it could be as large as a machine
        ways = (*ways, *OF_A_SHAPE)
    for around, how in ways:
        yield _put(source, node, around.format(text), how.format(shown))
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        how = f"`{shown}` is a layer, where what a hook on it gives belongs"
        for function in source.functions():
            if source.function(function) is not None:
                for way in HOOKS:
                    yield _put(source, node, f"{text}.{way}({function.name})", how)


def _put(source: Source, node: ast.expr, new: str, how: str) -> Edit:
    return replace(source.with_expression(node, new, how, NATURAL), missing=True)
