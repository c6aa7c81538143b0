"""Prepares a student's source for recording: pure text in, instrumented text and two tables out.

Every expression that is read is wrapped, `expr` -> `rec(id, expr)`, evaluated once and in its
place; every statement of a function announces itself and shows the local names after it. What is
wrapped, and where it stands in the student's text, is kept in the tables. Nothing runs here.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from autograder.shapes.tables import Function, Node, Stmt, Traced

MAX_SOURCE = 200_000
MAX_NODES = 6_000
PARSED = 1_024  # expressions whose syntax is kept
COMPILERS = re.compile(r"(^|\.)(compile|script|jit|jaxtyped|typechecked)\b")
TURNS = ("T", "mT", "H", "mH")
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
KEPT = (*DEFINED, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Try)
BLOCKS = (ast.If, ast.Try, ast.With)
PLAIN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


@lru_cache(4)
def trace(source: str) -> Traced:
    """Instruments a source. Raises SyntaxError, or ValueError where it is too large.

    The same source is asked for when it is run and when it is judged; nobody changes the tables.
    """
    if len(source) > MAX_SOURCE:
        raise ValueError(f"The source has {len(source)} characters; at most {MAX_SOURCE} are read.")
    try:
        tree = ast.parse(source)
        wrapper = _Wrapper(source, *helper_names(source))
        tree.body = [
            wrapper.top(s) for t in tree.body for s in _sizes_of_main(t) if wrapper.keep(s)
        ]
        future = any(getattr(s, "module", None) == "__future__" for s in tree.body)
        parts = [(getattr(s, "name", ""), ast.unparse(s)) for s in tree.body]
    except (RecursionError, MemoryError):
        raise ValueError("The source is nested too deeply to be read.") from None
    tables = wrapper.nodes, wrapper.stmts, wrapper.functions, wrapper.handed
    return Traced(parts, future, *tables)


def _sizes_of_main(node: ast.stmt) -> list[ast.stmt]:
    """The sizes that are set under `if __name__ == "__main__":`, which classes may use."""
    if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)):
        return [node]
    plain = ast.Constant | ast.BinOp | ast.Name | ast.operator | ast.expr_context | ast.UnaryOp
    return [
        s
        for s in node.body
        if isinstance(s, ast.Assign)
        and all(isinstance(n, plain | ast.unaryop) for n in ast.walk(s.value))
    ]


def helper_names(source: str) -> tuple[str, str]:
    """The names under which the recorder's two functions are known to the instrumented text."""
    rec, at = "shape_rec", "shape_at"
    while rec in source or at in source:
        rec, at = rec + "x", at + "x"
    return rec, at


