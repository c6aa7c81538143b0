"""Padding: each row of a padded batch gives what it gives alone, in every grid and reading."""

import pytest
import torch

from tests.plain_gpt2 import mini_gpt2
from transformer_lm import (
    ablation,
    activations,
    attribution,
    batches,
    head_scores,
    losses,
    patching,
)

LAYERS, HEADS = 2, 3
LENGTHS = (4, 7, 5)
ROWS = [torch.randint(60, (n,), generator=torch.Generator().manual_seed(n)) for n in LENGTHS]
GRID_ATOL = 1e-6  # grids are kept in float32


@pytest.fixture(scope="module")
def model():
    return mini_gpt2(LAYERS, HEADS, hidden=24)


@pytest.fixture(params=["right", "left"])
def padded(request):
    """(input_ids, attention_mask), [3, 7] each, padded with a token that the rows have too."""
    ids = torch.full((len(ROWS), max(LENGTHS)), int(ROWS[0][0]))
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(ROWS):
        n = len(tokens)
        place = slice(0, n) if request.param == "right" else slice(max(LENGTHS) - n, None)
        ids[row, place], mask[row, place] = tokens, 1
    return ids, mask


def test_logits_are_those_of_each_row_alone(model, padded):
    ids, mask = padded
    with torch.no_grad():
        together = model(**batches.model_inputs(ids, mask)).logits
        for row, tokens in enumerate(ROWS):
            alone = model(tokens[None]).logits[0]
            torch.testing.assert_close(together[row][mask[row].bool()], alone)


def test_padding_on_the_right_is_given_to_the_model_as_it_always_was(model):
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    ids = torch.randint(60, (2, 4))
    own = model(ids, attention_mask=mask, output_attentions=True).attentions
    found = activations.attention_patterns(model, ids, mask)
    torch.testing.assert_close(found, torch.stack(own), rtol=0, atol=0)


def test_log_probs_and_their_mean_count_tokens_alone(model, padded):
    ids, mask = padded
    alone = [losses.target_log_probs(model, tokens[None])[0] for tokens in ROWS]
    together = losses.target_log_probs(model, ids, mask)
    torch.testing.assert_close(together[batches.are_predictions(ids, mask)], torch.cat(alone))
    torch.testing.assert_close(
        losses.mean_log_prob(model, ids, None, mask), torch.cat(alone).mean()
    )
    for target in (-1, -2, 0, 1):
        expected = torch.stack([row[target] for row in alone]).mean()
        torch.testing.assert_close(losses.mean_log_prob(model, ids, target, mask), expected)


@pytest.mark.parametrize("how", ["zero", "mean"])
@pytest.mark.parametrize(("positions", "target"), [(None, None), ([-2], -1), ([0, 2], -1)])
def test_the_ablation_grid_is_that_of_the_rows(model, padded, how, positions, target):
    """Zero: the mean of the rows' own effects. Mean: with the mean of all rows' tokens."""
    ids, mask = padded
    grid = ablation.ablation_grid(model, ids, how, positions, target, attention_mask=mask)
    reference, counts = torch.zeros(len(ROWS), max(LENGTHS), dtype=torch.long), []
    for row, tokens in enumerate(ROWS):
        reference[row, : len(tokens)] = tokens
    reference_mask = torch.tensor([[i < n for i in range(max(LENGTHS))] for n in LENGTHS])
    effects = []
    for tokens in ROWS:
        more = {} if how == "zero" else {"reference": reference, "reference_mask": reference_mask}
        effects.append(ablation.ablation_grid(model, tokens[None], how, positions, target, **more))
        counts.append(len(tokens) - 1 if target is None else 1)
    expected = sum(e * c for e, c in zip(effects, counts, strict=True)) / sum(counts)
    torch.testing.assert_close(grid, expected, rtol=0, atol=GRID_ATOL)
    assert expected.abs().max() > 1e-3


def test_resampling_from_padding_is_refused(model, padded):
    ids, mask = padded
    with (
        pytest.raises(ValueError, match="at padding, for the item drawn is shorter"),
        ablation.ablate(model, [(0, 0)], "resample", attention_mask=mask),
    ):
        model(**batches.model_inputs(ids, mask))


def test_resampling_takes_longer_rows_of_a_reference(model, padded):
    ids, mask = padded
    reference = torch.randint(60, (4, max(LENGTHS)), generator=torch.Generator().manual_seed(3))
    grid = ablation.ablation_grid(
        model, ids, "resample", reference=reference, attention_mask=mask, seed=2
    )
    assert torch.isfinite(grid).all() and grid.abs().max() > 1e-4


def test_readings_at_a_position_are_those_of_each_row_alone(model, padded):
    ids, mask = padded
    for position in (-1, 1):
        lens = activations.logit_lens(model, ids, position, mask)
        shares = attribution.logit_shares(model, ids, 5, position, 9, mask)
        results = attribution.head_contributions(model, ids, position, mask)
        means = attribution.mean_output_shares(
            model, ids, 5, ROWS[1][None], position, 9, attention_mask=mask
        )
        for row, tokens in enumerate(ROWS):
            alone = tokens[None]
            torch.testing.assert_close(
                lens[:, row : row + 1], activations.logit_lens(model, alone, position)
            )
            for mine, its in zip(
                shares, attribution.logit_shares(model, alone, 5, position, 9), strict=True
            ):
                # a bias's share differs by row too, through the final norm
                torch.testing.assert_close(mine[..., row : row + 1], its)
            own = attribution.head_contributions(model, alone, position)
            torch.testing.assert_close(results[:, :, row : row + 1], own)
            own = attribution.mean_output_shares(model, alone, 5, ROWS[1][None], position, 9)
            torch.testing.assert_close(means[..., row : row + 1], own)


