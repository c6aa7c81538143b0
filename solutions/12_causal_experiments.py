# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12 · Causal experiments
#
# A head lights up whenever a name is repeated. Is it *why* the model repeats the name?
# A cock crows before every sunrise. To learn what causes what, watching is not enough:
# one must take the cock away and see whether the sun comes up. Models are kind to this
# method. You may remove a single head, in one layer, at one word, run the same sentence
# again, and put the head back unharmed. No neurologist ever had it so good.
#
# We start from the third demo of the post of lesson 11 (a lesion of one head in each
# layer), repair what does not do what it says, and go on: mean lesions, direct effects,
# induction heads. At the end your own attention takes over a GPT-2.
#
# **After this lesson you can**
#
# * cut a head out of a running model without leaving a trace;
# * say what a zero lesion, a mean lesion, one position and all positions measure;
# * tell a head's direct effect on a logit from what it does through others, and find out
#   whom it talks to, one path at a time;
# * find induction heads, show that they copy, and that they need a partner a layer below;
# * run a GPT-2 on an attention that you wrote yourself, to the fourth decimal.
#
# | | |
# |---|---|
# | Time | 150 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●●● |
#
# Eleven exercises, eighteen points. The worked solutions come with the whole course, in
# `solutions/12_causal_experiments.ipynb`; look at them after an attempt of your own.
# Each exercise has three hints: `hint("causal.clean", 1)`. The last exercise uses
# *your* `MultiHeadSelfAttention` from lesson 05, in
# `transformer_lm/modeling_attention.py`. Numbers in the text are those of `large-on-board`;
# with another model, read yours off the output.
#
# **About this model.** Nobody chose what its heads do: its loss was that of the predicted
# tokens and nothing else (`models/large-on-board/MODEL_CARD.md`). But some of what it read
# were rows in which a piece comes several times, so that copying paid. GPT-2 learned to copy from
# text alone, in far longer training: do not take it for a finding how clean the copying heads
# are here. (In the smaller models on board two heads were *shown* for a while where to look. If
# you open one of those, frames and stars mark the two in the figures.)

# %% role="setup"
import math
import os

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.activations import (
    attention_patterns,
    count_hooks,
    patch,
    record,
    with_progress,
)
from transformer_lm.figures import show
from transformer_lm.head_scores import copy_loss, repeated_tokens
from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.pretrained import guided_heads, load_gpt2

# %% [markdown]
# ## 1. The patient before the operation
#
# The post uses `gpt2-large`; we use a model on board. Any GPT-2 will do: put `"gpt2"`,
# `"base-on-board"` or a folder in its place.

# %%
MODEL = os.environ.get("COURSE_MODEL", "large-on-board")
model, tokenizer = load_gpt2(MODEL, verbose=True)
n_layers, n_heads = model.config.n_layer, model.config.n_head
hidden = model.config.n_embd
head_size = hidden // n_heads

text = """Be who you are and say what you feel,
      because those who mind don't matter and those who matter don't mind"""
tokens = tokenizer(text, return_tensors="pt").input_ids  # [batch_size, seq_len]
n_tokens = tokens.shape[1]
print(n_tokens, "tokens; the last one is", repr(tokenizer.decode(tokens[0, -1])))
print("hooks left over from elsewhere:", count_hooks(model))

# %% [markdown]
# That last line is no formality. In the post the recording hooks of demo 1 are still in
# the model when demo 3 begins, and one cell takes them out. A lesion experiment in a model with
# forgotten hooks is an experiment with two treatments.
#
# What shall we measure? Something that a head could help or harm: the log-probability of
# the last word, given all words before it.
#
# **Before you run this:** the logits are `[1, n_tokens, vocab_size]`. Which position
# predicts the last token: -1, or -2?

# %%
with torch.no_grad():
    logits = model(tokens).logits  # [batch_size, seq_len, vocab_size]
for position in (-2, -1):
    best = logits[0, position].topk(4).indices  # [4]
    before = tokenizer.decode(tokens[0, position])
    print(f"at {position}, after {before!r}:", [tokenizer.decode(t) for t in best])

# %% [markdown]
# Position $t$ has read token $t$ and predicts token $t+1$. So the last word is
# predicted at **-2**. Position -1 predicts a word that is not in the text.
#
# ### Exercise 1: the clean number
#
# ●●○○○ · 7 minutes · 1 point

# %% exercise="causal.clean"
def final_log_prob(model, input_ids):
    """The log-probability of each sequence's last token, given those before it.

    Args:
        model: a GPT2LMHeadModel
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        FloatTensor[batch_size], natural logarithms
    """
    ### BEGIN SOLUTION
    with torch.no_grad():
        penultimate = model(input_ids).logits[:, -2]  # [batch_size, vocab_size]
    normalizer = penultimate.logsumexp(dim=-1)  # [batch_size]
    rows = torch.arange(len(input_ids))  # [batch_size]
    return penultimate[rows, input_ids[:, -1]] - normalizer  # [batch_size]
    ### END SOLUTION


# %% check="causal.clean" points=1
check("causal.clean")

# %%
clean = final_log_prob(model, tokens)  # [batch_size]
log_probs = F.log_softmax(logits[0, -2], dim=-1)  # [vocab_size]
last = int(tokens[0, -1])

figure, ax = plt.subplots(figsize=(10, 3.4))
ax.plot(log_probs, "o", color="slateblue", alpha=0.15, markersize=3)
ax.plot(last, clean, "s", color="crimson", markersize=9,
        label=f"final token {tokenizer.decode(last)!r}")
ax.axhline(-math.log(len(log_probs)), color="grey", linestyle="--",
           label="a uniform guess")
ax.set(xlabel="token id", ylabel="log-probability", title="After the last word but one")
ax.legend(loc="lower right")
show(figure, "One dot for each token of the vocabulary: its log-probability as the next "
     "token. The final token of the text is a marked square near the top.")
rank = int((log_probs > log_probs[last]).sum()) + 1
print(f"log-probability {clean.item():.3f}, probability {clean.exp().item():.3f}, rank {rank}")
print(f"the post reads -.161 from its plot: a probability of {math.exp(-0.161):.3f}")

# %% [markdown]
# **Figure.** The log-probabilities of all tokens as the next one. The red square is the
# token that really follows; the dashed line is what a uniform guess would give it.
#
# A log-probability is a number of nats below certainty: $e^{-0.161} \approx 0.85$, so
# `gpt2-large` is quite sure of the last word. Our little model is not, yet it beats the
# uniform guess by far. (The sentence has said "mind" before. Is anybody making use of
# that? Section 8 looks, and finds a surprise.) Differences of log-probabilities are factors: an effect of -0.7 halves the
# probability, whatever it was.
#
# ## 2. Where to cut
#
# Where is a head *alone*? Follow it: queries, keys and values are cut into heads, each
# head mixes its values, the results are put side by side again,
#
# $$z = [\,\underbrace{z^{(0)}}_{\text{head size}}\;|\;z^{(1)}\;|\;\dots\;], \qquad
# \text{out} = z\,W_O + b_O ,$$
#
# and then $W_O$ (`c_proj`) blends all of them. After that no feature belongs to any
# head. So the last place for the knife is the **input of `c_proj`**, and the tool is a
# *pre*-hook, which may hand on something else than it was given.

# %%
with torch.no_grad(), record(model, "h.*.attn.c_proj:input") as acts:
    model(tokens)
z = acts[f"h.{n_layers - 1}.attn.c_proj:input"]  # [batch_size, seq_len, hidden]
parts = torch.split(z[0], head_size, dim=1)  # num_heads x [seq_len, head_size]
print("c_proj reads", list(z.shape), "=", len(parts), "heads of", list(parts[0].shape))

# %% [markdown]
# The post cuts like this: `.view(1, n_tokens, n_heads, head_dim)`, then
# `[:, -2, 4, :] = 0`.
#
# **Before you run this:** only `seen` is written to. What becomes of `z`?

# %%
z = torch.ones(1, 3, 4)  # [batch_size, seq_len, hidden]
seen = z.view(1, 3, 2, 2)  # [batch_size, seq_len, num_heads, head_size]
seen[:, -2, 1, :] = 0
print(z[0])

