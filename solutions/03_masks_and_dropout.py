# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Masks and dropout
#
# A language model learns by guessing the next word. Our attention head reads the whole
# sentence, the next word included. That is not a guess; that is copying from the
# answer sheet. In this lesson we take the answer sheet away. It sounds like one line of
# code, and it is; but there are at least ten ways to write that line wrong, nearly all
# of them silent. You will meet each one, and build the test that catches it.
#
# **After this lesson you can**
#
# * hide the future in two ways, and prove that they are the same;
# * test any attention for leaks, without reading its code;
# * choose a fill value that works in every dtype, and say where a NaN came from;
# * mask padding, and survive rows in which nothing is left;
# * keep a mask in a module so that it moves along but is neither learned nor stored;
# * say what dropout does to attention weights, and check it by its statistics;
# * recognise a plot in which the softmax was applied twice.
#
# | | |
# |---|---|
# | Time | 90 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●● |
#
# Eleven exercises, twelve points. The solutions come with the whole course, in
# `solutions/03_masks_and_dropout.ipynb`; they are worth more after an attempt of your
# own. When stuck, ask for a hint first. It looks like this:

# %% role="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.figures import show

# %%
hint("masks.renormalise", 1)

# %% [markdown]
# ## 1. Hiding the future: weights first
#
# The rule is short. **Token $i$ may look at tokens $0$ to $i$.** The past and the present
# are allowed, the future is not. (The present must be: token 0 has nothing else to look
# at.) Attention that keeps this rule is called *causal*, because causes come before
# effects.
#
# We take the six tokens of lesson 02 with three layers as they come from `nn.Linear`,
# and look at the weights without any mask.

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
torch.manual_seed(789)
w_query, w_key, w_value = (nn.Linear(3, 2, bias=False).weight.detach() for _ in range(3))
# each [hidden, input_size]
q, k, v = (x @ w.T for w in (w_query, w_key, w_value))  # 3 x [seq_len, hidden]
scores = q @ k.T / math.sqrt(2)  # [seq_len, seq_len]
torch.set_printoptions(precision=4, sci_mode=False)
print(torch.softmax(scores, dim=-1))

# %% [markdown]
# Row 0 belongs to "Your". It spreads its attention over all six words, five of which
# have not been written yet. `torch.tril` keeps the lower triangle of a matrix, diagonal
# included, and puts zeros strictly **above** the diagonal. So:
#
# **Before you run this:** what will the rows sum to?

# %%
weights = torch.softmax(scores, dim=-1).tril()  # [seq_len, seq_len]
print(weights)
print("row sums:", weights.sum(dim=-1))

# %% [markdown]
# The forbidden weights are gone, but the rows are no longer averages: row 0 kept 19 % of
# its weight. Divide each row by its sum, and it is an average again, over what it may see.
# Mind the words: what we put zeros into are *weights*, after the softmax. The *scores*
# have not been touched, and zeros would do something else to them, as we shall see.
#
# ### Exercise 1: weights first
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="masks.renormalise"
def mask_weights(scores):
    """Causal attention weights: softmax, future set to 0, rows divided by their sums.

    Args:
        scores: FloatTensor[batch_size, seq_len, seq_len], scaled already
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    probs = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    probs = torch.tril(probs)  # [batch_size, seq_len, seq_len]
    return probs / probs.sum(dim=-1, keepdim=True)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.renormalise" points=1
check("masks.renormalise")

# %% [markdown]
# ## 2. Hiding the future: scores first
#
# The other way goes to the root. A weight is 0 if its exponential is 0, and
# $e^{-\infty} = 0$. So set the forbidden *scores* to $-\infty$ and let the softmax do the
# rest. No second division is needed: the softmax only ever adds up what is left.
#
# **Before you run this:** one of these fill values hides nothing. Which one?

# %%
row = torch.tensor([0.2, 0.1, 0.1])  # [seq_len]; only key 0 may be seen
future = torch.tensor([False, True, True])  # [seq_len]
for fill in (-math.inf, 0.0, 1e-9, -1e9):
    probs = torch.softmax(row.masked_fill(future, fill), dim=-1)  # [seq_len]
    print(f"filled with {fill:6}: {probs}")
table = torch.arange(1.0, 17).view(4, 4) / 10  # [seq_len, seq_len], scores of four tokens
later = torch.ones(4, 4).triu(1).bool()  # [seq_len, seq_len]
print("a table of scores, the future hidden:")
print(table.masked_fill(later, -math.inf))

# %% [markdown]
# Zero hides nothing, for $e^0 = 1$; nor does the "tiny number" $10^{-9}$. A score of 0 is
# an ordinary score. It takes a very *low* one.
#
# **Both ways are the same.** Let $A$ be the set of keys that query $i$ may see, and
# $Z = \sum_j e^{s_j}$ the sum over *all* keys. Weights first gives, for $j \in A$,
#
# $$\frac{e^{s_j} / Z}{\sum_{l \in A} e^{s_l} / Z} = \frac{e^{s_j}}{\sum_{l \in A} e^{s_l}} ,$$
#
# because the common denominator $Z$ cancels. The right-hand side is the softmax over $A$
# alone, and that is what scores first gives, since a key outside $A$ adds $e^{-\infty} = 0$
# to the sum. Not almost the same: the same. But $Z$ cancels only if you do divide. Keep
# that in mind for section 3.
#
# Two remarks. Whether you fill before or after dividing by $\sqrt{d_k}$ does not matter:
# $-\infty / \sqrt{d_k} = -\infty$. And make the mask from **positions**, never from the
# scores: a score may be exactly 0 and perfectly legal.
#
# ### Exercise 2: scores first
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="masks.minus_infinity"
def mask_scores(scores):
    """Causal attention weights: future scores set to minus infinity, then the softmax.

    Args:
        scores: FloatTensor[batch_size, seq_len, seq_len], scaled already; not changed
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    seq_len = scores.shape[-1]
    future = torch.ones(seq_len, seq_len, device=scores.device).triu(diagonal=1).bool()
    # [seq_len, seq_len] -> triu [seq_len, seq_len] -> bool [seq_len, seq_len]
    scores = scores.masked_fill(future, -math.inf)  # [batch_size, seq_len, seq_len]
    return torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.minus_infinity" points=1
