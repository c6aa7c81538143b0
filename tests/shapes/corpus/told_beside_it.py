# Shapes that are told where a reader finds them, and parts that a comment parts with a comma.

# %% a dimension that is told in parts | cut(x[B, T, H*(n+m)], H, n, m)
def cut(x, H, n, m):
    B, T, _ = x.shape
    y = x.view(B, T, H, n + m)  # B, T, H, (n, m)  #! cannot tell
    z = y.transpose(1, 2)  # [B, H, T, (n, m)]  #! cannot tell
    first, second = z.split([n, m], dim=-1)  # (B, T, H, n), (B, T, H, m)  #! false
    return first.sum() + second.sum()


# %% a product with a shorter name of the code | Up(Sizes(num=num, v_head_dim=m))(x[B, T, num*m]); Up(Sizes(num=num, v_head_dim=m))(x[B, T, num*m], old[B, S, num*m])
class Sizes:
    def __init__(self, num, v_head_dim):
        self.num, self.v_head_dim = num, v_head_dim


class Up(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x, old=None):
        B, T, _ = x.shape
        kept = x if old is None else torch.cat([old, x], dim=1)  # B, seq_len, num * v_head  #! cannot tell
        seq_len = kept.shape[1]
        v = kept.view(B, seq_len, self.config.num, self.config.v_head_dim).transpose(1, 2)  #! missing
        w = v[:, :, :T] @ v.mT  # B, num, T, seq_len
        y = w @ v  # B, num, T, seq_len @ B, num, seq_len, v_head = B, num, T, v_head  #! cannot tell
        z = y.transpose(1, 2).reshape(B, T, -1)  # B, T, num * v_head  #! cannot tell
        z = z.mT  # B, T, num * v_head_dim  #! false
        return z.sum()


# %% a product of the second line below | both(x[B, d])
def both(x):
    B, d = x.shape
    # 2. The sum (B, 1, d) @ (B, d, 1) -> (B, 1, 1)
    row = x.unsqueeze(1)  #! cannot tell
    dot = torch.bmm(row, row.mT).squeeze(-1).squeeze(-1)  # (B,)

    # 3. The sum (B, 1, d) @ (B, d, 1) -> (B, 1, 1)
    other = x.unsqueeze(1)  #! false

    third = other.squeeze(1)  # (B, d)
    return dot.sum() + third.sum()


# %% what comes of the line, behind what comes in | mix(a[B, T, d, n], c[B, T, n], e[B, T, d])
def mix(a, c, e):
    B, T, d, n = a.shape
    # a: (B, T, d, n)
    # c: (B, T, n)
    # Result: (B, T, n)
    y = torch.sum(a * c.unsqueeze(2), dim=-1) + e * 2  #! false

    return y.sum()


