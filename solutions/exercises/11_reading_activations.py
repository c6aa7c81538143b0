"""Lesson 11: reading activations. Hooks, queries, keys and values by layer, scores and sinks."""

from __future__ import annotations

import math
from functools import partial
from operator import itemgetter

import torch

from autograder import Call, Draw, exercise
from autograder.judging.forms import large_negative_as_inf, results_in_one_tensor
from transformer_lm.activations import record

from ._gpt2 import gpt2_and_ids


def itself(value, *_):
    return value


# --- what goes in --------------------------------------------------------------------------------
WORDS = ("Be", "who", "you", "are", "and", "say", "what", "feel,", "mind", "matter", "don't")


def texts(draw: Draw) -> list[Call]:
    calls = []
    for count in (7, 12, 19):
        words = ["Be", *(draw.choice(WORDS) for _ in range(count))]
        text = " ".join(words[:4]) + "\n" + " " * draw.integer(3, 8) + " ".join(words[4:]) + " be\n"
        seq_len = draw.integer(count + 3, count + 9)
        ids = draw.integers(200, 200 + count, 1, seq_len)
        ids[0, -1] = ids[0, 0]  # one token at least is there twice
        calls.append(Call("", (text, ids), says=f"{count} words, {seq_len} tokens"))
    return calls


def different(items):
    return len(set(items))


@exercise("activations.text", texts, judge=results_in_one_tensor,
          hints=(
              "A text is a string: what do `len` and `set` make of it? And what do they make of a "
              "tensor with two axes?",
              "The tokens stand in `input_ids[0]`. Put a few elements of a tensor into a set and "
              "print it. Are two tensors that hold the same number the same object?",
              "Turn the ids into plain numbers first: `input_ids[0].tolist()`. Then len and "
              "len(set(...)) do for tokens what they do for characters."))
def count_text(text, input_ids, characters=len, letters=different, tokens=len, vocabulary=different,
               finish=lambda *counts: counts):
    ids = input_ids[0].tolist()
    return finish(characters(text), letters(text), tokens(ids), vocabulary(ids))

def without_blanks(text):
    return "".join(text.split())

BATCH = "`len(input_ids)` counts the sequences of the batch, not the tokens."
ORDER = "The four numbers are right, but not in the order asked for."
count_text.wrong("text.tensors in a set",
                 "The unique tokens are as many as the tokens: a set of tensors compares objects, "
                 "and each element of a tensor is an object of its own. Use .tolist().",
                 vocabulary=len)
count_text.wrong("text.batch counted", BATCH, tokens=lambda ids: 1)
count_text.wrong("text.batch counted", BATCH, tokens=lambda ids: 1, vocabulary=lambda ids: 1)
count_text.wrong("text.words",
                 "These are words. A token is what the tokenizer makes of the text, and the ids "
                 "are given.", lambda text, input_ids: (
                     len(text), different(text), len(text.split()), different(text.split())))
count_text.wrong("text.blanks left out",
                 "Blanks and line breaks are characters too; the tokenizer sees them.",
                 characters=lambda text: len(without_blanks(text)),
                 letters=lambda text: different(without_blanks(text)))
count_text.wrong("text.order", ORDER, finish=lambda c, u, n, m: (c, n, u, m))
count_text.wrong("text.order", ORDER, finish=lambda c, u, n, m: (n, m, c, u))
count_text.wrong("text.case folded", "Upper and lower case are different characters.",
                 letters=lambda text: different(text.lower()))
count_text.wrong("text.tensors in a set",
                 "The different tokens are counted as one: `input_ids` has a batch axis, and a set "
                 "of its rows holds one row.", vocabulary=lambda ids: 1)
count_text.wrong("text.stripped",
                 "The text was stripped first. Blanks and line breaks at its ends are characters "
                 "too.", characters=lambda text: len(text.strip()))
count_text.wrong("text.largest id",
                 "The largest id says nothing about how many different ones there are.",
                 vocabulary=max)


# --- what is caught ------------------------------------------------------------------------------
def models_and_layers(draw: Draw) -> list[Call]:
    calls = []
    for layers, layer in ((3, 1), (3, 0), (2, 1)):
        model, ids, text = gpt2_and_ids(draw, layers, *draw.sizes(2, 2, 7))
        calls.append(Call("", (model, ids, layer), says=f"{text}; layer {layer}"))
    ids = ids.clone()
    ids[0, -1] = model.values["config"]["vocab_size"]  # the model raises an IndexError on the way
    return [*calls, Call("", (model, ids, 1), says="a token id that the model does not have")]


