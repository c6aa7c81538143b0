# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08b · A model that writes
#
# You have written attention, hidden the future, split it into heads and checked its gradients. So
# far it has mostly averaged noise. In this lesson it goes into a model, the model reads five children's
# books, letter by letter, and after a minute or two it writes. Badly, but in words that it has
# spelled by itself.
#
# Training is where bugs are quiet. A wrong mask raises no error; the loss falls even faster. So we
# do what experienced people do: not "run it and see", but a row of checks, each before the next,
# from the one that takes a second to the one that takes minutes. Afterwards we break the model on
# purpose, three times, and learn to tell from a curve what is broken.
#
# **After this lesson you can**
#
# * build the rest of a GPT around attention: norms, MLP, embeddings, blocks;
# * say what the loss must be before the first step, and after learning one batch by heart;
# * cut targets that are shifted exactly once, and beat a table of letter pairs;
# * draw from a model with temperature, top-k and top-p;
# * recognise a missing mask by its loss curve, and know what a loss curve does not show;
# * open your own model with the tools of lessons 09 to 12.
#
# | | |
# |---|---|
# | Time | 100 minutes, four of them waiting |
# | Difficulty | ●●●●○ |
# | Importance | ●●●●● |
#
# Eight exercises, nine points. It builds on **your** `MultiHeadSelfAttention` of lesson 05, in
# `transformer_lm/modeling_attention.py`; if that file is still empty, go back to the end of
# lesson 05, section 3. The solutions come with the whole course, in `solutions/08_writing.ipynb`.

# %% role="setup"
import math
import tempfile
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder import check, hint
from transformer_lm import plots
from transformer_lm.books import TEXT, read_books
from transformer_lm.characters import Characters
from transformer_lm.figures import show, show_live
from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.modeling_lm import load_language_model, save_gpt2
from transformer_lm.pretrained import load_gpt2
from transformer_lm.sampling import generate, greedy
from transformer_lm.training import (
    Settings,
    checkpoint_path,
    draw_batch,
    evaluate,
    load_checkpoint,
    mean_loss,
    train,
)

# %%
hint("writing.norm", 1)

# %% [markdown]
# ## 1. The parts around attention
#
# Attention moves things between tokens. Three more parts make a GPT-2 of it.
#
# **A norm.** Each vector by itself is shifted to mean 0 and divided by its spread, then stretched
# by a learned `weight` and moved by a learned `bias`:
#
# $$\frac{x - \bar x}{\sqrt{\sigma^2 + \epsilon}} \odot w + b .$$
#
# $\sigma^2$ divides by $n$, not by $n - 1$. And $\epsilon$ stands *below* the root: a vector
# that does not vary at all must not divide by 0.
#
# ### Exercise 1: LayerNorm
#
# ●●○○○ · 6 minutes · 1 point
#
# By hand, without `nn.LayerNorm` and `F.layer_norm` if you can.

# %% exercise="writing.norm"
class LayerNorm(nn.Module):
    """Each vector to mean 0 and variance 1, then stretched and moved as learned."""

    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, hidden]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        mean = x.mean(dim=-1, keepdim=True)  # [batch_size, seq_len, 1]
        variance = x.var(dim=-1, keepdim=True, unbiased=False)  # [batch_size, seq_len, 1]
        x = (x - mean) / torch.sqrt(variance + self.eps)  # [batch_size, seq_len, hidden]
        return x * self.weight + self.bias  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="writing.norm" points=1
check("writing.norm")

# %% [markdown]
# **An MLP.** What attention has brought to a token is worked on there, by each token for itself:
# four times as wide (`up`), a bend, and back (`down`). The bend of GPT-2 is gelu in an
# approximation by a tanh: `F.gelu(..., approximate="tanh")`.
#
# ### Exercise 2: the MLP
#
# ●○○○○ · 5 minutes · 1 point

# %% exercise="writing.mlp"
class MLP(nn.Module):
    """Each token by itself: four times as wide, a bend, and back."""

    def __init__(self, hidden):
        super().__init__()
        ### BEGIN SOLUTION
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        ### END SOLUTION

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, hidden]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        active = F.gelu(self.up(x), approximate="tanh")  # [batch_size, seq_len, 4 * hidden]
        return self.down(active)  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="writing.mlp" points=1
check("writing.mlp")

