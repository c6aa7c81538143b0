"""Answers of lesson 10 on the cosines of columns, and its wrong programs."""

from __future__ import annotations

import torch

from autograder.course.asking import mistake
from autograder.reference.reading_the_weights import moments, over_layers


# --- cosines -------------------------------------------------------------------------------------
def _unit(w, axis=0):
    return w / w.norm(dim=axis, keepdim=True)


def _cosines(w, axis=0):
    unit = _unit(w, axis)
    return unit.T @ unit


def _upper(matrix, offset=1):
    return matrix[torch.ones_like(matrix, dtype=torch.bool).triu(offset)]


def head_cosines(w, axis=0, offset=1):
    matrix = _cosines(w, axis)
    return matrix, _upper(matrix, offset)


def _products(w):
    return w.T @ w, _upper(w.T @ w)


def _divided(products, lengths):
    return products / lengths, _upper(products / lengths)


_NORM_AXIS = "The rows are scaled to length 1. Compared are the columns, so each column needs it."
_DIAGONAL = "The diagonal is included: a column's cosine with itself, always 1. That is no pair."
_COSINES = [
    mistake("head_cosines", "cosine.norm axis", _NORM_AXIS, lambda w: head_cosines(w, axis=1)),
    mistake("head_cosines", "cosine.diagonal", _DIAGONAL, lambda w: head_cosines(w, offset=0)),
    mistake(
        "head_cosines",
        "cosine.one diagonal too many",
        "The pairs of neighbouring columns are missing.",
        lambda w: head_cosines(w, offset=2),
    ),
    mistake(
        "head_cosines",
        "cosine.not normalised",
        "These are dot products; a cosine is divided by both lengths.",
        _products,
    ),
    mistake(
        "head_cosines",
        "cosine.one norm for all",
        "All columns are divided by the same number, the norm of the whole matrix.",
        lambda w: _products(w / w.norm()),
    ),
    mistake(
        "head_cosines",
        "cosine.every pair twice",
        "Each pair is there twice: the matrix is symmetric, so half of it is enough.",
        lambda w: (_cosines(w), _cosines(w)[~torch.eye(w.shape[1], dtype=torch.bool)]),
    ),
    mistake(
        "head_cosines",
        "cosine.every pair twice",
        "This is the whole matrix: each pair twice, and the diagonal.",
        lambda w: (_cosines(w), _cosines(w).flatten()),
    ),
    mistake(
        "head_cosines",
        "cosine.zeros kept",
        "The lower half is set to 0 but still there: "
        "zeros are no cosines. Pick entries, do not multiply.",
        lambda w: (_cosines(w), _cosines(w).triu(1).flatten()),
    ),
    mistake(
        "head_cosines",
        "cosine.rows compared",
        "The rows are compared; asked for are the columns.",
        lambda w: head_cosines(w.T),
    ),
    mistake(
        "head_cosines",
        "cosine.centred",
        "The columns' means are taken off first: that is a correlation, not a cosine.",
        lambda w: head_cosines(w - w.mean(0)),
    ),
    mistake(
        "head_cosines",
        "cosine.sample norm",
        "The columns are divided by their standard deviation, not by their length.",
        lambda w: _products(w / w.std(0)),
    ),
    mistake(
        "head_cosines",
        "cosine.one length",
        "The products are divided by one of the two lengths; a cosine is divided by both.",
        lambda w: _divided(w.T @ w, w.norm(dim=0)),
    ),
    mistake(
        "head_cosines",
        "cosine.one length",
        "The products are divided by one of the two lengths; a cosine is divided by both.",
        lambda w: _divided(w.T @ w, w.norm(dim=0)[:, None]),
    ),
    mistake(
        "head_cosines",
        "cosine.squared length",
        "The columns are divided by their squared length; the length is its root.",
        lambda w: _products(w / w.square().sum(0)),
    ),
    mistake(
        "head_cosines",
        "cosine.absolute values",
        "The cosines lost their sign: columns that point apart look alike.",
        lambda w: (_cosines(w).abs(), _upper(_cosines(w)).abs()),
    ),
    mistake(
        "head_cosines",
        "cosine.squared",
        "The cosines are squared.",
        lambda w: tuple(c**2 for c in head_cosines(w)),
    ),
]


def within_across(weight, num_heads, axis=0, offset=1, correction=1, last=lambda t: t):
    """Mean and std of cosines, within and across heads; the arguments are mistakes' switches."""
    size = weight.shape[1] // num_heads
    heads = weight.split(size, dim=1)
    within = [_upper(_cosines(h, axis), offset) for h in heads]
    across = [
        (_unit(a, axis).T @ _unit(b, axis)).flatten()
        for i, a in enumerate(heads)
        for b in heads[i + 1 :]
    ]
    groups = [torch.cat(g) for g in (within, across)]
    return last(torch.stack([moments(g, correction) for g in groups]))


