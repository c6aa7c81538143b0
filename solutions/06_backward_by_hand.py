# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · Is it right? Backward by hand
#
# Until now a check told you whether your code was right. Outside of a course there is no
# check. There is only you, a function you have just written, and the suspicion that it is
# a little wrong in a way that still runs. This lesson is about how to find out. The best
# example is the half of attention that nobody sees: the **backward pass**, which `autograd`
# has written for you so far. You will write it yourself, prove it without being told the
# answers, and at the end hold your attention against three that other people wrote.
#
# **After this lesson you can**
#
# * write the gradient of every step of attention, and get its shape right without thinking;
# * say what the softmax's derivative does, and why nobody builds its Jacobian;
# * take a gradient back through dropout, a mask, several heads, and a tensor used three times;
# * test any gradient with finite differences, and choose the step;
# * hold a layer against PyTorch's and GPT-2's own, and know where their conventions differ.
#
# | | |
# |---|---|
# | Time | 120 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●●○ |
#
# Ten exercises, twelve points. The solutions come with the whole course, in
# `solutions/06_backward_by_hand.ipynb`. Stuck? `hint("backward.values", 1)` gives a nudge,
# `2` a push, `3` nearly the answer.

# %% role="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.figures import show

# %%
hint("backward.values", 1)

# %% [markdown]
# ## 1. Forwards, once more, slowly
#
# Here is one attention head on one sentence: six tokens, four features, and a loss, which is
# any single number made of the output. We keep every tensor on the way, and ask PyTorch to
# keep its gradient too.

# %%
torch.set_printoptions(precision=4, sci_mode=False)
torch.manual_seed(6)
seq_len, head_size = 6, 4
q, k, v = (torch.randn(1, seq_len, head_size, dtype=torch.float64) for _ in range(3))
# each [batch_size, seq_len, head_size]
q = 2 * q  # [batch_size, seq_len, head_size]; louder questions, sharper attention
target = torch.randn(1, seq_len, head_size, dtype=torch.float64)  # the same shape

q.requires_grad_(), k.requires_grad_(), v.requires_grad_()
scores = q @ k.transpose(-2, -1) / math.sqrt(head_size)  # [batch_size, seq_len, seq_len]
probs = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
out = probs @ v  # [batch_size, seq_len, head_size]
loss = ((out - target) ** 2).sum() / 2  # []
for tensor in (scores, probs, out):
    tensor.retain_grad()
loss.backward()
steps = {"q": q, "k": k, "scores": scores, "probs": probs, "v": v, "out": out}
for name, tensor in steps.items():
    print(f"{name:6} {list(tensor.shape)}   its gradient {list(tensor.grad.shape)}")

# %% [markdown]
# **A gradient has the shape of what it is the gradient of.** It says, for each number in a
# tensor, how fast the loss grows if that one number grows. This is the first test of any
# backward pass and it costs nothing; many mistakes with gradients die here.
#
# Going backwards follows three rules, and there is no fourth:
#
# 1. *A product.* If $C = AB$ and $\bar C$ is the gradient of the loss by $C$, then
#    $\bar A = \bar C B^{\mathsf T}$ and $\bar B = A^{\mathsf T} \bar C$. Where all sizes
#    differ there is only one way in which the shapes fit, and it is the right one.
# 2. *One number to one number.* The gradient is multiplied by the slope of the step. So a factor
#    on the way forward is the **same** factor on the way back. Not its inverse: a gradient does
#    not undo anything.
# 3. *Used more than once.* The gradients of all uses are **added**.

# %%
places = {
    "q": (0, 2), "k": (0, 0.7), "scores": (1.25, 1.35), "probs": (2.5, 1.35), "v": (2.5, 0),
    "out": (3.75, 0.7), "loss": (4.8, 0.7),
}
arrows = [("q", "scores"), ("k", "scores"), ("scores", "probs"), ("probs", "out"), ("v", "out"),
          ("out", "loss")]
figure, axis = plt.subplots(figsize=(10, 3.6))
for start, end in arrows:
    (x0, y0), (x1, y1) = places[start], places[end]
    for shift, colour, ends in ((0.06, "tab:blue", "->"), (-0.06, "tab:red", "<-")):
        axis.annotate("", (x1 - 0.36, y1 + shift), (x0 + 0.36, y0 + shift),
                      arrowprops={"arrowstyle": ends, "color": colour})
for name, (px, py) in places.items():
    if name == "loss":
        words = f"loss\n{loss.item():.2f}"
    else:
        words = f"{name} {list(steps[name].shape[1:])}\n|grad| {steps[name].grad.norm():.2f}"
    axis.text(px, py, words, ha="center", va="center", fontsize=10, color="black",
              bbox={"boxstyle": "round", "facecolor": "whitesmoke", "edgecolor": "grey"})
