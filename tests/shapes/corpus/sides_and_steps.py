"""Which line a comment is about: the side on which a file's comments stand, the operation or the
paragraph that it goes through, the row of a block, and what a docstring says is returned.
"""

# %% above each line, with lines between that have none | Weave(width, inner)(x[batch, width, rows, cols])
class Weave(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.rnn = nn.GRU(width, inner, batch_first=True)
        self.back = nn.Linear(inner, width)
        self.norm = nn.GroupNorm(1, width)

    def forward(self, x):
        batch, width, rows, cols = x.shape

        # [batch * cols, rows, width]
        y = x.permute(0, 3, 2, 1).reshape(batch * cols, rows, width)
        # [batch * cols, rows, width]
        y = self.back(self.rnn(y)[0])
        # [batch * cols, rows, width]
        y = y.view(batch, cols, rows, width)  #! false
        # [batch, width, rows, cols]
        y = y.permute(0, 3, 2, 1).contiguous()
        y = self.norm(y)
        # [batch, rows, width, cols]
        z = (y + x).permute(0, 2, 1, 3)
        # [batch, width, rows]
        z = z.mean(dim=3)  #! false
        return z


# %% a step on the way, where all comments above tell the result | Split(hidden, heads)(x[batch, seq, hidden])
class Split(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(hidden, hidden)
        self.k = nn.Linear(hidden, hidden)
        self.v = nn.Linear(hidden, hidden)
        self.size = hidden // heads

    def forward(self, x):
        batch = x.size(0)

        # (batch, heads, seq, hidden // heads)
        q = self.q(x).view(batch, -1, self.heads, self.size).transpose(1, 2)
        # (batch, seq, heads, hidden // heads)
        k = self.k(x).view(batch, -1, self.heads, self.size).transpose(1, 2)  #! false
        # (batch, heads, seq, hidden // heads)
        v = self.v(x).view(batch, -1, self.heads, self.size).transpose(1, 2)

        # (batch, heads, seq, seq)
        p = (q @ k.transpose(-2, -1)).softmax(-1)
        # (batch, heads, seq, hidden // heads)
        o = p @ v
        # (batch, heads, seq, hidden // heads)
        o = o.transpose(1, 2)  #! false
        return o


# %% on both sides, nobody knows which is meant | Both(hidden)(x[batch, seq, hidden])
class Both(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.one = nn.Linear(hidden, 2 * hidden)
        self.two = nn.Linear(2 * hidden, hidden)

    def forward(self, x):
        # [batch, seq, 2 * hidden]
        y = self.one(x)

        y = y.transpose(1, 2)
        # [batch, 2 * hidden, seq]

        # [batch, 2 * hidden, seq]
        y = y.transpose(1, 2)  #! cannot tell

        return self.two(y)  #! missing


# %% below each line, what it has made and not what came in | Pool(vocab, width)(words[batch, length].ints(vocab))
class Pool(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mix = nn.Linear(width, width)

    def forward(self, words):
        e = self.embed(words)
        # |e| = (batch, length, width)
        m = self.mix(e)
        # |m| = (batch, length, width)

        e = e.sum(dim=1)
        m = m.sum(dim=1)  #! false
        # |e|, |m| = (batch, length, width)

        s = e @ m.transpose(0, 1)
        # |s| = (batch, batch)
        return s


# %% above a line that only takes sizes | Heads(hidden, heads)(x[batch, tokens, hidden])
class Heads(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(hidden, hidden)

    def split(self, x):
        # (batch, tokens, hidden) -> (batch, heads, tokens, hidden // heads)
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, self.heads, -1).transpose(1, 2)

    def join(self, x):
        # (batch, heads, tokens, hidden // heads) -> (batch, tokens, heads)
        batch, _, tokens, _ = x.shape
        return x.transpose(1, 2).reshape(batch, tokens, -1)  #! false

    def forward(self, x):
        return self.join(self.split(self.mix(x)))  # (batch, tokens, hidden)


# %% a chain through the lines of a paragraph | Patches(channels, width)(x[batch, channels, high, wide])
class Patches(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.cut = nn.Conv2d(channels, width, 1)

    def forward(self, x):
        x = self.cut(x)  # (batch, width, high, wide)

        # (batch, width, high, wide) -> (batch, width, high * wide) -> (batch, high * wide, width)
        x = x.flatten(2)
        x = x.transpose(1, 2)

        y = x.mean(dim=1)  # (batch, width)

        # (batch, width) -> (batch, high * wide, width)
        y = y.unsqueeze(1)
        y = y.expand(-1, x.size(1), -1)

        # (batch, high * wide, width) -> (batch, high * wide, 2 * width) -> (batch, 2 * width)
        z = torch.cat([x, y], dim=-1)  #! false
        z = z.transpose(1, 2)

        return z  # (batch, 2 * width, high * wide)


# %% a line for each operation | Attend(hidden, heads)(x[batch, tokens, hidden])
class Attend(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        size = hidden // self.heads
        # qkv(): -> [batch, tokens, 3 * hidden]
        # reshape: -> [batch, tokens, 3, heads, size]
        # permute: -> [3, batch, heads, tokens, size]
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # [batch, heads, tokens, size]
        p = (q @ k.transpose(-2, -1)).softmax(-1)  # [batch, heads, tokens, tokens]
        # @: -> [batch, heads, tokens, size]
        # transpose: -> [batch, heads, tokens, size]
        # reshape: -> [batch, tokens, hidden]
        x = (p @ v).transpose(1, 2).reshape(batch, tokens, hidden)  #! false
        return x  # [batch, tokens, hidden]


# %% each line of a block is of the tensor that it names | Blend(width)(x[batch, time, width], gate[batch, 1, width])
class Blend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, gate):
        batch, time, width = x.shape
        low = self.mix(x)  # [batch, time, width]
        high = low[:, -1:]  # [batch, 1, width]

        # low: [batch, time, width]
        # high: [batch, time, width]
        # result: [batch, time, width]
        y = low + high  #! false

        # gate: [batch, 1, width]
        # y: [batch, time, width]
        z = y * gate

        return z  # [batch, time, width]


# %% a line that explains a name | Grid(channels, width)(x[b, channels, height, wide])
class Grid(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.cut = nn.Conv2d(channels, width, 2, 2)

    def forward(self, x):
        x = self.cut(x)  # (b, width, h, w)
        # the patches (b, width, h, w) -> (b, n, width)
        # n: how many patches (= h * w, [2 h * 2 w, a quarter])
        x = x.flatten(2)  #! false
        # the patches first (b, width, n) -> (b, n, width)
        x = x.transpose(1, 2)
        return x  # (b, n, width)


# %% a call in which two lengths are one | Pair(width)(x[batch, n_q, width], y[batch, n_k, width])
class Attention(nn.Module):
    def forward(self, q, k, v):
        # (batch, n_k, n_q)
        s = q @ k.transpose(-2, -1)  #! false
        # (batch, n_q, n_k)
        p = s.softmax(-1)
        # (batch, n_q, width)
        return p @ v


class Pair(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.attend = Attention()

    def forward(self, x, y):
        # (batch, n_q, width)
        a = self.attend(x, x, x)
        # (batch, n_q, width)
        b = self.attend(a, y, y)
        return self.mix(b)  # (batch, n_q, width)


# %% a later state that has a comment of its own | Turn(hidden, heads)(x[batch, seq, hidden])
class Turn(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.mix = nn.Linear(hidden, hidden)

    def forward(self, x):
        x = self.mix(x)
        # split (batch, seq, hidden) into (batch, heads, seq, size)
        x = x.view(x.size(0), -1, self.heads, self.size)  #! false
        # transposed, becomes (batch, heads, seq, size)
        return x.transpose(1, 2)


# %% what the docstring says is returned | Fold(hidden, heads)(x[batch, seq, hidden])
class Fold(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(hidden, hidden)

    def split(self, x):
        """Parts the heads.

        Args:
            x (torch.Tensor): Input (batch, seq, hidden)

        Returns:
            torch.Tensor: Output (batch, seq, heads, hidden // heads)  #! false
        """
        x = x.view(x.size(0), x.size(1), self.heads, -1)  # (batch, seq, heads, hidden // heads)
        return x.transpose(1, 2)  # (batch, heads, seq, hidden // heads)

    def attend(self, q, k):
        """
        :param q: [batch, heads, seq, hidden // heads]
        @param k: tensor of numbers, shape [batch, seq, heads, hidden // heads]  #! false
        :return: [batch, heads, seq, seq]
        """
        return q @ k.transpose(2, 3)  # [batch, heads, seq, seq]

    def both(self, x):
        """
        Input shape: (batch, seq, hidden)
        Returns: x: (batch, hidden, seq), weights: (batch, heads, seq, seq)  #! false
        """
        parts = self.split(x)  # (batch, heads, seq, hidden // heads)
        weights = self.attend(parts, parts)  # (batch, heads, seq, seq)
        return x, weights

    def last(self, x):
        """Output: the last of the sequence, (batch, hidden)"""
        return x[:, -1]  # (batch, hidden)

    def forward(self, x):
        """
        Returns:
            (loss, x), as in training
        """
        y, weights = self.both(self.mix(x))  # (batch, seq, hidden), (batch, heads, seq, seq)
        return self.last(y)  # (batch, hidden)


# %% what a name is for an argument, and a letter of a chain | Net(C, N, C2)(x[B, C, L])
class Net(nn.Module):
    def __init__(self, channels, out, more):
        super().__init__()
        self.norm = nn.GroupNorm(1, channels)
        self.conv = nn.Conv1d(channels, out, 1)
        self.wide = nn.Conv1d(out, more, 1)

    def forward(self, x):
        """
        x: [B, N, L]
        """
        # [B, N, L]
        x = self.norm(x)  #! cannot tell
        # [B, N, L]
        x = self.conv(x)
        # [B, N, 1]
        m = x.mean(-1, keepdim=True)
        # [B, N, L]
        x = x + m
        y = self.wide(x)
        # back to rows: (B, C, L) -> (B, L, C)
        y = y.transpose(1, 2)  #! cannot tell
        return y