def caught(model, input_ids, name=".attn.c_attn"):
    """What flows at that place of each block, in order."""
    names = [f"h.{block}{name}" for block in range(model.config.n_layer)]
    with torch.no_grad(), record(model, names) as acts:
        model(input_ids)
    return [acts[name] for name in names]


@exercise("activations.one_hook", models_and_layers,
          hints=(
              "The module is `model.transformer.h[layer].attn.c_attn`. Who calls the hook, when, "
              "and with which three arguments?",
              "`register_forward_hook(hook)` returns a handle. The hook puts the output somewhere "
              "you can reach it afterwards. And the handle must be used however the run ends.",
              "Put the detached output into a list, run the model in a `try`, and call "
              "`handle.remove()` in its `finally`; return the one thing in the list."))
def tap(model, input_ids, layer, name=".attn.c_attn", which=itself, finish=itself):
    return finish(caught(model, input_ids, name)[which(layer)])

def without_bias(model, input_ids, layer):
    return tap(model, input_ids, layer) - model.transformer.h[layer].attn.c_attn.bias.detach()

def swallowed(model, input_ids, layer):
    try:
        return tap(model, input_ids, layer)
    except IndexError:
        return None

FIRST = "Only the first sequence of the batch was kept."
tap.wrong("hook.input caught",
          "This is what goes into c_attn. A pre-hook, or the hook's second argument, gives the "
          "input; the output is wanted.", name=".attn.c_attn:input")
tap.wrong("hook.whole attention",
          "This is the output of the whole attention module, or of c_proj: after the heads have "
          "done their work. c_attn comes before.", name=".attn.c_proj")
tap.wrong("hook.c_proj's input",
          "This goes into c_proj: the heads' outputs. c_attn comes before.",
          name=".attn.c_proj:input")
tap.wrong("hook.block", "This is the output of the whole block, the residual stream.", name="")
tap.wrong("hook.block", "This is the input of the whole block, the residual stream.", name=":input")
tap.wrong("hook.another layer", "This is the layer before. Layers count from 0.",
          which=lambda layer: layer - 1)
tap.wrong("hook.another layer", "This is the layer after. Layers count from 0.",
          which=lambda layer: layer + 1)
tap.wrong("hook.another layer",
          "This is always the last layer. Which value has the loop variable when the hook runs?",
          which=lambda layer: -1)
tap.wrong("hook.first item alone", FIRST, finish=lambda wide: wide[0])
tap.wrong("hook.first item alone", FIRST, finish=lambda wide: wide[:1])
tap.wrong("hook.bias lost", "The bias is missing: this is the product with the weight alone.",
          without_bias)
tap.wrong("hook.error swallowed",
          "Where the model raises an error, your function hides it. Tidy up in `finally`, which "
          "lets the error through.", swallowed)


def models(draw: Draw) -> list[Call]:
    asked = (gpt2_and_ids(draw, layers, *draw.sizes(2, 2, 7)) for layers in (3, 2))
    return [Call("", (model, ids), says=text) for model, ids, text in asked]


def by_number(wides):
    return dict(enumerate(wides))


@exercise("activations.all_layers", models,
          hints=(
              "All hooks are put in before any of them runs. What is the loop variable by then?",
              "A function that is given the layer number and returns the hook keeps that number "
              "for each hook. The handles go into a list.",
              "make_hook(layer) returns an inner function that writes caught[layer]; register "
              "make_hook(layer) on each c_attn, run the model once, remove all handles."))
def tap_all(model, input_ids, name=".attn.c_attn", number=by_number):
    return number(caught(model, input_ids, name))

LATE = ("Every hook wrote under the last layer's number: a hook reads the loop variable when it "
        "runs, and by then the loop is over. Make each hook in a function that is given its "
        "number.")
tap_all.wrong("all hooks.late binding", LATE, number=lambda wides: {len(wides) - 1: wides[-1]})
tap_all.wrong("all hooks.late binding", LATE,
              number=lambda wides: by_number(wides[-1:] * len(wides)))
tap_all.wrong("all hooks.first layer again", "Every entry holds the first layer's output.",
              number=lambda wides: by_number(wides[:1] * len(wides)))
tap_all.wrong("all hooks.counted from 1",
              "The layers are numbered from 1; the course, like Python, counts from 0.",
              number=lambda wides: dict(enumerate(wides, 1)))
tap_all.wrong("all hooks.reversed", "The layers stand in reverse order.",
              number=lambda wides: by_number(wides[::-1]))
tap_all.wrong("all hooks.last layer missing",
              "The last layer is missing: where does your range end?",
              number=lambda wides: by_number(wides[:-1]))
