# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · Variants
#
# The attention of lesson 05 is that of 2017. Open a model of today and you find the same
# three matrices and the same softmax, and around them a handful of changes with short names:
# GQA, RoPE, ALiBi, sliding window, linear. Each of them answers one complaint. Keys and
# values take too much memory, as the cache of [lesson
# 07](../07_make_it_fast/07_make_it_fast.ipynb) has shown. Positions stop at the length of the training texts. Everyone
# looks at everyone, and that costs the square of the length. In this lesson you build each
# change, and test it for what it promises. Most of them are one line. Each of those lines has a
# twin that looks the same, runs without an error, and is wrong.
#
# **After this lesson you can**
#
# * let one text look at another, with padding on both sides;
# * share keys and values among heads, and say to the byte what it saves;
# * turn queries and keys so that their product knows the distance, cache or no cache;
# * make distance cost something, for any number of heads;
# * say how far a stack of sliding windows sees;
# * do attention without a softmax, all at once or token by token, with the same result;
# * find out which of these stands in front of you by asking it questions.
#
# | | |
# |---|---|
# | Time | 100 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●○○ |
#
# Twelve exercises, fourteen points. Skip what you know: the sections do not need one another,
# but for 4 (which needs 3) and the experiments of section 7, which try all that you have built.
# The solutions come with the whole course, in `solutions/08_variants.ipynb`. When stuck:

# %% role="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.black_boxes import black_box
from transformer_lm.books import read_books
from transformer_lm.characters import Characters
from transformer_lm.figures import show
from transformer_lm.modeling_lm import LanguageModel
from transformer_lm.training import Settings, train


def split_heads(t, num_heads):
    """[batch_size, seq_len, hidden] to [batch_size, num_heads, seq_len, head_size]."""
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(t):
    """[batch_size, num_heads, seq_len, head_size] to [batch_size, seq_len, hidden]."""
    return t.transpose(1, 2).flatten(2)


# %%
hint("variants.cross", 1)
torch.set_printoptions(precision=3, sci_mode=False)

# %% [markdown]
# The two helpers in the cell above are lesson 04's split and merge; use them wherever you like.
# Masks are True where a key is **hidden**, as in lesson 03.
#
# ## 1. Looking at another text
#
# A translator reads German and writes English. Each English word should look at the German
# ones. So the queries come from the one text and the keys and values from the other. This is
# *cross-attention*, and it is older than self-attention: in the attention of 2014 that
# lesson 01 begins with, a decoder looked at its encoder.
#
# $$\text{softmax}\!\left(\frac{(X W_Q)(S W_K)^{\mathsf T}}{\sqrt{d}}\right) S W_V$$
#
# $X$ is who asks, $S$ the source that is asked. They may differ in length *and* in width, so
# the scores are a rectangle: one row for each token of $X$, one column for each of $S$.
#
# Both texts come in batches, so both have padding, and the two kinds of padding want two kinds
# of treatment. Padding of the source must not be looked at: it hides **columns**, before the
# softmax. Padding of $X$ asks questions that nobody will read the answers to. Hiding its *rows*
# before the softmax would give $0/0$; leave them, and set the answers to 0 afterwards.
#
# **Before you go on:** which part of a decoder's cross-attention is causal?
#
# <details><summary>Answer</summary>None. The German sentence is known from beginning to end
# before the first English word is written. Nothing in it is the future.</details>
#
# ### Exercise 1: cross-attention
#
# ●●●○○ · 12 minutes · 2 points
#
# Layers `q`, `k`, `v` with biases. Every text has at least one real token.

# %% exercise="variants.cross"
class CrossAttention(nn.Module):
    """One head in which the tokens of one text look at those of another."""

    def __init__(self, input_size, source_size, hidden):
        """
        Args:
            input_size: int, size of the vectors that ask
            source_size: int, size of the vectors that are asked
            hidden: int, size of queries, keys, values and outputs
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(source_size, hidden)
        self.v = nn.Linear(source_size, hidden)
        ### END SOLUTION

    def forward(self, x, source, x_lengths, source_lengths):
        """
        Args:
            x: FloatTensor[batch_size, x_len, input_size]
            source: FloatTensor[batch_size, source_len, source_size]
            x_lengths: LongTensor[batch_size], how many tokens of each x are real
            source_lengths: LongTensor[batch_size], the same of each source
        Returns:
            FloatTensor[batch_size, x_len, hidden], 0 where x is padding
        """
        ### BEGIN SOLUTION
        q, k, v = self.q(x), self.k(source), self.v(source)
        # [batch_size, x_len, hidden], twice [batch_size, source_len, hidden]
        scores = q @ k.mT / k.shape[-1] ** 0.5  # [batch_size, x_len, source_len]
        hidden = torch.arange(source.shape[1]) >= source_lengths[:, None]
        # [batch_size, source_len]
        scores = scores.masked_fill(hidden[:, None], -math.inf)  # [batch_size, x_len, source_len]
        out = torch.softmax(scores, dim=-1) @ v  # [batch_size, x_len, hidden]
        silent = torch.arange(x.shape[1]) >= x_lengths[:, None]  # [batch_size, x_len]
        return out.masked_fill(silent[..., None], 0.0)  # [batch_size, x_len, hidden]
        ### END SOLUTION


# %% check="variants.cross" points=2
check("variants.cross")

# %% [markdown]
# ## 2. Fewer keys and values
#
# A model that writes makes one token at a time, and each new token looks at the keys and values
# of all tokens before it. These are kept: the *KV cache* (lesson 07). Queries are not. A query is
# asked once, when its token is new, and never again.
#
# So it is keys and values that fill the memory, and the cure is to have fewer of them. In
# *multi-query attention* (Shazeer 2019) all heads share **one** head of keys and values. In
# *grouped-query attention* (Ainslie et al. 2023) neighbours share: with 8 heads of queries and
# 2 of keys and values, query heads 0 to 3 read the first, 4 to 7 the second. Multi-query and
# plain attention are its two ends.
#
# The simple way is to copy each head of keys until there are as many as queries. PyTorch has
# two functions that "repeat".
#
# **Before you run this:** which of the two lines is the one we want?

# %%
kv_heads = torch.tensor([0, 1])  # [kv_heads]
print("repeat:            ", kv_heads.repeat(4).tolist())
print("repeat_interleave: ", kv_heads.repeat_interleave(4).tolist())

# %% [markdown]
# Neighbours share, so it is the second. The first has the right shape and no error, and trains
# well: a model does not mind which heads share. It breaks on the day when you load the weights
# of somebody who did it the other way.
#
# ### Exercise 2: grouped-query attention
#
# ●●○○○ · 6 minutes · 1 point
#
# Causal. The split into heads has been done.

# %% exercise="variants.grouped"
def grouped_attention(q, k, v):
    """Causal attention in which neighbouring heads of queries share keys and values.

    Args:
        q: FloatTensor[batch_size, num_heads, seq_len, head_size]
        k: FloatTensor[batch_size, kv_heads, seq_len, head_size], kv_heads divides num_heads
        v: FloatTensor[batch_size, kv_heads, seq_len, head_size]
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    seq_len = q.shape[2]
    sharing = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(sharing, dim=1)  # [batch_size, num_heads, seq_len, head_size]
    v = v.repeat_interleave(sharing, dim=1)  # [batch_size, num_heads, seq_len, head_size]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    # [batch_size, num_heads, seq_len, seq_len]
    future = torch.ones(seq_len, seq_len).triu(1).bool()  # [seq_len, seq_len]
    scores = scores.masked_fill(future, -math.inf)  # [batch_size, num_heads, seq_len, seq_len]
    return torch.softmax(scores, dim=-1) @ v  # [batch_size, num_heads, seq_len, head_size]
    ### END SOLUTION


