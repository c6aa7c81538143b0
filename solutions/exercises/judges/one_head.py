"""What lesson 02 judges beyond values: fair starting values, and a forward in three lines."""

from __future__ import annotations

import ast
from collections.abc import Callable

import torch

from autograder.course.asking import Finding, Sight, Verdict
from autograder.judging.rubric import uses_ready_made

FRESH = "state_dict"  # the method by which fresh starting values are asked for
SLACK = 0.1  # a tenth; the draws are large enough that chance stays within a hundredth or two


def fair_start(sight: Sight, *, judge: Callable[[Sight], list[Finding]]) -> list[Finding]:
    """As `judge` finds the values; and each matrix begins normal, of spread 1/sqrt(input_size)."""
    places = range(len(sight.calls))
    found = judge(sight.only(i for i in places if sight.calls[i].method != FRESH))
    if any(each.verdict == Verdict.ERROR for each in found):
        return found
    return [*found, *_unfair_start(sight)]


def _unfair_start(sight: Sight) -> list[Finding]:
    """What is wrong with the first starting values that are not fair."""
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if call.method != FRESH or got.error is not None or not isinstance(got.value, dict):
            continue
        start = {name: got.value.get(name) for name in expected.value}
        if not all(isinstance(w, torch.Tensor) and w.dim() == 2 for w in start.values()):
            continue
        problem = _unfair({name: w.double() for name, w in start.items()}, call.init[0])
        if problem:
            return [Finding(f"start.{problem[0]}", Verdict.WRONG, problem[1], tried=call.says)]
    return []


def _unfair(start: dict[str, torch.Tensor], input_size: int) -> tuple[str, str] | None:
    """What is wrong with the starting values, as (name, sentence)."""
    wanted = input_size**-0.5
    for name, w in start.items():
        spread, mean = w.std().item(), w.mean().item()
        if spread == 0:
            return "constant", (
                f"`{name}` begins with one number everywhere. All features would learn the same; "
                "draw the numbers at random."
            )
        if w.min() >= 0:
            return "all positive", (
                f"All numbers of `{name}` are positive, as `torch.rand` draws them. Terms of a "
                "dot product then no longer cancel; `torch.randn` draws around 0."
            )
        if abs(spread - 1) < SLACK:
            return "not divided", (
                f"`{name}` begins with spread 1. Divide by the square root of input_size: each "
                "query is a sum of input_size products."
            )
        if abs(spread / wanted - 1) > SLACK or abs(mean) > SLACK * wanted:
            return "another spread", (
                f"`{name}` begins with another mean or spread than asked for: normal numbers "
                "around 0, divided by the square root of input_size."
            )
        if not 0.03 < (w.abs() > 2 * spread).double().mean() < 0.06:
            return "not normal", (
                f"`{name}` has the right spread, but its numbers are not from a normal "
                "distribution: use `torch.randn`."
            )
    names = list(start)
    for i, name in enumerate(names):
        for other in names[:i]:
            if torch.equal(start[name], start[other]):
                return "all equal", (
                    f"`{other}` and `{name}` begin with the same numbers. Draw each of its own."
                )
    return None


def short(
    sight: Sight, *, judge: Callable[[Sight], list[Finding]], most: int = 3
) -> list[Finding]:
    """As `judge` finds the values; and the class has a forward of its own of so many statements."""
    found = judge(sight)
    if found or not sight.source:
        return found
    problem = _too_long(sight.source, sight.exercise.name, most)
    return [Finding(f"lines.{problem[0]}", Verdict.WRONG, problem[1])] if problem else []


def _too_long(source: str, name: str, most: int) -> tuple[str, str] | None:
    try:
        classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    own = next((c for c in reversed(classes) if c.name == name), None)
    if own is None:
        return None
    forward = next((m for m in own.body if getattr(m, "name", "") == "forward"), None)
    if forward is None:
        return "no forward", (
            f"`{name}` has no forward of its own: it inherits the long one. Write it anew."
        )
    if uses_ready_made(source):
        return "ready-made", (
            "This is PyTorch's ready-made attention. Write the formula itself in three lines."
        )
    body = forward.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # its docstring
    lines = [line for n in body for line in {n.lineno, n.end_lineno}]
    if len(set(lines)) < len(lines):
        return "semicolons", "Two statements stand on one line. No semicolons, please."
    if len(body) > most:
        return "too many", (
            f"The values are right, but forward has {len(body)} statements; at most {most} are "
            "asked for. Which results need a name?"
        )
    return None
