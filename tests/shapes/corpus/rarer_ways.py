"""Rarer ways to write it: remarks in other languages, stores into parts, shapes in words."""

# %% one product with a third operand
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        B, T, _ = x.size()
        query = self.q(x)  # (B,T,C)
        key = self.k(x)  # (B,T,C)
        value = self.v(x)  # (B,T,C)
        empty = torch.zeros(B, T, T)  # (B,T,T)
        weights = torch.baddbmm(empty, query, key.transpose(1, 2), beta=0, alpha=1 / self.scale)  # (B,T,C) @ (B,C,T) -> (B,T,T)
        weights = F.softmax(weights, -1)  # (B,C,T)  #! false
        out = weights.bmm(value)  # (B,T,T) @ (B,T,C) -> (B,T,C)
        return out


# %% shapes as einops writes them, two before the arrow
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        q = self.q(x).unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)  # b s (h d) -> b h s d
        k = self.k(x).unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)  # b s (h d) -> b h s d
        v = self.v(x).unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)  # b s (h d) -> b h s d
        w = q @ k.transpose(-1, -2) / self.scale  # b h s d, b h d s -> b h s s
        if self.causal:
            w = w + torch.full((seq, seq), float("-inf")).triu(1)  # b h s d  #! false
        w = self.dropout(w.softmax(-1))  # b h s s
        o = (w @ v).transpose(1, 2).flatten(2)  # b h s d -> b s (h d)
        o = self.mix(o)  # b s (h d)
        w = w.flatten(0, 1)  # b h s s  #! false
        return (o, w) if return_attention else o


# %% a fused layer, taken apart
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        weight = torch.cat([self.q.weight, self.k.weight, self.v.weight])  # [3 * hidden, input_size]
        bias = torch.cat([self.q.bias, self.k.bias, self.v.bias])  # [hidden]  #! false
        qkv = F.linear(x, weight, bias)  # [batch_size, seq_len, 3 * hidden]
        qkv = qkv.view(bs, seq, 3, self.num_heads, self.head_size)  # [batch_size, seq_len, 3, num_heads, head_size]
        qkv = qkv.permute(2, 0, 3, 1, 4)  # [3, batch_size, num_heads, seq_len, head_size]
        q, k, v = qkv  # three times [batch_size, num_heads, seq_len, head_size]
        scores = q @ k.mT / self.scale  # [batch_size, num_heads, seq_len, seq_len]
        if self.causal:
            future = torch.triu(torch.ones(seq, seq), 1)  # [seq_len, seq_len]
            scores[..., future.bool()] = float("-inf")  # [batch_size, num_heads, seq_len, seq_len]
        probs = self.dropout(scores.softmax(-1))  # [batch_size, num_heads, seq_len, seq_len]
        att = probs @ v  # [batch_size, num_heads, seq_len, seq_len]  #! false
        att = torch.movedim(att, 1, 2).reshape(bs, seq, -1)  # [batch_size, seq_len, num_heads * head_size]
        att = self.mix(att)  # [batch_size, seq_len, hidden]
        if not return_attention:
            return att
        return att, probs.view(-1, seq, seq)  # [batch_size, seq_len, hidden], [batch_size * num_heads, seq_len, seq_len]


# %% two statements on a line, the mask named
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        h, hs = self.num_heads, self.head_size
        q = self.q(x).view(bs, seq, h, hs); q = q.transpose(1, 2)  # [bs, num_heads, seq, head_size]
        k, v = self.k(x).view(bs, seq, h, hs).transpose(1, 2), self.v(x).view(bs, seq, h, hs).transpose(1, 2)  # k: [bs, num_heads, seq, head_size]; v: [bs, num_heads, seq, head_size]
        a = q @ k.transpose(-2, -1)  # q @ k.T: [bs, num_heads, seq, seq]
        a /= self.scale  # /= sqrt(head_size), [bs, num_heads, seq, head_size]  #! false
        if self.causal:
            m = torch.tril(x.new_ones(seq, seq))  # lower triangle of ones: [seq, seq]
            a = a.masked_fill(m == 0, -1e9)  # mask [seq, seq] is broadcast over a [bs, num_heads, seq, seq]
        a = self.dropout(a.softmax(-1))  # [bs, num_heads, seq, seq]
        o = a @ v  # [bs, num_heads, seq, head_size]
        o = o.permute(0, 2, 1, 3)  # [bs, seq, num_heads, head_size]
        o = o.contiguous().view(bs, seq, h * hs)  # [bs, seq, num_heads]  #! false
        o = self.mix(o)  # [bs, seq, hidden]
        if return_attention:
            a = a.view(bs * h, seq, seq)  # [bs*num_heads, seq, seq]
        return (o, a) if return_attention else o


