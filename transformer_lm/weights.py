"""Read the attention weights of a GPT-2: heads, the QK and OV matrices, similarities, baselines.

Conv1D keeps its weight as [in, out]: columns are output features, so queries, keys and values, and
the heads within each, are split along dim 1. Head h works with three [hidden, head_size] matrices
and one [head_size, hidden] matrix. Its QK matrix W_Q W_K^T and its OV matrix W_V W_O are
[hidden, hidden] with a rank of head_size at most; every spectrum and norm here comes from small
problems (QR or Gram), never from the big product.

Sources: Vaswani et al. 2017, section 3.2.2 (heads); Elhage et al. 2021, "A Mathematical Framework
for Transformer Circuits" (QK and OV circuits); Cohen, "50 ML projects to understand LLMs",
project 33 (the statistics of W_Q, W_K and W_V); Freedman and Diaconis 1981 (histogram bins).
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from transformer_lm.activations import gpt2_stack, with_progress


class HeadWeights(NamedTuple):
    """One layer's attention weights, split by head; right multiplication: q = x @ w_q[h] + b_q[h].

    w_q, w_k, w_v: [num_heads, hidden, head_size].  b_q, b_k, b_v: [num_heads, head_size].
    w_o: [num_heads, head_size, hidden].            b_o: [hidden], shared by all heads.
    """

    w_q: torch.Tensor
    w_k: torch.Tensor
    w_v: torch.Tensor
    w_o: torch.Tensor
    b_q: torch.Tensor
    b_k: torch.Tensor
    b_v: torch.Tensor
    b_o: torch.Tensor


# --- From the model to the heads ---------------------------------------------------------------


def attention_sizes(config):
    """Return a GPT-2 config's num_layers, hidden, num_heads and head_size, as a dict."""
    return {
        "num_layers": config.n_layer,
        "hidden": config.n_embd,
        "num_heads": config.n_head,
        "head_size": config.n_embd // config.n_head,
    }


def count_attention_parameters(config):
    """Return how many numbers, weights and biases, all layers' attention has.

    c_attn has hidden x 3 hidden weights and 3 hidden biases, c_proj hidden x hidden and hidden.
    """
    hidden = config.n_embd
    return config.n_layer * (4 * hidden * hidden + 4 * hidden)


def split_qkv(wide, dim=-1):
    """Cut c_attn's weight [hidden, 3 * hidden] (or bias) into q, k and v, in this order.

    Raises ValueError where the size along ``dim`` is no multiple of three.
    """
    if wide.shape[dim] % 3:
        raise ValueError(f"size {wide.shape[dim]} along dim {dim} is no multiple of three")
    return wide.chunk(3, dim=dim)


def split_columns(weight, num_heads):
    """Split the columns by head: [hidden, num_heads * head_size] -> [num_heads, hidden, head_size].

    Raises ValueError where the number of columns is no multiple of num_heads.
    """
    rows, columns = weight.shape
    if columns % num_heads:
        raise ValueError(f"{columns} columns cannot be shared by {num_heads} heads")
    return weight.view(rows, num_heads, -1).transpose(0, 1)  # [num_heads, hidden, head_size]


def head_weights(model, layer, fold_layer_norm=False):
    """Return one layer's HeadWeights (views of the model's weights, detached).

    fold_layer_norm: move ln_1's gain and shift into w_q, w_k, w_v and their biases, so that the
    heads read the normalised residual stream before gain and shift (Elhage et al. 2021).
    """
    stack = gpt2_stack(model)
    attention, norm = stack.h[layer].attn, stack.h[layer].ln_1
    num_heads = stack.config.n_head
    wide, bias = attention.c_attn.weight.detach(), attention.c_attn.bias.detach()
    if fold_layer_norm:
        bias = bias + norm.bias.detach() @ wide  # [3 * hidden]
        wide = norm.weight.detach()[:, None] * wide  # [hidden, 3 * hidden]
    w_q, w_k, w_v = (split_columns(w, num_heads) for w in split_qkv(wide))
    b_q, b_k, b_v = (b.view(num_heads, -1) for b in split_qkv(bias))  # [num_heads, head_size]
    out = attention.c_proj.weight.detach()  # [hidden, hidden]
    w_o = out.view(num_heads, -1, out.shape[1])  # [num_heads, head_size, hidden]
    return HeadWeights(w_q, w_k, w_v, w_o, b_q, b_k, b_v, attention.c_proj.bias.detach())