# %% check="variants.grouped" points=1
check("variants.grouped")

# %% [markdown]
# ### Exercise 3: how large is the cache?
#
# ●●○○○ · 5 minutes · 1 point
#
# Predict it to the byte. All sequences of the batch are `seq_len` long.

# %% exercise="variants.cache_bytes"
def cache_bytes(num_layers, num_heads, kv_heads, head_size, seq_len, batch_size, bytes_each):
    """The size of the KV cache.

    Args:
        num_layers, num_heads, kv_heads, head_size, seq_len, batch_size: int
        bytes_each: int, bytes that a number takes: 4 for float32, 2 for float16
    Returns:
        int, bytes
    """
    ### BEGIN SOLUTION
    numbers_a_token = 2 * num_layers * kv_heads * head_size
    return numbers_a_token * seq_len * batch_size * bytes_each
    ### END SOLUTION


# %% check="variants.cache_bytes" points=1
check("variants.cache_bytes")

# %% [markdown]
# A model with 32 layers and 32 heads of size 128 is what people call "a 7B". In float16 its
# weights take some 13 GiB.
#
# **Before you run this:** guess its cache for one text of 32,768 tokens.

# %%
for kv_heads in (32, 8, 1):
    size = cache_bytes(32, 32, kv_heads, 128, 32768, 1, 2)
    print(f"{kv_heads:2} heads of keys and values: {size / 2**30:5.2f} GiB")

# %% [markdown]
# One long text needs more room than the whole model. With eight heads it is 4 GiB, and this is
# what most models of this size have now. What the sharing costs in quality, we measure in
# section 7.
#
# ## 3. Turning: RoPE
#
# Without positions, attention is blind to order: shuffle the past, and nothing changes. GPT-2 adds
# a learned vector for each place to its token, at the very beginning. That has two weak points.
# The model knows where a token *stands*, though language cares how far *apart* two tokens are.
# And place 1,024 has no vector if training stopped at 1,023.
#
# *Rotary position embedding* (Su et al. 2021) puts the position where it is used: into the product
# of query and key. Take two numbers of a vector as a point in the plane and **turn** it by an
# angle that grows with its position. A query at place $m$ is turned by $m\theta$, a key at
# place $n$ by $n\theta$. A dot product sees only the angle *between* two vectors, and this changed
# by $(m - n)\theta$: the distance, and nothing else.
#
# A head of size $d$ has $d/2$ such points, and each turns at its own speed, like the hands of a
# clock:
#
# $$\theta_i = b^{-2i/d}, \qquad i = 0, \dots, d/2 - 1, \qquad b = 10000,$$
#
# $$(u_i, w_i) \mapsto (u_i \cos p\theta_i - w_i \sin p\theta_i,\;
# w_i \cos p\theta_i + u_i \sin p\theta_i) \quad\text{at position } p.$$
#
# **Which two numbers make a point?** The paper pairs neighbours, $(x_0, x_1), (x_2, x_3), \dots$
# ("interleaved"). Most code since pairs halves: $x_i$ with $x_{i + d/2}$ ("half-split"). Both are
# fine and they are not the same: weights trained with the one give nonsense with the other. Here
# it is **halves**.
#
# **Before you run this:** how exact is a position of 2,500 in float16?

# %%
places = torch.tensor([2047.0, 2049.0, 2051.0, 2500.0, 4097.0])  # [5]
print("float32:", places.tolist())
print("float16:", places.half().tolist())
print("cosine of 2049, from float32 and from float16:",
      f"{places[1].cos():.3f}", f"{places.half()[1].float().cos():.3f}")

# %% [markdown]
# From 2,048 on, float16 has even numbers only, from 4,096 on multiples of four. Two
# neighbours get the same angle, or one that is a whole radian off. The vectors may well be
# float16; the *angles* must not.
#
# ### Exercise 4: turn
#
# ●●●○○ · 9 minutes · 1 point

