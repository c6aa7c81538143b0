"""How a line is wrong, in words that say why, and what was right before it."""

import pytest

from tests.tracing.helper import told


def where(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails).where


@pytest.mark.parametrize(
    "fill", ["scores.masked_fill(later, math.inf)", "torch.where(later, -float('-inf'), scores)"]
)
def test_infinity_with_the_wrong_sign_is_told_as_that(fill):
    source = f"""
def mask_scores(scores):
    later = torch.ones(scores.shape[-2:]).triu(1) > 0
    table = {fill}
    return table.softmax(-1)
"""
    found = where("masks.minus_infinity", source)
    assert found.first_wrong == 3
    assert "plus infinity stands in" in found.how and "minus infinity belongs" in found.how


@pytest.mark.parametrize(
    "table, what",
    [
        ("q @ (k.T / k.shape[-1]) ** 0.5", "a broken power (`** 0.5` is a root)"),
        ("(q @ k.T).sqrt() / k.shape[-1]", "a root"),
        ("torch.log(q @ k.T) / k.shape[-1] ** 0.5", "a logarithm"),
    ],
)
def test_nan_of_numbers_below_zero_is_told_as_that(table, what):
    source = f"def attention_weights(q, k):\n    s = {table}\n    return s.softmax(1)\n"
    assert f"{what} of numbers below zero is NaN" in where("one_head.scale", source).how


def test_nan_that_comes_of_something_else_is_not_blamed_on_a_root():
    source = "def attention_weights(q, k):\n    s = q @ k.T * 0 / 0.0\n    return s.softmax(1)\n"
    assert "below zero" not in where("one_head.scale", source).how


ROWS = """
def softmax_jacobian(scores):
    p = scores.softmax(0)
    one = torch.eye(len(p), dtype=p.dtype)
    return p.unsqueeze(1) * (one - p.unsqueeze(1))
"""
STATES = """
def encoder_states(x, w_input, w_hidden, bias):
    state, rows = torch.zeros(bias.shape), []
    drive = x @ w_input + bias
    for n in range(len(x)):
        state = torch.tanh(drive[n] + state @ w_hidden + bias)
        rows.append(state)
    return torch.stack(rows)
"""


@pytest.mark.parametrize("task, source", [("one_head.jacobian", ROWS), ("simple.rnn", STATES)])
def test_a_line_of_which_no_part_has_a_name_is_not_called_the_last_right_one(task, source):
    found = where(task, source)
    assert found.first_wrong is not None and found.last_right != found.first_wrong


@pytest.mark.parametrize(
    "last, line",
    [
        ('torch.einsum("bij,biv->biv", shares, v)', 4),
        ("v.clone()", None),
        ("torch.eye(q.shape[1]) @ v", 4),
    ],
)
def test_an_operation_that_gives_what_went_in_has_its_line(last, line):
    source = f"""
def batched_attention(q, k, v):
    table = q @ k.mT / q.shape[-1] ** 0.5
    shares = table.softmax(2)
    return {last}
"""
    found = where("one_head.batched", source)
    assert found is None if line is None else found.first_wrong == line
