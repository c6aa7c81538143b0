"""transformer_lm.circuits and the centred weights, against the big products in float64."""

import copy

import pytest
import torch

from tests.plain_gpt2 import head_parts, mini_gpt2
from transformer_lm import circuits, weights

LAYERS, HEADS, HIDDEN, SIZE, VOCAB = 3, 4, 24, 6, 30


@pytest.fixture(scope="module")
def model():
    return mini_gpt2(LAYERS, HEADS, HIDDEN, VOCAB)


@torch.no_grad()
def centred(w, dim):
    return w - w.mean(dim=dim, keepdim=True)


@torch.no_grad()
def big_ov(model, layer, head):
    """Folded and centred W_V W_O of one head, [hidden, hidden]."""
    block = model.transformer.h[layer]
    *_, (w_v, _), w_o = head_parts(block, HEADS, head)
    return centred(block.ln_1.weight[:, None] * w_v, 0) @ centred(w_o, 1)


@torch.no_grad()
def big_qk(model, layer, head):
    block = model.transformer.h[layer]
    (w_q, _), (w_k, _), *_ = head_parts(block, HEADS, head)
    gain = block.ln_1.weight[:, None]
    return centred(gain * w_q, 0) @ centred(gain * w_k, 0).T


@torch.no_grad()
def big_circuit(model, layer, head, embedding=None):
    """W_E W_V W_O W_U, [vocab, vocab], each logit minus the mean of all."""
    w_e = centred(model.transformer.wte.weight if embedding is None else embedding, 1)
    w_u = centred(model.lm_head.weight * model.transformer.ln_f.weight, 1)
    return centred(w_e @ big_ov(model, layer, head) @ w_u.T, 1)


# --- The centred form -----------------------------------------------------------------------------