# %% exercise="variants.rope"
def rotate(x, positions, base=10000.0):
    """Turns each pair (i, i + head_size / 2) by its position times its speed.

    Args:
        x: FloatTensor[batch_size, num_heads, seq_len, head_size], of any float dtype
        positions: LongTensor[seq_len], any whole numbers
        base: float
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    first, second = x.chunk(2, dim=-1)
    # twice [batch_size, num_heads, seq_len, head_size / 2]
    i = torch.arange(first.shape[-1])  # [head_size / 2]
    speeds = base ** (-2 * i / x.shape[-1])  # [head_size / 2]
    angles = positions[:, None].float() * speeds  # [seq_len, head_size / 2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)  # [seq_len, head_size / 2] each
    turned = (first * cos - second * sin, second * cos + first * sin)
    return torch.cat(turned, dim=-1)  # [batch_size, num_heads, seq_len, head_size]
    ### END SOLUTION


# %% check="variants.rope" points=1
check("variants.rope")

# %% [markdown]
# Does it keep its promise? We place one query and one key at several pairs of positions, and look
# at their product. The distance is 3 in the first three rows.

# %%
torch.manual_seed(3)
query, key = torch.randn(2, 1, 1, 1, 32)  # [1, 1, 1, head_size] each


def score(query_at, key_at):
    """Product of the query and the key, turned for these two positions."""
    q = rotate(query, torch.tensor([query_at]))  # [1, 1, 1, head_size]
    k = rotate(key, torch.tensor([key_at]))  # [1, 1, 1, head_size]
    return (q * k).sum().item()


for query_at, key_at in ((5, 2), (105, 102), (1005, 1002), (5, 3), (5, 5)):
    print(f"query at {query_at:4}, key at {key_at:4}: {score(query_at, key_at):8.4f}")
print(f"not turned at all:           {(query * key).sum():8.4f}")

# %% [markdown]
# Equal distances, equal scores, wherever the pair stands; and at distance 0 the score is that of
# the vectors as they were. (The last decimals may differ: float32 again.)
#
# And how does a score change with the distance? For a query that equals its key it is
# $\sum_i |(u_i, w_i)|^2 \cos(\text{distance} \cdot \theta_i)$, a sum of cosines: largest at 0,
# where all hands of the clock agree, then smaller, and wavy.

# %%
ones = torch.ones(1, 1, 1, 64)  # [1, 1, 1, head_size]
far = torch.arange(0, 257)  # [distances]
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6))
for base, colour in ((100.0, "tab:green"), (10000.0, "tab:blue"), (500000.0, "tab:orange")):
    keys = rotate(ones.expand(1, 1, len(far), 64), -far, base)  # [1, 1, distances, head_size]
    axes[0].plot(far, (ones * keys).sum(-1)[0, 0] / 64, color=colour, label=f"base {base:,.0f}")
axes[0].axhline(0, color="grey", lw=0.8)
axes[0].set(xlabel="distance between query and key", ylabel="score, as a share of that at 0",
            title="a query and a key that are equal")
axes[0].legend()
for i, colour in ((0, "tab:red"), (8, "tab:purple"), (16, "tab:brown"), (24, "tab:pink")):
    axes[1].plot(far, (far * 10000.0 ** (-2 * i / 64)).cos(), color=colour, label=f"pair {i}")
axes[1].set(xlabel="distance between query and key", ylabel="cosine of the angle",
            title="single pairs, base 10,000", ylim=(-1.15, 1.6))
axes[1].legend(ncols=4, loc="upper center", fontsize=8)
figure.tight_layout()
show(figure, "Left: the score of equal vectors against distance for three bases; all fall from 1 "
     "with waves, the larger the base the slower. Right: cosines of single pairs: pair 0 turns "
     "around every six tokens, pair 24 hardly at all in 256.")

# %% [markdown]
# **Figure.** Left: scores fade with distance, by no rule that was ever put in; it is the many
# speeds falling out of step. A larger base fades more slowly, and so models for long texts have
# larger bases. Right: the first pair tells neighbours apart and repeats every six tokens. The last
# pairs hardly move; they are the hour hand.
#
# ## 4. RoPE in attention
#
# Three questions decide whether it works in a model.
#
# * **What is turned?** Queries and keys. Not the values: *who looks at whom* should depend on
#   distance, *what is said* should not.
# * **When?** After the split into heads. Before it, pair $i$ would be $(i, i + \text{hidden}/2)$,
#   two numbers of different heads.
# * **By which position?** With a cache, the newest token comes alone: `q` holds one token, `k` all.
#   Its position is not 0. If `q` has `q_len` tokens and `k` has `k_len`, the queries are the
#   **last** `q_len` of them.
#
# The last point concerns the mask as well. (Skip this if you come from lesson 07: it is exercise 6
# there.) `torch.ones(q_len, k_len).triu(1)` puts the diagonal
# into the *top left* corner, as if the queries were the first tokens.
#
# **Before you run this:** two queries, five keys. How many keys should the first query see?

# %%
print("triu(1), top left:\n", torch.ones(2, 5).triu(1).int())
print("triu(5 - 2 + 1), bottom right:\n", torch.ones(2, 5).triu(5 - 2 + 1).int())

# %% [markdown]
# The two queries are tokens 3 and 4, so the first sees keys 0 to 3: four. (PyTorch's own
# `is_causal=True` means top left. It has been reported as a bug more than once.)
#
# ### Exercise 5: attention that turns
#
# ●●●○○ · 9 minutes · 2 points

# %% exercise="variants.rope_attention" needs="variants.rope"
def rope_attention(q, k, v, num_heads):
    """Causal multi-head attention with rotated queries and keys; the queries are the last tokens.

    Args:
        q: FloatTensor[batch_size, q_len, hidden], projected, not split; the last q_len tokens
        k: FloatTensor[batch_size, k_len, hidden], the keys of tokens 0 to k_len - 1
        v: FloatTensor[batch_size, k_len, hidden]
        num_heads: int
    Returns:
        FloatTensor[batch_size, q_len, hidden], heads merged
    """
    ### BEGIN SOLUTION
    q_len, k_len = q.shape[1], k.shape[1]
    q, k, v = (split_heads(t, num_heads) for t in (q, k, v))
    # [batch_size, num_heads, q_len, head_size], twice [batch_size, num_heads, k_len, head_size]
    places = torch.arange(k_len)  # [k_len]
    q = rotate(q, places[k_len - q_len :])  # [batch_size, num_heads, q_len, head_size]
    k = rotate(k, places)  # [batch_size, num_heads, k_len, head_size]
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5  # [batch_size, num_heads, q_len, k_len]
    future = torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len + 1)  # [q_len, k_len]
    scores = scores.masked_fill(future, -math.inf)  # [batch_size, num_heads, q_len, k_len]
    return merge_heads(torch.softmax(scores, dim=-1) @ v)  # [batch_size, q_len, hidden]
    ### END SOLUTION


# %% check="variants.rope_attention" points=2
check("variants.rope_attention")

# %% [markdown]
# The test that finds a restarting position without looking inside: all at once and one by one must
# give the same.

# %%
torch.manual_seed(4)
q, k, v = torch.randn(3, 2, 9, 12)  # 3 x [batch_size, seq_len, hidden]
at_once = rope_attention(q, k, v, 3)  # [batch_size, seq_len, hidden]
one_by_one = [rope_attention(q[:, t : t + 1], k[:, : t + 1], v[:, : t + 1], 3) for t in range(9)]
one_by_one = torch.cat(one_by_one, dim=1)  # [batch_size, seq_len, hidden]
print(f"largest difference: {(at_once - one_by_one).abs().max():.0e}")
print("the same:", torch.allclose(at_once, one_by_one, atol=1e-5))

# %% [markdown]
# ## 5. Distance costs something: ALiBi
#
# *Attention with linear biases* (Press et al. 2022) is blunter. Nothing is turned or learned. From
# each score we take away what its distance costs:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} - m_h\,(i - j).$$
#
# The price $m_h$ of a step, the *slope*, is fixed for each head. Steep heads see their neighbours,
# flat ones see far. Note the order: the product is scaled, **then** the price is taken off. The
# price is not scaled.
#
# The slopes of $n$ heads, for $n$ a power of two, are a geometric row: $2^{-8/n}, 2^{-16/n}, \dots,
# 2^{-8}$. For eight heads this is 1/2, 1/4, ..., 1/256. If $n$ is no power of two, there is a rule
# that hardly anyone remembers: take the row of the power of two **below** it, $p$, and fill up with
# every other slope of the row of $2p$ heads, from the first on. (Why? The row of $2p$ holds the
# row of $p$ at every second place. So these are the ones between, and no slope comes twice.)
#
# ### Exercise 6: slopes
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="variants.slopes"
def alibi_slopes(num_heads):
    """What a step back costs, for each head.

    Args:
        num_heads: int, 1 or more
    Returns:
        FloatTensor[num_heads]
    """
    ### BEGIN SOLUTION
    def row(n):
        return 2.0 ** (-8 * torch.arange(1, n + 1) / n)  # [n]

    power = 2 ** int(math.log2(num_heads))
    between = row(2 * power)[::2][: num_heads - power]  # [num_heads - power]
    return torch.cat((row(power), between))  # [num_heads]
    ### END SOLUTION


# %% check="variants.slopes" points=1
check("variants.slopes")

# %%
for n in (8, 6):
    print(n, "heads:", [f"{s:.4f}" for s in alibi_slopes(n).tolist()])

# %% [markdown]
# Six heads: the row of four, and then two from the row of eight, 1/2 and 1/8.
#
# ### Exercise 7: attention with a price
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="variants.alibi"
def alibi_attention(q, k, v, slopes):
    """Causal attention in which each step back costs the head's slope.

    Args:
        q, k, v: FloatTensor[batch_size, num_heads, seq_len, head_size]
        slopes: FloatTensor[num_heads]
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    places = torch.arange(q.shape[2])  # [seq_len]
    distance = places[:, None] - places  # [seq_len, seq_len]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    # [batch_size, num_heads, seq_len, seq_len]
    scores = scores - slopes[:, None, None] * distance  # [batch_size, num_heads, seq_len, seq_len]
    scores = scores.masked_fill(distance < 0, -math.inf)  # [batch_size, num_heads, seq_len, seq_len]
    return torch.softmax(scores, dim=-1) @ v  # [batch_size, num_heads, seq_len, head_size]
    ### END SOLUTION


