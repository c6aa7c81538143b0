"""Which statement of a cell gave a variable its value, and which only hand on what others made."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Sequence

from autograder.tracing.text import Text, callee, function_around, own_nodes

HANDS_ON = ("zip", "list", "tuple", "reversed", "dict", "sorted", "next", "iter", "enumerate")
REORDERS = ("reverse", "sort", "insert", "pop", "remove", "rotate", "appendleft")
Binding = ast.Assign | ast.For | ast.NamedExpr


def hands_on(node: ast.expr) -> bool:
    """Whether an expression computes nothing: names, their parts, and rows of them."""
    if isinstance(node, ast.Tuple | ast.List):
        parts = [e for e in node.elts if not isinstance(e, ast.Constant)]
        return bool(parts) and all(map(hands_on, parts))
    if isinstance(node, ast.Subscript | ast.Starred):
        return hands_on(node.value)
    if isinstance(node, ast.IfExp):
        return hands_on(node.body) and hands_on(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = any(isinstance(n, ast.Subscript | ast.List) for n in (node.left, node.right))
        return parts and hands_on(node.left) and hands_on(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in HANDS_ON and bool(node.args) and all(map(hands_on, node.args))
    return isinstance(node, ast.Name)


def handed_on(text: Text, line: int, made: Container) -> set[int]:
    """The lines that only hand on, under other names or in another order, tensors that the
    statement on a line uses. made: the lines on which something is computed."""
    function, statement = function_around(text, line), text.around(line)
    if function is None or statement is None:
        return set()
    found: set[int] = set()
    left, seen = [(name, line) for name in read(statement)], set()
    while left:
        name, before = left.pop()
        if (name, before) in seen:
            continue
        seen.add((name, before))
        found |= _reordered(function, name, before)
        bound = bound_last(text, name, before)
        if isinstance(bound, ast.For):
            left += [(n, bound.lineno) for n in read(bound.iter)]
        elif bound is not None and hands_on(bound.value) and bound.lineno not in made:
            sources = read(bound.value)
            if any(_is_tensor(text, n, bound.lineno, made) for n in sources):
                found.add(bound.lineno)
            left += [(n, bound.lineno) for n in sources]
    return found


def _is_tensor(text: Text, name: str, before: int, made: Container) -> bool:
    """Whether a variable holds a tensor, or several, as far as the text shows it."""
    bound = bound_last(text, name, before)
    if isinstance(bound, ast.For):
        return True
    if bound is not None:
        sources = read(bound.value) if hands_on(bound.value) else ()
        return bound.lineno in made or any(
            _is_tensor(text, n, bound.lineno, made) for n in sources if n != name
        )
    used = (ast.Attribute, ast.Subscript)
    function = function_around(text, before)
    nodes = list(own_nodes(function)) if function is not None else []
    parts = [n.value for n in nodes if isinstance(n, used)]
    parts += [s for n in nodes if _is_product(n) for s in (n.left, n.right)]
    return any(isinstance(n, ast.Name) and n.id == name for n in parts)


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def _reordered(function: ast.FunctionDef, name: str, before: int) -> set[int]:
    """The lines before one that change the order of a list."""
    calls = [n for n in own_nodes(function) if isinstance(n, ast.Call) and n.lineno < before]
    methods = [n.func for n in calls if isinstance(n.func, ast.Attribute)]
    own = [m for m in methods if isinstance(m.value, ast.Name) and m.value.id == name]
    return {m.lineno for m in own if m.attr in REORDERS}


def joins_a_row(text: Text, line: int, op: str) -> bool:
    """Whether a statement itself writes down, in order, what it joins: no list from before."""
    statement = text.around(line)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    calls = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == op and n.args]
    rows = [n.args[0] for n in calls]
    return any(
        isinstance(row, ast.Tuple | ast.List) or not hands_on(row) or _turns_a_row(row)
        for row in rows
    )


def reorders(node: ast.expr) -> bool:
    """Whether an expression itself says in which order parts of a row come: it names them one by
    one, or turns the row."""
    rows = [n for n in ast.walk(node) if isinstance(n, ast.Tuple | ast.List)]
    named = any(isinstance(e, ast.Subscript | ast.Name) for row in rows for e in row.elts)
    return named or any(_turns_a_row(n) for n in ast.walk(node) if isinstance(n, ast.expr))


def _turns_a_row(row: ast.expr) -> bool:
    """Whether an expression itself takes a row in another order: `parts[::-1]`, `reversed(...)`."""
    if isinstance(row, ast.Subscript) and isinstance(row.slice, ast.Slice):
        return row.slice.step is not None
    called = row.func if isinstance(row, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in ("list", "tuple"):
        return bool(row.args) and _turns_a_row(row.args[0])
    return isinstance(called, ast.Name) and called.id == "reversed"


def read(node: ast.AST) -> set[str]:
    """The variables that a part of the text reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_given(binding: Binding) -> list[str]:
    """The variables that a statement gives a value, from left to right."""
    targets = binding.targets if isinstance(binding, ast.Assign) else [binding.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def bound_last(text: Text, name: str, before: int) -> Binding | None:
    """What gave a variable its value last before a line, in the same function."""
    function = function_around(text, before)
    nodes = own_nodes(function) if function is not None else ()
    found = [n for n in nodes if isinstance(n, Binding) and n.lineno < before]
    found = [n for n in found if name in names_given(n)]
    return max(found, key=lambda n: n.lineno, default=None)


def names_in_a_row(row: ast.AST | None) -> list[str]:
    """The variables of a row that holds nothing else; empty where it does."""
    parts = row.elts if isinstance(row, ast.Tuple | ast.List) else []
    return [n.id for n in parts] if all(isinstance(n, ast.Name) for n in parts) else []


def names_at_once(text: Text, line: int) -> list[str]:
    """The variables that a statement binds to what it makes, each tensor to one; empty where it
    makes a list, or returns."""
    statement = text.around(line)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    rows = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple, ast.GeneratorExp)
    if isinstance(target, ast.Name):
        return [] if isinstance(statement.value, rows) else [target.id]
    if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
        return names_given(statement)
    return []


