"""Changes torch's settings for everybody after it.

answers: right
expect: same | err
"""

import random

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
