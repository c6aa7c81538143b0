"""Comments on lines of their own: above the statement, below it, several lines below."""

# %% above
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        # [batch_size, seq_len, hidden]
        q = self.q(x)
        # [batch_size, seq_len, hidden]
        k = self.k(x)
        # [batch_size, seq_len, hidden]
        v = self.v(x)
        # [batch_size, seq_len, seq_len]
        scores = q @ k.transpose(1, 2) / self.root
        # [batch_size, hidden, seq_len]
        probs = F.softmax(scores, dim=-1)  #! false
        # [batch_size, seq_len, hidden]
        return probs @ v


# %% above, with blank lines and words
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        # queries, shape (batch_size, seq_len, hidden)
        q = self.q(x)

        # keys, shape (batch_size, hidden, seq_len)
        k = self.k(x)  #! false

        # values
        v = self.v(x)  #! missing

        # scores between all tokens: (batch_size, seq_len, seq_len)
        s = torch.bmm(q, k.transpose(1, 2)) / self.root

        # softmax over the keys (batch_size, seq_len, seq_len)
        p = torch.softmax(s, dim=-1)

        # mix the values: (batch_size, seq_len, seq_len)
        o = torch.bmm(p, v)  #! false

        return o


# %% below
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

        q = self.q(x)
        # [bs, seq, hidden]
        q = q.view(bs, seq, self.num_heads, self.head_size)
        # [bs, seq, num_heads, head_size]
        q = q.transpose(1, 2)
        # [bs, num_heads, seq, head_size]

        k = self.k(x)
        # [bs, seq, hidden]
        k = k.view(bs, seq, self.num_heads, self.head_size)
        # [bs, seq, num_heads, head_size]
        k = k.permute(0, 2, 3, 1)
        # [bs, num_heads, head_size, seq]

        v = self.v(x)
        # [bs, seq, hidden]
        v = v.view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, num_heads, seq, head_size]

        scores = q @ k / math.sqrt(self.head_size)  #! false
        # [bs, num_heads, head_size, head_size]

        if self.causal:
            mask = torch.ones(seq, seq).triu(1).bool()
            # [seq, seq]
            scores = scores.masked_fill(mask, float("-inf"))
            # [bs, num_heads, seq, seq]

        probs = self.dropout(scores.softmax(-1))
        # [bs, num_heads, seq, seq]

        att = probs @ v  #! false
        # [bs, seq, num_heads, head_size]

        att = att.transpose(1, 2).reshape(bs, seq, -1)
        # [bs, seq, num_heads * head_size]

        att = self.mix(att)
        # [bs, seq, hidden]

        probs = probs.reshape(bs * self.num_heads, seq, seq)
        # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att


# %% chains below, over several lines
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
        bs, seq_len, _ = x.shape
        k = self.k(x).view(bs, seq_len, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq_len, hidden]
        # -> view [bs, seq_len, num_heads, head_size]
        # -> transpose [bs, num_heads, seq_len, head_size]
        q = self.q(x).view(bs, seq_len, self.num_heads, self.head_size).transpose(1, 2)  #! false
        # [bs, seq_len, hidden]
        # -> view [bs, num_heads, seq_len, head_size]
        # -> transpose [bs, num_heads, seq_len, head_size]
        v = self.v(x).view(bs, seq_len, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq_len, hidden]
        # => [bs, seq_len, num_heads, head_size]
        # => [bs, num_heads, seq_len, head_size]
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_size)
        # [bs, num_heads, seq_len, head_size]
        # @ [bs, num_heads, head_size, seq_len]
        # -> [bs, num_heads, seq_len, seq_len]
        if self.causal:
            scores = scores + torch.full((seq_len, seq_len), float("-inf")).triu(1)
            # [bs, num_heads, seq_len, seq_len] + [seq_len, seq_len]
            # -> [bs, num_heads, seq_len, seq_len]
        probs = self.dropout(F.softmax(scores, dim=-1))
        # [bs, num_heads, seq_len, seq_len]
        att = (probs @ v).transpose(1, 2)  #! cannot tell
        # [bs, num_heads, seq_len, seq_len]
        # @ [bs, num_heads, seq_len, head_size]
        # -> [bs, num_heads, seq_len, head_size]
        att = self.mix(att.flatten(2))
        # -> flatten [bs, seq_len, hidden]
        # -> mix [bs, seq_len, hidden]
        probs = probs.flatten(0, 1)
        # 'probs' [bs, num_heads, seq_len, seq_len]
        # -> [bs * num_heads, seq_len, seq_len]
        return (att, probs) if return_attention else att


# %% one above for three in a row
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        # q, k, v: [batch_size, seq_len, hidden]
        q = self.q(x)
        k = self.k(x)
        v = self.v(x)

        s = torch.matmul(q, k.transpose(-2, -1))  # [batch_size, seq_len, seq_len]
        s = s / self.root  # [batch_size, seq_len, seq_len]
        p = s.softmax(dim=-1)  #! missing
        return p.matmul(v)  # [batch_size, seq_len, hidden]


# %% over the lines of one call
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
        k = (
            self.k(x)  # [bs, seq, hidden]
            .view(bs, seq, self.num_heads, self.head_size)  # [bs, seq, num_heads, head_size]
            .transpose(1, 2)  # [bs, num_heads, seq, head_size]
        )
        q = (
            self.q(x)
            .view(bs, seq, self.num_heads, self.head_size)
            .transpose(1, 2)
        )  # [bs, num_heads, seq, head_size]
        v = (  #! false
            self.v(x)
            .view(bs, seq, self.num_heads, self.head_size)
            .transpose(1, 2)
        )  # [bs, seq, num_heads, head_size]
        scores = torch.matmul(
            q, k.transpose(2, 3)
        ) / self.head_size**0.5  # [bs, num_heads, seq, seq]
        if self.causal:
            scores = scores.masked_fill(
                torch.ones(seq, seq).triu(1).bool(), float("-inf")
            )  # [bs, num_heads, seq, seq]
        probs = self.dropout(F.softmax(scores, -1))  # [bs, num_heads, seq, seq]
        att = self.mix((probs @ v).transpose(1, 2).reshape(bs, seq, -1))  # [bs, seq, hidden]
        return (att, probs.flatten(0, 1)) if return_attention else att  # [bs, seq, hidden], [bs * num_heads, seq, seq]
