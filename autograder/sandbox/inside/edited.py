"""Asks other versions of an answer: the student's own definitions with one small change each.

Loaded by its path inside the sandbox, beside the runner. A change may make a loop endless, also in
a student's own notebook: how many rounds run is counted, and what passes the bound is given up.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import warnings

MAX_ROUNDS = 3_000  # of the loops of one version
MAX_ALL = 50_000  # of all versions together
COUNTER = "_round_of_a_loop"
FILE = "<cell another version>"
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def run(runner, header: dict, tensors: dict) -> tuple[dict, dict]:
    """What the calls give with each of the texts in the place of the answer's own definitions;
    None for one that stops with an error, where none is `wanted`. Or the `steps` of one text."""
    if header.get("steps"):
        version = type(runner)(dict(runner.namespace))
        with _quiet():
            _define(header["texts"][0], version.namespace, _Rounds(MAX_ROUNDS))
            return sys.modules["course_steps"].run(version, header, tensors)
    found, out, left = [], {}, MAX_ALL
    for text in header["texts"]:
        before, bound = list(out), _Rounds(min(left, MAX_ROUNDS))
        version = type(runner)(dict(runner.namespace))
        version.brief = not header.get("wanted")
        outcomes = _outcomes(version, text, header["calls"], tensors, out, bound) if left else None
        left = max(0, left - bound.count)
        failed = outcomes is None or any(each.get("error") for each in outcomes)
        if bound.passed or (failed and not header.get("wanted")):
            outcomes = None
            for name in list(out)[len(before) :]:
                del out[name]
        found.append(outcomes)
    return {"versions": found}, out


def _outcomes(version, text: str, calls: list, tensors: dict, out: dict, bound) -> list | None:
    """What the calls give of one version; None where it cannot even be defined."""
    with _quiet():
        try:
            _define(text, version.namespace, bound)
            return [version.call(call, tensors, out) for call in calls]
        except BaseException:  # of a decorator, a default value, the bound
            return None


@contextlib.contextmanager
def _quiet():
    """Nothing that a version prints is shown, and no warning."""
    nowhere = io.StringIO()
    out, err = contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere)
    with out, err, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _define(text: str, namespace: dict, bound) -> None:
    """Runs what a text defines, and nothing else of it; the rounds of its loops are counted."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if isinstance(node, DEFINES)]
    left: list[ast.AST] = [tree]
    while left:  # statements alone: no expression has a loop of this kind
        node = left.pop()
        for name in BLOCKS:
            left += getattr(node, name, ())
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            counted = ast.Expr(ast.Call(ast.Name(COUNTER, ast.Load()), [], []))
            ast.copy_location(counted, node)
            node.body.insert(0, ast.fix_missing_locations(counted))
    namespace[COUNTER] = bound.one
    exec(compile(tree, FILE, "exec", dont_inherit=True), namespace)


class _Passed(BaseException):
    """More rounds ran than may."""


class _Rounds:
    """Counts the rounds of a version's loops, and stops it where they pass a bound."""

    def __init__(self, most: int):
        self.most, self.count = most, 0

    @property
    def passed(self) -> bool:
        """Whether it was stopped."""
        return self.count > self.most

    def one(self) -> None:
        """A round begins."""
        self.count += 1
        if self.count > self.most:
            raise _Passed
