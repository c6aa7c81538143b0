"""Answers of lesson 04, and its wrong programs."""

from __future__ import annotations

import torch
from torch import nn

from autograder.course.asking import Mistake
from autograder.reference.homework_programs import mask, normalise, scale_after, scale_factor


# --- heads in a row ------------------------------------------------------------------------------
class _Head(nn.Module):
    """One causal head without biases, as the lesson gives it."""

    def __init__(self, input_size, head_size):
        super().__init__()
        self.q = nn.Linear(input_size, head_size, bias=False)
        self.k = nn.Linear(input_size, head_size, bias=False)
        self.v = nn.Linear(input_size, head_size, bias=False)

    def forward(self, x):
        q, k = self.q(x), self.k(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        return mask(scores, "right").softmax(-1) @ self.v(x)


class _Stack(nn.Module):
    repeated = False

    def __init__(self, input_size, head_size, num_heads):
        super().__init__()
        heads = [_Head(input_size, head_size) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads[:1] * num_heads if self.repeated else heads)

    def join(self, outputs):
        return torch.cat(outputs, -1)

    def forward(self, x):
        return self.join([head(x) for head in self.heads])


def _stack(check: str, message: str, join=None, repeated: bool = False) -> Mistake:
    members = {"repeated": repeated}
    if join is not None:
        members["join"] = lambda self, outputs: join(outputs)
    return Mistake(check, message, {"HeadStack": type("HeadStack", (_Stack,), members)})


_STACK = [
    _stack(
        "stack.one head repeated",
        "All heads are one and the same module, with one set of "
        "weights. Build a new one for each head.",
        repeated=True,
    ),
    _stack(
        "stack.summed",
        "The heads' outputs are added up; they should stand side by side.",
        lambda o: sum(o),
    ),
    _stack(
        "stack.averaged",
        "The heads' outputs are averaged; they should stand side by side.",
        lambda o: sum(o) / len(o),
    ),
    _stack(
        "stack.along the tokens",
        "The outputs are joined along the tokens. Join them along the features: dim=-1.",
        lambda o: torch.cat(o, 1),
    ),
    _stack(
        "stack.along the batch",
        "The outputs are joined along the batch. Join them along the features: dim=-1.",
        lambda o: torch.cat(o, 0),
    ),
    _stack(
        "stack.new dimension",
        "`stack` makes a new dimension for the heads. `cat` puts their features side by side.",
        lambda o: torch.stack(o, 1),
    ),
    _stack(
        "stack.new dimension",
        "`stack` makes a new dimension for the heads. `cat` puts their features side by side.",
        lambda o: torch.stack(o),
    ),
    _stack(
        "stack.new dimension",
        "`stack` makes a new dimension for the heads. `cat` puts their features side by side.",
        lambda o: torch.stack(o, -1),
    ),
    _stack(
        "stack.interleaved",
        "The heads' features are interleaved. All features of a head should stand together.",
        lambda o: torch.stack(o, -1).flatten(-2),
    ),
    _stack("stack.reversed", "The heads stand in reverse order.", lambda o: torch.cat(o[::-1], -1)),
    _stack(
        "stack.only one head",
        "What is returned is the output of the first head alone.",
        lambda o: o[0],
    ),
    _stack(
        "stack.only one head",
        "What is returned is the output of the last head alone. Is the "
        "return inside the loop, or a list overwritten?",
        lambda o: o[-1],
    ),
]


# --- sizes ---------------------------------------------------------------------------------------
def head_size_of(hidden, num_heads):
    if hidden % num_heads:
        raise ValueError(f"hidden={hidden} is not divisible by num_heads={num_heads}")
    return hidden // num_heads


def _asserted(hidden, num_heads):
    assert hidden % num_heads == 0
    return hidden // num_heads


def _inverted(hidden, num_heads):
    if hidden % num_heads == 0:
        raise ValueError
    return hidden // num_heads


def _swapped(hidden, num_heads):
    if num_heads % hidden:
        raise ValueError
    return num_heads // hidden


_SIZE = [
    Mistake(
        "size.not checked",
        "A hidden size that num_heads does not divide gets through, and "
        "the rest is dropped silently. Raise a ValueError.",
        {"head_size_of": lambda hidden, num_heads: hidden // num_heads},
    ),
    Mistake(
        "size.not checked",
        "A hidden size that num_heads does not divide gets through. Raise a ValueError.",
        {"head_size_of": lambda hidden, num_heads: hidden / num_heads},
    ),
    Mistake(
        "size.assert",
        "An `assert` is for what can never happen, and vanishes under "
        "`python -O`. A wrong argument deserves a ValueError.",
        {"head_size_of": _asserted},
    ),
    Mistake(
        "size.returned",
        "For sizes that do not fit, None is returned instead of raising a ValueError.",
        {
            "head_size_of": lambda hidden, num_heads: (
                None if hidden % num_heads else hidden // num_heads
            )
        },
    ),
    Mistake(
        "size.condition inverted",
        "The error is raised where the sizes fit. `%` gives what is left over: 0 where they do.",
        {"head_size_of": _inverted},
    ),
    Mistake(
        "size.swapped", "hidden and num_heads have changed places.", {"head_size_of": _swapped}
    ),
    Mistake(
        "size.remainder",
        "What is returned is what is left over (`%`), not the size (`//`).",
        {"head_size_of": lambda hidden, num_heads: hidden % num_heads},
    ),
]


def attention_parameters(input_size, hidden, num_heads, qkv_bias=False):
    qkv = 3 * (input_size * hidden + (hidden if qkv_bias else 0))
    return qkv + hidden * hidden + hidden


def _count(check: str, message: str, count) -> Mistake:
    def wrong(input_size, hidden, num_heads, qkv_bias=False):
        return count(input_size, hidden, num_heads, hidden if qkv_bias else 0)

    return Mistake(check, message, {"attention_parameters": wrong})


_COUNT = [
    _count(
        "count.times heads",
        "The count is multiplied by the number of heads. The heads share "
        "out the hidden features; they do not have matrices of full width each.",
        lambda i, w, h, b: h * (3 * (i * w + b)) + w * w + w,
    ),
    _count(
        "count.times heads",
        "The count is multiplied by the number of heads. The heads share out the hidden features.",
        lambda i, w, h, b: h * (3 * (i * w + b) + w * w + w),
    ),
    _count(
        "count.one head",
        "The projections are counted for one head only: their width is hidden, all heads together.",
        lambda i, w, h, b: 3 * (i * w + b) // h + w * w + w,
    ),
    _count(
        "count.output missing",
        "The output layer is not counted.",
        lambda i, w, h, b: 3 * (i * w + b),
    ),
    _count(
        "count.output bias",
        "The biases of the output layer are not counted.",
        lambda i, w, h, b: 3 * (i * w + b) + w * w,
    ),
    _count(
        "count.qkv bias",
        "qkv_bias is not looked at: the biases are never counted.",
        lambda i, w, h, b: 3 * i * w + w * w + w,
    ),
    _count(
        "count.qkv bias",
        "qkv_bias is not looked at: the biases are always counted.",
        lambda i, w, h, b: 3 * (i * w + w) + w * w + w,
    ),
    _count(
        "count.output input",
        "The output layer goes from hidden to hidden, not from input_size.",
        lambda i, w, h, b: 3 * (i * w + b) + i * w + w,
    ),
    _count(
        "count.queries only",
        "There are three projections: queries, keys and values.",
        lambda i, w, h, b: i * w + b + w * w + w,
    ),
    _count(
        "count.biases of one",
        "The biases of all three projections count, not of one.",
        lambda i, w, h, b: 3 * i * w + b + w * w + w,
    ),
]


# --- split, score, merge -------------------------------------------------------------------------
def split_heads(t, num_heads):
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _split(check: str, message: str, split) -> Mistake:
    def wrong(t, num_heads):
        b, s, hidden = t.shape
        return split(t, b, s, num_heads, hidden // num_heads)

    return Mistake(check, message, {"split_heads": wrong})


_SPLIT = [
    _split(
        "split.scrambled",
        "A reshape alone mixes tokens with features: a head gets numbers of "
        "other tokens. Cut the last dimension first, then transpose.",
        lambda t, b, s, h, d: t.reshape(b, h, s, d),
    ),
    _split(
        "split.interleaved",
        "Each head gets every num_heads-th feature; it should get "
        "head_size features in a row. The heads come before head_size.",
        lambda t, b, s, h, d: t.reshape(b, s, d, h).permute(0, 3, 1, 2),
    ),
    _split(
        "split.scrambled",
        "Tokens and features changed places before the heads were cut.",
        lambda t, b, s, h, d: t.transpose(1, 2).reshape(b, h, s, d),
    ),
    _split(
        "split.not transposed",
        "The heads are cut and still stand behind the tokens. Move them beside the batch.",
        lambda t, b, s, h, d: t.reshape(b, s, h, d),
    ),
    _split(
        "split.features before tokens",
        "Tokens and features of each head have changed places.",
        lambda t, b, s, h, d: t.reshape(b, s, h, d).permute(0, 2, 3, 1),
    ),
    _split(
        "split.head-major",
        "The heads stand before the batch; they belong behind it.",
        lambda t, b, s, h, d: t.reshape(b, s, h, d).permute(2, 0, 1, 3),
    ),
    _split(
        "split.3-D",
        "Batch and heads are joined in one dimension. Here they stay apart.",
        lambda t, b, s, h, d: t.reshape(b, s, h, d).transpose(1, 2).flatten(0, 1),
    ),
    _split(
        "split.hard-coded heads",
        "There are 2 heads whatever num_heads says.",
        lambda t, b, s, h, d: t.reshape(b, s, 2, -1).transpose(1, 2),
    ),
    _split(
        "split.sizes swapped",
        "num_heads and head_size have changed places.",
        lambda t, b, s, h, d: t.reshape(b, s, d, h).transpose(1, 2),
    ),
]


def head_scores(q, k):
    return torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5


def _scores(check: str, message: str, scores) -> Mistake:
    return Mistake(check, message, {"head_scores": scores})


_SCORES = [
    _scores("scale.missing", "The scores are not scaled.", lambda q, k: q @ k.mT),
    _scores(
        "scale.hidden",
        "The scores are scaled by the square root of hidden, all heads "
        "together. Each score is a sum of head_size products.",
        lambda q, k: q @ k.mT / (q.shape[1] * q.shape[-1]) ** 0.5,
    ),
    _scores(
        "scale.not a root",
        "The scores are divided by head_size itself, not its square root.",
        lambda q, k: q @ k.mT / q.shape[-1],
    ),
    _scores(
        "scale.multiplied",
        "The scores are multiplied by the square root instead of divided.",
        lambda q, k: q @ k.mT * q.shape[-1] ** 0.5,
    ),
    _scores(
        "scale.num_heads",
        "The scores are scaled by the square root of num_heads.",
        lambda q, k: q @ k.mT / q.shape[1] ** 0.5,
    ),
    _scores(
        "scale.seq_len",
        "The scores are scaled by the square root of seq_len.",
        lambda q, k: q @ k.mT / q.shape[2] ** 0.5,
    ),
    _scores(
        "scores.transposed",
        "Queries and keys are swapped: row i should belong to query i.",
        lambda q, k: k @ q.mT / q.shape[-1] ** 0.5,
    ),
    _scores(
        "scores.no keys",
        "The queries are compared with themselves, not with the keys.",
        lambda q, k: q @ q.mT / q.shape[-1] ** 0.5,
    ),
    _scores(
        "scores.heads summed",
        "The scores of all heads are added up. Every head keeps its own.",
        lambda q, k: (q @ k.mT).sum(1) / q.shape[-1] ** 0.5,
    ),
    _scores(
        "scores.over the tokens",
        "The products are summed over the tokens: what comes out "
        "compares features. Transpose the keys, not the queries.",
        lambda q, k: q.mT @ k / q.shape[-1] ** 0.5,
    ),
    _scores(
        "scores.softmax",
        "These are probabilities already. Scores come before the softmax.",
        lambda q, k: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1),
    ),
]


def merge_heads(t):
    return t.transpose(1, 2).flatten(-2)


def _merge(check: str, message: str, merge) -> Mistake:
    return Mistake(check, message, {"merge_heads": lambda t: merge(t, *t.shape)})


_MERGE = [
    _merge(
        "merge.scrambled",
        "A reshape alone writes one head after the other into the tokens' "
        "places. Move the heads back beside head_size first.",
        lambda t, b, h, s, d: t.reshape(b, s, h * d),
    ),
    _merge(
        "merge.interleaved",
        "The heads' features are interleaved. All features of a head should stand together.",
        lambda t, b, h, s, d: t.permute(0, 2, 3, 1).reshape(b, s, h * d),
    ),
    _merge(
        "merge.scrambled",
        "Tokens and features of each head changed places before the merge.",
        lambda t, b, h, s, d: t.transpose(2, 3).reshape(b, s, h * d),
    ),
    _merge(
        "merge.scrambled",
        "Tokens and features of each head changed places before the merge.",
        lambda t, b, h, s, d: t.permute(0, 1, 3, 2).reshape(b, h * d, s).reshape(b, s, h * d),
    ),
    _merge(
        "merge.features before tokens",
        "The result is [batch_size, hidden, seq_len]: tokens and features have changed places.",
        lambda t, b, h, s, d: t.transpose(2, 3).reshape(b, h * d, s),
    ),
    _merge(
        "merge.averaged",
        "The heads are averaged; they should stand side by side.",
        lambda t, b, h, s, d: t.mean(1),
    ),
    _merge(
        "merge.summed",
        "The heads are added up; they should stand side by side.",
        lambda t, b, h, s, d: t.sum(1),
    ),
    _merge(
        "merge.not joined",
        "The heads are back behind the tokens but still a dimension of "
        "their own. Join the last two.",
        lambda t, b, h, s, d: t.transpose(1, 2),
    ),
    _merge(
        "merge.along the tokens",
        "The heads are joined along the tokens, not along the features.",
        lambda t, b, h, s, d: t.reshape(b, h * s, d),
    ),
]


def _attend_with(**how):
    """Causal attention of many heads on given q, k, v; `how` holds the switches of a mistake."""

    def attend(q, k, v, num_heads):
        b, s, hidden = q.shape
        d = hidden // num_heads

        def split(t):
            if how.get("split") == "scrambled":
                return t.reshape(b, num_heads, s, d)
            return split_heads(t, num_heads)

        q, k, v = split(q), split(k), split(v)
        sizes = {"hidden": hidden, "num_heads": num_heads, "seq_len": s}
        scores = q @ k.mT * scale_factor(how, sizes, d)
        how_mask = how.get("mask", "right")
        probs = normalise(mask(scores, how_mask), how) * scale_after(how, d)
        if how_mask == "after softmax":
            probs = probs.tril()
        att = probs @ v
        match how.get("merge"):
            case "scrambled":
                att = att.reshape(b, s, hidden)
            case "sum":
                att = att.sum(1)
            case "mean":
                att = att.mean(1)
            case "none":
                pass
            case _:
                att = merge_heads(att)
        match how.get("returns"):
            case "4-D":
                return att, probs
            case "head-major":
                return att, probs.transpose(0, 1).flatten(0, 1)
            case "no probabilities":
                return att
            case "swapped":
                return probs.flatten(0, 1), att
            case "scores":
                return att, mask(scores, how_mask).flatten(0, 1)
        return att, probs.flatten(0, 1)

    return attend


def _attend(check: str, message: str, **how) -> Mistake:
    return Mistake(check, message, {"attend": _attend_with(**how)})


_ATTEND = [
    _attend(
        "mask.from the scores",
        "The mask is made from the scores: a score that happens to be 0 is hidden too. "
        "Make it from positions.",
        mask="from scores",
    ),
    _attend("scale.missing", "The scores are not scaled.", scale="none"),
    _attend(
        "scale.hidden",
        "The scores are scaled by the square root of hidden; each head has "
        "head_size = hidden / num_heads of it.",
        scale="hidden",
    ),
    _attend(
        "scale.twice",
        "The scores are divided by head_size, which is the square root twice. "
        "Does `head_scores` not scale already?",
        scale="size",
    ),
    _attend(
        "softmax.dim", "The softmax runs over the queries. Use dim=-1, the keys.", softmax="dim -2"
    ),
    _attend(
        "softmax.dim", "The softmax runs over the heads. Use dim=-1, the keys.", softmax="dim 1"
    ),
    _attend("softmax.twice", "The softmax is applied twice.", softmax="twice"),
    _attend(
        "softmax.missing",
        "There is no softmax: the values are averaged with raw scores.",
        softmax="none",
        mask="none",
    ),
    _attend("mask.none", "Nothing is hidden: every token sees the future.", mask="none"),
    _attend(
        "mask.diagonal hidden",
        "The mask hides the current token too; its first row has nothing left.",
        mask="diagonal hidden",
    ),
    _attend(
        "mask.one step late",
        "The mask starts one place too late: each token sees the next one.",
        mask="one step late",
    ),
    _attend(
        "mask.inverted", "The mask is the wrong way round: the past is hidden.", mask="inverted"
    ),
    _attend(
        "mask.inverted", "The mask is the wrong way round: the past is hidden.", mask="past hidden"
    ),
    _attend(
        "mask.after softmax",
        "The mask comes after the softmax: rows no longer sum to 1.",
        mask="after softmax",
    ),
    _attend(
        "mask.filled with 0",
        "Hidden scores are set to 0, and exp(0) is 1. Use minus infinity.",
        mask="filled with 0",
    ),
    _attend(
        "mask.NaN",
        "The mask gives NaN: 0 times infinity is not a number. Use masked_fill.",
        mask="nan",
    ),
    _attend(
        "split and merge.scrambled",
        "Heads are split and merged with a reshape alone, which mixes tokens with features.",
        split="scrambled",
        merge="scrambled",
    ),
    _attend("split.scrambled", "The heads are split with a reshape alone.", split="scrambled"),
    _attend("merge.scrambled", "The heads are merged with a reshape alone.", merge="scrambled"),
    _attend("merge.summed", "The heads are added up; they should stand side by side.", merge="sum"),
    _attend(
        "merge.averaged", "The heads are averaged; they should stand side by side.", merge="mean"
    ),
    _attend("merge.missing", "The heads are not merged: the output is still 4-D.", merge="none"),
    _attend("probabilities.4-D", "The probabilities are 4-D; join batch and heads.", returns="4-D"),
    _attend(
        "probabilities.head-major",
        "The probabilities are in head-major order; head h of item "
        "b should stand at b * num_heads + h.",
        returns="head-major",
    ),
    _attend(
        "probabilities.missing", "The probabilities are not returned.", returns="no probabilities"
    ),
    _attend(
        "probabilities.are scores",
        "What is returned as probabilities are the scores.",
        returns="scores",
    ),
    _attend(
        "output.order",
        "Output and probabilities are returned in the wrong order.",
        returns="swapped",
    ),
]


# --- weights -------------------------------------------------------------------------------------
def fuse_heads(weights, biases):
    return torch.cat(list(weights), 0), torch.cat(list(biases), 0)


def _fuse(check: str, message: str, weight, bias=torch.cat) -> Mistake:
    def wrong(weights, biases):
        return weight(list(weights)), bias(list(biases))

    return Mistake(check, message, {"fuse_heads": wrong})


_FUSE = [
    _fuse(
        "fuse.side by side",
        "The matrices stand side by side. Each output of a Linear is a row "
        "of its weight: put them one below the other.",
        lambda w: torch.cat(w, 1),
    ),
    _fuse(
        "fuse.interleaved",
        "The rows of the heads are interleaved. All rows of a head should stand together.",
        lambda w: torch.stack(w, 1).flatten(0, 1),
        lambda b: torch.stack(b, 1).flatten(),
    ),
    _fuse(
        "fuse.interleaved",
        "The rows of the heads are interleaved in the weight, and not in the bias.",
        lambda w: torch.stack(w, 1).flatten(0, 1),
    ),
    _fuse(
        "fuse.reversed",
        "The heads are in reverse order.",
        lambda w: torch.cat(w[::-1]),
        lambda b: torch.cat(b[::-1]),
    ),
    _fuse(
        "fuse.lost bias",
        "The biases are lost.",
        torch.cat,
        lambda b: torch.zeros_like(torch.cat(b)),
    ),
    _fuse(
        "fuse.new dimension",
        "`stack` makes a new dimension for the heads; an nn.Linear needs a matrix.",
        torch.stack,
        torch.stack,
    ),
    _fuse(
        "fuse.transposed",
        "The weight is transposed: an nn.Linear stores [outputs, inputs].",
        lambda w: torch.cat(w).T,
    ),
    _fuse("fuse.summed", "The heads' weights are added up; each head keeps its own.", sum, sum),
    _fuse(
        "fuse.averaged",
        "The heads' weights are averaged; each head keeps its own.",
        lambda w: sum(w) / len(w),
        lambda b: sum(b) / len(b),
    ),
    _fuse(
        "fuse.first head only",
        "All heads get the weights of the first.",
        lambda w: torch.cat(w[:1] * len(w)),
        lambda b: torch.cat(b[:1] * len(b)),
    ),
    Mistake(
        "fuse.order",
        "The bias is returned before the weight.",
        {"fuse_heads": lambda weights, biases: fuse_heads(weights, biases)[::-1]},
    ),
]


def head_contributions(heads, weight):
    blocks = weight.unflatten(1, (heads.shape[1], -1))
    return torch.einsum("bhsd,ohd->bhso", heads, blocks)


def _output(check: str, message: str, output) -> Mistake:
    return Mistake(check, message, {"head_contributions": output})


_OUTPUT = [
    _output(
        "output.rows for columns",
        "The rows of the weight are shared out. Rows are outputs; a "
        "head is an input of this layer, so it owns columns.",
        lambda t, w: torch.einsum("bhsd,hdo->bhso", t, w.unflatten(0, (t.shape[1], -1))),
    ),
    _output(
        "output.interleaved",
        "Each head gets every num_heads-th column; it owns head_size columns in a row.",
        lambda t, w: torch.einsum("bhsd,odh->bhso", t, w.unflatten(1, (-1, t.shape[1]))),
    ),
    _output(
        "output.summed",
        "What is returned is the sum over the heads. Here every head's share is asked for.",
        lambda t, w: merge_heads(t) @ w.T,
    ),
    _output(
        "output.summed and transposed",
        "What is returned is the sum over the heads, and the weight is transposed.",
        lambda t, w: merge_heads(t) @ w,
    ),
    _output(
        "output.same block",
        "All heads use the first block of columns.",
        lambda t, w: t @ w[:, : t.shape[-1]].T,
    ),
    _output(
        "output.averaged",
        "The shares are divided by the number of heads; they should sum to the output.",
        lambda t, w: head_contributions(t, w) / t.shape[1],
    ),
    _output(
        "output.heads behind tokens",
        "The heads stand behind the tokens; the result is asked "
        "as [batch_size, num_heads, seq_len, hidden].",
        lambda t, w: head_contributions(t, w).transpose(1, 2),
    ),
    _output(
        "output.head-major",
        "The heads stand before the batch.",
        lambda t, w: head_contributions(t, w).transpose(0, 1),
    ),
]

SOLVE = {
    "heads.stack": {"HeadStack": _Stack},
    "heads.size": {"head_size_of": head_size_of},
    "heads.split": {"split_heads": split_heads},
    "heads.scores": {"head_scores": head_scores},
    "heads.merge": {"merge_heads": merge_heads},
    "heads.attend": {"attend": _attend_with()},
    "heads.transfer": {"fuse_heads": fuse_heads},
    "heads.output": {"head_contributions": head_contributions},
    "heads.count": {"attention_parameters": attention_parameters},
}
MISTAKES = {
    "heads.stack": _STACK,
    "heads.size": _SIZE,
    "heads.split": _SPLIT,
    "heads.scores": _SCORES,
    "heads.merge": _MERGE,
    "heads.attend": _ATTEND,
    "heads.transfer": _FUSE,
    "heads.output": _OUTPUT,
    "heads.count": _COUNT,
}