def calls_one_of_a_row(text: Text, line: int) -> bool:
    """Whether a statement calls what it takes, one after the other, out of a row from elsewhere:
    `for layer in self.layers`."""
    statement = text.around(line)
    nodes = list(ast.walk(statement)) if statement is not None else []
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    loops = [n for n in nodes if isinstance(n, ast.comprehension)]
    loops += [b for name in called if isinstance(b := bound_last(text, name, line), ast.For)]
    given = [
        n for n in loops if {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)} & called
    ]
    return any(not isinstance(n.iter, ast.Tuple | ast.List) for n in given)


def handed_to(text: Text, line: int, place: tuple) -> str | None:
    """The argument that an expression becomes of a function of the student's own; '' where the same
    statement computes with it; None where it is one of a row."""
    statement = text.around(line)
    nodes = list(ast.walk(statement)) if statement is not None else []
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    there = [n for n in nodes if isinstance(n, ast.expr) and _place(n) == place]
    node = there[0] if there else None
    while node in parents:
        child, node = node, parents[node]
        if isinstance(node, ast.BinOp):
            return ""
        if isinstance(node, ast.keyword):
            return node.arg or ""
        if isinstance(node, ast.Call) and child in node.args:
            function = text.function(callee(node))
            given = [a.arg for a in function.args.args if a.arg != "self"] if function else []
            number = node.args.index(child)
            return given[number] if number < len(given) else ""
        if not isinstance(node, ast.Call | ast.Attribute):
            return None
    return None


def _place(node: ast.expr) -> tuple:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def handed_on_after(text: Text, names: Sequence[str], line: int, made: Container) -> bool:
    """Whether one of these variables is only handed on somewhere behind a line."""
    function = function_around(text, line)
    return function is not None and any(
        hands_on(n.value) and n.lineno > line and n.lineno not in made and read(n.value) & {*names}
        for n in own_nodes(function)
        if isinstance(n, ast.Assign)
    )


def unpacked(text: Text, line: int, outer: Sequence[int]) -> ast.Assign | None:
    """The statement that gives names to the several things that another one made in a row: in a
    list, or as what a function returns."""
    statement, function = text.around(line), function_around(text, line)
    found: list = []
    if isinstance(statement, ast.Return) and outer:
        found = [text.around(outer[0])]
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        row = statement.targets[0].id
        nodes = own_nodes(function) if function is not None else ()
        found = [n for n in nodes if isinstance(n, ast.Assign) and n.lineno > line]
        found = [n for n in found if isinstance(n.value, ast.Name) and n.value.id == row]
    wide = [n for n in found if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)]
    return wide[0] if len(wide) == 1 else None


