"""Answers of lesson 10 on W_Q W_K^T and its wrong programs."""

from __future__ import annotations

import math

import torch

from autograder.course.asking import mistake


# --- gauge freedom -------------------------------------------------------------------------------
def change_gauge(w_q, b_q, w_k, b_k, r):
    s = torch.linalg.inv(r).T
    return w_q @ r, b_q @ r, w_k @ s, b_k @ s


def _gauge(turn):
    """Keys turned by `turn(r)` in place of the transposed inverse."""
    return lambda wq, bq, wk, bk, r: (wq @ r, bq @ r, wk @ turn(r), bk @ turn(r))


def _all_by(matrix, *parts):
    return tuple(part @ matrix for part in parts)


_GAUGE = [
    mistake(
        "change_gauge",
        "gauge.same for both",
        "Queries and keys are both multiplied by r. "
        "Then the scores contain r r^T, which is the identity only if r is a rotation.",
        _gauge(lambda r: r),
    ),
    mistake(
        "change_gauge",
        "gauge.inverse not transposed",
        "The keys are multiplied by the "
        "inverse. Keys stand transposed in the scores, so it must be the transposed inverse.",
        _gauge(torch.linalg.inv),
    ),
    mistake(
        "change_gauge",
        "gauge.transposed for inverse",
        "The keys are multiplied by r transposed. It is the inverse that undoes r.",
        _gauge(lambda r: r.T),
    ),
    mistake(
        "change_gauge",
        "gauge.keys unchanged",
        "Only the queries are changed; the scores change with them.",
        lambda wq, bq, wk, bk, r: (wq @ r, bq @ r, wk, bk),
    ),
    mistake(
        "change_gauge",
        "gauge.biases forgotten",
        "The weights are right, the biases are as "
        "they were. They are part of the queries and keys.",
        lambda wq, bq, wk, bk, r: (
            change_gauge(wq, bq, wk, bk, r)[0],
            bq,
            change_gauge(wq, bq, wk, bk, r)[2],
            bk,
        ),
    ),
    mistake(
        "change_gauge",
        "gauge.bias on the wrong side",
        "The biases are multiplied from the other side. A bias is one more row, as a query is.",
        lambda wq, bq, wk, bk, r: (
            wq @ r,
            r @ bq,
            wk @ torch.linalg.inv(r).T,
            torch.linalg.inv(r).T @ bk,
        ),
    ),
    mistake(
        "change_gauge",
        "gauge.roles swapped",
        "The keys are multiplied by r and the queries "
        "by the transposed inverse: the scores stay, but asked is the other way round.",
        lambda wq, bq, wk, bk, r: (
            wq @ torch.linalg.inv(r).T,
            bq @ torch.linalg.inv(r).T,
            wk @ r,
            bk @ r,
        ),
    ),
    mistake(
        "change_gauge",
        "gauge.transposed twice",
        "The queries are multiplied by r transposed.",
        lambda wq, bq, wk, bk, r: (
            wq @ r.T,
            bq @ r.T,
            wk @ torch.linalg.inv(r),
            bk @ torch.linalg.inv(r),
        ),
    ),
    mistake(
        "change_gauge",
        "gauge.nothing changed",
        "Nothing has changed.",
        lambda wq, bq, wk, bk, r: (wq, bq, wk, bk),
    ),
    mistake(
        "change_gauge",
        "gauge.order",
        "The order is w_q, b_q, w_k, b_k.",
        lambda *a: tuple(change_gauge(*a)[i] for i in (0, 2, 1, 3)),
    ),
    mistake(
        "change_gauge",
        "gauge.biases forgotten",
        "The keys' bias is as it was. It is part of the keys, and changes with them.",
        lambda wq, bq, wk, bk, r: (*change_gauge(wq, bq, wk, bk, r)[:3], bk),
    ),
    mistake(
        "change_gauge",
        "gauge.biases forgotten",
        "The queries' bias is as it was. It is part of the queries, and changes with them.",
        lambda wq, bq, wk, bk, r: (wq @ r, bq, *change_gauge(wq, bq, wk, bk, r)[2:]),
    ),
    mistake(
        "change_gauge",
        "gauge.bias on the wrong side",
        "The keys' bias is multiplied from the other side. A bias is one more row, as a key is.",
        lambda wq, bq, wk, bk, r: (*change_gauge(wq, bq, wk, bk, r)[:3], bk @ torch.linalg.inv(r)),
    ),
    mistake(
        "change_gauge",
        "gauge.same for both",
        "Queries and keys are both multiplied by the transposed inverse; queries become q r.",
        lambda wq, bq, wk, bk, r: _all_by(torch.linalg.inv(r).T, wq, bq, wk, bk),
    ),
    mistake(
        "change_gauge",
        "gauge.inverse of each entry",
        "1 / r inverts each entry by itself; asked for is the inverse matrix.",
        _gauge(lambda r: 1 / r),
    ),
]


