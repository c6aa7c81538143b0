"""Asks other versions of an answer: the student's own definitions with one small change each.

Loaded by its path inside the sandbox, beside the runner. A change may make a loop endless, also in
a student's own notebook: how many rounds run is counted, and what passes the bound is given up. So
is what takes its time within one round, as a whole number that is squared in each.

Most versions differ from a `base` in one function. Then the base is defined once and that function
alone is put in its place; an object that was built without it is used again. What comes of this is
a first look: a version that matters is asked for once more without a base.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch

if __package__:
    from . import sandbox_modules as modules
else:  # in the sandbox, where the engine is not
    import sandbox_modules as modules

MAX_ROUNDS = 3_000  # of the loops of one version, in a first look
MAX_IN_FULL = 20_000  # the same where it is asked for in all calls
MAX_ALL = 50_000  # of all versions together
MAX_ITEMS = 100_000  # of all lists of one version that are written as a loop in brackets
# Of the processor, for one version in a first look, and in full; rounds end nearly all before.
MAX_SECONDS, MAX_SECONDS_IN_FULL = 4.0, 15.0
COUNTER, ITEMS = "_round_of_a_loop", "_items_of_a_list"
EACH, ONCE_MORE = "_each_round", "_once_more"
FILE = "<cell another version>"
KEPT = modules.Kept()
EIGENVALUES = ("eig", "eigvals", "eigh", "eigvalsh")
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
CONTAINERS = (ast.Dict, ast.List, ast.Set)
MAKES_CONTAINERS = ("dict", "list", "set", "defaultdict", "OrderedDict")
LOOP = re.compile(r"\b(?:for|while)\b")
OF_ITS_CLASS = re.compile(r"\b__\w+(?<!__)\b")  # names that mean something else outside of a class
# How a method is made outside of its class, so that it finds what `super()` needs.
METHOD = "def _made(__class__):\n{}\n{}return {}"


def run(runner, header: dict, tensors: dict) -> tuple[dict, dict]:
    """What the calls give with each of the texts in the place of the answer's own definitions;
    None for one that stops with an error, where none is `wanted`. Or the `steps` of one text."""
    with _quiet():
        if header.get("steps"):
            version = type(runner)(dict(runner.namespace))
            _define(ast.parse(header["texts"][0]), version.namespace, _Rounds(MAX_ROUNDS))
            return sys.modules["course_steps"].run(version, header, tensors)
        base = _Base.of(header["base"], runner) if header.get("base") else None
        return _outcomes(runner, base, header, tensors)


def _outcomes(runner, base: _Base | None, header: dict, tensors: dict) -> tuple[dict, dict]:
    """What the calls give of each version, and the tensors of it."""
    found, out, left = [], {}, MAX_ALL
    for text in header["texts"]:
        if not left:
            found.append(None)
            continue
        most = MAX_ROUNDS if base else MAX_IN_FULL
        before, outcomes, bound = list(out), None, _Rounds(min(left, most))
        put = base.put if base else partial(_itself, runner)
        # What stops it may be a decorator, a default value, the bound.
        seconds = MAX_SECONDS if base else MAX_SECONDS_IN_FULL
        in_time = _in_time(bound, seconds)
        with contextlib.suppress(BaseException), in_time, put(text, bound) as version:
            version.brief = not header.get("wanted")
            with bound.at_work():
                outcomes = [version.call(call, tensors, out) for call in header["calls"]]
        left = 0 if bound.late else max(0, left - bound.count)
        failed = outcomes is None or any(each.get("error") for each in outcomes)
        if bound.passed or (failed and not (header.get("wanted") or header.get("ends"))):
            outcomes = None
            for name in list(out)[len(before) :]:
                del out[name]
        found.append(outcomes)
    return {"versions": found}, out


@contextlib.contextmanager
def _in_time(bound: _Rounds, seconds: float) -> Iterator[None]:
    """Stops a version that computes for long, where the system can tell and the thread can hear."""

    def stop(number, frame):
        bound.late = True
        while frame is not None and not bound.works:  # nothing of our own is stopped halfway
            if frame.f_code.co_filename == FILE:
                break
            frame = frame.f_back
        if frame is not None:
            raise _Passed

    try:
        before = signal.signal(signal.SIGVTALRM, stop)
    except (AttributeError, ValueError):  # another system; not the main thread
        yield
        return
    try:
        # Once more after that, for a version may catch what stops it.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 4)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before or signal.SIG_DFL)  # None: not set from Python


@contextlib.contextmanager
def _itself(runner, text: str, bound: _Rounds) -> Iterator:
    """A runner with all that a version defines."""
    version = type(runner)(dict(runner.namespace))
    _define(ast.parse(text), version.namespace, bound)
    yield version


# --- versions that differ in one function --------------------------------------------------------
@dataclass(frozen=True)
class _Function:
    """A function at the top of a text, or a method of a class there."""

    node: ast.FunctionDef
    owner: str = ""  # the class


class _Base:
    """A text that is defined once; its versions are it with one other function."""

    def __init__(self, text: str, runner):
        self.lines = text.splitlines()
        self.runner = runner
        self.namespace, self.bound = dict(runner.namespace), _Rounds(MAX_ROUNDS)
        tree = ast.parse(text)
        self.counted, self.wide = _with_counts(tree, self.lines)
        self.functions = list(_functions(tree))
        self.names = [(each.owner, each.node.name) for each in self.functions]
        self.held, self.building = _held(tree), _building(self.functions)
        _define(tree, self.namespace, self.bound)
        self.built: dict[int, _Built] = {}  # by the call's id

    @classmethod
    def of(cls, text: str, runner) -> _Base | None:
        """None of what cannot be defined, or keeps something from call to call."""
        try:
            return None if keeps(ast.parse(text)) or "global " in text else cls(text, runner)
        except BaseException:  # of a decorator, a default value
            return None

    @contextlib.contextmanager
    def put(self, text: str, bound: _Rounds) -> Iterator:
        """A runner with a version: where one function differs with that one in its place."""
        changed = self._changed(text.splitlines())
        if changed is None:
            with _itself(self.runner, text, bound) as version:
                version.kept = KEPT
                yield version
            return
        function, source, code = changed
        version = type(self.runner)(self.namespace)
        if function.node.name not in self.building:
            version.target = self._target(version.target)
        version.kept = KEPT
        self.bound.restart(bound)
        where = self.namespace[function.owner] if function.owner else self.namespace
        own = vars(where) if function.owner else where
        old = own[function.node.name]
        _set(where, function.node.name, self._made(function, source, code))
        try:
            yield version
        finally:
            _set(where, function.node.name, old)
            bound.count = self.bound.count

    def _changed(self, lines: list[str]) -> tuple[_Function, str, str] | None:
        """The one function in which a text differs, what stands there, and the same with counts in
        its loops; '' for that where it is not plain where these belong."""
        more = len(lines) - len(self.lines)
        pairs = zip(self.lines, lines, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        pairs = zip(reversed(self.lines), reversed(lines), strict=False)
        last = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if first is None or last is None:
            return None
        last = len(self.lines) - last  # behind the last line that differs
        for function in self.functions:
            start, end = function.node.lineno - 1, function.node.end_lineno
            if start <= min(first, last) and max(first, last) <= end and end + more > start:
                source = "\n".join(lines[start : end + more])
                if not self._stands_alone(function, source):
                    return None
                changed = range(min(first, last), max(first, last))
                own = self._with_the_same_counts(lines, changed, range(start, end), more)
                return function, source, own
        return None

    def _with_the_same_counts(
        self, lines: list[str], changed: range, function: range, more: int
    ) -> str:
        """A function with counts in its loops; '' where it is not plain where these belong."""
        new = _counted_alone(lines[changed.start : changed.stop + more])
        if new is None or self.wide & {*function}:
            return ""
        before, after = range(function.start, changed.start), range(changed.stop, function.stop)
        before, after = ([self.counted[i] for i in lines] for lines in (before, after))
        return "\n".join([*before, *new, *after])

    def _stands_alone(self, function: _Function, source: str) -> bool:
        """Whether a function can be put in another's place, and nothing else has that one."""
        name = function.node.name
        bound = function.owner and OF_ITS_CLASS.search(source)
        kept = function.node.decorator_list or name in self.held
        same = re.search(rf"\bdef {name}\b", source)  # it may have got another name
        alone = self.names.count((function.owner, name)) == 1
        return bool(same) and alone and not (bound or kept)

    def _made(self, function: _Function, source: str, code: str) -> Callable:
        """The function that stands in a version. code: with counts in its loops, where known."""
        text, local, name = code or source, {}, function.node.name
        loops = not code and LOOP.search(text)
        line = function.node.lineno - 1
        if function.owner:
            line, text = line - 1, METHOD.format(text, " " * function.node.col_offset, name)
        text = "\n" * line + text  # so that an error tells the line where it stands
        exec(_compiled(ast.parse(text) if loops else text), self.namespace, local)
        if function.owner:
            return local["_made"](self.namespace[function.owner])
        if set(local) != {name}:
            raise ValueError("it is no other version of this function")
        return local[name]

    def _target(self, build: Callable) -> Callable:
        """What to call, as a runner finds it: an object is built once for a call."""

        def target(call: dict, tensors: Mapping, outcome: dict) -> tuple:
            if call.get("build") is None or call.get("on") or call.get("mend"):
                return build(call, tensors, outcome)
            kept = self.built.get(id(call))
            if kept is None or not modules.is_same(kept.state, modules.held(kept.object)):
                own: dict = {}
                found, parameters = build(call, tensors, own)
                state = modules.held(found)
                kept = _Built(found, parameters, own, torch.get_rng_state(), state)
                self.built[id(call)] = kept
            elif call.get("seed") is not None:
                torch.set_rng_state(kept.dice)
            outcome.update(kept.outcome)
            return kept.object, kept.parameters

        return target