# %% [markdown]
# A view is a second window onto the same room. In the post it does no harm, for nobody
# looks into that room afterwards. But whoever *recorded* that tensor a moment ago without
# copying now holds lesioned numbers, labelled "clean".
#
# One more thing in that line. The index 4 is the *fifth* head, as the post rightly says
# in its comment. Heads and layers count from 0, and "head 4" has misled many a reader.
# We will always write the index.
#
# ### Exercise 2: a clean cut
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="causal.cut"
def without_head(z, num_heads, head, position):
    """Zeros in place of one head's output at one position; the input stays as it is.

    Args:
        z: FloatTensor[batch_size, seq_len, hidden], what c_proj reads
        num_heads: int
        head: int, counted from 0
        position: int, may be negative
    Returns:
        FloatTensor[batch_size, seq_len, hidden], a new tensor
    """
    ### BEGIN SOLUTION
    size = z.shape[-1] // num_heads
    keep = torch.ones_like(z[0])  # [seq_len, hidden]
    keep[position, head * size : (head + 1) * size] = 0
    return z * keep  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="causal.cut" points=1
check("causal.cut")

# %% [markdown]
# ## 3. A tuple that is not what it seems
#
# The hook must hand `c_proj` a *tuple* of inputs. The post ends its hook with
#
# ```python
# return tuple(head_tensor, *input[1:])
# ```
#
# which looks like "a tuple of the tensor and the rest". But `tuple` takes **one** thing
# and iterates over it. The rest here is empty, so this is `tuple(head_tensor)`: it takes
# the tensor apart along its first axis, the batch.
#
# **Before you run this:** what is in `tuple(t)` for a tensor of `[1, 5, 8]`? Of
# `[2, 5, 8]`?

# %%
for batch_size in (1, 2):
    pieces = tuple(torch.zeros(batch_size, 5, 8))
    print(f"batch {batch_size}:", [list(piece.shape) for piece in pieces])


def posted(module, inputs):
    return tuple(inputs[0].clone(), *inputs[1:])


handle = model.transformer.h[0].attn.c_proj.register_forward_pre_hook(posted)
try:
    for batch in (tokens, tokens.repeat(2, 1)):
        try:
            print("batch of", len(batch), "runs:", final_log_prob(model, batch))
        except TypeError as error:
            print("batch of", len(batch), "fails:", error)
finally:
    handle.remove()
try:
    tuple(torch.zeros(1), torch.zeros(1))
except TypeError as error:
    print("and with a second input:", error)

# %% [markdown]
# With a batch of one, the "tuple" holds one tensor of `[seq_len, hidden]`. `c_proj` does not
# mind, and where its output is added to the residual stream, broadcasting puts the missing
# axis back. The numbers are right, by luck. With a batch of two it falls over. The form that
# says what is meant is `(head_tensor, *inputs[1:])`: round brackets and a comma make
# a tuple; the word `tuple` does not.
#
# ### Exercise 3: the lesion
#
# ●●●○○ · 10 minutes · 2 points
#
# For any batch, layer, head and position. Measured is always the last token, predicted
# at -2, wherever the cut is.

# %% exercise="causal.lesion" needs="causal.clean causal.cut"
def lesioned_log_prob(model, input_ids, layer, head, position):
    """The last token's log-probability with one head zeroed at one position.

    Args:
        model: a GPT2LMHeadModel; it is left as it was found
        input_ids: LongTensor[batch_size, seq_len]
        layer, head: int, counted from 0
        position: int, may be negative
    Returns:
        FloatTensor[batch_size]
    """
    ### BEGIN SOLUTION
    def knife(module, inputs):
        z, *rest = inputs
        z = without_head(z, model.config.n_head, head, position)
        # [batch_size, seq_len, hidden]
        return (z, *rest)

    target = model.transformer.h[layer].attn.c_proj
    with target.register_forward_pre_hook(knife):
        return final_log_prob(model, input_ids)  # [batch_size]
    ### END SOLUTION


# %% check="causal.lesion" points=2
check("causal.lesion")

# %% [markdown]
# Now the post's experiment: the same head index in every layer, zeroed at the last word
# but one. (Index 4, if the model has that many heads; else index 0.)
#
# **Before you run this:** one head, at one word. How far will the log-probability move?

# %%
head = 4 if n_heads > 4 else 0
dots = [lesioned_log_prob(model, tokens, n, head, -2).item() for n in range(n_layers)]


def star(layer, head):
    """Marks a head that was guided."""
    return " ★" if (layer, head) in guided_heads(model) else ""


