"""Returns zeros of the right shapes from both classes.

expect: 0
stock: yes
"""

import torch


class SelfAttention(torch.nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.hidden = hidden

    def forward(self, x):
        return torch.zeros(*x.shape[:2], self.hidden)