# %% check="variants.alibi" points=1
check("variants.alibi")

# %% [markdown]
# ## 6. A shorter sight
#
# Scores for all pairs are $T^2$ numbers. In *sliding-window attention* a token sees the last `window`
# tokens and no others, **itself among them**. That is $T \cdot \text{window}$ numbers, and the cache
# never holds more than `window` tokens.
#
# ### Exercise 8: the window
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="variants.window"
def window_mask(seq_len, window):
    """True where a key is hidden: later tokens, and those out of the window.

    Args:
        seq_len: int
        window: int, how many tokens a token sees, itself among them; 1 or more
    Returns:
        BoolTensor[seq_len, seq_len]
    """
    ### BEGIN SOLUTION
    at = torch.arange(seq_len)  # [seq_len]
    distance = at[:, None] - at  # [seq_len, seq_len]
    return (distance < 0) | (distance >= window)  # [seq_len, seq_len]
    ### END SOLUTION


# %% check="variants.window" points=1
check("variants.window")

# %% [markdown]
# Is what lies behind the window lost? No. The oldest token in sight has seen *its* window, one layer
# below. What it found there stands in its vector. So the sight grows with each layer.
#
# **Before you go on:** two layers, window 3. Which tokens can the last of ten know of?
#
# ### Exercise 9: how far do many layers see?
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="variants.reach"
def reach(num_layers, window, seq_len):
    """How many tokens the last token's output can depend on, itself among them.

    Args:
        num_layers: int, layers of sliding-window attention on top of one another
        window: int, as in exercise 8
        seq_len: int, length of the text
    Returns:
        int
    """
    ### BEGIN SOLUTION
    return min(seq_len, 1 + num_layers * (window - 1))
    ### END SOLUTION