# %% [markdown]
# **A stream.** The parts do not replace a token's vector, they **add** to it. And each *reads* it
# through a norm of its own:
#
# ```
#    x ──────────────┬──────── + ───────┬──────── + ──── x
#                    │         │        │         │
#                  norm_1  attention  norm_2     mlp
#                    └────>────┘        └────>────┘
# ```
#
# The line at the top is never normalised and never replaced. Gradients run back along it as along a
# motorway, and every part can be read as "adds this" (lessons 11 and 12 live on that). The first
# transformers had their norms *on* the line, behind each sum, and needed great care to train.
#
# ### Exercise 3: the block
#
# ●●○○○ · 6 minutes · 2 points
#
# `norm_1`, `attention`, `norm_2`, `mlp`, under these names. Use the attention class that is given.

# %% exercise="writing.block" needs="writing.norm writing.mlp"
class Block(nn.Module):
    """Attention, then an MLP; each reads the normalised stream and adds to it."""

    def __init__(self, hidden, num_heads, attention=MultiHeadSelfAttention):
        """
        Args:
            hidden: int, size of the stream
            num_heads: int
            attention: a class that is called as attention(hidden, hidden, num_heads, causal=True)
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.norm_1 = LayerNorm(hidden)
        self.attention = attention(hidden, hidden, num_heads, causal=True)
        self.norm_2 = LayerNorm(hidden)
        self.mlp = MLP(hidden)
        ### END SOLUTION

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, hidden]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        ### BEGIN SOLUTION
        x = x + self.attention(self.norm_1(x))  # [batch_size, seq_len, hidden]
        return x + self.mlp(self.norm_2(x))  # [batch_size, seq_len, hidden]
        ### END SOLUTION


# %% check="writing.block" points=2
check("writing.block")

# %% [markdown]
# **Two tables.** A token begins as a row of one table, chosen by its id, plus a row of another,
# chosen by its place.
#
# ### Exercise 4: embeddings
#
# ●●○○○ · 5 minutes · 1 point

# %% exercise="writing.embed"
def embed(ids, tokens, places):
    """What the first block reads.

    Args:
        ids: LongTensor[batch_size, seq_len]
        tokens: FloatTensor[vocab_size, hidden], a row a token
        places: FloatTensor[context_length, hidden], a row a place; seq_len <= context_length
    Returns:
        FloatTensor[batch_size, seq_len, hidden]
    """
    ### BEGIN SOLUTION
    return tokens[ids] + places[: ids.shape[1]]  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="writing.embed" points=1
check("writing.embed")

# %% [markdown]
# Put together, it is a GPT-2 of your own. At the end, the stream is compared with each row of the
# *same* token table: the more alike, the larger the logit. (One matrix for reading and writing:
# lesson 09 looks at this.) All matrices begin as small random numbers, of spread 0.02.

# %%
class Writer(nn.Module):
    """A small GPT-2 out of this lesson's parts."""

    def __init__(self, vocab_size, context_length=64, hidden=96, num_layers=2, num_heads=4,
                 attention=MultiHeadSelfAttention, positions=True, dropout=0.0):
        super().__init__()
        self.vocab_size, self.context_length = vocab_size, context_length
        self.hidden, self.num_heads = hidden, num_heads
        self.token_embedding = nn.Embedding(vocab_size, hidden)
        self.position_embedding = nn.Embedding(context_length, hidden)
        self.dropout = nn.Dropout(dropout)
        blocks = (Block(hidden, num_heads, attention) for _ in range(num_layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = LayerNorm(hidden)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        if not positions:
            self.position_embedding.weight.requires_grad_(False).zero_()

    def forward(self, ids):
        """LongTensor[batch_size, seq_len] to logits [batch_size, seq_len, vocab_size]."""
        tokens, places = self.token_embedding.weight, self.position_embedding.weight
        # [vocab_size, hidden], [context_length, hidden]
        x = self.dropout(embed(ids, tokens, places))  # [batch_size, seq_len, hidden]
        for block in self.blocks:
            x = block(x)  # [batch_size, seq_len, hidden]
        return self.norm(x) @ tokens.T  # [batch_size, seq_len, vocab_size]


text, held_out = read_books()
characters = Characters(text + held_out)
ids, held_out_ids = characters.encode(text), characters.encode(held_out)  # [num_tokens] each
V = len(characters)
print(f"{len(ids):,} characters to learn from, {len(held_out_ids):,} held out, {V} different ones:")
print("".join(characters.characters).replace("\n", ""))
torch.manual_seed(0)
model = Writer(V)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
print(repr(text[:220]))

# %% [markdown]
# ## 2. Checks before the first step
#
# ### The loss at the start
#
# The model knows nothing yet. It should *say* so: all 79 characters about equally likely.
#
# **Before you run this:** which loss is that, in nats?

# %%
generator = torch.Generator().manual_seed(0)
inputs, targets = draw_batch(ids, 16, 64, generator)  # [batch_size, seq_len] each
with torch.no_grad():
    start = mean_loss(model, inputs, targets).item()
    loud = Writer(V)
    loud.token_embedding.weight.mul_(25)
    too_sure = mean_loss(loud, inputs, targets).item()
print(f"loss before the first step: {start:.3f};  ln {V} = {math.log(V):.3f}")
print(f"with an embedding 25 times as large: {too_sure:.1f}")

# %% [markdown]
# $-\ln(1/79) = \ln 79$, and it is nearly that. A loss far above $\ln V$ is a model that is *sure* of
# something before it has seen anything: the second line, where the first steps would be wasted on
# taking it back. A loss far *below* it, before any step, is a leak.
#
# ### Targets
#
# At every place the model predicts the token that follows. So targets are inputs shifted by one.
# Shifted by none, the task is to copy: the loss goes to 0 at once, and the model can do nothing.
# Shifted by two, it learns something, slowly, and writes nonsense.
#
# ### Exercise 5: cut a batch
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="writing.batch"
def cut_batch(ids, starts, seq_len):
    """Rows of a text, and what should be predicted at each place.

    Args:
        ids: LongTensor[num_tokens]
        starts: LongTensor[batch_size], where rows begin; each at most num_tokens - seq_len - 1
        seq_len: int
    Returns:
        inputs, targets: LongTensor[batch_size, seq_len] each
    """
    ### BEGIN SOLUTION
    places = starts[:, None] + torch.arange(seq_len)  # [batch_size, seq_len]
    return ids[places], ids[places + 1]  # [batch_size, seq_len] each
    ### END SOLUTION


# %% check="writing.batch" points=1
check("writing.batch")

# %%
inputs, targets = cut_batch(ids, torch.tensor([0, 41]), 24)  # [batch_size, seq_len] each
for row in (0, 1):
    print("input  ", repr(characters.decode(inputs[row])))
    print("target ", repr(characters.decode(targets[row])))

# %% [markdown]
# ### Leaks, and gradients
#
# The leak test of lesson 03, on the whole model: change one token, see which *logits* move. And
# after one backward pass, does every parameter have a gradient? One that has none will never
# learn.
#
# **Before you run this:** one kind of parameter has a gradient that is 0 but for rounding, in a
# correct model. Which? (Lesson 02 and lesson 06 know.)

# %%
@torch.no_grad()
def moved_logits(model, row):
    """moved[i, j]: the logits at place i moved when token j was changed. row: [1, seq_len]."""
    before = model(row)[0]  # [seq_len, vocab_size]
    moved = torch.zeros(row.shape[1], row.shape[1], dtype=torch.bool)  # [seq_len, seq_len]
    for j in range(row.shape[1]):
        other = row.clone()  # [1, seq_len]
        other[0, j] = (other[0, j] + 1) % V
        moved[:, j] = (model(other)[0] - before).abs().amax(dim=-1) > 1e-6  # [seq_len]
    return moved


inputs, targets = draw_batch(ids, 16, 64, generator)  # [batch_size, seq_len] each
moved = moved_logits(model, inputs[:1, :12])  # [seq_len, seq_len]
print("leaks:", moved.triu(1).any().item(), "  each token moves itself:",
      moved.diagonal().all().item())
model.zero_grad()
mean_loss(model, inputs, targets).backward()
sizes = {name: 0.0 if p.grad is None else p.grad.norm().item()
         for name, p in model.named_parameters()}
largest = max(sizes.values())
print("without gradient:", [n for n, p in model.named_parameters() if p.grad is None])
print("as good as 0:    ", [n for n, s in sizes.items() if s < 1e-6 * largest])

# %% [markdown]
# The keys' biases. They add the same to all scores of a row, and the softmax does not see what is
# added to all. It is right that they do not learn.
#
# ### One batch by heart
#
# The last check before real training, and the best. Take *one* small batch and train on it alone. A
# model with 240,000 numbers can learn 256 characters by heart. If it cannot, something is broken,
# and no amount of data will mend it.

# %%
torch.manual_seed(1)
pupil = Writer(V)
optimizer = torch.optim.AdamW(pupil.parameters(), lr=3e-3)
few = draw_batch(ids, 8, 32, torch.Generator().manual_seed(1))  # twice [batch_size, seq_len]
for step in range(121):
    loss = mean_loss(pupil, *few)  # []
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step:3}: loss {loss.item():.3f}")

# %% [markdown]
# It does not reach 0 exactly: where two rows begin alike, nobody could know how they go on.
#
# ### A table to beat
#
# What is a *good* loss? Count, for each character, which one follows how often. Such a table of
# pairs (a *bigram model*) knows nothing but the last character. Any model with attention must beat
# it, or its attention is worth nothing.
#
# ### Exercise 6: the bigram table
#
# ●●○○○ · 8 minutes · 1 point

# %% exercise="writing.bigram"
def bigram_loss(ids, held_out, vocab_size):
    """The mean loss, in nats, of a table of pairs that was counted in one text, on another.

    Each pair counts as met once more than it was, so that none is impossible.

    Args:
        ids, held_out: LongTensor[num_tokens] each
        vocab_size: int
    Returns:
        float, or a tensor []
    """
    ### BEGIN SOLUTION
    pairs = ids[:-1] * vocab_size + ids[1:]  # [num_tokens - 1]
    counts = torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size) + 1
    # [vocab_size, vocab_size]; row: a token, column: the one after it
    probs = counts / counts.sum(dim=-1, keepdim=True)  # [vocab_size, vocab_size]
    return -probs[held_out[:-1], held_out[1:]].log().mean().item()
    ### END SOLUTION


