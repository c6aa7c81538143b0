"""Right tensors under wrong names: the line that named them is told, or none."""

from tests.tracing.fresh.program import Group

ADD = Group()
add = ADD.add
QKV = """        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
"""
HEAD = "class Attention(nn.Module):\n    def __init__(self, input_size, hidden):\n" + QKV + "\n"
add(
    "A1 helper returns q k v, unpacked q v k, one line",
    "one_head.forward",
    HEAD
    + """
    def project(self, x):
        return self.q(x), self.k(x), self.v(x)

    def forward(self, x):
        q, v, k = self.project(x)  # <-
        return (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v
""",
    ".",
)
add(
    "A2 list then unpack",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        parts = [f(x) for f in (self.q, self.k, self.v)]
        q, v, k = parts  # <-
        return (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v
""",
    ".",
)
add(
    "A3 keys are another name of the queries",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        q, k, v = [f(x) for f in (self.q, self.k, self.v)]
        keys = q  # <-
        scores = q @ keys.mT / k.shape[-1] ** 0.5
        return scores.softmax(-1) @ v
""",
    ".",
)
add(
    "A4 list index",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        made = [layer(x) for layer in (self.q, self.k, self.v)]
        q, k, v = made[0], made[0], made[2]  # <-
        scores = q @ k.mT / k.shape[-1] ** 0.5
        return scores.softmax(-1) @ v
""",
    ".",
)
add(
    "A5 dictionary of projections",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        made = {name: getattr(self, name)(x) for name in "qkv"}
        scores = made["q"] @ made["k"].mT / made["k"].shape[-1] ** 0.5
        weights = scores.softmax(-1)
        return weights @ made["k"]  # <-
""",
    ".",
)
add(
    "A6 first item of x, a line of its own",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    outs = []
    for i in range(len(q)):
        vi = v[0]  # <-
        s = q[i] @ k[i].T / k.shape[-1] ** 0.5
        w = s.softmax(-1)
        outs.append(w @ vi)
    return torch.stack(outs)
""",
    ".",
)
add(
    "A7 the first item taken before the loop",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    outs = []
    vi = v[0]  # <-
    for i in range(len(q)):
        s = q[i] @ k[i].T / k.shape[-1] ** 0.5
        w = s.softmax(-1)
        outs.append(w @ vi)  # <-
    return torch.stack(outs)
""",
    ".",
)
add(
    "A8 heads cut, head 0 named before",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, dim=-1) for t in (q, k, v))
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    value = vs[0]  # <-
    outs, maps = [], []
    for i in range(num_heads):
        s = qs[i] @ ks[i].mT / ks[i].shape[-1] ** 0.5
        p = s.masked_fill(ahead, -math.inf).softmax(-1)
        maps.append(p)
        outs.append(p @ value)  # <-
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "A9 zip with one list shifted",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, dim=-1) for t in (q, k, v))
    vs = vs[1:] + vs[:1]  # <-
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    outs, maps = [], []
    for a, b, c in zip(qs, ks, vs):
        s = a @ b.mT / b.shape[-1] ** 0.5
        p = s.masked_fill(ahead, -math.inf).softmax(-1)
        maps.append(p)
        outs.append(p @ c)
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "A10 the keys turned in a helper's argument, divided twice",
    "one_head.scale",
    """
def attention_weights(q, k):
    d = k.shape[-1]
    a, b = k, q  # <-
    s = a @ b.T
    return (s / d ** 0.5).softmax(-1)
""",
    ".",
)
add(
    "A11 scale kept in a variable of __init__",
    "one_head.forward",
    HEAD.replace("\n\n", "\n")
    + """        self.scale = hidden  # <-

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        s = q @ k.mT
        s = s / self.scale  # <-
        return s.softmax(-1) @ v
""",
    ".",
)
add(
    "A12 a mask's buffer, inverted where it is made",
    "masks.minus_infinity",
    """
def make_mask(n):
    return torch.ones(n, n).tril().bool()  # <-

def mask_scores(scores):
    hidden = make_mask(scores.shape[-1])
    return scores.masked_fill(hidden, -math.inf).softmax(-1)  # <-
""",
    ".",
)
add(
    "A13 tanh of keys before",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    keys = k.tanh()  # <-
    s = q @ keys.mT / k.shape[-1] ** 0.5  # <-
    return s.softmax(-1) @ v
""",
    ".",
)
add(
    "A14 log then exp, sum in a helper over columns",
    "simple.softmax_stable",
    """
def total(t):
    return t.sum(0)  # <-

def softmax_stable(scores):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / total(e)
""",
    ".",
)
add(
    "A15 swapped when stacked",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    three = torch.stack((q, v, k))  # <-
    q, k, v = three.view(3, b, n, num_heads, -1).transpose(2, 3)  # <-
    s = q @ k.mT / k.shape[-1] ** 0.5
    p = s.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf).softmax(-1)
    return (p @ v).transpose(1, 2).reshape(b, n, h), p.flatten(0, 1)
""",
    ".",
)
add(
    "A16 unpacked from a stack in the wrong order, one line",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    cut = [t.view(b, n, num_heads, -1).transpose(1, 2) for t in (q, k, v)]
    q, v, k = cut  # <-
    ahead = torch.ones(n, n).triu(1).bool()
    p = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(ahead, -math.inf).softmax(-1)
    return (p @ v).transpose(1, 2).reshape(b, n, h), p.flatten(0, 1)
""",
    ".",
)
add(
    "A17 a static method with arguments exchanged in its head",
    "one_head.forward",
    HEAD
    + """
    def attend(self, k, q, v):  # <-
        return (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v

    def forward(self, x):
        return self.attend(self.q(x), self.k(x), self.v(x))  # <-
""",
    ".",
)
add(
    "A18 map in another order",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        k, q, v = (f(x) for f in (self.q, self.k, self.v))  # <-
        return (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v
""",
    ".",
)

add(
    "B1 keys made twice under names, one line",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        q = self.q(x)
        k = self.q(x)  # <-
        v = self.v(x)
        return (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v
""",
    ".",
)
add(
    "B2 swapped in the call of a helper",
    "one_head.forward",
    HEAD
    + """
    def mix(self, queries, keys, values):
        return (queries @ keys.mT / keys.shape[-1] ** 0.5).softmax(-1) @ values

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return self.mix(q, v, k)  # <-
""",
    ".",
)
add(
    "B3 tuple with wrong layer order, names straight",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        q, k, v = self.q(x), self.v(x), self.k(x)  # <-
        s = q @ k.mT / k.shape[-1] ** 0.5
        return s.softmax(-1) @ v
""",
    ".",
)
add(
    "B4 alias of a layer",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        to_k = self.q  # <-
        q, k, v = self.q(x), to_k(x), self.v(x)  # <-
        s = q @ k.mT / k.shape[-1] ** 0.5
        return s.softmax(-1) @ v
""",
    ".",
)
add(
    "B5 weights and scores renamed",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    attention = scores  # <-
    return attention @ v
""",
    ".",
)
add(
    "B6 the state renamed too late",
    "simple.rnn",
    """
def encoder_states(x, w_input, w_hidden, bias):
    h = torch.zeros_like(bias)
    out = []
    for t in range(len(x)):
        new = torch.tanh(x[t] @ w_input + h @ w_hidden + bias)
        out.append(h)  # <-
        h = new
    return torch.stack(out)
""",
    ".",
)
add(
    "B7 result of the wrong name",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    s = q @ k.mT / k.shape[-1] ** 0.5
    w = s.softmax(-1)
    out = w @ v
    out = w  # <-
    return out  # <-
""",
    ".",
)
add(
    "B8 masked and unmasked mixed up by name",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    future = torch.ones(scores.shape[-2:]).triu(1).bool()
    masked = scores.masked_fill(future, -torch.inf)
    plain = scores
    chosen = plain  # <-
    return chosen.softmax(-1)
""",
    ".",
)
add(
    "B9 two heads exchanged in a list",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    cut = lambda t: list(t.split(t.shape[-1] // num_heads, dim=-1))
    qs, ks, vs = cut(q), cut(k), cut(v)
    ks.reverse()  # <-
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    ps = []
    for a, b in zip(qs, ks):
        s = a @ b.mT / b.shape[-1] ** 0.5
        ps.append(s.masked_fill(ahead, -math.inf).softmax(-1))
    out = torch.cat([p @ c for p, c in zip(ps, vs)], -1)
    return out, torch.stack(ps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "B10 reversed while zipping",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, -1) for t in (q, k, v))
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    ps = []
    for a, b in zip(qs, reversed(ks)):  # <-
        s = a @ b.mT / b.shape[-1] ** 0.5
        ps.append(s.masked_fill(ahead, -math.inf).softmax(-1))
    out = torch.cat([p @ c for p, c in zip(ps, vs)], -1)
    return out, torch.stack(ps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "B11 items of a batch shifted",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    out = []
    n = len(q)
    for i in range(n):
        j = (i + 1) % n  # <-
        w = (q[i] @ k[i].T / k.shape[-1] ** 0.5).softmax(-1)
        out.append(w @ v[j])  # <-
    return torch.stack(out)
""",
    ".",
)
add(
    "B12 appended to the wrong list",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, -1) for t in (q, k, v))
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    outs, maps = [], []
    for i in range(num_heads):
        s = qs[i] @ ks[i].mT / ks[i].shape[-1] ** 0.5
        p = s.masked_fill(ahead, -math.inf).softmax(-1)
        maps.insert(0, p)  # <-
        outs.append(p @ vs[i])
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)  # <-
""",
    ".",
)
add(
    "B13 outs reversed by insert",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (t.chunk(num_heads, -1) for t in (q, k, v))
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    outs, maps = [], []
    for i in range(num_heads):
        s = qs[i] @ ks[i].mT / ks[i].shape[-1] ** 0.5
        p = s.masked_fill(ahead, -math.inf).softmax(-1)
        maps.append(p)
        outs = [p @ vs[i]] + outs  # <-
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "B14 returned in the other order",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    q, k, v = (t.view(b, n, num_heads, -1).transpose(1, 2) for t in (q, k, v))
    s = q @ k.mT / k.shape[-1] ** 0.5
    p = s.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf).softmax(-1)
    out, maps = p.flatten(0, 1), (p @ v).transpose(1, 2).flatten(2)  # <-
    return out, maps  # <-
""",
    ".",
)
add(
    "B15 helper with default that shadows",
    "one_head.batched",
    """
def scores_of(a, b):
    return a @ b.mT

def batched_attention(q, k, v):
    s = scores_of(k, q) / k.shape[-1] ** 0.5  # <-
    return s.softmax(-1) @ v
""",
    ".",
)
add(
    "B16 the loop's variable from before",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    ws = []
    for a, b in zip(q, k):
        w = (a @ b.T / b.shape[-1] ** 0.5).softmax(-1)
        ws.append(w)
    return torch.stack([w @ c for c in v])  # <-
""",
    ".",
)

add(
    "C1 the body of a helper uses the wrong ones",
    "one_head.forward",
    HEAD
    + """
    def dot(self, query, key, value):
        scores = query @ value.mT / key.shape[-1] ** 0.5  # <-
        weights = scores.softmax(-1)
        return weights @ key  # <-

    def forward(self, x):
        return self.dot(self.q(x), self.k(x), self.v(x))
""",
    ".",
)
add(
    "C2 keyword arguments crossed",
    "one_head.forward",
    HEAD
    + """
    def dot(self, query, key, value):
        scores = query @ key.mT / key.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        return weights @ value

    def forward(self, x):
        return self.dot(self.q(x), value=self.k(x), key=self.v(x))  # <-
""",
    ".",
)
add(
    "C3 helper gets keys for values",
    "one_head.batched",
    """
def average(w, t):
    return w @ t

def batched_attention(q, k, v):
    w = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
    return average(w, k)  # <-
""",
    ".",
)
add(
    "C4 helper's own slip, einsum letters",
    "simple.matmul",
    """
def average(w, t):
    return torch.einsum("bji,bjd->bid", w, t)  # <-

def simple_attention(x):
    w = (x @ x.mT).softmax(-1)
    return average(w, x)
""",
    ".",
)
add(
    "C5 a variable reused for two things",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    t = k
    s = q @ t.mT / k.shape[-1] ** 0.5
    w = s.softmax(-1)
    out = w @ t  # <-
    return out
""",
    ".",
)
add(
    "C6 if branch picks the wrong",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    s = q @ k.mT / k.shape[-1] ** 0.5
    w = s.softmax(-1)
    use = v if v is k else k  # <-
    return w @ use
""",
    ".",
)
add(
    "C7 walrus",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    if (keys := q) is not None:  # <-
        s = q @ keys.mT / k.shape[-1] ** 0.5
    return s.softmax(-1) @ v
""",
    ".",
)
add(
    "C8 attribute kept in self",
    "one_head.forward",
    HEAD
    + """
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        self.keys = q  # <-
        s = q @ self.keys.mT / k.shape[-1] ** 0.5
        return s.softmax(-1) @ v
""",
    ".",
)
add(
    "C9 lambda argument order",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    dot = lambda keys, queries: queries @ keys.mT  # <-
    s = dot(q, k) / k.shape[-1] ** 0.5  # <-
    return s.softmax(-1) @ v
""",
    ".",
)
add(
    "C10 dictionary entry overwritten",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    t = {"q": q, "k": k, "v": v}
    t["v"] = t["k"]  # <-
    w = (t["q"] @ t["k"].mT / k.shape[-1] ** 0.5).softmax(-1)
    return w @ t["v"]
""",
    ".",
)
add(
    "C11 list entry overwritten",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    qs, ks, vs = (list(t.chunk(num_heads, -1)) for t in (q, k, v))
    vs[1] = vs[0]  # <-
    n = q.shape[1]
    ahead = torch.ones(n, n).triu(1).bool()
    ps = [
        (a @ b.mT / b.shape[-1] ** 0.5).masked_fill(ahead, -math.inf).softmax(-1)
        for a, b in zip(qs, ks)
    ]
    out = torch.cat([p @ c for p, c in zip(ps, vs)], -1)
    return out, torch.stack(ps, 1).flatten(0, 1)
""",
    ".",
)
add(
    "C12 default argument",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    def average(w, t=k):  # <-
        return w @ t
    w = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
    return average(w)  # <-
""",
    ".",
)
add(
    "C13 nested function uses an outer name",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    values = k  # <-
    def average(w):
        return w @ values
    return average((q @ k.mT / k.shape[-1] ** 0.5).softmax(-1))
""",
    ".",
)
add(
    "C14 global list of layers",
    "one_head.forward",
    HEAD.replace("\n\n", "\n")
    + """        self.layers = [self.q, self.k, self.k]  # <-

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.layers)
        w = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
        return w @ v
""",
    ".",
)
add(
    "C15 layers tied",
    "one_head.forward",
    HEAD.replace("\n\n", "\n")
    + """        self.to_v = self.k  # <-

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.to_v(x)  # <-
        w = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
        return w @ v
""",
    ".",
)
add(
    "C16 conditional expression, softmax of the unmasked",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    future = torch.ones(n, n).triu(1).bool()
    masked = scores.masked_fill(future, -math.inf)
    chosen = masked if n == 0 else scores  # <-
    return chosen.softmax(-1)
""",
    ".",
)
