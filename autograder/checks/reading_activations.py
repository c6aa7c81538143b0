"""Lesson 11: reading activations. Hooks, queries, keys and values by layer, scores and sinks."""

from __future__ import annotations

import torch

from autograder.checks.gpt2_cases import draw_gpt2, draw_ids, says
from autograder.course.asking import Exercise
from autograder.course.calls import Call, Draw
from autograder.judging.forms import large_negative_as_inf, results_in_one_tensor

WORDS = ("Be", "who", "you", "are", "and", "say", "what", "feel,", "mind", "matter", "don't")


# --- what goes in, and what is caught ------------------------------------------------------------
def _text_cases(draw: Draw) -> list[Call]:
    calls = []
    for count in (7, 12, 19):
        words = ["Be", *(draw.choice(WORDS) for _ in range(count))]
        text = " ".join(words[:4]) + "\n" + " " * draw.integer(3, 8) + " ".join(words[4:]) + " be\n"
        seq_len = draw.integer(count + 3, count + 9)
        ids = draw.integers(200, 200 + count, 1, seq_len)
        ids[0, -1] = ids[0, 0]  # one token at least is there twice
        calls.append(Call("count_text", (text, ids), says=f"{count} words, {seq_len} tokens"))
    return calls


def _hook_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers, layer in ((3, 1), (3, 0), (2, 1)):
        model = draw_gpt2(draw, layers)
        batch, seq_len = draw.sizes(2, 2, 7)
        ids = draw_ids(draw, model, batch, seq_len)
        text = says(model, f"layer {layer}, {batch} sequences of {seq_len} tokens")
        calls.append(Call("tap", (model, ids, layer), says=text))
    ids = draw_ids(draw, model, batch, seq_len)
    ids[0, -1] = model.values["config"]["vocab_size"]  # the model raises an IndexError on the way
    calls.append(Call("tap", (model, ids, 1), says="a token id that the model does not have"))
    return calls


def _all_layers_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (3, 2):
        model = draw_gpt2(draw, layers)
        batch, seq_len = draw.sizes(2, 2, 7)
        ids = draw_ids(draw, model, batch, seq_len)
        text = says(model, f"{batch} sequences of {seq_len} tokens")
        calls.append(Call("tap_all", (model, ids), says=text))
    return calls


# --- queries, keys and values --------------------------------------------------------------------
def _wide(draw: Draw, batch: int, seq_len: int, hidden: int) -> torch.Tensor:
    """What c_attn may give: queries, keys and values of different size and place."""
    parts = [
        draw.normal(batch, seq_len, hidden, scale=s) + m
        for s, m in ((1.2, 0.1), (0.9, -0.2), (0.5, 0.3))
    ]
    return torch.cat(parts, dim=-1)


def _split_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch, seq_len, heads, size = draw.sizes(4, 2, 7)
        wide = _wide(draw, batch, seq_len, heads * size)
        text = f"{batch} sequences of {seq_len} tokens, {heads} heads of size {size}"
        calls.append(Call("heads_of", (wide, heads), says=text))
    return calls


def _histogram_cases(draw: Draw) -> list[Call]:
    calls = []
    for bins in (11, 7, 13):
        layers, count = draw.choice((2, 3, 5)), draw.integer(150, 300)
        spread = draw.uniform(layers, 1, low=0.7, high=2.5)
        values = draw.normal(layers, count) * spread
        high = draw.integer(15, 25) / 10
        edges = torch.linspace(-high, high, bins + 1)
        text = f"{layers} layers of {count} values, {bins} bins from -{high} to {high}"
        calls.append(Call("layer_densities", (values, edges), says=text))
    return calls


def _layers(draw: Draw, first_is_large: bool = False) -> tuple[list[torch.Tensor], int, int]:
    """c_attn's outputs of a few layers, the number of heads, and the number of tokens."""
    batch, seq_len, heads, size = draw.sizes(4, 2, 7)
    if seq_len == 2:  # too few to leave one out and see another left out by mistake
        seq_len, size = size, seq_len
    wides = [
        _wide(draw, batch, seq_len, heads * size) * (0.6 + 0.3 * layer)
        for layer in range(draw.choice((3, 4)))
    ]
    if first_is_large:
        for wide in wides:
            wide[:, 0] *= 3.0
    return wides, heads, seq_len


def _variance_cases(draw: Draw) -> list[Call]:
    calls = []
    for first in (1, 0, 1):
        wides, _, seq_len = _layers(draw, first_is_large=True)
        text = f"{len(wides)} layers, {len(wides[0])} sequences of {seq_len} tokens, first={first}"
        calls.append(Call("qkv_variance", (wides, first), says=text))
    return calls


# --- scores --------------------------------------------------------------------------------------
def _scores_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch, seq_len, heads, size = draw.sizes(4, 2, 7)
        wide = _wide(draw, batch, seq_len, heads * size)
        text = f"{batch} sequences of {seq_len} tokens, {heads} heads of size {size}"
        calls.append(Call("masked_scores", (wide, heads), says=text))
    return calls


