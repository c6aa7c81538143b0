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
# * tell a head's direct effect on a logit from what it does through other heads;
# * find induction heads, and show that they need a partner a layer below;
# * run a GPT-2 on an attention that you wrote yourself, to the fourth decimal.
#
# | | |
# |---|---|
# | Time | 110 minutes |
# | Difficulty | ●●●●○ |
# | Importance | ●●●●● |
#
# Nine exercises, fourteen points. The worked solutions come with the whole course, in
# `solutions/12_causal_experiments.ipynb`; look at them after an attempt of your own.
# Each exercise has three hints: `hint("causal.clean", 1)`. The last exercise uses
# *your* `MultiHeadSelfAttention` from lesson 05, in
# `transformer_lm/modeling_attention.py`.

# %% role="setup"
import math
import os

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm.ablation import ablate, ablation_grid, repeated_tokens
from transformer_lm.activations import (
    attention_patterns,
    count_hooks,
    record,
    with_progress,
)
from transformer_lm.figures import show
from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.pretrained import load_gpt2

# %% [markdown]
# ## 1. The patient before the operation
#
# The post uses `gpt2-large`; we use the largest model on board. Any GPT-2 will do: put
# `"gpt2"` or a folder in its place.

# %%
MODEL = os.environ.get("COURSE_MODEL", "base-on-board")
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
# `gpt2-large` is nearly sure of the last word. Our little model is not, yet it beats the
# uniform guess by far. (The sentence has said "mind" before. Section 8 shows who makes use
# of that.) Differences of log-probabilities are factors: an effect of -0.7 halves the
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


