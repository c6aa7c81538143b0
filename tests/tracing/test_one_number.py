"""Of a result that is one number in all its places no two mistakes are told, and none that fits."""

import pytest

from tests.tracing.helper import told

COPY = """
def numeric_gradient(f, x, epsilon):
    y = x.double().clone()
    flat = torch.cat(list(y.unbind()))
    slope = []
    for n in range(len(flat)):
        kept = flat[n].item()
        flat[n] = kept + epsilon
        up = f(y)
        flat[n] = kept - epsilon
        slope.append((up - f(y)) / (2 * epsilon))
        flat[n] = kept
    return torch.tensor(slope).view(x.shape)
"""
LIST = """
def numeric_gradient(f, x, epsilon):
    slope = torch.zeros_like(x)
    for n in range(x.numel()):
        up, down = x.clone(), x.clone()
        up.flatten().tolist()[n] += epsilon
        down.flatten().tolist()[n] -= epsilon
        slope.view(-1)[n] = (f(up) - f(down)) / (2 * epsilon)
    return slope
"""
CUT_OFF = """
def attention_weights(q, k):
    table = q @ k.T / q.shape[-1] ** 0.5
    return torch.softmax(table, dim=-1).int()
"""
WIPED = """
def mask_scores(scores):
    n = scores.shape[-1]
    later = torch.ones(n, n).triu(1) > 0
    return scores.masked_fill(later, -torch.inf).softmax(-1) * 0
"""


@pytest.mark.parametrize(
    "task, source",
    [
        ("backward.numeric", COPY),
        ("backward.numeric", LIST),
        ("one_head.scale", CUT_OFF),
        ("masks.minus_infinity", WIPED),
    ],
)
def test_zeros_alone_are_no_trace_of_a_known_mistake(task, source):
    found = next(f for f in told(task, source.lstrip()) if f.fails)
    assert found.check == f"{task}.values" and found.mistake in ("", "result.zero")
    assert "The result has the right shape" in found.message and "Two things" not in found.message