# %% check="writing.bigram" points=1
check("writing.bigram")

# %%
by_pairs = bigram_loss(ids, held_out_ids, V)
frequencies = torch.bincount(ids, minlength=V).float() + 1  # [vocab_size]
by_letters = -(frequencies / frequencies.sum())[held_out_ids].log().mean().item()
print(f"nothing known:        {math.log(V):.3f} nats a character")
print(f"how often each comes: {by_letters:.3f}")
print(f"the one before known: {by_pairs:.3f}")

# %% [markdown]
# ## 3. Training
#
# 1,000 steps of 16 rows of 64 characters. The loop is in `transformer_lm/training.py`; read it, it
# is short: draw a batch, predict, go downhill, look at held-out text. The picture is drawn again as
# training goes on.
#
# It takes one to two minutes. If you cannot wait, set `WAIT = False`: a model that was trained by
# this very cell lies on board.

# %%
WAIT = True
settings = Settings(steps=1000, batch_size=16, seq_len=64, learning_rate=4e-3, evaluate_every=100,
                    evaluation_rows=100)
levels = {"nothing known": math.log(V), "bigram table": by_pairs}
folder = tempfile.mkdtemp()
handle = None


def draw_curve(history):
    """The losses so far, in the place of the picture before."""
    global handle
    curves = {"training, each step": (range(len(history.losses)), history.losses),
              "held out": (history.evaluated_at, history.held_out_losses)}
    figure = plots.loss_curves(curves, levels=levels, title="", ylabel="nats a character")
    handle = show_live(figure, f"Loss curves after {len(history.losses)} of {settings.steps} steps, "
                       f"falling from ln {V}; held out at {history.held_out_losses[-1]:.2f}, "
                       "below the dotted line of the bigram table.", handle)


