# %% [markdown]
# # 05 · The graded homework: two attention layers
#
# Everything so far was practice with the net up. Here you write the real thing, twice: first
# attention with one head, then the layer that sits in every transformer, with many.
#
# **After this notebook you will be able to**
#
# - write `SelfAttention` and `MultiHeadSelfAttention` from an empty page, on batches of
#   any size,
# - say the shape of every tensor on every line, and be right,
# - explain with numbers what the scale does to the softmax and to its gradient,
# - read an attention map, with and without a causal mask, without fooling yourself,
# - prove which steps of attention are linear and which are not.
#
# | | |
# |---|---|
# | Time | 180 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●● |
#
# There are **5 tasks** (1.1, 1.2, 2.1, 2.2, 2.3) and **5 questions** (Q1 to Q5).
#
# ### How it is marked
#
# | part | points |
# |---|---|
# | **SelfAttention**, tasks 1.1 and 1.2 | **4** |
# | 1.1 the layers in `__init__` | 1 |
# | 1.2 `forward` (none of the three where its values are wrong) | 3 |
# | **MultiHeadSelfAttention**, tasks 2.1 to 2.3 | **6** |
# | 2.1 heads and their scores | 3 |
# | 2.2 the causal mask | 1 |
# | 2.3 probabilities, merged heads, output | 2 |
# | **Questions** Q1 to Q5, one point each | **5** |
#
# And for each of the two classes:
#
# | deduction or bonus | points |
# |---|---|
# | the code does not follow PEP 8 (lines of up to 99 characters are fine) | −1 |
# | a false shape comment, or more than half of the tensor lines without one | −1 |
# | the scores are not scaled, and all else is right: one point, not all | −1 |
# | `SelfAttention.forward` in three lines of PyTorch | +1 |
#
# Any correct program earns full marks: `bmm`, `matmul` or `einsum`, 3-D heads or 4-D
# heads, a loop over the heads if you like. What counts is what comes out, on sizes you
# have not seen, and what you say about the shapes on the way.
#
# Stuck? `hint("self_attention.forward", 1)` nudges; steps 2 and 3 say more (a cell
# below tries it). For self-study, the solutions with all figures come with the whole
# course, in `solutions/05_homework.ipynb`. Words you do not know are in the
# [glossary](../../docs/glossary.md).

# %% role="setup"
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.figures import show
from transformer_lm.test_values import MultiHeadAttentionTestValues, SelfAttentionTestValues

# %% [markdown]
# ## 1 Why attention at all
#
# (Skip this if you come from lesson 01.)
#
# Until about 2017 the tool for sequences was the recurrent neural network. An
# [RNN](../../docs/glossary.md#rnn) reads left to right and keeps one vector, its hidden state:
# $h_t$ is computed from $h_{t-1}$ and the token at position $t$. Two things follow, and neither
# is good.
#
# It is **sequential**: $h_{40}$ has to wait for $h_{39}$, so the hardware that could do forty
# things at once does them one by one. And it is **forgetful**: whatever token 0 has to say to
# token 39 must survive 39 rewritings of the same small vector.
#
# Attention asks another question. Why pass messages along the line when every token could look
# at every other directly? One step from anywhere to anywhere, all of them at the same time.
#
# **Before you run this:** we measure how strongly the *last* output depends on each
# input token, as the norm of a gradient. What will the curve of the RNN look like,
# going back in time? And that of attention?

# %%
torch.manual_seed(0)
seq_len, width = 40, 16
x = torch.randn(1, seq_len, width, requires_grad=True)  # [1, seq_len, width]

rnn = nn.RNN(width, width, batch_first=True)
states, _ = rnn(x)  # [1, seq_len, width]

to_q, to_k, to_v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
scores = to_q(x) @ to_k(x).transpose(1, 2) / width**0.5  # [1, seq_len, seq_len]
mixed = torch.softmax(scores, dim=-1) @ to_v(x)  # [1, seq_len, width]


def influence(outputs):
    """Norm of the gradient of the last output with respect to each input token."""
    (gradient,) = torch.autograd.grad(outputs[0, -1].sum(), x, retain_graph=True)
    return gradient[0].norm(dim=-1)  # [seq_len]


by_rnn, by_attention = influence(states), influence(mixed)
fig, ax = plt.subplots(figsize=(7, 3.2))
ax.semilogy(by_rnn, label="RNN", color="tab:red")
ax.semilogy(by_attention, label="self-attention", color="tab:blue")
ax.set_xlabel("input token (39 is the last)")
ax.set_ylabel("influence on the last output")
ax.legend()
print(f"RNN:       token 0 counts {by_rnn[0] / by_rnn[-1]:.0e} as much as token 39")
print(f"attention: token 0 counts {by_attention[0] / by_attention[-1]:.1f} times token 39")
show(
    fig,
    "Influence of each input token on the last output: for the RNN it falls by many powers "
    "of ten towards early tokens, for self-attention it is about level.",
)

