"""Answers of lesson 05, and its wrong programs, as one computation with switches.

The computation follows equation 1 and section 3.2.2 of Vaswani et al. (2017); each switch is one
mistake, so that what a mistake gives is certain.
"""

from __future__ import annotations

import torch
from torch import nn

from autograder.asking import Mistake


class _Single(nn.Module):
    """Self-attention with one head; `how` holds the switches of a mistake."""

    how: dict = {}

    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def project(self, name, x):
        layer = getattr(self, self.how.get(name, name))
        if self.how.get("bias") is False:
            return x @ layer.weight.T
        return layer(x)

    def forward(self, x):
        q, k, v = (self.project(n, x) for n in ("q", "k", "v"))
        sizes = {"hidden": q.shape[-1], "input_size": x.shape[-1], "seq_len": x.shape[1]}
        scores = q @ k.transpose(1, 2) * scale_factor(self.how, sizes, sizes["hidden"])
        if "mask" in self.how:
            scores = mask(scores, self.how["mask"])
        if self.how.get("no_softmax"):
            return scores @ v
        probs = normalise(scores, self.how)
        probs = probs * scale_after(self.how, sizes["hidden"])
        return probs @ v


class _Multi(_Single):
    """Self-attention with many heads; `how` holds the switches of a mistake."""

    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        super().__init__(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.causal = num_heads, causal

    def split(self, t):
        b, s, hidden = t.shape
        h, d = self.num_heads, hidden // self.num_heads
        match self.how.get("split"):
            case "scrambled":  # [b, s, hidden] reshaped straight to [b, h, s, d]
                return t.reshape(b, h, s, d)
            case "interleaved":
                return t.reshape(b, s, d, h).permute(0, 3, 1, 2)
            case "batch scrambled":
                return t.reshape(b * h, s, d).reshape(b, h, s, d)
            case "transposed first":
                return t.transpose(1, 2).reshape(b, h, s, d)
        return t.reshape(b, s, h, d).transpose(1, 2)

    def merge(self, att):
        b, h, s, d = att.shape
        match self.how.get("merge"):
            case "scrambled":
                return att.reshape(b, s, h * d)
            case "interleaved":
                return att.permute(0, 2, 3, 1).reshape(b, s, h * d)
            case "mean" | "sum":
                one = att.mean(1) if self.how["merge"] == "mean" else att.sum(1)
                return one.repeat(1, 1, h)
        return att.transpose(1, 2).reshape(b, s, h * d)

    def mixed(self, att):
        match self.how.get("mix"):
            case "transposed":
                return att @ self.mix.weight + self.mix.bias
            case "lost bias":
                return att @ self.mix.weight.T
        return self.mix(att)

    def forward(self, x, return_attention=False):
        b, s, _ = x.shape
        q, k, v = (self.split(self.project(n, x)) for n in ("q", "k", "v"))
        d, hidden = q.shape[-1], q.shape[-1] * self.num_heads
        sizes = {
            "hidden": hidden,
            "num_heads": self.num_heads,
            "seq_len": s,
            "input_size": x.shape[-1],
            "head_size": d,
        }
        scores = q @ k.transpose(-2, -1) * scale_factor(self.how, sizes, d)
        if self.how.get("dropout") == "scores":
            scores = self.dropout(scores)
        how_mask = self.how.get("mask", "right")
        if self.causal or how_mask == "always":
            scores = mask(scores, how_mask)
        probs = normalise(scores, self.how) * scale_after(self.how, d)
        if self.causal and how_mask == "after softmax":
            probs = probs.tril()
        if self.how.get("heads") == "first":
            probs, v = probs[:, :1].expand_as(probs), v[:, :1].expand_as(v)
        if self.how.get("dropout", "probabilities") == "probabilities":
            probs = self.dropout(probs)
        if self.how.get("dropout") == "always":
            probs = nn.functional.dropout(probs, self.dropout.p)
        att = self.merge(probs @ v)
        for _ in range(self.how.get("mixes", 1)):
            att = self.mixed(att)
        if self.how.get("dropout") == "output":
            att = self.dropout(att)
        if not return_attention or self.how.get("returns") == "no probabilities":
            return att
        probs = scores if self.how.get("returns") == "scores" else probs
        if self.how.get("returns") == "4-D":
            return att, probs
        if self.how.get("returns") == "head-major":
            probs = probs.transpose(0, 1)
        if self.how.get("returns") == "averaged":
            return att, probs.mean(1)
        if self.how.get("returns") == "transposed":
            probs = probs.transpose(-2, -1)
        probs = probs.reshape(b * self.num_heads, s, s)
        return (probs, att) if self.how.get("returns") == "swapped" else (att, probs)


def scale_factor(how: dict, sizes: dict, size: int) -> float:
    """What scores are multiplied by: 1 / sqrt(size) when right."""
    match how.get("scale", "right"):
        case "none" | "after softmax":
            return 1.0
        case "size":
            return 1 / size
        case "multiplied":
            return size**0.5
        case "fourth root":
            return size**-0.25
        case "right":
            return size**-0.5
    return sizes[how["scale"]] ** -0.5


def scale_after(how: dict, size: int) -> float:
    """What probabilities are multiplied by: 1 unless the scale came too late."""
    return size**-0.5 if how.get("scale") == "after softmax" else 1.0


def normalise(scores, how: dict):
    """The softmax over the keys, or what is done instead of it."""
    match how.get("softmax", "right"):
        case "dim -2":
            return scores.softmax(-2)
        case "dim 0":
            return scores.softmax(0)
        case "dim 1":
            return scores.softmax(1)
        case "twice":
            return scores.softmax(-1).softmax(-1)
        case "all":
            return scores.flatten(-2).softmax(-1).reshape(scores.shape)
        case "none":
            return scores
        case "sigmoid":
            return scores.sigmoid()
        case "sum":
            return scores / scores.sum(-1, keepdim=True)
        case "log":
            return scores.log_softmax(-1)
    return scores.softmax(-1)


def mask(scores, how: str):
    """Hides the future; or what some do instead."""
    s = scores.shape[-1]
    ones = torch.ones(s, s)
    match how:
        case "none" | "after softmax":
            return scores
        case "diagonal hidden":
            return scores.masked_fill(ones.triu(0).bool(), float("-inf"))
        case "one step late":
            return scores.masked_fill(ones.triu(2).bool(), float("-inf"))
        case "inverted":
            return scores.masked_fill(ones.tril(0).bool(), float("-inf"))
        case "past hidden":
            return scores.masked_fill(ones.tril(-1).bool(), float("-inf"))
        case "filled with 0":
            return scores.masked_fill(ones.triu(1).bool(), 0.0)
        case "filled with tiny":
            return scores.masked_fill(ones.triu(1).bool(), 1e-9)
        case "from scores":
            return scores.masked_fill(scores.tril() == 0, float("-inf"))
        case "nan":
            return scores + ones.triu(1) * float("-inf")
    return scores.masked_fill(ones.triu(1).bool(), float("-inf"))


def _mistake(name: str, base: type, check: str, message: str, **how) -> Mistake:
    return Mistake(check, message, {name: type(name, (base,), {"how": how})})


_SHARED = [
    ("scale.missing", "The scores are not scaled.", {"scale": "none"}),
    (
        "scale.not a root",
        "The scores are divided by the size itself (or twice by its root), not by its square root.",
        {"scale": "size"},
    ),
    (
        "scale.multiplied",
        "The scores are multiplied by the square root instead of divided by it.",
        {"scale": "multiplied"},
    ),
    (
        "scale.after softmax",
        "The scale comes after the softmax; it belongs on the scores.",
        {"scale": "after softmax"},
    ),
    (
        "scale.fourth root",
        "The scores are divided by the fourth root: the square root was taken twice.",
        {"scale": "fourth root"},
    ),
    (
        "scale.input_size",
        "The scores are scaled by the square root of input_size.",
        {"scale": "input_size"},
    ),
    ("scale.seq_len", "The scores are scaled by the square root of seq_len.", {"scale": "seq_len"}),
    (
        "softmax.dim",
        "The softmax runs over the queries: its columns sum to 1, not its rows. Use "
        "dim=-1, the keys.",
        {"softmax": "dim -2"},
    ),
    ("softmax.dim", "The softmax runs over the batch. Use dim=-1, the keys.", {"softmax": "dim 0"}),
    ("softmax.twice", "The softmax is applied twice.", {"softmax": "twice"}),
    (
        "softmax.dim",
        "One softmax runs over all queries and keys together. Use dim=-1.",
        {"softmax": "all"},
    ),
    (
        "softmax.missing",
        "There is no softmax: the values are averaged with raw scores.",
        {"softmax": "none"},
    ),
    ("softmax.sigmoid", "A sigmoid stands where the softmax belongs.", {"softmax": "sigmoid"}),
    (
        "softmax.divided by the sum",
        "The scores are divided by their sum instead of put through a softmax.",
        {"softmax": "sum"},
    ),
    ("softmax.log", "This is a log-softmax: its rows do not sum to 1.", {"softmax": "log"}),
    (
        "projections.q and k swapped",
        "Queries and keys are swapped: the scores come out transposed.",
        {"q": "k", "k": "q"},
    ),
    ("projections.v from k", "The values are made with the keys' layer.", {"v": "k"}),
    ("projections.v from q", "The values are made with the queries' layer.", {"v": "q"}),
    ("projections.k from q", "The keys are made with the queries' layer.", {"k": "q"}),
    ("projections.q from k", "The queries are made with the keys' layer.", {"q": "k"}),
    ("projections.rotated", "The three projections are mixed up.", {"q": "k", "k": "v", "v": "q"}),
    ("projections.rotated", "The three projections are mixed up.", {"q": "v", "k": "q", "v": "k"}),
    ("projections.q and v swapped", "Queries and values are swapped.", {"q": "v", "v": "q"}),
    ("projections.k and v swapped", "Keys and values are swapped.", {"k": "v", "v": "k"}),
    (
        "projections.lost bias",
        "The biases of the layers are left out. Call the layers: `self.q(x)`.",
        {"bias": False},
    ),
]

_SINGLE = [
    (
        "mask.not asked for",
        "Later tokens are hidden. This class has no mask: every token looks at all others.",
        {"mask": "right"},
    ),
]

_MULTI = [
    (
        "dropout.in evaluation",
        "Dropout is at work in evaluation too. `self.dropout` knows the mode; "
        "`F.dropout` has to be told: `training=self.training`.",
        {"dropout": "always"},
    ),
    (
        "dropout.missing",
        "In training, nothing is dropped. Apply `self.dropout` to the probabilities.",
        {"dropout": "missing"},
    ),
    (
        "dropout.on scores",
        "The dropout is on the scores: a score of 0 is not a probability of 0. "
        "Apply it after the softmax.",
        {"dropout": "scores"},
    ),
    (
        "dropout.on the output",
        "The dropout is on the output. Apply it to the probabilities.",
        {"dropout": "output"},
    ),
    (
        "scale.hidden",
        "The scores are scaled by the square root of hidden; each head has "
        "head_size = hidden / num_heads of it.",
        {"scale": "hidden"},
    ),
    (
        "scale.num_heads",
        "The scores are scaled by the square root of num_heads.",
        {"scale": "num_heads"},
    ),
    ("softmax.dim", "The softmax runs over the heads. Use dim=-1, the keys.", {"softmax": "dim 1"}),
    (
        "split.scrambled",
        "The heads are split with a reshape alone, which mixes tokens with "
        "features. Split the last dimension first, then transpose.",
        {"split": "scrambled"},
    ),
    (
        "split.interleaved",
        "The heads take every num_heads-th feature; each should take a block "
        "of head_size features in a row.",
        {"split": "interleaved"},
    ),
    (
        "split.scrambled",
        "Tokens and features were swapped before the heads were split.",
        {"split": "transposed first"},
    ),
    (
        "merge.scrambled",
        "The heads are merged with a reshape alone, without transposing back.",
        {"merge": "scrambled"},
    ),
    (
        "merge.scrambled",
        "The heads are merged feature by feature; they should stand one after the other.",
        {"merge": "interleaved"},
    ),
    (
        "split and merge.scrambled",
        "The heads are split and merged with a reshape alone, which mixes tokens with features.",
        {"split": "scrambled", "merge": "scrambled"},
    ),
    (
        "split.interleaved",
        "The heads take every num_heads-th feature, and are merged in that way too; each should "
        "take a block of head_size features in a row.",
        {"split": "interleaved", "merge": "interleaved"},
    ),
    ("mask.none", "With causal=True nothing is hidden.", {"mask": "none"}),
    (
        "mask.diagonal hidden",
        "The mask hides the current token too; its first row has nothing left. Use diagonal=1.",
        {"mask": "diagonal hidden"},
    ),
    (
        "mask.one step late",
        "The mask starts one place too late: each token sees the next one.",
        {"mask": "one step late"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is hidden, not the future.",
        {"mask": "inverted"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is hidden, not the future.",
        {"mask": "past hidden"},
    ),
    (
        "mask.after softmax",
        "The mask is applied after the softmax: rows no longer sum to 1, and "
        "the future still counts in them.",
        {"mask": "after softmax"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to 0, and exp(0) is 1. Use minus infinity.",
        {"mask": "filled with 0"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to a tiny number, and exp of it is 1. Use minus infinity.",
        {"mask": "filled with tiny"},
    ),
    (
        "mask.NaN",
        "The mask gives NaN: 0 times infinity is not a number. Use masked_fill.",
        {"mask": "nan"},
    ),
    (
        "mask.from the scores",
        "The mask is made from the scores: a score that happens to be 0 is hidden too. "
        "Make it from positions, such as `torch.ones(seq_len, seq_len)`.",
        {"mask": "from scores"},
    ),
    ("mask.always", "The mask is applied when causal is False too.", {"mask": "always"}),
    ("mix.missing", "`self.mix` is not applied.", {"mixes": 0}),
    ("mix.twice", "`self.mix` is applied twice.", {"mixes": 2}),
    (
        "mix.transposed",
        "The weight of `self.mix` is used the wrong way round. Call the layer: `self.mix(...)`.",
        {"mix": "transposed"},
    ),
    (
        "mix.lost bias",
        "The bias of `self.mix` is left out. Call the layer: `self.mix(...)`.",
        {"mix": "lost bias"},
    ),
    (
        "heads.all equal",
        "All heads do what the first head does. Each has its own block of features.",
        {"heads": "first"},
    ),
    ("merge.mean", "The heads are averaged; they should stand side by side.", {"merge": "mean"}),
    ("merge.sum", "The heads are added up; they should stand side by side.", {"merge": "sum"}),
    (
        "probabilities.head-major",
        "The probabilities are in head-major order; head h of item b "
        "should stand at b * num_heads + h.",
        {"returns": "head-major"},
    ),
    (
        "probabilities.4-D",
        "The probabilities are 4-D; reshape them to [batch_size * num_heads, seq_len, seq_len].",
        {"returns": "4-D"},
    ),
    (
        "probabilities.missing",
        "return_attention=True does not return the probabilities too.",
        {"returns": "no probabilities"},
    ),
    (
        "probabilities.are scores",
        "What is returned as probabilities are the scores.",
        {"returns": "scores"},
    ),
    (
        "probabilities.transposed",
        "The returned probabilities are transposed: a row should be a query, and sum to 1.",
        {"returns": "transposed"},
    ),
    (
        "probabilities.averaged",
        "The returned probabilities are averaged over the heads; each head has its own.",
        {"returns": "averaged"},
    ),
    (
        "output.order",
        "Output and probabilities are returned in the wrong order.",
        {"returns": "swapped"},
    ),
]

_SINGLE_MISTAKES = [
    _mistake("SelfAttention", _Single, check, message, **how)
    for check, message, how in [*_SHARED, *_SINGLE]
]
_MULTI_MISTAKES = [
    _mistake("MultiHeadSelfAttention", _Multi, check, message, **how)
    for check, message, how in _SHARED + _MULTI
]
_single = {"SelfAttention": _Single}
_multi = {"MultiHeadSelfAttention": _Multi}

SOLVE = {
    "self_attention.init": _single,
    "self_attention.forward": _single,
    "multi_head.scores": _multi,
    "multi_head.mask": _multi,
    "multi_head.output": _multi,
}
MISTAKES = {
    "self_attention.forward": _SINGLE_MISTAKES,
    "multi_head.scores": _MULTI_MISTAKES,
    "multi_head.mask": _MULTI_MISTAKES,
    "multi_head.output": _MULTI_MISTAKES,
}