def draw_dots(ax, values, title):
    scale = plt.Normalize(0, max(n_layers - 1, 1))
    for n, value in enumerate(values):
        mark, size = ("*", 17) if star(n, head) else ("h", 12)
        ax.plot(n, value, mark, markersize=size, color=plt.cm.plasma(scale(n)),
                markeredgecolor="grey")
    ax.axhline(clean.item(), color="grey", linestyle="--", zorder=0, label="clean")
    ax.set(title=title, xlabel="layer", xticks=range(0, n_layers, 1 + n_layers // 13))
    ax.legend()


figure, ax = plt.subplots(figsize=(8, 3.2))
draw_dots(ax, dots, f"head {head} zeroed at position -2")
ax.set_ylabel("log-probability of the final token")
show(figure, f"One dot a layer: the final token's log-probability with head {head} of that "
     "layer zeroed at the last position but one, beside a dashed line for the clean run. Guided "
     "heads, where a model has them, are stars.")
for n, value in enumerate(dots):
    print(f"layer {n}: {value:.3f}   effect {value - clean.item():+.3f}")

# %% [markdown]
# **Figure.** One dot a layer: the log-probability of the final token when head
# 0 of that layer is zeroed at position -2. Dashed: the clean run.
#
# One dot lies far *above* the line: without the head of layer 1 the right word is half as
# likely again. A tempting title: "a head that does harm". Hold it back. This is *one* head a
# layer, at *one* position, for *one* word, replaced by *zero*. Each of those four words needs a
# look.
#
# ## 4. Is zero nothing?
#
# Setting a head to zero sounds like silence. But a head is never silent: whatever it
# reads, its weights sum to 1 and it adds *some* value vector. The layers behind have
# grown up with that constant murmur. Taking it away is not "no information", it is a
# signal they have never met. A milder lesion keeps the murmur and removes only the news:
# replace the head's output by its **mean** over other texts.
#
# ### Exercise 4: the average word
#
# ●●○○○ · 6 minutes · 1 point
#
# The mean over all sequences and tokens of a reference, one vector of `head_size`
# numbers, at every position.

# %% exercise="causal.mean"
def with_mean(z, reference, num_heads, head):
    """One head's output replaced, everywhere, by its mean over a reference.

    Args:
        z: FloatTensor[batch_size, seq_len, hidden], what c_proj reads
        reference: FloatTensor[items, ref_len, hidden], the same place on other texts
        num_heads: int
        head: int, counted from 0
    Returns:
        FloatTensor[batch_size, seq_len, hidden], a new tensor
    """
    ### BEGIN SOLUTION
    average = reference.flatten(0, 1).mean(dim=0)  # [hidden]
    owner = torch.arange(z.shape[-1]) // (z.shape[-1] // num_heads)  # [hidden]
    return torch.where(owner == head, average, z)  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="causal.mean" points=1
check("causal.mean")

# %% [markdown]
# A reference should be ordinary. We take a few plain sentences and cut them to one
# length. How large is a head's murmur compared with its news?

# %%
sentences = [
    "The old man went down to the river and looked for his boat",
    "She said that she would come back to the house in the morning",
    "There was a little girl who lived with her mother in the wood",
    "They walked along the road until they came to the foot of the hill",
]
rows = [tokenizer(s, return_tensors="pt").input_ids[0] for s in sentences]
shortest = min(len(row) for row in rows)
others = torch.stack([row[:shortest] for row in rows])  # [items, ref_len]

with torch.no_grad(), record(model, "h.*.attn.c_proj:input") as far:
    model(others)
for n in range(n_layers):
    z = far[f"h.{n}.attn.c_proj:input"]  # [items, ref_len, hidden]
    z = z.unflatten(-1, (n_heads, head_size))  # [items, ref_len, num_heads, head_size]
    mean = z.mean(dim=(0, 1))  # [num_heads, head_size]
    share = mean.square().sum(-1) / z.square().sum(-1).mean(dim=(0, 1))  # [num_heads]
    print(f"layer {n}: share of the mean in each head's output:",
          " ".join(f"{s:.2f}" for s in share))

# %% [markdown]
# Where the share is large, a zero lesion removes mostly a constant, and a mean lesion may
# well tell another story. The largest is that of layer 1 head 0, the dot above the line: 0.72.
#
# ## 5. One position, or all
#
# The post cuts at position -2 only, where the prediction is read. What does that leave
# in place? Everything the head did at *earlier* words: what it wrote there was read by later
# layers, at later positions. So the cut at -2 measures what the head does **at that
# word**, not what it does **for** that word.
#
# ### Exercise 5: both
#
# ●●●○○ · 8 minutes · 1 point

# %% exercise="causal.one_and_all" needs="causal.clean causal.cut"
def one_and_all(model, input_ids, layer, head):
    """The effect of zeroing a head at position -2 alone, and at all positions.

    An effect is the last token's log-probability with the lesion minus the clean one.

    Args:
        model: a GPT2LMHeadModel; it is left as it was found
        input_ids: LongTensor[batch_size, seq_len]
        layer, head: int, counted from 0
    Returns:
        one, every: two FloatTensor[batch_size]
    """
    ### BEGIN SOLUTION
    intact = final_log_prob(model, input_ids)  # [batch_size]
    target = model.transformer.h[layer].attn.c_proj

    def effect(positions):
        def knife(module, inputs):
            z = inputs[0]  # [batch_size, seq_len, hidden]
            for position in positions:
                z = without_head(z, model.config.n_head, head, position)
            return (z, *inputs[1:])

        with target.register_forward_pre_hook(knife):
            return final_log_prob(model, input_ids) - intact  # [batch_size]

    return effect([-2]), effect(range(input_ids.shape[1]))
    ### END SOLUTION


# %% check="causal.one_and_all" points=1
check("causal.one_and_all")

# %% [markdown]
# **Before you run this:** in the *last* layer, can the two differ at all? (Who reads what
# the last layer writes at earlier positions?)

# %%
from transformer_lm.ablation import ablate  # the library's lesion, now that you have yours

slow = n_layers * n_heads > 40  # a real GPT-2: show how far we are
pairs = [
    [one_and_all(model, tokens, n, h) for h in range(n_heads)]
    for n in with_progress(range(n_layers), slow, "layers")
]
one = torch.tensor([[float(o) for o, _ in row] for row in pairs])  # [layers, heads]
every = torch.tensor([[float(e) for _, e in row] for row in pairs])  # [layers, heads]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 3.4), sharey=True)
draw_dots(left, clean.item() + one[:, head], f"as posted: head {head}, at -2, zero")
draw_dots(middle, clean.item() + every[:, head], f"twin: head {head}, all, zero")
left.set_ylabel("log-probability of the final token")
means = []
for n in range(n_layers):
    with ablate(model, [(n, head)], how="mean", reference=others):
        means.append(final_log_prob(model, tokens).item())
draw_dots(right, means, f"twin: head {head}, all, mean")
figure.tight_layout()
show(figure, "Three panels of lesion dots, one dot a layer, beside the clean line: zero at "
     "one position, zero at all positions, and the mean at all positions.")

for n in range(n_layers):
    print(f"layer {n}, head {head}: {one[n, head]:+.2f} at -2, {every[n, head]:+.2f} at all, "
          f"{means[n] - clean.item():+.2f} mean at all")
print("last layer, one and all:", [f"{x:+.4f}" for x in one[-1]],
      [f"{x:+.4f}" for x in every[-1]])
largest = (one - every).abs().argmax()
n, h = divmod(int(largest), n_heads)
print(f"most different: layer {n}, head {h}: {one[n, h]:+.3f} at -2, "
      f"{every[n, h]:+.3f} at all")

# %% [markdown]
# **Figure.** The post's dots, and two twins: the same head cut at all positions, and
# replaced by its mean at all positions.
#
# In the last layer the two effects are equal: nothing comes after it that could carry its
# earlier writing to position -2. Elsewhere they differ, and in both directions. The lesion of
# layer 0 head 3 grows from -0.387 to -0.836 when earlier words are cut too: more than half
# of it is done there. That of layer 1 head 0 shrinks, from +0.42 to +0.18. And with its *mean* in place of
# zero the head that "does harm" is of use: -0.30. What was in the way of the right word is the
# constant that it always says, not what it has to say about this text. "The effect of the head" is
# not one number; say which you measured.
#
# ## 6. All heads
#
# ### Exercise 6: the grid
#
# ●●●○○ · 12 minutes · 2 points
#
# One word may be a fluke. Measure the mean log-probability of **all** next tokens, and
# cut each head of each layer in turn, at all positions, to zero. This is the experiment
# that forgotten hooks love most: leave one in, and the second lesion is two.

# %% exercise="causal.grid" needs="causal.clean causal.cut"
def lesion_grid(model, input_ids):
    """What zeroing each head, at all positions, does to the next tokens.

    Args:
        model: a GPT2LMHeadModel; it is left as it was found
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        FloatTensor[num_layers, num_heads]: the change of the mean log-probability of
        all next tokens, lesioned minus clean
    """
    ### BEGIN SOLUTION
    num_heads = model.config.n_head
    size = model.config.n_embd // num_heads

    def quality():
        with torch.no_grad():
            logits = model(input_ids).logits[:, :-1]  # [batch, seq_len - 1, vocab]
        return -F.cross_entropy(logits.flatten(0, 1), input_ids[:, 1:].flatten())  # []

    def knife_for(head):
        def knife(module, inputs):
            z = inputs[0].clone()  # [batch_size, seq_len, hidden]
            z[..., head * size : (head + 1) * size] = 0
            return (z, *inputs[1:])

        return knife

    effects = torch.full((model.config.n_layer, num_heads), -quality())
    # [num_layers, num_heads]
    for block, row in zip(model.transformer.h, effects, strict=True):
        for head in range(num_heads):
            with block.attn.c_proj.register_forward_pre_hook(knife_for(head)):
                row[head] += quality()
    return effects
    ### END SOLUTION


# %% check="causal.grid" points=2
check("causal.grid")

# %% [markdown]
# Beside it the mean lesion, from the library's `ablation_grid` (which shows a progress bar
# if you ask it to).

# %%
from transformer_lm.ablation import ablation_grid

zeroed = lesion_grid(model, tokens)  # [num_layers, num_heads]
averaged = ablation_grid(model, tokens, "mean", reference=others, progress=slow)
# [num_layers, num_heads]
limit = float(torch.stack([zeroed, averaged]).abs().max())


def draw_grid(figure, ax, values, title, limit=None, label="nats", low=None):
    limit = limit or float(values.abs().max())
    low = -limit if low is None else low
    cmap = "RdBu" if low < 0 else "Blues"
    picture = ax.imshow(values, cmap=cmap, vmin=low, vmax=limit)
    ax.set(title=title, xlabel="head", ylabel="layer")
    if values.numel() <= 64:
        ax.set(xticks=range(values.shape[1]), yticks=range(values.shape[0]))
        for row in range(values.shape[0]):
            for column in range(values.shape[1]):
                value = float(values[row, column])
                words = f"{value:+.2f}" if low < 0 else f"{value:.2f}"
                ax.text(column, row, words, ha="center", va="center",
                        color="white" if abs(value) > 0.6 * limit else "black")
    for row, column in guided_heads(model):
        ax.add_patch(plt.Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False,
                                   edgecolor="black", linewidth=2, linestyle=":"))
    figure.colorbar(picture, ax=ax, label=label)
    if values.numel() <= 64:  # for those who cannot see it
        print(f"{title}:", "; ".join(" ".join(f"{x:+.2f}" for x in row) for row in values.tolist()))


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
draw_grid(figure, left, zeroed, "zero, all positions, all words", limit)
draw_grid(figure, right, averaged, "mean, all positions, all words", limit)
figure.tight_layout()
show(figure, "Two grids, layers down and heads across, red where a lesion makes the text "
     "less likely and blue where it makes it likelier: zero lesions and mean lesions. Guided "
     "heads, where a model has them, stand in dotted frames.")
print("hooks left:", count_hooks(model))

# %% [markdown]
# **Figure.** What each lesion does to the mean log-probability of the sentence, zero left
# and mean right. Red: the text becomes less likely, the head was of use. Blue: the
# model does better without it, on this text.
#
# Blue cells puzzle people: is the model better off without that head? Compare the grids. In
# the left one layer 1 head 0 looks idle, if not in the way (+0.05), and layer 0 head 2 too (+0.06).
# In the right one both are of use (-0.28 and -0.14). A zero lesion takes two things away, the
# news and the constant, and here the two effects have opposite signs and nearly cancel. It is no
# measure of the news. Had you published the left grid, you would have sent two workers home.
#
# One head is blue in both: layer 0 head 1, +0.10 and +0.08. Is *that* one of no use? On this text.
# A head is hired for all texts, and on one of thirty tokens any of them may be in the way. One
# text is an anecdote. In section 8 we shall see the same head hold up a whole trade.
#
# ## 7. The direct route
#
# A lesion tells *that* a head matters, through whatever it sets in motion. Can we tell
# how much it says to the output **itself**? The residual stream is a sum: embeddings,
# every head, every MLP, a few biases. The **unembedding** (the matrix of `lm_head`, which
# turns it into logits) is linear. Between them stands only the final norm,
#
# $$\operatorname{ln_f}(x) = \frac{x - \bar x}{\sigma(x)} \odot g + b ,$$
#
# and of its steps only the division by $\sigma(x)$ is not linear. **Freeze** $\sigma$ at its value in
# the clean run, and the logit of token $t$ falls apart into a sum:
#
# $$\text{logit}_t = \sum_{\text{layer, head}} \underbrace{
# \frac{(c - \bar c) \odot g}{\sigma} \cdot u_t}_{\text{this head's share}} + \;\text{rest},
# \qquad c = z^{(h)} W_O^{(h)} ,$$
#
# with $u_t$ the token's row of the unembedding and $W_O^{(h)}$ the head's *rows* of
# `c_proj`'s weight. The rest holds embeddings, MLPs and every bias, for a bias belongs to no
# head. This is *direct logit attribution*.
#
# ### Exercise 7: who says what
#
# ●●●●○ · 14 minutes · 2 points

# %% exercise="causal.direct"
def logit_parts(model, input_ids):
    """Takes apart the last token's logit at position -2, with the final norm frozen.

    Args:
        model: a GPT2LMHeadModel; it is left as it was found
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        heads: FloatTensor[batch_size, num_layers, num_heads], each head's share
        rest: FloatTensor[batch_size]; with all heads' shares it adds up to the logit
    """
    ### BEGIN SOLUTION
    config, norm = model.config, model.transformer.ln_f
    with torch.no_grad(), record(model, ["h.*.attn.c_proj:input", "ln_f:input"]) as acts:
        logits = model(input_ids).logits[:, -2]  # [batch_size, vocab_size]
    rows = torch.arange(len(input_ids))  # [batch_size]
    total = logits[rows, input_ids[:, -1]]  # [batch_size]

    # What a change of the residual stream does to the logit: one vector a sequence.
    x = acts["ln_f:input"][:, -2]  # [batch_size, hidden]
    sigma = (x.var(dim=-1, unbiased=False) + norm.eps).sqrt()  # [batch_size]
    u = model.lm_head.weight.detach()[input_ids[:, -1]]  # [batch_size, hidden]
    u = u * norm.weight.detach()  # [batch_size, hidden]
    u = (u - u.mean(dim=-1, keepdim=True)) / sigma[:, None]  # [batch_size, hidden]

    shares = []
    for layer, block in enumerate(model.transformer.h):
        z = acts[f"h.{layer}.attn.c_proj:input"][:, -2]  # [batch_size, hidden]
        reads = u @ block.attn.c_proj.weight.detach().T  # [batch_size, hidden]
        by_head = (z * reads).unflatten(-1, (config.n_head, -1))
        # [batch_size, num_heads, head_size]
        shares.append(by_head.sum(dim=-1))  # [batch_size, num_heads]
    heads = torch.stack(shares, dim=1)  # [batch_size, num_layers, num_heads]
    return heads, total - heads.sum(dim=(1, 2))
    ### END SOLUTION


# %% check="causal.direct" points=2
check("causal.direct")

# %% [markdown]
# The model solution never forms $c$. Moving the centring and the gain over to $u_t$ gives
# one vector that all heads are dotted with, because $(c - \bar c) \cdot v =
# c \cdot (v - \bar v)$. Algebra is the cheapest optimisation there is.
#
# **Before you run this:** which heads will have a large total effect (section 5) and
# hardly a direct one?

# %%
direct, rest = logit_parts(model, tokens)
direct = direct[0]  # [num_layers, num_heads]
print(f"heads {direct.sum():+.2f}  rest {rest.item():+.2f}  "
      f"logit {(direct.sum() + rest.item()):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.9))
draw_grid(figure, left, direct, "direct share of the logit", label="logits")
colours = plt.cm.plasma(torch.linspace(0, 0.9, n_layers).numpy())
for n in range(n_layers):
    right.plot(direct[n], -every[n], "o", color=colours[n], label=f"layer {n}")
    for h in (h for h in range(n_heads) if star(n, h)):
        right.plot(direct[n, h], -every[n, h], "*", color=colours[n], markersize=15)
right.axhline(0, color="grey", linewidth=0.8)
right.axvline(0, color="grey", linewidth=0.8)
right.set(xlabel="direct share (logits)", ylabel="loss by lesion (nats)",
          title="direct against total")
if n_layers <= 12:
    right.legend(fontsize=8)
figure.tight_layout()
show(figure, "Left, a grid of each head's direct share of the final token's logit. Right, "
     "one dot a head: direct share across, what a zero lesion costs upwards.")

# %% [markdown]
# **Figure.** Left, the direct shares. Right, the same against what the lesion costs: a
# head far to the right speaks for itself; a head high above zero with little to the right
# speaks **through others**.
#
# The two scales are not the same (a logit is not a log-probability: a lesion also moves
# the other tokens' logits), but the order of size may be compared. Layer 1 head 3
# seems to speak up for the word itself, +0.61, and head 0 against it, -0.38. Seems: a logit by
# itself is no evidence. A head
# that raises *all* words alike changes nothing, and a head that says the same whatever it
# reads, a murmur, has no news about this text. So ask twice more: for " mind" **against**
# another word that the sentence has offered, and how much of each share is the head's
# constant mean output (the library has both).

# %%
from transformer_lm.attribution import direct_logit_attribution, mean_output_shares

rival = tokenizer(" matter").input_ids[0]
question = {"token": last, "position": -2, "against": rival}
against = direct_logit_attribution(model, tokens, **question)[..., 0]  # [layers, heads]
murmur = mean_output_shares(model, tokens, reference=others, **question)[..., 0]
# [num_layers, num_heads]
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8))
titles = ('" mind" against " matter"', "of it, the mean output", "of it, news of this text")
size = float(against.abs().max())
for ax, values, title in zip(axes, (against, murmur, against - murmur), titles, strict=True):
    draw_grid(figure, ax, values, title, size, "logits")