# %% check="variants.reach" points=1
check("variants.reach")

# %% [markdown]
# Let us not believe a formula; the leak test of lesson 03 can count. We stack layers with a window
# of 3, change each of ten tokens, and see whether the last output moves.

# %%
torch.manual_seed(5)
layers = torch.randn(4, 3, 8, 8) / 8**0.5  # [num_layers, q k v, size, size]


def tower(x, num_layers, window):
    """Layers of windowed attention on top of one another, each added to what came in."""
    hidden = window_mask(len(x), window)  # [seq_len, seq_len]
    for w_q, w_k, w_v in layers[:num_layers]:
        scores = (x @ w_q) @ (x @ w_k).T / 8**0.5  # [seq_len, seq_len]
        x = x + scores.masked_fill(hidden, -math.inf).softmax(-1) @ (x @ w_v)  # [seq_len, size]
    return x


x = torch.randn(10, 8, dtype=torch.float64)  # [seq_len, size]
layers = layers.double()
for num_layers in (1, 2, 3, 4):
    before = tower(x, num_layers, 3)[-1]  # [size]
    moved = []
    for j in range(10):
        other = x.clone()  # [seq_len, size]
        other[j] += 1.0
        moved.append((tower(other, num_layers, 3)[-1] - before).abs().max() > 1e-9)
    marks = "".join("x" if m else "." for m in moved)
    print(f"{num_layers} layers: {marks}  {sum(moved)} tokens; reach says "
          f"{reach(num_layers, 3, 10)}")

# %% [markdown]
# Two tokens more with each layer: window - 1, for the one that the next layer starts from was in
# sight already. With 32 layers and a window of 4,096, as in Mistral 7B (2023), some 131,000 tokens
# are in reach. (In reach: whether a fact survives thirty-two times being averaged is another
# matter.)
#
# Here are all masks and prices of this lesson side by side.

# %%
n = 14
places = torch.arange(n)  # [seq_len]
distance = places[:, None] - places  # [seq_len, seq_len]
seen = {
    "full": torch.zeros(n, n).bool(),
    "causal": distance < 0,
    "window 4": window_mask(n, 4),
    "cross, source\nof 9, 3 padded": (torch.arange(9) >= 6).expand(n, 9),
    "4 queries,\ncache of 14": torch.ones(4, n).triu(n - 4 + 1).bool(),
}
figure, axes = plt.subplots(1, 7, figsize=(13, 2.9))
for axis, (name, hidden) in zip(axes, seen.items(), strict=False):
    axis.imshow(hidden, cmap="Greys", vmin=0, vmax=1.6, interpolation="nearest")
    axis.set_title(name, fontsize=9)
for axis, head in zip(axes[5:], (0, 2), strict=True):
    slope = alibi_slopes(4)[head]
    price = (-slope * distance).masked_fill(distance < 0, -math.inf)  # [seq_len, seq_len]
    axis.imshow(price.exp(), vmin=0, vmax=1)
    axis.set_title(f"ALiBi, slope 1/{1 / slope:.0f}\nexp of the price", fontsize=9)
for axis in axes:
    axis.set(xticks=[], yticks=[], xlabel="key")
axes[0].set_ylabel("query")
figure.tight_layout()
show(figure, "A gallery. Masks, grey where hidden: full attention hides nothing, causal the upper "
     "triangle, a window of 4 leaves a band of 4 below the diagonal, cross-attention hides the "
     "last 3 columns, and 4 queries with 14 keys have their diagonal in the bottom right corner. "
     "ALiBi with a steep slope lights a narrow band, with a flat one nearly the triangle.")

# %% [markdown]
# **Figure.** Grey is hidden. The first three are square; cross-attention is a rectangle in
# which columns are missing; with a cache the diagonal ends in the bottom right corner. The two on
# the right are no masks: they show what ALiBi does to equal scores, $e^{-m(i - j)}$, for the
# steepest and a flatter of four heads.
#
# ## 7. Two experiments
#
# Now they compete. Each of the models below is the same small language model on the course's
# books, read by character, with *your* functions inside; only the attention differs. 250 steps on
# rows of 32 characters take a few seconds.

# %%
text, held_out = read_books()
characters = Characters(text + held_out)
ids, held_out_ids = characters.encode(text), characters.encode(held_out)  # [num_tokens] each
print(f"{len(ids):,} characters to learn from, {len(held_out_ids):,} held out, "
      f"{len(characters)} different ones")


class Variant(nn.Module):
    """Multi-head attention around this lesson's functions."""

    kind, kv_heads = "plain", 4

    def __init__(self, input_size, hidden, num_heads, causal=True):
        super().__init__()
        kv_size = self.kv_heads * hidden // num_heads
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, kv_size)
        self.v = nn.Linear(input_size, kv_size)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads = num_heads

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        # [batch_size, seq_len, hidden], then [batch_size, seq_len, kv_size] each
        if self.kind == "rope":
            return self.mix(rope_attention(q, k, v, self.num_heads))
        q = split_heads(q, self.num_heads)  # [batch_size, num_heads, seq_len, head_size]
        k, v = split_heads(k, self.kv_heads), split_heads(v, self.kv_heads)
        # [batch_size, kv_heads, seq_len, head_size] each
        if self.kind == "alibi":
            return self.mix(merge_heads(alibi_attention(q, k, v, alibi_slopes(self.num_heads))))
        return self.mix(merge_heads(grouped_attention(q, k, v)))


