"""Wrong programs in many styles, and where they go wrong.

`# <-` stands on the line that is wrong (on two, where the slip lies between them), `# <- 2` on the
line of a second mistake. cause: what has to be said of it, as a pattern; of a pair one for each.
They were written in one go and split in two by turns before anything was looked at: TUNED was
looked at while the rules were written, HELD_OUT was only counted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A wrong answer to a task."""

    what: str
    task: str
    source: str
    causes: tuple[str, ...]

    @property
    def text(self) -> str:
        """What a student would have written."""
        lines = self.source.strip("\n").split("\n")
        return "\n".join(line.partition("  # <-")[0] for line in lines) + "\n"

    def lines(self, mark: str = "# <-") -> set[int]:
        numbered = enumerate(self.source.strip("\n").split("\n"), 1)
        return {number for number, line in numbered if line.rstrip().endswith(mark)}


PROGRAMS: list[Program] = []


def add(what: str, task: str, source: str, *causes: str) -> None:
    PROGRAMS.append(Program(what, task, source, causes))


# --- lesson 01 ------------------------------------------------------------------------------------
add(
    "columns sum to one",
    "simple.context",
    """
def context_vectors(inputs):
    scores = inputs @ inputs.T
    weights = torch.softmax(scores, dim=0)  # <-
    return weights @ inputs
""",
    "dim|axis|over",
)
add(
    "no softmax, in a loop",
    "simple.context",
    """
def context_vectors(inputs):
    out = []
    for query in inputs:
        scores = inputs @ query
        out.append(scores @ inputs)  # <-
    return torch.stack(out)
""",
    "raw|softmax",
)
add(
    "softmax twice, einsum",
    "simple.matmul",
    """
def simple_attention(x):
    s = torch.einsum("bqd,bkd->bqk", x, x)
    w = torch.softmax(s, -1)
    w = torch.softmax(w, -1)  # <-
    return torch.einsum("bqk,bkd->bqd", w, x)
""",
    "twice",
)
add(
    "scaled too early",
    "simple.matmul",
    """
def simple_attention(x):
    keys = x.transpose(1, 2)
    scores = torch.bmm(x, keys)
    scores = scores / x.size(-1) ** 0.5  # <-
    weights = F.softmax(scores, dim=2)
    return torch.bmm(weights, x)
""",
    "scaled",
)
add(
    "divided by the sum",
    "simple.matmul",
    """
def simple_attention(x):
    scores = x @ x.transpose(-2, -1)
    weights = scores / scores.sum(dim=-1, keepdim=True)  # <-
    return weights @ x
""",
    "sum|softmax",
)
add(
    "weights transposed",
    "simple.context",
    """
def context_vectors(inputs):
    scores = torch.mm(inputs, inputs.t())
    weights = scores.softmax(dim=1)
    return weights.T @ inputs  # <-
""",
    "transpos|axis|dim",
)
add(
    "keepdim forgotten",
    "simple.softmax_naive",
    """
def softmax_naive(scores):
    powers = scores.exp()
    total = powers.sum(dim=-1)  # <-
    return powers / total  # <-
""",
    "axis|sum|shape|keepdim|must match|size",
)
add(
    "max is a pair",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    top = scores.max(dim=-1, keepdim=True)  # <-
    powers = torch.exp(scores - top)  # <-
    return powers / powers.sum(dim=-1, keepdim=True)
""",
    "pair",
)
add(
    "one maximum for all",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    shifted = scores - scores.max()  # <-
    powers = torch.exp(shifted)  # <-
    return powers / powers.sum(dim=-1, keepdim=True)  # <-
""",
    "maximum",
)
add(
    "scaled, and softmax over the queries",
    "simple.matmul",
    """
def simple_attention(x):
    scores = x @ x.transpose(1, 2)
    scores = scores / math.sqrt(x.shape[-1])  # <-
    weights = torch.softmax(scores, dim=1)  # <- 2
    return weights @ x
""",
    "scaled",
    "dim|over",
)