figure.tight_layout()
show(figure, "Three grids by layer and head: the direct share of the logit of mind minus that of "
     "matter; how much of it each head's mean output makes; and what is left.")

# %% [markdown]
# **Figure.** Left, each head's direct share of the logit of " mind" minus that of
# " matter". Middle, what the head would say if it put out its mean over the reference.
# Right, the difference: what it says because of *this* text.
#
# Layer 1 head 0 was the loudest speaker against " mind". Of the -0.69 that it gives it
# against " matter", -0.66 is its murmur: it favours the one word over the other whatever
# stands there. And layer 1 head 3 turns its coat. It spoke for " mind", +0.61, and speaks for
# " matter" more: -0.49, none of it murmur. Loudest of all is a head that the first grid did not show,
# head 2 of the same layer: +0.05 there, -1.34 here. It raises " matter" and leaves " mind" alone.
# Three heads of this layer have news, and all of it is for the wrong word. Remember that.
#
# ### Whom does it talk to?
#
# Back to the dot at the top. Layer 0 head 3 says next to nothing to the
# output, -0.02, and yet its lesion costs more than any other. So it must be heard by
# somebody in between. By whom?
#
# The residual stream makes this an easy question. It is a sum, and everybody reads it
# through a norm of his own: the heads of layer $n$ through `h.n.ln_1`, its MLP through
# `h.n.ln_2`, the unembedding through `ln_f`. Take the head's contribution $c$ away from
# what **one** reader reads, and leave it in the stream for all others:
#
# $$\operatorname{ln}(x) \;\longrightarrow\; \operatorname{ln}(x - c)
# \quad\text{for this reader alone.}$$
#
# What follows from that reader follows. This is **path patching** (Wang et al. 2022,
# Goldowsky-Dill et al. 2023): not a head is cut, but one wire between two parts.
#
# ### Exercise 8: cut one wire
#
# ●●●●○ · 14 minutes · 2 points

