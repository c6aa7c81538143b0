# %% [markdown]
# # 02 · Positions and the feed-forward layer
#
# Attention does not know where a token stands. Vaswani et al. (2017), section 3.5, add a
# vector to each token that says so: sines and cosines of many wavelengths.
#
# **After this notebook you will be able to** write sinusoidal encodings and the two-layer
# network that follows attention in every block.

# %% role="setup"
import torch
import torch.nn as nn

from autograder import check, hint

# %% [markdown]
# ## 1 Sines and cosines
#
# Feature $2i$ of position $p$ is $\sin(p / 10000^{2i/hidden})$, feature $2i + 1$ the
# cosine of the same angle.
#
# **Exercise (2 points).** `encode(positions, hidden)`: positions are whole numbers,
# in any order.


# %% exercise="positions.encode"
def encode(positions, hidden):
    """positions: LongTensor[seq_len]; hidden: even. Returns [seq_len, hidden]."""
    ### BEGIN SOLUTION
    pairs = torch.arange(0, hidden, 2)  # [hidden / 2]
    angles = positions[:, None] / 10000 ** (pairs / hidden)  # [seq_len, hidden / 2]
    both = torch.stack([angles.sin(), angles.cos()], dim=-1)  # [seq_len, hidden / 2, 2]
    return both.flatten(1)  # [seq_len, hidden]
    ### END SOLUTION


# %% check="positions.encode" points=2
check("positions.encode")

# %%
print([round(value, 3) for value in encode(torch.tensor([0, 1]), 4)[1].tolist()])

# %% [markdown]
# ## 2 The feed-forward layer
#
# Section 3.3: widen, ReLU, and back. Each token by itself.
#
# **Exercise (2 points).** Write `FeedForward` with the layers `up` and `down`.


# %% exercise="block.feed_forward"
class FeedForward(nn.Module):
    """Two layers with a ReLU between them."""

    def __init__(self, hidden, inner):
        super().__init__()
        ### BEGIN SOLUTION
        self.up = nn.Linear(hidden, inner)
        self.down = nn.Linear(inner, hidden)
        ### END SOLUTION

    def forward(self, x):
        """FloatTensor[batch_size, seq_len, hidden] to the same."""
        ### BEGIN SOLUTION
        return self.down(torch.relu(self.up(x)))  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="block.feed_forward" points=2
check("block.feed_forward")
