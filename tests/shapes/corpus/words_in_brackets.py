"""Words in square brackets behind the line, the commonest way."""

# %% one head, all true
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)  # [input_size, hidden]
        self.k = nn.Linear(input_size, hidden)  # [input_size, hidden]
        self.v = nn.Linear(input_size, hidden)  # [input_size, hidden]
        self.hidden = hidden

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.k(x)  # [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, seq_len, hidden]
        scores = torch.bmm(q, k.transpose(1, 2))  # [batch_size, seq_len, seq_len]
        scores = scores / math.sqrt(self.hidden)  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        att = torch.bmm(probs, v)  # [batch_size, seq_len, hidden]
        return att


# %% one head, the input taken for the result and hidden for seq_len
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.hidden = hidden

    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, input_size]  #! false
        k = self.k(x)  # [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, hidden, seq_len]  #! false
        scores = torch.bmm(q, k.transpose(1, 2))  # [batch_size, hidden, hidden]  #! false
        scores = scores / self.hidden**0.5  # [batch_size, seq_len, hidden]  #! false
        probs = torch.softmax(scores, 2)  # [batch_size, seq_len, seq_len]
        return torch.bmm(probs, v)  # [batch_size, seq_len, seq_len]  #! false


# %% one head, names of other places
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden ** -0.5

    def forward(self, x):
        bs, seq, inp = x.shape  # [bs, seq, inp]
        q = self.q(x)  # [bs, seq, hidden]
        k = self.k(x)  # [bs, seq, inp]  #! false
        v = self.v(x)  # [bs, seq, hidden]
        k_t = k.permute(0, 2, 1)  # [bs, hidden, seq]
        att = q @ k_t  # [bs, seq, seq]
        att *= self.scale  # [bs, seq, seq]
        att = att.softmax(-1)  # [seq, bs, seq]  #! false
        out = att @ v  # [bs, seq, hidden]
        return out


# %% heads in a dimension of their own
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.causal = causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        k = self.k(x)  # [bs, seq, hidden]
        q = self.q(x)  # [bs, seq, hidden]
        v = self.v(x)  # [bs, seq, hidden]
        k = k.view(bs, seq, self.num_heads, self.head_size)  # [bs, seq, num_heads, head_size]
        q = q.view(bs, seq, self.num_heads, self.head_size)  # [bs, num_heads, seq, head_size]  #! false
        v = v.view(bs, seq, self.num_heads, self.head_size)  # [bs, seq, num_heads, head_size]
        k = k.transpose(1, 2)  # [bs, num_heads, seq, head_size]
        q = q.transpose(1, 2)  # [bs, num_heads, seq, head_size]
        v = v.transpose(1, 2)  # [bs, seq, num_heads, head_size]  #! false
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_size)  # [bs, num_heads, seq, seq]
        if self.causal:
            mask = torch.triu(torch.ones(seq, seq), diagonal=1).bool()  # [seq, seq]
            scores.masked_fill_(mask, float("-inf"))  # [bs, num_heads, seq, seq]
        probs = self.dropout(torch.softmax(scores, dim=-1))  # [bs, num_heads, head_size, head_size]  #! false
        att = torch.matmul(probs, v)  # [bs, num_heads, seq, head_size]
        att = att.transpose(1, 2).contiguous()  # [bs, seq, num_heads, head_size]
        att = att.view(bs, seq, -1)  # [bs, seq, hidden]
        att = self.mix(att)  # [bs, seq, hidden]
        probs = probs.view(bs * self.num_heads, seq, seq)  # [bs * num_heads, seq, seq]
        if return_attention:
            return att, probs
        return att


# %% heads folded into the batch
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
        batch_size, seq_len, _ = x.size()
        k = self.k(x).view(batch_size, seq_len, self.num_heads, self.head_size)  # [batch_size, seq_len, num_heads, head_size]
        k = k.transpose(1, 2).reshape(batch_size * self.num_heads, seq_len, self.head_size)  # [batch_size * num_heads, seq_len, head_size]
        q = self.q(x).view(batch_size, seq_len, self.num_heads, self.head_size)  # [batch_size, seq_len, num_heads, hidden / num_heads]
        q = q.transpose(1, 2).reshape(batch_size * self.num_heads, seq_len, self.head_size)  # [batch_size * num_heads, seq_len, hidden / num_heads]
        v = self.v(x).view(batch_size, seq_len, self.num_heads, self.head_size)  # [batch_size, seq_len, num_heads, head_size]
        v = v.transpose(1, 2).reshape(batch_size * self.num_heads, seq_len, self.head_size)  # [hidden / num_heads, seq_len, batch_size * num_heads]  #! false
        scores = torch.bmm(q, k.transpose(1, 2)) / self.head_size**0.5  # [num_heads, seq_len, seq_len]  #! false
        if self.causal:
            future = torch.ones(seq_len, seq_len).triu(1)  # [seq_len, seq_len]
            scores = scores.masked_fill(future == 1, -1e9)  # [seq_len, seq_len]  #! false
        probs = F.softmax(scores, dim=2)  # [batch_size * num_heads, seq_len, seq_len]
        probs = self.dropout(probs)  # [batch_size * num_heads, seq_len, hidden]  #! false
        att = torch.bmm(probs, v)  # [batch_size * num_heads, seq_len, head_size]
        att = att.view(batch_size, self.num_heads, seq_len, self.head_size)  # [batch_size, num_heads, seq_len, head_size]
        att = att.transpose(1, 2).reshape(batch_size, seq_len, -1)  # [batch_size, seq_len, num_heads * head_size]
        att = self.mix(att)  # [batch_size, seq_len, hidden]
        return (att, probs) if return_attention else att

# %% what a tensor will be | Later(width)(x[batch, steps, width])
class Later(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Linear(width, width)

    def forward(self, x):
        # the weighed tokens are going to be (batch, steps, width)
        y = self.w(x)

        # the mean of the tokens will be (width, batch)
        y = y.mean(1)  #! false

        # the steps come first, and the rows will be [steps, batch, width]
        x = x.transpose(0, 1)
        return y + x  # [steps, batch, width]

# %% a dimension too many at the end of a chain | Joined(heads, width)(x[batch, heads, steps, width])
class Joined(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads, self.width = heads, width

    def forward(self, x):
        batch, heads, steps, width = x.shape

        # (batch, heads, steps, width) -> (1, batch, number_of_rows, channels)
        x = x.reshape(batch, heads * steps, width)  #! false
        return x.mean(1)  # (batch, width)

# %% what a product is made of, in a block | Blocks(width)(x[batch, seq_len, width], y[batch, k_len, width])
class Blocks(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Linear(width, width)

    def forward(self, x, y):
        # the product of both
        #      x: [batch, seq_len, width]
        #   keys: [batch, width, seq_len]
        # result: [batch, seq_len, seq_len]
        keys = y.mT  #! cannot tell
        x = torch.softmax(x @ keys, -1)  #! missing

        # the mean of the values
        #      x: [batch, seq_len, seq_len]
        # result: [batch, seq_len, width]
        x = x @ y  #! cannot tell

        # one name for both lengths
        y = self.w(y)  # [batch, seq_len, width]  #! cannot tell
        return x.sum(1) + y.sum(1)  # [batch, width]
