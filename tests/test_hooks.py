"""transformer_lm.hooks: what is read is what plain algebra gives, what is written takes effect."""

import copy

import pytest
import torch
from torch import nn
from transformers import GPT2LMHeadModel

from tests.plain_gpt2 import mini_gpt2, run
from transformer_lm.activations import attention_patterns, residual_stream
from transformer_lm.batches import model_inputs
from transformer_lm.hooks import count_hooks, patch, record
from transformer_lm.names import QUANTITIES

LAYERS, HEADS = 3, 4
IDS = torch.tensor([[3, 7, 11, 2, 5, 9], [1, 2, 3, 4, 5, 6]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])


@pytest.fixture(scope="module")
def model():
    return mini_gpt2(LAYERS, HEADS)


def logits(model, ids=IDS, **more):
    with torch.no_grad():
        return model(ids, **more).logits


def nudge(value):
    """A change that is no multiple of anything: every number its own."""
    torch.manual_seed(1)
    return value + 0.3 * torch.randn(value.shape, dtype=value.dtype)


# --- What is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUANTITIES)
def test_each_quantity_is_what_plain_algebra_gives(model, name):
    with record(model, f"h.*.{name}") as acts:
        model(IDS)
    expected = run(model, IDS)
    assert list(acts) == [f"h.{layer}.{name}" for layer in range(LAYERS)]
    for key, value in acts.items():
        torch.testing.assert_close(value, expected[key])


def test_recording_everything_changes_no_logit_at_all(model):
    with record(model, [f"h.*.{name}" for name in QUANTITIES]):
        found = logits(model)
    assert torch.equal(found, logits(model))


@pytest.mark.parametrize("side", ["right", "left"])
def test_with_padding_the_scores_hide_what_the_model_hides(model, side):
    mask = MASK if side == "right" else MASK.flip(1)
    with record(model, ["h.*.scores", "h.*.pattern"]) as acts, torch.no_grad():
        own = model(**model_inputs(IDS, mask), output_attentions=True).attentions
    for layer in range(LAYERS):
        real = mask[:, None, :, None].bool().expand_as(own[layer])
        torch.testing.assert_close(acts[f"h.{layer}.pattern"][real], own[layer][real])
        hidden = acts[f"h.{layer}.scores"] == -torch.inf
        assert hidden[0, :, :, mask[0] == 0].all()


@pytest.mark.parametrize("mask", [None, MASK])
def test_with_sdpa_the_quantities_are_the_same(model, mask):
    config = copy.deepcopy(model.config)
    twin = GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval().double()
    twin.load_state_dict(model.state_dict())
    names = [f"h.*.{name}" for name in QUANTITIES]
    found = []
    for each in (model, twin):
        with record(each, names) as acts:
            found.append(logits(each, attention_mask=mask))
        found.append(acts)
    real = torch.ones_like(IDS).bool() if mask is None else mask.bool()
    torch.testing.assert_close(found[0][real], found[2][real])
    for key, value in found[1].items():
        rows = value.transpose(1, 2)[real] if value.dim() == 4 else value[real]
        other = found[3][key]
        other = other.transpose(1, 2)[real] if other.dim() == 4 else other[real]
        torch.testing.assert_close(rows, other)


def test_while_writing_with_a_cache_the_keys_grow(model):
    """Each new query sees the keys of all tokens so far; the last step's pattern is a whole row."""
    with record(model, ["h.1.k", "h.1.scores", "h.1.pattern"]) as acts:
        ids = model.generate(IDS[:1], max_new_tokens=3, do_sample=False, pad_token_id=0)
    assert acts["h.1.k"].shape[2] == 1 and acts["h.1.pattern"].shape[2:] == (1, 8)
    whole = run(model, ids[:, :-1])["h.1.pattern"][:, :, -1:]
    torch.testing.assert_close(acts["h.1.pattern"], whole)


def test_with_sdpa_and_a_cache_the_last_token_sees_all_others(model):
    config = copy.deepcopy(model.config)
    twin = GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval().double()
    twin.load_state_dict(model.state_dict())
    with record(twin, "h.1.pattern") as acts, torch.no_grad():
        cache = twin(IDS[:, :4], use_cache=True).past_key_values
        found = twin(IDS[:, 4:], past_key_values=cache).logits
    torch.testing.assert_close(acts["h.1.pattern"], run(model, IDS)["h.1.pattern"][:, :, 4:])
    torch.testing.assert_close(found, logits(model)[:, 4:])


