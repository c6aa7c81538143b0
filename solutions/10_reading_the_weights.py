# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Reading the weights
#
# A trained model is a few million numbers and no explanation. What can be read from the
# numbers alone, without a single word going in? More than you would think, and less
# than many plots claim. This lesson takes the attention weights of a GPT-2 apart: how
# they are spread, how they divide into heads, whether heads resemble each other. Then
# comes the turn. Half of what we will have plotted by that point is *not a property of
# the model* at all. We will change it at will without changing a single output, ask
# what remains, and so arrive at the one matrix that really says what a head looks for:
# $W_Q W_K^{\mathsf T}$.
#
# Parts 1 to 6 follow project 33 of Mike X Cohen's "50 ML projects to understand LLMs",
# whose blanks are the exercises. The questions after that are those of the notes on
# GPT-2's attention matrices.
#
# **After this lesson you can**
#
# * count a model's attention parameters from its config, without loading it;
# * split `c_attn` into Q, K and V and into heads, along the right axis;
# * draw histograms and densities that do not hide what lies outside them;
# * compare columns by cosine, within and across heads, beside the right random baseline;
# * show that those cosines depend on a choice nobody made, and find what does not;
# * write a head's $W_Q W_K^{\mathsf T}$ so that it is a property of the model;
# * say how far it is from the identity, how symmetric it is, whether it is positive
#   semidefinite, against 200 random twins, and what the biases add.
#
# | | |
# |---|---|
# | Time | 150 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●○○ |
#
# Fourteen exercises, fourteen points. Stuck? `hint("weights.params", 1)` gives a nudge,
# `2` a push, `3` nearly the answer. The worked solutions come with the whole course, in
# `solutions/10_reading_the_weights.ipynb`; look at them after an attempt of your own.
# Numbers in the text are those of `large-on-board`; with another model, read yours off the
# output.
#
# **About the models on board.** Nobody chose what the heads of `large-on-board` do: its loss was
# that of the predicted tokens and nothing else. In the three smaller ones, which stand beside it
# in Parts 3 and 6, two heads were *shown* for a while in training where to look, layer 0 head 0 and
# layer 1 head 0 (see the `MODEL_CARD.md` of each). If you make one of those the star of this
# lesson, stars mark the two in the figures by head.

# %% role="setup"
import copy
import math
import os

import matplotlib.pyplot as plt
import torch
from tqdm import tqdm
from transformers import GPT2Config, GPT2LMHeadModel

from autograder import check, hint
from transformer_lm import plots
from transformer_lm.activations import record
from transformer_lm.books import read_books
from transformer_lm.figures import show
from transformer_lm.pretrained import ON_BOARD, guided_heads, load_gpt2
from transformer_lm.weights import (
    bias_effect,
    head_weights,
    histogram,
    qk_factors,
    random_like,
    singular_values,
    singular_vectors,
    trace_share,
)

# %% [markdown]
# ## Part 1. A dictionary of models
#
# Cohen compares the four sizes of GPT-2. We have four small ones on board, so the
# figures "across models" have four rows. Set `COURSE_MODEL` to `gpt2`, or to a folder,
# and the model you name joins the family as its star; nothing else changes.

# %%
NAME = os.environ.get("COURSE_MODEL", "large-on-board")
model, tokenizer = load_gpt2(NAME, verbose=True)
config = model.config
LABEL = os.path.basename(os.path.normpath(NAME))  # NAME may be a folder's path
models = {name: model if name == LABEL else load_gpt2(name)[0] for name in ON_BOARD}
models[LABEL] = model


def star(layer, head):
    """Marks a head that was guided, for the titles of figures."""
    return " ★" if (layer, head) in guided_heads(model) else ""

# %% [markdown]
# ### Exercise 1: the numbers that a table needs
#
# ●○○○○ · 3 minutes · 1 point

# %% exercise="weights.params"
def params(config):
    """What Part 1's table says of a model.

    Args:
        config: has n_layer, n_head, n_embd, n_positions and vocab_size
    Returns:
        a dict of ints: "n_layers", "n_emb", "n_heads", "head_dim"
    """
    ### BEGIN SOLUTION
    return {
        "n_layers": config.n_layer,
        "n_emb": config.n_embd,
        "n_heads": config.n_head,
        "head_dim": config.n_embd // config.n_head,
    }
    ### END SOLUTION


# %%
hint("weights.params", 1)

# %% check="weights.params" points=1
check("weights.params")

# %%
real = {
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(n_layer=24, n_head=16, n_embd=1024),
    "gpt2-large": GPT2Config(n_layer=36, n_head=20, n_embd=1280),
    "gpt2-xl": GPT2Config(n_layer=48, n_head=25, n_embd=1600),
}
configs = {**{name: each.config for name, each in models.items()}, **real}
print("     Model      | Embed.dim | Layers | n heads | head.dim")
print("----------------+-----------+--------+---------+---------")
for name, each in configs.items():
    p = params(each)
    print(f" {name:14} | {p['n_emb']:9} | {p['n_layers']:6} | {p['n_heads']:7} | "
          f"{p['head_dim']:8}")

# %% [markdown]
# Two things to see. In the four real ones every head has 64 features, from the smallest
# to the largest: more size means more heads, not bigger ones. And here is a small trap
# of Python. The notebook prints its keys with `'"params[''small'']" keys:'`, in the
# belief that two quotes make one. What does this print?

# %%
print('"params[''small'']" keys:')
print('''"params['small']" keys:''')

# %% [markdown]
# Python glues neighbouring strings together, so the doubled quotes simply vanish.
#
# ### How many numbers is attention?
#
# The attention of a block is `c_attn` (queries, keys and values in one) and `c_proj`
# (the mix), each with a weight and a bias. The notebook adds all four up and prints
# "attention *weights*". We keep the two apart.
#
# ### Exercise 2: count them
#
# ●○○○○ · 5 minutes · 1 point

# %% exercise="weights.count"
def attention_parameters(model):
    """How many numbers the attention of all blocks has.

    Args:
        model: a GPT2LMHeadModel
    Returns:
        weights: int, the numbers in all c_attn and c_proj weights
        biases: int, the numbers in their biases
    """
    ### BEGIN SOLUTION
    weights = biases = 0
    for block in model.transformer.h:
        for layer in (block.attn.c_attn, block.attn.c_proj):
            weights += layer.weight.numel()
            biases += layer.bias.numel()
    return weights, biases
    ### END SOLUTION


# %% check="weights.count" points=1
check("weights.count")

# %% [markdown]
# To count the real ones we need not load them. Loading all four in full precision takes
# 11.2 GB, as the notebook does in its second cell. PyTorch has a device called *meta*,
# on which a tensor has a shape and no numbers. Whole models fit on it. (And where only
# attention weights are needed, `transformer_lm.pretrained.open_attention_weights` reads
# them one layer at a time.)

# %%
total = 0
for name, each in configs.items():
    with torch.device("meta"):
        hollow = GPT2LMHeadModel(each)
    weights, biases = attention_parameters(hollow)
    everything = sum(p.numel() for p in hollow.parameters())
    total += everything * 4 / 1e9 if name in real else 0
    print(f"{name:14}: {(weights + biases) / 1e6:7.3f} M in attention, of them "
          f"{biases / 1e6:.3f} M biases; {(weights + biases) / everything:4.0%} of the model")
print(f"the four real ones in float32: {total:.1f} GB")

# %% [markdown]
# 28.3, 100.8, 236.1 and 491.8 million for the real ones, biases included. Each layer
# has $4 d^2 + 4 d$ of them, so the biases are a share of $1/d$: easy to forget, and
# soon to be important.
#
# ## Part 2. How the weights are spread
#
# One layer's `c_attn`, as a picture. In a real GPT-2 that is 768 rows and 2304 columns.