def trained(kind="plain", kv_heads=4, positions=False, seed=0):
    """A small language model with this attention, after 250 steps on rows of 32 characters."""
    torch.manual_seed(seed)
    attention = type("Chosen", (Variant,), {"kind": kind, "kv_heads": kv_heads})
    model = LanguageModel(len(characters), 128, 48, 2, 4, attention, positions=positions)
    settings = Settings(steps=250, batch_size=16, seq_len=32, learning_rate=4e-3,
                        evaluate_every=250, evaluation_rows=8, seed=seed)
    train(model, ids, held_out_ids, settings, progress=False)
    return model.eval()


@torch.no_grad()
def losses_by_place(model, seq_len=128, rows=200):
    """Mean loss at each place of held-out rows, nats a character: [seq_len]."""
    windows = held_out_ids[: rows * seq_len + 1]  # [rows * seq_len + 1]
    inputs, targets = windows[:-1].view(rows, -1), windows[1:].view(rows, -1)  # [rows, seq_len]
    logits = model(inputs)  # [rows, seq_len, vocab_size]
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(0)


# %% [markdown]
# ### Past the length of training
#
# Four ways to know where a token stands: a learned vector for each place, as in GPT-2; nothing
# at all; RoPE; ALiBi. All are trained on 32 characters. Then they read 128.
#
# **Before you run this:** the vectors for places 32 to 127 exist, and no gradient ever came to
# them. What will they do? And which of the four gets *better* with more past?

# %%
ways = {
    "learned positions": trained(positions=True),
    "no positions": trained(),
    "RoPE": trained("rope"),
    "ALiBi": trained("alibi"),
}
curves = {name: losses_by_place(model) for name, model in ways.items()}
print("mean loss at places    16-31   32-63  64-127")
for name, curve in curves.items():
    parts = [curve[16:32].mean(), curve[32:64].mean(), curve[64:].mean()]
    print(f"{name:18}      " + "  ".join(f"{p:6.3f}" for p in parts))
figure, axis = plt.subplots(figsize=(8, 3.8))
for name, curve in curves.items():
    smooth = curve.unfold(0, 9, 1).mean(-1)  # [seq_len - 8]
    axis.plot(torch.arange(4, 124), smooth, label=name)
axis.axvline(31.5, color="grey", ls="--")
axis.text(32.5, 2.1, " never trained here", va="center", color="grey")
axis.set(xlabel="place in the row", ylabel="loss, nats a character", ylim=(2.05, None))
axis.legend(loc="upper left", ncols=2)
show(figure, "Loss against the place in the row for four models trained on rows of 32. RoPE is "
     "lowest up to 32, ALiBi is next; beyond, ALiBi stays level, learned positions rise a little, "
     "and RoPE rises slowly, meets ALiBi at about place 80 and leaps up at about 110.")

# %% [markdown]
# **Figure.** Up to the line RoPE leads (2.198 at places 16 to 31) and ALiBi follows (2.292). The
# learned vectors do no better than *no* positions (2.446 and 2.423): they are 32, and each is learned
# by itself. (No positions at all is better than it sounds. The causal mask alone tells a
# token something about how many stand before it.)
#
# Past the line, ALiBi stays where it was: 2.292, 2.321, 2.311. This is what it was made for. RoPE holds
# out for a while and then leaps up, here at about place 110: its slow pairs come to angles that they
# never had in training. The learned vectors of places that were never trained are still the small
# random numbers of the first step; they do little, and that little is wrong. And *none* of the four gets
# better with more past. To use more, a model must have been trained on more.
#
# A few hundredths are noise here: one run each, and the next experiment shows two seeds of the same
# model 0.05 apart. And if your functions add up in another order
# than ours, your models will end a little elsewhere; a training run blows up rounding.
#
# ### Bytes against quality
#
# Now the number of heads of keys and values: 4, 2 and 1, two runs each with different seeds.
# Fewer heads are fewer parameters too.

# %%
results = []
for kv_heads in (4, 2, 1):
    for seed in (0, 1):
        same = kv_heads == 4 and seed == 0  # this one was trained above
        model = ways["learned positions"] if same else trained(
            kv_heads=kv_heads, positions=True, seed=seed)
        loss = losses_by_place(model, seq_len=32, rows=800).mean().item()
        size = cache_bytes(2, 4, kv_heads, 12, 32, 1, 4)
        results.append((kv_heads, size, loss))
        print(f"{kv_heads} heads of keys and values, seed {seed}: cache {size:6,} bytes, "
              f"loss {loss:.3f}")
figure, axis = plt.subplots(figsize=(6, 3.4))
for kv_heads, size, loss in results:
    axis.plot(size, loss, "o", color={4: "tab:blue", 2: "tab:orange", 1: "tab:green"}[kv_heads])
axis.set(xlabel="KV cache of one row of 32 characters, bytes", ylabel="held-out loss, nats a character",
         xlim=(0, None), xticks=sorted({r[1] for r in results}))
axis.margins(y=0.3)
show(figure, "Held-out loss against the bytes of the cache, two runs for each of 4, 2 and 1 heads "
     "of keys and values. The spread between seeds is of the size of the differences.")

