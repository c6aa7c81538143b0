# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · Make it fast
#
# Your attention is right, and lesson 06 has proved it. It is also slow, in a way that is easy to
# misunderstand. The trouble is not that it computes too much. It is that it *carries* too much:
# a table of seq_len × seq_len numbers, written to memory, read, written, and read again, and not
# one of them is wanted in the end. In this lesson you first count what attention costs, and then
# you write the two ideas that made long texts affordable: attention in tiles, which never has
# the table (FlashAttention), and the cache of keys and values, which never computes a token
# twice. Both change **no result at all**.
#
# **After this lesson you can**
#
# * count the multiplications and the bytes of attention, and say which of the two is the limit;
# * compute a softmax in one pass, over numbers that you never see together;
# * write attention in tiles, and skip those that the causal mask hides;
# * keep keys and values in a cache, with a mask that fits where there are more keys than queries;
# * generate text with a cache, token by token the same as without.
#
# | | |
# |---|---|
# | Time | 150 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●●○ |
#
# Nine exercises, thirteen points; the ninth is for those who liked lesson 06. **No check looks at a
# clock**: seconds depend on the machine and on what else it does. The checks count what your
# code does instead: the size of every tensor it makes, every multiplication. The solutions come
# with the whole course, in `solutions/07_make_it_fast.ipynb`; `hint("fast.count", 1)` gives a nudge.

# %% role="setup"
import math
import time

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.figures import show

# %%
hint("fast.count", 1)

# %% [markdown]
# ## 1. What does it cost?
#
# Two currencies. **FLOPs** are floating-point operations: a dot product of length $n$ is $n$
# multiplications and $n$ additions, $2n$ FLOPs. **Bytes moved** are what travels between the
# memory and the processor. Plain attention is three steps, and between two steps everything
# goes to memory and comes back:
#
# | step | FLOPs | reads | writes |
# |---|---|---|---|
# | scores = q kᵀ | 2 · q_len · k_len · head_size | q, k | q_len × k_len |
# | probs = softmax(scores) | few (we count none) | q_len × k_len | q_len × k_len |
# | out = probs v | 2 · q_len · k_len · head_size | probs, v | out |
#
# All of it once for each head of each sequence. The ratio of the two, FLOPs for each byte, is
# the **arithmetic intensity**. It decides which of the two you wait for.
#
# ### Exercise 1: count
#
# ●●○○○ · 12 minutes · 1 point

# %% exercise="fast.count"
def attention_cost(batch_size, num_heads, q_len, k_len, head_size, bytes_per_number):
    """What plain attention costs: the three steps of the table, for all heads and sequences.

    Args:
        batch_size, num_heads, q_len, k_len, head_size: int
        bytes_per_number: int, 4 for float32, 2 for half precision
    Returns:
        flops: int, of the two matrix products
        moved: int, the bytes that are read and written
        intensity: float, FLOPs for each byte
    """
    ### BEGIN SOLUTION
    flops = 2 * 2 * q_len * k_len * head_size
    numbers = 2 * q_len * head_size + 2 * k_len * head_size + 4 * q_len * k_len
    flops = batch_size * num_heads * flops
    moved = batch_size * num_heads * numbers * bytes_per_number
    return flops, moved, flops / moved
    ### END SOLUTION


# %% check="fast.count" points=1
check("fast.count")

# %% [markdown]
# PyTorch has a counter of its own, which watches the matrix products as they happen.

# %%
from torch.utils.flop_counter import FlopCounterMode


def plain_attention(q, k, v):
    """Attention with the whole table: [..., q_len, head_size] each."""
    scores = q @ k.mT * q.shape[-1] ** -0.5  # [..., q_len, k_len]
    return torch.softmax(scores, dim=-1) @ v  # [..., q_len, head_size]


batch_size, num_heads, seq_len, head_size = 2, 12, 256, 64
q, k, v = (torch.randn(batch_size, num_heads, seq_len, head_size) for _ in range(3))
with FlopCounterMode(display=False) as counter:
    plain_attention(q, k, v)
flops, moved, intensity = attention_cost(batch_size, num_heads, seq_len, seq_len, head_size, 4)
print(f"PyTorch counted {counter.get_total_flops():,} FLOPs, you {flops:,}")
print(f"and it moves {moved:,} bytes: {intensity:.1f} FLOPs for each")