# --- lesson 02 ------------------------------------------------------------------------------------
add(
    "divided by hidden",
    "one_head.scale",
    """
def attention_weights(q, k):
    hidden = k.shape[-1]
    scores = torch.matmul(q, k.T)
    return torch.softmax(scores / hidden, dim=-1)  # <-
""",
    "root|itself",
)
add(
    "not scaled",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = q @ k.T  # <-
    return scores.softmax(dim=-1)  # <-
""",
    "not scaled",
)
add(
    "half of it for the root",
    "one_head.scale",
    """
def attention_weights(q, k):
    d = q.size(1)
    scores = q.matmul(k.t()) / d ** 1/2  # <-
    return F.softmax(scores, dim=1)
""",
    "half|before",
)
add(
    "a number for the size",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = (q @ k.transpose(0, 1)) / 8 ** 0.5  # <-
    w = torch.exp(scores)
    return w / w.sum(-1, keepdim=True)
""",
    "factor|multiplied|scale",
)
add(
    "keys and queries exchanged",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = k @ q.T  # <-
    scores = scores / k.shape[1] ** 0.5
    return torch.softmax(scores, dim=-1)
""",
    "swapped|exchanged",
)
add(
    "the minus sign",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = -(q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5  # <-
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
""",
    "sign|-1",
)
add(
    "keys reshaped",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    b, n, d = k.shape
    kt = k.reshape(b, d, n)  # <-
    scores = torch.bmm(q, kt) / math.sqrt(d)
    return torch.bmm(scores.softmax(2), v)
""",
    "reshape|places|mix",
)
add(
    "softmax over the batch",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scale = q.shape[-1] ** -0.5
    weights = F.softmax(torch.einsum("bid,bjd->bij", q * scale, k), dim=0)  # <-
    return torch.einsum("bij,bjd->bid", weights, v)
""",
    "batch|axis 0|dim",
)
add(
    "transposed without a thought of the batch",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = q @ k.transpose(0, 1) / k.shape[-1] ** 0.5  # <-
    return scores.softmax(-1) @ v
""",
    "left|batch|exchanged",
)
add(
    "values made with the keys' layer",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        queries = self.q(x)
        keys = self.k(x)
        values = self.k(x)  # <-
        scores = queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
""",
    "keys",
)
add(
    "biases left out",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.hidden = hidden

    def forward(self, x):
        q = x @ self.q.weight.T  # <-
        k = x @ self.k.weight.T
        v = x @ self.v.weight.T
        s = q @ k.mT / math.sqrt(self.hidden)
        return s.softmax(-1) @ v
""",
    "bias",
)
add(
    "the root of input_size",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = input_size ** 0.5  # <-

    def forward(self, x):
        scores = torch.matmul(self.q(x), self.k(x).transpose(-1, -2)) / self.scale  # <-
        probs = nn.functional.softmax(scores, dim=-1)
        return torch.matmul(probs, self.v(x))
""",
    "input_size",
)
add(
    "q overwritten",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        x = self.q(x)
        k = self.k(x)  # <-
        v = self.v(x)
        return torch.softmax(x @ k.mT / k.shape[-1] ** 0.5, -1) @ v
""",
    "overwritten in line 9",
)
add(
    "nothing returned",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    context = weights @ v  # <-
""",
    "return context",
)
add(
    "a variable of the notebook",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = q @ k.T
    scores = scores / d_k ** 0.5  # <-
    return scores.softmax(-1)
""",
    "notebook",
)
add(
    "divided by hidden, and softmax over the queries",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = q @ k.transpose(1, 2)
    scores = scores / q.shape[-1]  # <-
    weights = scores.softmax(dim=1)  # <- 2
    return weights @ v
""",
    "root|itself",
    "over|dim",
)
add(
    "not scaled, softmax twice",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2))  # <-
    weights = F.softmax(F.softmax(scores, -1), -1)  # <- 2 # <-
    return torch.bmm(weights, v)
""",
    "not scaled",
    "twice",
)
add(
    "exchanged, and divided by hidden",
    "one_head.scale",
    """
def attention_weights(q, k):
    d = q.shape[-1]
    scores = q @ k.T / d  # <-
    weights = torch.softmax(scores, dim=0)  # <- 2
    return weights
