"""A part of what was seen, so that it can be judged by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from autograder.course.asking import Sight
from autograder.course.calls import Call


def only(sight: Sight, wanted: Callable[[Call], bool]) -> Sight:
    """What was seen of some of the calls, of known mistakes too."""
    chosen = [i for i, call in enumerate(sight.calls) if wanted(call)]

    def pick(items: tuple) -> tuple:
        return tuple(items[i] for i in chosen)

    return replace(
        sight,
        calls=pick(sight.calls),
        outcomes=pick(sight.outcomes),
        expected=pick(sight.expected),
        mistakes=tuple((check, text, pick(outcomes)) for check, text, outcomes in sight.mistakes),
    )
