"""The same layers in other code: loops, chunks, helpers, masks in place."""

# %% a loop over the heads
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)  # [bs, seq, hidden]
        outputs, maps = [], []
        for i in range(self.num_heads):
            part = slice(i * self.head_size, (i + 1) * self.head_size)
            q_i = q[:, :, part]  # [bs, seq, head_size]
            k_i = k[..., part]  # [bs, seq, hidden]  #! false
            v_i = v[..., part]  # [bs, seq, head_size]
            s = torch.bmm(q_i, k_i.transpose(1, 2))  # [bs, seq, seq]
            s = s / self.head_size**0.5  # [bs, seq, head_size]  #! false
            if self.causal:
                s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))  # [bs, seq, seq]
            p = self.dropout(s.softmax(-1))  # [bs, seq, seq]
            outputs.append(p @ v_i)
            maps.append(p)
        att = torch.cat(outputs, dim=-1)  # [bs, seq, hidden]
        att = self.mix(att)  # [bs, seq, hidden]
        probs = torch.stack(maps, dim=1)  # [num_heads, bs, seq, seq]  #! false
        probs = probs.reshape(-1, seq, seq)  # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att


# %% chunks and a concatenation
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        q = torch.cat(self.q(x).chunk(self.num_heads, dim=-1), dim=0)  # [num_heads * bs, seq, head_size]
        k = torch.cat(self.k(x).chunk(self.num_heads, dim=-1), dim=0)  # [num_heads * bs, seq, head_size]
        v = torch.cat(self.v(x).chunk(self.num_heads, dim=-1), dim=0)  # [num_heads, bs, seq, head_size]  #! false
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.head_size)  # [num_heads * bs, seq, seq]
        if self.causal:
            mask = torch.ones_like(scores).triu(1).bool()  # [num_heads * bs, seq, seq]
            scores = scores.masked_fill(mask, float("-inf"))  # [num_heads * bs, seq, seq]
        probs = self.dropout(F.softmax(scores, dim=-1))  # [num_heads * bs, seq, seq]
        att = torch.bmm(probs, v)  # [num_heads * bs, seq, head_size]
        att = torch.cat(att.chunk(self.num_heads, dim=0), dim=-1)  # [bs, seq, head_size]  #! false
        att = self.mix(att)  # [bs, seq, hidden]
        probs = probs.view(self.num_heads, bs, seq, seq)  # [num_heads, bs, seq, seq]
        probs = probs.transpose(0, 1).reshape(-1, seq, seq)  # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att


# %% a method that splits and one that merges
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def split(self, t):  # t: [batch_size, seq_len, hidden]
        batch_size, seq_len, _ = t.shape
        t = t.view(batch_size, seq_len, self.num_heads, self.head_size)  # [batch_size, seq_len, num_heads, head_size]
        return t.transpose(1, 2)  # [batch_size, num_heads, seq_len, head_size]

    def merge(self, t):
        batch_size, _, seq_len, _ = t.size()
        t = t.transpose(1, 2)  # [batch_size, num_heads, seq_len, head_size]  #! false
        return t.reshape(batch_size, seq_len, -1)  # [batch_size, seq_len, hidden]

    def forward(self, x, return_attention=False):
        q = self.split(self.q(x))  # [batch_size, num_heads, seq_len, head_size]
        k = self.split(self.k(x))  # [batch_size, seq_len, num_heads, head_size]  #! false
        v = self.split(self.v(x))  # [batch_size, num_heads, seq_len, head_size]
        q = q / self.head_size**0.5  # [batch_size, num_heads, seq_len, head_size]
        scores = q @ k.transpose(-2, -1)  # [batch_size, num_heads, seq_len, seq_len]
        if self.causal:
            seq_len = x.size(1)
            mask = torch.triu(torch.full((seq_len, seq_len), float("-inf")), 1)  # [seq_len, seq_len]
            scores += mask  # [batch_size, num_heads, seq_len, seq_len]
        probs = self.dropout(F.softmax(scores, dim=-1))  # [batch_size, num_heads, seq_len, seq_len]
        att = self.mix(self.merge(probs @ v))  # [batch_size, seq_len, hidden]
        if return_attention:
            return att, probs.flatten(0, 1)  # [batch_size, seq_len, hidden], [batch_size * num_heads, seq_len, seq_len]
        return att


# %% einsum, words
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        batch, seq, _ = x.shape
        q = self.q(x).reshape(batch, seq, self.num_heads, self.head_size)  # [batch, seq, heads, head_dim]
        k = self.k(x).reshape(batch, seq, self.num_heads, self.head_size)  # [batch, seq, heads, head_dim]
        v = self.v(x).reshape(batch, seq, self.num_heads, self.head_size)  # [batch, seq, head_dim, heads]  #! false
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)  # [batch, heads, seq, seq]
        scores /= self.head_size**0.5  # [batch, heads, seq, seq]
        if self.causal:
            keep = torch.tril(torch.ones(seq, seq)).bool()  # [seq, seq]
            scores.masked_fill_(~keep, float("-inf"))  # [seq, seq]  #! false
        probs = scores.softmax(dim=-1)  # [batch, heads, seq, seq]
        probs = self.dropout(probs)  # [batch, seq, heads, seq]  #! false
        att = torch.einsum("bhqk,bkhd->bqhd", probs, v)  # [batch, seq, heads, head_dim]
        att = self.mix(att.reshape(batch, seq, -1))  # [batch, seq, hidden]
        return (att, probs.reshape(-1, seq, seq)) if return_attention else att  # [batch, seq, hidden], [batch * heads, seq, seq]


# %% three lines and nothing said
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / self.root  #! missing
        probs = scores.softmax(-1)  # a distribution over the keys (rows sum to one)  #! missing
        return probs @ self.v(x)  # weighted mean  #! missing


# %% comments for people
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        # queries, keys and values (in this order)
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5  # for the scores (see equation 1, section 3)

    def forward(self, x):
        # print(x.shape)  # [1, 2, 3]
        # q = self.k(x)  # [hidden, hidden]
        q = self.q(x)  # [batch_size, seq_len, hidden]
        # TODO: is self.k(x).transpose(2, 1) the same?
        k_t = self.k(x).transpose(1, 2)  # [batch_size, hidden, seq_len]
        scores = torch.bmm(q, k_t)  # (q, k_t)  #! missing
        scores = scores / self.scale  # [batch_size, seq_len, seq_len], see (1, 2) above
        # scores = scores.masked_fill(mask, -1e9)
        probs = F.softmax(scores, dim=-1)  # over the last dim, the keys: [batch_size, seq_len, seq_len]
        out = torch.bmm(probs, self.v(x))  # noqa  #! missing
        return out