""",
    "root|itself",
    "over|dim|swapped",
)
add(
    "scaled by seq_len, softmax over queries",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        logits = q @ k.transpose(1, 2) / x.shape[1] ** 0.5  # <-
        attn = torch.softmax(logits, dim=1)  # <- 2
        out = attn @ v
        return out
""",
    "seq_len",
    "over|dim",
)
add(
    "keys from queries, not scaled",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        query, key, value = self.q(x), self.q(x), self.v(x)  # <-
        score = query @ key.transpose(1, 2)  # <-
        weight = torch.softmax(score, dim=-1)  # <- 2
        return weight @ value
""",
    "queries",
    "not scaled",
)

# --- lesson 03 ------------------------------------------------------------------------------------
add(
    "the diagonal hidden too",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    mask = torch.triu(torch.ones(n, n)).bool()  # <-
    scores = scores.masked_fill(mask, -torch.inf)  # <-
    return torch.softmax(scores, dim=-1)
""",
    "current token|diagonal",
)
add(
    "thrown away",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.size(-1)
    future = torch.ones(n, n).triu(1) == 1
    scores.masked_fill(future, float("-inf"))  # <-
    return scores.softmax(-1)
""",
    "new tensor|result",
)
add(
    "upside down",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    seq_len = scores.shape[-1]
    keep = torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))  # <-
    masked = scores.masked_fill(keep, float("-inf"))  # <-
    return F.softmax(masked, dim=-1)
""",
    "wrong way",
)
add(
    "hidden scores are zero",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    allowed = torch.tril(torch.ones(n, n))
    scores = scores * allowed  # <-
    return torch.softmax(scores, dim=-1)
""",
    "0",
)
add(
    "mask after the softmax",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    weights = scores.softmax(dim=-1)  # <-
    n = weights.shape[-1]
    return weights * torch.tril(torch.ones(n, n))  # <-
""",
    "after",
)
add(
    "zero times infinity",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    mask = torch.triu(torch.ones(n, n), diagonal=1)
    scores = scores + mask * float("-inf")  # <-
    return scores.softmax(-1)
""",
    "0 times",
)
add(
    "not renormalised",
    "masks.renormalise",
    """
def mask_weights(scores):
    weights = torch.softmax(scores, dim=-1)
    weights = torch.tril(weights)
    return weights  # <-
""",
    "sum to 1|returned",
)
add(
    "columns renormalised",
    "masks.renormalise",
    """
def mask_weights(scores):
    p = F.softmax(scores, -1)
    p = p * torch.ones_like(p).tril()
    return p / p.sum(dim=1, keepdim=True)  # <-
""",
    "column|own",
)
add(
    "rows of the padding",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    n = scores.shape[-1]
    pad = torch.arange(n)[None, :] >= lengths[:, None]
    scores = scores.masked_fill(pad[:, :, None], float("-inf"))  # <-
    return scores.softmax(-1)
""",
    "[Rr]ows|NaN",
)
add(
    "one too many is hidden",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    b, n, _ = scores.shape
    mask = torch.zeros(b, n, n, dtype=torch.bool)
    for i in range(b):
        mask[i, :, lengths[i] - 1:] = True  # <-
    scores = torch.where(mask, torch.tensor(float("-inf")), scores)  # <-
    return torch.softmax(scores, dim=-1)
""",
    "last real|hidden",
)
add(
    "one step late, softmax over queries",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    future = torch.ones(n, n).triu(2).bool()  # <-
    hidden = scores.masked_fill(future, -1e9)  # <-
    return torch.softmax(hidden, dim=-2)  # <- 2
""",
    "late|after it",
    "quer",
)
add(
    "filled with 0, softmax twice",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    future = torch.triu(torch.ones(n, n), 1).bool()
    out = scores.masked_fill(future, 0.0)  # <-
    out = out.softmax(-1)
    return out.softmax(-1)  # <- 2
""",
    "0",
    "twice",
)
add(
    "not scaled under a mask",
    "masks.attention",
    """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("mask", future)

    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.transpose(1, 2)  # <-
        scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))  # <-
        weights = torch.softmax(scores, dim=-1)  # <-
        return self.drop(weights) @ v
