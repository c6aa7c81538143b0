"""Names that somebody else has too: a layer, the caller; and thoughts, parts of what is returned."""

import torch
from torch import nn


# %% the batch holds all windows already | Inside(heads, size, m)(x[batch * windows, m * m, heads * size])
class Inside(nn.Module):
    def __init__(self, heads, size, m):
        super().__init__()
        self.m, self.heads, self.size, width = m, heads, size, heads * size
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        b, n, width = x.shape
        m, heads, size = self.m, self.heads, self.size
        qkv = self.qkv(x).reshape(b, n, 3, heads, size)  # (b*windows, m*m, 3, heads, size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (b*windows, heads, m*m, size)
        s = q @ k.mT  # (b*windows, heads, m*m, m*m)
        s = s.softmax(-1)  # (b, heads, m*m, size)  #! false
        return (s @ v).transpose(1, 2).reshape(b, n, width)  # (b*windows, m*m, width)


# %% a layer has a hidden_size of its own | Both(size, half, layers)(x[steps, batch, size])
class Both(nn.Module):
    def __init__(self, size, half, layers, directions=2):
        super().__init__()
        self.hidden_size = directions * half
        self.each = self.hidden_size // directions
        self.rnn = nn.GRU(
            input_size=size, hidden_size=self.each, num_layers=layers, bidirectional=True
        )

    def forward(self, x):
        layers, directions = self.rnn.num_layers, 2
        out, h = self.rnn(x)
        # h is of shape (layers * directions, batch, hidden_size)
        h = h.contiguous()
        # out is of shape (steps, batch, directions * hidden_size)
        out = out * 1
        out = out + 1  # (steps, batch, hidden_size)
        out = out.transpose(0, 1)  # (steps, batch, hidden_size)  #! false
        return out.sum() + h.sum()


# %% a thought beside what is true | Think(steps, nodes)(x[B, T, nodes, steps])
class Think(nn.Module):
    def __init__(self, steps, nodes, wide=5):
        super().__init__()
        self.wide = wide
        self.out = nn.Linear(steps, 1)

    def forward(self, x):
        B, T, nodes, steps = x.shape
        wide = self.wide
        x = self.out(x)
        # A good way is to make sure output format is (B, T, nodes, wide)
        # Let's see what is asked for: (B, T, nodes, 1)
        # The output format of it: (B, T, nodes, 1)

        x = x.squeeze(-1)  # (B, T, wide)  #! false
        return x  # (B, T, nodes)


# %% a line for each part of what is returned | Parts()(x[b, t, d])
class Parts(nn.Module):
    def forward(self, x):
        h = x * 2  # (b, t, d)
        z = x.mean(1)  # (b, d)
        return {
            "h": torch.stack([h, h], dim=1),  # (b, 2, t, d)
            "turned": torch.stack([h, h], dim=2),  # (b, 2, d, t)  #! false
            "z": torch.stack([z, z, z], dim=1),  # (b, 3, d)
        }


# %% a number of something | Rows()(x[batch, lines, cols], rep[batch, many])
class Rows(nn.Module):
    def forward(self, x, rep):
        batch, lines, cols = x.shape
        many = rep.shape[1]
        x = x[:, None].repeat(1, many, 1, 1)  # (#batch x #many x #lines x #cols)
        x = x.reshape(batch, many * lines, cols)  # (#batch x #many*#lines x #cols)
        x = x.mT  # (#batch x #many*#lines x #cols)  #! false
        return x.mT  # (#batch x #many*#lines x #cols)


# %% a letter is explained in another class | Cut(D)(x[B, D, 4 * piece], piece); Whole(D, m, piece)(x[B, m * n])
class Cut(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x, piece):
        b, d, _ = x.shape
        cut = self.mix(x).reshape(b, d, -1, piece)  # B, D, K, S: S is the piece
        cut = cut.transpose(1, 2)  # B, K, D, S
        cut = cut.mT  # B, K, D, S  #! false
        return cut


class Whole(nn.Module):
    def __init__(self, width, m, piece):
        super().__init__()
        self.piece = piece
        self.into = nn.Conv1d(1, width, 2 * m, stride=m)
        self.norm = nn.GroupNorm(1, width)

    def forward(self, x):
        piece = self.piece
        y = self.into(x[:, None])  # B, D, S
        y = self.norm(y)  # B, D, S
        return y.repeat(1, 1, self.piece)[..., :piece]  # B, D, piece


