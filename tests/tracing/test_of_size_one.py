"""A softmax over an axis of size 1 gives ones: its line is told, and not those behind it."""

import pytest

from tests.tracing.helper import told

ROUNDS = """
def context_vectors(inputs):
    rows = []
    for query in inputs:
        column = inputs @ query[:, None]
        shares = torch.softmax(column, dim=-1)
        rows.append((shares * inputs).sum(0))
    return torch.stack(rows)
"""
KEPT = """
def batched_attention(q, k, v):
    rows = []
    for n in range(q.shape[1]):
        table = (k * q[:, n : n + 1]).sum(-1, keepdim=True) / q.shape[-1] ** 0.5
        rows.append((table.softmax(-1) * v).sum(1))
    return torch.stack(rows, 1)
"""
AT_ONCE = """
def batched_attention(q, k, v):
    table = (q[:, :, None] * k[:, None]).sum(-1, keepdim=True) / q.shape[-1] ** 0.5
    shares = table.softmax(-1)
    return (shares * v[:, None]).sum(2)
"""
BY_HAND = """
def simple_attention(x):
    out = torch.zeros_like(x)
    for n in range(x.shape[1]):
        powers = (x @ x[:, n].unsqueeze(-1)).exp()
        shares = powers / powers.sum(-1, keepdim=True)
        out[:, n] = (shares * x).sum(1)
    return out
"""


@pytest.mark.parametrize(
    "task, source, line, what",
    [
        ("simple.context", ROUNDS, 5, "softmax runs"),
        ("one_head.batched", KEPT, 5, "softmax runs"),
        ("one_head.batched", AT_ONCE, 3, "softmax runs"),
        ("simple.matmul", BY_HAND, 5, "sums run"),
    ],
)
def test_weights_that_are_all_one_are_told_where_they_are_made(task, source, line, what):
    found = next(f for f in told(task, source.lstrip()) if f.fails)
    assert found.where.first_wrong == line
    assert f"the {what} over an axis of size 1, so that each weight is 1" in found.where.how
    assert "Two things" not in found.message


GROWING = """
def mask_scores(scores):
    rows = []
    for n in range(scores.shape[-1]):
        seen = scores[..., n : n + 1, : n + 1].softmax(-1)
        rows.append(F.pad(seen, (0, scores.shape[-1] - n - 1)))
    return torch.cat(rows, -2) / 2
"""


def test_the_one_key_of_a_first_round_is_nothing_wrong():
    found = next(f for f in told("masks.minus_infinity", GROWING.lstrip()) if f.fails)
    assert found.where is None or "size 1" not in found.where.how
