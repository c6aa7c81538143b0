"""What decides a mark beside the submission: the grader's own code, and the course's.

`made_with` is one sum of all of it, kept with every mark: where it is the same, the mark need not
be made again.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

from autograder.course.course import Course

ENGINE = Path(__file__).resolve().parent
# Rooms of the engine that decide no mark.
NO_MARK = (
    "classroom",
    "exports",
    "many",
    "versions.py",
    "shapes/cli.py",
    "cli.py",
    "class_commands.py",
    "reports/templates",
)
LIBRARIES = ("torch", "numpy", "pycodestyle")


@cache
def version() -> str:
    """The grader's version: its number, and a sum of its code and of the libraries it uses."""
    total = hashlib.sha256()
    for path in sorted(ENGINE.rglob("*.py")):
        inside = path.relative_to(ENGINE).as_posix()
        if not any(inside == each or inside.startswith(f"{each}/") for each in NO_MARK):
            _add(total, inside, path)
    for name in LIBRARIES:
        total.update(f"{name} {metadata.version(name)}\n".encode())
    return total.hexdigest()[:16]


@cache
def made_with(course: Course, lesson: str, tier: str, seed: int | None) -> str:
    """The sum for one lesson. tier and seed: as they were asked for."""
    total = hashlib.sha256(f"{version()} {tier} {seed} {lesson}\n".encode())
    settings = course.settings
    _add(total, lesson, course.folder / settings.sources / f"{lesson}.py")
    folders = [settings.exercises, *([settings.library] if settings.library else [])]
    for folder in folders:
        for path in sorted((course.folder / folder).rglob("*.py")):
            _add(total, path.relative_to(course.folder).as_posix(), path)
    given = settings.given_to(lesson)
    total.update(repr((given, sorted(settings.rubric.items()))).encode())
    for name in given.files:
        for path in sorted((course.folder / name).rglob("*")):
            facts = path.stat()
            total.update(f"{path.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return total.hexdigest()


def _add(total, name: str, path: Path) -> None:
    data = path.read_bytes() if path.exists() else b""
    total.update(f"{name} {len(data)}\n".encode() + data)
