"""Slips of the pen, remarks in brackets, labels before a dash, lists of what comes in and out."""

# %% a lost comma, a dot for a comma, a pair of indices
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch seq, hidden]  #! cannot tell
        k = self.k(x)  # [batch, seq hidden]  #! cannot tell
        v = self.v(x)  # [batch hidden, seq]  #! cannot tell
        scores = q @ k.mT  # [batch, seq. seq]  #! cannot tell
        scores = scores / self.scale  # [batch, seq, seq] (divide by sqrt(hidden))
        # (i, j) is how much token i looks at token j
        probs = scores.softmax(dim=2)  # [batch, seq, seq], rows sum to 1
        return probs @ v  # [batch, seq, seq]  #! false


# %% numbered steps, with remarks in brackets
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        # 1. project the inputs to Q, K, V: all [batch, seq, hidden]
        q = self.q(x)
        k = self.k(x)
        v = self.v(x)
        # 2. scores [batch, seq, seq]
        scores = q @ k.transpose(1, 2) / self.scale
        # 3. softmax over the last dim (keys) [batch, seq, seq]
        probs = torch.softmax(scores, dim=2)
        # 4. weighted sum of the values [batch, seq, hidden]
        out = probs @ v
        return out


# %% labels before a dash
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        # x - batch x seq x input
        q = self.q(x)  # q - batch x seq x hidden
        k = self.k(x)  # k - batch x seq x hidden
        v = self.v(x)  # v - batch x seq x input  #! false
        zero = torch.zeros(1)  # (1,)
        scores = q @ k.transpose(1, 2) / self.scale + zero  # scores - batch x seq x seq
        probs = scores.softmax(-1)  # probs - batch x seq x hidden  #! false
        return probs @ v  # batch x seq x hidden


# %% what comes in and what goes out, above the first line
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.qkv = nn.Linear(input_size, 3 * hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.causal = causal

    def forward(self, x, return_attention=False):
        # ---- shapes ----
        # x: [batch, seq, input]
        # out: [batch, seq, hidden]
        # probs: [batch * num_heads, seq, seq]
        batch, seq, _ = x.shape  #! cannot tell
        size = (batch, seq, self.num_heads, self.head_size)
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # [batch, seq, hidden] each
        q = q.view(size).transpose(1, 2)  # [batch, num_heads, seq, head_size]
        k = k.view(size).transpose(1, 2)  # [batch, num_heads, seq, head_size]
        v = v.view(size).transpose(1, 2)  # [batch, seq, num_heads, head_size]  #! false
        scores = q @ k.mT / self.head_size**0.5  # [batch, num_heads, seq, seq]
        if self.causal:
            mask = torch.ones(seq, seq).triu(1).bool()  # bool mask [seq, seq]
            scores = scores.masked_fill(mask, -1e9)  # [batch, num_heads, seq, seq]
        probs = scores.softmax(dim=-1)  # [batch, num_heads, seq, seq]
        out = (probs @ v).transpose(1, 2).flatten(2)  # [batch, seq, num_heads * head_size]
        out = self.mix(out)  # [batch, seq, hidden]
        if return_attention:
            probs = probs.flatten(0, 1)  # [batch, num_heads * seq, seq]  #! false
            return out, probs
        return out


# %% formulas above the lines, with names of their own
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        queries = self.q(x)  # [bs, seq, hidden]
        keys = self.k(x)  # [bs, seq, hidden]
        values = self.v(x)  # [bs, seq, hidden]

        # A = QK^T
        # Q:   [bs, seq, hidden]
        # K^T: [bs, hidden, seq]
        # A:   [bs, seq, seq]
        A = torch.matmul(queries, keys.transpose(-2, -1))

        A = A / self.scale  # [bs, seq, seq] / [1]
        A = A.softmax(dim=-1)  # [bs, seq, seq]

        # O = AV
        # A: [bs, seq, seq]
        # V: [bs, seq, hidden]
        # O: [bs, hidden, seq]
        O = torch.matmul(A, values)  #! false
        return O / 1.0  # [bs, hidden, seq] / [1]  #! false
