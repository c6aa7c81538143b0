"""The homework as its own hand-out would have it commented, its two slips included."""

# %% one head; the layers with their arguments in order
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super(SelfAttention, self).__init__()
        # Task 1.1: the layers (1 point)
        # YOUR CODE STARTS HERE
        self.q = nn.Linear(input_size, hidden) # [input_size, hidden]
        self.k = nn.Linear(input_size, hidden) # [input_size, hidden]
        self.v = nn.Linear(input_size, hidden) # [hidden, input_size]
        self.scale = math.sqrt(hidden)
        # YOUR CODE ENDS HERE

    def forward(self, x):
        # YOUR CODE STARTS HERE
        q = self.q(x) # [batch_size, seq_len, hidden]
        scores = torch.bmm(q, self.k(x).transpose(1, 2)) / self.scale # [batch_size, seq_len, hidden] @ [batch_size, hidden, seq_len] -> [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1) # [batch_size, seq_len, seq_len]
        return torch.bmm(probs, self.v(x)) # [batch_size, seq_len, seq_len] @ [batch_size, seq_len, hidden] -> [batch_size, seq_len, hidden]
        # YOUR CODE ENDS HERE


# %% many heads; the chain forgets the linear step
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super(MultiHeadSelfAttention, self).__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.scale = math.sqrt(self.head_size)
        self.causal = causal

    def forward(self, x, return_attention=False):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        """
        bs, seq, _ = x.shape
        # Task 2.1
        # YOUR CODE STARTS HERE
        k = self.k(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # shape [batch_size, num_heads, seq_len, head_size]
        # 'k' [batch_size, seq_len, input_size]
        # -> view [batch_size, seq_len, num_heads, head_size]
        # -> transpose [batch_size, num_heads, seq_len, head_size]
        q = self.q(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # shape [batch_size, num_heads, seq_len, head_size]
        # 'q' [batch_size, seq_len, input_size]
        # -> view [batch_size, seq_len, num_heads, head_size]
        # -> transpose [batch_size, num_heads, seq_len, head_size]
        v = self.v(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # shape [batch_size, num_heads, seq_len, head_size]
        # 'v' [batch_size, seq_len, input_size]
        # -> view [batch_size, seq_len, num_heads, head_size]
        # -> transpose [batch_size, num_heads, seq_len, head_size]
        scores = q @ k.transpose(-1, -2) / self.scale
        # shape [batch_size, num_heads, seq_len, seq_len]
        # 'q' [batch_size, num_heads, seq_len, head_size]
        # @ 'k.T' [batch_size, num_heads, head_size, seq_len]
        # -> [batch_size, num_heads, seq_len, seq_len]
        # YOUR CODE ENDS HERE
        if self.causal:
            # Task 2.2
            # YOUR CODE STARTS HERE
            causal_mask = torch.triu(torch.ones(seq, seq), diagonal=1).bool() # [seq_len, seq_len]
            scores = scores.masked_fill(causal_mask, float("-inf")) # [bs, num_heads, seq_len, seq_len]
            # YOUR CODE ENDS HERE
        # Task 2.3
        # YOUR CODE STARTS HERE
        probs = F.softmax(scores, dim=-1) # [bs, num_heads, seq_len, seq_len]
        probs = self.dropout(probs) # [bs, num_heads, seq_len, seq_len]
        att = probs @ v
        # [bs, num_heads, seq_len, seq_len]
        # @ [bs, num_heads, seq_len, head_size] -> [bs, num_heads, seq_len, head_size]
        probs = probs.reshape(bs * self.num_heads, seq, seq)
        # 'probs' [bs, num_heads, seq_len, seq_len]
        # -> reshape [bs * num_heads, seq_len, seq_len]
        att = att.transpose(1, 2).contiguous().view(bs, seq, -1) # [bs, num_heads, seq_len, head_size] -> [bs, seq_len, num_heads, head_size] -> [bs, seq_len, hidden]
        att = self.mix(att)
        # [bs, seq_len, hidden] @ [hidden, hidden] -> [bs, seq_len, hidden]
        # YOUR CODE ENDS HERE
        return (att, probs) if return_attention else att


# %% many heads, as several students get it wrong
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.causal = causal

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        k = self.k(x) # [bs, seq, hidden] @ [hidden, hidden]  #! false
        k = k.view(bs, seq, self.num_heads, self.head_size).transpose(1, 2) # [bs, seq, num_heads, head_size]  #! false
        q = self.q(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2) # shape [batch_size, num_heads, seq_len, hidden // num_heads]
        v = self.v(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2) # shape [batch_size, num_heads, seq_len, hidden]  #! false
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.head_size ** 0.5 # [bs, num_heads, hidden, hidden]  #! false
        if self.causal:
            mask = torch.tril(torch.ones(seq, seq)) # [bs, seq, seq]  #! false
            scores = scores.masked_fill(mask == 0, float("-inf")) # [bs, num_heads, seq, seq]
        probs = self.dropout(F.softmax(scores, dim=-1)) # [batch * heads, seq, seq]  #! false
        att = torch.matmul(probs, v) # [bs, seq, hidden]  #! false
        att = att.transpose(1, 2).contiguous().view(bs, seq, -1) # [bs, seq, hidden]
        att = self.mix(att) # [bs, num_heads, hidden]  #! false
        probs = probs.view(bs * self.num_heads, seq, seq) # [bs, num_heads, seq, seq]  #! false
        if return_attention:
            return att, probs # [bs, seq, hidden], [bs * num_heads, seq, seq]
        return att
