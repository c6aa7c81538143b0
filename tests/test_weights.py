"""transformer_lm.weights against brute force in float64: the big products, formed and solved."""

import copy
import math

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.weights import loop_statistics
from transformer_lm import weights
from transformer_lm.activations import attention_patterns

LAYERS, HEADS, HIDDEN, HEAD_SIZE = 3, 4, 40, 10


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=HIDDEN, vocab_size=60, n_positions=32,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval().double()
    for parameter in model.parameters():  # biases and gains too, away from 0 and 1
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module")
def factors():
    generator = torch.Generator().manual_seed(1)
    return tuple(
        torch.randn(HEADS, HIDDEN, HEAD_SIZE, generator=generator, dtype=torch.float64)
        for _ in range(2)
    )


def big_product(factors):
    a, b = factors
    return a @ b.mT  # [HEADS, HIDDEN, HIDDEN]


def test_head_weights_give_c_attns_output_head_by_head(model):
    x = torch.randn(5, HIDDEN, dtype=torch.float64)
    attention = model.transformer.h[1].attn
    heads = weights.head_weights(model, 1)
    wide = attention.c_attn(x[None])[0]  # [5, 3 * HIDDEN]
    for part, (w, b) in enumerate(
        [(heads.w_q, heads.b_q), (heads.w_k, heads.b_k), (heads.w_v, heads.b_v)]
    ):
        for head in range(HEADS):
            first = part * HIDDEN + head * HEAD_SIZE
            expected = wide[:, first : first + HEAD_SIZE]
            torch.testing.assert_close(x @ w[head] + b[head], expected, rtol=0, atol=1e-12)


def test_the_heads_outputs_sum_to_c_proj(model):
    z = torch.randn(5, HIDDEN, dtype=torch.float64)
    heads = weights.head_weights(model, 2)
    parts = z.view(5, HEADS, HEAD_SIZE).transpose(0, 1) @ heads.w_o  # [HEADS, 5, HIDDEN]
    expected = model.transformer.h[2].attn.c_proj(z[None])[0]
    torch.testing.assert_close(parts.sum(0) + heads.b_o, expected, rtol=0, atol=1e-12)


def test_a_folded_layer_norm_leaves_queries_as_they_were(model):
    block = model.transformer.h[0]
    x = torch.randn(5, HIDDEN, dtype=torch.float64)
    plain, folded = weights.head_weights(model, 0), weights.head_weights(model, 0, True)
    bare = torch.nn.functional.layer_norm(x, (HIDDEN,), eps=block.ln_1.eps)
    expected = block.ln_1(x) @ plain.w_q[3] + plain.b_q[3]
    torch.testing.assert_close(bare @ folded.w_q[3] + folded.b_q[3], expected)


def test_a_weight_that_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match="multiple of three"):
        weights.split_qkv(torch.zeros(4, 10))
    with pytest.raises(ValueError, match="shared by 3 heads"):
        weights.split_columns(torch.zeros(4, 10), 3)


def test_the_four_gpt2_sizes_have_the_known_attention_parameter_counts():
    sizes = {
        (12, 768, 12): 28.3,
        (24, 1024, 16): 100.8,
        (36, 1280, 20): 236.1,
        (48, 1600, 25): 491.8,
    }
    for (layers, hidden, heads), millions in sizes.items():
        config = GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads)
        assert round(weights.count_attention_parameters(config) / 1e6, 1) == millions
        assert weights.attention_sizes(config)["head_size"] == 64


def test_the_parameter_count_is_that_of_the_models_tensors(model):
    attention = [block.attn for block in model.transformer.h]
    counted = sum(p.numel() for part in attention for p in part.parameters())
    assert weights.count_attention_parameters(model.config) == counted


def test_singular_values_are_those_of_the_big_product(factors):
    expected = torch.linalg.svdvals(big_product(factors))
    found = weights.singular_values(*factors)
    torch.testing.assert_close(found, expected[:, :HEAD_SIZE])
    assert expected[:, HEAD_SIZE:].max() < 1e-12 * expected.max()  # nothing is left out