def qk_matrix(heads, head):
    """Form W_Q W_K^T of one head, [hidden, hidden]: for pictures, no spectrum needs it."""
    return heads.w_q[head] @ heads.w_k[head].T  # [hidden, hidden]


def ov_matrix(heads, head):
    """Form W_V W_O of one head, [hidden, hidden]: for pictures, no spectrum needs it."""
    return heads.w_v[head] @ heads.w_o[head]  # [hidden, hidden]


def qk_factors(heads):
    """Return (a, b) with QK matrix = a @ b^T; both [num_heads, hidden, head_size]."""
    return heads.w_q, heads.w_k


def ov_factors(heads):
    """Return (a, b) with OV matrix = a @ b^T; both [num_heads, hidden, head_size]."""
    return heads.w_v, heads.w_o.transpose(-2, -1)


# --- Spectra and norms of a @ b^T, through head_size x head_size problems -------------------------


def singular_values(a, b):
    """Return the singular values of a @ b^T that can be nonzero: [..., head_size], descending.

    a, b: [..., hidden, head_size]. With a = Q_a R_a and b = Q_b R_b they are those of R_a R_b^T.
    They do not change under the gauge (W_Q R, W_K R^-T).
    """
    r_a = torch.linalg.qr(a, mode="r").R  # [..., head_size, head_size]
    r_b = torch.linalg.qr(b, mode="r").R  # [..., head_size, head_size]
    return torch.linalg.svdvals(r_a @ r_b.transpose(-2, -1))  # [..., head_size]


def eigenvalues(a, b):
    """Return the eigenvalues of a @ b^T that can differ from zero: complex, [..., head_size].

    They are those of the small matrix b^T @ a, for a @ b^T and b^T @ a share them.
    """
    return torch.linalg.eigvals(b.transpose(-2, -1) @ a)  # [..., head_size]


def symmetric_eigenvalues(a, b):
    """Return the eigenvalues of (a @ b^T + b @ a^T) / 2 that can differ from zero, ascending.

    a, b: [..., hidden, head_size]. The symmetric part is C J C^T / 2 with C = [a, b] and J swapping
    the halves, so its rank is 2 * head_size at most. [..., min(hidden, 2 * head_size)].
    """
    r = torch.linalg.qr(torch.cat([a, b], dim=-1), mode="r").R  # [..., rank, 2 * head_size]
    swapped = torch.roll(r, a.shape[-1], dims=-1)  # [..., rank, 2 * head_size]
    return torch.linalg.eigvalsh(r @ swapped.transpose(-2, -1) / 2)  # [..., rank]


def trace(a, b):
    """Return tr(a @ b^T), [...]."""
    return (a * b).sum(dim=(-2, -1))


def squared_norm(a, b):
    """Return the squared Frobenius norm of a @ b^T, [...], from the two Gram matrices."""
    return ((a.mT @ a) * (b.mT @ b)).sum(dim=(-2, -1))


def identity_distance(a, b):
    """Return how far M = a @ b^T is from the nearest multiple of I, as a share of its size: [...].

    min over c of ||M - c I|| / ||M||, reached at c = tr(M) / hidden: 0 for c I itself, 1 where the
    trace is zero. Compare with identity_distance_bound: the rank keeps it far from 0.
    """
    share = trace(a, b) ** 2 / (a.shape[-2] * squared_norm(a, b))  # [...]
    return (1 - share).clamp(min=0).sqrt()


