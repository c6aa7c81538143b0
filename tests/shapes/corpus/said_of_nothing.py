# Slips beside words that ask for doubt, and shapes that no tensor of the function has.

# %% words behind a shape that give its reason, or a purpose | Conv(wide)(x[b, c, steps])
class Conv(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.conv = nn.LazyConv1d(wide, 1)

    def forward(self, x):
        b, c, steps = x.shape
        wide = self.conv.out_channels
        y = self.conv(x)  # (b, steps, wide) because the kernel is 1  #! false
        z = y.mean(0, keepdim=True)  # (1, steps, wide), so we need no batch  #! false
        z = torch.tanh(z)  # (1, wide, steps), use `view` instead of `unsqueeze`
        z = z + y  # (1, wide, steps) safe to broadcast  #! cannot tell
        # Transpose to (steps, b, wide) for the sum
        z = z.transpose(1, 2)  #! false
        # Squeezed to (b, wide) for each step
        return z.mean(1)

# %% a sentence of its own | Steps(width)(x[batch, steps, width])
class Steps(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        # Project all at once, since this is cheap.
        # (batch, steps, width)
        a = self.one(x)
        # Project again, since this is cheap.
        # (steps, batch, width)
        b = self.two(a)  #! false
        # The sum of both, that nobody wants to be
        # (batch, 1, steps, width)
        c = a + b  #! cannot tell
        c = torch.tanh(c)
        # (steps, batch, width)
        # this would allow more
        return c  #! false

# %% a line of a block of its own | Heads(heads, width)(x[batch, steps, width]) where width = heads * size
class Heads(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads, self.size = heads, width // heads

    def forward(self, x):
        batch, steps, width = x.shape
        heads, size = self.heads, self.size
        x = x.view(batch, steps, heads, size)  # (batch, steps, heads, size)
        # (heads, steps, steps)
        # (batch, heads, steps, size) @ (batch, heads, size, steps) -> (batch, heads, steps, steps)
        scores = x.transpose(1, 2) @ x.permute(0, 2, 3, 1)  #! cannot tell
        # (batch, heads, steps, steps)
        # (batch, heads, steps, steps) @ (batch, heads, steps, size) -> (batch, heads, steps, size)
        out = scores @ x.transpose(1, 2)  # (batch, heads, steps, size)
        # Out: (batch, steps, steps, heads, size), which is what enters
        return out.transpose(1, 2)  # (batch, steps, heads, size)  #! false

# %% the line has a comment of its own: a looser word above it is no slip | Loose(heads, width)(q[n, q_len, width], k[n, k_len, width])
class Loose(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, q, k):
        n, q_len, k_len, width = *q.shape[:2], *k.shape[1:]
        # (n, len, width)
        k = self.k(k)
        q = self.q(q)
        # (n, len, width)
        k = torch.tanh(k)
        # out: (n, len, width, 1)
        out = torch.tanh(q)[..., None]  # (n, q_len, width, 1)
        return out.mean(-1)  # (n, q_len, width)

# %% of a tuple that is taken apart the first is meant, or the one whose name is like it | Rec(width)(x[batch, steps, width])
class Rec(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        batch, steps, width = x.shape
        out, (h, c) = self.rnn(x)  # (batch, steps, width)  #! cannot tell
        out, _ = self.rnn(out)  # (steps, batch, width)  #! false
        _, h = self.rnn(out)  # (batch, width)  #! false
        return out, x  # (batch, steps, width)

# %% a comment below a line, where they always are | below(x[batch, steps, width])
def below(x):
    batch, steps, width = x.shape
    x = torch.tanh(x)
    # shape = (batch, steps, width)

    y = x.transpose(1, 2)
    # shape = (batch, width, steps)

    z = x @ y
    # shape = (batch, steps, steps)

    w = z.mean(1)
    # shape = (batch, steps)

    y = y + 1  #! false
    # shape = (batch, steps, width)

    return w

# %% the names of a step that is right | Inner(width)(x[n, t, width]); Outer(width, wide)(x[n, t, width])
class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        a = self.a(x)  # [b, s, d]
        c = self.b(a)  # [b, s, d]
        return a + c  # [b, s, d]


class Outer(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.a = nn.Linear(width, wide)

    def forward(self, x):
        return self.a(x)  # [b, s, d] -> [s, b, wide]  #! false

# %% an argument by an arrow | Patch(width)(x[batch, channels, rows, columns])
class Patch(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.LazyConv2d(width, 1)

    def forward(self, x):
        # x -> (batch, channels, rows, columns)
        x = self.conv(x)  # (batch, width, rows, columns)
        return x.flatten(2)  # (batch, width, rows * columns)

# %% an argument by an arrow, and an axis is left out | Less(width)(x[batch, channels, rows, columns])
class Less(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.LazyConv2d(width, 1)

    def forward(self, x):
        # x -> (batch, channels, columns)  #! false
        x = self.conv(x)  # (batch, width, rows, columns)
        return x.flatten(2)  # (batch, width, rows * columns)

# %% what an argument becomes | Becomes(width)(x[batch, steps, inner])
class Becomes(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.LazyLinear(width)

    def forward(self, x):
        # x -> (batch, width, steps)
        y = self.w(x).transpose(1, 2)
        return y  # (batch, width, steps)

# %% a paragraph with a line for each name | Paragraph(heads, width)(x[batch, steps, width], y[batch, steps, width]) where width = heads * size
class Paragraph(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads, self.size = heads, width // heads

    def forward(self, x, y):
        batch, steps, width = x.shape
        heads, size = self.heads, self.size

        q = x.view(batch, steps, heads, size).transpose(1, 2)
        k = y.view(batch, steps, heads, size).transpose(1, 2)

        # x -> (batch, heads, steps, size)
        # y -> (steps, heads, batch, size)

        scores = q @ k.mT  #! false

        # scores -> (batch, heads, steps, steps)
        # the size of x and y: (batch, size, steps)

        return torch.softmax(scores, -1)

# %% a paragraph that nobody can read | Garbled(width)(x[batch, steps, width])
class Garbled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Linear(width, width)

    def forward(self, x):
        y = self.w(x)  # [batch, steps, width]

        # x -> [batch, steps. width]

        return y.mean(1)  # [batch, width]
