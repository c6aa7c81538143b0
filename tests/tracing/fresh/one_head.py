"""Lessons 01 and 02: no heads yet."""

from tests.tracing.fresh.program import Group

ADD = Group()
add = ADD.add

# --- lesson 01 -----------------------------------------------------------------------------------
add(
    "the state is never handed on",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    h0 = torch.zeros(w_hidden.shape[0])
    hs = []
    for t in range(len(x)):
        h = torch.tanh(x[t] @ w_input + h0 @ w_hidden + bias)  # <-
        hs.append(h)
    return torch.stack(hs)
""",
    "recurrence|before is not used|each state",
)
add(
    "the recurrent matrix transposed in a helper",
    "simple.rnn",
    """
def step(tok, h, Wx, Wh, b):
    pre = Wx.T @ tok + Wh @ h + b  # <-
    return pre.tanh()

def encoder_states(x, w_input, w_hidden, bias):
    h = bias.new_zeros(bias.shape)
    return torch.stack([h := step(tok, h, w_input, w_hidden, bias) for tok in x])
""",
    "transposed",
)
add(
    "distances for products",
    "simple.scores",
    """
def attention_scores(query, inputs):
    result = []
    for row in inputs:
        result.append(torch.dist(row, query))  # <-
    return torch.stack(result)
""",
    "distance",
)
add(
    "the mean for the sum in a comprehension",
    "simple.context",
    """
def context_vectors(inputs):
    S = torch.stack([torch.stack([(a * b).mean() for b in inputs]) for a in inputs])  # <-
    A = S.softmax(-1)
    return torch.stack([sum(A[i, j] * inputs[j] for j in range(len(inputs)))
                        for i in range(len(inputs))])
""",
    "factor|averag|mean",
)
add(
    "a chain with the wrong axis",
    "simple.matmul",
    """
def simple_attention(x):
    return x.matmul(x.mT).softmax(1).matmul(x)  # <-
""",
    "dim|over|axis",
)
add(
    "the wrong index in a double loop",
    "simple.context",
    """
def context_vectors(inputs):
    n, d = inputs.shape
    out = torch.zeros(n, d)
    for i in range(n):
        w = torch.softmax(inputs @ inputs[i], dim=0)
        for j in range(n):
            out[i] += w[j] * inputs[i]  # <-
    return out
""",
    "item|index|token|own|sum|other|row",
)
add(
    "exponentials of the weights",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    m, _ = torch.max(scores, dim=-1, keepdim=True)
    z = torch.exp(scores - m)  # <-
    return torch.exp(z) / torch.exp(z).sum(-1, keepdim=True)  # <-
""",
    "twice|exp",
)
add(
    "numpy's names, summed over the rows",
    "simple.softmax_naive",
    """
def softmax_naive(scores):
    exps = torch.exp(scores)
    Z = exps.sum(axis=0, keepdims=True)  # <-
    return exps / Z  # <-
""",
    "axis|dim|column",
)
add(
    "not normalised, and halved",
    "simple.matmul",
    """
def simple_attention(x):
    logits = torch.einsum('nid,njd->nij', x, x)
    A = logits.exp()  # <-
    ctx = torch.einsum('nji,njd->nid', A, x)
    return ctx / 2  # <- 2
""",
    "not (divided|normal)|do not sum|rows",
    "factor|multipl|2",
)
add(
    "scaled, and softmax twice",
    "simple.matmul",
    """
def simple_attention(x):
    q = k = v = x
    sim = q @ k.permute(0, 2, 1)
    sim *= k.shape[-1] ** -0.5  # <-
    p = sim.softmax(dim=-1)
    p = p.softmax(dim=-1)  # <- 2
    return p @ v
""",
    "scaled",
    "twice",
)
add(
    "the diagonal left out, scaled",
    "simple.context",
    """
def context_vectors(inputs):
    s = inputs @ inputs.T
    s = s / inputs.shape[1] ** 0.5  # <-
    s = s.masked_fill(torch.eye(len(s)) > 0, float("-inf"))  # <- 2
    return s.softmax(-1) @ inputs
""",
    "scaled",
    "itself|own|diagonal|hidden",
)

