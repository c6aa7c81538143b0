"""Lesson 00: eight puzzles about where each element of a tensor goes."""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate

import torch

from autograder import Call, Draw, exercise
from autograder.judging.orders import line_by_line


def numbered(draw: Draw, sizes: int = 3, heads: bool = False) -> list[Call]:
    """The elements 0, 1, 2, ... in order, as in the lesson; `heads`: with the last two axes glued
    together, and how many heads these are."""
    shape = draw.sizes(sizes)
    x = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    args = (x.flatten(-2), shape[-2]) if heads else (x,)
    says = f"numbered elements, shape {list(args[0].shape)}" + f", {shape[-2]} heads" * heads
    return [Call("", args, says=says)]


# --- axes ----------------------------------------------------------------------------------------
# A `squeeze` somewhere shows only where a dimension is 1.
@exercise("shape_gym.axes", numbered,
          "average_over_tokens(x[batch_size, seq_len, hidden])", "average_over_tokens(x[1, n, 1])",
          hints=(
              "The axis you name in `dim=` is the axis that disappears.",
              "The shape goes from [batch_size, seq_len, hidden] to [batch_size, hidden]. Which of "
              "the three sizes is gone, and at which place did it stand?",
              "Tokens stand at place 1 (counting from 0), which is also place -2. "
              "`x.mean(dim=...)`."))
def average_over_tokens(x, dim=1, keepdim=False):
    return x.mean(dim, keepdim=keepdim)

average_over_tokens.wrong(
    "axes.batch", "You averaged over the batch (axis 0): different sequences were mixed.", dim=0)
average_over_tokens.wrong(
    "axes.features",
    "You averaged over the features (the last axis): each token became one number.", dim=-1)
average_over_tokens.wrong(
    "axes.everything", "You averaged over everything, or over more than one axis.", dim=None)
average_over_tokens.wrong(
    "axes.everything", "You averaged over tokens and batch together.", dim=(0, 1))
average_over_tokens.wrong(
    "axes.kept", "The axis of the tokens is still there, with size 1. Leave `keepdim` out.",
    keepdim=True)
average_over_tokens.wrong(
    "axes.sum", "You summed the tokens and did not divide by how many there are.",
    lambda x: x.sum(1))
average_over_tokens.wrong(
    "axes.wrong divisor", "The sum is divided by something other than the number of tokens.",
    lambda x: x.sum(1) / x.shape[2], lambda x: x.sum(1) / x.shape[0])
average_over_tokens.wrong("axes.one token", "You took one token in place of the average of all.",
                          lambda x: x[:, 0], lambda x: x[:, -1])


# --- memory --------------------------------------------------------------------------------------
def places(draw: Draw) -> list[Call]:
    calls = []
    for dims in (2, 3, 4, 3):
        shape = draw.sizes(dims, 3)
        index = tuple(draw.integer(1, size - 1) for size in shape)
        says = f"element {list(index)} of a tensor of shape {shape}"
        calls.append(Call("", (index, tuple(shape)), says=says))
    return calls


@exercise("shape_gym.memory", places,
          hints=(
              "One step along the last axis is one step in memory. How many steps is one row?",
              "A step along an axis jumps over everything to the right of it: the product of all "
              "later sizes. That jump is the axis's stride.",
              "Go from left to right and keep one number: multiply it by the size of this axis, "
              "then add the index of this axis. Start from 0."))
def offset(index, shape, first=0):
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return first + place

offset.wrong("memory.column order",
             "You count along the first axis fastest. In PyTorch the last axis is the fast one: "
             "neighbours in a row are neighbours in memory.",
             lambda index, shape: sum(i * math.prod(shape[:a]) for a, i in enumerate(index)))
offset.wrong("memory.own size",
             "Each index is multiplied by the size of its own axis too. A step along an axis jumps "
             "over the later axes only.",
             lambda index, shape: sum(i * math.prod(shape[a:]) for a, i in enumerate(index)))
offset.wrong("memory.no strides",
             "You added the indices up. One step along an early axis is a longer jump than one "
             "step along the last.", lambda index, shape: sum(index))
offset.wrong("memory.product", "You multiplied the indices with one another.",
             lambda index, shape: math.prod(index))
offset.wrong(
    "memory.one size only",
    "Each index is multiplied by the next size only. The jump is the product of all the sizes to "
    "its right.", lambda index, shape: sum(i * (*shape[1:], 1)[a] for a, i in enumerate(index)))
