"""Self-attention in six steps, from a weighted average without weights to many heads.

Read from top to bottom; each step changes one thing of the step before. After "Attention Is All
You Need" (Vaswani et al., 2017), section 3.2: softmax(Q K^T / sqrt(d_k)) V.
"""

import torch
import torch.nn.functional as F
from torch import nn


def simple_attention(x):
    """Attention with nothing to learn: each token becomes an average of all, by similarity.

    Args:
        x: FloatTensor[seq_len, hidden]
    Returns:
        FloatTensor[seq_len, hidden], the context vectors
    """
    scores = x @ x.T  # [seq_len, seq_len]
    weights = torch.softmax(scores, dim=-1)  # [seq_len, seq_len]
    return weights @ x  # [seq_len, hidden]


class ParameterAttention(nn.Module):
    """Queries, keys and values get matrices of their own, as bare parameters and without a batch.

    The matrices are [input_size, hidden] and multiply from the right: x @ w_query. They begin as
    normal numbers divided by sqrt(input_size), so that inputs of spread 1 give queries, keys and
    values of spread 1. (`torch.rand` would not do: its numbers are all positive.)
    """

    def __init__(self, input_size, hidden):
        super().__init__()
        spread = input_size**-0.5
        self.w_query = nn.Parameter(torch.randn(input_size, hidden) * spread)
        self.w_key = nn.Parameter(torch.randn(input_size, hidden) * spread)
        self.w_value = nn.Parameter(torch.randn(input_size, hidden) * spread)

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V for one sequence.

        Args:
            x: FloatTensor[seq_len, input_size]
        Returns:
            FloatTensor[seq_len, hidden]
        """
        queries = x @ self.w_query  # [seq_len, hidden]
        keys = x @ self.w_key  # [seq_len, hidden]
        values = x @ self.w_value  # [seq_len, hidden]
        scores = queries @ keys.T / keys.shape[-1] ** 0.5  # [seq_len, seq_len]
        return torch.softmax(scores, dim=-1) @ values  # [seq_len, hidden]


class SelfAttention(nn.Module):
    """One head of self-attention over a batch, with `nn.Linear` projections q, k and v."""

    def __init__(self, input_size, hidden):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
        """
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V, for each sequence of the batch.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        q = self.q(x)  # [batch_size, seq_len, hidden]
        scores = q @ self.k(x).transpose(1, 2) / self.scale  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]


class CausalSelfAttention(nn.Module):
    """One head that sees no later token, with dropout on its attention weights."""

    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
            context_length: int, the longest sequence it can take
            dropout: float, the probability of dropping an attention weight in training
        """
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5
        self.dropout = nn.Dropout(dropout)
        size = (context_length, context_length)
        mask = torch.ones(size).triu(1).bool()  # [context_length, context_length]
        # A buffer moves with the module; not being learned, it need not be stored with it.
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, input_size], seq_len <= context_length
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        seq_len = x.shape[1]
        q = self.q(x)  # [batch_size, seq_len, hidden]
        scores = q @ self.k(x).transpose(1, 2) / self.scale  # [batch_size, seq_len, seq_len]
        future = self.mask[:seq_len, :seq_len]  # [seq_len, seq_len]
        scores = scores.masked_fill(future, float("-inf"))  # [batch_size, seq_len, seq_len]
        probs = self.dropout(F.softmax(scores, dim=-1))  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]


class HeadStack(nn.Module):
    """Several causal heads, one after the other, their outputs side by side.

    `head_size` is the width of one head: the output is num_heads * head_size wide.
    """

    def __init__(self, input_size, head_size, context_length, num_heads, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalSelfAttention(input_size, head_size, context_length, dropout)
            for _ in range(num_heads)
        )

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        Returns:
            FloatTensor[batch_size, seq_len, num_heads * head_size]
        """
        outputs = [head(x) for head in self.heads]  # num_heads x [batch_size, seq_len, head_size]
        return torch.cat(outputs, dim=-1)  # [batch_size, seq_len, num_heads * head_size]


class MultiHeadSelfAttention(nn.Module):
    """All heads at once: one projection for all, split into heads, merged and mixed again."""

    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of the outputs, and of all heads together
            num_heads: int, number of heads, a divisor of hidden
            causal: bool, hide the keys of later tokens from each query
            dropout: float, the probability of dropping an attention weight in training
        Raises:
            ValueError: where num_heads does not divide hidden
        """
        if hidden % num_heads:
            raise ValueError(
                f"hidden must be divisible by num_heads, got hidden={hidden} and "
                f"num_heads={num_heads}"
            )
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        """Concat(head_1, ..., head_h) W^O, as in section 3.2.2 of the paper.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
            return_attention: bool, return the probabilities too
        Returns:
            FloatTensor[batch_size, seq_len, hidden] and, where asked for, the probabilities as
            they were used (after dropout), FloatTensor[batch_size * num_heads, seq_len, seq_len];
            those of head h of item b stand at b * num_heads + h.
        """
        bs, seq, _ = x.shape

        k = self.k(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        q = self.q(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        v = self.v(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        scores = q @ k.transpose(-2, -1) / self.scale
        # [bs, num_heads, seq, head_size] @ [bs, num_heads, head_size, seq]
        # -> [bs, num_heads, seq, seq]

        if self.causal:
            future = torch.ones(seq, seq, device=scores.device).triu(1).bool()  # [seq, seq]
            scores = scores.masked_fill(future, float("-inf"))  # [bs, num_heads, seq, seq]

        probs = self.dropout(F.softmax(scores, dim=-1))  # [bs, num_heads, seq, seq]
        att = probs @ v
        # [bs, num_heads, seq, seq] @ [bs, num_heads, seq, head_size]
        # -> [bs, num_heads, seq, head_size]
        att = att.transpose(1, 2).reshape(bs, seq, self.num_heads * self.head_size)
        # [bs, num_heads, seq, head_size] -> transpose [bs, seq, num_heads, head_size]
        # -> reshape [bs, seq, hidden]
        att = self.mix(att)  # [bs, seq, hidden]
        probs = probs.reshape(bs * self.num_heads, seq, seq)  # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att
