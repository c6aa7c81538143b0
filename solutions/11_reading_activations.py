# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · Reading activations
#
# Weights are what a model *could* do. Activations are what it does, now, with this
# sentence. In lesson 10 you read the cookbook; today you stand in the kitchen and lift
# the lids. The tool is the **hook**: a function of yours that the model calls while it
# runs. It takes ten minutes to learn and has at least four ways of going wrong
# silently, so we build one from scratch before we trust PyTorch's.
#
# We follow a well-made and widely read walk through GPT-2's attention (Mike X Cohen,
# *LLM breakdown 5/6: Attention*, demos 1 and 2). Its figures are all here. Some of
# them do not show what their titles say, and that is worth more to us than a flawless
# post: each of those stands beside a corrected twin, drawn from the same run.
#
# **After this lesson you can**
#
# * explain what a hook is, by writing one without PyTorch;
# * record any activation of any layer, and leave the model as you found it;
# * recognise a late-binding closure, a stale variable and a hook left in;
# * describe queries, keys and values layer by layer, and say what a plot leaves out;
# * compute the scores of *one head* as the model does, and prove that they are its own.
#
# | | |
# |---|---|
# | Time | 90 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●○ |
#
# Nine exercises, twelve points. The worked solutions come with the whole course, in
# `solutions/11_reading_activations.ipynb`; look at them after an attempt of your own.
# Each exercise has three hints, from a nudge to nearly there:
# `hint("activations.text", 1)`. Words you do not know are in the
# [glossary](../../docs/glossary.md). Numbers in the text are those of `large-on-board`; with
# another model, read yours off the output.
#
# **About this model.** Nobody chose what its heads do: its loss was that of the predicted tokens and
# nothing else (`models/large-on-board/MODEL_CARD.md`). In the three smaller models on board two heads
# were *shown* for a while in training where to look; if you open one of those, stars mark the two
# in the figures by head.

# %% role="setup"
import copy
import math
import os

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn

from autograder import check, hint
from transformer_lm.activations import count_hooks, record
from transformer_lm.figures import show
from transformer_lm.pretrained import guided_heads, load_gpt2

# %% [markdown]
# ## 1. A model and a sentence
#
# The post uses `gpt2-large`: 36 layers, 20 heads, 3 GB. We use a small model that lies
# on board. It has the same architecture and the same tokenizer, down to the ids. If you have a
# real GPT-2, put `"gpt2"`, `"gpt2-large"` or a folder in its place; nothing else in
# this notebook changes. `load_gpt2` also switches to **evaluation mode**: no dropout,
# so that two runs give the same numbers.

# %%
MODEL = os.environ.get("COURSE_MODEL", "large-on-board")
model, tokenizer = load_gpt2(MODEL, verbose=True)

n_layers = model.config.n_layer
n_heads = model.config.n_head
hidden = model.config.n_embd
head_size = hidden // n_heads
print(f"{n_layers} layers of {n_heads} heads; {hidden} = {n_heads} x {head_size}")
print(f"scores are divided by sqrt({head_size}) = {math.sqrt(head_size):.3f}")

# %% [markdown]
# And the sentence, exactly as in the post:

# %%
text = """Be who you are and say what you feel,
      because those who mind don't matter and those who matter don't mind"""
tokens = tokenizer(text, return_tensors="pt").input_ids  # [batch_size, seq_len]
n_tokens = tokens.shape[1]

print(repr(text))
print([tokenizer.decode(t) for t in tokens[0]])

# %% [markdown]
# `repr` shows what `print` hides: the string holds a line break and six blanks, which
# came along when the source was indented. People do not see them. The tokenizer does:
# the line break and five of the blanks are tokens of their own (the sixth belongs to
# `' because'`). The model was hardly trained on poetry indented by
# six, so its activations there are about the layout of somebody's notebook. We keep
# the text, so that you can compare; in work of your own, look at `repr` first.
#
# ### Exercise 1: count, twice
#
# ●○○○○ · 4 minutes · 1 point
#
# How long is the text, and how varied? The post counts with `len(set(tokens[0]))`.
#
# **Before you run this:** the tensor below holds five numbers, two of them different.
# What will the set's length be?

# %%
five = torch.tensor([7, 7, 7, 7, 8])  # [seq_len]
print("a set of the tensor's elements has", len(set(five)), "members")

# %% [markdown]
# Five. Taking elements out of a tensor gives tensors, each a new *object*, and a set
# tells tensors apart by identity, not by what they hold. So this count always equals
# the number of tokens, whatever the text. Nothing crashes; the number is merely never
# true. Write it so that it is.

# %% exercise="activations.text"
def count_text(text, input_ids):
    """Counts characters and tokens, all of them and the different ones.

    Args:
        text: str
        input_ids: LongTensor[1, seq_len], the text's tokens
    Returns:
        four whole numbers: characters, different characters, tokens, different tokens
    """
    ### BEGIN SOLUTION
    ids = input_ids[0].tolist()
    return len(text), len(set(text)), len(ids), len(set(ids))
    ### END SOLUTION


# %% check="activations.text" points=1
check("activations.text")

# %%
characters, unique_characters, count, unique_tokens = count_text(text, tokens)
print(f"{characters} characters ({unique_characters} different)")
print(f"{count} tokens ({unique_tokens} different; the post's way: {len(set(tokens[0]))})")

# %% [markdown]
# ## 2. A hook from scratch
#
# Think of a factory line. At each station something is done to what comes by. You
# would like to stand at station 7 and take photographs, without rebuilding the
# factory. What must a station offer? A place to sign in, a way to sign out, and the
# courtesy to call you each time something passes.