# --- identity, symmetry, sign --------------------------------------------------------------------
def _qk(w_q, w_k):
    return w_q @ w_k.T


def _distance(matrix, c):
    return (matrix - c * torch.eye(len(matrix))).norm() / matrix.norm()


def _bound(w_q):
    return math.sqrt(1 - w_q.shape[1] / w_q.shape[0])


def identity_distance(w_q, w_k, c=lambda m, size: m.trace() / len(m), bound=_bound):
    m = _qk(w_q, w_k)
    best = c(m, w_q.shape[1])
    return best, _distance(m, best), bound(w_q)


def _identity_but(check, message, **how):
    return mistake("identity_distance", check, message, lambda q, k: identity_distance(q, k, **how))


def _not_relative(q, k):
    c, distance, bound = identity_distance(q, k)
    return c, distance * _qk(q, k).norm(), bound


def _against_the_multiple(q, k):
    c, distance, bound = identity_distance(q, k)
    return c, distance * _qk(q, k).norm() / (c.abs() * math.sqrt(len(q))), bound


def _squared(q, k):
    c, distance, bound = identity_distance(q, k)
    return c, distance**2, bound


def _small_matrix(q, k):
    m = q.T @ k
    c = m.trace() / len(m)
    return c, _distance(m, c), _bound(q)


def _scaled_identity(q, k):
    c, distance, bound = identity_distance(q, k)
    return c / math.sqrt(q.shape[1]), distance, bound


def _other_distance(q, k, measure):
    c, _, bound = identity_distance(q, k)
    return c, measure(_qk(q, k), c), bound


def _spectral(matrix, c):
    rest = matrix - c * torch.eye(len(matrix))
    return torch.linalg.matrix_norm(rest, 2) / torch.linalg.matrix_norm(matrix, 2)


_IDENTITY = [
    _identity_but(
        "identity.itself",
        "This is the distance from I itself. A model is free to "
        "scale its scores, so ask for the nearest multiple of I.",
        c=lambda m, size: torch.ones(()),
    ),
    _identity_but(
        "identity.trace",
        "c is the trace; the mean of the diagonal is nearer.",
        c=lambda m, size: m.trace(),
    ),
    _identity_but(
        "identity.divided by the rank",
        "The trace is divided by the head size. The "
        "diagonal has as many entries as the hidden size.",
        c=lambda m, size: m.trace() / size,
    ),
    _identity_but(
        "identity.mean of all entries",
        "c is the mean of all entries; off the diagonal I is zero, whatever c is.",
        c=lambda m, size: m.mean(),
    ),
    _identity_but(
        "identity.norm for trace",
        "c comes from the norm. That gets the size right and ignores the direction.",
        c=lambda m, size: m.norm() / math.sqrt(len(m)),
    ),
    mistake(
        "identity_distance",
        "identity.not relative",
        "The distance is not divided by the norm "
        "of the matrix, so large weights look far from everything.",
        _not_relative,
    ),
    mistake(
        "identity_distance",
        "identity.not relative",
        "The distance is divided by the norm of "
        "the multiple of I; asked for is the share of the norm of the matrix.",
        _against_the_multiple,
    ),
    mistake("identity_distance", "identity.squared", "The distance is squared.", _squared),
    _identity_but(
        "identity.bound of the share",
        "The bound is the share that rank allows, not the distance that it leaves.",
        bound=lambda q: math.sqrt(len(q.T) / len(q)),
    ),
    _identity_but(
        "identity.bound not a root",
        "The bound is that of the squared distance.",
        bound=lambda q: 1 - len(q.T) / len(q),
    ),
    mistake(
        "identity_distance",
        "identity.small matrix",
        "The matrix is W_Q^T W_K, [head_size, head_size]. Tokens meet in W_Q W_K^T.",
        _small_matrix,
    ),
    mistake(
        "identity_distance",
        "identity.small matrix",
        "The matrix is W_K^T W_Q, [head_size, head_size]. Tokens meet in W_Q W_K^T.",
        lambda q, k: _small_matrix(k, q),
    ),
    mistake(
        "identity_distance",
        "identity.scaled",
        "The matrix is divided by the root of the head size. M is the plain product.",
        _scaled_identity,
    ),
    mistake(
        "identity_distance",
        "identity.c everywhere",
        "c is subtracted from every entry. c I has it on the diagonal alone.",
        lambda q, k: _other_distance(q, k, lambda m, c: (m - c).norm() / m.norm()),
    ),
    mistake(
        "identity_distance",
        "identity.spectral norm",
        "The largest singular value is used as norm; asked for is the root of the sum of squares.",
        lambda q, k: _other_distance(q, k, _spectral),
    ),
    mistake(
        "identity_distance",
        "identity.order",
        "The order is c, distance, bound.",
        lambda q, k: tuple(identity_distance(q, k)[i] for i in (1, 0, 2)),
    ),
]