axis.set(xlim=(-0.6, 5.2), ylim=(-0.4, 2.4))
axis.axis("off")
show(figure, "The steps of attention as boxes with the shape of each tensor and the size of its "
     "gradient. Blue arrows lead from q and k to scores, probs, out and loss, with v joining "
     "at out; red arrows lead back along every one of them.")

# %% [markdown]
# **Figure.** Blue is the way forward, red the way back. Each box names a tensor of the cell
# above, its shape without the batch, and the length of its gradient. Gradients enter at the
# right. What the red arrows do at each box is the whole of this lesson, and we walk them
# from right to left.
#
# ## 2. The values
#
# `out = probs @ v` is a product, so rule 1 says what happens. It is still worth saying in
# words. Value $j$ went into output $i$ with weight $P_{ij}$. So when the loss asks output $i$
# to change, value $j$ is asked too, $P_{ij}$ times as loudly, and it hears all the queries:
#
# $$\bar v_j = \sum_i P_{ij} \, \bar o_i$$
#
# The forward pass sums over the *keys*, along a row of $P$. This one sums over the *queries*,
# down a column. $P$ is square here, so if you sum over the wrong axis nothing complains.
#
# ### Exercise 1: back to the values
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="backward.values"
def grad_values(probs, grad_out):
    """The gradient by the values, where out = probs @ v.

    Args:
        probs: FloatTensor[batch_size, seq_len, seq_len]
        grad_out: FloatTensor[batch_size, seq_len, head_size], the gradient by out
    Returns:
        FloatTensor[batch_size, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    return probs.transpose(-2, -1) @ grad_out  # [batch_size, seq_len, head_size]
    ### END SOLUTION


# %% check="backward.values" points=1
check("backward.values")

# %% [markdown]
# Autograd is a second opinion that was written by others. From here on we compare after each
# step.

# %%
def compare(name, mine, theirs):
    """Prints the largest difference of two tensors."""
    print(f"{name:12} differs by at most {(mine - theirs).abs().max().item():.0e}")


with torch.no_grad():
    compare("grad v", grad_values(probs, out.grad), v.grad)

# %% [markdown]
# Exactly equal, for both do the same product. Where two programs add the same numbers in
# another order, some $10^{-16}$ is what is left of "equal" in float64. (In float32 it would be
# some $10^{-7}$.)
#
# ## 3. The softmax
#
# The other side of the product is quick: $\bar P = \bar o \, v^{\mathsf T}$. Then comes the
# only step of attention that is not one of the three at a stroke. (In single steps it is: an
# exponential, a sum, a division. On paper it is shorter in one.) A softmax
# ties a row together: raise one score, and its own probability rises while **all others
# fall**, for they must share 1. Lesson 02 has its Jacobian:
#
# $$\frac{\partial p_i}{\partial s_j} = p_i (\delta_{ij} - p_j)$$
#
# For a row of $n$ keys that is an $n \times n$ matrix: for 1,000 keys a million numbers, for
# each query. Nobody builds it. The matrix is only ever *multiplied* with a gradient, and that
# sum can be done on paper:
#
# $$\bar s_j = \sum_i \bar p_i \, p_i (\delta_{ij} - p_j)
#   = p_j \, \bar p_j - p_j \sum_i p_i \, \bar p_i
#   = p_j \Big( \bar p_j - \sum_i p_i \, \bar p_i \Big)$$
#
# Read it aloud: a score's gradient is its probability times *how much better than average* this
# key is, where the average is the one that the attention itself takes.
#
# **Before you run this:** what does each row of the gradient by the scores sum to?

# %%
print("row sums of the scores' gradient:", scores.grad[0].sum(dim=-1).abs().max().item() < 1e-12)
print("a row of it:", scores.grad[0, 0])

# %% [markdown]
# To zero (the `True` says that no row's sum is larger than $10^{-12}$). Adding the same number
# to all scores of a row changes no probability, so the loss must not feel it. Remember this
# zero; it comes back in section 6.
#
# ### Exercise 2: back through the softmax
#
# ●●●○○ · 12 minutes · 2 points
#
# No Jacobian: the check looks at the size of every tensor that your code makes.

# %% exercise="backward.softmax"
def softmax_backward(probs, grad_probs):
    """The gradient by the scores, where probs = softmax(scores, dim=-1).

    Args:
        probs: FloatTensor[batch_size, q_len, k_len]
        grad_probs: FloatTensor[batch_size, q_len, k_len], the gradient by probs
    Returns:
        FloatTensor[batch_size, q_len, k_len]; nothing larger is made on the way
    """
    ### BEGIN SOLUTION
    average = (probs * grad_probs).sum(dim=-1, keepdim=True)  # [batch_size, q_len, 1]
    return probs * (grad_probs - average)  # [batch_size, q_len, k_len]
    ### END SOLUTION


# %% check="backward.softmax" points=2
check("backward.softmax")

# %%
with torch.no_grad():
    grad_probs = out.grad @ v.transpose(-2, -1)  # [batch_size, seq_len, seq_len]
    grad_scores = softmax_backward(probs, grad_probs)  # [batch_size, seq_len, seq_len]
    compare("grad probs", grad_probs, probs.grad)
    compare("grad scores", grad_scores, scores.grad)
    average = (probs * grad_probs).sum(dim=-1)  # [batch_size, seq_len]
    compare("the average", average, (out.grad * out).sum(dim=-1))

# %% [markdown]
# The last line deserves a second look. The average of $\bar p$ over a row needs all the keys
# of that row. But $\sum_j P_{ij} \bar P_{ij} = \sum_j P_{ij} \, (\bar o_i \cdot v_j) =
# \bar o_i \cdot \sum_j P_{ij} v_j = \bar o_i \cdot o_i$: the same number, from two rows that are
# at hand anyway. Whoever computes attention in small tiles and never has a whole row of
# $P$ can still go backwards. That is FlashAttention's trick, and lesson 07 uses it.
#
# What does a gradient of scores look like?

# %%
pictures = {
    "P": probs[0].detach(), "gradient of P": grad_probs[0], "gradient of the scores": grad_scores[0],
}  # each [seq_len, seq_len]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for axis, (name, picture) in zip(axes, pictures.items(), strict=True):
    limit = 1 if name == "P" else picture.abs().max().item()
    colours = {"cmap": "viridis", "vmin": 0} if name == "P" else {"cmap": "RdBu_r", "vmin": -limit}
    image = axis.imshow(picture, vmax=limit, **colours)
    figure.colorbar(image, ax=axis, shrink=0.8)
    axis.set(title=name, xlabel="key", xticks=range(6), yticks=range(6))
axes[0].set_ylabel("query")
show(figure, "Three 6 by 6 maps: the probabilities; their gradient, which does not care "
     "for them; and the gradient of the scores, near zero wherever the probability is.")

# %%
share = probs[0].detach().flatten().sort(descending=True)
size = grad_scores[0].abs().flatten()[share.indices]
print(f"gradient in the 9 cells of the highest probability: {size[:9].sum() / size.sum():.0%}")
print(f"gradient in the 9 cells of the lowest probability:  {size[-9:].sum() / size.sum():.0%}")

# %% [markdown]
# **Figure.** The gradient of $P$ (middle) has opinions about every cell. The gradient of the
# scores (right) has one only where there is some probability (left): the brightest quarter of the
# cells carries 54 % of it, the darkest quarter 4 %. And in each row red and blue cancel. What
# gets no attention learns nothing: this is how a saturated softmax stops
# learning, and the reason for the scale of lesson 02.
#
# ## 4. Queries and keys
#
# $S = Q K^{\mathsf T} / \sqrt{d_k}$. Rule 1 twice, rule 2 once.
#
# **Before you run this:** the scores were *divided* by $\sqrt{d_k} = 2$. Is the gradient by $q$
# divided by 2, multiplied by 2, or left alone?

# %%
with torch.no_grad():
    unscaled = grad_scores @ k  # [batch_size, seq_len, head_size]
    print("autograd's / unscaled:", (q.grad / unscaled)[0, 0])

# %% [markdown]
# Divided. (Rule 2: the same factor, not the inverse.)
#
# ### Exercise 3: back to queries and keys
#
# ●●●○○ · 9 minutes · 1 point

# %% exercise="backward.queries_keys"
def grad_queries_keys(grad_scores, q, k):
    """The gradients by q and k, where scores = q @ k^T / sqrt(head_size).

    Args:
        grad_scores: FloatTensor[batch_size, seq_len, seq_len], the gradient by the scores
        q: FloatTensor[batch_size, seq_len, head_size]
        k: FloatTensor[batch_size, seq_len, head_size]
    Returns:
        grad_q: FloatTensor[batch_size, seq_len, head_size]
        grad_k: FloatTensor[batch_size, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    scaled = grad_scores / math.sqrt(k.shape[-1])  # [batch_size, seq_len, seq_len]
    grad_q = scaled @ k  # [batch_size, seq_len, head_size]
    grad_k = scaled.transpose(-2, -1) @ q  # [batch_size, seq_len, head_size]
    return grad_q, grad_k
    ### END SOLUTION


# %% check="backward.queries_keys" points=1
check("backward.queries_keys")

# %%
with torch.no_grad():
    grad_q, grad_k = grad_queries_keys(grad_scores, q, k)
    compare("grad q", grad_q, q.grad)
    compare("grad k", grad_k, k.grad)

# %% [markdown]
# ## 5. Dropout and the mask
#
# Lesson 03 put two more steps into the chain: a mask before the softmax and dropout after it.
#
# *Dropout* multiplies each probability by 0 or by $1/(1-p)$. Rule 2: so does the way back,
# with the **very same** zeros. A mask drawn afresh on the way back would send gradients to
# weights that played no part.
#
# *The mask* overwrites hidden scores with a constant. Whatever stood there before has no say
# in the loss, so its gradient is exactly 0. Mostly this happens by itself, for a hidden key
# has $p = 0$, and $p$ stands in front of the softmax's bracket. Mostly:
#
# **Before you run this:** row 0 sees key 0 only. In row 1 everything is hidden, and the fill is
# `finfo.min`, not $-\infty$. What are the probabilities of row 1, and would a hidden score of
# row 1 get a gradient from the softmax's formula alone?

# %%
hidden = torch.tensor([[False, True, True], [True, True, True]])  # [q_len, k_len]
lowest = torch.finfo(torch.float64).min
some = torch.randn(2, 3, dtype=torch.float64).masked_fill(hidden, lowest)  # [q_len, k_len]
p_rows = torch.softmax(some, dim=-1)  # [q_len, k_len]
print("probabilities:", p_rows, sep="\n")
print("softmax's formula alone:", softmax_backward(p_rows[None], torch.tensor([[[1.0, 2, 4]] * 2]))[0],
      sep="\n")

# %% [markdown]
# A row of which nothing is left spreads its attention evenly over keys that are all hidden, and
# the formula then hands them a gradient. The mask's own step backwards, a `masked_fill` with
# 0, is what stops it.
#
# ### Exercise 4: back through dropout, softmax and mask
#
# ●●●○○ · 12 minutes · 2 points
#
# Forwards it went `scores.masked_fill(hidden, lowest)`, softmax (`probs` is its result, before
# dropout), dropout. Use your `softmax_backward`.

# %% exercise="backward.mask_dropout" needs="backward.softmax"
def mask_dropout_backward(grad_dropped, probs, hidden, dropped, p):
    """The gradient by the scores, from before the mask.

    Args:
        grad_dropped: FloatTensor[batch_size, seq_len, seq_len], the gradient by what dropout
            gave
        probs: FloatTensor[batch_size, seq_len, seq_len], the softmax's result, before dropout
        hidden: BoolTensor[batch_size, seq_len, seq_len], True where a score was hidden
        dropped: BoolTensor[batch_size, seq_len, seq_len], True where a weight was dropped
        p: float, the probability of being dropped; below 1
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    grad_probs = grad_dropped.masked_fill(dropped, 0.0) / (1 - p)
    # [batch_size, seq_len, seq_len] -> the same
    before_mask = softmax_backward(probs, grad_probs)  # [batch_size, seq_len, seq_len]
    return before_mask.masked_fill(hidden, 0.0)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="backward.mask_dropout" points=2
check("backward.mask_dropout")

# %% [markdown]
# ## 6. A layer, and a bias that never learns
#
# Queries, keys and values come out of linear layers, $y = x W^{\mathsf T} + b$. Rule 1 gives
# the gradients by $x$ and $W$. And rule 3 for the first time: one weight and one bias
# serve **every token of every sequence**. All those uses are added up.
#
# ### Exercise 5: back through a linear layer
#
# ●●○○○ · 7 minutes · 1 point

# %% exercise="backward.linear"
def linear_backward(grad_y, x, weight):
    """The gradients of a linear layer, where y = x @ weight.T + bias.

    Args:
        grad_y: FloatTensor[batch_size, seq_len, outputs], the gradient by y
        x: FloatTensor[batch_size, seq_len, inputs]
        weight: FloatTensor[outputs, inputs]
    Returns:
        grad_x: FloatTensor[batch_size, seq_len, inputs]
        grad_weight: FloatTensor[outputs, inputs]
        grad_bias: FloatTensor[outputs]
    """
    ### BEGIN SOLUTION
    grad_x = grad_y @ weight  # [batch_size, seq_len, inputs]
    grad_weight = grad_y.flatten(0, 1).T @ x.flatten(0, 1)  # [outputs, inputs]
    grad_bias = grad_y.sum(dim=(0, 1))  # [outputs]
    return grad_x, grad_weight, grad_bias
    ### END SOLUTION


# %% check="backward.linear" points=1
check("backward.linear")

# %% [markdown]
# Now the bias of the *keys*. Suppose $k = x W_K^{\mathsf T} + b_K$.
#
# **Before you run this:** how large is the gradient by $b_K$?

# %%
torch.manual_seed(7)
x = torch.randn(1, seq_len, 5, dtype=torch.float64)  # [batch_size, seq_len, input_size]
layers = {name: nn.Linear(5, head_size).double() for name in "qkv"}
made = {name: layer(x) for name, layer in layers.items()}  # each [batch_size, seq_len, head_size]
result = F.scaled_dot_product_attention(made["q"], made["k"], made["v"])
# [batch_size, seq_len, head_size]
((result - target) ** 2).sum().backward()
for name, layer in layers.items():
    size = layer.bias.grad.abs().max().item()
    print(f"largest gradient of the bias of {name}: {size:.3f}, below 1e-12: {size < 1e-12}")

# %% [markdown]
# Nothing but rounding. The gradient by $b_K$ is the sum of all keys' gradients, and
#
# $$\sum_j \bar k_j = \sum_j \sum_i \bar s_{ij} \, q_i / \sqrt{d_k}
#   = \sum_i \Big( \sum_j \bar s_{ij} \Big) q_i / \sqrt{d_k} = 0 ,$$
#
# for each row of the scores' gradient sums to zero: the zero from section 3. A bias of the keys
# adds the same number $q_i \cdot b_K$ to all scores of row $i$, and the softmax does not
# notice. So $b_K$ never learns anything, whatever the loss, in any model that makes its scores
# like this. (RoPE, in lesson 08, turns each key by its place, and its bias with it: there $b_K$
# counts.) GPT-2 has one in every layer all the same. (And if your own backward pass gives $b_K$ a gradient that is not zero, you
# know that something is wrong, without any reference to compare with. Such *invariants* are
# the cheapest tests there are.)
#
# ## 7. Heads, and a tensor used three times
#
# One thing remains. `x` went into three layers. By rule 3 its gradient is the *sum* of what
# comes back through queries, keys and values. And with several heads those three
# gradients arrive as `[batch_size, num_heads, seq_len, head_size]`, as the heads were split in
# lesson 04. Going back through a split is a merge: `transpose` first, then `reshape`.
#
# ### Exercise 6: all paths back to x
#
# ●●●●○ · 12 minutes · 1 point

# %% exercise="backward.paths"
def grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v):
    """The gradient by x, where q, k and v are x @ w.T, split into heads.

    Args:
        grad_q, grad_k, grad_v: FloatTensor[batch_size, num_heads, seq_len, head_size]
        w_q, w_k, w_v: FloatTensor[hidden, input_size], with hidden = num_heads * head_size
    Returns:
        FloatTensor[batch_size, seq_len, input_size]
    """
    ### BEGIN SOLUTION
    grad_x = 0
    for grad, w in ((grad_q, w_q), (grad_k, w_k), (grad_v, w_v)):
        merged = grad.transpose(1, 2).flatten(2)  # [batch_size, seq_len, hidden]
        grad_x = grad_x + merged @ w  # [batch_size, seq_len, input_size]
    return grad_x
    ### END SOLUTION


# %% check="backward.paths" points=1
check("backward.paths")

# %% [markdown]
# Put together, your six functions are the whole backward pass of multi-head attention with a
# causal mask. Here it is, and autograd beside it. All of your functions think of
# `[batch_size, seq_len, ...]`; heads are one more batch axis, so we fold them into it.

# %%
torch.manual_seed(8)
batch_size, num_heads, input_size = 2, 3, 5
hidden_size = num_heads * head_size
x = torch.randn(batch_size, seq_len, input_size, dtype=torch.float64, requires_grad=True)
w = [torch.randn(hidden_size, input_size, dtype=torch.float64, requires_grad=True) for _ in "qkv"]
grad_out = torch.randn(batch_size * num_heads, seq_len, head_size, dtype=torch.float64)
future = torch.ones(seq_len, seq_len).triu(1).bool().expand(batch_size * num_heads, -1, -1)


def to_heads(y):
    """[batch_size, seq_len, hidden] -> [batch_size * num_heads, seq_len, head_size]"""
    return y.unflatten(-1, (num_heads, head_size)).transpose(1, 2).flatten(0, 1)


def from_heads(heads):
    """[batch_size * num_heads, seq_len, head_size] -> [batch_size, num_heads, seq_len, head_size]"""
    return heads.unflatten(0, (batch_size, num_heads))


q, k, v = (to_heads(x @ each.T) for each in w)  # 3 x [batch_size * num_heads, seq_len, head_size]
scores = (q @ k.mT / math.sqrt(head_size)).masked_fill(future, lowest)
probs = torch.softmax(scores, dim=-1)  # [batch_size * num_heads, seq_len, seq_len]
(probs @ v * grad_out).sum().backward()

with torch.no_grad():
    grad_v = grad_values(probs, grad_out)
    nothing = torch.zeros_like(future)  # no weight was dropped
    grad_scores = mask_dropout_backward(grad_out @ v.mT, probs, future, nothing, 0.0)
    grad_q, grad_k = grad_queries_keys(grad_scores, q, k)
    grads = [from_heads(g) for g in (grad_q, grad_k, grad_v)]
    compare("grad x", grad_input(*grads, *w), x.grad)
    for name, grad, each in zip("qkv", grads, w, strict=True):
        merged = grad.transpose(1, 2).flatten(2)  # [batch_size, seq_len, hidden]
        compare(f"grad w_{name}", linear_backward(merged, x, each)[1], each.grad)

# %% [markdown]
# You have written what autograd does. It does nothing else.
#
# ## 8. A proof without a reference
#
# Suppose there were no autograd to compare with. A derivative is a slope, and a slope can be
# measured: move one number a little, and see what the loss does. To one side,
#
# $$\frac{f(x + \varepsilon) - f(x)}{\varepsilon} = f'(x) + \tfrac{\varepsilon}{2} f''(x) + \dots ,
#   \qquad
#   \frac{f(x + \varepsilon) - f(x - \varepsilon)}{2 \varepsilon} = f'(x) + \tfrac{\varepsilon^2}{6} f'''(x) + \dots$$
#
# and to both sides, where the errors of even order cancel. A step to both sides costs one call
# more and is far better. It needs no understanding of the function at all, which is what makes
# it a proof.
#
# ### Exercise 7: the numeric gradient
#
# ●●○○○ · 9 minutes · 1 point
#
# Whatever dtype comes in, work in float64. (The figure below says why.)

# %% exercise="backward.numeric"
def numeric_gradient(f, x, epsilon):
    """The gradient of f at x by differences to both sides, in float64.

    Args:
        f: function of a FloatTensor of x's shape, gives a FloatTensor[]
        x: FloatTensor of any shape and float dtype; not changed
        epsilon: float, how far each entry is moved, up and down
    Returns:
        DoubleTensor of x's shape
    """
    ### BEGIN SOLUTION
    x = x.double()
    grad = torch.zeros_like(x)
    for i in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[i] = epsilon
        grad.view(-1)[i] = (f(x + step) - f(x - step)) / (2 * epsilon)
    return grad
    ### END SOLUTION


# %% check="backward.numeric" points=1
check("backward.numeric")

# %% [markdown]
# How small should the step be? Calculus says: as small as possible.
#
# **Before you run this:** draw the error against $\varepsilon$ from $10^{0}$ to $10^{-13}$ in
# your head. Does it fall all the way?

# %%
torch.manual_seed(9)
one_q, one_k, one_v, weight = (torch.randn(4, 3, dtype=torch.float64) for _ in range(4))
# each [seq_len, head_size]


def f(t):
    """A loss: attention with the queries t, weighted and summed, in t's own dtype."""
    probs = torch.softmax(t @ one_k.to(t).T / math.sqrt(3), dim=-1)  # [seq_len, seq_len]
    return (probs @ one_v.to(t) * weight.to(t)).sum()  # []


def measured(t, epsilon, both_sides=True):
    """As numeric_gradient, but in t's own dtype, and to one side if asked."""
    grad = torch.zeros_like(t)
    for i in range(t.numel()):
        step = torch.zeros_like(t)
        step.view(-1)[i] = epsilon
        below, width = (f(t - step), 2 * epsilon) if both_sides else (f(t), epsilon)
        grad.view(-1)[i] = (f(t + step) - below) / width
    return grad


start = one_q.clone().requires_grad_()
f(start).backward()
truth = start.grad  # [seq_len, head_size]
epsilons = [10**-e for e in torch.arange(0, 13.01, 0.5).tolist()]
kinds = {
    "both sides, float64": (torch.float64, True, "o-"),
    "one side, float64": (torch.float64, False, "s--"),
    "both sides, float32": (torch.float32, True, "^:"),
}
figure, axis = plt.subplots(figsize=(7.5, 4.2))
for name, (dtype, both, style) in kinds.items():
    errors = [
        (measured(one_q.to(dtype), e, both).double() - truth).abs().max().item() for e in epsilons
    ]
    axis.loglog(epsilons, errors, style, label=name, markersize=4)
    best = min(range(len(errors)), key=errors.__getitem__)
    print(f"{name}: best at epsilon {epsilons[best]:.0e}, error {errors[best]:.0e}; "
          f"at 1e-06 it is {errors[12]:.0e}")
axis.invert_xaxis()
axis.set(xlabel="epsilon (smaller to the right)", ylabel="largest error of the gradient")
axis.legend()
show(figure, "Error of the numeric gradient against the step, both on logarithmic axes. Each of "
     "the three curves falls at first and then rises again, a V; both sides in float64 "
     "reaches lowest, one side is higher, float32 is highest.")

# %% [markdown]
# **Figure.** A V, three times. On the left the formula is to blame: the step is too coarse, and
# a step to both sides falls twice as steeply as one to one side. On the right the computer is:
# $f(x + \varepsilon)$ and $f(x - \varepsilon)$ agree in nearly all of their digits, subtraction
# leaves the few that differ, and those are noise, which is then divided by a tiny number.
# float32 has seven digits to begin with, so its V is the highest and its best step, $10^{-2}$, the
# coarsest; at $10^{-6}$, where float64 still has nine right digits, it is wrong in the first. The
# rule of thumb: both sides, float64, $\varepsilon \approx 10^{-5}$ or $10^{-6}$.
#
# PyTorch has this as a tool. `torch.autograd.gradcheck` compares the gradient of a function
# with differences to both sides, and insists on float64. To have something of our own to
# check, we make your backward pass into an operation that autograd can use:

# %%
class ByHand(torch.autograd.Function):
    """The softmax, with the backward pass of exercise 2."""

    @staticmethod
    def forward(ctx, scores):
        probs = torch.softmax(scores, dim=-1)  # [batch_size, q_len, k_len]
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx, grad_probs):
        return softmax_backward(ctx.saved_tensors[0], grad_probs)  # [batch_size, q_len, k_len]


