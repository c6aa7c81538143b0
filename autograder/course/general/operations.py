"""The right answer with one of its operations changed: a softmax over another axis, a sum for a
mean, a transpose that is left out, a comparison with < for <=.

Who gives, on every call, just what the answer gives with such a change has made it, or what comes
to the same, whatever the code looks like. The changes are made while the answer runs, at one place
of its text, so that nobody has to write them down.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode

from autograder.course.general.altered import ALTERED, BEGINS
from autograder.course.general.changes import Asked, changes, words
from autograder.course.general.where import made_there

OPERATION = f"{ALTERED}operation "  # how the checks begin
MOST = 400  # changes of one answer
WORK = 150_000  # operations of all of them together: of a long answer fewer are tried
DEEPEST = 16  # frames between an operation and the answer's own text

Site = tuple  # the code and the place in it that ask for an operation
Operation = tuple[str, str, Callable[[], TorchFunctionMode]]  # check, sentence, what changes it


def operations(folder: Path, run: Callable[[TorchFunctionMode], object]) -> Iterator[Operation]:
    """All changes of one operation of an answer, in the order of its steps.

    folder: where the answer's text lies. run: runs one call of the answer in what it is given.
    """
    seen = _Seen(str(folder))
    run(seen)
    most = min(MOST, WORK // max(seen.count, 1))
    yield from itertools.islice(_all(seen), most)


def _all(seen: _Seen) -> Iterator[Operation]:
    called = [words(asked.name) for asked in seen.first.values()]
    for number, (site, asked) in enumerate(seen.first.items()):
        said = called[number]
        article = "the" if called.count(said) == 1 else "an" if said[0] in "aeiou" else "a"
        made = made_there(*site)
        way = f"on the way to `{made}` " if made else ""
        for what, says, change in changes(asked):
            text = says.format(f"{article} {said}")
            check = f"{OPERATION}{number} {asked.name} {what}"
            changed = functools.partial(_Changed, seen.folder, site, change)
            yield check, f"{BEGINS}{way}{text}.", changed


class _Mode(TorchFunctionMode):
    """Knows from which place of an answer's text an operation is asked for."""

    def __init__(self, folder: str):
        super().__init__()
        self.folder = folder

    def site(self) -> Site | None:
        """The nearest place in the answer's folder; None where only a library's code asks."""
        frame = sys._getframe(2)
        for _ in range(DEEPEST):
            if frame is None:
                return None
            code = frame.f_code
            if code.co_filename.startswith(self.folder):
                return None if code.co_name == "__init__" else (code, frame.f_lasti)
            if not _is_torch(code.co_filename):
                return None
            frame = frame.f_back
        return None


@functools.cache
def _is_torch(file: str) -> bool:
    return file.startswith(str(Path(torch.__file__).parent))


class _Seen(_Mode):
    """Writes down the first time that each place asks for its operation, and how many ask."""

    def __init__(self, folder: str):
        super().__init__(folder)
        self.first: dict[Site, Asked] = {}
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        value = func(*args, **(kwargs or {}))
        self.count += 1
        site = self.site()
        if site is not None and site not in self.first:
            self.first[site] = Asked.of(func, args, kwargs or {}, value)
        return value


class _Changed(_Mode):
    """Makes one place do something else."""

    def __init__(self, folder: str, site: Site, change: Callable):
        super().__init__(folder)
        self.changed, self.change = site, change

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if self.site() == self.changed:
            return self.change(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