def _across_upper(weight, num_heads):
    size = weight.shape[1] // num_heads
    cosines = _cosines(weight)
    blocks = cosines.unflatten(0, (num_heads, size)).unflatten(2, (num_heads, size))
    across = [_upper(blocks[i, :, j]) for i in range(num_heads) for j in range(i + 1, num_heads)]
    return torch.stack([within_across(weight, num_heads)[0], moments(torch.cat(across))])


def _all_for_across(weight, num_heads):
    return torch.stack([within_across(weight, num_heads)[0], moments(_upper(_cosines(weight)))])


def _within_twice(weight, num_heads):
    size = weight.shape[1] // num_heads
    off = ~torch.eye(size, dtype=torch.bool)
    within = torch.cat([_cosines(h)[off] for h in weight.split(size, dim=1)])
    return torch.stack([moments(within), within_across(weight, num_heads)[1]])


def _within_whole(weight, num_heads):
    size = weight.shape[1] // num_heads
    within = torch.cat([_cosines(h).flatten() for h in weight.split(size, dim=1)])
    return torch.stack([moments(within), within_across(weight, num_heads)[1]])


def _interleaved(weight, num_heads):
    size = weight.shape[1] // num_heads
    place = torch.arange(weight.shape[1])
    return within_across(weight[:, place.view(size, num_heads).T.flatten()], num_heads)


def _across_twice(weight, num_heads):
    size = weight.shape[1] // num_heads
    heads = weight.split(size, dim=1)
    across = [(_unit(a).T @ _unit(b)).flatten() for a in heads for b in heads if a is not b]
    return torch.stack([within_across(weight, num_heads)[0], moments(torch.cat(across))])


def _groups(cosines, num_heads):
    """The cosines within heads and those across, each pair once."""
    owner = torch.arange(len(cosines)) // (len(cosines) // num_heads)
    same = owner[:, None] == owner
    later = torch.ones_like(same).triu(1)
    return cosines[later & same], cosines[later & ~same]


def _absolute(weight, num_heads):
    groups = _groups(_cosines(weight).abs(), num_heads)
    return torch.stack([moments(g) for g in groups])


def _plain_products(weight, num_heads):
    return torch.stack([moments(g) for g in _groups(weight.T @ weight, num_heads)])