def symmetric_parts(w_q, w_k):
    m = _qk(w_q, w_k)
    return (m + m.T).norm() / (2 * m.norm()), (m - m.T).norm() / (2 * m.norm())


def _parts(change):
    return lambda q, k: change(*symmetric_parts(q, k), _qk(q, k))


_SYMMETRIC = [
    mistake(
        "symmetric_parts",
        "symmetric.not halved",
        "The symmetric part is HALF the sum of the matrix and its transpose.",
        _parts(lambda s, a, m: (2 * s, 2 * a)),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.squared",
        "These are shares of the squared norm.",
        _parts(lambda s, a, m: (s**2, a**2)),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.order",
        "The symmetric part comes first.",
        _parts(lambda s, a, m: (a, s)),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.not relative",
        "The norms are not divided by the norm of the matrix.",
        _parts(lambda s, a, m: (s * m.norm(), a * m.norm())),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.sum to one",
        "The second is taken for 1 minus the first. It is their squares that sum to 1.",
        _parts(lambda s, a, m: (s, 1 - s)),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.triangles",
        "These are the halves above and below the "
        "diagonal, not the symmetric and antisymmetric parts.",
        _parts(lambda s, a, m: (m.triu().norm() / m.norm(), m.tril(-1).norm() / m.norm())),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.small matrix",
        "The matrix is W_Q^T W_K, [head_size, head_size]. Tokens meet in W_Q W_K^T.",
        lambda q, k: symmetric_parts(q.T, k.T),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.spectral norm",
        "The largest singular value is used as norm; asked for is the root of the sum of squares.",
        _parts(
            lambda s, a, m: tuple(
                torch.linalg.matrix_norm(p, 2) / torch.linalg.matrix_norm(m, 2)
                for p in ((m + m.T) / 2, (m - m.T) / 2)
            )
        ),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.ratio",
        "The parts are divided by one another; each is asked for as a share of the whole.",
        _parts(lambda s, a, m: (s / a, a / s)),
    ),
    mistake(
        "symmetric_parts",
        "symmetric.share of the sum",
        "The norms are divided by their sum. Divide by the norm of the whole: two perpendicular "
        "parts are longer together than it.",
        _parts(lambda s, a, m: (s / (s + a), a / (s + a))),
    ),
]


def _signs(values):
    return values.min(), values.max(), values.clamp(min=0).sum() / values.abs().sum()


def _symmetric(q, k):
    m = _qk(q, k)
    return (m + m.T) / 2


def definiteness(w_q, w_k):
    return _signs(torch.linalg.eigvalsh(_symmetric(w_q, w_k)))


def _signed(turn):
    return lambda q, k: _signs(turn(_qk(q, k)))