# %% [markdown]
# Is 12.8 FLOPs for each byte much? Ask the processor. NVIDIA's public data sheet of the H100 (SXM) says
# 989 · 10¹² FLOPs a second in dense half precision (BF16), and 3.35 · 10¹² bytes a second from its memory. To
# keep it busy, each byte that arrives must be worth $989 / 3.35 \approx 295$ FLOPs. Anything with
# a lower intensity waits for memory.
#
# **Before you run this:** four pieces of work are below, in half precision with heads of size 64:
# plain attention over 4,096 tokens; the same without ever moving the table; one new token that
# looks at 4,096 past ones; and a 4,096 × 4,096 matrix product. Which of them keep the processor
# busy?

# %%
PEAK, BANDWIDTH, LENGTH = 989e12, 3.35e12, 4096
plain = attention_cost(1, 1, LENGTH, LENGTH, 64, 2)
decode = attention_cost(1, 1, 1, LENGTH, 64, 2)
work = {
    "plain attention": plain[2],
    "attention without\nmoving the table": plain[0] / (4 * LENGTH * 64 * 2),
    "one new token": decode[2],
    "matrix product": 2 * LENGTH**3 / (3 * LENGTH**2 * 2),
}
figure, axis = plt.subplots(figsize=(8, 4.2))
span = torch.logspace(-1, 4, 100)  # [points]
axis.loglog(span, (span * BANDWIDTH).clamp(max=PEAK) / 1e12, color="black")
for (name, at), marker in zip(work.items(), "osD^", strict=True):
    reach = min(at * BANDWIDTH, PEAK)
    said = name.replace("\n", " ")
    print(f"{said:35} {at:7.1f} FLOPs a byte: at most {reach / PEAK:6.1%} of the peak")
    axis.plot(at, reach / 1e12, marker, markersize=9, label=f"{said}: {reach / PEAK:.1%}")
axis.axvline(PEAK / BANDWIDTH, color="grey", linestyle=":")
axis.set(xlabel="arithmetic intensity, FLOPs a byte", ylabel="10¹² FLOPs a second, at most")
axis.legend(loc="lower right")
show(figure, "A roofline: a slope that memory bounds and a flat roof that the processor bounds, with "
     "four marks. One new token is far down the slope, plain attention at a tenth of the roof; "
     "attention without the table and the matrix product are under the roof.")

# %% [markdown]
# **Figure.** A *roofline*. On the slope you wait for memory, under the flat roof for the
# processor; the dotted line, at 295, is where they meet. Plain attention reaches a tenth of what the
# processor could do, and no cleverness in multiplying will help it: only moving less. Without the
# table its intensity grows with the length, and it is under the roof. One new token looking at a
# long past is the other extreme: it reads all keys and values for a single query, about one FLOP
# a byte. Section 6 meets it again.
#
# ## 2. A softmax in one pass
#
# To do without the table you must go through the keys in blocks and forget each block before the
# next. But a softmax needs its whole row: the largest score, for safety (lesson 01), and the sum
# of all exponentials. Can both be had on the way? They can (Milakov and Gimelshein 2018).
#
# Keep two numbers a row: $m$, the largest score *so far*, and $l$, the sum of $e^{s - m}$ so far.
# A block arrives with a larger score. The sum was taken relative to a maximum that is no longer
# one. But that is no harm, for
#
# $$e^{s - m_\text{new}} = e^{s - m_\text{old}} \cdot e^{m_\text{old} - m_\text{new}} ,$$
#
# the same factor for every term, so the whole sum is put right by **one multiplication**:
#
# $$l_\text{new} = l_\text{old} \cdot e^{m_\text{old} - m_\text{new}} + \sum_{s \in \text{block}} e^{s - m_\text{new}}$$
#
# **Before you run this:** a row of six scores in blocks of two. When does $l$ shrink?

# %%
row = torch.tensor([1.0, 0.5, 0.0, 1.0, 4.0, 2.0])  # [k_len]
m, total = -math.inf, 0.0  # the text calls the total l
for start in range(0, 6, 2):
    part = row[start : start + 2]  # [2]
    new = max(m, part.max().item())
    factor = math.exp(m - new)
    total = total * factor + (part - new).exp().sum().item()
    m = new
    print(f"scores {part.tolist()}: m = {m}, old sum times {factor:.4f}, l = {total:.4f}")
print(f"all at once:         m = {row.max().item()}, l = {(row - row.max()).exp().sum():.4f}")

# %% [markdown]
# At the 4: it makes the four scores before it worth a twentieth of what they were. The very first
# factor is $e^{-\infty} = 0$, which is right: nothing has been summed up yet.
#
# One thing can go wrong. With a mask, all scores of the first block may be $-\infty$. Then $m$ is
# still $-\infty$ after it, and $-\infty - (-\infty)$ is not a number. Where the maximum is
# $-\infty$, subtract 0 instead: $e^{-\infty - 0} = 0$ is what you want.
#
# ### Exercise 2: the online softmax
#
# ●●●○○ · 14 minutes · 1 point

