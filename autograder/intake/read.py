"""One file in, one `Submission` out; never an exception for anything a student can hand in.

The file is opened without following links, read up to a cap, and parsed as JSON; then `repair`
puts its cells in their places. Only cell types, ids and texts are looked at. What cannot be read
becomes a `Submission` whose `error` says why, in one sentence.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from autograder.course.lesson import Lesson, Role
from autograder.intake.matching import asked_for, defined, forget, same_text
from autograder.intake.repair import clean, match, raw_cells
from autograder.intake.submission import RawCell, StudentCell, Submission

__all__ = ["StudentCell", "Submission", "Unreadable", "read", "read_bytes", "read_from"]

LARGEST_FILE = 20_000_000  # bytes
LARGEST_CELL = 200_000  # characters
MOST_CELLS = 1_000
MOST_TEXT = 1_000_000  # characters in all cells together
MOST_BRACKETS = 1_000_000  # each opens a list or dict of at least 56 bytes in memory
MOST_REPAIRS = 60
CLEAR_MARGIN = 1.2  # how much better the best lesson must fit than the next one


class Unreadable(Exception):
    """The file is not a notebook that can be read; the text says why and what to do."""


def read(
    path: Path,
    lessons: dict[str, Lesson],
    expected: str | None = None,
    below: Path | None = None,
) -> Submission:
    """Reads and repairs one notebook.

    lessons: all released lessons by name. expected: the lesson that was asked for, if it is known.
    below: a folder of ours; no folder between it and the file may be a link.
    The lesson is told from the cells, and from the file's name where they leave it open.
    """
    path = Path(path)

    def take() -> bytes:
        if below is not None:
            refuse_linked_folders(path, Path(below))
        return read_bytes(path)

    name = clean(os.fspath(path).encode("utf-8", "replace").decode("utf-8"))
    return read_from(take, name, path.stem, lessons, expected)


def read_from(
    take: Callable[[], bytes],
    shown: str,
    stem: str,
    lessons: dict[str, Lesson],
    expected: str | None = None,
) -> Submission:
    """As `read`, for a notebook that lies elsewhere: `take` gives its bytes or raises `Unreadable`.

    shown: how the notebook is called in what is said of it. stem: its file's name.
    """
    named = lesson_in_name(stem, lessons)
    try:
        cells, repairs = _small_cells(parse_notebook(take()))
        name = recognise(cells, lessons, named, expected)
        placed, more = match(lessons[name], cells)
    except Unreadable as error:
        return Submission(shown, expected or named, (), (), str(error))
    except (RecursionError, MemoryError):
        return Submission(shown, expected or named, (), (), "The notebook is nested too deeply.")
    finally:
        forget()
    said = [*repairs, *more]
    if name != named:
        said.insert(0, f"The file's name does not say which lesson it is: read as {name}.")
    if len(said) > MOST_REPAIRS:
        said[MOST_REPAIRS:] = [f"{len(said) - MOST_REPAIRS} more repairs are not listed."]
    return Submission(shown, name, placed, tuple(said), None)


def refuse_linked_folders(path: Path, below: Path) -> None:
    """Raises `Unreadable` where a folder between `below` and the file is a link."""
    for folder in path.parents:
        if folder == below or below.is_relative_to(folder):
            return
        if folder.is_symlink():
            raise Unreadable("The file lies in a linked folder; hand in the folder itself.")


def read_bytes(path: Path, limit: int = LARGEST_FILE) -> bytes:
    """The content of a regular file that is no link and no larger than `limit` bytes.

    Raises `Unreadable`. Never waits: a FIFO or a device is refused, not read.
    """
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise Unreadable("The file is a link; hand in the notebook itself.")
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise Unreadable("There is no such file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not allowed"
        raise Unreadable(f"The file cannot be opened ({reason}).") from None
    try:
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            raise Unreadable("This is a folder; give the notebook in it.")
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable("This is not a regular file; hand in the notebook itself.")
        if facts.st_nlink > 1:
            raise Unreadable("The file has a second name (a hard link); hand in a copy of it.")
        if facts.st_size > limit:
            raise Unreadable(_too_large(facts.st_size, limit))
        with os.fdopen(os.dup(handle), "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Unreadable(f"The file cannot be read ({error.strerror}).") from None
    finally:
        os.close(handle)
    if len(data) > limit:
        raise Unreadable(_too_large(len(data), limit))
    return data


def _too_large(size: int, limit: int) -> str:
    return (
        f"The file has {size / 1e6:.0f} MB; at most {limit / 1e6:.0f} MB are read. "
        "Clear the outputs of all cells and hand it in again."
    )


def parse_notebook(data: bytes) -> list[RawCell]:
    """The cells of a notebook file; raises `Unreadable` for anything that is none."""
    if not data.strip():
        raise Unreadable("The file is empty.")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise Unreadable("The file is not UTF-8 text, so it is not a notebook.") from None
    if text.count("[") + text.count("{") > MOST_BRACKETS:
        raise Unreadable("The file has too many parts; clear the outputs and hand it in again.")
    try:
        # No number of a notebook matters here; reading none keeps memory and time small.
        notebook = json.loads(
            text, strict=False, parse_int=_no, parse_float=_no, parse_constant=_no
        )
    except RecursionError:
        raise Unreadable("The notebook is nested too deeply.") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise Unreadable(
            f"The file is not a notebook: its JSON breaks off or is wrong at line {line}. "
            "Save it again from Jupyter and hand that in."
        ) from None
    if not isinstance(notebook, dict) or not {"cells", "worksheets"} & set(notebook):
        raise Unreadable("The file is not a notebook: it has no cells.")
    cells = raw_cells(notebook)
    if not cells:
        raise Unreadable("The notebook has no cells.")
    if len(cells) > MOST_CELLS:
        raise Unreadable(f"The notebook has {len(cells)} cells; at most {MOST_CELLS} are read.")
    return cells


def _no(_: str) -> int:
    return 0


def _small_cells(cells: list[RawCell]) -> tuple[list[RawCell], list[str]]:
    """The cells with those emptied that are too long, and a sentence for each."""
    kept, repairs = [], []
    for place, cell in enumerate(cells, start=1):
        if len(cell.source) > LARGEST_CELL:
            repairs.append(
                f"Cell {place} has {len(cell.source)} characters; at most {LARGEST_CELL} are "
                "read, so it counts as empty."
            )
            cell = cell._replace(source="")
        kept.append(cell)
    total = sum(len(cell.source) for cell in kept)
    if total > MOST_TEXT:
        raise Unreadable(f"The cells hold {total} characters; at most {MOST_TEXT} are read.")
    return kept, repairs


def lesson_in_name(stem: str, lessons: dict[str, Lesson]) -> str | None:
    """The lesson whose name is part of a file's name, also as '05-Homework (1)'."""

    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]+", "_", text.lower())

    fits = [name for name in lessons if plain(name) in plain(stem)]
    return max(fits, key=len, default=None)


