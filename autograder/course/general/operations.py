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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import torch
from torch.overrides import TorchFunctionMode

from autograder.course.general.altered import ALTERED, BEGINS
from autograder.course.general.asked import REDUCES, Asked, alike, words
from autograder.course.general.changes import changes
from autograder.course.general.where import made_there

OPERATION = f"{ALTERED}operation "  # how the checks begin
MOST = 800  # changes of one answer
WORK = 300_000  # operations of all of them together: of a long answer fewer are tried
LATE = ("arange", "getitem")  # operations that are changed after the others
LONGER = 4  # times as many operations as usual, after which a changed answer is stopped
DEEPEST = 16  # frames between an operation and the answer's own text

Site = tuple  # the code and the place in it that ask for an operation
Operation = tuple[str, str, Callable[[], "_Changed"]]  # check, sentence, what changes it


def operations(folder: Path, run: Callable[[TorchFunctionMode], object]) -> Iterator[Operation]:
    """All changes of one operation of an answer, in the order of its steps.

    folder: where the answer's text lies. run: runs one call of the answer in what it is given.
    """
    seen = _Seen(str(folder))
    run(seen)
    most = min(MOST, WORK // max(seen.count, 1))
    yield from itertools.islice(_all(seen), most)


def _all(seen: _Seen) -> Iterator[Operation]:
    """The likeliest change of each operation, then the next one of each."""
    called = [words(asked.name) for asked in seen.first.values()]
    of_each = []
    for number, (site, asked) in enumerate(seen.first.items()):
        said = called[number]
        article = "the" if called.count(said) == 1 else "an" if said[0] in "aeiou" else "a"
        made = made_there(*site)
        way = f"on the way to `{made}` " if made else ""
        found = _of_one(f"{number} {asked.name}", f"{article} {said}", way, site, asked, seen)
        of_each.append((asked.name in LATE, found))
    of_each.sort(key=lambda each: each[0])  # what is less likely to be a slip comes last
    yield from _of_all_axes(seen)
    for row in itertools.zip_longest(*(found for _, found in of_each)):
        yield from (each for each in row if each is not None)


def _of_one(name: str, said: str, way: str, site: Site, asked: Asked, seen) -> Iterator[Operation]:
    for place, right, other in seen.others[site]:
        text = f"{BEGINS}{way}`{other}` stands in {said} where `{right}` belongs."
        taken = {site: _Taken(place, other)}
        yield f"{OPERATION}{name} {other} for {right}", text, partial(_Changed, seen, taken)
    for what, says, change in changes(asked):
        text = f"{BEGINS}{way}{says.format(said)}."
        yield f"{OPERATION}{name} {what}", text, partial(_Changed, seen, {site: change})


def _of_all_axes(seen: _Seen) -> Iterator[Operation]:
    """All sums, means and the like over another axis: who takes one for another does so twice."""
    together = {site: asked for site, asked in seen.first.items() if asked.name in REDUCES}
    if len(together) < 2:
        return
    ways: dict[str, dict[Site, Callable]] = {}
    for site, asked in together.items():
        for what, _, change in changes(asked):
            if what.startswith("along "):
                ways.setdefault(what, {})[site] = change
    listed = " and ".join(dict.fromkeys(f"each {words(a.name)}" for a in together.values()))
    for what, changed in ways.items():
        if len(changed) == len(together):
            axes = what.removeprefix("along ")
            over = f"axis {axes}" if axes.isdigit() else f"axes {axes.strip('()')}"
            over = "everything" if axes == "all" else over
            text = f"{BEGINS}{listed} runs over {over}."
            yield f"{OPERATION}all {what}", text, partial(_Changed, seen, changed)


class _Mode(TorchFunctionMode):
    """Knows from which place of an answer's text an operation is asked for."""

    frame: FrameType

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
                self.frame = frame
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
        self.others: dict[Site, list[tuple[int, str, str]]] = {}
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        value = func(*args, **(kwargs or {}))
        self.count += 1
        site = self.site()
        if site is not None and site not in self.first:
            self.first[site] = Asked.of(func, args, kwargs or {}, value)
            self.others[site] = list(_other_variables(self.frame, args))
        return value


def _other_variables(frame: FrameType, args: tuple) -> Iterator[tuple[int, str, str]]:
    """The variables that could stand in an argument's place: which, its name, and the other's."""
    local = {n: v for n, v in frame.f_locals.items() if isinstance(v, torch.Tensor)}
    for place, given in enumerate(args[:2]):
        name = next((n for n, v in local.items() if v is given), "")
        for other, value in local.items() if name else ():
            if value is not given and alike(value, given):
                yield place, name, other


@dataclass(frozen=True)
class _Taken:
    """A variable that is taken for an argument."""

    place: int
    name: str


def _all_finite(args: tuple) -> bool:
    return all(bool(a.isfinite().all()) for a in args if isinstance(a, torch.Tensor))


class _Changed(_Mode):
    """Makes some places do something else, and keeps what they give then."""

    def __init__(self, seen: _Seen, changes: Mapping[Site, Callable | _Taken]):
        super().__init__(seen.folder)
        self.changes, self.left = changes, LONGER * seen.count + 1000
        self.made: list[torch.Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.left -= 1
        if self.left < 0:  # a loop that waited for a number which now never comes
            raise RuntimeError("a changed operation does not come to an end")
        if getattr(func, "__name__", "").startswith("linalg_") and not _all_finite(args):
            raise RuntimeError("a matrix of NaN")  # of which the library complains on the screen
        change = self.changes.get(self.site())
        if change is None:
            return func(*args, **(kwargs or {}))
        if isinstance(change, _Taken):
            taken = self.frame.f_locals[change.name]
            value = func(*args[: change.place], taken, *args[change.place + 1 :], **(kwargs or {}))
        else:
            value = change(func, args, kwargs or {})
        self.made += [value] if isinstance(value, torch.Tensor) else []
        return value