# %% exercise="fast.online"
def online_softmax(scores, block):
    """The largest score of each row, and the sum of exp(score - largest), block by block.

    Args:
        scores: FloatTensor[q_len, k_len]; some are -inf, but no whole row is
        block: int, how many keys are looked at together; the last block may be shorter
    Returns:
        m: FloatTensor[q_len]
        l: FloatTensor[q_len]
    """
    ### BEGIN SOLUTION
    m = torch.full_like(scores[:, 0], -math.inf)  # [q_len]
    total = torch.zeros_like(m)  # [q_len]
    for part in scores.split(block, dim=1):
        new = torch.maximum(m, part.amax(dim=1))  # [q_len]
        safe = new.masked_fill(new == -math.inf, 0.0)  # [q_len]
        total = total * (m - safe).exp() + (part - safe[:, None]).exp().sum(dim=1)  # [q_len]
        m = new
    return m, total
    ### END SOLUTION


# %% check="fast.online" points=1
check("fast.online")

# %% [markdown]
# ## 3. Attention in tiles
#
# The output of a row is a sum over the keys as well, $o = \sum_j e^{s_j - m} v_j$, divided by $l$
# at the end. So it can be carried along just as $l$ is, and is put right by the same factor. That
# is the whole of FlashAttention's forward pass (Dao et al. 2022; in this order of the loops since
# its second version, Dao 2023):
#
# ```
# for each block of queries:
#     m = -inf, l = 0, out = 0
#     for each block of keys:
#         one tile of scores, block x block
#         the new m;  l and out times exp(m_old - m_new)
#         l   += row sums of exp(tile - m_new)
#         out += exp(tile - m_new) @ block of values
#     out / l
# ```
#
# A real one keeps the tile in a small memory on the processor's chip and runs the whole of it as one
# program. Ours runs in Python and will not be fast; but what it *makes* is the same, and that can
# be recorded. Below PyTorch's functions sits a switchboard through which every operation passes,
# and one may listen:

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor that any operation gave."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


with LargestTensor() as largest:
    plain_attention(*(torch.randn(1000, 16) for _ in range(3)))
print(f"plain attention over 1000 tokens: the largest tensor has {largest.numbers:,} numbers")

# %% [markdown]
# ### Exercise 3: tiles
#
# ●●●●○ · 20 minutes · 2 points
#
# The check listens in the same way: no tensor may be larger than a tile, or than the output.

# %% exercise="fast.tiles"
def tiled_attention(q, k, v, block):
    """Attention of one head, one tile of scores at a time.

    Args:
        q: FloatTensor[q_len, head_size], not scaled
        k: FloatTensor[k_len, head_size]
        v: FloatTensor[k_len, head_size]
        block: int, rows and columns of a tile; the last ones may be shorter
    Returns:
        FloatTensor[q_len, head_size]
    """
    ### BEGIN SOLUTION
    outs = []
    for rows in q.split(block):
        m = torch.full_like(rows[:, 0], -math.inf)  # [block]
        total, out = torch.zeros_like(m), torch.zeros_like(rows)  # [block], [block, head_size]
        for keys, values in zip(k.split(block), v.split(block), strict=True):
            scores = rows @ keys.T / math.sqrt(q.shape[-1])  # [block, block]
            new = torch.maximum(m, scores.amax(dim=1))  # [block]
            weights = (scores - new[:, None]).exp()  # [block, block]
            factor = (m - new).exp()  # [block]
            total = total * factor + weights.sum(dim=1)  # [block]
            out = out * factor[:, None] + weights @ values  # [block, head_size]
            m = new
        outs.append(out / total[:, None])  # [block, head_size]
    return torch.cat(outs)  # [q_len, head_size]
    ### END SOLUTION


# %% check="fast.tiles" points=2
check("fast.tiles")

# %% [markdown]
# What it looks like from inside: twelve tokens in blocks of four, and the three tiles that the
# second block of queries goes through.