# %%
class Station:
    """One step of a computation, and those who listen to it."""

    def __init__(self, step):
        self.step = step
        self.listeners = {}

    def listen(self, listener):
        """Signs in a listener; returns a function that signs it out."""
        ticket = object()
        self.listeners[ticket] = listener
        return lambda: self.listeners.pop(ticket)

    def __call__(self, x):
        result = self.step(x)
        for listener in list(self.listeners.values()):
            answer = listener(self, x, result)
            if answer is not None:  # a listener may put something else in its place
                result = answer
        return result


photos = []
double = Station(lambda x: 2 * x)
sign_out = double.listen(lambda station, x, result: photos.append((x, result)))
print("the result is", double(21), "and the photos show", photos)
sign_out()
double(5)
print("after signing out there are still", len(photos), "photos")

# %% [markdown]
# That is all there is. PyTorch's `nn.Module` does the same under longer names:
#
# | ours | PyTorch's | when it is called |
# |---|---|---|
# | `listen(f)` | `register_forward_hook(f)` | after `forward`: `f(module, inputs, output)` |
# | | `register_forward_pre_hook(f)` | before `forward`: `f(module, inputs)` |
# | `sign_out()` | `handle.remove()` | |
#
# `inputs` is always a **tuple**, even if there is only one. And in both, an answer other
# than `None` *replaces* the output. Lesson 12 lives off that; here it is a trap.
#
# **Before you run this:** two hooks, one after the other, on the same layer. The first one
# looks. The second *returns* what it saw, times zero. What comes out of the layer?

# %%
torch.manual_seed(0)
layer = nn.Linear(2, 2)
x = torch.ones(1, 2)  # [batch_size, input_size]
print("no hook:       ", layer(x).detach())

looking = layer.register_forward_hook(lambda m, i, o: print("   I saw", o.detach()))
layer(x)
looking.remove()

meddling = layer.register_forward_hook(lambda m, i, o: 0 * o)
print("hook returns 0s:", layer(x).detach())
print("a second call:  ", layer(x).detach(), "(it is still there)")
meddling.remove()
print("hook removed:   ", layer(x).detach())

# %% [markdown]
# A hook stays until someone removes it: through the next cell, the next experiment, the
# next coffee. In a notebook that is the likeliest way to get two different answers from
# one model, so tidy up *in the same breath*: `try`, and `finally: handle.remove()`.
# Then it also goes when the model raises an error half-way.
#
# ### Exercise 2: one hook
#
# ●●○○○ · 7 minutes · 1 point
#
# Catch what comes out of `c_attn` in one layer. It is the projection to queries, keys and
# values in one, with the biases added (unlike lesson 10, which read weights alone). The
# check also sends a token id that the model does not have: the `IndexError` should get
# through, and the hook must still be gone.

# %% exercise="activations.one_hook"
def tap(model, input_ids, layer):
    """Runs the model once and catches the output of one layer's c_attn.

    Args:
        model: a GPT2LMHeadModel
        input_ids: LongTensor[batch_size, seq_len]
        layer: int, counted from 0
    Returns:
        FloatTensor[batch_size, seq_len, 3 * hidden], detached
    """
    ### BEGIN SOLUTION
    kept = []
    spot = model.transformer.h[layer].attn.c_attn
    ticket = spot.register_forward_hook(lambda m, i, out: kept.append(out.detach()))
    try:
        with torch.no_grad():
            model(input_ids, use_cache=False)
    finally:
        ticket.remove()
    return kept[0]  # [batch_size, seq_len, 3 * hidden]
    ### END SOLUTION


# %% check="activations.one_hook" points=1
check("activations.one_hook")

# %%
first = tap(model, tokens, 0)  # [batch_size, seq_len, 3 * hidden]
print("caught:", list(first.shape), "   hooks left in the model:", count_hooks(model))

# %% [markdown]
# ### Exercise 3: a hook in every layer
#
# ●●●○○ · 9 minutes · 2 points
#
# Surely that is a loop. Be careful. Here is one of Python's oldest jokes:

# %%
late = []
for number in range(3):
    late.append(lambda: f"I am hook {number}")
print([f() for f in late])


def introduce(number):
    return lambda: f"I am hook {number}"


print([f() for f in [introduce(number) for number in range(3)]])

# %% [markdown]
# A function made in a loop does not store the loop variable's *value*; it looks the
# variable up when it is **called**, and by then the loop is over. This is called *late
# binding*. Hooks are the worst place for it, because they are always called later:
# every layer would write under the last layer's number. The cure is a **hook factory**,
# an outer function that is called at once and holds on to its own argument. The post
# does this right; now you.

# %% exercise="activations.all_layers"
def tap_all(model, input_ids):
    """Catches the output of c_attn in all layers, in one run.

    Args:
        model: a GPT2LMHeadModel
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        dict from layer number (from 0) to FloatTensor[batch_size, seq_len, 3 * hidden]
    """
    ### BEGIN SOLUTION
    kept = {}

    def listener_for(number):
        def listener(module, inputs, output):
            kept[number] = output.detach()  # [batch_size, seq_len, 3 * hidden]

        return listener

    tickets = []
    try:
        for number, block in enumerate(model.transformer.h):
            spot = block.attn.c_attn
            tickets.append(spot.register_forward_hook(listener_for(number)))
        with torch.no_grad():
            model(input_ids, use_cache=False)
    finally:
        for ticket in tickets:
            ticket.remove()
    return kept
    ### END SOLUTION


# %% check="activations.all_layers" points=2
check("activations.all_layers")

