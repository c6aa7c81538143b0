# Rows of labels between two paragraphs, words that are names as well, remarks in a column, items of
# a row, sums with a number, and what a docstring says in its own order.


# %% labels between two rows of the same names | Attention(heads)(x[batch, steps, nodes, width]) where width=heads*size
class Attention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        # [batch, steps, nodes, width]
        q = x * 2
        k = x * 3

        # [heads * batch, steps, nodes, size]
        q = torch.cat(q.chunk(self.heads, -1), 0)
        k = torch.cat(k.chunk(self.heads, -1), 0)
        # q: [heads * batch, nodes, steps, size]
        # k: [heads * batch, nodes, size, steps]
        q = q.permute(0, 2, 1, 3)
        k = k.permute(0, 2, 3, 1)

        # [heads * batch, nodes, steps, steps]
        a = q @ k

        # [heads * batch, nodes, steps, steps]
        p = a.softmax(-1)
        return p  # [heads * batch, nodes, steps, steps]


# %% labels between two rows, and one of them is wrong | Attention(heads)(x[batch, steps, nodes, width]) where width=heads*size
class Attention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        # [batch, steps, nodes, width]
        q = x * 2
        k = x * 3

        # [heads * batch, steps, nodes, size]
        q = torch.cat(q.chunk(self.heads, -1), 0)
        k = torch.cat(k.chunk(self.heads, -1), 0)
        # q: [heads * batch, nodes, steps, size]
        # k: [heads * batch, nodes, steps, size]
        q = q.permute(0, 2, 1, 3)
        k = k.permute(0, 2, 3, 1)  #! false

        # [heads * batch, nodes, steps, steps]
        a = q @ k

        # [heads * batch, nodes, steps, steps]
        p = a.softmax(-1)
        return p  # [heads * batch, nodes, steps, steps]


