"""A right tensor in the place of another: is it the line that uses it, or one that misnamed it?

A statement such as `q, v, k = parts` computes nothing, so that no step shows it. Where a wrong step
is made of right tensors alone, it may be right itself and be given the wrong ones. Then it is told
only where the text shows no statement before it that hands them on, or where the names prove which.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from autograder.course.steps.bank import KnownSteps
from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.first_wrong import LAYOUT, Judged, Wrong, factor_of
from autograder.tracing.proof.mends import ATTENTION, JOINS
from autograder.tracing.reference import PRODUCTS
from autograder.tracing.text import Text, function_around, means, own_nodes

# How the words of such mends begin.
OTHER_OPERANDS = ("an operand", "another tensor", "its operands", "what the rounds give")
HANDS_ON = ("zip", "list", "tuple", "reversed", "dict", "sorted", "next", "iter", "enumerate")
REORDERS = ("reverse", "sort", "insert", "pop", "remove", "rotate", "appendleft")


@dataclass(frozen=True)
class Slip:
    """One thing that is wrong: the step, what it should be, and the known mistake, if it is one."""

    judged: Judged
    wrong: Wrong
    number: int  # the step that is said to be wrong
    cause: KnownSteps | None = None
    mend: str = ""  # what was made in another way to prove it
    line: int | None = None  # where another line than the step's is to blame
    last: bool = False  # whether all is right with this mended
    words: str = ""  # a small change that makes the result right, where no cause is known
    mended: Trace | None = None  # the trace with what belongs there, where it is proved


def by_its_name(slip: Slip, text: Text) -> Slip | None:
    """The slip, at the line that surely made it; None where the text leaves that open."""
    judged, number = slip.judged, slip.number
    step, line = judged.steps[number], text.line(judged.steps[number])
    if slip.line is not None or line is None or factor_of(judged, number) is not None:
        return slip
    if _in_another_order(judged, number, text):
        return None
    made = {text.line(s) for s in judged.steps}
    like, instead = judged.like.get(number), slip.wrong.instead
    makes = like is not None and not (step.op in LAYOUT and _used_there(judged, number, text))
    if instead is not None and makes and like.known is instead[0]:
        return _made_or_named(slip, text, line, made)
    if step.op in JOINS and (like is None or not like.in_order):
        return slip if _joins_a_row(text, line, step.op) else None
    if _took_another(slip):
        names = text.operands(step)
        words = [judged.like[i].known.name if i in judged.like else "" for i in step.inputs[:2]]
        if like is not None and like.turned and len(names) == 2 and _are_crossed(names, words):
            return _at(slip, [_bound_last(text, name, line) for name in names])
        if _comes_with_the_call(slip, text, line, names, words):
            return None
    return _past_what_hands_on(slip, text, line, made)


def _took_another(slip: Slip) -> bool:
    """Whether a step may be wrong only in what it was made of, all of it right tensors."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    if slip.wrong.instead is not None or (slip.mend or slip.words).startswith(OTHER_OPERANDS):
        return True
    given = [i for i in step.inputs if judged.steps[i].kind == "float"]
    combines = step.op in (*PRODUCTS, ATTENTION)
    return combines and all(i in judged.like for i in given) and len(given) > 1


def _used_there(judged: Judged, number: int, text: Text) -> bool:
    """Whether the line of a step also computes something of what it gave."""
    users = [(u, judged.steps[u]) for u in judged.users[number]]
    here = [(u, s) for u, s in users if text.line(s) == text.line(judged.steps[number])]
    return any(s.op not in LAYOUT or _used_there(judged, u, text) for u, s in here)


def _are_crossed(names: list[str], words: list[str]) -> bool:
    """Whether two variables are called by what the other one holds."""
    return all(map(means, names, reversed(words))) and not any(map(means, names, words))


def _at(slip: Slip, bound: list[Binding | None]) -> Slip | None:
    """The slip at the one statement that gave all these variables their values."""
    one = set(bound) if len(set(bound)) == 1 else {None}
    own = one.pop()
    return replace(slip, line=own.lineno) if own is not None else None


def _comes_with_the_call(slip: Slip, text: Text, line: int, names: list, words: list) -> bool:
    """Whether a helper's own arguments are what is wrong, as far as can be told: then its call may
    have handed them over. Names that say what they hold acquit the call."""
    step, function = slip.judged.steps[slip.number], function_around(text, line)
    given = {a.arg for a in function.args.args} if function is not None else set()
    if not step.outer or not set(names) & given:
        return False
    taken = slip.wrong.instead[0].name if slip.wrong.instead is not None else ""
    if taken:
        return not any(means(name, taken) for name in names)
    return not all(map(means, names, words))


