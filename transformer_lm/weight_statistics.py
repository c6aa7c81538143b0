"""The statistics of W_Q, W_K and W_V as heaps of numbers, and how they are distributed.

Sources: Cohen, "50 ML projects to understand LLMs", project 33 (the statistics of W_Q, W_K and
W_V); Freedman and Diaconis 1981 (histogram bins).
"""

from typing import NamedTuple

import numpy as np
import torch

from transformer_lm.activations import gpt2_stack
from transformer_lm.gpt2_weights import split_qkv


def qkv_statistics(model, ddof=1):
    """Return the mean and standard deviation of W_Q, W_K and W_V: [num_layers, 3, 2], float64.

    ddof: 1 as in torch.std, 0 as in numpy.std.
    """
    rows = []
    for block in gpt2_stack(model).h:
        parts = torch.stack(split_qkv(block.attn.c_attn.weight.detach().double()))
        stds, means = torch.std_mean(parts, dim=(1, 2), correction=ddof)  # [3] each
        rows.append(torch.stack([means, stds], dim=-1))
    return torch.stack(rows)  # [num_layers, 3, 2]


class Histogram(NamedTuple):
    """centres: [bins], the middle of each bin. heights: [bins]. outside: the share beyond the edges
    (0 for automatic bins), which a density does not show."""

    centres: np.ndarray
    heights: np.ndarray
    outside: float


def histogram(values, bins="fd", density=True):
    """Count values into bins.

    bins: "fd" (Freedman and Diaconis: width 2 IQR / n^(1/3)), a number, or the edges. density:
    heights integrate to 1 over the values inside the edges; False for plain counts.
    """
    values = np.asarray(torch.as_tensor(values).detach().cpu()).ravel()
    heights, edges = np.histogram(values, bins=bins, density=density)
    outside = np.mean((values < edges[0]) | (values > edges[-1]))
    return Histogram((edges[:-1] + edges[1:]) / 2, heights, float(outside))