# %% [markdown]
# **Figure.** Influence of each of 40 input tokens on the last output, on a log scale. The RNN's
# line falls steadily towards the past; that of self-attention is level.
#
# The RNN's influence shrinks by a constant factor with every step back, so on a log
# scale it is a straight line into the ground. (Careful training and gates, as in an
# LSTM, slow the fall; they do not abolish it.) Attention has no such slope: position
# does not enter the formula at all.
#
# ### Self-attention and cross-attention
#
# There are two kinds, and one line of code tells them apart: where the keys and values
# come from.
#
# - **Self-attention**: queries, keys and values are all made from the same sequence $X$.
# - **Cross-attention**: queries from one sequence, keys and values from another. A translator's
#   decoder asks ("I am about to write a verb"), the encoder's sentence answers.
#
# The formula is the same. Only the table of scores stops being square:

# %%
source = torch.randn(1, 6, width)  # [1, 6, width]
target = torch.randn(1, 4, width)  # [1, 4, width]
self_scores = to_q(source) @ to_k(source).transpose(1, 2)  # [1, 6, 6]
cross_scores = to_q(target) @ to_k(source).transpose(1, 2)  # [1, 4, 6]
print("self: ", list(self_scores.shape))
print("cross:", list(cross_scores.shape), "= one row a query, one column a key")

# %% [markdown]
# This homework is about [self-attention](../../docs/glossary.md#self-attention).
# (Cross-attention is an exercise of lesson 08.)
#
# ## 2 SelfAttention: one head
#
# Self-attention is computed as
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# with $Q = XW_Q + b_Q$, $K = XW_K + b_K$ and $V = XW_V + b_V$, three projections of the
# same input $X$. Here $d_k$ **is the size of a query or key vector**, and the square
# root of it stands in the formula. In our class that size is called `hidden`.
#
# Read it from the inside out. Row $i$ of $QK^\top$ holds the dot products of query $i$
# with every key. The softmax turns that row into positive weights whose sum is 1, and
# the last product averages the values with those weights. That is all attention is:
# **an average whose weights the tokens work out among themselves**. See
# [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.1.
#
# ### Shape comments
#
# Write at the end of every line that makes a tensor which shape it has
# (a [shape comment](../../docs/glossary.md#shape-comment)):
#
# ```python
# x = torch.zeros(4, 6)            # [batch_size, seq_len]
# x = x.unsqueeze(1)               # [batch_size, 1, seq_len]
# x = x.transpose(1, 2)            # [batch_size, 1, seq_len] -> [batch_size, seq_len, 1]
# ```
#
# The shape of the result is enough; arrows are welcome. Use any names that you use consistently
# (`bs`, `seq` and `B`, `T` are fine). Comments are **checked for truth**: the grader runs your
# code on sizes that are all different and compares. A comment that says `hidden` where the
# dimension is `seq_len` is false even if both happen to be 5 in your test.
#
# A layer is not a tensor and needs no shape. (If you want to say it: the weight of
# `nn.Linear(input_size, hidden)` is stored as `[hidden, input_size]`, the other way round.)
#
# ### Exercise 1: one head (tasks 1.1 and 1.2)
#
# ●●●○○ · 40 minutes · 4 points
#
# **Task 1.1 (1 point)** Create the layers `self.q`, `self.k`, `self.v`, each from
# `input_size` to `hidden`, with a bias. The names matter: that is where the tests put
# their weights.
#
# **Task 1.2 (3 points)** Compute self-attention for a batch:
#
# 1. queries, keys and values from `x`,
# 2. scores from queries and keys, **scaled**,
# 3. probabilities, with a softmax over the keys,
# 4. the output, from probabilities and values.
#
# `x` is `[batch_size, seq_len, input_size]`: a batch comes first, so `.T` will not do.
# Four lines are plenty. There is a way in three, for a bonus point: three statements on three
# lines of `forward` itself. (PyTorch's ready-made attention earns no bonus.)
#
# Each exercise has three hints. The first one for task 1.1, if you want it:

# %%
hint("self_attention.init", 1)


# %% exercise="self_attention" calls="SelfAttention(input_size, hidden)(x[batch_size, seq_len, input_size]);"
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        """Self-attention with one head: softmax(Q K^T / sqrt(hidden)) V.

        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
        """
        super().__init__()
        # Task 1.1: create the layers (1 point)
        ### BEGIN SOLUTION
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5
        ### END SOLUTION

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V, for each sequence of the batch.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        # Task 1.2: compute self-attention (3 points), with a shape comment on every line
        ### BEGIN SOLUTION
        q = self.q(x)  # [batch_size, seq_len, hidden]
        scores = q @ self.k(x).transpose(1, 2) / self.scale  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="self_attention.init" points=1
check("self_attention.init")

# %% check="self_attention.forward" points=3
check("self_attention.forward")

# %% [markdown]
# Your shape comments are checked by running your code: three sets of sizes, all different, and
# every tensor on the way.

# %% check="self_attention.shape_comments"
check("self_attention.shape_comments")

# %% [markdown]
# ### A test against stored values
#
# A check of your own, in the open: fixed weights, a fixed input, and the output that
# they must give. Note two things about it, because you will write such tests yourself.
# The sizes (batch 2, 5 tokens, input 7, hidden 11) are **pairwise different**, so that
# no mixed-up axis can pass by luck. And `allclose` gets a **tolerance**: float32 sums
# come out differently in the seventh digit depending on the order of the additions, and
# the default (`atol=1e-8`) refuses right answers.

# %%
model = SelfAttention(input_size=7, hidden=11)
stored = {
    f"{name}.{kind}": getattr(SelfAttentionTestValues, f"{name}_{kind}")
    for name in ("q", "k", "v")
    for kind in ("weight", "bias")
}
_ = model.load_state_dict(stored)  # refuses layers of the wrong width
output = model(SelfAttentionTestValues.x)  # [2, 5, 11]

