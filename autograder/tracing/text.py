"""The text of a student's cell, by statements: lines, names, what is assigned where."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from autograder.course.steps.traces import Step

# What keeps a tensor or a layer by its name, and returns nothing of it.
REGISTERS = ("register_parameter", "register_buffer", "register_module", "add_module")
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

    def return_after(self, line: int, count: int = 0) -> int | None:
        """The line of the `return` from this line on, in its function, that gives so many tensors
        back; of several the first, if `count` is not given, else none."""
        function = function_around(self, line)
        if function is None:
            return None
        behind = [n for n in own_nodes(function) if isinstance(n, ast.Return) and n.lineno >= line]
        if count:
            behind = [n for n in behind if _may_give(n.value, count)]
        lines = sorted(n.lineno for n in behind)
        return lines[0] if len(lines) == 1 or (lines and not count) else None

    def part_line(self, line: int, place: int, count: int) -> int:
        """The line of one of so many parts that the `return` of a line writes out, or that were put
        under the keys of what it returns; else its own."""
        found = self.around(line)
        value = found.value if isinstance(found, ast.Return) else None
        parts = getattr(value, "elts", None) or getattr(value, "values", None)
        if isinstance(value, ast.Call) and callee(value) == "dict":
            parts = [keyword.value for keyword in value.keywords]
        elif isinstance(value, ast.Name):
            parts = self._under_keys(value.id)
        return parts[place].lineno if parts and len(parts) == count else line

    def _under_keys(self, name: str) -> list[ast.expr]:
        """What is put under the keys of a variable, in their order; nothing where one has two."""
        keys = [
            (n.targets[0].slice.value, n.value)
            for n in self.statements
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript)
            if self.of(n.targets[0].value) == name and isinstance(n.targets[0].slice, ast.Constant)
        ]
        found = dict(keys)
        return [*found.values()] if len(found) == len(keys) else []

    def between(self, first: int, last: int) -> list[ast.Assign]:
        """The assignments behind a line and before another."""
        return [n for n in self.statements if isinstance(n, ast.Assign) and first < n.lineno < last]

    def line(self, step: Step) -> int | None:
        """The line on which the step's statement begins."""
        if step.place is None or step.place[0] > self.source.count("\n") + 1:
            return None
        found = self.around(step.place[0])
        return found.lineno if found is not None else step.place[0]

    def made(self, name: str) -> list[ast.expr]:
        """What a variable is set to, each time."""
        statements = [n for n in self.nodes if isinstance(n, ast.Assign)]
        pairs = (pair for n in statements for pair in made_in(n))
        return [value for target, value in pairs if getattr(target, "id", "") == name]

    def statement(self, line: int) -> str:
        """A statement's text, in one line and shortened."""
        found = self.around(line)
        return self.of(found) if found is not None else self.line_alone(line)

    def line_alone(self, line: int) -> str:
        """The text of a line, shortened."""
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

    def sets(self, name: str, kind: str) -> bool:
        """Whether `self.name` is set to a call of this kind somewhere, `nn.Dropout(...)`."""
        return any(
            isinstance(n.value, ast.Call) and callee(n.value) == kind
            for n in self.statements
            if isinstance(n, ast.Assign)
            if any(isinstance(t, ast.Attribute) and t.attr == name for t in n.targets)
        )

    def assigned(self, name: str, line: int) -> ast.expr | None:
        """What a variable was assigned last before a line, if that was alone on its left, or stands
        beside others: `rows, sums = [], 0`."""
        found = [
            value
            for n in self.statements
            if isinstance(n, ast.Assign) and n.lineno < line and len(n.targets) == 1
            for target, value in made_in(n)
            if isinstance(target, ast.Name) and target.id == name
            if target is n.targets[0] or value is not n.value
        ]
        return max(found, key=lambda value: value.lineno, default=None)

    def size_of(self, name: str, line: int) -> tuple[str, int]:
        """The tensor whose shape gave a variable its value last before a line, and where."""
        found = ("", 0)
        for node in self.statements:
            if not isinstance(node, ast.Assign) or node.lineno >= line:
                continue
            names = [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
            if name in names and node.lineno > found[1]:
                value = node.value.func if isinstance(node.value, ast.Call) else node.value
                is_shape = isinstance(value, ast.Attribute) and value.attr in ("shape", "size")
                own = value.value if is_shape else None
                found = (own.id if isinstance(own, ast.Name) else "", node.lineno)
        return found

    def function(self, name: str) -> ast.FunctionDef | None:
        """The function of this name, where there is one alone."""
        found = [n for n in self.nodes if isinstance(n, ast.FunctionDef) and n.name == name]
        return found[0] if len(found) == 1 else None

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        """All functions and methods of the cell."""
        return [n for n in self.nodes if isinstance(n, ast.FunctionDef)]

    def is_used(self, function: ast.FunctionDef) -> bool:
        """Whether something is done with what a call of this function gives."""
        alone = {id(n.value) for n in self.statements if isinstance(n, ast.Expr)}
        calls = [n for n in self.nodes if isinstance(n, ast.Call) and id(n) not in alone]
        called = {callee(n) for n in calls}
        return function.name in called

    def handed(self, call: ast.Call) -> dict[str, str]:
        """The variables that a call hands to a function of the cell, each with its argument."""
        function = self.function(callee(call))
        if function is None:
            return {}
        names = [a.arg for a in function.args.args if a.arg != "self"]
        given = [*zip(call.args, names, strict=False), *((k.value, k.arg) for k in call.keywords)]
        return {root_of(value): name or "" for value, name in given}

    def first_line(self, line: int) -> int:
        """The line on which the statement begins that a line is in."""
        found = self.around(line)
        return found.lineno if found is not None else line

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
                own = [] if own and root_of(own[0]) in ("torch", "F") else own
                parts = [a for a in (*own, *node.args) if not isinstance(a, ast.Constant)]
            return [root_of(part) for part in parts] if len(parts) == 2 else []
        return []

    def crossed(
        self, one: tuple[Step, Sequence[str]], two: tuple[Step, Sequence[str]]
    ) -> bool | None:
        """Whether two variables are called by each other's contents; None where their names do not
        say. Each is given as the step that made it and the names of what it is."""
        names = [self.target(step) for step, _ in (one, two)]
        words = [own for _, own in (one, two)]
        if not all(names):
            return None if any(names) else False

        def any_means(pair: tuple[str, Sequence[str]]) -> bool:
            return any(means(pair[0], word) for word in pair[1])

        straight = list(map(any_means, zip(names, words, strict=True)))
        across = list(map(any_means, zip(names, reversed(words), strict=True)))
        if all(across) and not any(straight):
            return True
        return False if all(straight) and not any(across) else None


def _may_give(value: ast.expr | None, count: int) -> bool:
    """Whether an expression may be so many tensors."""
    return len(value.elts) == count if isinstance(value, ast.Tuple | ast.List) else bool(value)


def made_in(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement gives values, each with its own where both are written out side by side,
    else with that of the whole."""
    for target in node.targets:
        parts = getattr(target, "elts", [target])
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        if len(parts) != len(values) or any(isinstance(p, ast.Starred) for p in parts):
            values = [node.value] * len(parts)
        yield from zip(parts, values, strict=True)


def root_of(node: ast.expr) -> str:
    """The variable that a chain of methods, indices and attributes begins with."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def callee(call: ast.Call) -> str:
    """The last name of what is called: `softmax` of `F.softmax(...)` and of `softmax(...)`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def means(name: str, word: str) -> bool:
    """Whether a variable is called by the beginning of a word: `q`, `query` and `Qs`: queries."""
    bare = name.lower().strip("_")
    start = bare[: min(len(bare), 3)]
    plain = bare.rstrip("s") if len(bare) > 2 else bare[:1]
    return bool(bare and word) and (word.startswith(plain) or word.startswith(start))


# --- slips that show in the text -----------------------------------------------------------------
# None is claimed by the text alone: it explains what the steps or an error show.
# Methods that make a new tensor: on a line of their own they do nothing.
MAKES = {"masked_fill", "transpose", "permute", "view", "reshape", "softmax", "contiguous"}
MAKES |= {"unsqueeze", "squeeze", "flatten", "unflatten", "div", "mul", "add", "sub", "tril"}
MAKES |= {"triu", "swapaxes", "movedim", "repeat", "expand", "to", "float", "bool", "dropout"}
MAKES |= {
    "double",
    "half",
    "long",
    "int",
    "type",
    "log",
    "sqrt",
    "mean",
    "sum",
    "fill",
    "where",
    "exp",
    "log_softmax",
    "detach",
    "clone",
    "index_fill",
    "masked_scatter",
}


def thrown_away(text: Text, before: int) -> tuple[int, str] | None:
    """The last line up to this one that makes a tensor and keeps it nowhere: (line, method)."""
    best = None
    for node in text.statements:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        name = _called(node.value)
        if node.lineno <= before and name in MAKES and (best is None or node.lineno > best[0]):
            given = [k.arg for k in node.value.keywords]
            if "out" not in given and "inplace" not in given:
                best = (node.lineno, name)
    return best


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def ends_in_a_comma(value: ast.expr | None, source: str) -> bool:
    """Whether an expression is a tuple of one thing that a comma makes of it, without brackets."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != 1:
        return False
    return (ast.get_source_segment(source, value) or "").endswith(",")


def half_power(text: Text) -> tuple[int, str] | None:
    """Where `x ** 1/2` stands, which is half of x: (line, text)."""
    for node in text.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        power = node.left  # in `a / x ** 1/2` it is the right side of the first division
        if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Div | ast.Mult):
            power = power.right
        is_power = isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow)
        if is_power and _is(power.right, 1) and _is(node.right, 2):
            return power.lineno, f"{text.of(power)}/2"
    return None


