"""Everyday handwriting: punctuation, labels, glued arrows, remarks behind and before."""

# %% punctuation and remarks
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # q: batch_size x seq_len x hidden
        q = self.q(x)  # -> (batch_size, seq_len, hidden)
        q = self.q(x)  # shape: batch_size, seq_len, hidden
        q = self.q(x)  # [batch_size, seq_len, hidden]; the queries
        q = self.q(x)  # (batch_size, seq_len, hidden), dtype float32
        q = self.q(x)  # q.shape == [batch_size, seq_len, hidden]
        q = self.q(x)  # q.shape = (batch_size, seq_len, hidden)
        q = self.q(x)  # q.size() -> [batch_size, seq_len, hidden]
        q = self.q(x)  # Tensor of size (batch_size, seq_len, hidden)
        q = self.q(x)  # <batch_size, seq_len, hidden>
        q = self.q(x)  # {batch_size, seq_len, hidden}
        q = self.q(x)  # [batch_size,seq_len,hidden]
        q = self.q(x)  # [ batch_size , seq_len , hidden ]
        q = self.q(x)  #[batch_size, seq_len, hidden]
        q = self.q(x)  # 3-D tensor: [batch_size, seq_len, hidden]
        q = self.q(x)  # Query vectors -- [batch_size, seq_len, hidden]
        q = self.q(x)  # [batch_size, seq_len, hidden] (each token has its own query)
        q = self.q(x)  # queries (batch_size, seq_len, hidden) for every token (1 each)
        q = self.q(x)  # [batch_size x seq_len x hidden]
        q = self.q(x)  # [batch_size * seq_len * hidden]
        q = self.q(x)  # x [batch_size, seq_len, input_size] -> q [batch_size, seq_len, hidden]
        q = self.q(x)  # x: [batch_size, seq_len, input_size], q: [batch_size, seq_len, hidden]
        q = self.q(x)  # [batch_size, seq_len, input_size]->[batch_size, seq_len, hidden]
        q = self.q(x)  # q = x W + b: [batch_size, seq_len, hidden]
        q = self.q(x)  # (batch_size, seq_len, input_size) @ (input_size, hidden) + (hidden) -> (batch_size, seq_len, hidden)
        q = self.q(x)  # q.shape == [batch_size, hidden, seq_len]  #! false
        q = self.q(x)  # Query vectors -- [batch_size, seq_len, input_size]  #! false
        q = self.q(x)  # <batch_size, seq_len, seq_len>  #! false
        k, v = self.k(x), self.v(x)  # k, v: [batch_size, seq_len, hidden]
        s = q @ k.mT / self.root  # from [batch_size, seq_len, hidden], [batch_size, hidden, seq_len] to [batch_size, seq_len, seq_len]
        s = q @ k.mT / self.root  # q(batch_size, seq_len, hidden) @ k^T(batch_size, hidden, seq_len) -> scores(batch_size, seq_len, seq_len)
        s = q @ k.mT / self.root  # q [batch_size, seq_len, hidden] * k.T [batch_size, hidden, seq_len] = [batch_size, seq_len, seq_len]
        s = q @ k.mT / self.root  # [batch_size, seq_q, seq_k]
        s = q @ k.mT / self.root  # [batch_size, query_len, key_len]
        s = q @ k.mT / self.root  # scores: [batch_size, seq_len, seq_len] (scaled by sqrt(hidden))
        s = q @ k.mT / self.root  # [batch_size, seq_len, seq_len] = [batch_size, seq_len, hidden] @ [batch_size, hidden, seq_len]
        s = q @ k.mT / self.root  # scores: [batch_size, seq_len, hidden] (scaled by sqrt(hidden))  #! false
        p = s.softmax(-1)  # [batch_size, seq_len, seq_len], sum over dim 2 is 1
        p = s.softmax(-1)  # probs = softmax(scores), [batch_size, seq_len, seq_len]
        p = s.softmax(-1)  # (batch_size, seq_len (query), seq_len (key))
        p = s.softmax(-1)  # probs = softmax(scores), [batch_size, seq_len]  #! false
        out = p @ v  # [batch_size, seq_len, seq_len] @ [batch_size, seq_len, hidden] = [batch_size, seq_len, hidden]
        out = p @ v  # matmul of [batch_size, seq_len, seq_len] and [batch_size, seq_len, hidden] -> [batch_size, seq_len, hidden]
        out = p @ v  # returns [batch_size, seq_len, hidden]
        out = p @ v  # returns [batch_size, hidden, seq_len]  #! false
        return out  # [batch_size, seq_len, hidden]


# %% short letters with the head size called d_k
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.h, self.d_k, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        k = self.k(x).view(bs, seq, self.h, self.d_k)  # [B T H D]
        k = k.transpose(1, 2)  # [B H T D]
        q = self.q(x).view(bs, seq, self.h, self.d_k).transpose(1, 2)  # B,H,T,D
        v = self.v(x).view(bs, seq, self.h, self.d_k).transpose(1, 2)  # (B,H,T,D)
        s = q @ k.transpose(2, 3) / math.sqrt(self.d_k)  # B,H,T,T
        if self.causal:
            # [T, T], True where a key is later than the query
            mask = torch.ones(seq, seq).triu(1).bool()
            s = s.masked_fill(mask, float("-inf"))  # B,H,T,T
        p = self.dropout(s.softmax(-1))  # B,H,D,T  #! false
        o = (p @ v).transpose(1, 2)  # B,H,T,D  #! false
        o = o.reshape(bs, seq, -1)  # B,T,H*D
        o = self.mix(o)  # (B,T,HD)
        p = p.reshape(-1, seq, seq)  # (B*H,T,T)
        return (o, p) if return_attention else o


# %% mixed words, the head size as d_k and as a quotient
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.h, self.causal = num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        N, L, _ = x.shape
        h, d_k = self.h, self.mix.in_features // self.h
        k = self.k(x).view(N, L, h, d_k).transpose(1, 2)  # (N, L, hidden) -> (N, L, h, d_k) -> (N, h, L, d_k)
        q = self.q(x).view(N, L, h, d_k).transpose(1, 2)  # (N, L, hidden) -> (N, L, h, hidden/h) -> (N, h, L, hidden/h)
        v = self.v(x).view(N, L, h, d_k).transpose(1, 2)  # (N, h, L, d_v)
        scores = torch.matmul(q, k.transpose(-2, -1)) / d_k**0.5  # (N, h, L, d_k) @ (N, h, d_k, L) -> (N, h, L, L)
        if self.causal:
            scores = scores.masked_fill(torch.triu(torch.ones((L, L)), 1) == 1, float("-inf"))  # (N, h, L, L), mask is (L, L)
        probs = self.dropout(F.softmax(scores, dim=-1))  # (N, h, L, L)
        att = probs @ v  # (N, h, L, L) @ (N, h, d_k, L) -> (N, h, L, d_k)  #! false
        att = att.transpose(1, 2).contiguous().view(N, L, h * d_k)  # (N, L, h*d_k), which is (N, L, hidden)
        att = self.mix(att)  # (N, L, h * hidden)  #! false
        probs = probs.view(N * h, L, L)  # (N*h, L, L)
        return (att, probs) if return_attention else att  # (N, L, hidden) [, (N*h, L, L)]
