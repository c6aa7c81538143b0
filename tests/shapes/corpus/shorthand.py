# %% patterns, words and arrows around letters | f(x[b, t, d], w[d, k], heads)  where d=heads*hd
def f(x, w, heads):
    b, t, d = x.shape
    k = w.size(1)
    h = heads
    hd = d // h
    y = x.view(b, t, h, hd)  # b t (h d) -> b t h d  #! cannot tell
    y = x.view(b, t, h, hd).transpose(1, 2)  # 'b t (h d) -> b h t d'  #! cannot tell
    y = x.view(b, t, h, hd).transpose(1, 2)  # rearrange(x, 'b t (h hd) -> b h t hd')  #! missing
    y = x * 2  # Float[Tensor, "b t d"]
    y = x * 2  # TensorType["b", "t", "d"]
    y = x * 2  # Float[Tensor, "b t h*hd"]  #! cannot tell
    y = x * 2  # FloatTensor[b, t, d]
    y = x * 2  # $\mathbb{R}^{b \times t \times d}$
    y = x * 2  # y \in R^{b x t x d}
    y = x * 2  # values in [0, 1]  #! missing
    y = x * 2  # in [-1, d)  #! missing
    y = x[:, :-1]  # [:, :-1]  #! missing
    y = x[:, 1:]  # drops the first of t: [b, 1:, d]  #! cannot tell
    y = x.mT  # [b, d, t] <- [b, t, d]
    y = x.mT  # [b, d, t] <= [b, t, d]
    y = x.mT  # [b, d, t] ← [b, t, d]
    y = x.mT  # [b, d, t] (from [b, t, d])
    y = x.mT  # was [b, t, d], now [b, d, t]  #! cannot tell
    y = x.mT  # before: [b, t, d] after: [b, d, t]
    y = x.mT  # before [b, t, d], after [b, d, t]
    y = x.mean(1)  # [b, t, d] --mean(1)--> [b, d]
    y = x.mean(1)  # [b, t, d] =(mean)=> [b, d]
    y = x.mean(1)  # [b, t, d] |> mean |> [b, d]
    y = x.mean(1)  # [b, d] = mean of [b, t, d]
    y = x.mean(1)  # averages [b, t, d] over t  #! cannot tell
    y = x * 2  # [b, t] of d-vectors  #! cannot tell
    y = x * 2  # b batches of [t, d]  #! cannot tell
    y = x * 2  # one [t, d] matrix per batch element  #! cannot tell
    y = x * 2  # (b, t, d) or (t, b, d) if not batch_first
    y = x * 2  # (N, L, E) if batch_first else (L, N, E)
    y = x * 2  # ('b', 't', 'd')
    y = x * 2  # (b t) d  #! cannot tell
    y = x.reshape(b * t, d)  # (b t) d  #! cannot tell
    y = x.reshape(b * t, d)  # b*t, d
    y = x.reshape(b * t, d)  # bt x d
    y = x.reshape(b * t, d)  # [bt, d]
    y = x.reshape(b * t, d)  # (b.t, d)  #! cannot tell
    y = x.reshape(b * t, d)  # b·t x d
    z = x.unsqueeze(2) - x.unsqueeze(1)  # [b, t, 1, d] - [b, 1, t, d] = [b, t, t, d]
    z = x.unsqueeze(2) - x.unsqueeze(1)  # [b, t, t', d]
    z = x.unsqueeze(2) - x.unsqueeze(1)  # [b, i, j, d]
    z = x.unsqueeze(2) - x.unsqueeze(1)  # z[b,i,j,:] = x[b,i,:] - x[b,j,:]
    s = x @ x.mT  # s[b, i, j] = sum_d x[b, i, d] x[b, j, d]
    s = x @ x.mT  # 'bid,bjd->bij'  #! cannot tell
    s = x @ x.mT  # s_{bij} = \sum_d x_{bid} x_{bjd}  #! missing
    s = x @ x.mT  # O(t^2 d)  #! missing
    s = s.softmax(-1)  # softmax over the last dim (t)  #! missing
    s = s.softmax(-1)  # T x T per batch  #! cannot tell
    s = s.tril()  # lower triangular (t, t)  #! cannot tell
    s = s.tril()  # see [12, 13]  #! missing
    s = s.tril()  # Eq. (3, b)  #! cannot tell
    s = s.tril()  # part (b, c) of the figure  #! cannot tell
    o = s @ x  # [b, t, t] * [b, t, d]
    o = s @ x  # (b, t, t) . (b, t, d) = (b, t, d)  #! cannot tell
    o = o @ w  # d -> k  #! cannot tell
    o = o @ w  # (b, t, d) @ (d, k)  #! cannot tell
    o = o @ w  # ... d, d k -> ... k  #! cannot tell
    o = o @ w  # [..., d] -> [..., k]  #! cannot tell
    o = o @ w  # project d to k  #! cannot tell
    o = o @ w  # (d -> k)  #! cannot tell
    o = o @ w  # last dim: d -> k  #! cannot tell
    o = o @ w  # [b, t, d -> k]  #! cannot tell
    o = o @ w  # [b, t, d->k]  #! cannot tell
    y = x.mean(1, keepdim=True)  # [b, t->1, d]  #! cannot tell
    y = x.mean(1, keepdim=True)  # [b, (1), d]  #! cannot tell
    y = x.mean(1)  # [b, (t,) d]  #! cannot tell
    y = x.mean(1)  # [b, t̶, d]  #! cannot tell
    y = x * 2  # b,t,d = x.shape
    y = x * 2  # [b,] t, d  #! cannot tell
    y = x * 2  # (b), t, d  #! cannot tell
    y = x * 2  # [b?, t, d]  #! cannot tell
    y = x * 2  # [(b), t, d]  #! cannot tell
    y = x * 2  # (b t d), contiguous  #! cannot tell
    y = x * 2  # {b} x {t} x {d}  #! cannot tell
    y = x * 2  # b·t·d  #! cannot tell
    y = x * 2  # (B=b, T=t, D=d)  #! cannot tell
    y = x * 2  # [b=batch, t=time, d=dim]  #! cannot tell
    y = x * 2  # dim 0: b, dim 1: t, dim 2: d  #! cannot tell
    y = x * 2  # axes (0, 1, 2) = (b, t, d)  #! cannot tell
    y = x * 2  # [b x t x d]  #! cannot tell
    y = x * 2  # [[b, t, d]]  #! cannot tell
    y = x * 2  # shape: [b, t, d] | dtype: float  #! cannot tell
    y = x * 2  # [b, t, d]: contiguous, b = batch, t = time  #! cannot tell
    y = x * 2  # [b, T, d], T = t  #! cannot tell
    y = x * 2  # x:b,t,d  #! cannot tell
    y = x * 2  # x->(b,t,d)  #! cannot tell
    y = x * 2  # b, t, h*hd  #! cannot tell
    y = x * 2  # [b, t, (h, hd)]  #! cannot tell
    y = x * 2  # [b, t, h, hd] merged  #! cannot tell
    y = x * 2  # [b, t, h x hd]  #! cannot tell
    y = x * 2  # [b, t, hhd]  #! cannot tell
    y = x * 2  # b-t-d  #! cannot tell
    y = x * 2  # BxTxD  #! cannot tell
    y = x * 2  # (bxtxd)  #! cannot tell
    y = x * 2  # 3D tensor (batch, time, features)  #! cannot tell
    y = x * 2  # (time-major would be [t, b, d])  #! cannot tell
    y = x * 2  # same as [t, b, d].transpose(0, 1)  #! cannot tell
    y = x * 2  # [b, t, d] (d // h = hd each)  #! cannot tell
    y = x * 2  # still b x t x d  #! cannot tell
    return o