def _statistics_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        wides, heads, seq_len = _layers(draw)
        text = (
            f"{len(wides)} layers of {heads} heads, {len(wides[0])} sequences of {seq_len} tokens"
        )
        calls.append(Call("score_statistics", (wides, heads), says=text))
    return calls


def _sink_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3, 2):
        model = draw_gpt2(draw, layers)
        batch, seq_len = draw.choice((2, 3)), draw.choice((5, 7))
        ids = draw_ids(draw, model, batch, seq_len)
        text = says(model, f"{batch} sequences of {seq_len} tokens")
        calls.append(Call("sink_attention", (model, ids), says=text))
    return calls


EXERCISES = [
    Exercise(
        "activations.text",
        "count_text",
        _text_cases,
        hints=(
            "A text is a string: what do `len` and `set` make of it? And what do they make of a "
            "tensor with two axes?",
            "The tokens stand in `input_ids[0]`. Put a few elements of a tensor into a set and "
            "print it. Are two tensors that hold the same number the same object?",
            "Turn the ids into plain numbers first: `input_ids[0].tolist()`. Then len and "
            "len(set(...)) do for tokens what they do for characters.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "activations.one_hook",
        "tap",
        _hook_cases,
        hints=(
            "The module is `model.transformer.h[layer].attn.c_attn`. Who calls the hook, when, "
            "and with which three arguments?",
            "`register_forward_hook(hook)` returns a handle. The hook puts the output somewhere "
            "you can reach it afterwards. And the handle must be used however the run ends.",
            "Put the detached output into a list, run the model in a `try`, and call "
            "`handle.remove()` in its `finally`; return the one thing in the list.",
        ),
    ),
    Exercise(
        "activations.all_layers",
        "tap_all",
        _all_layers_cases,
        hints=(
            "All hooks are put in before any of them runs. What is the loop variable by then?",
            "A function that is given the layer number and returns the hook keeps that number for "
            "each hook. The handles go into a list.",
            "make_hook(layer) returns an inner function that writes caught[layer]; register "
            "make_hook(layer) on each c_attn, run the model once, remove all handles.",
        ),
    ),
    Exercise(
        "activations.split",
        "heads_of",
        _split_cases,
        hints=(
            "The last axis is [queries | keys | values], each `hidden` wide, and each of them is "
            "[head 0 | head 1 | ...]. Cut in this order.",
            "`chunk(3, dim=-1)` cuts the wide axis. A last axis of hidden becomes two: which of "
            "them is the slow one, heads or features?",
            "For each third: view as [batch_size, seq_len, num_heads, head_size], then swap the "
            "axes 1 and 2.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "activations.histogram",
        "layer_densities",
        _histogram_cases,
        hints=(
            "Three questions: where is the middle of a bin, how wide is it, and how many values "
            "does the layer have, inside the bins or not?",
            "A density is a share divided by a width. Here the share is one of all values, so the "
            "area under the curve misses 1 by just what lies outside.",
            "Centres: (edges[:-1] + edges[1:]) / 2. Counts: torch.histogram(row, edges).hist for "
            "each layer. Densities: counts / (number of values * width). Outside: 1 minus the sum "
            "of counts over the number of values.",
        ),
    ),
    Exercise(
        "activations.variance",
        "qkv_variance",
        _variance_cases,
        hints=(
            "The axes are batch, tokens, features. Which one does `first` cut, and which of them "
            "are pooled into one number?",
            "Cut the tokens before `first`, cut the last axis in three, then one variance over all "
            "that is left of each third.",
            "For each layer: [part.var() for part in wide[:, first:].chunk(3, dim=-1)]; make a "
            "tensor of the rows.",
        ),
    ),
    Exercise(
        "activations.scores",
        "masked_scores",
        _scores_cases,
        hints=(
            "One score for each head, query and key. If your result has three axes, the heads "
            "have been added up on the way.",
            "Split into heads first; the size to take the root of is that of one head. Then: "
            "which keys may a query not see?",
            "q @ k.transpose(-2, -1) / head_size ** 0.5 with q and k from heads_of, then "
            "masked_fill with -inf strictly above the diagonal.",
        ),
        judge=large_negative_as_inf,
    ),
    Exercise(
        "activations.by_layer",
        "score_statistics",
        _statistics_cases,
        hints=(
            "What is the mean of numbers among which there is one minus infinity? Pick the visible "
            "pairs first.",
            "The loop must use the tensor of its own layer. A boolean lower triangle, diagonal "
            "included, picks the visible pairs of all sequences: scores[:, head][:, seen].",
            "For each layer, masked_scores(wide, num_heads); scores[..., seen] is [batch_size, "
            "num_heads, pairs] for a lower-triangular boolean `seen`; mean and std over the axes "
            "0 and 2.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "activations.sinks",
        "sink_attention",
        _sink_cases,
        hints=(
            "In a map, queries go down and keys across. Is 'all look at token 0' a row, or a "
            "column?",
            "Query 0 has nothing else to look at: its weight is 1 in every model. Leave it out of "
            "the mean.",
            "model(input_ids, output_attentions=True).attentions has one [batch_size, num_heads, "
            "queries, keys] a layer: take [:, :, 1:, 0], mean over batch and queries, stack.",
        ),
    ),
]