tap_all.wrong("all hooks.list",
              "These are the right tensors in a list; a dict from layer number to tensor is "
              "wanted.", number=itself)
tap_all.wrong("all hooks.named keys", "The keys should be the layer numbers themselves.",
              number=lambda wides: {f"L{layer}_qkv": wide for layer, wide in enumerate(wides)})
tap_all.wrong("all hooks.input caught", "This is what goes into c_attn; its output is wanted.",
              name=".attn.c_attn:input")
tap_all.wrong("all hooks.another module",
              "This is the output of the attention module or of c_proj; c_attn is wanted.",
              name=".attn.c_proj")
tap_all.wrong("all hooks.first item alone", FIRST,
              number=lambda wides: by_number([wide[0] for wide in wides]))


# --- queries, keys and values --------------------------------------------------------------------
def thirds(wide):
    return wide.chunk(3, dim=-1)


def every_third(wide):
    return [wide[..., part::3] for part in range(3)]


def heads_first(part, num_heads):
    return part.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def torn(part, num_heads):
    return part.reshape(len(part), num_heads, part.shape[1], -1)


def interleaved(part, num_heads):
    return part.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


@exercise("activations.split",
          "heads_of(wide[batch_size, seq_len, 3 * num_heads * head_size], num_heads)",
          judge=results_in_one_tensor,
          hints=(
              "The last axis is [queries | keys | values], each `hidden` wide, and each of them is "
              "[head 0 | head 1 | ...]. Cut in this order.",
              "`chunk(3, dim=-1)` cuts the wide axis. A last axis of hidden becomes two: which of "
              "them is the slow one, heads or features?",
              "For each third: view as [batch_size, seq_len, num_heads, head_size], then swap the "
              "axes 1 and 2."))
def heads_of(wide, num_heads, cut=thirds, split=heads_first, finish=itself):
    return finish(tuple(split(part, num_heads) for part in cut(wide)))

TORN = ("`view` alone cannot bring the heads to the front: it mixes tokens. Split the last axis in "
        "two, then transpose.")
heads_of.wrong("split.order",
               "Values and keys have changed places. The order is query, key, value, whatever the "
               "name `qvk` in a well-known post says.", finish=itemgetter(0, 2, 1))
heads_of.wrong("split.order", "Queries and keys have changed places.", finish=itemgetter(1, 0, 2))
heads_of.wrong("split.order", "Queries and values have changed places.", finish=itemgetter(2, 1, 0))
heads_of.wrong("split.heads before q, k, v",
               "You cut into heads first and then each head in three. The wide axis is all "
               "queries, then all keys, then all values.", lambda wide, num_heads: tuple(
                   wide.unflatten(-1, (num_heads, 3, -1)).permute(3, 0, 2, 1, 4)))
heads_of.wrong("split.every third",
               "Every third feature was taken. Queries, keys and values stand in three blocks.",
               cut=every_third)
heads_of.wrong("split.reshape for transpose", TORN, split=torn)
heads_of.wrong("split.interleaved heads",
               "The heads are interleaved: head h took every num_heads-th feature. A head's "
               "features stand together.", split=interleaved)
heads_of.wrong("split.not transposed",
               "The heads are split, but they stand after the tokens. Transpose the axes 1 and 2.",
               split=lambda part, num_heads: part.unflatten(-1, (num_heads, -1)))
heads_of.wrong("split.no heads", "Queries, keys and values are cut, but not yet their heads.",
               split=itself)
heads_of.wrong("split.head_size swapped", "num_heads and head_size have changed places.",
               split=lambda part, num_heads: part.unflatten(-1, (-1, num_heads)).transpose(1, 2))
heads_of.wrong("split.one part thrice", "Queries, keys and values are the same third.",
               finish=itemgetter(0, 0, 0))


# --- histograms and variances --------------------------------------------------------------------
def values_and_edges(draw: Draw) -> list[Call]:
    calls = []
    for bins in (11, 7, 13):
        layers, count = draw.choice((2, 3, 5)), draw.integer(150, 300)
        spread = draw.uniform(layers, 1, low=0.7, high=2.5)
        values = draw.normal(layers, count) * spread
        high = draw.integer(15, 25) / 10
        edges = torch.linspace(-high, high, bins + 1)
        text = f"{layers} layers of {count} values, {bins} bins from -{high} to {high}"
        calls.append(Call("", (values, edges), says=text))
    return calls


def counts_of(values, edges):
    return torch.stack([torch.histogram(row, edges).hist for row in values])


def per_value_and_width(counts, values, edges):
    return counts / values.shape[1] / edges.diff()