expected = SelfAttentionTestValues.output  # [2, 5, 11]
assert output.shape == expected.shape, f"expected {expected.shape}, got {output.shape}"
assert torch.allclose(output, expected, atol=1e-5), "right shape, wrong values"
print(f"passed; the largest difference is {(output - expected).abs().max():.0e}")

# %% [markdown]
# ### An experiment for Q1 and Q2
#
# (If you come from lesson 02 you know these curves; run the cell, and skip to the questions.)
#
# Draw two random matrices $Q, K \sim N(0, 1)$ of shape $[s, h]$ and look at
# $\mathrm{softmax}(QK^\top)$. We measure three things, for growing $h$:
#
# - the **spread** (standard deviation) of the scores,
# - the [**entropy**](../../docs/glossary.md#entropy) of a row of probabilities, in
#   nats: $\ln 64 = 4.16$ when all 64 keys share equally, 0 when one key takes
#   everything,
# - the size of the softmax's [**Jacobian**](../../docs/glossary.md#jacobian)
#   $J = \mathrm{diag}(p) - pp^\top$, the matrix through which every gradient must pass
#   on its way back to the scores.
#
# **Before you run this:** each time $h$ doubles, does the spread double?


# %%
def sharpness(h, scale, tokens=64, trials=20):
    """Mean spread of scores, entropy of rows and norm of the softmax's Jacobian."""
    torch.manual_seed(0)
    q = torch.randn(trials, tokens, h, dtype=torch.float64)  # [trials, tokens, h]
    k = torch.randn(trials, tokens, h, dtype=torch.float64)  # [trials, tokens, h]
    scores = q @ k.transpose(1, 2) / scale  # [trials, tokens, tokens]
    p = torch.softmax(scores, dim=-1)  # [trials, tokens, tokens]
    entropy = torch.special.entr(p).sum(-1)  # [trials, tokens]
    square = (p**2).sum(-1) - 2 * (p**3).sum(-1) + (p**2).sum(-1) ** 2  # [trials, tokens]
    jacobian = square.clamp_min(0).sqrt()  # [trials, tokens]
    return scores.std().item(), entropy.mean().item(), jacobian.mean().item()


sizes = [16, 32, 64, 128, 256, 1024, 4096]
plain = [sharpness(h, scale=1) for h in sizes]
scaled = [sharpness(h, scale=h**0.5) for h in sizes]
print("          not scaled                    divided by sqrt(h)")
print("    h   spread entropy Jacobian       spread entropy Jacobian")
for h, one, two in zip(sizes, plain, scaled, strict=True):
    left = "{:8.2f}{:8.2f}{:8.3f}".format(*one)
    right = "{:8.2f}{:8.2f}{:8.3f}".format(*two)
    print(f"{h:5d} {left}     {right}")

fig, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
titles = ["spread of scores", "entropy of a row (nats)", "norm of the Jacobian"]
for i, (ax, title) in enumerate(zip(axes, titles, strict=True)):
    ax.plot(sizes, [row[i] for row in plain], "o-", color="tab:red", label="not scaled")
    ax.plot(sizes, [row[i] for row in scaled], "s-", color="tab:blue", label="scaled")
    ax.set(title=title, xlabel="h", xscale="log", ylim=(0, None))
    ax.set_xticks(sizes[::2], sizes[::2])
    ax.minorticks_off()
axes[0].plot(sizes, [h**0.5 for h in sizes], "k:", label=r"$\sqrt{h}$")
axes[0].legend()
show(
    fig,
    "Three panels against h. Without scaling the spread of scores grows like the square root "
    "of h and entropy and Jacobian fall; with scaling all three are level.",
)

# %% [markdown]
# **Figure.** Spread of scores, entropy and Jacobian norm against $h$. Without the scale
# (red) the spread follows $\sqrt h$ and the other two fall; with it (blue) all three
# are level.
#
# (Look twice at the third panel: for small $h$ red is *above* blue. Two keys in close
# competition respond most strongly to a nudge, more than 64 that share evenly. But red
# never stops falling.)
#
# ### Q1 (1 point)
#
# Two random matrices $K, Q \sim N(0, \sigma^2)$ have the shape $[s, h]$, and you compute
# $\mathrm{softmax}(QK^\top)$. (Lesson 02 had $\sigma = 1$.) How do the probabilities change when
# you go from $h$ to $2h$? And when $h$ stays and $\sigma$ doubles? Do they become more or less
# focused? Is that good for the flow of gradients? Show it with mathematics; the experiment
# above may back you up.

