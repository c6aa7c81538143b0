"""Answers of lesson 10 and its wrong programs."""

from __future__ import annotations

import math

import torch

from autograder.exercise import Mistake


def _wrong(name, check, message, function):
    return Mistake(check, message, {name: function})


# --- sizes and counts ----------------------------------------------------------------------------
def params(config, **changed):
    right = {
        "n_layers": config.n_layer,
        "n_emb": config.n_embd,
        "n_heads": config.n_head,
        "head_dim": config.n_embd // config.n_head,
    }
    return {**right, **{name: make(config) for name, make in changed.items()}}


def _params_but(check, message, **changed):
    return _wrong("params", check, message, lambda c: params(c, **changed))


_PARAMS = [
    _params_but("params.head_dim is hidden", "head_dim is the whole hidden size; the heads share "
                "it.", head_dim=lambda c: c.n_embd),
    _params_but("params.head_dim is the number of heads", "head_dim is how many features one "
                "head has, not how many heads there are.", head_dim=lambda c: c.n_head),
    _params_but("params.layers and heads swapped", "Layers and heads are swapped.",
                n_layers=lambda c: c.n_head, n_heads=lambda c: c.n_layer),
    _params_but("params.layers and heads swapped", "Layers and heads are swapped, and so the size "
                "of a head is wrong too.", n_layers=lambda c: c.n_head,
                n_heads=lambda c: c.n_layer, head_dim=lambda c: c.n_embd // c.n_layer),
    _params_but("params.head_dim by layers", "head_dim divides by the number of layers.",
                head_dim=lambda c: c.n_embd // c.n_layer),
    _params_but("params.positions for embedding", "n_emb is the size of one token's vector; "
                "n_positions is how many tokens fit.", n_emb=lambda c: c.n_positions),
    _params_but("params.positions for embedding", "n_emb is the size of one token's vector; "
                "n_positions is how many tokens fit. head_dim goes wrong with it.",
                n_emb=lambda c: c.n_positions, head_dim=lambda c: c.n_positions // c.n_head),
]


def attention_parameters(model, layers=None, modules=("c_attn", "c_proj"), count=torch.numel):
    """Weights and biases of all layers' attention; the arguments are the switches of mistakes."""
    blocks = list(model.transformer.h)[:layers]
    parts = [getattr(block.attn, name) for block in blocks for name in modules]
    return sum(count(p.weight) for p in parts), sum(count(p.bias) for p in parts)


def _count_but(check, message, **how):
    return _wrong("attention_parameters", check, message,
                  lambda m: attention_parameters(m, **how))


def _one_number(model):
    return sum(attention_parameters(model))


def _with_mlp(model):
    parts = [p for b in model.transformer.h
             for p in (b.attn.c_attn, b.attn.c_proj, b.mlp.c_fc, b.mlp.c_proj)]
    return sum(p.weight.numel() for p in parts), sum(p.bias.numel() for p in parts)


def _wrong_projection(model):
    parts = [p for b in model.transformer.h for p in (b.attn.c_attn, b.mlp.c_proj)]
    return sum(p.weight.numel() for p in parts), sum(p.bias.numel() for p in parts)


_COUNT = [
    _count_but("count.one layer", "This is one layer; all are asked for.", layers=1),
    _count_but("count.c_proj missing", "c_proj is missing: it mixes the heads and belongs to the "
               "attention.", modules=("c_attn",)),
    _count_but("count.c_attn missing", "c_attn is missing, the largest of them.",
               modules=("c_proj",)),
    _count_but("numel.rows counted", "Rows are counted, by len(), where the numbers are asked "
               "for.", count=len),
    _wrong("attention_parameters", "count.biases among the weights", "Biases are counted among "
           "the weights.", lambda m: (_one_number(m), attention_parameters(m)[1])),
    _wrong("attention_parameters", "count.biases among the weights", "This is one number for "
           "weights and biases together; the two are asked for apart.", _one_number),
    _wrong("attention_parameters", "count.no bias", "The biases are not counted.",
           lambda m: (attention_parameters(m)[0], 0)),
    _wrong("attention_parameters", "count.mlp", "The MLP is counted too; the attention's two "
           "modules are asked for.", _with_mlp),
    _wrong("attention_parameters", "count.c_proj of the MLP", "There are two c_proj in a block; "
           "this is the MLP's.", _wrong_projection),
    _wrong("attention_parameters", "count.order", "Weights come first, then biases.",
           lambda m: attention_parameters(m)[::-1]),
    _wrong("attention_parameters", "numel.tensors counted", "The tensors are counted, not the "
           "numbers in them.", lambda m: (2 * len(m.transformer.h), 2 * len(m.transformer.h))),
]


# --- splitting -----------------------------------------------------------------------------------
def split_wide(wide):
    return tuple(wide.split(wide.shape[0], dim=1))


_AXIS = "The weight is cut along its rows. Conv1D stores [inputs, outputs]: queries, keys and "
_SPLIT = [
    _wrong("split_wide", "split.axis", _AXIS + "values are columns.", lambda w: w.chunk(3, dim=0)),
    _wrong("split_wide", "split.axis", _AXIS + "values are columns, so this gives one piece.",
           lambda w: w.split(w.shape[0], dim=0)),
    _wrong("split_wide", "split.axis", _AXIS + "values are columns, so the second and third "
           "piece are empty.", lambda w: tuple(w[i * len(w):(i + 1) * len(w)] for i in range(3))),
    _wrong("split_wide", "split.axis", _AXIS + "values are columns. Transposing first does not "
           "change which numbers belong together.",
           lambda w: tuple(w.T.split(w.shape[0], dim=0))),
    _wrong("split_wide", "split.order", "Keys come first here. The order is queries, keys, "
           "values.", lambda w: tuple(split_wide(w)[i] for i in (1, 0, 2))),
    _wrong("split_wide", "split.order", "Values and keys are swapped. The order is queries, "
           "keys, values.", lambda w: tuple(split_wide(w)[i] for i in (0, 2, 1))),
    _wrong("split_wide", "split.order", "The order is queries, keys, values.",
           lambda w: split_wide(w)[::-1]),
    _wrong("split_wide", "split.reshaped", "The weight is reshaped to three squares: the shape "
           "fits, but each square holds a third of the rows.",
           lambda w: tuple(w.reshape(3, len(w), len(w)))),
    _wrong("split_wide", "split.interleaved", "Every third column is taken. The three matrices "
           "lie side by side, each in one piece.", lambda w: tuple(w[:, i::3] for i in range(3))),
    _wrong("split_wide", "split.stacked", "This is one tensor of three matrices; three matrices "
           "are asked for, q, k, v = ...",
           lambda w: torch.cat(split_wide(w))),
]


# --- a density -----------------------------------------------------------------------------------
def density(values, edges, centres=None, whole=None, width=True):
    """Density over all values; the arguments are the switches of mistakes."""
    flat = values.flatten()
    counts = torch.histogram(flat, edges).hist
    inside = counts.sum() / len(flat)
    scale = counts.sum() if whole == "inside" else len(flat)
    heights = counts / scale / (edges.diff() if width else 1)
    middle = (edges[:-1] + edges[1:]) / 2 if centres is None else centres(edges)
    return middle, heights, 1 - inside


def _density_but(check, message, **how):
    return _wrong("density", check, message, lambda v, e: density(v, e, **how))


_DENSITY = [
    _density_but("histogram.left edges", "The positions are the left edges of the bins. A curve "
                 "drawn there is shifted by half a bin.", centres=lambda e: e[:-1]),
    _density_but("histogram.right edges", "The positions are the right edges of the bins.",
                 centres=lambda e: e[1:]),
    _density_but("histogram.all edges", "There is one edge more than there are bins; where is the "
                 "middle of each?", centres=lambda e: e),
    _density_but("histogram.inside only", "The density is over the values between the edges "
                 "alone, as density=True does. What lies outside vanishes, and the rest looks "
                 "larger than it is.", whole="inside"),
    _density_but("histogram.not per width", "These are shares of the bins. A density is a share "
                 "per unit of width, so that it does not depend on the number of bins.",
                 width=False),
    _wrong("density", "histogram.counts", "These are counts.",
           lambda v, e: (density(v, e)[0], torch.histogram(v.flatten(), e).hist, density(v, e)[2])),
    _wrong("density", "histogram.outside counted", "`outside` is a count; a share is asked for.",
           lambda v, e: (*density(v, e)[:2], density(v, e)[2] * v.numel())),
    _wrong("density", "histogram.share inside", "This is the share between the edges; asked for "
           "is the share outside.", lambda v, e: (*density(v, e)[:2], 1 - density(v, e)[2])),
    _wrong("density", "histogram.one side", "Only what lies above the last edge is counted as "
           "outside.", lambda v, e: (*density(v, e)[:2], (v > e[-1]).double().mean())),
    _wrong("density", "histogram.outside in the end bins", "What lies beyond the edges is counted "
           "in the first and last bin.",
           lambda v, e: density(v.clamp(e[0].item(), e[-1].item()), e)),
    _wrong("density", "histogram.outside in the end bins", "What lies beyond the edges is counted "
           "in the first and last bin.",
           lambda v, e: (*density(v.clamp(e[0].item(), e[-1].item()), e)[:2], density(v, e)[2])),
]


# --- statistics by layer -------------------------------------------------------------------------
def _moments(values, correction=1):
    return torch.stack([values.mean(), values.std(correction=correction)])


def _layers(model, part, how):
    """[n_layer, 3, 2] of `part(matrix)`; `how` holds the switches of a mistake."""
    tables = []
    for block in model.transformer.h:
        weight = block.attn.c_attn.weight.detach()
        if how.get("rows"):
            matrices = weight.reshape(3, len(weight), len(weight))
        elif how.get("interleaved"):
            matrices = [weight[:, i::3] for i in range(3)]
        else:
            matrices = split_wide(weight)
        matrices = [matrices[i] for i in how.get("order", (0, 1, 2))]
        if how.get("with_bias"):
            biases = block.attn.c_attn.bias.detach().chunk(3)
            matrices = [torch.cat([m, b[None]]) for m, b in zip(matrices, biases, strict=True)]
        tables.append(torch.stack([part(m) for m in matrices]))
    if how.get("one_layer"):
        tables = [tables[how["one_layer"]]] * len(tables)
    return torch.stack(tables)


def qkv_stats(model, part=_moments, **how):
    return _layers(model, part, how)


def _stats_but(check, message, *, last=lambda t: t, **how):
    return _wrong("qkv_stats", check, message, lambda m: last(qkv_stats(m, **how)))


_STATISTICS = [
    _stats_but("statistics.ddof", "The standard deviation divides by n, as numpy's does. Here "
               "torch's is asked for, which divides by n - 1. Do not mix them.",
               part=lambda w: _moments(w, 0)),
    _stats_but("statistics.variance", "The second number is the variance.",
               part=lambda w: torch.stack([w.mean(), w.var()])),
    _stats_but("statistics.mean of columns", "This is the mean of the columns' standard "
               "deviations; asked for is one of all numbers of the matrix.",
               part=lambda w: torch.stack([w.mean(), w.std(0).mean()])),
    _stats_but("statistics.absolute values", "The numbers lost their sign before the mean was "
               "taken.", part=lambda w: _moments(w.abs())),
    _stats_but("statistics.order", "Mean first, then standard deviation.",
               last=lambda t: t.flip(-1)),
    _stats_but("split.order", "The order is queries, keys, values.", order=(0, 2, 1)),
    _stats_but("split.order", "The order is queries, keys, values.", order=(1, 0, 2)),
    _stats_but("split.axis", "The weight is cut along its rows, by a reshape. Queries, keys and "
               "values are columns.", rows=True),
    _stats_but("split.axis", "The weight is cut along its rows. Queries, keys and values are "
               "columns.", part=lambda w: w, last=lambda t: _row_stats(t)),
    _stats_but("split.interleaved", "Every third column is taken. The three matrices lie side by "
               "side.", interleaved=True),
    _stats_but("statistics.bias included", "The biases are among the numbers; weights alone are "
               "asked for.", with_bias=True),
    _stats_but("statistics.last layer everywhere", "Every row holds the last layer.",
               one_layer=-1),
    _stats_but("statistics.axes", "Layers come first, then queries, keys and values, then mean "
               "and standard deviation.", last=lambda t: t.transpose(0, 1)),
    _stats_but("statistics.axes", "Layers come first, then queries, keys and values, then mean "
               "and standard deviation.", last=lambda t: t.transpose(1, 2)),
]


def _row_stats(parts):
    """Statistics of the thirds of the rows, from the three matrices of each layer."""
    wide = torch.cat(list(parts.unbind(1)), dim=-1)
    return torch.stack([torch.stack([_moments(p) for p in w.chunk(3, dim=0)]) for w in wide])


# --- heads ---------------------------------------------------------------------------------------
def head_columns(weight, num_heads):
    return weight.unflatten(1, (num_heads, -1)).transpose(0, 1)


_HEADS = [
    _wrong("head_columns", "heads.reshaped", "One view has the right shape and the wrong numbers: "
           "it cuts the weight into groups of rows. Split the columns, then move the head "
           "forward.", lambda w, n: w.reshape(n, len(w), -1)),
    _wrong("head_columns", "heads.interleaved", "Head 0 has every num_heads-th column. A head's "
           "columns lie side by side.",
           lambda w, n: torch.stack([w[:, i::n] for i in range(n)])),
    _wrong("head_columns", "heads.rows", "The rows are split by head. Rows are what a head "
           "reads; what it makes are columns.",
           lambda w, n: torch.stack([p.T for p in w.split(w.shape[1] // n, dim=0)][:n])),
    _wrong("head_columns", "heads.rows", "The rows are split by head. Rows are what a head "
           "reads; what it makes are columns.", lambda w, n: w.unflatten(0, (n, -1))),
    _wrong("head_columns", "heads.transposed", "Each head's matrix is transposed: hidden comes "
           "first, head_size last.", lambda w, n: head_columns(w, n).mT),
    _wrong("head_columns", "heads.head in the middle", "The head is the second axis; it should "
           "be the first.", lambda w, n: w.unflatten(1, (n, -1))),
    _wrong("head_columns", "heads.size for count", "The columns are cut into pieces of num_heads "
           "columns; there should be num_heads pieces.",
           lambda w, n: torch.stack(w.split(n, dim=1))),
    _wrong("head_columns", "heads.order", "The heads are in reverse order.",
           lambda w, n: head_columns(w, n).flip(0)),
]


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


_NORM_AXIS = "The rows are scaled to length 1. Compared are the columns, so each column needs it."
_DIAGONAL = "The diagonal is included: a column's cosine with itself, always 1. That is no pair."
_COSINES = [
    _wrong("head_cosines", "cosine.norm axis", _NORM_AXIS, lambda w: head_cosines(w, axis=1)),
    _wrong("head_cosines", "cosine.diagonal", _DIAGONAL, lambda w: head_cosines(w, offset=0)),
    _wrong("head_cosines", "cosine.one diagonal too many", "The pairs of neighbouring columns are "
           "missing.", lambda w: head_cosines(w, offset=2)),
    _wrong("head_cosines", "cosine.not normalised", "These are dot products; a cosine is divided "
           "by both lengths.", _products),
    _wrong("head_cosines", "cosine.one norm for all", "All columns are divided by the same "
           "number, the norm of the whole matrix.",
           lambda w: _products(w / w.norm())),
    _wrong("head_cosines", "cosine.every pair twice", "Each pair is there twice: the matrix is "
           "symmetric, so half of it is enough.",
           lambda w: (_cosines(w), _cosines(w)[~torch.eye(w.shape[1], dtype=torch.bool)])),
    _wrong("head_cosines", "cosine.every pair twice", "This is the whole matrix: each pair twice, "
           "and the diagonal.", lambda w: (_cosines(w), _cosines(w).flatten())),
    _wrong("head_cosines", "cosine.zeros kept", "The lower half is set to 0 but still there: "
           "zeros are no cosines. Pick entries, do not multiply.",
           lambda w: (_cosines(w), _cosines(w).triu(1).flatten())),
    _wrong("head_cosines", "cosine.rows compared", "The rows are compared; asked for are the "
           "columns.", lambda w: head_cosines(w.T)),
    _wrong("head_cosines", "cosine.centred", "The columns' means are taken off first: that is a "
           "correlation, not a cosine.", lambda w: head_cosines(w - w.mean(0))),
    _wrong("head_cosines", "cosine.sample norm", "The columns are divided by their standard "
           "deviation, not by their length.",
           lambda w: _products(w / w.std(0))),
]


def within_across(weight, num_heads, axis=0, offset=1, correction=1, last=lambda t: t):
    """Mean and std of cosines, within and across heads; the arguments are mistakes' switches."""
    size = weight.shape[1] // num_heads
    heads = weight.split(size, dim=1)
    within = [_upper(_cosines(h, axis), offset) for h in heads]
    across = [(_unit(a, axis).T @ _unit(b, axis)).flatten()
              for i, a in enumerate(heads) for b in heads[i + 1:]]
    groups = [torch.cat(g) for g in (within, across)]
    return last(torch.stack([_moments(g, correction) for g in groups]))


def _across_upper(weight, num_heads):
    size = weight.shape[1] // num_heads
    cosines = _cosines(weight)
    blocks = cosines.unflatten(0, (num_heads, size)).unflatten(2, (num_heads, size))
    across = [_upper(blocks[i, :, j]) for i in range(num_heads) for j in range(i + 1, num_heads)]
    return torch.stack([within_across(weight, num_heads)[0], _moments(torch.cat(across))])


def _all_for_across(weight, num_heads):
    return torch.stack([within_across(weight, num_heads)[0], _moments(_upper(_cosines(weight)))])


def _within_twice(weight, num_heads):
    size = weight.shape[1] // num_heads
    off = ~torch.eye(size, dtype=torch.bool)
    within = torch.cat([_cosines(h)[off] for h in weight.split(size, dim=1)])
    return torch.stack([_moments(within), within_across(weight, num_heads)[1]])


def _within_whole(weight, num_heads):
    size = weight.shape[1] // num_heads
    within = torch.cat([_cosines(h).flatten() for h in weight.split(size, dim=1)])
    return torch.stack([_moments(within), within_across(weight, num_heads)[1]])


def _interleaved(weight, num_heads):
    size = weight.shape[1] // num_heads
    place = torch.arange(weight.shape[1])
    return within_across(weight[:, place.view(size, num_heads).T.flatten()], num_heads)


def _across_twice(weight, num_heads):
    size = weight.shape[1] // num_heads
    heads = weight.split(size, dim=1)
    across = [(_unit(a).T @ _unit(b)).flatten() for a in heads for b in heads if a is not b]
    return torch.stack([within_across(weight, num_heads)[0], _moments(torch.cat(across))])


def _within_but(check, message, **how):
    return _wrong("within_across", check, message, lambda w, n: within_across(w, n, **how))


_WITHIN = [
    _within_but("cosine.norm axis", _NORM_AXIS, axis=1),
    _within_but("cosine.diagonal", _DIAGONAL, offset=0),
    _wrong("within_across", "cosine.diagonal", "Within a head the whole matrix is kept: each pair "
           "twice, and the diagonal, which is always 1.", _within_whole),
    _wrong("within_across", "cosine.every pair twice", "Within a head each pair is counted twice; "
           "the matrix is symmetric.", _within_twice),
    _within_but("statistics.ddof", "The standard deviation divides by n. Use torch's, which "
                "divides by n - 1.", correction=0),
    _wrong("within_across", "cosine.across only the upper half", "Across two heads only the part "
           "above the diagonal is kept. That matrix is not symmetric: all of it counts.",
           _across_upper),
    _wrong("within_across", "cosine.across holds all", "The second row holds all pairs, those "
           "within a head too.", _all_for_across),
    _wrong("within_across", "cosine.across twice", "Each pair of heads is counted in both orders, "
           "so every cosine across heads is there twice.", _across_twice),
    _within_but("cosine.rows swapped", "Within and across are swapped.", last=lambda t: t.flip(0)),
    _within_but("cosine.axes flipped", "Rows are within and across, columns are mean and std; "
                "here it is the other way round.", last=lambda t: t.T),
    _wrong("within_across", "heads.interleaved", "A head's columns lie side by side; here every "
           "num_heads-th column is taken for one head.", _interleaved),
    _within_but("statistics.variance", "The second column holds variances.",
                last=lambda t: torch.stack([t[:, 0], t[:, 1] ** 2], dim=1)),
]


# --- all columns ---------------------------------------------------------------------------------
def column_stats(model, axis=0, offset=1, correction=1, pick=_upper, **how):
    return _layers(model, lambda w: _moments(pick(_cosines(w, axis), offset), correction), how)


def _columns_but(check, message, last=lambda t: t, **how):
    return _wrong("column_stats", check, message, lambda m: last(column_stats(m, **how)))


_ALL_COLUMNS = [
    _columns_but("cosine.norm axis", _NORM_AXIS, axis=1),
    _columns_but("cosine.diagonal", _DIAGONAL, offset=0),
    _columns_but("cosine.diagonal", "The whole matrix is used: each pair twice, and the diagonal.",
                 pick=lambda c, k: c.flatten()),
    _columns_but("cosine.zeros kept", "The lower half is set to 0 but still counted. Pick "
                 "entries, do not multiply.", pick=lambda c, k: c.triu(k).flatten()),
    _columns_but("cosine.every pair twice", "Each pair is counted twice.",
                 pick=lambda c, k: c[~torch.eye(len(c), dtype=torch.bool)]),
    _columns_but("statistics.ddof", "The standard deviation divides by n. Use torch's, which "
                 "divides by n - 1.", correction=0),
    _columns_but("split.order", "The order is queries, keys, values.", order=(0, 2, 1)),
    _columns_but("split.order", "The order is queries, keys, values.", order=(1, 0, 2)),
    _columns_but("split.axis", "The weight is cut along its rows, by a reshape.", rows=True),
    _columns_but("split.interleaved", "Every third column is taken. The three matrices lie side "
                 "by side.", interleaved=True),
    _columns_but("statistics.order", "Mean first, then standard deviation.",
                 last=lambda t: t.flip(-1)),
    _columns_but("statistics.last layer everywhere", "Every row holds the last layer.",
                 one_layer=-1),
    _columns_but("statistics.axes", "Layers come first, then queries, keys and values, then mean "
                 "and standard deviation.", last=lambda t: t.transpose(0, 1)),
    _wrong("column_stats", "cosine.not normalised", "These are dot products; a cosine is divided "
           "by both lengths.", lambda m: _layers(m, lambda w: _moments(_upper(w.T @ w)), {})),
    _wrong("column_stats", "cosine.rows compared", "The rows are compared; asked for are the "
           "columns.", lambda m: _layers(m, lambda w: _moments(_upper(_cosines(w.T))), {})),
]


# --- gauge freedom -------------------------------------------------------------------------------
def change_gauge(w_q, b_q, w_k, b_k, r):
    s = torch.linalg.inv(r).T
    return w_q @ r, b_q @ r, w_k @ s, b_k @ s


def _gauge(turn):
    """Keys turned by `turn(r)` in place of the transposed inverse."""
    return lambda wq, bq, wk, bk, r: (wq @ r, bq @ r, wk @ turn(r), bk @ turn(r))


_GAUGE = [
    _wrong("change_gauge", "gauge.same for both", "Queries and keys are both multiplied by r. "
           "Then the scores contain r r^T, which is the identity only if r is a rotation.",
           _gauge(lambda r: r)),
    _wrong("change_gauge", "gauge.inverse not transposed", "The keys are multiplied by the "
           "inverse. Keys stand transposed in the scores, so it must be the transposed inverse.",
           _gauge(torch.linalg.inv)),
    _wrong("change_gauge", "gauge.transposed for inverse", "The keys are multiplied by r "
           "transposed. It is the inverse that undoes r.", _gauge(lambda r: r.T)),
    _wrong("change_gauge", "gauge.keys unchanged", "Only the queries are changed; the scores "
           "change with them.", lambda wq, bq, wk, bk, r: (wq @ r, bq @ r, wk, bk)),
    _wrong("change_gauge", "gauge.biases forgotten", "The weights are right, the biases are as "
           "they were. They are part of the queries and keys.",
           lambda wq, bq, wk, bk, r: (change_gauge(wq, bq, wk, bk, r)[0], bq,
                                      change_gauge(wq, bq, wk, bk, r)[2], bk)),
    _wrong("change_gauge", "gauge.bias on the wrong side", "The biases are multiplied from the "
           "other side. A bias is one more row, as a query is.",
           lambda wq, bq, wk, bk, r: (wq @ r, r @ bq, wk @ torch.linalg.inv(r).T,
                                      torch.linalg.inv(r).T @ bk)),
    _wrong("change_gauge", "gauge.roles swapped", "The keys are multiplied by r and the queries "
           "by the transposed inverse: the scores stay, but asked is the other way round.",
           lambda wq, bq, wk, bk, r: (wq @ torch.linalg.inv(r).T, bq @ torch.linalg.inv(r).T,
                                      wk @ r, bk @ r)),
    _wrong("change_gauge", "gauge.transposed twice", "The queries are multiplied by r transposed.",
           lambda wq, bq, wk, bk, r: (wq @ r.T, bq @ r.T, wk @ torch.linalg.inv(r),
                                      bk @ torch.linalg.inv(r))),
    _wrong("change_gauge", "gauge.nothing changed", "Nothing has changed.",
           lambda wq, bq, wk, bk, r: (wq, bq, wk, bk)),
    _wrong("change_gauge", "gauge.order", "The order is w_q, b_q, w_k, b_k.",
           lambda *a: tuple(change_gauge(*a)[i] for i in (0, 2, 1, 3))),
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
    return _wrong("identity_distance", check, message, lambda q, k: identity_distance(q, k, **how))


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


_IDENTITY = [
    _identity_but("identity.itself", "This is the distance from I itself. A model is free to "
                  "scale its scores, so ask for the nearest multiple of I.",
                  c=lambda m, size: torch.ones(())),
    _identity_but("identity.trace", "c is the trace; the mean of the diagonal is nearer.",
                  c=lambda m, size: m.trace()),
    _identity_but("identity.divided by the rank", "The trace is divided by the head size. The "
                  "diagonal has as many entries as the hidden size.",
                  c=lambda m, size: m.trace() / size),
    _identity_but("identity.mean of all entries", "c is the mean of all entries; off the diagonal "
                  "I is zero, whatever c is.", c=lambda m, size: m.mean()),
    _identity_but("identity.norm for trace", "c comes from the norm. That gets the size right and "
                  "ignores the direction.", c=lambda m, size: m.norm() / math.sqrt(len(m))),
    _wrong("identity_distance", "identity.not relative", "The distance is not divided by the norm "
           "of the matrix, so large weights look far from everything.", _not_relative),
    _wrong("identity_distance", "identity.not relative", "The distance is divided by the norm of "
           "the multiple of I; asked for is the share of the norm of the matrix.",
           _against_the_multiple),
    _wrong("identity_distance", "identity.squared", "The distance is squared.", _squared),
    _identity_but("identity.bound of the share", "The bound is the share that rank allows, not "
                  "the distance that it leaves.", bound=lambda q: math.sqrt(len(q.T) / len(q))),
    _identity_but("identity.bound not a root", "The bound is that of the squared distance.",
                  bound=lambda q: 1 - len(q.T) / len(q)),
    _wrong("identity_distance", "identity.small matrix", "The matrix is W_Q^T W_K, [head_size, "
           "head_size]. Tokens meet in W_Q W_K^T.", _small_matrix),
    _wrong("identity_distance", "identity.small matrix", "The matrix is W_K^T W_Q, [head_size, "
           "head_size]. Tokens meet in W_Q W_K^T.", lambda q, k: _small_matrix(k, q)),
]


def symmetric_parts(w_q, w_k):
    m = _qk(w_q, w_k)
    return (m + m.T).norm() / (2 * m.norm()), (m - m.T).norm() / (2 * m.norm())


def _parts(change):
    return lambda q, k: change(*symmetric_parts(q, k), _qk(q, k))


_SYMMETRIC = [
    _wrong("symmetric_parts", "symmetric.not halved", "The symmetric part is HALF the sum of the "
           "matrix and its transpose.", _parts(lambda s, a, m: (2 * s, 2 * a))),
    _wrong("symmetric_parts", "symmetric.squared", "These are shares of the squared norm.",
           _parts(lambda s, a, m: (s**2, a**2))),
    _wrong("symmetric_parts", "symmetric.order", "The symmetric part comes first.",
           _parts(lambda s, a, m: (a, s))),
    _wrong("symmetric_parts", "symmetric.not relative", "The norms are not divided by the norm "
           "of the matrix.", _parts(lambda s, a, m: (s * m.norm(), a * m.norm()))),
    _wrong("symmetric_parts", "symmetric.sum to one", "The second is taken for 1 minus the first. "
           "It is their squares that sum to 1.", _parts(lambda s, a, m: (s, 1 - s))),
    _wrong("symmetric_parts", "symmetric.triangles", "These are the halves above and below the "
           "diagonal, not the symmetric and antisymmetric parts.",
           _parts(lambda s, a, m: (m.triu().norm() / m.norm(), m.tril(-1).norm() / m.norm()))),
    _wrong("symmetric_parts", "symmetric.small matrix", "The matrix is W_Q^T W_K, [head_size, "
           "head_size]. Tokens meet in W_Q W_K^T.",
           lambda q, k: symmetric_parts(q.T, k.T)),
    _wrong("symmetric_parts", "symmetric.spectral norm", "The largest singular value is used as "
           "norm; asked for is the root of the sum of squares.",
           _parts(lambda s, a, m: tuple(
               torch.linalg.matrix_norm(p, 2) / torch.linalg.matrix_norm(m, 2)
               for p in ((m + m.T) / 2, (m - m.T) / 2)))),
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


_DEFINITE = [
    _wrong("definiteness", "definite.singular values", "These are singular values, which are never "
           "negative: they cannot tell.", _signed(torch.linalg.svdvals)),
    _wrong("definiteness", "definite.singular values", "These are singular values of the symmetric "
           "part, which are never negative: they cannot tell.",
           lambda q, k: _signs(torch.linalg.svdvals(_symmetric(q, k)))),
    _wrong("definiteness", "definite.not symmetric", "eigvalsh was given a matrix that is not "
           "symmetric. It looks at one half alone and says nothing.",
           _signed(torch.linalg.eigvalsh)),
    _wrong("definiteness", "definite.not symmetric", "These are the real parts of the eigenvalues "
           "of the matrix itself; definiteness is about its symmetric part.",
           _signed(lambda m: torch.linalg.eigvals(m).real)),
    _wrong("definiteness", "definite.not halved", "The symmetric part is half the sum of the "
           "matrix and its transpose.",
           _signed(lambda m: torch.linalg.eigvalsh(m + m.T))),
    _wrong("definiteness", "definite.antisymmetric", "This is the antisymmetric part.",
           _signed(lambda m: torch.linalg.eigvalsh(m - m.T) / 2)),
    _wrong("definiteness", "definite.order", "Smallest first, then largest.",
           lambda q, k: tuple(definiteness(q, k)[i] for i in (1, 0, 2))),
    _wrong("definiteness", "definite.negative share", "This is the share of the negative ones.",
           lambda q, k: (*definiteness(q, k)[:2], 1 - definiteness(q, k)[2])),
    _wrong("definiteness", "definite.ratio", "The positive sum is divided by the negative one; "
           "asked for is its share of both.",
           lambda q, k: (*definiteness(q, k)[:2],
                         definiteness(q, k)[2] / (1 - definiteness(q, k)[2]))),
    _wrong("definiteness", "definite.signed sum", "The positive sum is divided by the sum of all "
           "eigenvalues, in which the signs cancel. Take absolute values.",
           lambda q, k: (*definiteness(q, k)[:2],
                         torch.linalg.eigvalsh(_symmetric(q, k)).clamp(min=0).sum()
                         / _qk(q, k).trace())),
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
    return _wrong("score_terms", check, message, lambda *a: change(score_terms(*a, **how)))


def _content_only(x, w_q, b_q, w_k, b_k):
    plain = score_terms(x, w_q, b_q, w_k, b_k, scale=lambda x, w: 1)
    return plain | {"content": plain["content"] / math.sqrt(len(b_q))}


_TERMS = [
    _terms_but("scale.missing", "The terms are not divided by the root of the head size.",
               scale=lambda x, w: 1),
    _terms_but("scale.hidden", "The scale uses the hidden size; a query has head_size features.",
               scale=lambda x, w: math.sqrt(w.shape[0])),
    _terms_but("scale.not a root", "The scale is the head size; its root is needed.",
               scale=lambda x, w: w.shape[1]),
    _wrong("score_terms", "scale.content only", "Only the content is scaled. The scale comes after "
           "the sum, so it belongs to all four.", _content_only),
    _terms_but("terms.query and key swapped", "Two terms are swapped: x W_Q b_K depends on the "
               "query's token, b_Q W_K^T x^T on the key's.",
               lambda t: t | {"query": t["key"].T, "key": t["query"].T}),
    _wrong("score_terms", "terms.own bias", "The queries meet their own bias. In the product, "
           "x W_Q meets b_K, and x W_K meets b_Q.",
           lambda x, wq, bq, wk, bk: score_terms(x, wq, bk, wk, bq)),
    _terms_but("terms.row and column", "Shapes: what depends on the query is a column, what "
               "depends on the key a row.",
               lambda t: t | {"query": t["query"].T, "key": t["key"].T}),
    _terms_but("terms.no axis", "The terms of one token each lost an axis: broadcasting would "
               "then add the query's term along the keys. Keep [seq_len, 1] and [1, seq_len].",
               lambda t: t | {"query": t["query"][:, 0], "key": t["key"][0]}),
    _terms_but("terms.content transposed", "The content is transposed: rows belong to queries.",
               lambda t: t | {"content": t["content"].T}),
    _wrong("score_terms", "terms.biases in the content", "The content has the biases in it "
           "already.", lambda x, wq, bq, wk, bk: score_terms(x, wq, bq, wk, bk) | {
               "content": (x @ wq + bq) @ (x @ wk + bk).T / math.sqrt(len(bq))}),
    _terms_but("terms.constant missing", "The constant is left at 0. It changes no weight, but it "
               "is part of the scores.", lambda t: t | {"constant": torch.zeros(())}),
]



def _floats(function):
    return lambda *args: tuple(map(float, function(*args)))


SOLVE = {
    "weights.params": {"params": params},
    "weights.count": {"attention_parameters": attention_parameters},
    "weights.split": {"split_wide": split_wide},
    "weights.histogram": {"density": density},
    "weights.statistics": {"qkv_stats": qkv_stats},
    "weights.heads": {"head_columns": head_columns},
    "weights.cosines": {"head_cosines": head_cosines},
    "weights.within_across": {"within_across": within_across},
    "weights.all_columns": {"column_stats": column_stats},
    "weights.gauge": {"change_gauge": change_gauge},
    "weights.identity": {"identity_distance": _floats(identity_distance)},
    "weights.symmetric": {"symmetric_parts": _floats(symmetric_parts)},
    "weights.definite": {"definiteness": _floats(definiteness)},
    "weights.biases": {"score_terms": score_terms},
}
MISTAKES = {
    "weights.params": _PARAMS,
    "weights.count": _COUNT,
    "weights.split": _SPLIT,
    "weights.histogram": _DENSITY,
    "weights.statistics": _STATISTICS,
    "weights.heads": _HEADS,
    "weights.cosines": _COSINES,
    "weights.within_across": _WITHIN,
    "weights.all_columns": _ALL_COLUMNS,
    "weights.gauge": _GAUGE,
    "weights.identity": _IDENTITY,
    "weights.symmetric": _SYMMETRIC,
    "weights.definite": _DEFINITE,
    "weights.biases": _TERMS,
}
