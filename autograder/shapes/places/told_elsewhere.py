"""What is said of a tensor at another place of the file: by the function that makes it, by another
line that makes the same variable with the same shape, where it is returned, in a text above it, or
in the docstring of a class; or behind it in words that nobody can read as a shape.

As with `told_before`, nothing is proven by it; but nobody can say that such a shape is missing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from autograder.shapes.match import results
from autograder.shapes.places.docstrings import docstrings_of_classes, texts_by_end
from autograder.shapes.places.told_before import Told, has_shape, named, tells_a_shape, told_of
from autograder.shapes.text.lexer import tokens
from autograder.shapes.tracer import Function, Stmt, flat, syntax_of

CALLED = re.compile(r"((?:self\.)?\w+)\(")
CALLS = ("forward", "__call__")
NEAR = 3  # lines around, on which a comment may tell it as well
LONG = 3  # letters of a name that a docstring of another class may speak of


def is_told_elsewhere(stmt: Stmt, room) -> bool:
    """Whether another place of the file tells the shape of what a statement makes."""
    return (
        _by_what_it_calls(stmt, room)
        or (stmt.kind == "return" and room.tells_its_result(room.function))
        or _by_its_name(stmt, room)
        or _by_what_is_returned(stmt, room)
        or _the_same_as_another(stmt, room)
        or _by_a_class(stmt, room)
        or _where_it_is_returned(stmt, room)
        or _by_a_text_above(stmt, room)
        or tells_a_shape(stmt.line, stmt.end_line, room)
    )


# --- the function that makes it ------------------------------------------------------------------
def _by_what_it_calls(stmt: Stmt, room) -> bool:
    """`x = self.split(x)`, where `split` says what it returns."""
    node = room.matcher.node(stmt)
    found = CALLED.match(node.text) if node.kind == "Call" else None
    if found is None or found[1].rpartition(".")[2] != node.op:
        return False
    return any(room.tells_its_result(f) for f in _functions(found[1], room))


def _functions(name: str, room) -> list[Function]:
    """The functions of the file that a name calls: a method, what a layer's class is called with,
    or a function of its own."""
    every, owner = room.source.traced.functions, room.function.owner
    if not name.startswith("self."):
        return [f for f in every if f.name == name and not f.owner]
    own = [f for f in every if f.owner == owner and f.name == name.removeprefix("self.")]
    made = [s for s in room.source.traced.stmts if name in flat(s.targets)]
    within = {f.id for f in every if f.owner == owner}
    texts = [room.matcher.node(s).text for s in made if s.function in within]
    layers = {m[1] for m in map(CALLED.match, texts) if m}
    return own or [f for f in every if f.owner in layers and f.name in CALLS]


def tells_its_result(function: Function, room) -> bool:
    """Whether the docstring of a function, its head or each of its `return` lines tells a shape."""
    source = room.source
    told = told_of(function, source.lines, source.given.lines, room.vocabulary)
    if told.result:
        return True
    behind = {c.line: c.text for c in source.comments if not c.own}
    head = behind.get(function.doc_line - 1, behind.get(function.line, ""))
    if head and named(head) not in function.parameters and has_shape(head, room.vocabulary):
        return True
    ends = [s for s in source.of(function) if s.kind == "return"]
    lines = [behind.get(s.end_line, behind.get(s.line, "")) for s in ends]
    return bool(lines) and all(has_shape(text, room.vocabulary) for text in lines)


# --- the same variable ---------------------------------------------------------------------------
def _by_its_name(stmt: Stmt, room) -> bool:
    """Whether a true comment tells the same variable with the same shape on another line, and none
    stands behind this one that tells something else."""
    if _has_a_comment(stmt, room):
        return False
    others = [room.stmts[i] for i in room.tellers if i != stmt.id]
    return any(_is_the_same(stmt, s, room) for s in others if _names(s) & _names(stmt))


def _by_what_is_returned(stmt: Stmt, room) -> bool:
    """Whether it makes what is returned, by its name and with its shape, of which a text tells."""
    ends = [s for s in room.stmts.values() if s.kind == "return"] if room.told_before.result else []
    return any(_is_one_of(stmt, s, room) for s in ends if _returned(s, room) & _names(stmt))


def _returned(end: Stmt, room) -> set[str]:
    """The names that are returned as they are: `return out, probs`."""
    parts = room.matcher.node(end).text.strip("()").split(",")
    return {part.strip() for part in parts if part.strip().isidentifier()}


def _is_one_of(stmt: Stmt, end: Stmt, room) -> bool:
    """Whether each shape that a statement makes is of something that is returned."""
    one, row = _shapes(stmt, room), _shapes(end, room)
    both = one.keys() & row.keys()
    returned = {key: {s for shapes in row[key] for s in shapes} for key in both}
    return bool(both) and all({*shapes} <= returned[k] for k in both for shapes in one[k])


def _has_a_comment(stmt: Stmt, room) -> bool:
    return any("#" in line for line in room.source.lines[stmt.line - 1 : stmt.end_line])


def _the_same_as_another(stmt: Stmt, room) -> bool:
    """Whether a comment near says that its shape is the same as that of this variable."""
    for s in room.sightings:
        found = tokens(s.text)
        near = abs(s.line - stmt.line) <= NEAR and any(t.kind == "same" for t in found)
        if near and _names(stmt) & {t.text for t in found}:
            return True
    return False


def _names(stmt: Stmt) -> set[str]:
    return set(flat(stmt.targets))


def _is_the_same(one: Stmt, other: Stmt, room) -> bool:
    """Whether two statements make the same shapes for the same sizes."""
    sizes = [_shapes(stmt, room) for stmt in (one, other)]
    both = sizes[0].keys() & sizes[1].keys()
    return bool(both) and all(sizes[0][key] == sizes[1][key] for key in both)


def _shapes(stmt: Stmt, room) -> dict[int, set]:
    """The shapes that a statement makes, by the sizes of the run."""
    found: dict[int, set] = {}
    for e in room.runs[stmt.id]:
        found.setdefault(e.config, set()).add(tuple(results(stmt, e)))
    return found


# --- what stands beside it ------------------------------------------------------------------------
def _where_it_is_returned(stmt: Stmt, room) -> bool:
    """Whether a `return` tells the shape of a variable behind its name: `"out": out,  # [b, t]`,
    or `return out, probs  # [b, t], [b, h, t, t]`; or a comment above `return out`, which has the
    same shape."""
    for end in (s for s in room.order if s.kind == "return" and s.line > stmt.end_line):
        node = syntax_of(end, room.source.lines)
        value = getattr(node, "value", None)
        above = tells_a_shape(end.line - 1, end.line - 1, room, alone=True)
        itself = isinstance(value, ast.Name) and value.id in _names(stmt)
        if above and itself and _is_the_same(stmt, end, room):
            return True
        parts = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
        for part in parts:
            line = end.line + part.lineno - 1
            own = isinstance(part, ast.Name) and part.id in _names(stmt)
            if own and tells_a_shape(line, line, room):
                return True
    return False


def _by_a_text_above(stmt: Stmt, room) -> bool:
    """Whether a text of its own, as docstrings are written, tells a shape right above."""
    above = texts_by_end(room.source.source).get(stmt.line - 1, "")
    return any(has_shape(line, room.vocabulary) for line in above.splitlines())


# --- a class -------------------------------------------------------------------------------------
def _by_a_class(stmt: Stmt, room) -> bool:
    """Whether the docstring of the class, or of what makes its objects, tells what a statement
    makes or returns, or that of another class a tensor of a name that is long enough to be it."""
    own = _names(stmt)
    ends = stmt.kind == "return" and room.function.name in CALLS
    for name, text in room.texts_of_classes:
        mine = name == room.function.owner
        named = {n for n in own if n in text and (mine or len(n) >= LONG)}
        if not named and not (mine and ends):
            continue
        told = room.told_by_class(text)
        if named & told.names or (mine and ends and told.result):
            return True
    return False


def told_by_class(text: str, room) -> Told:
    """What the docstring of a class tells."""
    part = replace(room.function, docstring=text, doc_line=1, line=0)
    return told_of(part, [], room.source.given.lines, room.vocabulary)


def texts_of_classes(room) -> list[tuple[str, str]]:
    """The docstrings of the classes, and of what makes their objects, by the classes' names."""
    of_classes = docstrings_of_classes(room.source.source)
    making = [f for f in room.source.traced.functions if f.name == "__init__" and f.docstring]
    texts = [(name, text) for name, (text, _) in of_classes.items() if text]
    return texts + [(f.owner, f.docstring) for f in making]
