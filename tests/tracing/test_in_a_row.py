"""Two mistakes of which the second is made of the first, and what may not be said of them."""

import pytest

from tests.tracing.helper import told

LAYERS = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.root = hidden ** 0.5
{helper}
    def forward(self, x):
        asks, offers, content = self.q(x), self.k(x), self.v(x)
        {lines}
"""
CAUSAL = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.noise = nn.Dropout(dropout)

    def forward(self, x):
        asks, offers, content = self.q(x), self.k(x), self.v(x)
        late = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
        {lines}
"""


def said(task: str, source: str):
    found = next(f for f in told(task, source.strip("\n") + "\n") if f.fails)
    where = found.where
    return found, f"{found.message} {where.how if where else ''}"


def single(*lines: str, helper: str = "") -> str:
    return LAYERS.format(lines="\n        ".join(lines), helper=helper)


def causal(*lines: str) -> str:
    return CAUSAL.format(lines="\n        ".join(lines))


HEADS = """
def cut(t, parts):
    b, n, width = t.shape
    return t.view(b, n, width // parts, parts).movedim(-1, 1)

def attend(q, k, v, num_heads):
    a, c, w = cut(q, num_heads), cut(k, num_heads), cut(v, num_heads)
    table = a @ c.mT / c.shape[-1] ** 0.5
    later = torch.ones(table.shape[-2:]).triu(1) > 0
    shares = table.masked_fill(later, -torch.inf).softmax(-1)
    mixed = (shares @ w).flatten(2).view(q.shape)
    return mixed, shares.flatten(0, 1)
"""
BATCH = """
def simple_attention(x):
    table = torch.einsum("bid,bjd->bij", x, x)
    table = table * 0.25
    return torch.einsum("bij,bjd->bid", table.softmax(0), x)
"""
PADDING = """
def padded_weights(scores, lengths):
    real = torch.arange(scores.shape[1]) < lengths.unsqueeze(-1)
    table = torch.where(real[:, None], torch.tensor(-1e9, dtype=scores.dtype), scores)
    return table.softmax(-2)
"""
LARGEST = """
def mask_weights(scores):
    shares = torch.softmax(scores, 1).tril()
    return shares / shares.max(-1, keepdim=True).values
"""
PENALTY = """
def alibi_attention(q, k, v, slopes):
    n = q.shape[-2]
    far = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    price = torch.einsum("h,ij->hij", slopes, far)
    table = q @ k.mT / q.shape[-1] ** 0.5
    table = price + table
    table = table.masked_fill(torch.ones(n, n).triu(0) > 0, -1e30)
    return table.softmax(-1) @ v
"""


@pytest.mark.parametrize(
    "task, source, first, words",
    [
        ("heads.attend", HEADS, 3, ("Line 3: ", "Line 10: ")),
        ("simple.matmul", BATCH, 3, ("Line 3: ", "Line 4: The softmax runs over dim=0")),
        (
            "masks.padding",
            PADDING,
            3,
            ("Line 3: The real tokens are hidden", "Line 4: The rows do not sum to 1"),
        ),
        (
            "masks.renormalise",
            LARGEST,
            2,
            ("Line 2: The softmax runs over", "Line 3: `max` stands where the sum"),
        ),
        (
            "variants.alibi",
            PENALTY,
            6,
            ("Line 6: Distance is rewarded", "Line 7: The current"),
        ),
        (
            "self_attention.forward",
            single(
                "table = self.table(x) / self.root",
                "shares = table.softmax(-1)",
                "return shares / shares.norm(dim=-1, keepdim=True) @ content",
                helper="\n    def table(self, x):\n        return self.k(x) @ self.q(x).mT\n",
            ),
            8,
            ("Line 8: Its last two axes are exchanged", "Line 14: The rows do not sum to 1"),
        ),
        (
            "masks.attention",
            causal(
                "values = offers",
                "table = asks @ offers.mT / asks.shape[-1] ** 0.5",
                "torch.masked_fill(table, late, -torch.inf)",
                "shares = self.noise(table.softmax(-1))",
                "return shares @ values",
            ),
            10,
            (
                "Line 10: The values are made with the keys' layer",
                "Line 12: What `torch.masked_fill`",
            ),
        ),
    ],
    ids=["cut", "batch", "padding", "largest", "penalty", "helper", "handed on"],
)
def test_both_of_two_in_a_row_are_told_the_first_first(task, source, first, words):
    found, everything = said(task, source)
    assert found.where.first_wrong == first and f"Mend line {first} first." in found.message
    assert all(word in everything for word in words), everything