def test_a_patch_is_in_force_while_writing_with_a_cache(model):
    def silent(z):
        return torch.zeros_like(z)

    with patch(model, {"h.*.z": silent}):
        how = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
        cached = model.generate(IDS[:1], use_cache=True, **how)
        plain = model.generate(IDS[:1], use_cache=False, **how)
    assert torch.equal(cached, plain)
    assert not torch.equal(cached, model.generate(IDS[:1], **how))


def test_dropout_works_on_while_heads_are_recorded(model):
    model.train()
    try:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.3
        found = []
        for names in ([], "h.*.z"):
            torch.manual_seed(5)
            with record(model, names):
                found.append(logits(model))
        assert torch.equal(*found)
    finally:
        model.eval()


def test_a_block_inside_another_model_has_its_quantities_too(model):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.transformer

        def forward(self, ids):
            return self.inner(ids).last_hidden_state

    with record(Wrapped(), "inner.h.1.q") as acts, torch.no_grad():
        Wrapped()(IDS)
    torch.testing.assert_close(acts["inner.h.1.q"], run(model, IDS)["h.1.q"])


def test_a_star_never_stands_for_a_quantity(model):
    with record(model, "h.0.*") as acts:
        model(IDS)
    assert set(acts) == {"h.0.ln_1", "h.0.attn", "h.0.ln_2", "h.0.mlp"}


# --- What is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_patch_does_what_plain_algebra_does_with_the_same_change(model, name):
    key = f"h.1.{name}"
    with patch(model, {key: nudge}):
        found = logits(model)
    expected = run(model, IDS, lambda k, value: nudge(value) if k == key else value)["logits"]
    torch.testing.assert_close(found, expected)
    assert (found - logits(model)).abs().max() > 1e-3


@pytest.mark.parametrize("name", [*(f"h.1.{q}" for q in QUANTITIES), "h.1.mlp", "wte", "h.1:input"])
def test_a_patch_that_changes_nothing_changes_no_logit(model, name):
    with patch(model, {name: lambda value: value}):
        torch.testing.assert_close(logits(model), logits_of_clean(model), rtol=0, atol=1e-12)


def logits_of_clean(model):
    return run(model, IDS)["logits"]


def test_a_star_patches_every_layer(model):
    with patch(model, {"h.*.z": torch.zeros_like}):
        found = logits(model)
    zeros = run(model, IDS, lambda k, value: value * 0 if k.endswith(".z") else value)
    torch.testing.assert_close(found, zeros["logits"])


def test_modules_and_inputs_can_be_patched_too(model):
    with patch(model, {"h.1.ln_2:input": nudge, "h.0.mlp": torch.zeros_like}):
        found = logits(model)

    def edit(key, value):
        if key == "h.0.mlp_out":
            return value * 0
        return nudge(value) if key == "h.1.ln_2:input" else value

    torch.testing.assert_close(found, run(model, IDS, edit)["logits"])


def test_a_module_that_returns_a_tuple_gives_and_takes_a_tuple(model):
    def louder(output):
        return (2 * output[0], *output[1:])

    with patch(model, {"h.0.attn": louder}):
        found = logits(model)
    doubled = run(model, IDS, lambda k, v: 2 * v if k == "h.0.attn_out" else v)["logits"]
    torch.testing.assert_close(found, doubled)


def test_the_models_own_attention_weights_show_a_patched_pattern(model):
    def even(pattern):
        return torch.full_like(pattern, 1 / pattern.shape[-1])

    with patch(model, {"h.2.pattern": even}):
        patterns = attention_patterns(model, IDS)
    torch.testing.assert_close(patterns[2], torch.full_like(patterns[2], 1 / 6))
    assert (patterns[1] - 1 / 6).abs().max() > 0.1


def test_the_residual_stream_shows_a_patch_wherever_it_was_made(model):
    for name in ("stream_in", "stream_mid", "stream_out"):
        with patch(model, {f"h.1.{name}": nudge}):
            found = residual_stream(model, IDS)
        expected = run(model, IDS, lambda k, v, n=name: nudge(v) if k == f"h.1.{n}" else v)
        for layer in range(LAYERS):
            torch.testing.assert_close(found[layer], expected[f"h.{layer}.stream_in"])
        torch.testing.assert_close(found[-1], expected["ln_f:input"])


