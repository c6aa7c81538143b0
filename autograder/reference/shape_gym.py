"""Answers of lesson 00, and the wrong ones that have a name."""

from __future__ import annotations

import math
from itertools import accumulate

import torch

from autograder.course.asking import Mistake


def _offset(index, shape):
    return sum(i * math.prod(shape[axis + 1 :]) for axis, i in enumerate(index))


def _split_features(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=-2)


def _merge_heads(x):
    return torch.cat(list(x.unbind(1)), dim=-1)


def _pair_scores(q, k):
    return torch.matmul(q, k.transpose(-2, -1))


def _lines(batch_size, seq_len, input_size, num_heads, head_size, **other):
    """The shapes of the eight lines; `other` replaces some of them, by number."""
    b, s, h, d = batch_size, seq_len, num_heads, head_size
    lines = [
        (b, s, h * d),
        (b, s, h, d),
        (b, h, s, d),
        (b, h, s, s),
        (b, h, s),
        (b, h, s, d),
        (b, s, h * d),
        (b, h * d),
    ]
    sizes = {"b": b, "s": s, "i": input_size, "h": h, "d": d, "H": h * d, "1": 1}
    for line, letters in other.items():
        lines[int(line[1:]) - 1] = tuple(sizes[letter] for letter in letters)
    return lines


def _wrong_lines(**other):
    return lambda *sizes: _lines(*sizes, **other)


SOLVE = {
    "shape_gym.axes": {"average_over_tokens": lambda x: x.sum(1) / x.shape[1]},
    "shape_gym.memory": {"offset": _offset},
    "shape_gym.view": {"split_features": _split_features},
    "shape_gym.transpose": {"features_first": lambda x: torch.einsum("bsh->bhs", x)},
    "shape_gym.contiguous": {"merge_heads": _merge_heads},
    "shape_gym.broadcasting": {"scale_rows": lambda x, f: torch.einsum("bij,bi->bij", x, f)},
    "shape_gym.einsum": {"pair_scores": _pair_scores},
    "shape_gym.comments": {"shapes_line_by_line": _lines},
}


def _of(name: str, *mistakes) -> list[Mistake]:
    return [Mistake(check, message, {name: wrong}) for check, message, wrong in mistakes]


def _swap_after_reshape(x):
    batch_size, num_heads, seq_len, head_size = x.shape
    return x.transpose(2, 3).reshape(batch_size, seq_len, num_heads * head_size)


_AXES = _of(
    "average_over_tokens",
    (
        "axes.batch",
        "You averaged over the batch (axis 0): different sequences were mixed.",
        lambda x: x.mean(0),
    ),
    (
        "axes.features",
        "You averaged over the features (the last axis): each token became one number.",
        lambda x: x.mean(-1),
    ),
    (
        "axes.everything",
        "You averaged over everything, or over more than one axis.",
        lambda x: x.mean(),
    ),
    ("axes.everything", "You averaged over tokens and batch together.", lambda x: x.mean((0, 1))),
    (
        "axes.kept",
        "The axis of the tokens is still there, with size 1. Leave `keepdim` out.",
        lambda x: x.mean(1, keepdim=True),
    ),
    (
        "axes.sum",
        "You summed the tokens and did not divide by how many there are.",
        lambda x: x.sum(1),
    ),
    (
        "axes.wrong divisor",
        "The sum is divided by something other than the number of tokens.",
        lambda x: x.sum(1) / x.shape[2],
    ),
    (
        "axes.wrong divisor",
        "The sum is divided by something other than the number of tokens.",
        lambda x: x.sum(1) / x.shape[0],
    ),
    ("axes.one token", "You took one token in place of the average of all.", lambda x: x[:, 0]),
    ("axes.one token", "You took one token in place of the average of all.", lambda x: x[:, -1]),
)

_MEMORY = _of(
    "offset",
    (
        "memory.column order",
        "You count along the first axis fastest. In PyTorch the last axis is "
        "the fast one: neighbours in a row are neighbours in memory.",
        lambda index, shape: sum(i * math.prod(shape[:a]) for a, i in enumerate(index)),
    ),
    (
        "memory.own size",
        "Each index is multiplied by the size of its own axis too. A step along "
        "an axis jumps over the later axes only.",
        lambda index, shape: sum(i * math.prod(shape[a:]) for a, i in enumerate(index)),
    ),
    (
        "memory.no strides",
        "You added the indices up. One step along an early axis is a longer "
        "jump than one step along the last.",
        lambda index, shape: sum(index),
    ),
    (
        "memory.product",
        "You multiplied the indices with one another.",
        lambda index, shape: math.prod(index),
    ),
    (
        "memory.one size only",
        "Each index is multiplied by the next size only. The jump is the "
        "product of all the sizes to its right.",
        lambda index, shape: sum(i * (*shape[1:], 1)[a] for a, i in enumerate(index)),
    ),
    (
        "memory.counts from 1",
        "You are one too high: the first element stands at 0.",
        lambda index, shape: _offset(index, shape) + 1,
    ),
    (
        "memory.dot with shape",
        "Each index is multiplied by the size of its own axis. What counts "
        "are the sizes of the axes to the right of it.",
        lambda index, shape: sum(i * s for i, s in zip(index, shape, strict=True)),
    ),
    (
        "memory.running product",
        "The jumps are built from the wrong end: multiply the sizes to "
        "the right of an axis, not those up to it.",
        lambda index, shape: sum(
            i * p for i, p in zip(index, accumulate(shape, int.__mul__), strict=True)
        ),
    ),
)