class Forgetful(ByHand):
    """The same, without the row's term."""

    @staticmethod
    def backward(ctx, grad_probs):
        return ctx.saved_tensors[0] * grad_probs  # [batch_size, q_len, k_len]


tried = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
print("yours:    ", torch.autograd.gradcheck(ByHand.apply, tried))
print("forgetful:", torch.autograd.gradcheck(Forgetful.apply, tried, raise_exception=False))

# %% [markdown]
# ## 9. Equal to whom?
#
# The other half of "is it right?" is the forward pass. The proof there is equality with code
# that others wrote and thousands use, given the same weights. The mathematics is one; the
# *conventions* are not, and nearly every failed comparison is one of these:
#
# | | mask: True means | weight of a layer | scale | heads in the result |
# |---|---|---|---|---|
# | this course | hidden | `[out, in]` (`nn.Linear`) | written out | each |
# | `F.scaled_dot_product_attention` | **may look** | has none | does it itself | has none |
# | `nn.MultiheadAttention` | hidden | `[out, in]`, q, k, v in one | does it itself | **mean of all**, by default |
# | GPT-2 in `transformers` | **added**: 0 or hugely negative | **`[in, out]`** (`Conv1D`), q, k, v in one | does it itself | each |
#
# PyTorch's two attentions disagree with *each other* about masks, and a GPT-2 layer wants a third
# kind, from the model around it. There is no way to guess; there is a table, and a test.
#
# ### Exercise 8: PyTorch's function
#
# ●●●○○ · 7 minutes · 1 point