check("masks.minus_infinity")

# %%
one_way, other_way = mask_weights(scores[None]), mask_scores(scores[None])
print(other_way[0])  # [seq_len, seq_len]
print(f"largest difference of the two: {(one_way - other_way).abs().max():.0e}")

# %% [markdown]
# "Your" now looks at itself alone, with weight 1. "journey" splits its attention in two
# (.5517 and .4483), and only "step" sees everything.
#
# ## 3. A test for leaks
#
# How do you know that a mask works? Not by looking at the weights: some mistakes hide
# elsewhere. There is a test that needs no look inside. **Change one token, and see which
# outputs move.** If an output moves because a *later* token changed, it has seen the future.
#
# ```
#                 changed token j
#                 0  1  2  3
#    output 0     x  .  .  .        x: it moved
#    output 1     x  x  .  .
#    output 2     x  x  x  .        anything above the diagonal is a leak
#    output 3     x  x  x  x
# ```
#
# The helper below changes each token in turn and records all outputs.

# %%
def change_each(attend, x):
    """The outputs of attend(x) after each token was changed, one at a time.

    Args:
        attend: function of FloatTensor[seq_len, input_size]
        x: FloatTensor[seq_len, input_size]
    Returns:
        FloatTensor[seq_len, seq_len, hidden]; entry j is all outputs with token j changed
    """
    results = []
    for j in range(len(x)):
        other = x.clone()  # [seq_len, input_size]
        other[j] += 1.0
        results.append(attend(other))  # [seq_len, hidden]
    return torch.stack(results)  # [seq_len, seq_len, hidden]


# %% [markdown]
# ### Exercise 3: the leak matrix
#
# ●●●○○ · 9 minutes · 1 point
#
# From these records make the table above, and the verdict. Numbers are rounded, so a
# change counts only if it is larger than `tolerance`.

# %% exercise="masks.leak"
def leak_matrix(outputs, changed, tolerance):
    """Which output moves when which token changes, and whether any sees the future.

    Args:
        outputs: FloatTensor[seq_len, hidden], before any change
        changed: FloatTensor[seq_len, seq_len, hidden]; changed[j, i] is output i after
            token j was changed
        tolerance: float; smaller differences are rounding
    Returns:
        moved: BoolTensor[seq_len, seq_len]; moved[i, j] says that some feature of output
            i moved when token j was changed
        leaks: bool, True where some output moved because of a later token
    """
    ### BEGIN SOLUTION
    difference = (changed - outputs).abs()  # [seq_len, seq_len, hidden]
    moved = (difference > tolerance).any(dim=-1).T  # [seq_len, seq_len]
    leaks = moved.triu(diagonal=1).any().item()
    return moved, leaks
    ### END SOLUTION


# %% check="masks.leak" points=1
check("masks.leak")

# %% [markdown]
# Five ways to mask go through the test. Two of them you have written. One does not mask
# at all. One is shifted by one. And one sets the weights above the diagonal to 0 *without*
# dividing again.
#
# **Before you run this:** in that last one every future value is multiplied by exactly 0.
# Does it leak?

