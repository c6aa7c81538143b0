"""One slip each, in the shapes of public code: nanoGPT's, d2l's, ARENA's, books', and chains."""

from tests.tracing.fresh.program import Group

ADD = Group()
add, change = ADD.add, ADD.change

# --- lesson 01 -----------------------------------------------------------------------------------
add(
    "the state is handed on before its tanh",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    drive = F.linear(x, w_input.T, bias)
    seen, h = [], drive.new_zeros(drive.shape[1])
    for row in drive:
        h = row + h @ w_hidden  # <-
        seen.append(h.tanh())  # <-
    return torch.vstack(seen)
""",
    "tanh",
)
add(
    "the diagonal wiped in place",
    "simple.context",
    """
def context_vectors(inputs):
    table = inputs.mm(inputs.t())
    probs = F.softmax(table, 1)
    probs.fill_diagonal_(0.0)  # <-
    return probs.mm(inputs)
""",
    "itself|diagonal|zeros|sum to 1",
)
add(
    "einsum's last letters exchanged",
    "simple.matmul",
    """
def simple_attention(x):
    w = torch.softmax(torch.einsum("btc,bsc->bts", x, x), dim=-1)
    return torch.einsum("bst,bsc->btc", w, x)  # <-
""",
    "transposed|exchanged|over dim=1",
)
add(
    "logsumexp over the first axis",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    return (scores - torch.logsumexp(scores, dim=0, keepdim=True)).exp()  # <-
""",
    "axis|dim",
)
add(
    "a method's chain divides by the mean",
    "simple.sum_normalized",
    """
def sum_normalized(scores):
    return scores.div(scores.mean(-1, keepdim=True))  # <-
""",
    "mean",
)
# --- lesson 02 -----------------------------------------------------------------------------------
add(
    "times the root in one line",
    "one_head.scale",
    """
def attention_weights(q, k):
    return F.softmax(q @ k.T * k.shape[-1] ** 0.5, -1)  # <-
""",
    "multiplied",
)
add(
    "the library's scale switched off",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)  # <-
