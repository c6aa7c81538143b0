"""The text of a student's cell, by statements: lines, names, what is assigned where."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from autograder.course.steps.traces import Step

LONGEST = 90  # characters of a statement that are shown


@dataclass(frozen=True)
class Text:
    """A student's cell, by statements."""

    source: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of its syntax; nothing of a text that cannot be read."""
        try:
            return list(ast.walk(ast.parse(self.source)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []

    @cached_property
    def statements(self) -> list[ast.stmt]:
        simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
        return [n for n in self.nodes if isinstance(n, simple)]

    @cached_property
    def stored(self) -> set[str]:
        """The names that are given a value somewhere."""
        return {
            n.id for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }

    def of(self, node: ast.AST) -> str:
        """The text of a part, in one line and shortened."""
        text = ast.get_source_segment(self.source, node) or ""
        text = " ".join(text.split()).replace("`", "'")
        return text if len(text) <= LONGEST else text[:LONGEST] + " ..."

    def around(self, line: int) -> ast.stmt | None:
        """The statement that a line is in."""
        there = [n for n in self.statements if n.lineno <= line <= (n.end_lineno or n.lineno)]
        return max(there, key=lambda n: n.lineno, default=None)

    def return_after(self, line: int) -> int | None:
        """The line of the first `return` from this line on, in its function."""
        function = max(
            (
                n
                for n in self.nodes
                if isinstance(n, ast.FunctionDef) and n.lineno <= line <= (n.end_lineno or 0)
            ),
            key=lambda n: n.lineno,
            default=None,
        )
        if function is None:
            return None
        returns = [n.lineno for n in ast.walk(function) if isinstance(n, ast.Return)]
        return next((n for n in sorted(returns) if n >= line), None)

    def line(self, step: Step) -> int | None:
        """The line on which the step's statement begins."""
        if step.place is None or step.place[0] > self.source.count("\n") + 1:
            return None
        found = self.around(step.place[0])
        return found.lineno if found is not None else step.place[0]

    def statement(self, line: int) -> str:
        """A statement's text, in one line and shortened."""
        found = self.around(line)
        if found is not None:
            return self.of(found)
        lines = self.source.split("\n")
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return text if len(text) <= LONGEST else text[:LONGEST] + " ..."

    def target(self, step: Step) -> str:
        """The variable that the value of a step's expression is assigned to; '' where none is."""
        if step.place is None:
            return ""
        line, _, column, _ = step.place
        found = self.around(line)
        if not isinstance(found, ast.Assign) or len(found.targets) != 1:
            return ""
        target, value = found.targets[0], found.value
        if isinstance(target, ast.Name):
            return target.id
        if not isinstance(target, ast.Tuple):
            return ""
        names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
        if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for name, part in zip(names, value.elts, strict=True):
                start, end = (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)
                if start <= (line, column) < end:
                    return name
        which = step.calls[-1].which if step.calls else -1
        return names[which] if 0 <= which < len(names) else ""

    @cached_property
    def attributes(self) -> set[str]:
        """What is set in `self` somewhere."""
        return {
            n.attr
            for n in self.nodes
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Store)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        }

    def assigned(self, name: str, line: int) -> ast.expr | None:
        """What a variable was assigned last before a line, if that was alone on its left."""
        found = [
            n
            for n in self.statements
            if isinstance(n, ast.Assign) and n.lineno < line and len(n.targets) == 1
            if isinstance(n.targets[0], ast.Name) and n.targets[0].id == name
        ]
        return max(found, key=lambda n: n.lineno).value if found else None

    def function(self, name: str) -> ast.FunctionDef | None:
        """The function of this name, where there is one alone."""
        found = [n for n in self.nodes if isinstance(n, ast.FunctionDef) and n.name == name]
        return found[0] if len(found) == 1 else None

    def is_method(self, function: ast.FunctionDef) -> bool:
        """Whether a function stands in a class, and is no static one."""
        classes = [n for n in self.nodes if isinstance(n, ast.ClassDef)]
        return any(function in c.body for c in classes) and not function.decorator_list

    def names_at(self, step: Step) -> set[str]:
        """The variables in the expression that a step stands for."""
        if step.place is None:
            return set()
        for node in self.nodes:
            if isinstance(node, ast.expr):
                there = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
                if there == step.place:
                    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return set()

    def operands(self, step: Step) -> list[str]:
        """The variables that the two operands of a product begin with, in order; else nothing."""
        if step.place is None:
            return []
        for node in self.nodes:
            if not isinstance(node, ast.BinOp | ast.Call):
                continue
            if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) != step.place:
                continue
            if isinstance(node, ast.BinOp):
                parts = [node.left, node.right]
            else:
                own = [node.func.value] if isinstance(node.func, ast.Attribute) else []
                own = [] if own and _root(own[0]) in ("torch", "F") else own
                parts = [a for a in (*own, *node.args) if not isinstance(a, ast.Constant)]
            return [_root(part) for part in parts] if len(parts) == 2 else []
        return []

    def crossed(self, one: tuple[Step, str], two: tuple[Step, str]) -> bool | None:
        """Whether two variables are called by each other's contents; None where their names do not
        say. Each is given as the step that made it and what it is."""
        names = [self.target(step) for step, _ in (one, two)]
        words = [word for _, word in (one, two)]
        if not all(names):
            return None if any(names) else False
        straight = [means(name, word) for name, word in zip(names, words, strict=True)]
        across = [means(name, word) for name, word in zip(names, reversed(words), strict=True)]
        if all(across) and not any(straight):
            return True
        return False if all(straight) and not any(across) else None


def _root(node: ast.expr) -> str:
    """The variable that a chain of methods, indices and attributes begins with."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def means(name: str, word: str) -> bool:
    """Whether a variable is called by the beginning of a word: `q`, `query` and `Qs`: queries."""
    bare = name.lower().strip("_")
    start = bare[: min(len(bare), 3)]
    plain = bare.rstrip("s") if len(bare) > 2 else bare[:1]
    return bool(bare and word) and (word.startswith(plain) or word.startswith(start))
