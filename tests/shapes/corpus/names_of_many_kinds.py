"""Greek, capitals, short forms, spaces, hyphens, slips of the keyboard, explanations of letters."""

# %% Greek
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [β, τ, η]
        k = self.k(x)  # [β, τ, η]
        v = self.v(x)  # [β, τ, η]
        kt = k.transpose(1, 2)  # [β, τ, η]  #! false
        s = q @ kt / self.root  # [β, τ, τ]
        p = s.softmax(-1)  # [β, τ, τ]
        return p @ v  # [β, τ, η]


# %% capitals
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [BATCH_SIZE, SEQ_LEN, HIDDEN]
        k = self.k(x)  # [BATCH_SIZE, SEQ_LEN, HIDDEN]
        v = self.v(x)  # [BATCH_SIZE, SEQ_LEN, INPUT_SIZE]  #! false
        s = q @ k.mT / self.root  # [BATCH_SIZE, SEQ_LEN, SEQ_LEN]
        p = s.softmax(-1)  # [BATCH_SIZE, HIDDEN, SEQ_LEN]  #! false
        return p @ v  # [BATCH_SIZE, SEQ_LEN, HIDDEN]


# %% spaces and hyphens
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch size, seq len, hidden]
        k = self.k(x)  # [batch-size, seq-len, hidden]
        v = self.v(x)  # [batch size, sequence length, hidden size]
        s = q @ k.mT / self.root  # [batch size, seq len, hidden size]  #! false
        p = s.softmax(-1)  # [batch size, seq len, seq len]
        return p @ v  # [batch size, seq len, input size]  #! false


# %% slips of the keyboard
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch_size, seg_len, hidden]
        k = self.k(x)  # [bacth_size, seq_len, hiden]
        v = self.v(x)  # batch_size, seq_len, hidden]  #! cannot tell
        s = q @ k.mT / self.root  # [batch_size, seq_len, hiden]  #! false
        p = s.softmax(-1)  # [batch_size, seq_len, seq_len]
        return p @ v  # [batch_size, seq_len, hidden]


# %% letters explained in a comment
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
        # B = batch size, S = sequence length, H = hidden, N = number of heads, D = H / N
        bs, seq, _ = x.shape
        k = self.k(x)  # [B, S, H]
        k = k.view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [B, N, S, D]
        q = self.q(x)  # [B, H, S]  #! false
        q = q.view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [B, N, S, H/N]
        v = self.v(x)  # [B, S, H]
        v = v.view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)  # [B, N, S, H]  #! false
        s = q @ k.transpose(2, 3) / self.head_size**0.5  # [B, N, S, S]
        if self.causal:
            s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))  # [B, N, S, S]
        p = self.dropout(s.softmax(-1))  # [B, N, S, D]  #! false
        a = p @ v  # [B, N, S, D]
        a = a.transpose(1, 2).reshape(bs, seq, -1)  # [B, S, N*D]
        a = self.mix(a)  # [B, S, H]
        return (a, p.flatten(0, 1)) if return_attention else a  # [B, S, H], [B*N, S, S]


# %% short names of the student's own
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.nh, self.hs, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bsz, slen = x.size(0), x.size(1)
        k = self.k(x).view(bsz, slen, self.nh, self.hs)  # [bsz, slen, nh, hs]
        q = self.q(x).view(bsz, slen, self.nh, self.hs)  # [bsz, slen, hs, nh]  #! false
        v = self.v(x).view(bsz, slen, self.nh, self.hs)  # [bsz, slen, nh, hs]
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # [bsz, nh, slen, hs]
        s = torch.matmul(q, k.mT) * self.hs**-0.5  # [bsz, nh, slen, slen]
        if self.causal:
            m = torch.arange(slen)[None, :] > torch.arange(slen)[:, None]  # [slen, slen]
            s = torch.where(m, float("-inf"), s)  # [bsz, nh, slen, slen]
        p = self.dropout(F.softmax(s, dim=-1))  # [bsz, slen, nh, slen]  #! false
        a = torch.matmul(p, v).transpose(1, 2)  # [bsz, slen, nh, hs]
        a = self.mix(a.flatten(start_dim=2))  # [bsz, slen, nh*hs]
        p = p.view(bsz * self.nh, slen, slen)  # [nh, slen, slen]  #! false
        return (a, p) if return_attention else a


# %% products and quotients of all kinds
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
        k = self.k(x).view(bs, seq, self.num_heads, -1)  # [bs, seq, num_heads, hidden/num_heads]
        k = k.transpose(1, 2).flatten(0, 1)  # [(bs * num_heads), seq, (hidden // num_heads)]
        q = self.q(x).view(bs, seq, self.num_heads, -1)  # [bs, seq, num_heads, hidden // self.num_heads]
        q = q.transpose(1, 2).flatten(0, 1)  # [bs*num_heads, seq, hidden*num_heads]  #! false
        v = self.v(x).view(bs, seq, self.num_heads, -1)  # [bs, seq, num_heads, num_heads/hidden]  #! false
        v = v.transpose(1, 2).flatten(0, 1)  # [num_heads·bs, seq, head_size]
        s = q.bmm(k.mT) / self.head_size**0.5  # [bs × num_heads, seq, seq]
        if self.causal:
            s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), -1e30)  # [bs/num_heads, seq, seq]  #! false
        p = self.dropout(s.softmax(-1))  # [batch * heads, seq, seq]
        a = p.bmm(v)  # [batch * heads, seq, hidden / heads]
        a = a.view(bs, self.num_heads, seq, -1)  # [batch, heads, seq, hidden / heads]
        a = a.transpose(1, 2).reshape(bs, seq, -1)  # [batch, seq, heads * (hidden / heads)]
        a = self.mix(a)  # [batch, seq, heads * hidden]  #! false
        return (a, p) if return_attention else a  # [batch, seq, hidden], [batch * heads, seq, seq]


# %% dots and stars
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [..., seq_len, hidden]
        k = self.k(x)  # [..., hidden]
        v = self.v(x)  # (*, seq_len, input_size)  #! false
        s = q @ k.mT / self.root  # [batch_size, ..., seq_len]
        p = s.softmax(-1)  # [..., hidden]  #! false
        return p @ v  # (*, seq_len, hidden)


# %% numbers
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.k(x).unsqueeze(1)  # [batch_size, 1, seq_len, hidden]
        v = self.v(x).unsqueeze(1)  # [batch_size, seq_len, 1, hidden]  #! false
        s = q.unsqueeze(2).mul(k).sum(-1)  # [batch_size, seq_len, seq_len]
        s = s / self.root  # [2, 5, 5]  #! cannot tell
        top = s.amax(-1, keepdim=True)  # [batch_size, seq_len, 1]
        p = (s - top).exp()  # [batch_size, seq_len, 1]  #! false
        p = p / p.sum(-1, keepdim=True)  # [batch_size, seq_len, seq_len]
        return p @ v.squeeze(1)  # [batch_size, seq_len, hidden]