# %%
torch.manual_seed(35)
q, k, v = (torch.randn(12, 4) * 1.3 for _ in range(3))  # each [seq_len, head_size]
table = q @ k.T / 2  # [seq_len, seq_len]; only for the picture
row, m, total = 6, -math.inf, 0.0
figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for step, axis in enumerate(axes):
    tile = table[4:8, 4 * step : 4 * step + 4]  # [block, block]
    part = table[row, 4 * step : 4 * step + 4]  # [block]
    new = max(m, part.max().item())
    total = total * math.exp(m - new) + (part - new).exp().sum().item()
    m = new
    image = axis.imshow(tile, extent=(4 * step - 0.5, 4 * step + 3.5, 7.5, 3.5), cmap="viridis",
                        vmin=table.min(), vmax=table.max())
    axis.axhline(row, color="tab:red", linewidth=1)
    for edge in (3.5, 7.5):
        axis.axvline(edge, color="lightgrey", zorder=0)
        axis.axhline(edge, color="lightgrey", zorder=0)
    axis.set(xlim=(-0.5, 11.5), ylim=(11.5, -0.5), xticks=range(12), yticks=range(12),
             xlabel="key", title=f"tile {step + 1} of 3\nquery {row}: m = {m:.2f}, l = {total:.2f}")
axes[0].set_ylabel("query")
figure.colorbar(image, ax=axes, shrink=0.7, label="score")
show(figure, "Three frames of the same 12 by 12 table, empty but for one 4 by 4 tile that moves from "
     "left to right along queries 4 to 7. Titles give the running maximum and sum of query 6.")
exact = (table[row] - table[row].max()).exp().sum()
print(f"query {row} from the whole table: m = {table[row].max():.2f}, l = {exact:.2f}")

# %% [markdown]
# **Figure.** The table has 144 cells, and never more than 16 of them exist. Above each frame stand
# the two numbers that query 6 (red line) carries from tile to tile; $m$ rises twice. After the last tile they are
# those of the whole row, which the printed line computes the long way.
#
# And the memory?
#
# **Before you run this:** twice the length. How much larger is the largest tensor, plain and in tiles
# of 32?

# %%
lengths, block, head_size = [64, 128, 256, 512, 1024], 32, 8
sizes = {"plain": [], "tiles": []}
for length in lengths:
    q, k, v = (torch.randn(length, head_size) for _ in range(3))  # each [seq_len, head_size]
    for name, attend in (("plain", plain_attention), ("tiles", lambda *a: tiled_attention(*a, block))):
        with LargestTensor() as largest:
            attend(q, k, v)
        sizes[name].append(largest.numbers)
for length, one, other in zip(lengths, *sizes.values(), strict=True):
    print(f"{length:5} tokens: plain {one:9,}   in tiles {other:7,}")
figure, axis = plt.subplots(figsize=(7, 4))
axis.loglog(lengths, sizes["plain"], "o", label="plain, recorded")
axis.loglog(lengths, sizes["tiles"], "s", label="in tiles, recorded")
axis.loglog(lengths, [n * n for n in lengths], "--", color="grey", label="seq_len²")
axis.loglog(lengths, [max(block**2, n * head_size) for n in lengths], ":", color="grey",
            label="the larger of block² and seq_len · head_size")
axis.set(xlabel="seq_len", ylabel="numbers in the largest tensor")
axis.set_xticks(lengths, lengths)
axis.minorticks_off()
axis.legend()
show(figure, "The largest tensor against the length, both axes logarithmic. Plain attention lies on "
     "the square of the length; tiles stay at the tile's size and then grow with the length.")

# %% [markdown]
# **Figure.** Marks are recorded, lines are theory, and they agree exactly. Plain attention's largest
# tensor is the table and grows fourfold. In tiles the largest is a tile at first (1,024 numbers),
# and from 256 tokens on the output itself, which merely doubles. The FLOPs are the same for both, and
# so are the results.
#
# ## 4. Skipping what is hidden
#
# A causal mask hides half of the table. Plain attention computes that half all the same, in order to
# overwrite it. In tiles you can do better: a tile that lies wholly in the future is not visited, one
# that lies wholly in the past needs no mask, and only those on the diagonal are masked inside.
#
# **Before you run this:** with $n$ blocks there are $n^2$ tiles. How many are left?

# %%
for n in (2, 4, 16, 64):
    print(f"{n:3} blocks: {n * (n + 1) // 2:5} of {n * n:5} tiles, {(n + 1) / (2 * n):.0%}")

# %% [markdown]
# $n (n + 1) / 2$, a little more than half: the diagonal is what is more. It is also where the two
# mistakes of this exercise live. Who skips the diagonal tiles takes every token's own key away; who
# does not mask them lets a token see the rest of its block.
#
# ### Exercise 4: causal tiles
#
# ●●●○○ · 14 minutes · 2 points

