"""Answers of lesson 11 up to the histograms, and wrong programs; see also `scores_by_layer`."""

from __future__ import annotations

import torch

from autograder.course.asking import Mistake


# --- text ----------------------------------------------------------------------------------------
def count_text(text, input_ids):
    ids = input_ids[0].tolist()
    return len(text), len(set(text)), len(ids), len(set(ids))


def _counts(change):
    return lambda text, ids: change(*count_text(text, ids), text, ids)


_TEXT = [
    (
        "text.tensors in a set",
        "The unique tokens are as many as the tokens: a set of tensors "
        "compares objects, and each element of a tensor is an object of its own. Use .tolist().",
        _counts(lambda c, u, n, m, text, ids: (c, u, n, n)),
    ),
    (
        "text.batch counted",
        "`len(input_ids)` counts the sequences of the batch, not the tokens.",
        _counts(lambda c, u, n, m, text, ids: (c, u, 1, m)),
    ),
    (
        "text.batch counted",
        "`len(input_ids)` counts the sequences of the batch, not the tokens.",
        _counts(lambda c, u, n, m, text, ids: (c, u, 1, 1)),
    ),
    (
        "text.words",
        "These are words. A token is what the tokenizer makes of the text, and the ids are given.",
        _counts(lambda c, u, n, m, text, ids: (c, u, len(text.split()), len(set(text.split())))),
    ),
    (
        "text.blanks left out",
        "Blanks and line breaks are characters too; the tokenizer sees them.",
        _counts(
            lambda c, u, n, m, text, ids: (
                len("".join(text.split())),
                len(set("".join(text.split()))),
                n,
                m,
            )
        ),
    ),
    (
        "text.order",
        "The four numbers are right, but not in the order asked for.",
        _counts(lambda c, u, n, m, text, ids: (c, n, u, m)),
    ),
    (
        "text.order",
        "The four numbers are right, but not in the order asked for.",
        _counts(lambda c, u, n, m, text, ids: (n, m, c, u)),
    ),
    (
        "text.case folded",
        "Upper and lower case are different characters.",
        _counts(lambda c, u, n, m, text, ids: (c, len(set(text.lower())), n, m)),
    ),
    (
        "text.tensors in a set",
        "The different tokens are counted as one: `input_ids` has a batch axis, and a set of its "
        "rows holds one row.",
        _counts(lambda c, u, n, m, text, ids: (c, u, n, 1)),
    ),
    (
        "text.stripped",
        "The text was stripped first. Blanks and line breaks at its ends are characters too.",
        _counts(lambda c, u, n, m, text, ids: (len(text.strip()), u, n, m)),
    ),
    (
        "text.largest id",
        "The largest id says nothing about how many different ones there are.",
        _counts(lambda c, u, n, m, text, ids: (c, u, n, int(ids.max()))),
    ),
]


# --- hooks ---------------------------------------------------------------------------------------
def caught(model, input_ids, pick, kind="output"):
    """What flows out of (or into) the module that `pick` takes of each block, in order."""
    out, handles = [], []
    try:
        for block in model.transformer.h:
            if kind == "input":
                handles.append(
                    pick(block).register_forward_pre_hook(
                        lambda module, args: out.append(args[0].detach().clone())
                    )
                )
            else:
                handles.append(
                    pick(block).register_forward_hook(
                        lambda module, args, result: out.append(_tensor(result).detach().clone())
                    )
                )
        with torch.no_grad():
            model(input_ids)
    finally:
        for handle in handles:
            handle.remove()
    return out


def _tensor(result):
    return result[0] if isinstance(result, tuple) else result


def wide_outputs(model, input_ids):
    return caught(model, input_ids, lambda block: block.attn.c_attn)


def tap(model, input_ids, layer):
    return wide_outputs(model, input_ids)[layer]


def _without_bias(model, input_ids, layer):
    return tap(model, input_ids, layer) - model.transformer.h[layer].attn.c_attn.bias.detach()


