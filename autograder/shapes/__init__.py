"""Shape comments, checked for truth. Nothing here imports torch until something is run."""

from autograder.shapes.judge import Verdict, check_source, judge, write_missing
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

        return importlib.import_module("autograder.shapes.record")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