def test_transformers_own_hidden_states_show_a_patch_too(model):
    model(IDS, output_hidden_states=True)  # its hooks are in before ours
    for name in ("h.1.stream_out", "h.1", "h.1.stream_mid"):
        with patch(model, {name: nudge}), torch.no_grad():
            states = model(IDS, output_hidden_states=True).hidden_states
        key = "h.1.stream_out" if name == "h.1" else name
        expected = run(model, IDS, lambda k, v, key=key: nudge(v) if k == key else v)
        torch.testing.assert_close(states[2], expected["h.1.stream_out"])


def test_a_record_sees_what_a_hook_of_ones_own_made(model):
    handle = model.transformer.h[1].mlp.register_forward_hook(lambda *args: 0 * args[2])
    try:
        with record(model, ["h.1.mlp", "h.1.mlp_out"]) as acts:
            model(IDS)
        with record(model, "h.1.mlp_out") as more, patch(model, {"h.1.mlp_out": nudge}):
            model(IDS)
    finally:
        handle.remove()
    assert all(act.abs().max() == 0 for act in [*acts.values(), *more.values()])


def test_scores_of_minus_infinity_silence_a_head_without_nan(model):
    with patch(model, {"h.1.scores": lambda s: torch.full_like(s, -torch.inf)}):
        found = logits(model)
    torch.testing.assert_close(
        found, run(model, IDS, lambda k, v: v * 0 if k == "h.1.z" else v)["logits"]
    )


# --- Patches in patches, and records among them ---------------------------------------------------


def test_of_two_patches_the_inner_one_sees_what_the_outer_one_made(model):
    double, add = (lambda z: 2 * z), (lambda z: z + 1)
    with patch(model, {"h.1.z": double}), patch(model, {"h.1.z": add}):
        found = logits(model)
    expected = run(model, IDS, lambda k, v: 2 * v + 1 if k == "h.1.z" else v)["logits"]
    torch.testing.assert_close(found, expected)
    with patch(model, {"h.1.z": double, "h.*.z": add}):
        both = run(
            model, IDS, lambda k, v: (2 * v if "h.1." in k else v) + 1 if k.endswith(".z") else v
        )
        torch.testing.assert_close(logits(model), both["logits"])


def test_patches_come_in_the_order_of_computation_whatever_the_nesting(model):
    """Scores patched inside, z outside: z is what is left of it after both."""
    with patch(model, {"h.1.z": torch.zeros_like}), patch(model, {"h.1.scores": nudge}):
        found = logits(model)
    expected = run(model, IDS, lambda k, v: v * 0 if k == "h.1.z" else v)["logits"]
    torch.testing.assert_close(found, expected)
    with patch(model, {"h.1.stream_mid": nudge}), patch(model, {"h.1.attn_out": nudge}):
        found = logits(model)
    edits = ("h.1.stream_mid", "h.1.attn_out")
    expected = run(model, IDS, lambda k, v: nudge(v) if k in edits else v)["logits"]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["h.1.z", "h.1.attn.c_attn", "h.1.ln_1:input"])
def test_a_record_sees_what_the_model_went_on_with_inside_and_outside_a_patch(model, name):
    with patch(model, {name: torch.zeros_like}), record(model, name) as inside:
        model(IDS)
    with record(model, name) as outside, patch(model, {name: torch.zeros_like}):
        model(IDS)
    assert inside[name].abs().max() == outside[name].abs().max() == 0


def test_blocks_may_end_in_any_order(model):
    first, second = patch(model, {"h.1.z": nudge}), patch(model, {"h.1.z": torch.zeros_like})
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with record(model, "h.1.z") as acts:
        model(IDS)
    assert acts["h.1.z"].abs().max() == 0
    second.__exit__(None, None, None)
    assert count_hooks(model) == 0 and torch.equal(logits(model), logits(model))


# --- Gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*QUANTITIES, "mlp", "mlp.act"])
def test_a_kept_gradient_is_the_slope_of_the_output(model, name):
    """Against finite differences: move the value a little, see how far the logit moves."""
    key = f"h.1.{name}"
    with record(model, key, keep_gradients=True) as acts:
        model(IDS).logits[0, -1, 5].backward()
    torch.manual_seed(2)
    way = torch.randn_like(acts[key])
    if name == "scores":
        way = way.tril()
    step = 1e-5

    def moved(sign):
        with patch(model, {key: lambda value: value + sign * step * way}):
            return logits(model)[0, -1, 5]

    slope = (moved(1) - moved(-1)) / (2 * step)
    kept = acts[key].grad.nan_to_num() * way
    torch.testing.assert_close(kept.sum(), slope, rtol=1e-5, atol=1e-8)