# %%
def attend_with(mask):
    """Attention over one sequence whose scores go through `mask`."""

    def attend(x):
        q, k, v = (x @ w.T for w in (w_query, w_key, w_value))  # 3 x [seq_len, hidden]
        scores = q @ k.T / math.sqrt(2)  # [seq_len, seq_len]
        return mask(scores[None])[0] @ v  # [seq_len, hidden]

    return attend


def one_late(scores):
    """The mask starts at the second place right of the diagonal."""
    future = torch.ones(scores.shape[-2:]).triu(2).bool()  # [seq_len, seq_len]
    return scores.masked_fill(future, -math.inf).softmax(-1)


masks = {
    "no mask": lambda s: s.softmax(-1),
    "one step late": one_late,
    "weights set to 0,\nnot renormalised": lambda s: s.softmax(-1).tril(),
    "weights first\n(exercise 1)": mask_weights,
    "scores first\n(exercise 2)": mask_scores,
}
figure, axes = plt.subplots(1, 5, figsize=(12, 3.1))
for axis, (name, mask) in zip(axes, masks.items(), strict=True):
    attend = attend_with(mask)
    moved, leaks = leak_matrix(attend(x), change_each(attend, x), 1e-6)
    picture = moved.float() * (1 + torch.ones(6, 6).triu(1))  # [seq_len, seq_len]
    axis.imshow(picture, cmap="Reds", vmin=0, vmax=2.6)
    axis.set_title(f"{name}\n{'LEAKS' if leaks else 'tight'}", fontsize=9)
    axis.set_xlabel("changed token")
    axis.set(xticks=range(6), yticks=range(6))
axes[0].set_ylabel("output")
figure.tight_layout()
show(figure, "Five leak matrices. Without a mask all is filled; one step late fills one "
     "diagonal too many; weights set to 0 without renormalising fills everything; the two "
     "masks of the exercises fill the lower triangle only.")

# %% [markdown]
# **Figure.** Light red: an output moved because of itself or an earlier token, as it may.
# Dark red: it moved because of a later one. The masks of exercises 1 and 2 are tight. The
# other three leak, and the third is the instructive one.
#
# No future *value* gets through there, since all those weights are 0. But each weight
# that is left is $e^{s_j} / Z$, and $Z$ was summed over all keys, the future ones too.
# Change a future token and all the weights of the past swell or shrink. The information
# of the hidden tokens is gone only once the rows are divided again, when $Z$ cancels. You
# can hide a face and still be given away by the shadow.
#
# ## 4. How low is low enough?
#
# Much code fills with `-1e9`: a number, not an infinity, so it cannot make NaN. In
# float32 that works. Models, though, run in half precision.
#
# **Before you run this:** which of the three dtypes takes `-1e9`?

# %%
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    half = torch.zeros(2, dtype=dtype)  # [seq_len]
    try:
        filled = half.masked_fill(torch.tensor([False, True]), -1e9)  # [seq_len]
        print(dtype, "->", filled.softmax(-1))
    except RuntimeError as error:
        print(dtype, "->", error)
    print("    lowest number:", torch.finfo(dtype).min)

# %% [markdown]
# float16 ends at 65504; $-10^9$ does not exist there. (bfloat16 has the range of float32
# and fewer digits.) So people write `-1e4`, which fits, and is wrong in another way: it is
# an ordinary number that real scores can undercut. If all the keys in sight score lower
# than the fill, the hidden ones win.
#
# **Before you run this:** keys 0 and 1 are in sight, keys 2 and 3 are hidden. Who wins?

# %%
low = torch.tensor([-20_000.0, -20_001.0, 0.0, 0.0])  # [seq_len]
future = torch.tensor([False, False, True, True])  # [seq_len]
for fill in (-1e4, torch.finfo(low.dtype).min, -math.inf):
    print(f"{fill:10.3g}:", low.masked_fill(future, fill).softmax(-1))

# %% [markdown]
# There are two sound choices: `torch.finfo(dtype).min`, the lowest number there is, and
# `-inf`, which every floating dtype has. And one popular way to misuse the second:
#
# **Before you run this:** a mask of zeros and ones, times $-\infty$. What is $0 \cdot \infty$?

# %%
print(torch.tensor([0.0, 1.0, 1.0]) * -math.inf)

