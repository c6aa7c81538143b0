# Names put in: those of other functions, those that no other comment has; and labels that are sure.

# %% a name that other functions have, for a size that has a name | Two(width, n)(x[b, t, width])
class Two(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.up, self.down = nn.Linear(width, n), nn.Linear(n, width)

    def wide(self, x):
        u = self.up(x)  # (batch, steps, depth)
        u = u.tanh()  # (batch, steps, depth)
        return u * 2  # (batch, steps, depth)

    def narrow(self, u):
        v = self.down(u)  # (batch, steps, channels)
        v = v.tanh()  # (batch, steps, channels)
        v = v * 2  # (batch, depth, channels)  #! false
        return v + 1  # (batch, steps, channels)

    def forward(self, x):
        return self.narrow(self.wide(x))  # (batch, steps, channels)

# %% the same name, where nothing else names the size | Two(width, n)(x[b, t, width])
class Two(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.up, self.down = nn.Linear(width, n), nn.Linear(n, width)

    def wide(self, x):
        u = self.up(x)  # (batch, steps, depth)
        u = u.tanh()  # (batch, steps, depth)
        return u * 2  # (batch, steps, depth)

    def forward(self, x):
        v = self.down(self.wide(x))  # (batch, steps, depth)
        return v.sum(-1)  # (batch, steps)

# %% one more, that no other comment has | f(x[b, t, width])
def f(x):
    y = x * 2  # (rows, steps, cells)
    y = y + 1  # (rows, steps, cells)
    z = y.tanh()  # (rows, steps, marks, cells)  #! false
    return z * y  # (rows, steps, cells)

# %% a batch that all of the comments have | f(x[t, width])
def f(x):
    y = x * 2  # (marks, steps, cells)  #! cannot tell
    y = y + 1  # (marks, steps, cells)  #! cannot tell
    return y.tanh()  # (marks, steps, cells)  #! cannot tell

# %% a name put in behind an ellipsis | f(x[b, t, width])
def f(x):
    y = x * 2  # (..., steps, cells)
    y = y + 1  # (..., steps, cells)
    z = y.mT  # (..., cells, steps)
    return z * 3  # (..., cells, marks, steps)  #! false

# %% named as what the line makes, with words behind | Turn(width, out)(x[batch, seq, width])
class Turn(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.out = nn.Linear(width, out)

    def forward(self, x):
        z = self.out(x)  # z: (batch, seq, width), which the mask hides from what comes behind  #! false
        x = x * 2  # x: (batch, seq, width), which the mask hides from what comes behind
        return z  # (batch, seq, out)

# %% two that agree against two | f(x[b, t, width])
def f(x):
    y = x * 2  # (rows, steps, cells)
    y = y + 1  # (rows, steps, cells)
    z = y.mT  # (rows, steps, cells)  #! cannot tell
    return z * 3  # (rows, steps, cells)  #! cannot tell

# %% an item without its batch, a batch put twice, a slip behind a sentence | Parts(width, inner)(x[batch, steps, width])
class Parts(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def wide(self, x):
        return self.up(x)  # (steps, inner)  #! false

    def both(self, u):
        return torch.cat((u, u.tanh()), dim=1)  # (batch, batch, inner)  #! false

    def forward(self, x):
        u = self.wide(x)  # (batch, steps, inner)
        v = self.down(u)  # (batch, steps, width)
        # Sum the parts together, in each map, to get a common representation (steps, batch, width)
        v = v + self.both(u).mean()  #! cannot tell
        return v.sum(1)  # (batch, width)
