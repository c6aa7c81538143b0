# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · Queries, keys, values, and the scale
#
# In the last lesson attention had nothing to learn. A token was compared with the
# others *as it stood*, so it could only ever find tokens that look like itself. That
# is a poor librarian: ask for a book about whales and you get back your own request
# slip. In this lesson the token gets three roles, each with a matrix of its own, and
# attention becomes something that can be trained. Then we find the one place where
# training would break, and mend it with a square root.
#
# **After this lesson you can**
#
# * say what queries, keys and values are for, and make them with one product each;
# * predict how large a dot product is before you compute it;
# * derive the Jacobian of the softmax and read from it why large scores stop learning;
# * explain what dividing by $\sqrt{d_k}$ repairs, and what it does not;
# * move weights between `nn.Parameter` and `nn.Linear` without losing a transpose;
# * write a whole attention head, for a batch, in three lines.
#
# | | |
# |---|---|
# | Time | 80 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●● |
#
# Nine exercises, twelve points. The worked solutions come with the whole course, in
# `solutions/02_queries_keys_values.ipynb`; look at them after an attempt of your own.
# Stuck? Each exercise has three hints: 1 is a nudge, 2 a push, 3 nearly the answer.
# They look like this:

# %% role="setup"
import ast
import inspect
import math
import textwrap

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm import plots
from transformer_lm.figures import show

torch.set_printoptions(sci_mode=False)

# %%
hint("one_head.project", 1)

# %% [markdown]
# ## 1. One token, three roles
#
# Think of a library with a card catalogue. You come with a **query**: "something
# about whales". Every book has a **key**, the words on its index card. You compare
# your query with the keys, never with the books. What you carry home, though, is the
# **value**: the book's content. Three things, and there is no reason why the card
# should look like your question, or the book like its card.
#
# In attention nothing is looked up by equality. Every key is compared with the query,
# every comparison gets a score, and you take home a *blend* of all the books, most of
# it from those whose keys fit best. That is the difference between a dictionary and a
# soft dictionary.
#
# In **self**-attention the same token plays all three parts. It asks (query), it
# answers for itself (key), and it has something to say (value). Three matrices cut
# three different vectors out of the same input $x_i$:
#
# $$q_i = x_i W_q, \qquad k_i = x_i W_k, \qquad v_i = x_i W_v .$$
#
# Here are our six tokens again, three features each. The projections go from
# `input_size = 3` to `hidden = 2`: the two sizes need not agree. In a GPT they
# usually do; we keep them apart so that a mix-up shows.

# %%
words = ["Your", "journey", "starts", "with", "one", "step"]
x = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)  # [seq_len, input_size]
input_size, hidden = 3, 2

torch.manual_seed(123)
w_query = torch.rand(input_size, hidden)  # [input_size, hidden]
w_key = torch.rand(input_size, hidden)  # [input_size, hidden]
w_value = torch.rand(input_size, hidden)  # [input_size, hidden]

print("query of 'journey':", x[1] @ w_query)
print("key of 'journey':  ", x[1] @ w_key)
print("value of 'journey':", x[1] @ w_value)

# %% [markdown]
# Three different vectors from one token. (These matrices are plain tensors, so
# nothing here can learn. That is for the demonstration only; section 5 puts it right.)
#
# ### Exercise 1: all tokens at once
#
# ●○○○○ · 4 minutes · 1 point
#
# A row of `x` is a token. One product projects all of them. Return queries, keys and
# values, **in this order**.

# %% exercise="one_head.project"
def project(x, w_query, w_key, w_value):
    """Makes the queries, keys and values of all tokens.

    Args:
        x: FloatTensor[seq_len, input_size]
        w_query, w_key, w_value: FloatTensor[input_size, hidden]
    Returns:
        three FloatTensor[seq_len, hidden]: queries, keys, values
    """
    ### BEGIN SOLUTION
    queries = x @ w_query  # [seq_len, hidden]
    keys = x @ w_key  # [seq_len, hidden]
    values = x @ w_value  # [seq_len, hidden]
    return queries, keys, values
    ### END SOLUTION


# %% check="one_head.project" points=1
check("one_head.project")

