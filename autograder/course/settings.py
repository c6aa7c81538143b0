"""What a course says of itself: the table `[tool.autograder]` of its `pyproject.toml`."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

KINDS = {
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
}


class CourseError(Exception):
    """Something of the course itself is missing or broken; the text says what to do."""

    def _render_traceback_(self):
        return [f"CourseError: {self}"]


class NoCourse(CourseError):
    """Here is no course at all."""


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5, show=repr) -> str:
    """' Did you mean X?' for the known name that is nearest; empty where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {show(near[0])}?" if near else ""


@dataclass(frozen=True)
class Given:
    """What some lessons are given when their answers are run.

    lessons: patterns of names, such as '09_*'. complete: the library with its bodies, for lessons
    that build on it. files: folders and files of the course that are shown beside the library.
    preload: modules to import once for all questions, because they are slow.
    """

    lessons: tuple[str, ...] = ("*",)
    complete: bool = False
    files: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rubric:
    """What is taken off and added for one exercise (see judging/rubric.py).

    layers: the task that is about the layers, if any; it loses its points where they are wrong.
    forgives: slips that cost one point where all else is right: how their checks begin, and what
    they are about in words. short_task, short_class, short_lines: the task that earns a point more
    where `forward` of that class has at most so many lines.
    """

    layers: str = ""
    forgives: dict[str, Any] = field(default_factory=dict, hash=False)
    short_task: str = ""
    short_class: str = ""
    short_lines: int = 3


@dataclass(frozen=True)
class Late:
    """What a late submission costs where marks are exported (see exports/late.py).

    points_a_day, percent_a_day: for each day begun, points or per cent of what was earned.
    grace_hours: that cost nothing. most_percent: of what was earned, that can be lost. due: by
    lesson, when it is due, where the gradebook does not say so.
    """

    points_a_day: float = 0.0
    percent_a_day: float = 0.0
    grace_hours: float = 0.0
    most_percent: float = 100.0
    due: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Settings:
    """The table `[tool.autograder]`; docs/settings.md explains every key.

    id: the course's name in nbgrader's gradebook and exchange. title: its name on pages.
    sources: the folder of the hand-written lessons (py:percent). exercises: that of answers and
    mistakes. notebooks: that of the built lessons. library: a package that the lessons import.
    fill_in: modules of the library whose functions students write; their bodies are taken out of
    what students get. hand_out: further files and folders of the hand-out. readme: the students'
    README. demo: a file with the made-up class of `autograder demo`. given: what lessons are given
    when answers are run. rubric: by exercise, what is taken off and added. late: what a late
    submission costs where marks are exported.
    """

    id: str = ""
    title: str = ""
    sources: str = "solutions"
    exercises: str = "solutions/exercises"
    notebooks: str = "notebooks"
    library: str = ""
    fill_in: tuple[str, ...] = ()
    hand_out: tuple[str, ...] = ()
    readme: str = ""
    demo: str = ""
    given: tuple[Given, ...] = ()
    rubric: dict[str, Rubric] = field(default_factory=dict, hash=False)
    late: Late = field(default_factory=Late)

    def given_to(self, lesson: str) -> Given:
        """All that a lesson is given, by every entry whose pattern fits its name."""
        fits = [g for g in self.given if any(fnmatch(lesson, p) for p in g.lessons)]
        return Given(
            (lesson,),
            any(g.complete for g in fits),
            tuple(dict.fromkeys(f for g in fits for f in g.files)),
            tuple(dict.fromkeys(m for g in fits for m in g.preload)),
        )


def sources(folder: Path, where: str) -> list[Path]:
    """The hand-written lessons of a course, in order; none in the hand-out."""
    return sorted((folder / where).glob("[!_]*.py"))


def has_settings(folder: Path) -> bool:
    """Whether this folder is a course: its pyproject.toml has the table."""
    path = folder / "pyproject.toml"
    try:
        return path.is_file() and "autograder" in _table(path)
    except CourseError:
        return False


def read_settings(folder: Path) -> Settings:
    """The settings of the course in `folder`. Raises `CourseError`, naming file and key."""
    path = folder / "pyproject.toml"
    table = _table(path).get("autograder", {})
    table = {k: v for k, v in table.items() if k != "shapes"}  # that tool's own table
    given = table.pop("given", [])
    if not isinstance(given, list):
        raise CourseError(f"{path}: [[tool.autograder.given]] is a list of tables.")
    tables = table.pop("rubric", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise CourseError(f"{path}: [tool.autograder.rubric.EXERCISE] is a table.")
    where = f"{path}: [tool.autograder.rubric"
    rubric = {name: _filled(Rubric, t, f"{where}.{name}]") for name, t in tables.items()}
    late = table.pop("late", {})
    if not isinstance(late, dict):
        raise CourseError(f"{path}: [tool.autograder.late] is a table.")
    made = _filled(Settings, table, f"{path}: [tool.autograder]")
    entries = tuple(_filled(Given, g, f"{path}: [[tool.autograder.given]]") for g in given)
    name = made.id or folder.resolve().name
    fresh = {"given": entries, "rubric": rubric}
    fresh["late"] = _filled(Late, late, f"{path}: [tool.autograder.late]")
    return replace(made, id=name, title=made.title or name, **fresh)


def _table(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path} is not TOML: {error}.") from None


def _filled(kind: type, table: dict, where: str):
    """A settings object from a table; every key known, every value of the right kind."""
    kinds = {f.name: f.type for f in fields(kind)}
    unknown = sorted(set(table) - set(kinds))
    if unknown:
        raise CourseError(f"{where} has no key {unknown[0]!r}; there are {', '.join(kinds)}.")
    values = {}
    for key, value in table.items():
        if kinds[key].startswith("tuple"):
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise CourseError(f"{where}: {key} = {value!r} should be a list of texts.")
            value = tuple(value)
        else:
            wanted, called = KINDS.get(kinds[key], ((dict,), "a table"))
            if type(value) not in wanted:
                raise CourseError(f"{where}: {key} = {value!r} should be {called}.")
        values[key] = value
    return kind(**values)