# %% [markdown] question="q1" points=1
# ### BEGIN SOLUTION
# **They become more focused, and that is bad for the gradient.**
#
# A score is $s_{ij} = \sum_{c=1}^{h} q_{ic} k_{jc}$, a sum of $h$ independent terms.
# Each term has mean $E[q]E[k] = 0$ and variance $E[q^2]E[k^2] = \sigma^4$. So the score has
# mean 0 and variance $h\sigma^4$: its typical size is $\sqrt h\,\sigma^2$. From $h$ to $2h$ the
# mean **stays 0**, the variance doubles, and the typical size grows by $\sqrt 2$ (it does
# not double). If $\sigma$ doubles, the variance grows by 16 and the typical size by 4: as much
# as from $h$ to $16h$.
#
# Multiplying all scores by a number above 1 sharpens a softmax: the ratio of two
# probabilities is $e^{s_{ij} - s_{il}}$, and the differences grow by $\sqrt 2$, or by 4. In the
# experiment the mean entropy over 64 keys falls from 1.35 nats ($h = 16$) over 0.91,
# 0.60 and 0.38 to 0.27 ($h = 256$), and to 0.06 at $h = 4096$: nearly one key takes
# all.
#
# Gradients reach the scores through $J = \mathrm{diag}(p) - pp^\top$. Where $p$ is
# one-hot, every entry $p_i(\delta_{ij} - p_j)$ is 0. So the sharper the softmax, the
# less gradient arrives at queries and keys: they stop learning. (The values still get
# theirs, through $P^\top$.)
#
# **Marking scheme.** 0.5 for *more focused* with a reason: the variance of a score is h times
# sigma^4 (or its standard deviation sqrt(h) sigma^2), by calculation or by measurement; 0.25
# of it where only one of the two cases is right. 0.5 for *bad*:
# the softmax saturates and its derivative goes to 0. 'The expected score doubles' is
# wrong (the mean is 0 for every h): at most 0.5 in all. Doubling the *scores* instead
# of the variance: take off 0.25.
# ### END SOLUTION

# %% [markdown]
# ### Q2 (1 point)
#
# What happens if the scores are divided by $\sqrt h$ before the softmax? For which $\sigma$ does
# that repair what you found in Q1, and what would you divide by for another?

# %% [markdown] question="q2" points=1
# ### BEGIN SOLUTION
# $\mathrm{Var}(s / \sqrt h) = h\sigma^4 / h = \sigma^4$: the spread of the scores no longer
# depends on $h$. It does still depend on $\sigma$: for $\sigma = 1$ it is 1; for another, divide by
# $\sqrt h\,\sigma^2$ (or see to it that queries and keys have spread 1, as a fair start does).
# So the softmax does not depend on $h$ either: in the experiment the entropy stays at about 3.7
# nats and the norm of the Jacobian at about 0.18 for all sizes, while without the scale
# both fall towards 0.
#
# What the scale prevents is **saturation**: a softmax that is nearly one-hot has a vanishing
# derivative. The danger is gradients that are too small, not gradients that are too large: the
# entries of the Jacobian are never above 1/4 in size, whatever the scores.
#
# It holds for components that are independent with variance 1, as at the start of
# training. Training may then make the scores as large as it likes; it is no longer
# forced to by the width.
#
# **Marking scheme.** 0.5 for: a variance (or spread) that is independent of h, sigma^4, and 1
# for sigma = 1; 0.25 of it where sigma is forgotten. 0.5 for: the softmax does not saturate, so gradients do not vanish. 'Prevents extremely
# large gradients' earns nothing for the second half; 'stabilises' without saying what
# becomes stable earns 0.25.
# ### END SOLUTION

# %% [markdown]
# ### Move it to a file
#
# Modules that you mean to use again belong in a file, by convention
# `modeling_<model>.py`. Ours is `transformer_lm/modeling_attention.py`. Set
# `KEEP = True` to copy the class from your notebook into it. Only that class is
# replaced; the file as it was stays beside it as `modeling_attention.py.bak`. Nothing
# in this homework depends on it.

# %%
KEEP = False
if KEEP:
    from autograder.keep import keep

    keep("SelfAttention")

# %% [markdown]
# ## 3 MultiHeadSelfAttention
#
# One head makes one average. But a word may want to look at its verb *and* at the noun
# it stands for, with different weights. So run several heads side by side, each with
# its own projections:
#
# $$\mathrm{MultiHead}(X) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_n)\, W_O + b_O$$
#
# $$\mathrm{head}_i = \mathrm{softmax}\!\left(\frac{Q_i K_i^\top}{\sqrt{d}}\right) V_i,
# \qquad Q_i = XW_i^Q + b_i^Q, \quad K_i = XW_i^K + b_i^K, \quad V_i = XW_i^V + b_i^V$$
#
# Every head multiplies the **same** $X$; what differs between heads are the matrices.
# Each head works with vectors of `head_size = hidden / num_heads`, so that all heads
# together are as wide as one head was. And the last matrix, $W_O$, here the layer
# `mix`, lets the heads talk to each other: without it, head 1 would own the first
# `head_size` features of the output for ever.
#
# The trick that makes it fast: do not make `num_heads` small projections but one big
# one. The matrices $W_1^Q, W_2^Q, \dots$ side by side are one matrix of width `hidden`.
# Project once, then cut the result.
#
# ### Exercise 2: many heads (tasks 2.1 to 2.3)
#
# ●●●●○ · 60 minutes · 6 points
#
# ### Task 2.1 (3 points): heads and their scores
#
# 1. Make keys, queries and values with `self.k`, `self.q`, `self.v`.
# 2. Split the last dimension into heads. Head $i$ owns the features `i * head_size` to
#    `(i + 1) * head_size`. The heads should end up beside the batch, either as
#    `[batch_size, num_heads, seq_len, head_size]` or as
#    `[batch_size * num_heads, seq_len, head_size]`.
# 3. Compute the scores, query times key, and scale them.
#
# **Reshape is not transpose.** `reshape` pours the same row of numbers into another
# form; `transpose` changes their order. A tensor of `[M, N]` can be brought to `[N, M]`
# both ways, and the results have equal shapes and different contents:

