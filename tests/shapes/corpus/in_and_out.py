"""What comes in and what comes out, told together; products of several; numbers of other calls."""

# %% what a name is and what it becomes, above the line | Turn(heads, width)(x[batch, seq, 2 * heads * width])
class Turn(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.width = width
        self.qkv = nn.Linear(2 * heads * width, heads * width)

    def forward(self, x):
        batch, seq, _ = x.shape
        y = self.qkv(x)
        # y: (batch, seq, heads * width)
        # y: (batch, heads, seq, width)
        y = y.view(batch, seq, self.heads, self.width).transpose(1, 2)
        att = y @ y.mT  # (batch, heads, seq, seq)
        # att: (batch, heads, seq, seq)
        # y: (batch, heads, seq, width)
        # result: (batch, heads, seq, width)
        y = att.softmax(-1) @ y
        # y: (batch, heads, seq, width)
        # y: (batch, seq, heads * width)
        y = y.transpose(1, 2).reshape(batch, seq, -1)
        # y: (batch, seq, heads * width)
        # y: (batch, heads * width, seq)
        y = y.transpose(1, 2)
        return y


# %% the line has a comment of its own: the one above is of what comes in | Mask(head, width)(q[batch, q_len, width], k[batch, k_len, width], mask[batch, q_len, k_len].bool())
class Mask(nn.Module):
    def __init__(self, head, width):
        super().__init__()
        self.head = head
        self.w_q = nn.Linear(width, head * width)
        self.w_k = nn.Linear(width, head * width)

    def forward(self, q, k, mask):
        # q: (batch, seq_len, width)
        q = self.w_q(q)  # q: (batch, seq_len, head * width)
        k = self.w_k(k)  # k: (batch, seq_len, head * width)  #! cannot tell
        q = q.view(q.size(0), q.size(1), self.head, -1).transpose(1, 2)  # q: (batch, head, seq_len, width)
        k = k.view(k.size(0), k.size(1), self.head, -1).permute(0, 2, 3, 1)  # k: (batch, head, width, seq_len)  #! cannot tell

        att = torch.matmul(q, k)  # (batch, head, seq_len, seq_len)  #! cannot tell

        # made wide, for each head the same
        # mask: (batch, seq_len, seq_len)
        mask = mask[:, None].expand(-1, self.head, -1, -1)  # mask: (batch, head, seq_len, seq_len)  #! cannot tell
        att = att.masked_fill(mask, -1e9)  #! missing
        att = torch.softmax(att, dim=-1)  # scores: (batch, head, seq_len, seq_len)  #! cannot tell
        return att @ k.mT  # z: (batch, head, width, seq_len)  #! false


# %% three factors | Luong(hidden_size)(h[hidden_size, 1], e[src_len, hidden_size])
class Luong(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Parameter(torch.randn(hidden_size, hidden_size))

    def forward(self, h, e):
        e = e.relu()  # (src_len, hidden_size)

        # score = h^T @ W @ e
        # All of them at once: (1, hidden_size) @ (hidden_size, hidden_size) @ (hidden_size, src_len)
        scores = h.T @ self.W @ e.T

        weights = scores.softmax(-1)  # (1, src_len)
        return weights.mT  # (1, src_len)  #! false


# %% the result of a product behind an equals sign | Product(scale)(a[N, T, J], b[N, J, h])
class Product(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, a, b):
        a = a.softmax(-1)  # N,T,J
        b = b.relu()  # N,J,h
        c = torch.bmm(a, b)  # N,T,J * N,J,h = N,T,h
        d = a @ b  # N,T,J @ N,J,h = N,T,h
        e = torch.bmm(a, b)  # N,T,J * N,J,h = N,h,T  #! false
        return c + d + e  # N,T,h


# %% numbers of the author's own call | Prenet(mel=6, hidden=14)(x[batch, seq, 6])
class Prenet(nn.Module):
    def __init__(self, mel, hidden):
        super().__init__()
        self.mel = mel
        self.up = nn.Linear(mel, hidden)

    def forward(self, x):
        first = x.new_zeros(1, x.size(0), self.mel)  # (1, batch, 80*1)  #! cannot tell
        x = x.transpose(0, 1)  # (seq, batch, 80*1)  #! cannot tell
        x = torch.cat((first, x))  # (seq + 1, batch, 80*1)  #! cannot tell
        h = self.up(x)  # (seq + 1, batch, hidden)
        h = h.relu()  # (seq + 1, batch, hidden)
        h = h[1:]  # (seq, batch, hidden)
        return h.transpose(0, 1)  # (seq, batch, hidden)  #! false


# %% told in rows of their own, and in another language | Pool(d, h)(x[b, t, d])
class Pool(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.up = nn.Linear(d, h)
        self.act = nn.Linear(h, h)

    def forward(self, x):
        x = self.up(x)  # [b, t, h]
        y = self.act(x)  # 形状不变  #! cannot tell
        z = y.tanh()  # 形状保持不变  #! cannot tell
        # utt x frame x dim -> utt x frame
        p = z.mean(-1)  #! cannot tell
        q = p + z.sum(-1)  # [b, t]
        return q.softmax(-1)  #! missing


# %% a product and what it makes, before the line goes on | Score(d)(q[b, 1, d], k[b, d, t])
class Score(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d

    def forward(self, q, k):
        q = q.relu()  # [b, 1, d]
        k = k.relu()  # [b, d, t]
        s = (q @ k).squeeze(1)  # [b, 1, d] @ [b, d, t] -> [b, 1, t]  #! cannot tell
        v = torch.bmm(q, k).squeeze(1)  # (b, 1, d) x (b, d, t) = (b, 1, t)  #! cannot tell
        w = torch.bmm(q, k).squeeze(1)  # (b, 1, d) x (b, d, t) = (t, b)  #! false
        return (s + v + w).softmax(-1)  # [b, t]


# %% one axis too many, by a name that no other comment has | Track(width, inner)(x[batch, steps, width])
class Track(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        x = x * 2  # [batch, steps, width]
        wide = self.up(x)  # [batch, steps, inner]
        wide = wide.tanh()  # [batch, steps, inner]
        bent = wide.relu()  # [batch, steps, lanes, inner]  #! false
        # Ranks: [i, steps].
        ranks = torch.arange(x.shape[1])  #! cannot tell
        back = self.down(bent)  # [batch, steps, width]
        y = back + ranks[:, None]  # [batch, steps, width]
        y = y - x  # [batch, steps, width]
        # [batch, steps, width, lane]
        return y.softmax(-1)  #! false


# %% an axis that this call lacks, told of all lines | Rows(width, inner)(x[batch, width])
class Rows(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        wide = self.up(x)  # [batch, people, inner]  #! cannot tell
        bent = wide.relu()  # [batch, people, inner]  #! cannot tell
        back = self.down(bent)  # [batch, people, width]  #! cannot tell
        return back.tanh()  # [batch, people, width]  #! cannot tell


# %% a branch for each number of axes, and one shape or the other | Turned(size)(x[batch, tokens, size], table[tokens, size])
class Turned(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Linear(size, size)

    def forward(self, x, table):
        # x.shape = (tokens, size)
        if x.dim() == 2:
            x = self.mix(x)  # (tokens, size)  #! cannot tell
        # x.shape = (batch, tokens, size)
        else:
            x = self.mix(x)  # (batch, tokens, size)
        tokens = x.shape[-2]
        # x: (batch, tokens, size) | (tokens, size)
        rows = table[:tokens]
        y = x + rows  # (batch, tokens, size) | (tokens, size)
        return y.tanh()  # (tokens, size) | (size, tokens)  #! false
