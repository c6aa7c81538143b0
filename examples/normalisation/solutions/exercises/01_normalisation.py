"""Lesson 01: LayerNorm and RMSNorm."""

import torch
from torch import nn

from autograder import exercise


@exercise(
    "norm.layer_norm",
    "layer_norm(x[batch_size, seq_len, hidden], weight[hidden], bias[hidden], 0.1)",
    hints=(
        "Each token is normalised by itself. Which axis are its features on?",
        "`x.mean(dim=-1, keepdim=True)` keeps an axis of size 1, so that it can be subtracted.",
        "Subtract the mean, divide by the root of variance plus eps, then weight and bias.",
    ),
)
def layer_norm(x, weight, bias, eps, dim=-1, unbiased=False, inside=True, centred=True):
    spread = x.var(dim, unbiased=unbiased, keepdim=True)
    root = (spread + eps).sqrt() if inside else spread.sqrt() + eps
    return (x - x.mean(dim, keepdim=True) * centred) / root * weight + bias


wrong = layer_norm.wrong
wrong("norm.unbiased", "The variance divides by n - 1, not by n.", unbiased=True)
wrong("norm.eps outside", "eps is added to the root; it belongs under it.", inside=False)
wrong("norm.over the tokens", "The mean runs over the tokens, not over the features.", dim=1)
wrong("norm.over the batch", "The mean runs over the batch, not over the features.", dim=0)
wrong("norm.not centred", "The mean is not subtracted.", centred=False)
wrong("norm.no weight", "weight and bias are not used.",
      lambda x, weight, bias, eps: layer_norm(x, torch.ones_like(weight), 0 * bias, eps))
wrong("norm.variance for root", "It is divided by the variance, not by its root.",
      lambda x, w, b, eps: (x - x.mean(-1, keepdim=True))
      / (x.var(-1, unbiased=False, keepdim=True) + eps) * w + b)


@exercise(
    "norm.rms_norm",
    "rms_norm(x[batch_size, seq_len, hidden], weight[hidden], 0.1)",
    hints=(
        "It is LayerNorm without the mean and without the bias.",
        "Root mean square: first square, then the mean, then the root.",
        "x / sqrt(mean of x squared over the last axis, plus eps), times weight.",
    ),
)
def rms_norm(x, weight, eps, dim=-1, mean=True, inside=True):
    square = (x * x).mean(dim, keepdim=True) if mean else (x * x).sum(dim, keepdim=True)
    return x / ((square + eps).sqrt() if inside else square.sqrt() + eps) * weight


wrong = rms_norm.wrong
wrong("rms.sum", "The squares are added up; RMS is the root of their mean.", mean=False)
wrong("rms.eps outside", "eps is added to the root; it belongs under it.", inside=False)
wrong("rms.over the tokens", "The mean runs over the tokens, not over the features.", dim=1)
wrong("rms.centred", "The mean is subtracted first: that is LayerNorm.",
      lambda x, w, eps: rms_norm(x - x.mean(-1, keepdim=True), w, eps))
wrong("rms.no root", "It is divided by the mean square, not by its root.",
      lambda x, w, eps: x / ((x * x).mean(-1, keepdim=True) + eps) * w)


@exercise(
    "norm.module",
    "RMSNorm(hidden)(x[batch_size, seq_len, hidden])",
    gradients=True,
    hints=(
        "What learns is an `nn.Parameter`, set in __init__ after `super().__init__()`.",
        "`nn.Parameter(torch.ones(hidden))` begins as a norm that changes nothing.",
        "In forward, return rms_norm(x, self.weight, self.eps).",
    ),
)
class RMSNorm(nn.Module):
    detached, weighted = False, True

    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(hidden)), eps

    def forward(self, x):
        weight = self.weight if self.weighted else 1 + 0 * self.weight
        return rms_norm(x, weight.detach() if self.detached else weight, self.eps)


RMSNorm.wrong("module.weight detached", "No gradient reaches the weight.", detached=True)
RMSNorm.wrong("module.weight unused", "The weight is not used.", weighted=False)
