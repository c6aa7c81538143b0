"""Asks other versions of an answer: the student's own definitions with one small change each.

Loaded by its path inside the sandbox, beside the runner. A change may make a loop endless, also in
a student's own notebook: how many lines run is counted, and what passes the bound is given up.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys

MAX_LINES = 20_000  # of one version that may run
MAX_ALL = 300_000  # of all versions together
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def run(runner, header: dict, tensors: dict) -> tuple[dict, dict]:
    """What the calls give with each of the texts in the place of the answer's own definitions;
    None for one that stops with an error, where none is `wanted`. Or the `steps` of one text."""
    if header.get("steps"):
        version, bound = type(runner)(dict(runner.namespace)), _Lines(MAX_LINES)
        with _quiet(), bound:
            _define(header["texts"][0], version.namespace)
            return sys.modules["course_steps"].run(version, header, tensors)
    found, out, left = [], {}, MAX_ALL
    for text in header["texts"]:
        before, bound = list(out), _Lines(min(left, MAX_LINES))
        outcomes = _outcomes(runner, text, header["calls"], tensors, out, bound) if left else None
        left = max(0, left - bound.count)
        failed = outcomes is None or any(each.get("error") for each in outcomes)
        if bound.passed or (failed and not header.get("wanted")):
            outcomes = None
            for name in list(out)[len(before) :]:
                del out[name]
        found.append(outcomes)
    return {"versions": found}, out


def _outcomes(runner, text: str, calls: list, tensors: dict, out: dict, bound) -> list | None:
    """What the calls give of one version; None where it cannot even be defined."""
    version = type(runner)(dict(runner.namespace))
    with _quiet(), bound:
        try:
            _define(text, version.namespace)
            return [version.call(call, tensors, out) for call in calls]
        except BaseException:  # of a decorator, a default value, the bound
            return None


@contextlib.contextmanager
def _quiet():
    """Nothing that a version prints is shown."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


def _define(text: str, namespace: dict) -> None:
    """Runs what a text defines, and nothing else of it."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if isinstance(node, DEFINES)]
    exec(compile(tree, _Lines.FILE, "exec", dont_inherit=True), namespace)


class _Passed(BaseException):
    """More lines ran than may."""


class _Lines:
    """Counts the lines of a version that run, and stops it where they pass a bound."""

    FILE = "<cell another version>"

    def __init__(self, most: int):
        self.most, self.count, self._before = most, 0, None

    @property
    def passed(self) -> bool:
        """Whether it was stopped."""
        return self.count > self.most

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _called(self, frame, event, argument):
        return self._line if frame.f_code.co_filename == self.FILE else None

    def _line(self, frame, event, argument):
        if event == "line":
            self.count += 1
            if self.count > self.most:
                raise _Passed
        return self._line