def share_outside(counts, values, edges):
    return 1 - counts.sum(-1) / values.shape[1]


@exercise("activations.histogram", values_and_edges,
          hints=(
              "Three questions: where is the middle of a bin, how wide is it, and how many values "
              "does the layer have, inside the bins or not?",
              "A density is a share divided by a width. Here the share is one of all values, so "
              "the area under the curve misses 1 by just what lies outside.",
              "Centres: (edges[:-1] + edges[1:]) / 2. Counts: torch.histogram(row, edges).hist for "
              "each layer. Densities: counts / (number of values * width). Outside: 1 minus the "
              "sum of counts over the number of values."))
def layer_densities(values, edges, place=lambda edges: (edges[1:] + edges[:-1]) / 2,
                    density=per_value_and_width, outside=share_outside,
                    finish=lambda *three: three):
    values, edges = values.double(), edges.double()
    counts = counts_of(values, edges)
    return finish(place(edges), density(counts, values, edges), outside(counts, values, edges))

def per_value_inside(counts, values, edges):
    return counts / counts.sum(-1, keepdim=True) / edges.diff()

def of_clipped(counts, values, edges):
    clipped = values.clamp(edges[0] + 1e-9, edges[-1] - 1e-9)
    return per_value_and_width(counts_of(clipped, edges), values, edges)

layer_densities.wrong("histogram.inside alone",
                      "The densities are divided by the number of values inside the bins, as "
                      "density=True does: each curve has area 1, and what lies outside has "
                      "vanished. Divide by all values of the layer.", density=per_value_inside)
layer_densities.wrong("histogram.left edges",
                      "These are the left edges of the bins, half a bin too far to the left.",
                      place=lambda edges: edges[:-1])
layer_densities.wrong("histogram.right edges", "These are the right edges of the bins.",
                      place=lambda edges: edges[1:])
layer_densities.wrong("histogram.counts",
                      "These are counts; a density is a share divided by the bin's width.",
                      density=itself)
layer_densities.wrong("histogram.width forgotten",
                      "These are shares; a density is a share divided by the bin's width.",
                      density=lambda counts, values, edges: counts / values.shape[1])
layer_densities.wrong("histogram.share inside",
                      "The last result is the share inside the bins; the one outside is wanted.",
                      outside=lambda *seen: 1 - share_outside(*seen))
layer_densities.wrong("histogram.count outside",
                      "The last result is a number of values; the share is wanted.",
                      outside=lambda counts, values, edges: values.shape[1] - counts.sum(-1))
layer_densities.wrong("histogram.clipped",
                      "The values outside were pushed into the first and last bin.",
                      density=of_clipped)
layer_densities.wrong("histogram.layers pooled",
                      "Each layer's counts were divided by the values of all layers.",
                      density=lambda counts, values, edges: counts / values.numel() / edges.diff())
layer_densities.wrong("histogram.last edge lost",
                      "The last bin is missing: edges has one entry more than there are bins.",
                      finish=lambda centres, densities, share: (
                          centres[:-1], densities[:, :-1], share))
layer_densities.wrong("histogram.inside alone",
                      "The densities are divided by the number of values inside the bins, as "
                      "density=True does, and so nothing seems to lie outside. Count against all "
                      "values of the layer.", density=per_value_inside,
                      outside=lambda counts, values, edges: torch.zeros(len(counts)))
layer_densities.wrong("histogram.not per value",
                      "These are counts per unit of width; a density is a share per unit of width.",
                      density=lambda counts, values, edges: counts / edges.diff())
layer_densities.wrong("histogram.times width",
                      "The shares are multiplied by the width; a density is divided by it.",
                      density=lambda counts, values, edges: (
                          counts / values.shape[1] * edges.diff()))
layer_densities.wrong("histogram.outside from heights",
                      "The last result is 1 minus the sum of the heights. A share is an area: "
                      "height times width.",
                      outside=lambda *seen: 1 - per_value_and_width(*seen).sum(1))
layer_densities.wrong("histogram.one side",
                      "Only what lies above the last edge is counted as outside.",
                      outside=lambda counts, values, edges: (
                          (values > edges[-1]).double().mean(1)))


def c_attn_of_layers(draw: Draw) -> tuple[list[torch.Tensor], int, str]:
    """c_attn's outputs of a few layers, of uneven size and place; the heads; and both in words."""
    batch_size, seq_len, heads, size = draw.sizes(4, 2, 7)
    if seq_len == 2:  # too few to leave one out and see another left out by mistake
        seq_len, size = size, seq_len
    shape, parts = (batch_size, seq_len, heads * size), ((1.2, 0.1), (0.9, -0.2), (0.5, 0.3))
    wides = [torch.cat([draw.normal(*shape, scale=s) + m for s, m in parts], -1) * (0.6 + 0.3 * i)
             for i in range(draw.choice((3, 4)))]
    text = f"{len(wides)} layers of {heads} heads, {batch_size} sequences of {seq_len} tokens"
    return wides, heads, text


