"""Lessons 03 to 05: masks and many heads."""

from tests.tracing.fresh.program import Group

ADD = Group()
add, change = ADD.add, ADD.change

# --- lesson 03 -----------------------------------------------------------------------------------
add(
    "a mask that adds a small number",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    T = scores.size(-1)
    bias = torch.zeros(T, T).masked_fill(torch.ones(T, T).triu(1) > 0, -1.0)  # <-
    return (scores + bias).softmax(dim=-1)  # <-
""",
    "hidden|infinity|places|enough|mask",
)
add(
    "rows and columns of the mask exchanged by arange",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    i = torch.arange(scores.shape[-1])
    allowed = i[:, None] <= i[None, :]  # <-
    s = torch.where(allowed, scores, torch.full_like(scores, -torch.inf))  # <-
    return torch.nn.functional.softmax(s, dim=-1)
""",
    "wrong way|past|places",
)
add(
    "a loop that hides one too few",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    scores = scores.clone()
    n = scores.shape[1]
    for i in range(n):
        scores[:, i, i + 2:] = -float("inf")  # <-
    return scores.softmax(-1)
""",
    "late|after it|not hidden",
)
add(
    "renormalised by the whole",
    "masks.renormalise",
    """
def mask_weights(scores):
    w = scores.softmax(-1).tril()
    return w / w.sum()  # <-
""",
    "row|own|sum",
)
add(
    "the lengths meet the queries",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    T = scores.shape[-1]
    is_pad = torch.arange(T).unsqueeze(0) >= lengths.unsqueeze(1)
    is_pad = is_pad.unsqueeze(-1).expand(-1, T, T)  # <-
    return scores.masked_fill(is_pad, -1e9).softmax(-1)  # <-
""",
    "[Rr]ow|quer|key|places",
)
add(
    "the first length for all",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    scores = scores.clone()
    for b in range(scores.shape[0]):
        scores[b, :, lengths[0]:] = float("-inf")  # <-
    return torch.softmax(scores, dim=-1)
""",
    "first|item|length|places|hidden",
)
CAUSAL = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.att_drop = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def _scores(self, q, k):
        return torch.einsum("btd,bsd->bts", q, k).mul(q.size(-1) ** -0.5)

    def _hide(self, s):
        T = s.size(-1)
        return s.masked_fill(self.tril[:T, :T] == 0, float("-inf"))

    def forward(self, x):
        q, k, v = map(lambda f: f(x), (self.q, self.k, self.v))
        att = self._hide(self._scores(q, k))
        att = self.att_drop(att.softmax(dim=-1))
        return torch.einsum("bts,bsd->btd", att, v)
"""
change(
    "helpers, the mask turned",
    "masks.attention",
    CAUSAL,
    (
        '        return s.masked_fill(self.tril[:T, :T] == 0, float("-inf"))\n',
        '        return s.masked_fill(self.tril[:T, :T].T == 0, float("-inf"))  # <-\n',
    ),
    causes=("wrong way|past",),
)
change(
    "helpers, hidden after the softmax",
    "masks.attention",
    CAUSAL,
    (
        '        return s.masked_fill(self.tril[:T, :T] == 0, float("-inf"))\n',
        "        return s * self.tril[:T, :T]  # <-\n",
    ),
    ("        att = self._hide(self._scores(q, k))\n", "        att = self._scores(q, k)\n"),
    (
        "        att = self.att_drop(att.softmax(dim=-1))\n",
        "        att = self.att_drop(self._hide(att.softmax(dim=-1)))  # <-\n",
    ),
    causes=("after",),
)
change(
    "helpers, scaled by the tokens, values of the keys",
    "masks.attention",
    CAUSAL,
    (
        '        return torch.einsum("btd,bsd->bts", q, k).mul(q.size(-1) ** -0.5)\n',
        '        return torch.einsum("btd,bsd->bts", q, k).mul(q.size(-1) ** -1)  # <-\n',
    ),
    (
        '        return torch.einsum("bts,bsd->btd", att, v)\n',
        '        return torch.einsum("bts,bsd->btd", att, k)  # <- 2\n',
    ),
    causes=("root|itself", "keys"),
)
change(
    "helpers, filled with zeros, softmax twice",
    "masks.attention",
    CAUSAL,
    (
        '        return s.masked_fill(self.tril[:T, :T] == 0, float("-inf"))\n',
        "        return s.masked_fill(self.tril[:T, :T] == 0, 0)  # <-\n",
    ),
    (
        "        att = self.att_drop(att.softmax(dim=-1))\n",
        "        att = self.att_drop(att.softmax(dim=-1).softmax(dim=-1))  # <- 2\n",
    ),
    causes=("0", "twice"),
)
add(
    "late by one, and renormalised columns",
    "masks.renormalise",
    """
def mask_weights(scores):
    probs = torch.softmax(scores, -1)
    probs = probs * torch.ones_like(probs).tril(1)  # <-
    return probs / probs.sum(-2, keepdim=True)  # <- 2
""",
    "late|after it|not hidden|future|next",
    "column|own|axis",
)
add(
    "the mask is NaN, softmax of the queries",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    M = torch.ones_like(scores).triu(diagonal=1)
    M = M * -torch.inf  # <-
    return F.softmax(scores + M, dim=-2)  # <- 2 # <-
""",
    "0 times|NaN",
    "quer|dim|over",
)

# --- lesson 04 -----------------------------------------------------------------------------------
add(
    "heads in a loop, cut in strides",
    "heads.split",
    """
def split_heads(t, num_heads):
    return torch.stack([t[:, :, h::num_heads] for h in range(num_heads)], dim=1)  # <-
""",
    "every|interleav",
)
add(
    "keys by the wrong axes",
    "heads.scores",
    """
def head_scores(q, k):
    B, H, S, D = q.shape
    out = torch.zeros(B, H, S, S)
    for b in range(B):
        for h in range(H):
            out[b, h] = q[b, h] @ k[b, 0].T / D ** 0.5  # <-
    return out
""",
    "head|k\\[b, 0\\]|item|first|index",
)
add(
    "heads joined by a comprehension in the wrong order",
    "heads.merge",
    """
def merge_heads(t):
    heads = [t[:, h] for h in reversed(range(t.shape[1]))]  # <-
    return torch.cat(heads, dim=-1)  # <-
""",
    "order|revers|other|places",
)
ATTEND = """
def attend(q, k, v, num_heads):
    B, T, C = q.shape
    hs = C // num_heads
    outs, maps = [], []
    future = torch.arange(T)[None, :] > torch.arange(T)[:, None]
    for h in range(num_heads):
        cut = slice(h * hs, (h + 1) * hs)
        qh, kh, vh = q[..., cut], k[..., cut], v[..., cut]
        att = qh @ kh.mT / hs ** 0.5
        att = att.masked_fill(future, -torch.inf)
        att = att.softmax(-1)
        maps.append(att)
        outs.append(att @ vh)
    return torch.cat(outs, dim=-1), torch.stack(maps, 1).reshape(B * num_heads, T, T)
"""
change(
    "a loop over heads, scaled by all",
    "heads.attend",
    ATTEND,
    ("att = qh @ kh.mT / hs ** 0.5\n", "att = qh @ kh.mT / C ** 0.5  # <-\n"),
    causes=("hidden|another|factor",),
)
change(
    "a loop over heads, the first head's values",
    "heads.attend",
    ATTEND,
    (
        "        qh, kh, vh = q[..., cut], k[..., cut], v[..., cut]\n",
        "        qh, kh, vh = q[..., cut], k[..., cut], v[..., :hs]  # <-\n",
    ),
    ("        outs.append(att @ vh)\n", "        outs.append(att @ vh)  # <-\n"),
    causes=("head|values|first",),
)
change(
    "a loop over heads, softmax over the queries",
    "heads.attend",
    ATTEND,
    ("        att = att.softmax(-1)\n", "        att = att.softmax(1)  # <-\n"),
    causes=("quer|over|sum",),
)
change(
    "a loop over heads, stacked the wrong way",
    "heads.attend",
    ATTEND,
    (
        "    return torch.cat(outs, dim=-1), torch.stack(maps, 1).reshape(B * num_heads, T, T)\n",
        "    return torch.cat(outs, dim=-1), torch.cat(maps, 0)  # <-\n",
    ),
    causes=("head-major|order",),
)
change(
    "a loop over heads, the present hidden, heads added",
    "heads.attend",
    ATTEND,
    (
        "    future = torch.arange(T)[None, :] > torch.arange(T)[:, None]\n",
        "    future = torch.arange(T)[None, :] >= torch.arange(T)[:, None]  # <-\n",
    ),
    (
        "        att = att.masked_fill(future, -torch.inf)\n",
        "        att = att.masked_fill(future, -1e9)  # <-\n",
    ),
    (
        "    return torch.cat(outs, dim=-1), torch.stack(maps, 1).reshape(B * num_heads, T, T)\n",
        "    return torch.stack(outs).sum(0), torch.stack(maps, 1).reshape(B * num_heads, T, T)"
        "  # <- 2\n",
    ),
    causes=("current|diagonal|too many", "added|sum"),
)
change(
    "a loop over heads, not scaled, and late",
    "heads.attend",
    ATTEND,
    (
        "    future = torch.arange(T)[None, :] > torch.arange(T)[:, None]\n",
        "    future = torch.arange(T)[None, :] > torch.arange(T)[:, None] + 1  # <-\n",
    ),
    ("        att = qh @ kh.mT / hs ** 0.5\n", "        att = qh @ kh.mT  # <-\n"),
    (
        "        att = att.masked_fill(future, -torch.inf)\n",
        "        att = att.masked_fill(future, -torch.inf)  # <- 2 # <-\n",
    ),
    causes=("not scaled", "late|next"),
)
add(
    "einops by hand, merged interleaved",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    def rearrange(t):
        return t.unflatten(2, (num_heads, -1)).permute(0, 2, 1, 3)
    q, k, v = rearrange(q), rearrange(k), rearrange(v)
    sim = torch.einsum('b h i d, b h j d -> b h i j', q, k) * q.shape[-1] ** -0.5
    i, j = sim.shape[-2:]
    causal_mask = torch.ones((i, j), dtype=torch.bool).triu(j - i + 1)
    sim = sim.masked_fill(causal_mask, -torch.finfo(sim.dtype).max)
    attn = sim.softmax(dim=-1)
    out = torch.einsum('b h i j, b h j d -> b i d h', attn, v)  # <-
    return out.flatten(2), attn.flatten(0, 1)  # <-
""",
    "merge|interleav|places|feature by feature",
)
add(
    "softmax in place of the scores, weights transposed",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, c = q.shape
    split = lambda t: t.reshape(b, n, num_heads, c // num_heads).swapaxes(1, 2)
    q, k, v = split(q), split(k), split(v)
    w = q @ k.swapaxes(2, 3)
    w /= math.sqrt(q.size(3))
    w.masked_fill_(torch.ones(n, n, dtype=torch.bool).triu_(1), -math.inf)
    w = w.softmax(3)
    y = w.swapaxes(2, 3) @ v  # <-
    return y.swapaxes(1, 2).reshape(b, n, c), w.reshape(-1, n, n)
""",
    "transposed|exchanged|axes|turn",
)

# --- lesson 05 -----------------------------------------------------------------------------------
NANO = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        assert hidden % num_heads == 0
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.p = dropout
        self.h, self.d, self.causal = num_heads, hidden // num_heads, causal

    def separate_heads(self, t):
        new_shape = t.shape[:2] + (self.h, self.d)
        return t.reshape(new_shape).permute(0, 2, 1, 3)

    def attention(self, Q, K, V):
        E = Q.matmul(K.transpose(2, 3)) / self.d ** 0.5
        if self.causal:
            L = E.shape[-1]
            M = torch.full((L, L), float("-inf")).triu(diagonal=1)
            E = E + M
        A = torch.exp(E - E.amax(-1, keepdim=True))
        A = A / A.sum(-1, keepdim=True)
        A = F.dropout(A, self.p, self.training)
        return A.matmul(V), A

    def forward(self, x, return_attention=False):
        Q = self.separate_heads(self.q(x))
        K = self.separate_heads(self.k(x))
        V = self.separate_heads(self.v(x))
        Z, A = self.attention(Q, K, V)
        Z = Z.permute(0, 2, 1, 3).flatten(2)
        Y = self.mix(Z)
        return (Y, A.reshape(-1, *A.shape[2:])) if return_attention else Y
"""


def nano(what, task, *changes, causes):
    change(what, f"multi_head.{task}", NANO, *changes, causes=causes)


nano(
    "reshape without moving the heads",
    "scores",
    (
        "        new_shape = t.shape[:2] + (self.h, self.d)\n"
        "        return t.reshape(new_shape).permute(0, 2, 1, 3)\n",
        "        return t.reshape(t.shape[0], self.h, t.shape[1], self.d)  # <-\n",
    ),
    causes=("reshape|mix|scrambl",),
)
nano(
    "the keys of the values' layer",
    "scores",
    (
        "        K = self.separate_heads(self.k(x))\n",
        "        K = self.separate_heads(self.v(x))  # <-\n",
    ),
    causes=("values",),
)
nano(
    "the scale of num_heads",
    "scores",
    ("/ self.d ** 0.5\n", "/ self.h ** 0.5  # <-\n"),
    causes=("num_heads|another number|factor",),
)
nano(
    "the mask as ones added",
    "mask",
    (
        '            M = torch.full((L, L), float("-inf")).triu(diagonal=1)\n'
        "            E = E + M\n",
        "            M = torch.ones(L, L).triu(diagonal=1)\n            E = E - M  # <-\n",
    ),
    causes=("hidden|infinity|places",),
)
nano(
    "sums over the queries, by hand",
    "output",
    (
        "        A = A / A.sum(-1, keepdim=True)\n",
        "        A = A / A.sum(-2, keepdim=True)  # <-\n",
    ),
    causes=("quer|sum|over",),
)
nano(
    "the mix before the heads are merged",
    "output",
    (
        "        Z = Z.permute(0, 2, 1, 3).flatten(2)\n",
        "        Z = Z.permute(0, 2, 3, 1).flatten(2)  # <-\n",
    ),
    causes=("merge|places|feature",),
)
nano(
    "the mix by its weight",
    "output",
    ("        Y = self.mix(Z)\n", "        Y = Z @ self.mix.weight + self.mix.bias  # <-\n"),
    causes=("wrong way|transposed",),
)
nano(
    "the values from the queries",
    "output",
    (
        "        V = self.separate_heads(self.v(x))\n",
        "        V = self.separate_heads(self.q(x))  # <-\n",
    ),
    causes=("queries",),
)
nano(
    "divided by the size, and no mix",
    "output",
    ("/ self.d ** 0.5\n", "/ self.d  # <-\n"),
    ("        Y = self.mix(Z)\n", "        Y = Z  # <- 2\n"),
    (
        "        return (Y, A.reshape(-1, *A.shape[2:])) if return_attention else Y\n",
        "        return (Y, A.reshape(-1, *A.shape[2:])) if return_attention else Y  # <- 2\n",
    ),
    causes=("root|itself", "mix"),
)
nano(
    "interleaved heads, softmax over the queries",
    "output",
    (
        "        new_shape = t.shape[:2] + (self.h, self.d)\n"
        "        return t.reshape(new_shape).permute(0, 2, 1, 3)\n",
        "        new_shape = t.shape[:2] + (self.d, self.h)\n"
        "        return t.reshape(new_shape).permute(0, 3, 1, 2)  # <-\n",
    ),
    (
        "        A = A / A.sum(-1, keepdim=True)\n",
        "        A = A / A.sum(-2, keepdim=True)  # <- 2\n",
    ),
    causes=("every|interleav|places", "quer|sum|over"),
)
nano(
    "scaled by hidden, and the mask late",
    "mask",
    ("/ self.d ** 0.5\n", "/ (self.h * self.d) ** 0.5  # <-\n"),
    (
        '            M = torch.full((L, L), float("-inf")).triu(diagonal=1)\n'
        "            E = E + M\n",
        '            M = torch.full((L, L), float("-inf")).triu(diagonal=2)\n'
        "            E = E + M  # <- 2\n",
    ),
    causes=("hidden", "late|next"),
)
nano(
    "keys from the queries, heads averaged",
    "output",
    (
        "        K = self.separate_heads(self.k(x))\n",
        "        K = self.separate_heads(self.q(x))  # <-\n",
    ),
    (
        "        Z = Z.permute(0, 2, 1, 3).flatten(2)\n",
        "        Z = Z.mean(1).repeat(1, 1, self.h)  # <- 2\n",
    ),
    causes=("queries", "averag"),
)
nano(
    "mixed twice, and the biases lost",
    "output",
    (
        "        Q = self.separate_heads(self.q(x))\n",
        "        Q = self.separate_heads(x @ self.q.weight.T)  # <-\n",
    ),
    (
        "        K = self.separate_heads(self.k(x))\n",
        "        K = self.separate_heads(x @ self.k.weight.T)\n",
    ),
    (
        "        V = self.separate_heads(self.v(x))\n",
        "        V = self.separate_heads(x @ self.v.weight.T)\n",
    ),
    ("        Y = self.mix(Z)\n", "        Y = self.mix(self.mix(Z))  # <- 2\n"),
    causes=("bias", "twice"),
)
add(
    "a loop over the items with numpy's names",
    "self_attention.forward",
    """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super(SelfAttention, self).__init__()
        self.q, self.k, self.v = [nn.Linear(input_size, hidden) for i in range(3)]
        self.dk = hidden

    def forward(self, X):
        Y = torch.empty(X.shape[0], X.shape[1], self.dk)
        for n, Xn in enumerate(X):
            Qn, Kn, Vn = self.q(Xn), self.k(Xn), self.v(X[0])  # <-
            Sn = np_dot(Qn, Kn.T) / np_sqrt(self.dk)
            Pn = torch.softmax(Sn, axis=1)
            Y[n] = np_dot(Pn, Vn)  # <-
        return Y

def np_dot(a, b):
    return torch.matmul(a, b)

def np_sqrt(a):
    return a ** 0.5
""",
    "item|first|other|index|values",
)
