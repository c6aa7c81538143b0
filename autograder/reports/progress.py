"""What is done and what comes next, across the lessons: read from notebooks as they were saved.

Nothing is run. A check says in its cell's output whether it passed; this reads what it said last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from autograder.course.course import Course
from autograder.reports.outline import Asked, outline

SAID = re.compile(r"^\[(passed|nearly|not yet)\] (\S+)", re.MULTILINE)
PASSED = ("passed", "nearly")
LARGEST = 50_000_000  # bytes of a notebook


@dataclass(frozen=True)
class InLesson:
    """How far one lesson is."""

    lesson: str
    done: tuple[Asked, ...]
    tried: tuple[Asked, ...]
    untouched: tuple[Asked, ...]

    @property
    def asked(self) -> int:
        return len(self.done) + len(self.tried) + len(self.untouched)

    @property
    def minutes(self) -> int:
        """Of what is still to do."""
        return sum(each.minutes for each in (*self.tried, *self.untouched))

    @property
    def points(self) -> float:
        return sum(each.points for each in self.done)


@dataclass(frozen=True)
class Progress:
    """How far somebody is, in all lessons; shown as a table."""

    lessons: tuple[InLesson, ...]

    @property
    def next(self) -> tuple[str, Asked] | None:
        """The first exercise to go on with: after the last one done, what was tried or is left."""
        begun = [i for i, each in enumerate(self.lessons) if each.done or each.tried]
        start = begun[-1] if begun else 0
        for each in (*self.lessons[start:], *self.lessons[:start]):
            left = sorted((*each.tried, *each.untouched), key=lambda asked: asked.number)
            if left:
                return each.lesson, left[0]
        return None

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Lesson, exercises done, points, and minutes that are left."""
        rows = []
        for each in self.lessons:
            bar = "●" * len(each.done) + "◐" * len(each.tried) + "○" * len(each.untouched)
            left = f"{each.minutes} minutes" if each.minutes else ""
            done = f"{len(each.done)} of {each.asked}"
            rows.append((each.lesson, bar, done, left if len(each.done) < each.asked else "done"))
        return rows

    def advice(self) -> str:
        """What comes next, in a sentence."""
        if self.next is None:
            return "Everything is done."
        lesson, asked = self.next
        dots = "●" * asked.difficulty + "○" * (5 - asked.difficulty) if asked.difficulty else ""
        more = ", ".join(filter(None, [dots, f"{asked.minutes} minutes" if asked.minutes else ""]))
        return f"Next: {lesson}, {asked.name}" + (f" ({more})." if more else ".")

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
        lines = [
            "  ".join(f"{t:{w}}" for t, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
        return "\n".join([*lines, "", self.advice()])

    def _repr_html_(self) -> str:
        style = 'style="text-align:left;padding:1px 14px 1px 0"'
        cells = "".join(
            "<tr>" + "".join(f"<td {style}>{escape(text)}</td>" for text in row) + "</tr>"
            for row in self.rows()
        )
        return f'<table style="border:none">{cells}</table><p>{escape(self.advice())}</p>'


def read_progress(course: Course, folder: Path, now: Mapping[str, bool] | None = None) -> Progress:
    """How far the notebooks in a folder are.

    now: what the checks have said since a notebook was saved, by task; it counts for more.
    """
    said: dict[str, bool] = {}
    for path in sorted(_notebooks(folder), key=lambda path: path.stat().st_mtime):
        said |= what_checks_said(path)
    said |= now or {}
    return Progress(tuple(_of(name, outline(each), said) for name, each in course.lessons.items()))


def what_checks_said(path: Path) -> dict[str, bool]:
    """What stands below the checks of a notebook, by task; nothing where it cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = [_text(output) for cell in cells for output in cell.get("outputs", [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {task: word in PASSED for text in texts for word, task in SAID.findall(text)}


def _text(output: dict) -> str:
    """The text of a card; what a cell prints by itself is no card."""
    if output.get("output_type") != "display_data":
        return ""
    text = output.get("data", {}).get("text/plain", "")
    return "".join(text) if isinstance(text, list) else str(text)


def _notebooks(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return [
        path
        for path in folder.rglob("*.ipynb")
        if path.is_file()
        and path.stat().st_size < LARGEST
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def _of(name: str, asked: tuple[Asked, ...], said: Mapping[str, bool]) -> InLesson:
    done = tuple(a for a in asked if all(said.get(task) for task in a.tasks))
    tried = tuple(a for a in asked if a not in done and any(task in said for task in a.tasks))
    untouched = tuple(a for a in asked if a not in done and a not in tried)
    return InLesson(name, done, tried, untouched)