def _with_share(share):
    def wrong(q, k):
        values = torch.linalg.eigvalsh(_symmetric(q, k))
        return values.min(), values.max(), share(values)

    return wrong


def _absolute_ends(values):
    return values.abs().min(), values.abs().max(), _signs(values)[2]


_DEFINITE = [
    mistake(
        "definiteness",
        "definite.singular values",
        "These are singular values, which are never negative: they cannot tell.",
        _signed(torch.linalg.svdvals),
    ),
    mistake(
        "definiteness",
        "definite.singular values",
        "These are singular values of the symmetric "
        "part, which are never negative: they cannot tell.",
        lambda q, k: _signs(torch.linalg.svdvals(_symmetric(q, k))),
    ),
    mistake(
        "definiteness",
        "definite.not symmetric",
        "eigvalsh was given a matrix that is not "
        "symmetric. It looks at one half alone and says nothing.",
        _signed(torch.linalg.eigvalsh),
    ),
    mistake(
        "definiteness",
        "definite.not symmetric",
        "These are the real parts of the eigenvalues "
        "of the matrix itself; definiteness is about its symmetric part.",
        _signed(lambda m: torch.linalg.eigvals(m).real),
    ),
    mistake(
        "definiteness",
        "definite.not symmetric",
        "These are the real parts of the eigenvalues "
        "of the matrix itself; definiteness is about its symmetric part.",
        lambda q, k: _signs(torch.linalg.eigvals(_qk(q.float(), k.float())).real),
    ),
    mistake(
        "definiteness",
        "definite.not halved",
        "The symmetric part is half the sum of the matrix and its transpose.",
        _signed(lambda m: torch.linalg.eigvalsh(m + m.T)),
    ),
    mistake(
        "definiteness",
        "definite.antisymmetric",
        "This is the antisymmetric part.",
        _signed(lambda m: torch.linalg.eigvalsh(m - m.T) / 2),
    ),
    mistake(
        "definiteness",
        "definite.order",
        "Smallest first, then largest.",
        lambda q, k: tuple(definiteness(q, k)[i] for i in (1, 0, 2)),
    ),
    mistake(
        "definiteness",
        "definite.negative share",
        "This is the share of the negative ones.",
        lambda q, k: (*definiteness(q, k)[:2], 1 - definiteness(q, k)[2]),
    ),
    mistake(
        "definiteness",
        "definite.ratio",
        "The positive sum is divided by the negative one; asked for is its share of both.",
        lambda q, k: (*definiteness(q, k)[:2], definiteness(q, k)[2] / (1 - definiteness(q, k)[2])),
    ),
    mistake(
        "definiteness",
        "definite.signed sum",
        "The positive sum is divided by the sum of all "
        "eigenvalues, in which the signs cancel. Take absolute values.",
        lambda q, k: (
            *definiteness(q, k)[:2],
            torch.linalg.eigvalsh(_symmetric(q, k)).clamp(min=0).sum() / _qk(q, k).trace(),
        ),
    ),
    mistake(
        "definiteness",
        "definite.counted",
        "This is the share of eigenvalues that are positive, whatever their size. Sum them.",
        _with_share(lambda v: (v > 1e-5).sum() / (v.abs() > 1e-5).sum()),
    ),
    mistake(
        "definiteness",
        "definite.squares",
        "The eigenvalues are squared before they are summed.",
        _with_share(lambda v: v.clamp(min=0).square().sum() / v.square().sum()),
    ),
    mistake(
        "definiteness",
        "definite.small matrix",
        "The matrix is W_Q^T W_K, [head_size, head_size]. Tokens meet in W_Q W_K^T.",
        lambda q, k: definiteness(q.T, k.T),
    ),
    mistake(
        "definiteness",
        "definite.scaled",
        "The matrix is divided by the root of the head size. M is the plain product.",
        lambda q, k: _signs(torch.linalg.eigvalsh(_symmetric(q, k)) / math.sqrt(q.shape[1])),
    ),
    mistake(
        "definiteness",
        "definite.absolute values",
        "Smallest and largest of the absolute values: whether there are negative ones cannot be "
        "told.",
        lambda q, k: _absolute_ends(torch.linalg.eigvalsh(_symmetric(q, k))),
    ),
]


