"""Sixty wrong programs, written in one go before any of them ran; split by a hash of the names."""

import hashlib

from tests.tracing.fresh.program import Group
from tests.tracing.programs import Program

ADD = Group()
add = ADD.add
QKV = """        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
"""
MHA = (
    QKV
    + """        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.h, self.causal = num_heads, causal
"""
)
INIT = "    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):\n" + MHA

# ===== singles ====================================================================================
add(
    "rnn: two weight matrices exchanged in cat form, state on wrong side",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    h = torch.zeros_like(bias)
    out = torch.empty(len(x), len(bias))
    for t, token in enumerate(x):
        pre = token @ w_input + w_hidden @ h + bias  # <-
        h = pre.tanh()
        out[t] = h
    return out
""",
    "transposed|wrong side",
)
add(
    "rnn: reads backwards by flip",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    def cell(h, token):
        return torch.tanh(torch.addmv(token @ w_input, w_hidden.T, h) + bias)
    states = [torch.zeros(w_hidden.shape[0])]
    for token in x.flip(0):  # <-
        states.append(cell(states[-1], token))  # <-
    return torch.stack(states[1:])
""",
    "last to the first|backwards|other order|another order",
)
add(
    "softmax: the maximum of columns by max(0)",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    peak = scores.max(0).values  # <-
    e = torch.exp(scores - peak)  # <-
    z = e.sum(-1).unsqueeze(-1)
    return e / z
""",
    "maxim|axis|dim",
)
add(
    "softmax: sum without keepdim turned by hand",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    total = torch.einsum("ij->j", e)  # <-
    return e / total
""",
    "axis|column|sum|dim",
)
add(
    "context: dot products by mul and sum, softmax over the first",
    "simple.context",
    """
def context_vectors(inputs):
    pairs = inputs[:, None, :] * inputs[None, :, :]
    sims = pairs.sum(2)
    att = sims.softmax(0)  # <-
    return (att[:, :, None] * inputs[None]).sum(1)
""",
    "dim|axis|over",
)
add(
    "context: early softmax on the inputs",
    "simple.context",
    """
def context_vectors(inputs):
    n = inputs.size(0)
    result = torch.zeros_like(inputs)
    for i in range(n):
        energy = torch.mv(inputs, inputs[i])
        energy = energy / energy.sum()  # <-
        for j in range(n):
            result[i] += energy[j] * inputs[j]
    return result
""",
    "sum|softmax",
)
add(
    "matmul: baddbmm with alpha",
    "simple.matmul",
    """
def simple_attention(x):
    base = torch.zeros(x.shape[0], x.shape[1], x.shape[1])
    s = torch.baddbmm(base, x, x.mT, alpha=x.shape[2] ** -0.5)  # <-
    p = s.softmax(-1)
    return p.bmm(x)
""",
    "scaled",
)
add(
    "matmul: batch loop, values transposed in weights",
    "simple.matmul",
    """
def simple_attention(x):
    outs = []
    for item in torch.unbind(x):
        w = F.softmax(item @ item.t(), dim=1)
        outs.append(w.t() @ item)  # <-
    return torch.stack(outs)
""",
    "transposed|over dim=1|exchanged",
)
add(
    "scale: cosine, normalised queries",
    "one_head.scale",
    """
def attention_weights(q, k):
    q = F.normalize(q, dim=-1)  # <-
    logits = torch.inner(q, k).div(k.shape[-1] ** 0.5)
    return logits.softmax(dim=-1)
""",
    "normali[sz]e|length|factor|too (small|large)|one too many|before|not right",
)
add(
    "scale: by seq_len through len",
    "one_head.scale",
    """
def attention_weights(q, k):
    if (n := len(k)) > 0:  # <-
        scores = torch.einsum("qc,kc->qk", q, k) / n ** 0.5  # <-
    return scores.softmax(1)
""",
    "seq_len|tokens",
)
add(
    "batched: library with scale = sqrt(d)",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    root = math.sqrt(q.size(-1))
    return F.scaled_dot_product_attention(q, k, v, scale=root)  # <-
""",
    "scale|multiplied",
)
add(
    "batched: loop over items, one softmax for all",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    rows = []
    for qi, ki, vi in zip(q, k, v):
        s = qi @ ki.T / math.sqrt(ki.shape[1])
        w = torch.softmax(s.reshape(-1), 0).view_as(s)  # <-
        rows.append(w @ vi)
    return torch.stack(rows, 0)
""",
    "all|one softmax|sum to 1|together",
)
add(
    "batched: log softmax",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    energy = torch.matmul(q, k.permute(0, 2, 1)).mul_(k.shape[-1] ** -0.5)
    return F.log_softmax(energy, -1).matmul(v)  # <-
""",
    "log|sum to 1|softmax",
)
add(
    "forward: fused product cut in q, v, k",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """
    def forward(self, x):
        w = torch.cat((self.q.weight, self.k.weight, self.v.weight))
        b = torch.cat((self.q.bias, self.k.bias, self.v.bias))
        q, v, k = F.linear(x, w, b).chunk(3, dim=-1)  # <-
        a = (q @ k.mT / k.size(-1) ** 0.5).softmax(-1)
        return a @ v
""",
    "swapped|values|keys",
)
add(
    "forward: static helper scales by x's size",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """        self.d = input_size  # <-

    @staticmethod
    def attend(queries, keys, values, d):
        w = torch.bmm(queries, keys.transpose(-1, -2)) / d ** 0.5  # <-
        return torch.bmm(torch.softmax(w, dim=-1), values)

    def forward(self, x):
        return self.attend(self.q(x), self.k(x), self.v(x), self.d)  # <-
""",
    "input_size",
)
add(
    "three lines: transposed result axis",
    "one_head.three_lines",
    """
class ShortAttention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """
    def forward(self, x):
        s = self.q(x) @ self.k(x).mT * self.k.out_features ** -0.5
        w = s.softmax(1)  # <-
        return w @ self.v(x)
""",
    "quer|over|dim|do not sum",
)
add(
    "parameters: key uses the query's matrix",
    "one_head.parameters",
    """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        make = lambda: nn.Parameter(torch.randn(input_size, hidden) / math.sqrt(input_size))
        self.w_query, self.w_key, self.w_value = make(), make(), make()

    def forward(self, x):
        projected = [x.mm(w) for w in (self.w_query, self.w_query, self.w_value)]  # <-
        q, k, v = projected
        return F.softmax(q.mm(k.t()) / k.shape[1] ** 0.5, dim=-1).mm(v)
""",
    "quer",
)
add(
    "renormalise: by torch.where, wrong side of the diagonal",
    "masks.renormalise",
    """
def mask_weights(scores):
    p = F.softmax(scores, dim=-1)
    i = torch.arange(p.shape[-1])
    p = torch.where(i[:, None] < i[None, :], p, 0.0)  # <-
    return p / p.sum(-1, keepdim=True)
""",
    "wrong way|future|past|inverted|diagonal",
)
add(
    "renormalise: sums of columns by einsum",
    "masks.renormalise",
    """
def mask_weights(scores):
    keep = torch.ones_like(scores[0]).tril()
    p = scores.softmax(-1) * keep
    total = torch.einsum("bij->bj", p)  # <-
    return p / total[:, None, :]  # <-
""",
    "quer|column|axis|sum to 1",
)
add(
    "minus infinity: index assignment with a wrong range",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    masked = scores.clone()
    n = scores.shape[-1]
    for i in range(n):
        masked[..., i, i:] = -torch.inf  # <-
    return torch.softmax(masked, -1)
""",
    "current|diagonal|too many",
)
add(
    "minus infinity: float mask added with the wrong sign of tril",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    L = scores.size(-1)
    bias = torch.full((L, L), -1e9).tril(-1)  # <-
    return (scores + bias).softmax(dim=-1)  # <-
""",
    "wrong way|past|hidden",
)
add(
    "minus infinity: filled with a small number",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    future = ~torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = torch.where(future, torch.tensor(0.0), scores)  # <-
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True)[0])
    return e / e.sum(-1, keepdim=True)
