"""What a lesson asks for, in order: each exercise's number, title, difficulty and minutes.

A lesson says them in the text above an exercise's cell, in this form:

    ### Exercise 3: the lesion

    ●●●○○ · 10 minutes · 2 points
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from autograder.course.lesson import Cell, Lesson, Role

HEADING = re.compile(r"^### Exercise (?P<number>\d+): (?P<title>.+)$")
FORM = re.compile(
    r"^(?P<full>●{1,5})(?P<empty>○{0,4}) · (?P<minutes>\d+) minutes · (?P<points>\d+) points?$"
)


@dataclass(frozen=True)
class Asked:
    """One exercise as its lesson announces it.

    tasks: its checks. What the lesson does not say is 0 or empty; points are those of the checks.
    """

    cell: str
    tasks: tuple[str, ...]
    points: float
    number: int = 0
    title: str = ""
    difficulty: int = 0  # of five
    minutes: int = 0

    @property
    def name(self) -> str:
        """As a reader knows it."""
        return f"exercise {self.number}, {self.title}" if self.title else self.cell


def outline(lesson: Lesson) -> tuple[Asked, ...]:
    """The exercises of a lesson that a machine marks, in order."""
    found, above = [], []
    for cell in lesson.cells:
        if cell.kind == "markdown":
            above.append(cell.source)
        elif cell.role == Role.EXERCISE:
            checks = [c for c in lesson.with_role(Role.CHECK) if c.of == cell.id]
            if checks:
                found.append(_asked(cell, checks, "\n".join(above)))
            above = []
    return tuple(found)


def _asked(cell: Cell, checks: list[Cell], text: str) -> Asked:
    plain = Asked(cell.id, tuple(c.task for c in checks), sum(c.points for c in checks))
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    headings = [(i, found) for i, line in enumerate(lines) if (found := HEADING.match(line))]
    if not headings:
        return plain
    place, heading = headings[-1]
    form = FORM.match(lines[place + 1]) if place + 1 < len(lines) else None
    return Asked(
        plain.cell,
        plain.tasks,
        plain.points,
        int(heading["number"]),
        heading["title"].strip(),
        len(form["full"]) if form else 0,
        int(form["minutes"]) if form else 0,
    )
