"""Cosine similarities between the columns of one matrix, within heads and across them.

Source: Cohen, "50 ML projects to understand LLMs", project 33.
"""

from typing import NamedTuple

import torch

from transformer_lm.activations import gpt2_stack, with_progress
from transformer_lm.gpt2_weights import split_qkv
from transformer_lm.weight_statistics import histogram


class Cosines(NamedTuple):
    """Cosine similarities between the columns of one matrix; each pair of columns counts once.

    within: [num_heads, head_size * (head_size - 1) / 2], both columns of one head, no diagonal.
    across: [num_heads * (num_heads - 1) / 2, head_size, head_size], heads (0, 1), (0, 2) and so on.
    """

    within: torch.Tensor
    across: torch.Tensor


def normalize_columns(weight):
    """Scale each column to length 1: [..., hidden, columns] -> the same. Zero columns give nan."""
    lengths = torch.linalg.vector_norm(weight, dim=-2, keepdim=True)  # [..., 1, columns]
    return weight * lengths.reciprocal()  # [..., hidden, columns]


def column_cosines(weight, num_heads):
    """Return the Cosines of one matrix [hidden, num_heads * head_size]: one product a head.

    The cosine is between head DIMENSIONS, and not a property of the model: `regauge` changes it
    and leaves the attention as it is. Expected of random columns: mean 0, std 1 / sqrt(hidden).
    """
    size = weight.shape[1] // num_heads
    row, column = torch.triu_indices(size, size, offset=1, device=weight.device)
    strips = list(_cosine_strips(normalize_columns(weight), num_heads))
    within = torch.stack([strip[:, :size][row, column] for strip in strips])
    across = [strip[:, size:].view(size, -1, size).transpose(0, 1) for strip in strips]
    return Cosines(within, torch.cat(across))


def _cosine_strips(weight, num_heads):
    """Yield, for each head, its columns' cosines with its own and all later columns.

    weight: normalised columns, [hidden, num_heads * head_size]. A strip is
    [head_size, (num_heads - head) * head_size] and fits the processor's cache.
    """
    size = weight.shape[1] // num_heads
    for first in range(0, weight.shape[1], size):
        yield weight[:, first : first + size].T @ weight[:, first:]


def all_column_cosines(weight):
    """Return the cosines of all pairs of columns, heads or not: [columns * (columns - 1) / 2]."""
    weight = normalize_columns(weight)  # [hidden, columns]
    columns = weight.shape[1]
    row, column = torch.triu_indices(columns, columns, offset=1, device=weight.device)
    return (weight.T @ weight)[row, column]


def cosine_statistics(model, ddof=0, edges=None, progress=False):
    """Return the cosines' mean and std for all layers, and their densities where edges are given.

    Returns:
        statistics: [num_layers, 2, 2, 2]: layer; W_Q or W_K; within or across heads; mean or std.
        densities: [num_layers, 2, 2, bins] as numpy's histogram(density=True), or None.
    """
    stack = gpt2_stack(model)
    num_layers, num_heads = len(stack.h), stack.config.n_head
    statistics, densities = [], []
    for block in with_progress(stack.h, progress, "cosines by layer"):
        for weight in split_qkv(block.attn.c_attn.weight.detach())[:2]:
            if edges is None:
                statistics.append(_cosine_moments(weight, num_heads, ddof))
                continue
            for values in column_cosines(weight, num_heads):
                std, mean = torch.std_mean(values.double(), correction=ddof)
                statistics.append(torch.stack([mean, std]))
                densities.append(torch.from_numpy(histogram(values, edges).heights))
    statistics = torch.stack(statistics).view(num_layers, 2, 2, 2)
    return statistics, torch.stack(densities).view(num_layers, 2, 2, -1) if densities else None


def _cosine_moments(weight, num_heads, ddof):
    """Return mean and std, within and across heads, [2, 2], without keeping the cosines.

    All cosines of two groups of columns add up to the dot product of the groups' sums, so the means
    need no cosine at all. A head's strip holds head_size ones on its diagonal and each other cosine
    within the head twice.
    """
    size = weight.shape[1] // num_heads
    weight = normalize_columns(weight)  # [hidden, num_heads * head_size]
    heads = weight.view(-1, num_heads, size).sum(dim=-1).double()  # [hidden, num_heads]
    sums = torch.stack([heads.square().sum(), heads.sum(dim=1).square().sum()])  # [2]
    lengths = []
    for strip in _cosine_strips(weight, num_heads):
        lengths += [torch.linalg.vector_norm(part) for part in (strip[:, :size], strip[:, size:])]
    squares = torch.stack(lengths).double().square().view(num_heads, 2).sum(dim=0)  # [2]
    within = torch.stack([sums[0], squares[0]]) / 2 - weight.shape[1] / 2  # [2]: sum; of squares
    across = torch.stack([(sums[1] - sums[0]) / 2, squares[1]])  # [2]
    pairs = num_heads * sums.new_tensor([size * (size - 1), size * size * (num_heads - 1)]) / 2
    total, of_squares = torch.stack([within, across], dim=1)  # [2] each: within, across
    mean = total / pairs  # [2]
    variance = (of_squares - pairs * mean**2) / (pairs - ddof)  # [2]
    return torch.stack([mean, variance.clamp(min=0).sqrt()], dim=-1)  # [2, 2]