# --- the four terms ------------------------------------------------------------------------------
def score_terms(x, w_q, b_q, w_k, b_k, scale=None):
    s = math.sqrt(w_q.shape[1]) if scale is None else scale(x, w_q)
    q, k = x @ w_q, x @ w_k
    return {
        "content": q @ k.T / s,
        "query": (q @ b_k)[:, None] / s,
        "key": (k @ b_q)[None, :] / s,
        "constant": b_q @ b_k / s,
    }


def _terms_but(check, message, change=lambda t: t, **how):
    return mistake("score_terms", check, message, lambda *a: change(score_terms(*a, **how)))


def _content_only(x, w_q, b_q, w_k, b_k):
    plain = score_terms(x, w_q, b_q, w_k, b_k, scale=lambda x, w: 1)
    return plain | {"content": plain["content"] / math.sqrt(len(b_q))}


_TERMS = [
    _terms_but(
        "scale.missing",
        "The terms are not divided by the root of the head size.",
        scale=lambda x, w: 1,
    ),
    _terms_but(
        "scale.hidden",
        "The scale uses the hidden size; a query has head_size features.",
        scale=lambda x, w: math.sqrt(w.shape[0]),
    ),
    _terms_but(
        "scale.not a root",
        "The scale is the head size; its root is needed.",
        scale=lambda x, w: w.shape[1],
    ),
    mistake(
        "score_terms",
        "scale.content only",
        "Only the content is scaled. The scale comes after the sum, so it belongs to all four.",
        _content_only,
    ),
    _terms_but(
        "terms.query and key swapped",
        "Two terms are swapped: x W_Q b_K depends on the "
        "query's token, b_Q W_K^T x^T on the key's.",
        lambda t: t | {"query": t["key"].T, "key": t["query"].T},
    ),
    mistake(
        "score_terms",
        "terms.own bias",
        "The queries meet their own bias. In the product, x W_Q meets b_K, and x W_K meets b_Q.",
        lambda x, wq, bq, wk, bk: score_terms(x, wq, bk, wk, bq),
    ),
    _terms_but(
        "terms.row and column",
        "Shapes: what depends on the query is a column, what depends on the key a row.",
        lambda t: t | {"query": t["query"].T, "key": t["key"].T},
    ),
    _terms_but(
        "terms.no axis",
        "The terms of one token each lost an axis: broadcasting would "
        "then add the query's term along the keys. Keep [seq_len, 1] and [1, seq_len].",
        lambda t: t | {"query": t["query"][:, 0], "key": t["key"][0]},
    ),
    _terms_but(
        "terms.content transposed",
        "The content is transposed: rows belong to queries.",
        lambda t: t | {"content": t["content"].T},
    ),
    mistake(
        "score_terms",
        "terms.biases in the content",
        "The content has the biases in it already.",
        lambda x, wq, bq, wk, bk: (
            score_terms(x, wq, bq, wk, bk)
            | {"content": (x @ wq + bq) @ (x @ wk + bk).T / math.sqrt(len(bq))}
        ),
    ),
    _terms_but(
        "terms.constant missing",
        "The constant is left at 0. It changes no weight, but it is part of the scores.",
        lambda t: t | {"constant": torch.zeros(())},
    ),
    mistake(
        "score_terms",
        "scale.constant not scaled",
        "The constant is not scaled. The scale comes after the sum, so it belongs to all four "
        "terms.",
        lambda x, wq, bq, wk, bk: score_terms(x, wq, bq, wk, bk) | {"constant": bq @ bk},
    ),
]


def _floats(function):
    return lambda *args: tuple(map(float, function(*args)))


SOLVE = {
    "weights.gauge": {"change_gauge": change_gauge},
    "weights.identity": {"identity_distance": _floats(identity_distance)},
    "weights.symmetric": {"symmetric_parts": _floats(symmetric_parts)},
    "weights.definite": {"definiteness": _floats(definiteness)},
    "weights.biases": {"score_terms": score_terms},
}
MISTAKES = {
    "weights.gauge": _GAUGE,
    "weights.identity": _IDENTITY,
    "weights.symmetric": _SYMMETRIC,
    "weights.definite": _DEFINITE,
    "weights.biases": _TERMS,
}