offset.wrong(
    "memory.counts from 1", "You are one too high: the first element stands at 0.", first=1)
offset.wrong("memory.dot with shape",
             "Each index is multiplied by the size of its own axis. What counts are the sizes of "
             "the axes to the right of it.",
             lambda index, shape: sum(i * s for i, s in zip(index, shape, strict=True)))
offset.wrong(
    "memory.running product",
    "The jumps are built from the wrong end: multiply the sizes to the right of an axis, not "
    "those up to it.",
    lambda index, shape: sum(i * p for i, p in zip(index, accumulate(shape, int.__mul__),
                                                   strict=True)))


# --- view, transpose, contiguous -----------------------------------------------------------------
@exercise("shape_gym.view", partial(numbered, sizes=4, heads=True),
          "split_features(x[batch_size, seq_len, num_heads * head_size], num_heads)",
          hints=(
              "No element moves. Only the last axis is read as two axes.",
              "hidden = num_heads * head_size; the heads stand one after the other, so the heads' "
              "axis is the slow one and comes first.",
              "`x.view(batch_size, seq_len, num_heads, head_size)`, with the first two sizes and "
              "hidden taken from `x.shape`."))
def split_features(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))

split_features.wrong("view.sizes swapped",
                     "num_heads and head_size are swapped: the last axis should be head_size long.",
                     lambda x, n: x.unflatten(-1, (-1, n)))
split_features.wrong(
    "view.interleaved",
    "Each head takes every num_heads-th feature. It should take a block of neighbours, with "
    "nothing moved.", lambda x, n: x.unflatten(-1, (-1, n)).transpose(2, 3))
split_features.wrong("view.heads before tokens",
                     "The heads' axis stands before the tokens, made by a reshape alone: tokens "
                     "and features are mixed. Keep [batch_size, seq_len] in front.",
                     lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1))
split_features.wrong("view.moved",
                     "This is one step too far: the heads stand before the tokens. Here they stay "
                     "behind them.", lambda x, n: split_features(x, n).transpose(1, 2))
split_features.wrong("view.blocks as columns",
                     "The elements of a head run down, not along: head_size must be the last axis.",
                     lambda x, n: split_features(x, n).transpose(2, 3))
split_features.wrong(
    "view.batch lost", "The batch and the tokens were glued into one axis. Keep them apart.",
    lambda x, n: split_features(x, n).flatten(0, 1))


@exercise("shape_gym.transpose", numbered,
          "features_first(x[batch_size, seq_len, hidden])", "features_first(x[1, n, 1])",
          hints=(
              "Elements must move here: a new shape alone is not enough.",
              "`transpose(a, b)` swaps two axes. The batch stays where it is.",
              "Swap the last two: `-2` and `-1` say so whatever stands in front of them."))
def features_first(x, axes=(0, 2, 1)):
    return x.permute(axes)

features_first.wrong("transpose.reshaped",
                     "The shape is right and the elements are not: you gave the elements new shape "
                     "without moving them. Swapping axes takes `transpose`.",
                     lambda x: x.reshape(x.shape[0], x.shape[2], x.shape[1]))
features_first.wrong("transpose.all axes",
                     "All axes are reversed, which is what `.T` does: the batch has moved to the "
                     "end. Swap the last two only.", axes=(2, 1, 0))
features_first.wrong("transpose.batch and tokens",
                     "You swapped the batch with the tokens (axes 0 and 1).", axes=(1, 0, 2))
features_first.wrong(
    "transpose.batch and features",
    "The features stand in front of the batch: it must stay first.", axes=(2, 0, 1))
features_first.wrong("transpose.reversed",
                     "You turned the order of the elements round (`flip`); axes are swapped with "
                     "`transpose`.", lambda x: features_first(x.flip(-1)))
features_first.wrong("transpose.reshaped",
                     "The elements are put into a new shape without moving. Swapping axes takes "
                     "`transpose`.", lambda x: x.reshape(x.shape[2], x.shape[1], x.shape[0]))


@exercise("shape_gym.contiguous", partial(numbered, sizes=4),
          "merge_heads(x[batch_size, num_heads, seq_len, head_size])",
          hints=(
              "Two steps: first bring the axes into the right order, then glue two of them.",
              "Only axes that stand side by side can be glued. head_size must come right after "
              "num_heads, and seq_len before both.",
              "Swap axes 1 and 2, then `.reshape(batch_size, seq_len, -1)`; `.view` in its place "
              "needs `.contiguous()` first."))