def _swallowed(model, input_ids, layer):
    try:
        return tap(model, input_ids, layer)
    except IndexError:
        return None


_HOOK = [
    (
        "hook.input caught",
        "This is what goes into c_attn. A pre-hook, or the hook's second "
        "argument, gives the input; the output is wanted.",
        lambda m, i, layer: caught(m, i, lambda b: b.attn.c_attn, "input")[layer],
    ),
    (
        "hook.whole attention",
        "This is the output of the whole attention module, or of c_proj: "
        "after the heads have done their work. c_attn comes before.",
        lambda m, i, layer: caught(m, i, lambda b: b.attn.c_proj)[layer],
    ),
    (
        "hook.c_proj's input",
        "This goes into c_proj: the heads' outputs. c_attn comes before.",
        lambda m, i, layer: caught(m, i, lambda b: b.attn.c_proj, "input")[layer],
    ),
    (
        "hook.block",
        "This is the output of the whole block, the residual stream.",
        lambda m, i, layer: caught(m, i, lambda b: b)[layer],
    ),
    (
        "hook.block",
        "This is the input of the whole block, the residual stream.",
        lambda m, i, layer: caught(m, i, lambda b: b, "input")[layer],
    ),
    (
        "hook.another layer",
        "This is the layer before. Layers count from 0.",
        lambda m, i, layer: tap(m, i, layer - 1),
    ),
    (
        "hook.another layer",
        "This is the layer after. Layers count from 0.",
        lambda m, i, layer: tap(m, i, layer + 1),
    ),
    (
        "hook.another layer",
        "This is always the last layer. Which value has the loop variable when the hook runs?",
        lambda m, i, layer: tap(m, i, -1),
    ),
    (
        "hook.first item alone",
        "Only the first sequence of the batch was kept.",
        lambda m, i, layer: tap(m, i, layer)[0],
    ),
    (
        "hook.first item alone",
        "Only the first sequence of the batch was kept.",
        lambda m, i, layer: tap(m, i, layer)[:1],
    ),
    (
        "hook.bias lost",
        "The bias is missing: this is the product with the weight alone.",
        _without_bias,
    ),
    (
        "hook.error swallowed",
        "Where the model raises an error, your function hides it. Tidy up in "
        "`finally`, which lets the error through.",
        _swallowed,
    ),
]


def tap_all(model, input_ids):
    return dict(enumerate(wide_outputs(model, input_ids)))


def _late(model, input_ids):
    wides = wide_outputs(model, input_ids)
    return {len(wides) - 1: wides[-1]}


def _keyed(change):
    return lambda model, ids: change(wide_outputs(model, ids))


_LATE = (
    "all hooks.late binding",
    "Every hook wrote under the last layer's number: a hook reads the loop variable when it runs, "
    "and by then the loop is over. Make each hook in a function that is given its number.",
)
_ALL = [
    (*_LATE, _late),
    (*_LATE, _keyed(lambda w: dict.fromkeys(range(len(w)), w[-1]))),
    (
        "all hooks.first layer again",
        "Every entry holds the first layer's output.",
        _keyed(lambda w: dict.fromkeys(range(len(w)), w[0])),
    ),
    (
        "all hooks.counted from 1",
        "The layers are numbered from 1; the course, like Python, counts from 0.",
        _keyed(lambda w: {layer + 1: each for layer, each in enumerate(w)}),
    ),
    (
        "all hooks.reversed",
        "The layers stand in reverse order.",
        _keyed(lambda w: dict(enumerate(w[::-1]))),
    ),
    (
        "all hooks.last layer missing",
        "The last layer is missing: where does your range end?",
        _keyed(lambda w: dict(enumerate(w[:-1]))),
    ),
    (
        "all hooks.list",
        "These are the right tensors in a list; a dict from layer number to tensor is wanted.",
        wide_outputs,
    ),
    (
        "all hooks.named keys",
        "The keys should be the layer numbers themselves.",
        _keyed(lambda w: {f"L{layer}_qkv": each for layer, each in enumerate(w)}),
    ),
    (
        "all hooks.input caught",
        "This is what goes into c_attn; its output is wanted.",
        lambda m, i: dict(enumerate(caught(m, i, lambda b: b.attn.c_attn, "input"))),
    ),
    (
        "all hooks.another module",
        "This is the output of the attention module or of c_proj; c_attn is wanted.",
        lambda m, i: dict(enumerate(caught(m, i, lambda b: b.attn.c_proj))),
    ),
    (
        "all hooks.first item alone",
        "Only the first sequence of the batch was kept.",
        _keyed(lambda w: {layer: each[0] for layer, each in enumerate(w)}),
    ),
]