@dataclass(frozen=True)
class _Built:
    """An object as it was built: what is told of it, the dice, and the state that it was in."""

    object: object
    parameters: dict
    outcome: dict
    dice: torch.Tensor
    state: list


def _set(where, name: str, value) -> None:
    """Puts a function into a class, or a namespace."""
    if isinstance(where, dict):
        where[name] = value
    else:
        setattr(where, name, value)


def _functions(tree: ast.Module) -> Iterator[_Function]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield _Function(node)
        elif isinstance(node, ast.ClassDef):
            yield from (
                _Function(n, node.name) for n in node.body if isinstance(n, ast.FunctionDef)
            )


def _held(tree: ast.Module) -> set[str]:
    """The names that are read while a text is defined: what holds them keeps them."""
    left, found = [n for n in tree.body if isinstance(n, DEFINES)], set()
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef):
            left += [
                *node.decorator_list,
                *node.args.defaults,
                *filter(None, node.args.kw_defaults),
            ]
        else:
            found |= _names_of(node)
            left += ast.iter_child_nodes(node)
    return found


def _building(functions: list[_Function]) -> set[str]:
    """The names of what objects are built with: `__init__`, and what it reads, and so on."""
    found, before = {"__init__"}, set()
    while found != before:
        before = set(found)
        for each in functions:
            if each.node.name in before:
                found |= {name for node in ast.walk(each.node) for name in _names_of(node)}
    return found