# %% an argument that is called input | Pool(hidden)(words[batch, steps].ints(9))
class Pool(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.table = nn.Embedding(9, hidden)

    def pooled(self, x):
        return torch.cat([x.mean(1), x.amax(1)], 1)  # [batch, 2 * hidden]

    def forward(self, *input):
        y = self.table(input[0])  # [batch, steps, hidden]

        # Aggregate
        # input: [batch, steps, hidden]
        # output: [batch, 2 * hidden]
        z = self.pooled(y)  #! cannot tell
        return z  # [batch, 2 * hidden]


# %% a product with its result, in wide brackets | dot(a[8, 1, 56], b[8, 56, 4])
def dot(a, b):
    y = torch.matmul(a,  #! cannot tell
                     b)  # 乘法，bmm（8×1×56，8×56×4）=8×1×4
    return y.squeeze(1)  #! missing


# %% a remark in a column of its own | Cut(width)(x[B, C, N])
class Cut(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        B, C, N = x.shape
        x = x.permute(0, 2, 1)      # B, C, N  --> B, N, C      Rearrange for the layers
        y = x.permute(0, 2, 1)      # B, N, C  --> B, N, C      Rearrange it back  #! false
        # turned and put on    B,C,N -> B,N,C
        z = y.permute(0, 2, 1)
        return z  # B, N, C


# %% what an item of a row is, and not a part of it | pool(x[batch, nodes, width])
def pool(x):
    return (
        x,  # [batch, nodes, width]
        x.mean(1),  # the mean of all, [batch, width]
    )


# %% an item of a row that is told as its part | pool(x[batch, nodes, width])
def pool(x):
    y = torch.stack(
        [
            x.mean(1),  # [batch, nodes, width]  #! false
            x.amax(1),  # [batch, width]
        ],
        1,
    )
    return y  # [batch, 2, width]


# %% a name that is told with a number | Patches(width)(x[images, patches, width])
class Patches(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, x):
        x = x.relu()  # (B, N, width)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)  # (B, N + 1, width)
        x = x * 2  # (B, N, width)  #! false
        x = x + 1  # (B, N + 1, width)
        return x  # (B, N + 1, width)


# %% a factor that nobody counts | fold(x[batch, heads, steps, size])
def fold(x):
    batch, heads, steps, size = x.shape
    y = x.reshape(batch * heads, steps, size)  # (heads * ?, steps, size)
    z = y.transpose(1, 2)  # (heads * ?, steps, size)  #! false
    return z  # (heads * ?, size, steps)


# %% stars with numbers, and a product behind a star | Mixed(6)(x[N, 14, 6], y[N, 6])
class Mixed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Linear(width, 10)
        self.two = nn.Linear(10, 1)

    def forward(self, x, y):
        # N * 14 * 6 -> N * 14 * 10
        x = self.one(x)
        # N * 6 -> N * 10 -> N * 10 * 1
        y = self.one(y).unsqueeze(1)  #! false
        # N * 14 * 10
        both = torch.tanh(x + y)
        return self.two(both).squeeze(2)  # [N*14]


# %% a one between stars is a dimension | energy(x[B, T, H], v[H])
def energy(x, v):
    B, T, H = x.shape
    x = torch.cat([x, x], 2)  # [B*T*2H]
    x = x[..., :H].transpose(1, 2)  # [B*H*T]
    y = v.view(1, 1, H).expand(B, 1, H) @ x  # [B*1*T]
    return y.squeeze(1)  # [B*1*T]  #! false


# %% a dash for a colon, and words behind a semicolon | last(x[batch, steps, width], w[width, out])
def last(x, w):
    # hidden -- (batch, width)
    hidden = x[:, -1]
    # scores -- (batch, width)
    scores = hidden @ w  #! false
    p = scores.softmax(-1)  # each row sums up to 1; (batch, out)
    q = scores.sigmoid()  # each row has its own; (batch, width)  #! false
    return p, q  # (batch, out)


# %% what is told where it goes | turn(x[batch, steps, width])
def turn(x):
    # x is now [batch, width, steps]
    x = x.transpose(1, 2)

    # x is now [batch, width, steps]
    x = x.transpose(1, 2)  #! false

    x = x.transpose(1, 2)  # [batch, width, steps]
    x = x.transpose(1, 2)  # [batch, width, steps] for the attention  #! cannot tell
    y = x[:, :, None]  # [batch, steps, width]        : the keys again  #! false
    return y  # [batch, steps, 1, width]


# %% a chain that keeps what it changes | concat(x[batch, steps, width], y[batch, steps, width])
def concat(x, y):
    z = x * 2  # [batch, steps, width]

    # cat: [batch, steps, width] => [batch, steps, 2 * width]
    a = torch.cat([x, z], 2)

    # cat: [batch, steps, width] => [batch, steps, width]
    b = torch.cat([y, z], 2)  #! false
    return a + b  # [batch, steps, 2 * width]


# %% two names in the place of each other | scores(x[batch, T, N, width])
def scores(x):
    batch, T, N, width = x.shape
    a = x @ x.mT  # [batch, T, N, N]
    b = a.softmax(-1)  # [batch, N, T, T]  #! false
    return b.sum(-1)  # [batch, T, N]


# %% docstrings: fields, types, the order of the results | Net(hidden)(x[steps, batch, hidden], y[batch, hidden])
class Net(nn.Module):
    """A net.

    :arg y: (hidden, batch) what is added  #! false
    """

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden

    def forward(self, x, y):
        z = x + y  # (steps, batch, hidden)
        return z, y


# %% docstrings: the order of the results | Net(hidden)(x[steps, batch, hidden], y[batch, hidden])
class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden

    def forward(self, x, y):
        """The sum.

        Args:
            x (torch.Tensor(steps, batch, hidden)): what comes in
            y: the previous one, of shape (batch, hidden)

        Returns:
            sums: (batch, steps, hidden) the sums  #! false
            added: (batch, hidden) what was given
        """
        z = x + y  # (steps, batch, hidden)
        return z, y


# %% a docstring with stars, and names of its own | align(x[batch, steps, both])
def align(x):
    """
    x: batch * steps * width
    """
    return x @ x.mT  # batch * steps * steps
