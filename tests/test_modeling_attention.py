"""The attention of the library, against PyTorch's own and against float64."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from tools import make_test_values
from transformer_lm.modeling_attention import (
    CausalSelfAttention,
    HeadStack,
    MultiHeadSelfAttention,
    ParameterAttention,
    SelfAttention,
    simple_attention,
)
from transformer_lm.test_values import MultiHeadAttentionTestValues, SelfAttentionTestValues

BATCH_SIZE, SEQ_LEN, INPUT_SIZE, NUM_HEADS, HEAD_SIZE = 2, 5, 7, 3, 4
HIDDEN = NUM_HEADS * HEAD_SIZE


def heads(t):
    """[batch_size, seq_len, hidden] as [batch_size, num_heads, seq_len, head_size]."""
    return t.unflatten(-1, (NUM_HEADS, HEAD_SIZE)).transpose(1, 2)


def official(model, x, causal):
    """The same layers with PyTorch's own attention between them."""
    q, k, v = heads(model.q(x)), heads(model.k(x)), heads(model.v(x))
    out = scaled_dot_product_attention(q, k, v, is_causal=causal)
    return model.mix(out.transpose(1, 2).flatten(-2))


def load(model, values):
    for name, layer in model.named_children():
        if isinstance(layer, nn.Linear):
            layer.weight.data = getattr(values, f"{name}_weight")
            layer.bias.data = getattr(values, f"{name}_bias")
    return model


def test_the_file_of_test_values_is_what_its_maker_makes():
    assert make_test_values.FILE.read_text(encoding="utf-8") == make_test_values.render()


def test_the_sizes_of_the_test_values_cannot_be_confused():
    x = MultiHeadAttentionTestValues.x
    hidden = MultiHeadAttentionTestValues.output.shape[-1]
    assert len({*x.shape, hidden, 3, hidden // 3}) == 6
    assert len({*SelfAttentionTestValues.x.shape, SelfAttentionTestValues.output.shape[-1]}) == 4


def test_self_attention_reproduces_the_test_values():
    model = load(SelfAttention(7, 11), SelfAttentionTestValues)
    output = model(SelfAttentionTestValues.x)
    torch.testing.assert_close(output, SelfAttentionTestValues.output, rtol=0, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention_reproduces_the_test_values(causal):
    values = MultiHeadAttentionTestValues
    model = load(MultiHeadSelfAttention(7, 12, num_heads=3, causal=causal), values)
    expected = values.causal_output if causal else values.output
    torch.testing.assert_close(model(values.x), expected, rtol=0, atol=1e-5)


def test_biases_stored_as_rows_load_too():
    model = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS)
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE)
    expected = model(x)
    for layer in (model.q, model.k, model.v, model.mix):
        layer.bias.data = layer.bias.data[None]
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_multi_head_attention_equals_pytorchs_own_forward_and_backward(causal, dtype):
    torch.manual_seed(0)
    model = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS, causal=causal).to(dtype)
    twin = copy.deepcopy(model).double()
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE, dtype=dtype, requires_grad=True)
    y = x.detach().double().requires_grad_()
    output, expected = model(x), official(twin, y, causal)
    weight = torch.randn_like(expected)
    (output * weight.to(dtype)).sum().backward()
    (expected * weight).sum().backward()
    exact = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(output.double(), expected, **exact)
    torch.testing.assert_close(x.grad.double(), y.grad, **exact)
    for mine, its in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.double(), its.grad, **exact)


def test_self_attention_is_multi_head_attention_with_one_head_and_no_mix():
    torch.manual_seed(0)
    single = SelfAttention(INPUT_SIZE, HIDDEN).double()
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE, dtype=torch.float64)
    expected = scaled_dot_product_attention(single.q(x), single.k(x), single.v(x))
    torch.testing.assert_close(single(x), expected, rtol=0, atol=1e-12)


def test_gradients_agree_with_finite_differences():
    model = MultiHeadSelfAttention(3, 4, 2, causal=True).double()
    x = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