def test_a_softmax_is_not_taken_out_to_be_missed_later():
    lines = "shares = (asks @ offers.mT).softmax(-1) / self.root", "out = shares @ content"
    _, everything = said("self_attention.forward", single(*lines, "return out + asks.mean()"))
    assert "Two things are wrong" in everything and "no softmax" not in everything


def test_what_is_hidden_behind_the_powers_is_not_asked_for_before():
    source = """
def padded_weights(scores, lengths):
    seen = torch.arange(scores.shape[1]) <= lengths.unsqueeze(-1)
    powers = (scores - scores.max()).exp()
    powers = powers * seen[:, None]
    return powers / powers.sum(1, keepdim=True)
"""
    found, everything = said("masks.padding", source)
    assert found.where is None or found.where.first_wrong != 3
    assert "not hidden" not in everything


def test_the_part_that_every_round_is_given_may_be_what_is_wrong():
    source = """
def context_vectors(inputs):
    rows = []
    for i in range(len(inputs)):
        shares = torch.softmax(inputs @ inputs.T, 1)[1]
        row = 0
        for j in range(len(inputs)):
            row = row + shares[i] * inputs[j]
        rows.append(row)
    return torch.stack(rows)
"""
    found, _ = said("simple.context", source)
    assert found.where is None or found.where.first_wrong == 4


def test_a_mistake_with_these_numbers_in_other_places_is_not_named():
    source = """
def simple_attention(x):
    table = x @ x.mT
    shares = table / table.sum(-1, keepdim=True)
    return shares.mT @ x
"""
    found, everything = said("simple.matmul", source)
    assert "divided by their sum" in everything and "wrong way round" not in everything
    assert found.where.first_wrong == 3 and "Line 4: " in found.message


def test_a_softmax_of_the_right_scores_exchanges_no_queries_and_keys():
    source = """
def batched_attention(q, k, v):
    rows = []
    for i, (a, b) in enumerate(zip(q, k)):
        shares = F.softmax(a @ b.T * b.shape[-1] ** -0.5, 0)
        rows.append(shares @ v[-i])
    return torch.stack(rows)
"""
    found, everything = said("one_head.batched", source)
    assert found.where.first_wrong == 4 and "swapped" not in everything
    assert "The softmax runs over the queries" in everything


def test_a_layer_of_dropout_that_nothing_uses_is_told_beside_another_mistake():
    lines = "table = (asks @ offers.mT).masked_fill(late, -torch.inf)", "shares = table.softmax(-1)"
    _, everything = said("masks.attention", causal(*lines, "return shares @ content"))
    assert "not scaled" in everything and "`self.noise`, made in line 5, is" in everything
    _, everything = said("masks.attention", causal(*lines, "return self.noise(shares) @ content"))
    assert "not scaled" in everything and "noise" not in everything


def test_an_error_of_another_kind_is_not_that_of_a_known_mistake():
    source = """
def batched_attention(q, k, v):
    rows = []
    for q, b, c in zip(q, k, v):
        rows.append((q @ b.T / b.shape[-1] ** 0.5).softmax(-1) @ c)
    return torch.cat(rows).reshape(len(q), *c.shape)
"""
    _, everything = said("one_head.batched", source)
    assert "as if there were no batch" not in everything
