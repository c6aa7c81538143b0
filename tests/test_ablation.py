"""transformer_lm.ablation against models with edited weights, and sums that must hold."""

import copy

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from transformer_lm import ablation, head_scores
from transformer_lm.activations import count_hooks, record, residual_stream

LAYERS, HEADS, HIDDEN, SIZE, VOCAB = 3, 4, 40, 10, 60
IDS = torch.tensor([[3, 7, 11, 2, 5, 9], [1, 2, 3, 4, 5, 6], [8, 8, 1, 0, 2, 2]])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=HIDDEN, vocab_size=VOCAB, n_positions=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval().double()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def logits(model, ids=IDS):
    with torch.no_grad():
        return model(ids).logits


def head_outputs(model, layer, ids=IDS):
    with record(model, f"h.{layer}.attn.c_proj:input") as acts, torch.no_grad():
        model(ids)
    return acts[f"h.{layer}.attn.c_proj:input"].view(*ids.shape, HEADS, SIZE)


def ablated_outputs(model, layer, heads, ids=IDS, **how):
    """What c_proj reads while the heads are ablated; a hook set later sees what the first left."""
    with ablation.ablate(model, [(layer, head) for head in heads], **how):
        return head_outputs(model, layer, ids)


def test_zero_ablation_equals_a_model_without_the_heads_output_weights(model):
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.transformer.h[1].attn.c_proj.weight[2 * SIZE : 3 * SIZE] = 0
    with ablation.ablate(model, [(1, 2)]):
        found = logits(model)
    torch.testing.assert_close(found, logits(twin))
    assert (found - logits(model)).abs().max() > 1e-3


def test_heads_of_several_layers_are_ablated_together(model):
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for layer, head in [(0, 0), (0, 3), (2, 1)]:
            twin.transformer.h[layer].attn.c_proj.weight[head * SIZE : (head + 1) * SIZE] = 0
    with ablation.ablate(model, [(0, 0), (0, 3), (-1, 1)]):
        torch.testing.assert_close(logits(model), logits(twin))


def test_only_the_chosen_head_and_position_change(model):
    clean, found = head_outputs(model, 0), ablated_outputs(model, 0, [1], positions=[-2])
    assert found[:, -2, 1].abs().max() == 0
    clean[:, -2, 1] = 0
    torch.testing.assert_close(found, clean, rtol=0, atol=0)


def test_a_lesion_at_the_last_position_leaves_earlier_predictions_alone(model):
    with ablation.ablate(model, [(1, 0)], positions=[-1]):
        found = logits(model)
    clean = logits(model)
    torch.testing.assert_close(found[:, :-1], clean[:, :-1])
    assert (found[:, -1] - clean[:, -1]).abs().max() > 1e-3


def test_mean_ablation_puts_the_mean_over_batch_and_positions(model):
    clean, found = head_outputs(model, 1), ablated_outputs(model, 1, [3], how="mean")
    expected = clean[:, :, 3].mean(dim=(0, 1))
    torch.testing.assert_close(found[:, :, 3], expected.expand(3, 6, SIZE))
    torch.testing.assert_close(found[:, :, :3], clean[:, :, :3])


def test_mean_ablation_with_a_reference_takes_the_references_mean(model):
    reference = torch.randint(VOCAB, (5, 9))
    found = ablated_outputs(model, 1, [0], how="mean", reference=reference)
    expected = head_outputs(model, 1, reference)[:, :, 0].mean(dim=(0, 1))
    torch.testing.assert_close(found[:, :, 0], expected.expand(3, 6, SIZE))


def test_resampling_never_takes_an_items_own_output(model):
    clean = head_outputs(model, 0)[:, :, 2]
    for seed in range(5):
        found = ablated_outputs(model, 0, [2], how="resample", seed=seed)[:, :, 2]
        for item in range(3):
            others = [other for other in range(3) if torch.equal(found[item], clean[other])]
            assert len(others) == 1 and others != [item]


def test_resampling_from_a_reference_keeps_the_position(model):
    reference = torch.randint(VOCAB, (1, 9), generator=torch.Generator().manual_seed(0))
    found = ablated_outputs(model, 1, [2], how="resample", reference=reference)
    expected = head_outputs(model, 1, reference)[:, :6, 2]
    torch.testing.assert_close(found[:, :, 2], expected.expand(3, 6, SIZE))


def test_the_same_seed_draws_the_same(model):
    first, second = (ablated_outputs(model, 0, [2], how="resample", seed=seed) for seed in (4, 4))
    assert torch.equal(first, second)


@pytest.mark.parametrize("how", ablation.HOW)
def test_what_was_recorded_before_is_never_edited(model, how):
    with record(model, "h.0.z", keep_gradients=True) as acts:
        model(IDS)
        z, kept = acts["h.0.z"], acts["h.0.z"].detach().clone()
        with ablation.ablate(model, [(0, 1)], how=how):
            model(IDS)
    assert torch.equal(z, kept)
    assert not torch.equal(acts["h.0.z"][:, 1], kept[:, 1])


def test_no_hook_stays_whatever_is_raised(model):
    for problem in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(problem), ablation.ablate(model, [(0, 0), (1, 1)]):
            raise problem
        assert count_hooks(model) == 0
    with (
        pytest.raises(ValueError, match="nothing to resample from"),
        ablation.ablate(model, [(0, 0)], how="resample"),
    ):
        model(IDS[:1])
    assert count_hooks(model) == 0