def merge_heads(x):
    return x.transpose(1, 2).flatten(2)

merge_heads.wrong("merge.reshaped",
                  "The heads are merged with a reshape alone: pieces of different tokens now share "
                  "a row. Bring num_heads beside head_size first, with `transpose`.",
                  lambda x: x.reshape(x.shape[0], x.shape[2], -1))
merge_heads.wrong(
    "merge.interleaved",
    "The features of the heads take turns; the heads should stand one after the other. Look at the "
    "order of the last two axes before you glue them.", lambda x: x.permute(0, 2, 3, 1).flatten(2))
merge_heads.wrong("merge.wrong swap", "The wrong two axes were swapped before the reshape.",
                  lambda x: x.transpose(2, 3).reshape(x.shape[0], x.shape[2], -1))
merge_heads.wrong("merge.not glued",
                  "The axes are in the right order, but not glued: the result should have three "
                  "axes.", lambda x: x.transpose(1, 2))
merge_heads.wrong("merge.tokens with features",
                  "You glued the tokens to the features, not the heads.", lambda x: x.flatten(2))
merge_heads.wrong(
    "merge.summed", "The heads were added up. They should stand side by side.", lambda x: x.sum(1))
merge_heads.wrong("merge.averaged", "The heads were averaged. They should stand side by side.",
                  lambda x: x.mean(1))


# --- broadcasting, einsum ------------------------------------------------------------------------
# Where all sizes agree, factors of the wrong shape broadcast without an error.
@exercise("shape_gym.broadcasting", "scale_rows(x[n, n, n], factors[n, n])",
          "scale_rows(x[batch_size, seq_len, seq_len], factors[batch_size, seq_len])",
          hints=(
              "Broadcasting lines shapes up from the right. Write both shapes under each other.",
              "factors must end in a 1, so that each factor meets a whole row.",
              "`factors[..., None]` or `factors.unsqueeze(-1)` has shape [batch_size, seq_len, "
              "1]."))
def scale_rows(x, factors):
    return x * factors[..., None]

scale_rows.wrong("broadcasting.shapes line up wrong",
                 "Shapes line up from the right, so [batch_size, seq_len] meets the last two axes "
                 "of x: where all sizes agree, that runs, and is wrong. Give factors an axis of "
                 "size 1 at the end.", lambda x, f: x * f)
scale_rows.wrong("broadcasting.columns",
                 "You scaled the columns: each factor met the elements below one another. Factors "
                 "of rows need a 1 as their last size.", lambda x, f: x * f[:, None, :])
scale_rows.wrong(
    "broadcasting.divided", "You divided by the factors.", lambda x, f: x / f[..., None])
scale_rows.wrong("broadcasting.added", "You added the factors; they should multiply.",
                 lambda x, f: x + f[..., None])
scale_rows.wrong("broadcasting.summed",
                 "The rows were scaled and then added up, as a matrix product does. Use `*`.",
                 lambda x, f: scale_rows(x, f).sum(1))
scale_rows.wrong(
    "broadcasting.summed", "This is a matrix product: each row became one number. Use `*`.",
    lambda x, f: (x @ f[..., None]).squeeze(-1))
scale_rows.wrong(
    "broadcasting.first sequence", "The factors of the first sequence are used for all of them.",
    lambda x, f: x * f[0][:, None])


@exercise("shape_gym.einsum",
          "pair_scores(q[batch_size, num_heads, q_len, head_size],"
          " k[batch_size, num_heads, k_len, head_size])",
          hints=(
              "Name every axis with a letter, the same letter for the same axis.",
              "A letter that is missing after the arrow is summed over. Here that is the letter of "
              "head_size alone; the batch and the heads stay.",
              "With b, h, q, k, d: the inputs are bhqd and bhkd. The matrix product is "
              "`q @ k.transpose(-2, -1)`."))
def pair_scores(q, k, axes="bhqd,bhkd->bhqk", root=0.0):
    return torch.einsum(axes, q, k) / q.shape[-1] ** root

pair_scores.wrong("einsum.transposed",
                  "The result is transposed: queries should run down, keys across. Look at the "
                  "order of the letters after the arrow.", axes="bhqd,bhkd->bhkq")
pair_scores.wrong(
    "einsum.heads summed",
    "The heads are summed away: their letter is missing after the arrow.", axes="bhqd,bhkd->bqk")
pair_scores.wrong(
    "einsum.batch summed",
    "The batch is summed away: its letter is missing after the arrow.", axes="bhqd,bhkd->hqk")