# %% [markdown]
# The rest is the recipe of lesson 01 with the new roles: compare the query of
# "journey" with all keys, turn the scores into weights, blend the values. There is one
# addition, a division by $\sqrt{2}$. Take it on trust for a moment; half of this
# lesson is about it.
#
# **Before you run this:** "journey" and "starts" are almost the same vector. What do
# you expect of their weights?

# %%
queries, keys, values = project(x, w_query, w_key, w_value)
scores = queries[1] @ keys.T  # [seq_len]
weights = torch.softmax(scores / math.sqrt(hidden), dim=-1)  # [seq_len]
context = weights @ values  # [hidden]

for word, score, weight in zip(words, scores, weights, strict=True):
    print(f"{word:8} score {score:.4f}   weight {weight:.4f}")
print("context vector of 'journey':", context)
print("all scores, a row a query:")
print(queries @ keys.T)

# %% [markdown]
# Similar tokens get similar keys, so "journey" and "starts" are looked at alike
# (.2264 and .2199). And the table of all scores is no longer symmetric, as it was when
# tokens were compared as they stood: how much "journey" asks of "one" (row 1, column 4) says
# nothing about how much "one" asks of "journey" (row 4, column 1).
#
# Here is the whole way in one picture. The sizes in it are those of the tensors you just made.

# %%
def size(tensor):
    return str(list(tensor.shape))


boxes = {
    "x": (0, 1, f"tokens x\n{size(x)}"),
    "q": (2.9, 2, f"queries\n{size(queries)}"),
    "k": (2.9, 1, f"keys\n{size(keys)}"),
    "v": (2.9, 0, f"values\n{size(values)}"),
    "scores": (5.8, 1.5, f"scores\n{size(queries @ keys.T)}"),
    "weights": (8.7, 1.5, "weights\nrows sum to 1"),
    "context": (11.6, 0.75, f"context\n{size(queries @ keys.T @ values)}"),
}
arrows = [
    ("x", "q", "$W_q$"), ("x", "k", "$W_k$"), ("x", "v", "$W_v$"), ("q", "scores"),
    ("k", "scores", "$QK^T$"), ("scores", "weights", "scale,\nsoftmax"), ("weights", "context"),
    ("v", "context", "weights @ values"),
]
show(plots.flow(boxes, arrows, colours={"q": 0, "k": 1, "v": 2}),
     "Data flow of one head. The tokens go through three matrices to queries, keys and values. "
     "Queries and keys meet in the scores; scale and softmax make weights of them; the weights "
     "blend the values into the context vectors.")

# %% [markdown]
# **Figure.** One head. Queries and keys decide *where* to look, and meet in the scores. Values
# say *what* is taken home; they go round the softmax and are blended at the end.
#
# ## 2. How large is a dot product?
#
# A score is a dot product, a sum of `hidden` products. You often read: "more
# dimensions, larger dot product". Is that so? Let us guess first, then count.
#
# **Before you run this:** queries and keys are independent random vectors with mean 0
# and variance 1. What is the *average* score for 16 features? For 1024?

# %%
torch.manual_seed(0)
for size in (16, 64, 256, 1024):
    q = torch.randn(10_000, size)  # [pairs, hidden]
    k = torch.randn(10_000, size)  # [pairs, hidden]
    products = (q * k).sum(dim=-1)  # [pairs]
    print(f"hidden {size:4}: mean {products.mean():6.2f}   std {products.std():6.2f}")

# %% [markdown]
# The average stays at zero (up to noise). What grows is the **spread**. Positive and
# negative products cancel, but not perfectly, like the steps of a drunk who ends up
# some distance from the pub although he favours no direction.
#
# Here is the count. Let the features be independent, with mean 0 and standard
# deviations $\sigma_q$ and $\sigma_k$. Then for one product
#
# $$\mathbb{E}[q_j k_j] = \mathbb{E}[q_j]\,\mathbb{E}[k_j] = 0, \qquad
# \operatorname{Var}(q_j k_j) = \mathbb{E}[q_j^2 k_j^2] - 0
# = \mathbb{E}[q_j^2]\,\mathbb{E}[k_j^2] = \sigma_q^2 \sigma_k^2 .$$
#
# Variances of independent terms add. There are $d_k$ terms ($d_k$ is the size of a key,
# our `hidden`), so
#
# $$\operatorname{Var}(q \cdot k) = d_k\, \sigma_q^2 \sigma_k^2, \qquad
# \operatorname{std}(q \cdot k) = \sqrt{d_k}\; \sigma_q \sigma_k .$$
#
# So: mean 0, variance $d_k$, typical size $\sqrt{d_k}$. Double the size and scores do not
# double; their standard deviation grows by $\sqrt 2 \approx 1.41$.
#
# ### Exercise 2: measure and predict
#
# ●●○○○ · 7 minutes · 1 point
#
# Row $i$ of `q` and row $i$ of `k` make pair $i$. Return two numbers: the variance of
# the pairs' dot products, measured, and the one that theory predicts.

