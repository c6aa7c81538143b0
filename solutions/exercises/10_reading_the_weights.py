"""Lesson 10: reading the weights. Their spread, their heads, and the matrix W_Q W_K^T."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

import torch

from autograder import Call, Draw, Namespace, exercise
from autograder.judging.forms import results_in_one_tensor
from autograder.judging.orders import in_any_order

from ._gpt2 import draw_gpt2, says


def itself(value, *_):
    return value


def models(draw: Draw) -> list[Call]:
    asked = [draw_gpt2(draw, layers) for layers in (2, 3)]
    return [Call("", (model,), says=says(model)) for model in asked]


# --- sizes and counts ----------------------------------------------------------------------------
def configs(draw: Draw) -> Call:
    heads, head_size = draw.sizes(2, 3, 23)
    config = {
        "n_layer": draw.integer(24, 40),
        "n_head": heads,
        "n_embd": heads * head_size,
        "n_positions": draw.integer(600, 2000),
        "vocab_size": draw.integer(5000, 60000),
    }
    text = ", ".join(f"{name} {config[name]}" for name in ("n_layer", "n_head", "n_embd"))
    return Call("", (Namespace(config),), says=text)


@exercise("weights.params", configs,
          hints=(
              "Three of the four stand in the config under a name of their own. Which does not?",
              "The heads share the hidden size, so the last one is a quotient, and a whole number.",
              "n_layers from n_layer, n_emb from n_embd, n_heads from n_head, and head_dim is "
              "n_embd // n_head."))
def params(config, layers="n_layer", emb="n_embd", heads="n_head",
           head_dim=lambda config: config.n_embd // config.n_head):
    return {"n_layers": getattr(config, layers), "n_emb": getattr(config, emb),
            "n_heads": getattr(config, heads), "head_dim": head_dim(config)}

params.wrong("params.head_dim is hidden", "head_dim is the whole hidden size; the heads share it.",
             head_dim=lambda c: c.n_embd)
params.wrong("params.head_dim is the number of heads",
             "head_dim is how many features one head has, not how many heads there are.",
             head_dim=lambda c: c.n_head)
params.wrong("params.layers and heads swapped", "Layers and heads are swapped.",
             layers="n_head", heads="n_layer")
params.wrong("params.layers and heads swapped",
             "Layers and heads are swapped, and so the size of a head is wrong too.",
             layers="n_head", heads="n_layer", head_dim=lambda c: c.n_embd // c.n_layer)
params.wrong("params.head_dim by layers", "head_dim divides by the number of layers.",
             head_dim=lambda c: c.n_embd // c.n_layer)
params.wrong("params.positions for embedding",
             "n_emb is the size of one token's vector; n_positions is how many tokens fit.",
             emb="n_positions")
params.wrong("params.positions for embedding",
             "n_emb is the size of one token's vector; n_positions is how many tokens fit. "
             "head_dim goes wrong with it.",
             emb="n_positions", head_dim=lambda c: c.n_positions // c.n_head)


def of_attention(block):
    return block.attn.c_attn, block.attn.c_proj


@exercise("weights.count", models, judge=results_in_one_tensor,
          hints=(
              "Which modules belong to the attention of one block? Each has two parameters. How "
              "many blocks are there?",
              "c_attn makes queries, keys and values; c_proj mixes the heads. `numel()` counts the "
              "numbers of a tensor; `len()` counts its rows.",
              "Loop over model.transformer.h. Add c_attn.weight.numel() and c_proj.weight.numel() "
              "to one sum, the two biases' to another."))
def attention_parameters(model, blocks=None, modules=of_attention, count=torch.numel,
                         give=lambda weights, biases: (weights, biases)):
    parts = [part for block in model.transformer.h[:blocks] for part in modules(block)]
    return give(sum(count(p.weight) for p in parts), sum(count(p.bias) for p in parts))

def of_the_whole_model(model, kind):
    return sum(p.numel() for name, p in model.named_parameters() if name.endswith(kind))

attention_parameters.wrong("count.one layer", "This is one layer; all are asked for.", blocks=1)
attention_parameters.wrong(
    "count.c_proj missing",
    "c_proj is missing: it mixes the heads and belongs to the attention.",
    modules=lambda block: [block.attn.c_attn])
attention_parameters.wrong("count.c_attn missing", "c_attn is missing, the largest of them.",
                           modules=lambda block: [block.attn.c_proj])
attention_parameters.wrong(
    "numel.rows counted", "Rows are counted, by len(), where the numbers are asked for.", count=len)
attention_parameters.wrong(
    "count.biases among the weights", "Biases are counted among the weights.",
    give=lambda weights, biases: (weights + biases, biases))
attention_parameters.wrong(
    "count.biases among the weights",
    "This is one number for weights and biases together; the two are asked for apart.",
    give=lambda weights, biases: weights + biases)
attention_parameters.wrong("count.no bias", "The biases are not counted.",
                           give=lambda weights, biases: (weights, 0))
attention_parameters.wrong(
    "count.mlp", "The MLP is counted too; the attention's two modules are asked for.",
    modules=lambda block: [*of_attention(block), block.mlp.c_fc, block.mlp.c_proj])
attention_parameters.wrong(
    "count.c_proj of the MLP", "There are two c_proj in a block; this is the MLP's.",
    modules=lambda block: [block.attn.c_attn, block.mlp.c_proj])
attention_parameters.wrong("count.order", "Weights come first, then biases.",
                           give=lambda weights, biases: (biases, weights))
attention_parameters.wrong(
    "numel.tensors counted", "The tensors are counted, not the numbers in them.",
    count=lambda tensor: 1)
attention_parameters.wrong(
    "count.c_proj of the MLP",
    "Every c_proj is counted. There are two in a block; the MLP's is not attention.",
    modules=lambda block: [*of_attention(block), block.mlp.c_proj])
attention_parameters.wrong(
    "count.whole model", "The whole model is counted; the attention of its blocks is asked for.",
    lambda model: (of_the_whole_model(model, "weight"), of_the_whole_model(model, "bias")))


# --- splitting -----------------------------------------------------------------------------------
@exercise("weights.split",
          "split_wide(wide[hidden, 3 * hidden])",
          "split_wide(wide[hidden, 3 * hidden]) where hidden = 6",  # rows in three equal parts
          sizes={"hidden": (5, 7, 11, 13)}, times=2, judge=results_in_one_tensor,
          hints=(
              "A Conv1D weight is [inputs, outputs]. Do queries, keys and values differ in what "
              "they read or in what they are?",
              "The three lie side by side: the first third of the columns makes the queries.",
              "`torch.split` with the size of one part, along the axis of the columns; or three "
              "slices of columns."))
def split_wide(wide, cut=lambda wide: wide.chunk(3, dim=1), give=tuple):
    return give(cut(wide))

def reshaped(wide):
    return wide.reshape(3, len(wide), len(wide))

def every_third(wide):
    return [wide[:, i::3] for i in range(3)]

AXIS = ("The weight is cut along its rows. Conv1D stores [inputs, outputs]: queries, keys and "
        "values are columns")
split_wide.wrong("split.axis", f"{AXIS}.", cut=lambda wide: wide.chunk(3, dim=0))
split_wide.wrong("split.axis", f"{AXIS}, so this gives one piece.",
                 cut=lambda wide: wide.split(len(wide), dim=0))
split_wide.wrong("split.axis", f"{AXIS}, so the second and third piece are empty.",
                 cut=lambda wide: [wide[i * len(wide):(i + 1) * len(wide)] for i in range(3)])
split_wide.wrong(
    "split.axis",
    f"{AXIS}. Transposing first does not change which numbers belong together.",
    cut=lambda wide: wide.T.chunk(3, dim=0))
split_wide.wrong("split.order", "Keys come first here. The order is queries, keys, values.",
                 give=itemgetter(1, 0, 2))
split_wide.wrong("split.order", "Values and keys are swapped. The order is queries, keys, values.",
                 give=itemgetter(0, 2, 1))
split_wide.wrong("split.order", "The order is queries, keys, values.", give=itemgetter(2, 1, 0))
split_wide.wrong("split.reshaped",
                 "The weight is reshaped to three squares: the shape fits, but each square holds a "
                 "third of the rows.", cut=reshaped)
split_wide.wrong("split.interleaved",
                 "Every third column is taken. The three matrices lie side by side, each in one "
                 "piece.", cut=every_third)
split_wide.wrong("split.stacked",
                 "This is one tensor of three matrices; three matrices are asked for, "
                 "q, k, v = ...", give=torch.cat)


# --- a density -----------------------------------------------------------------------------------
def edged(draw: Draw) -> list[Call]:
    calls = []
    for spread, reach in ((0.2, 0.9), (0.5, 0.6), (0.3, 0.4)):
        rows, columns = draw.sizes(2, 7, 17)
        values = draw.normal(rows, columns, scale=spread)
        edges = torch.linspace(-reach, reach, draw.integer(7, 12))
        text = f"a matrix of [{rows}, {columns}], {len(edges)} edges from -{reach} to {reach}"
        calls.append(Call("", (values, edges), says=text))
    return calls


@exercise("weights.histogram", edged,
          hints=(
              "A density is a share per unit of width. A share of what? And where on the axis does "
              "a bin sit?",
              "Divide the counts by the number of ALL values, also those beyond the edges, and by "
              "the width of a bin. What is missing from an area of 1 lies outside.",
              "`torch.histogram(values.flatten(), edges)` gives counts (`torch.histc` does with "
              "even bins). Centres are halfway between neighbouring edges; outside is 1 minus the "
              "share of the counted."))
def density(values, edges, centres=lambda edges: (edges[:-1] + edges[1:]) / 2,
            heights=lambda counts, values, widths: counts / values.numel() / widths,
            outside=lambda counts, values, edges: 1 - counts.sum() / values.numel()):
    counts = torch.histogram(values.flatten(), edges).hist
    return centres(edges), heights(counts, values, edges.diff()), outside(counts, values, edges)

def over_those_inside(counts, values, widths):
    return counts / counts.sum() / widths

def clamped(values, edges):
    return density(values.clamp(edges[0].item(), edges[-1].item()), edges)

density.wrong("histogram.left edges",
              "The positions are the left edges of the bins. A curve drawn there is shifted by "
              "half a bin.", centres=lambda edges: edges[:-1])
density.wrong("histogram.right edges", "The positions are the right edges of the bins.",
              centres=lambda edges: edges[1:])
density.wrong("histogram.all edges",
              "There is one edge more than there are bins; where is the middle of each?",
              centres=itself)
density.wrong("histogram.inside only",
              "The density is over the values between the edges alone, as density=True does. What "
              "lies outside vanishes, and the rest looks larger than it is.",
              heights=over_those_inside)
density.wrong("histogram.not per width",
              "These are shares of the bins. A density is a share per unit of width, so that it "
              "does not depend on the number of bins.",
              heights=lambda counts, values, widths: counts / values.numel())
density.wrong("histogram.counts", "These are counts.", heights=itself)
density.wrong("histogram.outside counted", "`outside` is a count; a share is asked for.",
              outside=lambda counts, values, edges: values.numel() - counts.sum())
density.wrong("histogram.share inside",
              "This is the share between the edges; asked for is the share outside.",
              outside=lambda counts, values, edges: counts.sum() / values.numel())
density.wrong("histogram.one side", "Only what lies above the last edge is counted as outside.",
              outside=lambda counts, values, edges: (values > edges[-1]).double().mean())
density.wrong("histogram.outside in the end bins",
              "What lies beyond the edges is counted in the first and last bin.",
              clamped, lambda *given: (*clamped(*given)[:2], density(*given)[2]))
density.wrong("histogram.inside only",
              "The density is over the values between the edges alone, as density=True does, and "
              "so nothing seems to lie outside. Count against all values.",
              heights=over_those_inside, outside=lambda *_: 0.0)
density.wrong("histogram.not per value",
              "These are counts per unit of width; a density is a share per unit of width. Divide "
              "by the number of values.", heights=lambda counts, values, widths: counts / widths)
density.wrong("histogram.rows for values",
              "`len` of a matrix counts its rows. Divide by all its values.",
              heights=lambda counts, values, widths: counts / len(values) / widths)
density.wrong(
    "histogram.outside from heights",
    "`outside` is 1 minus the sum of the heights. A share is an area: height times width.",
    outside=lambda counts, values, edges: 1 - (counts / values.numel() / edges.diff()).sum())
density.wrong("histogram.times width",
              "The shares are multiplied by the width; a density is divided by it.",
              heights=lambda counts, values, widths: counts / values.numel() * widths)
density.wrong("histogram.order", "The order is centres, heights, outside.",
              lambda *given: itemgetter(1, 0, 2)(density(*given)))


# --- statistics by layer -------------------------------------------------------------------------
def moments(values, correction=1):
    return torch.stack([values.mean(), values.std(correction=correction)])


def weight_of(c_attn):
    return c_attn.weight.detach()


@exercise("weights.statistics", models,
          hints=(
              "One row a layer, in it one row each for queries, keys and values, in it two "
              "numbers. Over which numbers does each run?",
              "Weights only, no bias; all numbers of the matrix at once; and torch's own std.",
              "For each block split c_attn.weight by columns, and stack [part.mean(), part.std()] "
              "for the three parts, then stack the layers."))
def qkv_stats(model, measure=moments, read=weight_of, cut=split_wide, layers=list, give=itself):
    wide = [read(block.attn.c_attn) for block in layers(model.transformer.h)]
    return give(torch.stack([torch.stack([measure(w) for w in cut(each)]) for each in wide]))

def with_bias(c_attn):
    return torch.cat([c_attn.weight, c_attn.bias[None]]).detach()

def with_variance(table):
    return torch.stack([table[..., 0], table[..., 1] ** 2], -1)

qkv_stats.wrong("statistics.ddof",
                "The standard deviation divides by n, as numpy's does. Here torch's is asked for, "
                "which divides by n - 1. Do not mix them.", measure=partial(moments, correction=0))
qkv_stats.wrong("statistics.variance", "The second number is the variance.", give=with_variance)
qkv_stats.wrong("statistics.mean of columns",
                "This is the mean of the columns' standard deviations; asked for is one of all "
                "numbers of the matrix.",
                measure=lambda w: torch.stack([w.mean(), w.std(0).mean()]))
qkv_stats.wrong("statistics.absolute values",
                "The numbers lost their sign before the mean was taken.",
                measure=lambda w: moments(w.abs()))
qkv_stats.wrong("split.axis",
                "The weight is cut along its rows, by a reshape. Queries, keys and values are "
                "columns.", cut=reshaped)
qkv_stats.wrong("split.axis",
                "The weight is cut along its rows. Queries, keys and values are columns.",
                cut=lambda wide: wide.chunk(3, dim=0))
qkv_stats.wrong("statistics.bias included",
                "The biases are among the numbers; weights alone are asked for.", read=with_bias)
qkv_stats.wrong("statistics.absolute values",
                "The mean is that of the absolute values; the standard deviation is right.",
                measure=lambda w: torch.stack([w.abs().mean(), w.std()]))
qkv_stats.wrong("statistics.mean of rows",
                "This is the mean of the rows' standard deviations; asked for is one of all "
                "numbers of the matrix.",
                measure=lambda w: torch.stack([w.mean(), w.std(1).mean()]))
qkv_stats.wrong("statistics.first layer everywhere", "Every row holds the first layer.",
                layers=lambda blocks: [blocks[0]] * len(blocks))


# --- heads ---------------------------------------------------------------------------------------
COLUMNS = "columns = num_heads * head_size"


@exercise("weights.heads",
          f"head_columns(weight[hidden, columns], num_heads) where {COLUMNS}, hidden = columns",
          f"head_columns(weight[hidden, columns], num_heads) where {COLUMNS}, "
          "hidden = num_heads * rows",  # a cut of the rows by head comes out even, and is wrong
          sizes=dict.fromkeys(("num_heads", "head_size", "rows"), (2, 3, 5, 7)), times=2,
          hints=(
              "Head 0 owns the first head_size columns, and all rows of them. How does lesson 04 "
              "cut the last axis without scrambling?",
              "First give the columns two axes, head and feature; then move the head to the front. "
              "One view alone cannot do it.",
              "view(hidden, num_heads, head_size), then transpose the first two axes. Or "
              "torch.split along dim 1, and stack."))
def head_columns(weight, num_heads):
    return weight.unflatten(1, (num_heads, -1)).transpose(0, 1)

head_columns.wrong("heads.reshaped",
                   "One view has the right shape and the wrong numbers: it cuts the weight into "
                   "groups of rows. Split the columns, then move the head forward.",
                   lambda w, n: w.reshape(n, len(w), -1))
head_columns.wrong("heads.interleaved",
                   "Head 0 has every num_heads-th column. A head's columns lie side by side.",
                   lambda w, n: torch.stack([w[:, i::n] for i in range(n)]))
head_columns.wrong(
    "heads.rows",
    "The rows are split by head. Rows are what a head reads; what it makes are columns.",
    lambda w, n: torch.stack([rows.T for rows in w.split(w.shape[1] // n)][:n]),
    lambda w, n: w.unflatten(0, (n, -1)))
head_columns.wrong("heads.transposed",
                   "Each head's matrix is transposed: hidden comes first, head_size last.",
                   lambda w, n: head_columns(w, n).mT)
head_columns.wrong("heads.head in the middle",
                   "The head is the second axis; it should be the first.",
                   lambda w, n: w.unflatten(1, (n, -1)))
head_columns.wrong(
    "heads.size for count",
    "The columns are cut into pieces of num_heads columns; there should be num_heads pieces.",
    lambda w, n: torch.stack(w.split(n, dim=1)))
head_columns.wrong("heads.order", "The heads are in reverse order.",
                   lambda w, n: head_columns(w, n).flip(0))
head_columns.wrong("heads.reshaped",
                   "Transposed and then reshaped: the shape fits, but each head got the numbers of "
                   "a few whole columns in another order. Split the columns, then move the head "
                   "forward.", lambda w, n: w.T.reshape(n, len(w), -1))


# --- cosines of columns --------------------------------------------------------------------------
def uneven_columns(draw: Draw) -> list[Call]:
    """Rows and columns of all lengths: whoever divides by another one is seen."""
    calls = []
    for hidden, head_size in ((13, 5), (17, 7), (11, 11)):
        weight = draw.normal(hidden, head_size) * draw.uniform(hidden, 1, low=0.2, high=3.0)
        weight *= draw.uniform(1, head_size, low=0.3, high=3.0)
        calls.append(Call("", (weight,), says=f"one head's weight, [{hidden}, {head_size}]"))
    return calls


def unit(w, dim=0):
    return w / w.norm(dim=dim, keepdim=True)


def products(w):
    return w.T @ w


def cosines(w, dim=0):
    return products(unit(w, dim))


def upper(matrix, first=1):
    """What stands above the diagonal, from the `first` next to it on."""
    return matrix[torch.ones_like(matrix).triu(first).bool()]


@exercise("weights.cosines", uneven_columns, judge=partial(in_any_order, part=1),
          hints=(
              "The vectors that are compared are the columns. What is the length of a column, and "
              "which axis does that sum run over? What is the cosine of a vector with itself?",
              "norm over dim 0 with keepdim=True, divide, and one product makes all cosines. The "
              "diagonal is always 1: it says nothing, and it is not a pair.",
              "unit = w / w.norm(dim=0, keepdim=True); unit.T @ unit; and then the entries at "
              "torch.triu_indices(size, size, offset=1)."))
def head_cosines(w, compare=cosines, pick=upper):
    matrix = compare(w)
    return matrix, pick(matrix)

def with_zeros(matrix):
    return matrix.triu(1).flatten()

def off_diagonal(matrix):
    return matrix[~torch.eye(len(matrix)).bool()]

NORM_AXIS = "The rows are scaled to length 1. Compared are the columns, so each column needs it."
DIAGONAL = "The diagonal is included: a column's cosine with itself, always 1. That is no pair."
NO_COSINES = "These are dot products; a cosine is divided by both lengths."
ONE_LENGTH = "The products are divided by one of the two lengths; a cosine is divided by both."
head_cosines.wrong("cosine.norm axis", NORM_AXIS, compare=partial(cosines, dim=1))
head_cosines.wrong("cosine.diagonal", DIAGONAL, pick=partial(upper, first=0))
head_cosines.wrong("cosine.one diagonal too many", "The pairs of neighbouring columns are missing.",
                   pick=partial(upper, first=2))
head_cosines.wrong("cosine.not normalised", NO_COSINES, compare=products)
head_cosines.wrong("cosine.one norm for all",
                   "All columns are divided by the same number, the norm of the whole matrix.",
                   compare=lambda w: products(w / w.norm()))
head_cosines.wrong("cosine.every pair twice",
                   "Each pair is there twice: the matrix is symmetric, so half of it is enough.",
                   pick=off_diagonal)
head_cosines.wrong("cosine.every pair twice",
                   "This is the whole matrix: each pair twice, and the diagonal.",
                   pick=torch.flatten)
head_cosines.wrong("cosine.zeros kept",
                   "The lower half is set to 0 but still there: zeros are no cosines. Pick "
                   "entries, do not multiply.", pick=with_zeros)
head_cosines.wrong("cosine.rows compared", "The rows are compared; asked for are the columns.",
                   compare=lambda w: cosines(w.T))
head_cosines.wrong("cosine.centred",
                   "The columns' means are taken off first: that is a correlation, not a cosine.",
                   compare=lambda w: cosines(w - w.mean(0)))
head_cosines.wrong("cosine.sample norm",
                   "The columns are divided by their standard deviation, not by their length.",
                   compare=lambda w: products(w / w.std(0)))
head_cosines.wrong("cosine.one length", ONE_LENGTH, compare=lambda w: products(w) / w.norm(dim=0))
head_cosines.wrong("cosine.one length", ONE_LENGTH,
                   compare=lambda w: products(w) / w.norm(dim=0)[:, None])
head_cosines.wrong("cosine.squared length",
                   "The columns are divided by their squared length; the length is its root.",
                   compare=lambda w: products(w / w.square().sum(0)))
head_cosines.wrong("cosine.absolute values",
                   "The cosines lost their sign: columns that point apart look alike.",
                   compare=lambda w: cosines(w).abs())
head_cosines.wrong("cosine.squared", "The cosines are squared.",
                   compare=lambda w: cosines(w).square())


def heads_alike(draw: Draw) -> list[Call]:
    """The columns of a head have something in common."""
    calls = []
    for num_heads in (3, 2, 4):
        head_size, hidden = draw.choice((4, 5, 7)), draw.choice((11, 13, 17))
        weight = draw.normal(hidden, num_heads * head_size)
        weight += 1.2 * draw.normal(hidden, num_heads).repeat_interleave(head_size, dim=1)
        text = f"a weight of [{hidden}, {num_heads * head_size}], {num_heads} heads"
        calls.append(Call("", (weight, num_heads), says=text))
    return calls


@exercise("weights.within_across", heads_alike,
          hints=(
              "Each pair of columns counts once. Two columns of one head, or of two heads: which "
              "matrix of cosines is symmetric, and which is not?",
              "Within a head: above the diagonal only. Across two heads: all head_size * head_size "
              "cosines, once for each pair of heads, j after i.",
              "Make the matrix of all columns' cosines. Keep what lies above its diagonal; "
              "column // head_size says whose a column is. Mean and std of the two groups."))
def within_across(weight, num_heads, compare=cosines, measure=moments, give=itself,
                  owners=lambda columns, heads: torch.arange(columns) // (columns // heads),
                  within=lambda later, same: later & same,
                  across=lambda later, same: later & ~same):
    matrix = compare(weight)
    owner = owners(len(matrix), num_heads)
    same = owner[:, None] == owner  # [columns, columns], True where one head owns both
    later = torch.ones_like(same).triu(1)  # each pair once
    groups = matrix[within(later, same)], matrix[across(later, same)]
    return give(torch.stack([measure(group) for group in groups]))

def upper_of_blocks(later, same):
    place = torch.arange(len(same)) % same[0].sum()  # of a column in its head
    return later & ~same & (place[:, None] < place)

def head_by_head(weight, num_heads):
    each = [moments(upper(cosines(w))) for w in weight.chunk(num_heads, dim=1)]
    return torch.stack([torch.stack(each).mean(0), within_across(weight, num_heads)[1]])

def rows_of_heads(weight, num_heads):
    heads = [unit(w, dim=1) for w in weight.chunk(num_heads, dim=1)]
    return within_across(torch.cat(heads, dim=1), num_heads, compare=products)

within_across.wrong("cosine.norm axis", NORM_AXIS, rows_of_heads,
                    partial(within_across, compare=partial(cosines, dim=1)))
within_across.wrong("cosine.diagonal", DIAGONAL, within=lambda later, same: same & ~later.T)
within_across.wrong("cosine.diagonal",
                    "Within a head the whole matrix is kept: each pair twice, and the diagonal, "
                    "which is always 1.", within=lambda later, same: same)
within_across.wrong("cosine.every pair twice",
                    "Within a head each pair is counted twice; the matrix is symmetric.",
                    within=lambda later, same: same & (later | later.T))
within_across.wrong("cosine.across only the upper half",
                    "Across two heads only the part above the diagonal is kept. That matrix is not "
                    "symmetric: all of it counts.", across=upper_of_blocks)
within_across.wrong("cosine.across holds all",
                    "The second row holds all pairs, those within a head too.",
                    across=lambda later, same: later)
within_across.wrong("cosine.across twice",
                    "Each pair of heads is counted in both orders, so every cosine across heads is "
                    "there twice.", across=lambda later, same: ~same)
within_across.wrong("cosine.rows swapped", "Within and across are swapped.",
                    give=lambda table: table.flip(0))
within_across.wrong("cosine.axes flipped",
                    "Rows are within and across, columns are mean and std; here it is the other "
                    "way round.", give=torch.t)
within_across.wrong("heads.interleaved",
                    "A head's columns lie side by side; here every num_heads-th column is taken "
                    "for one head.", owners=lambda columns, heads: torch.arange(columns) % heads)
within_across.wrong("statistics.variance", "The second column holds variances.", give=with_variance)
within_across.wrong("heads.size for count",
                    "num_heads was taken for the size of a head; there are num_heads heads.",
                    owners=lambda columns, heads: torch.arange(columns) // heads)
within_across.wrong("cosine.first head only",
                    "Within heads only the first head is counted; all are asked for.",
                    within=lambda later, same: later & same & same[0])
within_across.wrong("cosine.head by head",
                    "Within heads each head has a deviation of its own, and these are averaged. "
                    "Put the pairs of all heads together first.", head_by_head)


@exercise("weights.all_columns", models,
          hints=(
              "As exercise 8, but heads do not matter any more, and there are three matrices in "
              "each layer. What must be left out of the cosines?",
              "Normalise the columns of each matrix, one product, and pick entries: a mask that "
              "multiplies leaves zeros behind, which are counted.",
              "cosines[torch.ones_like(cosines, dtype=torch.bool).triu(1)], then mean and std; "
              "rows for Q, K and V, and one such table a layer."))
def column_stats(model, compare=cosines, pick=upper, measure=moments, cut=split_wide, layers=list,
                 give=itself):
    return qkv_stats(model, lambda w: measure(pick(compare(w))), cut=cut, layers=layers, give=give)

column_stats.wrong("cosine.norm axis", NORM_AXIS, compare=partial(cosines, dim=1))
column_stats.wrong("cosine.diagonal", DIAGONAL, pick=partial(upper, first=0))
column_stats.wrong("cosine.diagonal",
                   "The whole matrix is used: each pair twice, and the diagonal.",
                   pick=torch.flatten)
column_stats.wrong("cosine.zeros kept",
                   "The lower half is set to 0 but still counted. Pick entries, do not multiply.",
                   pick=with_zeros)
column_stats.wrong("cosine.every pair twice", "Each pair is counted twice.", pick=off_diagonal)
column_stats.wrong("split.axis", "The weight is cut along its rows, by a reshape.", cut=reshaped)
column_stats.wrong("cosine.rows compared", "The rows are compared; asked for are the columns.",
                   compare=lambda w: cosines(w.T))
column_stats.wrong("cosine.diagonal",
                   "The diagonal is there, set to 0: a zero is counted like any other number.",
                   pick=lambda matrix: upper(matrix.triu(1), 0))
column_stats.wrong("statistics.variance", "The second number is the variance.", give=with_variance)
column_stats.wrong("cosine.within heads only",
                   "Only pairs within a head are counted; here heads do not matter.",
                   lambda model: qkv_stats(
                       model, lambda w: within_across(w, model.config.n_head)[0]))

# What goes wrong in several of these tables.
for answer in (within_across, column_stats):
    answer.wrong("statistics.ddof",
                 "The standard deviation divides by n. Use torch's, which divides by n - 1.",
                 measure=partial(moments, correction=0))
    answer.wrong("cosine.absolute values",
                 "The cosines lost their sign before mean and deviation were taken.",
                 compare=lambda w: cosines(w).abs())
    answer.wrong("cosine.not normalised", NO_COSINES, compare=products)
for answer in (qkv_stats, within_across, column_stats):
    answer.wrong("statistics.order", "Mean first, then standard deviation.",
                 give=lambda table: table.flip(-1))
for answer in (qkv_stats, column_stats):
    for order in ((0, 2, 1), (1, 0, 2)):
        answer.wrong("split.order", "The order is queries, keys, values.",
                     cut=partial(split_wide, give=itemgetter(*order)))
    answer.wrong("split.interleaved",
                 "Every third column is taken. The three matrices lie side by side.",
                 cut=every_third)
    answer.wrong("statistics.last layer everywhere", "Every row holds the last layer.",
                 layers=lambda blocks: [blocks[-1]] * len(blocks))
    answer.wrong("statistics.axes",
                 "Layers come first, then queries, keys and values, then mean and standard "
                 "deviation.", give=lambda table: table.transpose(0, 1))
qkv_stats.wrong("statistics.axes",
                "Layers come first, then queries, keys and values, then mean and standard "
                "deviation.", give=lambda table: table.transpose(1, 2))


# --- gauge freedom -------------------------------------------------------------------------------
def draw_pair(draw: Draw, alike: float) -> tuple[torch.Tensor, torch.Tensor]:
    """W_Q and W_K of one head; alike from -1 to 1 moves W_K towards W_Q, or its negative."""
    hidden, head_size = draw.choice((11, 13, 17)), draw.choice((2, 3, 5))
    w_q = draw.normal(hidden, head_size)
    return w_q, alike * w_q + draw.normal(hidden, head_size, scale=0.6)


def gauges(draw: Draw) -> Call:
    w_q, w_k = draw_pair(draw, 0.3)
    hidden, size = w_q.shape
    r = draw.normal(size, size, scale=0.4) + 2 * torch.eye(size)  # has an inverse
    args = (w_q, draw.normal(size), w_k, draw.normal(size), r)
    return Call("", args, says=f"hidden {hidden}, head_size {size}")


def inverse_transposed(r):
    return torch.linalg.inv(r).T


@exercise("weights.gauge", gauges,
          hints=(
              "New queries are q r. Scores must stay: q r times what gives q k^T?",
              "k must be multiplied by the transposed inverse of r. What makes up a query: only "
              "x W_Q? A bias is one more row.",
              "w_q @ r and b_q @ r; with s = torch.linalg.inv(r).T: w_k @ s and b_k @ s."))
def change_gauge(w_q, b_q, w_k, b_k, r, queries=itself, keys=inverse_transposed,
                 turn_b_q=torch.matmul, turn_b_k=torch.matmul):
    r, s = queries(r), keys(r)
    return w_q @ r, turn_b_q(b_q, r), w_k @ s, turn_b_k(b_k, s)

def identity(r):
    return torch.eye(len(r)).to(r)

def from_the_left(bias, matrix):
    return matrix @ bias

change_gauge.wrong("gauge.same for both",
                   "Queries and keys are both multiplied by r. Then the scores contain r r^T, "
                   "which is the identity only if r is a rotation.", keys=itself)
change_gauge.wrong("gauge.inverse not transposed",
                   "The keys are multiplied by the inverse. Keys stand transposed in the scores, "
                   "so it must be the transposed inverse.", keys=torch.linalg.inv)
change_gauge.wrong("gauge.transposed for inverse",
                   "The keys are multiplied by r transposed. It is the inverse that undoes r.",
                   keys=torch.t)
change_gauge.wrong("gauge.keys unchanged",
                   "Only the queries are changed; the scores change with them.", keys=identity)
change_gauge.wrong("gauge.biases forgotten",
                   "The weights are right, the biases are as they were. They are part of the "
                   "queries and keys.", turn_b_q=itself, turn_b_k=itself)
change_gauge.wrong("gauge.bias on the wrong side",
                   "The biases are multiplied from the other side. A bias is one more row, as a "
                   "query is.", turn_b_q=from_the_left, turn_b_k=from_the_left)
change_gauge.wrong("gauge.roles swapped",
                   "The keys are multiplied by r and the queries by the transposed inverse: the "
                   "scores stay, but asked is the other way round.",
                   queries=inverse_transposed, keys=itself)
change_gauge.wrong("gauge.transposed twice", "The queries are multiplied by r transposed.",
                   queries=torch.t, keys=torch.linalg.inv)
change_gauge.wrong("gauge.nothing changed", "Nothing has changed.", queries=identity, keys=identity)
change_gauge.wrong("gauge.order", "The order is w_q, b_q, w_k, b_k.",
                   lambda *given: itemgetter(0, 2, 1, 3)(change_gauge(*given)))
change_gauge.wrong("gauge.biases forgotten",
                   "The keys' bias is as it was. It is part of the keys, and changes with them.",
                   turn_b_k=itself)
change_gauge.wrong("gauge.biases forgotten",
                   "The queries' bias is as it was. It is part of the queries, and changes with "
                   "them.", turn_b_q=itself)
change_gauge.wrong("gauge.bias on the wrong side",
                   "The keys' bias is multiplied from the other side. A bias is one more row, as a "
                   "key is.", turn_b_k=from_the_left)
change_gauge.wrong("gauge.same for both",
                   "Queries and keys are both multiplied by the transposed inverse; queries become "
                   "q r.", queries=inverse_transposed)
change_gauge.wrong("gauge.inverse of each entry",
                   "1 / r inverts each entry by itself; asked for is the inverse matrix.",
                   keys=torch.reciprocal)


# --- identity, symmetry, sign --------------------------------------------------------------------
def pairs(draw: Draw) -> list[Call]:
    calls = []
    for alike in (0.8, 0.0, -0.5):
        w_q, w_k = draw_pair(draw, alike)
        text = f"hidden {w_q.shape[0]}, head_size {w_q.shape[1]}"
        calls.append(Call("", (w_q, w_k), says=text))
    return calls


def product(w_q, w_k):
    return w_q @ w_k.T


def small_product(w_q, w_k):
    return w_q.T @ w_k


def scaled_product(w_q, w_k):
    return w_q @ w_k.T / w_q.shape[1] ** 0.5


def share(part, whole):
    return part.norm() / whole.norm()


def squared_share(part, whole):
    return share(part, whole) ** 2


def spectral_share(part, whole):
    return torch.linalg.matrix_norm(part, 2) / torch.linalg.matrix_norm(whole, 2)


def floats(*values):
    return tuple(map(float, values))


SMALL = "The matrix is W_Q^T W_K, [head_size, head_size]. Tokens meet in W_Q W_K^T."
SCALED = "The matrix is divided by the root of the head size. M is the plain product."
SPECTRAL = ("The largest singular value is used as norm; asked for is the root of the sum of "
            "squares.")


@exercise("weights.identity", pairs, judge=results_in_one_tensor,
          hints=(
              "Which multiple of I is nearest? Minimise ||M - c I||^2 over c: only the diagonal of "
              "M has anything to say.",
              "The best c is the mean of the diagonal. The distance is the norm of what is left, "
              "as a share of the norm of M. For the bound ask how large a trace a matrix of that "
              "rank and norm can have.",
              "M = w_q @ w_k.T; c = trace / hidden; (M - c I).norm() / M.norm(); and "
              "sqrt(1 - head_size / hidden), since trace^2 <= rank * norm^2."))
def identity_distance(w_q, w_k, meet=product, multiple=lambda m, size: m.trace() / len(m),
                      less=lambda m, c: m - c * identity(m), distance=share,
                      bound=lambda hidden, size: (1 - size / hidden) ** 0.5):
    m, (hidden, size) = meet(w_q, w_k), w_q.shape
    c = multiple(m, size)
    return floats(c, distance(less(m, c), m), bound(hidden, size))

identity_distance.wrong("identity.itself",
                        "This is the distance from I itself. A model is free to scale its scores, "
                        "so ask for the nearest multiple of I.", multiple=lambda m, size: 1.0)
identity_distance.wrong("identity.trace", "c is the trace; the mean of the diagonal is nearer.",
                        multiple=lambda m, size: m.trace())
identity_distance.wrong("identity.divided by the rank",
                        "The trace is divided by the head size. The diagonal has as many entries "
                        "as the hidden size.", multiple=lambda m, size: m.trace() / size)
identity_distance.wrong(
    "identity.mean of all entries",
    "c is the mean of all entries; off the diagonal I is zero, whatever c is.",
    multiple=lambda m, size: m.mean())
identity_distance.wrong(
    "identity.norm for trace",
    "c comes from the norm. That gets the size right and ignores the direction.",
    multiple=lambda m, size: m.norm() / len(m) ** 0.5)
identity_distance.wrong("identity.not relative",
                        "The distance is not divided by the norm of the matrix, so large weights "
                        "look far from everything.", distance=lambda rest, m: rest.norm())
identity_distance.wrong("identity.not relative",
                        "The distance is divided by the norm of the multiple of I; asked for is "
                        "the share of the norm of the matrix.",
                        distance=lambda rest, m: share(rest, m - rest))
identity_distance.wrong("identity.squared", "The distance is squared.", distance=squared_share)
identity_distance.wrong(
    "identity.bound of the share",
    "The bound is the share that rank allows, not the distance that it leaves.",
    bound=lambda hidden, size: (size / hidden) ** 0.5)
identity_distance.wrong("identity.bound not a root", "The bound is that of the squared distance.",
                        bound=lambda hidden, size: 1 - size / hidden)
identity_distance.wrong("identity.small matrix", SMALL, meet=small_product)
identity_distance.wrong(
    "identity.small matrix",
    "The matrix is W_K^T W_Q, [head_size, head_size]. Tokens meet in W_Q W_K^T.",
    meet=lambda w_q, w_k: w_k.T @ w_q)
identity_distance.wrong("identity.scaled", SCALED, meet=scaled_product)
identity_distance.wrong(
    "identity.c everywhere",
    "c is subtracted from every entry. c I has it on the diagonal alone.",
    less=lambda m, c: m - c)
identity_distance.wrong("identity.spectral norm", SPECTRAL, distance=spectral_share)
identity_distance.wrong("identity.order", "The order is c, distance, bound.",
                        lambda *given: itemgetter(1, 0, 2)(identity_distance(*given)))


def symmetric(m):
    return (m + m.T) / 2


@exercise("weights.symmetric", pairs, judge=results_in_one_tensor,
          hints=(
              "Every square matrix is the sum of a symmetric and an antisymmetric one. What do you "
              "get if you add a matrix and its transpose?",
              "Half the sum, and half the difference. Compare norms, not squares of norms.",
              "M = w_q @ w_k.T; ((M + M.T) / 2).norm() / M.norm(), and the same with a minus."))
def symmetric_parts(w_q, w_k, meet=product, parts=lambda m: (symmetric(m), m - symmetric(m)),
                    measure=share, give=floats):
    m = meet(w_q, w_k)
    return give(*(measure(part, m) for part in parts(m)))

symmetric_parts.wrong("symmetric.not halved",
                      "The symmetric part is HALF the sum of the matrix and its transpose.",
                      parts=lambda m: (m + m.T, m - m.T))
symmetric_parts.wrong("symmetric.squared", "These are shares of the squared norm.",
                      measure=squared_share)
symmetric_parts.wrong("symmetric.order", "The symmetric part comes first.",
                      give=lambda s, a: (a, s))
symmetric_parts.wrong("symmetric.not relative",
                      "The norms are not divided by the norm of the matrix.",
                      measure=lambda part, m: part.norm())
symmetric_parts.wrong(
    "symmetric.sum to one",
    "The second is taken for 1 minus the first. It is their squares that sum to 1.",
    give=lambda s, a: (s, 1 - s))
symmetric_parts.wrong("symmetric.triangles",
                      "These are the halves above and below the diagonal, not the symmetric and "
                      "antisymmetric parts.", parts=lambda m: (m.triu(), m.tril(-1)))
symmetric_parts.wrong("symmetric.small matrix", SMALL, meet=small_product)
symmetric_parts.wrong("symmetric.spectral norm", SPECTRAL, measure=spectral_share)
symmetric_parts.wrong(
    "symmetric.ratio",
    "The parts are divided by one another; each is asked for as a share of the whole.",
    give=lambda s, a: (s / a, a / s))
symmetric_parts.wrong("symmetric.share of the sum",
                      "The norms are divided by their sum. Divide by the norm of the whole: two "
                      "perpendicular parts are longer together than it.",
                      give=lambda s, a: (s / (s + a), a / (s + a)))


def positive(values):
    return values.clamp(min=0)


def ends(values):
    return values.min(), values.max()


@exercise("weights.definite", pairs, judge=results_in_one_tensor,
          hints=(
              "Positive semidefinite is said of a symmetric matrix: no eigenvalue below zero. "
              "Which matrix is that here?",
              "torch.linalg.eigvalsh takes a symmetric matrix and returns real eigenvalues, in "
              "ascending order. Singular values would be no use: they never are negative.",
              "values = eigvalsh((M + M.T) / 2); the first, the last, and the sum of the positive "
              "ones over the sum of all absolute values."))
def definiteness(w_q, w_k, meet=product, spectrum=lambda m: torch.linalg.eigvalsh(symmetric(m)),
                 first=ends, last=lambda v: positive(v).sum() / v.abs().sum()):
    values = spectrum(meet(w_q, w_k))
    return floats(*first(values), last(values))

def real_parts(m):
    return torch.linalg.eigvals(m).real

definiteness.wrong("definite.singular values",
                   "These are singular values, which are never negative: they cannot tell.",
                   spectrum=torch.linalg.svdvals)
definiteness.wrong("definite.singular values",
                   "These are singular values of the symmetric part, which are never negative: "
                   "they cannot tell.", spectrum=lambda m: torch.linalg.svdvals(symmetric(m)))
definiteness.wrong("definite.not symmetric",
                   "eigvalsh was given a matrix that is not symmetric. It looks at one half alone "
                   "and says nothing.", spectrum=torch.linalg.eigvalsh)
definiteness.wrong("definite.not symmetric",
                   "These are the real parts of the eigenvalues of the matrix itself; definiteness "
                   "is about its symmetric part.", partial(definiteness, spectrum=real_parts),
                   lambda q, k: definiteness(q.float(), k.float(), spectrum=real_parts))
definiteness.wrong("definite.not halved",
                   "The symmetric part is half the sum of the matrix and its transpose.",
                   spectrum=lambda m: torch.linalg.eigvalsh(m + m.T))
definiteness.wrong("definite.antisymmetric", "This is the antisymmetric part.",
                   spectrum=lambda m: torch.linalg.eigvalsh(m - m.T) / 2)
definiteness.wrong("definite.order", "Smallest first, then largest.",
                   first=lambda v: (v.max(), v.min()))
definiteness.wrong("definite.negative share", "This is the share of the negative ones.",
                   last=lambda v: positive(-v).sum() / v.abs().sum())
definiteness.wrong(
    "definite.ratio",
    "The positive sum is divided by the negative one; asked for is its share of both.",
    last=lambda v: positive(v).sum() / positive(-v).sum())
definiteness.wrong("definite.signed sum",
                   "The positive sum is divided by the sum of all eigenvalues, in which the signs "
                   "cancel. Take absolute values.", last=lambda v: positive(v).sum() / v.sum())
definiteness.wrong(
    "definite.counted",
    "This is the share of eigenvalues that are positive, whatever their size. Sum them.",
    last=lambda v: (v > 1e-5).sum() / (v.abs() > 1e-5).sum())
definiteness.wrong("definite.squares", "The eigenvalues are squared before they are summed.",
                   last=lambda v: positive(v).square().sum() / v.square().sum())
definiteness.wrong("definite.small matrix", SMALL, meet=small_product)
definiteness.wrong("definite.scaled", SCALED, meet=scaled_product)
definiteness.wrong("definite.absolute values",
                   "Smallest and largest of the absolute values: whether there are negative ones "
                   "cannot be told.", first=lambda v: ends(v.abs()))


# --- the four terms ------------------------------------------------------------------------------
TERMS = ("content", "query", "key", "constant")


@exercise("weights.biases",
          "score_terms(x[seq_len, hidden], w_q[hidden, head_size], b_q[head_size], "
          "w_k[hidden, head_size], b_k[head_size])",
          hints=(
              "Multiply out (x W_Q + b_Q)(x W_K + b_K)^T. Which of the four terms depend on the "
              "query's token, and which on the key's?",
              "A column [seq_len, 1] for what depends on the query alone, a row [1, seq_len] for "
              "what depends on the key alone. All four are divided by the same root.",
              "With q = x @ w_q, k = x @ w_k and s the root of head_size: q @ k.T / s, "
              "(q @ b_k)[:, None] / s, (k @ b_q)[None, :] / s and b_q @ b_k / s."))
def score_terms(x, w_q, b_q, w_k, b_k, root=lambda hidden, size: size ** 0.5, scaled=TERMS,
                change=itself):
    q, k, s = x @ w_q, x @ w_k, root(*w_q.shape)
    terms = change({"content": q @ k.T, "query": (q @ b_k)[:, None], "key": (k @ b_q)[None, :],
                    "constant": b_q @ b_k})
    return {name: term / s if name in scaled else term for name, term in terms.items()}

def content_with_biases(x, w_q, b_q, w_k, b_k):
    content = (x @ w_q + b_q) @ (x @ w_k + b_k).T / len(b_q) ** 0.5
    return score_terms(x, w_q, b_q, w_k, b_k) | {"content": content}

score_terms.wrong("scale.missing", "The terms are not divided by the root of the head size.",
                  root=lambda hidden, size: 1)
score_terms.wrong("scale.hidden", "The scale uses the hidden size; a query has head_size features.",
                  root=lambda hidden, size: hidden ** 0.5)
score_terms.wrong("scale.not a root", "The scale is the head size; its root is needed.",
                  root=lambda hidden, size: size)
score_terms.wrong("scale.content only",
                  "Only the content is scaled. The scale comes after the sum, so it belongs to all "
                  "four.", scaled=TERMS[:1])
score_terms.wrong("terms.query and key swapped",
                  "Two terms are swapped: x W_Q b_K depends on the query's token, b_Q W_K^T x^T on "
                  "the key's.", change=lambda t: t | {"query": t["key"].T, "key": t["query"].T})
score_terms.wrong(
    "terms.own bias",
    "The queries meet their own bias. In the product, x W_Q meets b_K, and x W_K meets b_Q.",
    lambda x, w_q, b_q, w_k, b_k: score_terms(x, w_q, b_k, w_k, b_q))
score_terms.wrong("terms.row and column",
                  "Shapes: what depends on the query is a column, what depends on the key a row.",
                  change=lambda t: t | {"query": t["query"].T, "key": t["key"].T})
score_terms.wrong("terms.no axis",
                  "The terms of one token each lost an axis: broadcasting would then add the "
                  "query's term along the keys. Keep [seq_len, 1] and [1, seq_len].",
                  change=lambda t: t | {"query": t["query"][:, 0], "key": t["key"][0]})
score_terms.wrong("terms.content transposed", "The content is transposed: rows belong to queries.",
                  change=lambda t: t | {"content": t["content"].T})
score_terms.wrong("terms.biases in the content", "The content has the biases in it already.",
                  content_with_biases)
score_terms.wrong(
    "terms.constant missing",
    "The constant is left at 0. It changes no weight, but it is part of the scores.",
    change=lambda t: t | {"constant": torch.zeros(())})
score_terms.wrong("scale.constant not scaled",
                  "The constant is not scaled. The scale comes after the sum, so it belongs to all "
                  "four terms.", scaled=TERMS[:3])
