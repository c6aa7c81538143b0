"""The steps of attention, head by head: split, score, hide, normalise, merge.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
"""

import math

import torch


def split_heads(x, num_heads):
    """Split the last axis into heads.

    [batch_size, seq_len, hidden] -> [batch_size, num_heads, seq_len, head_size]. Raises ValueError
    where hidden is no multiple of num_heads.
    """
    batch_size, seq_len, hidden = x.shape
    if hidden % num_heads:
        raise ValueError(f"hidden size {hidden} is no multiple of num_heads {num_heads}")
    x = x.view(batch_size, seq_len, num_heads, -1)  # [batch_size, seq_len, num_heads, head_size]
    return x.transpose(1, 2)  # [batch_size, num_heads, seq_len, head_size]


def merge_heads(z):
    """Put the heads side by side again, the inverse of split_heads.

    [batch_size, num_heads, seq_len, head_size] -> [batch_size, seq_len, hidden].
    """
    return z.transpose(1, 2).flatten(2)  # [batch_size, seq_len, num_heads * head_size]


def attention_scores(q, k, scale=None, attention_mask=None, causal=True):
    """Return the scaled, masked scores, per head.

    Args:
        q, k: [batch_size, num_heads, seq_len, head_size].
        scale: the factor on the dot products; 1 / sqrt(head_size) where None.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
        causal: hide from each query the keys after it.

    Returns:
        [batch_size, num_heads, seq_len, seq_len]; -inf where a key is hidden.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale  # [batch_size, num_heads, seq_len, seq_len]
    is_hidden = torch.zeros_like(scores, dtype=torch.bool)  # same shape as scores
    if causal:
        is_hidden = is_hidden | torch.ones_like(is_hidden).triu(1)
    if attention_mask is not None:
        is_hidden = is_hidden | (attention_mask == 0)[:, None, None, :]
    return scores.masked_fill(is_hidden, -math.inf)


def attention_pattern(scores):
    """Return the attention weights: softmax over the last axis; a row with no key is all zeros.

    Such a row is put to zeros before the softmax as well, for its gradient would be nan.
    """
    no_key = (scores == -math.inf).all(dim=-1, keepdim=True)  # [..., queries, 1]
    weights = torch.softmax(scores.masked_fill(no_key, 0.0), dim=-1)  # [..., queries, keys]
    return weights.masked_fill(no_key, 0.0)  # [..., queries, keys]