# %% [markdown]
# **Figure.** A quarter of the bytes (6,144 for 24,576), and no loss that these runs could show: 2.413
# and 2.395 with one head, 2.450 and 2.400 with four. Two runs that differ in nothing but the seed can
# be farther apart than the kinds are on average. That is all that may be concluded: what sharing costs *here* is less than
# luck. It does not follow that it is free. In large models one shared head is measurably worse, and
# a few groups are nearly as good as all heads (Ainslie et al. 2023). So groups are what is used.
#
# ## 8. No softmax: linear attention
#
# Why does attention cost the square of the length? Because of the softmax. $e^{q \cdot k}$ cannot be
# taken apart into something of $q$ and something of $k$. If a weight were a plain **product** of two
# vectors, $f(q) \cdot f(k)$, it could:
#
# $$o_i = \frac{\sum_{j \le i} \left(f(q_i) \cdot f(k_j)\right) v_j}{\sum_{j \le i} f(q_i) \cdot f(k_j)}
# = \frac{f(q_i)^{\mathsf T} \left(\sum_{j \le i} f(k_j) v_j^{\mathsf T}\right)}
# {f(q_i)^{\mathsf T} \left(\sum_{j \le i} f(k_j)\right)}.$$
#
# On the left, each query visits each key: $T^2$. On the right, the two sums in brackets can be
# **carried along**: a matrix of `size x value_size`, the *state*, and a vector, the *total*. A new
# token adds itself to both, then reads. No cache grows: this is a recurrent network (Katharopoulos
# et al. 2020). For $f$ they took $\text{elu}(x) + 1$, which is positive everywhere, so that weights are
# positive and the denominator is not 0.
#
# ### Exercise 10: all at once
#
# ●●●○○ · 7 minutes · 1 point
#
# The left-hand side. One head; $f$ is part of your function; no scaling.

# %% exercise="variants.linear"
def linear_attention(q, k, v):
    """Causal attention whose weights are f(q) . f(k), f(x) = elu(x) + 1, rows summing to 1.

    Args:
        q, k: FloatTensor[batch_size, seq_len, size]
        v: FloatTensor[batch_size, seq_len, value_size]
    Returns:
        FloatTensor[batch_size, seq_len, value_size]
    """
    ### BEGIN SOLUTION
    q, k = F.elu(q) + 1, F.elu(k) + 1  # [batch_size, seq_len, size] each
    weights = (q @ k.transpose(1, 2)).tril()  # [batch_size, seq_len, seq_len]
    weights = weights / weights.sum(dim=-1, keepdim=True)  # [batch_size, seq_len, seq_len]
    return weights @ v  # [batch_size, seq_len, value_size]
    ### END SOLUTION


# %% check="variants.linear" points=1
check("variants.linear")

# %% [markdown]
# ### Exercise 11: token by token
#
# ●●●○○ · 9 minutes · 1 point
#
# The right-hand side, from any state: what was read before has left its sums behind. Write first,
# then read: a token sees itself. And leave the state that came in as it was; give back a new one.

# %% exercise="variants.recurrent"
def linear_steps(q, k, v, state, total):
    """The same attention, carried along; f(x) = elu(x) + 1.

    Args:
        q, k: FloatTensor[batch_size, seq_len, size]
        v: FloatTensor[batch_size, seq_len, value_size]
        state: FloatTensor[batch_size, size, value_size], the sum of f(k) v^T over earlier tokens
        total: FloatTensor[batch_size, size], the sum of f(k) over earlier tokens
    Returns:
        outputs: FloatTensor[batch_size, seq_len, value_size]
        state, total: as they are after the last token
    """
    ### BEGIN SOLUTION
    q, k = F.elu(q) + 1, F.elu(k) + 1  # [batch_size, seq_len, size] each
    outputs = []
    for t in range(q.shape[1]):
        state = state + k[:, t, :, None] * v[:, t, None, :]  # [batch_size, size, value_size]
        total = total + k[:, t]  # [batch_size, size]
        read = (q[:, t, None, :] @ state)[:, 0]  # [batch_size, value_size]
        weight = (q[:, t] * total).sum(dim=-1, keepdim=True)  # [batch_size, 1]
        outputs.append(read / weight)  # [batch_size, value_size]
    return torch.stack(outputs, dim=1), state, total  # [batch_size, seq_len, value_size] first
    ### END SOLUTION


# %% check="variants.recurrent" points=1
check("variants.recurrent")

# %% [markdown]
# Are the two sides equal? And what does each have to keep?

# %%
torch.manual_seed(6)
q, k, v = torch.randn(3, 1, 2000, 16)  # 3 x [batch_size, seq_len, size]
nothing = torch.zeros(1, 16, 16), torch.zeros(1, 16)
parallel = linear_attention(q, k, v)  # [batch_size, seq_len, size]
recurrent, state, total = linear_steps(q, k, v, *nothing)
first, half, half_total = linear_steps(q[:, :700], k[:, :700], v[:, :700], *nothing)
second, _, _ = linear_steps(q[:, 700:], k[:, 700:], v[:, 700:], half, half_total)
print(f"all at once against token by token: {(parallel - recurrent).abs().max():.0e}")
print(f"in one go against two chunks:       "
      f"{(recurrent - torch.cat((first, second), 1)).abs().max():.0e}")
print(f"numbers kept after 2,000 tokens: cache {2 * 2000 * 16:,}, state and total "
      f"{state.numel() + total.numel()}")

# %% [markdown]
# 272 numbers, after two thousand tokens or after two million. The price: a softmax can put nearly
# all its weight on one key, and a product of two vectors with 16 positive entries cannot. Let us
# ask for one thing: find the key that equals the query, among others.

