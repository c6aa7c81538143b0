"""Which of several results are wrong, and which lines have a part in them.

A line that has none in a wrong result is not what is wrong; and where one line alone has a part in
what is wrong and none in what is right, it is that one.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autograder.course.asking import Finding, Verdict, Where
from autograder.course.calls import Outcome
from autograder.judging.difference import difference
from autograder.tracing.edits.kinds.source import changed_in_place
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.say import MISSING
from autograder.tracing.text import Text, callee, made_in, own_nodes, root_of

SHARED, ONE_OF_SEVERAL = 6, 3
ALONE = "it has a part in what is wrong, and none in what is right"
NEW = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant)
MAKE = ("matmul", "bmm", "mm", "einsum", "softmax", "exp", "sqrt", "tanh", "sum", "mean", "cat")
MAKE += ("stack", "clone", "where", "masked_fill", "zeros_like", "ones_like", "empty_like")
MAKE += ("full_like", "arange", "eye", "rand", "randn", "new_tensor", "new_empty", "cumsum", "log")
SIZES, NUMBERS = ("shape", "size"), ("len", "min", "max", "range", "int", "float", "item", "numel")
VIEWS = ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "contiguous")
VIEWS += ("transpose", "permute", "t", "swapaxes", "movedim", "chunk", "split", "unbind", "narrow")
LIBRARIES = ("torch", "F", "math")
FILLED = ("zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full")
UNREADABLE = (ast.Try, ast.Global, ast.Nonlocal, ast.Delete, ast.Match, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True)
class Parts:
    """Of an answer that returns several results: by result the lines that may have a part in it and
    those that surely have; the wrong ones; all lines of the function; whether the program holds
    nothing else; where it returns, and whether two results are right in each other's place."""

    may: Mapping[object, set[int]]
    surely: Mapping[object, set[int]]
    wrong: set
    all: set[int]
    is_whole: bool
    last: int
    turned: bool
    behind: Mapping[object, set[int]]  # by wrong result the lines that have a part after right ones
    starts: set[int]  # lines that give one number everywhere: no slip, where all else is missing
    several: set[int]  # lines that make several things
    behind_wrong: set[int]  # lines that read a wrong result, which was made before

    def is_idle(self, line: int) -> bool:
        """Whether a line has no part in what is wrong, where that is among the results."""
        if not self.wrong or line not in self.all - {self.last}:
            return False
        return not any(line in self.may[k] for k in self.wrong)

    def shared(self, line: int) -> int:
        """How much speaks for a line that what is right is made with it, too: less for one that
        makes several things."""
        right = self.may.keys() - self.wrong
        if line == self.last or not any(line in self.surely[k] for k in right):
            return 0
        return ONE_OF_SEVERAL if line in self.several else SHARED

    def only(self, wrong: set) -> int | None:
        """The line that only these results are made with; None where there are several, or none."""
        right = self.may.keys() - wrong
        lines = set().union(*(self.may[k] for k in wrong))
        own = lines.difference(*(self.surely[k] for k in right))
        behind = (
            set().union(*(self.behind[k] for k in wrong)) if wrong <= self.behind.keys() else ()
        )
        for each in (own, behind):
            if self.is_whole and right and len(each) == 1 and not each & self.starts:
                return next(iter(each))
        return None


def at_its_part(finding: Finding, asked: WrongAnswer, parts: Parts | None) -> Finding:
    """A finding without a line, or with that of the `return` before which a step is missing, with
    the one that only what is wrong is made with."""
    line = parts.only(parts.wrong) if parts is not None else None
    told = finding.where is not None and finding.where.how != MISSING
    if line is None or told or finding.verdict != Verdict.WRONG:
        return finding
    where = Where(last_right=None, first_wrong=line, how=ALONE)
    return replace(finding, where=where, line=line, statement=Text(asked.source).statement(line))