def test_a_padded_reference_has_the_mean_of_its_tokens(model, padded):
    ids, mask = padded
    found = attribution.mean_output_shares(model, ROWS[1][None], 5, ids, reference_mask=mask)
    with activations.record(model, "h.*.z") as acts, torch.no_grad():
        rows = []
        for tokens in ROWS:
            model(tokens[None])
            rows.append(torch.stack([acts[f"h.{layer}.z"][0] for layer in range(LAYERS)]))
    mean = torch.cat(rows, dim=2).mean(dim=2)  # [layers, heads, head_size]
    final = activations.residual_stream(model, ROWS[1][None])[-1][0, -1]
    norm = model.transformer.ln_f
    for layer, block in enumerate(model.transformer.h):
        for head in range(HEADS):
            c = mean[layer, head] @ block.attn.c_proj.weight[head * 8 : head * 8 + 8]
            sigma = (final.var(correction=0) + norm.eps).sqrt()
            expected = (c - c.mean()) / sigma * norm.weight @ model.lm_head.weight[5]
            torch.testing.assert_close(found[layer, head, 0], expected.detach())


def test_head_scores_are_the_means_over_all_rows_queries(model, padded):
    ids, mask = padded
    scores = head_scores.previous_token_scores(model, ids, mask)
    weights = []
    for tokens in ROWS:
        own = activations.attention_patterns(model, tokens[None])[:, 0]
        weights.append(own.diagonal(-1, -2, -1))
    torch.testing.assert_close(scores, torch.cat(weights, dim=-1).mean(dim=-1))


def test_induction_scores_find_the_second_copy_of_rows_of_unequal_length(model, padded):
    """Each row ends in two copies of two tokens; before them it has 0, 3 or 1 others."""
    ids, mask = padded
    scores = head_scores.induction_scores(model, ids, 2, mask)
    weights = []
    for tokens in ROWS:
        own = activations.attention_patterns(model, tokens[None])[:, 0]
        n = len(tokens)
        weights += [own[:, :, n - 2, n - 3], own[:, :, n - 1, n - 2]]
    torch.testing.assert_close(scores, torch.stack(weights).mean(dim=0))


@pytest.mark.parametrize("name", ["stream_in", "z"])
def test_activation_patching_leaves_padding_alone(model, padded, name):
    ids, mask = padded
    source = torch.where(mask.bool(), (ids + 7) % 60, ids)
    last = batches.index_of(mask.bool(), -1)
    measure = losses.logit_difference(5, 9, position=last)
    grid = patching.activation_patching(
        model, ids, source, measure, name, by=("layer",), attention_mask=mask
    )
    alone = [
        patching.activation_patching(
            model, tokens[None], (tokens[None] + 7) % 60, losses.logit_difference(5, 9), name,
            by=("layer",),
        )
        for tokens in ROWS
    ]  # fmt: skip
    torch.testing.assert_close(grid, torch.stack(alone).mean(dim=0))


def test_path_patching_is_that_of_the_rows(model, padded):
    ids, mask = padded
    source = torch.where(mask.bool(), (ids + 7) % 60, ids)
    measure = losses.logit_difference(5, 9, position=batches.index_of(mask.bool(), -1))
    receivers, how = [("k", 1, 2)], {"positions": [-1, 0], "through_mlps": True}
    grid = patching.path_patching(
        model, ids, source, measure, receivers, attention_mask=mask, **how
    )
    alone = [
        patching.path_patching(
            model, t[None], (t[None] + 7) % 60, losses.logit_difference(5, 9), receivers, **how
        )
        for t in ROWS
    ]
    torch.testing.assert_close(grid, torch.stack(alone).mean(dim=0))
    assert grid.abs().max() > 1e-4


def test_the_residual_stream_and_heads_are_those_of_each_row_alone(model, padded):
    ids, mask = padded
    stream = activations.residual_stream(model, ids, mask)
    heads = activations.head_activations(model, ids, attention_mask=mask)[1]
    for row, tokens in enumerate(ROWS):
        real = mask[row].bool()
        alone = activations.residual_stream(model, tokens[None])[:, 0]
        torch.testing.assert_close(stream[:, row, real], alone)
        own = activations.head_activations(model, tokens[None])[1]
        torch.testing.assert_close(heads.q[row][:, real], own.q[0])
        torch.testing.assert_close(heads.pattern[row][:, real][:, :, real], own.pattern[0])


def test_positions_count_within_a_rows_own_tokens():
    is_token = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1]]).bool()
    assert batches.at_positions(is_token, [-1]).int().tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    assert batches.at_positions(is_token, [0, 1]).int().tolist() == [[0, 1, 1, 0], [1, 1, 0, 0]]
    assert batches.at_positions(is_token, None).equal(is_token)
    assert batches.index_of(is_token, -2).tolist() == [1, 2]
    with pytest.raises(IndexError, match="position 2 in a sequence of 2 tokens"):
        batches.at_positions(is_token, [2])


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.ones(2, 4), r"attention_mask has shape \[2, 4\], but the token ids have \[2, 5\]"),
        (torch.tensor([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]), "row 1 of attention_mask has no token"),
    ],
)
def test_a_mask_that_cannot_belong_to_the_tokens_is_refused(model, mask, words):
    ids = torch.zeros(2, 5, dtype=torch.long)
    for use in (activations.residual_stream, losses.target_log_probs, batches.are_tokens):
        with pytest.raises(ValueError, match=words):
            use(*([ids] if use is batches.are_tokens else [model, ids]), attention_mask=mask)