# %% exercise="equal.sdpa"
def library_attention(q, k, v, hidden):
    """Attention by F.scaled_dot_product_attention, with a mask of ours.

    Args:
        q, k, v: FloatTensor[batch_size, num_heads, seq_len, head_size], not scaled
        hidden: BoolTensor[seq_len, seq_len], True where a key is hidden
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden)
    # [batch_size, num_heads, seq_len, head_size]
    ### END SOLUTION


# %% check="equal.sdpa" points=1
check("equal.sdpa")

# %% [markdown]
# ### Exercise 9: PyTorch's module
#
# ●●●●○ · 10 minutes · 1 point
#
# Make an `nn.MultiheadAttention`, put the weights of *our* layers into it, and get the output
# together with one attention map for **each** head. Its state_dict shows where things go:

# %%
for name, tensor in nn.MultiheadAttention(12, 3, batch_first=True).state_dict().items():
    print(f"{name:16} {list(tensor.shape)}")

# %% exercise="equal.mha"
def run_mha(x, weights, num_heads, hidden):
    """Self-attention by nn.MultiheadAttention with the weights of our layers.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden_size]
        weights: dict with "q.weight", "k.weight", "v.weight", "mix.weight", each
            FloatTensor[hidden_size, hidden_size], and "q.bias", "k.bias", "v.bias",
            "mix.bias", each FloatTensor[hidden_size]
        num_heads: int
        hidden: BoolTensor[seq_len, seq_len], True where a key is hidden
    Returns:
        output: FloatTensor[batch_size, seq_len, hidden_size]
        probs: FloatTensor[batch_size, num_heads, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    mha = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first=True, dtype=x.dtype)
    in_weight = torch.cat([weights[f"{name}.weight"] for name in "qkv"])
    # [3 * hidden_size, hidden_size]
    in_bias = torch.cat([weights[f"{name}.bias"] for name in "qkv"])  # [3 * hidden_size]
    mha.load_state_dict({
        "in_proj_weight": in_weight,
        "in_proj_bias": in_bias,
        "out_proj.weight": weights["mix.weight"],
        "out_proj.bias": weights["mix.bias"],
    })
    return mha(x, x, x, attn_mask=hidden, average_attn_weights=False)
    ### END SOLUTION