class _Wrapper:
    """Walks the tree, wraps what is read, and fills the tables."""

    def __init__(self, source: str, rec: str, at: str):
        self.source = source.encode().split(b"\n")
        self.rec, self.at_name = rec, at
        self.nodes: list[Node] = []
        self.stmts: list[Stmt] = []
        self.functions: list[Function] = []
        self.handed: dict[str, set[str]] = {}
        self.stmt = -1
        self.function = -1
        self.owner: list[str] = []

    def text(self, node: ast.expr) -> str:
        """The text of an expression, the first 80 characters of its first line."""
        line = self.source[node.lineno - 1] if node.lineno <= len(self.source) else b""
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        return line[node.col_offset : end][:80].decode("utf-8", "replace").rstrip()

    # --- what of a file is executed ------------------------------------------------------------
    def keep(self, node: ast.stmt) -> bool:
        """Definitions, imports and assignments; no calls for their effect, no main guard."""
        if isinstance(node, ast.If):
            return "__name__" not in ast.unparse(node.test)
        return isinstance(node, KEPT)

    def top(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.ClassDef):
            return self.class_(node)
        if isinstance(node, ast.FunctionDef):
            return self.def_(node)
        parts = [node, *getattr(node, "handlers", ())] if isinstance(node, BLOCKS) else []
        for part in parts:  # `try:`, `if torch_is_there:`
            for name in ("body", "orelse", "finalbody"):
                if name in part._fields:
                    setattr(part, name, [self.top(s) for s in getattr(part, name)])
        return node

    # --- definitions -----------------------------------------------------------------------------
    def class_(self, node: ast.ClassDef) -> ast.ClassDef:
        node.decorator_list = self.decorators(node)
        self.owner.append(node.name)
        node.body = [self.top(s) for s in node.body]
        self.owner.pop()
        return node

    def decorators(self, node) -> list[ast.expr]:
        return [d for d in node.decorator_list if not COMPILERS.search(ast.unparse(d))]

    def def_(self, node: ast.FunctionDef) -> ast.FunctionDef:
        outer = self.function, self.stmt
        node.decorator_list = self.decorators(node)
        every = [a for a in ast.iter_child_nodes(node.args) if isinstance(a, ast.arg)]
        first = node.body[0]
        doc = ast.get_docstring(node, clean=False)
        self.function = len(self.functions)
        self.functions.append(
            Function(
                self.function,
                node.name,
                self.owner[-1] if self.owner else "",
                node.lineno,
                node.end_lineno or node.lineno,
                {a.arg: a.lineno for a in every},
                doc or "",
                first.lineno,
                self.owner[0] if self.owner else node.name,
                frozenset(_whole_numbers((*node.args.defaults, *node.args.kw_defaults))),
            )
        )
        header = self.new_stmt(node, "def", end=max(node.lineno, first.lineno - 1))
        begin = [node.body.pop(0)] if doc is not None else []
        body = self.block(node.body)
        node.body = [*begin, self.announce(header.id, 2), *body]
        self.function, self.stmt = outer
        return node

    # --- statements ------------------------------------------------------------------------------
    def new_stmt(self, node: ast.stmt, kind: str, end: int | None = None) -> Stmt:
        end = end or node.end_lineno or node.lineno
        stmt = Stmt(len(self.stmts), kind, node.lineno, end, self.function)
        self.stmts.append(stmt)
        self.stmt = stmt.id
        return stmt

    def announce(self, stmt: int, when: int) -> ast.Expr:
        """Tells the recorder: a statement begins (0) or has ended (1), or a function begins (2)."""
        names = ast.Call(ast.Name("locals", ast.Load()), [], [])
        told = [ast.Constant(stmt), ast.Constant(when), names]
        return ast.Expr(ast.Call(ast.Name(self.at_name, ast.Load()), told, []))

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            return [self.def_(node)]
        if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
            return [node]
        if isinstance(node, PLAIN):
            return self.plain(node)
        header_end = node.lineno
        bodies = [b for name in ("body", "orelse", "finalbody") if (b := getattr(node, name, None))]
        if bodies:
            header_end = max(node.lineno, bodies[0][0].lineno - 1)
        stmt = self.new_stmt(node, "header" if bodies else "other", end=header_end)
        stmt.body = (node.lineno, node.end_lineno or node.lineno)
        stmt.leaves = isinstance(node, ast.Break)
        if isinstance(node, ast.For | ast.AsyncFor):
            stmt.targets = [_target(node.target)]
        for name, value in list(ast.iter_fields(node)):
            if isinstance(value, ast.expr) and name not in ("target",):
                setattr(node, name, self.expr(value))
        for item in getattr(node, "items", []):
            item.context_expr = self.expr(item.context_expr)
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, self.block(getattr(node, name)))
        for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            part.body = self.block(part.body)
        if isinstance(node, ast.Global | ast.Nonlocal):
            return [node]
        return [self.announce(stmt.id, 0), node]

    def plain(self, node) -> list[ast.stmt]:
        kinds = {ast.AugAssign: "augmented", ast.Expr: "expression", ast.Return: "return"}
        kind = kinds.get(type(node), "assign")
        stmt = self.new_stmt(node, kind)
        value = node.value
        if value is not None:
            stmt.alias = kind != "augmented" and _is_alias(value)
            node.value = self.expr(value)
            stmt.value = self.id_of(node.value)
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in filter(None, targets):
            stmt.targets.append(_target(target))
            self.store(target, stmt)
        if kind == "expression" and stmt.value is not None:
            found = self.nodes[stmt.value]
            if found.kind == "Call" and found.operands:
                changed = {"append": found.operands[-1]}.get(found.op)
                stmt.receiver = found.operands[0] if found.op.endswith("_") else changed
        after = [] if kind == "return" else [self.announce(stmt.id, 1)]
        return [self.announce(stmt.id, 0), node, *after]

    def store(self, target: ast.expr, stmt: Stmt) -> None:
        """Wraps what is read inside a target: `scores` in `scores[mask] = 0`."""
        match target:
            case ast.Tuple() | ast.List():
                for element in target.elts:
                    self.store(element, stmt)
            case ast.Starred():
                self.store(target.value, stmt)
            case ast.Subscript():
                target.value = self.expr(target.value)
                stmt.receiver = self.id_of(target.value)
                target.slice = self.expr(target.slice)

    # --- expressions -----------------------------------------------------------------------------
    def id_of(self, wrapped: ast.expr) -> int | None:
        return getattr(wrapped, "rec_id", None)

    def wrap(self, new: ast.expr, old: ast.expr, op: str = "", operands=()) -> ast.expr:
        if len(self.nodes) >= MAX_NODES:
            raise ValueError(f"The source has more than {MAX_NODES} expressions.")
        node = Node(
            len(self.nodes),
            self.stmt,
            type(old).__name__,
            old.lineno,
            old.end_lineno or old.lineno,
            self.text(old),
            op,
            tuple(i for i in operands if i is not None),
        )
        self.nodes.append(node)
        call = ast.Call(ast.Name(self.rec, ast.Load()), [ast.Constant(node.id), new], [])
        call.rec_id = node.id
        return ast.copy_location(call, old)

    def expr(self, node: ast.expr) -> ast.expr:
        """The expression with everything that it reads wrapped; its own value too."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda() | ast.Yield() | ast.YieldFrom():
                return node
            case ast.Starred() | ast.NamedExpr():
                node.value = self.expr(node.value)
                return node
            case ast.Slice():
                for name in ("lower", "upper", "step"):
                    if getattr(node, name):
                        setattr(node, name, self.expr(getattr(node, name)))
                return node
            case ast.Name():
                return self.wrap(node, node)
            case ast.Call():
                return self.call(node)
            case ast.BinOp():
                old = copy.copy(node)
                node.left, node.right = self.expr(node.left), self.expr(node.right)
                ids = [self.id_of(node.left), self.id_of(node.right)]
                return self.wrap(node, old, _operator(node.op), ids)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                for generator in node.generators:
                    generator.iter = self.expr(generator.iter)
                    generator.ifs = [self.expr(i) for i in generator.ifs]
                if isinstance(node, ast.DictComp):
                    return self.wrap(node, node)
                node.elt = self.expr(node.elt)
                if isinstance(node, ast.GeneratorExp):
                    return node
                return self.wrap(node, node)
            case ast.Tuple() if any(isinstance(e, ast.Slice) for e in node.elts):
                node.elts = [self.expr(e) for e in node.elts]
                return node
            case ast.Dict():
                node.values = [self.expr(v) for v in node.values]
                return node
        old = copy.copy(node)
        operands = []
        for name, value in list(ast.iter_fields(node)):
            if isinstance(value, ast.expr):
                setattr(node, name, self.expr(value))
                operands.append(self.id_of(getattr(node, name)))
            elif isinstance(value, list):
                new = [self.expr(v) if isinstance(v, ast.expr) else v for v in value]
                setattr(node, name, new)
                operands += [self.id_of(v) for v in new if isinstance(v, ast.expr)]
        return self.wrap(node, old, operands=operands)

    def call(self, node: ast.Call) -> ast.expr:
        old = copy.copy(node)
        func = self.text(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            return node
        operands, op = [], func
        if isinstance(node.func, ast.Attribute):
            op = node.func.attr
            if func == "super().__init__":
                return node
            node.func.value = self.expr(node.func.value)
            operands.append(self.id_of(node.func.value))
            place = ast.copy_location(ast.Name(func, ast.Load()), node.func)
            node.func = self.wrap(node.func, place)
        elif not isinstance(node.func, ast.Name):
            node.func = self.expr(node.func)
        node.args = [self.expr(a) for a in node.args]
        operands += [self.id_of(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        for keyword in node.keywords:
            given = self.text(keyword.value)
            if keyword.arg and given.rpartition(".")[2] != keyword.arg:
                self.handed.setdefault(keyword.arg, set()).add(given)
            keyword.value = self.expr(keyword.value)
            operands.append(self.id_of(keyword.value))
        return self.wrap(node, old, op, operands)


def _target(node: ast.expr):
    match node:
        case ast.Tuple() | ast.List():
            return [_target(e) for e in node.elts]
        case ast.Starred():
            return _target(node.value)
        case ast.Subscript():
            return _target(node.value)
    return ast.unparse(node)


def _is_alias(node: ast.expr) -> bool:
    match node:
        case ast.Attribute():  # `k.mT` turns a tensor, `s.max(-1).values` computes one
            return node.attr not in TURNS and _is_alias(node.value)
        case ast.Call(func=ast.Attribute(ast.Name(of), name)):  # `t.uniform_()`; no `self.fc_(x)`
            return name.endswith("_") and not name.endswith("__") and of != "self"
        case ast.Tuple():
            return all(_is_alias(e) or isinstance(e, ast.Constant) for e in node.elts)
    return isinstance(node, ast.Name)


def _operator(op: ast.operator) -> str:
    return {"MatMult": "@", "Mult": "*", "Add": "+", "Sub": "-", "Div": "/"}.get(
        type(op).__name__, type(op).__name__
    )


def flat(targets) -> list[str]:
    """The names of targets, unpacking undone."""
    return [t for part in targets for t in (flat(part) if isinstance(part, list) else [part])]


def syntax_of(stmt: Stmt, lines: list[str]) -> ast.stmt | None:
    """The syntax of a statement; None where it cannot be read by itself."""
    text = "\n".join(lines[stmt.line - 1 : stmt.end_line])
    try:
        return ast.parse(text.strip()).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None


@lru_cache(PARSED)
def parsed(text: str) -> ast.expr | None:
    """An expression's syntax; None of what is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _whole_numbers(defaults: Iterable[ast.expr | None]) -> Iterator[int]:
    """Those of some defaults that are a whole number above 1."""
    for value in (d.value for d in defaults if isinstance(d, ast.Constant)):
        if type(value) is int and value > 1:
            yield value
