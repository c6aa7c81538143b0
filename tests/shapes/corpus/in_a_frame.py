# Comments in a frame above several lines, operands with a cross between them, results by name.

# %% in a frame, about the second line below | scores(q[batch, seq, width], k[batch, seq, width])
def scores(q, k):
    # ------------------------ #
    #   batch, seq, seq
    # ------------------------ #
    q = q * 0.5
    table = q @ k.mT
    # ------------------------ #
    #   batch, seq, width
    # ------------------------ #
    return table @ k

# %% a chain in a frame heads a run of lines | windows(x[batch, places, width], size) where places=size*16
def windows(x, size):
    b, n, w = x.shape
    # ------------------------------------------------- #
    #   batch, places, width -> batch, 16, size, width
    # ------------------------------------------------- #
    before = x
    x = torch.tanh(x)
    x = x.view(b, 16, size, w)
    return x, before

# %% a cross between listed operands | mixed(a[n, 1, l], v[n, l, h])
def mixed(a, v):
    # n, 1, l x n, l, h -> n, 1, h
    found = torch.bmm(a, v)
    return found

# %% a cross between listed operands, and another order in the last | mixed(a[n, 1, l], v[n, l, h])
def mixed(a, v):
    # n, 1, l x n, l, h -> n, h, 1
    found = torch.bmm(a, v)  #! cannot tell
    return found

# %% what is returned alone has its comment there | Steps(width)(x[batch, seq, 3])
class Steps(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.over = nn.GRU(3, width, batch_first=True)

    def forward(self, x):
        y = torch.tanh(x)  # batch, seq, 3
        found, self.state = self.over(y)

        return found  # batch, seq, width

# %% a result by its name in the docstring | turned(x[batch, seq, width])
def turned(x):
    """Turns it.

    :param x: [batch, seq, width]
    :return: after: [batch, width, seq] if it is turned
    """
    y = torch.tanh(x)  # [batch, seq, width]
    after = y.transpose(1, 2)
    z = after.sum()
    return after / z

# %% a product in brackets behind words | gates(x[batch, heads, width], w[width])
def gates(x, w):
    batch, heads, width = x.shape
    # the open gates (batch * heads)
    free = torch.sigmoid(x @ w)  #! cannot tell

    y = free * 2
    return y  # [batch, heads]

# %% the next line's chain begins with it | Fed(width, wide)(x[batch, seq, width])
class Fed(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.up = nn.Linear(width, wide)

    def forward(self, x):
        y = torch.tanh(x)
        y = self.up(y)  # [batch, seq, width] -> [batch, seq, wide]
        return y.mT  # [batch, wide, seq]
