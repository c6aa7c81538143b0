"""Lessons 06 to 12: attention backwards, in tiles, with a cache, turned, sloped, and in GPT-2."""

from tests.tracing.fresh.program import Group

ADD = Group()
add, change = ADD.add, ADD.change

# --- lesson 06 -----------------------------------------------------------------------------------
add(
    "forwards instead of backwards",
    "backward.values",
    """
def grad_values(probs, grad_out):
    gv = torch.einsum("...ij,...jd->...id", probs, grad_out)  # <-
    return gv
""",
    "not transposed",
)
add(
    "the row's term over the wrong axis",
    "backward.softmax",
    """
def softmax_backward(probs, grad_probs):
    inner = probs * grad_probs
    total = inner.sum(dim=-2, keepdim=True)  # <-
    return inner - probs * total  # <-
""",
    "quer|axis|sum",
)
add(
    "the row's term added",
    "backward.softmax",
    """
def softmax_backward(probs, grad_probs):
    dot = torch.einsum("...i,...i->...", probs, grad_probs)
    return probs * (grad_probs + dot.unsqueeze(-1))  # <-
""",
    "sign|added",
)
add(
    "the keys' gradient without the scale",
    "backward.queries_keys",
    """
def grad_queries_keys(grad_scores, q, k):
    d = q.shape[-1]
    dq = grad_scores @ k / math.sqrt(d)
    dk = grad_scores.mT @ q  # <-
    return dq, dk  # <-
""",
    "scale|scaled",
)
add(
    "the bias summed over the batch alone",
    "backward.linear",
    """
def linear_backward(grad_y, x, weight):
    gx = grad_y.matmul(weight)
    gw = (grad_y.mT @ x).sum(0)
    gb = grad_y.sum(axis=0)  # <-
    return gx, gw, gb  # <-
""",
    "bias",
)
add(
    "one path forgotten, merged by a reshape",
    "backward.paths",
    """
def grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v):
    B, H, T, D = grad_q.shape
    dq = grad_q.reshape(B, T, H * D)  # <-
    dk = grad_k.reshape(B, T, H * D)
    dv = grad_v.reshape(B, T, H * D)
    dx = dq @ w_q
    dx += dk @ w_k
    dx = dx + dv @ w_k  # <- 2
    return dx
""",
    "reshape|places|scrambl|merge",
    "w_k|keys|places|swapped|weight",
)
add(
    "the mask handed on as it is",
    "equal.sdpa",
    """
def library_attention(q, k, v, hidden):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)  # <-
""",
    "sense|NaN",
)
add(
    "by hand, with the mask turned",
    "equal.sdpa",
    """
def library_attention(q, k, v, hidden):
    logits = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    logits = logits.masked_fill(hidden.mT, float("-inf"))  # <-
    return torch.einsum("bhqk,bhkd->bhqd", logits.softmax(-1), v)
""",
    "transposed|places",
)
GPT = """
def gpt2_attention(x, state, num_heads):
    B, T, C = x.size()
    qkv = x @ state["c_attn.weight"] + state["c_attn.bias"]
    q, k, v = qkv.split(C, dim=2)
    k = k.view(B, T, num_heads, C // num_heads).transpose(1, 2)
    q = q.view(B, T, num_heads, C // num_heads).transpose(1, 2)
    v = v.view(B, T, num_heads, C // num_heads).transpose(1, 2)
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    bias = torch.tril(torch.ones(T, T)).view(1, 1, T, T)
    att = att.masked_fill(bias[:, :, :T, :T] == 0, float('-inf'))
    att = F.softmax(att, dim=-1)
    y = att @ v
    y = y.transpose(1, 2).contiguous().view(B, T, C)
    y = y @ state["c_proj.weight"] + state["c_proj.bias"]
    return y
"""
change(
    "the three parts in another order",
    "equal.gpt2",
    GPT,
    (
        "    q, k, v = qkv.split(C, dim=2)\n",
        "    k, q, v = qkv.split(C, dim=2)  # <-\n",
    ),
    (
        "    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n",
        "    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))  # <-\n",
    ),
    causes=("order|swapped|exchanged",),
)
change(
    "the last weight transposed",
    "equal.gpt2",
    GPT,
    (
        '    y = y @ state["c_proj.weight"] + state["c_proj.bias"]\n',
        '    y = F.linear(y, state["c_proj.weight"], state["c_proj.bias"])  # <-\n',
    ),
    causes=("transposed",),
)
change(
    "the mask late, the merge a view",
    "equal.gpt2",
    GPT,
    (
        "    bias = torch.tril(torch.ones(T, T)).view(1, 1, T, T)\n",
        "    bias = torch.tril(torch.ones(T, T), 1).view(1, 1, T, T)  # <-\n",
    ),
    (
        "    att = att.masked_fill(bias[:, :, :T, :T] == 0, float('-inf'))\n",
        "    att = att.masked_fill(bias[:, :, :T, :T] == 0, float('-inf'))  # <-\n",
    ),
    (
        "    y = y.transpose(1, 2).contiguous().view(B, T, C)\n",
        "    y = y.contiguous().view(B, T, C)  # <- 2\n",
    ),
    causes=("after it|late|next|not hidden", "merge|places|reshape"),
)
change(
    "not scaled, the heads scrambled",
    "equal.gpt2",
    GPT,
    (
        "    v = v.view(B, T, num_heads, C // num_heads).transpose(1, 2)\n",
        "    v = v.reshape(B, num_heads, T, C // num_heads)  # <-\n",
    ),
    (
        "    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n",
        "    att = (q @ k.transpose(-2, -1))  # <- 2\n",
    ),
    (
        "    att = F.softmax(att, dim=-1)\n",
        "    att = F.softmax(att, dim=-1)  # <- 2\n",
    ),
    causes=("places|scrambl|mix", "not scaled"),
)