# %% exercise="one_head.variance"
def score_variance(q, k, sigma_q, sigma_k):
    """The variance of the dot products q_i . k_i, measured and predicted.

    Args:
        q, k: FloatTensor[pairs, hidden], independent, with mean 0
        sigma_q, sigma_k: float, the standard deviations of one feature of q and of k
    Returns:
        measured: a number, the variance over the pairs
        predicted: a number, from hidden, sigma_q and sigma_k alone
    """
    ### BEGIN SOLUTION
    products = (q * k).sum(dim=-1)  # [pairs]
    measured = products.var()  # []
    predicted = q.shape[-1] * sigma_q**2 * sigma_k**2
    return measured, predicted
    ### END SOLUTION


# %% check="one_head.variance" points=1
check("one_head.variance")

# %%
sizes = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
torch.manual_seed(1)
measured, predicted = [], []
for size in sizes:
    q, k = torch.randn(2, 4000, size)  # two times [pairs, hidden]
    found, theory = score_variance(q, k, 1.0, 1.0)
    measured.append(float(found) ** 0.5)
    predicted.append(theory**0.5)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
left.loglog(sizes, predicted, color="tab:orange", label=r"theory, $\sqrt{h}$")
left.loglog(sizes, measured, "o", color="tab:blue", label="measured")
left.set(xlabel="hidden size h", ylabel="standard deviation of the scores")
left.set_xticks(sizes[::2], sizes[::2])
left.set_yticks([2, 4, 8, 16, 32], [2, 4, 8, 16, 32])
left.minorticks_off()
left.legend()
for size in (16, 256):
    q, k = torch.randn(2, 4000, size)  # two times [pairs, hidden]
    scores = (q * k).sum(dim=-1)  # [pairs]
    right.hist(
        scores.numpy(), bins=64, range=(-64, 64), density=True, alpha=0.6,
        label=f"h = {size}",
    )
right.axvline(0, color="black", linewidth=0.8)
right.set(xlabel="score", ylabel="density")
right.legend()
figure.tight_layout()
show(figure, "Left: the measured spread of scores lies on the line sqrt(h) from h=4 to "
     "h=1024. Right: histograms of scores for h=16 and h=256, both centred at 0, the "
     "second four times as wide.")

# %% [markdown]
# **Figure.** Left, the standard deviation of the scores against the hidden size on
# logarithmic axes: the measured dots sit on the line $\sqrt h$. Right, the scores for
# $h = 16$ and $h = 256$: both centred at 0, the second four times as wide.
#
# ## 3. What a wide spread does to the softmax
#
# The softmax only sees *differences* of scores, and it takes their exponential. Two
# scores that differ by 1 get weights in the ratio $e \approx 2.7$. Two that differ by
# 16 get a ratio of almost nine million. With 64 features a score has a standard
# deviation of 8, and the difference of two scores one of $8\sqrt 2 \approx 11$; so 16 is
# nothing special.
#
# **Before you run this:** four scores, stretched by factors 1, 4 and 16. What becomes
# of the weights?

# %%
scores = torch.tensor([1.0, 0.5, 0.0, -1.0])  # [seq_len]
for stretch in (1, 4, 16):
    print(f"times {stretch:2}:", torch.softmax(stretch * scores, dim=-1))

