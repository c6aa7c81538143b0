"""Small changes that put something in, and two of which each leaves a known mistake."""

import pytest

from tests.tracing.helper import told

SLIPS = {
    "a letter that is missing behind the arrow": (
        "simple.matmul",
        """
def simple_attention(x):
    table = torch.einsum("nqc,nkc->qk", x, x)  # <-
    return table.softmax(-1) @ x
""",
    ),
    "a mask that multiplies": (
        "masks.minus_infinity",
        """
def mask_scores(scores):
    n = scores.shape[-1]
    seen = torch.ones(n, n).tril()
    return torch.softmax(scores * seen, dim=-1)  # <-
""",
    ),
    "a mask that is turned round where it is used": (
        "masks.padding",
        """
def padded_weights(scores, lengths):
    places = torch.arange(scores.shape[-1])
    valid = places[None, None] < lengths[:, None, None]
    return scores.masked_fill(valid, -torch.inf).softmax(-1)  # <-
""",
    ),
    "no exponential": (
        "simple.matmul",
        """
def simple_attention(x):
    table = x @ x.mT
    shares = table / table.sum(dim=-1, keepdim=True)  # <-
    return shares @ x
""",
    ),
    "one item in a loop over all": (
        "simple.matmul",
        """
def simple_attention(x):
    found = []
    for text in x:
        table = text @ x[0].T  # <-
        found.append(table.softmax(-1) @ text)
    return torch.stack(found)
""",
    ),
    "what is merged": (
        "heads.attend",
        """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    parts = [t.view(b, n, num_heads, -1).transpose(1, 2) for t in (q, k, v)]
    shares = parts[0] @ parts[1].mT / (width // num_heads) ** 0.5
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    shares = shares.masked_fill(later, -torch.inf).softmax(-1)
    mixed = shares @ parts[2]
    mixed = shares.transpose(1, 2).reshape(b, n, -1)  # <-
    return mixed, shares.flatten(0, 1)
""",
    ),
}
TURNED = """
class CausalMask(nn.Module):
    def __init__(self, context_length):
        super().__init__()
        ones = torch.ones(context_length, context_length)
        self.register_buffer("hidden", torch.tril(ones).bool(), persistent=False)

    def forward(self, seq_len):
        return self.hidden[-seq_len:, :seq_len]
"""
HALF = """
def cache_bytes(num_layers, num_heads, kv_heads, head_size, seq_len, batch_size, bytes_each):
    each = kv_heads * head_size
    rows = each * seq_len
    return batch_size * num_layers * rows * bytes_each
"""


def failing(task: str, source: str):
    return next(f for f in told(task, source.lstrip("\n")) if f.fails)


def marked(source: str) -> int:
    lines = source.lstrip("\n").split("\n")
    return next(i for i, line in enumerate(lines, 1) if line.endswith("# <-"))


@pytest.mark.parametrize("what", SLIPS)
def test_the_line_in_which_something_is_missing_is_told(what):
    task, source = SLIPS[what]
    assert failing(task, source).where.first_wrong == marked(source)


def test_two_changes_of_which_each_leaves_a_known_mistake_are_told_by_name():
    found = failing("masks.buffer", TURNED)
    assert "Line 5: True should mean hidden; here it means that a key may be seen." in found.message
    assert "Line 8: " in found.message and found.line == 5


def test_what_could_be_missing_on_each_of_several_lines_is_told_of_none():
    """The factor of 2 could be put in on any of them."""
    found = failing("variants.cache_bytes", HALF)
    assert "keys *and* values" in found.message and found.line is None
