"""transformer_lm.sampling: each rule is a distribution, and the one that its name says."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from transformer_lm import sampling
from transformer_lm.sampling import generate, greedy, temperature, top_k, top_p
from transformer_lm.training import evaluate

LOGITS = torch.log(torch.tensor([[0.1, 0.4, 0.05, 0.3, 0.15], [0.6, 0.1, 0.1, 0.1, 0.1]])).double()

RULES = {
    "temperature": temperature,
    "cold": partial(temperature, t=0.3),
    "greedy": greedy,
    "top_k": partial(top_k, k=2),
    "top_k warm": partial(top_k, k=3, t=1.7),
    "top_p": partial(top_p, p=0.6),
    "top_p warm": partial(top_p, p=0.9, t=1.5),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", [(7,), (2, 7), (2, 3, 7)])
def test_each_rule_gives_probabilities_that_sum_to_one(name, shape):
    logits = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    probs = RULES[name](logits)
    assert probs.shape == shape and probs.dtype == logits.dtype and (probs >= 0).all()
    torch.testing.assert_close(probs.sum(-1), torch.ones(shape[:-1]))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_leaves_the_logits_alone_and_does_not_see_a_constant(name):
    kept = LOGITS.clone()
    found = RULES[name](LOGITS)
    assert torch.equal(LOGITS, kept)
    torch.testing.assert_close(RULES[name](LOGITS + 100), found)


def test_a_temperature_is_a_power_of_the_probabilities():
    probs = LOGITS.exp() ** (1 / 0.5)
    torch.testing.assert_close(temperature(LOGITS, 0.5), probs / probs.sum(-1, keepdim=True))
    torch.testing.assert_close(temperature(LOGITS), LOGITS.exp())


def test_cold_comes_near_to_greedy_and_hot_to_uniform():
    torch.testing.assert_close(temperature(LOGITS, 1e-3), greedy(LOGITS))
    torch.testing.assert_close(
        temperature(LOGITS, 1e6), torch.full_like(LOGITS, 0.2), atol=1e-5, rtol=0
    )


def test_greedy_takes_the_first_of_equals():
    assert greedy(torch.tensor([1.0, 3.0, 3.0, 0.0])).tolist() == [0, 1, 0, 0]


def test_top_k_keeps_k_and_their_proportions():
    found = top_k(LOGITS, 2)
    torch.testing.assert_close(found[0], torch.tensor([0, 4, 0, 3, 0]).double() / 7)
    assert ((found > 0).sum(-1) == 2).all()  # of equals too
    torch.testing.assert_close(top_k(LOGITS, 1), greedy(LOGITS))
    torch.testing.assert_close(top_k(LOGITS, 99), LOGITS.exp())


@pytest.mark.parametrize(
    ("p", "kept"), [(0.39, [1]), (0.41, [1, 3]), (0.69, [1, 3]), (0.71, [1, 3, 4]), (1.0, range(5))]
)
def test_top_p_keeps_the_fewest_that_reach_p(p, kept):
    found = top_p(LOGITS[0], p)
    assert found.nonzero()[:, 0].tolist() == list(kept)
    probs = LOGITS[0].exp()
    expected = [probs[i] / sum(probs[j] for j in kept) if i in kept else 0.0 for i in range(5)]
    torch.testing.assert_close(found, torch.tensor(expected).double())


def test_the_most_probable_token_always_stays():
    torch.testing.assert_close(top_p(LOGITS, 1e-9), greedy(LOGITS))


def test_with_p_1_no_token_is_lost_to_rounding():
    logits = 3 * torch.randn(20, 10_000, generator=torch.Generator().manual_seed(0))
    assert (top_p(logits, 1) > 0).all() and (top_p(logits, 1.0) > 0).all()


def test_top_p_is_measured_after_the_temperature():
    cold = temperature(LOGITS[0], 0.2)
    assert cold[1] > 0.75
    assert top_p(LOGITS[0], 0.75, t=0.2).tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (partial(temperature, t=0), "a temperature must be above 0, got 0; greedy"),
        (partial(temperature, t=-1), "above 0"),
        (partial(temperature, t=float("nan")), "above 0"),
        (partial(top_k, k=0), "k must be 1 or more, got 0"),
        (partial(top_p, p=0), "p must be above 0 and at most 1, got 0"),
        (partial(top_p, p=1.1), "p must be above 0 and at most 1"),
    ],
)
def test_numbers_without_a_meaning_are_refused(rule, words):
    with pytest.raises(ValueError, match=words):
        rule(LOGITS)


@pytest.mark.parametrize(
    "call", ["greedy({})", "temperature({})", "top_k({}, k)", "top_p({}, 0.5)"]
)
def test_the_shape_comments_are_true(call):
    from autograder.shapes import check_source, plan

    asked = plan(call.format("logits[batch_size, vocab_size]"))
    found = check_source(Path(sampling.__file__).read_text(encoding="utf-8"), asked)
    assert {v.verdict for v in found} == {"true"}


# --- Writing --------------------------------------------------------------------------------------


class Chain(nn.Module):
    """Each token is followed by the same few, whatever came before: a table of bigrams."""

    def __init__(self, probs, longest=99):
        super().__init__()
        self.table = nn.Parameter(torch.log(torch.tensor(probs)))
        self.dropout = nn.Dropout(0.9)
        self.longest = longest
        self.seen = []

    def forward(self, ids):
        assert ids.shape[1] <= self.longest
        self.seen.append(ids.shape[1])
        return self.dropout(self.table[ids])


ROUND = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


def test_a_certain_chain_is_followed():
    found = generate(Chain(ROUND), torch.tensor([[0], [2]]), 5)
    assert found.tolist() == [[0, 1, 2, 0, 1, 2], [2, 0, 1, 2, 0, 1]]


def test_draws_follow_the_rules_distribution():
    """2,000 draws after token 0: the shares are within four deviations of the probabilities."""
    model = Chain([[0.5, 0.3, 0.2]] * 3)
    start = torch.zeros(2000, 1, dtype=torch.long)
    for rule, expected in (
        (temperature, [0.5, 0.3, 0.2]),
        (partial(top_k, k=2), [0.625, 0.375, 0.0]),
        (partial(top_p, p=0.4), [1.0, 0.0, 0.0]),
    ):
        drawn = generate(model, start, 1, rule, seed=3)[:, 1]
        shares = torch.bincount(drawn, minlength=3) / 2000
        for share, p in zip(shares.tolist(), expected, strict=True):
            assert abs(share - p) <= 4 * (p * (1 - p) / 2000) ** 0.5


def test_the_same_seed_writes_the_same_and_another_seed_another():
    model, start = Chain([[0.4, 0.3, 0.3]] * 3), torch.tensor([[0]])
    torch.manual_seed(0)
    first = generate(model, start, 40, seed=1)
    assert torch.equal(first, generate(model, start, 40, seed=1))
    assert not torch.equal(first, generate(model, start, 40, seed=2))


def test_the_model_writes_in_evaluation_mode_and_is_left_in_its_own():
    model = Chain(ROUND).train()
    assert generate(model, torch.tensor([[0]]), 9).tolist() == [[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]]
    assert model.training
    generate(model.eval(), torch.tensor([[0]]), 1)
    assert not model.training


def test_the_mode_is_given_back_after_a_mistake():
    model = Chain(ROUND, longest=2).train()
    with pytest.raises(AssertionError):
        generate(model, torch.tensor([[0]]), 5)
    assert model.training


def test_no_more_than_the_context_is_shown():
    model = Chain(ROUND, longest=4)
    found = generate(model, torch.tensor([[0, 1]]), 6, context_length=4)
    assert found.shape == (1, 8) and model.seen == [2, 3, 4, 4, 4, 4]


def test_a_model_of_hugging_face_can_write_too():
    from transformer_lm.pretrained import load_gpt2

    model, tokenizer = load_gpt2("tiny")
    ids = tokenizer(["Once upon a"], return_tensors="pt").input_ids
    found = generate(model, ids, 6, greedy)
    own = model.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
    assert torch.equal(found, own)
    assert evaluate(model, found[0].repeat(3), seq_len=8) > 0