# %% results stored into a part
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)  # three of [bs, seq, hidden]
        att = torch.zeros_like(q)  # [bs, seq, hidden]
        probs = x.new_zeros(bs, self.num_heads, seq, seq)  # [bs, num_heads, seq, seq]
        for i in range(self.num_heads):
            lo, hi = i * self.head_size, (i + 1) * self.head_size
            s = q[..., lo:hi] @ k[..., lo:hi].mT / self.scale  # [bs, seq, head_size] @ [bs, head_size, seq] -> [bs, seq, seq]
            if self.causal:
                s = s + x.new_full((seq, seq), -torch.inf).triu(1)  # [bs, seq, seq]
            probs[:, i] = self.dropout(s.softmax(-1))  # [bs, seq, head_size]  #! false
            att[..., lo:hi] = probs[:, i] @ v[..., lo:hi]  # [bs, seq, head_size]
        att = self.mix(att)  # [bs, seq, hidden]
        return (att, probs.flatten(0, 1)) if return_attention else att  # [bs, seq, hidden], [bs * num_heads, seq, seq]


# %% sizes joined by a word
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # batch_size by seq_len by hidden
        k = self.k(x)  # batch_size by seq_len by hidden
        v = self.v(x)  # batch_size by seq_len by hidden
        s = q @ k.mT / self.scale  # batch_size by seq_len by hidden  #! false
        p = s.softmax(-1)  # batch_size by seq_len by seq_len
        return p @ v  # batch_size by seq_len by hidden


# %% a verb between two shapes, in French
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # requêtes : [batch_size, seq_len, input_size] devient [batch_size, seq_len, hidden]
        k = self.k(x)  # clés : [batch_size, seq_len, hidden]
        v = self.v(x)  # valeurs : [batch_size, seq_len, input_size] devient [batch_size, hidden, seq_len]  #! false
        s = q @ k.mT / self.scale  # produit scalaire, divisé par la racine : [batch_size, seq_len, seq_len]
        p = s.softmax(-1)  # somme à 1 sur la dernière dimension : [batch_size, seq_len, seq_len]
        return p @ v  # moyenne pondérée : [batch_size, seq_len, hidden]


# %% two shapes with a German word between
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        n, d = self.num_heads, self.head_size
        q = self.q(x).view(bs, seq, n, d).transpose(1, 2)  # Form: [batch_size, num_heads, seq_len, head_size]
        k = self.k(x).view(bs, seq, n, d).transpose(1, 2)  # Form: [batch_size, num_heads, seq_len, head_size]
        v = self.v(x).view(bs, seq, n, d).transpose(1, 2)  # Form: [batch_size, num_heads, seq_len, head_size]
        werte = q.matmul(k.transpose(2, 3)) / self.scale  # ergibt [batch_size, num_heads, seq_len, seq_len]
        if self.causal:
            maske = torch.ones(seq, seq, dtype=torch.bool).tril()  # untere Dreiecksmatrix [seq_len, seq_len]
            werte = werte.masked_fill(~maske, float("-inf"))  # bleibt [batch_size, num_heads, seq_len, seq_len]
        gewichte = self.dropout(werte.softmax(-1))  # Wahrscheinlichkeiten [batch_size, num_heads, seq_len, seq_len]
        aus = gewichte.matmul(v)  # [batch_size, num_heads, seq_len, head_size]
        aus = aus.transpose(1, 2).flatten(2)  # alle Köpfe nebeneinander: [batch_size, seq_len, hidden]
        aus = self.mix(aus)  # Ausgabe [batch_size, seq_len, hidden]
        if return_attention:
            return aus, gewichte.reshape(bs * n, seq, seq)  # [batch_size, seq_len, hidden] und [batch_size, seq_len, seq_len]  #! false
        return aus


