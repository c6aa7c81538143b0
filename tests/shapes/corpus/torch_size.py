"""As PyTorch prints it, and with words before it."""

# %% torch.Size
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        query = self.q(x)  # torch.Size([batch_size, seq_len, hidden])
        key = self.k(x)  # torch.Size([batch_size, seq_len, hidden])
        value = self.v(x)  # torch.Size([batch_size, seq_len, input_size])  #! false
        scores = torch.matmul(query, key.mT)  # torch.Size([batch_size, seq_len, seq_len])
        scores = scores / self.root  # torch.Size([batch_size, hidden, seq_len])  #! false
        weights = torch.softmax(scores, dim=-1)  # torch.Size([batch_size, seq_len, seq_len])
        return torch.matmul(weights, value)  # torch.Size([batch_size, seq_len, hidden])


# %% shape: and its cousins
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # shape: [batch_size, seq_len, hidden]
        k = self.k(x)  # shape = (batch_size, seq_len, hidden)
        v = self.v(x)  # Shape [batch_size, seq_len, hidden]
        kt = k.transpose(1, 2)  # shape of kt: [batch_size, seq_len, hidden]  #! false
        s = torch.bmm(q, kt)  # size: (batch_size, seq_len, seq_len)
        s = s / self.root  # dims: (batch_size, seq_len, seq_len)
        p = F.softmax(s, dim=-1)  # probs have shape [batch_size, seq_len, seq_len]
        a = torch.bmm(p, v)  # output shape: [batch_size, seq_len, hidden]
        return a * 1.0  # the result is of shape [batch_size, hidden, seq_len]  #! false


# %% a label before it
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.root = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # q: [batch_size, seq_len, hidden]
        k = self.k(x)  # k = [batch_size, seq_len, hidden]
        v = self.v(x)  # v: (batch_size, seq_len, input_size)  #! false
        s = q @ k.transpose(1, 2)  # s: [batch_size, seq_len, seq_len]
        p = F.softmax(s / self.root, dim=-1)  # `p`: [batch_size, seq_len, seq_len]
        return p @ v  # out: [batch_size, seq_len, hidden]


# %% sentences
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.size, self.causal = num_heads, hidden // num_heads, causal
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        bs, seq_len, _ = x.shape
        k = self.k(x).view(bs, seq_len, self.num_heads, self.size)  # split the heads, this is [bs, seq_len, num_heads, head_size]
        q = self.q(x).view(bs, seq_len, self.num_heads, self.size)  # same for the queries: [bs, seq_len, num_heads, head_size]
        v = self.v(x).view(bs, seq_len, self.num_heads, self.size)  # and the values (bs, seq_len, head_size, num_heads)  #! false
        k = k.permute(0, 2, 3, 1)  # keys get transposed at once, so we have [bs, num_heads, head_size, seq_len]
        q, v = q.transpose(1, 2), v.transpose(1, 2)  # both are now [bs, num_heads, seq_len, head_size]
        scores = q @ k  # one score for each pair of tokens, in every head: [bs, num_heads, seq_len, seq_len]
        scores = scores / self.size**0.5  # scaled, the shape stays [bs, num_heads, seq_len, seq_len]
        if self.causal:
            # the future is hidden
            mask = torch.ones(seq_len, seq_len).tril() == 0  # True above the diagonal, [seq_len, seq_len]
            scores[:, :, mask] = float("-inf")  # [bs, num_heads, seq_len, seq_len]
        probs = self.dropout(scores.softmax(-1))  # rows sum to 1; shape [bs, seq_len, num_heads, seq_len]  #! false
        out = (probs @ v).transpose(1, 2).flatten(2)  # heads side by side again, [bs, seq_len, hidden]
        out = self.mix(out)  # a last layer mixes them  #! missing
        return (out, probs.flatten(0, 1)) if return_attention else out  # out [bs, seq_len, hidden], probs [bs * num_heads, seq_len, seq_len]