def parts_of(asked: WrongAnswer) -> Parts | None:
    """The lines of the parts of what an answer returns; None where they cannot be told."""
    text = Text(asked.source)
    function = _asked_for(text, asked.exercise.name)
    function = _with_its_keys_apart(function) if function is not None else None
    last = function.body[-1] if function is not None else None
    elements = _elements(last) if isinstance(last, ast.Return) else None
    inside = [*own_nodes(function)] if elements else []
    returns = sum(isinstance(n, ast.Return) for n in inside)
    if not elements or returns != 1 or any(map(_is_unreadable, inside)):
        return None
    pairs = _pairs(asked, asked.outcomes, list(elements))
    if pairs is None:
        return None
    wrong = _wrong(pairs, asked.exercise.rtol)
    flow = _Flow(function)
    may, surely = (
        {key: flow.lines(_read(element), sure=sure) for key, element in elements.items()}
        for sure in (False, True)
    )
    for key, element in elements.items():
        if not isinstance(element, ast.Name) or flow.unread:
            may[key].add(last.lineno)
        if not isinstance(element, ast.Name):
            surely[key].add(last.lineno)
    right = {e.id for k, e in elements.items() if k not in wrong and isinstance(e, ast.Name)}
    behind = {
        key: flow.lines(_read(elements[key]), sure=False, until=right)
        for key in wrong
        if isinstance(elements[key], ast.Name) and right
    }
    others = (n for n in text.nodes if getattr(n, "lineno", 0) != function.lineno)
    alone = not any(map(_may_do_more, others))
    turned = _are_turned(wrong, pairs, asked.exercise.rtol)
    made = [n for n in inside if isinstance(n, ast.Assign)]
    starts = {n.lineno for n in made for _, value in made_in(n) if _is_a_start(value)}
    several = {n.lineno for n in made if any(isinstance(t, ast.Tuple) for t in n.targets)}
    spoilt = {e.id for k, e in elements.items() if k in wrong and isinstance(e, ast.Name)}
    return Parts(
        may,
        surely,
        wrong,
        flow.all,
        alone,
        last.lineno,
        turned,
        behind,
        starts,
        several,
        flow.behind(spoilt),
    )


def _is_unreadable(node: ast.AST) -> bool:
    """Whether nobody can tell what a statement has a part in: as where a loop changes what comes
    out of a list that is written as a loop."""
    if isinstance(node, UNREADABLE):
        return True
    if not isinstance(node, ast.For):
        return False
    written = any(isinstance(n, ast.GeneratorExp | ast.ListComp) for n in ast.walk(node.iter))
    inside = [n for each in node.body for n in ast.walk(each)]
    changed = changed_in_place(inside) | {
        root_of(n.target) for n in inside if isinstance(n, ast.AugAssign)
    }
    return written and bool(_stored(node.target) & changed)


def _is_a_start(value: ast.expr) -> bool:
    """Whether an expression gives one number, everywhere."""
    if isinstance(value, ast.Call):
        return callee(value).removesuffix("_like") in FILLED
    return isinstance(value, ast.Constant)


def _may_do_more(node: ast.AST) -> bool:
    """Whether a function, or a class, may do more than return what it makes of what it is given."""
    returns = isinstance(node, ast.FunctionDef) and isinstance(node.body[0], ast.Return)
    return isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef) and not returns