# %% [markdown]
# From here on we may use the library's version, `record`. It takes names with stars, and
# its hooks vanish at the end of the `with` block whatever happens inside. Do the two
# agree?

# %%
caught = tap_all(model, tokens)
with torch.no_grad(), record(model, "h.*.attn.c_attn") as acts:
    model(tokens)
same = [torch.equal(caught[n], acts[f"h.{n}.attn.c_attn"]) for n in range(n_layers)]
print(list(acts))
print("equal to ours:", same, "   hooks left:", count_hooks(model))
wides = [caught[n] for n in range(n_layers)]  # num_layers x [batch, seq_len, 3 * hidden]

# %% [markdown]
# ## 3. Queries, keys and values
#
# One tensor a layer, three times as wide as the residual stream:
#
# $$[\; \underbrace{q^{(0)} \dots q^{(h-1)}}_{\text{hidden}} \;|\;
# \underbrace{k^{(0)} \dots k^{(h-1)}}_{\text{hidden}} \;|\;
# \underbrace{v^{(0)} \dots v^{(h-1)}}_{\text{hidden}} \;]$$
#
# First query, key, value; within each, the heads one after the other. (The post stores
# it under the key `qvk`. The code that follows unpacks `q, k, v` and is right; the name
# is not. Misleading names do no harm until the day someone believes them.)
#
# ### Exercise 4: cut it up
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="activations.split"
def heads_of(wide, num_heads):
    """Cuts c_attn's output into the queries, keys and values of each head.

    Args:
        wide: FloatTensor[batch_size, seq_len, 3 * hidden]
        num_heads: int
    Returns:
        q, k, v: three FloatTensor[batch_size, num_heads, seq_len, head_size]
    """
    ### BEGIN SOLUTION
    batch_size, seq_len, _ = wide.shape
    wide = wide.view(batch_size, seq_len, 3, num_heads, -1)
    # [batch_size, seq_len, 3, num_heads, head_size]
    q, k, v = wide.permute(2, 0, 3, 1, 4)
    # three times [batch_size, num_heads, seq_len, head_size]
    return q, k, v
    ### END SOLUTION


# %% check="activations.split" points=1
check("activations.split")

# %% [markdown]
# How are the numbers distributed? The post draws density histograms of layer 5, and
# leaves out token 0, with `q[0, 1:, :]`, without a word about it. Let us look at both:
# its figure, and a twin that also shows what it left out. (Our model may have fewer
# than six layers; then we take the last but one.)
#
# **Before you run this:** why might somebody want to leave out the first token?

# %%
shown = min(5, n_layers - 2)
thirds = dict(zip("QKV", wides[shown].chunk(3, dim=-1), strict=True))

figure, (post, twin) = plt.subplots(1, 2, figsize=(10.5, 3.4), sharey=True)
for name, colour in zip("KQV", ("tab:blue", "tab:orange", "tab:green"), strict=True):
    later = thirds[name][0, 1:].flatten()  # [(seq_len - 1) * hidden]
    heights, edges = torch.histogram(later, bins=100, density=True)
    post.plot(edges[:-1], heights, label=name, color=colour)
    twin.plot((edges[1:] + edges[:-1]) / 2, heights, label=name, color=colour)
    zero = thirds[name][0, 0]  # [hidden]
    twin.plot(zero, torch.full_like(zero, -0.02), "|", color=colour, markersize=9)
post.set(title=f"As posted: layer {shown}", xlabel="activation", ylabel="density")
twin.set(title="Twin: bin centres, and token 0 as ticks", xlabel="activation")
post.legend()
figure.tight_layout()
show(figure, f"Densities of keys, queries and values in layer {shown}, twice. The right "
     "panel adds a row of ticks below the curves for the features of token 0.")
spread = {name: (t[0, 0].std().item(), t[0, 1:].std().item()) for name, t in thirds.items()}
for name, (zero, later) in spread.items():
    print(f"{name}: standard deviation of token 0 {zero:.2f}, of the others {later:.2f}")

# %% [markdown]
# **Figure.** Left, as posted: one curve each for keys, queries and values, drawn at the
# *left edge* of each bin. Right, the same at the bins' centres, with the numbers of
# token 0 as ticks below: they are in no curve of the left panel.
#
# Token 0 is special in every GPT-2. It always stands in the same place and can see
# nothing but itself, and in the large ones many heads use it as a parking lot
# (section 6). Look at the printed numbers: in this layer of our small model it is rather tame.
# Dropping it is a fair choice. Dropping it silently is not: a reader will think that "the distribution of the queries" is that of all queries.
#
# ### Exercise 5: densities that own up
#
# ●●○○○ · 7 minutes · 1 point
#
# (If you come from lesson 10, exercise 4, you know why; here it is all layers at once.)
#
# With the same bins for all layers, layers can be compared. But fixed bins have ends,
# and what lies beyond them falls out. `density=True` then divides by the number of
# values *inside*: each curve has area 1 again and nobody notices the loss. Divide by
# **all** values instead,
#
# $$\text{density} = \frac{\text{count in the bin}}{\text{all values} \times
# \text{bin width}} ,$$
#
# so that the area under a curve is the share it shows. And report the rest.

# %% exercise="activations.histogram"
def layer_densities(values, edges):
    """A density histogram a layer, on the same bins, with what they leave out.

    Args:
        values: FloatTensor[num_layers, count]
        edges: FloatTensor[bins + 1], evenly spaced
    Returns:
        centres: FloatTensor[bins], the middle of each bin
        densities: FloatTensor[num_layers, bins], per value of the layer, inside or not
        outside: FloatTensor[num_layers], the share of values in no bin
    """
    ### BEGIN SOLUTION
    total = values.shape[1]
    bins = [torch.histogram(row, edges).hist for row in values]  # num_layers x [bins]
    shares = torch.stack(bins) / total  # [num_layers, bins]
    centres = edges[:-1] + edges.diff() / 2  # [bins]
    return centres, shares / edges.diff(), 1 - shares.sum(dim=1)
    ### END SOLUTION


