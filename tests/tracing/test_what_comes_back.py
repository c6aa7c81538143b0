"""The line of what is returned, of what stops later than it goes wrong, and of numbers that are not
compared."""

import pytest

from tests.tracing.helper import told


def first(task, source):
    """The first finding of an answer that fails."""
    return next(f for f in told(task, source.lstrip("\n")) if f.fails)


def marked(source):
    return [n for n, row in enumerate(source.lstrip("\n").split("\n"), 1) if row.endswith("# <-")]


AS_GIVEN = """
def attention_map(probs, item, head, num_heads):
    place = item * num_heads + head
    return probs  # <-
"""
NO_TENSOR = """
def grad_queries_keys(grad_scores, q, k):
    g = grad_scores / k.shape[-1] ** 0.5
    return g @ k, "...ij,...id->...jd"  # <-
"""
ONE_STATEMENT = """
def pair_scores(q, k):
    return (q.unsqueeze(2) + k).sum(-1)  # <-
"""
OTHER_ORDER = """
def score_variance(q, k, sigma_q, sigma_k):
    scores = (q * k).sum(-1)
    own = scores.var()
    wanted = q.shape[-1] * sigma_q**2 * sigma_k**2
    return wanted, own  # <-
"""
PLACES_FIRST = """
def top_tokens(logits, k):
    most, places = logits.log_softmax(-1).topk(k)
    return most, places  # <-
"""
LISTED = """
def run_mha(x, weights, num_heads, hidden):
    layer = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first=True, dtype=x.dtype)
    w = torch.cat([weights[f"{each}.weight"] for each in "qkv"])
    b = [weights[f"{each}.bias"] for each in "qkv"]  # <-
    own = {"in_proj_weight": w, "in_proj_bias": b}
    own |= {f"out_proj.{each}": weights[f"mix.{each}"] for each in ("weight", "bias")}
    layer.load_state_dict(own)
    return layer(x, x, x, attn_mask=hidden, average_attn_weights=False)
"""
ONE_NUMBER = """
def alibi_attention(q, k, v, slopes):
    at = q.shape[2]  # <-
    apart = at[:, None] - at
    table = q @ k.mT / q.shape[-1] ** 0.5 - slopes[:, None, None] * apart
    return table.masked_fill(apart < 0, -math.inf).softmax(-1) @ v
"""
OF_ANOTHER_TENSOR = """
def head_contributions(heads, weight):
    parts = weight.chunk(weight.shape[1], dim=1)  # <-
    own = [heads[:, i] @ part.T for i, part in enumerate(parts)]
    return torch.stack(own, dim=1)
"""
HALVED = """
def grouped_attention(q, k, v):
    q = q.unflatten(1, (k.shape[1], -1))
    size = q.shape[-1]
    table = torch.einsum("bghid,bgjd->bghij", q, k) / size * 0.5  # <-
    late = torch.ones(q.shape[3], k.shape[2], dtype=torch.bool).triu(1)
    shares = table.masked_fill(late, -torch.inf).softmax(-1)
    return torch.einsum("bghij,bgjd->bghid", shares, v).flatten(1, 2)
"""
UNSCALED = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        table = torch.einsum("bqh,bkh->bkq", self.q(x), self.k(x))  # <-
        logs = table - table.logsumexp(dim=1, keepdim=True)
        return torch.einsum("bkq,bkh->bqh", logs.exp(), self.v(x))
