"""What is told once: for two branches, for two lines with one name, for several results, as an
equation; and slips in what stands above a line.
"""

# %% a size worked out behind the arrow | Shrink(width, steps)(x[batch, width, steps, nodes])
class Shrink(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.steps = steps
        self.mix = nn.Conv2d(width, width, (steps, 1))

    def forward(self, x):
        y = self.mix(x)  # [batch, width, steps - steps + 1, nodes] => [batch, width, 1, nodes]
        z = y + x  # [batch, width, steps * 1, nodes] -> [batch, width, steps, nodes]
        w = y * x  # [batch, width, steps + 1, nodes] -> [batch, width, steps, nodes]  #! false
        return z - w  # [batch, width, steps, nodes]


# %% a letter of the call that a helper has for a size of its own | Sampler()(w[B, R, N, 1], t[B, R, K])
class Sampler(nn.Module):
    def pick(self, values, table):
        # values.shape = (B, R, N)  #! cannot tell
        # table.shape = (B, R, N)  #! cannot tell

        count = values.shape[-1]

        return table.cumsum(-1) + values[..., :1] * count  #! missing

    def forward(self, w, t):
        middle = 0.5 * t  # (B, R, K)
        near = 2 * t  # (B, R, K)
        both = self.pick(middle, near)  # (B, R, K)
        flat = w.squeeze(-1)  # (B, R, N)
        turned = w.mT  # (B, R, N, 1)  #! false
        return both.sum() + flat.sum() + turned.sum()


# %% a name of a result, made in two lines | Columns(width)(z[B, I, J, width])
class Columns(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.scale = width**-0.5

    def forward(self, z):
        B, I, J, width = z.shape
        q = self.q(z)  # [B, I, J, width]

        # For each column j, row z[i, j] looks at the rows z[k, j]
        # logits: [B, I, width, J]
        logits = q * self.scale  #! cannot tell
        logits = logits.permute(0, 1, 3, 2)  # [B, I, width, J]

        # other: [width, B, J]
        other = logits.sum(1) * self.scale  #! false
        other = other.mT  # [B, J, width]
        return other + z.sum(1)  # [B, J, width]


# %% an example in numbers, and prose behind a second sign | blend(alpha[B, R, N, 1], kept[B, R, N, 1])
def blend(alpha, kept):
    weights = kept * alpha  # weights.shape = (B, R, N, 1) | (B, 1024, 64, 1) # These are used for the colours
    total = weights.sum(2)  # total.shape = (B, R, 1) # and this for the mask
    part = weights[:, :, 1:, 0]  # without the first, because of what it is worth # part.shape = (B, N - 1, R)  #! false
    return part + total  # (B, R, N - 1)


# %% one block above the lines that make its results | Encode(width, hidden)(x[seq_len, batch_size, width], lengths[batch_size].full(seq_len))
class Encode(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden, 2)
        self.mix = nn.Linear(width, width)

    def forward(self, x, lengths):
        # mixed = [batch_size, width]
        mixed = self.mix(x)  #! false

        # outputs = [seq_len, batch_size, hidden]
        # state = (h_n, c_n), always
        # h_n = [2, batch_size, hidden]
        # c_n = [2, batch_size, hidden]
        # none of them is packed
        packed = nn.utils.rnn.pack_padded_sequence(
            mixed, lengths
        )
        packed, state = self.rnn(packed)  #! cannot tell
        outputs, _ = nn.utils.rnn.pad_packed_sequence(packed)
        return outputs, state


# %% two branches above, a return below, a move below | Depths(count)(near[batch, count], far[batch, count])
class Depths(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count
        self.inverse = True

    def forward(self, near, far):
        batch, count = near.shape
        steps = torch.linspace(0.0, 1.0, count)  # (count,)
        steps = steps.to(near.device)
        if self.inverse:
            depths = 1.0 / (1.0 / near * (1 - steps) + 1.0 / far * steps)
        else:
            depths = near + (far - near) * steps
        # depths shape: (batch, count)

        noise = torch.rand_like(depths)  # (batch, count)
        noise = noise.contiguous().float()
        wide = noise.mean(-1, keepdim=True)  # (batch, 1)
        wide = wide.expand(-1, count)  #! missing
        middle = torch.sort(depths + noise * wide).values
        return middle  # (batch, count)


# %% an activation that is called weights, no layer near | volume(alpha[B, samples], rest[B, samples])
def volume(alpha, rest):
    seen = torch.cumprod(1 - alpha, -1)  # (B, samples)
    light = seen * rest  # (B, samples)
    # compute the volume weight (samples, samples)
    weights = alpha * light  #! false
    # the colour as the weighted sum (B,)
    return (weights * rest).sum(-1)


# %% the batch that the code has a name for | Gate(C, D)(x[B, C, T], aux[B, D])
class Gate(nn.Module):
    def __init__(self, C, D):
        super().__init__()
        self.mix = nn.Conv1d(C + D, C, 1)

    def forward(self, x, aux):
        # x: (B, C, T)
        # aux: (B, D)
        B, C, T = x.shape
        y = torch.cat([x, aux.unsqueeze(-1).repeat(1, 1, T)], 1)  # (C + D, T)  #! false
        return self.mix(y)  # (B, C, T)


# %% the second of two labels above | Recur(width, hidden, layers)(x[seq_len, batch_size, width])
class Recur(nn.Module):
    def __init__(self, width, hidden, layers):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden, layers)
        self.out = nn.Linear(hidden, width)

    def forward(self, x):
        # output = [seq_len, batch_size, hidden]
        # h_n = [layers, batch_size, hidden]
        # c_n = [batch_size, layers, hidden]
        output, state = self.rnn(x)  #! false

        # after = [seq_len, batch_size, width]
        after = self.out(output)
        return after


# %% lines above steps, and above an if | Repeat(N, B)(x[n, N, T])
class Repeat(nn.Module):
    def __init__(self, N, B):
        super().__init__()
        self.proj = nn.Conv1d(N, B, 1)
        self.kind = "relu"

    def forward(self, x):
        if x.dim() == 2:
            x = x.unsqueeze(0)
        # n x T x B
        y = self.proj(x)  #! false
        # n x B x T
        y = y.tanh()
        # n x B x T
        if self.kind == "relu":
            m = F.relu(y)
        else:
            m = y.sigmoid()
        both = m + y  # n x B x T
        first = x + x  # n x N x T
        return both.sum(-1) + first.sum()  # n x B


# %% one line above two that make the same | Norm(C)(x[N, C, T])
class Norm(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(C, 1))

    def forward(self, x):
        y = x.transpose(1, 2)  # N x T x C
        y = y.transpose(1, 2) * self.gain  # N x C x T

        # N x 1
        mean = x.mean((1, 2), keepdim=True)  #! false
        var = (x - mean).mean((1, 2), keepdim=True)
        y = y / var  # N x C x T
        return y.mT  # N x T x C


# %% a number for what the call gives | Masks(N, spks)(x[n, N, T])
class Masks(nn.Module):
    def __init__(self, N, spks):
        super().__init__()
        self.spks = spks
        self.wide = nn.Conv1d(N, spks * N, 1)

    def forward(self, x):
        # n x N x T
        w = F.relu(x)
        # n x N x T
        y = w + x
        # n x 2N x T
        e = torch.chunk(self.wide(y), self.spks, 1)  #! cannot tell
        # n x N x T
        return e[0] + y


# %% a layer that is handed over | Outer(heads * hd, heads)(k[src_len, batch, heads * hd])
class Outer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.kdim = embed_dim // num_heads
        self.num_heads = num_heads
        self.k_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, key):
        return widened(key, self.num_heads, k_proj=self.k_proj)  # [src_len, batch_size, embed_dim]


def widened(key, num_heads, k_proj):
    src_len, batch_size, embed_dim = key.shape
    kdim = embed_dim // num_heads
    k = k_proj(key)  # [src_len, batch_size, embed_dim] x [embed_dim, kdim * num_heads] = [src_len, batch_size, kdim * num_heads]
    return k  # [src_len, batch_size, embed_dim]