torch.manual_seed(0)
model = Writer(V)
if WAIT:
    history = train(model, ids, held_out_ids, settings, folder=folder, checkpoint_steps=(0, 100),
                    watch=draw_curve, progress=False)
else:
    model = load_language_model(TEXT.parent / "writer", MultiHeadSelfAttention)
final = evaluate(model, held_out_ids, seq_len=64)
print(f"held out: {final:.3f} nats a character; the bigram table had {by_pairs:.3f}")
print(f"as if choosing among {math.exp(final):.1f} characters, not among {V}")

# %% [markdown]
# **Figure.** Each step's loss (jagged: every batch is different) and the loss on held-out pages.
# Both fall steeply at first, from $\ln 79$, and cross the bigram line at about step 200. They stay close
# together, for in 1,000 steps the model has seen each page about once: there is nothing yet that
# it could have learnt by heart.
#
# ## 4. Letting it write
#
# A model gives probabilities; *writing* is drawing from them, appending, and asking again. Always
# taking the best is called greedy, and goes round in circles. Drawing from all of them, now and
# then a character is a misfit, and the model goes on from its own misfits. Three knobs lie between.
#
# * **Temperature** $t$: softmax of logits $/\, t$. Below 1 sharper, above 1 flatter.
# * **Top-k**: only the $k$ best may be drawn.
# * **Top-p**: only as many of the best as together have probability $p$: few where the model is sure,
#   many where it is not. The one that *reaches* $p$ is in.
#
# ### Exercise 7: temperature and top-k
#
# ●●○○○ · 7 minutes · 1 point

