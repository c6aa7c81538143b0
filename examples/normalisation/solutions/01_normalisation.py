# %% [markdown]
# # 01 · Normalisation
#
# Every block of a transformer adds something to the vectors that run through it. Without
# care they grow from layer to layer, and a softmax that is fed large numbers stops
# learning. So each block looks at a *normalised* copy.
#
# **After this notebook you will be able to** write LayerNorm and RMSNorm, say over which
# axis they run, and why `eps` stands under the root.

# %% role="setup"
import torch
import torch.nn as nn

from autograder import check, hint

# %% [markdown]
# ## 1 LayerNorm
#
# Ba, Kiros and Hinton (2016) bring each **token** to mean 0 and variance 1, over its
# features, and then let the model stretch and move each feature again:
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot \mathrm{weight} + \mathrm{bias}$$
#
# The variance divides by the number of features, not by one less.
#
# **Exercise (2 points).** Write `layer_norm` without `nn.LayerNorm` or `F.layer_norm`.


# %% exercise="norm.layer_norm" calls="layer_norm(x[batch_size, seq_len, hidden], weight[hidden], bias[hidden], 0.1)"
def layer_norm(x, weight, bias, eps):
    """x: [batch_size, seq_len, hidden]; weight, bias: [hidden]. Returns x's shape."""
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)  # [batch_size, seq_len, 1]
    variance = x.var(dim=-1, keepdim=True, unbiased=False)  # [batch_size, seq_len, 1]
    normal = (x - mean) / torch.sqrt(variance + eps)  # [batch_size, seq_len, hidden]
    return normal * weight + bias  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="norm.layer_norm" points=2
check("norm.layer_norm")

# %% [markdown]
# **Before you run this:** what are mean and spread of each token afterwards?

# %%
torch.manual_seed(0)
x = 3 * torch.randn(2, 4, 6) + 5  # [2, 4, 6]
y = layer_norm(x, torch.ones(6), torch.zeros(6), 1e-5)  # [2, 4, 6]
print("largest mean:", f"{y.mean(-1).abs().max():.4f}")
print("spread of the first token:", f"{y[0, 0].std(unbiased=False):.4f}")

# %% [markdown]
# ## 2 RMSNorm
#
# Zhang and Sennrich (2019) leave the mean where it is and divide by the root of the mean
# square alone. It is cheaper, there is no bias, and large models train as well with it.
#
# **Exercise (1 point).** Write `rms_norm`.


# %% exercise="norm.rms_norm"
def rms_norm(x, weight, eps):
    """x: [batch_size, seq_len, hidden]; weight: [hidden]. Returns x's shape."""
    ### BEGIN SOLUTION
    mean_square = (x * x).mean(dim=-1, keepdim=True)  # [batch_size, seq_len, 1]
    return x / torch.sqrt(mean_square + eps) * weight  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="norm.rms_norm" points=1
check("norm.rms_norm")

# %% [markdown]
# ## 3 As a module
#
# **Exercise (2 points).** `RMSNorm(hidden)` holds `weight`, a parameter that begins with
# ones, and applies it. Its gradients are looked at too.


# %% exercise="norm.module" needs="norm.rms_norm"
class RMSNorm(nn.Module):
    """RMSNorm with a weight that learns."""

    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        ### END SOLUTION

    def forward(self, x):
        """FloatTensor[batch_size, seq_len, hidden] to the same."""
        ### BEGIN SOLUTION
        return rms_norm(x, self.weight, self.eps)  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="norm.module" points=2
check("norm.module")

# %% [markdown]
# ### Question (1 point)
#
# BatchNorm takes mean and variance over the batch. Why not here?

# %% [markdown] question="norm-question" points=1
# ### BEGIN SOLUTION
# A token's result would depend on the other sentences of the batch, in training on those
# that happen to be there, and a model that writes one token at a time has no batch.
# ### END SOLUTION
