"""The line that makes what is wrong, where another only takes it: a mask, a count, a scale, scores
that are not scaled, weights that are none.

The steps show tensors. A number that a loop counts or an object keeps is none, and a mask shows
where it is laid on.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from autograder.tracing.edits.kinds.names import keeps
from autograder.tracing.edits.kinds.source import made_for
from autograder.tracing.look import Told
from autograder.tracing.proof.made import PRODUCTS
from autograder.tracing.text import Text, callee, function_around, made_in, own_nodes

PLACES = ("inverted", "diagonal hidden", "one step late", "past hidden", "top left", "transposed")
PLACES += ("upside down", "square")  # what is wrong with which places are hidden
SHIFTED = re.compile(r"^\d+ places (?:are not|too many are) hidden$|^other places are hidden than")
FILLS = ("masked_fill", "masked_fill_", "where")
OVER_ROWS = ("softmax", "log_softmax", "logsumexp")
LIBRARIES = ("torch", "F", "nn", "functional", "torch.nn.functional", "nn.functional")
AT_A_PLACE = re.compile(r"\bread at (-?\d{1,3})\b")
COPIED = re.compile(r"(\w+) was copied\b")
BY_A_SIZE = "it divides by the root of"  # how a wrong scale is told


def where_it_is_made(told: Told, text: Text, check: str = "") -> Told:
    """What is told, of the line that makes the mask, the count or the scale that is wrong.

    check: the known mistake that explains all, of what is told without one.
    """
    line = told.where.first_wrong
    if line is None:
        return told
    made = _of_its_mask(told, line, text) or _of_its_count(told, line, text)
    made = made or _of_its_scale(told, line, text) or _of_its_place(told, line, text)
    made = made or _of_its_fill(told, line, text)
    made = made or line_of_scores(_check(told) or check, line, text)
    made = made or line_of_copy(told.cause[1] if told.cause else "", line, text)
    if made is None:
        return told
    how = told.where.how and f"in line {line}, which takes it, {told.where.how}"
    where = replace(told.where, first_wrong=made, last_right=None, landmark="", how=how)
    return replace(told, where=where, statement=text.statement(made))


def _check(told: Told) -> str:
    return told.cause[0] if told.cause else ""


# --- a mask --------------------------------------------------------------------------------------
def _of_its_mask(told: Told, line: int, text: Text) -> int | None:
    """Of a line that fills what a mask hides, the one that makes it for that place alone; not where
    its name says that it should be turned round."""
    check = _check(told)
    if not told.cause and SHIFTED.search(told.where.how):  # turned round, it would be so as well
        fill = _where_it_fills(line, text)
        made = made_for(fill, text.source).get(_laid_on(fill, text, turned=True))
        return made or (fill if fill != line else None)
    if not (check.startswith("mask.") and check.endswith(PLACES)):
        return None
    made = made_for(line, text.source)
    return made.get(_laid_on(line, text)) or made.get(_filled_up_to(line, text))


def _of_its_fill(told: Told, line: int, text: Text) -> int | None:
    """Of a line that takes weights which were masked after the softmax, the one that masks them for
    that place alone: what is divided by its sums there would be right."""
    if not _check(told).endswith("after softmax") or _fills(line, text):
        return None
    made = {at for at in made_for(line, text.source).values() if _fills(at, text)}
    return made.pop() if len(made) == 1 else None


def _fills(line: int, text: Text) -> bool:
    """Whether a statement fills what a mask hides."""
    inside = ast.walk(text.around(line) or ast.Module([], []))
    return any(isinstance(n, ast.Call) and callee(n) in FILLS for n in inside)


def _filled_up_to(line: int, text: Text) -> str:
    """The one variable that says up to where, or from where on, a row of a mask is filled; ''
    where there is none, or more."""
    target = next(iter(getattr(text.around(line), "targets", ())), None)
    slices = [n for n in ast.walk(target) if isinstance(n, ast.Slice)] if target is not None else []
    names = {n.id for each in slices for n in ast.walk(each) if isinstance(n, ast.Name)}
    return names.pop() if len(names) == 1 else ""


def _where_it_fills(line: int, text: Text) -> int:
    """The line itself, where it fills what a mask hides; of one that takes what was filled, as a
    softmax does, the one line before that does so, if it is one."""
    function = function_around(text, line)
    inside = own_nodes(function) if function is not None else ()
    calls = (n for n in inside if isinstance(n, ast.Call) and callee(n) in FILLS and n.args)
    lines = {text.first_line(n.lineno) for n in calls if n.lineno <= line}
    return lines.pop() if len(lines) == 1 else line


def _laid_on(line: int, text: Text, turned: bool = False) -> str:
    """The one variable that says, just as it is, what a statement fills; '' where there is none, or
    its name says that it should be turned round. turned: whether it may be turned there."""
    inside = ast.walk(text.around(line) or ast.Module([], []))
    fills = [n for n in inside if isinstance(n, ast.Call) and callee(n) in FILLS and n.args]
    given = [n.args[0] for n in fills]
    given = [getattr(n, "operand", n) for n in given] if turned else given
    masks = [n for n in given if isinstance(n, ast.Name)]
    return masks[0].id if len(masks) == 1 and (turned or keeps(masks[0]) is not True) else ""


# --- a number ------------------------------------------------------------------------------------
def _of_its_count(told: Told, line: int, text: Text) -> int | None:
    """Of a line that divides by what a loop counts, `total / count`, the one that counts: what is
    divided was right, or told before."""
    by = _divisor(line, text) if told.cause else None
    if not isinstance(by, ast.Name):
        return None
    counts = [n for n in text.nodes if isinstance(n, ast.AugAssign) and text.of(n.target) == by.id]
    begun = [value for name, value in _kept(text) if name == by.id]
    zero = len(begun) == 1 and isinstance(begun[0], ast.Constant)
    return counts[0].lineno if zero and len(counts) == 1 else None


def _of_its_scale(told: Told, line: int, text: Text) -> int | None:
    """Of a line that scales by what the object keeps, the one that computes it for that place."""
    node = text.around(line)
    if BY_A_SIZE not in told.where.how or node is None:
        return None
    factors = {text.of(n.right) for n in ast.walk(node) if isinstance(n, ast.BinOp)}
    made = [(name, v) for name, v in _kept(text) if name in factors and name.startswith("self.")]
    name, value = made[0] if len(made) == 1 else ("", None)
    named = [n for n in text.nodes if isinstance(n, ast.Attribute) and text.of(n) == name]
    computed = isinstance(value, ast.BinOp | ast.Call) and len(named) == 2  # there and here
    return value.lineno if computed else None


def _of_its_place(told: Told, line: int, text: Text) -> int | None:
    """Of a line that takes what was read at a place, the one that reads it there for that line
    alone, where a known mistake's words tell which place that is: `stream = x[:, -1]`."""
    said = AT_A_PLACE.search(told.cause[1]) if told.cause else None
    if said is None or _reads_at(line, said[1], text):
        return None
    made = {at for at in made_for(line, text.source).values() if _reads_at(at, said[1], text)}
    return made.pop() if len(made) == 1 else None