def test_eigenvalues_are_those_of_the_big_product(factors):
    big = torch.linalg.eigvals(big_product(factors))
    for found, expected in zip(weights.eigenvalues(*factors), big, strict=True):
        expected = expected[expected.abs().argsort(descending=True)][:HEAD_SIZE]
        gaps = (found[:, None] - expected[None, :]).abs()
        assert gaps.min(dim=0).values.max() < 1e-9 and gaps.min(dim=1).values.max() < 1e-9


def test_symmetric_eigenvalues_are_those_of_the_symmetric_part(factors):
    big = big_product(factors)
    expected = torch.linalg.eigvalsh((big + big.mT) / 2)  # [HEADS, HIDDEN]
    strongest = expected.abs().argsort(dim=-1, descending=True)[:, : 2 * HEAD_SIZE]
    expected = expected.gather(-1, strongest).sort().values
    torch.testing.assert_close(weights.symmetric_eigenvalues(*factors), expected)


def test_symmetric_eigenvalues_hold_where_the_rank_reaches_the_width():
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(2, 6, 5, generator=generator, dtype=torch.float64)
    expected = torch.linalg.eigvalsh((a @ b.T + b @ a.T) / 2)  # [6]
    torch.testing.assert_close(weights.symmetric_eigenvalues(a, b), expected)


def test_norm_trace_and_shares_are_those_of_the_big_product(factors):
    big = big_product(factors)
    symmetric = (big + big.mT) / 2
    norms = big.pow(2).sum((-2, -1))
    torch.testing.assert_close(weights.squared_norm(*factors), norms)
    torch.testing.assert_close(weights.trace(*factors), big.diagonal(dim1=-2, dim2=-1).sum(-1))
    expected = symmetric.pow(2).sum((-2, -1)) / norms
    torch.testing.assert_close(weights.symmetric_share(*factors), expected)


def test_identity_distance_is_the_least_over_all_multiples(factors):
    eye = torch.eye(HIDDEN, dtype=torch.float64)
    for head, matrix in enumerate(big_product(factors)):
        fit = torch.linalg.lstsq(eye.reshape(-1, 1), matrix.reshape(-1, 1)).solution.item()
        expected = (matrix - fit * eye).norm() / matrix.norm()
        found = weights.identity_distance(*factors)[head]
        assert found == pytest.approx(expected.item(), abs=1e-12)


def test_a_projection_meets_the_rank_bound_of_the_identity_distance():
    columns = torch.linalg.qr(torch.randn(HIDDEN, HEAD_SIZE, dtype=torch.float64)).Q
    bound = weights.identity_distance_bound(HIDDEN, HEAD_SIZE)
    assert weights.identity_distance(columns, columns).item() == pytest.approx(bound, abs=1e-12)
    assert weights.identity_distance_bound(768, 64) == pytest.approx(0.957, abs=5e-4)


def test_a_gram_matrix_is_symmetric_and_positive_and_its_negative_is_not():
    a = torch.randn(1, HIDDEN, HEAD_SIZE, dtype=torch.float64)
    gram, negative = weights.summarize(a, a), weights.summarize(a, -a)
    assert gram["symmetric_share"].item() == pytest.approx(1)
    assert gram["positive_share"].item() == pytest.approx(1)
    assert negative["symmetric_share"].item() == pytest.approx(1)
    assert negative["positive_share"].item() == pytest.approx(0, abs=1e-9)


def test_a_symmetric_matrix_may_be_indefinite():
    a = torch.randn(1, HIDDEN, HEAD_SIZE, dtype=torch.float64)
    signs = torch.ones(HEAD_SIZE, dtype=torch.float64)
    signs[::2] = -1
    found = weights.summarize(a, a * signs)
    assert found["symmetric_share"].item() == pytest.approx(1)
    assert 0.2 < found["positive_share"].item() < 0.8


def test_an_antisymmetric_matrix_has_no_symmetric_share():
    a = torch.randn(HIDDEN, 2, dtype=torch.float64)
    b = torch.stack([a[:, 1], -a[:, 0]], dim=1)
    assert weights.symmetric_share(a, b).item() == pytest.approx(0, abs=1e-12)