# %% check="equal.mha" points=1
check("equal.mha")

# %% [markdown]
# ### Exercise 10: a layer of GPT-2
#
# ●●●●○ · 10 minutes · 1 point
#
# Now the other way round: *their* weights, your code. GPT-2 has one layer `c_attn` for q, k and
# v, and `c_proj` for the mix. Both are a `Conv1D`, which computes `x @ weight + bias`: its weight
# is `[in, out]`. For `c_attn` a wrong transpose does not fit, and you are told. `c_proj` is square.

# %% exercise="equal.gpt2"
def gpt2_attention(x, state, num_heads):
    """Causal self-attention with the weights of a GPT-2 layer.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden]
        state: dict with "c_attn.weight": FloatTensor[hidden, 3 * hidden], "c_attn.bias":
            FloatTensor[3 * hidden], "c_proj.weight": FloatTensor[hidden, hidden],
            "c_proj.bias": FloatTensor[hidden]
        num_heads: int
    Returns:
        FloatTensor[batch_size, seq_len, hidden]
    """
    ### BEGIN SOLUTION
    seq_len = x.shape[1]
    fused = x @ state["c_attn.weight"] + state["c_attn.bias"]  # [batch_size, seq_len, 3 * hidden]
    q, k, v = (
        part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in fused.chunk(3, dim=-1)
    )  # each [batch_size, num_heads, seq_len, head_size]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    # [batch_size, num_heads, seq_len, seq_len]
    future = torch.ones(seq_len, seq_len, device=x.device).triu(1).bool()  # [seq_len, seq_len]
    probs = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
    # [batch_size, num_heads, seq_len, seq_len]
    merged = (probs @ v).transpose(1, 2).flatten(2)  # [batch_size, seq_len, hidden]
    return merged @ state["c_proj.weight"] + state["c_proj.bias"]  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="equal.gpt2" points=1