# %% in and out on lines of their own
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)
        # in:  [batch_size, seq_len, input_size]
        # out: [batch_size, seq_len, hidden]

        k = self.k(x)
        # in:  [batch_size, seq_len, input_size]
        # out: [batch_size, seq_len, hidden]

        v = self.v(x)
        # in:  [batch_size, seq_len, input_size]
        # out: [batch_size, seq_len, hidden]

        s = torch.bmm(q, k.transpose(1, 2)) / self.scale
        # in:  [batch_size, seq_len, hidden] and [batch_size, hidden, seq_len]
        # out: [batch_size, seq_len, seq_len]

        p = F.softmax(s, dim=-1)  #! false
        # in:  [batch_size, seq_len, seq_len]
        # out: [batch_size, seq_len, hidden]

        o = torch.bmm(p, v)
        # in:  [batch_size, seq_len, seq_len] and [batch_size, seq_len, hidden]
        # out: [batch_size, seq_len, hidden]
        return o


# %% a generator taken apart
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    @property
    def width(self):
        return self.num_heads * self.head_size

    @staticmethod
    def weights(scores):
        return torch.softmax(scores, dim=-1)  # [batch_size, num_heads, seq_len, seq_len]

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        q, k, v = (f(x).view(bs, seq, self.num_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))  # [batch_size, seq_len, num_heads, head_size]  #! false
        scores = q @ k.mT / self.scale  # [batch_size, num_heads, seq_len, seq_len]
        if self.causal:
            scores = torch.where(torch.ones(seq, seq).tril().bool(), scores, -math.inf)  # [batch_size, num_heads, seq_len, seq_len]
        probs = self.dropout(self.weights(scores))  # [batch_size, num_heads, seq_len, seq_len]
        att = (probs @ v).transpose(1, 2).reshape(bs, seq, self.width)  # [batch_size, seq_len, hidden]
        att = self.mix(att)  # [batch_size, seq_len, hidden]
        if return_attention:
            probs = probs.reshape(-1, seq, seq)  # [batch_size * num_heads, seq_len, seq_len]
            return att, probs
        return att


# %% names with a label below, one of them forgotten
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)
        # q.shape: torch.Size([batch_size, seq_len, hidden])
        k = self.k(x)  #! missing
        v = self.v(x)
        # v.shape: torch.Size([batch_size, seq_len, hidden])
        scores = torch.matmul(q, k.permute(0, 2, 1)) / self.scale
        # scores.shape: torch.Size([batch_size, seq_len, seq_len])
        probs = torch.nn.Softmax(dim=-1)(scores)
        # probs.shape: torch.Size([batch_size, seq_len, seq_len])
        out = torch.matmul(probs, v)
        # out.shape: torch.Size([batch_size, seq_len, hidden])
        return out


# %% remarks above, a comment behind one line forgotten
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # vorm van de queries: [batch_size, seq_len, hidden]
        k = self.k(x)  #! missing
        v = self.v(x)  # waarden, vorm [batch_size, seq_len, hidden]
        # scores tussen alle woorden, dus [batch_size, seq_len, seq_len]
        scores = torch.bmm(q, k.transpose(1, 2)) / self.scale
        # kansen: elke rij telt op tot 1 [batch_size, seq_len, seq_len]
        probs = torch.softmax(scores, dim=2)
        # gewogen gemiddelde van de waarden [batch_size, seq_len, hidden]
        return torch.bmm(probs, v)