""",
    "0",
)
add(
    "padding: one key too many by less-equal",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    position = torch.arange(scores.size(-1)).expand(len(lengths), -1)
    real = position <= lengths.unsqueeze(1)  # <-
    masked = scores.masked_fill(~real.unsqueeze(1), float("-inf"))  # <-
    return F.softmax(masked, dim=2)
""",
    "one too many|padding|seen|not hidden",
)
add(
    "padding: rows hidden instead of keys",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    out = scores.clone()
    for b, n in enumerate(lengths.tolist()):
        out[b, n:, :] = -1e9  # <-
    return out.softmax(dim=-1)
""",
    "rows|keys|columns|places",
)
add(
    "causal head: dropout buffer, transposed buffer",
    "masks.attention",
    """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
"""
    + QKV
    + """        self.drop = nn.Dropout(dropout)
        behind = torch.tril(torch.ones(context_length, context_length))
        self.register_buffer("bias", behind, persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        wei = q @ k.transpose(-2, -1) * C ** -0.5  # <-
        wei = wei.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        wei = self.drop(F.softmax(wei, dim=-1))
        return wei @ v
""",
    "input_size",
)
add(
    "stack: heads averaged",
    "heads.split",
    """
def split_heads(t, num_heads):
    b, s, h = t.shape
    return t.view(b, s, h // num_heads, num_heads).permute(0, 3, 1, 2)  # <-
""",
    "scrambl|mix|places|order|inter|head|features",
)
add(
    "scores: einsum summed over positions",
    "heads.scores",
    """
def head_scores(q, k):
    scores = torch.einsum("bhqd,bhkd->bhkq", q, k)  # <-
    return scores.mul(q.shape[-1] ** -0.5)
""",
    "exchanged|transposed|swapped|order",
)
add(
    "merge: permute with the head last",
    "heads.merge",
    """
def merge_heads(t):
    b, h, s, d = t.size()
    out = t.permute(0, 2, 3, 1).contiguous()  # <-
    return out.view(b, s, d * h)  # <-
""",
    "scrambl|mix|places|order|inter|head|features",
)
add(
    "attend: loop over heads, values of the next head",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, dim=-1) for t in (q, k, v))
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    outs, maps = [], []
    for i in range(num_heads):
        s = qs[i] @ ks[i].mT / ks[i].shape[-1] ** 0.5
        p = s.masked_fill(ahead, -math.inf).softmax(-1)
        maps.append(p)
        outs.append(p @ vs[0])  # <-
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)
""",
    "round|head|every|another|not right",
)
add(
    "attend: maps stacked heads first",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    d = h // num_heads
    heads = lambda t: torch.stack(t.split(d, dim=-1))
    q, k, v = heads(q), heads(k), heads(v)
    s = torch.einsum("hbqd,hbkd->hbqk", q, k) / d ** 0.5
    s[..., torch.ones(n, n).triu(1) > 0] = float("-inf")
    p = s.softmax(-1)
    o = torch.einsum("hbqk,hbkd->bqhd", p, v)
    return o.reshape(b, n, h), p.reshape(b * num_heads, n, n)  # <-
""",
    "head|order|batch|places",
)
add(
    "output: rows of the weight for each head",
    "heads.output",
    """
def head_contributions(heads, weight):
    n, d = heads.shape[1], heads.shape[-1]
    blocks = weight.view(n, d, -1)  # <-
    return torch.einsum("bhsd,hdo->bhso", heads, blocks)  # <-
""",
    "row|transposed|column|places|order",
)
add(
    "self attention: sigmoid then normalised",
    "self_attention.forward",
    """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """
    def forward(self, x):
        q, k, v = map(lambda layer: layer(x), (self.q, self.k, self.v))
        raw = torch.einsum("bid,bjd->bij", q, k) / q.shape[-1] ** 0.5
        gates = torch.sigmoid(raw)  # <-
        return torch.einsum("bij,bjd->bid", gates, v)
""",
    "[Ss]igmoid",
)
add(
    "multi head scores: einops by hand, head_size before heads",
    "multi_head.scores",
    """
class MultiHeadSelfAttention(nn.Module):
"""
    + INIT
    + """
    def rearrange(self, t):
        b, n, c = t.shape
        return t.reshape(b, n, self.h, c // self.h).permute(0, 2, 1, 3)

    def forward(self, x, return_attention=False):
        q, k, v = (self.rearrange(f(x)) for f in (self.q, self.k, self.v))
        dots = torch.einsum("bhid,bhjd->bhij", q, k) / x.shape[-1] ** 0.5  # <-
        if self.causal:
            i, j = dots.shape[-2:]
            dots = dots.masked_fill(torch.ones(i, j, dtype=torch.bool).triu(j - i + 1), -1e9)
        attn = self.dropout(dots.softmax(dim=-1))
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        out = out.permute(0, 2, 1, 3).flatten(2)
        out = self.mix(out)
        return (out, attn.flatten(0, 1)) if return_attention else out
""",
    "input_size|head_size|too (small|large)|scaled|root",
)
add(
    "multi head mask: always causal false, tril of zeros kept",
    "multi_head.mask",
    """
class MultiHeadSelfAttention(nn.Module):
"""
    + INIT
    + """
    def _split(self, t):
        return torch.stack(t.chunk(self.h, dim=-1), dim=1)

    def forward(self, x, return_attention=False):
        q, k, v = self._split(self.q(x)), self._split(self.k(x)), self._split(self.v(x))
        att = q.matmul(k.transpose(2, 3)) / math.sqrt(q.size(3))
        if self.causal:
            T = x.size(1)
            keep = torch.tril(torch.ones(T, T))
            att = att * keep  # <-
        att = torch.softmax(att, dim=3)
        att = self.dropout(att)
        y = torch.cat(att.matmul(v).unbind(1), dim=-1)
        y = self.mix(y)
        if return_attention:
            return y, att.flatten(0, 1)
        return y
""",
    "0|zeros",
)
add(
    "multi head output: heads in a loop, joined the other way round",
    "multi_head.output",
    """
class MultiHeadSelfAttention(nn.Module):
"""
    + INIT
    + """
    def one(self, q, k, v):
        s = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(torch.ones_like(s[0], dtype=torch.bool).triu(1), -torch.inf)
        p = self.dropout(s.softmax(-1))
        return p @ v, p

    def forward(self, x, return_attention=False):
        size = self.q.out_features // self.h
        parts = zip(*(layer(x).split(size, -1) for layer in (self.q, self.k, self.v)))
        outs, maps = zip(*(self.one(*part) for part in parts))
        y = torch.stack(outs, dim=-1).flatten(2)  # <-
        y = self.mix(y)
        if return_attention:
            return y, torch.stack(maps, 1).flatten(0, 1)
        return y
""",
    "merge|places|order|inter|scrambl|head",
)
add(
    "softmax backward: the product missing",
    "backward.softmax",
    """
def softmax_backward(probs, grad_probs):
    inner = (grad_probs * probs).sum(-1, keepdim=True)
    return grad_probs - probs * inner  # <-
""",
    "prob|p\\b|multipl|factor|order|term|not right|operand|instead",
)
add(
    "gpt2: bias forgotten on the way in",
    "equal.gpt2",
    """
def gpt2_attention(x, state, num_heads):
    B, T, C = x.size()
    qkv = torch.matmul(x, state["c_attn.weight"])  # <-
    q, k, v = qkv.split(C, dim=2)
    q, k, v = [t.view(B, T, num_heads, C // num_heads).transpose(1, 2) for t in (q, k, v)]
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    y = y.transpose(1, 2).reshape(B, T, C)
    return torch.addmm(state["c_proj.bias"], y.view(-1, C), state["c_proj.weight"]).view(B, T, C)
""",
    "bias",
)
add(
    "rope: halves joined without the minus",
    "variants.rope",
    """
def rotate(x, positions, base):
    half = x.shape[-1] // 2
    freq = base ** (-torch.arange(half, dtype=torch.float64) / half)
    theta = torch.outer(positions.double(), freq)
    emb = torch.cat((theta, theta), dim=-1)
    x1, x2 = x[..., :half], x[..., half:]
    turned = torch.cat((x2, x1), dim=-1)  # <-
    return x * emb.cos().to(x) + turned * emb.sin().to(x)  # <-
""",
    "sign|minus|order",
)
add(
    "alibi: slopes over the keys' positions only",
    "variants.alibi",
    """
def alibi_attention(q, k, v, slopes):
    b, h, n, d = q.shape
    s = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d)
    rel = torch.arange(n).view(1, -1) - torch.arange(n).view(-1, 1)
    s = s - slopes.view(h, 1, 1) * rel  # <-
    s = s.masked_fill(rel > 0, -1e30)
    return s.softmax(-1).matmul(v)
""",
    "sign|rewarded",
)
add(
    "masked scores of a wide tensor: keys and values",
    "activations.scores",
    """
def masked_scores(wide, num_heads):
    q, k, v = wide.tensor_split(3, dim=-1)
    q, k = (t.unflatten(2, (num_heads, -1)).movedim(2, 1) for t in (q, k))
    s = q @ k.mT
    s /= q.shape[1] ** 0.5  # <-
    n = s.shape[-1]
    return s.masked_fill(torch.arange(n)[:, None] < torch.arange(n), -float("inf"))
""",
    "num_heads|number of heads|root|too (small|large)|factor|heads",
)

assert len(ADD.programs) == 40, len(ADD.programs)

# ===== pairs ======================================================================================
add(
    "P rnn: no bias and first state ones",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    projected = torch.einsum("ti,ih->th", x, w_input)  # <-
    h, states = torch.zeros_like(bias), []
    for p in projected:
        h = torch.sigmoid(p + h @ w_hidden)  # <- 2 # <-
        states.append(h[None])
    return torch.cat(states)
""",
    "bias",
    "squash|sigmoid|function",
)
add(
    "P context: scaled by hand and columns",
    "simple.context",
    """
def context_vectors(inputs):
    d = inputs.shape[1]
    unit = inputs / math.sqrt(d)  # <-
    s = torch.einsum("if,jf->ij", unit, inputs)  # <-
    e = s.exp()
    w = e / e.sum(0)  # <- 2
    return w @ inputs
""",
    "scaled",
    "dim=0|axis|over|do not sum",
)
add(
    "P matmul: keys reshaped and scaled",
    "simple.matmul",
    """
def simple_attention(x):
    b, t, c = x.size()
    s = x @ x.reshape(b, c, t)  # <-
    a = torch.softmax(s / c ** 0.5, dim=-1)  # <- 2
    return torch.bmm(a, x)
""",
    "reshape",
    "scaled",
)
add(
    "P softmax: log and over columns",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    top = torch.max(scores, dim=-1, keepdim=True).values
    z = top - scores  # <-
    e = z.exp()
    return e / e.sum(dim=0, keepdim=True)  # <- 2
""",
    "sign|smallest|negat",
    "axis|column|dim",
)
add(
    "P scale: swapped operands, divided by the size",
    "one_head.scale",
    """
def attention_weights(q, k):
    raw = torch.einsum("kd,qd->kq", k, q)  # <-
    raw = raw / k.shape[-1]  # <- 2
    return F.softmax(raw, dim=-1)
""",
    "swapped|exchanged|transposed",
    "itself|root",
)
add(
    "P batched: not scaled and over the queries, einsum",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    logits = torch.einsum("bqd,bkd->bqk", q, k)  # <-
    attn = logits.softmax(dim=-2)  # <- 2 # <-
    return torch.einsum("bqk,bkd->bqd", attn, v)
""",
    "not scaled",
    "quer|over|dim",
)
add(
    "P batched: loop, double softmax and fourth root",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    out = torch.empty(*q.shape[:2], v.shape[-1])
    for b in range(q.shape[0]):
        s = q[b].mm(k[b].t()) / math.sqrt(math.sqrt(k.shape[-1]))  # <-
        p = F.softmax(s, dim=-1)
        p = F.softmax(p, dim=-1)  # <- 2
        out[b] = p.mm(v[b])
    return out
""",
    "square root|fourth",
    "softmax is applied twice|twice",
)
add(
    "P forward: values from queries and no root",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """
    def weights(self, q, k):
        return (q @ k.transpose(-1, -2) / q.shape[-1]).softmax(-1)  # <- 2 # <-

    def forward(self, x):
        q, k = self.q(x), self.k(x)
        v = self.q(x)  # <- 2 # <-
        return self.weights(q, k) @ v
""",
    "quer",
    "itself|root",
)
add(
    "P self attention: multiplied and sigmoid",
    "self_attention.forward",
    """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
"""
    + QKV
    + """        self.scale = hidden ** 0.5  # <-

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        s = torch.baddbmm(torch.zeros(1, 1, 1), q, k.mT, beta=0, alpha=self.scale)  # <-
        w = s.softmax(dim=1)  # <- 2
        return w.bmm(v)
""",
    "multiplied|too large|factor",
    "quer|over|dim|do not sum",
)
add(
    "P renormalise: late tril and column sums",
    "masks.renormalise",
    """
def mask_weights(scores):
    p = torch.softmax(scores, dim=-2)  # <-
    p = torch.tril(p, diagonal=1)  # <- 2
    return p.div(p.sum(dim=-1, keepdim=True))
""",
    "quer",
    "after it|late|next",
)
add(
    "P minus infinity: inverted, one sum",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    rows, cols = torch.arange(n).unsqueeze(1), torch.arange(n).unsqueeze(0)
    s = scores.clone()
    s[:, rows < cols] = 0  # <-
    e = s.exp()
    return e / e.sum()  # <- 2
""",
    "0",
    "one sum|over all|all|do not sum",
)
add(
    "P causal head: keys twice, mask late",
    "masks.attention",
    """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
"""
    + QKV
    + """        self.dropout = nn.Dropout(dropout)
        late = torch.ones(context_length, context_length).triu(2).bool()  # <-
        self.register_buffer("m", late, persistent=False)

    def forward(self, x):
        n = x.size(1)
        q, k, v = (f(x) for f in (self.q, self.k, self.v))
        s = torch.einsum("bid,bjd->bij", q, k)  # <-
        s = s.masked_fill(self.m[:n, :n], -torch.inf)  # <- 2 # <-
        return self.dropout(s.softmax(-1)) @ v  # <-
""",
    "not scaled",
    "late|after it|next",
)
add(
    "P attend: split by reshape and merged by reshape",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    d = h // num_heads
    cut = lambda t: t.reshape(b, n, num_heads, d).permute(0, 2, 1, 3)
    q, k, v = cut(q), cut(k), cut(v)
    s = torch.matmul(q, k.permute(0, 1, 3, 2)) * d ** -0.5
    s = s + torch.full((n, n), -1e9).triu(2)  # <-
    p = F.softmax(s, -1)
    o = torch.matmul(p, v).contiguous().view(b, n, h)  # <- 2
    return o, p.view(-1, n, n)
""",
    "late|after it|next",
    "merge|reshape|places|view",
)
add(
    "P attend: heads by loop, no scale, softmax twice",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    n = q.size(1)
    future = torch.arange(n)[None, :] > torch.arange(n)[:, None]
    contexts, patterns = [], []
    for qh, kh, vh in zip(*[t.chunk(num_heads, -1) for t in (q, k, v)]):
        logit = torch.bmm(qh, kh.mT)  # <-
        logit[:, future] = -float("inf")  # <-
        pattern = logit.softmax(-1)  # <-
        pattern = pattern.softmax(-1)  # <- 2
        contexts.append(pattern @ vh)
        patterns.append(pattern)
    return torch.cat(contexts, -1), torch.stack(patterns, 1).flatten(0, 1)
""",
    "not scaled",
    "twice",
)
add(
    "P multi head: scaled by hidden, heads not moved back",
    "multi_head.output",
    """
class MultiHeadSelfAttention(nn.Module):
"""
    + INIT
    + """
    def forward(self, x, return_attention=False):
        b, n, _ = x.shape
        fused = F.linear(x, torch.cat([l.weight for l in (self.q, self.k, self.v)]),
                         torch.cat([l.bias for l in (self.q, self.k, self.v)]))
        q, k, v = fused.view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / self.mix.in_features ** 0.5  # <-
        if self.causal:
            s = s.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        p = self.dropout(torch.softmax(s, -1))
        z = (p @ v).reshape(b, n, -1)  # <- 2
        z = self.mix(z)
        return (z, p.flatten(0, 1)) if return_attention else z
""",
    "hidden",
    "merge|places|reshape",
)
add(
    "P multi head mask: diagonal hidden, no mix",
    "multi_head.mask",
    """
class MultiHeadSelfAttention(nn.Module):
"""
    + INIT
    + """
    def forward(self, x, return_attention=False):
        q, k, v = (
            f(x).unflatten(-1, (self.h, -1)).movedim(-2, 1) for f in (self.q, self.k, self.v)
        )
        if self.causal:
            n = x.shape[1]
            m = torch.tril(torch.ones(n, n), -1).bool() | torch.eye(n).bool()
            s = torch.where(m.T, q @ k.mT / q.shape[-1] ** 0.5, -1e9)  # <-
        else:
            s = q @ k.mT / q.shape[-1] ** 0.5
        p = self.dropout(s.softmax(-1))
        z = (p @ v).movedim(1, 2).flatten(-2)
        return (z, p.flatten(0, 1)) if return_attention else z  # <- 2
""",
    "wrong way|past|hidden",
    "mix",
)
add(
    "P queries keys backward: no scale and not transposed",
    "backward.queries_keys",
    """
def grad_queries_keys(grad_scores, q, k):
    scale = k.shape[-1] ** -0.5
    gq = torch.matmul(grad_scores, k).mul(scale * scale)  # <-
    gk = torch.matmul(grad_scores, q).mul(scale)  # <- 2
    return gq, gk
""",
    "scale|twice|factor|small",
    "transposed|column",
)
add(
    "P gpt2: late mask and the weight turned",
    "equal.gpt2",
    """
def gpt2_attention(x, state, num_heads):
    w = x @ state["c_attn.weight"] + state["c_attn.bias"]
    q, k, v = (t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in w.chunk(3, -1))
    att = q @ k.mT / q.size(-1) ** 0.5
    att = att + torch.full(att.shape[-2:], -torch.inf).triu(2)  # <-
    y = (att.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return F.linear(y, state["c_proj.weight"], state["c_proj.bias"])  # <- 2
""",
    "late|after it|next|not hidden",
    "transposed",
)
add(
    "P grouped: groups as a whole, not scaled",
    "variants.grouped",
    """
def grouped_attention(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = torch.cat([k] * times, 1), torch.cat([v] * times, 1)  # <-
    n = q.shape[2]
    s = torch.einsum("bhid,bhjd->bhij", q, k)  # <- 2
    s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)  # <- 2
    return s.softmax(-1) @ v  # <- 2
""",
    "group|repeat|neighbour|whole",
    "not scaled|scale",
)
add(
    "P masked scores: whole width, one step late",
    "activations.scores",
    """
def masked_scores(wide, num_heads):
    b, n, w = wide.shape
    qkv = wide.reshape(b, n, 3, num_heads, -1)
    q, k = qkv[:, :, 0].transpose(1, 2), qkv[:, :, 1].transpose(1, 2)
    s = torch.matmul(q, k.transpose(-1, -2)) / (w // 3) ** 0.5  # <-
    s[:, :, torch.ones(n, n).triu(2).bool()] = -1e9  # <- 2
    return s
""",
    "width|hidden|head_size|root|factor|too small",
    "late|after it|next|not hidden",
)
assert len(ADD.programs) == 60, len(ADD.programs)


def _key(program: Program) -> bytes:
    return hashlib.sha256(("third" + program.what).encode()).digest()


SINGLES = sorted((p for p in ADD.programs if len(p.causes) == 1), key=_key)
PAIRS = sorted((p for p in ADD.programs if len(p.causes) == 2), key=_key)
LOOKED_AT = SINGLES[::2] + PAIRS[::2]
COUNTED = SINGLES[1::2] + PAIRS[1::2]
