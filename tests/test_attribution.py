"""transformer_lm.attribution: shares from plain algebra, which add up exactly to the logit."""

import pytest
import torch

from tests.plain_gpt2 import mini_gpt2, run
from transformer_lm import ablation, attribution
from transformer_lm.pretrained import load_gpt2

LAYERS, HEADS, SIZE = 3, 4, 10
IDS = torch.tensor([[3, 7, 11, 2, 5, 9], [1, 2, 3, 4, 5, 6], [8, 8, 1, 0, 2, 2]])


@pytest.fixture(scope="module")
def model():
    return mini_gpt2(LAYERS, HEADS)


def plain_share(model, part, position, token, final):
    """One part's share of one row's logit, by the formula of the final norm."""
    norm = model.transformer.ln_f
    sigma = ((final - final.mean()) ** 2).mean().add(norm.eps).sqrt()
    return ((part - part.mean()) / sigma * norm.weight) @ model.lm_head.weight[token]


@torch.no_grad()
def test_each_share_is_what_plain_algebra_gives(model):
    tokens, position = torch.tensor([4, 5, 6]), 3
    found = attribution.logit_shares(model, IDS, tokens, position)
    acts, stack = run(model, IDS), model.transformer
    for row in range(3):
        final = acts["ln_f:input"][row, position]

        def share(part, row=row, final=final):
            return plain_share(model, part, position, tokens[row], final)

        token, place = stack.wte.weight[IDS[row, position]], stack.wpe.weight[position]
        torch.testing.assert_close(found.token_embedding[row], share(token))
        torch.testing.assert_close(found.position_embedding[row], share(place))
        torch.testing.assert_close(
            found.norm_bias[row], stack.ln_f.bias @ model.lm_head.weight[tokens[row]]
        )
        for layer, block in enumerate(stack.h):
            bias = block.mlp.c_proj.bias
            mlp = acts[f"h.{layer}.mlp_out"][row, position] - bias
            torch.testing.assert_close(found.mlps[layer, row], share(mlp))
            torch.testing.assert_close(found.mlp_bias[layer, row], share(bias))
            attention_bias = share(block.attn.c_proj.bias)
            torch.testing.assert_close(found.attention_bias[layer, row], attention_bias)
            for head in range(HEADS):
                out = acts[f"h.{layer}.head_out"][row, head, position]
                torch.testing.assert_close(found.heads[layer, head, row], share(out))


@pytest.mark.parametrize("position", [-1, 0, 3])
@pytest.mark.parametrize("against", [None, 9, torch.tensor([9, 0, 1])])
def test_the_shares_add_up_to_the_logit(model, position, against):
    tokens = torch.tensor([4, 5, 6])
    total = attribution.logit_shares(model, IDS, tokens, position, against).total()
    with torch.no_grad():
        logits = model(IDS).logits[:, position]
    expected = logits.gather(1, tokens[:, None])[:, 0]
    if against is not None:
        expected = expected - logits.gather(1, torch.as_tensor(against).expand(3)[:, None])[:, 0]
    torch.testing.assert_close(total, expected, rtol=0, atol=1e-11)


def test_the_shares_add_up_for_a_model_on_board():
    model, tokenizer = load_gpt2("tiny")
    ids = tokenizer(["Today we can go to the"], return_tensors="pt").input_ids
    found = attribution.logit_shares(model, ids, 262).total()
    with torch.no_grad():
        torch.testing.assert_close(found, model(ids).logits[:, -1, 262], rtol=0, atol=1e-4)


def test_the_heads_alone_are_the_older_function(model):
    shares = attribution.logit_shares(model, IDS, 4, -2, 9)
    older = ablation.direct_logit_attribution(model, IDS, 4, -2, 9)
    assert torch.equal(shares.heads, older) and older.shape == (LAYERS, HEADS, 3)


def test_a_head_that_puts_out_its_mean_says_its_mean_share(model):
    """Of a reference of one token in one row, the mean is what the head does there."""
    one = IDS[:1, :1]
    mean = attribution.mean_output_shares(model, one, 4, one, against=9)
    torch.testing.assert_close(mean, attribution.logit_shares(model, one, 4, against=9).heads)


def test_mean_shares_are_those_of_the_mean_output(model):
    reference = torch.tensor([[1, 2, 3], [4, 5, 6]])
    found = attribution.mean_output_shares(model, IDS, 4, reference)
    far, here = run(model, reference), run(model, IDS)
    for layer in range(LAYERS):
        mean = far[f"h.{layer}.head_out"].mean(dim=(0, 2))  # [heads, hidden]
        for head in range(HEADS):
            for row in range(3):
                final = here["ln_f:input"][row, -1]
                expected = plain_share(model, mean[head], -1, 4, final)
                torch.testing.assert_close(found[layer, head, row], expected.detach())


def test_shares_leave_no_hook_and_no_gradient(model):
    found = attribution.logit_shares(model, IDS, 4)
    assert not any(share.requires_grad for share in found)
    assert not any("forward" in vars(m) for m in model.modules())
