"""B x T x C, with nothing around it or with brackets."""

# %% crosses
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # batch_size x seq_len x hidden
        k = self.k(x)  # batch_size x seq_len x hidden
        v = self.v(x)  # batch_size x hidden x seq_len  #! false
        s = q @ k.transpose(1, 2) / self.root  # batch_size x seq_len x seq_len
        p = F.softmax(s, -1)  # batch_size x seq_len x hidden  #! false
        return p @ v  # batch_size x seq_len x hidden


# %% crosses and letters
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.n, self.d, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.n, self.d).transpose(1, 2)  # B x n x T x d
        k = self.k(x).view(B, T, self.n, self.d).transpose(1, 2)  # B x n x T x d
        v = self.v(x).view(B, T, self.n, self.d).transpose(1, 2)  # B x T x n x d  #! false
        att = (q @ k.transpose(-2, -1)) * self.d**-0.5  # B x n x T x T
        if self.causal:
            att = att.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))  # B x n x T x T
        att = F.softmax(att, dim=-1)  # B x n x T x d  #! false
        att = self.dropout(att)  # B × n × T × T
        y = att @ v  # B × n × T × d
        y = y.transpose(1, 2).contiguous().view(B, T, self.n * self.d)  # B x T x (n*d)
        y = self.mix(y)  # (B x T x n*d)
        return (y, att.view(-1, T, T)) if return_attention else y  # [B x T x n*d], [(B*n) x T x T]


# %% commas and nothing around
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # batch, seq, hidden
        k = self.k(x)  # batch, seq, hidden
        v = self.v(x)  # batch, seq, hidden
        kt = torch.transpose(k, 1, 2)  # batch, hidden, seq
        s = torch.bmm(q, kt)  # batch, seq, seq
        s = torch.div(s, self.root)  # batch, hidden, hidden  #! false
        p = torch.softmax(s, dim=2)  # batch, seq, seq
        o = torch.bmm(p, v)  # batch, seq, input_size  #! false
        return o


# %% commas and letters
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.causal = num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        b, t, c = x.shape  # b, t, c
        h, d = self.num_heads, self.q.out_features // self.num_heads
        q = self.q(x).view(b, t, h, d)  # b, t, h, d
        q = q.permute(0, 2, 1, 3)  # b, h, t, d
        k = self.k(x).view(b, t, h, d).permute(0, 2, 3, 1)  # b, h, t, d  #! false
        v = self.v(x).view(b, t, h, d).permute(0, 2, 1, 3)  # b, h, t, d
        s = q @ k / d**0.5  # b, h, t, t
        if self.causal:
            s = s.masked_fill(torch.ones(t, t).triu(1) > 0, float("-inf"))  # b, h, t, t
        p = self.dropout(s.softmax(3))  # b, t, t, h  #! false
        a = p @ v  # b, h, t, d
        a = a.transpose(1, 2).reshape(b, t, h * d)  # b, t, h*d
        a = self.mix(a)  # b, t, h * d
        p = p.reshape(b * h, t, t)  # b * h, t, t
        return (a, p) if return_attention else a


# %% a one is no factor, and a clause tells what a letter means | few(x[B, 1, n], y[H, B], i[E])
def few(x, y, i):
    z = x.relu()  # B x 1 x 1 x n  #! false
    u = x[:, 0]  # B x 1 x n  #! false
    z = z + 1  # B x 1 x n
    u = u + 1  # B x n
    u = u + 1  # B x n
    y = y[:, i.long() % y.shape[1]]  # [E, H], E is the number of edges, loops too  #! false
    y = y + 1  # [H, E]
    y = y + 1  # [H, E]
    return z.sum() + u.sum() + y.sum()