def test_effective_rank_counts_equal_singular_values():
    assert weights.effective_rank(torch.tensor([2.0, 2.0, 2.0])).item() == pytest.approx(3)
    assert weights.effective_rank(torch.tensor([2.0, 0.0, 0.0])).item() == pytest.approx(1)


def test_regauging_changes_the_cosines_and_not_the_model(model):
    ids = torch.arange(8)[None]
    twin = copy.deepcopy(model)
    heads = weights.head_weights(twin, 0)
    r = torch.randn(HEAD_SIZE, HEAD_SIZE, dtype=torch.float64) + 3 * torch.eye(HEAD_SIZE)
    w_q, w_k = weights.regauge(heads.w_q, heads.w_k, r)
    wide = twin.transformer.h[0].attn.c_attn
    biases = [b @ r for b in heads.b_q], [b @ torch.linalg.inv(r).T for b in heads.b_k]
    with torch.no_grad():
        before = weights.column_cosines(wide.weight[:, :HIDDEN].clone(), HEADS).within
        new = [w.transpose(0, 1).reshape(HIDDEN, HIDDEN) for w in (w_q, w_k)]
        wide.weight[:, : 2 * HIDDEN] = torch.cat(new, dim=1)
        wide.bias[: 2 * HIDDEN] = torch.cat([*biases[0], *biases[1]])
        after = weights.column_cosines(wide.weight[:, :HIDDEN], HEADS).within
    torch.testing.assert_close(attention_patterns(twin, ids), attention_patterns(model, ids))
    assert (before - after).abs().max() > 0.1


def test_the_random_baseline_has_the_heads_spread_and_no_structure(model):
    heads = weights.head_weights(model, 0)
    noise = weights.random_like(heads.w_q, torch.Generator().manual_seed(0))
    spread = heads.w_q.square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(noise.std(dim=(1, 2)), spread, rtol=0.1, atol=0)
    again = weights.random_like(heads.w_q, torch.Generator().manual_seed(0))
    assert torch.equal(noise, again)
    shares = weights.summarize_model(model, seed=0)["symmetric_share"]
    assert shares.mean().item() == pytest.approx(0.5 + 0.5 / HIDDEN, abs=0.02)


@pytest.mark.parametrize("circuit", ["qk", "ov"])
def test_summaries_of_a_model_are_layers_by_heads_of_the_big_products(model, circuit):
    found = weights.summarize_model(model, circuit)
    heads = weights.head_weights(model, 2)
    matrix = {"qk": weights.qk_matrix, "ov": weights.ov_matrix}[circuit](heads, 1)
    assert found["norm"].shape == (LAYERS, HEADS)
    assert found["norm"][2, 1].item() == pytest.approx(matrix.norm().item())
    smallest = torch.linalg.eigvalsh((matrix + matrix.T) / 2)[0].item()
    assert found["smallest_eigenvalue"][2, 1].item() == pytest.approx(smallest)


def test_the_four_score_terms_sum_to_the_scores(model):
    x = torch.randn(2, 6, HIDDEN, dtype=torch.float64)
    heads = weights.head_weights(model, 1)
    terms = weights.score_terms(x, heads)
    for head in range(HEADS):
        q = x @ heads.w_q[head] + heads.b_q[head]
        k = x @ heads.w_k[head] + heads.b_k[head]
        expected = q @ k.mT / math.sqrt(HEAD_SIZE)
        torch.testing.assert_close(sum(terms)[:, head], expected)


def test_only_the_query_bias_moves_the_attention(model):
    x = torch.randn(2, 6, HIDDEN, dtype=torch.float64)
    effect = weights.bias_effect(x, weights.head_weights(model, 1))
    assert effect["b_k"].max() < 1e-12
    assert effect["b_q"].min() > 1e-3


