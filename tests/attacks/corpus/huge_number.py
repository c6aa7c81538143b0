"""Returns a number of 4000 digits, alone and in lists.

expect: 0
"""

import torch


class SelfAttention(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, x):
        return [10**4000] if x.shape[0] % 2 else 10**4000
