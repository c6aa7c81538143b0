"""True by another size of a name, or of what was there before; and what is no shape."""

import torch
from torch import nn


# %% a count that another call has not | Rows(m)(x[B, N, d]); Rows(-1)(x[B, N, d])
class Rows(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        B, N, d = x.shape
        count = self.count
        if count > 0:
            x = x[:, :count]  # (B, count, d)
        wide = torch.cat([x, x], dim=-1)  # (B, count, 2 * d)  #! cannot tell
        tall = torch.cat([x, x], dim=1)  # (B, count, 2 * d)  #! false
        return wide.sum() + tall.sum()


# %% a name that stands for two maps | Maps(c)(x[B, c, 2*h, 2*w])
class Maps(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.pool, self.cut = nn.AvgPool2d(2), nn.Conv2d(c, c, 2)

    def forward(self, x):
        B, c = x.shape[:2]
        small = self.pool(x)  # (B, c, rows, cols)
        flat = small.flatten(2)  # (B, c, rows * cols)
        turned = flat.mT  # (B, rows * cols, c)
        cut = self.cut(x)  # (B, c, *, *)
        rows, cols = cut.shape[2:]
        again = turned + 1  # (B, rows * cols, c)  #! cannot tell
        other = turned.mT  # (B, rows * cols, c)  #! false
        whole = cut.flatten(2)  # (B, c, rows * cols)
        return again.sum() + other.sum() + whole.sum()


# %% told of what comes to the first round | Rounds(n)(x[B, T, d], hide[B, T, 1])
class Rounds(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x, hide):
        B, T, d = x.shape
        for _ in range(self.n):
            # hide: (B, T, 1)
            hide = hide.reshape(B * T, 1)  #! cannot tell
            # x: (B, d, T)
            x = x * 2  #! false
        return x  # (B, T, d)


# %% a name that no code has any more | Gone(d, n)(x[B, T, d])
class Gone(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.n, self.down, self.up = n, nn.Linear(d, 1), nn.Linear(d, n)

    def forward(self, x):
        B, T, d = x.shape
        n = self.n
        v = self.down(x.mean(1))  # v: (B, 1)
        # votes: [n, B, 1]

        if n > 1:
            w = self.up(x).sum(1)  # w: (n, B)  #! false
            v = v + w.sum(1, keepdim=True)  # (B, 1)
        return v  # (B, 1)


# %% a list of states told as one | Cells(n)(x[B, d], states[n, B, wide].unbind())
class Cells(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x, states):
        # x: (B, d)
        # states: (n, B, wide)
        assert len(states) == self.n
        n, B = len(states), len(x)
        wide = states[0].shape[-1]
        last = states[-1]  # (B, wide)
        return x.sum() + last.sum() + n * B * wide


# %% a letter that words explain | Cut(half)(x[B, N, T])
class Cut(nn.Module):
    def __init__(self, half):
        super().__init__()
        self.part_size = 2 * half

    def forward(self, x):
        # x: (B, N, L)  #! cannot tell
        B, N, T = x.shape
        parts = x[..., : T // self.part_size * self.part_size].unflatten(-1, (-1, self.part_size))  # B, N, K, L: L is the part_size  #! cannot tell
        turned = parts.mT  # B, N, L, K
        return turned


# %% the number of an equation | Gates(d)(x[batch_size, d])
class Gates(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.down = nn.Linear(d, 2 * d)

    def forward(self, x):
        batch_size, d = x.shape
        gate = self.down(x)  # the gate - equation (26) -> (batch_size, 2 * d)
        other = self.down(x)  # the gate - equation (26) -> (batch_size, d)  #! false
        return gate + other  # (batch_size, 2 * d)


# %% a call inside of a size | Doubled(d)(x[B, T, d])
class Doubled(nn.Module):
    def __init__(self, d, twice=True):
        super().__init__()
        self.twice = twice
        self.up = nn.Linear(d, d * (1 + int(twice)))

    def forward(self, x):
        B, T, d = x.shape
        up = self.up(x)  # [B, T, d * (1 + int(twice))]
        turned = up.mT  # [B, T, d * (1 + int(twice))]  #! false
        return turned


# %% an attribute made of what has its name | Both(2*w)(x[B, T, 2*w])
class Both(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden // 2
        self.rnn = nn.LSTM(hidden, self.hidden, batch_first=True, bidirectional=True)

    def forward(self, x):
        B, T, _ = x.shape
        y, _ = self.rnn(x)  # (B, T, hidden)  #! cannot tell
        z = y.mT  # (B, T, hidden)  #! false
        return z  # (B, 2 * self.hidden, T)
