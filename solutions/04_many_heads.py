# %% [markdown]
# # 04 · Many heads
#
# One head takes one average. Ask it to follow the verb *and* the noun that a pronoun
# stands for, and it has to blur the two into one set of weights. So we give it
# colleagues: several heads, each with its own idea of what matters, working on the same
# sentence at the same time.
#
# **After this notebook you will be able to**
#
# - build multi-head attention in two ways: heads one after the other, and all heads in
#   one product,
# - split a tensor into heads and merge it again without scrambling it, and see when it
#   is scrambled,
# - show that the two ways give the same numbers once they have the same weights,
# - read the output layer as a sum in which every head has its share,
# - count the parameters of such a layer, up to that of GPT-2 small.
#
# | | |
# |---|---|
# | Time | 100 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●● |
#
# Nine exercises, sixteen points. Hints come in three steps, `hint("heads.split", 1)` and so on;
# the solutions with all figures come with the whole course, in
# `solutions/04_many_heads.ipynb`. Terms: [head](../../docs/glossary.md#head),
# [head size](../../docs/glossary.md#head-size),
# [causal mask](../../docs/glossary.md#causal-mask).

# %% role="setup"
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
from torch.overrides import TorchFunctionMode

from autograder import check, hint
from transformer_lm import plots
from transformer_lm.figures import show

# %% [markdown]
# One causal head, as you wrote it in lesson 03, without biases and without dropout. It
# is given here so that you can build on it.


# %% role="setup"
class CausalHead(nn.Module):
    """One head of causal self-attention, without biases."""

    def __init__(self, input_size, head_size):
        super().__init__()
        self.q = nn.Linear(input_size, head_size, bias=False)
        self.k = nn.Linear(input_size, head_size, bias=False)
        self.v = nn.Linear(input_size, head_size, bias=False)

    def forward(self, x):
        """FloatTensor[batch_size, seq_len, input_size] to [batch_size, seq_len, head_size]."""
        q, k, v = self.q(x), self.k(x), self.v(x)  # [batch_size, seq_len, head_size]
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5  # [batch_size, seq_len, seq_len]
        later = torch.ones_like(scores[0]).triu(1).bool()  # [seq_len, seq_len]
        scores = scores.masked_fill(later, -torch.inf)  # [batch_size, seq_len, seq_len]
        return torch.softmax(scores, dim=-1) @ v  # [batch_size, seq_len, head_size]


# %% [markdown]
# ## 1 Heads in a row
#
# The plain way to have several heads is to have several heads. Each has its own three
# matrices, all of them look at the **same** $X$, and their outputs are put side by
# side:
#
# $$\mathrm{HeadStack}(X) = [\,\mathrm{head}_0(X) \mid \mathrm{head}_1(X) \mid \dots\,]$$
#
# With 2 heads of size 2 the output is 4 wide. In this class `head_size` is the width of
# *one* head. (Keep an eye on that: in the second half of the lesson the size we give is
# that of all heads together. Books mix the two up, and both are called `d_out` in some
# of them.)
#
# ### Exercise 1: heads in a row
#
# ●●○○○ · 9 minutes · 2 points
#
# Write `HeadStack`: num_heads separate heads in `self.heads`,
# called one after the other, outputs side by side.
#
# If you want a nudge first: each exercise has three.

# %%
hint("heads.stack", 1)


# %% exercise="heads.stack"
class HeadStack(nn.Module):
    """Several causal heads, one after the other, their outputs side by side."""

    def __init__(self, input_size, head_size, num_heads):
        super().__init__()
        # self.heads holds one CausalHead(input_size, head_size) for each head
        ### BEGIN SOLUTION
        self.heads = nn.ModuleList(CausalHead(input_size, head_size) for _ in range(num_heads))
        ### END SOLUTION

    def forward(self, x):
        """FloatTensor[batch_size, seq_len, input_size] to [.., num_heads * head_size]."""
        ### BEGIN SOLUTION
        outputs = [head(x) for head in self.heads]  # num_heads x [batch_size, seq_len, head_size]
        return torch.cat(outputs, dim=-1)  # [batch_size, seq_len, num_heads * head_size]
        ### END SOLUTION


# %% check="heads.stack" points=2
check("heads.stack")

# %% [markdown]
# Now on six words, each with an embedding of three numbers, the example that has gone
# with us since lesson 01. The batch holds the sentence twice. **Before you run this:**
# 2 sentences, 6 tokens, 2 heads of size 2. What shape comes out? And will the two
# sentences come out alike?

# %%
words = ["Your", "journey", "starts", "with", "one", "step"]
sentence = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)  # [6, 3]
batch = torch.stack([sentence, sentence])  # [2, 6, 3]

