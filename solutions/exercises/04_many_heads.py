"""Lesson 04, many heads: stacked, cut out of one product, merged, mixed and counted."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from autograder import Call, exercise
from autograder.judging.layers import judge_layers

from .judges.many_heads import judge_size

SIZES = {"num_heads": (3, 5, 7), "head_size": (4, 6, 8), "hidden": "num_heads * head_size"}
SPLIT = "[batch_size, num_heads, seq_len, head_size]"


# --- heads in a row ------------------------------------------------------------------------------
def hide_future(scores, first=1, value=-torch.inf):
    """Later tokens, from the one `first` places on, are hidden: their scores become `value`."""
    return scores.masked_fill(torch.ones_like(scores).triu(first).bool(), value)


class CausalHead(nn.Module):
    """One causal head without biases, as the lesson gives it."""

    def __init__(self, input_size, head_size):
        super().__init__()
        self.q = nn.Linear(input_size, head_size, bias=False)
        self.k = nn.Linear(input_size, head_size, bias=False)
        self.v = nn.Linear(input_size, head_size, bias=False)

    def forward(self, x):
        queries, keys, values = self.q(x), self.k(x), self.v(x)
        scaled_scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        masked_scores = hide_future(scaled_scores)
        weights = masked_scores.softmax(-1)
        return weights @ values


@exercise(
    "heads.stack",
    "HeadStack(input_size, head_size, num_heads)(x[batch_size, seq_len, input_size])",
    sizes={**SIZES, "input_size": (9, 10)},
    times=2,
    judge=partial(
        judge_layers,
        prefix="stack",
        names={"missing layer": "missing heads", "wrong width": "missing heads"},
        says={
            "missing layer": "`{layer}` is not there: `self.heads` holds one `CausalHead` of the "
            "given sizes for each of num_heads.",
            "wrong width": "`{name}` has shape {got}, expected {expected}: `self.heads` holds one "
            "`CausalHead` of the given sizes for each of num_heads.",
            "plain list": "PyTorch finds no parameters in `{top}`. Heads in a plain Python list "
            "are invisible to it: use `nn.ModuleList`.",
        },
    ),
    hints=(
        "A list of modules that PyTorch can see has a class of its own: `nn.ModuleList`.",
        "Build num_heads separate heads: `CausalHead(input_size, head_size)`, once for each of "
        "`range(num_heads)`. One head repeated would be one set of weights.",
        "In forward, call every head on the same x and put the outputs side by side: "
        "`torch.cat` along the last dimension."))
class HeadStack(nn.Module):
    repeated = False

    def __init__(self, input_size, head_size, num_heads):
        super().__init__()
        heads = [CausalHead(input_size, head_size) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads[:1] * num_heads if self.repeated else heads)

    def join(self, outputs):
        return torch.cat(outputs, -1)

    def forward(self, x):
        return self.join([head(x) for head in self.heads])


HeadStack.wrong("stack.one head repeated", "All heads are one and the same module, with one set of "
    "weights. Build a new one for each head.", repeated=True)
HeadStack.wrong("stack.summed", "The heads' outputs are added up; they should stand side by side.",
    join=lambda self, o: sum(o))
HeadStack.wrong("stack.averaged", "The heads' outputs are averaged; they should stand side by "
    "side.", join=lambda self, o: sum(o) / len(o))
HeadStack.wrong("stack.along the tokens", "The outputs are joined along the tokens. Join them "
    "along the features: dim=-1.", join=lambda self, o: torch.cat(o, 1))
HeadStack.wrong("stack.along the batch", "The outputs are joined along the batch. Join them along "
    "the features: dim=-1.", join=lambda self, o: torch.cat(o, 0))
for dim in (1, 0, -1):
    HeadStack.wrong("stack.new dimension", "`stack` makes a new dimension for the heads. `cat` "
        "puts their features side by side.", join=lambda self, o, dim=dim: torch.stack(o, dim))
HeadStack.wrong("stack.interleaved", "The heads' features are interleaved. All features of a head "
    "should stand together.", join=lambda self, o: torch.stack(o, -1).flatten(-2))
HeadStack.wrong("stack.reversed", "The heads stand in reverse order.",
    join=lambda self, o: torch.cat(o[::-1], -1))
HeadStack.wrong("stack.only one head", "What is returned is the output of the first head alone.",
    join=lambda self, o: o[0])
HeadStack.wrong("stack.only one head", "What is returned is the output of the last head alone. Is "
    "the return inside the loop, or a list overwritten?", join=lambda self, o: o[-1])


# --- sizes ---------------------------------------------------------------------------------------
@exercise(
    "heads.size",
    "head_size_of(hidden, num_heads) where hidden = num_heads * size",
    "head_size_of(hidden, num_heads) where hidden = num_heads * size + rest",
    sizes={"num_heads": range(3, 13), "size": range(13, 41), "rest": (1, 2)},
    judge=judge_size,
    hints=(
        "`hidden % num_heads` is what is left over after dividing.",
        "Raise a ValueError if something is left over, and say both numbers in its text.",
        "`if hidden % num_heads: raise ValueError(...)`, then return `hidden // num_heads`."))
def head_size_of(hidden, num_heads, error=ValueError):
    if hidden % num_heads:
        raise error(f"hidden={hidden} is not divisible by num_heads={num_heads}")
    return hidden // num_heads


def size_or_none(hidden, num_heads):
    return None if hidden % num_heads else hidden // num_heads


def size_inverted(hidden, num_heads):
    if hidden % num_heads == 0:
        raise ValueError
    return hidden // num_heads


head_size_of.wrong("size.not checked", "A hidden size that num_heads does not divide gets through, "
    "and the rest is dropped silently. Raise a ValueError.",
    lambda hidden, num_heads: hidden // num_heads)
head_size_of.wrong("size.not checked", "A hidden size that num_heads does not divide gets through. "
    "Raise a ValueError.", lambda hidden, num_heads: hidden / num_heads)
head_size_of.wrong("size.assert", "An `assert` is for what can never happen, and vanishes under "
    "`python -O`. A wrong argument deserves a ValueError.", error=AssertionError)
head_size_of.wrong("size.returned", "For sizes that do not fit, None is returned instead of "
    "raising a ValueError.", size_or_none)
head_size_of.wrong("size.condition inverted", "The error is raised where the sizes fit. `%` gives "
    "what is left over: 0 where they do.", size_inverted)
head_size_of.wrong("size.swapped", "hidden and num_heads have changed places.",
    lambda hidden, num_heads: head_size_of(num_heads, hidden))
head_size_of.wrong("size.remainder", "What is returned is what is left over (`%`), not the size "
    "(`//`).", lambda hidden, num_heads: hidden % num_heads)


# --- split, score, merge -------------------------------------------------------------------------
@exercise(
    "heads.split",
    "split_heads(t[batch_size, seq_len, num_heads * head_size], num_heads)",
    "split_heads(t[1, seq_len, head_size], 1)",  # a `squeeze` shows only where a dimension is 1
    sizes=SIZES,
    hints=(
        "Two steps: cut the last dimension in two, then move the heads beside the batch.",
        "`view(batch_size, seq_len, num_heads, head_size)` cuts: a feature stays with its "
        "token. Which two dimensions have to change places now?",
        "After the view, `transpose(1, 2)`. Viewing as [batch_size, num_heads, ...] at once "
        "has the right shape and the wrong numbers."))
def split_heads(t, num_heads):
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def split_scrambled(t, num_heads):
    batch_size, seq_len, _ = t.shape
    return t.reshape(batch_size, num_heads, seq_len, -1)


split_heads.wrong("split.scrambled", "A reshape alone mixes tokens with features: a head gets "
    "numbers of other tokens. Cut the last dimension first, then transpose.", split_scrambled)
split_heads.wrong("split.interleaved", "Each head gets every num_heads-th feature; it should get "
    "head_size features in a row. The heads come before head_size.",
    lambda t, h: t.unflatten(-1, (-1, h)).permute(0, 3, 1, 2))
split_heads.wrong("split.scrambled", "Tokens and features changed places before the heads were "
    "cut.", lambda t, h: t.mT.reshape(len(t), h, t.shape[1], -1))
split_heads.wrong("split.not transposed", "The heads are cut and still stand behind the tokens. "
    "Move them beside the batch.", lambda t, h: t.unflatten(-1, (h, -1)))
split_heads.wrong("split.features before tokens", "Tokens and features of each head have changed "
    "places.", lambda t, h: split_heads(t, h).mT)
split_heads.wrong("split.head-major", "The heads stand before the batch; they belong behind it.",
    lambda t, h: split_heads(t, h).transpose(0, 1))
split_heads.wrong("split.3-D", "Batch and heads are joined in one dimension. Here they stay apart.",
    lambda t, h: split_heads(t, h).flatten(0, 1))
split_heads.wrong("split.hard-coded heads", "There are 2 heads whatever num_heads says.",
    lambda t, h: split_heads(t, 2))
split_heads.wrong("split.sizes swapped", "num_heads and head_size have changed places.",
    lambda t, h: t.unflatten(-1, (-1, h)).transpose(1, 2))


@exercise(
    "heads.scores",
    f"head_scores(q{SPLIT}, k{SPLIT})",
    sizes=SIZES,
    hints=(
        "`@` multiplies the last two dimensions and takes all earlier ones along.",
        "Keys have to be [..., head_size, seq_len]. `.T` is for matrices only; "
        "`transpose(-2, -1)` swaps the last two dimensions of anything.",
        "Divide by the square root of the size that is summed over: the last one of q."))
def head_scores(q, k, root=0.5, size=lambda q: q.shape[-1]):
    scores = q @ k.transpose(-2, -1)
    return scores / size(q) ** root


def size_of_all_heads(q):
    return q.shape[1] * q.shape[-1]


head_scores.wrong("scale.missing", "The scores are not scaled.", root=0)
head_scores.wrong("scale.hidden", "The scores are scaled by the square root of hidden, all heads "
    "together. Each score is a sum of head_size products.", size=size_of_all_heads)
head_scores.wrong("scale.not a root", "The scores are divided by head_size itself, not its square "
    "root.", root=1)
head_scores.wrong("scale.multiplied", "The scores are multiplied by the square root instead of "
    "divided.", root=-0.5)
head_scores.wrong("scale.num_heads", "The scores are scaled by the square root of num_heads.",
    size=lambda q: q.shape[1])
head_scores.wrong("scale.seq_len", "The scores are scaled by the square root of seq_len.",
    size=lambda q: q.shape[2])
head_scores.wrong("scores.transposed", "Queries and keys are swapped: row i should belong to query "
    "i.", lambda q, k: head_scores(k, q))
head_scores.wrong("scores.no keys", "The queries are compared with themselves, not with the keys.",
    lambda q, k: head_scores(q, q))
head_scores.wrong("scores.heads summed", "The scores of all heads are added up. Every head keeps "
    "its own.", lambda q, k: head_scores(q, k).sum(1))
head_scores.wrong("scores.over the tokens", "The products are summed over the tokens: what comes "
    "out compares features. Transpose the keys, not the queries.",
    lambda q, k: q.mT @ k / q.shape[-1] ** 0.5)
head_scores.wrong("scores.softmax", "These are probabilities already. Scores come before the "
    "softmax.", lambda q, k: head_scores(q, k).softmax(-1))


@exercise(
    "heads.merge",
    f"merge_heads(t{SPLIT})",
    sizes=SIZES,
    hints=(
        "Undo the split in reverse order: first move the heads back, then join them.",
        "`transpose(1, 2)` gives [batch_size, seq_len, num_heads, head_size]; the last two "
        "dimensions become one.",
        "`view` refuses a transposed tensor: call `.contiguous()` before it, or use `reshape`."))
def merge_heads(t):
    return t.transpose(1, 2).flatten(-2)


def merge_scrambled(t):
    return t.reshape(len(t), t.shape[2], -1)


merge_heads.wrong("merge.scrambled", "A reshape alone writes one head after the other into the "
    "tokens' places. Move the heads back beside head_size first.", merge_scrambled)
merge_heads.wrong("merge.interleaved", "The heads' features are interleaved. All features of a "
    "head should stand together.", lambda t: t.permute(0, 2, 3, 1).flatten(-2))
merge_heads.wrong("merge.scrambled", "Tokens and features of each head changed places before the "
    "merge.", lambda t: merge_scrambled(t.mT.reshape(t.shape)))
merge_heads.wrong("merge.scrambled", "Batch and heads changed places before the merge; heads and "
    "tokens should.", lambda t: t.transpose(0, 1).reshape(len(t), t.shape[2], -1))
merge_heads.wrong("merge.features before tokens", "The result is [batch_size, hidden, seq_len]: "
    "tokens and features have changed places.", lambda t: merge_heads(t).mT)
merge_heads.wrong("merge.averaged", "The heads are averaged; they should stand side by side.",
    lambda t: t.mean(1))
merge_heads.wrong("merge.summed", "The heads are added up; they should stand side by side.",
    lambda t: t.sum(1))
merge_heads.wrong("merge.not joined", "The heads are back behind the tokens but still a dimension "
    "of their own. Join the last two.", lambda t: t.transpose(1, 2))
merge_heads.wrong("merge.along the tokens", "The heads are joined along the tokens, not along the "
    "features.", lambda t: t.flatten(1, 2))


# --- attention of all heads ----------------------------------------------------------------------
def _a_query_of_zeros(draw):
    """Scores that happen to be 0 and are in sight: a mask made from the scores hides them."""
    (batch_size, seq_len), num_heads = draw.sizes(2), draw.choice((3, 5, 7))
    q, k, v = (draw.normal(batch_size, seq_len, 4 * num_heads) for _ in "qkv")
    q[:, 1] = 0
    return [Call("", (q, k, v, num_heads), says=f"num_heads {num_heads}, one query all zeros")]


@exercise(
    "heads.attend",
    "attend(q[batch_size, seq_len, hidden], k[batch_size, seq_len, hidden], "
    "v[batch_size, seq_len, hidden], num_heads)",
    _a_query_of_zeros,
    sizes=SIZES,
    hints=(
        "You have all the parts: split three times, score, mask, softmax, average, merge.",
        "The mask is the same for all heads: [seq_len, seq_len] broadcasts over "
        "[batch_size, num_heads, seq_len, seq_len].",
        "Return the merged average, and the probabilities with batch and heads joined: "
        "`flatten(0, 1)` makes [batch_size * num_heads, seq_len, seq_len]."))
def attend(q, k, v, num_heads, *, split=split_heads, score=head_scores, hide=hide_future,
           normalise=lambda scores: scores.softmax(-1), merge=merge_heads,
           give=lambda att, probs, scores: (att, probs.flatten(0, 1))):
    queries, keys, values = (split(t, num_heads) for t in (q, k, v))
    scaled_scores = score(queries, keys)
    masked_scores = hide(scaled_scores)
    weights = normalise(masked_scores)
    context = weights @ values
    merged_heads = merge(context)
    return give(merged_heads, weights, masked_scores)


nothing = lambda t: t
attend.wrong("mask.from the scores", "The mask is made from the scores: a score that happens to be "
    "0 is hidden too. Make it from positions.",
    hide=lambda s: s.masked_fill(s.tril() == 0, -torch.inf))
attend.wrong("scale.missing", "The scores are not scaled.", score=partial(head_scores, root=0))
attend.wrong("scale.hidden", "The scores are scaled by the square root of hidden; each head has "
    "head_size = hidden / num_heads of it.", score=partial(head_scores, size=size_of_all_heads))
attend.wrong("scale.twice", "The scores are divided by head_size, which is the square root twice. "
    "What `head_scores` gives is scaled already.", score=partial(head_scores, root=1))
attend.wrong("softmax.dim", "The softmax runs over the queries. Let it run over the keys.",
    normalise=lambda s: s.softmax(-2))
attend.wrong("softmax.dim", "The softmax runs over the heads. Let it run over the keys.",
    normalise=lambda s: s.softmax(1))
attend.wrong("softmax.twice", "The softmax is applied twice.",
    normalise=lambda s: s.softmax(-1).softmax(-1))
attend.wrong("softmax.missing", "There is no softmax: the values are averaged with raw scores.",
    normalise=nothing, hide=nothing)
attend.wrong("mask.none", "Nothing is hidden: every token sees the future.", hide=nothing)
attend.wrong("mask.diagonal hidden", "The mask hides the current token too; its first row has "
    "nothing left.", hide=partial(hide_future, first=0))
attend.wrong("mask.one step late", "The mask starts one place too late: each token sees the next "
    "one.", hide=partial(hide_future, first=2))
for last in (0, -1):
    attend.wrong("mask.inverted", "The mask is the wrong way round: the past is hidden.",
        hide=lambda s, last=last: s.masked_fill(torch.ones_like(s).tril(last).bool(), -torch.inf))
attend.wrong("mask.after softmax", "The mask comes after the softmax: rows no longer sum to 1.",
    hide=nothing, normalise=lambda s: s.softmax(-1).tril())
attend.wrong("mask.filled with 0", "Hidden scores are set to 0 or next to it, and exp of that "
    "is 1. Use minus infinity.", hide=partial(hide_future, value=0.0))
attend.wrong("mask.NaN", "The mask gives NaN: 0 times infinity is not a number. Use masked_fill.",
    hide=lambda s: s + torch.ones_like(s).triu(1) * -torch.inf)
attend.wrong("split and merge.scrambled", "Heads are split and merged with a reshape alone, which "
    "mixes tokens with features.", split=split_scrambled, merge=merge_scrambled)
attend.wrong("split.scrambled", "The heads are split with a reshape alone.", split=split_scrambled)
attend.wrong("merge.scrambled", "The heads are merged with a reshape alone.", merge=merge_scrambled)
attend.wrong("merge.summed", "The heads are added up; they should stand side by side.",
    merge=lambda t: t.sum(1))
attend.wrong("merge.averaged", "The heads are averaged; they should stand side by side.",
    merge=lambda t: t.mean(1))
attend.wrong("merge.missing", "The heads are not merged: the output is still 4-D.", merge=nothing)
attend.wrong("probabilities.4-D", "The probabilities are 4-D; join batch and heads.",
    give=lambda att, probs, scores: (att, probs))
attend.wrong("probabilities.head-major", "The probabilities are in head-major order; head h of "
    "item b should stand at b * num_heads + h.",
    give=lambda att, probs, scores: (att, probs.transpose(0, 1).flatten(0, 1)))
attend.wrong("probabilities.missing", "The probabilities are not returned.",
    give=lambda att, probs, scores: att)
attend.wrong("probabilities.are scores", "What is returned as probabilities are the scores.",
    give=lambda att, probs, scores: (att, scores.flatten(0, 1)))
attend.wrong("output.order", "Output and probabilities are returned in the wrong order.",
    give=lambda att, probs, scores: (probs.flatten(0, 1), att))


# --- weights -------------------------------------------------------------------------------------
def _heads_of_a_layer(draw):
    num_heads, head_size, input_size = draw.sizes(3, 2, 11)
    weights = [draw.normal(head_size, input_size) for _ in range(num_heads)]
    biases = [draw.normal(head_size) for _ in range(num_heads)]
    says = f"num_heads {num_heads}, head_size {head_size}, input_size {input_size}"
    return Call("", (weights, biases), says=says)


@exercise(
    "heads.transfer",
    _heads_of_a_layer,
    hints=(
        "An nn.Linear stores its weight as [outputs, inputs]: each output is a row.",
        "Head 0 owns the first head_size outputs, head 1 the next. So whose rows come first?",
        "`torch.cat(weights, dim=0)` for the weights, and the same for the biases."))
def fuse_heads(weights, biases, weight=torch.cat, bias=torch.cat):
    return weight(weights), bias(biases)


fuse_heads.wrong("fuse.side by side", "The matrices stand side by side. Each output of a Linear is "
    "a row of its weight: put them one below the other.", weight=lambda w: torch.cat(w, 1))
fuse_heads.wrong("fuse.interleaved", "The rows of the heads are interleaved. All rows of a head "
    "should stand together.", weight=lambda w: torch.stack(w, 1).flatten(0, 1),
    bias=lambda b: torch.stack(b, 1).flatten())
fuse_heads.wrong("fuse.interleaved", "The rows of the heads are interleaved in the weight, and not "
    "in the bias.", weight=lambda w: torch.stack(w, 1).flatten(0, 1))
fuse_heads.wrong("fuse.reversed", "The heads are in reverse order.",
    weight=lambda w: torch.cat(w[::-1]), bias=lambda b: torch.cat(b[::-1]))
fuse_heads.wrong("fuse.lost bias", "The biases are lost.",
    bias=lambda b: torch.zeros_like(torch.cat(b)))
fuse_heads.wrong("fuse.new dimension", "`stack` makes a new dimension for the heads; an nn.Linear "
    "needs a matrix.", weight=torch.stack, bias=torch.stack)
fuse_heads.wrong("fuse.transposed", "The weight is transposed: an nn.Linear stores [outputs, "
    "inputs].", weight=lambda w: torch.cat(w).T)
fuse_heads.wrong("fuse.summed", "The heads' weights are added up; each head keeps its own.",
    weight=sum, bias=sum)
fuse_heads.wrong("fuse.averaged", "The heads' weights are averaged; each head keeps its own.",
    weight=lambda w: sum(w) / len(w), bias=lambda b: sum(b) / len(b))
fuse_heads.wrong("fuse.first head only", "All heads get the weights of the first.",
    weight=lambda w: torch.cat(w[:1] * len(w)), bias=lambda b: torch.cat(b[:1] * len(b)))
fuse_heads.wrong("fuse.order", "The bias is returned before the weight.",
    lambda weights, biases: fuse_heads(weights, biases)[::-1])


@exercise(
    "heads.output",
    f"head_contributions(heads{SPLIT}, weight[hidden, hidden])",
    sizes=SIZES,
    hints=(
        "The merged vector is [head 0 | head 1 | ...]. Multiplying it by W_O^T is a sum over "
        "its features; cut that sum at the borders of the heads.",
        "The weight is [outputs, inputs]. Head h is an *input* of it: it owns the columns "
        "h * head_size to (h + 1) * head_size.",
        "For each head: `heads[:, h] @ weight[:, h * d:(h + 1) * d].T`; stack the results "
        "along dimension 1. (One einsum does it too.)"))
def head_contributions(heads, weight):
    blocks = weight.unflatten(1, (heads.shape[1], -1))  # [outputs, num_heads, head_size]
    return torch.einsum("bhsd,ohd->bhso", heads, blocks)


head_contributions.wrong("output.rows for columns", "The rows of the weight are shared out. Rows "
    "are outputs; a head is an input of this layer, so it owns columns.",
    lambda t, w: head_contributions(t, w.T))
head_contributions.wrong("output.interleaved", "Each head gets every num_heads-th column; it owns "
    "head_size columns in a row.",
    lambda t, w: torch.einsum("bhsd,odh->bhso", t, w.unflatten(1, (-1, t.shape[1]))))
head_contributions.wrong("output.summed", "What is returned is the sum over the heads. Here every "
    "head's share is asked for.", lambda t, w: merge_heads(t) @ w.T)
head_contributions.wrong("output.summed and transposed", "What is returned is the sum over the "
    "heads, and the weight is transposed.", lambda t, w: merge_heads(t) @ w)
head_contributions.wrong("output.same block", "All heads use the first block of columns.",
    lambda t, w: t @ w[:, : t.shape[-1]].T)
head_contributions.wrong("output.averaged", "The shares are divided by the number of heads; they "
    "should sum to the output.", lambda t, w: head_contributions(t, w) / t.shape[1])
head_contributions.wrong("output.heads behind tokens", "The heads stand behind the tokens; the "
    "result is asked as [batch_size, num_heads, seq_len, hidden].",
    lambda t, w: head_contributions(t, w).transpose(1, 2))
head_contributions.wrong("output.head-major", "The heads stand before the batch.",
    lambda t, w: head_contributions(t, w).transpose(0, 1))


# --- counting ------------------------------------------------------------------------------------
@exercise(
    "heads.count",
    "attention_parameters(input_size, hidden, num_heads, qkv_bias=False)",
    "attention_parameters(input_size, hidden, num_heads, qkv_bias=True)",
    sizes={"input_size": range(5, 61), "num_heads": range(2, 10), "head_size": range(3, 21),
           "hidden": "num_heads * head_size"},
    hints=(
        "Four linear layers: queries, keys, values and the output.",
        "A layer from a to b has a * b weights, and b biases if it has any. The output layer "
        "goes from hidden to hidden and always has biases here.",
        "The number of heads does not matter: the heads share out the same matrices."))
def attention_parameters(input_size, hidden, num_heads, qkv_bias=False, *, projections=3,
                         biases=3, outputs=1, output_biases=1):
    qkv = projections * input_size * hidden + qkv_bias * biases * hidden
    return qkv + outputs * hidden * hidden + output_biases * hidden


attention_parameters.wrong("count.times heads", "The count is multiplied by the number of heads. "
    "The heads share out the hidden features; they do not have matrices of full width each.",
    lambda i, w, h, qkv_bias: 3 * h * (i * w + qkv_bias * w) + w * w + w)
attention_parameters.wrong("count.times heads", "The count is multiplied by the number of heads. "
    "The heads share out the hidden features.",
    lambda i, w, h, qkv_bias: h * attention_parameters(i, w, h, qkv_bias))
attention_parameters.wrong("count.one head", "The projections are counted for one head only: their "
    "width is hidden, all heads together.",
    lambda i, w, h, qkv_bias: 3 * (i * w + qkv_bias * w) // h + w * w + w)
attention_parameters.wrong("count.output missing", "The output layer is not counted.", outputs=0,
    output_biases=0)
attention_parameters.wrong("count.output bias", "The biases of the output layer are not counted.",
    output_biases=0)
attention_parameters.wrong("count.qkv bias", "qkv_bias is not looked at: the biases are never "
    "counted.", biases=0)
attention_parameters.wrong("count.qkv bias", "qkv_bias is not looked at: the biases are always "
    "counted.", lambda i, w, h, qkv_bias: attention_parameters(i, w, h, True))
attention_parameters.wrong("count.output input", "The output layer goes from hidden to hidden, not "
    "from input_size.",
    lambda i, w, h, qkv_bias: attention_parameters(i, w, h, qkv_bias) - w * w + i * w)
attention_parameters.wrong("count.queries only", "There are three projections: queries, keys and "
    "values.", projections=1, biases=1)
attention_parameters.wrong("count.biases of one", "The biases of all three projections count, not "
    "of one.", biases=1)
