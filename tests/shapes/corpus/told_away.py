# Shapes that are told away from their statement, longer names, and what only numbers decide.

# %% the docstring tells what is returned, and what is made on the way | kernels(x[batch, seq, hidden])
def kernels(x):
    """Weighs each place.

    Input:
        x: [batch, seq, hidden]
    Local:
        total:   (batch, 1, hidden)
    Output:
        weights [batch, seq, hidden)
    """
    y = torch.tanh(x)  # [batch, seq, hidden]
    z = torch.relu(y)  #! missing
    total = z.sum(1, keepdim=True)
    return z / total

# %% a comment above the def tells what comes out | spread(x[batch, seq, hidden])
# Inputs:
#   x - tensor of shape (batch, seq, hidden) to be spread
# Outputs:
#   Tensor of shape (batch, hidden, seq)
def spread(x):
    y = x - x.mean(1, keepdim=True)  # (batch, seq, hidden)
    x = torch.tanh(y)
    out = x.transpose(1, 2)
    return out

# %% the line of a layer tells what comes out of it | Wave(16, 4)(x[batch, 1, time])
class Wave(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.first = nn.Conv1d(1, wide, 1)  # [batch x wide x time]
        self.second = nn.Conv1d(wide, narrow, 1)  # makes it narrow

    def forward(self, x):
        y = torch.tanh(x)  # [batch x 1 x time]
        y = self.first(y)
        return self.second(y)  #! missing

# %% initials in one word | Crossed(width)(x[batch, width, height])
class Crossed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, width, height = x.shape
        y = self.proj(x.mT)  # [batch, height, width]
        scores = y @ y.mT  # > b-h-h  #! cannot tell
        return scores @ y  # bhw  #! cannot tell

# %% a longer name of the code | search(x[batch, width], beam)
def search(x, beam):
    current_beam_size = 1
    x = x[:, None].repeat(1, current_beam_size, 1)  # [batch, beam, width]  #! cannot tell
    return x.sum(-1)  # [batch, beam]  #! cannot tell

# %% how many are picked, only the numbers say | Picked(width, classes)(x[batch, seq, width], ids[batch, seq].ints(3))
class Picked(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.out = nn.Linear(width, classes)

    def forward(self, x, ids):
        x = torch.tanh(x)  # (batch, seq, width)
        first = ids == 0  # (batch, seq)
        x = x[first]  # (batch, width)  #! cannot tell
        return self.out(x)  # (batch, classes)  #! cannot tell