# %% words that name what is missing | g(x[batch, seq, dim], num_heads, vocab) where dim=num_heads*head_dim
def g(x, num_heads, vocab):
    batch, seq, dim = x.shape
    head_dim = dim // num_heads
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, 3 x dim]
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, 3dim]  #! cannot tell
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, (q k v)]  #! cannot tell
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, dim] * 3 along the last dim  #! cannot tell
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, dim + dim + dim]
    qkv = torch.cat([x, x, x], -1)  # [batch, seq, dim, dim, dim]  #! cannot tell
    q, k, v = qkv.chunk(3, -1)  # 3 x [batch, seq, dim]
    q, k, v = qkv.chunk(3, -1)  # q, k, v: [batch, seq, dim]
    q, k, v = qkv.chunk(3, -1)  # ([batch, seq, dim], [batch, seq, dim], [batch, seq, dim])
    q, k, v = qkv.chunk(3, -1)  # [batch, seq, dim] (x3)
    q, k, v = qkv.chunk(3, -1)  # [batch, seq, dim]x3  #! cannot tell
    q = q.view(batch, seq, num_heads, head_dim).transpose(1, 2)  # [batch, seq, num_heads, head_dim] -> transpose(1, 2)  #! cannot tell
    q = q * 2  # per head: [batch, seq, head_dim]  #! cannot tell
    q = q * 2  # [batch, seq, head_dim] for every head  #! cannot tell
    q = q * 2  # num_heads times [batch, seq, head_dim]  #! cannot tell
    q = q * 2  # [batch, seq, head_dim] x num_heads  #! cannot tell
    q = q * 2  # [batch, (num_heads), seq, head_dim]
    q = q * 2  # (batch * num_heads, seq, head_dim) unfolded  #! cannot tell
    q = q.reshape(batch * num_heads, seq, head_dim)  # (batch num_heads) seq head_dim
    q = q * 2  # [batch, num_heads, seq, head_dim] with the first two merged  #! cannot tell
    q = q * 2  # batch*num_heads x seq x head_dim
    s = q @ q.mT  # (seq x head_dim) x (head_dim x seq) = (seq x seq)  #! cannot tell
    s = q @ q.mT  # [batch * num_heads, query, key]
    s = q @ q.mT  # [batch * num_heads, seq_q, seq_k]
    s = q @ q.mT  # how much position i attends to position j [.., i, j]  #! cannot tell
    s = s / 3  # scale by sqrt(head_dim)  #! missing
    s = s / 3  # (head_dim ** -0.5)  #! missing
    s = s / 3  # [0, seq)  #! missing
    m = torch.ones(seq, seq).tril()  # [seq, seq] (broadcast over [batch, num_heads])  #! cannot tell
    m = torch.ones(seq, seq).tril()  # [[1, 0], [1, 1]]  #! missing
    m = torch.ones(seq, seq).tril()[None]  # [seq, seq] with a leading 1  #! cannot tell
    m = torch.ones(seq, seq).tril()[None]  # add batch dim [seq, seq]  #! cannot tell
    m = torch.ones(seq, seq).tril()[None]  # [1, seq, seq] broadcasts to [batch, seq, seq]
    m = torch.ones(seq, seq).tril()[None]  # (seq, seq) -> unsqueeze  #! cannot tell
    o = (s @ q).view(batch, num_heads, seq, head_dim).transpose(1, 2)  # [batch, num_heads, seq, head_dim] before the transpose  #! cannot tell
    o = o.flatten(2)  # concat heads: num_heads * head_dim = dim  #! cannot tell
    o = o.flatten(2)  # concat heads -> dim  #! cannot tell
    o = o * 1  # [batch, seq, num_heads * head_dim] = [batch, seq, dim]
    o = o * 1  # [batch, seq, dim] == [batch, seq, num_heads * head_dim]
    o = o * 1  # dim -> 4 * dim -> dim  #! cannot tell
    o = o * 1  # dim → dim  #! cannot tell
    o = o * 1  # residual: [batch, seq, dim] + [batch, seq, dim]
    o = o[:, -1]  # last token of [batch, seq, dim]  #! cannot tell
    o = o * 1  # [batch, dim] (seq is gone)
    o = o * 1  # no seq: [batch, dim]
    o = o * 1  # [batch, dim] rather than [batch, 1, dim]  #! cannot tell
    o = o * 1  # a [dim] vector per sequence  #! cannot tell
    o = o * 1  # (batch,), dim  #! cannot tell
    o = o.argmax(-1)  # ids in [0, dim)  #! missing
    o = o * 1  # batch ids  #! missing
    o = o * 1  # [batch]; each in 0..vocab
    o = o * 1  # [batch], long, < vocab
    return x