def test_keeping_gradients_changes_neither_the_logits_nor_the_parameters_gradients(model):
    found = []
    for names in ([], [f"h.*.{name}" for name in QUANTITIES]):
        model.zero_grad()
        with record(model, names, keep_gradients=True):
            out = model(IDS).logits
            out[0, -1].square().sum().backward()
        found.append((out, [p.grad.clone() for p in model.parameters()]))
    torch.testing.assert_close(found[0], found[1])
    model.zero_grad()


def test_gradients_are_kept_where_all_parameters_are_frozen(model):
    model.requires_grad_(False)
    try:
        with record(model, "h.1.z", keep_gradients=True) as acts:
            model(IDS).logits.sum().backward()
        assert acts["h.1.z"].grad.abs().max() > 0
    finally:
        model.requires_grad_(True)


def test_gradients_pass_through_a_patch_to_what_it_is_made_of(model):
    gate = torch.ones(HEADS, 1, 1, dtype=torch.float64, requires_grad=True)
    with patch(model, {"h.1.z": lambda z: gate * z}):
        model(IDS).logits[0, -1, 5].backward()
    with record(model, "h.1.z", keep_gradients=True) as acts:
        model(IDS).logits[0, -1, 5].backward()
    z = acts["h.1.z"]
    torch.testing.assert_close(gate.grad, (z * z.grad).sum(dim=(0, 2, 3))[:, None, None])
    model.zero_grad()


def test_padding_gives_no_nan_in_any_gradient(model):
    with record(model, "h.*.scores", keep_gradients=True) as acts:
        inputs = model_inputs(IDS, MASK.flip(1))
        model(**inputs).logits[MASK.flip(1).bool()].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert all(torch.isfinite(scores.grad).all() for scores in acts.values())
    model.zero_grad()


def test_gradients_cannot_be_kept_where_they_are_off(model):
    with (
        pytest.raises(RuntimeError, match="torch.no_grad"),
        torch.no_grad(),
        record(model, "h.0.z", keep_gradients=True),
    ):
        model(IDS)
    assert count_hooks(model) == 0


def test_a_record_without_gradients_is_a_detached_copy(model):
    with record(model, ["h.1.z", "h.1.stream_mid"]) as acts:
        clean = model(IDS).logits
        acts["h.1.z"].zero_()
    assert not acts["h.1.z"].requires_grad
    torch.testing.assert_close(logits(model), clean.detach())


def test_a_patch_may_edit_what_it_is_given_in_place(model):
    def cut(z):
        z[:, 2] = 0
        return z

    with record(model, "h.1.q") as acts, patch(model, {"h.1.z": cut, "h.1.q": cut}):
        found = model(IDS).logits
        found.sum().backward()
    assert acts["h.1.q"][:, 2].abs().max() == 0 and acts["h.1.q"][:, 1].abs().max() > 0
    model.zero_grad()


# --- Nothing is left behind -----------------------------------------------------------------------


EVERYTHING = {f"h.*.{name}": nudge for name in QUANTITIES} | {"ln_f:input": nudge, "wte": nudge}


def is_clean(model):
    own = [m for m in model.modules() if "forward" in vars(m)]
    return count_hooks(model) == 0 and own == []


def test_nothing_is_left_after_the_block(model):
    before = logits(model)
    with patch(model, EVERYTHING), record(model, list(EVERYTHING)):
        assert count_hooks(model) > 0
        assert not torch.equal(logits(model), before)
    assert is_clean(model) and torch.equal(logits(model), before)


def test_a_tap_of_the_heads_is_counted_though_it_is_no_hook(model):
    with record(model, ["h.0.q", "h.0.z", "h.2.k"]):
        assert count_hooks(model) == 2
    assert count_hooks(model) == 0


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_nothing_is_left_whatever_is_raised(model, problem):
    before = logits(model)
    with pytest.raises(problem), patch(model, EVERYTHING), record(model, "h.*.q"):
        raise problem
    assert is_clean(model) and torch.equal(logits(model), before)


