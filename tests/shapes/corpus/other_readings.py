# %% each item of a batch | f(x[batch, seq, dim])
def f(x):
    y = x * 2  # [seq, dim] per example  #! cannot tell
    z = y.mean(-1)  # each row: [seq]  #! cannot tell
    w = x @ x.mT  # (seq, seq)  #! cannot tell
    m = x.relu()  # (N, N)*(N, N) = (N, N)  #! cannot tell
    return w


# %% parameters stacked over layers | Cross(in_features, layers)(x[batch, in_features])
class Cross(nn.Module):
    def __init__(self, in_features, layers):
        super().__init__()
        self.kernels = nn.Parameter(torch.rand(layers, in_features, 1))  # weights of one layer. (in_features, 1)  #! cannot tell
        self.n = layers

    def forward(self, x):
        for i in range(self.n):
            x = x * (x @ self.kernels[i])  # (batch, in_features)
        return x


# %% convolution layouts | Conv(channels, width)(x[batch, channels, height, image_w])
class Conv(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.a = nn.Conv2d(channels, width, 3, stride=2)
        self.b = nn.Conv2d(width, width, 3)
        self.p = nn.MaxPool2d(2)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.a(x)  # b, c, h, w  #! cannot tell
        y = self.b(y)  # [b, c, h, w]  #! cannot tell
        y = self.p(y)  # (b, width, h/4, w/4)  #! cannot tell
        y = F.interpolate(y, scale_factor=2.0)  # [b, width, h, w]  #! cannot tell
        z = y.flatten(2)  # [b, width, h*w]  #! cannot tell
        return z.mT  # [b, h*w, width]  #! cannot tell


# %% capitals and small letters | Fold(c, k)(x[B, H, W, c]) where c=2*k
class Fold(nn.Module):
    def __init__(self, c, k):
        super().__init__()
        self.a = nn.AvgPool2d(2)

    def forward(self, x):
        B, H, W, C = x.shape
        x = x.permute(0, 3, 1, 2)  # B,C,H,W
        x = self.a(x)  # B,C,h,w
        y = x.flatten(2)  # B,C,n
        z = y.mT  # B,N,C
        return z


# %% a longer list of alternatives | look(q[b, n, t, d], k[b, n, s, d])
def look(q, k):
    # shapes of q/k/v (b, n, s/t, d), of scores (b, n, s, s), (b, n, t, t) or (b, n, t, s)
    scores = q @ k.mT
    # (b,n,t,t) in self attention and (b,n,t,s) in cross attention
    scores = scores / 3  #! cannot tell
    probs = scores.softmax(-1)  # (b, n, t, t) for the encoder / (b, n, t, s) for the decoder  #! cannot tell
    return probs


# %% the author thinks of attention of a thing to itself | att(q[b, t, d], k[b, s, d], v[b, s, d])
def att(q, k, v):
    a = torch.bmm(q, k.mT)  # {b, t, t}  #! cannot tell
    a = a.softmax(-1)  # (b, t, t)  #! cannot tell
    o = a @ v  # (b, t, d)
    return o


# %% lengths of a twin | att2(q[B, N, C], k[B, N2, C])
def att2(q, k):
    B, N, C = q.shape
    N2 = k.size(1)
    # {B, N, N}
    a = torch.bmm(q, k.mT)  #! cannot tell
    a = a * 2  # B x N x N  #! cannot tell
    return a


# %% one letter twice | top(scores[B, K, M])
def top(scores):
    batch, rows, cols = scores.shape
    best, index = scores.topk(2, dim=2)  # (B, N, K)  #! cannot tell
    which = torch.arange(batch).view(batch, 1, 1).expand(-1, rows, 2)  # (B, N, K)  #! cannot tell
    that = torch.arange(rows).view(1, rows, 1).expand(batch, -1, 2)  # (B, N, K)  #! cannot tell
    return best


# %% a part of the list | many(x[batch, seq, dim], n)
def many(x, n):
    outs = [x * i for i in range(n)]  # [batch, seq, dim] * n
    outs = [o.relu() for o in outs]  # n * [batch, seq, dim]
    outs = [o.cos() for o in outs]  # a list of n tensors (batch, seq, dim)
    outs = [o.cos() for o in outs]  # List[Tensor[batch, seq, dim]], n of them
    outs = [o.cos() for o in outs]  # [[batch, seq, dim], ...]
    outs = [o.cos() for o in outs]  # [n, batch, seq, dim]
    outs = tuple(o.cos() for o in outs)  # ((batch, seq, dim), (batch, seq, dim))
    d = {"a": x, "b": x.mean(1)}  # {a: [batch, seq, dim], b: [batch, dim]}
    e = {"a": x, "b": x.mean(1)}  # a [batch, seq, dim]
    return torch.stack(outs)  # [n, batch, seq, dim]


# %% mixed notation | mix(x[batch, seq, dim])
def mix(x):
    batch, seq, dim = x.shape
    y = x.reshape(batch, seq * dim)  # batch, seq x dim
    y = y.view(batch, seq, dim)  # batch x seq, dim  #! cannot tell
    y = y.view(batch * seq, dim)  # batch x seq x dim flattened  #! cannot tell
    y = y.view(batch, seq, 1, dim)  # batch x seq x1 x dim
    y = y.view(batch, seq, 1, dim)  # [batch, seq, 1 dim]  #! cannot tell
    y = y.view(batch, seq, 1, dim)  # [batch seq 1 dim]
    y = y.squeeze(2)  # [batch][seq][dim]  #! cannot tell
    y = y * 1  # batch*seq*dim
    y = y * 1  # [batch * seq * dim]
    y = y * 1  # [batch, seq], dim  #! cannot tell
    y = y * 1  # batch: seq: dim  #! cannot tell
    y = y * 1  # batch/seq/dim  #! cannot tell
    y = y * 1  # [batch | seq | dim]
    y = y * 1  # batch-seq-dim  #! cannot tell
    y = y * 1  # batch_seq_dim  #! cannot tell
    y = y * 1  # [batch,seq,dim,]
    y = y * 1  # <batch, seq, dim>
    y = y * 1  # (batch,seq)+(dim,)  #! cannot tell
    y = y * 1  # [batch] + [seq, dim]  #! cannot tell
    y = y * 1  # (batch, (seq, dim))  #! cannot tell
    y = y * 1  # [[batch, seq], dim]  #! cannot tell
    y = y * 1  # BSD  #! cannot tell
    return y


# %% next to what comes in | enter(x[batch, seq, dim], w[dim, out_dim])
def enter(x, w):
    y = x @ w  # x: [batch, seq, dim], w: [dim, out_dim]
    y = x @ w  # takes [batch, seq, dim]  #! cannot tell
    y = x @ w  # from [batch, seq, dim]  #! cannot tell
    y = x @ w  # [batch, seq, dim] is projected  #! cannot tell
    y = x @ w  # input (batch, seq, dim), weight (dim, out_dim)  #! cannot tell
    y = x @ w  # (batch, seq, dim) (dim, out_dim)  #! cannot tell
    y = x @ w  # (batch*seq, dim) @ (dim, out_dim)  #! cannot tell
    y = x @ w  # [batch, seq, dim] -> project  #! cannot tell
    y = x @ w  # [batch, seq, dim] -> ...  #! cannot tell
    y = x @ w  # [batch, seq, dim] =>  #! cannot tell
    y = x @ w  # sum over dim (batch, seq, dim)  #! cannot tell
    y = x @ w  # reduce [dim]  #! cannot tell
    y = x @ w  # for all [batch, seq]  #! cannot tell
    y = x @ w  # contract (seq, dim) with (dim, out_dim)  #! cannot tell
    return y


# %% boxes: two results of one call | pairwise(one[N, 4], other[N, 4])
def pairwise(one, other):
    low, high = limits(one, other)  # N, 4  #! cannot tell
    return high - low  #! missing

def limits(one, other):
    return torch.min(one, other)[:, 0], torch.max(one, other)[:, 0]  #! missing


# %% before a squeeze and after an index | steps(x[batch, seq, dim])
def steps(x):
    y = x.mean(1, keepdim=True).squeeze(1)  # mean over seq -> [batch, 1, dim], squeezed  #! cannot tell
    y = x[:, -1:].squeeze(1)  # [batch, 1, dim] -> [batch, dim]
    y = x.unsqueeze(1)[:, 0]  # [batch, 1, seq, dim] before indexing  #! cannot tell
    y = x.split(1, dim=1)[0].squeeze(1)  # seq tensors of [batch, 1, dim]  #! cannot tell
    y = torch.cat([x, x], 1)  # [batch, 2*seq, dim] (was [batch, seq, dim])
    y, i = x.max(1)  # values, indices: [batch, dim]
    y = x.max(1)[0]  # [batch, dim], index [batch, dim]
    y = x.sum()  # (1)
    y = x.sum()  # ()
    y = x.mean((1, 2))  # [B]
    y = x.mean((1, 2))  # (batch)
    return y


# %% a mean that the author calls by another word | emb(ids[batch, seq].ints(vocab), vocab, emb_dim, hid_dim)
def emb(ids, vocab, emb_dim, hid_dim):
    table = nn.Embedding(vocab, emb_dim)
    w = nn.Linear(emb_dim, hid_dim)
    e = table(ids)  # [batch, sent len, emb dim]
    h = w(e)  # [batch, sent len, hid dim]
    h = h.permute(1, 0, 2)  # [sent len, batch size, hid dim * num directions]  #! cannot tell
    o = o.unsqueeze(0)  # [1, bs, hid]
    return o


# %% recurrent layers: number of directions | rnn(x[T, B, input_size], input_size, hidden_size)
def rnn(x, input_size, hidden_size):
    net = nn.GRU(input_size, hidden_size, bidirectional=True)
    out, h = net(x)  # out: (T, B, H*D), h: (L*D, B, H)  #! cannot tell
    out = out.view(x.size(0), x.size(1), 2, hidden_size)  # (seq_len, batch, num_directions, hidden_size)
    last = out[-1]  # (B, D, H)
    both = torch.cat([last[:, 0], last[:, 1]], -1)  # (B, D*H)
    return both


# %% two helpers with other letters | Outer(dim, heads)(x[b, n, dim]) where dim=heads*hd
class Outer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.q = nn.Linear(dim, dim)

    def split(self, x, b):
        # b h n d
        return x.view(b, -1, self.h, x.size(-1) // self.h).transpose(1, 2)

    def forward(self, x):
        b, n, d = x.shape
        q = self.split(self.q(x), b)  # b h n d  #! cannot tell
        s = q @ q.mT  # b h i j
        a = s.softmax(-1)  # b h n n
        o = a @ q  # b h n d  #! cannot tell
        o = o.transpose(1, 2).reshape(b, n, -1)  # b n (h d)
        return o


# %% a heading, a formula, a type | kinds(x[batch, seq, dim])
def kinds(x):
    y = x.long()  # LongTensor [batch, seq, dim]
    y = x.float()  # torch.FloatTensor of size batch x seq x dim
    y = x.float()  # float32[batch, seq, dim]
    y = x.float()  # Tensor(batch, seq, dim)
    y = x.float()  # R^{batch x seq x dim}
    y = x.float()  # ∈ ℝ^(batch×seq×dim)
    y = x.float()  # shape=(batch, seq, dim), dtype=float32
    y = x.float()  # y.shape == (batch, seq, dim)
    y = x.float()  # (batch, seq, dim) [float]
    y = x.float()  # ndim=3: batch, seq, dim
    y = x.float()  # 3D: (batch, seq, dim)
    y = x.float()  # dim 0: batch, dim 1: seq, dim 2: dim  #! cannot tell
    y = x.mT  # swap dims (seq, dim)  #! cannot tell
    y = x.mT  # exchange seq and dim  #! missing
    y = x.mT  # (.., dim, seq)
    y = x.mean(1)  # over (batch, seq)  #! cannot tell
    y = x.mean(1)  # mean over [seq]  #! cannot tell
    y = x.mean(1)  # (batch, seq, dim)[:, mean]  #! cannot tell
    return y


# %% words that students put around | say(x[batch, seq, dim], heads) where dim=heads*hd
def say(x, heads):
    batch, seq, dim = x.shape
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # split into heads, shape now (batch, heads, seq, hd)
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # (batch, seq, heads, hd) then transpose  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # first (batch, seq, heads, hd), then (batch, heads, seq, hd)
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # view: (batch, seq, heads, hd); transpose: (batch, heads, seq, hd)
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # after view (batch, seq, heads, hd)  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # 4d [batch, heads, seq, hd] instead of [batch, seq, dim]
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # dim gets split: dim -> (heads, hd)  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # (.., dim) -> (.., heads, hd) -> swap  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # [batch, seq, dim] => [batch, seq, heads, hd] & transpose  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # [batch, seq, (heads hd)] to [batch, heads, seq, hd]
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # seq <-> heads  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # one head: [batch, seq, hd]  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # per head [seq, hd]  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # heads matrices of (seq, hd)  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # each head sees (batch, seq, hd)  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # so that we can do [seq, hd] x [hd, seq] next  #! cannot tell
    y = x.view(batch, seq, heads, -1).transpose(1, 2)  # next: (batch, heads, seq, hd) @ (batch, heads, hd, seq)  #! cannot tell
    s = y @ y.mT  # will become (batch, heads, seq, hd) once multiplied with v  #! cannot tell
    s = y @ y.mT  # later summed to [batch, seq]  #! cannot tell
    s = y @ y.mT  # mask of shape (seq, seq) is added below  #! cannot tell
    s = y @ y.mT  # dot products of rows (seq, hd)  #! cannot tell
    s = y @ y.mT  # q k^T, q: (seq, hd)  #! cannot tell
    s = y @ y.mT  # y(batch, heads, seq, hd) times y^T(batch, heads, hd, seq)
    s = y @ y.mT  # keys have been transposed to (batch, heads, hd, seq)  #! cannot tell
    s = y @ y.mT  # = [batch, heads, seq, hd] * [batch, heads, hd, seq]
    s = y @ y.mT  # [batch, heads, seq, hd] [batch, heads, hd, seq] -> [batch, heads, seq, seq]
    s = y @ y.mT  # (batch*heads) matrices [seq, seq]  #! cannot tell
    s = y @ y.mT  # for every batch and head: (seq, seq)  #! cannot tell
    s = y @ y.mT  # heads x [batch, seq, seq]  #! cannot tell
    s = y @ y.mT  # TODO: should be [batch, seq, seq]?  #! cannot tell
    s = y @ y.mT  # NOT (batch, seq, seq)  #! cannot tell
    s = y @ y.mT  # earlier version gave (batch, seq, seq)  #! cannot tell
    s = y @ y.mT  # equivalent to einsum('bhqd,bhkd->bhqk')  #! cannot tell
    s = y @ y.mT  # bhqd,bhkd->bhqk  #! cannot tell
    s = y @ y.mT  # y.shape = (batch, heads, seq, hd)
    s = y @ y.mT  # y.mT.shape = (batch, heads, hd, seq)  #! cannot tell
    s = y @ y.mT  # dims: 0 batch, 1 heads, (2, 3) seq  #! cannot tell
    s = y @ y.mT  # see (Vaswani, 2017)  #! missing
    s = y @ y.mT  # from shape (batch, heads, seq, hd)  #! cannot tell
    s = y @ y.mT  # x: [batch, seq, dim] above
    s = y @ y.mT  # [batch, heads, seq, seq/1]
    s = y @ y.mT  # attention of [query, key]  #! cannot tell
    s = y @ y.mT  # [from, to]  #! cannot tell
    s = y @ y.mT  # [query position, key position]  #! cannot tell
    s = y @ y.mT  # (target, source)  #! cannot tell
    s = y @ y.mT  # [tokens x tokens]  #! cannot tell
    s = y @ y.mT  # matrix (tokens x tokens) in each head  #! cannot tell
    s = y @ y.mT  # last two: (seq, seq)  #! cannot tell
    s = y @ y.mT  # ... x seq x seq
    return s.mean(1)  # averaged over heads -> batch x seq x seq  #! cannot tell


# %% other languages | autre(x[batch, seq, dim])
def autre(x):
    batch, seq, dim = x.shape
    y = x.mT  # вход [batch, seq, dim]  #! cannot tell
    y = x.mT  # 输入 [batch, seq, dim]，输出 [batch, dim, seq]
    y = x.mT  # entrée (batch, seq, dim)  #! cannot tell
    y = x.mT  # aus (batch, seq, dim) wird (batch, dim, seq)
    y = x.mT  # de [batch, seq, dim] a [batch, dim, seq]
    y = x.mT  # [batch,seq,dim]转置  #! cannot tell
    y = x.mT  # 将[batch, seq, dim]转为[batch, dim, seq]
    y = x.mT  # 転置前 [batch, seq, dim]  #! cannot tell
    y = x.mT  # 维度交换 (seq, dim)  #! cannot tell
    y = x.mean(1)  # 对[batch, seq, dim]的第1维求平均  #! cannot tell
    y = x.mean(1)  # x de tamaño [batch, seq, dim]  #! cannot tell
    y = x.mean(1)  # 每个样本 [dim]  #! cannot tell
    return y


# %% indices, slices and gathers | gather(x[batch, seq, dim], ids[batch, n].ints(seq))
def gather(x, ids):
    batch, seq, dim = x.shape
    i = ids[..., None].expand(-1, -1, dim)  # same index for each [dim]  #! cannot tell
    y = x.gather(1, i)  # picks n of [seq]  #! cannot tell
    y = x.gather(1, i)  # n rows of [batch, seq, dim]  #! cannot tell
    y = x[:, 0]  # CLS of [batch, seq, dim]  #! cannot tell
    y = x[:, 0]  # [batch, 0, dim]  #! cannot tell
    y = x[:, 0]  # take [:, 0]  #! missing
    y = x[:, :1]  # [batch, 0:1, dim]
    y = x[0]  # first of (batch, seq, dim)  #! cannot tell
    y = x[..., 0]  # select [seq, dim]  #! cannot tell
    y = x.flip(1)  # reversed [seq]  #! cannot tell
    y = x.masked_fill(x > 0, 0)  # mask (batch, 1, seq)  #! cannot tell
    y = x + torch.ones(seq, 1)  # + (seq, 1)  #! cannot tell
    y = x + torch.ones(seq, 1)  # bias [seq, 1] broadcast  #! cannot tell
    y = x * torch.ones(dim)  # (dim,) scale  #! cannot tell
    y = x * torch.ones(dim)  # scale: (dim,)  #! cannot tell
    y = x * torch.ones(dim)  # * [dim]  #! cannot tell
    y = torch.cat([x, x], -1)  # concat 2 x [batch, seq, dim]  #! cannot tell
    y = torch.cat([x, x], -1)  # [batch, seq, dim] + [batch, seq, dim]
    y = torch.cat([x, x], -1)  # [batch, seq, dim], [batch, seq, dim]  #! cannot tell
    y = torch.cat([x, x], -1)  # [batch, seq, dim] (x2)  #! cannot tell
    y = torch.cat([x, x], -1)  # (batch, seq, dim) cat (batch, seq, dim)  #! cannot tell
    y = torch.cat([x, x], -1)  # [batch, seq, dim|dim]  #! cannot tell
    y = torch.cat([x, x], -1)  # [batch, seq, dim; dim]  #! cannot tell
    y = torch.stack([x, x], 0)  # 2 * (batch, seq, dim)
    y = torch.stack([x, x], 0)  # [x (batch, seq, dim), x (batch, seq, dim)]  #! cannot tell
    a, b = x.chunk(2, 0) if batch % 2 == 0 else (x, x)  # 2 x [batch/2, seq, dim]
    a, b = x, x.mean(1)  # x [batch, seq, dim]  #! cannot tell
    y = x.view(-1, dim)  # rows of dim (batch, seq)  #! cannot tell
    y = x.view(-1, dim)  # [(batch, seq), dim]  #! cannot tell
    y = x.view(-1, dim)  # merge [batch, seq]  #! cannot tell
    y = x.view(-1, dim)  # [batch, seq] flattened  #! cannot tell
    y = x.view(-1, dim)  # N = batch * seq -> (N, dim)
    y = x.view(-1, dim)  # [N, dim], N = batch x seq
    y = x.view(-1, dim)  # [bs, dim]  #! cannot tell
    y = x.view(-1, dim)  # [-1, dim]
    y = x.view(-1, dim)  # [tokens, dim]  #! cannot tell
    y = x.reshape(-1)  # [batch seq dim]  #! cannot tell
    y = x.reshape(-1)  # [batch * seq * dim]
    return y


# %% a block comment of all steps above the code | block(x[batch, seq, dim], w[dim, out])
def block(x, w):
    # 1. project:   [batch, seq, dim] -> [batch, seq, out]
    # 2. transpose: [batch, seq, out] -> [batch, out, seq]
    # 3. mean:      [batch, out, seq] -> [batch, out]
    x = x @ w  #! cannot tell
    x = x.mT
    x = x.mean(-1)

    # out: (batch, out)
    # probs: (batch, out)
    out = x.softmax(-1)

    # input of the next layer: [batch, seq, out]
    y = out[:, None] * 2  #! cannot tell
    # [batch, out]
    # because of the squeeze
    y = y.squeeze(1)
    # the loss wants [batch * 1, out]
    y = y.relu()
    # (batch, seq, dim) was too large
    z = y + 1  #! cannot tell
    return z


# %% heads in two orders | order(x[seq, batch, dim])
def order(x):
    seq, batch, dim = x.shape
    y = x.transpose(0, 1)  # (seq, batch, dim) -> transposed  #! cannot tell
    y = x.transpose(0, 1)  # batch first!  #! missing
    y = x.transpose(0, 1)  # [seq, batch, dim] for nn.Transformer  #! cannot tell
    y = x.transpose(0, 1)  # needs (seq, batch, dim)  #! cannot tell
    y = x.transpose(0, 1)  # was (seq, batch, dim)  #! cannot tell
    y = x.transpose(0, 1)  # undo (seq, batch, dim)  #! cannot tell
    y = x.transpose(0, 1)  # original: (seq, batch, dim)  #! cannot tell
    y = x.transpose(0, 1)  # (seq, batch) swapped  #! cannot tell
    y = x.transpose(0, 1)  # (seq, batch, dim) -> (1, 0, 2)  #! cannot tell
    y = x.transpose(0, 1)  # permute(1, 0, 2)  #! missing
    y = x.transpose(0, 1)  # (seq, batch, dim).T  #! cannot tell
    y = x.transpose(0, 1)  # x=(seq, batch, dim)
    y = x.transpose(0, 1)  # x.size() = (seq, batch, dim)
    y = x.transpose(0, 1)  # size(x): seq, batch, dim  #! cannot tell
    return y


# %% layers handed in | Att(dim, heads)(x[batch, n, dim]) where dim=heads*hd
def apply(x, proj, heads, hd):
    # [batch, n, dim] x [dim, kdim * heads] = [batch, n, kdim * heads]
    q = proj(x)  #! cannot tell
    k = proj(x)  # [batch, n, dim] x [dim, kdim * heads] = [batch, n, kdim * heads]  #! cannot tell
    # [batch, n, kdim]
    k = k[..., :hd]
    k = k * 2  # [batch, n, kdim]
    return q

class Att(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.hd = dim // heads
        self.q = nn.Linear(dim, dim)

    def forward(self, x):
        return apply(x, self.q, self.heads, self.hd)  # [batch, n, dim]


# %% letters that stand twice | twice(x[batch, t, d], vocab)
def twice(x, vocab):
    b, t, d = x.shape
    y = x.mT  # (b, q, t)
    y = nn.Linear(d, vocab)(x)  # (z, t, z)  #! false
    y = nn.Linear(d, vocab)(x)  # (z, t, vocab)
    z = torch.cat(
        [
            x.mT,  # (b, t, d)  #! false
            x.mT,  # (b, d, t)
        ],
        0,
    )
    return z  # (2 * b, d, t)


# %% crosses and commas with sums | skew(x[B, C, M, L])
def skew(x):
    B, C, M, L = x.shape
    x = F.pad(x, (0, M))  # B x C, M x L+M  #! cannot tell
    return x  # B, C x M, L+M  #! cannot tell


# %% a factor before the name that is explained | Wide(width, heads)(x[batch, n, width]) where width=heads*kd
class Wide(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)

    def forward(self, x):
        # q: [batch, n, heads*kdim] heads*kdim = width
        q = self.q(x)
        k = self.q(q)  # [batch, n, kdim * heads]
        k = k.view(*k.shape[:2], self.heads, -1)  # [batch, n, heads, kdim]
        k = k.transpose(1, 2)  # [batch, heads, n, kdim]
        return k  # [batch, n, heads, kdim]  #! false


# %% an attribute that is one more than the argument | Marked(num_labels)(x[batch, length, wide])
class Marked(nn.Module):
    def __init__(self, num_labels):
        super().__init__()
        self.num_labels = num_labels + 1

    def forward(self, x):
        y = x.new_zeros(x.size(0), self.num_labels, self.num_labels)  # [batch, num_label, num_label]  #! cannot tell
        y = y * self.num_labels  # [batch, num_label, num_label]  #! cannot tell
        return y.sum(1)  # [batch, num_label]  #! cannot tell


# %% what comes in is as large as the caller wants | masked(x[b, s, h], mask[b, 1, s, s])
def masked(x, mask):
    # x: [b, s, h]
    # mask: [1, 1, s, s]  #! cannot tell
    scores = (x @ x.mT)[:, None]  # [b, 1, s, s]
    return scores * mask  # [b, 1, s, s]


# %% somebody's own numbers, and words between | pads(x[batch, time, width])
def pads(x):
    y = F.pad(x, (0, 3))  # (64, 64, 256) after padding (64, 64, 259)  #! cannot tell
    return y[..., :-3]  # (64, 64, 256) again  #! cannot tell


# %% a layer that a function is given | given(x[rows, wide])
def given(x):
    layer = nn.Linear(x.size(1), 4)
    return through(layer, x)  # [rows, 4]


def through(f, x):
    # [rows, wide] x [wide, two * 2] = [rows, 4]
    return f(x)  #! cannot tell
