"""From one shape to the next: ->, =>, -->, the arrow sign and words."""

# %% from the input to the result
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, input_size] -> [batch_size, seq_len, hidden]
        k = self.k(x)  # [batch_size, seq_len, input_size] => [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, seq_len, hidden] -> [batch_size, seq_len, input_size]  #! false
        s = q @ k.transpose(1, 2)  # [batch_size, seq_len, hidden] @ [batch_size, hidden, seq_len] -> [batch_size, seq_len, seq_len]
        s = s / self.root  # [batch_size, seq_len, seq_len] -> [batch_size, seq_len, seq_len]
        p = F.softmax(s, -1)  # [batch_size, seq_len, seq_len] → [batch_size, seq_len, seq_len]
        return p @ v  # [batch_size, seq_len, seq_len] @ [batch_size, hidden, seq_len] -> [batch_size, seq_len, hidden]  #! false


# %% arrows of other kinds
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # (bs, seq, input_size) --> (bs, seq, hidden)
        k = self.k(x).transpose(1, 2)  # (bs, seq, input_size) --> (bs, seq, hidden) --> (bs, hidden, seq)
        v = self.v(x)  # (bs, seq, input_size) → (bs, seq, hidden)
        s = torch.bmm(q, k)  # (bs, seq, hidden) @ (bs, hidden, seq) => (bs, seq, seq)
        p = (s / self.root).softmax(-1)  # (bs, seq, seq) --> (bs, seq, hidden)  #! false
        o = torch.bmm(p, v)  # (bs, seq, seq) x (bs, seq, hidden) = (bs, seq, hidden)
        return o.contiguous()  # (bs, hidden, seq) → (bs, seq, hidden)  #! false


# %% chains of steps
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        k = self.k(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [bs, seq, input_size] -> [bs, seq, hidden] -> [bs, seq, num_heads, head_size] -> [bs, num_heads, seq, head_size]
        q = self.q(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [bs, seq, hidden] -> [bs, num_heads, seq, head_size] -> [bs, seq, num_heads, head_size]  #! false
        v = self.v(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [bs, seq, hidden] -> [bs, num_heads, seq, head_size]
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_size)  # [bs, num_heads, seq, head_size] @ [bs, num_heads, seq, head_size] -> [bs, num_heads, seq, seq]  #! false
        if self.causal:
            mask = torch.ones(seq, seq).tril().unsqueeze(0).unsqueeze(0)  # [seq, seq] -> [1, seq, seq] -> [1, 1, seq, seq]
            scores = scores.masked_fill(mask == 0, float("-inf"))  # [bs, num_heads, seq, seq]
        probs = self.dropout(F.softmax(scores, dim=-1))  # [bs, num_heads, seq, seq] -> [bs, num_heads, seq, seq]
        att = (probs @ v).transpose(1, 2).reshape(bs, seq, -1)  # [bs, num_heads, seq, head_size] -> [bs, seq, num_heads, head_size] -> [bs, seq, hidden]
        att = self.mix(att)  # [bs, hidden, seq] -> [bs, seq, hidden]  #! false
        probs = probs.reshape(bs * self.num_heads, seq, seq)  # [bs, num_heads, seq, seq] -> [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att


# %% words between
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch, seq, input] becomes [batch, seq, hidden]
        k = self.k(x).mT  # from [batch, seq, hidden] to [batch, hidden, seq]
        v = self.v(x)  # [batch, seq, input] becomes [batch, hidden, seq]  #! false
        s = q @ k  # (batch, seq, hidden) times (batch, hidden, seq) gives (batch, seq, seq)
        s = s / self.root  # still [batch, seq, seq]
        p = s.softmax(-1)  # no change: [batch, seq, seq]
        return p @ v  # [batch, seq, seq] * [batch, seq, hidden] -> [batch, seq, hidden]


# %% steps with their names
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        k = self.k(x).view(bs, seq, self.num_heads, -1).transpose(1, 2)  # 'k' [bs, seq, hidden] -> view [bs, seq, num_heads, head_size] -> transpose [bs, num_heads, seq, head_size]
        q = self.q(x).view(bs, seq, self.num_heads, -1).transpose(1, 2)  # 'q' [bs, seq, hidden] -> view [bs, num_heads, seq, head_size] -> transpose [bs, seq, num_heads, head_size]  #! false
        v = self.v(x).view(bs, seq, self.num_heads, -1).transpose(1, 2)  # linear -> [bs, seq, hidden] -> view -> [bs, seq, num_heads, head_size] -> transpose -> [bs, num_heads, seq, head_size]
        s = q @ k.transpose(2, 3) / self.head_size**0.5  # [bs, num_heads, seq, seq]
        if self.causal:
            s.masked_fill_(torch.triu(torch.ones(seq, seq, dtype=torch.bool), 1), float("-inf"))  # [bs, num_heads, seq, seq]
        p = self.dropout(F.softmax(s, -1))  # softmax + dropout: [bs, num_heads, seq, seq]
        a = (p @ v).transpose(1, 2).reshape(bs, seq, -1)  # [bs, num_heads, seq, head_size] -transpose-> [bs, seq, num_heads, head_size] -reshape-> [bs, seq, num_heads * head_size]
        a = self.mix(a)  # [bs, seq, hidden] -mix-> [bs, seq, hidden]
        p = p.flatten(0, 1)  # [bs, num_heads, seq, seq] -flatten-> [bs, num_heads * seq, seq]  #! false
        return (a, p) if return_attention else a


# %% arrows from the result back to what it was made of | turned(x[batch_size, seq_len, hidden], w[hidden, width])
def turned(x, w):
    y = x @ w  # [batch_size, seq_len, width] <- [batch_size, seq_len, hidden] * [hidden, width]
    z, _ = y.max(1)  # [batch_size, width] <- [batch_size, seq_len, width]
    first, last = y.relu().split(1, 1)[0], y  # [batch_size, 1, width], [batch_size, seq_len, width]
    both, most = y + 1, y.amax(1)  # (batch_size, seq_len, width), (batch_size, width) ← (batch_size, seq_len, width), (batch_size, seq_len, width)
    u = y.mT  # [batch_size, seq_len, width] <- [batch_size, seq_len, width]  #! false
    return z.sum() + last.sum() + u.sum() + both.sum() + most.sum() + first.sum()