# %% [markdown]
# A blend has turned into a choice: nearly *one-hot*. One could live with that, if the
# model had learned to choose. But at the start of training the scores are random, so
# this is a firm choice of a random token. Worse: it is a choice that can hardly be
# changed. To see why, we need the derivative.
#
# (Skip this if you have derived the softmax's Jacobian before; the result is $J$ below.)
#
# Write $p = \operatorname{softmax}(s)$, that is $p_i = e^{s_i} / Z$ with
# $Z = \sum_j e^{s_j}$. Then $\partial Z / \partial s_j = e^{s_j}$, and by the quotient rule
#
# $$\frac{\partial p_i}{\partial s_j}
# = \frac{[i = j]\, e^{s_i} Z - e^{s_i} e^{s_j}}{Z^2}
# = [i = j]\, p_i - p_i\, p_j .$$
#
# As a matrix, $J = \operatorname{diag}(p) - p\,p^{\mathsf T}$. The diagonal holds
# $p_i (1 - p_i)$: raise a token's own score and it gains. Everything else is negative:
# what one gains, the others lose. Each row sums to 0, since the weights always sum
# to 1.
#
# Now put in a one-hot $p$. Every $p_i$ is 0 or 1, so every $p_i(1-p_i)$ is 0 and every
# $p_i p_j$ is 0. **The whole Jacobian is zero.** Whatever the loss has to say about the
# weights, none of it arrives at the scores, and nothing reaches $W_q$ and $W_k$ behind
# them. That is what *saturated* means.
#
# ### Exercise 3: the Jacobian
#
# ●●●○○ · 10 minutes · 2 points
#
# It should also survive scores around 300. (Why would $e^{300}$ be a problem? Lesson 01
# knows.)