# --- lesson 07 -----------------------------------------------------------------------------------
CACHE = """
class CachedAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.n_head = num_heads

    def split(self, t):
        return t.view(*t.shape[:2], self.n_head, -1).transpose(1, 2)

    def forward(self, x, cache=None):
        q, k, v = [self.split(f(x)) for f in (self.q, self.k, self.v)]
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        Tq, Tk = q.shape[2], k.shape[2]
        s = q @ k.mT / math.sqrt(q.shape[-1])
        late = torch.arange(Tk)[None] > torch.arange(Tq)[:, None] + (Tk - Tq)
        s = s.masked_fill(late, float("-inf"))
        o = s.softmax(-1) @ v
        o = o.transpose(1, 2).reshape(x.shape[0], Tq, -1)
        return self.mix(o), (k, v)
"""
change(
    "a cache, and no mix",
    "fast.cache",
    CACHE,
    ("        return self.mix(o), (k, v)\n", "        return o, (k, v)  # <-\n"),
    causes=("mix",),
)
change(
    "a cache, not scaled",
    "fast.cache",
    CACHE,
    (
        "        s = q @ k.mT / math.sqrt(q.shape[-1])\n",
        "        s = q @ k.mT  # <-\n",
    ),
    (
        '        s = s.masked_fill(late, float("-inf"))\n',
        '        s = s.masked_fill(late, float("-inf"))  # <-\n',
    ),
    (
        "        o = s.softmax(-1) @ v\n",
        "        o = s.softmax(-1) @ v  # <-\n",
    ),
    causes=("not scaled|scale",),
)
add(
    "one product, two of its parts exchanged",
    "fast.fused",
    """
def fused_qkv(x, layers):
    W = torch.vstack([layers["q.weight"], layers["k.weight"], layers["v.weight"]])
    b = torch.hstack([layers["q.bias"], layers["k.bias"], layers["v.bias"]])
    q, v, k = (x @ W.T + b).tensor_split(3, dim=-1)  # <-
    return q, k, v  # <-
""",
    "order",
)

# --- lesson 08 -----------------------------------------------------------------------------------
add(
    "groups repeated as a whole",
    "variants.grouped",
    """
def grouped_attention(q, k, v):
    g = q.size(1) // k.size(1)
    k = torch.cat([k] * g, dim=1)  # <-
    v = torch.cat([v] * g, dim=1)  # <-
    T = q.size(2)
    s = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5  # <-
    s = s + torch.triu(torch.full((T, T), float("-inf")), 1)
    return s.softmax(-1) @ v
""",
    "repeated|group",
)
add(
    "slopes in the wrong direction",
    "variants.alibi",
    """
def alibi_attention(q, k, v, slopes):
    T, D = q.shape[-2:]
    i = torch.arange(T)
    bias = (i[None, :] - i[:, None]).float() * slopes.view(-1, 1, 1)  # <-
    att = q @ k.mT / D ** 0.5 - bias  # <-
    att = att.masked_fill(i[None, :] > i[:, None], float("-inf"))
    return att.softmax(-1) @ v
""",
    "sign|rewarded",
)
add(
    "one slope for all, and not scaled",
    "variants.alibi",
    """
def alibi_attention(q, k, v, slopes):
    n = q.size(2)
    dist = torch.arange(n).unsqueeze(1) - torch.arange(n).unsqueeze(0)
    scores = q @ k.transpose(2, 3)  # <-
    scores = scores - slopes[0] * dist  # <- 2 # <-
    mask = torch.ones(n, n).triu(1).bool()
    scores = scores.masked_fill(mask, -1e9)
    return torch.softmax(scores, -1) @ v
""",
    "scale",
    "same|slope",
)
add(
    "linear attention, sums that see the future",
    "variants.linear",
    """
def linear_attention(q, k, v):
    phi = lambda t: F.elu(t) + 1
    w = torch.einsum("bid,bjd->bij", phi(q), phi(k))
    z = w.sum(-1, keepdim=True)  # <-
    w = w.tril() / z  # <-
    return w @ v
""",
    "future|sum",
)
add(
    "the whole turned by the wrong sign",
    "variants.rope",
    """
def rotate(x, positions, base):
    d = x.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2).float() / d)
    ang = torch.outer(positions.float(), inv_freq)
    cos, sin = torch.cat([ang, ang], -1).cos(), torch.cat([ang, ang], -1).sin()
    x1, x2 = x.float().chunk(2, dim=-1)
    rotated = torch.cat((x2, -x1), dim=-1)  # <-
    return (x.float() * cos + rotated * sin).to(x.dtype)  # <-
""",
    "sign|backwards|wrong way|direction|other way",
)

