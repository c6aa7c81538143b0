"""Two slips each, on lines of their own, in the shapes that public code has."""

from tests.tracing.fresh.program import Group
from tests.tracing.fresh.singles import ARENA, BOOK, D2L, NANO, TRANSPOSED

ADD = Group()
add, change = ADD.add, ADD.change

add(
    "keys reshaped, weights flattened twice",
    "simple.matmul",
    """
def simple_attention(x):
    b, n, c = x.shape
    affinity = torch.bmm(x, x.reshape(b, c, n))  # <-
    p = affinity.softmax(2)
    return torch.bmm(p.softmax(2), x)  # <- 2
""",
    "reshape",
    "twice",
)
add(
    "scaled at random, and the result on its side",
    "simple.context",
    """
def context_vectors(inputs):
    n, d = inputs.shape
    logits = torch.einsum("id,jd->ij", inputs, inputs) / d ** 0.5  # <-
    alpha = logits.softmax(dim=-1)
    return torch.einsum("ij,jd->di", alpha, inputs)  # <- 2
""",
    "scaled",
    "transposed|axes|order",
)
add(
    "times the root, over the queries, in a chain",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = q.matmul(k.mT).mul(k.shape[-1] ** 0.5)  # <-
    return scores.softmax(1).matmul(v)  # <- 2
""",
    "multiplied",
    "quer|over|do not sum|dim",
)
change(
    "the keys for the values, the size for its root",
    "one_head.forward",
    D2L,
    ("keys.transpose(1, 2)) / math.sqrt(d)\n", "keys.transpose(1, 2)) / d  # <-\n"),
    (
        "        return torch.bmm(self.attention_weights, values)\n",
        "        return torch.bmm(self.attention_weights, keys)  # <- 2\n",
    ),
    causes=("itself|not a root|root", "keys"),
)
add(
    "a head of parameters, no scale and a sigmoid",
    "one_head.parameters",
    """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.w_query = nn.Parameter(torch.rand(input_size, hidden) / input_size ** 0.5)
        self.w_key = nn.Parameter(torch.rand(input_size, hidden) / input_size ** 0.5)
        self.w_value = nn.Parameter(torch.rand(input_size, hidden) / input_size ** 0.5)

    def similarity(self, x):
        return (x @ self.w_query) @ (x @ self.w_key).T  # <-

    def forward(self, x):
        gate = torch.sigmoid(self.similarity(x))  # <- 2 # <-
        return gate @ (x @ self.w_value)
""",
    "not scaled",
    "[Ss]igmoid|softmax",
)
add(
    "a late mask, and columns that sum to one",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    T = scores.size(-1)
    tril = torch.tril(torch.ones(T, T), diagonal=1)  # <-
    wei = scores.masked_fill(tril == 0, float("-inf"))  # <-
    wei = F.softmax(wei, dim=-2)  # <- 2
    return wei
""",
    "late|after it|not hidden|next",
    "quer|over|dim|do not sum",
)
change(
    "the book's mask thrown away, its scale too large",
    "masks.attention",
    BOOK,
    (
        "        attn_scores.masked_fill_(\n",
        "        attn_scores = attn_scores.masked_fill(  # <-\n",
    ),
    (
        "            self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)\n",
        "            self.mask.bool()[:num_tokens, :num_tokens].T, -torch.inf)\n",
    ),
    ("keys.shape[-1] ** 0.5, dim=-1)\n", "keys.shape[-1], dim=-1)  # <- 2\n"),
    causes=("wrong way|past|other places", "itself|root|factor"),
)
add(
    "a tile of ones one place off, and one sum for all",
    "masks.renormalise",
    """
def mask_weights(scores):
    att = scores.softmax(-1)
    att = att.tril(1)  # <-
    att /= att.sum()  # <- 2
    return att
""",
    "late|after it|not hidden|next|zeros",
    "one sum|over all|own|divided|normalis",
)
change(
    "heads of the values by a reshape, twice soft",
    "heads.attend",
    TRANSPOSED,
    (
        "    queries, keys, values = (transpose_qkv(t, num_heads) for t in (q, k, v))\n",
        "    queries, keys = (transpose_qkv(t, num_heads) for t in (q, k))\n"
        "    values = v.reshape(queries.shape)  # <-\n",
    ),
    (
        "    probs = F.softmax(scores.masked_fill(ahead, -1e6), dim=-1)\n",
        "    probs = F.softmax(scores.masked_fill(ahead, -1e6), dim=-1)\n"
        "    probs = F.softmax(probs, dim=-1)  # <- 2\n",
    ),
    causes=("places|scrambl|reshape", "twice"),
)
change(
    "all of the width under the root, feature by feature",
    "heads.attend",
    TRANSPOSED,
    (
        "/ math.sqrt(queries.shape[-1])\n",
        "/ math.sqrt(q.shape[-1])  # <-\n",
    ),
    (
        "    X = X.permute(0, 2, 1, 3)\n    return X.reshape(X.shape[0], X.shape[1], -1)\n",
        "    X = X.permute(0, 2, 3, 1)  # <- 2\n"
        "    return X.reshape(X.shape[0], X.shape[1], -1)  # <- 2\n",
    ),
    causes=("hidden", "merge|interleav|places|feature"),
)
change(
    "no scale, and no way back for the heads",
    "multi_head.output",
    NANO,
    (
        "        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n",
        "        att = q @ k.transpose(-2, -1)  # <-\n",
    ),
    ("        att = F.softmax(att, dim=-1)\n", "        att = F.softmax(att, dim=-1)  # <-\n"),
    (
        "        y = y.transpose(1, 2).contiguous().view(B, T, C)\n",
        "        y = y.contiguous().view(B, T, C)  # <- 2\n",
    ),
    causes=("not scaled", "merge|places|reshape"),
)
change(
    "the keys' layer once more, and nothing mixed",
    "multi_head.output",
    ARENA,
    (
        '        v = torch.einsum("bpm,nhm->bpnh", r, self.W(self.v)) + self.b(self.v)\n',
        '        v = torch.einsum("bpm,nhm->bpnh", r, self.W(self.k)) + self.b(self.k)  # <-\n',
    ),
    (
        '        attn_out = torch.einsum("bqnh,mnh->bqm", z, W_O) + self.mix.bias\n',
        "        attn_out = z.flatten(2)  # <- 2\n",
    ),
    (
        "            return attn_out, attn_pattern.flatten(0, 1)\n",
        "            return attn_out, attn_pattern.flatten(0, 1)  # <- 2\n",
    ),
    causes=("keys", "mix"),
)
change(
    "the past hidden, and scaled by all heads",
    "multi_head.mask",
    ARENA,
    (
        "        mask = torch.triu(all_ones, diagonal=1).bool()\n",
        "        mask = torch.tril(all_ones, diagonal=-1).bool()  # <- 2\n",
    ),
    (
        '        attn_scores = attn_scores / self.cfg["d_head"] ** 0.5\n',
        "        attn_scores = attn_scores / self.mix.in_features ** 0.5  # <-\n",
    ),
    causes=("hidden|factor|another", "wrong way|past|other places"),
)
add(
    "the slopes rewarded, the root left out",
    "variants.alibi",
    """
def alibi_attention(q, k, v, slopes):
    n = k.shape[-2]
    context_position = torch.arange(n)[:, None]
    memory_position = torch.arange(n)[None, :]
    relative_position = context_position - memory_position
    alibi = relative_position * slopes[:, None, None]
    sim = torch.einsum("bhid,bhjd->bhij", q, k)  # <-
    sim = sim + alibi  # <- 2 # <-
    sim = sim.masked_fill(relative_position < 0, float("-inf"))
    return torch.einsum("bhij,bhjd->bhid", sim.softmax(-1), v)
""",
    "scale",
    "sign|rewarded",
)
add(
    "two gradients, two slips",
    "backward.queries_keys",
    """
def grad_queries_keys(grad_scores, q, k):
    root = math.sqrt(k.size(-1))
    d_q = torch.einsum("...ij,...jd->...id", grad_scores, k)  # <-
    d_k = torch.einsum("...ij,...jd->...id", grad_scores, q) / root  # <- 2 # <-
    return d_q, d_k  # <- 2 # <-
""",
    "scale|factor|too large",
    "transposed|column",
)
assert len(ADD.programs) == 15, len(ADD.programs)
