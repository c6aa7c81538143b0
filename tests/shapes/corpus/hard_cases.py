"""The hard cases, each in a small frame: what people write that a reader could take two ways."""

# %% the frame, declared names | Net(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.scale = num_heads, hidden // num_heads, hidden**0.5

    def forward(self, x):
        """x: FloatTensor[batch_size, seq_len, input_size]"""
        bs, seq, _ = x.shape  # [batch_size, seq_len, input_size]
        q = self.q(x)  # [bs, seq, input_size] @ [input_size, hidden] -> [bs, seq, hidden]
        q = self.q(x)  # [bs, seq, input_size] @ [hidden, input_size] -> [bs, seq, hidden]  #! false
        q = self.q(x)  # [heads, seq, hidden]  #! false
        s = torch.bmm(q, self.k(x).transpose(1, 2)) / self.scale  # [batch_size, seq_len, hidden] -> [batch_size, seq_len, seq_len]
        s = torch.bmm(q, self.k(x).transpose(1, 2)) / self.scale  # [bs, seq, hidden] @ [bs, seq, hidden] -> [bs, seq, seq]  #! false
        s = torch.bmm(q, self.k(x).transpose(1, 2)) / self.scale  # [bs, seq, hidden] @ [bs, hidden, seq]
        k = self.k(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [bs, seq, num_heads, head_size]  #! false
        k = self.k(x).reshape(bs * self.num_heads, seq, self.head_size)  # [batch, heads*seq, hidden/heads]  #! false
        k = self.k(x).reshape(bs * self.num_heads, seq, self.head_size)  # [num_heads * batch_size, seq_len, hidden // num_heads]
        y = x.mean()  # scalar
        y = x.mean()  # []
        y = x.mean(dim=1, keepdim=True)  # [bs, 1, input_size]
        y = x.mean(dim=1)  # [bs, 1, input_size]  #! false
        y = x[:, :-1]  # [bs, seq - 1, input_size]
        y = self.q(x)  # [..., hidden]
        y = self.q(x)  # (*, input_size)  #! false
        y = self.q(x)  # [bs, hidden, seq] (bs, seq, hidden)  #! cannot tell
        a, b = self.q(x), x.mean(1)  # [bs, seq, hidden], [bs, input_size]
        a, b = self.q(x), x.mean(1)  # [bs, seq, hidden], [bs, hidden]  #! false
        a, b = self.q(x), x.mean(1)  # [bs, seq, hidden]  #! cannot tell
        outs = [self.q(x) for _ in range(self.num_heads)]  # num_heads x [bs, seq, hidden]
        c = torch.cat([self.q(x) for _ in range(self.num_heads)], dim=0)  # [HEADS, B, S, H]  #! cannot tell
        return torch.stack(outs)  # [num_heads, bs, seq, hidden]


# %% letters: two agree and the third contradicts them | Net(input_size, hidden)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)

    def forward(self, x):
        y = self.q(x)  # [b, s, d]
        z = self.mix(y)  # [b, s, d]
        w = y.transpose(1, 2)  # [b, s, d]  #! false
        return w


# %% letters used once | Net(input_size, hidden)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)

    def forward(self, x):
        y = self.q(x)  # [A, Z, K]
        return y


# %% a branch that never runs, a loop that changes the shape | Net(input_size, hidden)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)

    def forward(self, x):
        if x.size(0) > 10**6:
            x = x[0]  # [seq, input_size]  #! cannot tell
        for i in range(2):
            x = x[:, :-1]  # [batch, seq - 1, input_size]  #! cannot tell
        return self.q(x)  # [batch, seq - 2, hidden]


# %% two sequences, alternatives | Cross(input_size, hidden)(q[batch_size, source_len, input_size]); Cross(input_size, hidden)(q[batch_size, source_len, input_size], kv[batch_size, target_len, input_size])
class Cross(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)

    def forward(self, q, kv=None):
        k = self.k(q) if kv is None else self.k(kv)  # [batch_size, source_len, hidden]; if kv supplied [batch_size, target_len, hidden]
        q = self.q(q)  # [batch_size, source_len, hidden]
        s = q @ k.transpose(1, 2)  # [batch_size, source_len, hidden] @ [batch_size, hidden, q_len] -> [batch_size, source_len, q_len]  #! cannot tell
        return s.softmax(-1)  # [batch_size, hidden, hidden]  #! false


# %% a recurrent layer gives a tuple in a tuple | Net(input_size, hidden)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, hidden)

    def forward(self, x):
        out, (hn, cn) = self.lstm(x)  # [b, s, h], ([1, b, h], [1, b, h])
        h = self.fc(out)  # [b, s, h]
        mask = torch.ones(out.size(1), out.size(1))  # [s, s]
        h = h[:, -1]  # [b, s]  #! cannot tell
        return h


# %% code that stops half-way | Net(input_size, hidden)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.q(x)  # [batch_size, hidden, seq_len]  #! false
        y = k.view(3, 5, 9)  # [batch_size, seq_len, hidden]  #! cannot tell
        return y @ q  # [batch_size, seq_len, hidden]  #! cannot tell


# %% a function alone | attend(q[b, n, d], k[b, m, d], v[b, m, e])
def attend(q, k, v):
    scores = torch.einsum("bnd,bmd->bnm", q, k)  # [b, n, m]
    scores = scores / q.shape[-1] ** 0.5  # [b, m, n]  #! false
    probs = scores.softmax(-1)  # (b, n, m)
    out = probs @ v  # b x n x e
    return out, probs  # [b, n, e], [b, n, m]