# %% exercise="causal.path" needs="causal.clean"
def without_path(model, input_ids, layer, head, reader):
    """The last token's log-probability when one reader does not hear one head.

    Args:
        model: a GPT2LMHeadModel; it is left as it was found
        input_ids: LongTensor[batch_size, seq_len]
        layer, head: int, counted from 0: who is not heard, at any position
        reader: str, the norm it would be heard through: "h.2.ln_1", "h.0.ln_2" or "ln_f"
    Returns:
        FloatTensor[batch_size]
    """
    ### BEGIN SOLUTION
    c_proj = model.transformer.h[layer].attn.c_proj
    name = f"h.{layer}.attn.c_proj:input"
    with torch.no_grad(), record(model, name) as heard:
        model(input_ids)
    size = model.config.n_embd // model.config.n_head
    own = slice(head * size, (head + 1) * size)
    with torch.no_grad():
        said = heard[name][..., own] @ c_proj.weight[own]  # [batch_size, seq_len, hidden]

    def deaf(module, inputs):
        return (inputs[0] - said, *inputs[1:])

    norm = model.transformer.get_submodule(reader)
    with norm.register_forward_pre_hook(deaf):
        return final_log_prob(model, input_ids)  # [batch_size]
    ### END SOLUTION


# %% check="causal.path" points=2
check("causal.path")

# %% [markdown]
# Note what the hook must *not* do: `inputs[0] -= said` would change the stream itself,
# for it is the same tensor, and everybody would go deaf at once.
#
# **Before you run this:** who will it be, for layer 0 head 3: a head of a later layer, an
# MLP, or the output?

# %%
def readers_of(layer):
    """Everybody who may hear a head of this layer, in order."""
    found = [f"h.{layer}.ln_2"]
    for n in range(layer + 1, n_layers):
        found += [f"h.{n}.ln_1", f"h.{n}.ln_2"]
    return [*found, "ln_f"]


def in_words(reader):
    if reader == "ln_f":
        return "output"
    return ("heads " if reader.endswith("1") else "MLP ") + reader.split(".")[1]


n, h = divmod(int(every.argmin()), n_heads)  # whose lesion costs most
readers = readers_of(n)
wires = [without_path(model, tokens, n, h, each).item() - clean.item() for each in readers]
figure, ax = plt.subplots(figsize=(8, 3.2))
colours = ["tab:orange" if each.endswith("2") else "slateblue" for each in readers]
ax.bar(range(len(readers)), wires, color=colours)
ax.axhline(every[n, h], color="grey", linestyle="--", label="cut for all readers")
ax.axhline(0, color="black", linewidth=0.8)
ax.set_xticks(range(len(readers)), [in_words(each) for each in readers],
              rotation=45 if len(readers) > 10 else 0)
ax.set(title=f"layer {n}, head {h}{star(n, h)}: one wire cut", ylabel="effect (nats)")
ax.legend()
show(figure, f"Bars, one for each reader of layer {n}, head {h}: what it costs when that reader "
     "alone does not hear the head. The bar of its own layer's MLP is nearly as long as the "
     "dashed line of the whole lesion; all others are short.")
for each, effect in zip(readers, wires, strict=True):
    print(f"{in_words(each):8} {effect:+.2f}")
print(f"all      {every[n, h]:+.2f}")

# %% [markdown]
# **Figure.** What it costs when one reader alone does not hear the head, heads in blue
# and MLPs in orange; dashed, the lesion, when nobody hears it.
#
# It is the **MLP of its own layer**: -0.75 of -0.84. No later head makes a difference
# (-0.03 for all of layer 1 together), nor does the output. So this head does not work
# "through another head" here, plausible as that would have been. It hands its notes to an MLP, and
# the story goes on from there. (The wires need not add up to the lesion: each was cut
# with all others intact. The library's `patching.path_patching` and `receiver_patching`
# go further: queries, keys and values one by one, with a second text in place of the
# zero.)
#
# That was one sentence. The same head has another trade, the famous one, in which it does
# work through a head.
#
# ## 8. Induction: one trick, two heads
#
# Feed the model nonsense: random tokens, and then the same again. There is no grammar and no
# meaning, and still the second half can be predicted: *find the last time this
# token came, and say what came next*. A head that does it is an **induction head**
# (Elhage et al. 2021, Olsson et al. 2022). Its attention goes from token $i$ to the token **after** the earlier copy
# of token $i$.
#
# But how can it know which one that is? A key is made from one position. The token after the copy must
# carry a note: "the one before me was *such-and-such*". Somebody in an earlier layer must
# write that note, by attending to the previous token. Two heads, two layers; one alone can do
# nothing.
#
# ### Exercise 9: a score for induction
#
# ●●●○○ · 12 minutes · 2 points
#
# For any tokens, not just two neat copies. Key $k$ **matches** query $i$ where the token
# before it equals the query's: $x_{k-1} = x_i$ with $1 \le k \le i$. A query's score is
# the sum of its weights on all matching keys. The mean runs over the queries that have a
# match, all sequences together.

# %% exercise="causal.induction"
def prefix_matching(probs, input_ids):
    """How much of its attention each head gives to what followed earlier copies.

    Args:
        probs: FloatTensor[batch_size, num_heads, seq_len, seq_len], causal
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        FloatTensor[num_heads], from 0 to 1
    """
    ### BEGIN SOLUTION
    shifted = input_ids.roll(1, dims=1)  # [batch_size, seq_len]
    shifted[:, 0] = -1  # nothing stands before the first token
    match = input_ids[:, :, None] == shifted[:, None, :]  # [batch, seq_len, seq_len]
    match = match.tril()  # [batch_size, seq_len, seq_len]
    some = match.any(dim=-1)  # [batch_size, seq_len]
    on_match = torch.einsum("bhqk,bqk->bqh", probs, match.to(probs.dtype))
    # [batch_size, seq_len, num_heads]
    return on_match[some].mean(dim=0)  # [num_heads]
    ### END SOLUTION


# %% check="causal.induction" points=2
check("causal.induction")

# %%
length = 24
twice = repeated_tokens(len(tokenizer), 8, length, prefix=tokenizer.eos_token_id)
# [batch_size, 1 + 2 * length]
never = repeated_tokens(len(tokenizer), 8, 2 * length, prefix=tokenizer.eos_token_id)
never = never[:, : 1 + 2 * length]  # [batch_size, 1 + 2 * length], nothing comes twice

maps = attention_patterns(model, twice)  # [num_layers, batch, num_heads, seq, seq]
induction = torch.stack([prefix_matching(m, twice) for m in maps])
# [num_layers, num_heads]
previous = maps.diagonal(-1, -2, -1).mean(dim=(1, 3))  # [num_layers, num_heads]
control = attention_patterns(model, never)  # [num_layers, batch, num_heads, seq, seq]
control = control.diagonal(1 - length, -2, -1).mean(dim=(1, 3))  # [layers, heads]