def lines_of(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


# --- sizes that were given each other's names ----------------------------------------------------
OUT_OF_RANGE = re.compile(r"index -?\d+ is out of bounds for dimension (\d+) with size (\d+)")


def of_another_axis(said: str, text: Text, line: int) -> tuple[int, str] | None:
    """The line that took the bound of a loop from another axis than the one that the loop's number
    is used on, with a sentence; None where the text does not show it. said: an IndexError's."""
    found = OUT_OF_RANGE.search(said[:2_000])
    at = text.around(line)
    if found is None or at is None:
        return None
    axis, size = map(int, found.groups())
    used = {
        n.slice.id
        for n in ast.walk(at)
        if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Name) and axis == 0
    }
    for loop in (n for n in text.nodes if isinstance(n, ast.For)):
        bound = loop.iter.args if isinstance(loop.iter, ast.Call) else []
        is_range = bound and getattr(loop.iter.func, "id", "") == "range"
        name = bound[-1].id if is_range and isinstance(bound[-1], ast.Name) else ""
        inside = loop.lineno <= line <= (loop.end_lineno or loop.lineno)
        number = getattr(loop.target, "id", "")
        if not (name and inside and number in used):
            continue
        sizes = [(n.lineno, *_unpacked_size(n, name)) for n in text.statements if n.lineno < line]
        sizes = [each for each in sizes if each[1]]
        if len(sizes) == 1 and sizes[0][2] != axis:
            first, whose, place = sizes[0]
            return first, (
                f"`{number}` goes up to `{name}`, which line {first} takes from axis {place} of "
                f"`{whose}`; it is used on axis {axis}, whose size is {size}. The sizes may be "
                "unpacked in the wrong order."
            )
    return None


def _unpacked_size(node: ast.stmt, name: str) -> tuple[str, int]:
    """Of which tensor, and which of its axes, a statement takes a size of this name."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return "", 0
    names = [getattr(t, "id", "") for t in node.targets[0].elts]
    value = node.value.func if isinstance(node.value, ast.Call) else node.value
    of = isinstance(value, ast.Attribute) and value.attr in ("shape", "size")
    whose = value.value.id if of and isinstance(value.value, ast.Name) else ""
    return (whose, names.index(name)) if whose and names.count(name) == 1 else ("", 0)


# --- what a loop, or an argument, keeps -----------------------------------------------------------
GROWS = ("append", "extend", "insert", "update", "add", "setdefault", "appendleft")


def returns_in_a_round(text: Text) -> tuple[int, int] | None:
    """The one loop whose own body returns, whatever comes: its line and that of its `return`."""
    loops = [n for n in text.nodes if isinstance(n, ast.For | ast.While)]
    ends = [(n.lineno, r.lineno) for n in loops for r in n.body if isinstance(r, ast.Return)]
    goes_on = any(isinstance(n, ast.Continue) for loop in loops for n in ast.walk(loop))
    return ends[0] if len(ends) == 1 and not goes_on else None


def kept_between_calls(text: Text) -> tuple[int, str, int] | None:
    """A function whose argument is by default a list or a dict that it grows, and that no call in
    the cell gives: the line of the default, the argument's name, the line that grows it."""
    for function in text.functions:
        arguments = function.args
        last = arguments.args[len(arguments.args) - len(arguments.defaults) :]
        pairs = [*zip(last, arguments.defaults, strict=True)]
        pairs += [p for p in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if p[1]]
        for argument, default in pairs:
            fresh = isinstance(default, ast.Call) and callee(default) in (
                "list",
                "dict",
            )
            if not (fresh or isinstance(default, ast.List | ast.Dict)):
                continue
            grown = _grown(function, argument.arg)
            if grown is not None and not _is_given(text, function, argument.arg):
                return default.lineno, argument.arg, grown
    return None


def _grown(function: ast.FunctionDef, name: str) -> int | None:
    """The line on which a function puts something into one of its arguments, which it never binds
    to something else."""
    nodes = list(own_nodes(function))
    named = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    added = [
        n for n in nodes if isinstance(n, ast.AugAssign) and getattr(n.target, "id", "") == name
    ]
    if sum(isinstance(n.ctx, ast.Store) for n in named) > len(added):
        return None
    calls = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    calls = [n for n in calls if n.func.attr in GROWS and getattr(n.func.value, "id", "") == name]
    return min((n.lineno for n in (*calls, *added)), default=None)


def _is_given(text: Text, function: ast.FunctionDef, name: str) -> bool:
    """Whether a call in the cell hands something over for an argument, as far as can be told."""
    given = [a.arg for a in function.args.args if a.arg != "self"]
    place = given.index(name) if name in given else len(given)
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n) == function.name]
    return any(len(n.args) > place or any(k.arg == name for k in n.keywords) for n in calls)


def overwritten_in_rounds(text: Text, line: int) -> tuple[int, str] | None:
    """The loop whose rounds all write to one place on this line, and that place: its index is the
    same in all of them, and what stood there is not read."""
    statement = text.around(line)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    loops = [n for n in text.nodes if isinstance(n, ast.For) and line in lines_of(n)]
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or not loops:
        return None
    inner = max(loops, key=lambda n: n.lineno)
    names = [n for n in ast.walk(inner) if isinstance(n, ast.Name)]
    changed = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    changed |= {target.value.id} & {
        n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)
    }
    stops = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(inner))
    used = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return None if stops or used & changed else (inner.lineno, text.of(target))
