"""Returns a list that never ends.

expect: 0
slow: yes
"""

import torch


class Endless(list):
    def __iter__(self):
        while True:
            yield 1

    def __len__(self):
        return 1


class SelfAttention(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, x):
        return Endless()