@pytest.mark.parametrize(
    ("arguments", "problem", "words"),
    [
        ({"heads": [(0, 4)]}, IndexError, "no head .0, 4.: the model has 3 layers of 4 heads"),
        ({"heads": [(3, 0)]}, IndexError, "no head .3, 0."),
        ({"heads": [(0, -1)]}, IndexError, "no head .0, -1."),
        ({"heads": [(0, 0)], "how": "noise"}, ValueError, "'noise'; expected one of zero"),
        ({"heads": [(0, 0)], "positions": [6]}, IndexError, "position 6 in a sequence of 6"),
        (
            {"heads": [(0, 0)], "how": "resample", "reference": IDS[:, :3]},
            ValueError,
            "reference has 3 tokens, 6 are needed",
        ),
    ],
)
def test_what_is_not_there_is_refused(model, arguments, problem, words):
    with pytest.raises(problem, match=words), ablation.ablate(model, **arguments):
        model(IDS)
    assert count_hooks(model) == 0


def test_target_log_probs_are_minus_torchs_cross_entropy(model):
    expected = torch.nn.functional.cross_entropy(
        logits(model)[:, :-1].flatten(0, 1), IDS[:, 1:].flatten(), reduction="none"
    ).view(3, 5)
    torch.testing.assert_close(-ablation.target_log_probs(model, IDS), expected)


def test_the_grid_is_each_heads_own_ablation(model):
    grid = ablation.ablation_grid(model, IDS, target=-1, positions=[-2])
    clean = torch.log_softmax(logits(model)[:, -2], dim=-1).gather(1, IDS[:, -1:]).mean()
    twin = copy.deepcopy(model)
    assert grid.shape == (LAYERS, HEADS)
    with ablation.ablate(twin, [(2, 1)], positions=[-2]):
        after = torch.log_softmax(logits(twin)[:, -2], dim=-1).gather(1, IDS[:, -1:]).mean()
    assert grid[2, 1].item() == pytest.approx((after - clean).item(), abs=1e-6)
    assert count_hooks(model) == 0


def test_head_contributions_and_the_bias_are_the_attention_output(model):
    with record(model, "h.*.attn.c_proj") as acts, torch.no_grad():
        model(IDS)
    parts = ablation.head_contributions(model, IDS, position=3)
    for layer, block in enumerate(model.transformer.h):
        expected = acts[f"h.{layer}.attn.c_proj"][:, 3]
        torch.testing.assert_close(parts[layer].sum(0) + block.attn.c_proj.bias, expected)


def test_direct_attributions_and_the_rest_add_up_to_the_logit(model):
    """All but the heads: embeddings, MLPs and the output biases, through the same frozen norm."""
    tokens = torch.tensor([4, 5, 6])
    heads = ablation.direct_logit_attribution(model, IDS, tokens)
    norm, final = model.transformer.ln_f, residual_stream(model, IDS)[-1][:, -1]
    rest = final - ablation.head_contributions(model, IDS).sum(dim=(0, 1))
    spread = (final.var(dim=-1, correction=0) + norm.eps).sqrt()
    reader = model.lm_head.weight[tokens]
    rest = ((rest - rest.mean(-1, keepdim=True)) * norm.weight * reader).sum(-1) / spread
    total = heads.sum(dim=(0, 1)) + rest + reader @ norm.bias
    expected = logits(model)[:, -1].gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(total, expected)


def test_attribution_against_a_token_is_the_difference_of_two(model):
    one, two = (ablation.direct_logit_attribution(model, IDS, token) for token in (4, 9))
    found = ablation.direct_logit_attribution(model, IDS, 4, against=9)
    torch.testing.assert_close(found, one - two)


def test_repeated_tokens_repeat():
    tokens = ablation.repeated_tokens(50, batch_size=2, length=7, prefix=49)
    assert tokens.shape == (2, 15) and (tokens[:, 0] == 49).all()
    assert torch.equal(tokens[:, 1:8], tokens[:, 8:])


def test_head_scores_read_the_right_stripe(model, monkeypatch):
    """Patterns made by hand: a previous-token head, an induction head, a head on itself."""
    length = 5
    patterns = torch.zeros(2, 1, 3, 2 * length + 1, 2 * length + 1)
    for query in range(1, 2 * length + 1):
        patterns[:, 0, 0, query, query - 1] = 0.75
        patterns[:, 0, 2, query, query] = 1
    for query in range(length + 1, 2 * length + 1):  # token 0 is a prefix
        patterns[:, 0, 1, query, query - length + 1] = 0.5
    monkeypatch.setattr(head_scores, "attention_patterns", lambda *_: patterns)
    ids = torch.zeros(1, 2 * length + 1, dtype=torch.long)
    assert head_scores.previous_token_scores(model, ids).tolist() == [[0.75, 0, 0]] * 2
    assert head_scores.induction_scores(model, ids, length).tolist() == [[0, 0.5, 0]] * 2


def test_copy_loss_is_read_from_the_right_tokens(model, monkeypatch):
    """Losses made by hand for a prefix and two copies of 4: entry t is the loss of token t + 1."""
    losses = torch.tensor([[9.0, 1, 2, 3, 9, 10, 20, 30]])
    monkeypatch.setattr(head_scores, "target_log_probs", lambda model, ids: -losses)
    assert head_scores.copy_loss(model, None, 4) == (2, 20)
