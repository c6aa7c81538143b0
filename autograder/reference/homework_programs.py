"""The two classes of lesson 05 as one computation with switches.

The computation follows equation 1 and section 3.2.2 of Vaswani et al. (2017); each switch is one
mistake, so that what a mistake gives is certain.
"""

from __future__ import annotations

import torch
from torch import nn


class SingleHead(nn.Module):
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


class ManyHeads(SingleHead):
    """Self-attention with many heads; `how` holds the switches of a mistake."""

    def __init__(self, input_size, hidden, num_heads, causal=None, dropout=0):
        super().__init__(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.causal = self.how.get("causal by default", False) if causal is None else causal

    def split(self, name, t):
        b, s, hidden = t.shape
        h, d = self.num_heads, hidden // self.num_heads
        match self.how.get(f"split {name}", self.how.get("split")):
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
        q, k, v = (self.split(n, self.project(n, x)) for n in ("q", "k", "v"))
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
        if how_mask == "always" or self.causal != (how_mask == "condition inverted"):
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
        case float(number):
            return number
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
    return how.get("after", size**-0.5 if how.get("scale") == "after softmax" else 1.0)


def normalise(scores, how: dict):
    """The softmax over the keys, or what is done instead of it."""
    match how.get("softmax", "right"):
        case torch.Tensor() as given:
            return given
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
        case "exp":
            return scores.exp()
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


def program(name: str, base: type, how: dict) -> dict:
    """A namespace in which the class of this name makes the mistakes in `how`."""
    return {name: type(name, (base,), {"how": how})}