# %% what is told above a line of another | h(x[batch, seq, dim], y[batch, mem, dim], num_heads) where dim=num_heads*head_dim
def h(x, y, num_heads):
    batch, seq, dim = x.shape
    head_dim = dim // num_heads
    # split into heads: [batch, seq, dim] -> [batch, num_heads, seq, head_dim]
    q = x.view(batch, seq, num_heads, head_dim)  #! cannot tell
    q = q.transpose(1, 2)
    # keys come from memory, so seq here is mem: [batch, num_heads, seq, head_dim]
    k = y.view(batch, -1, num_heads, head_dim).transpose(1, 2)

    # (batch, num_heads, seq, head_dim) x (batch, num_heads, head_dim, mem)
    s = q @ k.mT
    # scores are now (batch, num_heads, seq, mem); scale
    s = s / 3

    # mask has shape [batch, 1, 1, mem]
    # [batch, num_heads, mem, head_dim] weighted by the above
    o = s.softmax(-1) @ k  #! cannot tell
    # Undo the head split.
    # [batch, seq, num_heads, head_dim]
    o = o.transpose(1, 2)
    # [batch, seq, dim] again
    o = o.reshape(batch, seq, dim)

    # x: [batch, seq, dim]
    # o: [batch, seq, dim]
    z = torch.cat([x, o], -1)

    # For the pooled output we want [batch, dim], not [batch, seq, 2 * dim]
    z = z.mean(1)  #! cannot tell
    z = z[:, :dim]

    # one vector [dim] for each sequence
    z = z * 2  #! cannot tell
    # shapes: x [batch, seq, dim], y [batch, mem, dim], z [batch, dim]
    w = z.unsqueeze(1)
    # w.shape == [batch, 1, dim]
    u = w + x
    # => [batch, seq, dim]

    # memory attended to by each query ([batch, mem, dim])
    v = u.mean(1)  #! cannot tell
    return v