""",
    "not scaled",
)
add(
    "the library told to be causal",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # <-
    return out
""",
    "causal|hidden|later|future",
)
D2L = """
class DotProduct(nn.Module):
    def forward(self, queries, keys, values):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        self.attention_weights = nn.functional.softmax(scores, dim=-1)
        return torch.bmm(self.attention_weights, values)


class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.attend = DotProduct()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        return self.attend(self.q(x), self.k(x), self.v(x))
"""
change(
    "the second size for the last, in a module of its own",
    "one_head.forward",
    D2L,
    ("        d = queries.shape[-1]\n", "        d = queries.shape[1]  # <-\n"),
    ("keys.transpose(1, 2)) / math.sqrt(d)\n", "keys.transpose(1, 2)) / math.sqrt(d)  # <-\n"),
    causes=("seq_len|tokens|another|too (small|large)",),
)
change(
    "handed over in another order than they are taken",
    "one_head.forward",
    D2L,
    (
        "        return self.attend(self.q(x), self.k(x), self.v(x))\n",
        "        return self.attend(self.k(x), self.q(x), self.v(x))  # <-\n",
    ),
    causes=("swapped|changed places|exchanged|taken where",),
)
add(
    "einsum over the parameters' wrong side",
    "one_head.parameters",
    """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        for name in ("w_query", "w_key", "w_value"):
            fresh = torch.randn(input_size, hidden) / input_size ** 0.5
            self.register_parameter(name, nn.Parameter(fresh))

    def forward(self, x):
        q, k, v = (torch.einsum("ni,ih->nh", x, w)
                   for w in (self.w_query, self.w_key, self.w_value))
        att = torch.einsum("ih,jh->ij", q, k) / k.size(1) ** 0.5
        att = att.softmax(0)  # <-
        return torch.einsum("ij,jh->ih", att, v)
""",
    "quer|dim|column|do not sum",
)
# --- lesson 03 -----------------------------------------------------------------------------------
add(
    "a softmax to renormalise with",
    "masks.renormalise",
    """
def mask_weights(scores):
    n = scores.size(-1)
    simple = torch.tril(torch.ones(n, n))
    masked_simple = torch.softmax(scores, dim=-1) * simple
    return torch.softmax(masked_simple, dim=-1)  # <-
""",
    "softmax|renormalis|divide|twice|normalis",
)
add(
    "minus infinity on the other side",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.size(-1)
    bias = torch.full((n, n), -math.inf).triu(1)
    return (scores + bias.T).softmax(-1)  # <-
""",
    "wrong way|past|other places|hidden",
)
add(
    "the real tokens hidden by their lengths",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    b, n, _ = scores.shape
    keep = torch.arange(n).expand(b, n) < lengths.unsqueeze(1)
    att = scores.masked_fill(keep.unsqueeze(1), float("-inf"))  # <-
    return torch.nan_to_num(F.softmax(att, dim=-1))
""",
    "real tokens|inverted|kept|too many|other places|NaN",
)
BOOK = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.k(x)
        queries = self.q(x)
        values = self.v(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(
            self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.drop(attn_weights)
        context_vec = attn_weights @ values
        return context_vec
"""
change(
    "the book's head over the queries",
    "masks.attention",
    BOOK,
    (
        "        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)\n",
        "        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=1)  # <-\n",
    ),
    causes=("quer|dim|do not sum",),
)
change(
    "the book's head without the underscore",
    "masks.attention",
    BOOK,
    ("        attn_scores.masked_fill_(\n", "        attn_scores.masked_fill(  # <-\n"),
    causes=("thrown away|new tensor|nothing is hidden|Nothing is hidden",),
)
change(
    "the book's head scaled by what goes in",
    "masks.attention",
    BOOK,
    ("keys.shape[-1] ** 0.5, dim=-1)\n", "d_in ** 0.5, dim=-1)  # <-\n"),
    causes=("input_size",),
)
# --- lesson 04 -----------------------------------------------------------------------------------
add(
    "the heads written at every so many features",
    "heads.merge",
    """
def merge_heads(t):
    b, h, n, d = t.shape
    out = t.new_empty(b, n, h * d)
    for head in range(h):
        out[:, :, head::h] = t[:, head]  # <-
    return out
""",
    "interleav|places|every",
)
add(
    "the number of heads under the root",
    "heads.scores",
    """
def head_scores(q, k):
    _, n_head, _, d_head = k.shape
    return torch.einsum("bhqd,bhkd->bhqk", q, k).div_(n_head ** 0.5)  # <-
""",
    "num_heads|another|too (small|large)",
)
TRANSPOSED = """
def transpose_qkv(X, num_heads):
    X = X.reshape(X.shape[0], X.shape[1], num_heads, -1)
    X = X.permute(0, 2, 1, 3)
    return X.reshape(-1, X.shape[2], X.shape[3])

def transpose_output(X, num_heads):
    X = X.reshape(-1, num_heads, X.shape[1], X.shape[2])
    X = X.permute(0, 2, 1, 3)
    return X.reshape(X.shape[0], X.shape[1], -1)

def attend(q, k, v, num_heads):
    queries, keys, values = (transpose_qkv(t, num_heads) for t in (q, k, v))
    scores = torch.bmm(queries, keys.mT) / math.sqrt(queries.shape[-1])
    ahead = torch.arange(q.shape[1])[:, None] < torch.arange(q.shape[1])
    probs = F.softmax(scores.masked_fill(ahead, -1e6), dim=-1)
    return transpose_output(torch.bmm(probs, values), num_heads), probs
"""
change(
    "batch and heads the wrong way round on the way back",
    "heads.attend",
    TRANSPOSED,
    (
        "    X = X.reshape(-1, num_heads, X.shape[1], X.shape[2])\n",
        "    X = X.reshape(num_heads, -1, X.shape[1], X.shape[2]).transpose(0, 1)  # <-\n",
    ),
    causes=("merge|places|head|order|axes",),
)
change(
    "the queries beside themselves",
    "heads.attend",
    TRANSPOSED,
    (
        "    scores = torch.bmm(queries, keys.mT) / math.sqrt(queries.shape[-1])\n",
        "    scores = torch.bmm(queries, queries.mT) / math.sqrt(queries.shape[-1])  # <-\n",
    ),
    causes=("quer",),
)
# --- lesson 05 -----------------------------------------------------------------------------------
NANO = """
class MultiHeadSelfAttention(nn.Module):

    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        assert hidden % num_heads == 0
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.mix = nn.Linear(hidden, hidden)
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head, self.n_embd, self.causal = num_heads, hidden, causal

    def forward(self, x, return_attention=False):
        B, T, _ = x.size()
        C = self.n_embd
        k = self.k(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.q(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.v(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            bias = torch.tril(torch.ones(T, T)).view(1, 1, T, T)
            att = att.masked_fill(bias[:, :, :T, :T] == 0, float('-inf'))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        y = self.mix(y)
        return (y, att.view(-1, T, T)) if return_attention else y
"""
change(
    "the last size but one under the root",
    "multi_head.scores",
    NANO,
    ("(1.0 / math.sqrt(k.size(-1)))\n", "(1.0 / math.sqrt(k.size(-2)))  # <-\n"),
    causes=("seq_len|another|too (small|large)",),
)
change(
    "tokens and features exchanged before the view",
    "multi_head.output",
    NANO,
    (
        "        y = y.transpose(1, 2).contiguous().view(B, T, C)\n",
        "        y = y.transpose(2, 3).contiguous().view(B, T, C)  # <-\n",
    ),
    causes=("merge|places|reshape|axes",),
)
change(
    "what may be seen is filled",
    "multi_head.mask",
    NANO,
    (
        "            att = att.masked_fill(bias[:, :, :T, :T] == 0, float('-inf'))\n",
        "            att = att.masked_fill(bias[:, :, :T, :T] == 1, float('-inf'))  # <-\n",
    ),
    causes=("wrong way|past|invert",),
)
ARENA = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(dropout)
        self.cfg = dict(n_heads=num_heads, d_head=hidden // num_heads, causal=causal)

    def apply_causal_mask(self, attn_scores):
        all_ones = torch.ones(attn_scores.size(-2), attn_scores.size(-1))
        mask = torch.triu(all_ones, diagonal=1).bool()
        attn_scores.masked_fill_(mask, -1e5)
        return attn_scores

    def W(self, layer):
        return layer.weight.view(self.cfg["n_heads"], self.cfg["d_head"], -1)

    def b(self, layer):
        return layer.bias.view(self.cfg["n_heads"], self.cfg["d_head"])

    def forward(self, normalized_resid_pre, return_attention=False):
        r = normalized_resid_pre
        q = torch.einsum("bpm,nhm->bpnh", r, self.W(self.q)) + self.b(self.q)
        k = torch.einsum("bpm,nhm->bpnh", r, self.W(self.k)) + self.b(self.k)
        v = torch.einsum("bpm,nhm->bpnh", r, self.W(self.v)) + self.b(self.v)
        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)
        attn_scores = attn_scores / self.cfg["d_head"] ** 0.5
        if self.cfg["causal"]:
            attn_scores = self.apply_causal_mask(attn_scores)
        attn_pattern = self.drop(attn_scores.softmax(-1))
        z = torch.einsum("bknh,bnqk->bqnh", v, attn_pattern)
        W_O = self.mix.weight.view(-1, self.cfg["n_heads"], self.cfg["d_head"])
        attn_out = torch.einsum("bqnh,mnh->bqm", z, W_O) + self.mix.bias
        if return_attention:
            return attn_out, attn_pattern.flatten(0, 1)
        return attn_out
"""
change(
    "a bias forgotten beside its einsum",
    "multi_head.scores",
    ARENA,
    (
        '        q = torch.einsum("bpm,nhm->bpnh", r, self.W(self.q)) + self.b(self.q)\n',
        '        q = torch.einsum("bpm,nhm->bpnh", r, self.W(self.q))  # <-\n',
    ),
    (
        '        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)\n',
        '        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)  # <-\n',
    ),
    causes=("bias|queries",),
)
change(
    "the last einsum takes the heads by turns",
    "multi_head.output",
    ARENA,
    (
        '        W_O = self.mix.weight.view(-1, self.cfg["n_heads"], self.cfg["d_head"])\n',
        '        W_O = self.mix.weight.view(-1, self.cfg["d_head"], self.cfg["n_heads"])  # <-\n',
    ),
    (
        '        attn_out = torch.einsum("bqnh,mnh->bqm", z, W_O) + self.mix.bias\n',
        '        attn_out = torch.einsum("bqnh,mhn->bqm", z, W_O) + self.mix.bias  # <-\n',
    ),
    causes=("merge|interleav|mix|feature|places",),
)
# --- lessons 06 to 12 ----------------------------------------------------------------------------
add(
    "what was summed up is not made smaller",
    "fast.tiles",
    """
def tiled_attention(q, k, v, block):
    scale = q.size(-1) ** -0.5
    rows = []
    for q_i in q.split(block):
        m_i = torch.full((q_i.size(0), 1), -torch.inf)
        l_i, acc = torch.zeros(q_i.size(0), 1), torch.zeros(q_i.size(0), v.size(1))
        for k_j, v_j in zip(k.split(block), v.split(block)):
            s_ij = q_i @ k_j.T * scale
            m_new = torch.maximum(m_i, s_ij.amax(1, keepdim=True))
            p_ij = torch.exp(s_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_i = alpha * l_i + p_ij.sum(1, keepdim=True)
            acc = acc + p_ij @ v_j  # <-
            m_i = m_new
        rows.append(acc / l_i)
    return torch.cat(rows)
""",
    "rescaled",
)
add(
    "the new keys before the old ones",
    "fast.cache",
    """
class CachedAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in "qkv")
        self.mix, self.h = nn.Linear(hidden, hidden), num_heads

    def heads(self, t):
        return t.unflatten(-1, (self.h, -1)).swapaxes(1, 2)

    def forward(self, x, cache=None):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        if cache is not None:
            k, v = torch.cat([k, cache[0]], 2), torch.cat([v, cache[1]], 2)  # <-
        t, s = q.size(2), k.size(2)
        allowed = torch.ones(t, s, dtype=torch.bool).tril(s - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.mix(y.swapaxes(1, 2).flatten(2)), (k, v)
""",
    "order|before|places|behind|old|cache",
)
add(
    "scores of a hook, never scaled",
    "activations.scores",
    """
def masked_scores(wide, num_heads):
    q, k, _ = (t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in wide.chunk(3, dim=-1))
    raw = torch.einsum("bnqh,bnkh->bnqk", q, k)  # <-
    ahead = torch.ones(raw.shape[-2:], dtype=torch.bool).triu(1)
    return torch.where(ahead, -torch.inf, raw)  # <-
""",
    "scaled|divided|root|too large",
)
add(
    "queries viewed by group, softmax over the group",
    "variants.grouped",
    """
def grouped_attention(q, k, v):
    B, H, T, D = q.shape
    G = k.shape[1]
    att = torch.einsum("bgrtd,bgsd->bgrts", q.view(B, G, H // G, T, D), k) / D ** 0.5
    att = att.masked_fill(torch.ones(T, T).triu(1).bool(), torch.finfo(att.dtype).min)
    att = att.softmax(2)  # <-
    y = torch.einsum("bgrts,bgsd->bgrtd", att, v)
    return y.reshape(B, H, T, D)
""",
    "over|dim|sum to 1",
)
assert len(ADD.programs) == 30, len(ADD.programs)