@torch.no_grad()
def shifted(model):
    """The same model written down otherwise: what every LayerNorm takes away is added to it.

    Under the gain g, adding (1 / g) a^T to W_Q adds a times the sum of a vector that sums to zero,
    but for what the shift of the norm contributes, which the bias takes back. What is written to
    the stream may get any multiple of the ones vector.
    """
    twin = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(4)

    def noise(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for block in twin.transformer.h:
        row = noise(3 * HIDDEN)
        added = (1 / block.ln_1.weight)[:, None] * row
        block.attn.c_attn.weight += added
        block.attn.c_attn.bias -= block.ln_1.bias @ added
        block.attn.c_proj.weight += noise(HIDDEN)[:, None]
        block.attn.c_proj.bias += noise(1)
        block.mlp.c_proj.weight += noise(4 * HIDDEN)[:, None]
    return twin


def test_the_shifted_twin_is_the_same_model(model):
    ids = torch.arange(8)[None]
    torch.testing.assert_close(shifted(model)(ids).logits, model(ids).logits, rtol=0, atol=1e-9)


@pytest.mark.parametrize("circuit", ["qk", "ov"])
def test_what_is_computed_from_centred_products_is_a_property_of_the_model(model, circuit):
    twin, how = shifted(model), {"fold_layer_norm": True, "centre": True}
    found = weights.summarize_model(model, circuit, **how)
    torch.testing.assert_close(weights.summarize_model(twin, circuit, **how), found)
    plain = weights.summarize_model(model, circuit, fold_layer_norm=True)
    other = weights.summarize_model(twin, circuit, fold_layer_norm=True)
    assert (plain["symmetric_share"] - other["symmetric_share"]).abs().max() > 1e-2


@torch.no_grad()
def test_centred_weights_give_the_same_queries_keys_values(model):
    torch.manual_seed(0)
    x, block = torch.randn(5, HIDDEN, dtype=torch.float64), model.transformer.h[1]
    plain, heads = weights.head_weights(model, 1), weights.head_weights(model, 1, True, True)
    bare = torch.nn.functional.layer_norm(x, (HIDDEN,), eps=block.ln_1.eps)
    for name in "qkv":
        w, b = getattr(plain, f"w_{name}"), getattr(plain, f"b_{name}")
        expected = block.ln_1(x) @ w + b[:, None]
        w, b = getattr(heads, f"w_{name}"), getattr(heads, f"b_{name}")
        torch.testing.assert_close(bare @ w + b[:, None], expected)
        assert w.sum(dim=1).abs().max() < 1e-12
    z = torch.randn(HEADS, 5, SIZE, dtype=torch.float64)
    torch.testing.assert_close(z @ heads.w_o, centred(z @ plain.w_o, -1))
    torch.testing.assert_close(heads.b_o, centred(plain.b_o, 0))


def test_centring_without_folding_is_refused(model):
    with pytest.raises(ValueError, match="centre=True needs fold_layer_norm=True"):
        weights.head_weights(model, 0, centre=True)


def test_the_random_twins_of_a_centred_model_are_centred_too():
    """Two heads of size 2 in 4 dimensions, of which centring leaves 3: by a simulation here."""
    tiny, how = mini_gpt2(1, 2, 4), {"fold_layer_norm": True, "centre": True}
    mean, std = weights.random_baseline(tiny, draws=300, **how)
    torch.manual_seed(0)
    a, b = torch.randn(2, 20_000, 3, 2, dtype=torch.float64)
    big = a @ b.mT
    expected = ((big + big.mT) / 2).norm(dim=(1, 2)) ** 2 / big.norm(dim=(1, 2)) ** 2
    error = expected.std() / 300**0.5
    assert ((mean["symmetric_share"] - expected.mean()).abs() < 4 * error).all()
    torch.testing.assert_close(
        std["symmetric_share"], expected.std().expand(1, 2), rtol=0.25, atol=0
    )
    four = torch.randn(2, 20_000, 4, 2, dtype=torch.float64)
    big = four[0] @ four[1].mT
    other = ((big + big.mT) / 2).norm(dim=(1, 2)) ** 2 / big.norm(dim=(1, 2)) ** 2
    assert abs(other.mean() - expected.mean()) > 4 * error  # the test could tell


def test_singular_vectors_put_the_matrix_together_again(model):
    a, b = weights.qk_factors(weights.head_weights(model, 0))
    u, s, v = weights.singular_vectors(a, b)
    torch.testing.assert_close((u * s[:, None]) @ v.mT, a @ b.mT)
    torch.testing.assert_close(s, weights.singular_values(a, b))
    eye = torch.eye(SIZE, dtype=torch.float64).expand(HEADS, SIZE, SIZE)
    torch.testing.assert_close(u.mT @ u, eye)
    torch.testing.assert_close(v.mT @ v, eye)


def test_the_trace_share_has_a_sign_and_reaches_one(model):
    basis = torch.linalg.qr(torch.randn(HIDDEN, SIZE, dtype=torch.float64)).Q
    assert weights.trace_share(basis, 3 * basis).item() == pytest.approx(1)
    assert weights.trace_share(basis, -basis).item() == pytest.approx(-1)
    a, b = weights.qk_factors(weights.head_weights(model, 0))
    big = a @ b.mT
    expected = big.diagonal(dim1=-2, dim2=-1).sum(-1) / big.norm(dim=(1, 2)) / SIZE**0.5
    torch.testing.assert_close(weights.trace_share(a, b), expected)
    squeezed = (1 - expected**2 * SIZE / HIDDEN).sqrt()
    torch.testing.assert_close(weights.identity_distance(a, b), squeezed)


# --- The OV circuit -------------------------------------------------------------------------------


def test_the_circuit_is_the_big_product(model):
    expected = big_circuit(model, 1, 2)
    torch.testing.assert_close(circuits.ov_circuit(model, 1, 2), expected)
    torch.testing.assert_close(circuits.ov_circuit(model, -2, 2), expected)
    rows, columns = torch.tensor([3, 1]), torch.tensor([0, 5, 9])
    found = circuits.ov_circuit(model, 1, 2, rows, columns)
    torch.testing.assert_close(found, expected[rows][:, columns])


@torch.no_grad()
def test_the_circuit_is_what_the_head_does_to_the_logits(model):
    """Look at one token alone, with the norms' divisions left out: the logits' differences move."""
    block, source = model.transformer.h[1], 7
    *_, (w_v, _), w_o = head_parts(block, HEADS, 2)
    read = centred(model.transformer.wte.weight[source], -1) * block.ln_1.weight
    written = centred(read @ w_v @ w_o, -1) * model.transformer.ln_f.weight
    logits = model.lm_head.weight @ written
    found = circuits.ov_circuit(model, 1, 2)[source]
    torch.testing.assert_close(found - found[0], logits - logits[0])
    assert found.mean().abs() < 1e-12


@pytest.mark.parametrize("embedding", [None, "after the first mlp"])
def test_eigenvalues_and_score_are_those_of_the_big_product(model, embedding):
    w_e = None if embedding is None else circuits.embedding_after_mlp(model)
    scores = circuits.copying_scores(model, embedding=w_e)
    for layer in range(LAYERS):
        found = circuits.ov_eigenvalues(model, layer, w_e)
        for head in range(HEADS):
            big = torch.linalg.eigvals(big_circuit(model, layer, head, w_e))
            big = big[big.abs().argsort(descending=True)]
            assert big[SIZE:].abs().max() < 1e-9 * big[0].abs()
            gaps = (found[head][:, None] - big[None, :SIZE]).abs() / big[0].abs()
            assert gaps.min(dim=0).values.max() < 1e-9 and gaps.min(dim=1).values.max() < 1e-9
            expected = (big.sum() / big.abs().sum()).real
            torch.testing.assert_close(scores[layer, head], expected)


@torch.no_grad()
def test_the_embedding_after_the_first_mlp_is_the_models_own(model):
    """Silence the first attention and the positions: what leaves block 0 is the embedding."""
    twin = copy.deepcopy(model)
    twin.transformer.wpe.weight.zero_()
    twin.transformer.h[0].attn.c_proj.weight.zero_()
    twin.transformer.h[0].attn.c_proj.bias.zero_()
    states = twin(torch.arange(VOCAB)[:, None], output_hidden_states=True).hidden_states
    torch.testing.assert_close(circuits.embedding_after_mlp(model), states[1][:, 0])


def test_scores_know_a_head_that_copies_from_one_that_does_the_opposite(model):
    twin = copy.deepcopy(model)
    stack = twin.transformer
    with torch.no_grad():
        block = stack.h[1]
        block.ln_1.weight.fill_(1)
        stack.ln_f.weight.fill_(1)
        for head, sign in ((0, 1), (1, -1)):
            mine = slice(head * SIZE, (head + 1) * SIZE)
            w_v = block.attn.c_attn.weight[:, 2 * HIDDEN :][:, mine]
            block.attn.c_proj.weight[mine] = sign * w_v.T
    scores = circuits.copying_scores(twin)
    assert scores[1, 0].item() == pytest.approx(1) and scores[1, 1].item() == pytest.approx(-1)


def test_scores_do_not_depend_on_what_the_softmax_cannot_see(model):
    """Untied: the same row added to every token's unembedding, and to every embedding."""
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.lm_head.weight = torch.nn.Parameter(model.lm_head.weight + torch.randn(HIDDEN))
        twin.transformer.wte.weight += torch.randn(HIDDEN)
    torch.testing.assert_close(circuits.copying_scores(twin), circuits.copying_scores(model))
    shift = shifted(model)
    torch.testing.assert_close(circuits.copying_scores(shift), circuits.copying_scores(model))


def test_random_twins_copy_neither_more_nor_less(model):
    draws = torch.stack([circuits.copying_scores(model, seed=seed) for seed in range(40)])
    assert draws.mean().abs() < 4 * draws.std() / draws.numel() ** 0.5
    with torch.no_grad():
        w_u = centred(model.lm_head.weight * model.transformer.ln_f.weight, 1)
        w_e, w_u = centred(model.transformer.wte.weight, 1), centred(w_u, 0)
    scores = []
    torch.manual_seed(0)
    for _ in range(300):
        w_v, w_o = torch.randn(2, HIDDEN, SIZE, dtype=torch.float64)
        values = torch.linalg.eigvals(w_e @ w_v @ w_o.T @ w_u.T)
        scores.append((values.sum() / values.abs().sum()).real)
    assert draws.std() == pytest.approx(torch.stack(scores).std().item(), rel=0.2)
    assert torch.equal(draws[3], circuits.copying_scores(model, seed=3))
    assert (draws[0] - draws[1]).abs().max() > 1e-2


def test_ranks_count_the_tokens_that_are_raised_more(model):
    big = big_circuit(model, 2, 1)
    tokens = torch.tensor([4, 0, 29])
    expected = [sum(big[t, o] > big[t, t] for o in range(VOCAB)) for t in tokens]
    assert circuits.copying_ranks(model, 2, 1, tokens).tolist() == [int(e) for e in expected]


# --- Composition ----------------------------------------------------------------------------------


def test_composition_scores_are_those_of_the_big_products(model):
    found = circuits.composition_scores(model)
    for writer, reader in [((0, 1), (1, 3)), ((0, 0), (2, 2)), ((1, 3), (2, 0))]:
        ov, qk = big_ov(model, *writer), big_qk(model, *reader)
        for kind, read in (("q", qk), ("k", qk.T), ("v", big_ov(model, *reader))):
            expected = (ov @ read).norm() / (ov.norm() * read.norm())
            torch.testing.assert_close(getattr(found, kind)[(*writer, *reader)], expected)


def test_only_later_layers_can_read(model):
    k = circuits.composition_scores(model).k
    assert k.shape == (LAYERS, HEADS, LAYERS, HEADS)
    for writer in range(LAYERS):
        for reader in range(LAYERS):
            assert torch.isnan(k[writer, :, reader]).all() == (reader <= writer)


def test_unrelated_heads_are_at_the_baseline(model):
    """Rotate what is written by a random rotation: the spectra stay, the relation is gone."""
    mean, std = circuits.composition_baseline(model)
    assert mean == pytest.approx((HIDDEN - 1) ** -0.5, rel=0.05) and 0 < std < mean / 2
    generator = torch.Generator().manual_seed(0)
    ov, qk = big_ov(model, 0, 1), big_qk(model, 1, 3)
    squares = []
    for _ in range(300):
        turn = torch.linalg.qr(
            torch.randn(HIDDEN, HIDDEN, generator=generator, dtype=torch.float64)
        )
        squares.append(((ov @ turn.Q @ qk).norm() / (ov.norm() * qk.norm())) ** 2)
    assert torch.stack(squares).mean() ** 0.5 == pytest.approx(mean, rel=0.1)


def test_a_head_made_to_read_another_stands_out(model):
    twin = copy.deepcopy(model)
    with torch.no_grad():
        writer, reader = twin.transformer.h[0], twin.transformer.h[1]
        w_o = writer.attn.c_proj.weight[SIZE : 2 * SIZE]  # head 1
        gain = reader.ln_1.weight[:, None]
        reader.attn.c_attn.weight[:, HIDDEN + 2 * SIZE : HIDDEN + 3 * SIZE] = w_o.T / gain  # keys
    mean, std = circuits.composition_baseline(model)
    k = circuits.composition_scores(twin).k[0, :, 1]  # [writers, readers]
    assert k.argmax() == 1 * HEADS + 2 and k[1, 2] > mean + 4 * std
