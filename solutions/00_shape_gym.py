# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Shape gym
#
# Most bugs in attention are not bugs in attention. They are a number that stood in
# the wrong place: the shape was right, no error was raised, and the model quietly
# learned rubbish. This lesson is a warm-up against exactly that. There is no
# attention in it at all. There are numbered elements, and the question is always
# the same: **where does each one go?**
#
# **After this lesson you can**
#
# * say which axis a reduction takes away, and why it is not the one you meant;
# * tell `view`, `reshape` and `transpose` apart, and say when each moves something;
# * read "view size is not compatible with input tensor's size and stride" and smile;
# * use broadcasting on purpose, and notice when it happens by accident;
# * write a product of many-headed tensors as one `einsum`;
# * put a true shape comment at the end of every line.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | Difficulty | ●●○○○ |
# | Importance | ●●●●● |
#
# Eight exercises, ten points. In each, you fill in one function and run the check below
# it. Stuck? `hint("shape_gym.axes", 1)` gives a nudge, `2` a push, `3` nearly the
# answer. The worked solutions come with the whole course, in
# `solutions/00_shape_gym.ipynb`; they are most useful after an attempt of your own.
# Words in the [glossary](../../docs/glossary.md) are linked the first time they matter.

# %% role="setup"
import warnings

import matplotlib.pyplot as plt
import torch

from autograder import check, hint
from transformer_lm.figures import show

# %% [markdown]
# ## 1. Axes
#
# A language model almost never sees one sentence of one word with one number. It
# sees a **batch** of sequences, each sequence a row of **tokens**, each token a list
# of **features**. So the tensor you will meet a thousand times has three axes:
#
# $$x \in \mathbb{R}^{\text{batch\_size} \times \text{seq\_len} \times \text{hidden}}$$
#
# We count axes from 0, or from the back with negative numbers. Axis 0 is the batch,
# axis 1 the tokens, axis 2 (also called -1) the features.
#
# Here is a tiny one with *numbered elements*: 2 sequences, 3 tokens each, 4 features
# a token. Element 0 comes first, element 23 last. Numbering the elements is the
# whole trick of this lesson. Whenever you are not sure what an operation does, do it
# to `torch.arange` and look.

# %%
x = torch.arange(24).view(2, 3, 4)  # [batch_size, seq_len, hidden]
print(x)

# %% [markdown]
# **Before you run this:** which of these three has shape `[2, 4]`? Which elements
# were added to make its top left number?

# %%
for dim in (0, 1, 2):
    total = x.sum(dim=dim)
    print(f"sum over axis {dim}: shape {list(total.shape)}, first number", end=" ")
    print(total.flatten()[0].item())

# %% [markdown]
# The axis that you *name* is the axis that *disappears*. That is the rule, and it is
# worth saying aloud, because the opposite reading ("sum along the rows, so I keep
# the rows...") is so tempting. `sum(dim=1)` took the 3 tokens away and left
# `[2, 4]`. Its first number is $0 + 4 + 8 = 12$: feature 0 of the three tokens of
# sequence 0. (Axis 0 shows a 12 as well, $0 + 12$: feature 0 of token 0 in both
# sequences. One number that agrees proves little. Look at shapes, then at many
# numbers.)
#
# With `keepdim=True` the axis does not disappear; it shrinks to size 1. That matters
# in section 6.
#
# ### Exercise 1: the average token
#
# ●○○○○ · 4 minutes · 1 point
#
# Write `average_over_tokens`. Given a batch of sequences, it returns one vector for
# each sequence: the average of its tokens. This is how a hint looks; there are three
# for each exercise, and each tells more than the one before.

# %%
hint("shape_gym.axes", 1)


# %% exercise="shape_gym.axes"
def average_over_tokens(x):
    """The average token of each sequence.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden]
    Returns:
        FloatTensor[batch_size, hidden]
    """
    ### BEGIN SOLUTION
    return x.mean(dim=1)  # [batch_size, hidden]
    ### END SOLUTION


# %% check="shape_gym.axes" points=1
check("shape_gym.axes")