# --- the line that made a tensor ------------------------------------------------------------------
def _made_or_named(slip: Slip, text: Text, line: int, made: set) -> Slip | None:
    """The slip of a step that gave a right tensor where another belongs: it is that line where the
    other was never made, or where the names that the statement itself gives are those used."""
    judged, (taken, belongs) = slip.judged, slip.wrong.instead
    others = [i for i, each in judged.like.items() if each.known is belongs and each.in_order]
    if not any(judged.steps[i].op != LEAF for i in others):
        return None if _calls_one_of_a_row(text, line) else slip
    names = _names_at_once(text, line)
    if names:
        target = text.target(judged.steps[slip.number])
        straight = means(target, taken.name) and not means(target, belongs.name)
        return None if straight or _handed_on_after(text, names, line, made) else slip
    parameter = _handed_to(text, line, judged.steps[slip.number].place)
    if parameter is not None:
        straight = means(parameter, taken.name) and not means(parameter, belongs.name)
        return None if straight else slip
    own = _unpacked(text, line, judged.steps[slip.number].outer)
    row = [i for i, s in enumerate(judged.steps) if text.line(s) == line and i in judged.like]
    row = [i for i in row if judged.steps[i].op == judged.steps[slip.number].op]
    given = _names_given(own) if own is not None else []
    if len(given) != len(row):
        return None
    words = [judged.like[i].known.name for i in row]
    crossed = [
        not means(name, word) and any(means(name, other) for other in words)
        for name, word in zip(given, words, strict=True)
    ]
    return replace(slip, line=own.lineno) if sum(crossed) > 1 else None


def _names_at_once(text: Text, line: int) -> list[str]:
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
        return _names_given(statement)
    return []


def _calls_one_of_a_row(text: Text, line: int) -> bool:
    """Whether a statement calls what it takes, one after the other, out of a row from elsewhere:
    `for layer in self.layers`."""
    statement = text.around(line)
    nodes = list(ast.walk(statement)) if statement is not None else []
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    loops = [n for n in nodes if isinstance(n, ast.comprehension)]
    loops += [b for name in called if isinstance(b := _bound_last(text, name, line), ast.For)]
    given = [
        n for n in loops if {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)} & called
    ]
    return any(not isinstance(n.iter, ast.Tuple | ast.List) for n in given)


def _handed_to(text: Text, line: int, place: tuple) -> str | None:
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
            function = text.function(getattr(node.func, "attr", getattr(node.func, "id", "")))
            given = [a.arg for a in function.args.args if a.arg != "self"] if function else []
            number = node.args.index(child)
            return given[number] if number < len(given) else ""
        if not isinstance(node, ast.Call | ast.Attribute):
            return None
    return None


def _place(node: ast.expr) -> tuple:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _handed_on_after(text: Text, names: Sequence[str], line: int, made: Container) -> bool:
    """Whether one of these variables is only handed on somewhere behind a line."""
    function = function_around(text, line)
    return function is not None and any(
        hands_on(n.value) and n.lineno > line and n.lineno not in made and _read(n.value) & {*names}
        for n in own_nodes(function)
        if isinstance(n, ast.Assign)
    )


def _unpacked(text: Text, line: int, outer: Sequence[int]) -> ast.Assign | None:
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


# --- what only hands on ---------------------------------------------------------------------------
def _past_what_hands_on(slip: Slip, text: Text, line: int, made: set) -> Slip | None:
    """The slip, if nothing before it only hands on what its statement uses; at the line that does,
    if it is the only one and a name there says what belongs there; else None."""
    instead = slip.wrong.instead
    between = _handed_on(text, line, made)
    if _took_another(slip) and _chosen_by_a_loop(slip, text, line):
        return None
    if not between:
        return slip
    at = min(between)
    own = text.around(at)
    given = _names_given(own) if isinstance(own, ast.Assign) else []
    if instead is None or len(between) > 1:
        return None
    taken, wanted = (known.name for known in instead)
    proven = any(means(n, wanted) and not means(n, taken) for n in given)
    return replace(slip, line=at) if proven else None