# %% transposed and scaled in place, nothing said
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # from (batch_size, seq_len, input_size) to (batch_size, seq_len, hidden)
        k = self.k(x)  # from (batch_size, seq_len, input_size) to (batch_size, seq_len, hidden)
        k_t = k.mT
        v = self.v(x)  # from (batch_size, seq_len, input_size) to (batch_size, seq_len, hidden)
        s = q @ k_t  # (batch_size, seq_len, hidden) times (batch_size, hidden, seq_len) gives (batch_size, seq_len, seq_len)
        s /= self.scale
        p = s.softmax(-1)  # still (batch_size, seq_len, seq_len)
        return p @ v  # (batch_size, seq_len, seq_len) times (batch_size, seq_len, hidden) gives (batch_size, seq_len, hidden)


# %% labelled parts of what is returned
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        qs = self.q(x).split(self.head_size, dim=-1)  # num_heads times [bs, seq, head_size]
        ks = self.k(x).split(self.head_size, dim=-1)  # num_heads times [bs, seq, head_size]
        vs = self.v(x).split(self.head_size, dim=-1)  # num_heads times [bs, seq, head_size]
        scores = torch.stack([q @ k.mT for q, k in zip(qs, ks)], dim=1)  # [bs, num_heads, seq, seq]
        scores = scores / self.scale  # [bs, num_heads, seq, seq]
        if self.causal:
            scores.masked_fill_(torch.ones(seq, seq).triu(1) > 0, -math.inf)  # [bs, num_heads, seq, seq]
        probs = self.dropout(scores.softmax(dim=-1))  # [bs, num_heads, seq, seq]
        heads = [probs[:, i] @ v for i, v in enumerate(vs)]  # list of num_heads tensors [bs, seq, head_size]
        att = self.mix(torch.cat(heads, dim=-1))  # [bs, seq, hidden]
        if return_attention:
            return att, probs.reshape(-1, seq, seq)  # att: [bs, seq, hidden], probs: [num_heads, seq, seq]  #! false
        return att


# %% products without brackets
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        shape = (*x.shape[:2], self.num_heads, self.head_size)
        q = self.q(x).view(shape).transpose(1, 2)  # b,n,e -> b,n,h,d -> b,h,n,d
        k = self.k(x).view(shape).transpose(1, 2)  # b,n,e -> b,n,h,d -> b,h,n,d
        v = self.v(x).view(shape).transpose(1, 2)  # b,n,e -> b,n,h,d -> b,h,n,d
        dots = q @ k.mT / self.scale  # b,h,n,d @ b,h,d,n -> b,h,n,n
        if self.causal:
            dots = dots.masked_fill(torch.ones(dots.shape[-2:]).triu(1).bool(), float("-inf"))  # b,h,n,n
        attn = self.dropout(dots.softmax(-1))  # b,h,n,n
        out = attn @ v  # b,h,n,n @ b,h,d,n -> b,h,n,d  #! false
        out = out.transpose(1, 2).flatten(2)  # b,h,n,d -> b,n,h,d -> b,n,e
        out = self.mix(out)  # b,n,e
        return (out, attn.flatten(0, 1)) if return_attention else out  #! missing


# %% a sentence over two lines
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        # The scores are computed directly from x: a [batch_size, seq_len, hidden] tensor of queries
        # times a [batch_size, hidden, seq_len] tensor of keys gives [batch_size, seq_len, seq_len]
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / self.scale
        # softmax does not change the shape: [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)
        # and the weighted values are [batch_size, seq_len, hidden]
        return torch.bmm(probs, self.v(x))


# %% a remark and a shape behind one line
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # queries  # [batch_size, seq_len, hidden]
        k = self.k(x)  # keys  # [batch_size, seq_len, hidden]
        v = self.v(x)  # values  # [batch_size, seq_len, hidden]
        s = q @ k.mT / self.scale  # scores (scaled)  # [batch_size, seq_len, seq_len]
        p = s.softmax(-1)  # probabilities  # [batch_size, seq_len, seq_len]
        return p @ v  # output (mixed)  # [batch_size, seq_len, seq_len]  #! false