# %%
layer = min(config.n_layer - 1, max(1, config.n_layer // 2 - 1))
wide = model.transformer.h[layer].attn.c_attn.weight.detach()  # [hidden, 3 * hidden]
figure = plots.wide_weight(wide, title=f"c_attn of layer {layer}, {LABEL}")
show(figure, "A wide picture of one layer's c_attn weight, with two dashed lines between the "
     "columns of queries, keys and values. The first quarter of each third is paler, and a few rows "
     "stand out.")

# %% [markdown]
# **Figure.** The weight of `c_attn`, blue for positive and red for negative. The dashed
# lines stand at $d$ and $2d$ (the hidden size and twice that). The first quarter of each third
# is paler: those columns are head 0, which has the smaller numbers. Horizontal stripes are rows:
# input features that keys or values of all heads treat alike.
#
# The lines are vertical because GPT-2's `Conv1D` stores `[inputs, outputs]`. Rows are
# what the layer *reads*: all of $Q$, $K$ and $V$ read the same features. Columns are
# what it *makes*. In an `nn.Linear` it would be the other way round.
#
# ### Exercise 3: three matrices out of one
#
# ●○○○○ · 4 minutes · 1 point

# %% exercise="weights.split"
def split_wide(wide):
    """Cuts c_attn's weight into the weights of queries, keys and values.

    Args:
        wide: FloatTensor[hidden, 3 * hidden], as Conv1D stores it
    Returns:
        three FloatTensor[hidden, hidden]: w_q, w_k, w_v
    """
    ### BEGIN SOLUTION
    w_q, w_k, w_v = torch.split(wide, wide.shape[0], dim=1)  # [hidden, hidden] each
    return w_q, w_k, w_v
    ### END SOLUTION


# %% check="weights.split" points=1
check("weights.split")

# %% [markdown]
# Now histograms. How many bins? Too few and everything is a block, too many and
# everything is a comb. The rule of Freedman and Diaconis looks at the data: a bin is
# $2\,\mathrm{IQR}/\sqrt[3]{n}$ wide, where IQR is the range of the middle half of the
# values. That is `bins="fd"`.

# %%
names = ("W_Q", "W_K", "W_V")
parts = dict(zip(names, split_wide(wide), strict=True))
curves = {name: histogram(w, bins="fd", density=False) for name, w in parts.items()}
for name, curve in curves.items():
    print(f"{name}: {len(curve.centres)} bins, {curve.centres[1] - curve.centres[0]:.4f} wide")
figure = plots.histogram_lines(
    curves, title=f"Weights of layer {layer}, {LABEL}", xlabel="weight", ylabel="count"
)
show(figure, "Three bell-shaped curves around zero, the counts of the weights of W_Q, W_K and "
     "W_V in one layer; they differ in width.")
for name, w in parts.items():
    by_head = w.unflatten(1, (config.n_head, -1)).transpose(0, 1).flatten(1)  # [heads, numbers]
    each = (by_head / by_head.std(dim=1, keepdim=True)).pow(4).mean(dim=1)  # [num_heads]
    print(f"{name}: std by head {[round(s, 3) for s in by_head.std(dim=1).tolist()]}, "
          f"tails (Gaussian: 3.0): {(w / w.std()).pow(4).mean():.1f} all together, "
          f"{each.mean():.1f} head by head")

# %% [markdown]
# **Figure.** Counts of the weights of one layer. All three are centred at zero and have
# longer tails than a Gaussian, if only a little. Careful: each curve has bins
# of its own here, so the *heights* cannot be compared. A wider bin catches more.
#
# Long tails invite a story. Look at the printed numbers first. (They are the mean fourth power of
# the standardised weights, 3 for a Gaussian.) Head by head, the weights of $W_V$ are nearly
# Gaussian, 3.1; all together, 3.4. Those tails are a **mixture** of heads with larger and smaller
# numbers, as the four standard deviations say. Before you explain a distribution, ask whether it is
# one. In $W_K$ the tails are there head by head, 3.5: that is the heads' own.
#
# For a picture with one row a layer, all layers need the same bins, and heights that
# can be compared: a **density**, a share per unit of width. There are two ways to get
# that wrong.
#
# **Where is a bin?** `np.histogram` returns the *edges*, one more than bins. The
# notebook plots over `x[:-1]`, the left edges, which moves every curve to the left by
# half a bin.
#
# **A share of what?** With fixed edges (the notebook has ±0.8, and ±0.4 for cosines; we
# take ±0.3, to see more of the middle), some values may lie outside. NumPy's
# `density=True` divides by the number of values *inside*. What is outside is not drawn,
# and not missed: the area is 1 in any case. Divide by all values instead, and say how
# many are not in the picture.
#
# ### Exercise 4: an honest density
#
# ●●○○○ · 8 minutes · 1 point

# %% exercise="weights.histogram"
def density(values, edges):
    """A histogram as a density over all values, those outside the edges included.

    Args:
        values: FloatTensor of any shape
        edges: FloatTensor[bins + 1], ascending
    Returns:
        centres: FloatTensor[bins], the middle of each bin
        heights: FloatTensor[bins], the share of all values in the bin, per unit of width
        outside: a number, the share of values beyond the edges
    """
    ### BEGIN SOLUTION
    counts, _ = torch.histogram(values.flatten(), bins=edges)  # [bins], [bins + 1]
    shares = counts / values.numel()  # [bins]
    widths = edges[1:] - edges[:-1]  # [bins]
    return edges[:-1] + widths / 2, shares / widths, 1 - shares.sum()
    ### END SOLUTION


# %% check="weights.histogram" points=1
check("weights.histogram")

# %%
edges = torch.linspace(-0.3, 0.3, 81)  # [bins + 1]
maps, lost = [], []
for block in model.transformer.h:
    found = [density(w, edges) for w in split_wide(block.attn.c_attn.weight.detach())]
    maps.append(torch.stack([heights for _, heights, _ in found], dim=-1))  # [bins, 3]
    lost.append([float(outside) for *_, outside in found])
maps = torch.stack(maps)  # [n_layer, bins, 3]
centres = (edges[:-1] + edges[1:]) / 2  # [bins]
figure = plots.heat_by_layer(
    maps, centres, names, title=f"Weights by layer, {LABEL}", xlabel="weight"
)
show(figure, "Three heat maps, for W_Q, W_K and W_V: one row a layer, weights from -0.3 to 0.3 "
     "across, brightness is density. All are brightest at zero, some rows are wider.")
for number, shares in enumerate(lost):
    print(f"layer {number}: outside", ", ".join(f"{n} {s:.2%}" for n, s in
                                                zip(names, shares, strict=True)))

# %% [markdown]
# **Figure.** The distribution of the weights in each layer, one row a layer, layer 0 at
# the bottom, each map with a colour bar of its own. A bright narrow row has many small
# weights; a broad faint one has more large ones. And the list below it says what the
# picture cannot: of $W_Q$ in layer 0 13.23 % of the weights lie outside.
#
# ### Exercise 5: mean and standard deviation
#
# ●●○○○ · 6 minutes · 1 point
#
# Two numbers sum up each row. Mind the standard deviation: `torch.std` divides by $n -
# 1$ (an estimate for the population that the numbers came from), `np.std` by $n$. With
# a million weights nobody will see it; with a small matrix, or in a check, you do.
# Here: torch's, everywhere.

# %% exercise="weights.statistics" needs="weights.split"
def qkv_stats(model):
    """Mean and standard deviation of W_Q, W_K and W_V in each layer; weights only.

    Args:
        model: a GPT2LMHeadModel
    Returns:
        FloatTensor[n_layer, 3, 2]: layer; Q, K or V; mean or standard deviation (n - 1)
    """
    ### BEGIN SOLUTION
    table = []
    for block in model.transformer.h:
        w_qkv = torch.stack(split_wide(block.attn.c_attn.weight.detach()))  # [3, hidden, hidden]
        flat = w_qkv.flatten(1)  # [3, hidden * hidden]
        table.append(torch.stack([flat.mean(dim=1), flat.std(dim=1)], dim=1))
    return torch.stack(table)  # [n_layer, 3, 2]
    ### END SOLUTION


# %% check="weights.statistics" points=1
check("weights.statistics")

# %%
def two_panels(tables, ylabels=("mean", "standard deviation"), baselines=None):
    """One row a model, two panels: Q, K and V by layer. tables: {name: [n_layer, 3, 2]}."""
    figure, axes = plt.subplots(
        len(tables), 2, figsize=(10, 2.4 * len(tables) + 0.5), squeeze=False
    )
    for row, (name, table) in zip(axes, tables.items(), strict=True):
        for kind, ax in enumerate(row):
            for part, marker in enumerate("s^o"):
                colour = plots.LINE_COLOURS["light"][part]
                ax.plot(table[:, part, kind], marker=marker, color=colour, label=names[part])
            if baselines and kind == 1:
                ax.axhline(baselines[name], color="black", linestyle="--", label="random")
            ax.set(title=name, ylabel=ylabels[kind])
            ax.set_xticks(range(0, len(table), max(1, len(table) // 12)))
        row[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    figure.tight_layout()
    return figure


show(two_panels({LABEL: qkv_stats(model)}), "Mean and standard deviation of W_Q, W_K and W_V "
     "by layer: the means are within a few thousandths of zero, the standard deviations "
     "differ between the three and from layer to layer.")

# %% [markdown]
# **Figure.** Left the means: look at the scale of the axis before you see a trend, it
# covers a thousandth or so. Right the standard deviations, where the matrices differ:
# $W_Q$ and $W_K$ are largest in layer 0, $W_V$ in layer 1.
#
# ## Part 3. Across models
#
# The same two numbers for every model of the family.

# %%
statistics = {name: qkv_stats(each) for name, each in models.items()}
show(two_panels(statistics), "One row a model: mean and standard deviation of W_Q, W_K and W_V "
     "by layer. Means stay near zero in all models; W_Q and W_K are widest in layer 0, W_V in "
     "layer 1.")

# %% [markdown]
# **Figure.** Mean and standard deviation by layer in each model. The means are nothing.
# The standard deviations show a pattern that all four share, the one without a guide
# too: layer 0 has strong queries and keys and weak values, layer 1 the strongest values.
# (`base-on-board` is `small-on-board` with two layers put on top and trained on, and
# `large-on-board` was grown in the same way. Those upper two were trained for
# the shortest time, and it shows in much of what follows.) Whether one may compare such numbers at all is a question
# for Part 7.
#
# ## Part 4. Into heads
#
# Each of the three matrices is `num_heads` matrices side by side. Head $h$ owns
# `head_size` columns, and all of their rows: it reads the whole residual stream.
#
# ### Exercise 6: the columns of each head
#
# ●●○○○ · 5 minutes · 1 point
#
# Lesson 04's warning applies: a single `view` gives the right shape and the wrong
# numbers.

# %% exercise="weights.heads"
def head_columns(weight, num_heads):
    """Splits the columns of W_Q, W_K or W_V by head.

    Args:
        weight: FloatTensor[hidden, num_heads * head_size]
        num_heads: int
    Returns:
        FloatTensor[num_heads, hidden, head_size]
    """
    ### BEGIN SOLUTION
    head_size = weight.shape[1] // num_heads
    return torch.stack(weight.split(head_size, dim=1))  # [num_heads, hidden, head_size]
    ### END SOLUTION


# %% check="weights.heads" points=1
check("weights.heads")

# %%
heads = head_columns(parts["W_Q"], config.n_head)  # [num_heads, hidden, head_size]
print("heads:", len(heads), "each", list(heads[0].shape))
columns = min(4, config.n_head)
rows = math.ceil(config.n_head / columns)
figure, axes = plt.subplots(rows, columns, figsize=(10, 1.9 * rows + 0.6), squeeze=False)
reach = 2.5 * heads.std().item()
for number, ax in enumerate(axes.flat):
    if number >= config.n_head:
        ax.set_visible(False)
        continue
    image = ax.imshow(
        heads[number].T, aspect="auto", cmap=plots.SIGNED["light"], vmin=-reach, vmax=reach
    )
    ax.set(xticks=[], yticks=[], title=f"head {number}{star(layer, number)}")
axes[-1, 0].set(xlabel="hidden", ylabel="head feature")
figure.colorbar(image, ax=axes, label="weight", extend="both")
show(figure, "One picture a head: its query weights, head features down and hidden features "
     "across. Heads differ in how strong their weights are and in which rows stand out.")

# %% [markdown]
# **Figure.** $W_Q$ of each head, transposed, so that a row is one feature of the head
# and the long side is the hidden size. (The notebook draws a fixed 3 × 4 grid, which
# fits a model with twelve heads; this one counts them. And without the `.T` the
# pictures lie on their side.)
#
# How similar are the features of one head? (Features, mind, not heads: what follows
# compares columns.) Take two columns $u$ and $v$ of its matrix: two directions in the
# residual stream. Their **cosine similarity** is the dot product of the two, with their
# lengths taken out:
#
# $$\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert} .$$
#
# Scale each column to length 1, and one product gives all cosines at once, $\hat
# W^{\mathsf T} \hat W$. Which axis does the norm sum over? A column runs *down*, so
# `dim=0`, with `keepdim=True` so that the division lines up. The diagonal holds each
# column's cosine with itself.
#
# ### Exercise 7: one head
#
# ●●○○○ · 8 minutes · 1 point

# %% exercise="weights.cosines"
def head_cosines(w):
    """Cosine similarities between the columns of one head's matrix.

    Args:
        w: FloatTensor[hidden, head_size]
    Returns:
        matrix: FloatTensor[head_size, head_size]
        pairs: FloatTensor[head_size * (head_size - 1) / 2], each pair of two different
            columns once, in any order
    """
    ### BEGIN SOLUTION
    unit = w / torch.linalg.vector_norm(w, dim=0, keepdim=True)  # [hidden, head_size]
    matrix = unit.T @ unit  # [head_size, head_size]
    size = len(matrix)
    first, second = torch.triu_indices(size, size, offset=1)  # [pairs] each
    return matrix, matrix[first, second]
    ### END SOLUTION


# %% check="weights.cosines" points=1
check("weights.cosines")

# %% [markdown]
# **Before you run this:** what would you see if the columns were random? Two random
# directions in $d$ dimensions are nearly at right angles: their cosine has mean 0 and a
# standard deviation of $1/\sqrt d$, which is 0.036 for $d = 768$. *No* plot of cosines
# means anything until you have drawn that line.

# %%
def cosine_figure(w, title):
    """The cosine matrix of one head beside the distribution of its pairs."""
    matrix, pairs = head_cosines(w)
    hidden = w.shape[0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
    image = left.imshow(matrix, cmap=plots.SIGNED["light"], vmin=-1, vmax=1)
    left.set(xlabel="head feature", ylabel="head feature", title=title)
    figure.colorbar(image, ax=left, label="cosine")
    right.hist(pairs.numpy(), bins=40, density=True, color="tab:gray", label="this head")
    x = torch.linspace(-1, 1, 400)  # [400]
    chance = torch.exp(-hidden * x**2 / 2) * math.sqrt(hidden / (2 * math.pi))  # [400]
    right.plot(x, chance, "--", color="black", label=r"random, std $1/\sqrt{d}$")
    right.set(xlabel="cosine", ylabel="density", xlim=(-1, 1), title="all pairs")
    right.legend()
    figure.tight_layout()
    print(f"std of the cosines {pairs.std():.3f}, random {hidden**-0.5:.3f} "
          f"(of 768 features {768**-0.5:.3f})")
    return figure


show(cosine_figure(heads[0], f"layer {layer}, head 0{star(layer, 0)}, W_Q"), "Left: the matrix of cosines "
     "between one head's features, ones on the diagonal and patches of colour elsewhere. "
     "Right: their histogram, wider than the dashed curve of random columns.")

# %% [markdown]
# **Figure.** Left, all cosines of one head, the ones on its diagonal included; right,
# each pair once, without them. The dashed curve is what random columns would give.
#
# ## Part 5. Within heads and across heads
#
# Are two features of *one* head more alike than two features of *different* heads? For
# two different heads the matrix of cosines is not symmetric (rows belong to one head,
# columns to the other), so all of it counts; for a head with itself, only what lies
# above the diagonal. Pairs of heads are taken once, $j$ from $i$ on.
#
# ### Exercise 8: two groups of pairs
#
# ●●●○○ · 10 minutes · 1 point

# %% exercise="weights.within_across" needs="weights.cosines"
def within_across(weight, num_heads):
    """Mean and standard deviation of the columns' cosines, within and across heads.

    Args:
        weight: FloatTensor[hidden, num_heads * head_size]
        num_heads: int
    Returns:
        FloatTensor[2, 2]: rows are within a head and across heads, columns are mean and
        standard deviation (n - 1); each pair of columns counts once
    """
    ### BEGIN SOLUTION
    matrix, _ = head_cosines(weight)  # [columns, columns]
    head_size = len(matrix) // num_heads
    owner = torch.arange(len(matrix)) // head_size  # [columns]
    same = owner[:, None] == owner[None, :]  # [columns, columns]
    later = torch.ones_like(same).triu(1)  # [columns, columns]
    groups = [matrix[later & same], matrix[later & ~same]]  # [pairs] each
    return torch.stack([torch.stack([g.mean(), g.std()]) for g in groups])  # [2, 2]
    ### END SOLUTION


# %% check="weights.within_across" points=1
check("weights.within_across")

# %% [markdown]
# The seed of this exercise is a double loop over heads, which gets slow with 25 of
# them; the remark in it that the loop was copied "from proj35" means this very project.
# One product for all columns, and a mask that says which pairs belong to one head, does
# the same. For the distributions we need the cosines themselves:

# %%
def two_groups(weight, num_heads):
    """All cosines within heads, and all across; each pair once."""
    matrix, _ = head_cosines(weight)  # [columns, columns]
    place = torch.arange(len(matrix))  # [columns]
    row, column = torch.triu_indices(len(matrix), len(matrix), 1)  # [pairs] each
    size = len(matrix) // num_heads
    one_head = place[row] // size == place[column] // size  # [pairs]
    return matrix[row, column][one_head], matrix[row, column][~one_head]


figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True)
for ax, name in zip(axes, ("W_Q", "W_K"), strict=True):
    for label, values in zip(("within heads", "across heads"),
                             two_groups(parts[name], config.n_head), strict=True):
        curve = histogram(values, bins="fd")
        ax.plot(curve.centres, curve.heights, linewidth=2, label=label)
    x = torch.linspace(-0.8, 0.8, 300)  # [300]
    d = config.n_embd
    ax.plot(x, torch.exp(-d * x**2 / 2) * math.sqrt(d / (2 * math.pi)), "--", color="black",
            label="random")
    ax.set(xlabel="cosine", ylabel="density", title=f"{name}, layer {layer}", xlim=(-0.8, 0.8))
    ax.legend()
figure.tight_layout()
show(figure, "Two panels, W_Q and W_K of one layer. Cosines across heads make a narrow peak near "
     "the dashed random curve; those within heads spread wider.")

# %% [markdown]
# **Figure.** Cosines within and across heads, with the random curve. All spread wider than
# chance: features *share* directions. Features of one head more than those of different heads?
# In this layer the queries do not, and of the keys only a few, in the far tails.
#
# One layer is an anecdote. Now all layers. First the full distributions, as four heat maps; then mean and
# standard deviation. In the loop that fills such tables an index is easily turned
# around: the notebook has `hists[..., within/across, Q/K]` beside `meenz[layer, Q/K,
# within/across]`. Give axes names in a comment, and keep to one order.

# %%
edges = torch.linspace(-0.7, 0.7, 57)  # [bins + 1]
centres = (edges[:-1] + edges[1:]) / 2  # [bins]
maps = torch.zeros(config.n_layer, 2, 2, len(centres))  # layer; Q or K; within or across; bin
moments = torch.zeros(config.n_layer, 2, 2, 2)  # layer; Q or K; within or across; mean or std
most_outside = 0.0
for number, block in enumerate(tqdm(model.transformer.h, disable=config.n_layer < 12)):
    for kind, w in enumerate(split_wide(block.attn.c_attn.weight.detach())[:2]):
        moments[number, kind] = within_across(w, config.n_head)
        for group, values in enumerate(two_groups(w, config.n_head)):
            _, maps[number, kind, group], outside = density(values, edges)
            most_outside = max(most_outside, float(outside))
print(f"beyond the edges: at most {most_outside:.2%} of the cosines")
labels = [f"{w}, {g}" for w in ("W_Q", "W_K") for g in ("within heads", "across heads")]
figure, axes = plt.subplots(2, 2, figsize=(10, 5), sharex=True)
for panel, (ax, label) in enumerate(zip(axes.flat, labels, strict=True)):
    image = ax.imshow(
        maps[:, panel // 2, panel % 2], aspect="auto", origin="lower", cmap="viridis",
        extent=(-0.7, 0.7, -0.5, config.n_layer - 0.5), vmin=0, vmax=maps.max(),
        interpolation="nearest",
    )
    ax.set(title=label, ylabel="layer", yticks=range(config.n_layer))
for ax in axes[1]:
    ax.set_xlabel("cosine")
figure.colorbar(image, ax=axes, label="density")
show(figure, "Four heat maps with one colour scale: W_Q and W_K, within and across heads, one row "
     "a layer. Across heads the rows are narrow and bright, within heads wide and faint.")

# %% [markdown]
# **Figure.** The distributions of the cosines by layer, all with the same colours.
# Right column: across heads, a bright stripe at zero. Left column: within heads, broader
# and fainter, but for the queries of layer 1.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2))
for ax, kind, name in zip(axes, (0, 1), ("mean", "standard deviation"), strict=True):
    for panel, label in enumerate(labels):
        ax.plot(moments[:, panel // 2, panel % 2, kind], marker="os^D"[panel], label=label,
                linestyle="--" if panel % 2 else "-")
    ax.set(xlabel="layer", ylabel=name, xticks=range(config.n_layer))
axes[0].axhline(0, color="black", linestyle=":", label="random")
axes[1].axhline(config.n_embd**-0.5, color="black", linestyle=":", label="random")
axes[1].set_ylim(bottom=0)
axes[1].legend(
    fontsize=8, handlelength=4, loc="center left", bbox_to_anchor=(1, 0.5)
)
figure.tight_layout()
show(figure, "Mean and standard deviation of the cosines by layer, for W_Q and W_K, within and "
     "across heads, with the random baseline dotted. Means are near zero; within heads the "
     "standard deviation is well above the baseline.")

# %% [markdown]
# **Figure.** Left the means, right the standard deviations, with the random baseline
# ($0$ and $1/\sqrt d$). The means say nothing: cosines come in both signs. The standard
# deviations do. Across heads they are nearer to chance, within heads farther from it, the
# keys' more than twice as large in every layer. Layer 1 is the exception: there the lines of the
# queries cross. Its heads are more alike than those of other layers. (In lesson 12 you will see that
# three of them do the same thing.)
#
# ## Part 6. All columns, all models
#
# Forget the heads for a moment: all pairs of columns of $W_Q$, of $W_K$, of $W_V$, in
# every layer of every model.
#
# ### Exercise 9: the table for one model
#
# ●●○○○ · 8 minutes · 1 point
#
# Pick the pairs, do not multiply by a mask. A mask of zeros and ones leaves zeros
# behind, and zeros have a mean.

# %% exercise="weights.all_columns" needs="weights.split weights.cosines"
def column_stats(model):
    """Mean and standard deviation of the cosines between all columns, by layer.

    Args:
        model: a GPT2LMHeadModel
    Returns:
        FloatTensor[n_layer, 3, 2]: layer; Q, K or V; mean or standard deviation (n - 1);
        each pair of two different columns counts once
    """
    ### BEGIN SOLUTION
    table = []
    for block in model.transformer.h:
        for w in split_wide(block.attn.c_attn.weight.detach()):
            _, pairs = head_cosines(w)  # [hidden, hidden], [hidden * (hidden - 1) / 2]
            table += [pairs.mean(), pairs.std()]
    return torch.stack(table).view(-1, 3, 2)  # [n_layer, 3, 2]
    ### END SOLUTION


# %% check="weights.all_columns" points=1
check("weights.all_columns")

# %%
tables, chance = {}, {}
for place, (name, each) in enumerate(models.items(), 1):
    print(f"Working on {name} ({place} of {len(models)}), {each.config.n_layer} layers")
    tables[name] = column_stats(each)
    chance[name] = each.config.n_embd**-0.5
show(two_panels(tables, ("mean cosine", "std of cosines"), chance), "One row a model: mean and "
     "standard deviation of the cosines between all columns of W_Q, W_K and W_V by layer. The "
     "standard deviations lie above the dashed random line.")

# %% [markdown]
# **Figure.** Cosines between all columns, by layer. The dashed line is chance, and it
# differs between models: a larger hidden size brings all cosines closer to zero,
# trained or not. Without that line one would read the difference between models as
# something they had learned.
#
# ## Part 7. A choice nobody made
#
# All plots so far are true. What do they tell us about the *model*?
#
# Queries and keys appear in one place only, in the scores $q \cdot k$. Take any
# invertible matrix $R$ of `[head_size, head_size]`, and use
#
# $$W_Q' = W_Q R, \qquad W_K' = W_K R^{-\mathsf T}
# \qquad\Rightarrow\qquad
# W_Q' W_K'^{\mathsf T} = W_Q\, R\, R^{-1}\, W_K^{\mathsf T} = W_Q W_K^{\mathsf T} .$$
#
# Not one score changes, for any input. This is called **gauge freedom**: like the zero
# of a map's heights, the coordinates *inside* a head are free, and training ends up in
# some coordinates by accident of its start. But the columns of $W_Q R$ are mixtures of
# the columns of $W_Q$. Their cosines can be anything.
#
# The biases are part of queries and keys, and must go along.
#
# ### Exercise 10: change the gauge
#
# ●●●○○ · 10 minutes · 1 point

# %% exercise="weights.gauge"
def change_gauge(w_q, b_q, w_k, b_k, r):
    """One head in other coordinates: queries become q r, and every score stays the same.

    Args:
        w_q, w_k: FloatTensor[hidden, head_size]
        b_q, b_k: FloatTensor[head_size]
        r: FloatTensor[head_size, head_size], invertible
    Returns:
        w_q, b_q, w_k, b_k in the new coordinates
    """
    ### BEGIN SOLUTION
    queries = torch.cat([w_q, b_q[None]]) @ r  # [hidden + 1, head_size]
    keys = torch.linalg.solve(r, torch.cat([w_k, b_k[None]]).T).T  # [hidden + 1, head_size]
    return queries[:-1], queries[-1], keys[:-1], keys[-1]
    ### END SOLUTION


# %% check="weights.gauge" points=1
check("weights.gauge")

# %% [markdown]
# Now we do it to a living model, and not with any $R$. Decompose $W_Q$ of each head as
# $Q\,T$, with orthonormal columns in $Q$ and a triangular $T$, and choose $R = T^{-1}$:
# then $W_Q R = Q$, and all cosines between a head's query features are **exactly
# zero**.
#
# **Before you run this:** what becomes of the logits?

# %%
other = copy.deepcopy(model)
size = config.n_embd // config.n_head
with torch.no_grad():
    for block in other.transformer.h:
        weight, bias = block.attn.c_attn.weight, block.attn.c_attn.bias
        for head in range(config.n_head):
            q = slice(head * size, (head + 1) * size)
            k = slice(config.n_embd + q.start, config.n_embd + q.stop)
            r = torch.linalg.inv(torch.linalg.qr(weight[:, q].double()).R)
            old = (weight[:, q], bias[q], weight[:, k], bias[k])
            new = change_gauge(*(part.double() for part in old), r)
            weight[:, q], bias[q], weight[:, k], bias[k] = (part.float() for part in new)

text = "Today we can go to the river, and then we can go to the garden."
ids = tokenizer([text], return_tensors="pt").input_ids  # [batch_size, seq_len]
with torch.no_grad():
    before, after = model(ids).logits, other(ids).logits  # [batch_size, seq_len, vocab_size]
print(f"largest difference of any logit: {(before - after).abs().max():.1e}")
print(f"largest logit:                   {before.abs().max():.1e}")

# %% [markdown]
# The logits are the same up to rounding. It is the same model. And the picture?
#
# Beside it we put something that cannot change, because it is computed from $W_Q
# W_K^{\mathsf T}$ alone: its **singular values**. Feed a matrix all vectors of length 1. The
# largest singular value is by how much it stretches the one that it stretches most; the
# next is the same among the directions at right angles to that one, and so on. The list
# of them is the matrix's *spectrum*, and as many as its **rank** are not zero.

# %%
wide_other = other.transformer.h[layer].attn.c_attn.weight.detach()  # [hidden, 3 * hidden]
w_q, w_k, _ = (head_columns(w, config.n_head) for w in split_wide(wide))
o_q, o_k, _ = (head_columns(w, config.n_head) for w in split_wide(wide_other))
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2))
for ax, w, title in ((axes[0], w_q[0], "as trained"), (axes[1], o_q[0], "other gauge")):
    image = ax.imshow(head_cosines(w)[0], cmap=plots.SIGNED["light"], vmin=-1, vmax=1)
    ax.set(title=f"cosines, {title}", xlabel="head feature", ylabel="head feature")
    figure.colorbar(image, ax=ax)
for a, b, style, title in ((w_q, w_k, "-", "as trained"), (o_q, o_k, "o", "other gauge")):
    axes[2].plot(singular_values(a[0], b[0]), style, label=title, markersize=3)
axes[2].set(title="singular values of $W_Q W_K^T$", xlabel="rank, largest first")
axes[2].legend()
figure.tight_layout()
show(figure, "Left, the cosines of one head's query features as trained: patches of colour. Middle, "
     "the same head in another gauge: blank but for the diagonal. Right, the singular values of "
     "its QK matrix in both: the dots lie on the line.")
print(f"std of the cosines: as trained {head_cosines(w_q[0])[1].std():.3f}, "
      f"other gauge {head_cosines(o_q[0])[1].std():.1e}")
print(f"std of the weights: as trained {w_q[0].std():.3f}, other gauge {o_q[0].std():.3f}")

# %% [markdown]
# **Figure.** One head of one model, twice. The cosines, left and middle, are as
# different as can be. The singular values of $W_Q W_K^{\mathsf T}$, right, have not
# moved.
#
# So the pattern within a head that Parts 4 and 5 found is a fact about this *file of
# numbers*. Other numbers with a blank picture are the same model. Even the standard
# deviations of Parts 2 and 3 go: multiply $W_Q$ by 2 and $W_K$ by $\frac12$. (Why are
# the trained cosines not random, then? Because of the path that training took from its
# start. They tell of the training, and that is worth knowing, but of what the head
# computes they tell nothing.)
#
# The lesson is not "never plot it". It is: **put an invariant beside it**, something that
# no such change can touch. The singular values of $W_Q W_K^{\mathsf T}$ have passed one test. Is
# everything that is computed from this matrix an invariant, then? Nearly. There is one more
# freedom, and it is easy to miss.
#
# Queries and keys read `ln_1`, which subtracts the mean, divides by the deviation, and then
# multiplies each feature by a learned gain $g$ and adds a shift. Before gain and shift, the
# features of each token **sum to zero**. So a matrix that answers to nothing but that sum
# answers to nothing: add $\frac1g\, a^{\mathsf T}$ to $W_Q$, any row $a$ over the gains, and take
# what the shift makes of it out of the bias. No query changes.
#
# **Before you run this:** and $W_Q W_K^{\mathsf T}$?

# %%
shifted = copy.deepcopy(model).double()
torch.manual_seed(0)
with torch.no_grad():
    for block in shifted.transformer.h:
        gain, shift = block.ln_1.weight, block.ln_1.bias  # [hidden] each
        row = torch.randn(3 * config.n_embd, dtype=torch.float64)  # [3 * hidden]
        more = row / gain[:, None]  # [hidden, 3 * hidden]
        block.attn.c_attn.weight += more
        block.attn.c_attn.bias -= shift @ more
    exact = copy.deepcopy(model).double()(ids).logits  # [batch_size, seq_len, vocab_size]
    change = (shifted(ids).logits - exact).abs().max()
print(f"largest difference of any logit: {change:.0e}")
for title, more in (("as stored", {}), ("gain folded in", {"fold_layer_norm": True}),
                    ("folded and centred", {"fold_layer_norm": True, "centre": True})):
    norms = []
    for each in (model, shifted):
        a, b = qk_factors(head_weights(each, layer, **more))  # [num_heads, hidden, hs] each
        norms.append((a[0].double() @ b[0].double().T).norm().item())
    print(f"||W_Q W_K^T|| of layer {layer}, head 0, {title:18}: {norms[0]:9.3f} and {norms[1]:9.3f}")

# %% [markdown]
# The same logits up to rounding, and quite another matrix. Folding the gain into it
# does not help by itself. What helps is to do both things that `ln_1` does: **fold the gain in**,
# $\operatorname{diag}(g)\,W_Q$, and then **subtract from each column its mean over the hidden
# features**, the one direction that the head can never see. From here on $W_Q$ and $W_K$ are
# meant so: `head_weights(..., fold_layer_norm=True, centre=True)`. Their product is a
# property of the model. (On this model training has hardly used that freedom: centring moves
# the shares below by a thousandth or so. Nobody could know before.) To that matrix we
# now turn.
#
# ## Part 8. Is it the identity?
#
# The scores of a head, without biases and scale, are
#
# $$X\, M\, X^{\mathsf T}, \qquad M = W_Q W_K^{\mathsf T}\ \ [\text{hidden}, \text{hidden}] ,$$
#
# where $X$ is what the head reads, the residual stream as `ln_1` has normalised it, gain and
# shift apart. Were $M = I$, the
# head would compare tokens as they stand, $X X^{\mathsf T}$, as in lesson 01. How
# different is it?
#
# First, it *cannot* be the identity. $M$ passes through `head_size` numbers, so its
# rank is at most `head_size`, and $I$ has rank `hidden`. And the scale of $M$ is
# nobody's business (it could be undone by the weights), so we ask for the nearest
# *multiple* of $I$, as a share of the size of $M$. ($\lVert\cdot\rVert$ is the Frobenius
# norm: the root of the sum of all squared entries.)
#
# $$\min_c \frac{\lVert M - c I \rVert}{\lVert M \rVert} .$$
#
# Expand the square: $\lVert M \rVert^2 - 2c \operatorname{tr} M + c^2 d$. Its minimum
# is at $c = \operatorname{tr}(M)/d$, the mean of the diagonal, and what remains is
#
# $$\frac{\lVert M - c I\rVert^2}{\lVert M\rVert^2} = 1 - \frac{(\operatorname{tr} M)^2}{d\, \lVert M \rVert^2}
# \;\ge\; 1 - \frac{\text{head\_size}}{d} ,$$
#
# because $(\operatorname{tr} M)^2 \le \operatorname{rank}(M)\, \lVert M\rVert^2$ for
# *any* matrix. For 64 of 768 that leaves a distance of at least $0.957$. A distance of
# .96 would be as near as a head can get!
#
# ### Exercise 11: how far, and how near could it be?
#
# ●●●○○ · 10 minutes · 1 point

# %% exercise="weights.identity"
def identity_distance(w_q, w_k):
    """How far M = W_Q W_K^T is from the nearest multiple of the identity.

    Args:
        w_q, w_k: FloatTensor[hidden, head_size], head_size < hidden
    Returns:
        c: a number, the factor for which ||M - c I|| is smallest
        distance: a number, ||M - c I|| / ||M||, Frobenius norms
        bound: a number, the smallest distance that any matrix of rank head_size can have
    """
    ### BEGIN SOLUTION
    hidden, head_size = w_q.shape
    m = w_q @ w_k.T  # [hidden, hidden]
    c = m.diagonal().mean()  # []
    rest = m - c * torch.eye(hidden, dtype=m.dtype)  # [hidden, hidden]
    return c, rest.norm() / m.norm(), (1 - head_size / hidden) ** 0.5
    ### END SOLUTION


# %% check="weights.identity" points=1
check("weights.identity")

# %% [markdown]
# How near the bound, and how near 1, does not show in a plot: distances crowd below 1. Draw
# what is squared in them, with its sign,
#
# $$\frac{\operatorname{tr} M}{\lVert M\rVert \sqrt{\text{head\_size}}} \in [-1, 1] ,$$
#
# which is 1 for the nearest that this rank can come to $cI$ with a positive $c$, and $-1$ for
# a negative one. And what would *random* matrices give? Same shapes, same spread of the
# numbers, no training. One random twin is no baseline: it says nothing of how much chance
# scatters. We draw 200 for each head, and a gray bar from two standard deviations below
# their mean to two above. **Before you run this:** guess.

# %%
DRAWS = 200 if config.n_embd <= 128 else 4  # a real GPT-2 has many heads, and larger ones
OWN = {"fold_layer_norm": True, "centre": True}  # the model's own form, see part 7


def every_head(measure, generator=None):
    """measure(w_q, w_k) for each head of each layer, or for a random twin of each."""
    found = []
    for number in range(config.n_layer):
        a, b = qk_factors(head_weights(model, number, **OWN))
        # [num_heads, hidden, head_size] each
        if generator is not None:
            a, b = (random_like(w, generator) for w in (a, b))
            a, b = (w - w.mean(dim=1, keepdim=True) for w in (a, b))  # centred as well
        found += [float(measure(*pair)) for pair in zip(a.double(), b.double(), strict=True)]
    return torch.tensor(found)  # [n_layer * num_heads]


def dots(measure, title, lines):
    """A dot for each head of each layer beside what chance gives; lines: {label: height}."""
    generator = torch.Generator().manual_seed(0)
    trained = every_head(measure)  # [n_layer * num_heads]
    twins = torch.stack([every_head(measure, generator) for _ in range(DRAWS)])
    # [DRAWS, n_layer * num_heads]
    middle, spread = twins.mean(dim=0), twins.std(dim=0)  # [n_layer * num_heads] each
    away = (trained - middle) / spread  # [n_layer * num_heads], in standard deviations

    figure, ax = plt.subplots(figsize=(8.5, 3.2))
    place = torch.arange(len(trained))  # [n_layer * num_heads]
    guided = torch.zeros(len(trained), dtype=torch.bool)  # [n_layer * num_heads]
    guided[[number * config.n_head + h for number, h in guided_heads(model)]] = True
    ax.errorbar(place, middle, 2 * spread, fmt="none", ecolor="silver", elinewidth=9,
                label=f"{DRAWS} random twins, 2 std")
    ax.plot(place[~guided], trained[~guided], "o", color="tab:blue", label="trained")
    if guided.any():
        ax.plot(place[guided], trained[guided], "*", color="tab:red", markersize=11,
                label="trained, guided")
    for (label, height), style in zip(lines.items(), ("--", ":"), strict=False):
        ax.axhline(height, color="black", linestyle=style, label=label)
    for border in range(1, config.n_layer):
        ax.axvline(border * config.n_head - 0.5, color="tab:gray", linewidth=0.6)
    ax.set(title=title, xlabel="head (vertical lines: a new layer)")
    step = max(1, len(trained) // 12)
    ax.set_xticks(range(0, len(trained), step),
                  [f"{i // config.n_head}.{i % config.n_head}"
                   for i in range(0, len(trained), step)])
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    print(f"{title}: trained {trained.min():.4f} to {trained.max():.4f}, random mean "
          f"{middle.mean():.4f}, its standard deviation {spread.mean():.4f}")
    for i in away.abs().argsort(descending=True)[:4].tolist():
        print(f"  head {i // config.n_head}.{i % config.n_head}: {trained[i]:.4f}, "
              f"{away[i]:+.1f} standard deviations from chance")
    return figure, trained


distances = every_head(lambda a, b: identity_distance(a, b)[1])  # [n_layer * num_heads]
bound = identity_distance(w_q[0], w_k[0])[2]
print(f"distances: {distances.min():.4f} to {distances.max():.4f}; rank bound: ours {bound:.3f}, "
      f"GPT-2's (64 of 768) {(1 - 64 / 768) ** 0.5:.3f}")
figure, _ = dots(trace_share, "tr M / (||M|| sqrt(head_size))", {"no part along I": 0.0})
show(figure, "A dot for each head: the signed share of its QK matrix along the identity, with a "
     "gray bar for 200 random twins. Three heads of layer 0 lie far below their bars, down to -0.19; "
     "the others lie in them or near.")

# %% [markdown]
# **Figure.** How much of each head's $W_Q W_K^{\mathsf T}$ is a multiple of $I$, with its
# sign; 1 and $-1$ would be as near as the rank allows. Gray bars: what 200 random twins give,
# two standard deviations to either side.
#
# So the first question has a clear answer: attention does not compare tokens as they
# stand. All distances are 0.9953 or more, where the rank would allow 0.866; the part along the
# identity is a few hundredths in most heads. But look at layer 0, and at the *sign*. Three of its
# four heads lie below chance, by 4.7 to 12.8 standard deviations. It is a
# small effect and a real one: these heads look, if anything, *away* from tokens like the one that
# asks. (In layer 0 the stream holds the embeddings and nothing else. Later the tokens have been
# rewritten, and "like" has another meaning in each layer.)
#
# What training changed most shows elsewhere, in the spectrum:

# %%
generator = torch.Generator().manual_seed(1)
norms = every_head(lambda a, b: (a @ b.T).norm())  # [n_layer * num_heads]


def spectrum(a, b):
    """The singular values of a b^T as shares of its norm: their squares add up to 1."""
    values = singular_values(a.double(), b.double())  # [head_size]
    return values / values.norm()  # [head_size]


firsts = every_head(lambda a, b: spectrum(a, b)[0])  # [n_layer * num_heads]
sharp, even = (divmod(int(i), config.n_head) for i in (firsts.argmax(), firsts.argmin()))
chosen = {}
for number, head in (sharp, even):
    a, b = (w[head] for w in qk_factors(head_weights(model, number, **OWN)))
    # [hidden, head_size] each
    chosen[f"layer {number} head {head}"] = a, b
chosen["random twin"] = [random_like(w[None], generator)[0] for w in (a, b)]
figure, axes = plt.subplots(1, 4, figsize=(13, 3.1), width_ratios=(1, 1, 1, 1.2))
for ax, (title, (a, b)), style in zip(axes, chosen.items(), ("-", "-.", "--"), strict=False):
    m = a @ b.T  # [hidden, hidden]
    reach = 3 * m.std().item()
    ax.imshow(m, cmap=plots.SIGNED["light"], vmin=-reach, vmax=reach)
    ax.set(title=f"$W_Q W_K^T$, {title}", xticks=[], yticks=[])
    axes[3].plot(spectrum(a, b), style, label=title)
    print(f"{title}: the largest singular value is {spectrum(a, b)[0]:.2f} of the norm, "
          f"the next {spectrum(a, b)[1]:.2f}")
axes[3].set(title="singular values / norm", xlabel="rank, largest first")
axes[3].legend()
figure.tight_layout()
show(figure, "Pictures of three QK matrices, two trained and one random, and their singular values: "
     "one trained spectrum starts high and falls at once, the other is a long low shelf that breaks "
     "off, the random one falls evenly.")

# %% [markdown]
# **Figure.** The QK matrices of two heads, a random twin of the second with numbers of the same
# spread, and the singular values of all three, as shares of the norm. The heads are the one in
# which one direction does most of the work, and the one in which it does least. No
# diagonal stands out in any picture. But neither spectrum is the random one. The first starts
# high and falls at once: one direction does most of the work. The second is a shelf: some twenty
# directions of nearly equal strength, and then it breaks off. A head that asks one question, and
# a head that can tell many things apart. (Lesson 12 finds out what it tells apart.)
#
# A *direction* can be read. The singular **vectors** of $M = U \Sigma V^{\mathsf T}$ come in pairs:
# the first column of $U$ says what a token must have for this head to ask strongly, the first
# column of $V$ what a token must have to be looked at then. Which frequent tokens have most
# of it? (Each pair may change its sign together; so there are two readings.)

# %%
pages = read_books()[0][:200_000].splitlines()  # the beginning of the first book on board
seen = torch.tensor(sum(tokenizer(pages, verbose=False).input_ids, []))  # [tokens]
frequent = seen.bincount().argsort(descending=True)[:400].tolist()
words = {t: tokenizer.decode(t) for t in frequent}
table = model.transformer.wte.weight.detach().double()[frequent]  # [400, hidden]
table = table - table.mean(dim=1, keepdim=True)  # as ln_1 does
table = table / table.std(dim=1, keepdim=True)
for number, head in ((0, 0), sharp):
    u, _, v = singular_vectors(*(w[head].double() for w in qk_factors(
        head_weights(model, number, **OWN))))  # [hidden, head_size] each
    for sign in (1, -1):
        asks, asked = ((sign * table @ w[:, 0]).topk(7).indices for w in (u, v))
        print(f"layer {number} head {head}:", [words[frequent[i]] for i in asks], "look at",
              [words[frequent[i]] for i in asked])

# %% [markdown]
# Some of it can be read. In layer 0 head 0 the words that begin a clause, " when", " while", " if",
# " because", ask together, and what they look for are those of whom it might be told: "She", " you",
# "They". The rest is harder to name. And for layer 2 the embedding is only a part of what the head
# reads, for the layers below have written to the stream. Singular vectors are a question to the
# model, not yet an answer.
#
# ## Part 9. Is it symmetric? And then?
#
# $M$ symmetric would mean: how much token $i$ wants $j$ is how much $j$ wants $i$.
# Every matrix is the sum of a symmetric and an antisymmetric part,
#
# $$M = S + A, \qquad S = \tfrac12 (M + M^{\mathsf T}), \quad A = \tfrac12 (M - M^{\mathsf T}) ,$$
#
# and the two are perpendicular: $\lVert M\rVert^2 = \lVert S\rVert^2 + \lVert
# A\rVert^2$. For a random matrix both get about half of the square, so $\lVert S\rVert /
# \lVert M\rVert \approx 1/\sqrt2 \approx 0.707$.
#
# ### Exercise 12: the two parts
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="weights.symmetric"
def symmetric_parts(w_q, w_k):
    """The symmetric and the antisymmetric part of M = W_Q W_K^T, as shares of its norm.

    Args:
        w_q, w_k: FloatTensor[hidden, head_size]
    Returns:
        two numbers: ||S|| / ||M|| and ||A|| / ||M||, Frobenius norms
    """
    ### BEGIN SOLUTION
    m = w_q @ w_k.T  # [hidden, hidden]
    symmetric, antisymmetric = (m + m.T) / 2, (m - m.T) / 2  # [hidden, hidden] each
    return symmetric.norm() / m.norm(), antisymmetric.norm() / m.norm()
    ### END SOLUTION


# %% check="weights.symmetric" points=1
check("weights.symmetric")

# %%
figure, shares = dots(
    lambda a, b: symmetric_parts(a, b)[0], "||S|| / ||M||", {"half of the square": 0.5**0.5}
)
show(figure, "A dot for each head: the norm of the symmetric part over the norm of its QK matrix. "
     "Most lie a little above the bars of random matrices, layer 0 head 3 far above, at 0.79.")

# %% [markdown]
# **Figure.** The share of the symmetric part for each head. 1, far above the picture, would
# be symmetric, 0 antisymmetric. The random ones crowd a little above $1/\sqrt2$.
#
# Not symmetric, then: all between 0.7000 and 0.7910. That is sensible: "who looks at whom" in a
# causal model has a direction. But not chance either. About half of the heads lie above their bars, and
# layer 0 head 3 by 20.9 standard deviations. **Small but real**, and one random twin could not have
# told. (Saponati et al.
# 2025, "The underlying structures of self-attention", arXiv 2502.10927, measure both in many
# models: those that may look both ways become more symmetric in training, those that predict
# the next word more directed: their columns outgrow their rows.)
#
# The notes hoped for more: *if* $M$ is symmetric, attention is $X' X'^{\mathsf T}$ with
# $X' = A X$, a comparison of tokens after one change of coordinates. Two corrections
# are due. The change acts on features, so it stands on the right, $X' = X A$. And
# symmetry is **not enough**. $X' X'^{\mathsf T} = X A A^{\mathsf T} X^{\mathsf T}$, and
# $A A^{\mathsf T}$ is always *positive semidefinite*: no eigenvalue is below zero. A
# symmetric matrix in general is $A\, S\, A^{\mathsf T}$ with a **signature** $S$, a
# diagonal of $+1$, $-1$ and $0$: there are directions in which being alike raises the
# score, and directions in which it *lowers* it. Try a symmetric one that is not a
# comparison:

# %%
m = torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # [2, 2]
eigenvalues, vectors = torch.linalg.eigh(m)  # [2], [2, 2]
print("eigenvalues:", eigenvalues)
half = vectors * eigenvalues.abs().sqrt()  # [2, 2]
signature = torch.diag(eigenvalues.sign())  # [2, 2]
print("A S A^T is m:", torch.allclose(half @ signature @ half.T, m, atol=1e-6))
print("A A^T is m:  ", torch.allclose(half @ half.T, m, atol=1e-6))
token = torch.tensor([1.0, -1.0])  # [2]
print("the token's score with itself:", float(token @ m @ token))

# %% [markdown]
# A token with a *negative* score for itself: no $X' X'^{\mathsf T}$ can do that, since
# $x' \cdot x'$ is a squared length.
#
# ### Exercise 13: the signs
#
# ●●●○○ · 8 minutes · 1 point
#
# Return the smallest and the largest eigenvalue of the symmetric part, and how much of
# the spectrum is positive: the sum of the positive eigenvalues as a share of the sum of
# all absolute values. Positive semidefinite is 1, random is about ½.

# %% exercise="weights.definite"
def definiteness(w_q, w_k):
    """The signs of the symmetric part of M = W_Q W_K^T.

    Args:
        w_q, w_k: FloatTensor[hidden, head_size]
    Returns:
        three numbers: the smallest eigenvalue, the largest eigenvalue, and the sum of the
        positive ones over the sum of all absolute values
    """
    ### BEGIN SOLUTION
    m = w_q @ w_k.T  # [hidden, hidden]
    values = torch.linalg.eigvalsh(0.5 * (m + m.T))  # [hidden], ascending
    return values[0], values[-1], values.relu().sum() / values.abs().sum()
    ### END SOLUTION


# %% check="weights.definite" points=1
check("weights.definite")

# %%
figure, positive = dots(
    lambda a, b: definiteness(a, b)[2], "Positive share", {"as much of both signs": 0.5}
)
show(figure, "A dot for each head: the positive share of the spectrum of its symmetric part. Three heads of "
     "layer 0 lie far below the gray bars of random twins around one half, most others near them.")

# %% [markdown]
# **Figure.** The positive share for each head. At 1, far above the picture, the head would be
# a comparison after a change of coordinates; at ½ being alike counts for a token as much as
# against it. No head is anywhere near 1. The three heads of layer 0 that looked away from their
# like in Part 8 lie *below* ½ here too, head 1 by 15.6 standard deviations: likeness counts against
# more than for. Of the others none is farther than three. Again small, and again real.
#
# The spectra themselves, for all heads of one layer:

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True)
a, b = (w.double() for w in qk_factors(head_weights(model, layer, **OWN)))
# [num_heads, hidden, head_size] each
fakes = [random_like(w, torch.Generator().manual_seed(2 + i)) for i, w in enumerate((a, b))]
for ax, (left, right), title in ((axes[0], (a, b), "trained"), (axes[1], fakes, "random twins")):
    for index in range(config.n_head):
        m = left[index] @ right[index].T  # [hidden, hidden]
        ax.plot(torch.linalg.eigvalsh((m + m.T) / 2).flip(0), label=f"head {index}{star(layer, index)}")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(title=f"layer {layer}, {title}", xlabel="eigenvalue, largest first")
axes[0].set_ylabel("eigenvalue of the symmetric part")
axes[0].legend(fontsize=8)
figure.tight_layout()
show(figure, "Eigenvalues of the symmetric part, largest first, one curve a head: trained ones start "
     "high, pass a long flat stretch at zero and end far below zero; random ones are tamer.")

# %% [markdown]
# **Figure.** All eigenvalues of the symmetric part. Both ends are far from zero: every
# head has directions with either sign. The flat middle is the rank: at most $2 \cdot$
# `head_size` eigenvalues can differ from zero. Heads 0 and 1 reach further on both
# sides than their random twins, and fall faster. Heads 2 and 3 do not: theirs are the shelves of
# Part 8.
#
# How much hangs on the form of $M$ that we chose in part 7, gain folded in and centred? Here
# are the three forms side by side.

# %%
measures = {
    "distance from c I": lambda a, b: identity_distance(a, b)[1],
    "||S|| / ||M||": lambda a, b: symmetric_parts(a, b)[0],
    "positive share": lambda a, b: definiteness(a, b)[2],
}
forms = {"as stored": {}, "gain folded in": {"fold_layer_norm": True}, "and centred": OWN}
for name, measure in measures.items():
    for title, more in forms.items():
        found = []
        for number in range(config.n_layer):
            pairs = zip(*qk_factors(head_weights(model, number, **more)), strict=True)
            found += [float(measure(a.double(), b.double())) for a, b in pairs]
        print(f"{name:17}, {title:14}: {min(found):.4f} to {max(found):.4f}")

# %% [markdown]
# On this model it moves digits, not answers; the last step, centring, moves hardly
# anything. Only the last line of each three is a property of the model all the same: the
# cell of part 7 could have set the others to anything.
#
# ## Part 10. What do the biases add?
#
# The formula $X W_Q W_K^{\mathsf T} X^{\mathsf T}$ forgets something. GPT-2's queries
# and keys have biases, and the score of query $i$ and key $j$ is
#
# $$\frac{(x_i W_Q + b_Q)(x_j W_K + b_K)^{\mathsf T}}{\sqrt{d_k}}
# = \frac{1}{\sqrt{d_k}}\Big(\underbrace{x_i W_Q W_K^{\mathsf T} x_j^{\mathsf T}}_{\text{content}} +
# \underbrace{x_i W_Q b_K^{\mathsf T}}_{\text{query}} +
# \underbrace{b_Q W_K^{\mathsf T} x_j^{\mathsf T}}_{\text{key}} +
# \underbrace{b_Q b_K^{\mathsf T}}_{\text{constant}}\Big) .$$
#
# Look at which token each term knows. The *query* term is the same for all keys; the
# *constant* is the same for all. A softmax over the keys does not see what is added to
# a whole row. So both terms with $b_K$ in them vanish: **the keys' bias does nothing**.
# The *key* term stays: it depends on $j$ alone, and says how welcome a token is,
# whoever asks.
#
# ### Exercise 14: the four terms
#
# ●●●○○ · 10 minutes · 1 point
#
# Keep the axes, so that the sum of the four broadcasts to the scores.

# %% exercise="weights.biases"
def score_terms(x, w_q, b_q, w_k, b_k):
    """The four terms of one head's scores, each divided by sqrt(head_size).

    Args:
        x: FloatTensor[seq_len, hidden]
        w_q, w_k: FloatTensor[hidden, head_size]
        b_q, b_k: FloatTensor[head_size]
    Returns:
        a dict: "content" FloatTensor[seq_len, seq_len], without any bias; "query"
        FloatTensor[seq_len, 1], "key" FloatTensor[1, seq_len], "constant" FloatTensor[]
    """
    ### BEGIN SOLUTION
    q = x @ w_q / w_q.shape[1] ** 0.5  # [seq_len, head_size]
    k = x @ w_k  # [seq_len, head_size]
    scaled_bias = b_q / w_q.shape[1] ** 0.5  # [head_size]
    return {
        "content": q @ k.T,
        "query": q @ b_k[:, None],
        "key": scaled_bias[None, :] @ k.T,
        "constant": scaled_bias @ b_k,
    }
    ### END SOLUTION


# %% check="weights.biases" points=1
check("weights.biases")

# %% [markdown]
# Do the four together give the model's own attention? And what happens when we leave
# out one bias?

# %%
with torch.no_grad(), record(model, "h.*.ln_1") as acts:
    own = model(ids, output_attentions=True).attentions
x = acts[f"h.{layer}.ln_1"][0]  # [seq_len, hidden]
parts_of = head_weights(model, layer)
head = 0
terms = score_terms(x, parts_of.w_q[head], parts_of.b_q[head],
                    parts_of.w_k[head], parts_of.b_k[head])
future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)  # [seq_len, seq_len]


def weights_from(*names):
    """The causal attention weights from the sum of these terms."""
    scores = sum(terms[name] for name in names) + torch.zeros(len(x), len(x))
    return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)  # [seq_len, seq_len]


model_weights = own[layer][0, head]  # [seq_len, seq_len]
for title, chosen in {
    "all four terms": ("content", "query", "key", "constant"),
    "without b_K": ("content", "key"),
    "without b_Q": ("content", "query"),
    "content alone": ("content",),
}.items():
    difference = (weights_from(*chosen) - model_weights).abs().max()
    print(f"{title:15}: largest difference to the model's attention {difference:.1e}")

# %% [markdown]
# All four give the model's attention; without $b_K$ nothing is missed. ($b_Q$ is
# another matter.) For all heads: how far does each bias move the attention, measured as
# the share of it that lands elsewhere?

# %%
effects = [bias_effect(acts[f"h.{n}.ln_1"], head_weights(model, n)) for n in range(config.n_layer)]
b_q, b_k = (torch.stack([e[name] for e in effects]) for name in ("b_q", "b_k"))
figure = plots.layer_head_grid(b_q, title="Attention moved by b_Q", label="share of attention")
for number, head in guided_heads(model):
    figure.axes[0].plot(head - 0.35, number - 0.25, "*", color="tab:red", markersize=11)
show(figure, "A grid with one cell for each head of each layer: the share of attention that the "
     "queries' bias moves.")
print(f"b_Q moves up to {b_q.max():.1%} of a head's attention, b_K at most {b_k.max():.0e}")

# %% [markdown]
# **Figure.** For each head, the share of its attention that would go elsewhere without
# $b_Q$ (total variation distance, averaged over the queries of our one sentence).
#
# ## What we found
#
# | question | how to ask it | random | answer |
# |---|---|---|---|
# | Is $W_Q W_K^{\mathsf T}$ the identity? | distance from $cI$, with the rank bound; signed share | ≈ 1; 0 ± 0.0158 | no: -0.1947 at most, and of the wrong sign |
# | Is it symmetric? | $\lVert S\rVert / \lVert M\rVert$ | 0.7097 ± 0.0039 | no; about half of the heads a little above chance, one far |
# | Is $S$ positive semidefinite? | positive share, smallest eigenvalue | 0.4999 ± 0.0090 | no: both signs in every head, in layer 0 more of the negative |
# | What do the biases add? | leave one out | | $b_K$ nothing, $b_Q$ a preference for some keys |
#
# Here are the numbers, head by head:

# %%
print("head   ||M||   distance  ||S||/||M||  positive  smallest   largest   b_Q moves")
lows = every_head(lambda a, b: definiteness(a, b)[0])
highs = every_head(lambda a, b: definiteness(a, b)[1])
for i, values in enumerate(zip(norms, distances, shares, positive, lows, highs, strict=True)):
    norm, distance, share, plus, low, high = values
    print(f"{i // config.n_head}.{i % config.n_head}  {norm:8.2f}  {distance:9.4f}  {share:10.3f}"
          f"  {plus:9.3f}  {low:8.2f}  {high:8.2f}  {b_q.flatten()[i]:9.1%}")

# %% [markdown]
# ## Did it stick?
#
# **1.** You split a `Conv1D` weight of 768 × 2304 with `torch.split(w, 768, dim=0)`. What do you get?
# <details><summary>Answer</summary>One piece: there are only 768 rows. Queries, keys and values are
# columns, dim=1.</details>
#
# **2.** A histogram of cosines with `density=True` between −0.4 and 0.4 has area 1. Are all cosines in it?
# <details><summary>Answer</summary>Not necessarily. density=True divides by what is inside the edges;
# the area is 1 whatever lies outside.</details>
#
# **3.** The cosines within heads have a standard deviation of .05 in one model and .10 in another. Did the second learn
# more structure?
# <details><summary>Answer</summary>Compare with chance first: 1/sqrt(hidden) may differ. And then mind that the
# cosines depend on the gauge: another basis inside the head gives other cosines and the
# same model.</details>
#
# **4.** $M$ is symmetric. Is attention a comparison $X' X'^{\mathsf T}$?
# <details><summary>Answer</summary>Only if M is positive semidefinite too. Else some directions count
# against a match: M = A S A^T with a signature S.</details>
#
# **5.** A head's share along the identity is -0.07, and a random twin's is +0.01. Has it learned something?
# <details><summary>Answer</summary>One twin does not tell. Draw many: if their standard deviation is 0.02,
# -0.07 is three and a half of them away, which chance hardly ever does.</details>
#
# **6.** You set all key biases of a GPT-2 to zero. What changes?
# <details><summary>Answer</summary>Nothing but rounding. Both terms with b_K are the same for all keys of a row, and
# the softmax does not see them.</details>
#
# ## What comes next
#
# Weights say what a head *could* look at. What it does look at depends on the words.
# [Lesson 11](../11_reading_activations/11_reading_activations.ipynb) puts words in and
# watches.
#
# Words from this lesson in the glossary: [gauge
# freedom](../../docs/glossary.md#gauge-freedom), [cosine
# similarity](../../docs/glossary.md#cosine-similarity), [random
# baseline](../../docs/glossary.md#random-baseline),
# [rank](../../docs/glossary.md#rank), [singular
# values](../../docs/glossary.md#singular-values), [positive
# semidefinite](../../docs/glossary.md#positive-semidefinite), [identity
# matrix](../../docs/glossary.md#identity-matrix), [bias](../../docs/glossary.md#bias).