# %% check="activations.histogram" points=1
check("activations.histogram")

# %% [markdown]
# Now the post's "laminar" figure: one row a layer, one column a bin, 100 bins from -5
# to 5, for Q, K and V. Above as posted, below the twin. Look for two differences.

# %%
edges = torch.linspace(-5, 5, 101)  # [bins + 1]
figure, axes = plt.subplots(2, 3, figsize=(10.5, 5.6))
for column, name in enumerate("QKV"):
    values = torch.stack(
        [wide.chunk(3, dim=-1)[column][0, 1:].flatten() for wide in wides]
    )  # [num_layers, (seq_len - 1) * hidden]
    centres, densities, outside = layer_densities(values, edges)
    inside = densities / (1 - outside)[:, None]  # [num_layers, bins]
    rows = ((axes[0, column], inside, float(edges[-2])),
            (axes[1, column], densities, float(edges[-1])))
    for ax, heights, right in rows:
        picture = ax.imshow(
            heights, aspect="auto", origin="lower", cmap="magma",
            interpolation="nearest",
            extent=[float(edges[0]), right, -0.5, n_layers - 0.5],
        )
        ax.set_yticks(range(n_layers)) if n_layers < 13 else None
        figure.colorbar(picture, ax=ax)
    axes[0, column].set_title(f"{name}, as posted")
    axes[1, column].set_title(f"{name}, twin ({outside.max():.2%} outside at most)")
    axes[1, column].set_xlabel("activation")
axes[0, 0].set_ylabel("layer")
axes[1, 0].set_ylabel("layer")
figure.tight_layout()
show(figure, "Six heat maps of activation densities, layers up and activation value "
     "across: queries, keys and values, as posted above and corrected below.")

# %% [markdown]
# **Figure.** Densities of queries, keys and values, one row a layer. Bright means many
# activations of that size. Above as posted, below corrected.
#
# The pictures look alike, which is the point: no eye would find these.
#
# * The post ends its axis at `binEdges[-2]`, the left edge of the last bin. All
#   100 columns are squeezed into 99 columns' room, and every column sits a little off.
# * The upper maps have lost what lies outside -5 to 5 and hide it by normalising again.
#   The lower titles say how much that is. A real GPT-2 has features far outside.
#
# ### Exercise 6: the spread, layer by layer
#
# ●●○○○ · 6 minutes · 1 point
#
# The third figure of the demo is the variance of Q, K and V in each layer. Make the
# silent choice a spoken one: `first` says where to begin, 1 to leave token 0 out. Pool
# sequences, tokens and features into one variance (`torch.var` as it comes, which
# divides by the count less one; `np.var` divides by the count).

# %% exercise="activations.variance"
def qkv_variance(wides, first):
    """The variance of queries, keys and values in each layer.

    Args:
        wides: a list, one FloatTensor[batch_size, seq_len, 3 * hidden] a layer
        first: int, the first token that counts
    Returns:
        FloatTensor[num_layers, 3], columns query, key, value
    """
    ### BEGIN SOLUTION
    table = []
    for wide in wides:
        thirds = wide[:, first:].chunk(3, dim=-1)
        # three times [batch_size, seq_len - first, hidden]
        table.append(torch.stack([third.var() for third in thirds]))  # [3]
    return torch.stack(table)  # [num_layers, 3]
    ### END SOLUTION


# %% check="activations.variance" points=1
check("activations.variance")

# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True)
titles = ("as posted: token 0 left out", "twin: all tokens")
for ax, first, title in zip(panels, (1, 0), titles, strict=True):
    for values, name, mark in zip(qkv_variance(wides, first).T, "QKV", "os^", strict=True):
        ax.plot(values, marker=mark, label=name)
    ax.set(title=title, xlabel="layer", xticks=range(0, n_layers, 1 + n_layers // 13))
panels[0].set_ylabel("variance")
panels[0].legend()
figure.tight_layout()
show(figure, "Variance of queries, keys and values against the layer, left without "
     "token 0, right with it.")

# %% [markdown]
# **Figure.** The variance of Q, K and V in each layer; left without token 0, as posted,
# right with it. Where the panels differ, a single token makes the difference. In our
# small model you need good eyes for it; with a large one, look again.
#
# What do the curves say? It is tempting: "the values are the quietest of the three. Queries
# and keys need large numbers, because they must win a softmax." A nice story. Now watch:
# we double all queries, halve all keys, take all values times 10 and divide the output map by 10.
#
# **Before you run this:** what becomes of the logits? Of the curves?

# %%
other = copy.deepcopy(model)
with torch.no_grad():
    for block in other.transformer.h:
        for which, factor in enumerate((2.0, 0.5, 10.0)):
            part = slice(which * hidden, (which + 1) * hidden)
            block.attn.c_attn.weight[:, part] *= factor
            block.attn.c_attn.bias[part] *= factor
        block.attn.c_proj.weight /= 10
    far = (model(tokens).logits - other(tokens).logits).abs().max()
rescaled = [tap(other, tokens, n) for n in range(n_layers)]
print(f"largest difference of any logit: {far:.0e}")
for title, each in (("as trained", wides), ("rescaled", rescaled)):
    print(f"variances of Q, K, V, {title:10}:",
          [[round(x, 2) for x in row] for row in qkv_variance(each, 1).tolist()])

# %% [markdown]
# The same model, and now the values are the loudest in every layer. How large queries, keys and
# values are *beside one another* is a choice that nobody made (lesson 10 calls it a gauge): only
# $q \cdot k$ counts, and only $v\,W_O$. And each layer has
# that choice for itself. So a plot of raw Q, K and V compares numbers of one file: neither the three
# curves nor two layers can be held against each other as facts about the model. What may be
# compared is what others see: the scores (section 4), and what a head adds to the stream, $v\,W_O$
# (section 6). (`xlim=[0, n_layers]` in the post adds a layer that is not there; layers end at
# `n_layers - 1`.)
#
# ## 4. Scores, and three ways to get the wrong ones
#
# Demo 2 asks for the distribution of $QK^\top/\sqrt{d_k}$. Its first cells begin with `k`
# and `q`. Which `k` and `q`? The reader has layer 5 in mind: that is what the figures
# were about. But between there and here stood a loop over all layers, which used the
# same two names. They hold what the **last** round left in them. In a notebook, a loop
# variable outlives its loop.
#
# Here are the post's cells, as they run:

# %%
for wide in wides:  # the loop that made the heat maps, in short
    q, k, v = wide.chunk(3, dim=-1)  # three times [batch_size, seq_len, hidden]

print(k.shape, k[0, 1:, :].transpose(-2, -1).shape)
posted = q[0, 1:] @ k[0, 1:].transpose(-2, -1) / math.sqrt(head_size)
# [seq_len - 1, hidden] @ [hidden, seq_len - 1] -> [seq_len - 1, seq_len - 1]
print("scores:", list(posted.shape))
print("they come from layer", n_layers - 1, "and we wanted layer", shown)

# %% [markdown]
# Nothing crashed and nothing looks odd. With 36 layers the two numbers are 35 and 5: a
# figure about the other end of the model.
#
# The second mistake is the shape. `[seq_len, hidden] @ [hidden, seq_len]` gives *one* matrix
# for a layer with many heads. Split the sum over the features by head:
#
# $$q_i \cdot k_j = \sum_{f=1}^{\text{hidden}} q_{if}\,k_{jf}
# = \sum_{h} \; q_i^{(h)} \cdot k_j^{(h)} .$$
#
# The full-width product is the **sum of all heads' scores**. No head ever sees it, and
# no softmax is ever taken of it. And it is divided by $\sqrt{d_k}$ of one head, so its spread
# is too large by about $\sqrt{\text{heads}}$ if heads are independent.
#
# The third is the missing **causal mask**. Half of those numbers compare a query with
# keys of the future, which the model never does.
#
# ### Exercise 7: the scores of each head
#
# ●●●○○ · 10 minutes · 2 points

# %% exercise="activations.scores" needs="activations.split"
def masked_scores(wide, num_heads):
    """The scores of each head as the model computes them, before the softmax.

    Args:
        wide: FloatTensor[batch_size, seq_len, 3 * hidden], the output of c_attn
        num_heads: int
    Returns:
        FloatTensor[batch_size, num_heads, seq_len, seq_len], scaled, -inf where the key
        is later than the query
    """
    ### BEGIN SOLUTION
    q, k, _ = heads_of(wide, num_heads)
    # [batch_size, num_heads, seq_len, head_size]
    products = torch.einsum("bhqd,bhkd->bhqk", q, k)
    # [batch_size, num_heads, seq_len, seq_len]
    seen = torch.ones_like(products[0, 0]).tril() == 1  # [seq_len, seq_len]
    return torch.where(seen, products / q.shape[-1] ** 0.5, float("-inf"))
    # [batch_size, num_heads, seq_len, seq_len]
    ### END SOLUTION


# %% check="activations.scores" points=2
check("activations.scores")

# %% [markdown]
# Can we *prove* that these are the model's own? Its attention weights come out with
# `output_attentions=True`. If our scores are right, their softmax equals those, for every
# layer, head and token. (One more trap: with another attention implementation than
# `"eager"`, the model returns nothing there, and says nothing. `load_gpt2` sees to it.)
#
# **Before you run this:** and the full-width version, masked or not?

# %%
with torch.no_grad():
    own = model(tokens, output_attentions=True).attentions
# num_layers x [batch_size, num_heads, seq_len, seq_len]

for n, wide in enumerate(wides):
    ours = masked_scores(wide, n_heads).softmax(dim=-1)  # [batch, num_heads, seq, seq]
    q, k, _ = wide.chunk(3, dim=-1)  # three times [batch_size, seq_len, hidden]
    summed = (q @ k.mT / math.sqrt(head_size)).softmax(dim=-1)  # [batch, seq, seq]
    far = (own[n] - summed[:, None]).abs().max()
    print(f"layer {n}: ours differ by {(own[n] - ours).abs().max():.0e} at most, "
          f"the full-width ones by {far:.2f}")

# %% [markdown]
# Rounding for ours, and nearly everything for the other. That is what a proof looks like
# in this trade: not "the shapes fit", not "the plot looks plausible", but agreement with
# the thing itself.
#
# Now the post's figure, the matrix and the same numbers in a row, and beside it the twin:
# one head of the layer we meant, masked.

# %%
head = 0
guided = " ★" if (shown, head) in guided_heads(model) else ""
right = masked_scores(wides[shown], n_heads)[0, head]  # [seq_len, seq_len]
visible = right[right.isfinite()]  # [pairs]

figure, axes = plt.subplots(2, 2, figsize=(10, 7))
for row, matrix, numbers, title in (
    (axes[0], posted, posted.flatten(), "as posted: last layer, heads summed, no mask"),
    (axes[1], right, visible, f"twin: layer {shown}, head {head}{guided}, visible pairs"),
):
    picture = row[0].imshow(matrix, cmap="magma")
    figure.colorbar(picture, ax=row[0])
    row[0].set(title=title, xlabel="key", ylabel="query")
    row[0].title.set_fontsize(10)
    row[1].scatter(range(len(numbers)), numbers, 14, c=numbers, cmap="magma",
                   edgecolor="grey", linewidth=0.3, marker="s")
    row[1].set(title=f"{len(numbers)} scores, one after the other",
               xlabel="pair (query, key)", ylabel="score")
    row[1].title.set_fontsize(10)
figure.tight_layout()
show(figure, "Above, the post's score matrix and its numbers in a row: no mask and all "
     "heads added up. Below, one head's scores: a lower triangle, and fewer numbers.")

# %% [markdown]
# **Figure.** Above as posted: every pair has a score. Below the twin: the white triangle
# is the future, and only the visible pairs stand in the row of dots.
#
# The dots are in reading order of the matrix. If they show bands or waves, that is the
# rows of the matrix: some queries score all keys high, some low. A constant added to a
# *row* changes nothing in its softmax, so do not read anything into the height of a band.
# (The keys' bias adds such constants and does nothing else: lesson 10.) What counts is the
# spread within a row.
#
# ## 5. Layer by layer
#
# The demo ends with distributions for all layers: of the scores, of their softmax (on a
# logarithmic axis, since most weights are near 0), and their means and standard deviations.
#
# ### Exercise 8: mean and spread of the scores
#
# ●●○○○ · 9 minutes · 2 points
#
# By layer **and head**, over the visible pairs of all sequences. The loop is yours, so mind which
# variable it uses. If you like, use your `heads_of` and `masked_scores`.

# %% exercise="activations.by_layer" needs="activations.split activations.scores"
def score_statistics(wides, num_heads):
    """Mean and standard deviation of each head's scores over the visible pairs.

    Args:
        wides: a list, one FloatTensor[batch_size, seq_len, 3 * hidden] a layer
        num_heads: int
    Returns:
        means: FloatTensor[num_layers, num_heads]
        deviations: FloatTensor[num_layers, num_heads], as torch.std gives them
    """
    ### BEGIN SOLUTION
    means, deviations = [], []
    for wide in wides:
        by_head = masked_scores(wide, num_heads).transpose(0, 1)
        # [num_heads, batch_size, seq_len, seq_len]
        finite = [scores[scores.isfinite()] for scores in by_head]
        # num_heads x [pairs]
        means.append(torch.stack([pairs.mean() for pairs in finite]))  # [num_heads]
        deviations.append(torch.stack([pairs.std() for pairs in finite]))  # [num_heads]
    return torch.stack(means), torch.stack(deviations)
    ### END SOLUTION


# %% check="activations.by_layer" points=2
check("activations.by_layer")

# %%
def full_width(wide):
    """The post's scores of one layer: heads summed, token 0 out, no mask."""
    q, k, _ = wide[0, 1:].chunk(3, dim=-1)  # three times [seq_len - 1, hidden]
    return q @ k.T / math.sqrt(head_size)  # [seq_len - 1, seq_len - 1]


def curve(ax, numbers, colour):
    heights, borders = np.histogram(numbers.flatten().numpy(), 20, density=True)
    heights[heights == 0] = np.nan  # a logarithm has no place for empty bins
    ax.plot((borders[1:] + borders[:-1]) / 2, heights, ".-", color=colour)


figure, axes = plt.subplots(2, 2, figsize=(10.5, 6.6), layout="constrained")
scale = plt.Normalize(0, n_layers - 1)
for n, wide in enumerate(wides):
    colour = plt.cm.plasma(scale(n))
    old = full_width(wide)  # [seq_len - 1, seq_len - 1]
    new = masked_scores(wide, n_heads)[0]  # [num_heads, seq_len, seq_len]
    seen = new.isfinite()  # [num_heads, seq_len, seq_len]
    curve(axes[0, 0], old, colour)
    curve(axes[0, 1], old.softmax(dim=-1), colour)
    curve(axes[1, 0], new[seen], colour)
    curve(axes[1, 1], new.softmax(dim=-1)[seen], colour)
axes[0, 0].set(title="as posted: scores of all heads summed", ylabel="density")
axes[0, 1].set(title="as posted: their softmax, no mask", yscale="log")
axes[1, 0].set(title="twin: each head's visible scores", ylabel="density",
               xlabel="score")
axes[1, 1].set(title="twin: the model's attention weights", yscale="log",
               xlabel="attention weight")
colours = plt.cm.ScalarMappable(scale, plt.cm.plasma)
ticks = range(0, n_layers, 1 + n_layers // 9)
bar = figure.colorbar(colours, ax=axes, label="layer", ticks=ticks)
show(figure, "Densities of scores (left) and of their softmax on a logarithmic axis "
     "(right), one curve a layer; above as posted, below the corrected version.")

# %% [markdown]
# **Figure.** One curve a layer, early layers dark, late ones bright. Above, the post's
# scores and their softmax; below, the visible scores of each head, and the weights that
# the model really uses.
#
# Above, each layer is one bump, and one is tempted to describe *the layer*:
# "layer 1 has the highest scores". Below, layer 1 falls apart into three bumps. They are its
# four heads, two of them in one bump, each with a centre and a width of its own (the centres, we
# just saw, mean nothing to a softmax). The sum over
# heads has mixed them beyond recognition. On the right the shapes differ too. Which
# layer has more weights near 1? Read it off both rows; only the lower one answers for
# the model. (A gap in a curve is an empty bin.)
#
# Now means and spreads on twin axes, as the post has them. The twin leaves the mean out, which
# no softmax sees, and shows for each head the spread of its **row-centred** scores: from each
# score the mean of its row is taken away.

# %%
def row_spread(wide):
    """The standard deviation of each head's visible scores around the mean of their row."""
    scores = masked_scores(wide, n_heads)[0]  # [num_heads, seq_len, seq_len]
    seen = scores.isfinite()  # [num_heads, seq_len, seq_len]
    zeroed = scores.masked_fill(~seen, 0)  # [num_heads, seq_len, seq_len]
    rows = zeroed.sum(dim=-1, keepdim=True) / seen.sum(dim=-1, keepdim=True)
    # [num_heads, seq_len, 1]
    return torch.stack([s[v].std() for s, v in zip(scores - rows, seen, strict=True)])


spreads = torch.stack([row_spread(wide) for wide in wides])  # [num_layers, num_heads]
old = [full_width(wide) for wide in wides]  # num_layers x [seq_len - 1, seq_len - 1]
means, deviations = score_statistics(wides, n_heads)  # each [num_layers, num_heads]

figure, (post, twin) = plt.subplots(1, 2, figsize=(11, 3.6))
beside = post.twinx()
for axis, values, mark, colour, label in (
    (post, [s.mean() for s in old], "s", "darkgreen", "mean"),
    (beside, [s.std() for s in old], "o", "indigo", "standard deviation"),
):
    axis.plot(values, marker=mark, color=colour)
    axis.set_ylabel(label, color=colour)
    axis.tick_params(axis="y", colors=colour)
for n in range(n_layers):
    for h in range(n_heads):
        mark = "*" if (n, h) in guided_heads(model) else "o"
        twin.plot(n, spreads[n, h], mark, color="indigo", markersize=10 if mark == "*" else 6)
twin.set(title="twin: row-centred, one dot a head", ylabel="standard deviation")
twin.set_ylim(bottom=0)
post.set_title("as posted")
for ax in (post, twin):
    ax.set(xlabel="layer", xticks=range(0, n_layers, 1 + n_layers // 13))
figure.tight_layout()
show(figure, "Left, as posted: mean (squares, left axis) and standard deviation (circles, right "
     "axis) of the summed scores by layer. Right: the spread of row-centred scores, one dot a "
     "head; one dot of layer 0 lies far above all others.")
for n in range(n_layers):
    print(f"layer {n}: mean of raw scores by head {[round(m, 1) for m in means[n].tolist()]}, "
          f"row-centred spread {[round(s, 1) for s in spreads[n].tolist()]}")

ratio = torch.stack([s.std() for s in old]) / deviations.mean(dim=1)  # [num_layers]
print("spread of the summed scores / mean spread of a head:", [f"{r:.1f}" for r in ratio])
print(f"sqrt(number of heads) = {math.sqrt(n_heads):.1f}, number of heads = {n_heads}")

# %% [markdown]
# **Figure.** Left as posted, mean and standard deviation of the summed scores by layer, on
# two axes. Right the spread of each head's row-centred scores, on an axis that begins at 0.
#
# On the left two lines invite a story about depth. (Two axes, scaled apart, can make any two
# lines meet.) The right panel asks what a softmax would notice, and answers for each head: one head,
# layer 0 head 3, spreads its scores widely, 4.0, the next two 1.8 and 1.7, all others 1.3 or less. (It
# is the head that looks at the token before, and at nothing else: lesson 12.) Heads of
# one layer differ more than layers do, so a layer's average describes none of its heads. The
# printed ratio tells how the heads' scores add up: near $\sqrt{\text{heads}}$ if
# they are unrelated, near the number of heads if all want the same tokens.
#
# ## 6. Where attention goes when it has nothing to do
#
# A softmax must spend its weight; the sum is always 1. A head that finds nothing it
# looks for cannot say "nobody". Trained models solve this with a gesture: they park the weight on
# a token that does no harm, mostly the first one. It is called an **attention sink**.
# It is the usual reason for leaving token 0 out of figures, and probably the post's.
#
# ### Exercise 9: who looks at token 0?
#
# ●●○○○ · 6 minutes · 1 point
#
# The mean weight that the *later* queries give to token 0. (Query 0 sees only itself; its
# weight there is 1 in every model and tells nothing.)

# %% exercise="activations.sinks"
def sink_attention(model, input_ids):
    """The mean attention weight on token 0, over all later queries and all sequences.

    Args:
        model: a GPT2LMHeadModel that returns its attention weights
        input_ids: LongTensor[batch_size, seq_len]
    Returns:
        FloatTensor[num_layers, num_heads]
    """
    ### BEGIN SOLUTION
    with torch.no_grad():
        maps = model(input_ids, output_attentions=True).attentions
    # num_layers x [batch_size, num_heads, seq_len, seq_len]
    on_first = [probs[:, :, 1:, 0] for probs in maps]
    # num_layers x [batch_size, num_heads, seq_len - 1]
    return torch.stack([weights.mean(dim=(0, 2)) for weights in on_first])
    # [num_layers, num_heads]
    ### END SOLUTION


# %% check="activations.sinks" points=1
check("activations.sinks")

# %% [markdown]
# What would a head do that ignores content? Spread evenly: query $i$ gives each of its
# $i + 1$ visible tokens $1/(i+1)$. That is the baseline to beat.
#
# **Before you run this:** more of a sink in early layers or in late ones?

# %%
sinks = sink_attention(model, tokens)  # [num_layers, num_heads]
even = (1 / torch.arange(2, n_tokens + 1)).mean()  # []
print(f"an even head would give token 0 a mean weight of {even:.3f}")

layer, head = divmod(int(sinks.argmax()), n_heads)
labels = [tokenizer.decode(t).replace("\n", "\\n").replace(" ", "·") for t in tokens[0]]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1, 1.3))
picture = left.imshow(sinks, vmin=0, vmax=1, cmap="viridis")
figure.colorbar(picture, ax=left, label="mean weight on token 0", shrink=0.8)
left.set(title="who looks at token 0", xlabel="head", ylabel="layer",
         xticks=range(n_heads), yticks=range(n_layers))
for n, h in guided_heads(model):
    left.plot(h - 0.35, n - 0.35, "*", color="tab:red", markersize=11)
picture = right.imshow(own[layer][0, head], vmin=0, vmax=1, cmap="viridis")
right.set_xticks(range(n_tokens), labels, rotation=90, fontsize=7)
right.set_yticks(range(n_tokens), labels, fontsize=7)
right.set(title=f"layer {layer}, head {head}", xlabel="key", ylabel="query")
figure.colorbar(picture, ax=right, label="attention weight", shrink=0.8)
figure.tight_layout()
show(figure, "Left, a grid of layers and heads coloured by the mean attention to token 0. "
     f"Right, the map of layer {layer}, head {head}, whose first column is brightest.")
print(f"strongest: layer {layer}, head {head}, {sinks.max():.3f}")

# %% [markdown]
# **Figure.** Left, the mean weight on token 0 for each head, on a scale from 0 to 1.
# Right, the attention map of the head with most of it: look down its first column.
#
# Even in our small model, briefly trained on rows that begin anywhere in a book, two heads of
# layer 1 give token 0 six times the even share: a sink, and nobody taught them that. Large models
# have many (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"): load
# `gpt2` and compare the grids. Do look at the places where the map is bright *elsewhere*, too: below
# right, where " those" and "'t" come for the second time. There the head has
# found something to do. (What, is lesson 12's to tell.)
#
# A sink is not a mistake of the model, but it is one for a reader. "Head so-and-so
# attends to the beginning of the sentence" is often just "head so-and-so has nothing to
# do here". Before you interpret an attention weight, compare it with the even share, and
# look at what is moved: the weight times what looking there **adds to the stream**. Where a
# sink is a true parking lot, that is short, so that parking costs nothing. Is it here? Not the
# length of the value counts, for the values' scale is free (section 3), and a value may be long
# in directions that $W_O$ does not read. Take the length of $v\,W_O$, with the head's rows of
# `c_proj`.

# %%
_, _, v = heads_of(wides[layer], n_heads)  # [batch_size, num_heads, seq_len, head_size]
w_o = model.transformer.h[layer].attn.c_proj.weight.detach()  # [hidden, hidden]
added = v[0, head] @ w_o[head * head_size : (head + 1) * head_size]  # [seq_len, hidden]
norms = added.norm(dim=-1)  # [seq_len]
print(f"layer {layer}, head {head}: token 0 would add a vector of length {norms[0]:.2f}, "
      f"the other tokens {norms[1:].mean():.2f} on average ({norms[1:].min():.2f} to "
      f"{norms[1:].max():.2f})")

# %% [markdown]
# 2.50 against 7.76, and shorter than the shortest of the others: a parking lot. In this head,
# looking at token 0 moves a third of what looking elsewhere does. (In another head or another model
# the two lengths may be alike; `small-on-board` is such a case. That is why the test is worth a
# cell.)
#
# ## Did it stick?
#
# **1.** All entries of your recording hold the last layer's numbers. What happened?
# <details><summary>Answer</summary>A late-binding closure: the hooks were made in a loop
# and look the loop variable up when they run, after the loop. Make each hook in a
# function that is given its number.</details>
#
# **2.** Your hook ends with `return output * 1.0` "to be safe". What is the harm?
# <details><summary>Answer</summary>A hook that returns something replaces the output.
# Here the values are the same, but you no longer only watch; the day you return a
# detached or changed tensor, you run an experiment without knowing it.</details>
#
# **3.** Why is `q @ k.T` with full-width `q` and `k` no head's scores?
# <details><summary>Answer</summary>It sums over all features, hence over all heads. The
# model takes one softmax for each head, before anything is added up.</details>
#
# **4.** A histogram with `density=True` has area 1. Does it show all values?
# <details><summary>Answer</summary>No. NumPy and PyTorch normalise over the values inside the
# bins. What lies outside is gone, and the area does not tell.</details>
#
# **5.** A head gives token 0 nine tenths of its weight. What may you conclude?
# <details><summary>Answer</summary>Little: perhaps it found nothing to do. Compare with
# other texts, and look at what is added to the stream, the length of $v W_O$.</details>
#
# **6.** In your plot the values of a layer are a third as large as its queries. What follows?
# <details><summary>Answer</summary>Nothing about the model: take W_V times 10 and divide W_O by
# 10, and no logit changes. The same holds for queries against keys.</details>
#
# **Next:** watching tells what a head does, not whether it matters. In lesson 12 hooks
# stop watching and start cutting: [ablation](../../docs/glossary.md#ablation), cause and
# effect, and at the end your own attention inside a real GPT-2.
#
# Words of this lesson: [hook](../../docs/glossary.md#hook),
# [activation](../../docs/glossary.md#activation),
# [attention scores](../../docs/glossary.md#attention-scores),
# [attention sink](../../docs/glossary.md#attention-sink),
# [causal mask](../../docs/glossary.md#causal-mask).