# %% [markdown]
# Not a number, in the very place that was to stay as it is. If you ever find that a mask
# made *everything* NaN, look for a product with infinity. `masked_fill` chooses, and never
# multiplies.
#
# ### Exercise 4: any dtype, any scores
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="masks.half"
def masked_softmax(scores, hidden):
    """The softmax over the keys that are not hidden, in any floating dtype.

    Args:
        scores: Tensor[seq_len, seq_len], float16, bfloat16, float32 or float64
        hidden: BoolTensor[seq_len, seq_len], True where a key is hidden; no row is
            hidden as a whole
    Returns:
        Tensor[seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    lowest = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(hidden, lowest)  # [seq_len, seq_len]
    return torch.softmax(scores, dim=-1)  # [seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.half" points=1
check("masks.half")

# %% [markdown]
# ## 5. Padding
#
# Sentences in a batch have different lengths, tensors do not. So short sentences are
# filled up with padding tokens, which mean nothing, and nobody should look at them.
#
# Which part of the table of scores must go? Rows ask, columns answer. Padding must not
# **answer**: hide its *columns*. Its rows may stay; what padding asks is thrown away later
# anyway. Hide the rows and you get something much worse, the topic of section 6.
#
# ### Exercise 5: a padding mask
#
# ●●○○○ · 6 minutes · 1 point
#
# Not causal this time: padding alone is hidden.

# %% exercise="masks.padding"
def padded_weights(scores, lengths):
    """Attention weights in a batch of sequences that end in padding.

    Args:
        scores: FloatTensor[batch_size, seq_len, seq_len]
        lengths: LongTensor[batch_size]; sequence b has lengths[b] >= 1 real tokens, which
            come first
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]; no query looks at padding
    """
    ### BEGIN SOLUTION
    seq_len = scores.shape[-1]
    places = torch.arange(seq_len, device=scores.device)  # [seq_len]
    padding = places >= lengths[:, None]  # [batch_size, seq_len]
    scores = scores.masked_fill(padding[:, None, :], -math.inf)
    # mask [batch_size, 1, seq_len] -> [batch_size, seq_len, seq_len]
    return torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.padding" points=1
check("masks.padding")

# %%
torch.manual_seed(0)
print(padded_weights(torch.randn(2, 4, 4), torch.tensor([4, 2])))
# [batch_size, seq_len, seq_len]

# %% [markdown]
# ## 6. Rows with nothing left
#
# Masks add up. Put the padding on the *left* and hide the future as well: token 0 is
# padding, may look at nothing after it, and must not look at itself. All its keys are
# hidden.
#
# **Before you run this:** what is the softmax of $(-\infty, -\infty, -\infty)$? And with
# `finfo.min` for $-\infty$?

# %%
print(torch.full((3,), -math.inf).softmax(-1))
print(torch.full((3,), torch.finfo(torch.float32).min).softmax(-1))

# %% [markdown]
# With $-\infty$ it is $0/0$: NaN, which spreads to everything it touches. With a finite fill
# the row looks healthy and is a lie: a uniform average over keys that were all forbidden,
# since the softmax sees only differences, and there are none.
#
# The honest answer is a row of zeros: nothing to see, nothing to bring home. Putting zeros
# over the NaN at the end is tempting, but look what comes back from behind:
#
# **Before you run this:** both versions return the same weights. Are the gradients alike?

# %%
hidden = torch.tensor([[True, True], [False, False]])  # [seq_len, seq_len]
minus = torch.zeros(2, 2).masked_fill(hidden, -math.inf)  # [seq_len, seq_len]
for name in ("added", "filled"):
    s = torch.tensor([[0.3, 0.1], [0.2, 0.4]], requires_grad=True)  # [seq_len, seq_len]
    masked = s + minus if name == "added" else s.masked_fill(hidden, -math.inf)
    probs = masked.softmax(-1).nan_to_num(0.0)  # [seq_len, seq_len]
    (probs * torch.tensor([1.0, 2.0])).sum().backward()
    print(name, "-> weights", probs.tolist(), "gradient", s.grad.tolist())

# %% [markdown]
# Adding a mask of $-\infty$ lets the NaN of $0/0$ flow backwards through the `+`, although
# forwards it was painted over. One step of the optimiser later, every weight of the model
# is NaN. `masked_fill` cuts the way back: what it overwrote gets the gradient 0.
#
# ### Exercise 6: safe weights
#
# ●●●○○ · 7 minutes · 1 point

# %% exercise="masks.empty_rows"
def safe_weights(scores, hidden):
    """Attention weights over the keys in sight; a row that sees none gets zeros.

    No NaN, forwards or backwards.

    Args:
        scores: FloatTensor[batch_size, seq_len, seq_len]
        hidden: BoolTensor[batch_size, seq_len, seq_len], True where a key is hidden
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    lowest = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(hidden, lowest)  # [batch_size, seq_len, seq_len]
    probs = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    return probs.masked_fill(hidden, 0.0)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.empty_rows" points=1
check("masks.empty_rows")

