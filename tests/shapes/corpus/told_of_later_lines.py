"""What a comment tells of later lines, of another call, or of nothing: numbered steps, operations
that follow, crosses and names written in their own way.

Slips of one kind each, and beside them what is true and looks like one.
"""

# %% numbered steps tell of a longer way | Patches(side, width)(x[B, C, 4 * side, 4 * side])
class Patches(nn.Module):
    def __init__(self, side, width):
        super().__init__()
        self.side = side
        self.embed = nn.LazyLinear(width)

    def forward(self, x):
        # 1. Cut (B, C, H, W) into patches: (B, num_patches, patch_dim)
        # 2. Embed them: (B, num_patches, width)
        x = x.unfold(2, self.side, self.side).unfold(3, self.side, self.side)  #! cannot tell
        x = x.permute(0, 2, 3, 1, 4, 5).flatten(3)
        return self.embed(x)


# %% an operation of a later line | Head(width)(x[B, L, width])
class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.width = width

    def forward(self, x):
        width = self.width
        y = self.norm(x)  # (B, L, width)
        # leave out the first, then permute to (B, width, L)
        x = x[:, 1:, :]  #! cannot tell
        n = x.shape[1]

        y = y.permute(0, 2, 1)  # (B, L, width)  #! false
        return x.permute(0, 2, 1).sum() + y.sum() + n


# %% an arrow leads to the result, and to no operand | Weigh()(q[B, H, T, d], k[B, H, S, d], v[B, H, S, d])
class Weigh(nn.Module):
    def forward(self, q, k, v):
        s = q @ k.mT  # (B, H, T, S)
        p = s.softmax(-1)  # (B, H, T, S)
        # o = p @ v
        # p: (B, H, T, S), v: (B, H, S, d)
        # -> o: (B, H, S, d)
        o = p @ v  #! false
        # o = p @ v
        # p: (B, H, T, S), v: (B, H, S, d)
        # -> o: (B, H, T, d)
        o = p @ v
        return o


# %% the tensor is called by its shape | Mix()(q[batch, steps, agents], s[batch, steps, states])
class Mix(nn.Module):
    def forward(self, q, s):
        # q.shape(batch, steps, agents)
        # s.shape(batch, states)  #! false
        agents, states = q.shape[-1], s.shape[-1]
        q = q.reshape(-1, 1, agents)  # (batch * steps, 1, agents)
        s = s.reshape(-1, states)  # (batch * steps, states)
        return q.sum() + s.sum()


# %% a slice of a table is no shape | Cut()(table[most, dim], x[batch, steps, dim])
class Cut(nn.Module):
    def forward(self, table, x):
        # as it is taken by table[begin : begin + steps], the rows go on
        x = x + table[: x.shape[1]]  #! missing
        return x * 2  # (batch, steps, dim)


# %% a cross may be written close | Squares()(x[B, C, W, H])
class Squares(nn.Module):
    def forward(self, x):
        B, C, W, H = x.shape
        N = W * H
        q = x.view(B, C, N).permute(0, 2, 1)  # BX (N) X (C)
        e = q @ q.mT  # B X N X N
        a = e.softmax(-1)  # BX (N) X (N)
        o = a @ q  # BX (C) X (N)  #! false
        return o


# %% a name like a word | Attend()(q[N, To, H], v[N, Ti, H])
class Attend(nn.Module):
    def forward(self, q, v):
        # (N, To, H) * (N, H, Ti) -> (N, To, Ti)
        s = torch.bmm(q, v.transpose(1, 2))
        # (N, To, Ti) * (N, Ti, H) -> (N, To, Ti)
        o = torch.bmm(s, v)  #! false
        # # then (N, To, 2*H)
        # o = torch.cat([o, q], 2)

        return o


# %% a name like a word in capitals | Sums()(y[B, TO, N])
class Sums(nn.Module):
    def forward(self, y):
        total = y.sum(2, keepdim=True)  # (B, TO, 1)
        turned = y.transpose(1, 2)  # (B, TO, N)  #! false
        return turned


# %% a name that begins like a heading | Notes()(notes[B, T, D])
class Notes(nn.Module):
    def forward(self, notes):
        # notes: (B, D)
        notes = notes.mean(1)
        # note_signs: (D, B)
        note_signs = notes.sign()  #! false
        return notes, note_signs


# %% one of a row of tensors is no new one | Last(hidden)(x[b, t, hidden])
class Last(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(3)])

    def forward(self, x):
        found = [layer(x) for layer in self.layers]
        last = found[-1]
        kept = {"last": last}
        last = kept["last"]
        first = found[0][:, 0]  #! missing
        total = last + x  # [b, t, hidden]
        return total


# %% a label that all but spells what comes in | Wide(d, more)(features[b, t, d])
class Wide(nn.Module):
    def __init__(self, d, more):
        super().__init__()
        self.wide = nn.Linear(d, more)

    def forward(self, features):
        b, t, d = features.shape
        x = self.wide(features)  # feature: [b, t, d]  #! cannot tell
        y = self.wide(features)  # y: [t, b, more]  #! false
        return y


# %% a letter of two layers, in one chain | Turn(inner, outer)(x[b, n, inner, t])
class Turn(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.over = nn.Conv2d(inner, outer, 1)

    def forward(self, x):
        y = self.over(x.permute(0, 2, 1, 3))  # (b,n,F,t)->(b,F,n,t) a layer ->(b,F,n,t)  #! cannot tell
        z = y + 1  # (b, F, n, t)
        z = z * 2  # (b, F, n, t)
        return z.permute(0, 2, 1, 3)  # (b, F, n, t)  #! false


# %% a sum that nobody counts | Pillars()(x[p1, points, 9], y[p2, points, 9])
class Pillars(nn.Module):
    def forward(self, x, y):
        points = x.shape[1]
        z = torch.cat([x, y])  # (p1 + p2 + ... + pb, points, 9)
        m = z.permute(0, 2, 1)  # (p1 + ... + pb, 9, points)
        v = m.amax(2)  # (p1 + p2 + ... + pb, points)  #! false
        w = m.amax(1)  # (p1 + p2 + ... + pb, points)
        return v.sum() + w.sum()


# %% words promise what comes of the line | Mixed(time, features)(x[batch, time, features])
class Mixed(nn.Module):
    def __init__(self, time, features):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(features), nn.Linear(time, time)

    def forward(self, x):
        # Normalised: (batch, time, features)
        y = self.norm(x)

        # Turned, so that its shape is (batch, time, features)
        y = y.transpose(1, 2)  #! false

        # Mixed along the time, which leaves (batch, features, time)
        y = self.mix(y)

        # Turned back, such that the shape is (batch, features, time)
        return y.transpose(1, 2)  #! false