# %% exercise="writing.top_k"
def top_k(logits, temperature, k):
    """The distribution over the k best tokens, at this temperature.

    Args:
        logits: FloatTensor[batch_size, vocab_size]
        temperature: float, above 0
        k: int, 1 or more; where it is more than vocab_size, all tokens are kept
    Returns:
        FloatTensor[batch_size, vocab_size], rows summing to 1, 0 for all other tokens
    """
    ### BEGIN SOLUTION
    k = min(k, logits.shape[-1])
    smallest = logits.topk(k, dim=-1).values[:, -1:]  # [batch_size, 1]
    logits = logits.masked_fill(logits < smallest, -math.inf)  # [batch_size, vocab_size]
    return torch.softmax(logits / temperature, dim=-1)  # [batch_size, vocab_size]
    ### END SOLUTION


# %% check="writing.top_k" points=1
check("writing.top_k")

# %% [markdown]
# ### Exercise 8: top-p
#
# ●●●○○ · 9 minutes · 1 point

# %% exercise="writing.top_p"
def top_p(logits, p):
    """The distribution over the fewest best tokens that together have probability p or more.

    Args:
        logits: FloatTensor[batch_size, vocab_size]
        p: float, 0 < p < 1
    Returns:
        FloatTensor[batch_size, vocab_size], rows summing to 1, 0 for all other tokens
    """
    ### BEGIN SOLUTION
    probs = torch.softmax(logits, dim=-1)  # [batch_size, vocab_size]
    ranked, order = probs.sort(dim=-1, descending=True)  # [batch_size, vocab_size] each
    ahead = ranked.cumsum(dim=-1) - ranked  # [batch_size, vocab_size]
    stays = ranked * (ahead < p)  # [batch_size, vocab_size]
    stays = stays / stays.sum(dim=-1, keepdim=True)  # [batch_size, vocab_size]
    return torch.zeros_like(probs).scatter(-1, order, stays)  # [batch_size, vocab_size]
    ### END SOLUTION


# %% check="writing.top_p" points=1
check("writing.top_p")

# %%
prompt = "Alice looked at the "
rules = {
    "the model's own": partial(top_k, temperature=1.0, k=V),
    "temperature 0.5": partial(top_k, temperature=0.5, k=V),
    "top-k, k = 5": partial(top_k, temperature=1.0, k=5),
    "top-p, p = 0.8": partial(top_p, p=0.8),
}
figure, axes = plt.subplots(2, 4, figsize=(13, 4.8), sharey="row")
for row_of_axes, begun in zip(axes, (prompt, prompt[:-2]), strict=True):
    with torch.no_grad():
        logits = model(characters.encode(begun)[None])[:, -1]  # [1, vocab_size]
    order = logits[0].argsort(descending=True)[:15]  # [15]
    for axis, (name, rule) in zip(row_of_axes, rules.items(), strict=True):
        probs = rule(logits)[0]  # [vocab_size]
        axis.bar(range(15), probs[order])
        axis.set(xticks=range(15), title=f"{name}: {int((probs > 0).sum())} possible")
        axis.set_xticklabels(["␣" if c == " " else c for c in characters.decode(order)])
        axis.title.set_fontsize(10)
    row_of_axes[0].set_ylabel(f"probability after\n{begun!r}", fontsize=8)
figure.tight_layout()
show(figure, f"Probabilities of the 15 likeliest characters after {prompt!r} and after "
     f"{prompt[:-2]!r} under four rules. Where the model is unsure, top-p keeps many characters; "
     "where it is sure, hardly any. Top-k keeps five in both.")
for name, rule in {"greedy": greedy, **rules}.items():
    written = generate(model, characters.encode(prompt)[None], 160, rule, context_length=64)
    print(f"--- {name}\n{characters.decode(written[0])}")

# %% [markdown]
# **Figure.** Above, at the beginning of a word, where nearly any letter may come. Below, two letters
# earlier in the prompt, after "th", where mostly "e" does. Top-k keeps five in both places,
# too few above and too many below. Top-p keeps what the place asks for.
#
# In the texts you see why one draws at all: greedy goes round in circles. The model's own distribution
# trips over its unlikely letters. With the tail cut off, it writes words that exist, most of the
# time, and sentences that mean nothing. It has read one megabyte.
#
# And how did it get there? The same prompt at steps 0, 100 and 1,000.

# %%
for step in (0, 100, 1000) if WAIT else ():
    early = Writer(V)
    load_checkpoint(checkpoint_path(folder, step), early)
    written = generate(early, characters.encode(prompt)[None], 130, partial(top_p, p=0.9),
                       context_length=64)
    print(f"--- step {step}\n{characters.decode(written[0])}")