pair_scores.wrong("einsum.heads crossed",
                  "Every head of q meets every head of k: the two have different letters for the "
                  "heads.", axes="bhqd,bgkd->bhqk")
pair_scores.wrong("einsum.features crossed",
                  "The features of q and k have different letters, so each is summed on its own "
                  "before they meet.", axes="bhqd,bhke->bhqk")
pair_scores.wrong(
    "einsum.features kept",
    "The features are still there: their letter stands after the arrow.", axes="bhqd,bhkd->bhqkd")
pair_scores.wrong("einsum.scaled",
                  "The scores are divided by the square root of head_size. That comes in a later "
                  "lesson; here it is the plain sum of products.", root=0.5)


# --- comments ------------------------------------------------------------------------------------
@exercise("shape_gym.comments",
          "shapes_line_by_line(batch_size, seq_len, input_size, num_heads, head_size)",
          judge=partial(
              line_by_line, what="shape",
              message="The shape of line {line} is not what that line makes. The lines before it "
                      "are right: start from the shape just above."),
          hints=(
              "Go line by line; each line needs the shape before it and one rule from this lesson.",
              "A matrix product eats the inner pair of sizes: [..., n, m] @ [..., m, p] is "
              "[..., n, p]. `max(dim=-1)` and `mean(dim=1)` each take one axis away.",
              "After line 3 the order is batch_size, num_heads, seq_len, head_size; line 4 ends in "
              "seq_len twice; line 7 ends in hidden = num_heads * head_size."))
def shapes_line_by_line(batch_size, seq_len, input_size, num_heads, head_size, line1="bsH",
                        line2="bshd", line3="bhsd", line4="bhss", line5="bhs", line6="bhsd",
                        line7="bsH", line8="bH"):
    sizes = {"b": batch_size, "s": seq_len, "i": input_size, "h": num_heads, "d": head_size,
             "H": num_heads * head_size, "1": 1}
    lines = (line1, line2, line3, line4, line5, line6, line7, line8)
    return [tuple(sizes[letter] for letter in line) for line in lines]

shapes_line_by_line.wrong(
    "comments.projection",
    "Line 1: the matrix product takes input_size away and puts hidden in its place.", line1="bsi")
shapes_line_by_line.wrong("comments.split order",
                          "Line 2: the new axes are num_heads and head_size, in the order in which "
                          "`view` names them.", line2="bsdh")
shapes_line_by_line.wrong(
    "comments.already swapped",
    "Line 2 is only the view; the axes change places in line 3.", line2="bhsd")
shapes_line_by_line.wrong(
    "comments.not swapped",
    "Line 3: `transpose(1, 2)` swaps two sizes of the shape above.", line3="bshd")
shapes_line_by_line.wrong("comments.wrong swap",
                          "Line 3: the axes counted from 0 are batch_size, seq_len, num_heads, "
                          "head_size. Which are 1 and 2?", line3="bsdh")
shapes_line_by_line.wrong(
    "comments.heads lost",
    "Line 4: a matrix product of 4-D tensors keeps the axes in front, the heads too.", line4="bss")
shapes_line_by_line.wrong(
    "comments.inner size",
    "Line 4: the inner sizes disappear in a product; two outer ones stay.", line4="bhsd")
shapes_line_by_line.wrong(
    "comments.inner size", "Line 4: the tokens stay, and the features disappear.", line4="bhdd")
shapes_line_by_line.wrong(
    "comments.axis kept", "Line 5: without `keepdim` the axis is gone, not 1.", line5="bhs1")
shapes_line_by_line.wrong(
    "comments.axis not gone", "Line 5: `max(dim=-1)` takes the last axis away.", line5="bhss")
shapes_line_by_line.wrong(
    "comments.not averaged over keys",
    "Line 6: weights @ q has a row a token and the features of q.", line6="bhss")
shapes_line_by_line.wrong(
    "comments.not merged", "Line 7: after the reshape there are three axes.", line7="bshd")
shapes_line_by_line.wrong("comments.one head's width",
                          "Line 7: heads side by side are num_heads * head_size wide.", line7="bsd")
shapes_line_by_line.wrong("comments.wrong axis averaged",
                          "Line 8: `mean(dim=1)` takes axis 1 away, counted from 0.", line8="bs")
shapes_line_by_line.wrong(
    "comments.axis kept", "Line 8: without `keepdim` the axis is gone, not 1.", line8="b1H")
