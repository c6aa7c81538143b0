"""Claims about the judge of results whose values may stand in any order."""

from functools import partial

import pytest
import torch

from autograder.course.asking import Exercise, Sight
from autograder.course.calls import Call, Draw, run_here
from autograder.judging.orders import in_any_order


def differences(x):
    """What the exercise of these tests asks for: a table, and each pair of numbers once."""
    table = (x[:, None] - x).abs()
    i, j = torch.triu_indices(len(x), len(x), 1)
    return table, table[i, j]


def from_below(x):
    table, _ = differences(x)
    i, j = torch.tril_indices(len(x), len(x), -1)
    return table, table[i, j]


def squared(x):
    return tuple(part**2 for part in differences(x))


def found(answer, part=1, expected=differences, mistakes=()):
    """The names of the findings."""
    calls = (Call("f", (Draw(5).normal(5),), says="5 numbers"),)
    told = tuple((check, "Told.", run_here({"f": f}, calls)) for check, f in mistakes)
    outcomes = run_here({"f": answer}, calls), run_here({"f": expected}, calls)
    exercise = Exercise("t.pairs", "f", lambda draw: calls, ("one", "two", "three"))
    return [f.check for f in in_any_order(Sight(exercise, calls, *outcomes, told), part=part)]


def test_any_order_is_right():
    assert found(differences) == found(from_below) == []


@pytest.mark.parametrize("numbers", [torch.Tensor.tolist, list])
def test_a_list_of_numbers_is_right_too(numbers):
    assert found(lambda x: (differences(x)[0], numbers(from_below(x)[1]))) == []


def test_the_other_parts_keep_their_order():
    assert found(lambda x: (differences(x)[0].flip(0), differences(x)[1])) == ["t.pairs.values"]


def test_a_single_result_may_stand_in_any_order():
    found_of = partial(found, part=None, expected=lambda x: x)
    assert found_of(lambda x: x.flip(0)) == []
    assert found_of(lambda x: x.flip(0) + 1) == ["t.pairs.values"]


@pytest.mark.parametrize(
    "pairs", [lambda p: p + 1e-2, lambda p: p[:-1], lambda p: p[None], lambda p: "all", lambda p: 0]
)
def test_other_pairs_are_wrong(pairs):
    assert found(lambda x: (differences(x)[0], pairs(differences(x)[1])))


@pytest.mark.parametrize("value", [0, None, [], ("one",), {"pairs": 1}])
def test_another_kind_of_result_is_wrong(value):
    assert found(lambda x: value)


def test_a_mistake_is_known_in_any_order():
    other = partial(map, torch.square)
    assert found(lambda x: tuple(other(from_below(x))), mistakes=[("t.squared", squared)]) == [
        "t.squared"
    ]