# %% [markdown]
# Noise; then letters in about their true numbers, in pieces of about the right length; then words, and
# here and there a few in a row that belong together. Nobody told it that there are words.
#
# One more check, easily forgotten: **evaluation mode**. A model with dropout says something else
# each time, until it is told that training is over.

# %%
torch.manual_seed(2)
shaky = Writer(V, dropout=0.1)
row = characters.encode(prompt)[None]  # [1, seq_len]
with torch.no_grad():
    print("training mode, twice the same:  ", torch.equal(shaky(row), shaky(row)))
    shaky.eval()
    print("evaluation mode, twice the same:", torch.equal(shaky(row), shaky(row)))

# %% [markdown]
# ## 5. Sabotage
#
# Four short runs, 300 steps on rows of 16 characters. One is sound. In one the causal **mask** is
# missing, in one the **positions**, in one the **scale** $1/\sqrt{d}$. The curves are called A to D.
#
# **Before you run this:** which of the four will have the lowest loss? Which two will be hard to tell
# apart?

# %%
class NoMask(MultiHeadSelfAttention):
    """Sabotage: every token sees every token."""

    def __init__(self, input_size, hidden, num_heads, causal=True):
        super().__init__(input_size, hidden, num_heads, causal=False)


class NoScale(MultiHeadSelfAttention):
    """Sabotage: queries are made larger by just what the scale makes them smaller."""

    def __init__(self, input_size, hidden, num_heads, causal=True):
        super().__init__(input_size, hidden, num_heads, causal=causal)
        root = math.sqrt(hidden // num_heads)
        self.q.register_forward_hook(lambda layer, given, q: q * root)


short = Settings(steps=300, batch_size=32, seq_len=16, learning_rate=4e-3, evaluate_every=30,
                 evaluation_rows=240)
runs = {"A": {}, "B": {"attention": NoScale}, "C": {"attention": NoMask}, "D": {"positions": False}}
broken, curves = {}, {}
for letter, how in runs.items():
    torch.manual_seed(0)
    broken[letter] = Writer(V, **how)
    log = train(broken[letter], ids, held_out_ids, short, progress=False)
    curves[letter] = (log.evaluated_at, log.held_out_losses)
    print(f"{letter}: held out {log.held_out_losses[-1]:.3f} after {short.steps} steps")
figure = plots.loss_curves(curves, levels={"bigram table": by_pairs}, title="",
                           ylabel="held out, nats a character")
show(figure, "Held-out loss of four runs over 300 steps. C falls far below the others, nearly to 0; "
     "the others cross the bigram table, D stays above A, and B lies close to A.")

# %% [markdown]
# **Figure.** C gives itself away: 0.186 where the others have more than 2. No honest model guesses
# letters that well. It has no mask and reads the answer off the next place. If a loss is too good to be
# true, look for the leak. A is the sound one, with 2.170. D, at 2.315, has no positions: it knows which
# letters came before, and only vaguely in which order.
#
# And B, without the scale? 2.178. **The curve does not show it.** A difference of eight thousandths is
# less than what another seed makes (lesson 08, section 7); a model of this size simply learns smaller
# queries. A loss curve can accuse, but it can acquit nobody. What finds B is the check of lesson 05, which
# compares values.
#
# **Before you run this:** C has by far the best loss. Does it write best? (The prompt has 20
# characters. These models were trained on rows of 16, so they read the last 16 of what is there.)

# %%
for letter in "ACD":
    written = generate(broken[letter], row, 70, partial(top_p, p=0.9), context_length=16)
    print(letter, repr(characters.decode(written[0])))
print("C leaks:", moved_logits(broken["C"], row[:, :12]).triu(1).any().item())

# %% [markdown]
# It does not. While it writes, there is no next letter to be looked up, and it has never learnt to do
# without. The leak test takes a moment, and would have said so before the first step.
#
# ## 6. What do your heads look at?
#
# Two layers, four heads each. We call your attention with `return_attention=True`, block by block,
# and look at the eight maps of one sentence.

# %%
sentence = '"I am not a cat," said Alice.'
row = characters.encode(sentence)[None]  # [1, seq_len]
maps = []
with torch.no_grad():
    tokens, places = model.token_embedding.weight, model.position_embedding.weight
    # [vocab_size, hidden], [context_length, hidden]
    x = embed(row, tokens, places)  # [1, seq_len, hidden]
    for block in model.blocks:
        _, probs = block.attention(block.norm_1(x), return_attention=True)
        # probs [num_heads, seq_len, seq_len]
        maps.append(probs)
        x = block(x)  # [1, seq_len, hidden]
maps = torch.stack(maps)  # [num_layers, num_heads, seq_len, seq_len]
figure, axes = plt.subplots(2, 4, figsize=(13, 6.8))
letters = ["␣" if c == " " else c for c in sentence]
for layer in range(2):
    for head in range(4):
        axis = axes[layer, head]
        axis.imshow(maps[layer, head], vmin=0, vmax=1)
        axis.set_title(f"layer {layer}, head {head}", fontsize=9)
        axis.set(xticks=range(len(letters)), yticks=range(len(letters)))
        axis.set_xticklabels(letters, fontsize=5)
        axis.set_yticklabels(letters, fontsize=5)
figure.tight_layout()
show(figure, "Attention of eight heads on a sentence, causal: some follow the diagonal or the place "
     "before it, others spread over the last word or look at spaces and speech marks.")
behind = [torch.stack([maps[layer, head].diagonal(-k).mean() for k in range(6)])
          for layer in range(2) for head in range(4)]
print("mean weight on:   itself  1 back  2 back  3 back  4 back  5 back")
for i, weights in enumerate(behind):
    print(f"layer {i // 4}, head {i % 4}:  " + "  ".join(f"{w:6.2f}" for w in weights.tolist()))

# %% [markdown]
# **Figure.** One map a head, queries down and keys across; dark is 0 and yellow 1. Nobody told these
# heads what to look at. In layer 0, head 1 looks one letter back (0.61 of
# its weight on average), head 3 does too, less strictly (0.44), and head 0 looks two back (0.29) and
# around it. So a letter learns which letters stand before it, and this is how the model beats a table of
# pairs. Layer 1 reads a stream into which these heads have written, and goes by distance no more: no
# number in its four rows is above 0.19. Its head 1 has a bright column: the letters after `,"` look back
# at the speech mark that closed. That this is how it knows that "said" may follow is a guess. Lesson
# 12 shows how one tests such guesses.
#
# ## 7. The variants of lesson 08, for real
#
# A modern attention: queries and keys are turned (RoPE), four heads of queries share two of keys and
# values (GQA), and keys and values are kept (a cache). It has the same interface, so it takes one
# argument to swap it in.

# %%
class ModernAttention(nn.Module):
    """Rotated queries and keys, shared keys and values, and a cache that can be switched on."""

    def __init__(self, input_size, hidden, num_heads, causal=True, kv_heads=2):
        super().__init__()
        self.head_size, self.sharing = hidden // num_heads, num_heads // kv_heads
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, kv_heads * self.head_size)
        self.v = nn.Linear(input_size, kv_heads * self.head_size)
        self.mix = nn.Linear(hidden, hidden)
        self.caching, self.past = False, None

    def turn(self, x, start):
        """Rotate the pairs (i, i + head_size / 2) of x [batch_size, heads, seq_len, head_size]."""
        half = self.head_size // 2
        speeds = 10000.0 ** (-torch.arange(half) / half)  # [head_size / 2]
        angles = torch.arange(start, start + x.shape[2])[:, None] * speeds
        # [seq_len, head_size / 2]
        a, b = x.chunk(2, dim=-1)  # [batch_size, heads, seq_len, head_size / 2] each
        cos, sin = angles.cos(), angles.sin()  # [seq_len, head_size / 2] each
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        # [batch_size, heads, seq_len, head_size]

    def forward(self, x):
        start = 0 if self.past is None else self.past[0].shape[2]
        q, k, v = (t.unflatten(-1, (-1, self.head_size)).transpose(1, 2)
                   for t in (self.q(x), self.k(x), self.v(x)))
        # [batch_size, num_heads, seq_len, head_size], twice with kv_heads
        q, k = self.turn(q, start), self.turn(k, start)
        if self.past is not None:
            k, v = (torch.cat(both, dim=2) for both in zip(self.past, (k, v), strict=True))
            # [batch_size, kv_heads, k_len, head_size] each
        if self.caching:
            self.past = (k, v)
        q_len, k_len = q.shape[2], k.shape[2]
        k, v = (t.repeat_interleave(self.sharing, dim=1) for t in (k, v))
        # [batch_size, num_heads, k_len, head_size] each
        future = torch.ones(q_len, k_len).triu(k_len - q_len + 1).bool()  # [q_len, k_len]
        scores = q @ k.transpose(-2, -1) / self.head_size**0.5
        # [batch_size, num_heads, q_len, k_len]
        probs = scores.masked_fill(future, -math.inf).softmax(-1)
        # [batch_size, num_heads, q_len, k_len]
        return self.mix((probs @ v).transpose(1, 2).flatten(2))  # [batch_size, q_len, hidden]


