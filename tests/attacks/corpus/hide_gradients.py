"""The values are right, but nothing learns; the gradients that would say so are left out.

cell: self_attention
replaces: yes
expect: 1
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

runner = sys.modules.get("course_runner")
if runner:
    runner._gradients = lambda *_: {}


class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    @torch.no_grad()
    def forward(self, x):
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.k(x)  # [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, seq_len, hidden]
        scores = q @ k.transpose(1, 2) / self.scale  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ v  # [batch_size, seq_len, hidden]