@pytest.mark.parametrize("name", EVERYTHING)
def test_nothing_is_left_where_a_patch_itself_fails(model, name):
    def fail(value):
        raise ArithmeticError("in the patch")

    before = logits(model)
    with pytest.raises(ArithmeticError), patch(model, {name: fail}):
        model(IDS)
    assert is_clean(model) and torch.equal(logits(model), before)


def test_nothing_is_left_where_the_second_name_is_wrong(model):
    with (
        pytest.raises(ValueError, match="h.0.zz"),
        patch(model, {"h.0.z": nudge, "h.0.zz": nudge}),
    ):
        pass
    assert is_clean(model)


def test_nothing_is_left_of_a_tap_that_could_be_built_in_only_half(model, monkeypatch):
    def refuse(hook, **how):
        raise RuntimeError("no hook today")

    monkeypatch.setattr(model.transformer.h[1].mlp, "register_forward_hook", refuse)
    with pytest.raises(RuntimeError, match="no hook today"), record(model, "h.*.stream_in"):
        pass
    assert is_clean(model)


def test_an_inner_block_leaves_the_outer_one_in_force(model):
    with patch(model, {"h.1.z": torch.zeros_like}):
        outer = logits(model)
        with pytest.raises(RuntimeError), patch(model, {"h.1.z": nudge, "h.0.q": nudge}):
            raise RuntimeError
        assert torch.equal(logits(model), outer)
    assert is_clean(model)


def test_an_attention_that_had_a_forward_of_its_own_gets_it_back(model):
    attention = model.transformer.h[0].attn
    mine = attention.forward
    attention.forward = mine
    with patch(model, {"h.0.z": nudge}):
        model(IDS)
    assert vars(attention)["forward"] is mine
    del attention.forward


def test_a_hook_of_ones_own_stays_and_is_heard(model):
    heard = []
    handle = model.transformer.h[0].attn.register_forward_hook(lambda *_: heard.append(1))
    with patch(model, {"h.0.z": nudge, "h.0.attn_out": nudge}):
        model(IDS)
    assert heard == [1] and count_hooks(model) == 1
    handle.remove()


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h.1.zz", "no module is called 'h.1.zz'.*stream_in, q, k, v.*Did you mean 'h.1.z'"),
        ("h.1.patern", "Did you mean 'h.1.pattern'"),
        ("h.*.keys", "there are also stream_in, q, k, v, scores, pattern, z, head_out"),
        ("h.7.q", "the last block is 'h.2'"),
        ("h.1.mlp_output", "Did you mean 'h.1.mlp_out'"),
        ("h.1.q:input", "'q' has no input: leave ':input' out"),
        ("q", "no module is called 'q'"),
        ("", "no module is called ''"),
    ],
)
def test_a_misspelt_name_is_told_what_there_is(model, name, words):
    for use in (lambda: record(model, name), lambda: patch(model, {name: nudge})):
        with pytest.raises(ValueError, match=words), use():
            pass


def test_a_model_without_blocks_is_told_its_own_modules():
    with (
        pytest.raises(ValueError, match="names look like 0, 1$"),
        record(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "h.0.q"),
    ):
        pass


@pytest.mark.parametrize(
    ("function", "problem", "words"),
    [
        (
            lambda z: None,
            TypeError,
            r"returned a NoneType, .* shape \[2, 4, 6, 10\].*return missing",
        ),
        (lambda z: 0.0, TypeError, r"returned a float, but a tensor of shape \[2, 4, 6, 10\]"),
        (lambda z: z[:, :1], ValueError, r"returned shape \[2, 1, 6, 10\] .* \[2, 4, 6, 10\]"),
        (lambda z: z.float(), ValueError, "of torch.float32, but .* of torch.float64"),
    ],
)
def test_a_patch_that_returns_something_else_is_refused(model, function, problem, words):
    with pytest.raises(problem, match=words), patch(model, {"h.1.z": function}):
        model(IDS)
    assert is_clean(model)


def test_a_tensor_in_the_place_of_a_function_is_refused(model):
    with (
        pytest.raises(TypeError, match="is a Tensor, but a function is expected.*lambda _: tensor"),
        patch(model, {"h.1.z": torch.zeros(2, 4, 6, 10)}),
    ):
        pass


def test_a_module_called_with_names_alone_has_no_first_input(model):
    with (
        pytest.raises(RuntimeError, match="named inputs alone"),
        record(model, "transformer:input"),
    ):
        model.transformer(input_ids=IDS)
    assert is_clean(model)
