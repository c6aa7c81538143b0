"""What lesson 04 judges beyond values."""

from __future__ import annotations

from autograder.course.asking import Finding, Sight, Verdict
from autograder.judging.compare import compare


def judge_size(sight: Sight) -> list[Finding]:
    """As usual, and a float is no size: `view` does not take it."""
    found = compare(sight)
    if not found and any(isinstance(o.value, float) for o in sight.outcomes):
        text = "The size is a float, which `view` and `nn.Linear` refuse. `//` divides to an int."
        return [Finding("size.float", Verdict.WRONG, text)]
    return found
