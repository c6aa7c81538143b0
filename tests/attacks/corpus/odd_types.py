"""Returns another kind of thing at every call.

expect: 0
"""

import numpy as np
import torch

kinds = [
    lambda s: torch.zeros(s, dtype=torch.complex64),
    lambda s: torch.zeros(s, dtype=torch.bool),
    lambda s: torch.zeros(s).to_sparse(),
    lambda s: torch.empty(0),
    lambda s: np.zeros(s, dtype=object),
    lambda s: torch.zeros(s, dtype=torch.float8_e4m3fn),
    lambda s: torch.zeros(s, device="meta"),
    lambda s: torch.quantize_per_tensor(torch.zeros(s), 1.0, 0, torch.qint8),
    lambda s: [[[1e308] * 9] * 9] * 9,
    lambda s: {"$tensor": "t0"},
    lambda s: 10**4000,
    lambda s: b"zeros",
]
count = 0


class SelfAttention(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, x):
        global count
        count += 1
        return kinds[(x.shape[0] + count) % len(kinds)](x.shape)