def test_probabilities_come_batch_major_and_their_rows_sum_to_one():
    torch.manual_seed(0)
    model = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS)
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE)
    _, probs = model(x, return_attention=True)
    assert probs.shape == (BATCH_SIZE * NUM_HEADS, SEQ_LEN, SEQ_LEN)
    torch.testing.assert_close(probs.sum(-1), torch.ones(BATCH_SIZE * NUM_HEADS, SEQ_LEN))
    q, k = heads(model.q(x)), heads(model.k(x))
    for item in range(BATCH_SIZE):
        for head in range(NUM_HEADS):
            one = torch.softmax(q[item, head] @ k[item, head].T / HEAD_SIZE**0.5, dim=-1)
            torch.testing.assert_close(probs[item * NUM_HEADS + head], one)


def test_in_training_the_probabilities_returned_are_those_used():
    torch.manual_seed(0)
    model = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS, dropout=0.5).train()
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE)
    output, probs = model(x, return_attention=True)
    assert (probs == 0).any()
    merged = (probs.view(BATCH_SIZE, NUM_HEADS, SEQ_LEN, SEQ_LEN) @ heads(model.v(x))).transpose(
        1, 2
    )
    torch.testing.assert_close(output, model.mix(merged.flatten(-2)))


def test_heads_that_do_not_divide_hidden_are_refused_naming_both():
    with pytest.raises(ValueError, match="10.*3"):
        MultiHeadSelfAttention(7, 10, 3)


def test_no_token_depends_on_a_later_one_when_causal():
    model = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS, causal=True).double()
    x = torch.randn(1, SEQ_LEN, INPUT_SIZE, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(model, x)
    depends = jacobian[0, :, :, 0].abs().sum((1, 3)) > 0
    assert torch.equal(depends, torch.ones(SEQ_LEN, SEQ_LEN).tril().bool())


def test_the_simple_and_the_parameter_version_equal_pytorchs_own():
    x = torch.randn(SEQ_LEN, INPUT_SIZE, dtype=torch.float64)
    expected = scaled_dot_product_attention(x, x, x, scale=1.0)
    torch.testing.assert_close(simple_attention(x), expected, rtol=0, atol=1e-12)
    model = ParameterAttention(INPUT_SIZE, HIDDEN).double()
    expected = scaled_dot_product_attention(x @ model.w_query, x @ model.w_key, x @ model.w_value)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-12)


def test_bare_parameters_begin_as_normal_numbers_of_the_inputs_scale():
    """Mean 0 and spread 1 / sqrt(input_size), within four standard errors, and no two alike."""
    torch.manual_seed(0)
    model = ParameterAttention(400, 50)
    matrices = list(model.parameters())
    assert [list(w.shape) for w in matrices] == [[400, 50]] * 3
    error = (400 * 50) ** -0.5
    for w in matrices:
        w = w.detach() * 400**0.5
        assert abs(w.mean()) < 4 * error and abs(w.std() - 1) < 4 * error
        assert abs((w.abs() < 1).double().mean() - 0.683) < 0.02  # normal, not uniform
    assert not torch.equal(matrices[0], matrices[1]) and not torch.equal(matrices[1], matrices[2])
    values = torch.randn(300, 400) @ matrices[2]
    assert 0.9 < values.std() < 1.1


def test_a_stack_of_heads_equals_one_wide_projection_with_the_same_weights():
    stack = HeadStack(INPUT_SIZE, HEAD_SIZE, context_length=9, num_heads=NUM_HEADS).double()
    wide = MultiHeadSelfAttention(INPUT_SIZE, HIDDEN, NUM_HEADS, causal=True).double()
    for name in "qkv":
        layers = [getattr(head, name) for head in stack.heads]
        getattr(wide, name).weight.data = torch.cat([layer.weight for layer in layers])
        getattr(wide, name).bias.data = torch.cat([layer.bias for layer in layers])
    wide.mix.weight.data = torch.eye(HIDDEN, dtype=torch.float64)
    wide.mix.bias.data.zero_()
    x = torch.randn(BATCH_SIZE, SEQ_LEN, INPUT_SIZE, dtype=torch.float64)
    torch.testing.assert_close(stack(x), wide(x), rtol=0, atol=1e-12)


def test_the_causal_buffer_is_boolean_and_not_stored():
    model = CausalSelfAttention(INPUT_SIZE, HIDDEN, context_length=9)
    assert model.mask.dtype == torch.bool
    assert "mask" not in model.state_dict()
