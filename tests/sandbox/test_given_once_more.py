"""A model that is sent is made once and given again, but never with what a call did to it."""

import pytest
import torch

from autograder.course.calls import Call, Made, to_request
from autograder.sandbox.inside.sandbox_modules import MOST_KEPT, Kept
from transformer_lm.stand_ins import gpt2

CONFIG = {
    "n_layer": 1, "n_head": 2, "n_embd": 6, "n_positions": 7, "vocab_size": 11,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip


def weights(seed=0):
    torch.manual_seed(seed)
    return {name: torch.randn(w.shape) for name, w in shapes().items()}


def shapes():
    from transformers import GPT2Config, GPT2LMHeadModel

    return dict(GPT2LMHeadModel(GPT2Config(**CONFIG)).named_parameters())


def sent(seed=0):
    """A model as it is sent, and the tensors of it."""
    made = Made("transformer_lm.stand_ins:gpt2", {"config": CONFIG, "weights": weights(seed)})
    header, tensors = to_request([Call("f", (made,))])
    return header["calls"][0]["args"][0], tensors


def ids():
    return torch.arange(5)[None]  # [1, 5]


def test_a_model_that_stays_as_it_is_is_given_again():
    kept = Kept()
    model = kept.given(*sent())
    with torch.no_grad():
        first = model(ids(), output_attentions=True).logits  # [1, 5, vocab_size]
    again = kept.given(*sent())
    assert again is model
    with torch.no_grad():
        assert torch.equal(again(ids()).logits, first)


def test_a_hook_that_is_taken_away_leaves_nothing():
    kept = Kept()
    model = kept.given(*sent())
    model.transformer.h[0].register_forward_hook(print).remove()
    assert kept.given(*sent()) is model


CHANGES = {
    "a weight": lambda m: m.transformer.ln_f.weight.data.mul_(2.0),
    "another weight": lambda m: setattr(m.lm_head, "weight", torch.nn.Parameter(torch.ones(11, 6))),
    "half its precision": lambda m: m.half(),
    "a hook": lambda m: m.transformer.h[0].attn.c_proj.register_forward_pre_hook(print),
    "training": lambda m: m.train(),
    "its configuration": lambda m: setattr(m.config, "output_attentions", True),
    "an attribute": lambda m: setattr(m.transformer, "seen", [1]),
    "a gradient": lambda m: m(ids()).logits.sum().backward(),
    "no gradients": lambda m: m.requires_grad_(False),
    "a method": lambda m: setattr(m, "forward", print),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_model_that_was_changed_is_made_anew(what):
    kept = Kept()
    model = kept.given(*sent())
    CHANGES[what](model)
    fresh, wanted = kept.given(*sent()), gpt2(CONFIG, weights())
    assert fresh is not model
    with torch.no_grad():
        assert torch.equal(fresh(ids()).logits, wanted(ids()).logits)
    assert not fresh.training and all(p.grad is None for p in fresh.parameters())


def test_other_weights_are_another_model_and_few_are_kept():
    kept = Kept()
    models = [kept.given(*sent(seed)) for seed in range(MOST_KEPT + 1)]
    assert len({id(model) for model in models}) == len(models)
    assert len(kept.made) == MOST_KEPT
    assert kept.given(*sent(MOST_KEPT)) is models[-1]


def test_making_a_model_throws_nobodys_dice():
    values = weights()
    state = torch.get_rng_state()
    gpt2(CONFIG, values)
    assert torch.equal(torch.get_rng_state(), state)