def identity_distance_bound(hidden, head_size):
    """Return the smallest identity_distance of any matrix of rank head_size.

    sqrt(1 - head_size / hidden), since tr(M)^2 <= rank * ||M||^2; 0.957 for 64 of 768.
    """
    return math.sqrt(1 - head_size / hidden)


def symmetric_share(a, b):
    """Return ||sym||^2 / ||M||^2 for M = a @ b^T: 1 symmetric, 0.5 neither, 0 antisymmetric: [...].

    The two parts are orthogonal, so the antisymmetric part has the rest.
    """
    small = b.mT @ a  # [..., head_size, head_size]
    trace_of_square = (small * small.mT).sum(dim=(-2, -1))  # [...]
    return (1 + trace_of_square / squared_norm(a, b)) / 2


def positive_share(values):
    """Return the share of sum |eigenvalue| that is positive, [...]: 1 for positive semidefinite.

    values: real eigenvalues, [..., rank].
    """
    return values.clamp(min=0).sum(dim=-1) / values.abs().sum(dim=-1)


def effective_rank(values):
    """Return exp(entropy) of the singular values' shares, [...] (Roy and Vetterli 2007)."""
    shares = values / values.sum(dim=-1, keepdim=True)  # [..., head_size]
    return torch.special.entr(shares).sum(dim=-1).exp()


def summarize(a, b):
    """Answer the questions on M = a @ b^T for each head; a dict of float64 tensors [num_heads].

    norm; identity_distance; symmetric_share; positive_share, smallest_eigenvalue and
    largest_eigenvalue (of the symmetric part; symmetric and none below zero means M = A A^T);
    effective_rank. Computed in float64.
    """
    a, b = a.double(), b.double()
    symmetric = symmetric_eigenvalues(a, b)  # [num_heads, 2 * head_size]
    return {
        "norm": squared_norm(a, b).sqrt(),
        "identity_distance": identity_distance(a, b),
        "symmetric_share": symmetric_share(a, b),
        "positive_share": positive_share(symmetric),
        "smallest_eigenvalue": symmetric[..., 0],
        "largest_eigenvalue": symmetric[..., -1],
        "effective_rank": effective_rank(singular_values(a, b)),
    }


def summarize_model(model, circuit="qk", seed=None, fold_layer_norm=False, progress=False):
    """Return summarize's numbers for all layers: a dict of tensors [num_layers, num_heads].

    circuit: "qk" or "ov". seed: None for the model's weights; an integer for the random baseline,
    Gaussian matrices of the same shapes and standard deviations. One layer in memory at a time.
    """
    factors = {"qk": qk_factors, "ov": ov_factors}[circuit]
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    rows = []
    layers = range(len(gpt2_stack(model).h))
    for layer in with_progress(layers, progress, f"{circuit} by layer"):
        a, b = factors(head_weights(model, layer, fold_layer_norm))
        if generator is not None:
            a, b = random_like(a, generator), random_like(b, generator)
        rows.append(summarize(a, b))
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def random_like(w, generator):
    """Return a Gaussian tensor of w's shape, each head with the mean 0 and w's own spread.

    w: [num_heads, hidden, head_size]; the spread is the root mean square of each head's numbers.
    """
    spread = w.square().mean(dim=(-2, -1), keepdim=True).sqrt()  # [num_heads, 1, 1]
    noise = torch.randn(w.shape, generator=generator, dtype=w.dtype)  # [num_heads, hidden, hs]
    return noise.to(w.device) * spread


def regauge(w_q, w_k, r):
    """Return (W_Q R, W_K R^-T): other queries and keys, the same QK matrix, the same model.

    w_q, w_k: [..., hidden, head_size]; r: [head_size, head_size], invertible.
    """
    return w_q @ r, w_k @ torch.linalg.inv(r).mT


# --- What the biases add --------------------------------------------------------------------------


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


# --- Statistics of the entries --------------------------------------------------------------------


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


# --- Cosine similarity of columns -----------------------------------------------------------------


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
