"""A student's program as text and syntax, and texts that differ from it in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from autograder.tracing.text import LONGEST, callee, is_docstring, made_in, means

SIMPLE = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple)
LIBRARIES = ("torch", "F", "math", "np", "nn")
NATURAL = 2  # the rank of a slip up to which it is easily made
DEFINES = (ast.FunctionDef, ast.ClassDef)
OF_LISTS = ("append", "extend", "insert")  # methods that fill a list, and give nothing
GROWS = (*OF_LISTS, "add", "update")  # those, and what fills a set or a table
FILLS = re.compile(rf"^(?:{'|'.join(OF_LISTS)}|add)$")
CHANGES = re.compile(r"[a-z\d]_$")  # and those that change the tensor which they are of
QKV = re.compile("quer|key|value")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Edit:
    """One small change of a program.

    line: where its statement begins; at: the line of the change itself. how: what is wrong there,
    if the change makes it right, as a clause that tells no cure. source: the program with the
    change. rank: how natural a slip it undoes; the smallest first.
    """

    line: int
    how: str
    source: str
    rank: int = 0
    place: tuple[int, int] = (0, 0)  # of what is changed, in the text
    at: int = 0
    new: str = ""  # what stands there then
    takes: bool = False  # whether it takes a step away, and puts none in its place
    by_name: bool = False  # whether it is about which of several is meant: names may be wrong
    unsure: bool = False  # whether the slip may as well stand where the name is made
    missing: bool = False  # whether it puts in a step, which could stand elsewhere, too
    copies: bool = False  # whether it makes a tensor anew where one is changed in place

    def told_of(self, line: int | None) -> Edit:
        """The same, told of another line, where one is given."""
        return replace(self, line=line, at=line) if line else self

    def behind(self, first: Edit, text: str) -> Edit:
        """The same of a program that another change made of a text, told of the text's lines: what
        a change moves moves the lines below, too."""
        line, at = (line_before(n, first.source, text) for n in (self.line, self.at))
        return replace(self, line=line, at=at)

    @property
    def is_natural(self) -> bool:
        """Whether it undoes a slip that is easily made, and stands where that is made."""
        return self.rank <= NATURAL and not (self.missing or self.by_name or self.unsure)

    def after(self, other: Edit) -> str | None:
        """The program with both changes; None where they are of one place."""
        (start, end), (first, last) = self.place, other.place
        if start < last and first < end:
            return None
        if first >= end:  # what stands behind it moves
            by = len(self.new) - (end - start)
            first, last = first + by, last + by
        return self.source[:first] + other.new + self.source[last:]


class Source:
    """The text of a cell with its syntax. Raises SyntaxError or ValueError for what is none."""

    def __init__(self, text: str):
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.parent: dict[ast.AST, ast.AST] = {}
        self._inside: dict[ast.AST, list[ast.AST]] = {}
        self._found: dict[Hashable, object] = {}
        for node in self.inside(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
        calls = [n for n in self.inside(self.tree) if isinstance(n, ast.Call)]
        self.called = {callee(n) for n in calls}  # the names of what is called

    def inside(self, node: ast.AST) -> list[ast.AST]:
        """All syntax of a node; looked for once."""
        if node not in self._inside:
            self._inside[node] = list(ast.walk(node))
        return self._inside[node]

    def calls(self, node: ast.AST) -> list[ast.Call]:
        """All calls in a node."""
        return [n for n in self.inside(node) if isinstance(n, ast.Call)]

    def once(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """What is found of the text; looked for once."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    def names(self, node: ast.AST) -> list[ast.Name]:
        """All variables that stand in a node."""
        return self.once(
            ("names", node), lambda: [n for n in self.inside(node) if isinstance(n, ast.Name)]
        )

    def functions(self) -> Iterator[ast.FunctionDef]:
        """All functions and methods."""
        return (n for n in self.inside(self.tree) if isinstance(n, ast.FunctionDef))

    def defined(self) -> set[str]:
        """The names of the functions and methods of the text."""
        return self.once("defined", lambda: {function.name for function in self.functions()})

    def nodes(self) -> Iterator[ast.AST]:
        """All syntax inside of functions, and of their defaults, in the order of the text; behind
        it what stands at the top of the text and of its classes, as settings do."""
        yield from self._in_functions()
        for top in self.inside(self.tree):
            if isinstance(top, ast.Module | ast.ClassDef):
                made = [s.value for s in top.body if isinstance(s, ast.Assign)]
                yield from (node for value in made for node in self.inside(value))

    def _in_functions(self) -> Iterator[ast.AST]:
        for function in self.functions():
            if any(isinstance(n, ast.FunctionDef) for n in self.around(function)):
                continue  # it is part of the one around it
            for default in (*function.args.defaults, *function.args.kw_defaults):
                yield from self.inside(default) if default is not None else ()
            for statement in function.body:
                if not is_docstring(statement):
                    yield from self.inside(statement)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, the nearest first."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """The function that a node stands in, the nearest."""
        return self.once(("function", node), lambda: next(iter(self.functions_around(node)), None))

    def functions_around(self, node: ast.AST) -> list[ast.FunctionDef]:
        """The functions that a node stands in, the nearest first."""
        return [n for n in self.around(node) if isinstance(n, ast.FunctionDef)]

    def made(self, function: ast.FunctionDef, name: str) -> list[ast.expr]:
        """What the statements of a function give a variable, each to it alone."""
        assigned = (n for n in self.inside(function) if isinstance(n, ast.Assign))
        return [n.value for n in assigned if [self.of(t) for t in n.targets] == [name]]

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node stands in."""
        if isinstance(node, ast.stmt):
            return node
        return self.once(("statement", node), lambda: self.statement(self.parent[node]))

    def given_to(self, node: ast.AST) -> str:
        """What the statement of a node gives its value to, as it is written; '' for nothing."""
        return ", ".join(map(self.of, getattr(self.statement(node), "targets", ())))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends in the text."""
        return self._at(node.lineno, node.col_offset), self._at(
            node.end_lineno, node.end_col_offset
        )

    def _at(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self.starts[line - 1] + column

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def shown(self, node: ast.AST) -> str:
        """The text of a node in one line and shortened, as it stands in a sentence."""
        text = " ".join(self.of(node).split()).replace("`", "'")
        return text if len(text) <= LONGEST else text[:LONGEST] + " ..."

    def in_brackets(self, node: ast.AST) -> str:
        """The text of a node such that an operator may stand beside it."""
        return self.of(node) if isinstance(node, SIMPLE) else f"({self.of(node)})"

    def in_front(self, node: ast.stmt, text: str) -> str:
        """A statement with another one in front of it, in a line of its own."""
        return f"{text}\n{' ' * node.col_offset}{self.of(node)}"

    def last_step(self, call: ast.Call) -> str:
        """The method of a call, as it stands behind what it is of: `.unsqueeze(1)`."""
        start, end = self.span(call.func.value)[1], self.span(call)[1]
        return self.text[start:end].lstrip(") \n")

    def with_text(self, node: ast.AST, new: str, how: str, rank: int = 0) -> Edit:
        """The program with another text in the place of a node, the lines as they were."""
        start, end = self.span(node)
        return self.with_span(node, (start, end), new, how, rank)

    def with_a_copy(self, node: ast.AST, new: str, how: str, rank: int) -> Edit:
        """The same, where what is changed in place is made anew."""
        return replace(self.with_text(node, new, how, rank), copies=True)

    def with_expression(self, node: ast.expr, new: str, how: str, rank: int = 0) -> Edit:
        """The same for an expression, which keeps to itself."""
        return self.with_text(node, f"({new})", how, rank)

    def with_parts(
        self, node: ast.AST, new: Mapping[ast.AST, str], how: str, rank: int = 0
    ) -> Edit:
        """The same for several parts of a node, each with its new text."""
        return self.with_span(node, self.span(node), self.instead(node, new), how, rank)

    def instead(self, node: ast.AST, new: Mapping[ast.AST, str]) -> str:
        """What stands there for a node, with other texts in the place of parts of it."""
        start, text = self.span(node)[0], self.of(node)
        for part in sorted(new, key=self.span, reverse=True):
            first, last = (place - start for place in self.span(part))
            text = text[:first] + new[part] + text[last:]
        return text

    def with_span(
        self, node: ast.AST, span: tuple[int, int], new: str, how: str, rank: int = 0
    ) -> Edit:
        """The program with another text in the place of a part of it."""
        start, end = span
        gone = self.text[start:end].count("\n") - new.count("\n")
        if gone > 0 and new.endswith(")"):
            new = new[:-1] + "\n" * gone + ")"
        line = self.statement(node).lineno
        changed = self.text[:start] + new + self.text[end:]
        old = self.text[start:end]  # a comma in front of what is taken away ends the line before
        start += len(old) - len(old.lstrip(", \n")) if old.strip(", \n") else 0
        at = max(line, self.text.count("\n", 0, start) + 1)
        return Edit(line, how, changed, rank, span, at=at, new=new)


def arguments_of(function: ast.FunctionDef) -> list[str]:
    """The names of what a function is given, but for the object itself."""
    return [a.arg for a in function.args.args if a.arg != "self"]


def first_statement(function: ast.FunctionDef) -> ast.stmt | None:
    """The first statement of a function that does something."""
    return next((n for n in function.body if not is_docstring(n)), None)


def parts_of_index(node: ast.Subscript) -> list[ast.expr]:
    """The parts of an index, one for each axis that it is about."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def lines_that_make(name: str, text: str, before: int, asked: bool = True) -> list[int]:
    """The lines above one that give a variable its value, or fill places of it; with those that say
    under which condition they do, where those are asked for."""
    source, found = Source(text), set()
    for node in source.nodes():
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno < before:
            parts = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            if parts and parts[0].id == name:
                around = [n for n in source.around(node) if asked and isinstance(n, ast.If)]
                found |= {node.lineno, *(n.lineno for n in around)}
    return sorted(found)


