"""Claims about every exercise of the course, whatever it asks."""

import math
from functools import cache

import pytest
import torch

from autograder import answers, course
from autograder.calls import Draw, Outcome, run_here
from autograder.exercise import Sight
from autograder.judge import judge, matches

EXERCISES = course.exercises()
NAMED = [(t, i) for t in EXERCISES for i, _ in enumerate(answers._reference(t)[1])]
SEEDS = (1, 2)


@cache
def asked(task: str, seed: int):
    exercise = EXERCISES[task]
    calls = tuple(exercise.cases(Draw(seed)))
    return calls, answers.compute(exercise, list(calls))


def sight(task: str, outcomes, seed: int) -> Sight:
    calls, known = asked(task, seed)
    return Sight(
        EXERCISES[task],
        calls,
        tuple(outcomes),
        known.expected,
        known.mistakes,
        stages=known.stages,
    )


@pytest.mark.parametrize("task", EXERCISES)
def test_the_reference_in_float32_is_right(task):
    for seed in SEEDS:
        calls, _ = asked(task, seed)
        solve, _ = answers._reference(task)
        assert judge(sight(task, run_here(dict(solve), list(calls)), seed)) == []


@pytest.mark.parametrize("task", EXERCISES)
def test_an_empty_cell_is_told_what_is_missing(task):
    calls, _ = asked(task, 1)
    found = judge(sight(task, run_here({}, list(calls)), 1))
    assert found[0].check == "missing name"
    assert EXERCISES[task].name in found[0].message


@pytest.mark.parametrize(("task", "place"), NAMED)
def test_each_known_mistake_is_named(task, place):
    for seed in SEEDS:
        calls, known = asked(task, seed)
        check, _, outcomes = known.mistakes[place]
        if task in SHARED and not _differs(task, outcomes, seed):
            continue
        mistake = answers._reference(task)[1][place]
        found = judge(sight(task, run_here(dict(mistake.namespace), list(calls)), seed))
        assert found and found[0].check == check


# The tasks of one class share its mistakes: a mistake of a later step leaves an earlier one right.
SHARED = {"multi_head.scores", "multi_head.mask", "multi_head.output"}


def _differs(task, outcomes, seed):
    return bool(judge(sight(task, outcomes, seed)))


@pytest.mark.parametrize("task", EXERCISES)
@pytest.mark.parametrize("baseline", ["zeros", "ones", "nan", "mean", "constant", "broadcast"])
def test_values_that_need_no_thought_earn_nothing(task, baseline):
    for seed in SEEDS:
        _, known = asked(task, seed)
        fakes = [_fake(o, baseline) for o in known.expected]
        same = all(matches(f, o, 1e-9) for f, o in zip(fakes, known.expected, strict=True))
        only_built = all(c.inspect for c in asked(task, seed)[0])
        assert only_built or not same, "the expected values are themselves without information"
        assert judge(sight(task, fakes, seed))


@pytest.mark.parametrize("task", EXERCISES)
def test_giving_the_input_back_earns_nothing(task):
    calls, _ = asked(task, 1)
    fakes = [Outcome(value=next(iter(c.args), None)) for c in calls]
    assert judge(sight(task, fakes, 1))


@pytest.mark.parametrize("task", EXERCISES)
def test_the_public_values_earn_nothing_on_fresh_inputs(task):
    _, public = asked(task, answers.PUBLIC_SEED)
    assert judge(sight(task, public.expected, 1))


@pytest.mark.parametrize("task", EXERCISES)
def test_hints_climb_in_three_steps(task):
    hints = EXERCISES[task].hints
    assert len(hints) == 3 and len(set(hints)) == 3 and all(len(h) > 20 for h in hints)


def _fake(expected: Outcome, baseline: str) -> Outcome:
    return Outcome(value=_fill(expected.value, baseline))


def _fill(value, baseline: str):
    if isinstance(value, torch.Tensor):
        real = value.double()
        match baseline:
            case "zeros":
                return torch.zeros_like(value)
            case "ones":
                return torch.ones_like(value)
            case "nan":
                return torch.full_like(real, math.nan)
            case "mean":
                finite = real[real.isfinite()]
                return torch.full_like(real, finite.mean().item() if len(finite) else 0.0)
            case "constant":
                return torch.full_like(value, 3)
        return value[..., :1] if value.dim() else value.reshape(1)
    if isinstance(value, bool):
        return baseline == "zeros"
    if isinstance(value, (int, float)):
        known = {"zeros": 0, "ones": 1, "nan": math.nan, "constant": 3}
        return known.get(baseline, torch.tensor([float(value)] * 2))
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(v, baseline) for v in value)
    if isinstance(value, dict):
        return {k: _fill(v, baseline) for k, v in value.items()}
    return "" if isinstance(value, str) else None