# %% [markdown]
# ## 7. Where the mask lives
#
# A mask is always the same, so a module may keep it. How? A plain attribute stays on the
# CPU when the module moves to a GPU. An `nn.Parameter` would be trained. The third way is
# a **buffer**: it moves along and is not learned.
#
# **Before you run this:** which of the three appear in `state_dict()`, which is what gets
# saved? (`persistent=False` says: do not save me.)

# %%
class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        mask = torch.ones(1024, 1024).triu(1)  # [context_length, context_length]
        self.attribute = mask
        self.register_buffer("saved", mask)
        self.register_buffer("not_saved", mask.bool(), persistent=False)


keeper = Keeper()
print("buffers:   ", [name for name, _ in keeper.named_buffers()])
print("state_dict:", list(keeper.state_dict()))
print("float mask:", keeper.saved.nbytes // 1024, "KiB, bool mask:",
      keeper.not_saved.nbytes // 1024, "KiB")
keeper.to(torch.float64)
print("after .to(float64):", keeper.attribute.dtype, keeper.saved.dtype,
      keeper.not_saved.dtype)

# %% [markdown]
# Common code saves a *float* mask of four mebibytes with each layer, in each checkpoint,
# and converts it to bool in each forward pass. Make it bool once, and do not save it: it
# can be made again from one number. (And see how `.to` converted the float buffer, while
# the attribute was left behind. With a GPU in place of float64 that is the error message
# "expected all tensors to be on the same device".)
#
# ### Exercise 7: a mask in a module
#
# ●●●○○ · 6 minutes · 1 point
#
# In this course `True` means **hidden**. (PyTorch is of two minds: `True` means "may be seen"
# in `scaled_dot_product_attention` and "hidden" in `nn.MultiheadAttention`. Always look it
# up.) The buffer is made for the longest sequence; a shorter one uses its top left corner.

# %% exercise="masks.buffer"
class CausalMask(nn.Module):
    """Keeps a causal mask as the bool buffer `hidden`, which is not stored."""

    def __init__(self, context_length):
        """
        Args:
            context_length: int, the longest sequence
        """
        super().__init__()
        ### BEGIN SOLUTION
        hidden = torch.ones(context_length, context_length).triu(diagonal=1).bool()
        # [context_length, context_length] -> the same, then bool
        self.register_buffer("hidden", hidden, persistent=False)
        ### END SOLUTION

    def forward(self, seq_len):
        """The mask for a sequence of seq_len tokens.

        Args:
            seq_len: int, at most context_length
        Returns:
            BoolTensor[seq_len, seq_len], True where a key is hidden
        """
        ### BEGIN SOLUTION
        return self.hidden[:seq_len, :seq_len]  # [seq_len, seq_len]
        ### END SOLUTION


# %% check="masks.buffer" points=1
check("masks.buffer")

# %% [markdown]
# ## 8. Dropout
#
# Masks hide by rule. Dropout hides by chance, in training only: each number is set to 0
# with probability $p$, so that the model cannot lean on any single one.
#
# **Before you run this:** dropout with $p = 0.5$ on a table of ones. Which numbers can
# come out?

# %%
torch.manual_seed(123)
layer = nn.Dropout(0.5)
print(layer(torch.ones(6, 6)))

# %% [markdown]
# Zeros, and **twos**. What survives is divided by $1 - p$, so that the expected value stays:
#
# $$\mathbb{E}[\tilde a] = p \cdot 0 + (1 - p) \cdot \frac{a}{1 - p} = a .$$
#
# In evaluation nothing happens at all; the model was trained on the right average. That
# is why `model.eval()` matters, and why the rescaling belongs in training.
#
# A transformer uses dropout in more than one place. *Here* it acts on the attention
# **weights**, after the softmax and before they meet the values. (Dropout on the finished
# output of a layer is another one, later in the block.)
#
# **Before you run this:** the same coin tosses on our causal weights. What happens to the
# row sums? To row 0, which has one weight only?

# %%
causal = mask_scores(scores[None])[0]  # [seq_len, seq_len]
torch.manual_seed(123)
dropped = layer(causal)  # [seq_len, seq_len]
print(dropped)
print("row sums:", dropped.sum(dim=-1))

# %% [markdown]
# The rows sum to 1 no longer. Row 0 holds a 2, and row 1 lost everything: for this one
# step, "journey" sees nothing, not even itself. That is as it should be. Nothing is
# normalised again; only the *average* over many steps is right.
#
# ### Exercise 8: dropout by hand
#
# ●●○○○ · 6 minutes · 1 point
#
# Without `nn.Dropout` if you can; all that is judged is the statistics. Your coins need not
# fall like ours.

# %% exercise="masks.dropout"
def dropout(weights, p, training):
    """Sets each weight to 0 with probability p and rescales the others, in training.

    Args:
        weights: FloatTensor[batch_size, seq_len, seq_len]
        p: float, 0 <= p < 1, the probability of being dropped
        training: bool; where False, the weights come back as they are
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    if not training:
        return weights  # [batch_size, seq_len, seq_len]
    keep = torch.rand_like(weights) >= p  # [batch_size, seq_len, seq_len]
    return weights * keep / (1 - p)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.dropout" points=1
check("masks.dropout")

# %%
torch.manual_seed(1)
trials = torch.stack([dropout(causal, 0.5, True) for _ in range(5000)])
# [trials, seq_len, seq_len]
sums = trials.sum(dim=-1)  # [trials, seq_len]
print("mean weights of the last row:", trials.mean(dim=0)[-1])
print("true weights of the last row:", causal[-1])
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), sharey=True)
for axis, row in zip(axes, (0, 5), strict=True):
    axis.hist(sums[:, row].numpy(), bins=50, range=(-0.1, 2.1), color="tab:blue")
    axis.axvline(sums[:, row].mean(), color="tab:orange", label="mean of all trials")
    axis.set_title(f"row {row} sees {row + 1} key{'s' if row else ''}")
    axis.set_xlabel("sum of the row after dropout, p = 0.5")
axes[0].set_ylabel("number of trials")
axes[0].legend(loc="upper center")
figure.tight_layout()
show(figure, "Histograms of row sums after dropout. Row 0 sums to 0 or 2, nothing "
     "between; row 5, with six keys, takes many values between, around a mean of 1.")

# %% [markdown]
# **Figure.** How the row sums fall in 5000 trials. Row 0 sees one key, so its sum is 0 or 2
# and never the 1 that it is on average. Row 5 sees six keys of about equal weight, so its
# sums cluster by how many of the six survive, and the clusters gather around 1.
#
# ## 9. In place
#
# PyTorch methods that end in an underscore write into the tensor itself: `masked_fill_`,
# `add_`. It saves memory. It also changes what others hold in their hands, autograd among
# them.
#
# Whether it does harm depends on whether the backward pass needs the old numbers. A product
# $q k^{\mathsf T}$ needs $q$ and $k$ to go back, not its own result; so
# `scores.masked_fill_(...)` on a fresh product is fine, and much code does it. The softmax
# is different. Its derivative, $\operatorname{diag}(p) - p\,p^{\mathsf T}$, is made of its
# *output*, so autograd keeps $p$, and notices when you scribble on it.
#
# **Before you run this:** which of the two lines marked with `_` raises the error, and when?

# %%
a = torch.randn(3, 2, requires_grad=True)  # [seq_len, hidden]
future = torch.ones(3, 3).triu(1).bool()  # [seq_len, seq_len]
for place in ("scores", "probs"):
    s = a @ a.T  # [seq_len, seq_len]
    if place == "scores":
        s.masked_fill_(future, -math.inf)
    p = s.softmax(-1)  # [seq_len, seq_len]
    if place == "probs":
        p.masked_fill_(future, 0.0)
    try:
        p.square().sum().backward()
        print(place, "edited in place: all is well")
    except RuntimeError as error:
        print(place, "edited in place:", str(error)[:77], "...")

# %% [markdown]
# Not at the edit, but at `backward()`, lines or files later. Autograd gives every tensor a
# version number, and sees that it kept version 0 and finds version 1.
#
# ### Exercise 9: repair it
#
# ●●●○○ · 6 minutes · 1 point
#
# *Pruning* attention means: weights below a floor become 0, and the rows are normalised
# again. This version is wrong. Repair it, so that gradients pass and nothing that came in
# is changed.
#
# ```python
# def prune(scores, floor):
#     probs = torch.softmax(scores, dim=-1)
#     probs[probs < floor] = 0.0
#     probs /= probs.sum(dim=-1, keepdim=True)
#     return probs
# ```

# %% exercise="masks.in_place"
def prune(scores, floor):
    """Attention weights, those below `floor` set to 0, rows normalised again.

    Args:
        scores: FloatTensor[batch_size, seq_len, seq_len]; gradients pass through
        floor: float, below 1 / seq_len, so that something is left of each row
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    probs = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    kept = probs.masked_fill(probs < floor, 0.0)  # [batch_size, seq_len, seq_len]
    return kept / kept.sum(dim=-1, keepdim=True)  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.in_place" points=1
check("masks.in_place")

# %% [markdown]
# ## 10. The causal head
#
# Everything comes together: the head of lesson 02, a mask before the softmax, dropout after
# it. Sequences may be shorter than `context_length`, and this is where a mask that is not
# *sliced* fails: it is 1024 x 1024 and meets scores of 7 x 7.
#
# ### Exercise 10: causal attention with dropout
#
# ●●●○○ · 12 minutes · 2 points
#
# Layers `q`, `k`, `v` with their biases; the mask in whatever way you like best.

# %% exercise="masks.attention"
class CausalAttention(nn.Module):
    """One head that sees no later token, with dropout on its attention weights."""

    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys, values and outputs
            context_length: int, the longest sequence it can take
            dropout: float, the probability of dropping a weight in training
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length).triu(diagonal=1).bool()
        # [context_length, context_length] -> the same, then bool
        self.register_buffer("future", future, persistent=False)
        ### END SOLUTION

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, input_size], seq_len <= context_length
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        seq_len = x.shape[1]
        q = self.q(x)  # [batch_size, seq_len, hidden]
        k = self.k(x)  # [batch_size, seq_len, hidden]
        v = self.v(x)  # [batch_size, seq_len, hidden]
        scores = q @ k.transpose(-2, -1)  # [batch_size, seq_len, seq_len]
        scores = scores / k.shape[-1] ** 0.5  # [batch_size, seq_len, seq_len]
        future = self.future[:seq_len, :seq_len]  # [seq_len, seq_len]
        scores = scores.masked_fill(future, -math.inf)  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
        return self.dropout(probs) @ v  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="masks.attention" points=2
