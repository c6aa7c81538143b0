"""The tables to read a recording with: expressions, statements and functions of a source."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Node:
    """One wrapped expression and where it stands."""

    id: int
    stmt: int
    kind: str  # the name of the ast class
    line: int
    end_line: int
    text: str
    op: str = ""  # the method, function or operator
    operands: tuple[int, ...] = ()  # receiver and arguments, or both sides of an operator


@dataclass
class Stmt:
    """One statement of a function (or the `def` line itself)."""

    id: int
    kind: str  # "assign" | "augmented" | "expression" | "return" | "def" | "header" | "other"
    line: int
    end_line: int
    function: int
    targets: list = field(default_factory=list)  # names; a list for each level of unpacking
    value: int | None = None
    receiver: int | None = None  # of a store into a part, `scores[mask] = 0`, or an in-place call;
    # what is appended to a list
    alias: bool = False  # a bare name on the right
    body: tuple[int, int] = (0, 0)  # lines of what a header governs
    leaves: bool = False  # whether it ends a loop before its time


@dataclass
class Function:
    id: int
    name: str
    owner: str  # the class, or ""
    line: int
    end_line: int
    parameters: dict[str, int]  # the line of each
    docstring: str
    doc_line: int  # the line in which the docstring begins
    top: str  # the outermost class or function
    defaults: frozenset[int] = frozenset()  # the whole numbers that its arguments are by themselves


@dataclass
class Traced:
    """The instrumented program and the tables to read a recording with.

    parts: the statements that are run, each with its name. future: something of `__future__` is.
    handed: by argument's name what calls hand over under it, where that has another name.
    """

    parts: list[tuple[str, str]]
    future: bool
    nodes: list[Node]
    stmts: list[Stmt]
    functions: list[Function]
    handed: dict[str, set[str]] = field(default_factory=dict)