def layers_from_token(draw: Draw) -> list[Call]:
    calls = []
    for first in (1, 0, 1):
        wides, _, text = c_attn_of_layers(draw)
        for wide in wides:
            wide[:, 0] *= 3.0  # the first token outweighs all others
        calls.append(Call("", (wides, first), says=f"{text}, first={first}"))
    return calls


def last_again(wides):
    """Every layer's tensor is the last one's."""
    return wides[-1:] * len(wides)


def from_token(wide, first):
    return wide[:, first:]


@exercise("activations.variance", layers_from_token,
          hints=(
              "The axes are batch, tokens, features. Which one does `first` cut, and which of them "
              "are pooled into one number?",
              "Cut the tokens before `first`, cut the last axis in three, then one variance over "
              "all that is left of each third.",
              "For each layer: [part.var() for part in wide[:, first:].chunk(3, dim=-1)]; make a "
              "tensor of the rows."))
def qkv_variance(wides, first, of=itself, keep=from_token, cut=thirds, measure=torch.var,
                 finish=itself):
    rows = [[measure(part) for part in cut(keep(wide, first))] for wide in of(wides)]
    return finish(torch.stack([torch.stack(row) for row in rows]))

STALE = ("Every layer has the last layer's numbers. A variable left over from an earlier loop is "
         "used where this layer's tensor should be.")
qkv_variance.wrong("variance.first token kept",
                   "The tokens before `first` are still in: the first token alone can outweigh all "
                   "others.", keep=itself)
qkv_variance.wrong("variance.first ignored",
                   "The first token is left out whatever `first` says: a `1:` is written down.",
                   keep=lambda wide, first: wide[:, 1:])
qkv_variance.wrong("variance.wrong axis cut",
                   "`first` cut the sequences of the batch, not the tokens. Axis 0 is the batch.",
                   keep=lambda wide, first: wide[first:])
qkv_variance.wrong("variance.wrong axis cut", "`first` cut features, not tokens.",
                   lambda wides, first: qkv_variance(
                       wides, 0, measure=lambda part: part[..., first:].var()))
qkv_variance.wrong("variance.one sequence", "Only the first sequence of the batch is counted.",
                   keep=lambda wide, first: wide[:1, first:])
qkv_variance.wrong("variance.ddof",
                   "This divides by the number of values; torch.var divides by one less "
                   "(correction=1), and that is what is asked for.",
                   measure=partial(torch.var, correction=0))
qkv_variance.wrong("variance.standard deviation",
                   "This is the standard deviation, the root of what is asked for.",
                   measure=torch.std)
qkv_variance.wrong("variance.features apart",
                   "This is the mean of each feature's own variance. Pool all numbers of a third "
                   "first, then take one variance.",
                   measure=lambda part: part.var((0, 1)).mean())
qkv_variance.wrong("variance.mean square",
                   "This is the mean square; a variance subtracts the mean first.",
                   measure=lambda part: part.square().mean())
qkv_variance.wrong("variance.stale tensor", STALE, of=last_again)
qkv_variance.wrong("variance.axes swapped",
                   "Layers should be rows; queries, keys and values columns.", finish=torch.t)
for order in ([0, 2, 1], [1, 0, 2], [2, 1, 0]):
    qkv_variance.wrong("variance.order", "The columns are not in the order query, key, value.",
                       finish=lambda table, order=order: table[:, order])
qkv_variance.wrong("variance.one token too many",
                   "The token at `first` is left out too; it is the first that counts.",
                   keep=lambda wide, first: wide[:, first + 1:])
qkv_variance.wrong("variance.tokens apart",
                   "This is the mean of each token's own variance. Pool all numbers of a third "
                   "first, then take one variance.", measure=lambda part: part.var(-1).mean())
qkv_variance.wrong("variance.every third",
                   "Every third feature was taken. Queries, keys and values stand in three blocks.",
                   cut=every_third)


# --- scores --------------------------------------------------------------------------------------
def hide(scores, diagonal=1, value=-math.inf):
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal)
    return scores.masked_fill(future, value)


