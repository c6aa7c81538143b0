"""Layers that are not as they were asked for: the lines that make them.

What is said of a layer names it as the student does; the line is the one statement of the cell that
sets an attribute of this name. Where several do, or none, no line is told.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from autograder.course.asking import Finding, Where
from autograder.judging.look_again import MISSING, PREFIX
from autograder.tracing.text import Text, callee, function_around

KINDS = (MISSING, "wrong width", "shape", "lost bias")  # how checks about layers may end
# Checks on what dropout is applied to: it is applied, but in the wrong place.
DROPPED_ELSEWHERE = ("dropout.on the scores", "dropout.not on the weights", "dropout.on features")
DROPPED_BEHIND = ("dropout.not on the weights", "dropout.on features", "dropout.on the output")
LAYER = r"`(\w[\w.]*)`"
# (what is said of layers, how their line goes wrong); the groups hold names of the student's own
SAID = (
    (r"Your (?:layer|parameter)s? (?:is|are) called (.+?); the exercise asks for",
     "what is made here has another name than asked for"),
    (rf"there is no `[\w.]+`, but {LAYER} of the same sizes",
     "what is made here has another name than asked for"),
    (r"Your layers? (.+?) does? the work of",
     "what is made here does the work of what is asked for"),
    (r"`(\w[\w.]*?)(?:\.weight)?` has shape", "the layer made here has other sizes than asked for"),
    (rf"{LAYER} has no bias\.", "the layer made here has no bias"),
    (r"does not register `(\w[\w.]*?)(?:\.\w+)?`", "nothing that could be trained is made here"),
    (rf"{LAYER} and {LAYER} are one layer", "one layer is set under two names"),
)  # fmt: skip


def with_lines(found: list[Finding], text: Text) -> list[Finding]:
    """The findings, those that speak of layers with the line that makes the first of them."""
    return [_placed(f, text) if f.fails and f.where is None else f for f in found]


def _placed(finding: Finding, text: Text) -> Finding:
    if finding.check in (*DROPPED_ELSEWHERE, *DROPPED_BEHIND) and finding.line is None:
        twice = _with_both(finding, text) if finding.check in DROPPED_BEHIND else None
        return twice or _where_it_drops(finding, text)
    kind = finding.check.rpartition(" + ")[2].split(".")[-1]
    if not (finding.check.startswith(PREFIX) or kind in KINDS):
        return finding
    for pattern, how in SAID:
        said = re.search(pattern, finding.message)
        if said is None:
            continue
        quoted = " ".join(f"`{group}`" for group in said.groups())
        names = list(dict.fromkeys(re.findall(r"(\w+)(?:\.\w+)*`", quoted.replace("``", "`"))))
        lines = [line for line in (_made_in(text, name) for name in names) if line is not None]
        if not lines:
            return finding
        others = [str(n) for n in sorted({*lines}) if n != min(lines)]
        last = " and ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
        more = f", and so in line{'s' * (len(others) > 1)} {last}" if others else ""
        where = Where(last_right=None, first_wrong=min(lines), how=f"{how}{more}")
        if finding.line is not None:  # an error has a place of its own
            return finding
        statement = text.statement(min(lines))
        return replace(finding, where=where, line=min(lines), statement=statement)
    return finding


def _where_it_drops(finding: Finding, text: Text) -> Finding:
    """A finding that something else is dropped than asked for, with the one line that drops."""
    lines = {statement.lineno for _, statement in _drops(text)}
    if len(lines) != 1:
        return finding
    line = lines.pop()
    where = Where(last_right=None, first_wrong=line, how="what is dropped here is something else")
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _drops(text: Text) -> list[tuple[ast.Call, ast.stmt]]:
    """The calls of dropout, each with its statement."""
    layers = {name for name in text.attributes if text.sets(name, "Dropout")}
    found = []
    for call in (n for n in text.nodes if isinstance(n, ast.Call)):
        called = callee(call)
        statement = text.around(call.lineno)
        if statement is not None and (called in layers or called in ("dropout", "dropout_")):
            found.append((call, statement))
    return found


def of_dropout(text: Text) -> str:
    """What the text shows to be wrong with dropout, in words; '' where it shows nothing."""
    lines, unused, behind = dropped_twice(text), never_used(text), dropped_behind(text)
    if lines is not None:
        return says_twice(lines)
    if unused is not None:
        return says_unused(*unused)
    return says_behind(behind) if behind is not None else ""


def dropped_twice(text: Text) -> tuple[int, int] | None:
    """The lines where a function drops what a softmax gave, and something behind it once more; None
    where the text does not show just that."""
    drops = sorted(_drops(text), key=lambda each: each[0].lineno)
    if len(drops) != 2 or any(not call.args for call, _ in drops):
        return None
    (first, at), (second, behind) = drops
    functions = [function_around(text, line.lineno) for line in (at, behind)]
    if behind.lineno <= at.lineno or functions[0] is not functions[1]:
        return None
    if not _of_a_softmax(first.args[0], text) or _of_a_softmax(second.args[0], text):
        return None
    return at.lineno, behind.lineno


def says_twice(lines: tuple[int, int]) -> str:
    """That dropout acts twice, in words."""
    return (
        f"Dropout acts twice: on what the softmax gives, in line {lines[0]}, and once more in line "
        f"{lines[1]}. Only the first is asked for."
    )


def never_used(text: Text) -> tuple[int, str] | None:
    """The one dropout layer that a cell makes and nowhere uses, where nothing else drops: its line
    and its name."""
    names = [name for name in sorted(text.attributes) if text.sets(name, "Dropout")]
    read = {n.attr for n in text.nodes if isinstance(n, ast.Attribute) and not _is_stored(n)}
    alone = len(names) == 1 and names[0] not in read and not _drops(text)
    line = _made_in(text, names[0]) if alone else None
    calls = [n for n in text.nodes if isinstance(n, ast.Call)]
    by_name = any(callee(n) in ("getattr", "children", "modules") for n in calls)
    return (line, names[0]) if line is not None and not by_name else None


def says_unused(line: int, name: str) -> str:
    """That a dropout layer does nothing, in words."""
    return f"`self.{name}`, made in line {line}, is used nowhere, so that nothing is dropped."


def dropped_behind(text: Text) -> int | None:
    """The line of the one dropout, where it drops what weights and values make together; None where
    the text does not show just that."""
    drops = _drops(text)
    if len(drops) != 1 or not drops[0][0].args or not _mixes(drops[0][0].args[0], text):
        return None
    return drops[0][1].lineno


def says_behind(line: int) -> str:
    """That dropout acts behind the weights, in words."""
    return (
        f"Dropout acts, in line {line}, on what the weights make of the values, and not on the "
        "weights."
    )


def _mixes(node: ast.expr, text: Text) -> bool:
    """Whether an expression is a product of what a softmax gave, with no dropout in it."""
    if isinstance(node, ast.Name):
        value = text.assigned(node.id, node.lineno)
        return value is not None and _mixes(value, text)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult) and _of_a_softmax(node.left, text)
    if not isinstance(node, ast.Call) or callee(node) not in ("matmul", "bmm", "einsum"):
        return False
    inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return any(_of_a_softmax(each, text) for each in (*inner, *node.args))


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _with_both(finding: Finding, text: Text) -> Finding | None:
    """A finding of dropout behind the weights, where the text drops what a softmax gave as well."""
    lines = dropped_twice(text)
    if lines is None:
        return None
    _, result, rest = finding.message.partition(" The result has")
    message, line = f"{says_twice(lines)}{result}{rest}", lines[1]
    where = Where(last_right=lines[0], first_wrong=line, how="it is dropped a second time here")
    statement = text.statement(line)
    return replace(finding, message=message, where=where, line=line, statement=statement)


def _of_a_softmax(node: ast.expr, text: Text) -> bool:
    """Whether an expression is what a softmax gave, perhaps with a mask multiplied in."""
    if isinstance(node, ast.Name):
        value = text.assigned(node.id, node.lineno)
        return value is not None and _of_a_softmax(value, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return _of_a_softmax(node.left, text)
    if not isinstance(node, ast.Call):
        return False
    called = callee(node)
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    made = called in ("masked_fill", "nan_to_num") and inner is not None
    return called == "softmax" or (made and _of_a_softmax(inner, text))


def _made_in(text: Text, name: str) -> int | None:
    """The line of the one statement that sets `self.name`, or registers something as `name`."""
    found = set()
    for node in text.statements:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        parts = [p for t in targets if t is not None for p in ast.walk(t)]
        if any(_is_own(part, name) for part in parts):
            found.add(node.lineno)
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            first = call.args[0] if call.args else None
            named = isinstance(first, ast.Constant) and first.value == name
            if named and call.func.attr in ("register_parameter", "register_module", "add_module"):
                found.add(node.lineno)
    return found.pop() if len(found) == 1 else None


def _is_own(node: ast.AST, name: str) -> bool:
    own = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
    return own and isinstance(node.value, ast.Name)
