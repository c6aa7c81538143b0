"""Small changes that put something in, and two of which each leaves a known mistake."""

import pytest

from tests.tracing.helper import told

SLIPS = {
    "a part of a helper that does not come back": (
        "one_head.batched",
        """
def batched_attention(q, k, v):
    def one(a, b, c):
        table = (a @ b.T / b.shape[1] ** 0.5).softmax(-1)
        mixed = table @ c  # <-

    return torch.stack([one(*each) for each in zip(q, k, v)])
""",
    ),
    "heads that are dealt out in turn": (
        "variants.grouped",
        """
def grouped_attention(q, k, v):
    count, shared = q.shape[1], k.shape[1]
    n = q.shape[2]
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    found = []
    for h in range(count):
        own = h % shared  # <-
        table = q[:, h] @ k[:, own].mT / q.shape[-1] ** 0.5
        table = table.masked_fill(later, -torch.inf).softmax(-1)
        found.append(table @ v[:, own])
    return torch.stack(found, dim=1)
""",
    ),
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


HOOKED = """
def final_log_prob(model, input_ids):
    with torch.no_grad():
        logits = model(input_ids).logits
    return logits[:, -2].log_softmax(-1).gather(-1, input_ids[:, -1:])[:, 0]

def without_head(z, num_heads, head, position):
    z = z.clone()
    z.unflatten(-1, (num_heads, -1))[:, position, head] = 0
    return z

def lesioned_log_prob(model, input_ids, layer, head, position):
    def hook(module, args):
        args = (without_head(args[0], model.config.n_head, head, position), *args[1:])

    handle = model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook)
    result = final_log_prob(model, input_ids)
    handle.remove()
    return result
"""
UNCUT = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.size = hidden
        self.drop = nn.Dropout(dropout)
        later = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("later", later, persistent=False)

    def forward(self, x):
        table = self.q(x) @ self.k(x).mT
        table = table / self.size
        table = table.masked_fill(self.later, float("-inf"))
        return self.drop(table.softmax(-1)) @ self.v(x)
"""
IN_PLACE = """
def mask_scores(scores):
    own = scores
    n = own.shape[-1]
    for i in range(n):
        own[:, i, i:] = -torch.inf
    return own.softmax(-1)
"""
NO_PLUS_ONE = """
def linear_attention(q, k, v):
    own = lambda t: F.elu(t) + 1
    queries, keys = own(q), F.elu(k)
    table = torch.einsum("nkc,nkd->nkcd", keys, v).cumsum(1)
    below = (queries * keys.cumsum(1)).sum(-1)
    return torch.einsum("nkc,nkcd->nkd", queries, table) / below
"""


def test_a_mask_that_is_not_cut_is_told_beside_a_wrong_scale():
    found = failing("masks.attention", UNCUT)
    assert "Line 14: " in found.message and "Line 15: " in found.message
    assert "Both come in at" not in found.message


def test_what_else_is_wrong_beside_a_named_mistake_is_told():
    """The diagonal is hidden, which explains the numbers; and what came in is changed."""
    found = failing("masks.minus_infinity", IN_PLACE)
    assert "Line 2: `scores` gets another name and no copy" in found.message
    assert "Line 5: The current token is hidden too" in found.message


def test_beside_an_error_another_wrong_line_is_told():
    found = failing("variants.linear", NO_PLUS_ONE)
    assert "RuntimeError" in found.message and "Line 3: " in found.message


def test_a_line_that_calls_what_was_given_is_not_told_without_a_proof():
    """The model is called as it should be: the hook gives nothing back."""
    found = failing("causal.lesion", HOOKED)
    assert found.line != 3


HEAD = """
def gpt2_attention(x, state, num_heads):
    both = x @ state["c_attn.weight"] + state["c_attn.bias"]
    q, k, v = (t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in both.chunk(3, -1))
    table = q @ k.mT{scaled}
    late = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    table = table.masked_fill(late, -torch.inf)
    shares = table{later}.softmax(-1)
    out = (shares @ v).transpose(1, 2).flatten(2)
    return out @ state["c_proj.weight"]{bias}
"""
BIAS = ' + state["c_proj.bias"]'


def test_what_nothing_scales_is_told_where_it_is_made():
    (found,) = (
        f for f in told("equal.gpt2", HEAD.format(scaled="", later="", bias=BIAS)) if f.fails
    )
    assert found.where.first_wrong == 5 and "not scaled" in found.message


def test_beside_another_mistake_too():
    (found,) = (f for f in told("equal.gpt2", HEAD.format(scaled="", later="", bias="")) if f.fails)
    assert "Line 5: The scores are not scaled" in found.message and "Line 10: " in found.message


def test_what_is_scaled_by_something_else_later_is_told_there():
    answer = HEAD.format(scaled="", later=" / q.shape[-1]", bias=BIAS)
    (found,) = (f for f in told("equal.gpt2", answer) if f.fails)
    assert found.where.first_wrong == 8


def test_a_view_whose_places_are_changed_changes_what_was_given():
    (found,) = (
        f
        for f in told(
            "causal.cut",
            """
def without_head(z, num_heads, head, position):
    heads = z.unflatten(-1, (num_heads, -1))
    heads[:, position, head] = 0
    return heads.flatten(2)
""",
        )
        if f.fails
    )
    assert found.where.first_wrong == 3 and "no numbers of its own" in found.where.how


def test_another_name_was_meant_for_what_is_made_and_read_nowhere():
    answer = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.mix, self.heads = nn.Linear(hidden, hidden), num_heads
        self.causal, self.noise = causal, nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        b, n, _ = x.shape
        wide = (f(x).view(b, n, self.heads, -1) for f in (self.q, self.k, self.v))
        q, k, v = (each.transpose(1, 2) for each in wide)
        table = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            table = table.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        shares = self.noise(table.softmax(-1))
        joined = (shares @ v).transpose(1, 2).flatten(2)
        mixed = self.mix(joined)
        out = joined
        if return_attention:
            return out, shares.flatten(0, 1)
        return out
"""
    (found,) = (f for f in told("multi_head.output", answer) if f.fails)
    assert found.where.first_wrong == 19 and "`joined` is taken" in found.where.how
