"""What a command asks for: which of what was handed in, and how it is to be judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wish:
    """A part of a class's work, and how it is to be judged; all of it where nothing is said.

    lesson: its name. only: the tasks to judge. students: those to grade, by name or id. tier: the
    isolation. seed: a private seed that makes marks repeatable; by default each question draws.
    """

    lesson: str | None = None
    only: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    tier: str = "auto"
    seed: int | None = None
