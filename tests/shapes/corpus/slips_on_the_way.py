# Slips found by what other functions say, by repeated products, and beside names with a value.

# %% a name with its size | Pair(vocab, width)(x[batch, steps].ints(vocab))
class Pair(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.one, self.two = nn.Embedding(vocab, width), nn.Embedding(vocab, width)

    def forward(self, x):
        batch, steps = x.shape
        a = self.one(x)  # (batch, steps, width)
        b = self.two(x)  # (batch, steps, width)
        c = torch.cat([a, b], 2)  # (batch, steps, both=2*width)
        d = torch.cat([b, a], 2)  # (batch, both=2*width, steps)  #! false
        e = d.sum(1, keepdim=True)  # (batch, steps=1, 2*width)
        return e.transpose(1, 2)  # (batch, steps=1, 2*width)  #! false

# %% what other functions say | Inner(width)(x[n, t, width]); Outer(width)(x[n, t, width])
class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        a = self.a(x)  # [B, L, width]
        b = self.b(a)  # [B, L, width]
        c = b.mean(-1)  # [B, L]
        return a * c[..., None]  # [B, L, width]


class Outer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)  # [B, width, L]  #! false

# %% a name that means something else there | Enc(width)(x[n, t, width]); Dec(width, wide)(x[n, t, width])
class Enc(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        a = self.a(x)  # [B, L, state]
        b = self.b(a)  # [B, L, state]
        c = torch.tanh(b)  # [B, L, state]
        return c + a  # [B, L, state]


class Dec(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.a = nn.Linear(width, wide)

    def forward(self, x):
        return self.a(x)  # [B, L, state]

# %% products that are repeated | fold(x[batch, items, m, emb])
def fold(x):
    y = x.flatten(2).flatten(0, 1)  # [batch_size * num_item, part_num * emb_size]
    y = torch.relu(y)  # [batch_size * num_item, part_num * emb_size]
    y = y + 1  # [batch_size * num_item, part_num * emb_size]
    y = y[..., None]  # [batch_size * num_item, part_num * emb_size, 1]
    y = y * 2  # [batch_size * num_item, 1, part_num * emb_size]  #! false
    return y.squeeze(-1)  # [part_num * emb_size, batch_size * num_item]  #! false

# %% a heading over a paragraph | scores(c[batch, c_len, hidden], q[batch, q_len, hidden])
def scores(c, q):
    batch, c_len, hidden = c.shape
    q_len = q.size(1)
    c = c * 2  # [batch, c_len, hidden]

    # Shapes: [batch, c_len, q_len, q_len]

    # first part
    s = c @ q.transpose(1, 2)  #! false

    return s.softmax(-1)  # [batch, c_len, q_len]

# %% a range, a batch twice | wide(x[batch, steps, width])
def wide(x):
    batch, steps, width = x.shape
    a = x.relu()  # [bsz, bsz, width]  #! false
    y = a.mean(1, keepdim=True)  # [batch, 1, width]
    z = torch.cat([y[:, 0], y[:, 0]], -1)  # [width, width + width]  #! false
    return z  # [batch, width + width]

# %% an argument and the line that changes it | lift(x[batch, steps, width])
def lift(x):
    # x: [batch, width]  #! false
    x = x.unsqueeze(1)  # [batch, 1, steps, width]
    x = x.mean(-1)  # [batch, 1, steps]
    return x  # [batch, 1, steps]

# %% a list of states as one tensor | layers(x[batch, width], [s[batch, width], t[batch, width]])
def layers(x, states):
    # states: [2, batch, width]
    y = x + states[0]  # [batch, width]
    return y * states[1]  # [batch, width]