# %%
a = torch.arange(6).reshape(2, 3)  # [2, 3]
print(a.reshape(3, 2))
print(a.transpose(0, 1))

# %% [markdown]
# Ask of each step: *which numbers of the same token stay together?* A right shape
# proves nothing.
#
# A comment for several steps on one line can name them all:
#
# ```python
# a = a.unsqueeze(1).transpose(1, 2)  # [batch_size, input_size, 1]
# # 'a' [batch_size, input_size] -> unsqueeze [batch_size, 1, input_size]
# # -> transpose [batch_size, input_size, 1]
# ```
#
# ### Task 2.2 (1 point): the causal mask
#
# A language model predicts the next token, so no token may see the ones after it. Where
# `self.causal` is set, hide from each query the keys of **later** tokens. A token may look at
# itself: token 0 has nothing else to look at.
#
# 1. Make a mask `[seq_len, seq_len]` that says which keys are hidden from which query, on
#    `scores.device`. `torch.triu` helps; think about its `diagonal`.
# 2. Fill the hidden scores with `float("-inf")`. `masked_fill` helps. After the softmax they
#    are exactly 0, because $e^{-\infty} = 0$.
#
# Get everything right without the mask first; `causal=False` is the default.
#
# ### Task 2.3 (2 points): probabilities and output
#
# 1. Turn the scores into probabilities, and call them `probs`.
# 2. Apply `self.dropout` to them.
# 3. Average the values with them.
# 4. Bring the heads back together, to `[batch_size, seq_len, hidden]`: undo the split, step by
#    step, in reverse order.
# 5. Mix the heads with `self.mix`, and call the result `att`.
#
# Return the probabilities, before or after dropout (in evaluation mode they are the same), as
# `[batch_size * num_heads, seq_len, seq_len]`: head `h` of item `b` stands at
# `b * num_heads + h`. The figures below count on that.
#
# The points for 2.1 and 2.2 are read from the probabilities that you return, so let the method
# run to its end before you run the checks.


