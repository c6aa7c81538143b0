"""What the biases of queries and keys add to a head's scores: one of four terms counts.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (QK circuit).
"""

import math
from typing import NamedTuple

import torch


class ScoreTerms(NamedTuple):
    """The four terms of a head's scores; their sum, broadcast, is the scores before the mask.

    content:  x_i W_Q W_K^T x_j   [batch_size, num_heads, seq_len, seq_len]
    query:    x_i W_Q b_K         [batch_size, num_heads, seq_len, 1]: same for all keys, so the
                                  softmax does not see it
    key:      b_Q W_K^T x_j       [batch_size, num_heads, 1, seq_len]: the only bias that counts
    constant: b_Q b_K             [num_heads, 1, 1]: the softmax does not see it
    """

    content: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    constant: torch.Tensor


def score_terms(x, heads, scale=None):
    """Split (x W_Q + b_Q)(x W_K + b_K)^T * scale into its four ScoreTerms.

    x: what attention reads, ln_1 of the residual stream: [batch_size, seq_len, hidden].
    scale: 1 / sqrt(head_size) where None.
    """
    scale = 1 / math.sqrt(heads.w_q.shape[-1]) if scale is None else scale
    x = x[:, None]  # [batch_size, 1, seq_len, hidden]
    q = x @ heads.w_q * scale  # [batch_size, num_heads, seq_len, head_size]
    k = x @ heads.w_k  # [batch_size, num_heads, seq_len, head_size]
    b_q = heads.b_q[:, None] * scale  # [num_heads, 1, head_size]
    b_k = heads.b_k[:, None]  # [num_heads, 1, head_size]
    return ScoreTerms(q @ k.mT, q @ b_k.mT, b_q @ k.mT, b_q @ b_k.mT)


def bias_effect(x, heads, scale=None):
    """Return how far each bias moves the causal attention weights, per head: dict of [num_heads].

    "b_q" and "b_k": total variation distance between the pattern with all terms and without that
    bias, mean over queries and batch, from 0 (no change) to 1. "b_k" is 0 up to rounding.
    """
    terms = score_terms(x, heads, scale)
    after = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)

    def pattern(scores):
        return torch.softmax(scores.masked_fill(after, -math.inf), dim=-1)

    whole = pattern(sum(terms))  # [batch_size, num_heads, seq_len, seq_len]
    without = {"b_q": terms.content + terms.query, "b_k": terms.content + terms.key}
    return {
        name: (whole - pattern(scores)).abs().sum(dim=-1).mean(dim=(0, 2)) / 2
        for name, scores in without.items()
    }
