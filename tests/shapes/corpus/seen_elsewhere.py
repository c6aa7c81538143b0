"""Ways that public code writes it: stars between bare shapes, steps told above, rarer signs."""

# %% a star between two bare shapes | Attend(hidden)(states[batch, seq, hidden], last[batch, hidden])
class Attend(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.mix = nn.Linear(hidden, hidden)

    def forward(self, states, last):
        last = last.unsqueeze(2)  # B,D,1
        keys = self.mix(states)  # B,T,D
        energy = keys.bmm(last).squeeze(2)  # B,T,D * B,D,1 --> B,T
        alpha = F.softmax(energy, 1)  # B,T
        alpha = alpha.unsqueeze(1)  # B,1,T
        context = alpha.bmm(states)  # B,1,T * B,T,D => B,1,D
        again = alpha.bmm(keys)  # B,1,T * B,T,D => B,D,1  #! false
        both = torch.stack((context, again), 1)  # B, 2 * 1, 1, D
        return both.flatten(1, 3)  # B, 2 * 1 * D


# %% the argument as it comes in, where shapes stand below their lines | Mix(width, hidden)(x[batch, seq, width], who[batch, hidden])
class Mix(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)

    def forward(self, x, who):
        # x: [batch, seq, width]
        x = self.up(x)
        # x: [batch, seq, hidden]
        x = x.transpose(1, 2)
        # x: [batch, hidden, seq]
        x = x.transpose(1, 2)
        # x: [batch, seq, hidden]

        # who: [batch, hidden]
        who = who.unsqueeze(1)  #! cannot tell
        who = who.expand(-1, x.size(1), -1)
        # who: [batch, seq, hidden]

        x = torch.cat((x, who), dim=2)  # [batch, seq, 2 * hidden]
        return x  # [batch, seq, 2 * hidden]


# %% an argument and an arrow | Embed(hidden)(words[batch, seq].ints(hidden))
class Embed(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.table = nn.Embedding(hidden, hidden)
        self.mix = nn.Linear(hidden, hidden)

    def forward(self, words):
        out = self.table(words)  # words -> (batch, seq)  #! cannot tell
        out = self.mix(out)  # out -> (batch, seq, hidden)
        new = self.mix(out)  # new -> (batch, hidden)  #! false
        return out + new  # (batch, seq, hidden)


# %% rows that are packed have no shape, and another line of them is wrong | Packed(width, hidden)(x[batch, seq, width], lengths[batch].full(seq))
class Packed(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.width = width
        self.rnn = nn.GRU(width, hidden, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        order = lengths.argsort()  # (batch,)
        x = x[order]  # (batch, seq, width)
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)

        x, _ = self.rnn(x)  # (batch, seq, 2 * hidden)  #! cannot tell

        x, _ = nn.utils.rnn.pad_packed_sequence(x, batch_first=True)  # (batch, seq, 2 * hidden)  #! cannot tell
        x = x[order]  # (batch, 2 * hidden, seq)  #! false
        x = x.relu()  # (batch, seq, 2 * hidden)
        both = nn.utils.rnn.pack_padded_sequence(x[..., : self.width], lengths, batch_first=True)
        both, last = self.rnn(both)  # (batch, seq, 2 * hidden), (2, batch, hidden)  #! cannot tell
        return x, last.sum(0)  # (batch, seq, 2 * hidden), (batch, hidden)


# %% names in another script, powers of brackets, products in words | Windows(hidden)(x[batch, seq, hidden])
class Windows(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.one = nn.Linear(hidden, 1)
        self.radius = 2

    def forward(self, x):
        batch, seq, hidden = x.shape
        R = self.radius
        first = x[0, :, 0]  # (样本总数, )  #! cannot tell
        pairs = torch.stack((first, first, first), 1)  # (样本总数, 3)  #! cannot tell
        grid = x.new_ones((2 * R + 1) ** 2, 2).expand(batch, 1, -1, 2)  # [batch, 1, (2R+1)^2, 2]
        flat = grid[:, 0, :, 0]  # [batch, (2R+1)^2]
        score = self.one(x.flatten(0, 1))  # (batch * word_count) * 1  #! cannot tell
        more = x.unsqueeze(1) * score.view(batch, 1, seq, 1)  # batch size * part num * word num * word dim  #! cannot tell
        wide = x.repeat(1, 1, 2)  # [batch_size, net16(7)_out=14]  #! cannot tell
        gate = score.view(batch, seq)[:, :1]  # B,1 scalar  #! cannot tell
        parts = [x[:, i:] for i in range(2)]  # [(N,T,D), ...]*len(range(2))  #! cannot tell
        step = x - x.new_zeros(batch, 1, hidden)  # step = a_r - a_i  (batch, seq, hidden)
        halves = x.sum(0)  # e.g.: 12x64  #! cannot tell
        thirds = x.mul(2)  # e.g.:32x12x64 -> #32x12x64  #! cannot tell
        return first, pairs, flat, more, wide, gate, parts, step, halves, thirds


# %% told above: of shape n x n, the same shape, one letter behind the arrow | pairs_of(x[n, width])
def pairs_of(x):
    N, width = x.shape
    two = torch.cat((x, x))  # [2N, width]
    # Hint: compare each with each, which should have shape 2N x 2N.
    close = two @ two.T
    close = close - 1  # [2N, 2N]

    # Take the exponent (shape is the same)
    power = close.exp()  #! cannot tell

    # Add them up. This should be a 2N x 1 vector.
    total = power.sum(1, keepdim=True)  #! cannot tell
    near = power / total  # [2N, 2N]
    # (N, width) -> N
    count = x.sum(1)
    both = count.repeat(2) + two.sum(1)  # (2N,)

    left = both + 1  #! missing
    return near, left


# %% several names for one shape, a word for the place, a chain with a slip at its end | gates_of(x[batch, seq, hidden], y[batch, seq, hidden], heads)
def gates_of(x, y, heads):
    # x, y: [batch, seq, hidden]
    both = torch.stack((x, y))  # [2, batch, seq, hidden]
    # Shapes of g, t, and z are all [batch, hidden, seq]
    g = torch.sigmoid(x)  #! false
    t = torch.relu(y)  #! false
    z = g * t + (1 - g) * x  #! false

    # Compute the input matrix of the source sentences with shape [batch, hidden, seq]
    m = z.cumsum(1)  #! false

    # Get the position in the world [batch, seq, 1] + [batch, seq, hidden] -> [batch, hidden, seq]
    p = m[..., :1] + m  #! false

    # [batch, seq, hidden] -> [batch, seq, heads, head_size] -> [batch, heads, seq, head_size]
    q = p.unflatten(-1, (heads, -1)).transpose(1, 2)

    # [batch, seq, hidden] -> [batch, seq, heads, head_size] -> [batch, seq, head_size]
    k = m.unflatten(-1, (heads, -1)).transpose(1, 2)  #! false

    # [batch, heads, seq, head_size] -> [batch, seq, heads, head_size] -> [batch, seq, hidden]
    v = q.transpose(1, 2)  #! cannot tell
    v = v.flatten(2)

    # the rows of v and k: [seq, hidden]
    row = v[0]
    # Take what is wanted in the end [batch, seq, hidden] -> [batch * seq, hidden]
    v = v.flatten(0, 1)
    v = v.view(x.shape)
    return both, v, k, row  # [2, batch, seq, hidden], [batch, seq, hidden], [batch, heads, seq, head_size], [seq, hidden]


# %% a block above three lines that take several lines each | heads_of(x[batch, seq, hidden], heads)
def heads_of(x, heads):
    B, N, D = x.shape
    # Size of the Batch x Number of Patches x Dimension
    # -> Size of the Batch x Number of Patches x (Heads * Head Dimension)
    # -> Size of the Batch x Number of Patches x (Heads * Head Dimension)
    # -> Size of the Batch x Heads x Number of Patches x Head Dimension
    # -> B x H x N x Head Dimension
    q = x.view(  #! cannot tell
        B, N, heads, -1
    ).transpose(1, 2)
    k = x.view(
        B, N, heads, -1
    ).transpose(1, 2)
    v = x.view(
        B, N, heads, -1
    ).transpose(1, 2)

    return q @ k.mT @ v  # [B, heads, N, N]  #! cannot tell