# %% [markdown]
# ## 2. One long street of numbers
#
# A tensor looks like a box, but memory is a street: one number after the other, no
# rows, no columns. The shape is only a way of *reading* the street. For that, PyTorch
# keeps one number an axis, the [stride](../../docs/glossary.md#stride): how many
# houses to walk for one step along that axis.

# %%
print("shape  ", list(x.shape))
print("strides", list(x.stride()))

# %% [markdown]
# One step along the last axis is the next house. One step along axis 1 is a whole
# row, 4 houses. One step along axis 0 is a whole sequence, $3 \cdot 4 = 12$ houses.
# A fresh tensor is stored this way, last axis fastest, and is then called
# [contiguous](../../docs/glossary.md#contiguous).
#
# So where does `x[1, 2, 3]` live? Walk $1 \cdot 12 + 2 \cdot 4 + 3 \cdot 1 = 23$
# houses. And in general, for an element $(i, j, k)$ of a contiguous tensor of shape
# $(A, B, C)$:
#
# $$\text{offset} = i \cdot (B \cdot C) + j \cdot C + k$$
#
# The size of the first axis, $A$, does not appear. You can have as many sequences as
# you like; nobody's house number changes.
#
# ### Exercise 2: the house number
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `offset` for *any* number of axes.


# %% exercise="shape_gym.memory"
def offset(index, shape):
    """Where an element of a contiguous tensor stands in memory, counted from 0.

    Args:
        index: tuple of int, one for each axis
        shape: tuple of int, the tensor's shape
    Returns:
        int
    """
    ### BEGIN SOLUTION
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return place
    ### END SOLUTION


# %% check="shape_gym.memory" points=1
check("shape_gym.memory")

# %% [markdown]
# ## 3. `view` moves nothing
#
# Since the shape is only a way of reading, another shape is only another way of
# reading. `x.view(new_shape)` gives the same street new row lengths. Not one number
# moves. The proof is that both tensors share their memory:

# %%
street = torch.arange(12)  # [12]
wide = street.view(2, 6)  # [2, 6]
tall = street.view(6, 2)  # [6, 2]
wide[0, 0] = 99
print(tall[0, 0].item(), street[0].item())

# %% [markdown]
# We wrote into one and found it in the others. That is sometimes what you want and
# sometimes a very long afternoon.
#
# One size may be written as `-1`, "work it out for me". And an axis can be *split*
# without moving anything: `hidden = 6` read as 2 groups of 3.

# %%
tokens = torch.arange(12).view(1, 2, 6)  # [batch_size, seq_len, hidden]
groups = tokens.view(1, 2, 2, 3)  # [batch_size, seq_len, num_heads, head_size]
print(groups)

# %% [markdown]
# The left factor is the slow one: the first group got the features 0, 1, 2, the
# second one 3, 4, 5. Neighbours stay neighbours.
#
# In a few lessons these groups will be called [heads](../../docs/glossary.md#head),
# and `hidden = num_heads * head_size`. For now they are just groups.
#
# ### Exercise 3: split the features
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `split_features`: read the last axis as `num_heads` blocks of neighbouring
# features. Batch and tokens stay where they are.


# %% exercise="shape_gym.view"
def split_features(x, num_heads):
    """The last axis, cut into num_heads blocks of head_size = hidden / num_heads.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden]
        num_heads: int, divides hidden
    Returns:
        FloatTensor[batch_size, seq_len, num_heads, head_size]
    """
    ### BEGIN SOLUTION
    batch_size, seq_len, hidden = x.shape
    head_size = hidden // num_heads
    # [batch_size, seq_len, num_heads, head_size]
    return x.view(batch_size, seq_len, num_heads, head_size)
    ### END SOLUTION


# %% check="shape_gym.view" points=1
check("shape_gym.view")

# %% [markdown]
# ## 4. `transpose` moves everything
#
# Swapping rows and columns is another matter. After a
# [transpose](../../docs/glossary.md#transpose), the element at row $i$, column $j$ is
# the one that was at row $j$, column $i$. Compare that with a `view` of the same
# final shape.
#
# **Before you run this:** take the numbers 0 to 11 as 3 rows of 4. What is the first
# *row* of `.view(4, 3)`? And of `.transpose(0, 1)`?