# --- queries, keys and values --------------------------------------------------------------------
def heads_of(wide, num_heads):
    return tuple(_heads(part, num_heads) for part in wide.chunk(3, dim=-1))


def _heads(part, num_heads):
    return part.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _each(change):
    return lambda wide, num_heads: tuple(change(part, num_heads) for part in wide.chunk(3, -1))


def _permuted(*order):
    return lambda wide, num_heads: tuple(heads_of(wide, num_heads)[i] for i in order)


def _by_head_first(wide, num_heads):
    parts = wide.unflatten(-1, (num_heads, 3, -1)).permute(3, 0, 2, 1, 4)
    return tuple(parts)


def _three_fastest(wide, num_heads):
    return tuple(_heads(wide[..., part::3], num_heads) for part in range(3))


_SPLIT = [
    (
        "split.order",
        "Values and keys have changed places. The order is query, key, value, whatever "
        "the name `qvk` in a well-known post says.",
        _permuted(0, 2, 1),
    ),
    ("split.order", "Queries and keys have changed places.", _permuted(1, 0, 2)),
    ("split.order", "Queries and values have changed places.", _permuted(2, 1, 0)),
    (
        "split.heads before q, k, v",
        "You cut into heads first and then each head in three. The wide "
        "axis is all queries, then all keys, then all values.",
        _by_head_first,
    ),
    (
        "split.every third",
        "Every third feature was taken. Queries, keys and values stand in three blocks.",
        _three_fastest,
    ),
    (
        "split.reshape for transpose",
        "`view` alone cannot bring the heads to the front: it mixes "
        "tokens. Split the last axis in two, then transpose.",
        _each(lambda p, h: p.reshape(p.shape[0], h, p.shape[1], -1)),
    ),
    (
        "split.interleaved heads",
        "The heads are interleaved: head h took every num_heads-th "
        "feature. A head's features stand together.",
        _each(lambda p, h: p.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)),
    ),
    (
        "split.not transposed",
        "The heads are split, but they stand after the tokens. Transpose the axes 1 and 2.",
        _each(lambda p, h: p.unflatten(-1, (h, -1))),
    ),
    (
        "split.no heads",
        "Queries, keys and values are cut, but not yet their heads.",
        _each(lambda p, h: p),
    ),
    (
        "split.head_size swapped",
        "num_heads and head_size have changed places.",
        _each(lambda p, h: p.unflatten(-1, (-1, h)).transpose(1, 2)),
    ),
    (
        "split.one part thrice",
        "Queries, keys and values are the same third.",
        lambda w, h: (heads_of(w, h)[0],) * 3,
    ),
]


# --- histograms and variances --------------------------------------------------------------------
def _bin_counts(values, edges):
    rows = [torch.histogram(row, edges).hist for row in values.double()]
    return torch.stack(rows)


def layer_densities(values, edges):
    edges = edges.double()
    counts = _bin_counts(values, edges)
    width = edges[1:] - edges[:-1]
    share = counts / values.shape[1]
    return (edges[1:] + edges[:-1]) / 2, share / width, 1 - share.sum(-1)


