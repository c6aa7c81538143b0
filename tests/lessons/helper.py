"""Judges a piece of source text as the answer to a task, in this process."""

from autograder.course.asking import Finding
from autograder.course.calls import Draw, run_here
from autograder.course.course import Course
from autograder.judging.verdict import findings as judged
from autograder.sandbox.inside.runner import Runner
from tests.asked import known
from tests.conftest import ROOT


def findings(task: str, source: str, seed: int = 0, needs: str = "") -> list[Finding]:
    """What the judge finds in an answer; an empty list means that all is right.

    needs: source that runs first, such as the answers to earlier exercises.
    """
    exercise = Course.at(ROOT).exercises[task]
    namespace: dict = {}
    runner = Runner(namespace)
    prelude = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
    assert runner.run_cell({"id": "setup", "source": prelude + needs}) is None
    error = runner.run_cell({"id": "answer", "source": source})
    calls = exercise.cases(Draw(seed))
    found = judged(exercise, calls, run_here(namespace, calls), known(task, seed), source)
    assert error is None or found, f"the answer raised {error}, and yet it passed"
    return found


def names(task: str, source: str, seed: int = 0, needs: str = "") -> list[str]:
    """The names of the findings."""
    return [f.check for f in findings(task, source, seed, needs)]
