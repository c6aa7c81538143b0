"""Slips that show in the text of an answer, where its steps say that something is wrong.

None is claimed by the text alone: it explains what the steps or an error show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.text import Text

# Methods that make a new tensor: on a line of their own they do nothing.
MAKES = {"masked_fill", "transpose", "permute", "view", "reshape", "softmax", "contiguous"}
MAKES |= {"unsqueeze", "squeeze", "flatten", "unflatten", "div", "mul", "add", "sub", "tril"}
MAKES |= {"triu", "swapaxes", "movedim", "repeat", "expand", "to", "float", "bool", "dropout"}
MAKES |= {"fill", "where", "exp", "log_softmax", "detach", "clone", "index_fill", "masked_scatter"}


def thrown_away(text: Text, before: int) -> tuple[int, str] | None:
    """The last line up to this one that makes a tensor and keeps it nowhere: (line, method)."""
    best = None
    for node in text.statements:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        name = _called(node.value)
        if node.lineno <= before and name in MAKES and (best is None or node.lineno > best[0]):
            given = [k.arg for k in node.value.keywords]
            if "out" not in given and "inplace" not in given:
                best = (node.lineno, name)
    return best


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def half_power(text: Text) -> tuple[int, str] | None:
    """Where `x ** 1/2` stands, which is half of x: (line, text)."""
    for node in text.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        power = node.left  # in `a / x ** 1/2` it is the right side of the first division
        if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Div | ast.Mult):
            power = power.right
        is_power = isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow)
        if is_power and _is(power.right, 1) and _is(node.right, 2):
            return power.lineno, f"{text.of(power)}/2"
    return None


def _is(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def without_return(text: Text, name: str) -> ast.FunctionDef | None:
    """The function (or the class's `forward`) where it never returns a value."""
    for function in _functions(text, name):
        if not gives_back(function):
            return function
    return None


def gives_back(function: ast.FunctionDef) -> bool:
    """Whether a function returns or yields a value somewhere."""
    nodes = list(own_nodes(function))
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in nodes)
    return yields or any(isinstance(n, ast.Return) and n.value is not None for n in nodes)


def _functions(text: Text, name: str) -> Iterator[ast.FunctionDef]:
    for node in text.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield from (
                n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"
            )


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def last_assigned(function: ast.FunctionDef, name: str) -> str:
    """The name that a function assigns last, at its own level: what it may have meant to return."""
    names = [
        target.id
        for node in function.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return names[-1] if names else ""


def function_around(text: Text, line: int) -> ast.FunctionDef | None:
    """The innermost function that a line is in."""
    there = [
        n
        for n in text.nodes
        if isinstance(n, ast.FunctionDef) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    return max(there, key=lambda n: n.lineno, default=None)


def overwritten(text: Text, name: str, line: int) -> int | None:
    """The line on which a name was given a new value after it had one, last before this line."""
    function = function_around(text, line)
    if function is None:
        return None
    arguments = function.args
    given = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    lines = sorted(
        node.lineno
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        if node.lineno < line
    )
    if not lines or (len(lines) == 1 and name not in given):
        return None
    return lines[-1]
