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
from autograder.tracing.findings import Steps, with_where, wrong_call
from tests.conftest import ROOT

SETUP = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@cache
def told(task: str, source: str, seed: int = 0) -> tuple[Finding, ...]:
    """What is found in an answer."""
    sys.modules["course_steps"] = steps  # as it is called in the sandbox
    exercise = Course.at(ROOT).exercises[task]
    namespace: dict = {}
    runner = Runner(namespace)
    assert runner.run_cell({"id": "setup", "source": SETUP}) is None
    assert runner.run_cell({"id": "answer", "source": source}) is None
    calls = exercise.cases(Draw(seed))
    known = Course.at(ROOT).answers(exercise, calls)
    outcomes = run_here(namespace, calls)
    found = findings(exercise, calls, outcomes, known, source)
    place = wrong_call(exercise, calls, outcomes, known.expected)
    seen = None
    if place is not None:
        reply = Runner(namespace).handle(*to_steps_request([calls[place]]))
        seen = Steps(place, read(*reply, 1)[0], outcomes[place])
    return tuple(with_where(found, seen, known, exercise, source))