def recognise(
    cells: list[RawCell],
    lessons: dict[str, Lesson],
    named: str | None,
    expected: str | None,
) -> str:
    """The lesson that the cells belong to; raises `Unreadable` where it is none or another."""
    if expected is not None and expected not in lessons:
        raise Unreadable(f"There is no lesson called {expected}.")
    score = {name: overlap(lesson, cells) for name, lesson in lessons.items()}
    ranked = sorted(score, key=lambda name: -score[name])
    best = ranked[0] if ranked else None
    second = score[ranked[1]] if len(ranked) > 1 else 0
    clear = best is not None and score[best] > 0 and score[best] >= CLEAR_MARGIN * second
    wanted = expected or named
    fits = wanted is not None and score[wanted] > 0
    if fits and (not clear or best == wanted or score[best] < 3 * score[wanted]):
        return wanted
    if not clear:
        if wanted is not None:
            raise Unreadable(f"None of the cells of {wanted} was found in this notebook.")
        raise Unreadable("This is not a notebook of the course: no lesson fits its cells.")
    if expected is not None and best != expected:
        raise Unreadable(f"This is the notebook of {best}; {expected} was asked for.")
    return best


def overlap(lesson: Lesson, cells: list[RawCell]) -> int:
    """How much of a lesson a notebook holds: answers by id or name, and released texts."""
    ids = {name for cell in cells for name in (cell.id, cell.grade_id)}
    texts = {same_text(cell.source) for cell in cells}
    names = set().union(*(defined(c.source) for c in cells if c.kind == "code"))
    count = 0
    for target in lesson.cells:
        count += same_text(target.source) in texts and bool(target.source.strip())
        if target.role in (Role.EXERCISE, Role.QUESTION, Role.CHECK):
            count += target.id in ids
        if target.role == Role.EXERCISE:
            count += bool(asked_for(target) & names)
    return count