# %%
def draw_numbers(ax, values, groups, title):
    """Draws a [rows, columns] tensor as numbered tiles; `groups` says which colour."""
    ax.imshow(groups, cmap="Pastel1", vmin=0, vmax=8)
    rows, columns = values.shape
    for i in range(rows):
        for j in range(columns):
            ax.text(j, i, str(int(values[i, j])), ha="center", va="center", fontsize=12)
    ax.set_xticks([c - 0.5 for c in range(1, columns)], labels=[])
    ax.set_yticks([r - 0.5 for r in range(1, rows)], labels=[])
    ax.grid(color="white", linewidth=2)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=11)


before = torch.arange(12).view(3, 4)  # [3, 4]
row_of = before // 4  # [3, 4]
viewed, viewed_rows = before.view(4, 3), row_of.view(4, 3)  # [4, 3]
swapped, swapped_rows = before.T, row_of.T  # [4, 3]

fig, axes = plt.subplots(1, 3, figsize=(9, 3.6))
draw_numbers(axes[0], before, row_of, "before: 3 rows of 4")
draw_numbers(axes[1], viewed, viewed_rows, "view(4, 3)")
draw_numbers(axes[2], swapped, swapped_rows, "transpose(0, 1)")
show(
    fig,
    "Three grids of the numbers 0 to 11. Before: three rows of four, each row in "
    "its own colour. view(4, 3): the numbers still run along the rows and the "
    "colours break across rows. transpose: the numbers run down and each colour "
    "is one column.",
)

# %% [markdown]
# **Figure.** The numbers 0 to 11, coloured by the row they started in. `view` keeps
# the reading order 0, 1, 2, ... and tears the coloured rows apart; `transpose` keeps
# each coloured row together and turns it into a column.
#
# Both results have shape `[4, 3]`. No error, no warning, and no way to tell from the
# shape. Think of each colour as one token. In the middle picture, rows 1 and 2 are
# stitched together from two tokens, and rows 0 and 3 have each lost a piece of theirs.
# That is what "scrambled" means in the messages of this course.
#
# ### The one-letter trap
#
# For a matrix, `.T` is a pleasant way to say "swap rows and columns". For a tensor
# with a batch it is something else: it reverses *all* axes, and the batch ends up
# last. PyTorch calls that use deprecated, warns, and promises an error one day.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(".T                ", list(x.T.shape))
print(".transpose(-2, -1)", list(x.transpose(-2, -1).shape))
print(".mT               ", list(x.mT.shape))
for warning in caught:
    print("warning:", str(warning.message).partition(". Consider")[0])

# %% [markdown]
# Use `transpose(-2, -1)` (or its short form `.mT`): "swap the last two, whatever
# stands in front". It is right for a matrix, for a batch of matrices, and for a
# batch of heads of matrices. It does need its two arguments; a bare `.transpose()`
# cannot run.
#
# ### Exercise 4: features first
#
# ●●○○○ · 4 minutes · 1 point
#
# Write `features_first`: every sequence turned on its side, the batch untouched.


# %% exercise="shape_gym.transpose"
def features_first(x):
    """Each sequence with its features down and its tokens across.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden]
    Returns:
        FloatTensor[batch_size, hidden, seq_len]
    """
    ### BEGIN SOLUTION
    return x.transpose(-2, -1)  # [batch_size, hidden, seq_len]
    ### END SOLUTION


# %% check="shape_gym.transpose" points=1
check("shape_gym.transpose")

# %% [markdown]
# ## 5. Contiguous, or: why `view` says no
#
# "Transpose moves everything" was a small lie. It moves everything *as you read it*.
# In memory, not one number moved here either: PyTorch swapped the two strides.

# %%
print("before:", list(before.shape), "strides", list(before.stride()))
print("after: ", list(swapped.shape), "strides", list(swapped.stride()))
print("contiguous?", before.is_contiguous(), swapped.is_contiguous())