torch.manual_seed(0)
modern = Writer(V, attention=ModernAttention, positions=False)
log = train(modern, ids, held_out_ids, short, progress=False)
print(f"after {short.steps} steps, held out:")
print(f"  yours, learned positions: {curves['A'][1][-1]:.3f}")
print(f"  RoPE, two heads of keys:  {log.held_out_losses[-1]:.3f}")

# %%
@torch.no_grad()
def write_with_cache(model, ids, num_tokens):
    """Greedy; each token goes through the model once. ids: [1, seq_len]."""
    tokens_read = 0
    for block in model.blocks:
        block.attention.caching, block.attention.past = True, None
    new = ids  # [1, seq_len]
    for _ in range(num_tokens):
        tokens_read += new.shape[1]
        new = model(new)[:, -1:].argmax(dim=-1)  # [1, 1]
        ids = torch.cat((ids, new), dim=1)  # [1, seq_len + 1]
    for block in model.blocks:
        block.attention.caching, block.attention.past = False, None
    return ids, tokens_read


row = characters.encode(prompt)[None]  # [1, seq_len]
with_cache, read = write_with_cache(modern, row, 40)
without = generate(modern, row, 40, greedy)
print("the same text with and without cache:", torch.equal(with_cache, without))
print(f"tokens that went through the model: {read} with it, "
      f"{sum(range(row.shape[1], row.shape[1] + 40))} without")