# %% a piece has a side and a width | Stem(width, patch_size, places)(x[batch, 3, patch_size * high, patch_size * wide]) where places=high*wide
class Stem(nn.Module):
    def __init__(self, width, patch_size, places):
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch_size, stride=patch_size)
        self.places = nn.Parameter(torch.zeros(places, width))

    def forward(self, x):
        x = self.cut(x)  # (batch, width, high, wide)
        x = x.flatten(2).mT  # (batch, num_patches, patch_dim)
        x = x.mT  # (batch, places, width)  #! false
        return x.mT + self.places  # (batch, places, width)


# %% what a layer on the way gives is told by its name | Last(steps, width)(x[batch, steps, places, width])
class Last(nn.Module):
    def __init__(self, steps, width):
        super().__init__()
        self.final_conv = nn.Conv2d(steps, steps, (1, width))

    def forward(self, x):
        # the shape of final_conv()'s output: (batch, steps, places, 1)
        y = self.final_conv(x)[:, :, :, -1].permute(0, 2, 1)
        y = y.mT  # (batch, places, steps)  #! false
        return y.mT  # (batch, places, steps)


# %% an item of what is given has a shape of its own | Reads(width, words)(word[batch].ints(words), hidden[layers, batch, width], seen[steps, batch, width])
class Reads(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(0.1)
        self.ask = nn.Linear(width, width)

    def forward(self, word, hidden, seen):
        # hidden: (layers, batch, width)
        # seen: (steps, batch, width)
        x = self.embed(word).unsqueeze(0)
        # x: (1, batch, width)
        x = self.drop(x)  #! cannot tell
        # weigh what is seen, and mix it
        # hidden[-1]: (batch, width)
        shares = self.look(hidden[-1], seen)
        # shares: (batch, 1, steps)
        found = shares.bmm(seen.transpose(0, 1))
        # found: (batch, 1, width)
        found = found.transpose(0, 1)
        # found: (1, batch, width)
        both = torch.cat((x, found), 2)
        # both: (1, batch, 2 * width)
        both = both.mT  # (1, batch, 2 * width)  #! false
        return both.mT  # (1, batch, 2 * width)

    def look(self, asked, seen):
        scores = (seen * self.ask(asked)).sum(-1)  # (steps, batch)
        return scores.T.softmax(-1).unsqueeze(1)  # (batch, 1, steps)


# %% arrows behind names are no steps | Looks(width, size)(x[batch, steps, width])
class Looks(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.key, self.into = nn.Linear(width, 1), nn.Linear(width, size)

    def look(self, x):
        shares = self.key(x)[..., 0].softmax(-1)  # (batch, steps)
        out = self.into((shares[..., None] * x).sum(1))  # (batch, size)
        return out, shares

    def forward(self, x):
        out, shares = self.look(x)  # Out: out->(batch, size), shares->(batch, steps)
        shares = shares.mT  # (batch, steps)  #! false
        return out, shares


# %% how long it is depends on the numbers | Writes(width, words).write(first[1, width], most)
class Writes(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.into, self.back = nn.Linear(width, words), nn.Linear(words, width)

    def write(self, first, most):
        x, kept = first, []
        for _ in range(most):
            scores = self.into(x)  # (1, words)
            kept.append(scores.argmax(-1))
            if len(kept) > 2 and float(scores.abs().sum()) > 0:
                break
            x = self.back(scores)  # (1, width)
            x = x.mT.mT  # (width, 1)  #! false
        return torch.stack(kept, 1)  # (1, most)  #! cannot tell


# %% each argument has the comment in its own line | Lines(wide, narrow)(states[B, T, wide], acts[B, T, narrow])
class Lines(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.one, self.two = nn.Linear(wide, wide), nn.Linear(narrow, wide)

    def forward(
        self,
        states: torch.Tensor,  # (B, T, wide)
        acts: torch.Tensor,  # (B, T, wide)  #! false
    ):
        return self.one(states) + self.two(acts)  # (B, T, wide)


# %% outputs of something before come in | Over(H)(state[B, H], seen[T, B, 2*H])
class Over(nn.Module):
    def __init__(self, H):
        super().__init__()
        self.of_state, self.of_seen = nn.Linear(H, H), nn.Linear(2 * H, H)

    def forward(self, state, seen):
        # seen: (B, T, 2*H) - the outputs of the encoder  #! false

        query = self.of_state(state)  # (B, H)
        keys = self.of_seen(seen)  # (T, B, H)
        return torch.tanh(query + keys)  # (T, B, H)


# %% a sum told as two axes | Beside(wide, narrow)(x[batch, wide], y[batch, narrow])
class Beside(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.out = nn.Linear(wide + narrow, wide)

    def forward(self, x, y):
        x = x.relu()
        # x: (batch, wide)
        y = y.relu()
        # y: (batch, narrow)
        both = torch.cat([x, y], dim=1)  #! false
        # both: (batch, wide, narrow)
        return self.out(both)  # (batch, wide)


# %% the caller's word in a product that others have | Mixed(Sizes(width))(c[batch, c_len, 2*width], q[batch, q_len, 2*width])
class Sizes:
    def __init__(self, width):
        self.of_one = width


class Mixed(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.out = nn.Linear(8 * sizes.of_one, sizes.of_one)

    def forward(self, c, q):
        # (batch, c_len, q_len)
        a = (c @ q.mT).softmax(-1)
        # (batch, c_len, width * 2)
        one = a @ q
        # (batch, 1, width * 2)
        two = c.mean(1, keepdim=True)
        # (batch, c_len, width * 2)
        two = two.expand(-1, c.shape[1], -1)
        # (batch, c_len, width * 2)
        x = torch.cat([c, one, c * one, c * two], dim=-1)  #! false
        return self.out(x)


# %% what is joined is told as it was | Rows(size)(x[B, n, size])
class Rows(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.out = size, nn.Linear(size, size)

    def forward(self, x):
        # (B, n, size)
        x = self.out(x)
        # (B, size)
        y = x.mean(1)
        # (B, 1, size)
        y = y[:, None]
        x = x + y

        # (B, n, size)
        x = x.view(-1, self.size)  #! cannot tell
        return self.out(x)


# %% between two lines it names what the second makes | Joined(D, H)(x[Y, D, B, H])
class Joined(nn.Module):
    def __init__(self, D, H):
        super().__init__()
        self.D, self.H = D, H

    def forward(self, x):
        Y, D, B, H = x.shape
        # (Y, B, H)
        first = x[:, 0]
        # (Y, B, H)
        last = x[:, 1]
        # both.shape: Y x B x H
        both = torch.cat([first, last], dim=2)  #! false
        return both  # (Y, B, 2 * H)


# %% both sizes are too large by one factor | Patches(P, C, wide)(x[B, C, n*P, n*P])
class Patches(nn.Module):
    def __init__(self, P, C, wide):
        super().__init__()
        self.cut = nn.Conv2d(C, wide, P, P)

    def forward(self, x):
        B, C, H, W = x.shape
        # (B, C, H, W) -> (B, wide, H, W)
        x = self.cut(x)  #! false
        # (B, wide, n * n)
        x = x.flatten(2)
        return x.transpose(1, 2)  # (B, n * n, wide)


# %% an arrow in brackets is of one operand | Near(C)(x[B, N, C], y[B, M, C])
class Near(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.C = C

    def forward(self, x, y):
        B, N, C = x.shape
        M = y.shape[1]
        near = torch.matmul(x, y.transpose(-1, -2))  # (B, N, C) x [(B, M, C) -> (B, C, M)]  #! cannot tell
        far = torch.matmul(y, x.transpose(-1, -2))  # [(B, C, M) -> (B, M, C)] x (B, C, N)  #! cannot tell
        wide = torch.matmul(x, y.transpose(-1, -2))  # (B, N, C) x (B, C, M) -> (B, M, N)  #! false
        return near + far.mT + wide  # (B, N, M)


# %% an operand is told before it is turned | Turned(H)(x[B, n, T, H], y[B, n, T, H])
class Turned(nn.Module):
    def __init__(self, H):
        super().__init__()
        self.H = H

    def forward(self, x, y):
        B, n, T, H = x.shape
        one = x @ y.transpose(-2, -1)  # (B, n, T, H) @ (B, n, T, H).T -> (B, n, T, T)  #! cannot tell
        two = x @ y.mT  # (B, n, T, H) @ (B, n, T, H)^T -> (B, n, T, T)  #! cannot tell
        two = x @ y.mT  # (B, n, T, H) @ (B, n, T, H).transpose(2, 3) -> (B, n, T, T)  #! cannot tell
        three = x @ y.mT  # (B, n, T, H) @ (B, n, H, T) -> (B, n, T, T)
        four = x @ y.mT  # (B, n, T, H) @ (B, n, T, H) -> (B, n, T, T)  #! false
        return one + two + three + four  # (B, n, T, T)


# %% a product inside of a layer of one's own | Inside(B)(x[B, T, B])
class Kept:
    def __init__(self, size):
        self.held = {"w": torch.randn(size, size)}

    def __call__(self, x):
        return torch.einsum("btd,do->bto", x, self.held["w"])  # (B, T, D)


class Inside:
    def __init__(self, size):
        self.keys, self.plain = Kept(size), nn.Linear(size, 2 * size)

    def __call__(self, x):
        B, T, D = x.shape
        k = self.keys(x)  # (B, T, D) @ (D, D) -> (B, T, D)  #! cannot tell
        w = self.plain(x)  # (B, T, D) @ (D, T) -> (B, T, 2 * D)  #! false
        return k, w
