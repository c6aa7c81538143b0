"""False shape comments, and rubbish in the place of what was seen of the shapes.

cell: self_attention
replaces: yes
answers: right
expect: 9
"""

import sys

import torch.nn as nn
import torch.nn.functional as F

odd = {"version": 1, "runs": [{"stmts": {"1": [[None]], "x": 1e400}}], "table": [[]]}
runner = sys.modules.get("course_runner")
if runner:
    handle = runner.Runner.handle

    def forged(self, header, tensors):
        if header["op"] == "shapes":
            return {"recording": odd}, {}
        return handle(self, header, tensors)

    runner.Runner.handle = forged
    frame = sys._getframe()
    while frame:
        if "table" in frame.f_locals and "runs" in frame.f_locals:
            frame.f_locals["runs"].append(odd)
        frame = frame.f_back


class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        q = self.q(x)  # [batch_size, hidden, seq_len]
        k = self.k(x)  # [batch_size, hidden, seq_len]
        v = self.v(x)  # [batch_size, hidden, seq_len]
        scores = q @ k.transpose(1, 2) / self.scale  # [hidden, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [hidden, seq_len, seq_len]
        return probs @ v  # [batch_size, hidden, seq_len]
