"""What lesson 06 judges beyond values: tensors that are too large, dice thrown again, precision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from autograder.course.asking import Finding, Sight
from autograder.judging.compare import compare
from autograder.judging.difference import difference
from autograder.judging.forms import results_in_one_tensor

TWO_SHAPES = re.compile(r"cannot be multiplied \(\d+x\d+ and (\d+)x(\d+)\)")


def no_jacobian(sight: Sight) -> list[Finding]:
    """As usual, and no tensor may be several times as large as the one that is asked for.

    A softmax's Jacobian has seq_len numbers for each of its own.
    """
    found = compare(_values_only(sight))
    if found:
        return found
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        for _, shape, _ in got.work.get("made", ()):
            if prod(shape) > 4 * call.args[0].numel():
                text = (
                    f"The values are right, but on the way there is a tensor of shape {list(shape)}"
                    ": a whole Jacobian, which for 1,000 keys has a million numbers for each "
                    "query. Nothing larger than the probabilities is needed."
                )
                return [Finding("softmax.full Jacobian", "wrong", text, tried=call.says)]
    return []


def same_dice(sight: Sight) -> list[Finding]:
    """As usual; the last two calls are one, asked twice with different seeds."""
    found = compare(sight)
    one, two = (o.value for o in sight.outcomes[-2:])
    errors = any(o.error for o in sight.outcomes[-2:])
    if found and not errors and difference(one, two, 1e-9) is not None:
        text = (
            "Asked the same thing twice, your code gives two answers: it throws the dice again. "
            "The backward pass must use the very mask that the forward pass drew."
        )
        return [replace(found[0], check="dropout.redrawn", message=text)]
    return found


def coarse_then_fine(sight: Sight) -> list[Finding]:
    """As usual on large steps; where only tiny steps go wrong, it is the precision."""
    fine = [i for i, call in enumerate(sight.calls) if call.args[-1] < 1e-3]
    found = compare(sight.only([i for i in range(len(sight.calls)) if i not in fine]))
    if found:
        return found
    found = compare(sight.only(fine))
    if found and not any(sight.outcomes[i].error for i in fine) and found[0].got == "":
        text = (
            "With a large step the result is right, with a tiny one it is noise: float32 has seven "
            "digits, and the difference of two nearly equal numbers loses most of them. Work in "
            "float64, whatever dtype comes in."
        )
        return [replace(found[0], check="numeric.float32", message=text)]
    return found


def told_by_line(sight: Sight, *, lines: Sequence[tuple[str, str, str, str]]) -> list[Finding]:
    """As usual, one tensor standing for several results too; some errors are known by their line.

    lines: (a pattern in the student's line, one in the error, the finding's name, its message).
    """
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        for pattern, error, check, text in lines if got.error else ():
            line, statement = got.error["line"], got.error["statement"]
            if re.search(pattern, statement) and re.search(error, got.error["message"]):
                return [Finding(check, "wrong", text, line, statement, tried=call.says)]
    return results_in_one_tensor(sight)


def conv1d(sight: Sight) -> list[Finding]:
    """As usual, and a product with a transposed [hidden, 3 * hidden] is told as such."""
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        found = TWO_SHAPES.search(got.error["message"]) if got.error else None
        if found and int(found[1]) == 3 * int(found[2]):
            text = (
                "The weight of c_attn is transposed. Conv1D stores [in, out] and computes "
                "`x @ weight + bias`; nn.Linear stores [out, in]."
            )
            line, statement = got.error["line"], got.error["statement"]
            return [Finding("conv1d.transposed", "wrong", text, line, statement, tried=call.says)]
    return compare(sight)


def _values_only(sight: Sight) -> Sight:
    """Without the known mistakes whose values are right: what they make is looked at later."""
    named = [m for m in sight.mistakes if m[0] != "softmax.full Jacobian"]
    return replace(sight, mistakes=tuple(named))
