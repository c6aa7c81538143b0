"""Answers with 32 MB, where 16 are allowed.

expected: too much output
"""

import torch
from given import reply

reply["x"] = torch.zeros(8_000_000)