def _names_of(node: ast.AST) -> set[str]:
    return {getattr(node, "id", None), getattr(node, "attr", None)} - {None}


# --- defining ------------------------------------------------------------------------------------
@contextlib.contextmanager
def _quiet():
    """Nothing that a version prints is shown, and no warning."""
    nowhere = io.StringIO()
    out, err = contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere)
    with out, err, warnings.catch_warnings(), _without_crashes():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _without_crashes() -> Iterator:
    """Eigenvalues of what holds NaN raise: some builds of LAPACK end the process there."""
    kept = {name: getattr(torch.linalg, name) for name in EIGENVALUES}

    def guarded(of: Callable) -> Callable:
        def only_of_numbers(matrix, *args, **more):
            if not torch.isfinite(matrix).all():
                raise ValueError("eigenvalues of what holds NaN or infinity")
            return of(matrix, *args, **more)

        return only_of_numbers

    for name, of in kept.items():
        setattr(torch.linalg, name, guarded(of))
    try:
        yield
    finally:
        for name, of in kept.items():
            setattr(torch.linalg, name, of)


def keeps(tree: ast.Module) -> bool:
    """Whether a function may keep things: in a container of the text, or in one of its own."""
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    defaults = (d for f in functions for d in (*f.args.defaults, *f.args.kw_defaults))
    return any(map(_is_filled_later, tree.body)) or any(map(_is_empty, defaults))


def _is_filled_later(node: ast.AST) -> bool:
    """Whether a statement makes an empty container."""
    return isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty(node.value)


