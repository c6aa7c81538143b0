"""One program, two tasks: a slip costs the task that is about its step, and no other."""

from functools import partial

import pytest

from autograder import exercise
from autograder.course.answers import compute
from autograder.course.calls import Draw, run_here
from autograder.judging.stages import by_stage
from autograder.judging.verdict import findings

STEPS = ("squares", "total")
CALLS = ("norm(x[n])", "norm(x[n], show=True)")


def by(stage: str):
    judge = partial(by_stage, stage=stage, shown_by="show")
    return exercise(
        f"norm.{stage}", *CALLS, stages=STEPS, judge=judge, hints=("one", "two", "three")
    )


@by("squares")
@by("total")
def norm(x, show=False, power=2, root=True, late=False):
    squares = x**power
    total = squares.sum() ** 0.5 if root else squares.sum()
    return (total + late, squares) if show else total + late


norm.wrong("cubes", "Cubes are added, not squares.", power=4, stage="squares")
norm.wrong("no root", "The root is missing.", root=False, stage="total")
norm.wrong("one more", "One is added.", late=True, stage="total")


def told(program) -> dict[str, list[str]]:
    """What is found in this program, by the step that a task is about."""
    found = {}
    for written in norm.exercises:
        calls = written.exercise.cases(Draw(4))
        outcomes = run_here({"norm": program}, calls)
        findings_ = findings(written.exercise, calls, outcomes, compute(written, calls))
        found[written.exercise.task.removeprefix("norm.")] = [f.check for f in findings_]
    return found


@pytest.mark.parametrize(
    "slips, squares, total",
    [
        ({}, [], []),
        ({"power": 4}, ["cubes"], []),
        ({"root": False}, [], ["no root"]),
        ({"late": True}, [], ["one more"]),
    ],
)
def test_a_slip_costs_its_own_step_alone(slips, squares, total):
    assert told(partial(norm, **slips)) == {"squares": squares, "total": total}


def test_slips_in_both_steps_cost_both():
    found = told(partial(norm, power=4, root=False))
    assert found["squares"] and found["total"]


def test_what_nobody_knows_costs_the_step_that_it_shows_in():
    found = told(lambda x, show=False: (x.norm(), x**2 + 1) if show else x.norm() + 5)
    assert found["squares"] == ["norm.squares.values"] and found["total"]


def test_who_gives_nothing_back_fails_both():
    assert all(told(lambda x, show=False: None).values())
