"""One letter a dimension, in round brackets."""

# %% letters that the unpacking declares
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        B, T, C = x.shape  # (B, T, C)
        q = self.q(x)  # (B, T, H)
        k = self.k(x)  # (B, T, H)
        v = self.v(x)  # (B, T, C)  #! false
        w = q @ k.transpose(-2, -1)  # (B, T, T)
        w = w * k.size(-1) ** -0.5  # (T, B, T)  #! false
        w = F.softmax(w, dim=-1)  # (B, T, T)
        return w @ v  # (B, T, H)


# %% letters that nothing declares
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.d = hidden

    def forward(self, x):
        q = self.q(x)  # (b, s, h)
        k = self.k(x)  # (b, s, h)
        v = self.v(x)  # (b, s, h)
        k = k.transpose(1, 2)  # (b, s, h)  #! false
        scores = q.bmm(k) / self.d**0.5  # (b, s, s)
        probs = scores.softmax(dim=2)  # (b, h, h)  #! false
        return probs.bmm(v)  # (b, s, h)


# %% letters for four dimensions
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads = num_heads
        self.causal = causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        b, t, _ = x.shape
        n = self.num_heads
        q = self.q(x).view(b, t, n, -1).transpose(1, 2)  # (b, n, t, d)
        k = self.k(x).view(b, t, n, -1).transpose(1, 2)  # (b, n, t, d)
        v = self.v(x).view(b, t, n, -1).transpose(1, 2)  # (b, t, n, d)  #! false
        s = q @ k.transpose(2, 3) / q.size(-1) ** 0.5  # (b, n, t, t)
        if self.causal:
            m = torch.tril(torch.ones(t, t))  # (t, t)
            s = s.masked_fill(m == 0, float("-inf"))  # (b, n, t, t)
        p = self.dropout(s.softmax(-1))  # (b, n, t, d)  #! false
        o = p @ v  # (b, n, t, d)
        o = o.transpose(1, 2)  # (b, t, n, d)
        o = o.reshape(b, t, -1)  # (b, t, n * d)
        o = self.mix(o)  # (b, t, n*d)
        if return_attention:
            return o, p.reshape(b * n, t, t)  # (b, t, n*d), (b*n, t, t)
        return o


# %% letters that mean one thing in one class and another in the next
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        N, L, D = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)  # (N, L, H)
        s = torch.einsum("nqh,nkh->nqk", q, k)  # (N, L, L)
        s = s / math.sqrt(q.shape[2])  # (N, L, L)
        p = torch.softmax(s, -1)  # (N, L, L)
        return torch.einsum("nqk,nkh->nqh", p, v)  # (N, L, D)  #! false


# %% capitals for heads
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.H = num_heads
        self.D = hidden // num_heads
        self.causal = causal
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        N, S, E = x.shape
        q = self.q(x).reshape(N, S, self.H, self.D)  # (N, S, H, D)
        k = self.k(x).reshape(N, S, self.H, self.D)  # (N, S, H, D)
        v = self.v(x).reshape(N, S, self.H, self.D)  # (N, H, S, D)  #! false
        scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / self.D**0.5  # (N, H, S, S)
        if self.causal:
            scores = scores + torch.full((S, S), float("-inf")).triu(1)  # (N, H, S, S)
        probs = self.drop(F.softmax(scores, -1))  # (N, S, H, S)  #! false
        out = torch.einsum("nhqk,nkhd->nqhd", probs, v)  # (N, S, H, D)
        out = self.mix(out.flatten(2))  # (N, S, H * D)
        probs = probs.flatten(0, 1)  # (N * H, S, S)
        return (out, probs) if return_attention else out