@exercise("activations.scores",
          "masked_scores(wide[batch_size, seq_len, 3 * num_heads * head_size], num_heads)",
          sizes={"seq_len": (3, 5, 7)}, judge=large_negative_as_inf,
          hints=(
              "One score for each head, query and key. If your result has three axes, the heads "
              "have been added up on the way.",
              "Split into heads first; the size to take the root of is that of one head. Then: "
              "which keys may a query not see?",
              "q @ k.transpose(-2, -1) / head_size ** 0.5 with q and k from heads_of, then "
              "masked_fill with -inf strictly above the diagonal."))
def masked_scores(wide, num_heads, split=heads_of, size=lambda q, num_heads: q.shape[-1], hide=hide,
                  finish=itself):
    q, k, _ = split(wide, num_heads)
    return finish(hide(q @ k.transpose(-2, -1) / size(q, num_heads) ** 0.5))

def not_split(wide, num_heads):
    return thirds(wide)

def size_of_one(q, num_heads):
    return q.shape[-1] // num_heads

SUMMED = ("Queries and keys of the full width were multiplied: that adds up the scores of all "
          "heads, and belongs to no head of the model. Split into heads first.")
for masked in (itself, hide):
    for size in (size_of_one, lambda q, num_heads: q.shape[-1]):
        masked_scores.wrong("scores.summed heads", SUMMED, split=not_split, size=size, hide=masked)
masked_scores.wrong("scores.summed heads", SUMMED, finish=lambda scores: scores.sum(1))
masked_scores.wrong("scores.no mask",
                    "No key is hidden: these queries see the future, which the model's own never "
                    "do.", hide=itself)
masked_scores.wrong("scores.mask hides itself",
                    "A token is hidden from itself. Hide what lies strictly above the diagonal.",
                    hide=partial(hide, diagonal=0))
masked_scores.wrong("scores.mask inverted", "The past is hidden and the future visible.",
                    hide=lambda scores: scores.masked_fill(
                        torch.ones_like(scores).tril().bool(), -math.inf))
masked_scores.wrong("scores.filled with 0",
                    "Hidden scores are 0 or next to it, which the softmax turns into weight. "
                    "It takes minus infinity to hide a key.", hide=partial(hide, value=0.0))
masked_scores.wrong("scores.not scaled",
                    "The scores are not divided by the root of the head size.",
                    size=lambda q, num_heads: 1)
masked_scores.wrong("scores.scaled by the full width",
                    "The scores are divided by the root of hidden; each head's keys are only "
                    "head_size long.", size=lambda q, num_heads: num_heads * q.shape[-1])
masked_scores.wrong("scores.scaled without root",
                    "The scores are divided by the head size, not by its root.",
                    size=lambda q, num_heads: q.shape[-1] ** 2)
masked_scores.wrong("scores.already a softmax",
                    "These are attention weights; the scores before the softmax are asked for.",
                    finish=partial(torch.softmax, dim=-1))
masked_scores.wrong("scores.queries and keys swapped",
                    "Rows are keys and columns queries: the product is the wrong way round.",
                    split=partial(heads_of, finish=itemgetter(1, 0, 2)))
masked_scores.wrong("scores.interleaved heads",
                    "The heads are interleaved. A head's features stand together.",
                    split=partial(heads_of, split=interleaved))
masked_scores.wrong("scores.scaled by the number of heads",
                    "The scores are divided by the root of the number of heads; what counts is "
                    "their size.", size=lambda q, num_heads: num_heads)
masked_scores.wrong("scores.scaled by the full width",
                    "The scores are divided by the root of the whole wide axis; each head's keys "
                    "are only head_size long.",
                    size=lambda q, num_heads: 3 * num_heads * q.shape[-1])
masked_scores.wrong("scores.scaled by the tokens",
                    "The scores are divided by the root of the number of tokens; the root of the "
                    "head size is asked for.", size=lambda q, num_heads: q.shape[-2])
masked_scores.wrong("scores.multiplied",
                    "The scores are multiplied by the root of the head size; they are divided by "
                    "it.", size=lambda q, num_heads: 1 / q.shape[-1])
masked_scores.wrong("scores.one future key",
                    "Each token sees the one after it. Hide what lies strictly above the diagonal.",
                    hide=partial(hide, diagonal=2))
masked_scores.wrong("scores.reshape for transpose", TORN, split=partial(heads_of, split=torn))
masked_scores.wrong("scores.values for keys", "Queries meet the values; they should meet the keys.",
                    split=partial(heads_of, finish=itemgetter(0, 2, 1)))
masked_scores.wrong("scores.queries with themselves",
                    "Queries meet queries; they should meet the keys.",
                    split=partial(heads_of, finish=itemgetter(0, 0, 0)))