# %% [markdown]
# 2.134 and 2.170: a little better, with half as many keys and values and no table of positions. (One run
# each; you know what that is worth.) And with the cache each token goes through the model once, 59 instead
# of 1,580, for the same text to the letter.
#
# ## 8. Keep it
#
# Your model has GPT-2's parts under other names. `save_gpt2` writes it in GPT-2's own format, and
# checks that both compute the same. From then on every tool for GPT-2 can open it.

# %%
save_gpt2(model, "my_model", characters)
gpt2, tokenizer = load_gpt2("my_model")
row = characters.encode(sentence)[None]  # [1, seq_len]
with torch.no_grad():
    ours, theirs = model(row), gpt2(row).logits  # [1, seq_len, vocab_size] each
print(f"largest difference of the logits: {(ours - theirs).abs().max():.0e}")
print(gpt2.config.n_layer, "layers,", gpt2.config.n_head, "heads,",
      gpt2.config.vocab_size, "tokens; ids agree:",
      tokenizer(sentence)["input_ids"] == row[0].tolist())

# %% [markdown]
# Lessons 09 to 12 name their model in the first cell that loads one: put the path of this folder
# in place of that name (or set `COURSE_MODEL` to it), and look into a model that you have made
# from nothing. (A character is a token there, and it reads 64 at most: give the lessons shorter
# texts, in the 79 characters of the books.)
#
# ## Did it stick?
#
# **1.** Your loss before the first step is 11, with 79 characters. What is wrong?
# <details><summary>Answer</summary>The model is sure of itself before it knows anything: its logits
# are too large. Look at the initial spread of the embedding, and at the last norm.</details>
#
# **2.** Training loss falls to 0.1 within 200 steps; what the model writes is nonsense. Two suspects?
# <details><summary>Answer</summary>The mask (tokens see the one they should predict) and the targets
# (not shifted). The leak test tells them apart: only the first leaks.</details>
#
# **3.** One batch cannot be learnt by heart. Is more data the cure?
# <details><summary>Answer</summary>No. Something is broken: a part without gradient, a learning rate,
# targets that do not belong to the inputs.</details>
#
# **4.** Held-out loss is 2.5 and stays there; the bigram table has about the same. What does that say?
# <details><summary>Answer</summary>The model uses the last character and nothing before it. Its
# attention does not contribute: look there.</details>
#
# **5.** Why can the loss curve not tell you that positions are missing?
# <details><summary>Answer</summary>It only says how good a model is, not why. A little worse might be
# a smaller model or an unlucky seed. What a part does is found by tests that ask for it.</details>
#
# ## What comes next
#
# [Lesson 09](../09_inside_gpt2/09_inside_gpt2.ipynb) opens a GPT-2, from its front door to its back. It
# may be yours.
#
# Words from this lesson in the glossary: [layer normalization](../../docs/glossary.md#layer-normalization),
# [embedding](../../docs/glossary.md#embedding), [temperature](../../docs/glossary.md#temperature),
# [sampling](../../docs/glossary.md#sampling), [top-k](../../docs/glossary.md#top-k),
# [top-p](../../docs/glossary.md#top-p), [logits](../../docs/glossary.md#logits).
