"""A tensor subclass lies about its shape, its dtype and its copies.

expect: 0
"""

import torch


class Liar(torch.Tensor):
    shape = property(lambda self: torch.Size([1]))
    dtype = property(lambda self: torch.bool)

    def detach(self):
        return self

    to = to_dense = clone = contiguous = as_subclass = lambda self, *_, **__: self


class SelfAttention(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, x):
        return torch.zeros(x.shape).as_subclass(Liar)