# %% told where it is returned | Heads(hidden)(x[B, T, hidden])
class Heads(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.one = nn.Linear(hidden, 3)
        self.two = nn.Linear(hidden, 1)

    def forward(self, x):
        speed = self.one(x)
        height = self.two(x)
        other = self.one(x * 2)  #! missing
        return {
            "speed": speed,  # (B, T, 3) - along the axes
            "height": height,  # (B, T, 1)
            "other": other,
        }


# %% told behind the tuple that is returned | pair(x[B, T, d])
def pair(x):
    y = x.sum(dim=2)
    return y, x  # returns (B, T), (B, T, d)


# %% told by a text above the line | flat(x[B, T, d])
def flat(x):
    """Rows of all items."""
    """
    note: (B, T, d) --> (B * T, d)
    """
    y = x.flatten(0, 1)
    z = y * 2  #! missing
    return z.sum()


# %% wide brackets with signs in between | wide(x[B, T, d])
def wide(x):
    y = x * 2  # 形状 -->（100-B,5?,100-d）
    z = y * 2  # 形状  #! missing
    return z.sum()


# %% a parameter that is there already | Start(hidden)(x[B, hidden])
class Start(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.line = nn.Linear(hidden, hidden)

    def forward(self, x):
        weight = next(self.parameters()).data
        more = next(self.parameters()).data * 2  #! missing
        return weight.sum() + more.sum() + x.sum()


# %% names in front of the word shape | three(x[B, T, 3*d])
def three(x):
    B, T, _ = x.shape
    # q, k, v shape : (B, T, d)
    q, k, v = x.chunk(3, dim=-1)

    # q, k, v shape : (B, d, T)
    q, k, v = (t * 2 for t in (q, k, v))  #! false
    return q.sum() + k.sum() + v.sum()


# %% dots, or a star, and numbers | pick(x[B, T, d])
def pick(x):
    y = torch.stack([x.sum(-1)] * 6, dim=-1)  # (..., 6)
    z = y.unsqueeze(-1)  # (*, 6, 1)
    w = z.mT  # (..., 6, 1)  #! false
    return w.sum()


# %% as it comes in, with names that nobody has | rest(x[B, n, d], rows[B, 1, n, 1]); rest(x[B, n, d])
def rest(x, rows=None):
    B, n, d = x.shape
    y = x.sum(-1)  # (B, n)
    for _ in range(2):
        if rows is not None:
            # rows: (episodes, steps - 1, n, 1)
            rows = rows.reshape(-1, 1, n)  #! cannot tell
            # rows: (B, 1, n)
            y = y + rows.squeeze(1)  # (B, n)
    # y: (episodes, steps - 1, n, 1)
    y = y.unsqueeze(1)  #! false

    return y.sum()


# %% the name of a result in a docstring | Net(d)(x[B, n, d])
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.read = nn.GRU(d, d, batch_first=True)

    def forward(self, x):
        """Reads what comes in.

        :return kept (B, n, d): of each item
        """
        d = x.shape[-1]
        kept, _ = self.read(x)
        other = kept.mT @ x  #! missing
        return kept[:, :1], other.sum() / d


# %% told by its name, behind a line that makes it anew | steps(x[B, n, d])
def steps(x):
    B, n, d = x.shape
    y = x.mT
    z = x.sum(-1)  #! missing
    if z.numel():
        y = y.relu()
    u = (y @ x).sum(-1)  # (B, d)
    # y: (B, d, n)
    w = y.sum(1)  # (B, n)
    return u.sum() + w.sum()


# %% a length that other comments of the function tell | Longer(d)(x[B, L, d]); Longer(d).again(x[B, L, d])
class Longer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, x):
        y = x.relu()  # (B, L, d)
        y = torch.cat([self.first.repeat(len(y), 1, 1), y], dim=1)  # (B, L+1, d)
        z = y.relu()  # (B, L+1, d)
        z = z.sum(-1)  # (B, L)  #! false
        return z

    def again(self, x):
        z = self(x)  # (B, L+1)
        L = z.shape[1]
        return z.view(-1, L, 1)  # (B, L, 1)


# %% an interval, and no shape | scale(x[B, n])
def scale(x):
    B, n = x.shape
    # to a range of [-1, 1]
    y = 2 * torch.sigmoid(x.sum(0)) - 1  #! missing

    # to a tensor of [-1, 1]
    z = y[:, None]

    return z.sum()


# %% told above what is returned, in a notation of its own | mix(q[b, h, n, d], v[b, h, n, d])
def mix(q, v, drop=None):
    w = (q @ v.mT).softmax(-1)  # (b, h, n, n)
    out = w.matmul(v)

    if drop is not None:
        out = drop(out)

    # (b, *(h), n, d = head)
    return out  #! cannot tell


# %% a length in its usual misspelling | Cross(d)(x[batch, rows, d], y[batch, columns, d]); Cross(d)(x[batch, rows, d], x[batch, rows, d])
class Cross(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d) for _ in range(3))

    def forward(self, x, y):
        query = self.q(x)  # [batch, lenght, d] --> [batch, lenght, d]
        key = self.k(y)  # [batch, lenght, d] --> [batch, lenght, d]  #! cannot tell
        value = self.v(y).mT  # [batch, lenght, d]  #! false
        w = query @ key.mT  # [batch, rows, columns]
        z = w @ value.mT  # [batch, lenght, d]
        u = z.relu()  # [batch, lenght, d]
        return u.sum()


# %% words in brackets between the sides of a cross | spans(q[B, M, d], k[B, M+L, d])
def spans(q, k):
    B, M, d = q.shape
    L = k.shape[1] - M
    # B x M (dest) x (M+L) (src)
    w = torch.matmul(q, k.transpose(-1, -2))
    # B x (M+L) (src) x M
    u = w.softmax(-1)  #! false

    return u.sum()


# %% numbers that the arguments are by themselves, in a product | Grow(d, n)(x[B, d])
class Grow(nn.Module):
    def __init__(self, size=100, count=2):
        super().__init__()
        self.grow = nn.Linear(size, size * count)

    def forward(self, x):
        # [B, 100] --> [B, 2*100], for there are two
        y = self.grow(x)  #! cannot tell
        # [B, 100] --> [2*100, B]
        z = y.T  #! cannot tell
        return z.sum()


