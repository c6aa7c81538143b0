"""What was once accused falsely, by its cause: nothing here is wrong but what is marked."""

# %% a name that never stands alone | Cached(dim, n_heads)(x[bs, seqlen, dim]) where dim = n_heads * head_dim
class Cached(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.wk = nn.Linear(dim, dim)

    def forward(self, x):
        bs, seqlen, _ = x.shape
        xk = self.wk(x).view(bs, seqlen, self.n_heads, self.head_dim)  # (bs, seqlen, n_heads, head_dim)
        keys = xk.transpose(1, 2)  # (bs, n_heads, cache_len + seqlen, head_dim)  #! cannot tell
        return keys @ keys.mT  # (bs, n_heads, seqlen, cache_len + seqlen)  #! cannot tell


# %% windows times batch, as one letter after the other | Windows(window, C)(x[B, H, W, C]) where H = window * rows, W = window * columns
class Windows(nn.Module):
    def __init__(self, window, C):
        super().__init__()
        self.window = window
        self.qkv = nn.Linear(C, 3 * C)

    def forward(self, x):
        B, H, W, C = x.shape
        w = self.window
        x = x.view(B, H // w, w, W // w, w, C).transpose(2, 3)  #! missing
        x = x.reshape(-1, w, w, C)  # nW*B, window_size, window_size, C  #! cannot tell
        x = x.view(-1, w * w, C)  # nW*B, window_size*window_size, C  #! cannot tell
        return self.qkv(x)  # nW*B, Wh*Ww, 3*C  #! cannot tell


# %% a layer whose width is another one's word | Head(hidden, vocabulary)(x[batch_size, seq_len, hidden])
class Head(nn.Module):
    def __init__(self, hidden, vocabulary):
        super().__init__()
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, x):
        y = self.out(x)  # [batch size, seq len, output dim]
        return y.log_softmax(-1)  # [batch size, seq len, output dim]


# %% an inner module with a batch of its own | Outer(hidden)(x[bs, seq, hidden])
class Inner(nn.Module):
    def forward(self, x):
        y = x * 2  # [bs, hidden]
        return y + 1  # [bs, hidden]


class Outer(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        bs, seq, hidden = x.shape
        flat = x.reshape(bs * seq, hidden)  # [bs * seq, hidden]
        return self.inner(flat).view(bs, seq, hidden)  # [bs, seq, hidden]


# %% heads times head size, taken for the width | Split(C, nh)(x[B, T, C]) where C = nh * hs
class Split(nn.Module):
    def __init__(self, C, nh):
        super().__init__()
        self.nh = nh

    def forward(self, x):
        B, T, C = x.size()
        y = x.view(B, T, self.nh, C // self.nh).transpose(1, 2)  # (B, nh, T, hs)
        z = y.transpose(1, 2).reshape(B, T, C)  # (B, T, nh*hs)
        return z  # (B, T, C)


# %% lists of values and of positions | Table(max_seq_len, dim)(x[batch, seq_len, dim])
class Table(nn.Module):
    def __init__(self, max_seq_len, dim):
        super().__init__()
        self.table = nn.Embedding(max_seq_len, dim)

    def forward(self, x, start_pos=0):
        seq_len = x.shape[1]
        # positions: `[0, 1, ..., max_seq_len - 1]`
        pos = torch.arange(seq_len)  #! missing
        # those in [start_pos, start_pos + seq_len] only
        pos = pos + start_pos  #! missing
        e = self.table(pos)  # [K1, K2]  #! cannot tell
        return x + e  # values in [-1, 1], mostly  #! missing


# %% brackets of prose and of code | Prose(hidden)(x[batch, seq, hidden])
class Prose(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.w = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        y = x * self.w  # (x * w)  #! missing
        y = y.relu()  # 마스크 적용 (있는 경우)  #! missing
        y = y.softmax(-1)  # see section (dim 3)  #! missing
        y = y.mT  # two blocks (1x1, 3x3)  #! missing
        y = y.mT  # Can reduce this to 4 lines if use self.(q,k,v)  #! missing
        y = y * 1.0  # $S_{ijbh}$  #! missing

        # y = torch.cat([y, y], dim=1  (batch, 2 * seq)
        y = y * 1.0  # [batch, seq, hidden]
        return y  # [batch, seq, hidden]


# %% letters side by side | Flat(embed_dim)(x[N, embed_dim, H, W])
class Flat(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.mix = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        x = x.flatten(start_dim=2).permute(2, 0, 1)  # NCHW -> (HW)NC  #! cannot tell
        x = torch.cat([x.mean(dim=0, keepdim=True), x], dim=0)  # (HW+1)NC  #! cannot tell
        return self.mix(x)  # (HW+1)NC  #! cannot tell


# %% said of two names, above a line that makes another | Tokens(vocab, C)(idx[B, T].long())
class Tokens(nn.Module):
    def __init__(self, vocab, C):
        super().__init__()
        self.table = nn.Embedding(vocab, C)

    def forward(self, idx, targets=None):
        # idx and targets are both (B,T) tensors of integers
        tok_emb = self.table(idx)  # (B,T,C)
        return tok_emb  # (B,T,C)


# %% one comment above three lines | Energy(heads, head_dim)(q[N, query_len, heads, head_dim], k[N, key_len, heads, head_dim])
class Energy(nn.Module):
    def __init__(self, heads, head_dim):
        super().__init__()
        self.root = head_dim**0.5

    def forward(self, queries, keys):
        # queries shape: (N, query_len, heads, head_dim), keys shape: (N, key_len, heads, head_dim)
        # energy shape: (N, heads, query_len, key_len)
        queries = queries / self.root
        keys = keys * 1.0
        energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
        return energy


# %% the state before the line, the heading of the next step | Steps(d, h)(x[b, t, d]) where d = h * k
class Steps(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        x = x.view(b, t, self.h, -1)  # [b, t, h, k]

        # [b, t, h, k]
        x = x.transpose(1, 2)  #! cannot tell

        # now the heads are side by side: [b, t, d]

        x = x.transpose(1, 2)  # [b, t, h, k]
        x = x.flatten(2)  # [b, t, d]
        return self.out(x)  # [b, t, d]


# %% several lines below one statement | Stacked(hidden, num_heads)(x[batch, seq, hidden]) where hidden = num_heads * head_size
class Stacked(nn.Module):
    def __init__(self, hidden, num_heads):
        super().__init__()
        self.n = num_heads
        self.k = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, seq, _ = x.shape
        k = self.k(x).view(batch, seq, self.n, -1).transpose(1, 2)
        # x: [batch, seq, hidden]
        # self.k(x): [batch, seq, hidden]
        # .view: [batch, seq, num_heads, head_size]
        # .transpose: [batch, num_heads, seq, head_size]
        return k.mT  # [batch, num_heads, head_size, seq]


# %% two statements for one comment | Pair(F, NH)(x[N, F]) where F = NH * K
class Pair(nn.Module):
    def __init__(self, F, NH):
        super().__init__()
        self.NH = NH

    def forward(self, x):
        N = x.shape[0]
        p = x.view(N, self.NH, -1).sum(-1)  # (N, NH)
        # src shape = (NH, N, 1) and trg shape = (NH, 1, N)
        src = p.T.unsqueeze(-1)
        trg = p.T.unsqueeze(1)
        return src + trg  # (NH, N, N)


# %% what a function expects | outer(x[batch, seq, hidden])
def average(t):  # expects [seq, batch, hidden]
    # t should be [seq, batch, hidden]
    return t.mean(0)  # [batch, hidden]


def outer(x):
    y = x.transpose(0, 1)  # [seq, batch, hidden]
    return average(y)  # [batch, hidden]


# %% lists of tensors, numpy, several calls with other sizes | Layers(hidden)(x[batch_size, seq_len, hidden]); Layers(hidden)(x[batch_size, other_len, hidden])
class Layers(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))

    def forward(self, x):
        n_layers = len(self.layers)
        states = [layer(x) for layer in self.layers]  # [n_layers, batch_size, seq_len, hidden]  #! cannot tell
        stacked = torch.stack(states)  # [n_layers, batch_size, L, hidden]
        last = states[-1]  # [batch_size, L, hidden]
        return last + stacked.sum(0)  # [batch_size, L, hidden]


# %% in place, and numbers | InPlace(num_heads)(s[batch, num_heads, seq, seq])
class InPlace(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.scale = num_heads**0.5

    def forward(self, s):
        mask = torch.ones(s.shape[-2:]).triu(1).bool()  # [seq, seq]
        s /= self.scale
        s.masked_fill_(mask, -1e9)
        s[:, :, mask] = -1e9
        total = s.sum()
        mean = s.mean()  # scalar
        return s * 1.0, total, mean  # [batch, num_heads, seq, seq], [], []


# %% one spelling a line, continued below | Spelt(d)(x[b, s, d])
class Spelt(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n = 2

    def forward(self, x):
        b, s, d = x.shape
        y = x.transpose(1, 2)  # [b, s, d]
        # ⟹ [b, d, s]
        y = x.transpose(1, 2)  # [b, s, d]
        # ----> [b, d, s]
        y = x.transpose(1, 2)  # view -> [b, d, s]
        y = x.transpose(1, 2)  # becomes [b, d, s]
        y = x.transpose(1, 2)  # reshaped to [b, d, s]
        z = x @ y  # [b, s, d] times [b, d, s]
        z = x @ y  # [b, s, d] matmul [b, d, s] -> [b, s, s]
        y = x * 1  # b, s and d
        y = x * 1  # bxsxd
        y = x * 1  # 形状为[b, s, d]
        y = x * 1  # B, S, ->D<-  #! cannot tell
        y = x * 1  # label: b x s x d
        y = x * 1  # b * s * d
        y = x.transpose(1, 2)  # bxsxd  #! false
        y = x.transpose(1, 2)  # 形状为[b, s, d]  #! false
        return y.mT  # reshaped to [b, d, s]  #! false


# %% names that nothing proves are not printed | Scores(d, n)(q[b, m, d], k[b, t, d]) where d = n * e
class Scores(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.n = n

    def forward(self, q, k):
        b, m, d = q.shape
        t = k.shape[1]
        q = q.view(b, m, self.n, -1).transpose(1, 2)  # [b, n, m, head_size]
        k = k.view(b, t, self.n, -1).transpose(1, 2)  # [b, n, m, head_size]  #! false
        return q @ k.mT  # [b, n, m, t]


# %% sizes in numbers, names that nobody knows, products with stars | Neighbours()(x[batch, 3, points])
class Neighbours(nn.Module):
    def forward(self, x):
        batch, _, points = x.shape
        both = torch.cat((x, -x), 1)  # (batch, 3, points) -> (batch, 3*2, points)
        turned = both.mT  # (batch, 3*2, points)  #! false
        near = turned.softmax(-1)  # [foo, bar]  #! cannot tell
        far = turned.flatten(0, 1)  # B * M  #! cannot tell
        again = near + turned  # batch_sz points None  #! cannot tell
        scaled = again * 2  # W * xi  (batch, points, 6)
        x = scaled.mT.contiguous()  # (batch, 6, points) -> (batch * 6, points)  #! cannot tell
        x = x.view(batch * 6, points)  # [batch * 6, points]
        return x, far  # [batch * 6, points], [batch * points, 6]


# %% labels between bars, below the lines | Bars(hidden)(x[batch, seq, hidden])
class Bars(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.mix = nn.Linear(hidden, 3 * hidden)

    def forward(self, x):
        # |x| : (batch, seq, hidden)
        mixed = self.mix(x)
        # |mixed| : (batch, seq, 3 * hidden)

        turned = mixed.mT
        # |turned| : (batch, 3 * hidden, seq)

        inputs = turned.unsqueeze(1)  # inputs: (batch, 3 * hidden, seq)  #! false
        return inputs
        # |inputs| : (batch, 1, 3 * hidden, seq)


# %% the length that a class is built with is the longest | Longest(seq_len, hidden)(x[batch, time, hidden])
class Longest(nn.Module):
    def __init__(self, seq_len, hidden):
        super().__init__()
        self.seq_len = seq_len
        self.places = nn.Embedding(seq_len, hidden)

    def forward(self, x):
        time = x.size(1)
        places = self.places(torch.arange(time) % self.seq_len)  # (seq_len, hidden)
        x = x + places  # (batch, seq_len, hidden)
        # z = self.mix(x)  # (batch, seq_len)
        # y = z * places  # (batch, hidden, seq_len)
        x = x.softmax(-1)  # (batch, seq_len, hidden)
        return x.mT  # (batch, hidden, seq_len)


# %% a name that nothing proves is any size, and the shape is false all the same | Unproven(hidden)(x[batch, seq, hidden])
class Unproven(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.mix = nn.Linear(hidden, 77)

    def forward(self, x):
        wide = self.mix(x)  # [batch, vocab_entries, seq]  #! false
        return wide  # [batch, batch, vocab_entries]  #! false