# %% exercise="one_head.jacobian"
def softmax_jacobian(scores):
    """The derivatives of softmax(scores): entry (i, j) is d p_i / d scores_j.

    Args:
        scores: FloatTensor[seq_len]
    Returns:
        FloatTensor[seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    p = torch.softmax(scores, dim=-1)  # [seq_len]
    return torch.diag(p) - torch.outer(p, p)  # [seq_len, seq_len]
    ### END SOLUTION


# %% check="one_head.jacobian" points=2
check("one_head.jacobian")

# %% [markdown]
# Autograd can compute the same matrix without our algebra. Do they agree? And what is
# left of it when we stretch the scores?

# %%
by_autograd = torch.autograd.functional.jacobian(
    lambda s: torch.softmax(s, dim=-1), scores
)  # [seq_len, seq_len]
largest = (softmax_jacobian(scores) - by_autograd).abs().max()
print(f"largest difference to autograd: {largest:.0e}")
for stretch in (1, 4, 16):
    size = softmax_jacobian(stretch * scores).norm()
    print(f"times {stretch:2}: norm of the Jacobian {size:.4f}")

# %% [markdown]
# ## 4. The scale
#
# The disease is a spread that grows like $\sqrt{d_k}$. The cure is to divide by it:
#
# $$\operatorname{Attention}(Q, K, V)
# = \operatorname{softmax}\!\left(\frac{Q K^{\mathsf T}}{\sqrt{d_k}}\right) V .$$
#
# Dividing by $\sqrt{d_k}$ divides the variance by $d_k$, so scores have variance 1,
# whatever the size. Not by $d_k$: that would shrink the spread to $1/\sqrt{d_k}$, and
# for a large size all weights would be the same. And *before* the softmax: dividing
# the weights afterwards only makes rows that sum to $1/\sqrt{d_k}$, and leaves them as
# one-hot as they were.
#
# ### Exercise 4: scaled weights
#
# ●●○○○ · 4 minutes · 1 point

# %% exercise="one_head.scale"
def attention_weights(q, k):
    """softmax(q k^T / sqrt(hidden)) for one sequence; each row sums to 1.

    Args:
        q, k: FloatTensor[seq_len, hidden]
    Returns:
        FloatTensor[seq_len, seq_len], one row a query
    """
    ### BEGIN SOLUTION
    scores = q @ k.T / k.shape[-1] ** 0.5  # [seq_len, seq_len]
    return torch.softmax(scores, dim=-1)  # [seq_len, seq_len]
    ### END SOLUTION


# %% check="one_head.scale" points=1
check("one_head.scale")

# %% [markdown]
# Now the experiment that this lesson is about. Random queries look at 64 random keys,
# with and without the scale. We measure two things for each size:
#
# * the **entropy** of the weights, $-\sum_i p_i \ln p_i$, in nats. It is 0 when one key
#   takes everything and $\ln 64 \approx 4.16$ when all get the same;
# * the **norm of the Jacobian**, that is, how much gradient comes through.
#
# **Before you run this:** sketch both curves, with and without the scale. Four lines.

# %%
def look(scores):
    """Mean entropy in nats, and mean norm of the softmax Jacobian, over the rows."""
    p = torch.softmax(scores, dim=-1)  # [queries, keys]
    entropy = torch.special.entr(p).sum(dim=-1)  # [queries]
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    # [queries, keys, keys] - [queries, keys, 1] * [queries, 1, keys]
    # -> [queries, keys, keys]
    norm = jacobian.flatten(1).norm(dim=-1)  # [queries]
    return entropy.mean().item(), norm.mean().item()


torch.manual_seed(2)
sizes = [16, 32, 64, 128, 256, 512, 1024]
raw, scaled = [], []
for size in sizes:
    q = torch.randn(1000, 1, size)  # [queries, 1, hidden]
    k = torch.randn(1000, 64, size)  # [queries, keys, hidden]
    scores = (q * k).sum(dim=-1)  # [queries, keys]
    raw.append(look(scores))
    scaled.append(look(scores / math.sqrt(size)))
    print(f"hidden {size:4}: entropy {raw[-1][0]:.2f} -> {scaled[-1][0]:.2f} scaled,"
          f"   Jacobian {raw[-1][1]:.3f} -> {scaled[-1][1]:.3f} scaled")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
for part, axis in enumerate(axes):
    axis.semilogx(sizes, [r[part] for r in raw], "o-", label="not scaled")
    axis.semilogx(sizes, [s[part] for s in scaled], "s-", label=r"divided by $\sqrt{h}$")
    axis.set(xlabel="hidden size h", xticks=sizes)
    axis.set_xticklabels(sizes)
    axis.minorticks_off()
axes[0].set_ylim(0, 4.5)
axes[1].set_ylim(bottom=0)
axes[0].axhline(math.log(64), color="grey", linestyle=":", label="uniform, ln 64")
axes[0].set_ylabel("mean entropy over 64 keys (nats)")
axes[1].set_ylabel("mean norm of the softmax Jacobian")
axes[0].legend(loc="center right")
axes[1].legend()
figure.tight_layout()
show(figure, "Left: without the scale the entropy of the weights falls towards 0 as h "
     "grows; with it, it stays near 3.7. Right: the norm of the Jacobian falls without "
     "the scale and stays flat with it.")

# %% [markdown]
# **Figure.** Without the scale, both curves sink as $h$ grows: the weights become a
# choice, and the gradient dries up. With the scale, both are flat: entropy near 3.7
# nats, Jacobian near 0.18, at every size.
#
# Read the right panel with care. Up to $h = 64$ the unscaled Jacobian is *larger* than the
# scaled one: a moderately focused softmax passes more gradient than a spread-out one.
# The scale does not make gradients large. It makes them **independent of the size**, so
# that a wide head starts training in the same regime as a narrow one.
#
# It is also worth knowing what to put under the root. "GPT has more than a thousand
# dimensions" is true of some GPTs and beside the point: the dot product runs over the
# size of **one head**, which is 64 in every GPT-2, small or XL. Lesson 04 cuts heads.
#
# > **Keep these curves in mind.** Lesson 05 asks you in words: what happens to the
# > softmax when $h$ becomes $2h$ (Q1), and what does dividing by $\sqrt h$ change (Q2)?
# > The mean of the scores, their variance, the entropy, the Jacobian: you have seen
# > all that you need.
#
# ## 5. Matrices that learn
#
# A `nn.Module` must know which of its tensors are to be trained. It keeps a list, and
# the way onto the list is `nn.Parameter`. A plain tensor works just as well in
# `forward`, and will never be moved by any optimiser. Nothing complains.
#
# **Before you run this:** how many parameters does each of these two report?

# %%
class Forgetful(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.randn(3, 2)  # [input_size, hidden]


class Learning(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 2))  # [input_size, hidden]


for module in (Forgetful(), Learning()):
    print(type(module).__name__, [name for name, _ in module.named_parameters()])

# %% [markdown]
# ### Exercise 5: attention with parameters
#
# ●●○○○ · 7 minutes · 1 point
#
# For one sequence, without a batch. Draw the three matrices at random, `[input_size,
# hidden]` each, from a normal distribution divided by the square root of `input_size`.
# (Why normal? See below.)

# %% exercise="one_head.parameters"
class ParameterAttention(nn.Module):
    """One head for one sequence, with the matrices w_query, w_key and w_value."""

    def __init__(self, input_size, hidden):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
        """
        super().__init__()
        ### BEGIN SOLUTION
        spread = input_size**-0.5
        size = (input_size, hidden)
        self.w_query = nn.Parameter(torch.randn(size) * spread)  # [input_size, hidden]
        self.w_key = nn.Parameter(torch.randn(size) * spread)  # [input_size, hidden]
        self.w_value = nn.Parameter(torch.randn(size) * spread)  # [input_size, hidden]
        ### END SOLUTION

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V

        Args:
            x: FloatTensor[seq_len, input_size]
        Returns:
            FloatTensor[seq_len, hidden]
        """
        ### BEGIN SOLUTION
        q = x @ self.w_query  # [seq_len, hidden]
        k = x @ self.w_key  # [seq_len, hidden]
        v = x @ self.w_value  # [seq_len, hidden]
        scores = q @ k.T / k.shape[-1] ** 0.5  # [seq_len, seq_len]
        return torch.softmax(scores, dim=-1) @ v  # [seq_len, hidden]
        ### END SOLUTION


# %% check="one_head.parameters" points=1
check("one_head.parameters")

# %% [markdown]
# With the three matrices of section 1 it must give, in row 1, the context vector of
# "journey" that we computed by hand.

# %%
head = ParameterAttention(input_size, hidden)
with torch.no_grad():
    head.w_query.copy_(w_query)
    head.w_key.copy_(w_key)
    head.w_value.copy_(w_value)
print(head(x))

# %% [markdown]
# ### A fair start
#
# In section 1 the matrices came from `torch.rand`: numbers between 0 and 1, all
# **positive**, one half on average. For six small tokens that is harmless. For a real
# input it is not. Every feature of a query then holds the same large part (half the sum
# of the token's features), so the terms of a dot product no longer cancel. `nn.Linear`
# draws from an interval around 0 that shrinks with the input size.
#
# **Before you run this:** 10 tokens of 256 features. How large will the largest weight
# of a row be, on average, with each start?

# %%
torch.manual_seed(3)
tokens = torch.randn(10, 256)  # [seq_len, input_size]


def starts():
    """Two ways to draw a matrix [input_size, hidden]."""
    linear = nn.Linear(256, 64, bias=False)
    return {"torch.rand": torch.rand(256, 64), "nn.Linear": linear.weight.detach().T}


first, second = starts(), starts()
for name in first:
    q = tokens @ first[name]  # [seq_len, hidden]
    k = tokens @ second[name]  # [seq_len, hidden]
    scores = q @ k.T / math.sqrt(64)  # [seq_len, seq_len]
    top = torch.softmax(scores, dim=-1).max(dim=-1).values  # [seq_len]
    print(f"{name:10}  std of scores {scores.std():7.2f}   largest weight {top.mean():.2f}")

# %% [markdown]
# With `torch.rand` each row is one-hot before training has begun, scale or no scale: the
# scale assumes features of mean 0, and these are not. So when someone shows you that
# `nn.Linear` "trains better" than `nn.Parameter(torch.rand(...))`, the layer deserves
# none of the credit. The starting values do.
#
# ## 6. From layers to parameters
#
# In practice everybody uses `nn.Linear`. It does the same product, plus a bias, with a
# sensible start. With one surprise.
#
# **Before you run this:** what is the shape of `nn.Linear(3, 2).weight`?

# %%
torch.manual_seed(789)
layers = nn.ModuleDict(
    {name: nn.Linear(input_size, hidden, bias=False) for name in ("q", "k", "v")}
)
for name, weight in layers.state_dict().items():
    print(name, list(weight.shape))

# %% [markdown]
# `[2, 3]`: **[hidden, input_size]**, the other way round than our matrices. A layer
# computes $x W^{\mathsf T} + b$ and stores $W$. (When you write a shape comment beside
# `nn.Linear(3, 2)`, remember that a layer has no shape; its weight has one, and it is
# this one. GPT-2's own layers store the opposite, as lesson 09 will show.)
#
# ### Exercise 6: transfer
#
# ●●○○○ · 6 minutes · 1 point
#
# Turn the `state_dict` of such layers into the one that `ParameterAttention` loads. Our
# bare matrices have no bias; so if there is one, do not lose it silently. Raise a
# `ValueError` that says so.

# %% exercise="one_head.transfer"
def transfer(state):
    """From the weights of three `nn.Linear` layers to three bare matrices.

    Args:
        state: dict with "q.weight", "k.weight", "v.weight", FloatTensor[hidden,
            input_size] each, and perhaps "q.bias", "k.bias", "v.bias"
    Returns:
        dict with "w_query", "w_key", "w_value", FloatTensor[input_size, hidden] each
    Raises:
        ValueError: where the layers have a bias
    """
    ### BEGIN SOLUTION
    biases = [name for name in state if name.endswith(".bias")]
    if biases:
        raise ValueError(f"bare matrices have no place for {', '.join(biases)}")
    return {
        "w_query": state["q.weight"].T.clone(),  # [input_size, hidden]
        "w_key": state["k.weight"].T.clone(),  # [input_size, hidden]
        "w_value": state["v.weight"].T.clone(),  # [input_size, hidden]
    }
    ### END SOLUTION


# %% check="one_head.transfer" points=1
check("one_head.transfer")

# %%
with torch.no_grad():
    q, k, v = (layers[name](x) for name in ("q", "k", "v"))  # 3 x [seq_len, hidden]
    with_layers = attention_weights(q, k) @ v  # [seq_len, hidden]
    head.load_state_dict(transfer(layers.state_dict()))
    with_matrices = head(x)  # [seq_len, hidden]
print(with_layers)
print("equal:", torch.allclose(with_layers, with_matrices, rtol=0, atol=1e-6))

# %% [markdown]
# Two modules, one function. A detail of the model answer: `.T` alone gives a *view* of
# the layer's memory, so training one would quietly move the other. `.clone()` cuts the
# cord.
#
# ## 7. A batch
#
# Everything so far took one sequence. Models take many at once, `[batch_size, seq_len,
# hidden]`, and this is where working code stops working, in two ways: loudly and
# quietly.
#
# **Before you run this:** `dim=1` was the last dimension as long as there were two.
# Which sums are 1 now?

# %%
torch.manual_seed(4)
batch = torch.randn(2, 3, 4)  # [batch_size, seq_len, hidden]
scores = batch @ batch.transpose(-2, -1) / 2  # [batch_size, seq_len, seq_len]
probs = torch.softmax(scores, dim=1)  # [batch_size, seq_len, seq_len]
print("sums of the rows:   ", probs.sum(dim=-1)[0])
print("sums of the columns:", probs.sum(dim=-2)[0])

# %% [markdown]
# Quietly wrong: the columns sum to 1 instead of the rows, so the *queries* compete for
# each key. The loud one is `.T`, which turns all dimensions round (batch to the back) and
# is deprecated for anything but matrices. The remedy for both is one habit: **count from
# the back**. `transpose(-2, -1)` and `dim=-1` go on being right however many dimensions
# come to stand in front.
#
# ### Exercise 7: attention for a batch
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="one_head.batched"
def batched_attention(q, k, v):
    """softmax(q k^T / sqrt(hidden)) v, for each sequence of a batch on its own.

    Args:
        q, k: FloatTensor[batch_size, seq_len, hidden]
        v: FloatTensor[batch_size, seq_len, value_size]
    Returns:
        FloatTensor[batch_size, seq_len, value_size]
    """
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    # [batch_size, seq_len, hidden] @ [batch_size, hidden, seq_len]
    # -> [batch_size, seq_len, seq_len]
    probs = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    return probs @ v  # [batch_size, seq_len, value_size]
    ### END SOLUTION


# %% check="one_head.batched" points=1
check("one_head.batched")

# %% [markdown]
# ## 8. The head, whole
#
# Now put the pieces together: three `nn.Linear` layers called `q`, `k` and `v` (with
# their biases), and the computation for a batch. Lesson 05 asks for this class again
# under the name `SelfAttention`, with a shape comment on every line, so it pays to
# write them now.
#
# ### Exercise 8: one head
#
# ●●○○○ · 9 minutes · 3 points

# %% exercise="one_head.forward"
class Attention(nn.Module):
    """One head of self-attention over a batch, with the layers q, k and v."""

    def __init__(self, input_size, hidden):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        ### END SOLUTION

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V, for each sequence of the batch.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.k(x)  # [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, seq_len, hidden]
        scores = q @ k.transpose(-2, -1)  # [batch_size, seq_len, seq_len]
        scores = scores / k.shape[-1] ** 0.5  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ v  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="one_head.forward" points=3
check("one_head.forward")

# %% [markdown]
# Does a gradient reach everything? One step backwards through our head, and we look at
# what arrives at each parameter.
#
# **Before you run this:** one of the six gets (almost) nothing. Which one, and why?

# %%
torch.manual_seed(5)
attention = Attention(3, 2)
attention(torch.stack([x, x.flip(0)])).square().sum().backward()
for name, parameter in attention.named_parameters():
    print(f"{name:9} {list(parameter.shape)!s:7} gradient {parameter.grad.norm():.1e}")

# %% [markdown]
# The keys' bias. It adds the same $q_i \cdot b_k$ to every score of row $i$, and the
# softmax does not care about what is added to a whole row. It is a parameter that
# cannot do anything; what you see above is rounding. The queries' bias is another
# matter: $b_q \cdot k_j$ differs from key to key.
#
# ## 9. The same in three lines
#
# Once you know what each line does, you may write fewer of them. Rewrite `forward` with
# **at most three lines** of code, and no semicolons. Golf is not a goal in itself, but
# knowing which results need a name is. (Lesson 05 gives a bonus for it.)
#
# ### Exercise 9: three lines
#
# ●●●○○ · 6 minutes · 1 point

# %% exercise="one_head.three_lines" needs="one_head.forward"
class ShortAttention(Attention):
    """The same head, with a forward of at most three lines."""

    def forward(self, x):
        """softmax(Q K^T / sqrt(hidden)) V, for each sequence of the batch.

        Args:
            x: FloatTensor[batch_size, seq_len, input_size]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        k = self.k(x)  # [batch_size, seq_len, hidden]
        scores = self.q(x) @ k.mT / k.shape[-1] ** 0.5  # [batch_size, seq_len, seq_len]
        return F.softmax(scores, dim=-1) @ self.v(x)  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="one_head.three_lines" points=1