check("masks.attention")

# %% [markdown]
# The final exam is the test that you built yourself: two copies of our sentence as a batch,
# shorter than the context, in evaluation mode.

# %%
torch.manual_seed(123)
head = CausalAttention(3, 2, context_length=10, dropout=0.5).eval()
batch = torch.stack([x, x])  # [batch_size, seq_len, input_size]
with torch.no_grad():
    print("output:", list(head(batch).shape))
    changed = change_each(lambda t: head(t[None])[0], x)  # [seq_len, seq_len, hidden]
    moved, leaks = leak_matrix(head(batch)[0], changed, 1e-6)
print(moved.int())
print("leaks:", leaks)

# %% [markdown]
# ## 11. A picture that lies
#
# The last mistake of this lesson is not in a model but in a plot, and it has fooled more
# readers than any other. You have attention weights, you want to see them, and out of habit
# you write `plt.imshow(torch.softmax(probs, dim=-1))`. They *were* probabilities. Now they
# have been through the softmax twice.
#
# **Before you run this:** the weights of a row are 1, 0, 0, 0, 0, 0, 0. What does the second
# softmax make of it?

# %%
print(torch.tensor([1.0, 0, 0, 0, 0, 0, 0]).softmax(-1))

# %% [markdown]
# $e / (e + 6) = .3118$ and $1 / (e + 6) = .1147$. A token that looks at one key *only* appears
# to look everywhere, and hidden keys get some 11 % each. Probabilities lie between 0 and
# 1, so after the second exponential no two of them can differ by more than a factor of
# $e \approx 2.7$. Everything is washed out. A student who worked from such plots concluded
# that "half of the attention maps are full of probabilities below 0.150". They were full of
# a second softmax.
#
# Now some real maps: three sequences of seven tokens, three heads each. (All three have
# length 7: `torch.randn(3, 7, 11)` is three sequences of seven tokens of eleven features,
# whatever a caption may say.) The maps of all heads stand in one tensor
# `[batch_size * num_heads, seq_len, seq_len]`, **item by item**: first the three heads of
# item 0, then those of item 1.
#
# ### Exercise 11: the right map, as it is
#
# ●○○○○ · 3 minutes · 1 point

