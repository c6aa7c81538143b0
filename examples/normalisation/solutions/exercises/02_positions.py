"""Lesson 02: sinusoidal positions and the feed-forward layer."""

import torch
from torch import nn

from autograder import exercise


@exercise(
    "positions.encode",
    "encode(positions[seq_len].long(50), hidden) where hidden = 2 * pairs",
    hints=(
        "One angle for each position and each pair of features: what shape is that table?",
        "`positions[:, None]` is a column; divided by a row it makes a table.",
        "Sines and cosines of the angles, side by side feature by feature: stack, then flatten.",
    ),
)
def encode(positions, hidden, base=10000, shift=0, step=2, order=("sin", "cos")):
    exponents = torch.arange(0, hidden, 2) // 2 * step / hidden
    angles = (positions[:, None] + shift) / base**exponents
    return torch.stack([getattr(angles, name)() for name in order], -1).flatten(1)


wrong = encode.wrong
wrong("positions.from one", "The first position counts as 1; it is 0.", shift=1)
wrong("positions.swapped", "Sines stand where cosines belong.", order=("cos", "sin"))
wrong("positions.exponent", "The exponent is i / hidden, not 2i / hidden.", step=1)
wrong("positions.base", "The base is 10000.", base=1000)
wrong("positions.halves", "All sines stand before all cosines; they alternate.",
      lambda positions, hidden:
      torch.cat(encode(positions, hidden).unflatten(1, (-1, 2)).unbind(2), 1))
wrong("positions.order ignored", "The positions that are given are not looked at.",
      lambda positions, hidden: encode(torch.arange(len(positions)), hidden))


@exercise(
    "block.feed_forward",
    "FeedForward(hidden, inner)(x[batch_size, seq_len, hidden])",
    hints=(
        "Two `nn.Linear` layers: hidden to inner, and back.",
        "The ReLU stands between them; after the second there is none.",
        "self.down(torch.relu(self.up(x)))",
    ),
)
class FeedForward(nn.Module):
    function, after, residual = torch.relu, lambda self, x: x, 0

    def __init__(self, hidden, inner):
        super().__init__()
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x):
        return self.after(self.down(type(self).function(self.up(x)))) + self.residual * x


wrong = FeedForward.wrong
wrong("feed forward.linear", "There is no ReLU: two layers in a row are one.", function=lambda x: x)
wrong("feed forward.gelu", "A GELU stands where the ReLU belongs.", function=nn.functional.gelu)
wrong("feed forward.relu last", "A ReLU follows the second layer too.",
      after=lambda self, x: torch.relu(x))
wrong("feed forward.residual", "x is added; the block does that, not this layer.", residual=1)
