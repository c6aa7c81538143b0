"""What names stand for, stages that are past, numbers that are told again, and rows behind a line.

Slips of one kind each, and beside them what is true and looks like one.
"""

# %% two names of one comment are two sizes | Split(num_heads * head_dim, num_heads)(x[batch_size, steps, num_heads * head_dim])
class Split(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads

    def forward(self, x):
        batch_size, steps, width = x.shape
        x = x.view(batch_size, steps, self.num_heads, -1)  # (batch_size, steps, head, head_dim)
        x = x.transpose(1, 2)  # (batch_size, head, steps, head_dim)
        s = x @ x.mT  # (batch_size, head, steps, steps)
        return s @ x  # (batch_size, head, steps, head_dim)


# %% a stage that is past has any number of dimensions | Tokens(width, rows)(x[B, N, width])
class Tokens(nn.Module):
    def __init__(self, width, rows):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        num_parts = rows * rows
        self.table = nn.Parameter(torch.zeros(num_parts, width))

    def forward(self, x):
        B, N, D = x.shape
        first = self.first.expand(B, -1, -1)  # [B, 1, D]
        y = torch.cat([first, x], dim=1)  # [B, N, D]  #! false
        y = torch.cat([first, x], dim=1)  # [B, N + 1, D]
        padded = F.pad(x, (0, 0, 3, 0))  # [B, N, D]  #! false
        most = x.mean(1)  # [B, N]  #! false
        less = x[:, 1:]  # [B, N, D]  #! false
        table = self.table + 0  # [num_parts, D]
        table = torch.cat([table, table])  # [num_parts, D]  #! false
        return y.sum() + padded.sum() + most.sum() + less.sum() + table.sum()


# %% a number that is told again is one of this call | Twice()(x[4, 6, 8], y[4, 7, 8])
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(8, 16)

    def forward(self, x, y):
        x = x + 1  # [4, 6, 8]
        y = y + 1  # [4, 7, 8]
        a = self.wide(x)  # [4, 6, 16]
        b = self.wide(y)  # [4, 6, 16]  #! false
        b = self.wide(y)  # [4, 7, 16]
        rows = torch.cat([x, y], 1)  # [4, 13, 8]
        s = a @ b.mT  # [4, 6, 7]
        p = s.softmax(-1)  # [4, 7, 6]  #! false
        turned = s.mT  # [4, 7, 6]
        c = p @ b  # [4, 6, 16]
        both = torch.cat([c, a], -1)  # [4, 6, 16]  #! false
        one = both[0]  # [6, 64]  #! cannot tell
        cut = c[:, :3]  # crop (4, 3, 640)  #! cannot tell
        maps = a.mT  # maps (4, 16, 6)
        return maps.sum() + one.sum() + cut.sum() + turned.sum() + rows.mean()


# %% a chain gives its names | Grid(dim)(x[n, dim, rows, cols], y[n, steps, dim])
class Grid(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.out = nn.Linear(dim, 2 * dim)

    def forward(self, x, y):
        z = x.flatten(2).permute(0, 2, 1)  # b,dim,h,w -> b,dim,h*w  #! false
        z = x.flatten(2).permute(0, 2, 1)  # b,dim,h,w -> b,h*w,dim
        w = self.out(y)  # (q, len_z, dim_z) -> (q, len_z, dim_z)  #! false
        w = self.out(y)  # (q, len_z, dim_z) -> (q, len_z, dim_o)
        return z.sum() + w.sum()


# %% each of several, and a list of them | Parts(width)(x[B, T, width])
class Parts(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.all = nn.Linear(width, 3 * width)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.all(x).view(B, T, 3, C).permute(2, 0, 1, 3)  # [3, B, T, C]
        q, k, v = qkv[0], qkv[1], qkv[2]  # [3, B, T, C]  #! false
        q, k, v = qkv.unbind(0)  # [3, B, T, C]  #! false
        q, k, v = qkv.unbind(0)  # [B, T, C]
        every = [q, k, v]  # [3, B, T, C]
        rows = [e.mean(1) for e in every]  # [3, T, C]  #! false
        return sum(r.sum() for r in rows)


# %% stars for commas | Starred(headnum * head_dim, headnum)(x[batch, steps, headnum * head_dim])
class Starred(nn.Module):
    def __init__(self, emb_dim, headnum):
        super().__init__()
        self.many = nn.ModuleList(nn.Linear(emb_dim, emb_dim // headnum) for _ in range(headnum))
        self.emb_dim, self.headnum = emb_dim, headnum

    def forward(self, x):
        qs = [f(x) for f in self.many]  # headnum * batch * steps * (embedding dim / headnum)
        ss = [q @ q.mT for q in qs]  # headnum * batch * steps  #! false
        ss = [q @ q.mT for q in qs]  # headnum * batch * steps * steps
        a = [s @ q for s, q in zip(ss, qs)]  # headnum * batch * steps * (embedding dim / headnum)
        out = torch.cat(a, 2)  # steps * batch * embedding dim  #! false
        out = torch.cat(a, 2)  # batch * steps * embedding dim
        one = out[:, :1].transpose(0, 1)  # batch * emb_dim  #! false
        one = out[:, :1].transpose(0, 1)  # 1 * batch * emb_dim
        return out + one.mean(1)  # batch * steps * (emb_dim / headnum)  #! false


# %% rows with a name of their own | Patches(width, size)(x[batch, 3, size * grid, size * grid])
class Patches(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.cut = nn.Conv2d(3, width, size, size)

    def forward(self, x):
        x = self.cut(x)  # batch x width x part_rows x part_cols
        y = x.flatten(2)  # batch x num_parts x width  #! false
        y = x.flatten(2)  # batch x width x num_parts
        first = y[:, :, 0]  # width x batch  #! false
        mean = y.mean(2, keepdim=True)  # batch x 1 x width  #! false
        mean = y.mean(2, keepdim=True)  # batch x width x 1
        one = first[None]  # batch x width  #! false
        return mean + one.mT  # batch x width x batch


# %% one of a kind is no square, and a 1 is told as a 1 | Kinds(width)(x[B, T, width])
class Kinds(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        B, T, C = x.shape
        m = x.mean(1, keepdim=True)  # [B, B, C]  #! false
        m = x.mean(1, keepdim=True)  # [B, C, C]  #! false
        m = x.mean(1, keepdim=True)  # [B, 1, C]
        h = x[:, : T // 2]  # [B, B, C]  #! false
        return m + h.mean()  # [B, 1, C]


# %% a call for which two names are one | Look(width)(q[b, n_q, width], q[b, n_q, width]); Look(width)(q[b, n_q, width], k[b, n_k, width])
class Look(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, q, k):
        b, q_rows, _ = q.shape
        k_rows = k.size(1)
        s = q @ k.mT  # (b, k_rows, q_rows)  #! false
        s = q @ k.mT  # (b, q_rows, k_rows)
        out = s.softmax(-1) @ k  # (b, k_rows, width)  #! false
        return out + q  # (b, q_rows, width)


# %% both, and what goes on | Memory(num_layers, hidden, dim)(x[batch, steps, dim])
class Memory(nn.Module):
    def __init__(self, num_layers, hidden, dim):
        super().__init__()
        self.run = nn.LSTM(dim, hidden, num_layers, batch_first=True)

    def forward(self, x):
        rows, (hidden, cell) = self.run(x)  #! missing
        return hidden, cell  # (batch, num_layers, hidden) for both  #! false


# %% words of the call in an inner module | Outer(num_layers, hidden, dim)(x[batch, steps, dim])
class Inner(nn.Module):
    def __init__(self, size, depth, width=9):
        super().__init__()
        self.run = nn.GRU(size, depth, batch_first=True)

    def forward(self, x):
        return self.run(x)[0].mT  # [batch, steps, hidden]  #! false


class Wide(nn.Module):
    def __init__(self, given, dim=100):
        super().__init__()
        self.table = nn.Linear(given, given)

    def forward(self, x):
        y = self.table(x)  # [batch, steps, dim]  #! cannot tell
        return y  # [batch, steps, dim]  #! cannot tell


class Outer(nn.Module):
    def __init__(self, num_layers, hidden, dim):
        super().__init__()
        self.wide = Wide(dim)
        self.inner = Inner(dim, hidden)

    def forward(self, x):
        return self.inner(self.wide(x))  # [batch, hidden, steps]


# %% the next line works on something else | Three(width)(x[N, rows, width], y[N, cols, width])
class Three(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.f = nn.Linear(width, width)

    def forward(self, x, y):
        N, rows, width = x.shape
        cols = y.size(1)
        x = self.f(x)  # (N, rows, width) -> (N, cols, width)  #! false
        y = self.f(y)  # (N, cols, width) -> (N, cols, width)
        return x @ y.mT  # (N, rows, cols)


# %% words that lead to a shape | Turn(width)(x[batch, steps, width])
class Turn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        y = x.transpose(1, 2)  # transpose to (batch, steps, width)  #! false
        y = x.transpose(1, 2)  # transpose to (batch, width, steps)
        z = y.reshape(y.size(0), -1)  # reshape to (batch, width, steps)  #! false
        w = x.mT.reshape(-1, x.size(1))  # transpose to (batch, width, steps)  #! cannot tell
        return z.sum() + w.sum()


# %% behind the first line of a longer statement | Longer(width)(x[batch, steps, width])
class Longer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Linear(width, width)

    def forward(self, x):  # [batch, width, steps]  #! false
        y = F.linear(x,  # [batch, width, width]  #! false
                     self.f.weight)
        y = F.linear(y,  # [batch, steps, width]
                     self.f.weight)
        return y  # [batch, steps, width]


# %% a number that is divided is somebody's own | Cut(in_c, size)(x[B, in_c, size * grid, size * grid])
class Cut(nn.Module):
    def __init__(self, in_c, size):
        super().__init__()
        self.cut = nn.Conv2d(in_c, 2 * in_c, size, size)

    def forward(self, x):
        B, C, H, W = x.shape
        x = self.cut(x)  # [B, 2*C, 224/size, 224/size]  #! cannot tell
        return x.flatten(2)  # [B, 2*C, (H/size)*(W/size)]


# %% what another line tells, and code behind a second sign | Lines(width, dim)(x[T, B, width])
class Lines(nn.Module):
    def __init__(self, width, dim):
        super().__init__()
        self.f = nn.Linear(width, dim)

    def forward(self, x):
        T, B, width = x.shape
        y = self.f(x)  # (T, B, dim)
        one = y.mean((0, 1))[None]  # (1, dim)
        flat = y.permute(1, 0, 2).reshape(B, -1)  # (T, B, dim)  # print('y', y.shape)  #! false
        turned = y.permute(1, 0, 2)  # (B, T, dim)  # print('y', turned.shape)
        long = y.sum(0)  # (1, dim)  #! false
        return turned + one + flat.mean() + long.mean()  # (B, T, dim)


# %% what is appended, under a condition | Later(width)(x[batch, steps, width])
if True:
    class Later(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.f = nn.Linear(width, width)

        def forward(self, x):
            out = []
            for i in range(2):
                y = self.f(x)  # (batch, steps, width)
                out.append(y.sum(1))  # (batch, steps)  #! false
                out.append(y.sum(1))  # (batch, width)
            return torch.stack(out)  # (4, batch, width)


# %% a length in words, where the call has two | Lengths(emb)(q[batchsize, out_length, emb], k[batchsize, sent_length, emb])
class Lengths(nn.Module):
    def __init__(self, emb):
        super().__init__()
        self.f = nn.Linear(emb, emb)

    def forward(self, q, k):
        a = self.f(k)  # batchsize * sent length * emb
        b = self.f(q)  # batchsize * sent length * emb  #! cannot tell
        return b + a.mean()  # batchsize * sent length * emb  #! cannot tell


# %% the end of a chain, and a row of two | Ends(num_parts, dim)(x[N, num_parts, dim])
class Ends(nn.Module):
    def __init__(self, num_parts, dim):
        super().__init__()
        self.f = nn.Linear(dim, 2 * dim)

    def forward(self, x):
        N, num_parts, dim = x.shape
        q = x.view(N, num_parts, dim, 1)  # (N, num_parts, dim) -> (N, num_parts, dim, 1)
        y = x.mean(1)  # (N, num_parts, dim) -> (N, num_parts, dim, 1)  #! false
        y = x.mean(1)  # (N, num_parts, dim) -> (N, dim)
        one = x[0]  # num_rows x dim
        one = x[0]  # dim x num_rows  #! false
        s = y @ one.T  # (N, N)  #! false
        return s + q.mean()  # (N, num_parts)


# %% a number of the code that is a tensor | Mask(dim, longest)(x[batch, n, dim], lengths[batch].full(n)) where longest=n+more
class Mask(nn.Module):
    def __init__(self, dim, longest):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(longest, dim))

    def forward(self, x, lengths):
        batch, n, dim = x.shape
        longest = lengths.max()
        mask = torch.arange(longest)[None] < lengths[:, None]  # (batch, longest)
        return x * mask[..., None]  # (batch, longest, dim)
