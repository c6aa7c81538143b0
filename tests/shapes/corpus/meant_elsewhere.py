# What a name is on another line, and shapes that are told at another place.

# %% what a letter is, behind a colon | Cut(width)(x[batch, steps, width])
class Cut(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        x = self.gate(x)  # batch, steps, width
        parts = x.mT[:, :, None]  # batch, width, 1, K: width is the size of a part
        parts = torch.tanh(parts)  # batch, width, 1, K
        return parts.sum(2)  # batch, width, K

# %% shapes of several rounds, in a list, with parts of sizes | Down(wide, narrow)(x[batch, wide, high, long])
class Down(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(wide, narrow, 1), nn.Conv2d(narrow, wide, 1)])

    def forward(self, x):
        batch, wide, high, long = x.shape
        x = torch.tanh(x)  # [batch x wide x high x long]
        for conv in self.convs:
            x = conv(x)
            # x [batch x W1 x high/2 x long/2, batch x W2 x high x long, batch x 16 x high x long]  #! cannot tell
        return x

# %% an argument that a later line explains | Pool(size, width)(x[batch, steps, size])
class Pool(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.wide = width + size
        self.into = nn.Linear(size, self.wide)
        self.twice = nn.Linear(self.wide, 2 * self.wide)

    def forward(self, x):
        y = self.into(x)  # (batch, steps, wide)
        y = torch.tanh(y)  # (batch, steps, wide)
        last = self.twice(y[:, -1])  # (batch, 2 * wide)
        found = self.attend(self.twice(y), last)  # (batch, 2 * wide)
        return found + last  # (batch, 2 * wide)

    @staticmethod
    def attend(
        keys,
        query,  # (batch, wide)  #! cannot tell
    ):
        batch, steps, wide = keys.shape
        scores = keys @ query[:, :, None]  # (batch, steps, 1)
        return (keys * scores.softmax(1)).sum(1)  # (batch, wide)

# %% a table that is built before anything comes in | Turn(width, most)(x[batch, steps, width])
class Turn(nn.Module):
    def __init__(self, width, most):
        super().__init__()
        # table shape: (steps, width)
        table = torch.outer(torch.arange(most), torch.arange(width))  #! cannot tell
        self.register_buffer("table", table)

    def forward(self, x):
        batch, steps, width = x.shape
        x = x + self.table[:1]  # (batch, steps, width)
        x = x * 2  # (batch, width, steps)  #! false
        return torch.tanh(x)  # (batch, steps, width)

# %% what a docstring says is returned, and what stands below a name | Ends(width)(x[batch, steps, width])
class Ends(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        """Twice as much.

        Returns: (batch, steps, width)
        """
        batch, steps, width = x.shape
        x = self.norm(x)

        # a remark

        # x: (batch, steps, width)
        scale = 2
        return x * scale

# %% what is returned is told below | Last(width)(x[batch, steps, width])
class Last(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        batch, steps, width = x.shape
        x = self.norm(x)  # (batch, steps, width)
        out = x.mean(1)

        return out  # (batch, width)

# %% a word that only the call has, above a line | Down(size)(x[batch, steps, width])
class Down(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.LazyLinear(size)

    def forward(self, x):
        B, T, _ = x.shape
        x = self.mix(x)  # (B, T, E)
        E = x.shape[2]
        x = torch.tanh(x)  # (B, T, E)
        x = x * x  # (B, T, E)
        x = x + 1  # (B, T, E)
        # (B, width, T)
        y = x.mT  #! cannot tell
        y = torch.tanh(y)  # (B, width, T)  #! false
        return y  # (B, E, T)

# %% a thought about each item, in several lines | Vote(votes, parts, width, size)(x[batch, parts, size])
class Vote(nn.Module):
    def __init__(self, votes, parts, width, size):
        super().__init__()
        self.votes, self.parts, self.width, self.size = votes, parts, width, size
        self.kernel = nn.Parameter(torch.ones(votes, parts, width, size))

    def forward(self, x):
        # x.size = [batch, parts, size]
        # widened to [batch, 1, parts, size, 1]
        # kernel.size = [votes, parts, width, size]
        # torch.matmul: [width, size] x [size, 1] -> [width, 1]
        # => y.size = [batch, votes, parts, width]
        y = torch.matmul(self.kernel, x[:, None, :, :, None]).squeeze(-1)  #! cannot tell
        return y.softmax(1)  # [batch, votes, parts, width]

# %% a sentence with a shape in it | Say(width)(x[batch, steps, width])
class Say(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        batch, steps, width = x.shape
        # norm over the last one, then turn to (batch, width, steps)
        y = self.norm(x)  #! cannot tell
        y = torch.tanh(y)  # (batch, steps, width)
        # what is left here has shape (batch, width, steps)
        y = y * y  #! false
        # y with all of its parts: (batch, width, steps)
        y = y + x  #! false
        return torch.tanh(y)  # (batch, steps, width)

# %% a product in brackets, times one more, with stars | Ask(width)(x[batch, steps, width])
class Ask(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key, self.one = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        batch, steps, width = x.shape
        y = torch.tanh(self.key(x))  # batch * steps * width
        y = y.view(-1, width)  # (batch * steps) * width
        score = self.one(y)  # (batch * steps) * 1
        wrong = score + 1  # (batch * steps) * width  #! false
        return wrong.view(-1, steps)  # batch * steps

# %% a print that does not run any more, with what it printed | Say(width)(x[batch, steps, width])
class Say(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        y = self.out(x)
        # print(y.size())  # torch.Size([2, 7, 1])
        y = y.squeeze(2)
        # print("then", y.shape)  torch.Size([2, 7])
        y = torch.tanh(y)  #! missing
        return y.mean(1)  # (batch), how it is said

# %% height and width beside a number of heads | Down(width, h)(x[batch, h * width, high, long])
class Down(nn.Module):
    def __init__(self, width, h):
        super().__init__()
        self.h, self.less = h, nn.Conv2d(h * width, h * width, 2, 2)

    def forward(self, x):
        batch, c, high, long = x.shape
        heads = x.view(batch, self.h, -1, high, long)  # batch, h, width, high, long
        x = self.less(heads.flatten(1, 2))  # batch, c, h, w  #! cannot tell
        return x.flatten(2)  # batch, c, size

# %% a line with two ways to make it | Mix(width)(x[batch, steps, width], scale[width])
class Mix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.into = nn.Linear(width, width)

    def forward(self, x, scale):
        y = self.into(x)  # batch, steps, width
        scale = scale[:, None] if scale.dim() == 1 else scale  # width, steps  #! cannot tell
        return y @ scale  # batch, steps, 1