layer, head = divmod(int(induction.argmax()), n_heads)
below = divmod(int(previous.argmax()), n_heads)
print(f"induction head: layer {layer}, head {head}: {induction.max():.2f}; "
      f"nothing repeated, same distance: {control[layer, head]:.3f}")
print(f"previous-token head: layer {below[0]}, head {below[1]}: {previous.max():.2f}")

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2))
draw_grid(figure, left, induction, "prefix matching", 1.0, "mean weight", low=0)
for ax, (n, h), name in (
    (middle, below, "previous token"), (right, (layer, head), "induction"),
):
    ax.imshow(maps[n, 0, h], vmin=0, vmax=1, cmap="viridis")
    ax.axhline(length + 0.5, color="white", linewidth=0.7, linestyle=":")
    ax.set(title=f"{name}: layer {n}, head {h}{star(n, h)}", xlabel="key", ylabel="query")
figure.tight_layout()
show(figure, "Left, a grid of prefix matching scores. Middle, a map with a bright line just "
     f"below the diagonal. Right, a map with a bright stripe {length - 1} places back.")

# %% [markdown]
# **Figure.** Left, prefix matching by head. Middle, the previous-token head: a bright line just
# below the diagonal. Right, the induction head: from the dotted line on, where the
# second copy begins, a bright **stripe** `length - 1` places back. Before that line nothing has
# come twice, and much of its weight lies on the first token: the sink of lesson 11.
#
# Nobody told these heads what to do, and three heads of layer 1 came to do it: 3 and 2 (0.92 each)
# and 1 (0.65). But the stripe is correlation, once more. Cut, then:
#
# **Before you run this:** what will happen to the second copy's loss without the best induction
# head? Without all three? Without the previous-token head? Without any other head of these layers?

# %%
def copy_losses(heads, **how):
    """Mean loss on both copies with these heads cut, and the induction score."""
    with ablate(model, heads, **how), torch.no_grad():
        out = model(twice, output_attentions=True)
    losses = F.cross_entropy(
        out.logits[:, :-1].transpose(1, 2), twice[:, 1:], reduction="none"
    )  # [batch_size, 2 * length]
    score = prefix_matching(out.attentions[layer], twice)[head]  # []
    first = losses[:, :length].mean().item()
    return first, losses[:, length + 1 :].mean().item(), score.item()


strong = [divmod(i, n_heads) for i in (induction.flatten() > 0.4).nonzero().flatten().tolist()]
neighbours = [(n, h) for n in (below[0], layer) for h in range(min(n_heads, 4))]
neighbours = [each for each in neighbours if each not in (below, *strong)]
print(f"{'cut to zero':34} first copy  second copy  induction head's score")
for name, heads in (
    ("nothing", []),
    *((f"induction head {each}", [each]) for each in strong),
    (f"all {len(strong)} of them", strong),
    (f"previous-token head {below}", [below]),
    *((f"their neighbour {each}", [each]) for each in neighbours),
):
    first, second, score = copy_losses(heads)
    print(f"{name:34} {first:10.2f} {second:12.2f} {score:13.2f}")
print(f"a uniform guess costs ln {len(tokenizer)} = {math.log(len(tokenizer)):.2f} nats")

print("with the mean over text without repetition in place of zero, second copy:")
for each in (below, *neighbours):
    print(f"{each} {copy_losses([each], how='mean', reference=never)[1]:6.2f}", end="   ")

# %% [markdown]
# There is the difference between watching and cutting. The best induction head alone is hardly
# missed: 1.50 nats instead of 0.38, for two others do the same work. Only without all three
# does the second copy cost as much as the first and more, 13.12. One lesion at a time, and you would have
# called each of them unimportant. Of the *previous-token* head there is one only: without it the
# second copy costs 11.65, though that head hardly speaks to the output. Look at
# the last column: **the induction head itself has gone blind**, its score falls from 0.92
# to 0.05. (Cutting the induction head leaves its *score* alone: where it looks is decided
# before its output is cut.)
#
# The neighbours are to show that not just any cut does this: heads of the same two layers, which
# have a lesion effect of their own elsewhere. Most pass. But layer 0 head 1 costs 7.06! A second
# partner? Remember section 4, and look at the last line. With its mean in place of zero nothing
# happens, 0.39. What the others need of it is a constant, which they have learned to rely on, and no
# news at all. For the previous-token head the mean is no better than zero: 11.77. *It* has news.
#
# (Why can the first copy cost more than a uniform guess? The tokens are random, and the
# model, which knows how books go on, bets against them with confidence.)
#
# Does the note travel in the **keys**, as the story says? Two wires again: give the
# induction head the keys that it would have without the previous-token head, and its own
# queries; then the other way round.

# %%
both = [f"h.{layer}.q", f"h.{layer}.k"]
with torch.no_grad(), ablate(model, [below]), record(model, both) as blind:
    model(twice)
for part, name in zip(("queries", "keys"), both, strict=True):
    def swapped(value, name=name):
        value[:, head] = blind[name][:, head]  # [batch_size, seq_len, head_size]
        return value

    with patch(model, {name: swapped}):
        probs = attention_patterns(model, twice)[layer]  # [batch, num_heads, seq, seq]
    print(f"{part:8} without the note: score {prefix_matching(probs, twice)[head]:.2f}")

# %% [markdown]
# With the queries of the blind run the head sees as well as ever, 0.96; with its keys it
# is blind, 0.05. The note is in the keys. (Elhage et al. 2021 call this *K-composition*.)
#
# ### But does it copy?
#
# Looking at the right token is half of the trick. The head must also **say** it: where it
# looks at token $s$, the logit of $s$ must rise. Where to look is decided by queries and
# keys; what to say, by values and output alone. From the token that is looked at to the
# logits there is one matrix, the **OV circuit**,
#
# $$W_E\, W_V\, W_O\, W_U \qquad [\text{vocab}, \text{vocab}] ,$$
#
# embedding, the head's values, its rows of the output map, unembedding. Row $s$ is what
# the head adds to all logits where it looks at $s$. A perfect copier would have a large
# diagonal. An overall number is made from its **eigenvalues** (Elhage et al. 2021): a
# mixture of tokens that is an eigenvector makes *itself* more likely if its eigenvalue
# $\lambda$ is positive, and less likely if it is negative. So
#
# $$\text{score} = \frac{\sum_i \lambda_i}{\sum_i |\lambda_i|} \in [-1, 1] .$$
#
# The matrix has 10,240 rows, and finding its eigenvalues would take all night. But no
# more than `head_size` of them differ from zero, and $AB$ and $BA$ have the same nonzero
# eigenvalues. So turn the product round, $W_O W_U W_E W_V$, which is tiny.
#
# ### Exercise 10: a score for copying
#
# ●●●○○ · 9 minutes · 2 points

# %% exercise="causal.copying"
def copying_scores(w_e, w_v, w_o, w_u):
    """The sum of each OV circuit's eigenvalues over the sum of their absolute values.

    Args:
        w_e: FloatTensor[vocab_size, hidden], the embedding
        w_v: FloatTensor[num_heads, hidden, head_size], the heads' values
        w_o: FloatTensor[num_heads, head_size, hidden], their rows of the output map
        w_u: FloatTensor[hidden, vocab_size], the unembedding
    Returns:
        FloatTensor[num_heads], real, from -1 to 1
    """
    ### BEGIN SOLUTION
    between = w_u @ w_e  # [hidden, hidden]
    around = torch.einsum("nsh,hi,nit->nst", w_o, between, w_v)
    # [num_heads, head_size, head_size]
    values = torch.linalg.eigvals(around)  # [num_heads, head_size], complex
    return values.real.sum(dim=-1) / values.abs().sum(dim=-1)
    ### END SOLUTION


# %% check="causal.copying" points=2
check("causal.copying")

# %% [markdown]
# Two honest details before we use it. The norms belong to the circuit: their gain is
# folded into $W_V$ and $W_U$, and what they subtract is taken out (lesson 10, part 7).
# And by the time a head of layer 1 reads the stream, the MLP of layer 0 has rewritten the
# embeddings, so we take $W_E + \text{MLP}_0(W_E)$ for it. The library's `circuits` does
# both; beside the score it counts how many tokens get *their own* logit raised most of all.
# The baseline is 100 draws of random heads of the same shapes between the same embeddings.