""",
    "not scaled",
)
add(
    "mask upside down, divided by hidden",
    "masks.attention",
    """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        past = torch.ones(context_length, context_length).tril().bool()
        self.register_buffer("mask", past)
        self.hidden = hidden

    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.transpose(1, 2)
        scores = scores / self.hidden  # <-
        scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))  # <- 2
        weights = self.drop(torch.softmax(scores, dim=-1))
        return weights @ v
""",
    "root|itself",
    "wrong way",
)

# --- lesson 04 ------------------------------------------------------------------------------------
ATTEND = """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    d = h // num_heads
    q = q.view(b, n, num_heads, d).transpose(1, 2)
    k = k.view(b, n, num_heads, d).transpose(1, 2)
    v = v.view(b, n, num_heads, d).transpose(1, 2)
    scores = q @ k.transpose(-2, -1) / d ** 0.5
    mask = torch.ones(n, n).triu(1).bool()
    scores = scores.masked_fill(mask, float("-inf"))
    probs = torch.softmax(scores, dim=-1)
    context = probs @ v
    out = context.transpose(1, 2).reshape(b, n, h)
    return out, probs.reshape(b * num_heads, n, n)
"""


def attend(what: str, *changes: tuple[str, str], causes: tuple[str, ...]) -> None:
    source = ATTEND
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    add(what, "heads.attend", source, *causes)


SCORES = "    scores = q @ k.transpose(-2, -1) / d ** 0.5\n"
SOFTMAX = "    probs = torch.softmax(scores, dim=-1)\n"
MERGE = "    out = context.transpose(1, 2).reshape(b, n, h)\n"
HIDE = '    scores = scores.masked_fill(mask, float("-inf"))\n'
LATE = "    mask = torch.ones(n, n).triu(1).bool()\n"
SPLIT_Q = "    q = q.view(b, n, num_heads, d).transpose(1, 2)\n"
SPLIT_K = "    k = k.view(b, n, num_heads, d).transpose(1, 2)\n"
SPLIT_V = "    v = v.view(b, n, num_heads, d).transpose(1, 2)\n"
attend(
    "scrambled split",
    *(
        (s, f"    {x} = {x}.view(b, num_heads, n, d){'  # <-' * (x == 'q')}\n")
        for x, s in zip("qkv", (SPLIT_Q, SPLIT_K, SPLIT_V), strict=True)
    ),
    causes=("reshape|mix",),
)
attend(
    "scrambled merge",
    (MERGE, "    out = context.reshape(b, n, h)  # <-\n"),
    causes=("merge|places",),
)
attend(
    "scaled by hidden",
    (SCORES, SCORES.replace("d ** 0.5\n", "h ** 0.5  # <-\n")),
    causes=("hidden",),
)
attend("softmax over heads", (SOFTMAX, SOFTMAX.replace("-1)\n", "1)  # <-\n")), causes=("heads",))
attend(
    "mask forgotten",
    (LATE, ""),
    (HIDE, ""),
    (SOFTMAX, SOFTMAX.replace("\n", "  # <-\n")),
    (SCORES, SCORES.replace("\n", "  # <-\n")),
    causes=("hidden|future",),
)
attend("heads averaged", (MERGE, "    out = context.mean(1)  # <-\n"), causes=("averag",))
attend(
    "values scrambled",
    (SPLIT_V, "    v = v.reshape(b, num_heads, n, d)  # <-\n"),
    causes=("reshape|mix|places",),
)
attend(
    "head-major probabilities",
    (
        "    return out, probs.reshape(b * num_heads, n, n)\n",
        "    probs = probs.transpose(0, 1)  # <-\n"
        "    return out, probs.reshape(b * num_heads, n, n)  # <-\n",
    ),
    causes=("head-major|order",),
)
attend(
    "not scaled, and scrambled merge",
    (SCORES, "    scores = q @ k.transpose(-2, -1)  # <-\n"),
    (SOFTMAX, SOFTMAX.replace("\n", "  # <-\n")),
    (MERGE, "    out = context.reshape(b, n, h)  # <- 2\n"),
    causes=("not scaled", "merge"),
)
attend(
    "diagonal hidden, softmax over queries",
    (LATE, "    mask = torch.ones(n, n).triu().bool()  # <-\n"),
    (HIDE, HIDE.replace("\n", "  # <-\n")),
    (SOFTMAX, SOFTMAX.replace("-1)\n", "-2)  # <- 2\n")),
    causes=("current token", "quer"),
)
attend(
    "scaled by hidden, mask one step late",
    (SCORES, SCORES.replace("d ** 0.5\n", "h ** 0.5  # <-\n")),
    (LATE, "    mask = torch.ones(n, n).triu(2).bool()\n"),
    (HIDE, HIDE.replace("\n", "  # <- 2\n")),
    causes=("hidden", "late"),
)
attend(
    "mask upside down, heads added",
    (LATE, "    mask = torch.ones(n, n).tril().bool()  # <-\n"),
    (HIDE, HIDE.replace("\n", "  # <-\n")),
    (MERGE, "    out = context.sum(1)  # <- 2\n"),
    causes=("wrong way", "added"),
)

# --- lesson 05 ------------------------------------------------------------------------------------
MULTI = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.causal = causal

    def forward(self, x, return_attention=False):
        B, T, _ = x.shape
        def heads(t):
            return t.view(B, T, self.num_heads, -1).permute(0, 2, 1, 3)
        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        att = q @ k.transpose(-2, -1)
        att = att * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            att = att.masked_fill(torch.ones(T, T).triu(1) == 1, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, -1)
        y = self.mix(y)
        if return_attention:
            return y, att.flatten(0, 1)
        return y
"""


