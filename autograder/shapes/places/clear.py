"""Whether the shape of a line without a comment is clear to a reader all the same.

Nothing is said of such a line where a file is read; in homework that asks for comments it counts.
"""

from __future__ import annotations

import ast

from autograder.shapes.doubts.facts import NEAR
from autograder.shapes.match import as_many, results
from autograder.shapes.places.attach import Sighting
from autograder.shapes.recording import Execution, Tensor, tensors
from autograder.shapes.text.lexer import tokens
from autograder.shapes.tracer import Stmt, flat, parsed, syntax_of

COUNTS = ("arange", "linspace")  # give a row of numbers
SHAPES = ("shape", "size")
# What makes the same shape of the same.
OPPOSITE = ({"minimum", "maximum"}, {"min", "max"}, {"amin", "amax"}, {"sin", "cos"})
OPPOSITE += ({"argmin", "argmax"}, {"floor", "ceil"}, {"tril", "triu"})


def is_clear(stmt: Stmt, after: Stmt | None, room) -> bool:
    """Whether a reader knows the shape all the same: the line keeps that of what it takes, spells
    its axes, or is told of by what stands around it."""
    return (
        all(_keeps(stmt, e, room) for e in room.runs[stmt.id])
        or _says_it_itself(stmt, room)
        or _is_asserted(stmt, room)
        or _is_kept_by(after, stmt, room)
        or any(_of_the_same_kind(s, stmt, room) for s in room.placed)
    )


def _keeps(stmt: Stmt, execution: Execution, room) -> bool:
    """Whether all that is made has the shape of a variable that the statement takes: `x.relu()`."""
    seen, taken = dict(execution.events), set()
    for number, value in execution.events:
        node = room.source.traced.nodes[number]
        turned = any(tensors(seen.get(part)) for part in node.operands)  # `x.T`, `s.max(-1).values`
        if node.kind in ("Name", "Attribute") and isinstance(value, Tensor) and not turned:
            taken.add(value.shape)
    return taken.issuperset(results(stmt, execution))


def _says_it_itself(stmt: Stmt, room) -> bool:
    """Whether the code spells the axes: `rearrange(x, "b t (h d) -> b h t d")`, `arange(n)`."""
    value = parsed(room.matcher.node(stmt).text)
    node = syntax_of(stmt, room.source.lines) if value is None else value
    if node is None:
        return False
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    if any(isinstance(text, str) and "->" in text for text in texts):
        return True
    one = isinstance(node, ast.Call) and room.matcher.node(stmt).op in COUNTS
    return one and all(len(s) == 1 for e in room.runs[stmt.id] for s in results(stmt, e))


def _is_asserted(stmt: Stmt, room) -> bool:
    """Whether an `assert` right below is about the shape of what it makes."""
    own = set(flat(stmt.targets))
    below = room.source.lines[stmt.end_line : stmt.end_line + NEAR]
    asserts = (
        {t.text for t in tokens(line)} for line in map(str.strip, below) if line[:6] == "assert"
    )
    return any(found & {f"{name}.{shape}" for name in own for shape in SHAPES} for found in asserts)


def _is_kept_by(after: Stmt | None, stmt: Stmt, room) -> bool:
    """Whether what follows keeps its shape, and is told of: `x = drop(x)  # [b, t, d]`."""
    if (
        after is None
        or after.line > stmt.end_line + NEAR
        or not set(flat(stmt.targets)) & words_of(after, room)
    ):
        return False
    behind = any(s.trailing and after.id in s.stmts for s in room.sightings)
    return behind and all(_keeps(after, e, room) for e in room.runs[after.id])


def _of_the_same_kind(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether a true comment stands behind a line next to it that does the same: one for q, k and
    v."""
    if not sighting.trailing:
        return False
    other, node = room.stmts[sighting.stmts[0]], room.matcher.node(stmt)
    near = abs(other.line - stmt.line) <= NEAR and other.kind == stmt.kind == "assign"
    ops = {node.op, room.matcher.node(other).op}
    same = node.op != "" and (len(ops) == 1 or ops in OPPOSITE)
    return near and same and as_many(sighting, stmt, room)


def words_of(stmt: Stmt, room) -> set[str]:
    """The names in what a statement makes, without what they are asked for."""
    return {t.text.split(".")[0] for t in tokens(room.matcher.node(stmt).text) if t.word}