def _with_its_keys_apart(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function in which each key of a dict that begins empty, and is only asked for by keys that
    are written out, stands for a variable of its own: `new["bias"]`."""
    inside = list(ast.walk(function))
    empty = {
        n.targets[0].id
        for n in inside
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        if ast.unparse(n.value) in ("{}", "dict()")
    }
    own = [n for n in inside if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    own = [n for n in own if n.value.id in empty and isinstance(n.slice, ast.Constant)]
    asked = {id(n.value) for n in own}
    named = [n for n in inside if isinstance(n, ast.Name) and n.id in empty]
    begun = Counter(n.id for n in named if isinstance(n.ctx, ast.Store))
    other = {n.id for n in named if isinstance(n.ctx, ast.Load) and id(n) not in asked}
    apart = {name for name, often in begun.items() if often == 1} - other
    return _Apart(apart).visit(copy.deepcopy(function)) if apart else function


class _Apart(ast.NodeTransformer):
    """Puts a name in the place of each key of some dicts."""

    def __init__(self, dicts: set[str]):
        self.dicts = dicts

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if getattr(node.value, "id", "") not in self.dicts:
            return node
        return ast.copy_location(ast.Name(ast.unparse(node), node.ctx), node)


def _wrong(pairs: Mapping[object, list[tuple]], rtol: float) -> set:
    """The parts that are wrong in some call."""
    return {key for key, own in pairs.items() if any(difference(g, e, rtol) for g, e in own)}


def _asked_for(text: Text, name: str) -> ast.FunctionDef | None:
    """The function that is asked for, or the `forward` of the class."""
    inside = [n.body for n in text.nodes if isinstance(n, ast.ClassDef) and n.name == name]
    found = [n for n in text.nodes if isinstance(n, ast.FunctionDef) and n.name == name]
    found += [n for body in inside for n in body if getattr(n, "name", "") == "forward"]
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def _elements(last: ast.Return) -> Mapping[object, ast.expr]:
    """The expressions of what is returned, by place or key; nothing where it is one thing."""
    value = last.value
    if isinstance(value, ast.Tuple | ast.List):
        return dict(enumerate(value.elts))
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        named = {k.arg: k.value for k in value.keywords}
        return named if None not in named else {}
    if isinstance(value, ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in value.keys]
        if None not in keys:
            return dict(zip(map(str, keys), value.values, strict=True))
    return {}


def wrong_parts(asked: WrongAnswer, outcomes: Sequence[Outcome], parts: Parts) -> set | None:
    """The parts of what came back that are wrong in some call; None where it has others."""
    pairs = _pairs(asked, outcomes, list(parts.may))
    return _wrong(pairs, asked.exercise.rtol) if pairs is not None else None


def is_part_of(key: object, asked: WrongAnswer, outcomes: Sequence[Outcome]) -> bool:
    """Whether what came for one part is the same in these outcomes, in all calls."""
    both = zip(asked.outcomes, outcomes, asked.known.expected, strict=True)
    parts = [[of_parts(e.value) for e in pair] for *pair, wanted in both if wanted.error is None]
    rtol = asked.exercise.rtol
    return all(key in a and key in b and not difference(a[key], b[key], rtol) for a, b in parts)


def _pairs(
    asked: WrongAnswer, outcomes: Sequence[Outcome], keys: Sequence
) -> dict[object, list[tuple]] | None:
    """By part what came and what should, in all calls; None where a call has other parts."""
    found: dict[object, list[tuple]] = {key: [] for key in keys}
    for got, wanted in zip(outcomes, asked.known.expected, strict=True):
        if wanted.error is not None:
            continue
        own, should = (of_parts(each.value) for each in (got, wanted))
        if got.error is not None or list(own) != keys or set(should) != set(keys):
            return None
        for key in keys:
            found[key].append((own[key], should[key]))
    return found


def of_parts(value) -> dict:
    """The parts of a value by place or key; nothing of what has none."""
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    return dict(enumerate(value)) if isinstance(value, tuple | list) else {}


def _are_turned(wrong: set, pairs: Mapping[object, list[tuple]], rtol: float) -> bool:
    """Whether each of two wrong parts is what the other should be."""
    for one, other in itertools.combinations(sorted(wrong, key=str), 2):
        both = zip(pairs[one], pairs[other], strict=True)
        if pairs[one] and not any(
            difference(a, d, rtol) or difference(c, b, rtol) for (a, b), (c, d) in both
        ):
            return True
    return False


# --- what flows where ----------------------------------------------------------------------------
class _Flow:
    """By variable the lines that make or change it, each with the variables that it reads."""

    def __init__(self, function: ast.FunctionDef):
        self.made: dict[str, list[tuple[int, set[str]]]] = {}
        self.all: set[int] = set()
        self.of: dict[str, set[str]] = {}  # by variable those that it may share its numbers with
        self.changed: dict[str, list[tuple[int, set[str]]]] = {}
        self.anew: Counter[str] = Counter()  # how often a variable gets a new value
        self.under: set[int] = set()  # lines that run in rounds, or under a condition
        self.perhaps: set[int] = set()  # those under a condition
        self.read: set[str] = set()
        self.loops: set[int] = set()
        self.rounds: set[int] = set()  # lines below which all runs
        for statement in function.body:
            self._add(statement, set(), set())
        for name, found in self.changed.items():
            for other in self._shared(name):
                self.made.setdefault(other, []).extend(found)

    @property
    def unread(self) -> set[str]:
        """The variables that are made and nowhere read."""
        names = {name for name in self.made if not name.startswith("line ")}
        return names - self.read - {"_"}

    def behind(self, names: set[str]) -> set[int]:
        """The lines that read one of some variables as the one line above gave it that makes it."""
        made = {n: [line for line, _ in self.made[n]] for n in names if self.anew[n] == 1}
        each = [pair for found in self.made.values() for pair in found]
        return {
            line
            for name, (first, *others) in made.items()
            for line, read in each
            if name in read and first < line and not any(n < line for n in others)
        }

    def lines(self, names: set[str], sure: bool, until: set[str] = frozenset()) -> set[int]:
        """The lines that may have a part in some variables; those that surely have, if asked; those
        that have it after variables that are made once."""
        once = {name for name in until if self.anew[name] == 1 == len(self.made.get(name, ()))}
        left, seen, found = list(names - once), names | once, set()
        while left:
            name = left.pop()
            made = self._surely_made(name) if sure else self.made.get(name, ())
            for line, read in made:
                found.add(line)
                left += read - seen
                seen |= read
        return found

    def _surely_made(self, name: str) -> list[tuple[int, set[str]]]:
        """The lines that make a variable, with what they read; but those under a condition. Of one
        that gets its value several times, the last that does so in any case, if it does."""
        made = self.made.get(name, [])
        if len(made) < 2:
            return made
        if self.anew[name] < 2:  # the others change what it holds
            return [each for each in made if each[0] not in self.perhaps]
        line, read = max(made, key=lambda each: each[0])
        return [] if line in self.under else [(line, read)]

    def _add(self, node: ast.stmt, control: set[str], headers: set[int]) -> None:
        """Adds a statement, which runs as some variables in the headers around it say."""
        self.all.add(node.lineno)
        self.under |= {node.lineno} if headers else set()
        self.perhaps |= {node.lineno} if headers - self.rounds else set()
        self.loops |= {node.lineno} if isinstance(node, ast.For | ast.While) else set()
        self.rounds |= {node.lineno} if isinstance(node, ast.For | ast.With) else set()
        heads = {f"line {line}" for line in headers} | control
        if isinstance(node, ast.Break | ast.Continue):  # what says so has a part in all its rounds
            loop = max(headers & self.loops)
            self.made[f"line {loop}"].append((node.lineno, heads))
        if isinstance(node, ast.For | ast.While | ast.If | ast.With):
            read = self._header(node, heads)
            self.made[f"line {node.lineno}"] = [(node.lineno, read | heads)]
            for each in (*node.body, *getattr(node, "orelse", ())):
                self._add(each, control, headers | {node.lineno})
            return
        self.read |= _read(node)
        for target, value in _targets(node):
            read = _read(value) | (_stored(target) if isinstance(node, ast.AugAssign) else set())
            self._make(target, node.lineno, read | heads)
            if isinstance(node, ast.Assign):
                shared = _shared_with(value)
                if isinstance(target, ast.Subscript) and _is_computed(value):
                    shared = set()  # its numbers are copied
                self.of.setdefault(root_of(target), set()).update(shared)
            elif isinstance(node, ast.AugAssign):  # a tensor is changed in place
                self._change(root_of(target), node.lineno, read | heads)
        if isinstance(node, ast.Expr):  # a method may change what it is of, and what it is given
            for name in _read(node):
                self._change(name, node.lineno, _read(node) | heads)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for line in {n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt)}:
                self.all.add(line)
                self.made.setdefault(node.name, []).append((line, _read(node) | heads))

    def _header(self, node: ast.stmt, heads: set[str]) -> set[str]:
        """What the head of a block reads; what it gives is added."""
        if isinstance(node, ast.For):
            read = _read(node.iter)
            for name in _stored(node.target):
                self.made.setdefault(name, []).append((node.lineno, read | heads))
            for target, items in _rounds_of(node.target, node.iter):
                for name in _stored(target):
                    self.of.setdefault(name, set()).update(_shared_with(items))
        elif isinstance(node, ast.With):
            read = set().union(*(_read(item.context_expr) for item in node.items))
        else:
            read = _read(node.test)
        self.read |= read
        return read

    def _make(self, target: ast.expr, line: int, read: set[str]) -> None:
        if isinstance(target, ast.Subscript | ast.Attribute):
            self._change(root_of(target), line, read | _read(target))
            return
        for name in _stored(target):
            self.made.setdefault(name, []).append((line, read))
            self.anew[name] += name not in read

    def _change(self, name: str, line: int, read: set[str]) -> None:
        self.changed.setdefault(name, []).append((line, read))

    def _shared(self, name: str) -> set[str]:
        """The variables that may share their numbers with one."""
        found, left = {name}, [name]
        while left:
            own = left.pop()
            near = self.of.get(own, set()) | {n for n, of in self.of.items() if own in of}
            left += near - found
            found |= near
        return found


def _targets(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement gives values, each with the expression of its value."""
    if isinstance(node, ast.AugAssign):
        yield node.target, node.value
    elif isinstance(node, ast.AnnAssign):
        yield from [(node.target, node.value)] if node.value is not None else []
    elif isinstance(node, ast.Assign):
        yield from made_in(node)


def _rounds_of(target: ast.expr, items: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a loop gives in each round, each with what it goes through: one of it is a part of it,
    or a view."""
    name = callee(items) if isinstance(items, ast.Call) else ""
    parts = getattr(target, "elts", [])
    given = items.args if name in ("zip", "enumerate") else []
    if name == "enumerate" and len(parts) == 2 and given:
        yield from _rounds_of(parts[1], given[0])
    elif len(parts) == len(given) > 0 and not any(isinstance(n, ast.Starred) for n in given):
        for each, own in zip(parts, given, strict=True):
            yield from _rounds_of(each, own)
    elif name != "range":
        yield target, items


def _shared_with(value: ast.expr) -> set[str]:
    """The variables with which an expression may share its numbers: a part of a tensor, or a view
    of it, does so with that tensor, and not with the sizes and places that say which."""
    if _makes_a_new_one(value):
        return set()
    if isinstance(value, ast.Tuple | ast.List):
        return set().union(*map(_shared_with, value.elts))
    if isinstance(value, ast.Subscript):
        return _shared_with(value.value)
    if isinstance(value, ast.Attribute):
        return set() if value.attr in SIZES else _shared_with(value.value)
    if isinstance(value, ast.Call) and callee(value) in (*SIZES, *NUMBERS):
        return set()
    if isinstance(value, ast.Call) and callee(value) in VIEWS:
        of = value.func.value if isinstance(value.func, ast.Attribute) else None
        own = of is None or root_of(of) in LIBRARIES  # `split(x)` of the student's own
        return _read(value) if own else _shared_with(of)
    return _read(value)


def _makes_a_new_one(value: ast.expr) -> bool:
    """Whether an expression surely makes a tensor that shares its numbers with no other."""
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        return _makes_a_new_one(value.elt)
    made = callee(value) in (*MAKE, *FILLED) if isinstance(value, ast.Call) else False
    return made or isinstance(value, NEW)


def _is_computed(value: ast.expr) -> bool:
    """Whether an expression is what a function of the library gives, or a part of that."""
    while isinstance(value, ast.Subscript | ast.Attribute):
        value = value.value
    return isinstance(value, ast.Call) and root_of(value.func) in LIBRARIES


def _read(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _stored(node: ast.AST) -> set[str]:
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}