# %% [markdown]
# A transposed tensor walks the old street in an odd order: down a column, two
# steps of 4, then back and one to the right. Now ask for a `view` of it as one row.
# A view needs one fixed stride an axis, and 0, 4, 8, 1, 5, 9, ... has none.

# %%
try:
    swapped.view(12)
except RuntimeError as error:
    print("RuntimeError:", error)

print("reshape:         ", swapped.reshape(12).tolist())
print("contiguous, view:", swapped.contiguous().view(12).tolist())

# %% [markdown]
# So there are four verbs, and they are honest once you know what each promises:
#
# | verb | moves numbers in memory? | promise |
# |---|---|---|
# | `view` | never | new shape, same reading order; an error if that takes a copy |
# | `reshape` | if it must | new shape, same reading order; copies in silence |
# | `transpose`, `permute` | never (new strides) | same numbers, new reading order |
# | `contiguous` | if it must | same numbers, same reading order, tidy memory |
#
# Note what is *not* in the table: nothing in the `view`/`reshape` family ever swaps
# two axes. The error message above ends with "Use .reshape(...) instead". That is
# right when your axes are already in the right order. When they are not, following
# the advice turns an error into a silent scramble.
#
# ### Merging the groups again
#
# Suppose the groups (heads) have been brought in front of the tokens:
# `[batch_size, num_heads, seq_len, head_size]`. To glue `num_heads` and `head_size`
# back into `hidden`, they must stand side by side. They do not: `seq_len` is in
# between. Let us watch both ways, with 2 heads of size 3 and 4 tokens. Tens digit =
# token, ones digit = feature, so that each number carries its address.

# %%
token, feature = torch.arange(4).view(4, 1), torch.arange(6)  # [4, 1] and [6]
original = (10 * token + feature)[None]  # [batch_size, seq_len, hidden]
heads = original.view(1, 4, 2, 3).transpose(1, 2)  # [batch, num_heads, seq_len, head_size]

scrambled = heads.reshape(1, 4, 6)  # [batch_size, seq_len, hidden], but look!
merged = heads.transpose(1, 2).reshape(1, 4, 6)  # [batch_size, seq_len, hidden]

