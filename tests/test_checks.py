"""Claims about every exercise of the course, whatever it asks."""

import math
from functools import cache

import pytest
import torch

from autograder.course.answers import PUBLIC_SEED
from autograder.course.asking import Sight
from autograder.course.calls import Call, Draw, Outcome, run_here
from autograder.course.course import Course
from autograder.judging.compare import judge
from autograder.judging.difference import matches
from tests.asked import known
from tests.conftest import ROOT
from tests.forms import first_of, share

WRITTEN = Course.at(ROOT).written
EXERCISES = {task: each.exercise for task, each in WRITTEN.items()}
NAMED = [(t, i) for t, each in WRITTEN.items() for i, _ in enumerate(each.mistakes)]
SEEDS = first_of(1, 2)
BASELINES = ("zeros", "mean", "broadcast", "ones", "nan", "constant")
BLIND = share([(t, b) for t in EXERCISES for b in BASELINES], 8, touching=lambda case: case[0])


@cache
def drawn(task: str, seed: int) -> list[Call]:
    return EXERCISES[task].cases(Draw(seed))


def sight(task: str, outcomes, seed: int) -> Sight:
    answers = known(task, seed)
    return Sight(
        EXERCISES[task],
        tuple(drawn(task, seed)),
        tuple(outcomes),
        answers.expected,
        answers.mistakes,
        stages=answers.stages,
    )


@pytest.mark.parametrize("task", EXERCISES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_in_float32_is_right(task, seed):
    for answer in (WRITTEN[task].answer, *WRITTEN[task].also):
        outcomes = run_here({EXERCISES[task].name: answer}, drawn(task, seed))
        assert judge(sight(task, outcomes, seed)) == []


@pytest.mark.parametrize("task", EXERCISES)
def test_an_empty_cell_is_told_what_is_missing(task):
    found = judge(sight(task, run_here({}, drawn(task, 1)), 1))
    assert found[0].check == "missing name"
    assert EXERCISES[task].name in found[0].message


@pytest.mark.parametrize(("task", "place"), share(NAMED, 14, touching=lambda n: n[0]))
@pytest.mark.parametrize("seed", SEEDS)
def test_each_known_mistake_is_named_and_costs_its_own_step(task, place, seed):
    """Tasks about single steps of one program share its mistakes: there, a slip in one step
    leaves the tasks about the others right."""
    mistake = WRITTEN[task].mistakes[place]
    found = judge(sight(task, run_here(dict(mistake.namespace), drawn(task, seed)), seed))
    stages = EXERCISES[task].stages
    if stages and task.rpartition(".")[2] not in mistake.stage.split():
        assert found == []
    else:
        assert found and found[0].check == mistake.check


def test_each_task_about_a_step_is_called_by_it():
    for task, each in EXERCISES.items():
        assert not each.stages or task.rpartition(".")[2] in each.stages


@pytest.mark.parametrize(("task", "baseline"), BLIND)
@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_need_no_thought_earn_nothing(task, seed, baseline):
    expected = known(task, seed).expected
    fakes = [_fake(o, baseline) for o in expected]
    same = all(matches(f, o, 1e-9) for f, o in zip(fakes, expected, strict=True))
    only_built = all(c.inspect for c in drawn(task, seed))
    assert only_built or not same, "the expected values are themselves without information"
    assert judge(sight(task, fakes, seed))


@pytest.mark.parametrize("task", EXERCISES)
def test_giving_the_input_back_earns_nothing(task):
    fakes = [Outcome(value=next(iter(c.args), None)) for c in drawn(task, 1)]
    assert judge(sight(task, fakes, 1))


@pytest.mark.parametrize("task", EXERCISES)
def test_the_public_values_earn_nothing_on_fresh_inputs(task):
    assert judge(sight(task, known(task, PUBLIC_SEED).expected, 1))


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