def _first_head(weight, num_heads):
    first = weight[:, : weight.shape[1] // num_heads]
    return torch.stack([moments(_upper(_cosines(first))), within_across(weight, num_heads)[1]])


def _head_by_head(weight, num_heads):
    heads = weight.split(weight.shape[1] // num_heads, dim=1)
    each = torch.stack([moments(_upper(_cosines(h))) for h in heads])
    return torch.stack([each.mean(0), within_across(weight, num_heads)[1]])


def _within_but(check, message, **how):
    return mistake("within_across", check, message, lambda w, n: within_across(w, n, **how))


_WITHIN = [
    _within_but("cosine.norm axis", _NORM_AXIS, axis=1),
    _within_but("cosine.diagonal", _DIAGONAL, offset=0),
    mistake(
        "within_across",
        "cosine.diagonal",
        "Within a head the whole matrix is kept: each pair "
        "twice, and the diagonal, which is always 1.",
        _within_whole,
    ),
    mistake(
        "within_across",
        "cosine.every pair twice",
        "Within a head each pair is counted twice; the matrix is symmetric.",
        _within_twice,
    ),
    _within_but(
        "statistics.ddof",
        "The standard deviation divides by n. Use torch's, which divides by n - 1.",
        correction=0,
    ),
    mistake(
        "within_across",
        "cosine.across only the upper half",
        "Across two heads only the part "
        "above the diagonal is kept. That matrix is not symmetric: all of it counts.",
        _across_upper,
    ),
    mistake(
        "within_across",
        "cosine.across holds all",
        "The second row holds all pairs, those within a head too.",
        _all_for_across,
    ),
    mistake(
        "within_across",
        "cosine.across twice",
        "Each pair of heads is counted in both orders, "
        "so every cosine across heads is there twice.",
        _across_twice,
    ),
    _within_but("cosine.rows swapped", "Within and across are swapped.", last=lambda t: t.flip(0)),
    _within_but(
        "cosine.axes flipped",
        "Rows are within and across, columns are mean and std; here it is the other way round.",
        last=lambda t: t.T,
    ),
    mistake(
        "within_across",
        "heads.interleaved",
        "A head's columns lie side by side; here every num_heads-th column is taken for one head.",
        _interleaved,
    ),
    _within_but(
        "statistics.variance",
        "The second column holds variances.",
        last=lambda t: torch.stack([t[:, 0], t[:, 1] ** 2], dim=1),
    ),
    mistake(
        "within_across",
        "heads.size for count",
        "num_heads was taken for the size of a head; there are num_heads heads.",
        lambda w, n: within_across(w, w.shape[1] // n),
    ),
    mistake(
        "within_across",
        "cosine.absolute values",
        "The cosines lost their sign before mean and deviation were taken.",
        _absolute,
    ),
    mistake(
        "within_across",
        "cosine.first head only",
        "Within heads only the first head is counted; all are asked for.",
        _first_head,
    ),
    mistake(
        "within_across",
        "cosine.head by head",
        "Within heads each head has a deviation of its own, and these are averaged. Put the "
        "pairs of all heads together first.",
        _head_by_head,
    ),
    mistake(
        "within_across",
        "cosine.not normalised",
        "These are dot products; a cosine is divided by both lengths.",
        _plain_products,
    ),
    _within_but(
        "statistics.order", "Mean first, then standard deviation.", last=lambda t: t.flip(-1)
    ),
]


# --- all columns ---------------------------------------------------------------------------------
def column_stats(model, axis=0, offset=1, correction=1, pick=_upper, **how):
    return over_layers(model, lambda w: moments(pick(_cosines(w, axis), offset), correction), how)


def _columns_but(check, message, last=lambda t: t, **how):
    return mistake("column_stats", check, message, lambda m: last(column_stats(m, **how)))


_ALL_COLUMNS = [
    _columns_but("cosine.norm axis", _NORM_AXIS, axis=1),
    _columns_but("cosine.diagonal", _DIAGONAL, offset=0),
    _columns_but(
        "cosine.diagonal",
        "The whole matrix is used: each pair twice, and the diagonal.",
        pick=lambda c, k: c.flatten(),
    ),
    _columns_but(
        "cosine.zeros kept",
        "The lower half is set to 0 but still counted. Pick entries, do not multiply.",
        pick=lambda c, k: c.triu(k).flatten(),
    ),
    _columns_but(
        "cosine.every pair twice",
        "Each pair is counted twice.",
        pick=lambda c, k: c[~torch.eye(len(c), dtype=torch.bool)],
    ),
    _columns_but(
        "statistics.ddof",
        "The standard deviation divides by n. Use torch's, which divides by n - 1.",
        correction=0,
    ),
    _columns_but("split.order", "The order is queries, keys, values.", order=(0, 2, 1)),
    _columns_but("split.order", "The order is queries, keys, values.", order=(1, 0, 2)),
    _columns_but("split.axis", "The weight is cut along its rows, by a reshape.", rows=True),
    _columns_but(
        "split.interleaved",
        "Every third column is taken. The three matrices lie side by side.",
        interleaved=True,
    ),
    _columns_but(
        "statistics.order", "Mean first, then standard deviation.", last=lambda t: t.flip(-1)
    ),
    _columns_but(
        "statistics.last layer everywhere", "Every row holds the last layer.", one_layer=-1
    ),
    _columns_but(
        "statistics.axes",
        "Layers come first, then queries, keys and values, then mean and standard deviation.",
        last=lambda t: t.transpose(0, 1),
    ),
    mistake(
        "column_stats",
        "cosine.not normalised",
        "These are dot products; a cosine is divided by both lengths.",
        lambda m: over_layers(m, lambda w: moments(_upper(w.T @ w)), {}),
    ),
    mistake(
        "column_stats",
        "cosine.rows compared",
        "The rows are compared; asked for are the columns.",
        lambda m: over_layers(m, lambda w: moments(_upper(_cosines(w.T))), {}),
    ),
    _columns_but(
        "cosine.absolute values",
        "The cosines lost their sign before mean and deviation were taken.",
        pick=lambda c, k: _upper(c, k).abs(),
    ),
    _columns_but(
        "cosine.diagonal",
        "The diagonal is there, set to 0: a zero is counted like any other number.",
        pick=lambda c, k: _upper(c.triu(1), 0),
    ),
    _columns_but(
        "statistics.variance",
        "The second number is the variance.",
        last=lambda t: torch.stack([t[..., 0], t[..., 1] ** 2], dim=-1),
    ),
    mistake(
        "column_stats",
        "cosine.within heads only",
        "Only pairs within a head are counted; here heads do not matter.",
        lambda m: over_layers(m, lambda w: moments(_groups(_cosines(w), m.config.n_head)[0]), {}),
    ),
]

SOLVE = {
    "weights.cosines": {"head_cosines": head_cosines},
    "weights.within_across": {"within_across": within_across},
    "weights.all_columns": {"column_stats": column_stats},
}
MISTAKES = {
    "weights.cosines": _COSINES,
    "weights.within_across": _WITHIN,
    "weights.all_columns": _ALL_COLUMNS,
}
