"""Judges a program as marks are given, with its steps, in this process."""

from __future__ import annotations

import sys
from functools import cache

from autograder.course.asking import Finding
from autograder.course.calls import Draw, run_here
from autograder.course.course import Course
from autograder.course.steps.traces import read, to_steps_request
from autograder.judging.verdict import findings
from autograder.sandbox.inside import steps
from autograder.sandbox.inside.runner import Runner
from autograder.tracing.edits.ask import here
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.findings import Steps, with_where, wrong_call
from autograder.tracing.look import Look
from autograder.tracing.text import Text
from tests.asked import known
from tests.conftest import ROOT

SETUP = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@cache
def asked(task: str, source: str, seed: int):
    """What was asked of an answer, what came back, and what is known of it."""
    sys.modules["course_steps"] = steps  # as it is called in the sandbox
    exercise = Course.at(ROOT).exercises[task]
    namespace: dict = {}
    runner = Runner(namespace)
    assert runner.run_cell({"id": "setup", "source": SETUP}) is None
    assert runner.run_cell({"id": "answer", "source": source}) is None
    calls = exercise.cases(Draw(seed))
    return exercise, namespace, calls, known(task, seed), run_here(namespace, calls)


def _steps(namespace, calls, outcomes, place: int) -> Steps:
    reply = Runner(namespace).handle(*to_steps_request([calls[place]]))
    return Steps(place, read(*reply, 1)[0], outcomes[place])


@cache
def told(task: str, source: str, seed: int = 0, steps_too: bool = True) -> tuple[Finding, ...]:
    """What is found in an answer."""
    exercise, namespace, calls, known, outcomes = asked(task, source, seed)
    found = findings(
        exercise, calls, outcomes, known, source, lambda calls: run_here(namespace, calls)
    )
    place = wrong_call(exercise, calls, outcomes, known)
    if not steps_too:
        return tuple(found)
    seen = _steps(namespace, calls, outcomes, place) if place is not None else None
    asked_of = WrongAnswer(exercise, calls, outcomes, known, source, here(namespace), place)
    return tuple(with_where(found, seen, known, exercise, source, asked_of))


def look(task: str, source: str, seed: int = 0) -> Look:
    """The look at the steps of the first call, whether it went wrong or not."""
    _, namespace, calls, known, outcomes = asked(task, source, seed)
    seen = _steps(namespace, calls, outcomes, 0)
    return Look(seen.trace, known.bank, 0, Text(source))
