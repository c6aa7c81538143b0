"""What lesson 04 judges beyond values."""

from __future__ import annotations

import re

from autograder.course.asking import Finding, Sight, Verdict
from autograder.judging.compare import compare


def judge_size(sight: Sight) -> list[Finding]:
    """As usual; a float is no size (`view` does not take it), and an error names both numbers."""
    found = compare(sight)
    if not found and any(isinstance(o.value, float) for o in sight.outcomes):
        text = "The size is a float, which `view` and `nn.Linear` refuse. `//` divides to an int."
        return [Finding("size.float", Verdict.WRONG, text)]
    for call, outcome in zip(sight.calls, sight.outcomes, strict=True):
        if not found and outcome.error is not None:
            said = re.findall(r"\d+", str(outcome.error["message"]))
            if not {str(number) for number in call.args} <= set(said):
                text = (
                    "The right error is raised, but its text does not name both numbers. Whoever "
                    "reads it wants to know which hidden size and which number of heads."
                )
                return [Finding("size.numbers not named", Verdict.WRONG, text, tried=call.says)]
    return found