masked_scores.wrong("scores.0 * inf",
                    "Zero times infinity is not zero but NaN. Use masked_fill or where.",
                    hide=lambda scores: scores + torch.ones_like(scores).triu(1) * -math.inf)


def layers_and_heads(draw: Draw) -> Call:
    wides, heads, text = c_attn_of_layers(draw)
    return Call("", (wides, heads), says=text)


def visible(scores, diagonal=0):
    """The scores of keys that are not hidden, [..., pairs]."""
    return scores[..., torch.ones(scores.shape[-2:]).tril(diagonal).bool()]


def seen_pairs(wide, num_heads):
    return visible(masked_scores(wide, num_heads))


@exercise("activations.by_layer", layers_and_heads, judge=results_in_one_tensor,
          hints=(
              "What is the mean of numbers among which there is one minus infinity? Pick the "
              "visible pairs first.",
              "The loop must use the tensor of its own layer. A boolean lower triangle, diagonal "
              "included, picks the visible pairs of all sequences: scores[:, head][:, seen].",
              "For each layer, masked_scores(wide, num_heads); scores[..., seen] is [batch_size, "
              "num_heads, pairs] for a lower-triangular boolean `seen`; mean and std over the axes "
              "0 and 2."))
def score_statistics(wides, num_heads, of=itself, pick=seen_pairs, over=(0, 2), deviation=torch.std,
                     finish=lambda means, deviations: (means, deviations)):
    pairs = [pick(wide, num_heads) for wide in of(wides)]  # each [batch_size, num_heads, pairs]
    means, deviations = ([f(p, dim=over) for p in pairs] for f in (torch.mean, deviation))
    return finish(torch.stack(means), torch.stack(deviations))

raw_scores = partial(masked_scores, hide=itself)
full_width = partial(raw_scores, split=not_split, size=size_of_one)
score_statistics.wrong("statistics.stale tensor", STALE, of=last_again)
score_statistics.wrong("statistics.no mask",
                       "The pairs with a later key are counted too; the model never uses them.",
                       pick=lambda wide, num_heads: raw_scores(wide, num_heads).flatten(2))
score_statistics.wrong("statistics.infinite",
                       "Minus infinity is among the numbers: the mean is -inf and the deviation "
                       "nan. Pick the visible pairs first.",
                       pick=lambda wide, num_heads: masked_scores(wide, num_heads).flatten(2))
score_statistics.wrong("statistics.zeros counted",
                       "The hidden pairs are counted as zeros. Pick the visible pairs.",
                       pick=lambda wide, num_heads: raw_scores(wide, num_heads).tril().flatten(2))
score_statistics.wrong("statistics.diagonal left out",
                       "A token's score with itself is visible and belongs in.",
                       pick=lambda wide, num_heads: visible(raw_scores(wide, num_heads), -1))
score_statistics.wrong("statistics.summed heads", SUMMED, pick=full_width, over=None)
score_statistics.wrong("statistics.summed heads", SUMMED, over=None,
                       pick=lambda wide, num_heads: visible(full_width(wide, num_heads)))
score_statistics.wrong("statistics.heads pooled",
                       "All heads of a layer share one number. Keep them apart.", over=None)
score_statistics.wrong("statistics.first item alone",
                       "Only the first sequence of the batch is counted.",
                       pick=lambda wide, num_heads: seen_pairs(wide[:1], num_heads))
score_statistics.wrong("statistics.ddof",
                       "The deviation divides by the number of pairs; torch.std divides by one "
                       "less (correction=1), and that is what is asked for.",
                       deviation=partial(torch.std, correction=0))
score_statistics.wrong("statistics.variance",
                       "The second result is the variance; the standard deviation is its root.",
                       deviation=torch.var)
score_statistics.wrong("statistics.of the weights",
                       "These are statistics of the attention weights, after the softmax; the "
                       "scores are asked for.",
                       pick=lambda wide, num_heads: (
                           visible(masked_scores(wide, num_heads).softmax(-1))))
score_statistics.wrong("statistics.order", "Means come first, then deviations.",
                       finish=lambda means, deviations: (deviations, means))
score_statistics.wrong("statistics.not scaled",
                       "The scores are not divided by the root of the head size.",
                       pick=lambda wide, num_heads: (
                           visible(raw_scores(wide, num_heads, size=lambda q, num_heads: 1))))
score_statistics.wrong("statistics.first token left out",
                       "Token 0 is left out, as query and as key; all visible pairs are asked for.",
                       pick=lambda wide, num_heads: seen_pairs(wide[:, 1:], num_heads))