def test_the_bias_effect_is_the_total_variation_distance(model):
    x = torch.randn(1, 4, HIDDEN, dtype=torch.float64)
    heads = weights.head_weights(model, 0)
    bare = heads._replace(b_q=torch.zeros_like(heads.b_q))
    after = torch.ones(4, 4, dtype=torch.bool).triu(1)
    patterns = [
        torch.softmax(sum(weights.score_terms(x, each)).masked_fill(after, -math.inf), dim=-1)
        for each in (heads, bare)
    ]
    expected = (patterns[0] - patterns[1]).clamp(min=0).sum(-1).mean(dim=(0, 2))
    torch.testing.assert_close(weights.bias_effect(x, heads)["b_q"], expected)


@pytest.mark.parametrize("ddof", [0, 1])
def test_statistics_say_their_ddof(model, ddof):
    found = weights.qkv_statistics(model, ddof=ddof)
    assert found.shape == (LAYERS, 3, 2)
    w_k = model.transformer.h[1].attn.c_attn.weight.detach().numpy()[:, HIDDEN : 2 * HIDDEN]
    np.testing.assert_allclose(found[1, 1], [w_k.mean(), w_k.std(ddof=ddof)], rtol=1e-12)


def test_a_histogram_has_bin_centres_and_says_what_it_left_out():
    found = weights.histogram(torch.tensor([0.1, 0.2, 0.6, 5.0]), bins=[0, 0.5, 1])
    np.testing.assert_allclose(found.centres, [0.25, 0.75])
    np.testing.assert_allclose(found.heights, [4 / 3, 2 / 3])
    assert found.outside == 0.25


def test_freedman_diaconis_bins_have_the_rules_width():
    values = np.random.default_rng(0).normal(size=5000)
    found = weights.histogram(values, density=False)
    q75, q25 = np.percentile(values, [75, 25])
    rule = 2 * (q75 - q25) / 5000 ** (1 / 3)
    assert rule * 0.9 < found.centres[1] - found.centres[0] <= rule
    assert found.heights.sum() == 5000 and found.outside == 0


def test_cosines_are_those_of_torchs_own_function(model):
    weight = model.transformer.h[0].attn.c_attn.weight.detach()[:, :HIDDEN]
    found = weights.column_cosines(weight, HEADS)
    table = torch.nn.functional.cosine_similarity(weight[:, :, None], weight[:, None, :], dim=0)
    blocks = table.view(HEADS, HEAD_SIZE, HEADS, HEAD_SIZE)
    row, column = np.triu_indices(HEAD_SIZE, k=1)
    pairs = [(i, j) for i in range(HEADS) for j in range(i + 1, HEADS)]
    for head in range(HEADS):
        torch.testing.assert_close(found.within[head], blocks[head, :, head][row, column])
    for index, (i, j) in enumerate(pairs):
        torch.testing.assert_close(found.across[index], blocks[i, :, j])
    assert len(found.across) == len(pairs)
    everything = table[np.triu_indices(HIDDEN, k=1)]
    torch.testing.assert_close(weights.all_column_cosines(weight), everything)


def test_cosine_statistics_equal_the_double_loops(model):
    expected, _ = loop_statistics(detached(model))
    found, densities = weights.cosine_statistics(model)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert densities is None


def test_cosine_statistics_with_densities_are_the_same_statistics(model):
    edges = np.linspace(-1, 1, 41)
    plain, _ = weights.cosine_statistics(model, ddof=1)
    found, densities = weights.cosine_statistics(model, ddof=1, edges=edges)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-10)
    totals = densities.sum(-1) * (edges[1] - edges[0])
    torch.testing.assert_close(totals, torch.ones(LAYERS, 2, 2, dtype=torch.float64))


def test_random_columns_have_cosines_of_standard_deviation_one_over_root_hidden():
    noise = torch.randn(768, 128, generator=torch.Generator().manual_seed(0))
    cosines = weights.all_column_cosines(noise)
    assert cosines.std().item() == pytest.approx(1 / math.sqrt(768), rel=0.05)


def detached(model):
    twin = copy.deepcopy(model.transformer)
    return twin.requires_grad_(False)