# --- lessons 09 to 12 ----------------------------------------------------------------------------
add(
    "Conv1D as if it were Linear",
    "inside.conv1d",
    """
def conv1d(x, weight, bias):
    return torch.einsum("bti,oi->bto", x, weight.reshape(weight.shape[::-1])) + bias  # <-
""",
    "reshaped|transposed|places",
)
add(
    "the columns of a head by one view",
    "weights.heads",
    """
def head_columns(weight, num_heads):
    rows, cols = weight.shape
    w = weight.view(num_heads, rows, cols // num_heads)  # <-
    return w  # <-
""",
    "view|places|reshap",
)
add(
    "the key's term with the query's bias forgotten",
    "weights.biases",
    """
def score_terms(x, w_q, b_q, w_k, b_k):
    d = w_q.shape[1]
    Q, K = x @ w_q, x @ w_k
    root = math.sqrt(d)
    return {  # <-
        "content": Q @ K.T / root,
        "query": (Q @ b_k / root).unsqueeze(1),
        "key": (K @ b_k / root).unsqueeze(0),  # <-
        "constant": b_q @ b_k / root,
    }
""",
    "key|bias",
)
add(
    "heads before the three parts",
    "activations.split",
    """
def heads_of(wide, num_heads):
    B, T, W = wide.shape
    t = wide.reshape(B, T, num_heads, 3, W // 3 // num_heads)  # <-
    q, k, v = t.permute(3, 0, 2, 1, 4)  # <-
    return q, k, v
""",
    "heads first|before|places",
)
MASKED = """
def masked_scores(wide, num_heads):
    b, t, w = wide.shape
    q, k, v = wide.chunk(3, -1)
    q = q.view(b, t, num_heads, -1).movedim(2, 1)
    k = k.view(b, t, num_heads, -1).movedim(2, 1)
    s = torch.matmul(q, k.swapdims(-1, -2))
    s = s / math.sqrt(q.shape[-1])
    keep = torch.ones(t, t, dtype=torch.bool).tril()
    return s.where(keep, torch.tensor(-math.inf))
"""
change(
    "scores scaled by the whole width",
    "activations.scores",
    MASKED,
    (
        "    s = s / math.sqrt(q.shape[-1])\n",
        "    s = s / math.sqrt(w // 3)  # <-\n",
    ),
    causes=("hidden|size of|all heads|width|factor",),
)
change(
    "scores of keys and values, upside down",
    "activations.scores",
    MASKED,
    ("    q, k, v = wide.chunk(3, -1)\n", "    q, v, k = wide.chunk(3, -1)  # <-\n"),
    (
        "    s = torch.matmul(q, k.swapdims(-1, -2))\n",
        "    s = torch.matmul(q, k.swapdims(-1, -2))  # <-\n",
    ),
    (
        "    keep = torch.ones(t, t, dtype=torch.bool).tril()\n"
        "    return s.where(keep, torch.tensor(-math.inf))\n",
        "    keep = torch.ones(t, t, dtype=torch.bool).triu()\n"
        "    return s.where(keep, torch.tensor(-math.inf))  # <- 2\n",
    ),
    causes=("values|order", "wrong way|past|future|invert|hidden"),
)
add(
    "the head after the one that is meant",
    "causal.cut",
    """
def without_head(z, num_heads, head, position):
    out = z.clone()
    d = z.shape[-1] // num_heads
    out[:, position, (head + 1) * d:(head + 2) * d] = 0  # <-
    return out
""",
    "head|zeros|next|other",
)
add(
    "the mean of each position",
    "causal.mean",
    """
def with_mean(z, reference, num_heads, head):
    out = z.clone()
    d = z.shape[-1] // num_heads
    mu = reference.mean(0)[0]  # <-
    out[..., head * d:(head + 1) * d] = mu[head * d:(head + 1) * d]  # <-
    return out
""",
    "mean|position|token|average",
)
add(
    "prefix matching, one place to the left",
    "causal.induction",
    """
def prefix_matching(probs, input_ids):
    n = input_ids.shape[1]
    same = input_ids[:, :, None] == input_ids[:, None, :]
    same = same.tril(-1)  # <-
    got = (probs * same[:, None]).sum(-1)  # <-
    return got.sum((0, 2)) / same.any(-1).sum()
""",
    "same|shift|copy|token itself|duplicate|before|next",
)