score_statistics.wrong("statistics.sequence by sequence",
                       "Each sequence has a deviation of its own, and these are averaged. Put the "
                       "pairs of all sequences together first.",
                       deviation=lambda pairs, dim: pairs.std(2).mean(0))
score_statistics.wrong("statistics.axes swapped", "Layers should be rows and heads columns.",
                       finish=lambda means, deviations: (means.T, deviations.T))
score_statistics.wrong("statistics.stale tensor",
                       "Every layer has the first layer's numbers; each has a tensor of its own.",
                       of=lambda wides: wides[:1] * len(wides))


# --- sinks ---------------------------------------------------------------------------------------
def models_to_watch(draw: Draw) -> list[Call]:
    asked = (gpt2_and_ids(draw, layers) for layers in (2, 3, 2))
    return [Call("", (model, ids), says=text) for model, ids, text in asked]


def patterns(model, input_ids):
    """[num_layers, batch_size, num_heads, queries, keys]"""
    with torch.no_grad():
        return torch.stack(model(input_ids, output_attentions=True).attentions)


@exercise("activations.sinks", models_to_watch,
          hints=(
              "In a map, queries go down and keys across. Is 'all look at token 0' a row, or a "
              "column?",
              "Query 0 has nothing else to look at: its weight is 1 in every model. Leave it out "
              "of the mean.",
              "model(input_ids, output_attentions=True).attentions has one [batch_size, num_heads, "
              "queries, keys] a layer: take [:, :, 1:, 0], mean over batch and queries, stack."))
def sink_attention(model, input_ids, maps=patterns, pick=lambda maps: maps[..., 1:, 0],
                   average=torch.mean, over=(1, 3), finish=itself):
    weights = pick(maps(model, input_ids))  # [num_layers, batch_size, num_heads, queries]
    return finish(average(weights, dim=over))

def scores_of(model, input_ids):
    wides = caught(model, input_ids)
    return torch.stack([raw_scores(wide, model.config.n_head) for wide in wides])

ROW = "This is what query 0 looks at, not who looks at token 0. Queries go down, keys across."
sink_attention.wrong("sinks.first query counted",
                     "Query 0 is counted, and it has nothing to look at but token 0: its weight is "
                     "1 in every model.", pick=lambda maps: maps[..., 0])
sink_attention.wrong("sinks.row for column", ROW, pick=lambda maps: maps[..., 0, :])
sink_attention.wrong("sinks.row for column", ROW, pick=lambda maps: maps[..., 0, 1:])
sink_attention.wrong("sinks.no mask",
                     "These weights come from scores without the causal mask; the model's own are "
                     "larger at token 0, because later keys get nothing.",
                     maps=lambda model, input_ids: scores_of(model, input_ids).softmax(-1))
sink_attention.wrong("sinks.heads averaged", "The heads are averaged; one number a head is wanted.",
                     over=(1, 2, 3))
sink_attention.wrong("sinks.batch kept",
                     "Each sequence has its own number here; average over the batch too.",
                     over=3)
sink_attention.wrong("sinks.sum", "The weights are summed over the queries; the mean is asked for.",
                     average=lambda weights, dim: weights.sum(3).mean(1))
sink_attention.wrong("sinks.last query alone", "Only the last query is counted.",
                     pick=lambda maps: maps[..., -1:, 0])
sink_attention.wrong("sinks.last query lost", "The last query is missing from the mean.",
                     pick=lambda maps: maps[..., 1:-1, 0])
sink_attention.wrong("sinks.another token",
                     "This is the attention to token 1; the first token is token 0.",
                     pick=lambda maps: maps[..., 1:, 1])
sink_attention.wrong("sinks.last token", "This is the attention to the last token.",
                     pick=lambda maps: maps[..., 1:, -1])
sink_attention.wrong("sinks.itself", "This is the attention of a token to itself, the diagonal.",
                     pick=lambda maps: maps.diagonal(dim1=-2, dim2=-1)[..., 1:])
sink_attention.wrong("sinks.first item alone", "Only the first sequence of the batch is counted.",
                     pick=lambda maps: maps[:, :1, :, 1:, 0])
sink_attention.wrong("sinks.axes swapped", "Layers should be rows and heads columns.",
                     finish=torch.t)
sink_attention.wrong("sinks.scores",
                     "These are scores; asked for is the mean of the weights, after the softmax.",
                     maps=scores_of)
sink_attention.wrong("sinks.first two queries lost",
                     "Query 1 is left out as well; only query 0 has no choice.",
                     pick=lambda maps: maps[..., 2:, 0])
sink_attention.wrong("sinks.largest", "This is the largest weight; the mean is asked for.",
                     average=torch.amax)