def draw_dots(ax, values, title):
    scale = plt.Normalize(0, max(n_layers - 1, 1))
    for n, value in enumerate(values):
        ax.plot(n, value, "h", markersize=12, color=plt.cm.plasma(scale(n)),
                markeredgecolor="grey")
    ax.axhline(clean.item(), color="grey", linestyle="--", zorder=0, label="clean")
    ax.set(title=title, xlabel="layer", xticks=range(0, n_layers, 1 + n_layers // 13))
    ax.legend()


figure, ax = plt.subplots(figsize=(8, 3.2))
draw_dots(ax, dots, f"head {head} zeroed at position -2")
ax.set_ylabel("log-probability of the final token")
show(figure, f"One dot a layer: the final token's log-probability with head {head} of that "
     "layer zeroed at the last position but one, beside a dashed line for the clean run.")
for n, value in enumerate(dots):
    print(f"layer {n}: {value:.3f}   effect {value - clean.item():+.3f}")

# %% [markdown]
# **Figure.** One dot a layer: the log-probability of the final token when head
# 0 of that layer is zeroed at position -2. Dashed: the clean run.
#
# The head of layer 0 matters most, by far; those of the two last layers hardly move the
# dot. A tempting title: "early heads do the work". Hold it back. This is *one* head a layer, at *one*
# position, for *one* word, replaced by *zero*. Each of those four words needs a look.
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
# well tell another story. Remember layer 0 head 2 and layer 1 head 1; we meet them again.
#
# ## 5. One position, or all
#
# The post cuts at position -2 only, where the prediction is read. What does that leave
# in place? Everything the head did at *earlier* words: what it wrote there was read by later
# layers, at later positions. So the cut at -2 measures what the head does **at that
# word**, not what it does **for** that word.
#
# ### Exercise 5: both

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
# layer 0 grows from -1.904 to -2.323 when earlier words are cut too: part of its work is
# done there. "The effect of the head" is not one number; say which you measured.
#
# ## 6. All heads
#
# ### Exercise 6: the grid
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
    figure.colorbar(picture, ax=ax, label=label)


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
draw_grid(figure, left, zeroed, "zero, all positions, all words", limit)
draw_grid(figure, right, averaged, "mean, all positions, all words", limit)
figure.tight_layout()
show(figure, "Two grids, layers down and heads across, red where a lesion makes the text "
     "less likely and blue where it makes it likelier: zero lesions and mean lesions.")
print("hooks left:", count_hooks(model))

# %% [markdown]
# **Figure.** What each lesion does to the mean log-probability of the sentence, zero left
# and mean right. Red: the text becomes less likely, the head was of use. Blue: the
# model does better without it, on this text.
#
# Blue cells puzzle people: is the model better off without that head? Compare the grids. In
# the left one two heads look harmful, layer 0 head 2 (+0.39) and layer 1 head 1 (+0.34).
# In the right one they are innocent (-0.03 and 0.00). Now look back at the shares in
# section 4: 0.76 and 0.93. What these heads put out is mostly a constant, and the zero lesion
# took away the constant. It measured the silence, not the news. Had you published the
# left grid, you would have accused two bystanders.
#
# What little blue is left needs no explanation: a head is hired for all texts, and on
# one text of thirty tokens any of them may be in the way. One text is an anecdote.
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
# head on the diagonal speaks for itself; a head high above zero with little to the right
# speaks **through others**.
#
# The two scales are not the same (a logit is not a log-probability: a lesion also moves
# the other tokens' logits), but the order of size may be compared. The heads of layer 1
# speak up for the word themselves. The dot in the upper left corner, layer 0 head 0, says
# next to nothing to the output, +0.02, and yet its lesion costs more than any other. Whom
# does it talk to? Now for the famous case of a head that works through another.
#
# ## 8. Induction: one trick, two heads
#
# Feed the model nonsense: random tokens, and then the same again. There is no grammar and no
# meaning, and still the second half can be predicted: *find the last time this
# token came, and say what came next*. A head that does it is an **induction head**
# (Olsson et al. 2022). Its attention goes from token $i$ to the token **after** the earlier copy
# of token $i$.
#
# But how can it know which one that is? A key is made from one position. The token after the copy must
# carry a note: "the one before me was *such-and-such*". Somebody in an earlier layer must
# write that note, by attending to the previous token. Two heads, two layers; one alone can do
# nothing.
#
# ### Exercise 8: a score for induction
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
    ax.set(title=f"{name}: layer {n}, head {h}", xlabel="key", ylabel="query")
figure.tight_layout()
show(figure, "Left, a grid of prefix matching scores. Middle, a map with a bright line just "
     f"below the diagonal. Right, a map with a bright stripe {length - 1} places back.")

# %% [markdown]
# **Figure.** Left, prefix matching by head. Middle, the previous-token head: a bright line just
# below the diagonal. Right, the induction head: from the dotted line on, where the
# second copy begins, a bright **stripe** `length - 1` places back.
#
# A word of honesty about this model. Its card (`models/base-on-board/MODEL_CARD.md`)
# says that in training these two heads were *shown* their places for a while, and that
# it read many rows with copies. GPT-2 formed such heads by itself, from text. So do not
# take the place of these heads, or how clean they are, as a discovery. What we may test
# is what they *do*.
#
# The stripe is correlation, once more. Cut, then:
#
# **Before you run this:** what will happen to the second copy's loss without the induction head?
# Without the previous-token head? And to the first copy's?

# %%
def copy_losses(heads):
    """Mean loss on both copies with these heads zeroed, and the induction score."""
    with ablate(model, heads), torch.no_grad():
        out = model(twice, output_attentions=True)
    losses = F.cross_entropy(
        out.logits[:, :-1].transpose(1, 2), twice[:, 1:], reduction="none"
    )  # [batch_size, 2 * length]
    score = prefix_matching(out.attentions[layer], twice)[head]  # []
    first = losses[:, :length].mean().item()
    return first, losses[:, length + 1 :].mean().item(), score.item()


bystander = (n_layers - 1, n_heads - 1)
print(f"{'cut':34} first copy  second copy  induction head's score")
for name, heads in (
    ("nothing", []),
    (f"induction head ({layer}, {head})", [(layer, head)]),
    (f"previous-token head {below}", [below]),
    (f"a bystander {bystander}", [bystander]),
):
    first, second, score = copy_losses(heads)
    print(f"{name:34} {first:10.2f} {second:12.2f} {score:13.2f}")
print(f"a uniform guess costs ln {len(tokenizer)} = {math.log(len(tokenizer)):.2f} nats")

# %% [markdown]
# There is the difference between watching and cutting. Without the induction head the
# second copy costs as much as the first: 12.08 nats instead of 2.71. Without the
# *previous-token* head it costs 12.13, though that head hardly speaks to the output. Look at
# the last column: **the induction head itself has gone blind**, its score falls from 0.91
# to 0.03. Its keys no longer carry the note. One cause, in layer 0, acting through
# another. (Zeroing the induction head leaves its *score* alone: where it looks is decided
# before its output is cut.) The bystander shows that not just any cut does this.
#
# (Why can the first copy cost more than a uniform guess? The tokens are random, and the
# model, which knows how books go on, bets against them with confidence.)
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
# ### Exercise 9: the transplant
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
# ## Self-quiz
#
# 1. A head's zero lesion costs 0.7 nats. What happened to the probability?
#
# <details><summary>Answer</summary>It was multiplied by $e^{-0.7} \approx 0.5$.</details>
#
# 2. Your lesion at position -1 has no effect whatever on the last word, in any layer. Why?
#
# <details><summary>Answer</summary>The last word is predicted at -2, and the causal mask
# lets nothing from -1 reach it.</details>
#
# 3. `return tuple(z, *inputs[1:])` worked. What did you test it with?
#
# <details><summary>Answer</summary>A batch of one. `tuple(z)` takes z apart along the
# batch; with one item, broadcasting repairs the missing axis.</details>
#
# 4. A head has no direct share in a logit, yet its lesion ruins it. How come?
#
# <details><summary>Answer</summary>It writes something that a later head reads, as the
# previous-token head does for the induction head.</details>
#
# 5. Why might a mean lesion be fairer than a zero lesion?
#
# <details><summary>Answer</summary>It keeps the constant part that later layers are used
# to, and removes only what depends on this text.</details>
#
# **This was the last lesson.** You have gone from a dot product to cause and effect in a
# language model, with code of your own at every step. The next paper you read on
# "attention heads" may well hold one of the mistakes you have met here. You will see it.
#
# Words of this lesson: [ablation](../../docs/glossary.md#ablation),
# [direct logit attribution](../../docs/glossary.md#direct-logit-attribution),
# [induction head](../../docs/glossary.md#induction-head),
# [forward hook](../../docs/glossary.md#forward-hook),
# [log-probability](../../docs/glossary.md#log-probability),
# [nat](../../docs/glossary.md#nat).