check("equal.gpt2")

# %% [markdown]
# The proof: the first layer of a GPT-2 that has been trained (the small one on board; lesson 09
# opens it), on a real sentence, through its own code and through yours.
#
# **Before you run this:** the layer is called once with the mask that the model would hand it, and
# once alone. Is GPT-2's attention causal by itself?

# %%
from transformer_lm.pretrained import load_gpt2

model, tokenizer = load_gpt2("small-on-board")
block = model.transformer.h[0]
ids = tokenizer("The proof of the pudding is in the eating.", return_tensors="pt").input_ids
# [batch_size, seq_len]
with torch.no_grad():
    x = block.ln_1(model(ids, output_hidden_states=True).hidden_states[0])
    # [batch_size, seq_len, hidden]
    future = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()  # [seq_len, seq_len]
    mask = torch.zeros(future.shape).masked_fill(future, torch.finfo(x.dtype).min)[None, None]
    # [1, 1, seq_len, seq_len]
    theirs = block.attn(x, attention_mask=mask)[0]  # [batch_size, seq_len, hidden]
    alone = block.attn(x)[0]  # [batch_size, seq_len, hidden]
    state = block.attn.state_dict()
    mine = gpt2_attention(x, state, model.config.n_head)  # [batch_size, seq_len, hidden]
    wrong = {**state, "c_proj.weight": state["c_proj.weight"].T}
    turned = gpt2_attention(x, wrong, model.config.n_head)  # [batch_size, seq_len, hidden]