fig, axes = plt.subplots(1, 3, figsize=(11, 3))
for ax, values, title in (
    (axes[0], original[0], "the original: a row a token"),
    (axes[1], scrambled[0], "reshape alone"),
    (axes[2], merged[0], "transpose, then reshape"),
):
    draw_numbers(ax, values, values // 10, title)
show(
    fig,
    "Three grids of 4 rows and 6 columns. In the original each row is one token in "
    "one colour. After reshape alone every row holds pieces of two tokens. After "
    "transpose and reshape the grid equals the original.",
)

# %% [markdown]
# **Figure.** Four tokens (colours) of six features. Merged with `reshape` alone, the
# row of token 0 holds half of token 0 and half of token 1: the shape is right and
# everything after it is wrong. Transposing first brings the original back.
#
# ### Exercise 5: merge the heads
#
# ●●●○○ · 8 minutes · 2 points
#
# Write `merge_heads`. One line is enough; it is the line that most people get wrong
# in their first attention layer.


# %% exercise="shape_gym.contiguous"
def merge_heads(x):
    """The heads side by side: head 0's features first, then head 1's, and so on.

    Args:
        x: FloatTensor[batch_size, num_heads, seq_len, head_size]
    Returns:
        FloatTensor[batch_size, seq_len, num_heads * head_size]
    """
    ### BEGIN SOLUTION
    batch_size, num_heads, seq_len, head_size = x.shape
    x = x.transpose(1, 2)  # [batch_size, seq_len, num_heads, head_size]
    # [batch_size, seq_len, num_heads * head_size]
    return x.contiguous().view(batch_size, seq_len, num_heads * head_size)
    ### END SOLUTION


# %% check="shape_gym.contiguous" points=2
check("shape_gym.contiguous")

# %% [markdown]
# ## 6. Broadcasting
#
# `[3, 4] + [4]` works: the row of 4 is added to each of the 3 rows. The rule of
# [broadcasting](../../docs/glossary.md#broadcasting): write both shapes under each
# other, **lined up from the right**. Two sizes fit if they are equal, or one of them
# is 1, or one of them is not there at all. A 1 is stretched.
#
# ```
#    [3, 4]        [3, 4]        [3, 4]
#       [4]        [3, 1]           [3]
#    ------        ------        ------
#    [3, 4]        [3, 4]        4 and 3: error
# ```
#
# An error is the good case. The bad case is the *square* one, where everything fits
# by luck, and attention is full of squares: a table of tokens against tokens.
#
# **Before you run this:** we want each *row* of a 3 x 3 table to sum to 1, so we
# divide by the rows' sums. What will the row sums of `wrong` be?

# %%
table = torch.tensor([[1.0, 1.0, 2.0], [3.0, 3.0, 4.0], [5.0, 5.0, 10.0]])  # [3, 3]
sums = table.sum(dim=-1)  # [3]
wrong = table / sums  # [3, 3], and the sums met the columns
right = table / sums[:, None]  # [3, 3]
print("sums      ", sums.tolist())
print("wrong rows", [round(s, 3) for s in wrong.sum(-1).tolist()])
print("right rows", right.sum(-1).tolist())

# %% [markdown]
# `sums` has shape `[3]`, and lined up from the right it meets the *columns*. So
# column 0 was divided by the sum of row 0. Perfectly legal; perfect nonsense. The cure
# is an axis of size 1 where the sum was taken: `sums[:, None]`, or
# `sums.unsqueeze(-1)`, or `keepdim=True` in the sum itself.

# %%
fig, axes = plt.subplots(1, 2, figsize=(7, 3))
met_wrong = torch.arange(3).expand(3, 3)  # [3, 3], the index of the sum that was met
met_right = torch.arange(3)[:, None].expand(3, 3)  # [3, 3]
draw_numbers(axes[0], met_wrong, met_wrong, "table / sums")
draw_numbers(axes[1], met_right, met_right, "table / sums[:, None]")
show(
    fig,
    "Two 3 by 3 grids that say which sum each cell is divided by. Without the extra "
    "axis, the sums 0, 1, 2 run across, one a column. With it, they run down, one "
    "a row.",
)

# %% [markdown]
# **Figure.** Which of the three sums each cell meets. Without the extra axis each
# column has a sum of its own; with it, each row has.
#
# ### Exercise 6: scale the rows
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `scale_rows`: row $i$ of every table is multiplied by its own factor.
# The check uses a batch of size `seq_len`, too: the case where the mistake runs.


# %% exercise="shape_gym.broadcasting"
def scale_rows(x, factors):
    """Row i of table b, times factors[b, i].

    Args:
        x: FloatTensor[batch_size, seq_len, seq_len]
        factors: FloatTensor[batch_size, seq_len]
    Returns:
        FloatTensor[batch_size, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    factors = factors.unsqueeze(-1)  # [batch_size, seq_len, 1]
    return x * factors  # [batch_size, seq_len, seq_len]
    ### END SOLUTION


# %% check="shape_gym.broadcasting" points=1
check("shape_gym.broadcasting")

# %% [markdown]
# ## 7. Products of many axes
#
# The matrix product eats the inner pair of sizes: `[n, m] @ [m, p]` is `[n, p]`.
# With more than two axes, `@` treats the last two as matrices and everything before
# them as a pile of such pairs: `[b, n, m] @ [b, m, p]` is `[b, n, p]`.
#
# [Einsum](../../docs/glossary.md#einsum) lets you say the same without any
# transposing. Give each axis a letter. The same letter means the same axis. A letter
# that does not appear after the arrow is summed over. That is all of it:
#
# $$C_{ij} = \sum_k A_{ik} B_{kj} \qquad\Longleftrightarrow\qquad \texttt{"ik,kj->ij"}$$
#
# **Before you run this:** three ways to drop a letter from a 2 x 3 tensor of ones,
# and one way to keep both. What are the four results?

# %%
ones = torch.ones(2, 3)  # [2, 3]
for formula in ("ij->i", "ij->j", "ij->", "ij->ji"):
    result = torch.einsum(formula, ones)
    print(f"{formula:<6}  shape {list(result.shape)}  values {result.tolist()}")

# %% [markdown]
# Dropping $j$ sums over it (three ones in each of 2 places), dropping both sums
# everything (6.0), and dropping nothing but changing the order is a transpose.
#
# ### Exercise 7: all pairs
#
# ●●●○○ · 6 minutes · 1 point
#
# You have a batch of heads, each with `q_len` vectors in `q` and `k_len` vectors in
# `k`. For every pair, inside the same head of the same sequence, compute the sum of
# products of their features (the [dot product](../../docs/glossary.md#dot-product)).
# Try it with `einsum`; `@` is fine too.
#
# $$\text{scores}_{bhqk} = \sum_d Q_{bhqd} \, K_{bhkd}$$


# %% exercise="shape_gym.einsum"
def pair_scores(q, k):
    """The dot product of every vector of q with every vector of k, head by head.

    Args:
        q: FloatTensor[batch_size, num_heads, q_len, head_size]
        k: FloatTensor[batch_size, num_heads, k_len, head_size]
    Returns:
        FloatTensor[batch_size, num_heads, q_len, k_len]
    """
    ### BEGIN SOLUTION
    # [batch_size, num_heads, q_len, k_len]
    return torch.einsum("bhqd,bhkd->bhqk", q, k)
    ### END SOLUTION


# %% check="shape_gym.einsum" points=1
check("shape_gym.einsum")

# %% [markdown]
# ## 8. Shape comments
#
# Everybody who writes attention for a living does this: at the end of each line that
# makes a tensor stands its shape, as names, not numbers.
#
# ```python
# q = x @ w  # [batch_size, seq_len, hidden]
# ```
#
# It is not decoration. Writing the comment forces you to *predict* the shape, which
# is where the bug is found; and the next reader (you, in March) checks the line
# against it. Later in this course the comments themselves are checked for **truth**:
# a program runs your code and compares. A few rules keep them honest.
#
# 1. **Say what the line leaves behind**, after everything on it has happened.
#    A line with a step in between may show a chain with `->`, and its last shape is
#    the one that counts.
# 2. **Names over numbers.** `[2, 3, 4]` is true for one input only;
#    `[batch_size, seq_len, hidden]` is true for all.
# 3. **A layer has no shape.** `nn.Linear(input_size, hidden)` is a function. What it
#    holds has one: the weight is stored as `[hidden, input_size]`, output first, and
#    is applied transposed. Comment tensors, not layers.
# 4. **Products are fine.** `[batch_size * num_heads, seq_len, head_size]` is how you
#    say that two axes are glued.
# 5. **A false comment is worse than none.**
#
# That last one deserves a demonstration. Three comments below; one lies.
# **Before you run this:** which?

# %%
batch_size, seq_len, num_heads, head_size = 2, 5, 3, 7
y = torch.randn(batch_size, seq_len, num_heads * head_size)
a = y.view(batch_size, seq_len, num_heads, head_size)
b = a.transpose(1, 2)
c = b.reshape(batch_size * num_heads, seq_len, head_size)

claims = {
    "a": (a, "[batch_size, seq_len, num_heads, head_size]"),
    "b": (b, "[batch_size, seq_len, head_size, num_heads]"),
    "c": (c, "[batch_size * num_heads, seq_len, head_size]"),
}
for name, (tensor, claim) in claims.items():
    says = eval(claim)
    verdict = "true" if says == list(tensor.shape) else "FALSE"
    print(f"{name}: {claim:<46} {says!s:<14} is {list(tensor.shape)!s:<14} {verdict}")

# %% [markdown]
# `b` lies: `transpose(1, 2)` swapped tokens and heads, so the shape is
# `[batch_size, num_heads, seq_len, head_size]`. Note the sizes: 2, 5, 3 and 7 are all
# different. Had we tested with three heads of size 3 on 3 tokens, the false comment
# would have looked true. **Test shapes with sizes that are pairwise different**;
# primes are best, since no product of two of them is another. This course's checks
# always do.
#
# ### Exercise 8: comment a whole program
#
# ●●○○○ · 10 minutes · 2 points
#
# Here is a program that you do not need to understand yet. You need only its shapes.
# `x` is `[batch_size, seq_len, input_size]`, `w` is `[input_size, hidden]`, and
# `hidden = num_heads * head_size`.
#
# ```python
# q = x @ w                                                   # 1
# q = q.view(batch_size, seq_len, num_heads, head_size)       # 2
# q = q.transpose(1, 2)                                       # 3
# scores = q @ q.transpose(-2, -1)                            # 4
# best = scores.max(dim=-1).values                            # 5
# mixed = torch.softmax(scores, dim=-1) @ q                   # 6
# mixed = mixed.transpose(1, 2).reshape(batch_size, seq_len, hidden)  # 7
# summary = mixed.mean(dim=1)                                 # 8
# ```
#
# Take a pencil and write the comment of each line first. Then write
# `shapes_line_by_line`, which returns your eight comments for any sizes: a list of
# eight tuples, one a line. (You could also run the program and ask each tensor. Do
# the pencil first anyway; in an exam hall, and at two in the morning, the pencil is
# what you have.)


# %% exercise="shape_gym.comments"
def shapes_line_by_line(batch_size, seq_len, input_size, num_heads, head_size):
    """The shape that each of the eight lines leaves behind.

    Args:
        batch_size, seq_len, input_size, num_heads, head_size: int
    Returns:
        list of 8 tuples of int
    """
    ### BEGIN SOLUTION
    hidden = num_heads * head_size
    return [
        (batch_size, seq_len, hidden),
        (batch_size, seq_len, num_heads, head_size),
        (batch_size, num_heads, seq_len, head_size),
        (batch_size, num_heads, seq_len, seq_len),
        (batch_size, num_heads, seq_len),
        (batch_size, num_heads, seq_len, head_size),
        (batch_size, seq_len, hidden),
        (batch_size, hidden),
    ]
    ### END SOLUTION


# %% check="shape_gym.comments" points=2
check("shape_gym.comments")

# %% [markdown]
# That program, by the way, was multi-head self-attention without its keys, values
# and scale. You have just shape-checked the heart of a GPT.
#
# ## Did it stick?
#
# **1.** `x` is [2, 3, 4]. What is the shape of `x.mean(dim=-1)`, and what was averaged?
# <details><summary>Answer</summary><code>[2, 3]</code>: the last axis is gone, so each token's four
# features were averaged into one number.</details>
#
# **2.** You transpose, and the next line's `view` raises an error. You change it to
# `reshape` and the error is gone. Is the program right now?
# <details><summary>Answer</summary>You do not know. <code>reshape</code> gives the same result that
# <code>.contiguous().view(...)</code> would. If the axes stand in the order you want to glue them,
# it is right; if not, the error was the last thing that protected you.</details>
#
# **3.** `[5, 5] / [5]` runs. What met what?
# <details><summary>Answer</summary>Lined up from the right, the 5 numbers met the
# columns: column $j$ was divided by number $j$. For rows, give it the shape <code>[5,
# 1]</code>.</details>
#
# **4.** Why does this course test with sizes such as 2, 3, 5 and 7?
# <details><summary>Answer</summary>If two axes have the same size, a swapped pair has the
# right shape. With pairwise different primes, a swap shows, and so does a wrong product
# of sizes.</details>
#
# **5.** What does `torch.einsum("bid,bjd->bij", x, x)` compute?
# <details><summary>Answer</summary>For each sequence, the dot product of every token with
# every token: a table <code>[batch_size, seq_len, seq_len]</code>. In the next lesson it gets a
# name: attention scores.</details>
#
# ## What comes next
#
# [Lesson 01](../01_attention_without_weights/01_attention_without_weights.ipynb) puts
# these moves to use. You will see why translating word by word fails, why one vector
# is a bad place to keep a sentence, and you will build attention out of nothing but
# dot products and a softmax.