def _densities(change):
    def wrong(values, edges):
        counts = _bin_counts(values, edges.double())
        return change(*layer_densities(values, edges), counts, values, edges.double())

    return wrong


def _clipped(values, edges):
    low, high = edges[0].item() + 1e-9, edges[-1].item() - 1e-9
    centres, densities, _ = layer_densities(values.clamp(low, high), edges)
    return centres, densities, layer_densities(values, edges)[2]


_HISTOGRAM = [
    (
        "histogram.inside alone",
        "The densities are divided by the number of values inside the bins, "
        "as density=True does: each curve has area 1, and what lies outside has vanished. Divide "
        "by all values of the layer.",
        _densities(lambda c, d, o, n, v, e: (c, n / n.sum(-1, True) / (e[1:] - e[:-1]), o)),
    ),
    (
        "histogram.left edges",
        "These are the left edges of the bins, half a bin too far to the left.",
        _densities(lambda c, d, o, n, v, e: (e[:-1], d, o)),
    ),
    (
        "histogram.right edges",
        "These are the right edges of the bins.",
        _densities(lambda c, d, o, n, v, e: (e[1:], d, o)),
    ),
    (
        "histogram.counts",
        "These are counts; a density is a share divided by the bin's width.",
        _densities(lambda c, d, o, n, v, e: (c, n, o)),
    ),
    (
        "histogram.width forgotten",
        "These are shares; a density is a share divided by the bin's width.",
        _densities(lambda c, d, o, n, v, e: (c, n / v.shape[1], o)),
    ),
    (
        "histogram.share inside",
        "The last result is the share inside the bins; the one outside is wanted.",
        _densities(lambda c, d, o, n, v, e: (c, d, 1 - o)),
    ),
    (
        "histogram.count outside",
        "The last result is a number of values; the share is wanted.",
        _densities(lambda c, d, o, n, v, e: (c, d, o * v.shape[1])),
    ),
    ("histogram.clipped", "The values outside were pushed into the first and last bin.", _clipped),
    (
        "histogram.layers pooled",
        "Each layer's counts were divided by the values of all layers.",
        _densities(lambda c, d, o, n, v, e: (c, d / len(v), o)),
    ),
    (
        "histogram.last edge lost",
        "The last bin is missing: edges has one entry more than there are bins.",
        _densities(lambda c, d, o, n, v, e: (c[:-1], d[:, :-1], o)),
    ),
    (
        "histogram.inside alone",
        "The densities are divided by the number of values inside the bins, as density=True "
        "does, and so nothing seems to lie outside. Count against all values of the layer.",
        _densities(lambda c, d, o, n, v, e: (c, n / n.sum(-1, True) / e.diff(), 0 * o)),
    ),
    (
        "histogram.not per value",
        "These are counts per unit of width; a density is a share per unit of width.",
        _densities(lambda c, d, o, n, v, e: (c, n / e.diff(), o)),
    ),
    (
        "histogram.times width",
        "The shares are multiplied by the width; a density is divided by it.",
        _densities(lambda c, d, o, n, v, e: (c, d * e.diff() ** 2, o)),
    ),
    (
        "histogram.outside from heights",
        "The last result is 1 minus the sum of the heights. A share is an area: height times "
        "width.",
        _densities(lambda c, d, o, n, v, e: (c, d, 1 - d.sum(1))),
    ),
    (
        "histogram.one side",
        "Only what lies above the last edge is counted as outside.",
        _densities(lambda c, d, o, n, v, e: (c, d, (v > e[-1]).double().mean(1))),
    ),
]


def _per_layer(measure):
    """A table with a row a layer and a column each for queries, keys and values."""

    def table(wides, first):
        rows = [[measure(p) for p in wide[:, first:].chunk(3, dim=-1)] for wide in wides]
        return torch.tensor(rows)

    return table


qkv_variance = _per_layer(lambda part: part.var().item())


def stale(function):
    return lambda wides, other: function([wides[-1]] * len(wides), other)


