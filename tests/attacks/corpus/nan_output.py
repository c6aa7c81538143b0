"""Returns NaN everywhere, of the right shape.

expect: 0
stock: yes
"""

import torch


class SelfAttention(torch.nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.hidden = hidden

    def forward(self, x):
        return torch.full((*x.shape[:2], self.hidden), float("nan"))