def _chosen_by_a_loop(slip: Slip, text: Text, line: int) -> bool:
    """Whether what meets in the rounds of a loop is chosen by the loop and not by the line."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    own = [judged.like[i] for i in step.inputs if i in judged.like]
    if all(each.whole for each in own):
        return False
    names = text.operands(step) or text.names_at(step)
    bound = [_bound_last(text, name, line) for name in names]
    return any(isinstance(b, ast.For) and line not in _lines(b.iter) for b in bound)


def _in_another_order(judged: Judged, number: int, text: Text) -> bool:
    """Whether the rounds of a loop take the parts of a right tensor in another order: then what
    chose them may be wrong, and not the line."""
    step = judged.steps[number]
    rounds = [i for i, s in enumerate(judged.steps) if (s.place, s.op) == (step.place, step.op)]
    taken: dict[tuple, list[int]] = {}
    for each in rounds if len(rounds) > 1 else ():
        for key, place in _taken(judged, each, text).items():
            taken.setdefault(key, []).append(place)
    rows = [row for row in taken.values() if len(row) == len(rounds)]
    return not all(row in (sorted(row), _again_and_again(row)) for row in rows)


def _again_and_again(row: list[int]) -> list[int]:
    """The different numbers of a row in order, as often as a loop in a loop takes them."""
    one = sorted(set(row))
    return one * (len(row) // len(one))


def _taken(judged: Judged, number: int, text: Text) -> dict[tuple, int]:
    """Which parts of right tensors a line takes from outside for one of its steps, and which right
    tensors of one shape: each kind with its place in the answer's order."""
    step, found = judged.steps[number], {}
    left, seen = list(step.inputs), set()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        like, own = judged.like.get(each), judged.steps[each]
        if text.line(own) == text.line(step) and own.outer == step.outer:
            left += own.inputs
        elif like is not None and like.whole:
            found[own.value.shape] = like.known.place
        if like is not None and not like.whole:
            found[like.known.place, like.axes] = like.index
    return found


def _lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


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


def _handed_on(text: Text, line: int, made: Container) -> set[int]:
    """The lines that only hand on, under other names or in another order, tensors that the
    statement on a line uses. made: the lines on which something is computed."""
    function, statement = function_around(text, line), text.around(line)
    if function is None or statement is None:
        return set()
    found: set[int] = set()
    left, seen = [(name, line) for name in _read(statement)], set()
    while left:
        name, before = left.pop()
        if (name, before) in seen:
            continue
        seen.add((name, before))
        found |= _reordered(function, name, before)
        bound = _bound_last(text, name, before)
        if isinstance(bound, ast.For):
            left += [(n, bound.lineno) for n in _read(bound.iter)]
        elif bound is not None and hands_on(bound.value) and bound.lineno not in made:
            sources = _read(bound.value)
            if any(_is_tensor(text, n, bound.lineno, made) for n in sources):
                found.add(bound.lineno)
            left += [(n, bound.lineno) for n in sources]
    return found


def _is_tensor(text: Text, name: str, before: int, made: Container) -> bool:
    """Whether a variable holds a tensor, or several, as far as the text shows it."""
    bound = _bound_last(text, name, before)
    if isinstance(bound, ast.For):
        return True
    if bound is not None:
        sources = _read(bound.value) if hands_on(bound.value) else ()
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


def _joins_a_row(text: Text, line: int, op: str) -> bool:
    """Whether a statement itself writes down, in order, what it joins: no list from before."""
    statement = text.around(line)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    calls = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == op and n.args]
    rows = [n.args[0] for n in calls]
    return any(
        isinstance(row, ast.Tuple | ast.List) or not hands_on(row) or _turns_a_row(row)
        for row in rows
    )


def _turns_a_row(row: ast.expr) -> bool:
    """Whether an expression itself takes a row in another order: `parts[::-1]`, `reversed(...)`."""
    if isinstance(row, ast.Subscript) and isinstance(row.slice, ast.Slice):
        return row.slice.step is not None
    called = row.func if isinstance(row, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in ("list", "tuple"):
        return bool(row.args) and _turns_a_row(row.args[0])
    return isinstance(called, ast.Name) and called.id == "reversed"


def _read(node: ast.AST) -> set[str]:
    """The variables that a part of the text reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


Binding = ast.Assign | ast.For | ast.NamedExpr


def _names_given(binding: Binding) -> list[str]:
    """The variables that a statement gives a value, from left to right."""
    targets = binding.targets if isinstance(binding, ast.Assign) else [binding.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _bound_last(text: Text, name: str, before: int) -> Binding | None:
    """What gave a variable its value last before a line, in the same function."""
    function = function_around(text, before)
    nodes = own_nodes(function) if function is not None else ()
    found = [n for n in nodes if isinstance(n, Binding) and n.lineno < before]
    found = [n for n in found if name in _names_given(n)]
    return max(found, key=lambda n: n.lineno, default=None)