torch.manual_seed(123)
stack = HeadStack(input_size=3, head_size=2, num_heads=2)
with torch.no_grad():
    context = stack(batch)  # [2, 6, 4]
torch.set_printoptions(precision=4, sci_mode=False)
print(list(context.shape))
print(context[0])
print("both sentences alike:", torch.equal(context[0], context[1]))

# %% [markdown]
# `[2, 6, 4]`: columns 0 and 1 are head 0, columns 2 and 3 are head 1. Equal sentences come out
# equal, for attention never looks across the batch.
#
# **Before you run this:** how must you call `HeadStack` so that two heads give two columns?

# %%
with torch.no_grad():
    print(list(HeadStack(input_size=3, head_size=1, num_heads=2)(batch).shape))

# %% [markdown]
# With heads of size 1. The width of the output is heads times head size, and nothing else.
#
# "Attention Is All You Need" puts it like this: the heads attend to information "from different
# representation subspaces". That is meant literally. Each head sees the tokens only through its own
# matrices, from many features down to a few: its own subspace. What lies outside it, that head
# cannot see.
#
# Each head has an opinion of its own. A toy with eight-dimensional tokens and larger
# weights shows it:

# %%
torch.manual_seed(4)
tokens = torch.randn(1, 6, 8)  # [1, 6, 8]
several = HeadStack(input_size=8, head_size=8, num_heads=4)
fig, axes = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained")
with torch.no_grad():
    for i, (ax, head) in enumerate(zip(axes, several.heads, strict=True)):
        q, k = 4 * head.q(tokens), 4 * head.k(tokens)  # each [1, 6, 8]
        scores = q @ k.transpose(1, 2) / 8**0.5  # [1, 6, 6]
        future = torch.ones(6, 6).triu(1).bool()  # [6, 6]
        probs = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)  # [1, 6, 6]
        image = ax.imshow(probs[0], vmin=0, vmax=1)
        ax.set(title=f"head {i}", xlabel="key", xticks=range(6), yticks=range(6))
axes[0].set_ylabel("query")
fig.colorbar(image, ax=axes, label="probability")
show(
    fig,
    "Attention maps of four heads over the same six tokens. All are zero above the diagonal, "
    "and below it each puts its weight on other keys.",
)

# %% [markdown]
# **Figure.** Four heads, the same six random tokens: each map is causal, and each
# spreads its probabilities in its own way. Nothing but the random start made them
# different; training makes the differences useful.
#
# ## 2 The same, in one product
#
# `HeadStack` is right, and it is slow. Not because of the mathematics: the heads do not
# wait for one another. But Python calls them in turn, and each call starts several
# small matrix products. A GPU likes one large product better than dozens of small ones.
#
# Look at the queries of two heads: $XW_0$ and $XW_1$. Put the matrices side by side and
# multiply once:
#
# $$X\,[\,W_0 \mid W_1\,] = [\,XW_0 \mid XW_1\,]$$
#
# Same numbers, one product. What is left is bookkeeping: cutting the wide result into
# heads, and putting it together again at the end. The bookkeeping is where nearly all
# bugs of multi-head attention live, so we take it one step at a time.
#
# ### How wide is a head?
#
# From here on we fix the total width, `hidden`, and the heads share it out:
# `head_size = hidden / num_heads`. That must come out even
# ([divisibility](../../docs/glossary.md#divisibility)). GPT-2 small has 768 features
# for 12 heads, 64 each. Its largest sibling has 1600 for 25 heads: 64 again. That 64 is
# also the $d$ under the square root, so a wider model does not need a stronger scale;
# its heads are as wide as before, there are just more of them.
#
# ### Exercise 2: the size of a head
#
# ●○○○○ · 4 minutes · 1 point
#
# Write `head_size_of`. A hidden size that cannot be shared out
# evenly is a mistake of the caller: raise a `ValueError` that names both numbers. (Not
# an `assert`: those disappear when Python runs with `-O`.)


# %% exercise="heads.size"
def head_size_of(hidden, num_heads):
    """Size of one head, an int.

    Raises:
        ValueError: where num_heads does not divide hidden
    """
    ### BEGIN SOLUTION
    head_size, left_over = divmod(hidden, num_heads)
    if left_over:
        raise ValueError(
            f"hidden must be divisible by num_heads, got hidden={hidden} and num_heads={num_heads}"
        )
    return head_size
    ### END SOLUTION


# %% check="heads.size" points=1
check("heads.size")

# %% [markdown]
# ## 3 Splitting
#
# From `[batch_size, seq_len, hidden]` to `[batch_size, num_heads, seq_len, head_size]`.
# Both have the same number of elements, so a single `reshape` would run. Should we?
#
# (Skip this if you come straight from lesson 00: its fifth exercise showed the same scramble.)
#
# Let us mark every number with where it comes from: token 0 holds 0 to 5, token 1 holds
# 10 to 15, token 2 holds 20 to 25. Two heads of size 3: head 0 should get features 0,
# 1, 2 of every token. **Before you run this:** what is in the first row of head 1 if we
# reshape in one go?

