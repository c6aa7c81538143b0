"""What dropout does to attention is told from its outputs, whatever the dice show."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.asking import Exercise, Sight
from autograder.course.calls import Call, Draw, run_here
from autograder.judging.dropout import of_function, of_module

SEEDS = range(20)


class Attention(nn.Module):
    """All heads at once, without a mask. `dropped` says what dropout acts on."""

    dropped, rescaled, always = "weights", True, False

    def __init__(self, size, heads, dropout=0.0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.heads, self.p = heads, dropout

    def drop(self, what, t):
        if what != self.dropped or not (self.training or self.always):
            return t
        kept = F.dropout(t, self.p)
        return kept if self.rescaled else kept * (1 - self.p)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in self.layers())
        weights = self.drop("weights", self.drop("scores", q @ k.mT).softmax(-1))
        out = self.drop("outputs", weights @ self.drop("values", v))
        return out.transpose(1, 2).flatten(2)

    def layers(self):
        return self.q, self.k, self.v


def variant(**members):
    return type("Attention", (Attention,), members)


def drawn(draw, p=0.5):
    """Evaluation and training on tokens of the same values, and with everything dropped."""
    weights = {n: t for layer in "qkv" for n, t in draw.linear(layer, 6, 6).items()}
    weights["v.weight"] = torch.zeros(6, 6)
    weights["v.bias"] = draw.uniform(6, low=1.0, high=2.0)
    x = draw.normal(1, 7, 6).expand(11, -1, -1).clone()
    built = Call("Attention", (x,), {}, (6, 2), {"dropout": p}, weights, seed=draw.seed())
    everything = replace(built, init_kwargs={"dropout": 1.0}, train=True)
    return [everything, built, replace(built, train=True)]


def found(answer, seed, p=0.5):
    calls = drawn(Draw(seed), p)
    expected = run_here({"Attention": Attention}, [c.double() for c in calls])
    exercise = Exercise("a", "Attention", drawn, ("", "", ""))
    sight = Sight(exercise, tuple(calls), run_here({"Attention": answer}, calls), expected)
    return [f.check for f in of_module(sight, p="dropout", heads=1)]


@pytest.mark.parametrize("p", [0.03, 0.5, 0.8])
def test_no_right_dropout_is_refused(p):
    assert [seed for seed in SEEDS if found(Attention, seed, p)] == []


@pytest.mark.parametrize(
    ("members", "check"),
    [
        ({"dropped": "outputs"}, "dropout.on features"),
        ({"rescaled": False}, "dropout.not rescaled"),
        ({"always": True}, "dropout.in eval"),
        ({"dropped": "nothing"}, "a.values"),  # with p = 1 it is seen by the values
        ({"dropped": "scores"}, "a.values"),
    ],
)
def test_a_wrong_dropout_in_many_heads_is_told(members, check):
    assert {tuple(found(variant(**members), seed)) for seed in SEEDS} == {(check,)}


def test_a_layer_under_another_name_comes_before_its_values():
    class Renamed(Attention):
        def __init__(self, *sizes, **more):
            super().__init__(*sizes, **more)
            self.value = self.v
            del self.v

        def layers(self):
            return self.q, self.k, self.value

    assert found(Renamed, 0) == ["projections.missing layer"]


def judged(function, p, seed):
    """What is found in `function`, whose arguments stand in another order than usual."""
    draw = Draw(seed)
    weights, few = draw.uniform(5, 41, 37, low=0.1), draw.uniform(2, 3, 5, low=0.1)
    asked = [(few, False, p), (few, True, 0.0), (weights, True, p), (weights, True, p)]
    calls = tuple(Call("f", args, seed=draw.seed()) for args in asked)
    expected = run_here({"f": lambda w, training, p: F.dropout(w, p, training)}, list(calls))
    sight = Sight(
        Exercise("d", "f", drawn, ("", "", "")), calls, run_here({"f": function}, calls), expected
    )
    return [f.check for f in of_function(sight, p=2, training=1)]


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_no_right_function_is_refused_for_large_p_either(p):
    def right(weights, training, p):
        keep = torch.rand(weights.shape) >= p
        return weights * keep / (1 - p) if training else weights

    assert [seed for seed in SEEDS if judged(right, p, seed)] == []


def test_a_function_that_drops_the_wrong_share_is_told():
    def half_of_it(weights, training, p):
        keep = torch.rand(weights.shape) >= p / 2
        return weights * keep / (1 - p) if training and p else weights

    assert judged(half_of_it, 0.4, 1) == ["dropout.share"]


class Placed(Attention):
    """Treats the first item of a batch in another way, and drops nothing in evaluation."""

    def forward(self, x):
        return torch.cat([super().forward(x[:1]) * 2, super().forward(x[1:])])


@pytest.mark.parametrize("seed", range(3))
def test_what_depends_on_an_items_place_is_no_dropout_in_evaluation(seed):
    assert "dropout.in eval" not in found(Placed, seed)
    assert "dropout.in eval" in found(variant(always=True), seed)
