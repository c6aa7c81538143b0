"""Right programs in many styles: at none of their steps does anything go wrong."""

SINGLE = """
class {name}(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.hidden = hidden

    def forward(self, x):
{body}
"""


CAUSAL = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.noise = nn.Dropout(dropout)

    def forward(self, x):
{body}
"""


def single(body: str, name: str = "SelfAttention") -> str:
    """A class with three layers, its `forward` by these lines: the first of them is line 10."""
    return SINGLE.format(name=name, body=_in_a_method(body)).lstrip()


def causal(body: str) -> str:
    """A class with three layers and dropout, `self.noise`: the body's first line is line 10."""
    return CAUSAL.format(body=_in_a_method(body)).lstrip()


def _in_a_method(body: str) -> str:
    lines = [f"        {line}".rstrip() for line in body.strip().split("\n")]
    return "\n".join(lines)


BODIES = {
    "four lines": """
q, k, v = self.q(x), self.k(x), self.v(x)
scores = q @ k.transpose(-2, -1) / self.hidden ** 0.5
weights = torch.softmax(scores, dim=-1)
return weights @ v""",
    "one line": """
return F.softmax(self.q(x) @ self.k(x).mT / self.hidden ** 0.5, -1) @ self.v(x)""",
    "scaled queries": """
q = self.q(x) * self.hidden ** -0.5
w = (q @ self.k(x).mT).softmax(-1)
return torch.bmm(w, self.v(x))""",
    "queries and keys share the scale": """
root = self.hidden ** 0.25
w = torch.softmax((self.q(x) / root) @ (self.k(x) / root).mT, -1)
return w @ self.v(x)""",
    "einsum": """
s = torch.einsum("bqd,bkd->bqk", self.q(x), self.k(x)) / math.sqrt(self.hidden)
return torch.einsum("bqk,bkd->bqd", s.softmax(2), self.v(x))""",
    "a softmax by hand": """
s = self.q(x) @ self.k(x).transpose(1, 2) / self.hidden ** 0.5
s = s - s.amax(dim=-1, keepdim=True)
p = torch.exp(s)
p = p / p.sum(dim=-1, keepdim=True)
return p @ self.v(x)""",
    "keys stand in the rows": """
s = self.k(x) @ self.q(x).transpose(1, 2) / self.hidden ** 0.5
w = s.softmax(dim=1)
return w.transpose(1, 2) @ self.v(x)""",
    "a loop over items": """
out = []
for item in x:
    q, k, v = self.q(item), self.k(item), self.v(item)
    w = torch.softmax(q @ k.T / self.hidden ** 0.5, dim=1)
    out.append(w @ v)
return torch.stack(out)""",
    "a loop over tokens": """
q, k, v = self.q(x), self.k(x), self.v(x)
out = torch.zeros_like(v)
for b in range(x.shape[0]):
    for i in range(x.shape[1]):
        scores = (k[b] * q[b, i]).sum(-1) / self.hidden ** 0.5
        weights = scores.softmax(0)
        out[b, i] = (weights[:, None] * v[b]).sum(0)
return out""",
    "in place": """
s = torch.matmul(self.q(x), self.k(x).transpose(1, 2))
s /= self.hidden ** 0.5
s = torch.softmax(s, dim=-1)
return torch.matmul(s, self.v(x))""",
    "pytorch's own": """
return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))""",
    "the values first": """
v = self.v(x)
s = self.q(x) @ self.k(x).mT
return ((s / self.hidden ** 0.5).softmax(-1).unsqueeze(-1) * v.unsqueeze(1)).sum(2)""",
    "the log of a softmax": """
s = self.q(x) @ self.k(x).mT / math.sqrt(self.hidden)
return s.log_softmax(-1).exp() @ self.v(x)""",
}
RIGHT = {name: single(body) for name, body in BODIES.items()}