def names_in(text: str) -> list[str]:
    """The variables that an expression or an index reads, but for `self`; none of a text that is
    neither."""
    for form in ("({})", "_[{}]"):
        try:
            tree = ast.parse(form.format(text.strip()), mode="eval")
        except (SyntaxError, ValueError):
            continue
        read = dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
        return [name for name in read if name not in ("self", "_")]
    return []


def names_read_on(line: int, text: str) -> set[str]:
    """The variables that a line reads; of a text that can be read."""
    names = (n for n in Source(text).nodes() if isinstance(n, ast.Name) and n.lineno == line)
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


def is_strict(text: str) -> bool:
    """Whether a text asks if one thing is more, or less, than another: as a threshold is used."""
    return _asks(text, ast.Lt | ast.Gt)


def is_counted_from_one(edit: Edit, text: str) -> bool:
    """Whether a change makes a place of a number: the n-th is at `n - 1`."""
    start, end = edit.place
    return edit.new == f"{text[start:end]} - 1"


def is_comparison(text: str) -> bool:
    """Whether a text compares two things."""
    return _asks(text, ast.cmpop)


def _asks(text: str, how: type[ast.cmpop]) -> bool:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], how)


def is_slice(text: str) -> bool:
    """Whether a text stands for a part of an axis, `first:last`."""
    try:
        node = ast.parse(f"_[{text}]", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def line_before(line: int, changed: str, text: str) -> int:
    """The line of a text that stands on a line of a changed one; of several alike, or of one that
    was changed itself, that with the same number."""
    new, old = ([each.strip() for each in t.split("\n")] for t in (changed, text))
    own = new[line - 1] if 0 < line <= len(new) else ""
    places = [number for number, each in enumerate(old, 1) if each == own]
    return places[0] if len(places) == 1 else line


def is_read_at(name: str, line: int, text: str) -> bool:
    """Whether a variable is read in the statement of this line, and nowhere else."""
    source = Source(text)
    read = (n for n in source.names(source.tree) if n.id == name and isinstance(n.ctx, ast.Load))
    return {source.statement(n).lineno for n in read} == {line}


def is_read_once(name: str, text: str) -> bool:
    """Whether a variable is read at one place of a text."""
    source = Source(text)
    return [n.id for n in source.names(source.tree) if isinstance(n.ctx, ast.Load)].count(name) == 1


def made_for(line: int, text: str) -> dict[str, int]:
    """The variables that the statement of a line reads and no other one, as they are until then,
    with the one line above that makes them; none that is filled part by part."""
    source, found = Source(text), {}
    own = [n for n in source.nodes() if isinstance(n, ast.Name) and _starts(source, n) == line]
    stored = {n.id for n in own if isinstance(n.ctx, ast.Store)}
    for name in dict.fromkeys(n.id for n in own if isinstance(n.ctx, ast.Load)):
        made = lines_that_make(name, text, line, asked=False)
        if len(made) == 1 and name not in _filled(source):
            read = (n for n in source.names(source.tree) if n.id == name)
            lines = {_starts(source, n) for n in read if isinstance(n.ctx, ast.Load)}
            if {n for n in lines if n <= line or name not in stored} == {line}:
                found[name] = made[0]
    return found


def _starts(source: Source, node: ast.AST) -> int:
    return source.statement(node).lineno


def _filled(source: Source) -> set[str]:
    """The variables that something is put into: lists that grow, places of tensors."""
    nodes = [*source.nodes()]
    return _names_of(places_in(nodes)) | _names_of(_methods_in(nodes, FILLS))


def changed_in_place(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables of tensors that some syntax changes in place: whose places are filled, or of
    which a method such as `zero_` is called."""
    nodes = [*nodes]
    written = [n.value for n in nodes if isinstance(n, ast.keyword) and n.arg == "out"]
    return _names_of([*written, *places_in(nodes)]) | _names_of(_methods_in(nodes, CHANGES))


def places_in(nodes: list[ast.AST]) -> list[ast.expr]:
    """What places are filled of."""
    stored = (n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return [n.value for n in stored]


def _methods_in(nodes: list[ast.AST], name: re.Pattern) -> list[ast.expr]:
    """What methods of such a name are called of."""
    calls = (n.func for n in nodes if isinstance(n, ast.Call))
    return [f.value for f in calls if isinstance(f, ast.Attribute) and name.search(f.attr)]


def _names_of(nodes: list[ast.expr]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name)}


def is_alias(name: str, text: str) -> bool:
    """Whether a variable is nothing but another name for one: `x = y`, and no part of it."""
    made = [n for n in Source(text).nodes() if isinstance(n, ast.Assign)]
    pairs = [(ast.unparse(target), n, value) for n in made for target, value in made_in(n)]
    own = [value for target, n, value in pairs if target == name and not _is_apart(n)]
    return len(own) == 1 and isinstance(own[0], ast.Name | ast.Attribute)


def is_worked_out(name: str, text: str) -> bool:
    """Whether a variable holds what is computed of numbers, in one place: no size as it is."""
    made = [n for n in Source(text).nodes() if isinstance(n, ast.Assign)]
    own = [value for n in made for target, value in made_in(n) if ast.unparse(target) == name]
    return len(own) == 1 and isinstance(own[0], ast.BinOp)


def _is_apart(node: ast.Assign) -> bool:
    """Whether a statement takes apart what one variable holds: `a, b = pair`."""
    return isinstance(node.value, ast.Name) and isinstance(node.targets[0], ast.Tuple | ast.List)


def is_about(line: int, message: str, text: str) -> bool:
    """Whether the statement of a line gives its value to a variable that is called as what a
    message speaks of first: queries, keys or values."""
    words = QKV.findall(message.lower())[:1]
    source = Source(text)
    made = (n for n in source.nodes() if isinstance(n, ast.Assign) and n.lineno == line)
    names = [n.id for node in made for t in node.targets for n in source.names(t)]
    return any(means(name, word) for name in names for word in words)


def conditions_of(lines: Collection[int], text: str) -> set[int]:
    """The lines of the `if`s that decide on the statements of some lines alone; of a text that can
    be read."""
    found = (
        (n for n in Source(text).nodes() if isinstance(n, ast.If) and not n.orelse) if lines else ()
    )
    return {n.lineno for n in found if len(n.body) == 1 and n.body[0].lineno in lines}


def lines_that_feed(lines: Collection[int], text: str) -> set[int]:
    """The lines that make the variables and attributes which some lines read; of a text that can be
    read."""
    if not lines:
        return set()
    nodes = [n for n in Source(text).nodes() if isinstance(n, ast.Assign | ast.Return | ast.Expr)]
    read = {ast.unparse(each) for n in nodes if n.lineno in lines for each in _held(n, ast.Load)}
    others = [n for n in nodes if isinstance(n, ast.Assign) and n.lineno not in lines]
    return {n.lineno for n in others if read & {ast.unparse(e) for e in _held(n, ast.Store)}}


def _held(node: ast.AST, use: type[ast.expr_context]) -> list[ast.expr]:
    """The variables, and the attributes of the object, that a statement reads or sets."""
    found = (n for n in ast.walk(node) if isinstance(getattr(n, "ctx", None), use))
    return [
        n
        for n in found
        if isinstance(n, ast.Name)
        or (isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "self")
    ]


def first_of(value: ast.expr | None) -> ast.expr | None:
    """An expression; of several side by side the first, and None where there is none."""
    if isinstance(value, ast.Tuple):
        return value.elts[0] if value.elts else None
    return value


def of_library(node: ast.expr) -> bool:
    """Whether a function is one of a library's, `torch.softmax`, and no method."""
    return isinstance(node, ast.Attribute) and (
        (isinstance(node.value, ast.Name) and node.value.id in LIBRARIES)
        or (isinstance(node.value, ast.Attribute) and node.value.attr in ("functional", "special"))
    )


def number(node: ast.AST) -> int | float | None:
    """The number that a node writes out, with its sign; None where it is none."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return sign * value if isinstance(value, int | float) and not isinstance(value, bool) else None