# %% a batch that is left out, with a word for it | Att(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size]) where hidden=num_heads*head_size
class Att(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.hs = hidden // num_heads
        self.q = nn.Linear(input_size, hidden)  # input_size -> hidden  #! cannot tell
        self.k = nn.Linear(input_size, hidden)  # (input_size, hidden)
        self.v = nn.Linear(input_size, hidden)  # W_v: [input_size x hidden]
        self.o = nn.Linear(hidden, hidden)  # [hidden, num_heads * head_size]

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x)  # (B, T, C) -> (B, T, hidden)
        q = self.q(x)  # B, T, C -> B, T, H
        q = self.q(x)  # (B,T,C)@(C,H) => (B,T,H)
        q = self.q(x)  # [B, T, num_heads*hs]
        k = self.k(x)  # same: [B, T, hidden]
        v = self.v(x)  # same shape as above  #! cannot tell
        q = q.view(B, T, self.num_heads, self.hs)  # (B, T, nh, hs)
        q = q.transpose(1, 2)  # swap T and nh -> (B, nh, T, hs)
        k = k.view(B, T, self.num_heads, -1).transpose(1, 2)  # [B, nh, T, hs] (T = keys)
        v = v.view(B, T, self.num_heads, -1).transpose(1, 2)  # the same, [B, nh, T, hs]
        s = q @ k.transpose(-2, -1)  # (B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)
        s = q @ k.transpose(-2, -1)  # (T x hs) @ (hs x T) -> T x T, for all B and nh  #! cannot tell
        s = q @ k.transpose(-2, -1)  # for each head a T x T matrix  #! cannot tell
        s = q @ k.transpose(-2, -1)  # row i, column j: q_i . k_j  #! missing
        s = s / self.hs ** 0.5  # unchanged [B, nh, T, T]
        m = torch.ones(T, T).triu(1).bool()  # T x T, True above the diagonal
        s = s.masked_fill(m, float("-inf"))  # m [T, T] broadcasts over B, nh
        a = s.softmax(-1)  # rows sum to 1, [B, nh, T, T(keys)]
        a = s.softmax(-1)  # [B, nh, T (queries), T (keys)]
        a = s.softmax(-1)  # [B, nh, Tq, Tk] with Tq = Tk = T
        a = s.softmax(-1)  # [B, nh, T, T] (each row sums to 1)
        o = a @ v  # weighted sum of v: (B, nh, T, T) @ (B, nh, T, hs) = (B, nh, T, hs)
        o = o.transpose(1, 2)  # back to (B, T, nh, hs)
        o = o.transpose(1, 2).transpose(1, 2)  # (B, T, nh, hs), swap 1 and 2 back
        o = o.contiguous().view(B, T, -1)  # (B, T, nh, hs) -> (B, T, nh * hs) = (B, T, C')
        o = o * 1  # (B, T, C) with C = hidden  #! cannot tell
        o = o * 1  # [batch, time, hidden]
        o = o * 1  # (batch_size, seq_len, hidden) <- concatenation of heads
        o = o * 1  # concat [B, T, hs] over nh heads -> [B, T, hidden]  #! cannot tell
        o = o * 1  # nh * [B, T, hs] -> [B, T, hidden]  #! cannot tell
        o = o * 1  # [B, T, hs] * nh  #! cannot tell
        o = o * 1  # heads concatenated (B, T, hs * nh)
        o = o * 1  # [B, T, hidden = nh * hs]
        o = o * 1  # [B, T, hidden] (hidden = nh * hs)
        o = o * 1  # B x T x (nh hs)
        o = o * 1  # B, T, nh x hs
        o = o * 1  # (B T nh*hs)  #! cannot tell
        o = o * 1  # batch first: (B, T, hidden)
        o = o * 1  # [B, T, hidden] per position hidden features
        o = o * 1  # B seqs of T tokens, hidden features  #! cannot tell
        o = o * 1  # (#seqs, #tokens, hidden)  #! cannot tell
        o = o * 1  # [B, T, hidden] -> o-proj -> [B, T, hidden]
        o = o * 1  # [B, T, hidden] -> (next: o-projection)
        o = o * 1  # [B, T, hidden], will be [B, T, C] after the projection  #! cannot tell
        o = o * 1  # [B, T, hidden]; after mean over T it is [B, hidden]  #! cannot tell
        o = o * 1  # [B, T, hidden] soon [B, hidden]  #! cannot tell
        o = o * 1  # [B, T, hidden], and transposed [B, hidden, T]  #! cannot tell
        o = o * 1  # [B, T, hidden] ([B, hidden, T] for the conv)  #! cannot tell
        o = o * 1  # [B, T, hidden] vs. q [B, nh, T, hs]
        o = o * 1  # [B, T, hidden], q: [B, nh, T, hs]
        o = o * 1  # [hidden, T, B] in TF, [B, T, hidden] here  #! cannot tell
        o = o * 1  # (T, B, hidden) in fairseq  #! cannot tell
        o = o * 1  # [T, hidden] when unbatched  #! cannot tell
        o = o * 1  # (T, hidden) without batch  #! cannot tell
        o = o * 1  # (T, hidden), batch omitted  #! cannot tell
        o = o * 1  # ignoring batch: (T, hidden)  #! cannot tell
        o = o * 1  # [T, hidden] (+ batch)  #! cannot tell
        o = o * 1  # [T, hidden] + batch dim  #! cannot tell
        o = o * 1  # B times (T, hidden)
        o = o * 1  # (T, hidden) B times  #! cannot tell
        o = o * 1  # 2D per sample: (T, hidden)  #! cannot tell
        o = o * 1  # 1 vector of size (hidden,) for each of B, T  #! cannot tell
        o = o * 1  # [_, T, hidden]
        o = o * 1  # [:, T, hidden]
        o = o * 1  # [batch_dim, T, hidden]
        o = o * 1  # [bs x T, hidden] flattened over time  #! cannot tell
        o = o.sum(1)  # sum_T -> (B, hidden)
        o = o * 1  # [B, hidden] (T summed out of [B, T, hidden])  #! cannot tell
        return o