def multi(what: str, task: str, *changes: tuple[str, str], causes: tuple[str, ...]) -> None:
    source = MULTI
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    add(what, f"multi_head.{task}", source, *causes)


TURN = "att = q @ k.transpose(-2, -1)\n"
FLAT = "F.softmax(att, dim=-1)\n"
JOIN = "y = y.transpose(1, 2).contiguous().view(B, T, -1)\n"
multi(
    "head-major heads",
    "scores",
    ("permute(0, 2, 1, 3)\n", "transpose(0, 2)\n"),
    (TURN, "att = q @ k.transpose(-2, -1)\n"),
    causes=(),
)
multi(
    "the mix is forgotten",
    "output",
    ("        y = self.mix(y)\n", ""),
    (JOIN, JOIN.replace("\n", "  # <-\n")),
    (
        "            return y, att.flatten(0, 1)\n",
        "            return y, att.flatten(0, 1)  # <-\n",
    ),
    causes=("mix",),
)
multi(
    "softmax over the queries",
    "output",
    (FLAT, "F.softmax(att, dim=-2)  # <-\n"),
    causes=("over|sum",),
)
multi(
    "merged without moving back",
    "output",
    (JOIN, "y = y.reshape(B, T, -1)  # <-\n"),
    causes=("merge|transpos|places",),
)
multi(
    "interleaved heads",
    "scores",
    (
        "t.view(B, T, self.num_heads, -1).permute(0, 2, 1, 3)\n",
        "t.view(B, T, -1, self.num_heads).permute(0, 3, 1, 2)  # <-\n",
    ),
    causes=("every|interleav|places",),
)
multi(
    "softmax twice, and mixed twice",
    "output",
    (FLAT, "F.softmax(F.softmax(att, -1), -1)  # <-\n"),
    ("y = self.mix(y)\n", "y = self.mix(self.mix(y))  # <- 2\n"),
    causes=("twice", "twice"),
)
multi(
    "sigmoid for softmax, scrambled merge",
    "output",
    (FLAT, "torch.sigmoid(att)  # <-\n"),
    (JOIN, "y = y.reshape(B, T, -1)  # <- 2\n"),
    causes=("sigmoid", "merge"),
)

PROGRAMS = [p for p in PROGRAMS if p.causes]
TUNED, HELD_OUT = PROGRAMS[::2], PROGRAMS[1::2]