# %% what is read from a shape
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, inp = x.shape  # [batch_size, input_size, seq_len]  #! false
        assert x.dim() == 3  # (batch, seq, features)
        n, d = self.num_heads, self.head_size  # ints
        q = self.q(x)  # [bs, seq, n * d]
        q = q.view(bs, seq, n, d)  # [bs, seq, n, d]
        q = q.transpose(1, 2)  # [bs, n, seq, d]
        k = self.k(x)  # [bs, seq, n * d]
        k = k.view(bs, seq, n, d)  # [bs, seq, n, d]
        k = k.permute(0, 2, 3, 1)  # [bs, n, d, seq]
        v = self.v(x)  # [bs, seq, n * d]
        v = v.view(bs, seq, n, d)  # [bs, seq, n, d]
        v = v.transpose(1, 2)  # [bs, n, seq, d]
        w = torch.matmul(q, k)  # [bs, n, d, d]  #! false
        w = w / d**0.5  # [bs, n, seq, seq]
        if self.causal:  # hide the future
            hide = torch.ones(seq, seq, dtype=torch.bool).triu(1)  # [seq, seq]
            w = w.masked_fill(hide, -torch.inf)  # [bs, n, seq, seq]
        w = self.dropout(w.softmax(-1))  # [bs, n, seq, seq]
        y = torch.matmul(w, v)  # [bs, n, seq, d]
        y = y.transpose(1, 2)  # [bs, seq, n, d]
        y = y.reshape(bs, seq, n * d)  # [bs, seq, n * d]
        y = self.mix(y)  # [bs, seq, hidden]
        w = w.reshape(bs * n, seq, seq)  # [bs * n, seq, seq]
        return (y, w) if return_attention else y


# %% formulas with indices
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden], q[0] is the first sample
        k = self.k(x)  # [batch_size, seq_len, hidden], k[:, 0] the first token
        v = self.v(x)  # [batch_size, seq_len, hidden], v[b, t] is a vector
        s = q @ k.mT / self.scale  # s[b, i, j] = q[b, i] . k[b, j], [batch_size, seq_len, seq_len]
        p = s.softmax(-1)  # p[b, i, :].sum() == 1 [batch_size, seq_len, hidden]  #! false
        return p @ v  # out[b, i] = sum_j p[b, i, j] v[b, j]; [batch_size, seq_len, hidden]


# %% counts, and shapes of a sample
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # per sample [seq_len, hidden], in a batch [batch_size, seq_len, hidden]
        k = self.k(x)  # batch_size times [seq_len, hidden]
        v = self.v(x)  # batch of batch_size matrices of size [seq_len, hidden]
        s = q @ k.mT / self.scale  # seq_len matrices [seq_len, hidden]  #! cannot tell
        p = s.softmax(-1)  # [batch_size, seq_len, seq_len]
        return p @ v  # [batch_size, seq_len, hidden]


# %% a module that makes no tensor, a mask that grows, a comment above a branch | Net(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.num_heads, self.head_size = num_heads, hidden // num_heads

    def forward(self, x):
        b, s, _ = x.shape
        n, d = self.num_heads, self.head_size
        q = self.q(x).view(b, s, n, d).transpose(1, 2).flatten(0, 1)  # [b * n, s, d]
        op = nn.Softmax(dim=2)  # [b * n, s, s]  #! cannot tell
        scores = op(q @ q.mT)  # [b * n, s, s]

        # [b * n, s, s] -> [b, n, s, s]
        if scores.dim() == 3:
            scores = scores.view(b, n, s, s)

        mask = torch.ones(s, s).triu(1)  # [s, s]
        mask = mask.expand_as(scores)  # [s, s] -> [b, n, s, s]
        mask = mask.bool()  # [s, s] -> [b, n, s, s]  #! false
        return scores.masked_fill(mask, 0.0)  # [b, n, s, s]


# %% code for one batch size only | Net(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size])
class Net(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.num_heads = num_heads

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden]
        if x.size(0) != 3:
            raise ValueError("a batch of three, please")
        rows = torch.stack(q.chunk(3, dim=0))  # [batch_size, 1, seq_len, hidden]
        return rows.squeeze(1)  # [num_heads, seq_len, hidden]  #! false
