"""Spectra and norms of M = a @ b^T, [hidden, hidden], without forming it.

a and b are [..., hidden, head_size], so that M has a rank of head_size at most. Everything here
comes from head_size x head_size problems (QR or Gram), never from the big product.
"""

import math

import torch


def singular_values(a, b):
    """Return the singular values of a @ b^T that can be nonzero: [..., head_size], descending.

    a, b: [..., hidden, head_size]. With a = Q_a R_a and b = Q_b R_b they are those of R_a R_b^T.
    They do not change under the gauge (W_Q R, W_K R^-T).
    """
    r_a = torch.linalg.qr(a, mode="r").R  # [..., head_size, head_size]
    r_b = torch.linalg.qr(b, mode="r").R  # [..., head_size, head_size]
    return torch.linalg.svdvals(r_a @ r_b.transpose(-2, -1))  # [..., head_size]


def singular_vectors(a, b):
    """Return (u, s, v) with a @ b^T = u @ diag(s) @ v^T, the thin singular value decomposition.

    u, v: [..., hidden, head_size], orthonormal columns; s: [..., head_size], descending. Like the
    matrix itself they do not change under the gauge; each pair of columns may change its sign.
    """
    q_a, r_a = torch.linalg.qr(a)  # [..., hidden, head_size] and [..., head_size, head_size]
    q_b, r_b = torch.linalg.qr(b)  # the same
    u, s, v_t = torch.linalg.svd(r_a @ r_b.mT)  # of the small matrix
    return q_a @ u, s, q_b @ v_t.mT


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


def trace_share(a, b):
    """Return tr(M) / (||M|| sqrt(head_size)) for M = a @ b^T: [...], from -1 to 1.

    How much of M is a multiple of the identity, with its sign: 1 and -1 are as near to c I and
    -c I as the rank allows. (identity_distance tells the same without the sign, and squeezed
    between identity_distance_bound and 1.)
    """
    return trace(a, b) / (squared_norm(a, b) * a.shape[-1]).sqrt()


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

    norm; identity_distance; trace_share; symmetric_share; positive_share, smallest_eigenvalue and
    largest_eigenvalue (of the symmetric part; symmetric and none below zero means M = A A^T);
    effective_rank. Computed in float64.
    """
    a, b = a.double(), b.double()
    symmetric = symmetric_eigenvalues(a, b)  # [num_heads, 2 * head_size]
    return {
        "norm": squared_norm(a, b).sqrt(),
        "identity_distance": identity_distance(a, b),
        "trace_share": trace_share(a, b),
        "symmetric_share": symmetric_share(a, b),
        "positive_share": positive_share(symmetric),
        "smallest_eigenvalue": symmetric[..., 0],
        "largest_eigenvalue": symmetric[..., -1],
        "effective_rank": effective_rank(singular_values(a, b)),
    }


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
