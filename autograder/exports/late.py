"""What a late submission costs, by the course's own policy: `[tool.autograder.late]`."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

from nbgrader.utils import parse_utc

from autograder.course.settings import CourseError, Late
from autograder.exports.marked import Class, Marked

DAY = 86_400


def penalty(policy: Late, earned: float, seconds: float) -> float:
    """The points to take off. Days count when they have begun, the grace aside."""
    over = seconds - policy.grace_hours * 3600
    if over <= 0:
        return 0.0
    days = math.ceil(over / DAY)
    off = days * (policy.points_a_day + earned * policy.percent_a_day / 100)
    return max(0.0, min(off, earned * min(policy.most_percent, 100) / 100, earned))


def is_set(policy: Late) -> bool:
    """Whether the course has a policy; where it has none, nbgrader's penalty stands."""
    return bool(policy.points_a_day or policy.percent_a_day)


def with_due(marked: Class, policy: Late) -> Class:
    """The class with the due date that the course's settings give, where they give one."""
    text = policy.due.get(marked.lesson.name)
    if text is None:
        return marked
    due = _date(text, marked.lesson.name)
    return replace(marked, due=due, students=tuple(replace(s, due=due) for s in marked.students))


def with_penalties(marked: Class, policy: Late) -> Class:
    """The class with what its late submissions cost."""
    if not is_set(policy):
        return marked

    def charged(student: Marked) -> Marked:
        return replace(student, penalty=penalty(policy, student.earned, student.late))

    return replace(marked, students=tuple(map(charged, marked.students)))


def _date(text, lesson: str) -> datetime:
    try:
        return parse_utc(str(text))
    except (ValueError, OverflowError):
        raise CourseError(
            f"[tool.autograder.late]: due = {{ {lesson} = {text!r} }} is no date. Write it as "
            '"2026-03-02 12:00 UTC".'
        ) from None