print("shape:", list(theirs.shape), "  largest value:", f"{theirs.abs().max():.1f}")
print(f"yours differs by at most      {(mine - theirs).abs().max():.0e}")
print(f"theirs, called without a mask {(alone - theirs).abs().max():.1f}")
print(f"yours, c_proj transposed      {(turned - theirs).abs().max():.1f}")

# %% [markdown]
# That was float32 all the way, so a difference in the seventh digit is equality. Called alone, the
# layer looks into the future: the model makes the mask once and hands it to all layers, and who
# takes a layer out must bring one along. And a transposed `c_proj` has the right shape, the right
# dtype, no error, and nothing else right.
#
# ## Did it stick?
#
# **1.** A gradient has the wrong shape. What do you know about the values?
# <details><summary>Answer</summary>That they are wrong as well: a gradient has the shape of
# what it belongs to.</details>
#
# **2.** Why does nobody build the softmax's Jacobian?
# <details><summary>Answer</summary>It has k_len numbers for each probability, and it is only ever
# multiplied with a gradient. That product is p * (g - sum(p * g)).</details>
#
# **3.** Your backward pass gives the keys' bias a gradient of 0.3. Is that a bug?
# <details><summary>Answer</summary>Yes. Each row of the scores' gradient sums to 0, so the
# gradient by the keys' bias is 0 up to rounding, for scores that are made as in this lesson.</details>
#
# **4.** Your numeric gradient agrees with autograd in two digits only, and gets *worse* when you
# take a smaller step. What is the likely cause?
# <details><summary>Answer</summary>float32: the right arm of the V. Work in float64.</details>
#
# **5.** You replace `nn.MultiheadAttention` by `F.scaled_dot_product_attention` and hand on the
# same bool mask. What happens?
# <details><summary>Answer</summary>The mask is turned around: True means hidden for the one and
# may look for the other. A causal mask then shows only the future.</details>
#
# ## What comes next
#
# It is right. Now it may become fast:
# [lesson 07](../07_make_it_fast/07_make_it_fast.ipynb) counts what attention costs, and takes most
# of it away without changing a number.
#
# Words from this lesson in the glossary: [backward pass](../../docs/glossary.md#backward-pass),
# [autograd](../../docs/glossary.md#autograd), [gradient](../../docs/glossary.md#gradient),
# [Jacobian](../../docs/glossary.md#jacobian), [gradcheck](../../docs/glossary.md#gradcheck),
# [softmax](../../docs/glossary.md#softmax).
