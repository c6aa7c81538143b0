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
from autograder.tracing.text import Text

KINDS = (MISSING, "wrong width", "shape", "lost bias")  # how checks about layers may end
# Checks on what dropout is applied to: it is applied, but in the wrong place.
DROPPED_ELSEWHERE = ("dropout.on the scores", "dropout.not on the weights", "dropout.on features")
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
    if finding.check in DROPPED_ELSEWHERE and finding.line is None:
        return _where_it_drops(finding, text)
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
    layers = {name for name in text.attributes if text.sets(name, "Dropout")}
    lines = set()
    for call in (n for n in text.nodes if isinstance(n, ast.Call)):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        statement = text.around(call.lineno)
        if statement is not None and (called in layers or called in ("dropout", "dropout_")):
            lines.add(statement.lineno)
    if len(lines) != 1:
        return finding
    line = lines.pop()
    where = Where(last_right=None, first_wrong=line, how="what is dropped here is something else")
    return replace(finding, where=where, line=line, statement=text.statement(line))


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
