"""Shape comments, checked for truth: read, attached to a line, proven, decided; usable alone.

May read the files that it is given on the command line, and nothing else. Runs code only by the
recorder (`sandbox.inside.record`), which a grader sends into the sandbox. Imports no torch until
something is run.
"""

from autograder.shapes.judge import Verdict, check_source, judge
from autograder.shapes.missing import write_missing
from autograder.shapes.plan import Plan, PlanError, plan
from autograder.shapes.recording import prepare

__all__ = [
    "Plan",
    "PlanError",
    "Verdict",
    "check_source",
    "judge",
    "plan",
    "prepare",
    "record",
    "write_missing",
]


def __getattr__(name: str):
    """`record` runs code, and so it brings torch with it."""
    if name == "record":
        import importlib

        return importlib.import_module("autograder.sandbox.inside.record")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
