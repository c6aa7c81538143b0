"""Answers of lesson 10 and its wrong programs, up to the heads; the rest is in `column_cosines` and
`qk_matrix`."""

from __future__ import annotations

import torch

from autograder.course.asking import mistake


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
    return mistake("params", check, message, lambda c: params(c, **changed))


_PARAMS = [
    _params_but(
        "params.head_dim is hidden",
        "head_dim is the whole hidden size; the heads share it.",
        head_dim=lambda c: c.n_embd,
    ),
    _params_but(
        "params.head_dim is the number of heads",
        "head_dim is how many features one head has, not how many heads there are.",
        head_dim=lambda c: c.n_head,
    ),
    _params_but(
        "params.layers and heads swapped",
        "Layers and heads are swapped.",
        n_layers=lambda c: c.n_head,
        n_heads=lambda c: c.n_layer,
    ),
    _params_but(
        "params.layers and heads swapped",
        "Layers and heads are swapped, and so the size of a head is wrong too.",
        n_layers=lambda c: c.n_head,
        n_heads=lambda c: c.n_layer,
        head_dim=lambda c: c.n_embd // c.n_layer,
    ),
    _params_but(
        "params.head_dim by layers",
        "head_dim divides by the number of layers.",
        head_dim=lambda c: c.n_embd // c.n_layer,
    ),
    _params_but(
        "params.positions for embedding",
        "n_emb is the size of one token's vector; n_positions is how many tokens fit.",
        n_emb=lambda c: c.n_positions,
    ),
    _params_but(
        "params.positions for embedding",
        "n_emb is the size of one token's vector; "
        "n_positions is how many tokens fit. head_dim goes wrong with it.",
        n_emb=lambda c: c.n_positions,
        head_dim=lambda c: c.n_positions // c.n_head,
    ),
]


def attention_parameters(model, layers=None, modules=("c_attn", "c_proj"), count=torch.numel):
    """Weights and biases of all layers' attention; the arguments are the switches of mistakes."""
    blocks = list(model.transformer.h)[:layers]
    parts = [getattr(block.attn, name) for block in blocks for name in modules]
    return sum(count(p.weight) for p in parts), sum(count(p.bias) for p in parts)


def _count_but(check, message, **how):
    return mistake("attention_parameters", check, message, lambda m: attention_parameters(m, **how))


def _one_number(model):
    return sum(attention_parameters(model))


def _with_mlp(model):
    parts = [
        p
        for b in model.transformer.h
        for p in (b.attn.c_attn, b.attn.c_proj, b.mlp.c_fc, b.mlp.c_proj)
    ]
    return sum(p.weight.numel() for p in parts), sum(p.bias.numel() for p in parts)


def _wrong_projection(model):
    parts = [p for b in model.transformer.h for p in (b.attn.c_attn, b.mlp.c_proj)]
    return sum(p.weight.numel() for p in parts), sum(p.bias.numel() for p in parts)


def _named(model, parts):
    """Numbers in all weights and all biases whose name contains one of these."""
    named = [(n, p.numel()) for n, p in model.named_parameters() if any(x in n for x in parts)]
    return tuple(
        sum(count for n, count in named if n.endswith(kind)) for kind in ("weight", "bias")
    )


_COUNT = [
    _count_but("count.one layer", "This is one layer; all are asked for.", layers=1),
    _count_but(
        "count.c_proj missing",
        "c_proj is missing: it mixes the heads and belongs to the attention.",
        modules=("c_attn",),
    ),
    _count_but(
        "count.c_attn missing", "c_attn is missing, the largest of them.", modules=("c_proj",)
    ),
    _count_but(
        "numel.rows counted",
        "Rows are counted, by len(), where the numbers are asked for.",
        count=len,
    ),
    mistake(
        "attention_parameters",
        "count.biases among the weights",
        "Biases are counted among the weights.",
        lambda m: (_one_number(m), attention_parameters(m)[1]),
    ),
    mistake(
        "attention_parameters",
        "count.biases among the weights",
        "This is one number for weights and biases together; the two are asked for apart.",
        _one_number,
    ),
    mistake(
        "attention_parameters",
        "count.no bias",
        "The biases are not counted.",
        lambda m: (attention_parameters(m)[0], 0),
    ),
    mistake(
        "attention_parameters",
        "count.mlp",
        "The MLP is counted too; the attention's two modules are asked for.",
        _with_mlp,
    ),
    mistake(
        "attention_parameters",
        "count.c_proj of the MLP",
        "There are two c_proj in a block; this is the MLP's.",
        _wrong_projection,
    ),
    mistake(
        "attention_parameters",
        "count.order",
        "Weights come first, then biases.",
        lambda m: attention_parameters(m)[::-1],
    ),
    mistake(
        "attention_parameters",
        "numel.tensors counted",
        "The tensors are counted, not the numbers in them.",
        lambda m: (2 * len(m.transformer.h), 2 * len(m.transformer.h)),
    ),
    mistake(
        "attention_parameters",
        "count.c_proj of the MLP",
        "Every c_proj is counted. There are two in a block; the MLP's is not attention.",
        lambda m: _named(m, ("c_attn", "c_proj")),
    ),
    mistake(
        "attention_parameters",
        "count.whole model",
        "The whole model is counted; the attention of its blocks is asked for.",
        lambda m: _named(m, ("",)),
    ),
]


