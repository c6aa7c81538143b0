"""Shape comments, checked for truth."""

from autograder.shapes import record
from autograder.shapes.plan import Plan, PlanError, plan
from autograder.shapes.recording import prepare
from autograder.shapes.verdicts import Verdict, check_source, judge, write_missing

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
