"""A tensor subclass answers every torch function itself.

expect: 0
stock: yes
"""

import torch


class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


class SelfAttention(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, x):
        return torch.zeros(x.shape).as_subclass(Yes)
