"""Six kinds of attention behind one door, to be told apart by what they do.

A box is a function ``attend(q, k, v)`` of one sequence and one head: q and k [seq_len, size],
v [seq_len, value_size], and the outputs [seq_len, value_size].
"""

import torch
import torch.nn.functional as F

KINDS = ("full", "causal", "window", "alibi", "rope", "linear")


def black_box(kind, window=5, slope=0.25):
    """Return a box of that kind.

    window: how many tokens a token of the kind "window" sees, itself among them. slope: what a
    step back costs in the kind "alibi".
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")

    def attend(q, k, v):
        seq_len, size = q.shape
        places = torch.arange(seq_len)  # [seq_len]
        distance = places[:, None] - places  # [seq_len, seq_len]
        if kind == "linear":
            weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).T).tril()  # [seq_len, seq_len]
            return weights / weights.sum(dim=-1, keepdim=True) @ v  # [seq_len, value_size]
        if kind == "rope":
            q, k = turn(q), turn(k)  # [seq_len, size] each
        scores = q @ k.T / size**0.5  # [seq_len, seq_len]
        if kind == "alibi":
            scores = scores - slope * distance  # [seq_len, seq_len]
        hidden = distance < 0  # [seq_len, seq_len]
        if kind == "full":
            hidden = torch.zeros_like(hidden)  # [seq_len, seq_len]
        if kind == "window":
            hidden = hidden | (distance >= window)  # [seq_len, seq_len]
        scores = scores.masked_fill(hidden, -torch.inf)  # [seq_len, seq_len]
        return torch.softmax(scores, dim=-1) @ v  # [seq_len, value_size]

    return attend


def turn(x, base=10000.0):
    """Rotate each pair (i, i + size / 2) of x [seq_len, size] by its place times its speed."""
    a, b = x.chunk(2, dim=-1)  # [seq_len, size / 2] each
    speeds = base ** (-2 * torch.arange(a.shape[-1]) / x.shape[-1])  # [size / 2]
    angles = torch.arange(len(x))[:, None] * speeds  # [seq_len, size / 2]
    cos, sin = angles.cos(), angles.sin()  # [seq_len, size / 2] each
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)  # [seq_len, size]