check("one_head.three_lines")

# %% [markdown]
# The check looks at values and gradients, and at the lines. This cell counts them for you.

# %%
forward = ast.parse(textwrap.dedent(inspect.getsource(ShortAttention.forward))).body[0]
statements = [s for s in ast.walk(forward) if isinstance(s, ast.stmt)][1:]
if ast.get_docstring(forward):
    statements = statements[1:]
print("statements in forward:", len(statements))

# %% [markdown]
# ## Did it stick?
#
# **1.** Which two of query, key and value must have the same size, and why?
# <details><summary>Answer</summary>Query and key: they meet in a dot product. The value
# may have any size; it sets the size of the output.</details>
#
# **2.** `hidden` goes from 64 to 128 and nothing is scaled. What happens to the mean, the
# variance and the standard deviation of random scores?
# <details><summary>Answer</summary>The mean stays 0. The variance doubles. The standard
# deviation grows by a factor of sqrt(2), so the softmax gets sharper.</details>
#
# **3.** Somebody divides the *weights* by sqrt(hidden) instead of the scores. How do you
# notice?
# <details><summary>Answer</summary>The rows sum to 1/sqrt(hidden) instead of 1, and they
# are as focused as without any scale.</details>
#
# **4.** Your matrices are plain tensors. Training runs without an error. What do you see?
# <details><summary>Answer</summary>A loss that does not improve through them:
# <code>parameters()</code> does not list them, so the optimiser never moves them.</details>
#
# **5.** Why does `transpose(0, 1)` work in section 5 and fail in section 7?
# <details><summary>Answer</summary>Without a batch, 0 and 1 are the tokens and the
# features. With a batch in front they are the batch and the tokens.</details>
#
# ## What comes next
#
# Our head sees the whole sequence, the future included. A model that is to predict the
# next word must not. [Lesson 03](../03_masks_and_dropout/03_masks_and_dropout.ipynb) covers
# its eyes, and finds a surprising number of ways to do that wrong.
#
# Words from this lesson in the glossary: [query, key, value](../../docs/glossary.md#query),
# [scores](../../docs/glossary.md#scores),
# [attention weights](../../docs/glossary.md#attention-weights),
# [head](../../docs/glossary.md#head).
