"""Answers with 32 MB, where 16 are allowed.

expected: too much output
"""

import torch

reply["x"] = torch.zeros(8_000_000)