_VIEW = _of(
    "split_features",
    (
        "view.sizes swapped",
        "num_heads and head_size are swapped: the last axis should be head_size long.",
        lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n),
    ),
    (
        "view.interleaved",
        "Each head takes every num_heads-th feature. It should take a block of "
        "neighbours, with nothing moved.",
        lambda x, n: x.reshape(*x.shape[:2], x.shape[2] // n, n).transpose(2, 3),
    ),
    (
        "view.heads before tokens",
        "The heads' axis stands before the tokens, made by a reshape "
        "alone: tokens and features are mixed. Keep [batch_size, seq_len] in front.",
        lambda x, n: x.reshape(x.shape[0], n, x.shape[1], x.shape[2] // n),
    ),
    (
        "view.moved",
        "This is one step too far: the heads stand before the tokens. Here they stay behind them.",
        lambda x, n: x.reshape(*x.shape[:2], n, -1).transpose(1, 2),
    ),
    (
        "view.blocks as columns",
        "The elements of a head run down, not along: head_size must be the last axis.",
        lambda x, n: x.reshape(*x.shape[:2], n, -1).transpose(2, 3),
    ),
    (
        "view.batch lost",
        "The batch and the tokens were glued into one axis. Keep them apart.",
        lambda x, n: x.reshape(-1, n, x.shape[2] // n),
    ),
)

_TRANSPOSE = _of(
    "features_first",
    (
        "transpose.reshaped",
        "The shape is right and the elements are not: you gave the elements "
        "new shape without moving them. Swapping axes takes `transpose`.",
        lambda x: x.reshape(x.shape[0], x.shape[2], x.shape[1]),
    ),
    (
        "transpose.all axes",
        "All axes are reversed, which is what `.T` does: the batch has moved "
        "to the end. Swap the last two only.",
        lambda x: x.permute(2, 1, 0),
    ),
    (
        "transpose.batch and tokens",
        "You swapped the batch with the tokens (axes 0 and 1).",
        lambda x: x.transpose(0, 1),
    ),
    (
        "transpose.batch and features",
        "The features stand in front of the batch: it must stay first.",
        lambda x: x.permute(2, 0, 1),
    ),
    (
        "transpose.reversed",
        "You turned the order of the elements round (`flip`); axes are swapped with `transpose`.",
        lambda x: x.flip(-1).transpose(1, 2),
    ),
    (
        "transpose.reshaped",
        "The elements are put into a new shape without moving. Swapping axes takes `transpose`.",
        lambda x: x.reshape(x.shape[2], x.shape[1], x.shape[0]),
    ),
)

_CONTIGUOUS = _of(
    "merge_heads",
    (
        "merge.reshaped",
        "The heads are merged with a reshape alone: pieces of different tokens "
        "now share a row. Bring num_heads beside head_size first, with `transpose`.",
        lambda x: x.reshape(x.shape[0], x.shape[2], -1),
    ),
    (
        "merge.interleaved",
        "The features of the heads take turns; the heads should stand one "
        "after the other. Look at the order of the last two axes before you glue them.",
        lambda x: x.permute(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),
    ),
    (
        "merge.wrong swap",
        "The wrong two axes were swapped before the reshape.",
        _swap_after_reshape,
    ),
    (
        "merge.not glued",
        "The axes are in the right order, but not glued: the result should have three axes.",
        lambda x: x.transpose(1, 2),
    ),
    (
        "merge.tokens with features",
        "You glued the tokens to the features, not the heads.",
        lambda x: x.reshape(x.shape[0], x.shape[1], -1),
    ),
    (
        "merge.summed",
        "The heads were added up. They should stand side by side.",
        lambda x: x.sum(1),
    ),
    (
        "merge.averaged",
        "The heads were averaged. They should stand side by side.",
        lambda x: x.mean(1),
    ),
)

_BROADCASTING = _of(
    "scale_rows",
    (
        "broadcasting.shapes line up wrong",
        "Shapes line up from the right, so "
        "[batch_size, seq_len] meets the last two axes of x: where all sizes agree, that runs, and "
        "is wrong. Give factors an axis of size 1 at the end.",
        lambda x, f: x * f,
    ),
    (
        "broadcasting.columns",
        "You scaled the columns: each factor met the elements below one "
        "another. Factors of rows need a 1 as their last size.",
        lambda x, f: x * f[:, None, :],
    ),
    ("broadcasting.divided", "You divided by the factors.", lambda x, f: x / f[..., None]),
    (
        "broadcasting.added",
        "You added the factors; they should multiply.",
        lambda x, f: x + f[..., None],
    ),
    (
        "broadcasting.summed",
        "The rows were scaled and then added up, as a matrix product does. Use `*`.",
        lambda x, f: torch.einsum("bij,bi->bj", x, f),
    ),
    (
        "broadcasting.summed",
        "This is a matrix product: each row became one number. Use `*`.",
        lambda x, f: (x @ f[..., None]).squeeze(-1),
    ),
    (
        "broadcasting.first sequence",
        "The factors of the first sequence are used for all of them.",
        lambda x, f: x * f[0][:, None],
    ),
)

_EINSUM = _of(
    "pair_scores",
    (
        "einsum.transposed",
        "The result is transposed: queries should run down, keys across. Look "
        "at the order of the letters after the arrow.",
        lambda q, k: torch.einsum("bhqd,bhkd->bhkq", q, k),
    ),
    (
        "einsum.heads summed",
        "The heads are summed away: their letter is missing after the arrow.",
        lambda q, k: torch.einsum("bhqd,bhkd->bqk", q, k),
    ),
    (
        "einsum.batch summed",
        "The batch is summed away: its letter is missing after the arrow.",
        lambda q, k: torch.einsum("bhqd,bhkd->hqk", q, k),
    ),
    (
        "einsum.heads crossed",
        "Every head of q meets every head of k: the two have different letters for the heads.",
        lambda q, k: torch.einsum("bhqd,bgkd->bhqk", q, k),
    ),
    (
        "einsum.features crossed",
        "The features of q and k have different letters, so each is "
        "summed on its own before they meet.",
        lambda q, k: torch.einsum("bhqd,bhke->bhqk", q, k),
    ),
    (
        "einsum.features kept",
        "The features are still there: their letter stands after the arrow.",
        lambda q, k: torch.einsum("bhqd,bhkd->bhqkd", q, k),
    ),
    (
        "einsum.scaled",
        "The scores are divided by the square root of head_size. That comes in a "
        "later lesson; here it is the plain sum of products.",
        lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5,
    ),
)

_COMMENTS = _of(
    "shapes_line_by_line",
    (
        "comments.projection",
        "Line 1: the matrix product takes input_size away and puts hidden in its place.",
        _wrong_lines(_1="bsi"),
    ),
    (
        "comments.split order",
        "Line 2: the new axes are num_heads and head_size, in the order in "
        "which `view` names them.",
        _wrong_lines(_2="bsdh"),
    ),
    (
        "comments.already swapped",
        "Line 2 is only the view; the axes change places in line 3.",
        _wrong_lines(_2="bhsd"),
    ),
    (
        "comments.not swapped",
        "Line 3: `transpose(1, 2)` swaps two sizes of the shape above.",
        _wrong_lines(_3="bshd"),
    ),
    (
        "comments.wrong swap",
        "Line 3: the axes counted from 0 are batch_size, seq_len, num_heads, "
        "head_size. Which are 1 and 2?",
        _wrong_lines(_3="bsdh"),
    ),
    (
        "comments.heads lost",
        "Line 4: a matrix product of 4-D tensors keeps the axes in front, the heads too.",
        _wrong_lines(_4="bss"),
    ),
    (
        "comments.inner size",
        "Line 4: the inner sizes disappear in a product; two outer ones stay.",
        _wrong_lines(_4="bhsd"),
    ),
    (
        "comments.inner size",
        "Line 4: the tokens stay, and the features disappear.",
        _wrong_lines(_4="bhdd"),
    ),
    (
        "comments.axis kept",
        "Line 5: without `keepdim` the axis is gone, not 1.",
        _wrong_lines(_5="bhs1"),
    ),
    (
        "comments.axis not gone",
        "Line 5: `max(dim=-1)` takes the last axis away.",
        _wrong_lines(_5="bhss"),
    ),
    (
        "comments.not averaged over keys",
        "Line 6: weights @ q has a row a token and the features of q.",
        _wrong_lines(_6="bhss"),
    ),
    (
        "comments.not merged",
        "Line 7: after the reshape there are three axes.",
        _wrong_lines(_7="bshd"),
    ),
    (
        "comments.one head's width",
        "Line 7: heads side by side are num_heads * head_size wide.",
        _wrong_lines(_7="bsd"),
    ),
    (
        "comments.wrong axis averaged",
        "Line 8: `mean(dim=1)` takes axis 1 away, counted from 0.",
        _wrong_lines(_8="bs"),
    ),
    (
        "comments.axis kept",
        "Line 8: without `keepdim` the axis is gone, not 1.",
        _wrong_lines(_8="b1H"),
    ),
)

MISTAKES = {
    "shape_gym.axes": _AXES,
    "shape_gym.memory": _MEMORY,
    "shape_gym.view": _VIEW,
    "shape_gym.transpose": _TRANSPOSE,
    "shape_gym.contiguous": _CONTIGUOUS,
    "shape_gym.broadcasting": _BROADCASTING,
    "shape_gym.einsum": _EINSUM,
    "shape_gym.comments": _COMMENTS,
}