def _reads_at(line: int, place: str, text: Text) -> bool:
    """Whether a statement has a number in an index."""
    inside = ast.walk(text.around(line) or ast.Module([], []))
    slices = [n.slice for n in inside if isinstance(n, ast.Subscript)]
    parts = [p for each in slices for p in getattr(each, "elts", [each])]
    return place in map(text.of, parts)


# --- scores and weights --------------------------------------------------------------------------
def line_of_scores(check: str, line: int, text: Text) -> int | None:
    """Of a line that takes scores which nobody scaled, the product that makes them; of one that
    takes weights of which no softmax was taken, the line that gives them this name."""
    node = text.around(line)
    if node is None or not check.endswith(("scale.missing", "softmax.missing")):
        return None
    scales = check.endswith("scale.missing")
    name, before = _taken(node, scales, text), node.lineno
    while name:
        made = [n for n in text.nodes if isinstance(n, ast.Assign) and n.lineno < before]
        own = [(n, v) for n in made for target, v in made_in(n) if text.of(target) == name]
        last, value = own[-1] if own else (None, None)
        if last is None or (not scales and not _is_another_name(value, name)):
            return None
        if not scales or _has_product(value):
            return last.lineno
        own_names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        name, before = (name, last.lineno) if name in own_names else ("", 0)
    return None


def _taken(node: ast.stmt, scales: bool, text: Text) -> str:
    """The variable that a softmax is taken of, or that is multiplied with the values."""
    for n in ast.walk(node):
        if scales and isinstance(n, ast.Call) and callee(n) in OVER_ROWS:
            own = isinstance(n.func, ast.Attribute) and text.of(n.func.value) not in LIBRARIES
            of = n.func.value if own else (n.args[0] if n.args else n)
            return of.id if isinstance(of, ast.Name) else ""
        if not scales and isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
            left = n.left.value if isinstance(n.left, ast.Subscript) else n.left
            return left.id if isinstance(left, ast.Name) else ""
    return ""


def _has_product(node: ast.AST) -> bool:
    """Whether tensors are multiplied there, row with row."""
    return any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult))
        or (isinstance(n, ast.Call) and callee(n) in PRODUCTS)
        for n in ast.walk(node)
    )


def _is_another_name(value: ast.expr, name: str) -> bool:
    """Whether what is kept is another variable, as it is or with some numbers dropped."""
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self", *LIBRARIES}
    calls = {callee(n) for n in ast.walk(value) if isinstance(n, ast.Call)}
    plain = isinstance(value, ast.Name | ast.Call) and all("drop" in c for c in calls)
    return plain and len(names) == 1 and name not in names


def line_of_copy(words: str, line: int, text: Text) -> int | None:
    """Of a line that calls a layer whose weights were copied in a wrong way, the one that copies
    them: `mine.mix.weight.copy_(weight)`, `mine.mix.weight.data = weight`."""
    found = COPIED.match(words)
    if found is None or "copy_" in text.statement(line):
        return None
    own = f".{found[1]}.weight"
    calls = (n for n in text.nodes if isinstance(n, ast.Call) and callee(n) == "copy_")
    filled = [n.func.value for n in calls]
    filled += [t for n in text.nodes if isinstance(n, ast.Assign) for t in n.targets]
    texts = ((n.lineno, text.of(n).removesuffix(".data")) for n in filled)
    lines = {line for line, of in texts if of.endswith(own)}
    return lines.pop() if len(lines) == 1 else None


def _divisor(line: int, text: Text) -> ast.expr | None:
    value = getattr(text.around(line), "value", None)
    divides = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
    return value.right if divides else None


def _kept(text: Text) -> list[tuple[str, ast.expr]]:
    """What gets a value, by its text, with the value."""
    made = (n for n in text.nodes if isinstance(n, ast.Assign))
    return [(text.of(target), value) for node in made for target, value in made_in(node)]