# %%
marked = torch.tensor([[0], [10], [20]]) + torch.arange(6)  # [3, 6]
right = marked.view(3, 2, 3).transpose(0, 1)  # [2, 3, 3]
wrong = marked.reshape(2, 3, 3)  # [2, 3, 3]
print("split, then transpose: head 1 =\n", right[1])
print("reshape in one go:     head 1 =\n", wrong[1])

# %% [markdown]
# Row by row, a head should hold one token each: 3, 4, 5 of token 0, then 13, 14, 15,
# then 23, 24, 25. The reshape in one go gives head 1 a first row `13 14 15`, where
# token 0 should be: tokens have wandered into places of other tokens. No error, the
# right shape, nonsense inside.
#
# The rule: **`view` may cut a dimension into two that stand side by side, or join two
# that do. To move a dimension past another, transpose.** So: cut `hidden` into
# `num_heads, head_size`, then transpose heads and tokens.


# %%
def draw_table(ax, table, owner, title):
    """A table of marked numbers, coloured by the token that each number comes from."""
    colors = ["#cfe8ff", "#ffe3b3", "#d7f5d0"]
    for i, row in enumerate(table.tolist()):
        for j, number in enumerate(row):
            ax.add_patch(plt.Rectangle((j, -i), 1, 1, fc=colors[number // 10], ec="white"))
            ax.text(j + 0.5, -i + 0.5, number, ha="center", va="center", fontsize=9)
    ax.set(xlim=(0, table.shape[1]), ylim=(1 - table.shape[0], 1), xticks=[], yticks=[])
    ax.set_title(f"{title}\n{owner}", fontsize=9)
    ax.set_aspect("equal")


fig, axes = plt.subplots(2, 4, figsize=(10, 4.2), layout="constrained", width_ratios=[2, 1, 1, 2])
pictures = [
    ("view, then transpose", right, right.transpose(0, 1).reshape(3, 6), "undone in reverse order"),
    ("reshape in one go", wrong, right.reshape(3, 6), "right heads, reshaped in one go"),
]
for row, (how, heads, merged, back) in zip(axes, pictures, strict=True):
    draw_table(row[0], marked, "3 tokens of 6 features", "input")
    draw_table(row[1], heads[0], how, "head 0")
    draw_table(row[2], heads[1], how, "head 1")
    draw_table(row[3], merged, back, "merged")
show(
    fig,
    "Tables of numbers coloured by token. Upper row: each head holds one row a token and the "
    "merge gives the input back. Lower row: heads mix up tokens, and so does the merge.",
)

# %% [markdown]
# **Figure.** Each colour is a token. Above: split by view and transpose, every row of a
# head has the colour of its token, and undoing the steps in reverse order gives the
# input back. Below: heads that were reshaped in one go, and (right) a merge in one go.
# The colours are in the wrong rows.
#
# ### Exercise 3: split
#
# ●●●○○ · 8 minutes · 2 points
#
# Write `split_heads`, for any number of heads.


# %% exercise="heads.split"
def split_heads(t, num_heads):
    """Cuts the features into heads and moves the heads beside the batch.

    Args:
        t: FloatTensor[batch_size, seq_len, hidden]
        num_heads: int, a divisor of hidden
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, head_size]; head i holds the features
        i * head_size to (i + 1) * head_size
    """
    ### BEGIN SOLUTION
    batch_size, seq_len, hidden = t.shape
    t = t.view(batch_size, seq_len, num_heads, hidden // num_heads)
    # [batch_size, seq_len, hidden] -> [batch_size, seq_len, num_heads, head_size]
    return t.transpose(1, 2)  # [batch_size, num_heads, seq_len, head_size]
    ### END SOLUTION


# %% check="heads.split" points=2
check("heads.split")

# %% [markdown]
# ## 4 All heads at once
#
# Why do we want the heads beside the batch? Because `@` multiplies the **last two**
# dimensions and does so for every combination of the earlier ones. With
# `[batch_size, num_heads, seq_len, head_size]`, one `@` makes the scores of every head
# of every sentence. Here are two heads, three tokens, four features, in one product and
# one head at a time:

# %%
a = torch.tensor(
    [
        [
            [
                [0.2745, 0.6584, 0.2775, 0.8573],
                [0.8993, 0.0390, 0.9268, 0.7388],
                [0.7179, 0.7058, 0.9156, 0.4340],
            ],
            [
                [0.0772, 0.3565, 0.1479, 0.5331],
                [0.4066, 0.2318, 0.4545, 0.9737],
                [0.4606, 0.5159, 0.4220, 0.5786],
            ],
        ]
    ]
)  # [1, 2, 3, 4]
print("all heads at once:\n", a @ a.transpose(2, 3))
for i in range(2):
    head = a[0, i]  # [3, 4]
    print(f"head {i} alone:\n", head @ head.T)

# %% [markdown]
# The same numbers, twice. Note `a.transpose(2, 3)` for the stack and `head.T` for the
# single matrix. `.T` turns *all* dimensions round, which for a matrix is the same thing
# and for anything larger is not; PyTorch warns against it there and will forbid it.
# `transpose(-2, -1)` is right for both.
#
# ### Exercise 4: scores of all heads
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `head_scores`: scaled scores of all heads.


# %% exercise="heads.scores"
def head_scores(q, k):
    """Scaled scores of every query with every key, head by head.

    Args:
        q, k: FloatTensor[batch_size, num_heads, seq_len, head_size]
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1)
    # [batch_size, num_heads, seq_len, seq_len]
    return scores / q.shape[-1] ** 0.5  # [batch_size, num_heads, seq_len, seq_len]
    ### END SOLUTION


# %% check="heads.scores" points=1
check("heads.scores")

# %% [markdown]
# ## 5 Merging
#
# At the end the heads' outputs have to come back side by side: from
# `[batch_size, num_heads, seq_len, head_size]` to `[batch_size, seq_len, hidden]`. Undo
# the split in reverse order: first transpose, then join.
#
# One stumbling block. **Before you run this:** which of the three lines fails?

# %%
heads = torch.arange(12).view(1, 2, 3, 2)  # [1, 2, 3, 2]
back = heads.transpose(1, 2)  # [1, 3, 2, 2]
print("in memory order:", heads.is_contiguous(), "and after transpose:", back.is_contiguous())
print("reshape:          ", back.reshape(1, 3, 4).tolist())
print("contiguous + view:", back.contiguous().view(1, 3, 4).tolist())
try:
    print("view:             ", back.view(1, 3, 4).tolist())
except RuntimeError as error:
    print("view:              RuntimeError:", str(error).split(".")[0])

# %% [markdown]
# `transpose` moves no number in memory; it only changes the order in which they are
# read. `view` promises never to copy, and a transposed tensor cannot be joined without
# copying. So `view` refuses, `.contiguous()` makes the copy, and `reshape` makes it if
# it must.
#
# ### Exercise 5: merge
#
# ●●●○○ · 8 minutes · 2 points
#
# Write `merge_heads`, so that `merge_heads(split_heads(t, n))`
# is `t` again.


# %% exercise="heads.merge"
def merge_heads(t):
    """Puts the heads side by side again: the inverse of `split_heads`.

    Args:
        t: FloatTensor[batch_size, num_heads, seq_len, head_size]
    Returns:
        FloatTensor[batch_size, seq_len, num_heads * head_size]
    """
    ### BEGIN SOLUTION
    batch_size, num_heads, seq_len, head_size = t.shape
    t = t.transpose(1, 2)  # [batch_size, seq_len, num_heads, head_size]
    return t.reshape(batch_size, seq_len, num_heads * head_size)
    # [batch_size, seq_len, num_heads, head_size] -> [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="heads.merge" points=2
check("heads.merge")

# %% [markdown]
# ## 6 Causal attention of all heads
#
# Now put the parts together. The projections have been made already, each with one product:
# `q`, `k` and `v` are `[batch_size, seq_len, hidden]`.
#
# ### Exercise 6: attention of all heads
#
# ●●●○○ · 15 minutes · 3 points
#
# Write `attend`: split, score, hide the future, softmax,
# average, merge. Return the merged output, and the probabilities as
# `[batch_size * num_heads, seq_len, seq_len]`, where head `h` of item `b` stands at
# `b * num_heads + h`. You may use your functions from above (for marking, ours stand in
# for them, so that an earlier slip is not counted twice).


# %% exercise="heads.attend" needs="heads.split heads.scores heads.merge"
def attend(q, k, v, num_heads):
    """Causal attention of num_heads heads on projected queries, keys and values.

    Args:
        q, k, v: FloatTensor[batch_size, seq_len, hidden]
        num_heads: int, a divisor of hidden
    Returns:
        FloatTensor[batch_size, seq_len, hidden], the outputs of all heads side by side, and
        FloatTensor[batch_size * num_heads, seq_len, seq_len], the attention probabilities
    """
    ### BEGIN SOLUTION
    seq_len = q.shape[1]
    q, k, v = (split_heads(t, num_heads) for t in (q, k, v))
    # each [batch_size, num_heads, seq_len, head_size]
    scores = head_scores(q, k)  # [batch_size, num_heads, seq_len, seq_len]
    future = torch.ones(seq_len, seq_len, device=q.device).triu(1).bool()  # [seq_len, seq_len]
    scores = scores.masked_fill(future, float("-inf"))
    # [batch_size, num_heads, seq_len, seq_len]
    probs = torch.softmax(scores, dim=-1)  # [batch_size, num_heads, seq_len, seq_len]
    return merge_heads(probs @ v), probs.flatten(0, 1)
    # [batch_size, seq_len, hidden], [batch_size * num_heads, seq_len, seq_len]
    ### END SOLUTION


# %% check="heads.attend" points=3
check("heads.attend")

# %% [markdown]
# ## 7 Are the two ways equal?
#
# They should be: same mathematics, other order of work. But "should be" is a claim, and
# claims can be tested. Take a `HeadStack`, copy its weights into one wide layer, and
# compare the outputs.
#
# The copying is the exercise. The queries' matrices of the heads, each
# `[head_size, input_size]`, have to become one `[hidden, input_size]` whose output, cut
# into heads, gives head 0 what head 0 had. Mind how `nn.Linear` stores its weight: **a
# row is an output**.
#
# ### Exercise 7: the weights of the stack
#
# ●●●○○ · 8 minutes · 2 points
#
# Write `fuse_heads`.


# %% exercise="heads.transfer"
def fuse_heads(weights, biases):
    """One linear layer that does the work of num_heads small ones.

    Args:
        weights: list of num_heads FloatTensor[head_size, input_size]
        biases: list of num_heads FloatTensor[head_size]
    Returns:
        FloatTensor[num_heads * head_size, input_size] and FloatTensor[num_heads * head_size]
    """
    ### BEGIN SOLUTION
    weight = torch.cat(weights, dim=0)  # [num_heads * head_size, input_size]
    bias = torch.cat(biases, dim=0)  # [num_heads * head_size]
    return weight, bias
    ### END SOLUTION


# %% check="heads.transfer" points=2
check("heads.transfer")

# %% [markdown]
# And the proof by numbers. **Before you run this:** how large a difference would you accept as
# rounding?

# %%
torch.manual_seed(0)
x = torch.randn(2, 9, 10)  # [2, 9, 10]
stack = HeadStack(input_size=10, head_size=8, num_heads=5)


def fused(name):
    """The weight of one layer that does the work of all heads' layers of that name."""
    weights = [getattr(head, name).weight for head in stack.heads]  # 5 x [8, 10]
    return fuse_heads(weights, [torch.zeros(8)] * 5)[0]  # [40, 10]


with torch.no_grad():
    one_by_one = stack(x)  # [2, 9, 40]
    q, k, v = (x @ fused(name).T for name in ("q", "k", "v"))  # each [2, 9, 40]
    at_once, probs = attend(q, k, v, num_heads=5)  # [2, 9, 40], [10, 9, 9]
print("largest difference:", f"{(one_by_one - at_once).abs().max():.0e}")
print("equal up to rounding:", torch.allclose(one_by_one, at_once, atol=1e-6))

places = [[f"head {i}", "all heads"] for i in range(5)]
fig, axes = plt.subplot_mosaic(places, figsize=(4.6, 5.6), layout="constrained")
look = {"vmin": -0.4, "vmax": 0.4, "cmap": "PuOr", "aspect": "auto"}
for i, head in enumerate(stack.heads):
    axes[f"head {i}"].imshow(head.q.weight.detach(), **look)
    axes[f"head {i}"].set(ylabel=f"head {i}\n[8, 10]", xticks=[], yticks=[])
axes["all heads"].imshow(fused("q").detach(), **look)
for border in range(8, 40, 8):
    axes["all heads"].axhline(border - 0.5, color="black", lw=1.5)
axes["all heads"].set(title="all heads, [40, 10]", xticks=[], yticks=[])
axes["head 0"].set_title("one at a time")
show(
    fig,
    "Left the query weights of five heads as separate small matrices, right the one tall "
    "matrix in which they stand one below the other, with lines at the borders of the heads.",
)

# %% [markdown]
# **Figure.** The query matrices of five heads, and the one matrix that replaces them: the same
# rows, one head below the other.
#
# The difference is 0 or a few units in the last digit, depending on the machine: sums
# in another order round differently. Anything far above `1e-6` would be a bug.
#
# So what is gained? Not a single multiplication: both ways multiply the same numbers.
# What changes is how often Python has to ask for a product. Let us count the calls, for
# as many heads as GPT-2 small has:


# %%
class CountProducts(TorchFunctionMode):
    """Counts the matrix products that are asked for while it is active."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += function.__name__ in ("linear", "matmul", "__matmul__")
        return function(*args, **(kwargs or {}))


twelve = HeadStack(input_size=24, head_size=2, num_heads=12)
to_q, to_k, to_v = (nn.Linear(24, 24, bias=False) for _ in range(3))
x = torch.randn(1, 5, 24)  # [1, 5, 24]
with torch.no_grad(), CountProducts() as in_a_row:
    twelve(x)
with torch.no_grad(), CountProducts() as at_once:
    attend(to_q(x), to_k(x), to_v(x), num_heads=12)
print("12 heads in a row: ", in_a_row.count, "products")
print("12 heads at once:  ", at_once.count, "products")

# %% [markdown]
# Five products for each head, or five in all. That is the whole difference between
# "sequential" and "parallel" heads.
#
# ## 8 The output layer
#
# The merged output `[head 0 | head 1 | ...]` goes through one more linear layer, $W_O$ (called
# `out_proj` in some books and `mix` in the homework). Without it, head 0 would own the first
# features of the output for good, and no feature could depend on two heads.
#
# There is a second way to see it, worth remembering. Multiplying a row of blocks by a
# matrix is a sum over the blocks:
#
# $$[\,z_0 \mid z_1 \mid \dots\,]\, W_O^\top = z_0 B_0^\top + z_1 B_1^\top + \dots$$
#
# where $B_h$ is the block of columns of $W_O$ that belongs to head $h$. So the output
# is a **sum of shares, one from each head**. When people say that a head of GPT-2
# "writes" something, they mean its share (lesson 12 does that with a real model).
#
# ### Exercise 8: each head's share
#
# ●●●○○ · 9 minutes · 2 points
#
# Write `head_contributions`: the share of every head, before they are
# summed. `weight` is the weight of an `nn.Linear(hidden, hidden)`, so `[outputs, inputs]`.


# %% exercise="heads.output"
def head_contributions(heads, weight):
    """What each head adds to the output of the layer after the merge (without its bias).

    Args:
        heads: FloatTensor[batch_size, num_heads, seq_len, head_size]
        weight: FloatTensor[hidden, hidden], as an nn.Linear stores it
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, hidden]
    """
    ### BEGIN SOLUTION
    blocks = weight.chunk(heads.shape[1], dim=1)  # num_heads x [hidden, head_size]
    shares = [heads[:, i] @ block.T for i, block in enumerate(blocks)]
    # num_heads x [batch_size, seq_len, hidden]
    return torch.stack(shares, dim=1)  # [batch_size, num_heads, seq_len, hidden]
    ### END SOLUTION


# %% check="heads.output" points=2
check("heads.output")

# %% [markdown]
# The shares add up to what the layer gives, and they are not all of a size:

# %%
torch.manual_seed(1)
mix = nn.Linear(12, 12)
heads = torch.randn(1, 4, 5, 3) * torch.tensor([0.3, 1.0, 4.0, 0.6]).view(1, 4, 1, 1)
# [1, 4, 5, 3]
with torch.no_grad():
    output = mix(merge_heads(heads))  # [1, 5, 12]
    shares = head_contributions(heads, mix.weight)  # [1, 4, 5, 12]
    summed = shares.sum(1) + mix.bias  # [1, 5, 12]
print("sum of shares + bias = output:", torch.allclose(summed, output, atol=1e-6))

fig, ax = plt.subplots(figsize=(6, 2.8))
norms = shares[0].norm(dim=-1)  # [4, 5]
image = ax.imshow(norms, cmap="viridis", vmin=0)
for i in range(4):
    for j in range(5):
        dark = norms[i, j] < norms.max() / 2
        ax.text(j, i, f"{norms[i, j]:.1f}", ha="center", va="center", color="w" if dark else "k")
ax.set(xlabel="token", ylabel="head", yticks=range(4), title="size of each head's share")
fig.colorbar(image, label="norm")
show(
    fig,
    "Heat map of the norm of the share of each of four heads at each of five tokens. Head 2, "
    "whose inputs were made largest, has the largest shares.",
)

# %% [markdown]
# **Figure.** How much each of four heads adds to the output at each of five tokens.
# Head 2, made loud on purpose, dominates.
#
# ### The whole layer
#
# The way of a tensor through it, with the sizes of 2 sentences of 6 tokens, 12 features and 3 heads
# (`attend` has been asked for its results; the rest follows from them):

# %%
torch.manual_seed(2)
x = torch.randn(2, 6, 12)  # [2, 6, 12]
q, k, v = (nn.Linear(12, 12)(x) for _ in range(3))  # each [2, 6, 12]
merged, probs = attend(q, k, v, num_heads=3)  # [2, 6, 12], [6, 6, 6]
by_head = split_heads(q, 3)  # [2, 3, 6, 4]


def sizes(name, tensor):
    return f"{name}\n{list(tensor.shape)}"


boxes = {"x": (0, 1.2, sizes("x", x)), "probs": (8.7, 1.8, sizes("probabilities", probs))}
for name, t, y in (("q", q, 2.4), ("k", k, 1.2), ("v", v, 0.0)):
    boxes[name] = (2.9, y, sizes(name, t))
    boxes[f"{name} split"] = (5.8, y, sizes(f"{name} by head", split_heads(t, 3)))
boxes["z"] = (11.6, 0.9, sizes("z by head", by_head))
boxes["merged"] = (11.6, -0.4, sizes("merged", merged))
boxes["out"] = (8.7, -0.4, sizes("output", merged))
arrows = [(name, f"{name} split", "split") for name in "qkv"]
arrows += [("x", name, f"$W_{name}$") for name in "qkv"]
arrows += [("q split", "probs"), ("k split", "probs", "scores,\nmask, softmax"), ("probs", "z"),
           ("v split", "z", "probabilities @ values"), ("z", "merged", "merge"),
           ("merged", "out", "$W_O$")]
colours = {f"{name}{more}": i for i, name in enumerate("qkv") for more in ("", " split")}
show(
    plots.flow(boxes, arrows, colours=colours),
    "Data flow of the whole layer. x goes through three matrices to q, k and v; each is split into "
    "three heads of four features; q and k make probabilities for each head, which blend the "
    "values; the heads are merged and go through the output layer.",
)

# %% [markdown]
# **Figure.** The whole layer. Between the split and the merge every head is on its own, all of them
# in the same products. The probabilities have one table for each sentence and head, 2 times 3.
#
# All parts in one class, in the order in which the pieces of its famous relatives are
# created, so that the same seed gives the same weights:


# %%
class ManyHeads(nn.Module):
    """Causal multi-head attention; `hidden` is the width of all heads together."""

    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_size = head_size_of(hidden, num_heads)
        self.q = nn.Linear(input_size, hidden, bias=False)
        self.k = nn.Linear(input_size, hidden, bias=False)
        self.v = nn.Linear(input_size, hidden, bias=False)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x):
        """FloatTensor[batch_size, seq_len, input_size] to [batch_size, seq_len, hidden]."""
        att, _ = attend(self.q(x), self.k(x), self.v(x), self.num_heads)
        # [batch_size, seq_len, hidden]
        return self.out(att)  # [batch_size, seq_len, hidden]


torch.manual_seed(123)
layer = ManyHeads(input_size=3, hidden=2, num_heads=2)
with torch.no_grad():
    context = layer(batch)  # [2, 6, 2]
print(list(context.shape))
print(context[0])

# %% [markdown]
# `[2, 6, 2]`: two heads of size **one** this time, since `hidden` is the width of both
# together. The stack at the top, also "2 heads, size 2", gave four columns. That is the
# difference between the two conventions, in numbers.
#
# ## 9 What does it cost?
#
# **Before you go on:** a layer of width 768 with 12 heads, or the same layer with 1
# head. Which has more parameters?
#
# ### Exercise 9: count
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `attention_parameters`: how many numbers the layer
# learns. Queries, keys and values go from input_size to hidden, with biases only where
# `qkv_bias` is set; the output layer goes from hidden to hidden and always has biases.


# %% exercise="heads.count"
def attention_parameters(input_size, hidden, num_heads, qkv_bias=False):
    """Number of parameters of multi-head attention with an output layer, an int."""
    ### BEGIN SOLUTION
    projections = 3 * input_size * hidden + (3 * hidden if qkv_bias else 0)
    output = hidden * hidden + hidden
    return projections + output
    ### END SOLUTION


# %% check="heads.count" points=1
check("heads.count")

# %%
for num_heads in (1, 12, 768):
    print(f"width 768, {num_heads:3d} heads: {attention_parameters(768, 768, num_heads):,}")
small = ManyHeads(input_size=768, hidden=768, num_heads=12)
print(f"counted in a real layer: {sum(p.numel() for p in small.parameters()):,}")
print(f"with biases, as GPT-2:   {attention_parameters(768, 768, 12, qkv_bias=True):,}")
print(f"twelve such layers:      {12 * attention_parameters(768, 768, 12, qkv_bias=True):,}")

# %% [markdown]
# 2,360,064, whatever the number of heads: they share out the same matrices.
# (`num_heads` is an argument of the function that it never uses. That is the point.)
# GPT-2 small has 12 heads of size 64 and biases everywhere, which makes 2,362,368 for a
# layer and 28,348,416 for its twelve: about 28 of its 124 million parameters.
#
# Compare `HeadStack`: there the size given is that of one head, so twelve heads of size
# 768 would have twelve times the projections. Before you compare two papers' parameter
# counts, ask which convention they use.
#
# ## 10 Heads that have read something
#
# So far every head was random. What do heads look like after training? A small GPT-2 lies on board:
# four layers of four heads, trained on children's books and on rows in which a piece comes
# several times. (Its attention is the layer you just built; lesson 09 takes it apart.) We give it a
# sentence that repeats itself, and look at its first two layers.
#
# **Before you run this:** the tokenizer cuts " rabbit" into " r", "ab" and "bit". What would *you*
# look at, standing on the second "ab", to guess what comes next?

# %%
from transformer_lm.activations import attention_patterns
from transformer_lm.pretrained import load_gpt2

model, tokenizer = load_gpt2("large-on-board", verbose=True)
ids = tokenizer("The white rabbit ran, and Alice ran after the white rabbit",
                return_tensors="pt").input_ids  # [1, tokens]
maps = attention_patterns(model, ids)[:2, 0]  # [layers, heads, tokens, tokens]
pieces = [tokenizer.decode(t) for t in ids[0]]
names = [f"layer {n}, head {h}" for n in range(maps.shape[0]) for h in range(maps.shape[1])]
fig, axes = plt.subplots(2, 4, figsize=(12.5, 6.4), layout="constrained")
for ax, one, name in zip(axes.flat, maps.flatten(0, 1), names, strict=True):
    image = ax.imshow(one, vmin=0, vmax=1)
    ax.set_title(name, fontsize=10)
    ax.set_xticks(range(len(pieces)), pieces, rotation=90, fontsize=7)
    ax.set_yticks(range(len(pieces)), pieces, fontsize=7)
fig.colorbar(image, ax=axes, label="probability", shrink=0.7)
show(
    fig,
    "Eight attention maps over the same sentence, one for each head of two layers of a small "
    "trained model. In layer 0, head 3 has a bright line just below the diagonal. In layer 1, heads "
    "1 to 3, the repeated words look at what followed them the first time, and other words at the "
    "first token. The rest spread their weight.",
)
later = maps.shape[-1] - 2  # the last token but one
for name, one in zip(names, maps.flatten(0, 1), strict=True):
    best = one[later].topk(2)
    print(name, repr(pieces[later]), "looks at",
          ", ".join(f"{pieces[i]!r} {p:.2f}" for p, i in zip(*best, strict=True)))

# %% [markdown]
# **Figure.** The eight heads of the first two layers on one sentence. Rows are queries, columns
# keys.
#
# Head 3 of layer 0 looks at the token before, always: from "ab" with all its weight at " r". Three
# heads of layer 1 do what you would do. On the second "ab" heads 1, 2 and 3 look, with 0.40, 0.57
# and 0.48, at the first "bit": at what *followed* the last time. (Nobody told them to. When in
# training they began, and what they do with it, lesson 12 finds out.) Where nothing has come
# before, heads 2 and 3 put their weight on the first token, and lesson 11 says why. The other four
# have ways of their own. Two spread their weight over many tokens, one gathers around the last few,
# one looks at "The" and " and", and no single word says what they are for. Most heads of real models
# are like that, too.
#
# ## Did it stick?
#
# **1.** `t` is `[8, 10, 48]`. Which shape has `split_heads(t, 6)`?
# <details><summary>Answer</summary><code>[8, 6, 10, 8]</code>.</details>
#
# **2.** Which of these are right merges of `[b, h, s, d]`? `t.reshape(b, s, h * d)`,
# `t.transpose(1, 2).flatten(2)`, `t.permute(0, 2, 3, 1).flatten(2)`
# <details><summary>Answer</summary>The second only. The first puts heads into the places
# of tokens; the third interleaves the heads' features.</details>
#
# **3.** Two layers of width 512, one with 8 heads and one with 16. Which has more
# parameters, and which makes more attention probabilities?
# <details><summary>Answer</summary>Parameters: the same. Probabilities: twice as many
# with 16 heads (one table a head).</details>
#
# **4.** Your outputs are right with one head and wrong with two. Where do you look?
# <details><summary>Answer</summary>At split and merge: with one head every reshape is
# right. Then at the scale: with one head <code>hidden</code> and <code>head_size</code> are equal.</details>
#
# **5.** In probabilities of shape `[30, 7, 7]` from a batch of 6, where is head 2 of item
# 4?
# <details><summary>Answer</summary>30 / 6 = 5 heads, so at 4 * 5 + 2 = 22.</details>
#
# **What comes next.** In lesson 05 you write both classes from an empty page, for marks. Terms:
# [head](../../docs/glossary.md#head), [merging heads](../../docs/glossary.md#merge-heads),
# [contiguous](../../docs/glossary.md#contiguous),
# [output projection](../../docs/glossary.md#output-projection).