# --- splitting -----------------------------------------------------------------------------------
def split_wide(wide):
    return tuple(wide.split(wide.shape[0], dim=1))


_AXIS = "The weight is cut along its rows. Conv1D stores [inputs, outputs]: queries, keys and "
_SPLIT = [
    mistake("split_wide", "split.axis", _AXIS + "values are columns.", lambda w: w.chunk(3, dim=0)),
    mistake(
        "split_wide",
        "split.axis",
        _AXIS + "values are columns, so this gives one piece.",
        lambda w: w.split(w.shape[0], dim=0),
    ),
    mistake(
        "split_wide",
        "split.axis",
        _AXIS + "values are columns, so the second and third piece are empty.",
        lambda w: tuple(w[i * len(w) : (i + 1) * len(w)] for i in range(3)),
    ),
    mistake(
        "split_wide",
        "split.axis",
        _AXIS + "values are columns. Transposing first does not "
        "change which numbers belong together.",
        lambda w: tuple(w.T.split(w.shape[0], dim=0)),
    ),
    mistake(
        "split_wide",
        "split.order",
        "Keys come first here. The order is queries, keys, values.",
        lambda w: tuple(split_wide(w)[i] for i in (1, 0, 2)),
    ),
    mistake(
        "split_wide",
        "split.order",
        "Values and keys are swapped. The order is queries, keys, values.",
        lambda w: tuple(split_wide(w)[i] for i in (0, 2, 1)),
    ),
    mistake(
        "split_wide",
        "split.order",
        "The order is queries, keys, values.",
        lambda w: split_wide(w)[::-1],
    ),
    mistake(
        "split_wide",
        "split.reshaped",
        "The weight is reshaped to three squares: the shape "
        "fits, but each square holds a third of the rows.",
        lambda w: tuple(w.reshape(3, len(w), len(w))),
    ),
    mistake(
        "split_wide",
        "split.interleaved",
        "Every third column is taken. The three matrices lie side by side, each in one piece.",
        lambda w: tuple(w[:, i::3] for i in range(3)),
    ),
    mistake(
        "split_wide",
        "split.stacked",
        "This is one tensor of three matrices; three matrices are asked for, q, k, v = ...",
        lambda w: torch.cat(split_wide(w)),
    ),
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
    return mistake("density", check, message, lambda v, e: density(v, e, **how))


_DENSITY = [
    _density_but(
        "histogram.left edges",
        "The positions are the left edges of the bins. A curve "
        "drawn there is shifted by half a bin.",
        centres=lambda e: e[:-1],
    ),
    _density_but(
        "histogram.right edges",
        "The positions are the right edges of the bins.",
        centres=lambda e: e[1:],
    ),
    _density_but(
        "histogram.all edges",
        "There is one edge more than there are bins; where is the middle of each?",
        centres=lambda e: e,
    ),
    _density_but(
        "histogram.inside only",
        "The density is over the values between the edges "
        "alone, as density=True does. What lies outside vanishes, and the rest looks "
        "larger than it is.",
        whole="inside",
    ),
    _density_but(
        "histogram.not per width",
        "These are shares of the bins. A density is a share "
        "per unit of width, so that it does not depend on the number of bins.",
        width=False,
    ),
    mistake(
        "density",
        "histogram.counts",
        "These are counts.",
        lambda v, e: (density(v, e)[0], torch.histogram(v.flatten(), e).hist, density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.outside counted",
        "`outside` is a count; a share is asked for.",
        lambda v, e: (*density(v, e)[:2], density(v, e)[2] * v.numel()),
    ),
    mistake(
        "density",
        "histogram.share inside",
        "This is the share between the edges; asked for is the share outside.",
        lambda v, e: (*density(v, e)[:2], 1 - density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.one side",
        "Only what lies above the last edge is counted as outside.",
        lambda v, e: (*density(v, e)[:2], (v > e[-1]).double().mean()),
    ),
    mistake(
        "density",
        "histogram.outside in the end bins",
        "What lies beyond the edges is counted in the first and last bin.",
        lambda v, e: density(v.clamp(e[0].item(), e[-1].item()), e),
    ),
    mistake(
        "density",
        "histogram.outside in the end bins",
        "What lies beyond the edges is counted in the first and last bin.",
        lambda v, e: (*density(v.clamp(e[0].item(), e[-1].item()), e)[:2], density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.inside only",
        "The density is over the values between the edges alone, as density=True does, and so "
        "nothing seems to lie outside. Count against all values.",
        lambda v, e: (*density(v, e, whole="inside")[:2], 0.0),
    ),
    mistake(
        "density",
        "histogram.not per value",
        "These are counts per unit of width; a density is a share per unit of width. Divide by "
        "the number of values.",
        lambda v, e: (density(v, e)[0], density(v, e)[1] * v.numel(), density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.rows for values",
        "`len` of a matrix counts its rows. Divide by all its values.",
        lambda v, e: (density(v, e)[0], density(v, e)[1] * v.numel() / len(v), density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.outside from heights",
        "`outside` is 1 minus the sum of the heights. A share is an area: height times width.",
        lambda v, e: (*density(v, e)[:2], 1 - density(v, e)[1].sum()),
    ),
    mistake(
        "density",
        "histogram.times width",
        "The shares are multiplied by the width; a density is divided by it.",
        lambda v, e: (density(v, e)[0], density(v, e)[1] * e.diff() ** 2, density(v, e)[2]),
    ),
    mistake(
        "density",
        "histogram.order",
        "The order is centres, heights, outside.",
        lambda v, e: tuple(density(v, e)[i] for i in (1, 0, 2)),
    ),
]


# --- statistics by layer -------------------------------------------------------------------------
def moments(values, correction=1):
    return torch.stack([values.mean(), values.std(correction=correction)])


def over_layers(model, part, how):
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
    if how.get("first"):
        tables = tables[:1] * len(tables)
    if how.get("one_layer"):
        tables = [tables[how["one_layer"]]] * len(tables)
    return torch.stack(tables)


def qkv_stats(model, part=moments, **how):
    return over_layers(model, part, how)


def _stats_but(check, message, *, last=lambda t: t, **how):
    return mistake("qkv_stats", check, message, lambda m: last(qkv_stats(m, **how)))


_STATISTICS = [
    _stats_but(
        "statistics.ddof",
        "The standard deviation divides by n, as numpy's does. Here "
        "torch's is asked for, which divides by n - 1. Do not mix them.",
        part=lambda w: moments(w, 0),
    ),
    _stats_but(
        "statistics.variance",
        "The second number is the variance.",
        part=lambda w: torch.stack([w.mean(), w.var()]),
    ),
    _stats_but(
        "statistics.mean of columns",
        "This is the mean of the columns' standard "
        "deviations; asked for is one of all numbers of the matrix.",
        part=lambda w: torch.stack([w.mean(), w.std(0).mean()]),
    ),
    _stats_but(
        "statistics.absolute values",
        "The numbers lost their sign before the mean was taken.",
        part=lambda w: moments(w.abs()),
    ),
    _stats_but(
        "statistics.order", "Mean first, then standard deviation.", last=lambda t: t.flip(-1)
    ),
    _stats_but("split.order", "The order is queries, keys, values.", order=(0, 2, 1)),
    _stats_but("split.order", "The order is queries, keys, values.", order=(1, 0, 2)),
    _stats_but(
        "split.axis",
        "The weight is cut along its rows, by a reshape. Queries, keys and values are columns.",
        rows=True,
    ),
    _stats_but(
        "split.axis",
        "The weight is cut along its rows. Queries, keys and values are columns.",
        part=lambda w: w,
        last=lambda t: _row_stats(t),
    ),
    _stats_but(
        "split.interleaved",
        "Every third column is taken. The three matrices lie side by side.",
        interleaved=True,
    ),
    _stats_but(
        "statistics.bias included",
        "The biases are among the numbers; weights alone are asked for.",
        with_bias=True,
    ),
    _stats_but("statistics.last layer everywhere", "Every row holds the last layer.", one_layer=-1),
    _stats_but(
        "statistics.axes",
        "Layers come first, then queries, keys and values, then mean and standard deviation.",
        last=lambda t: t.transpose(0, 1),
    ),
    _stats_but(
        "statistics.axes",
        "Layers come first, then queries, keys and values, then mean and standard deviation.",
        last=lambda t: t.transpose(1, 2),
    ),
    _stats_but(
        "statistics.absolute values",
        "The mean is that of the absolute values; the standard deviation is right.",
        part=lambda w: torch.stack([w.abs().mean(), w.std()]),
    ),
    _stats_but(
        "statistics.mean of rows",
        "This is the mean of the rows' standard deviations; asked for is one of all numbers of "
        "the matrix.",
        part=lambda w: torch.stack([w.mean(), w.std(1).mean()]),
    ),
    _stats_but("statistics.first layer everywhere", "Every row holds the first layer.", first=True),
]


def _row_stats(parts):
    """Statistics of the thirds of the rows, from the three matrices of each layer."""
    wide = torch.cat(list(parts.unbind(1)), dim=-1)
    return torch.stack([torch.stack([moments(p) for p in w.chunk(3, dim=0)]) for w in wide])


# --- heads ---------------------------------------------------------------------------------------
def head_columns(weight, num_heads):
    return weight.unflatten(1, (num_heads, -1)).transpose(0, 1)


_HEADS = [
    mistake(
        "head_columns",
        "heads.reshaped",
        "One view has the right shape and the wrong numbers: "
        "it cuts the weight into groups of rows. Split the columns, then move the head "
        "forward.",
        lambda w, n: w.reshape(n, len(w), -1),
    ),
    mistake(
        "head_columns",
        "heads.interleaved",
        "Head 0 has every num_heads-th column. A head's columns lie side by side.",
        lambda w, n: torch.stack([w[:, i::n] for i in range(n)]),
    ),
    mistake(
        "head_columns",
        "heads.rows",
        "The rows are split by head. Rows are what a head reads; what it makes are columns.",
        lambda w, n: torch.stack([p.T for p in w.split(w.shape[1] // n, dim=0)][:n]),
    ),
    mistake(
        "head_columns",
        "heads.rows",
        "The rows are split by head. Rows are what a head reads; what it makes are columns.",
        lambda w, n: w.unflatten(0, (n, -1)),
    ),
    mistake(
        "head_columns",
        "heads.transposed",
        "Each head's matrix is transposed: hidden comes first, head_size last.",
        lambda w, n: head_columns(w, n).mT,
    ),
    mistake(
        "head_columns",
        "heads.head in the middle",
        "The head is the second axis; it should be the first.",
        lambda w, n: w.unflatten(1, (n, -1)),
    ),
    mistake(
        "head_columns",
        "heads.size for count",
        "The columns are cut into pieces of num_heads columns; there should be num_heads pieces.",
        lambda w, n: torch.stack(w.split(n, dim=1)),
    ),
    mistake(
        "head_columns",
        "heads.order",
        "The heads are in reverse order.",
        lambda w, n: head_columns(w, n).flip(0),
    ),
    mistake(
        "head_columns",
        "heads.reshaped",
        "Transposed and then reshaped: the shape fits, but each head got the numbers of a few "
        "whole columns in another order. Split the columns, then move the head forward.",
        lambda w, n: w.T.reshape(n, len(w), -1),
    ),
]


SOLVE = {
    "weights.params": {"params": params},
    "weights.count": {"attention_parameters": attention_parameters},
    "weights.split": {"split_wide": split_wide},
    "weights.histogram": {"density": density},
    "weights.statistics": {"qkv_stats": qkv_stats},
    "weights.heads": {"head_columns": head_columns},
}
MISTAKES = {
    "weights.params": _PARAMS,
    "weights.count": _COUNT,
    "weights.split": _SPLIT,
    "weights.histogram": _DENSITY,
    "weights.statistics": _STATISTICS,
    "weights.heads": _HEADS,
}
