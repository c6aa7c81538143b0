"""Functions of one tensor that give one number, to try a gradient on.

Each ``make`` returns a function: what is fixed in it comes first, the tensor that is moved later.
"""

import torch


def weighted_attention(q, k, v, weight):
    """Return x -> sum(weight * attention(q + x, k, v)), one smooth number.

    Args:
        q, k, v: FloatTensor[seq_len, head_size]
        weight: FloatTensor[seq_len, head_size], what each output counts
    """
    q, k, v, weight = (t.double() for t in (q, k, v, weight))

    def loss(x):
        scores = (q.to(x) + x) @ k.to(x).T / k.shape[-1] ** 0.5  # [seq_len, seq_len]
        return (torch.softmax(scores, dim=-1) @ v.to(x) * weight.to(x)).sum()  # []

    return loss


def cubic(weight):
    """Return x -> sum(weight * x**3): a curve whose third derivative does not vanish."""

    def loss(x):
        return (weight.to(x) * x**3).sum()  # []

    return loss
