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


# %% above a line, a step on its way | fold(x[batch, width, steps])
def fold(x):
    batch, width, steps = x.shape
    # [batch, steps, width]
    x = x.transpose(1, 2).reshape(batch * steps, width)  #! cannot tell
    return x * 2  # [batch * steps, width]


# %% a helper that is called with two lengths | Look(dim, n)(q[N, Lq, dim], k[N, L, dim]) where dim=n*h
class Look(nn.Module):
    def __init__(self, dim, n):
        super().__init__()
        self.n = n

    def split(self, x):
        x = x.view(x.size(0), x.size(1), self.n, -1)  # (N, L, n, d)  #! cannot tell
        return x.permute(0, 2, 1, 3)  # (N, n, L, d)  #! cannot tell

    def forward(self, q, k):
        q = self.split(q)  # (N, n, Lq, d)
        k = self.split(k)  # (N, n, L, d)
        return q @ k.mT  # (N, n, Lq, L)


# %% a comma that is missing behind a number | spread(x[rows, width])
def spread(x):
    return x[:, None]  # (rows, 1 width)  #! cannot tell


# %% lists of shapes, and their number behind | parts(x[batch, steps], n)
def parts(x, n):
    every = [x * i for i in range(n)]  # batch x steps x n
    return [y.cos() for y in every[:2]]  # [batch x steps, batch x steps]  #! cannot tell


# %% the longest length is not this one | Short(width, block_size=64)(x[batch, steps, width])
class Short(nn.Module):
    def __init__(self, width, block_size):
        super().__init__()
        self.block_size = block_size
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        x = self.mix(x)  # (batch, block_size, width)
        return x.relu()  # (batch, block_size, width)


# %% a half that is rounded | there_and_back(x[batch, time])
def there_and_back(x):
    wave = torch.fft.rfft(x)  #! missing
    return torch.fft.irfft(wave)  # [batch, time]  #! cannot tell


# %% crosses and commas | weigh(x[B, S, E], m[B, 1, E])
def weigh(x, m):
    B, S, E = x.shape
    total = torch.einsum("bse,bte->bs", x, m)  # B x S x E, B x 1 x E -> B x S, all positive
    wide = x.reshape(B, S * E)  # B, S x E
    return total.sum() + wide[:, None, None]  # B x 1 x1 x (S*E)


# %% one comment above a paragraph, of two lengths | both(p[batch, length, width], h[batch, other, width])
def both(p, h):
    # [batch, length, width]
    p = p * 2
    h = h * 2

    # [batch, width]
    scale = p.size(1)

    p = p.sum(1) / scale
    h = h.sum(1) / scale
    return p + h  # [batch, width]


# %% letters that are indices elsewhere, and a letter alone | Square(k)(x[n, k])
class Square(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.rand(k, k))

    def forward(self, x):
        weight = getattr(self, "weight_1")
        weight = weight * weight  # [i, j]  #! cannot tell
        steps = torch.linspace(0, 1, x.size(1) + 4)  # (Kc)  #! cannot tell
        return x @ weight + steps.sum()  # [n, k]