# %% exercise="fast.causal_tiles"
def causal_tiles(q, k, v, block):
    """Causal attention of one head in tiles; those in the future are never computed.

    Args:
        q, k, v: FloatTensor[seq_len, head_size], not scaled
        block: int, rows and columns of a tile; the last ones may be shorter
    Returns:
        out: FloatTensor[seq_len, head_size]
        tiles: int, how many tiles of scores were computed
    """
    ### BEGIN SOLUTION
    outs, tiles = [], 0
    for i, rows in enumerate(q.split(block)):
        m = torch.full_like(rows[:, 0], -math.inf)  # [block]
        total, out = torch.zeros_like(m), torch.zeros_like(rows)  # [block], [block, head_size]
        for j in range(i + 1):
            keys, values = (t[j * block : (j + 1) * block] for t in (k, v))  # 2 x [block, head_size]
            scores = rows @ keys.T / math.sqrt(q.shape[-1])  # [block, block]
            if j == i:
                future = torch.ones_like(scores).triu(1).bool()  # [block, block]
                scores = scores.masked_fill(future, -math.inf)  # [block, block]
            new = torch.maximum(m, scores.amax(dim=1))  # [block]
            weights = (scores - new[:, None]).exp()  # [block, block]
            factor = (m - new).exp()  # [block]
            total = total * factor + weights.sum(dim=1)  # [block]
            out = out * factor[:, None] + weights @ values  # [block, head_size]
            m = new
            tiles += 1
        outs.append(out / total[:, None])  # [block, head_size]
    return torch.cat(outs), tiles
    ### END SOLUTION


# %% check="fast.causal_tiles" points=2
check("fast.causal_tiles")

# %%
q, k, v = (torch.randn(200, 16) for _ in range(3))  # each [seq_len, head_size]
future = torch.ones(200, 200).triu(1).bool()  # [seq_len, seq_len]
with FlopCounterMode(display=False) as all_of_it:
    plain = (q @ k.T / 4).masked_fill(future, -math.inf).softmax(-1) @ v  # [seq_len, head_size]
with FlopCounterMode(display=False) as half_of_it:
    mine, tiles = causal_tiles(q, k, v, 8)
print(f"{tiles} tiles, largest difference {(mine - plain).abs().max():.0e}")
print(f"FLOPs: {half_of_it.get_total_flops() / all_of_it.get_total_flops():.0%} of the plain ones")

# %% [markdown]
# ## 5. Three layers, one product
#
# A small thing that every library does. Queries, keys and values are three linear layers that read
# the same $x$. Three products read $x$ three times. Put the three weights one below the other and it is
# one product, whose result is cut in three. This is what GPT-2's `c_attn` and PyTorch's
# `in_proj_weight` are, as lesson 06 showed; now you know why.
#
# ### Exercise 5: one product for three
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="fast.fused"
def fused_qkv(x, layers):
    """Queries, keys and values out of one matrix product.

    Args:
        x: FloatTensor[batch_size, seq_len, input_size]
        layers: dict with "q.weight", "k.weight", "v.weight", each
            FloatTensor[hidden, input_size], and "q.bias", "k.bias", "v.bias", each
            FloatTensor[hidden]
    Returns:
        q, k, v: FloatTensor[batch_size, seq_len, hidden] each
    """
    ### BEGIN SOLUTION
    weight = torch.cat([layers[f"{name}.weight"] for name in "qkv"])  # [3 * hidden, input_size]
    bias = torch.cat([layers[f"{name}.bias"] for name in "qkv"])  # [3 * hidden]
    return F.linear(x, weight, bias).chunk(3, dim=-1)  # 3 x [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="fast.fused" points=1
check("fast.fused")

# %% [markdown]
# ## 6. Never compute a token twice
#
# A model writes one token at a time, and each new one goes back in. Naively the whole text goes through
# the model again for each token. But a causal model's past does not change: the keys and values of
# token 3 depend on tokens 0 to 3 alone, and those are written. So keep them. A new token then needs its
# own query, key and value, and the **cache** of all keys and values before it. (Past *queries* are
# needed by no one: nobody asks for the past outputs again.)
#
# Three words. *Prefill*: the prompt goes through at once and fills the cache. *Decode*: one token at
# a time. *Chunk*: several at a time, with a cache behind them.
#
# Now for the first time there are more keys than queries, and a trap opens that has swallowed many. The
# queries are the **last** tokens of the sequence:
#
# ```
#  3 new tokens, 5 in all              not this
#       keys 0 1 2 3 4                 0 1 2 3 4
#  token 2:  x x x . .                 x . . . .
#  token 3:  x x x x .                 x x . . .
#  token 4:  x x x x x                 x x x . .
# ```
#
# **Before you run this:** one new token, four in the cache. `F.scaled_dot_product_attention` has a
# switch `is_causal=True`. How many keys does the new token see?