# %% exercise="masks.map"
def attention_map(probs, item, head, num_heads):
    """The attention probabilities of one head of one item, ready to be shown.

    Args:
        probs: FloatTensor[batch_size * num_heads, seq_len, seq_len], probabilities, all
            heads of item 0 first, then those of item 1, and so on
        item: int, from 0
        head: int, from 0
        num_heads: int
    Returns:
        FloatTensor[seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    return probs[item * num_heads + head]  # [seq_len, seq_len]
    ### END SOLUTION


# %% check="masks.map" points=1
check("masks.map")

# %%
torch.manual_seed(7)
num_heads, head_size = 3, 3
tokens = torch.randn(3, 7, 11)  # [batch_size, seq_len, input_size]
w_q = torch.randn(num_heads, 11, head_size) * 0.4  # [num_heads, input_size, head_size]
w_k = torch.randn(num_heads, 11, head_size) * 0.4  # [num_heads, input_size, head_size]
q = torch.einsum("bti,hid->bhtd", tokens, w_q)  # [batch_size, num_heads, seq_len, head_size]
k = torch.einsum("bti,hid->bhtd", tokens, w_k)  # [batch_size, num_heads, seq_len, head_size]
all_scores = (q @ k.transpose(-2, -1) / math.sqrt(head_size)).flatten(0, 1)
# [batch_size, num_heads, seq_len, seq_len] -> [batch_size * num_heads, seq_len, seq_len]
open_probs = torch.softmax(all_scores, dim=-1)  # [batch_size * num_heads, seq_len, seq_len]
probs = mask_scores(all_scores)  # [batch_size * num_heads, seq_len, seq_len]

figure, axes = plt.subplots(3, 3, figsize=(8, 7.4), layout="constrained")
for item in range(3):
    no_mask = attention_map(open_probs, item, 0, num_heads)  # [seq_len, seq_len]
    true = attention_map(probs, item, 0, num_heads)  # [seq_len, seq_len]
    twice = torch.softmax(true, dim=-1)  # [seq_len, seq_len]; the mistake, on purpose
    for row, picture in enumerate((no_mask, true, twice)):
        image = axes[row, item].imshow(picture, vmin=0, vmax=1)
        axes[row, item].set(xticks=range(7), yticks=range(7))
    axes[0, item].set_title(f"item {item}, head 0")
    axes[2, item].set_xlabel("key")
axes[0, 0].set_ylabel("no mask\nquery")
axes[1, 0].set_ylabel("causal mask\nquery")
axes[2, 0].set_ylabel("softmax of the row above\nquery")
figure.colorbar(image, ax=axes, shrink=0.6, label="shown value")
show(figure, "Top: three attention maps without a mask. Middle: the same with a causal "
     "mask, dark above the diagonal, with clear bright cells. Bottom: the middle row "
     "after a second softmax, nearly uniform everywhere, the hidden part included.")

# %%
true = attention_map(probs, 2, 0, num_heads)  # [seq_len, seq_len]
twice = torch.softmax(true, dim=-1)  # [seq_len, seq_len]
future = torch.ones(7, 7).triu(1).bool()  # [seq_len, seq_len]
print(f"largest value: true {true.max():.4f}, twice {twice.max():.4f}")
print(f"hidden cells:  true {true[future].max():.4f}, "
      f"twice {twice[future].min():.4f} to {twice[future].max():.4f}")
print(f"token 0 to itself: true {true[0, 0]:.4f}, twice {twice[0, 0]:.4f}")

# %% [markdown]
# **Figure.** Head 0 of items 0, 1 and 2, which stand at places 0, 3 and 6. Top, without a
# mask: every token may look everywhere. Middle, causal: nothing above the diagonal, and
# token 0 looks at itself with all its weight. Bottom, the middle row after a second softmax:
# hardly anything is left of it, and the hidden half seems to be attended to.
#
# Three habits against pictures that lie: plot `probs` itself; fix the colour scale with
# `vmin=0, vmax=1`; and check one number, a row sum or a hidden cell, against what you know.
# Lesson 05 asks you to read such maps in words (Q5), with the mask on and off. Use true ones,
# say *probability* when you mean one, and count tokens from 0: it is token 0 that may look
# at itself only.
#
# ## Did it stick?
#
# **1.** Why may a token look at itself, in causal attention?
# <details><summary>Answer</summary>It is known when the next one is predicted; and token
# 0 would have nothing to look at otherwise.</details>
#
# **2.** Weights above the diagonal are set to 0 and the rows are not normalised again. No
# future value is used. Where is the leak?
# <details><summary>Answer</summary>In the denominators: each remaining weight was divided by
# a sum over all keys, the future ones included.</details>
#
# **3.** All outputs are NaN after you added a mask. What are the two usual suspects?
# <details><summary>Answer</summary>0 times infinity, from a product of a mask with infinity;
# and 0 / 0, from a row in which everything is hidden.</details>
#
# **4.** A row of attention weights sums to 1.4. Bug or not?
# <details><summary>Answer</summary>In training with dropout, no: rows sum to 1 on average
# only. In evaluation, yes.</details>
#
# **5.** An attention map of a causal model with 7 tokens shows .1147 above the diagonal.
# What happened?
# <details><summary>Answer</summary>A softmax was applied to probabilities: 1 / (e + 6) is
# what becomes of a 0 beside a 1.</details>
#
# ## What comes next
#
# One head can look at one thing at a time. [Lesson 04](../04_many_heads/04_many_heads.ipynb)
# gives it company.
#
# Words from this lesson in the glossary: [causal mask](../../docs/glossary.md#causal-mask),
# [padding](../../docs/glossary.md#padding), [dropout](../../docs/glossary.md#dropout),
# [attention weights](../../docs/glossary.md#attention-weights),
# [logits](../../docs/glossary.md#logits).