def _is_empty(value: ast.AST | None) -> bool:
    """Whether an expression is an empty container."""
    if isinstance(value, ast.Call):
        name = getattr(value.func, "id", getattr(value.func, "attr", ""))
        return name in MAKES_CONTAINERS and all(isinstance(a, ast.Name) for a in value.args)
    inside = getattr(value, "elts", None) or getattr(value, "values", None)
    return isinstance(value, CONTAINERS) and not inside


def _define(tree: ast.Module, namespace: dict, bound: _Rounds) -> None:
    """Runs what a text defines, and nothing else of it; the rounds of its loops are counted. What a
    function keeps is empty again: it is of another version."""
    tree.body = [n for n in tree.body if isinstance(n, DEFINES) or _is_filled_later(n)]
    namespace |= {COUNTER: bound.one, ITEMS: bound.each, EACH: bound.rounds, ONCE_MORE: bound.again}
    exec(_compiled(tree), namespace)


def _compiled(tree: ast.Module | str):
    """The code of a text, with a count in each loop; of what has none the text will do."""
    for node in ast.walk(tree) if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.comprehension):
            items = ast.Call(ast.Name(ITEMS, ast.Load()), [node.iter], [])
            node.iter = ast.fix_missing_locations(ast.copy_location(items, node.iter))
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            counted = ast.Expr(ast.Call(ast.Name(COUNTER, ast.Load()), [], []))
            ast.copy_location(counted, node)
            node.body.insert(0, ast.fix_missing_locations(counted))
    return compile(tree, FILE, "exec", dont_inherit=True)


def _with_counts(tree: ast.Module, lines: list[str]) -> tuple[list[str], set[int]]:
    """The lines of a text with a count in each loop; and the lines, by their numbers from 0, that
    have none, since a loop's head is written over several or its place is not known."""
    put: list[tuple[int, int, str]] = []
    wide: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            head, name = node.iter, EACH if isinstance(node, ast.For) else ITEMS
        elif isinstance(node, ast.While):
            head, name = node.test, ONCE_MORE
        elif isinstance(node, ast.AsyncFor | ast.JoinedStr):  # places in a text are told wrongly
            wide |= {*range(node.lineno - 1, node.end_lineno)}
            continue
        else:
            continue
        first, last = head.lineno - 1, head.end_lineno
        if last - first > 1 or not lines[first].isascii():
            wide |= {*range(first, last)}
        else:
            put += [(first, head.col_offset, f"{name}(("), (first, head.end_col_offset, "))")]
    counted = list(lines)
    for line, column, text in sorted(put, reverse=True):
        if line not in wide:
            counted[line] = counted[line][:column] + text + counted[line][column:]
    return counted, wide


def _counted_alone(lines: list[str]) -> list[str] | None:
    """Some lines of a function with a count in each loop, where they can be read alone."""
    if not any(map(LOOP.search, lines)):
        return lines
    text = "\n".join(["if True:", *lines])
    with contextlib.suppress(SyntaxError, ValueError):
        tree = ast.parse(f"{text} pass" if lines[-1].rstrip().endswith(":") else text)
        counted, wide = _with_counts(tree, ["", *lines])
        return None if wide else counted[1:]
    return None


class _Passed(BaseException):
    """More rounds ran than may."""


class _Rounds:
    """Counts the rounds of a version's loops, and stops it where they pass a bound."""

    def __init__(self, most: int):
        self.most, self.count, self.items = most, 0, 0
        self.late = False  # whether it was stopped for its time
        self.works = False  # whether calls are made, or what they gave is read

    @property
    def passed(self) -> bool:
        """Whether it was stopped."""
        return self.late or self.count > self.most

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While calls are made: they may be stopped anywhere."""
        self.works = True
        try:
            yield
        finally:
            self.works = False

    def restart(self, other: _Rounds) -> None:
        """Counts for another version."""
        self.most, self.count, self.items = other.most, 0, 0

    def one(self) -> None:
        """A round begins."""
        self.count += 1
        if self.count > self.most:
            raise _Passed

    def rounds(self, items):
        """What a loop takes, one by one."""
        for item in items:
            self.one()
            yield item

    def again(self, condition):
        """A condition under which a loop goes on."""
        self.one()
        return condition

    def each(self, items):
        """The items of which a list is made."""
        for item in items:
            self.items += 1
            if self.items > MAX_ITEMS:
                self.count = self.most + 1
                raise _Passed
            yield item