# %%
one = torch.zeros(1, 1, 1, 2)  # [batch_size, num_heads, q_len, head_size]; likes all keys equally
five = torch.zeros(1, 1, 5, 2)  # [batch_size, num_heads, k_len, head_size]
marks = torch.eye(5)[None, None]  # [batch_size, num_heads, k_len, k_len]; value j is a 1 in place j
print("weights:", F.scaled_dot_product_attention(one, five, marks, is_causal=True).flatten().tolist())

# %% [markdown]
# One, the first token of all: the mask is aligned at the top left, as in the picture on the right. It is
# documented, and it is right for a square table. It has been reported as a bug again and again, because
# the model goes on writing fluent text, a little stupidly. With a cache, make the mask yourself.
#
# ### Exercise 6: the mask with a past
#
# ●●○○○ · 8 minutes · 1 point

# %% exercise="fast.chunk_mask"
def chunk_mask(q_len, k_len):
    """The causal mask where the queries are the last q_len of k_len tokens.

    Args:
        q_len: int
        k_len: int, at least q_len
    Returns:
        BoolTensor[q_len, k_len], True where a key is hidden
    """
    ### BEGIN SOLUTION
    return torch.ones(q_len, k_len).triu(k_len - q_len + 1).bool()  # [q_len, k_len]
    ### END SOLUTION


# %% check="fast.chunk_mask" points=1
check("fast.chunk_mask")

# %% [markdown]
# ### Exercise 7: attention with a cache
#
# ●●●●○ · 20 minutes · 2 points
#
# The cache belongs to the caller, who gives it and gets it back grown. (A cache in `self` would be one
# for all sequences that the layer ever sees.) Layers `q`, `k`, `v` and `mix`; use your `chunk_mask`.