# %% pictures: the last dimensions only | Net(C, K)(x[N, C, H, W], idx[N].ints(5))
class Net(nn.Module):
    def __init__(self, C, K):
        super().__init__()
        self.conv = nn.Conv2d(C, K, 3, padding=1)  # C -> K  #! cannot tell
        self.conv2 = nn.Conv2d(C, K, 3, padding=1)  # [K, C, 3, 3]
        self.lin = nn.Linear(K, 10)  # K -> 10
        self.lstm = nn.LSTM(K, K, batch_first=True)
        self.emb = nn.Embedding(9, K)  # 9 x K

    def forward(self, x, idx):
        N, C, H, W = x.shape
        y = self.conv(x)  # (N, C, H, W) -> (N, K, H, W)
        y = self.conv(x)  # NCHW -> NKHW  #! cannot tell
        y = self.conv(x)  # (N,K,H,W), stride 1, padding 1
        y = self.conv(x)  # Nx K x H x W  #! cannot tell
        y = self.conv(x)  # N×K×H×W
        y = self.conv(x)  # N*K*H*W
        y = self.conv(x)  # C_in x H x W -> C_out x H x W  #! cannot tell
        y = self.conv(x)  # (N, C_out, H_out, W_out)
        y = self.conv(x)  # [N, Cout, H', W']  #! cannot tell
        y = self.conv(x)  # [N, filters, rows, cols]
        y = self.conv(x)  # feature map: K channels, H x W  #! cannot tell
        y = self.conv(x)  # H x W feature maps  #! cannot tell
        y = self.conv(x)  # H x W x K  #! cannot tell
        z = F.max_pool2d(y, 2)  # [N, K, H/2, W/2]
        z = F.max_pool2d(y, 2)  # [N, K, H', W']
        z = F.max_pool2d(y, 2)  # halves H and W: [N, K, H, W] -> [N, K, H/2, W/2]
        z = F.max_pool2d(y, 2)  # [N, K, h, w]
        z = F.max_pool2d(y, 2)  # 1/2 resolution  #! missing
        z = F.max_pool2d(y, 2)  # 2x2 pooling, (H, W) -> (H/2, W/2)  #! cannot tell
        p = y.mean((2, 3))  # (N, K, 1, 1) -> (N, K)  #! cannot tell
        p = y.mean((2, 3))  # global average pool over (H, W)  #! cannot tell
        p = y.mean((2, 3))  # GAP, (H, W) -> (1, 1)  #! cannot tell
        t = y.flatten(2).transpose(1, 2)  # N, HW, K
        t = y.flatten(2).transpose(1, 2)  # N, (HW), K
        t = y.flatten(2).transpose(1, 2)  # [N, H*W, K], L = H*W
        t = y.flatten(2).transpose(1, 2)  # [N, L, K]
        t = y.flatten(2).transpose(1, 2)  # NKHW -> N(HW)K  #! cannot tell
        t = y.flatten(2).transpose(1, 2)  # (N, K, H, W) -> (N, K, HW) -> (N, HW, K)
        t = y.flatten(2).transpose(1, 2)  # 'n k h w -> n (h w) k'  #! cannot tell
        t = y.flatten(2).transpose(1, 2)  # [N, n_patches, K]
        t = y.flatten(2).transpose(1, 2)  # [N, T, K] where T=HW
        out, (h, c) = self.lstm(t)  # (h, c)  #! cannot tell
        out, (h, c) = self.lstm(t)  # out: [N, T, K], h, c: [1, N, K]
        out, (h, c) = self.lstm(t)  # out [N, T, K], (h [1, N, K], c [1, N, K])
        out, (h, c) = self.lstm(t)  # [N, T, K], ([1, N, K], [1, N, K])
        out, (h, c) = self.lstm(t)  # out: N x T x K
        out, _ = self.lstm(t)  # [N, T, num_directions * K]  #! cannot tell
        out, _ = self.lstm(t)  # (seq, batch, num_directions * hidden) if not batch_first  #! cannot tell
        last = out[:, -1]  # [N, K] (last step of [N, T, K])
        last = out[:, -1, :]  # [:, -1, :]  #! missing
        last = out[:, -1, :]  # [N, T, K] -> [N, K], many to one
        e = self.emb(idx)  # idx: [N] -> [N, K]
        e = self.emb(idx)  # [N, emb_dim]
        e = self.emb(idx).unsqueeze(1)  # [N, 1(T), K]  #! cannot tell
        e = self.emb(idx).unsqueeze(1)  # [N, T=1, K]
        e = self.emb(idx).unsqueeze(1)  # (N, K)[:, None]  #! cannot tell
        e = self.emb(idx).unsqueeze(1)  # from (N, K) to (N, 1, K)
        s = torch.bmm(e, t.mT)  # (N, 1, K) bmm (N, K, T) -> (N, 1, T)
        s = torch.bmm(e, t.mT)  # b=N: 1 x K times K x T = 1 x T  #! cannot tell
        s = torch.bmm(e, t.mT).squeeze(1)  # (N, 1, T).squeeze(1) = (N, T)  #! cannot tell
        s = torch.bmm(e, t.mT).squeeze(1)  # (N, 1, T) → squeeze → (N, T)
        s = torch.bmm(e, t.mT).squeeze(1)  # N, T ; T = number of patches
        k = s.topk(3, -1)[0]  # [N, 3]
        k = s.topk(3, -1)[0]  # top-3 of T  #! missing
        k = s.topk(3, -1)[1]  # indices in [0, T), [N, 3]
        k = s.topk(3, -1)[1]  # [N, k=3]
        k = s.topk(3, -1)[1]  # (N, top_k), top_k=3  #! cannot tell
        w = self.lin.weight  # (10, K)
        w = self.lin.weight  # [out, in]
        w = self.lin.weight.t()  # [in, out]
        l = self.lin(p)  # logits, [N, n_classes]
        l = self.lin(p)  # (N, 10): 10 classes
        l = self.lin(p)  # p @ W.T + b, W: [10, K], b: [10]  #! cannot tell
        l = self.lin(p)  # [N, K] @ [K, 10] + [10]
        l = self.lin(p)  # [N, K] · [K, 10] ⟶ [N, 10]
        l = self.lin(p)  # N vectors, one logit per class (10)  #! missing
        l = l.log_softmax(-1)  # log p(y|x), [N, 10]
        l = l.log_softmax(-1)  # P(class | x)  #! missing
        l = l.max(-1)[0]  # (N,)
        l = l * 1  # N  #! cannot tell
        l = l * 1  # [N x 1] without the 1  #! cannot tell
        l = l * 1  # length N  #! cannot tell
        l = l * 1  # 1D: N  #! cannot tell
        l = l * 1  # size N vector  #! cannot tell
        i, j = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")  # both [H, W]
        i, j = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")  # (H, W), (H, W)
        i, j = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")  # i[h, w] = h, j[h, w] = w  #! missing
        g = torch.stack([i, j], -1)  # [H, W, 2] (y, x)
        g = torch.stack([i, j], -1)  # H x W x (y, x)  #! cannot tell
        g = torch.stack([i, j], -1)  # (y, x) for each pixel  #! missing
        g = torch.stack([i, j], -1)  # 2 x [H, W] -> [H, W, 2]
        g = torch.stack([i, j], -1)  # list of 2 [H, W] -> [H, W, 2]
        g = g.view(-1, 2)  # [(H*W), (y, x)]  #! missing
        g = g.view(-1, 2)  # (HW, 2)
        g = g[None].expand(N, -1, -1)  # (HW, 2) -> (1, HW, 2) -> (N, HW, 2)
        g = g[None].expand(N, -1, -1)  # repeat (HW, 2) N times  #! cannot tell
        g = g[None].expand(N, -1, -1)  # N copies of [HW, 2]  #! cannot tell
        g = g[None].expand(N, -1, -1)  # [HW, 2], expanded along a new batch dim  #! cannot tell
        return l


# %% stars for commas, and a product in front of them | flatter(x[batch, steps, width])
def flatter(x):
    batch, steps, width = x.shape
    y = torch.tanh(x)  # batch * steps * width
    z = y.reshape(-1, width)  # (batch * steps) * width
    z = torch.relu(z)  # width * (batch * steps)  #! false
    return z.view_as(x)  # batch * steps * width
