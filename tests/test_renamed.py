"""A parameter under another name is said as such, and what else is wrong beside it."""

import pytest
import torch
from torch import nn

from autograder import exercise
from autograder.course.answers import compute
from autograder.course.calls import Draw, run_here
from autograder.judging.verdict import findings


@exercise(
    "table.lookup",
    "Table(rows, size)(ids[n].long(rows))",
    gradients=True,
    hints=("one", "two", "three"),
)
class Table(nn.Module):
    scaled = True

    def __init__(self, rows, size):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, size))
        self.gain, self.shift = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, ids):
        return self.table[ids] * (self.gain if self.scaled else 1 + 0 * self.gain) + self.shift


Table.wrong("gain unused", "The gain is not used.", scaled=False)
(WRITTEN,) = Table.exercises


def told(table="table", gain="gain", shift="shift", layer=False, scaled=True, shape=0):
    """What a student is told whose parameters go by these names."""

    class Own(nn.Module):
        def __init__(self, rows, size):
            super().__init__()
            made = nn.Embedding(rows, size) if layer else nn.Parameter(torch.randn(rows, size))
            setattr(self, table, made)
            setattr(self, shift, nn.Parameter(torch.zeros(size)))
            setattr(self, gain, nn.Parameter(torch.ones(size + shape)))

        def forward(self, ids):
            rows = getattr(self, table)
            rows = rows(ids) if layer else rows[ids]
            gain_ = getattr(self, gain)[: rows.shape[-1]]
            return rows * (gain_ if scaled else 1 + 0 * gain_) + getattr(self, shift)

    calls = WRITTEN.exercise.cases(Draw(3))

    def ask(calls):
        return run_here({"Table": Own}, calls)

    return findings(WRITTEN.exercise, calls, ask(calls), compute(WRITTEN, calls), ask=ask)


@pytest.mark.parametrize(
    "names, said",
    [
        ({"table": "weights"}, "parameter is called `weights`; the exercise asks for `table`."),
        (
            {"table": "table", "layer": True},
            "called `table.weight`; the exercise asks for `table`.",
        ),
        ({"table": "a", "gain": "gamma", "shift": "beta"}, "parameters are called"),
        ({"gain": "x", "shift": "y"}, "called `x` and `y`; the exercise asks for `gain` and"),
    ],
)
def test_another_name_is_all_that_is_told_where_all_else_is_right(names, said):
    (found,) = told(**names)
    assert found.check == "layer.name" and said in found.message
    assert found.message.endswith("everything else is right.")


def test_what_is_wrong_beside_the_name_is_told_with_its_own_name():
    mistake, name = told(table="weights", scaled=False)
    assert (mistake.check, name.check) == ("gain unused", "layer.name")
    assert "not used" in mistake.message and "`weights`" in name.message


def test_a_parameter_of_another_shape_is_no_other_name():
    (found,) = told(gain="gamma", shape=1)
    assert "gamma" not in found.message


def test_the_right_names_are_right():
    assert told() == []


# --- a layer beside other parameters -------------------------------------------------------------
@exercise(
    "words.score",
    "Scores(rows, size, out)(ids[n].long(rows))",
    hints=("one", "two", "three"),
)
class Scores(nn.Module):
    rectified = True

    def __init__(self, rows, size, out):
        super().__init__()
        self.embed = nn.Embedding(rows, size)
        self.conv = nn.Conv1d(size, size, 3, padding=1)
        self.out = nn.Linear(size, out)

    def forward(self, ids):
        mixed = self.conv(self.embed(ids).T)
        return self.out((mixed.relu() if self.rectified else mixed).T)


Scores.wrong("no relu", "There is no relu.", rectified=False)
(SCORED,) = Scores.exercises


def told_of_scores(embed="embed", conv="conv", out="out", rectified=True, kernel=3):
    """What a student is told whose layers go by these names."""

    class Own(nn.Module):
        def __init__(self, rows, size, classes):
            super().__init__()
            setattr(self, embed, nn.Embedding(rows, size))
            setattr(self, conv, nn.Conv1d(size, size, kernel, padding="same"))
            setattr(self, out, nn.Linear(size, classes))

        def forward(self, ids):
            mixed = getattr(self, conv)(getattr(self, embed)(ids).T)
            return getattr(self, out)((mixed.relu() if rectified else mixed).T)

    calls = SCORED.exercise.cases(Draw(3))

    def ask(calls):
        return run_here({"Scores": Own}, calls)

    return findings(SCORED.exercise, calls, ask(calls), compute(SCORED, calls), ask=ask)


def test_a_layer_under_another_name_is_told_beside_parameters_that_are_no_layers():
    (name,) = told_of_scores(out="fc")
    assert name.check == "layer.name" and "`fc`; the exercise asks for `out`" in name.message
    mistake, name = told_of_scores(out="fc", rectified=False)
    assert (mistake.check, name.check) == ("no relu", "layer.name")


def test_layers_and_other_parameters_may_go_by_other_names_at_once():
    found = told_of_scores(embed="table", conv="mix", out="fc")
    assert {f.check for f in found} == {"layer.name"}
    said = " ".join(f.message for f in found)
    assert all(name in said for name in ("`table.weight`", "`mix.weight`", "`fc`"))


def test_a_parameter_of_another_shape_is_told_with_both_and_is_no_dice():
    (found,) = told_of_scores(kernel=5)
    assert "`conv.weight` has shape [" in found.message and found.mistake == "layer.shape"
    assert "at random" not in found.message