# --- lesson 02 -----------------------------------------------------------------------------------
add(
    "queries and keys exchanged in their assignment",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.sqrt_d = math.sqrt(hidden)

    def forward(self, x):
        k, q, v = self.q(x), self.k(x), self.v(x)  # <-
        att = (q @ k.transpose(1, 2)) / self.sqrt_d  # <-
        att = att.softmax(dim=-1)
        return att @ v
""",
    "swapped|exchanged",
)
add(
    "projected with the matrices the wrong way round",
    "one_head.project",
    """
def project(x, w_query, w_key, w_value):
    weights = {"q": w_query, "k": w_value, "v": w_key}  # <-
    return tuple(x @ weights[name] for name in "qkv")  # <-
""",
    "order|swapped|places|exchanged|keys|values",
)
add(
    "the scale multiplies",
    "one_head.scale",
    """
def attention_weights(q, k):
    scale = math.sqrt(q.shape[-1])
    logits = q.matmul(k.transpose(-2, -1)).mul(scale)  # <-
    return nn.Softmax(dim=-1)(logits)
""",
    "multiplied",
)
add(
    "scaled after the softmax",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    d_k = q.shape[-1]
    probs = torch.softmax(torch.bmm(q, k.mT), dim=2)  # <-
    probs = probs / d_k ** 0.5  # <-
    return torch.bmm(probs, v)
""",
    "after",
)
add(
    "one softmax over all",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    b, n, _ = q.shape
    s = torch.baddbmm(torch.zeros(b, n, n), q, k.mT, alpha=q.shape[-1] ** -0.5)
    p = F.softmax(s.view(b, -1), dim=-1).view(b, n, n)  # <-
    return p @ v
""",
    "one|all|together|over|sum",
)
add(
    "a loop over the items that scores the first one only",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    outs = []
    for b in range(q.size(0)):
        s = q[b] @ k[0].T / q.size(-1) ** .5  # <-
        p = s.softmax(-1)
        outs.append(p @ v[b])
    return torch.stack(outs)
""",
    "item|first|other|index|k\\[0\\]",
)
add(
    "the values of another item",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    w = [torch.softmax(qi @ ki.T / math.sqrt(qi.shape[1]), 1) for qi, ki in zip(q, k)]
    return torch.stack([wi @ v[-1] for wi in w])  # <-
""",
    "item|last|other|index|v\\[-1\\]",
)
add(
    "the values exchanged with the keys at a call",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    @staticmethod
    def dot_product(query, key, value):
        d = query.size(-1)
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d)
        return torch.matmul(F.softmax(scores, dim=-1), value)

    def forward(self, x):
        return self.dot_product(self.q(x), self.v(x), self.k(x))  # <-
""",
    "swapped|exchanged|values|keys",
)
add(
    "the root of the tokens in a helper",
    "one_head.three_lines",
    """
class ShortAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
    def forward(self, x):
        att = torch.einsum('btd,bsd->bts', self.q(x), self.k(x)) / x.size(1)**0.5  # <-
        return torch.einsum('bts,bsd->btd', att.softmax(-1), self.v(x))
""",
    "seq_len|another number|factor",
)
add(
    "parameters, the queries used twice",
    "one_head.parameters",
    """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.w_query = nn.Parameter(torch.rand(input_size, hidden))
        self.w_key = nn.Parameter(torch.rand(input_size, hidden))
        self.w_value = nn.Parameter(torch.rand(input_size, hidden))

    def forward(self, x):
        queries = x @ self.w_query
        keys = x @ self.w_query  # <-
        values = x @ self.w_value
        omega = queries @ keys.T
        alpha = torch.softmax(omega / keys.shape[-1]**0.5, dim=-1)
        return alpha @ values
""",
    "quer",
)
add(
    "the softmax by hand loses its axis",
    "one_head.scale",
    """
def attention_weights(q, k):
    s = (q[:, None, :] * k[None, :, :]).sum(-1)
    s = s / math.sqrt(q.shape[1])
    e = torch.exp(s - s.max())
    return e / e.sum(dim=1)  # <-
""",
    "axis|sum|row|column",
)
add(
    "sigmoid, and the fourth root",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden ** -0.25  # <-

    def forward(self, x):
        Q, K, V = (f(x) for f in (self.q, self.k, self.v))
        A = Q @ K.mT * self.scale  # <-
        A = torch.sigmoid(A)  # <- 2
        return A @ V
""",
    "fourth|factor|another number|root",
    "sigmoid|rows do not sum",
)
add(
    "values from the keys, divided by hidden",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.dim = hidden

    def forward(self, x):
        q = self.q(x)
        kv = self.k(x)
        dots = q @ kv.transpose(-1, -2) / self.dim  # <-
        weights = F.softmax(dots, dim=-1)
        return weights @ kv  # <- 2
""",
    "root|itself",
    "keys",
)
add(
    "not scaled, over the queries",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    energy = torch.einsum("bqd,bkd->bqk", q, k)  # <-
    attention = torch.softmax(energy, dim=1)  # <- 2 # <-
    return torch.einsum("bqk,bkv->bqv", attention, v)
""",
    "not scaled",
    "over|dim",
)
add(
    "multiplied by the root, exchanged",
    "one_head.scale",
    """
def attention_weights(q, k):
    d = q.shape[1]
    S = torch.stack([torch.stack([ki @ qj for qj in q]) for ki in k])  # <-
    S = S * d ** 0.5  # <- 2
    return torch.softmax(S, 1)
""",
    "swapped|exchanged|transposed",
    "multiplied",
)
add(
    "the sum for the softmax, the root of seq_len",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = q @ k.t()
    scores = scores / len(q) ** 0.5  # <-
    return scores / scores.sum(1, keepdim=True)  # <- 2
""",
    "seq_len|factor|another",
    "softmax|sum",
)
add(
    "log-softmax, and the items averaged",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(k.size(2))
    logp = F.log_softmax(s, dim=-1)  # <-
    return torch.bmm(logp, v.mean(0, keepdim=True).expand_as(v))  # <- 2
""",
    "log",
    "averag|mean|items",
)
