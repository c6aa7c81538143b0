"""transformer_lm.activations against the model's own outputs, and hooks that never stay."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from transformer_lm import activations

LAYERS, HEADS, HIDDEN, VOCAB = 3, 4, 40, 60
IDS = torch.tensor([[3, 7, 11, 2, 5, 9], [1, 2, 3, 4, 5, 6]])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=HIDDEN, vocab_size=VOCAB, n_positions=32,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval().double()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def test_record_gives_what_was_asked_for_and_no_more(model):
    with activations.record(model, ["h.*.attn.c_attn", "ln_f:input"]) as acts:
        model(IDS)
    expected = {f"h.{layer}.attn.c_attn" for layer in range(LAYERS)} | {"ln_f:input"}
    assert set(acts) == expected
    assert acts["h.1.attn.c_attn"].shape == (2, 6, 3 * HIDDEN)


def test_a_recorded_output_is_the_modules_output(model):
    with activations.record(model, "h.0.ln_1") as acts:
        model(IDS)
    embedded = model.transformer.wte(IDS) + model.transformer.wpe(torch.arange(6))
    torch.testing.assert_close(acts["h.0.ln_1"], model.transformer.h[0].ln_1(embedded))


def test_a_star_stays_within_one_part_of_the_name(model):
    with activations.record(model, "h.*") as acts:
        model(IDS)
    assert set(acts) == {f"h.{layer}" for layer in range(LAYERS)}


def test_any_module_can_be_recorded_and_tuples_stay_tuples():
    lstm = nn.Sequential(nn.LSTM(4, 3))
    with activations.record(lstm, "0") as acts:
        lstm(torch.zeros(2, 1, 4))
    output, (hidden, cell) = acts["0"]
    assert output.shape == (2, 1, 3) and hidden.shape == cell.shape == (1, 1, 3)


def test_records_are_copies_without_gradient(model):
    with activations.record(model, "h.0.attn.c_attn") as acts:
        model(IDS)
        first = acts["h.0.attn.c_attn"]
        kept = first.clone()
        acts["h.0.attn.c_attn"].zero_()
        model(IDS)
    assert not first.requires_grad
    torch.testing.assert_close(acts["h.0.attn.c_attn"], kept)


def test_a_record_survives_a_later_layer_that_edits_in_place():
    layers = nn.Sequential(nn.Linear(4, 9), nn.ReLU(inplace=True))
    x = torch.randn(5, 4)
    with activations.record(layers, ["0", "1:input"]) as acts:
        layers(x)
    torch.testing.assert_close(acts["0"], layers[0](x).detach())
    assert (acts["0"] < 0).any() and torch.equal(acts["0"], acts["1:input"])


def test_no_hook_stays_after_the_block(model):
    with activations.record(model, ["h.*.attn.c_attn", "h.*.attn.c_proj:input"]):
        assert activations.count_hooks(model) == 2 * LAYERS
    assert activations.count_hooks(model) == 0


def test_no_hook_stays_whatever_is_raised(model):
    for problem in (RuntimeError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(problem), activations.record(model, "h.*"):
            raise problem
        assert activations.count_hooks(model) == 0


def test_no_hook_stays_where_a_hook_cannot_be_set(model, monkeypatch):
    def refuse(hook, **how):
        raise RuntimeError("no hook today")

    monkeypatch.setattr(model.transformer.h[2], "register_forward_hook", refuse)
    with pytest.raises(RuntimeError, match="no hook today"), activations.record(model, "h.*"):
        pass
    assert activations.count_hooks(model) == 0


def test_a_pattern_without_a_module_is_refused_and_leaves_no_hook(model):
    with (
        pytest.raises(ValueError, match="no module is called 'h.9'.*wte"),
        activations.record(model, ["h.0", "h.9"]),
    ):
        pass
    assert activations.count_hooks(model) == 0


def test_a_hook_of_ones_own_is_counted_and_left_alone(model):
    handle = model.transformer.h[0].register_forward_hook(lambda *_: None)
    with activations.record(model, "h.0"):
        assert activations.count_hooks(model) == 2
    assert activations.count_hooks(model) == 1
    handle.remove()


def test_the_pattern_of_each_head_is_the_models_own(model):
    heads = activations.head_activations(model, IDS)
    own = activations.attention_patterns(model, IDS)
    assert own.shape == (LAYERS, 2, HEADS, 6, 6)
    for layer in range(LAYERS):
        torch.testing.assert_close(heads[layer].pattern, own[layer], rtol=0, atol=1e-12)


def test_pattern_times_values_is_what_the_output_projection_reads(model):
    with activations.record(model, "h.1.attn.c_proj:input") as acts:
        model(IDS)
    heads = activations.head_activations(model, IDS, layers=[1])[1]
    z = (heads.pattern @ heads.v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(z, acts["h.1.attn.c_proj:input"])


def test_scores_are_hidden_strictly_above_the_diagonal(model):
    scores = activations.head_activations(model, IDS, layers=[-1])[LAYERS - 1].scores
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    assert torch.isinf(scores[..., hidden]).all() and torch.isfinite(scores[..., ~hidden]).all()


def test_scores_keep_a_scale_that_depends_on_the_layer(model):
    config = GPT2Config(**{**model.config.to_dict(), "scale_attn_by_inverse_layer_idx": True})
    other = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval().double()
    other.load_state_dict(model.state_dict())
    own = activations.attention_patterns(other, IDS)
    for layer, heads in activations.head_activations(other, IDS).items():
        torch.testing.assert_close(heads.pattern, own[layer], rtol=0, atol=1e-12)


def test_padding_is_hidden_as_the_model_hides_it(model):
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    heads = activations.head_activations(model, IDS, attention_mask=mask)
    own = model(IDS, attention_mask=mask, output_attentions=True).attentions
    for layer in range(LAYERS):
        torch.testing.assert_close(heads[layer].pattern, own[layer], rtol=0, atol=1e-12)


def test_a_query_without_a_key_attends_to_nothing():
    q = torch.ones(1, 1, 2, 3)
    scores = activations.attention_scores(q, q, attention_mask=torch.tensor([[0, 1]]))
    assert activations.attention_pattern(scores).tolist() == [[[[0, 0], [0, 1]]]]


def test_a_layer_that_is_not_there_is_refused(model):
    with pytest.raises(IndexError, match="layer 3 asked for, but the model has 3"):
        activations.head_activations(model, IDS, layers=[3])


def test_a_head_count_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="hidden size 10 is no multiple of num_heads 4"):
        activations.split_heads(torch.zeros(1, 2, 10), 4)


def test_the_stream_is_the_hidden_states_but_for_the_final_norm(model):
    stream = activations.residual_stream(model, IDS)
    states = model(IDS, output_hidden_states=True).hidden_states
    assert stream.shape == (LAYERS + 1, 2, 6, HIDDEN)
    for found, expected in zip(stream[:-1], states[:-1], strict=True):
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(model.transformer.ln_f(stream[-1]), states[-1])
    assert (stream[-1] - states[-1]).abs().max() > 0.1


def test_the_last_lens_is_the_models_prediction(model):
    lens = activations.logit_lens(model, IDS, position=-2)
    assert lens.shape == (LAYERS + 1, 2, VOCAB)
    expected = torch.log_softmax(model(IDS).logits[:, -2], dim=-1)
    torch.testing.assert_close(lens[-1], expected)
    torch.testing.assert_close(lens.exp().sum(-1), torch.ones(LAYERS + 1, 2).double())


def test_missing_attention_weights_are_said_aloud(model):
    silent = GPT2LMHeadModel._from_config(model.config, attn_implementation="sdpa").eval()
    with pytest.raises(RuntimeError, match="attn_implementation='eager'"):
        activations.attention_patterns(silent, IDS)


def test_something_else_than_a_gpt2_is_refused():
    with pytest.raises(TypeError, match="expected a GPT-2 model, got Linear"):
        activations.gpt2_stack(nn.Linear(2, 2))


def test_a_progress_bar_changes_nothing_of_the_items(capfd):
    assert list(activations.with_progress([1, 2], True, "counting")) == [1, 2]
    assert "counting" in capfd.readouterr().err
    assert activations.with_progress([1, 2], False, "counting") == [1, 2]
