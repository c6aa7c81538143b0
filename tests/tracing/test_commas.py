"""A comma at the end of a line, which makes a tuple of what it gives, is named with its line."""

import pytest

from autograder.tracing.misuses import misuse
from autograder.tracing.text import Text
from tests.tracing.helper import told

PLAIN = """\
def batched_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    w = torch.softmax(scores, dim=-1)
    out = w @ v
    return out
"""
LAYERS = """\
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden ** 0.5

    def forward(self, x):
        q = self.q(x)
        k = self.k(x)
        return torch.softmax(q @ k.mT / self.scale, -1) @ self.v(x)
"""


def with_a_comma(text: str, line: int) -> str:
    lines = text.split("\n")
    lines[line - 1] += ","
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("task", "text", "line", "what"),
    [
        ("one_head.batched", PLAIN, 2, "`scores`"),
        ("one_head.batched", PLAIN, 3, "`w`"),
        ("one_head.batched", PLAIN, 4, "`out`"),
        ("one_head.batched", PLAIN, 5, "what is returned"),
        ("one_head.forward", LAYERS, 5, "`self.k`"),
        ("one_head.forward", LAYERS, 7, "`self.scale`"),
        ("one_head.forward", LAYERS, 10, "`q`"),
    ],
)
def test_its_line_is_told_wherever_the_tuple_shows(task, text, line, what):
    found = next(f for f in told(task, with_a_comma(text, line)) if f.fails)
    assert found.where.first_wrong == found.line == line
    assert found.where.how == f"the comma at the end makes a tuple of {what}"
    assert "list" not in found.message


ERROR = "unsupported operand type(s) for @: 'tuple' and 'Tensor'"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def f(q, v):\n    w = q.softmax(-1),\n    return w @ v\n",
            "`w` is a tuple: the comma at the end of line 2 makes one of it.",
        ),
        (
            "def g(q):\n    return q,\n\n\ndef f(q, v):\n    return g(q) @ v\n",
            "`g` returns a tuple: the comma at the end of line 2 makes one of it.",
        ),
        ("def f(q, v):\n    w = (q.softmax(-1),)\n    return w @ v\n", ""),  # it is meant
        ("def f(q, v):\n    w = q, v\n    return w @ v\n", ""),
        ("def f(q, v):\n    w = q,\n    return q @ v\n", ""),  # another one stopped it
    ],
)
def test_an_error_says_which_comma_made_the_tuple(source, said):
    assert misuse("TypeError", ERROR, Text(source), source.count("\n")) == said