# %%
from transformer_lm import circuits

embedding = circuits.embedding_after_mlp(model)  # [vocab_size, hidden]
scores = circuits.copying_scores(model, embedding=embedding)  # [num_layers, num_heads]
draws = 100 if not slow else 3
chance = torch.stack(
    [circuits.copying_scores(model, seed, embedding) for seed in range(draws)]
)  # [draws, num_layers, num_heads]
some = torch.arange(len(tokenizer))[200:1200]  # [1000], token ids
if len(some) < 1000:  # a small vocabulary, as that of lesson 08b
    some = torch.arange(len(tokenizer))  # [vocab_size]
print("random heads:", f"mean {chance.mean():+.2f}, standard deviation {chance.std():.2f}")
for n in range(1, n_layers if not slow else 1):
    for h in range(n_heads):
        ranks = circuits.copying_ranks(model, n, h, some, embedding)  # [1000]
        print(f"layer {n} head {h}: score {scores[n, h]:+.3f}, "
              f"{int((ranks == 0).sum())} of {len(some)} tokens copied")
weights = circuits.head_weights(model, layer, fold_layer_norm=True, centre=True)
w_e = embedding - embedding.mean(dim=1, keepdim=True)  # [vocab_size, hidden]
w_u = (model.lm_head.weight * model.transformer.ln_f.weight).detach().T  # [hidden, vocab]
w_u = w_u - w_u.mean(dim=1, keepdim=True)  # [hidden, vocab_size], against the mean logit
yours = copying_scores(w_e.detach(), weights.w_v, weights.w_o, w_u)  # [num_heads]
print(f"your scores for layer {layer}:", " ".join(f"{score:+.3f}" for score in yours))

# %% [markdown]
# The induction head's score is +0.999: a copier, if ever there was one. Of a thousand
# tokens it raises 881 above all others of the vocabulary, by its weights alone, without
# one text going in. The two heads that look where it looks copy too: +0.999 and 867, +0.986 and 343.
# Mind layer 2 head 2: its score of +0.669 is far above chance, and it copies 13 tokens
# of the thousand. The score is an average over directions, not
# over tokens; so look at both. No other head copies more than two.
#
# ### And in a real sentence?
#
# Now we can settle what section 1 left open. Does anybody use that the sentence has said
# "mind" before? At -2 stands `'t`. Who follows an earlier `'t`?

# %%
ring = ("Said the old king to the young queen: I have lost my golden ring. "
        "And the queen said to the old king: I have found your golden ring")
for sentence in (text, ring):
    ids = tokenizer(sentence, return_tensors="pt").input_ids  # [batch_size, seq_len]
    looks = attention_patterns(model, ids)[layer, 0, head, -2]  # [seq_len]
    most = int(looks.argmax())
    print(f"after {tokenizer.decode(ids[0, -2])!r} it looks at "
          f"{tokenizer.decode(ids[0, most])!r} ({looks[most]:.2f}); "
          f"the word is {tokenizer.decode(ids[0, -1])!r}")
    for word in dict.fromkeys([int(ids[0, -1]), int(ids[0, most])]):  # right, and looked at
        ids[0, -1] = word
        print(f"   log-probability of {tokenizer.decode(word)!r} "
              f"{final_log_prob(model, ids).item():.2f}, without", end="")
        for name, heads in (("it", [(layer, head)]), (f"all {len(strong)}", strong)):
            with ablate(model, heads, how="mean", reference=others):
                print(f" {name} {final_log_prob(model, ids).item():.2f}", end="")
        print()

# %% [markdown]
# In the post's sentence `'t` was followed by " matter". That is where the induction head
# looks, and that is what it proposes: the *wrong word*. Take its news away, by a mean lesion, and
# " matter" falls from -3.51 to -4.31; take away that of all three, and it falls to -5.28. (Hence the
# coat, in section 7.) The earlier "mind" is not what such a head looks for: it followed " who".
# And yet " mind" is no likelier without them. It is less likely, -3.85 and -3.99 for -3.47: this head
# raises it too, only less than its rival. "It speaks for the wrong word" and "it harms the right one"
# are two claims, and only the first holds.
#
# Where the answer *is* the copied token, in our sentence with the ring, the head looks at " ring",
# and the word lives on the copy: -0.91 with all heads, -3.54 without this one, -6.56 without the
# three.
#
# ### How such heads come about
#
# Nobody told these heads where to look. When did they begin? On board is what our model was
# before it grew: `growing`, two layers of four heads, kept at five
# stages of its training. Its vocabulary is small (GPT-2's first 2,047 ids), a quarter of
# its rows were copy rows and the others books, and after 9 million tokens half were copy rows;
# its loss was that of the predicted tokens and nothing else.
#
# **Before you run this:** the trick needs two heads. Will they appear together, or one
# first? Which?

# %%
import json

from transformer_lm.checkpoints import load_checkpoints
from transformer_lm.pretrained import find_folder

stages = load_checkpoints()  # {tokens read: model}
end = next(iter(stages.values())).config.eos_token_id
rows = repeated_tokens(end, 8, length, prefix=end)  # [batch_size, 1 + 2 * length]
stage_maps = {seen: attention_patterns(stage, rows) for seen, stage in stages.items()}
# each [num_layers, batch_size, num_heads, seq_len, seq_len]
scores = {}
for seen, found in stage_maps.items():
    back = found.diagonal(-1, -2, -1).mean(dim=(1, 3))  # [num_layers, num_heads]
    match = torch.stack([prefix_matching(each, rows) for each in found])  # [layers, heads]
    scores[seen] = back, match
back, match = scores[max(scores)]  # at the end of the training
writer, reader = (divmod(int(each.argmax()), each.shape[1]) for each in (back, match))
print(f"{'tokens read':>11}  layer {writer[0]} head {writer[1]}  layer {reader[0]} head {reader[1]}"
      "  second copy, against a guess")
for seen, (back, match) in scores.items():
    after = copy_loss(stages[seen], rows, length)[1] - math.log(end + 1)
    print(f"{seen / 1e6:9.2f} M {back[writer]:14.2f} {match[reader]:14.2f} {after:+20.2f} nats")

# %%
figure = plt.figure(figsize=(12, 7.5), layout="constrained")
grid = figure.add_gridspec(3, len(stages), height_ratios=(1, 1, 1.15))
for column, (seen, found) in enumerate(stage_maps.items()):
    for row, (n, h) in enumerate((writer, reader)):
        ax = figure.add_subplot(grid[row, column])
        ax.imshow(found[n, 0, h], vmin=0, vmax=1, cmap="viridis")
        ax.axhline(length + 0.5, color="white", linewidth=0.7, linestyle=":")
        ax.set(xticks=[], yticks=[])
        if row == 0:
            ax.set_title(f"{seen / 1e6:.1f} M tokens", fontsize=10)
        if column == 0:
            ax.set_ylabel(f"layer {n}, head {h}")
log = json.loads((find_folder("growing") / "training_log.json").read_text())["log"]
course = figure.add_subplot(grid[2, :])
for key, colour in (("previous_token", "tab:blue"), ("prefix_matching", "tab:orange")):
    course.plot([line["tokens"] / 1e6 for line in log], [line[key] for line in log],
                color=colour, label=key.replace("_", " ") + ", best head")
course.plot([line["tokens"] / 1e6 for line in log], [line["control"] for line in log],
            color="grey", label="nothing repeated")
for seen in stages:
    course.axvline(seen / 1e6, color="black", linewidth=0.7, linestyle=":")
course.set(xlabel="tokens read (million)", ylabel="mean weight", ylim=(0, None))
course.legend()
show(figure, "Above, the maps of two heads at five stages: the first slowly gathers on the line "
     "below the diagonal, the second shows a stripe in the second copy at the last stages only. "
     "Below, the scores of the best heads by tokens read.")