# %% a letter of the code for another size, behind several lines | Weigh(d)(x[B, 3, N], f[B, d, N])
class Weigh(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weigh, self.mix = nn.Conv1d(3, 2 * d, 1), nn.Conv1d(d, 2 * d, 1)

    def forward(self, x, f):
        B, C, N = x.shape
        w = self.weigh(x)  # B C N  #! cannot tell
        z = w * self.mix(f)  # B C N  #! cannot tell
        u = torch.cat([z, z[:, :3]], 1)  # B, C+3, N  #! cannot tell
        v = z.mean(1)  # B C N  #! false
        return v.sum()


# %% a letter of the code for another size, behind one line | Weigh(d)(x[B, 3, N], f[B, d, N])
class Weigh(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weigh, self.mix = nn.Conv1d(3, 2 * d, 1), nn.Conv1d(d, 2 * d, 1)

    def forward(self, x, f):
        B, C, N = x.shape
        w = self.weigh(x)  # B C N  #! false
        z = w * self.mix(f)  # (B, 2*d, N)
        return z.sum()


# %% a letter for a size that a variable has | weigh(x[B, T, C], heads) where C=heads*4
def weigh(x, heads):
    B, T, C = x.shape
    hs = C // heads
    q = x.view(B, T, heads, hs).transpose(1, 2)  # (B, heads, T, C)  #! false
    k = x.view(B, T, heads, hs).transpose(1, 2)  # (B, heads, T, C)  #! false
    w = q @ k.mT  # (B, heads, T, T)
    return w.sum()


# %% a letter that the code has in its other case | Both(d)(x[batch_size, L, d], y[batch_size, n, d])
class Both(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.one, self.two = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x, y):
        bs, l, d = x.shape
        bs, l, d = y.shape
        x = x.permute(1, 0, 2)  # (L, batch_size, d)
        y = y.permute(1, 0, 2)  # (L, batch_size, d)  #! cannot tell
        u = self.one(x)  # (L, batch_size, d)
        u = u.transpose(0, 1)  # (batch_size, L, d)
        v = self.flat(y).mT  # (L, batch_size, d)  #! false
        return u.sum() + v.sum()

    def flat(self, y):
        z = self.two(y)  # (n, batch_size, d)
        return z.relu()  # (n, batch_size, d)


# %% a length with two primes in another class | Short(d)(x[B, d, T]); Long(d)(x[B, d, 2*m])
class Short(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.k, self.v = (nn.Conv1d(d, d, 1) for _ in range(2))

    def forward(self, x):
        k = self.k(x)  # (B, d, T'')
        v = self.v(x)  # (B, d, T'')
        w = k.mT @ v  # (B, T'', T'')
        return w.sum()


class Long(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.k, self.v = (nn.Conv1d(d, d, 1) for _ in range(2))

    def forward(self, x):
        B, C, T = x.size()
        x = x.relu()  # (B, C, T)
        y = x.mT  # (B, T, C)
        k = self.k(x)  # (B, d, T'')
        v = self.v(x)  # (B, T, d)  #! false
        return k.sum() + v.sum() + y.sum()


# %% comments that stood above the next lines once | Pool(C)(x[N, C, H, W])
class Pool(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.mask, self.softmax = nn.Conv2d(C, 1, 1), nn.Softmax(dim=2)

    def forward(self, x):
        N, C, H, W = x.size()
        y = x  # [N, C, H * W]  #! cannot tell
        y = y.view(N, C, H * W)  # [N, 1, C, H * W]  #! cannot tell
        y = y.unsqueeze(1)  # [N, 1, H, W]  #! cannot tell
        m = self.mask(x)  # [N, 1, H * W]  #! cannot tell
        m = m.view(N, 1, H * W)  # [N, 1, H * W]
        m = self.softmax(m)  # [N, 1, H * W, 1]  #! cannot tell
        m = m.unsqueeze(3)  # [N, H * W, 1]  #! false
        return torch.matmul(y, m).sum()


# %% two comments of the next lines are slips | Pool(C)(x[N, C, H, W])
class Pool(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.mask, self.softmax = nn.Conv2d(C, 1, 1), nn.Softmax(dim=2)

    def forward(self, x):
        N, C, H, W = x.size()
        y = x.view(N, C, H * W)  # [N, C, H * W]
        y = y.relu()  # [N, 1, C, H * W]  #! false
        y = y.unsqueeze(1)  # [N, 1, C, H * W]
        m = self.mask(x)  # [N, 1, H * W]  #! false
        m = m.view(N, 1, H * W)  # [N, 1, H * W]
        return y.sum() + m.sum()