STALE = (
    "Every layer has the last layer's numbers. A variable left over from an earlier loop is "
    "used where this layer's tensor should be."
)


def _every_third(wides, first):
    return torch.tensor([[w[:, first:, i::3].var().item() for i in range(3)] for w in wides])


_VARIANCE = [
    (
        "variance.first token kept",
        "The tokens before `first` are still in: the first token alone can outweigh all others.",
        lambda wides, first: qkv_variance(wides, 0),
    ),
    (
        "variance.wrong axis cut",
        "`first` cut the sequences of the batch, not the tokens. Axis 0 is the batch.",
        lambda wides, first: qkv_variance([w[first:] for w in wides], 0),
    ),
    (
        "variance.wrong axis cut",
        "`first` cut features, not tokens.",
        lambda wides, first: torch.tensor(
            [[p[..., first:].var().item() for p in w.chunk(3, -1)] for w in wides]
        ),
    ),
    (
        "variance.one sequence",
        "Only the first sequence of the batch is counted.",
        lambda wides, first: qkv_variance([w[:1] for w in wides], first),
    ),
    (
        "variance.ddof",
        "This divides by the number of values; torch.var divides by one less "
        "(correction=1), and that is what is asked for.",
        _per_layer(lambda p: p.var(correction=0).item()),
    ),
    (
        "variance.standard deviation",
        "This is the standard deviation, the root of what is asked for.",
        _per_layer(lambda p: p.std().item()),
    ),
    (
        "variance.features apart",
        "This is the mean of each feature's own variance. Pool all numbers "
        "of a third first, then take one variance.",
        _per_layer(lambda p: p.flatten(0, 1).var(0).mean().item()),
    ),
    (
        "variance.mean square",
        "This is the mean square; a variance subtracts the mean first.",
        _per_layer(lambda p: (p**2).mean().item()),
    ),
    ("variance.stale tensor", STALE, stale(qkv_variance)),
    (
        "variance.axes swapped",
        "Layers should be rows; queries, keys and values columns.",
        lambda wides, first: qkv_variance(wides, first).T,
    ),
    (
        "variance.order",
        "The columns are not in the order query, key, value.",
        lambda wides, first: qkv_variance(wides, first)[:, [0, 2, 1]],
    ),
    (
        "variance.order",
        "The columns are not in the order query, key, value.",
        lambda wides, first: qkv_variance(wides, first)[:, [1, 0, 2]],
    ),
    (
        "variance.one token too many",
        "The token at `first` is left out too; it is the first that counts.",
        lambda wides, first: qkv_variance(wides, first + 1),
    ),
    (
        "variance.order",
        "The columns are not in the order query, key, value.",
        lambda wides, first: qkv_variance(wides, first).flip(1),
    ),
    (
        "variance.tokens apart",
        "This is the mean of each token's own variance. Pool all numbers of a third first, then "
        "take one variance.",
        _per_layer(lambda p: p.var(-1).mean().item()),
    ),
    (
        "variance.every third",
        "Every third feature was taken. Queries, keys and values stand in three blocks.",
        _every_third,
    ),
]


_ANSWERS = {
    "activations.text": (count_text, _TEXT),
    "activations.one_hook": (tap, _HOOK),
    "activations.all_layers": (tap_all, _ALL),
    "activations.split": (heads_of, _SPLIT),
    "activations.histogram": (layer_densities, _HISTOGRAM),
    "activations.variance": (qkv_variance, _VARIANCE),
}
_NAMES = {
    "activations.text": "count_text",
    "activations.one_hook": "tap",
    "activations.all_layers": "tap_all",
    "activations.split": "heads_of",
    "activations.histogram": "layer_densities",
    "activations.variance": "qkv_variance",
}
SOLVE = {task: {_NAMES[task]: right} for task, (right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {_NAMES[task]: wrong}) for check, message, wrong in known]
    for task, (_, known) in _ANSWERS.items()
}