"""
THROWN_AWAY = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        later = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("hidden", later, persistent=False)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.mT / k.shape[-1] ** 0.5
        hidden = self.hidden[: x.shape[1], : x.shape[1]]
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        self.drop(weights)  # <-
        return weights @ v
"""
STACKED_AT_THE_END = """
def merge_heads(t):
    parts = [t[:, i] for i in range(t.shape[1])]
    wide = torch.stack(parts, dim=-1)  # <-
    return wide.flatten(2)
"""
LOST_ROUNDS = """
def grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v):
    total = 0
    for grad, w in ((grad_q, w_q), (grad_k, w_k), (grad_v, w_v)):
        total = grad.transpose(1, 2).flatten(2) @ w  # <-
    return total
"""
A_FILL_OF_ITS_OWN = """
def masked_softmax(scores, hidden):
    fill = -1e9  # <-
    scores = scores.masked_fill(hidden, fill)
    return scores.softmax(-1)
"""
ONE_OF_TWO_UNSCALED = """
def grad_queries_keys(grad_scores, q, k):
    root = math.sqrt(q.shape[-1])
    by_q = torch.einsum("bij,bjd->bid", grad_scores, k)  # <-
    by_k = torch.einsum("bij,bid->bjd", grad_scores, q)
    by_k = by_k / root
    return by_q, by_k
"""
CHAIN = """
def merge_heads(t):
    items, heads, tokens, size = t.shape
    t.transpose(1, 2).contiguous()  # <-
    return t.reshape(items, tokens, heads * size)
"""
ONE_TOO_MANY = """
def lens_logits(model, hidden_states):
    normed = len(hidden_states)  # <-
    out = []
    for place, state in enumerate(hidden_states):
        state = state[:, -1]
        state = state if place == normed else model.transformer.ln_f(state)
        out.append(model.lm_head(state))
    return torch.stack(out).detach()
"""
LESS_THAN_P = """
def top_p(logits, p):
    probs, order = logits.softmax(-1).sort(descending=True)
    total = probs.cumsum(-1)
    probs = torch.where(total < p, probs, 0.0)  # <-
    probs = probs / probs.sum(-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, probs)
"""
FEW_BLOCKS = """
def online_softmax(scores, block):
    most = torch.full_like(scores[:, 0], -math.inf)
    total = torch.zeros_like(most)
    count = scores.shape[1] // block  # <-
    for number in range(count):
        part = scores[:, number * block :][:, :block]
        new = torch.maximum(most, part.amax(1))
        shift = torch.where(new == -math.inf, 0.0, new)
        total = total * (most - shift).exp() + (part - shift[:, None]).exp().sum(1)
        most = new
    return most, total
"""
CUT = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout):
        super().__init__()
        self.q, self.k = nn.Linear(input_size, hidden), nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("past", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        seen = self.past[: x.shape[1]]  # <-
        scores = self.q(x) @ self.k(x).mT / self.q.out_features**0.5
        scores = scores.masked_fill(seen == 0, -math.inf)
        return self.drop(scores.softmax(-1)) @ self.v(x)
"""
SLIPS = {
    "as it was given": ("masks.map", AS_GIVEN),
    "no tensor": ("backward.queries_keys", NO_TENSOR),
    "the one statement": ("shape_gym.einsum", ONE_STATEMENT),
    "another order": ("one_head.variance", OTHER_ORDER),
    "places first": ("inside.log_probs", PLACES_FIRST),
    "a list that stops later": ("equal.mha", LISTED),
    "one number for all up to it": ("variants.alibi", ONE_NUMBER),
    "another argument": ("heads.output", OF_ANOTHER_TENSOR),
    "a half for a root": ("variants.grouped", HALVED),
    "a layer that is called for nothing": ("masks.attention", THROWN_AWAY),
    "heads that are stacked at the end": ("heads.merge", STACKED_AT_THE_END),
    "rounds that are lost": ("backward.paths", LOST_ROUNDS),
    "a fill of its own line": ("masks.half", A_FILL_OF_ITS_OWN),
    "one of two results unscaled": ("backward.queries_keys", ONE_OF_TWO_UNSCALED),
    "a chain that is thrown away": ("heads.merge", CHAIN),
    "the last place for their number": ("inside.logits", ONE_TOO_MANY),
    "a sum up to each place": ("writing.top_p", LESS_THAN_P),
    "blocks without the last one": ("fast.online", FEW_BLOCKS),
    "a mask that is cut on one side": ("masks.attention", CUT),
    "a product of layers that is not scaled": ("self_attention.forward", UNSCALED),
}


# Two things are wrong, each with a line of its own.
PAIRS = {
    "a scale that is made before": (
        "backward.queries_keys",
        """
def grad_queries_keys(grad_scores, q, k):
    size = q.shape[-1]
    factor = size ** -1  # <-
    g = grad_scores * factor
    return g @ k, g @ q  # <-
""",
    ),
    "the size of all heads": (
        "heads.attend",
        """
def attend(q, k, v, num_heads):
    items, tokens, hidden = q.shape
    size = hidden // num_heads
    root = math.sqrt(hidden)  # <-
    q, k, v = (t.view(items, tokens, num_heads, size).transpose(1, 2) for t in (q, k, v))
    future = torch.ones(tokens, tokens).triu(1) == 1
    weights = (q @ k.mT / root).masked_fill(future, -math.inf).softmax(-1)
    out = (weights @ v).reshape(items, tokens, hidden)  # <-
    return out, weights.flatten(0, 1)
""",
    ),
    "what a sibling has": (
        "self_attention.forward",
        """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q, self.k = nn.Linear(input_size, hidden), nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden ** 1/2  # <-

    def forward(self, x):
        q = x @ self.q.weight.T + self.q.bias
        k = x @ self.k.weight.T  # <-
        return (q @ k.mT / self.root).softmax(-1) @ self.v(x)
""",
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_each_of_two_has_its_line(what):
    task, source = PAIRS[what]
    found = first(task, source)
    one, other = marked(source)
    assert "Two things are wrong" in found.message
    assert f"Line {one}: " in found.message and f"Line {other}: " in found.message


@pytest.mark.parametrize("what", SLIPS)
def test_it_has_its_line(what):
    task, source = SLIPS[what]
    found = first(task, source)
    assert [found.where.first_wrong] == marked(source)
    assert "Two things" not in found.message


STOPS_BEFORE_IT_HIDES = """
def alibi_attention(q, k, v, slopes):
    at = torch.arange(q.shape[2])
    apart = at[:, None] - at
    table = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    table = table - slopes[:, None, None] * apart
    table = v.masked_fill(apart < 0, -math.inf)  # <-
    return table.softmax(-1) @ v
"""


def test_what_did_not_run_is_not_called_missing():
    found = first("variants.alibi", STOPS_BEFORE_IT_HIDES)
    assert [found.where.first_wrong] == marked(STOPS_BEFORE_IT_HIDES)
    assert "hidden" not in found.message and "goes wrong before" not in found.message


NEVER_ADDED_TO = """
def online_softmax(scores, block):
    most = torch.full_like(scores[:, 0], -math.inf)
    total = torch.zeros_like(most)
    for part in scores.split(block, dim=1):
        most = torch.maximum(most, part.amax(dim=1))
    return most, total
"""


def test_a_start_that_nothing_changes_is_not_blamed():
    found = first("fast.online", NEVER_ADDED_TO)
    assert found.where is None or found.where.first_wrong > 3


TURNS = """
def rotate(x, positions, base):
    half = x.shape[-1] // 2
    angle = positions.double()[:, None] * base ** (2 / x.shape[-1])
    turn = torch.polar(torch.ones_like(angle), angle)
    z = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
    return torch.cat((z.real, z.imag), -1).to(x.dtype)
"""


def test_behind_complex_numbers_no_line_is_blamed_for_them():
    found = first("variants.rope", TURNS)
    assert found.where is None or found.where.first_wrong == 3


NOT_REACHED = """
def final_log_prob(model, input_ids):
    with torch.no_grad():
        before = model(input_ids).logits[:, -2]
    total = before.logsumexp(dim=-1)
    return before[torch.arange(len(input_ids)), input_ids] - total  # <-
"""


def test_of_what_nothing_is_made_nothing_is_told():
    found = first("causal.clean", NOT_REACHED)
    assert found.where is None or [found.where.first_wrong] == marked(NOT_REACHED)