# %%
torch.manual_seed(7)
figure, axis = plt.subplots(figsize=(6.5, 3.2))
counts = (2, 8, 32, 128, 512)
for name in ("softmax", "linear"):
    found = []
    for n in counts:
        k = torch.randn(200, n, 16) * 2  # [trials, seq_len, size]
        q = k[:, :1].expand(-1, n, -1)  # [trials, seq_len, size]; all ask for key 0
        values = torch.eye(n)[None, :, :1].expand(200, -1, -1)  # [trials, seq_len, 1]
        if name == "linear":
            weight = linear_attention(q, k, values)[:, -1, 0]  # [trials]
        else:
            weight = (q[:, -1:] @ k.mT / 4).softmax(-1)[:, 0, 0]  # [trials]
        found.append(weight.mean().item())
    print(f"{name:8}", [f"{f:.3f}" for f in found])
    axis.plot(counts, found, "o-", label=name)
axis.set(xscale="log", xticks=counts, xlabel="number of keys", ylim=(0, 1.05),
         ylabel="weight on the key sought")
axis.set_xticklabels(counts)
axis.legend()
show(figure, "Mean weight on the key that equals the query against the number of keys: softmax "
     "falls slowly to 0.75 among 512, linear attention at once and to nearly 0.")

# %% [markdown]
# **Figure.** The softmax gives the key that is sought .999 of its weight among 2 keys, and still .748
# among 512. Linear attention begins with .669 and ends with .004, twice what it would get by
# drawing lots. It looks at everyone a little. Newer models of this family choose $f$ better and
# forget on purpose; what a state of fixed size can hold remains the question.
#
# ## 9. Find the variant
#
# You meet an attention whose code you cannot read. You may put queries, keys and values into it and
# look at what comes out. Which one is it?
#
# Six kinds are possible, all of one head, with whatever window and slope: `"full"` (no mask),
# `"causal"`, `"window"` (at most 16 tokens), `"alibi"`, `"rope"`, `"linear"`. All but the first are
# causal.
#
# A good question has an answer in which only one of them is different. And there is a trick that
# makes asking easy: take `torch.eye(seq_len)` as values, and what comes out are the weights.

# %%
attend = black_box("window", window=3)
print(attend(torch.zeros(5, 4), torch.zeros(5, 4), torch.eye(5)))

# %% [markdown]
# ### Exercise 12: the detective
#
# ●●●●○ · 12 minutes · 1 point

# %% exercise="variants.find"
def find_variant(attend, size):
    """Which attention this is.

    Args:
        attend: function of q, k FloatTensor[seq_len, size], v FloatTensor[seq_len, value_size]
            that returns FloatTensor[seq_len, value_size]; any seq_len, any value_size
        size: int, the size of queries and keys, even
    Returns:
        str, "full", "causal", "window", "alibi", "rope" or "linear"
    """
    ### BEGIN SOLUTION
    seq_len = 40
    eye = torch.eye(seq_len)  # [seq_len, seq_len]
    zeros = torch.zeros(seq_len, size)  # [seq_len, size]
    weights = attend(zeros, zeros, eye)  # [seq_len, seq_len]; all scores are 0
    if weights[0, -1] > 0:
        return "full"
    if weights[-1, 0] == 0:
        return "window"
    if weights[-1, 0] < 0.99 * weights[-1, -1]:
        return "alibi"
    weights = attend(zeros + 1, zeros + 1, eye)  # [seq_len, seq_len]; all vectors are equal
    if (weights[-1] - 1 / seq_len).abs().max() > 1e-4:
        return "rope"
    keys = torch.linspace(-1, 1, seq_len)[:, None].expand(-1, size)  # [seq_len, size]
    once = attend(zeros + 1, keys, eye)[-1]  # [seq_len]
    twice = attend(zeros + 2, keys, eye)[-1]  # [seq_len]
    ratio, other = once[-1] / once[0], twice[-1] / twice[0]
    return "causal" if abs(other / ratio**2 - 1) < 0.01 else "linear"
    ### END SOLUTION


# %% check="variants.find" points=1
check("variants.find")

# %%
for kind in ("full", "causal", "window", "alibi", "rope", "linear"):
    said = find_variant(black_box(kind, window=7, slope=0.1), 8)
    print(f"{kind:7} was called {said}")

# %% [markdown]
# This is not only a game. Code that was copied, compiled or fused no longer reads like its formula,
# and a config that says `rope` does not prove that anything turns. A test that asks the function
# itself is the one to trust.
#
# ## Did it stick?
#
# **1.** `repeat` where `repeat_interleave` belongs: who notices, and when?
# <details><summary>Answer</summary>Nobody in training. It shows when weights are loaded that were
# trained the other way: every query head but a few reads a stranger's keys.</details>
#
# **2.** A model with RoPE writes well while it reads a prompt, and nonsense as soon as it goes on
# with its cache. What do you look at first?
# <details><summary>Answer</summary>The position of the new token. Alone in its batch, it is turned as
# if it stood at 0.</details>
#
# **3.** Why are values not turned?
# <details><summary>Answer</summary>Turned values would put the absolute position into what is said;
# and nothing turns them back. In a score the two turns meet and leave the distance.</details>
#
# **4.** Three layers, window 5. How many tokens can an output depend on?
# <details><summary>Answer</summary>1 + 3 x 4 = 13.</details>
#
# **5.** What does linear attention give up for its small state?
# <details><summary>Answer</summary>Sharpness. Its weights are products of positive vectors, and with
# many keys none can stand out by much.</details>
#
# ## What comes next
#
# You have all the parts, and have only seen them in models that are too small to say anything.
# [The next lesson](../08_writing/08_writing.ipynb) puts your own attention of lesson 05 into a model, and
# trains it until it writes.
#
# Words from this lesson in the glossary: [cross-attention](../../docs/glossary.md#cross-attention),
# [grouped-query attention](../../docs/glossary.md#grouped-query-attention),
# [padding](../../docs/glossary.md#padding), [causal mask](../../docs/glossary.md#causal-mask),
# [half precision](../../docs/glossary.md#half-precision), [ALiBi](../../docs/glossary.md#alibi),
# [linear attention](../../docs/glossary.md#linear-attention).