# %% [markdown]
# **Figure.** Above, two heads of `growing` on one row, random tokens given twice, after 1 to
# 15 million tokens. Below, the scores of its best heads while it learned (measured on 50
# tokens given twice; such longer rows give lower numbers than the table's); dotted, the five stages.
#
# One first. For two or three million tokens there is nothing. Then a head of layer 0
# gathers, slowly, on the token before: 0.08, 0.13, 0.17. The other head still looks
# anywhere, for a note so faint is hard to read. And then, within half a million tokens,
# it can: 0.08, and 0.50. The second copy costs 2.63 nats less than a guess, and in the end
# 7.51. Now that the note is read it pays to write it clearly, and the first head sharpens
# in its turn, to 0.74. Neither is of use without the other; that may be why nothing
# happens for so long, and then all at once. Olsson et al. 2022 saw such a step in every model of
# two or more layers that they trained, on text.
#
# What may we conclude? The *moment* is ours: at 9 million tokens we gave it more copy rows, and a
# high learning rate again. The *order* is not, nor is the place. Nobody chose these
# heads. Three of the four heads of layer 1 became induction heads, though one would do.
# And it is one run; another seed is another history.
#
# Our model is this one, grown: all 10,240 ids, two more layers, 10 million tokens more. The two
# heads of the figure are the two of the figure before: they only became sharper.
#
# ## 9. Your own attention inside a GPT-2
#
# You began this course with a weighted average. In lesson 05 you wrote
# `MultiHeadSelfAttention`, tested on tensors of three by five by seven. Is it the *real*
# thing? There is one way to find out: take GPT-2's weights, put them into your class,
# take GPT-2's attention away, and see whether anybody notices.
#
# Two layouts must be reconciled.
#
# | | GPT-2 (`Conv1D`) | yours (`nn.Linear`) |
# |---|---|---|
# | stores | `[in, out]` | `[out, in]` |
# | computes | $x\,W + b$ | $x\,W^\top + b$ |
# | q, k, v | one `c_attn`, `[hidden, 3 * hidden]` | three layers `q`, `k`, `v` |
# | output | `c_proj`, `[hidden, hidden]` | `mix` |
#
# The square ones fit either way round. No error will tell you that you forgot to
# transpose; only the numbers will. The rest of a GPT-2 you know from lesson 09:
#
# $$x \leftarrow \text{wte} + \text{wpe}; \qquad
# x \leftarrow x + \text{attn}(\operatorname{ln_1}(x)), \quad
# x \leftarrow x + \text{mlp}(\operatorname{ln_2}(x)) \;\text{ in each block}; \qquad
# \text{logits} = \operatorname{lm\_head}(\operatorname{ln_f}(x)) .$$
#
# ### Exercise 11: the transplant
#
# ●●●●○ · 15 minutes · 2 points
#
# Build a module that takes GPT-2's embeddings, norms, MLPs and head as they are, and computes
# the attention of every block with **your** `MultiHeadSelfAttention`. (If yours still
# says "Your code from the notebook goes here", finish lesson 05 first and move it to
# `transformer_lm/modeling_attention.py`.) The check compares the logits to a ten-thousandth
# of their size, and looks whether gradients reach your `q`, `k`, `v` and `mix` in every layer: so
# there is no use in asking GPT-2 for the answer.

# %% exercise="causal.own"
class OwnGPT2(nn.Module):
    """GPT-2 with one's own attention in every block."""

    def __init__(self, gpt2):
        """
        Args:
            gpt2: a GPT2LMHeadModel; its weights are copied into own attention modules
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.stack = gpt2.transformer
        self.head = gpt2.lm_head
        config = gpt2.config
        self.own = nn.ModuleList()
        for block in self.stack.h:
            own = MultiHeadSelfAttention(
                config.n_embd, config.n_embd, config.n_head, causal=True
            )
            weights = block.attn.c_attn.weight.detach().T.chunk(3)
            # three times [hidden, hidden], as [out, in]
            biases = block.attn.c_attn.bias.detach().chunk(3)  # three times [hidden]
            for linear, weight, bias in zip(
                (own.q, own.k, own.v), weights, biases, strict=True
            ):
                linear.load_state_dict({"weight": weight, "bias": bias})
            mix = block.attn.c_proj
            own.mix.load_state_dict({"weight": mix.weight.T, "bias": mix.bias})
            self.own.append(own)
        ### END SOLUTION

    def forward(self, input_ids):
        """
        Args:
            input_ids: LongTensor[batch_size, seq_len]
        Returns:
            FloatTensor[batch_size, seq_len, vocab_size], the logits
        """
        ### BEGIN SOLUTION
        places = torch.arange(input_ids.shape[1])  # [seq_len]
        x = self.stack.wte(input_ids) + self.stack.wpe(places)
        # [batch_size, seq_len, hidden]
        for block, own in zip(self.stack.h, self.own, strict=True):
            x = x + own(block.ln_1(x))  # [batch_size, seq_len, hidden]
            x = x + block.mlp(block.ln_2(x))  # [batch_size, seq_len, hidden]
        return self.head(self.stack.ln_f(x))  # [batch_size, seq_len, vocab_size]
        ### END SOLUTION


# %% check="causal.own" points=2
check("causal.own")

# %% [markdown]
# The moment of truth, on the trained model and our sentence.

# %%
transplanted = OwnGPT2(model).eval()
with torch.no_grad():
    theirs = model(tokens).logits  # [batch_size, seq_len, vocab_size]
    ours = transplanted(tokens)  # [batch_size, seq_len, vocab_size]
far = (theirs - ours).abs().max().item()
print(f"largest difference of {theirs.numel()} logits: {far:.0e}")
assert far < 1e-4 * theirs.abs().max()

ids = tokenizer("Once upon a time", return_tensors="pt").input_ids  # [batch, seq_len]
with torch.no_grad():
    for _ in range(16):
        best = transplanted(ids)[:, -1].argmax(dim=-1, keepdim=True)  # [batch_size, 1]
        ids = torch.cat([ids, best], dim=1)  # [batch_size, seq_len + 1]
print(tokenizer.decode(ids[0]))

# %% [markdown]
# Nobody noticed. The text above was written by a language model whose attention is *yours*,
# every line of it. What is left is rounding, since the two add up
# their products in different orders. With `COURSE_MODEL=gpt2` the same cell runs the
# real GPT-2 on your code.
#
# ## Did it stick?
#
# **1.** A head's zero lesion costs 0.7 nats. What happened to the probability?
# <details><summary>Answer</summary>It was multiplied by $e^{-0.7} \approx 0.5$.</details>
#
# **2.** Your lesion at position -1 has no effect whatever on the last word, in any layer. Why?
# <details><summary>Answer</summary>The last word is predicted at -2, and the causal mask
# lets nothing from -1 reach it.</details>
#
# **3.** `return tuple(z, *inputs[1:])` worked. What did you test it with?
# <details><summary>Answer</summary>A batch of one. <code>tuple(z)</code> takes z apart along the
# batch; with one item, broadcasting repairs the missing axis.</details>
#
# **4.** A head has no direct share in a logit, yet its lesion ruins it. How come?
# <details><summary>Answer</summary>It writes something that others read: a later head, as
# the previous-token head does for the induction head, or an MLP, as it does in our
# sentence. Cut one wire at a time to find out.</details>
#
# **5.** Why might a mean lesion be fairer than a zero lesion?
# <details><summary>Answer</summary>It keeps the constant part that later layers are used
# to, and removes only what depends on this text.</details>
#
# **6.** A head looks at the token that comes next in an earlier copy, with weight 0.9. Is it
# an induction head?
# <details><summary>Answer</summary>It looks like one. Whether it says what it sees is up
# to its OV circuit: look at the eigenvalues, or at whether a token's own logit rises.</details>
#
# **This was the last lesson.** You have gone from a dot product to cause and effect in a
# language model, with code of your own at every step. The next paper you read on
# "attention heads" may well hold one of the mistakes you have met here. You will see it.
#
# Words of this lesson: [ablation](../../docs/glossary.md#ablation),
# [direct logit attribution](../../docs/glossary.md#direct-logit-attribution),
# [path patching](../../docs/glossary.md#path-patching),
# [OV circuit](../../docs/glossary.md#ov-circuit),
# [induction head](../../docs/glossary.md#induction-head),
# [forward hook](../../docs/glossary.md#forward-hook),
# [log-probability](../../docs/glossary.md#log-probability),
# [nat](../../docs/glossary.md#nat).