# %% exercise="multi_head" calls="MultiHeadSelfAttention(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size]);MultiHeadSelfAttention(input_size, hidden, num_heads, causal=True)(x[batch_size, seq_len, input_size], return_attention=True)"
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        """Self-attention with several heads, merged and mixed.

        Args:
            input_size: int, size of the input vectors
            hidden: int, size of the outputs, and of all heads together
            num_heads: int, number of heads, a divisor of hidden
            causal: bool, hide the keys of later tokens from each query
            dropout: float, the probability of dropping an attention probability
        """
        if hidden % num_heads:
            raise ValueError(
                f"hidden must be divisible by num_heads, got hidden={hidden} "
                f"and num_heads={num_heads}"
            )
        super().__init__()
        self.k, self.q, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.scale = self.head_size**0.5
        self.causal = causal

    def forward(self, x, return_attention=False):
        """Concat(head_1, ..., head_n) W_O, with head_i = softmax(Q_i K_i^T / sqrt(d)) V_i.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
            return_attention: bool, return the probabilities too
        Returns:
            FloatTensor[batch_size, seq_len, hidden] and, where return_attention is set,
            FloatTensor[batch_size * num_heads, seq_len, seq_len]
        """
        bs, seq, _ = x.shape

        # Task 2.1: heads and their scores (3 points)
        ### BEGIN SOLUTION
        k = self.k(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        q = self.q(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        v = self.v(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)
        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]
        # -> transpose [bs, num_heads, seq, head_size]
        scores = q @ k.transpose(-2, -1) / self.scale
        # [bs, num_heads, seq, head_size] @ [bs, num_heads, head_size, seq]
        # -> [bs, num_heads, seq, seq]
        ### END SOLUTION

        if self.causal:
            # Task 2.2: hide later keys from each query (1 point)
            ### BEGIN SOLUTION
            mask = torch.ones(seq, seq, device=scores.device).triu(1).bool()  # [seq, seq]
            scores = scores.masked_fill(mask, float("-inf"))  # [bs, num_heads, seq, seq]
            ### END SOLUTION

        # Task 2.3: probabilities (probs) and output (att), heads merged and mixed (2 points)
        ### BEGIN SOLUTION
        probs = self.dropout(F.softmax(scores, dim=-1))  # [bs, num_heads, seq, seq]
        att = probs @ v
        # [bs, num_heads, seq, seq] @ [bs, num_heads, seq, head_size]
        # -> [bs, num_heads, seq, head_size]
        att = att.transpose(1, 2).reshape(bs, seq, self.num_heads * self.head_size)
        # [bs, num_heads, seq, head_size] -> transpose [bs, seq, num_heads, head_size]
        # -> reshape [bs, seq, hidden]
        att = self.mix(att)  # [bs, seq, hidden]
        probs = probs.reshape(bs * self.num_heads, seq, seq)  # [bs * num_heads, seq, seq]
        ### END SOLUTION

        if return_attention:
            return att, probs
        return att


# %% check="multi_head.scores" points=3
check("multi_head.scores")

# %% check="multi_head.mask" points=1
check("multi_head.mask")

# %% check="multi_head.output" points=2
check("multi_head.output")

# %% check="multi_head.shape_comments"
check("multi_head.shape_comments")

# %% [markdown]
# ### Tests against stored values
#
# Batch 2, 5 tokens, input 7, 3 heads of size 4. Once without the mask and once with it.

# %%
stored = {
    f"{name}.{kind}": getattr(MultiHeadAttentionTestValues, f"{name}_{kind}")
    for name in ("q", "k", "v", "mix")
    for kind in ("weight", "bias")
}
for causal in (False, True):
    model = MultiHeadSelfAttention(input_size=7, hidden=12, num_heads=3, causal=causal)
    _ = model.load_state_dict(stored)
    output = model(MultiHeadAttentionTestValues.x)  # [2, 5, 12]
    if causal:
        expected = MultiHeadAttentionTestValues.causal_output  # [2, 5, 12]
    else:
        expected = MultiHeadAttentionTestValues.output  # [2, 5, 12]
    assert output.shape == expected.shape, f"expected {expected.shape}, got {output.shape}"
    assert torch.allclose(output, expected, atol=1e-5), f"wrong values, {causal=}"
    difference = (output - expected).abs().max()
    print(f"causal={causal}: passed; the largest difference is {difference:.0e}")

# %%
KEEP = False
if KEEP:
    from autograder.keep import keep

    keep("MultiHeadSelfAttention")

# %% [markdown]
# ### Q3 (1 point)
#
# Do we scale the scores the same way for attention with many heads and with one?

# %% [markdown] question="q3" points=1
# ### BEGIN SOLUTION
# **The rule is the same; the number is not.** Scores are divided by the square root of
# the length of the vectors that are multiplied, because a sum of $d$ products of
# independent components has variance $d$.
#
# With one head those vectors have `hidden` components: divide by $\sqrt{hidden}$. With
# many heads each score is made inside one head, from `head_size = hidden / num_heads`
# components: divide by $\sqrt{hidden / num\_heads}$. Dividing by $\sqrt{hidden}$ there
# would make the scores too small by a factor of $\sqrt{num\_heads}$, and the
# probabilities too even. With 8 heads the spread of the
# scores would be $1/\sqrt 8 = 0.35$ instead of 1. For `num_heads = 1` both agree.
#
# **Marking scheme.** 0.5 for the same rule (the square root of the size of a key). 0.5
# for saying that this size is hidden / num_heads with many heads, and not hidden. 'Yes,
# by sqrt(d_k)' alone, without saying what d_k is in each case: 0.5.
# ### END SOLUTION

# %% [markdown]
# ### An experiment for Q4
#
# A function $f$ is linear if $f(2x) = 2f(x)$ (and some more). Here is attention without
# biases, with its softmax and without. **Before you run this:** without the softmax,
# only matrix products are left, and matrix products are linear. So by what factor does
# the output grow when the input is doubled?

# %%
torch.manual_seed(0)
w_q, w_k, w_v = torch.randn(3, 8, 8, dtype=torch.float64)  # each [8, 8]


def bare_attention(x, softmax):
    """Attention without biases, for x of [tokens, 8]; the softmax may be left out."""
    scores = (x @ w_q) @ (x @ w_k).T / 8**0.5  # [tokens, tokens]
    probs = torch.softmax(scores, dim=-1) if softmax else scores  # [tokens, tokens]
    return probs @ (x @ w_v)  # [tokens, 8]


x = torch.randn(5, 8, dtype=torch.float64)  # [5, 8]
for softmax in (False, True):
    ratio = bare_attention(2 * x, softmax) / bare_attention(x, softmax)  # [5, 8]
    print(f"softmax={softmax}: f(2x) / f(x) from {ratio.min():.3f} to {ratio.max():.3f}")

# %% [markdown]
# ### Q4 (1 point)
#
# How many nonlinear operations are there in self-attention, as functions of the input $x$? And
# in multi-head attention? Try to prove it: go through the steps one by one.

# %% [markdown] question="q4" points=1
# ### BEGIN SOLUTION
# **Three kinds, with one head as with many: the product $QK^\top$, the softmax, and the product
# of the probabilities with the values.**
#
# Step by step, as functions of $x$:
#
# | step | linear or affine? |
# |---|---|
# | $Q, K, V$ from $x$ | yes: $xW + b$ |
# | splitting and merging heads, transposing | yes: they only move numbers |
# | $QK^\top$ | **no**: both factors hold $x$. It is bilinear in $(Q, K)$, so quadratic in $x$ |
# | dividing by $\sqrt d$ | yes: a constant factor |
# | causal mask | yes: it adds a fixed table of 0 and $-\infty$ |
# | softmax | **no**: rows sum to 1 whatever the input, so doubling it cannot double them |
# | dropout | yes: for a fixed pattern it multiplies by fixed numbers |
# | $PV$ | **no**: both factors depend on $x$. (With $P$ held fixed it is linear in $V$) |
# | `mix` | yes: an affine map |
#
# Proof that the softmax is not alone: leave it and the biases out. Then
# $f(x) = (xW_Q)(xW_K)^\top (xW_V)/\sqrt d$ is a product of three factors that each grow
# like $x$, so $f(2x) = 2^3 f(x) = 8 f(x)$, and the experiment prints exactly 8.000. A
# linear map would give 2.
#
# Many heads do not add a kind. The softmax is one operation on rows: one head applies
# it to `batch_size * seq_len` rows, `num_heads` heads to
# `batch_size * num_heads * seq_len`. If one counts applications by head, all three are
# multiplied by `num_heads`; joining and mixing the heads is linear and adds none.
#
# **Marking scheme.** 0.25 for the softmax; 0.25 for the score product QK^T (both
# factors depend on x); 0.25 for the product of probabilities and values; 0.25 for
# multi-head: the same kinds, applied to num_heads times as many rows. 'Only the
# softmax' with a correct argument for the linear steps: 0.5 in all. 'The number of
# heads' as a count of kinds: no point for the last quarter.
# ### END SOLUTION

# %% [markdown]
# ## 4 Looking at the mask
#
# Three random sequences go through a layer with 4 heads, once without the mask and once
# with it, on the same weights. All three have 7 tokens; there is no padding here. The
# probabilities come back as `[3 * 4, 7, 7]`, so head 0 of sequence `b` is
# `probs[b * 4]`: numbers 0, 4 and 8.
#
# **Before you run this:** with the mask on, what is the first row of each map? Does hiding the
# upper triangle change the numbers below it?

# %%
torch.manual_seed(2)
num_heads = 4
x = 3 * torch.randn(3, 7, 11)  # [3, 7, 11]
layer = MultiHeadSelfAttention(input_size=11, hidden=20, num_heads=num_heads)
with torch.no_grad():
    _, probs_open = layer(x, return_attention=True)  # [3, 7, 20], [12, 7, 7]
    layer.causal = True
    _, probs_causal = layer(x, return_attention=True)  # [3, 7, 20], [12, 7, 7]

fig, axes = plt.subplots(2, 3, figsize=(8.5, 5.6), layout="constrained")
for row, (probs, name) in enumerate([(probs_open, "no mask"), (probs_causal, "causal")]):
    for item in range(3):
        ax = axes[row, item]
        image = ax.imshow(probs[item * num_heads], vmin=0, vmax=1, cmap="viridis")
        ax.set_title(f"sequence {item}, head 0, {name}", fontsize=9)
        ax.set(xlabel="key", ylabel="query")
fig.colorbar(image, ax=axes, label="attention probability", shrink=0.8)
show(
    fig,
    "Six attention maps of 7 by 7: three sequences without a mask in the upper row, with the "
    "causal mask in the lower row, where everything above the diagonal is exactly zero.",
)

torch.set_printoptions(precision=3, sci_mode=False)
print("sequence 2, head 0, no mask:\n", probs_open[2 * num_heads])
print("sequence 2, head 0, causal:\n", probs_causal[2 * num_heads])

# %% [markdown]
# **Figure.** Attention maps of head 0 for three sequences of 7 tokens; above without a
# mask, below with the causal mask. In the lower row everything right of the diagonal is
# exactly 0, and the first row is a single 1.
#
# Read a map row by row: row $i$ says how query $i$ shares out its attention, and sums
# to 1. With the mask on, the share of the hidden keys does not vanish: it goes to the
# keys that are left, in proportion. So the numbers on and below
# the diagonal grow, in all rows but the last.
#
# ### A trap in the plot
#
# (Skip this if you come from lesson 03, section 11.)
#
# `probs` are probabilities already. Somebody in a hurry writes
# `plt.imshow(torch.softmax(probs[0], dim=-1))`, and the picture still looks like something:

# %%
true = probs_causal[2 * num_heads]  # [7, 7]
twice = torch.softmax(true, dim=-1)  # [7, 7]
pictures = [
    ("probs: right", true, 1.0),
    ("softmax of it, colours by default", twice, None),
    ("softmax of it, colours from 0 to 1", twice, 1.0),
]
fig, axes = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
for ax, (name, picture, top) in zip(axes, pictures, strict=True):
    image = ax.imshow(picture, vmin=0 if top else None, vmax=top, cmap="viridis")
    ax.set_title(name, fontsize=9)
    ax.set(xlabel="key", ylabel="query")
    fig.colorbar(image, ax=ax)
show(
    fig,
    "The causal attention map from 0 to 1; a softmax of it, which with stretched colours looks "
    "nearly the same though its values run from 0.11 to 0.31; and with equal colours, all dim.",
)
print(f"row 0, true:  {true[0, 0]:.4f} for itself, {true[0, 1]:.4f} for each hidden key")
print(f"row 0, twice: {twice[0, 0]:.4f} for itself, {twice[0, 1]:.4f} for each hidden key")

# %% [markdown]
# **Figure.** The map as it is (left), and after a second softmax: with the colours that
# `imshow` picks by itself it looks nearly right (middle); with colours from 0 to 1 it
# is all dim (right).
#
# `imshow` stretches its colours over whatever range it is given, so only the numbers at
# the colour bar give the mistake away.
#
# The first token looks at itself with probability 1. The second picture says 0.3118,
# and claims that each of six keys it cannot see gets 0.1147: $e^1/(e^1 + 6e^0)$ and
# $e^0/(e^1 + 6e^0)$. Half of the masked map then seems to be "full of small
# probabilities" that do not exist. When a masked map has no zeros, look for a second
# softmax.
#
# ### Q5 (1 point)
#
# Take one of the three sequences as your example and explain, with numbers from its maps, what
# happens when causal masking is off, and when it is on. Why does a language model need it?

# %% [markdown] question="q5" points=1
# ### BEGIN SOLUTION
# Take sequence 2, head 0.
#
# **Mask off.** Every query uses every key, the later ones too. Token 0 gives 0.635 to
# token 2, 0.224 to token 5 and only 0.050 to itself: it looks mostly into its future.
# The rows sum to 1.
#
# **Mask on.** Query $i$ uses the keys 0 to $i$, **itself included**; all others are
# exactly 0. Token 0 has only itself left and gives itself 1.000. Token 3 had 0.748 for
# itself, 0.076 for token 1 and 0.174 in all for the later tokens 4, 5 and 6. That share
# is hidden now, and the rest is divided by what remains: 0.748 / 0.826 = 0.906 and
# 0.076 / 0.826 = 0.092. So the ratios among the visible keys are unchanged and the row
# still sums to 1. The last row, of token 6, is the same in both maps: it has no future.
#
# **Why.** A language model is trained to predict token $i + 1$ from tokens 0 to $i$, at
# all places at once. Could token $i$ look at token $i + 1$, it would copy the answer,
# and learn nothing for the day on which the answer is not there yet. Nothing computed
# at place $i$ may depend on later tokens: that is the autoregressive property.
#
# **Marking scheme.** 0.25 for: without the mask every query may use every key, with an
# example. 0.25 for: with the mask query i uses keys 0 to i, itself included, and the
# rest are exactly 0; token 0 looks only at itself. 0.25 for: rows still sum to 1, the
# rest is shared out in proportion. 0.25 for the reason: the next token must be
# predicted without seeing it. Numbers read from a map that went through a second
# softmax (all between 0.11 and 0.32): at most 0.5. Calling a probability a score: no
# deduction.
# ### END SOLUTION

# %% [markdown]
# ## 5 Your report card
#
# What the checks say about your classes at this moment, task by task. (Marks are given on fresh
# numbers, and style, shape comments and your answers are looked at too.)

# %%
from autograder import passes

POINTS = {
    "self_attention.init": 1,
    "self_attention.forward": 3,
    "multi_head.scores": 3,
    "multi_head.mask": 1,
    "multi_head.output": 2,
}

now = {task: passes(task) for task in POINTS}  # None where marks are given: no check runs there
if None in now.values():
    print("The report card is drawn in your own notebook, where the checks run.")
else:
    earned = {task: points if now[task] else 0 for task, points in POINTS.items()}
    fig, ax = plt.subplots(figsize=(7, 2.4))
    names = list(POINTS)[::-1]
    ax.barh(names, [POINTS[n] for n in names], color="lightgrey", label="possible")
    ax.barh(names, [earned[n] for n in names], color="tab:green", label="earned")
    ax.set_xlabel("points")
    ax.set_title(f"{sum(earned.values())} of {sum(POINTS.values())} points for code")
    ax.legend(loc="lower right")
    said = ", ".join(f"{task} {earned[task]} of {POINTS[task]}" for task in POINTS)
    show(fig, f"Report card: {said}.")

# %% [markdown]
# **Figure.** Your points by task: what is possible in grey, what your code earns now in green.
#
# ## Did it stick?
#
# **1.** `x` is `[4, 6, 10]` and `hidden` is 15. What is the shape of the scores with one
# head?
# <details><summary>Answer</summary><code>[4, 6, 6]</code>: one row a query, one column a key;
# <code>hidden</code> has been summed over.</details>
#
# **2.** And of the returned probabilities with 5 heads?
# <details><summary>Answer</summary><code>[20, 6, 6]</code>: batch times heads in front.</details>
#
# **3.** `att.reshape(bs, seq, hidden)` straight from `[bs, num_heads, seq, head_size]`
# runs and has the right shape. What is wrong with it?
# <details><summary>Answer</summary>It pours the numbers head by head into token slots: a
# token gets features of other tokens. Transpose first, to <code>[bs, seq, num_heads,
# head_size]</code>.</details>
#
# **4.** With `diagonal=0` in `triu`, the causal output is `nan`. In which rows, and why?
# <details><summary>Answer</summary>In row 0 of each sequence. Its only key is hidden, so
# all its scores are $-\infty$, and the softmax divides 0 by 0. The later rows are finite
# and wrong: they may not see themselves.</details>
#
# **5.** Does attention cost more multiplications with 8 heads than with 1 of the same
# total width?
# <details><summary>Answer</summary>No. Each head multiplies vectors of an eighth of the
# size: 8 × 1/8. (The softmax does run over eight times as many rows.)</details>
#
# **Further reading.** Vaswani et al. 2017, "Attention Is All You Need", section 3.2: both classes
# on two pages. Alammar, "The Illustrated Transformer": the same in pictures. Rush et al., "The
# Annotated Transformer": the same in code. Raschka, *Build a Large Language Model (From
# Scratch)*, chapter 3: four variants, step by step. Phuong and Hutter 2022, "Formal Algorithms
# for Transformers": every shape, without a picture.
#
# **What comes next.** In [lesson 06](../06_backward_by_hand/06_backward_by_hand.ipynb) you will
# prove that your code is right without being told the answers: gradients by hand, and equality with PyTorch's own attention. Terms:
# [causal mask](../../docs/glossary.md#causal-mask),
# [head](../../docs/glossary.md#head),
# [attention weights](../../docs/glossary.md#attention-weights),
# [scores](../../docs/glossary.md#scores).
