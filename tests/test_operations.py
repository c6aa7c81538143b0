"""Slips that nobody wrote down: one operation of the answer done in another way."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder import exercise
from autograder.course.answers import compute
from autograder.course.calls import Call, Draw, run_here
from autograder.course.general import operations as operations_module
from autograder.course.general.operations import MOST, WORK
from autograder.judging.verdict import findings

HINTS = ("one", "two", "three")


def told(answer, program):
    written = answer.exercises[0]
    calls = written.exercise.cases(Draw(5))
    outcomes = run_here({written.exercise.name: program}, calls)
    return findings(written.exercise, calls, outcomes, compute(written, calls))


@exercise("task.look", "look(q[b, n, h], k[b, m, h], v[b, m, h])", hints=HINTS)
def look(q, k, v):
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    hidden = torch.arange(k.shape[1]) > torch.arange(q.shape[1])[:, None] + 1
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return weights @ v


@exercise("task.mix", "mix(q[b, n, h], k[b, m, h], v[b, m, h])", hints=HINTS)
def mix(q, k, v):
    scores = q @ k.transpose(1, 2)
    weights = scores.softmax(-1)
    return weights @ v


def by_hand(q, k, v, dim=2, late=1, fill=-torch.inf, share=True):
    """The same in another style, with slips."""
    s = torch.einsum("bih,bjh->bij", q, k) * q.shape[2] ** -0.5
    for i in range(q.shape[1]):
        for j in range(k.shape[1]):
            if j > i + late:
                s[:, i, j] = fill
    e = s.exp()
    return torch.bmm(e / e.sum(dim, keepdim=True) if share else e, v)


@pytest.mark.parametrize(
    ("slip", "says"),
    [
        ({"fill": 0.0}, "the masking fills with 0"),
        ({"fill": -1.0}, "the masking fills with -1"),
        ({"late": 0}, "the comparison > is a comparison >="),
        ({"share": False}, "the softmax is an exponential that nothing is divided by"),
    ],
)
def test_an_operation_that_is_done_in_another_way_is_named_whatever_the_code_looks_like(slip, says):
    (found,) = told(look, lambda q, k, v: by_hand(q, k, v, **slip))
    assert found.mistake.startswith("altered.operation") and says in found.message


@pytest.mark.parametrize("axis", [0, 1])
def test_a_softmax_over_another_axis_is_named_with_the_variable_it_is_on_the_way_to(axis):
    def mixed(q, k, v):
        e = torch.einsum("bih,bjh->bij", q, k).exp()
        return torch.einsum("bij,bjh->bih", e / e.sum(axis, keepdim=True), v)

    (found,) = told(mix, mixed)
    assert f"on the way to `weights` the softmax runs along axis {axis}" in found.message


def test_the_same_steps_in_another_style_are_right():
    assert told(look, by_hand) == []


def test_what_no_change_of_one_operation_explains_gets_no_name():
    (found,) = told(look, lambda q, k, v: (q * q.sin()) @ k.mT @ v.cos())
    assert not found.mistake and "right but for this" not in found.message


def test_an_answer_of_nothing_but_nan_is_explained_by_no_operation():
    (found,) = told(look, lambda q, k, v: by_hand(q, k, v) * torch.nan)
    assert "operation" not in found.mistake and "right but for this" not in found.message


def test_a_sum_that_is_overwritten_in_a_loop_is_named():
    def gather(x, w):
        total = x.sum(1)
        for i in range(x.shape[1]):
            total += w[i] * x[:, i]
        return total

    exercise("task.gather", "gather(x[b, n, h], w[n])", hints=HINTS)(gather)
    (found,) = told(gather, lambda x, w: w[-1] * x[:, -1])
    assert "overwritten" in found.message
    (found,) = told(gather, lambda x, w: torch.einsum("n,bnh->bh", w.sin(), x.cos()))
    assert not found.mistake


class Norm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (spread + 0.1).sqrt() * self.weight


exercise("task.norm", "Norm(hidden)(x[b, n, hidden])", name="Norm", hints=HINTS)(Norm)


class Other(nn.Module):
    dims, centred, rooted = -1, True, True

    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        off = x - x.mean(self.dims, keepdim=True)
        below = off.square().mean(self.dims, keepdim=True) + 0.1
        return (off if self.centred else x) / (below**0.5 if self.rooted else below) * self.weight


@pytest.mark.parametrize(
    ("slip", "says"),
    [
        ({"dims": 1}, "each mean and each variance runs over axis 1"),
        ({"dims": (0, 1, 2)}, "each mean and each variance runs over everything"),
        ({"centred": False}, "the subtraction is left out"),
        ({"rooted": False}, "the root is left out"),
    ],
)
def test_steps_of_a_class_are_looked_at_and_two_means_go_over_one_axis(slip, says):
    (found,) = told(Norm, type("Norm", (Other,), slip))
    assert says in found.message
    assert told(Norm, type("Norm", (Other,), {})) == []


def test_what_is_put_side_by_side_and_should_be_added_is_named():
    def both(ids, table, places):
        return table[ids] + places[: ids.shape[1]]

    exercise(
        "task.both", "both(ids[b, n].long(v), table[v, h], places[n, h])", hints=HINTS
    )(both)  # fmt: skip
    (found,) = told(
        both, lambda i, t, p: torch.cat((F.embedding(i, t), p.expand(len(i), -1, -1)), -1)
    )
    assert "put side by side, not added" in found.message


def test_what_is_tried_is_bound_by_the_work_of_the_answer():
    def slow(x):
        for _ in range(2000):
            x = x * 1.001
        return x.cumsum(0)

    exercise("task.slow", lambda draw: Call("", (draw.normal(3, 4),)), hints=HINTS)(slow)
    written = slow.exercises[0]
    known = compute(written, written.exercise.cases(Draw(0))[:1])
    changes = [name for name, *_ in known.altered if name.startswith("altered.operation")]
    assert 0 < len(changes) <= min(MOST, WORK // 2000)
    written = look.exercises[0]
    known = compute(written, written.exercise.cases(Draw(0)))
    names = [name for name, *_ in known.altered]
    assert len(names) == len(set(names)) and len(names) < MOST + 400


def test_a_loop_that_a_changed_operation_would_never_end_is_stopped():
    def grown(x):
        total = x * 0 + 1.0
        while total.min() < 100:
            total = total * (x.abs() + 1.5)
        return total

    exercise("task.grown", "grown(x[n, m])", hints=HINTS)(grown)
    (found,) = told(grown, lambda x: x.sin())
    assert not found.mistake


def test_a_right_answer_is_not_run_again_with_other_operations(monkeypatch):
    def never(*_):
        raise AssertionError("it was looked for slips")

    monkeypatch.setattr("autograder.course.answers.operations", never)
    assert told(look, by_hand) == []


def test_a_matrix_of_nan_puts_nothing_on_the_screen(capfd):
    changed = operations_module._Changed(operations_module._Seen("nowhere"), {})
    with changed, pytest.raises(RuntimeError, match="NaN"):
        torch.linalg.eigvals(torch.full((2, 2), torch.nan))
    assert capfd.readouterr() == ("", "")