# %% exercise="fast.cache" needs="fast.chunk_mask"
class CachedAttention(nn.Module):
    """Causal multi-head attention that goes on where a cache ends."""

    def __init__(self, input_size, hidden, num_heads):
        """
        Args:
            input_size: int, size of the input vectors
            hidden: int, size of queries, keys and values of all heads together
            num_heads: int, divides hidden
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.num_heads = num_heads
        self.mix = nn.Linear(hidden, hidden)
        ### END SOLUTION

    def forward(self, x, cache=None):
        """
        Args:
            x: FloatTensor[batch_size, q_len, input_size], the new tokens
            cache: None, or (k, v) of all tokens before them, each
                FloatTensor[batch_size, num_heads, past_len, head_size]
        Returns:
            out: FloatTensor[batch_size, q_len, hidden]
            cache: (k, v) of all tokens, the new ones last, each
                FloatTensor[batch_size, num_heads, past_len + q_len, head_size]
        """
        ### BEGIN SOLUTION
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )  # each [batch_size, num_heads, q_len, head_size]
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)  # [batch_size, num_heads, k_len, head_size]
            v = torch.cat([cache[1], v], dim=2)  # [batch_size, num_heads, k_len, head_size]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        # [batch_size, num_heads, q_len, k_len]
        hidden_keys = chunk_mask(q.shape[2], k.shape[2])  # [q_len, k_len]
        probs = torch.softmax(scores.masked_fill(hidden_keys, -math.inf), dim=-1)
        # [batch_size, num_heads, q_len, k_len]
        merged = (probs @ v).transpose(1, 2).flatten(2)  # [batch_size, q_len, hidden]
        return self.mix(merged), (k, v)
        ### END SOLUTION


# %% check="fast.cache" points=2
check("fast.cache")

# %% [markdown]
# The test of any cache is one sentence: **however the tokens are cut, the outputs are the same.**

# %%
torch.manual_seed(5)
layer = CachedAttention(8, 12, 3)
x = torch.randn(1, 10, 8)  # [batch_size, seq_len, input_size]
with torch.no_grad():
    at_once, _ = layer(x)  # [batch_size, seq_len, hidden]
    for cuts in ([10], [6, 4], [4, 3, 1, 1, 1], [1] * 10):
        parts, cache = [], None
        for chunk in x.split(cuts, dim=1):
            out, cache = layer(chunk, cache)
            parts.append(out)
        same = torch.allclose(torch.cat(parts, dim=1), at_once, atol=1e-6)
        print(f"cut into {cuts}: same {same}, cache {list(cache[0].shape)}")

# %% [markdown]
# ### Exercise 8: write with a cache
#
# ●●●○○ · 14 minutes · 2 points
#
# Now a whole model, a GPT-2 of the library `transformers`. It keeps one cache for all its layers:
# `model(ids, use_cache=True)` gives an object with `logits` and `past_key_values`, and
# `model(new_ids, past_key_values=...)` goes on from there. It also counts the *positions* of the new
# tokens on from the past ones. (Who gives `position_ids` by hand must do the same: a new token at position
# 0 is a classic.) The check compares the tokens, and counts the multiplications.

# %% exercise="fast.generate"
def generate_cached(model, ids, count):
    """Go on with a text: `count` times the most probable next token, each token read once.

    Args:
        model: a GPT2LMHeadModel in evaluation mode
        ids: LongTensor[batch_size, seq_len], the prompt
        count: int, at least 1
    Returns:
        LongTensor[batch_size, seq_len + count]
    """
    ### BEGIN SOLUTION
    cache, new = None, ids
    with torch.no_grad():
        for _ in range(count):
            out = model(new, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            new = out.logits[:, -1].argmax(dim=-1, keepdim=True)  # [batch_size, 1]
            ids = torch.cat([ids, new], dim=1)  # [batch_size, seq_len so far]
    return ids
    ### END SOLUTION


# %% check="fast.generate" points=2
check("fast.generate")

# %% [markdown]
# Held against the slow way, on a model on board, token by token:

# %%
from transformer_lm.pretrained import load_gpt2

model, tokenizer = load_gpt2("base-on-board")


@torch.no_grad()
def generate_slowly(model, text, count):
    """The same without a cache: all of the text, again for each token."""
    while count:
        likeliest = model(text).logits[:, -1:].argmax(dim=-1)  # [batch_size, 1]
        text, count = torch.cat((text, likeliest), dim=1), count - 1  # [batch_size, seq_len so far]
    return text


ids = tokenizer("Once upon a time there was a", return_tensors="pt").input_ids
# [batch_size, seq_len]
COUNT = 100
written = {}
for name, write in (("without", generate_slowly), ("with", generate_cached)):
    start = time.perf_counter()
    with FlopCounterMode(display=False) as counter:
        written[name] = write(model, ids, COUNT)
    print(f"{name:7} cache: {counter.get_total_flops() / 1e9:5.1f} · 10⁹ FLOPs")
agree = (written["with"] == written["without"])[0, ids.shape[1] :].sum().item()
print(f"tokens that agree: {agree} of {COUNT}")
print(tokenizer.decode(written["with"][0, :30]))

# %% [markdown]
# The same words, each of them. (What the words are worth is another matter: a model of this size that
# always takes the likeliest token soon turns in circles.) Now the clock, for once, since this is what
# all of it is for:

# %%
def seconds_a_token(write, count):
    """The time from each pass through the model to the next, while `count` tokens are written."""
    stamps = []
    hook = model.register_forward_hook(lambda *_: stamps.append(time.perf_counter()))
    write(model, ids, count + 1)
    hook.remove()
    return torch.tensor(stamps, dtype=torch.float64).diff()  # [count]


figure, axis = plt.subplots(figsize=(7.5, 3.8))
for name, write, style in (("without cache", generate_slowly, "o-"), ("with cache", generate_cached, "s--")):
    runs = torch.stack([seconds_a_token(write, 200) for _ in range(2)])  # [runs, tokens]
    fastest = runs.unflatten(1, (20, 10)).amin(dim=(0, 2))  # [tens]
    axis.plot(range(5, 205, 10), fastest * 1000, style, markersize=4, label=name)
    print(f"{name:14}: {20 / fastest.sum():4.0f} tokens a second on this machine, now")
axis.set(xlabel="token", ylabel="milliseconds for it", ylim=(0, None))
axis.legend()
show(figure, "Time for each new token against its number. Without a cache it climbs with the length "
     "of the text; with a cache it stays low and nearly flat.")

# %% [markdown]
# **Figure.** The time for a token, the fastest of ten neighbours in two runs (other programs disturb
# the rest). Without a cache each token is dearer than
# the one before, for the whole text goes through again. With it, each costs about the same: one token
# goes through the layers, and only the look back at the cache grows. How large the gap is depends on your
# machine; that it widens does not. (This model is tiny: much of what you see is Python. In a large model the
# gap is far wider.)
#
# What is the price? The cache itself: two tensors a layer, for every token of every sequence.

# %%
for name, layers, heads, size, tokens in (
    ("this model, 200 tokens", model.config.n_layer, model.config.n_head,
     model.config.n_embd // model.config.n_head, 200),
    ("GPT-2 small, 1,024 tokens", 12, 12, 64, 1024),
    ("GPT-2 xl, 1,024 tokens", 48, 25, 64, 1024),
):
    print(f"{name:26} {2 * layers * heads * tokens * size * 2 / 1e6:6.1f} MB in half precision")

# %% [markdown]
# That is for each sequence. Serve a hundred readers at once, and the cache is larger than the model. This is
# why lesson 08 shares keys and values among heads.
#
# ## 7. For those who liked lesson 06
#
# Training needs the backward pass, and that needs $P$, the table that we are so proud of never having
# made. FlashAttention's answer: make it again, tile by tile. Keep $m$ and $l$ of each row, or rather the one
# number $m + \ln l$ (the row's `logsumexp`), and a tile of $P$ is $e^{s - \text{logsumexp}}$. It costs FLOPs to
# compute a tile twice, and FLOPs are what we had too many of. The softmax's row term is $D_i = \bar o_i \cdot
# o_i$, as you saw in lesson 06: no row of $P$ needed.
#
# ### Exercise 9: backwards in tiles
#
# ●●●●● · 25 minutes · 1 point

# %% exercise="fast.tiled_backward"
def tiled_backward(grad_out, q, k, v, out, logsumexp, block):
    """The gradients of attention (no mask), one tile of probabilities at a time.

    Args:
        grad_out: FloatTensor[q_len, head_size], the gradient by out
        q: FloatTensor[q_len, head_size], not scaled
        k, v: FloatTensor[k_len, head_size]
        out: FloatTensor[q_len, head_size], what the forward pass gave
        logsumexp: FloatTensor[q_len], of each row of scaled scores
        block: int, rows and columns of a tile; the last ones may be shorter
    Returns:
        grad_q: FloatTensor[q_len, head_size]
        grad_k, grad_v: FloatTensor[k_len, head_size]
    """
    ### BEGIN SOLUTION
    scale = 1 / math.sqrt(q.shape[-1])
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    term = (grad_out * out).sum(dim=-1, keepdim=True)  # [q_len, 1]
    for i in range(0, len(q), block):
        rows = slice(i, i + block)
        for j in range(0, len(k), block):
            cols = slice(j, j + block)
            scores = q[rows] @ k[cols].T * scale  # [block, block]
            probs = (scores - logsumexp[rows, None]).exp()  # [block, block]
            grad_probs = grad_out[rows] @ v[cols].T  # [block, block]
            grad_scores = probs * (grad_probs - term[rows]) * scale  # [block, block]
            grad_q[rows] += grad_scores @ k[cols]  # [block, head_size]
            grad_k[cols] += grad_scores.T @ q[rows]  # [block, head_size]
            grad_v[cols] += probs.T @ grad_out[rows]  # [block, head_size]
    return grad_q, grad_k, grad_v
    ### END SOLUTION


# %% check="fast.tiled_backward" points=1
check("fast.tiled_backward")

# %% [markdown]
# ## Did it stick?
#
# **1.** Plain attention reaches a tenth of the processor's speed. Would a processor with twice the FLOPs help?
# <details><summary>Answer</summary>No. It waits for memory: only moving fewer bytes helps, or a faster
# memory.</details>
#
# **2.** In the online softmax, when is the old sum multiplied by exactly 1?
# <details><summary>Answer</summary>When the new block holds no larger score: the maximum stays, and
# exp(0) = 1.</details>
#
# **3.** Does FlashAttention do fewer FLOPs than plain attention?
# <details><summary>Answer</summary>Not by itself, the products are the same (backwards it even does more).
# It moves fewer bytes. Skipping the hidden tiles of a causal mask does save FLOPs, about half.</details>
#
# **4.** Why are there no queries in the cache?
# <details><summary>Answer</summary>A past token's query would only be needed for its own output, and that
# has been computed already.</details>
#
# **5.** After adding a cache the model writes fluently, and a little worse than before. What do you look
# at first?
# <details><summary>Answer</summary>Whether the new tokens see all of the past (a mask aligned at the top
# left shows them its beginning only), and whether their positions go on from the past.</details>
#
# ## What comes next
#
# [Lesson 08](../08_variants/08_variants.ipynb) changes the attention itself: fewer keys and values,
# rotated positions, windows. Then [lesson 09](../09_inside_gpt2/09_inside_gpt2.ipynb) opens a
# model that has been trained.
#
# Words from this lesson in the glossary: [flash attention](../../docs/glossary.md#flash-attention),
# [online softmax](../../docs/glossary.md#online-softmax), [tile](../../docs/glossary.md#tile),
# [KV cache](../../docs/glossary.md#kv-cache), [causal mask](../../docs/glossary.md#causal-mask),
# [arithmetic intensity](../../docs/glossary.md#arithmetic-intensity).