def _is(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def without_return(text: Text, name: str) -> ast.FunctionDef | None:
    """The function (or the class's `forward`) where it never returns a value."""
    for function in _functions(text, name):
        if not gives_back(function):
            return function
    return None


def gives_back(function: ast.FunctionDef) -> bool:
    """Whether a function returns or yields a value somewhere."""
    nodes = list(own_nodes(function))
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in nodes)
    return yields or any(isinstance(n, ast.Return) and n.value is not None for n in nodes)


def _functions(text: Text, name: str) -> Iterator[ast.FunctionDef]:
    for node in text.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield from (
                n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"
            )


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def stored_in(function: ast.FunctionDef) -> set[str]:
    """The variables that a function sets."""
    return {
        n.id
        for n in own_nodes(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def last_assigned(function: ast.FunctionDef) -> str:
    """What a function's last statement assigns: what it may have meant to return."""
    last = function.body[-1]
    targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
    names = [ast.unparse(t) for t in targets if isinstance(t, ast.Name | ast.Attribute)]
    return names[-1] if names else ""


def function_around(text: Text, line: int) -> ast.FunctionDef | None:
    """The innermost function that a line is in."""
    return next(reversed(functions_around(text, line)), None)


def functions_around(text: Text, line: int) -> list[ast.FunctionDef]:
    """The functions that a line is in, the outermost first."""
    there = [
        n
        for n in text.nodes
        if isinstance(n, ast.FunctionDef) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    return sorted(there, key=lambda n: n.lineno)


def overwritten(text: Text, name: str, line: int) -> int | None:
    """The line on which a name was given a new value after it had one, last before this line."""
    function = function_around(text, line)
    if function is None:
        return None
    arguments = function.args
    given = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    lines = sorted(
        node.lineno
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        if node.lineno < line
    )
    if not lines or (len(lines) == 1 and name not in given):
        return None
    return lines[-1]


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is nothing but a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def alone(text: Text) -> ast.stmt | None:
    """The one statement of an answer that computes something; None where there are several."""
    found = [n for n in text.statements if not is_docstring(n)]
    others = (ast.For, ast.While, ast.If, ast.With, ast.ClassDef, ast.Lambda)
    if len(found) != 1 or any(isinstance(n, others) for n in text.nodes):
        return None
    return found[0]
