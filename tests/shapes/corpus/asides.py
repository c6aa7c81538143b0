"""Remarks about another tensor, lists of labels, comments between blank lines."""

# %% each comment between blank lines, named
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        #x = [batch size, seq len, input dim]

        Q = self.q(x)
        K = self.k(x).permute(0, 2, 1)
        V = self.v(x)

        #Q = [batch size, query len, hid dim]
        #K = [batch size, hid dim, key len]
        #V = [batch size, value len, hid dim]

        energy = torch.bmm(Q, K) / self.scale

        #energy = [batch size, query len, key len]

        attention = torch.softmax(energy, dim=-1)  #! false

        #attention = [batch size, query len, hid dim]

        x = torch.bmm(attention, V)

        #x = [batch size, query len, hid dim]

        return x


# %% a list of labels above the lines, with different shapes
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        # Q: (batch, seq, hidden)
        # K_T: (batch, hidden, seq)
        # V: (batch, hidden, seq)
        Q = self.q(x)
        K_T = self.k(x).transpose(1, 2)
        V = self.v(x)  #! false

        # S: (batch, seq, seq)
        # out: (batch, seq, hidden)
        S = torch.softmax(Q @ K_T / self.scale, dim=-1)
        out = S @ V
        return out


# %% headings between blank lines
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.scale, self.causal = num_heads, (hidden // num_heads) ** 0.5, causal

    def forward(self, x, return_attention=False):
        B, S, _ = x.shape

        # Project: (B, S, I) -> (B, S, E)

        q = self.q(x)
        k = self.k(x)
        v = self.v(x)

        # Split heads: (B, S, E) -> (B, H, S, E/H)

        q = q.view(B, S, self.num_heads, -1).transpose(1, 2)
        k = k.view(B, S, self.num_heads, -1).transpose(1, 2)
        v = v.view(B, S, self.num_heads, -1).transpose(1, 2)

        # Scores: (B, H, S, E/H) @ (B, H, E/H, S) -> (B, H, S, S)

        s = q @ k.transpose(2, 3) / self.scale

        # Mask: (S, S), broadcast over B and H

        if self.causal:
            s = s + torch.full((S, S), -torch.inf).triu(1)  # (B, H, S, S)

        p = s.softmax(-1)  #! missing

        # Weighted sum, merge heads: (B, H, S, E/H) -> (B, S, E)

        o = (p @ v).transpose(1, 2).reshape(B, S, -1)
        o = self.mix(o)  # (B, S, E)
        p = p.flatten(0, 1)  # (B * H, S, S)
        return (o, p) if return_attention else o


# %% shapes of other tensors in a remark
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape  #! cannot tell
        # Step 1: project. x: [bs, seq, input_size], W_q: [input_size, hidden]
        q = self.q(x)  # [bs, seq, hidden]
        k = self.k(x)  # [bs, seq, hidden] (not [bs, hidden, seq])  #! cannot tell
        v = self.v(x)  # same as q  #! cannot tell
        q = q.view(bs, -1, self.num_heads, self.head_size)  # view(bs, -1, num_heads, head_size) -> [bs, seq, num_heads, head_size]
        k = k.view(bs, -1, self.num_heads, self.head_size)  # view(bs, -1, num_heads, head_size) -> [bs, seq, head_size, num_heads]  #! false
        v = v.view(bs, -1, self.num_heads, self.head_size)  # bs x seq x num_heads x head_size (hidden is split)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # bs x heads x seq x head_size, hidden = heads * head_size
        s = q @ k.mT / self.head_size**0.5  # [bs, num_heads, seq, seq], most of them in [-1, 1]
        if self.causal:
            mask = torch.ones(1, 1, seq, seq).triu(1).bool()  # [1, 1, seq, seq] -> broadcast to [bs, num_heads, seq, seq]
            mask = mask[0]  # [1, seq, seq] will be broadcast to [bs, num_heads, seq, seq]  #! cannot tell
            mask = mask[0]  # [1, seq, seq] -> broadcast to [bs, num_heads, seq, seq]  #! false
            s = s.masked_fill(mask[None], -torch.inf)  # mask: [1, seq, seq], s: [bs, num_heads, seq, seq]
        p = s.softmax(-1)  # ditto  #! cannot tell
        o = p @ v  # [bs, num_heads, seq, head_size]
        o = o.transpose(1, 2).flatten(2)  # (bs, seq, hidden) since mix needs (n, m, hidden)  #! cannot tell
        o = self.mix(o)  # o ∈ ℝ^{bs×seq×hidden}
        p = p.flatten(0, 1)  # [bs * num_heads, seq, seq]
        return (o, p) if return_attention else o
