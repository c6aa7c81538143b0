"""Why a comment that does not fit the line may be right all the same: a cause for each cell."""

# %% operands with nothing between their brackets | Graph(d, e)(x[b, n, d], links[n, n])
class Graph(nn.Module):
    def __init__(self, d, e):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d, e))

    def forward(self, x, links):
        mixed = x @ self.w  # (b, n, d)(d, e) = (b, n, e)
        out = mixed + links @ mixed  # (n, n)(b, n, e) -> (b, n, e)
        twice = out * 2  # (b, n, e)
        return twice.mT  # (b, n, e)  #! false


# %% an operand as it is broadcast, and the result | Broadcast()(x[b, n, d], links[n, n])
class Broadcast(nn.Module):
    def forward(self, x, links):
        x = x + 1  # [b, n, d]
        y = (links @ x).relu()  # [b, n, n], [b, n, d]
        z = y.mT  # [b, d, n]
        return z * 2  # [b, n, d]  #! false


# %% what a function takes and gives, told at its head | Scan(D, E)(x[B, L, D])
class Scan(nn.Module):
    def __init__(self, D, E):
        super().__init__()
        self.grow = nn.Linear(D, 2 * E)
        self.shrink = nn.Linear(E, D)

    def forward(self, x):
        # x : (B, L, D)

        # y : (B, L, D)

        _, L, _ = x.shape
        x, z = self.grow(x).chunk(2, dim=-1)  # (B, L, E), (B, L, E)
        x = x.transpose(1, 2)  # (B, E, L)
        x = x[..., :L]  # (B, E, L)
        x = x.transpose(1, 2)  # (B, L, E)
        x = x.relu()  # (B, L, E)
        y = x * z  # (B, L, E)
        return self.shrink(y)  # (B, L, D)


# %% what comes out, told under the head | draw(x[B, T, D], w[m, D])
def draw(x, w):
    # as in the second paper
    # x = (B, T, D)
    # w = (m, D)
    # returns x: B, T, m  #! cannot tell
    far = (x * x).sum(dim=-1, keepdim=True)  # B, T, 1
    near = torch.einsum("bti,mi->btm", x, w)  # B, T, m
    return torch.exp(near - far)  # B, T, m


# %% one letter for two numbers of filters | Block(filters, later)(x[b, C, N, T])
class Block(nn.Module):
    def __init__(self, filters, later):
        super().__init__()
        self.space = nn.LazyConv2d(filters, 1)
        self.time = nn.LazyConv2d(later, 1)

    def forward(self, x):
        here = self.space(x).permute(0, 2, 1, 3)  # (b, N, F, T)  #! cannot tell
        then = self.time(here.permute(0, 2, 1, 3))  # (b, F, N, T)
        rest = then.relu()  # (b, F, N, T)
        both = rest + then  # (b, F, N, T)
        return both.permute(0, 3, 2, 1)  # (b, T, N, F)


# %% the same words, of an exchange that came before | Turn(E)(x[B, L, E])
class Turn(nn.Module):
    def __init__(self, E):
        super().__init__()
        self.mix = nn.Linear(E, E)

    def forward(self, x):
        x = self.mix(x)  # (B, L, E)
        x = x + 1  # (B, L, E)
        x = x.relu()  # (B, L, E)
        x = x.transpose(1, 2)  # (B, E, L)
        x = x * 2  # (B, E, L)
        x = x.cos()  # (B, E, L)
        return x.transpose(1, 2)  # (B, E, L)  #! false


# %% numbers and one letter tell enough | entity(hidden_output[b, j, dim], mask[b, j])
def entity(hidden_output, mask):
    mask = mask.unsqueeze(1)  # [b, last-first+1, 1]  #! false
    total = torch.bmm(mask, hidden_output)  # [b, 1, dim]
    return total.squeeze(1)  # [b, dim]


# %% docstrings: the order is judged, the names are their own | pool(x[batch, time, width], keep[batch, time].bool())
def pool(x, keep):
    """Means over time.

    Args:
        x (torch.Tensor, optional): what is averaged, of shape (batch, width, time)  #! false
        keep: (num_sequences, positions) which of it counts
    """
    total = (x * keep[..., None]).sum(1)  # (batch, width)
    return total / keep.sum(1, keepdim=True)  # (batch, width)


# %% docstrings of other kinds | scale(x[batch, time, width], by[width])
def scale(x, by):
    """Scales.

    :param x: [batch, width]  #! false
    :param by: with the shape `(width,)`
    **by** : (a, b, c, d) are never meant as one
    """
    return x * by  # [batch, time, width]


# %% above three lines that make the same, and above one with a remark | Thrice(K, d)(x[batch, step, K * d])
class Thrice(nn.Module):
    def __init__(self, K, d):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(K * d, K * d) for _ in range(3))

    def forward(self, x):
        # [batch, K * d, step]
        query = self.a(x)  #! false
        key = self.b(x)
        value = self.c(x)

        # [batch, K * d, step]
        scores = query * key  # the original step, changed to it (see above)  #! false

        # [batch, step, K * d]
        return scores + value


# %% a dimension that this call does not have | overlap(one[rows, 4], other[rows, 4])
def overlap(one, other):
    rows = one.size(-2)
    low = torch.max(one[..., :2], other[..., :2])  # [B, rows, 2]  #! cannot tell
    high = torch.min(one[..., 2:], other[..., 2:])  # [B, rows, 2]  #! cannot tell
    return (high - low).clamp(min=0)  # [rows, 2]
