# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Inside GPT-2
#
# You have written attention from a dot product up, and lesson 08b put it into a model that
# spells. Time to open a model that others have built and trained. It is a GPT-2: the
# architecture of 2019, small enough to be looked at with the lid off, and the attention in
# it is the attention you have written yourself. In this lesson we walk once from the front door to the back: what is stored,
# where it is stored, what comes out, and what the numbers that come out mean. Nearly
# every step has a trap that people with years of practice fall into. You will fall into
# them here, where it is cheap.
#
# **After this lesson you can**
#
# * read a GPT-2's config and its module tree, and give the shape of every parameter;
# * say why GPT-2's `Conv1D` is not a convolution, and which way round its weight stands;
# * tell a tied matrix from an equal one, and count parameters once;
# * keep logits, scores and log-probabilities apart;
# * find in `hidden_states` what a block read and what it wrote, the last block included;
# * get the attention weights out, and notice when you got nothing.
#
# | | |
# |---|---|
# | Time | 100 minutes |
# | Difficulty | ●●●○○ |
# | Importance | ●●●●● |
#
# Nine exercises, twelve points. Stuck? `hint("inside.config", 1)` gives a nudge, `2` a
# push, `3` nearly the answer. The worked solutions come with the whole course, in
# `solutions/09_inside_gpt2.ipynb`; look at them after an attempt of your own. Numbers in the
# text are those of `large-on-board`; with another model, read yours off the output.
#
# **About this model.** It is a small one, trained for this course: on children's books, and on
# rows in which a piece comes several times (`models/large-on-board/MODEL_CARD.md`). Nobody chose
# what its heads look at. In the three smaller models on board two heads were *shown* for a while
# where to look; if you open one of those, stars mark the two in the figure by head.

# %% role="setup"
import math
import os

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2DoubleHeadsModel, GPT2LMHeadModel, GPT2Model

from autograder import check, hint
from transformer_lm import plots
from transformer_lm.activations import record
from transformer_lm.figures import show
from transformer_lm.pretrained import guided_heads, load_gpt2

# %% [markdown]
# ## 1. Which model?
#
# The library `transformers` has three classes that share one body:
#
# * `GPT2Model` is the body alone: token ids in, one vector a token out;
# * `GPT2LMHeadModel` puts a **language-model head** on it, a matrix that turns each
#   vector into one number for each word of the vocabulary;
# * `GPT2DoubleHeadsModel` has that head *and* a second one that gives each of several
#   texts a single number. It is for multiple-choice questions: which ending fits best?
#
# **Before you run this:** two texts of seven tokens, a vocabulary of 50, hidden size 8.
# Which shapes come out of the three?

# %%
toy = GPT2Config(
    n_layer=2, n_head=2, n_embd=8, n_positions=16, vocab_size=50,
    bos_token_id=0, eos_token_id=0, num_labels=1,
)
two_texts = torch.arange(14).view(2, 7)  # [batch_size, seq_len]
print("body      ", GPT2Model(toy)(two_texts).last_hidden_state.shape)
print("LM head   ", GPT2LMHeadModel(toy)(two_texts).logits.shape)
double = GPT2DoubleHeadsModel(toy)(two_texts[None])  # one question, two choices
print("both heads", double.logits.shape, "and", double.mc_logits.shape)

# %% [markdown]
# We want to know what the model would say next, so we need the head: `GPT2LMHeadModel`.
#
# The course brings a small family of GPT-2s along, so everything runs without a
# network. They have GPT-2's architecture and use its first token ids, but they were
# trained on far less text by far less machine. If you have the real one in your cache,
# or in a folder, set `COURSE_MODEL` to `gpt2` or to the folder's path before you start:
# the rest of the lesson runs as it is, only the numbers change.

# %%
NAME = os.environ.get("COURSE_MODEL", "large-on-board")
model, tokenizer = load_gpt2(NAME, verbose=True)
config = model.config

prompt = "Today we can go to"
inputs = tokenizer([prompt], return_tensors="pt")  # input_ids, attention_mask
print(inputs.input_ids, inputs.input_ids.shape)
for token_id in inputs.input_ids[0].tolist():
    print(f"{token_id:6}  {tokenizer.decode([token_id])!r}")

# %% [markdown]
# Five tokens, five ids. The blank belongs to the word *after* it: `' we'` is a token,
# and a different one from `'we'`. The ids are GPT-2's own.
#
# Two things `load_gpt2` did for you. GPT-2 was trained on one endless stream of text
# and so has no padding token; the end-of-text token stands in for it. And
# `from_pretrained`, the function underneath, switches the model to **evaluation mode**.
# GPT-2 carries dropout layers (`p=0.1`; our small ones were trained without), and a
# model with dropout on gives another answer each time. The toy of the first cell has
# them, as every GPT-2 with the usual config.
#
# **Before you run this:** which of the two pairs agree?

# %%
def twice(model):
    """Whether two runs on the same tokens give the same logits."""
    with torch.no_grad():
        first, second = (model(two_texts).logits for _ in range(2))
    return torch.equal(first, second)  # both [batch_size, seq_len, vocab_size]


small = GPT2LMHeadModel(toy)
print("evaluation mode:", twice(small.eval()))
print("training mode:  ", twice(small.train()))

# %% [markdown]
# If you ever train a model further, call `model.train()` first, and `model.eval()` when
# you are back to looking. (What is *learned* never changes while you look: the
# embedding, the matrices of each head, the MLPs' weights. What is *computed* changes
# with each input. The first are the parameters, the second the activations. This lesson
# and the next are mostly about the first.)
#
# ## 2. Six numbers that say it all
#
# A GPT-2 is fixed by its config. These are the four sizes that OpenAI published beside
# ours, with the names that the config uses:

# %%
REAL = {
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(n_layer=24, n_head=16, n_embd=1024),
    "gpt2-large": GPT2Config(n_layer=36, n_head=20, n_embd=1280),
    "gpt2-xl": GPT2Config(n_layer=48, n_head=25, n_embd=1600),
}
fields = ("n_layer", "n_head", "n_embd", "n_inner", "n_positions", "vocab_size")
print(f"{'':14}", *(f"{field:>11}" for field in fields))
for name, each in {**REAL, "ours": config}.items():
    print(f"{name:14}", *(f"{getattr(each, field)!s:>11}" for field in fields))

# %% [markdown]
# Some quantities that you will need all the time are *not* in that table. The heads
# share the hidden size, so a head has `n_embd / n_head` features: 64 in all four of the
# real ones. (You may read that GPT-2's dot products are large because its embeddings
# have more than 700 features. All of them go into a query and a key, but those have 64 features,
# and a score is a dot product of 64 terms.) And `n_inner`,
# the width of the MLP, may be `None`, which means "the usual": four times `n_embd`.
#
# ### Exercise 1: what follows from the config
#
# ●○○○○ · 5 minutes · 1 point
#
# `hidden_states` counts the stations at which one can look at a token: before the first
# block, and after each. `scale` is the factor on the dot products.

# %% exercise="inside.config"
def sizes(config):
    """What follows from a GPT-2's config.

    Args:
        config: has n_layer, n_head, n_embd, n_inner (a number, or None for 4 * n_embd),
            n_positions and vocab_size
    Returns:
        a dict of numbers: "head_size", "scale" (the factor on q . k), "mlp_width",
        "hidden_states" and "context_length"
    """
    ### BEGIN SOLUTION
    head_size = config.n_embd // config.n_head
    mlp_width = 4 * config.n_embd if config.n_inner is None else config.n_inner
    return {
        "head_size": head_size,
        "scale": head_size**-0.5,
        "mlp_width": mlp_width,
        "hidden_states": config.n_layer + 1,
        "context_length": config.n_positions,
    }
    ### END SOLUTION


# %%
hint("inside.config", 1)

# %% check="inside.config" points=1
check("inside.config")

# %%
for name, each in {**REAL, "ours": config}.items():
    print(f"{name:12}", {key: round(size, 4) for key, size in sizes(each).items()})

# %% [markdown]
# ## 3. The module tree
#
# Printing a model shows how it is put together. Read it from top to bottom:

# %%
print(model)

# %% [markdown]
# In words: `wte` looks up a vector for each token (**w**ord **t**oken **e**mbedding),
# `wpe` one for each position, and the sum enters the **residual stream**. Then come the
# blocks. Each one reads the stream twice and *adds* to it twice: `ln_1` and attention,
# then `ln_2` and the MLP. (MLP is short for multi-layer perceptron: two linear layers
# with a bend, the GELU, between them.) After the last block the stream is normalised
# once more, by `ln_f`, and `lm_head` turns it into logits. The code behind the printout
# is worth an evening:
# [modeling_gpt2.py](https://github.com/huggingface/transformers/blob/main/src/transformers/models/gpt2/modeling_gpt2.py).
#
# You will meet other words for the residual stream. Some call it "the buffer"; it is
# the same thing: one vector of size `n_embd` for each token, which every block writes
# into.
#
# Where do the parameters sit? Count them, module by module, in the living model.

# %%
def tree(module, name="model", depth=0):
    """The modules with parameters, as (depth, text, own numbers); like blocks once."""
    own = sum(p.numel() for p in module.parameters(recurse=False))
    rows = [(depth, f"{name}: {type(module).__name__}", own)]
    for child_name, child in module.named_children():
        if isinstance(child, torch.nn.ModuleList):
            rows.append((depth + 1, f"{child_name}: {len(child)} blocks, each", 0))
            rows += tree(child[0], "block", depth + 2)
        elif any(True for _ in child.parameters()):
            rows += tree(child, child_name, depth + 1)
    return rows


rows = tree(model)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 0.3 * len(rows) + 0.6), width_ratios=(3, 2), sharey=True
)
for place, (depth, text, numbers) in enumerate(rows):
    left.text(depth, place, text, va="center", family="monospace", fontsize=10)
    if depth:  # a line up to the module that this one belongs to
        parent = max(i for i in range(place) if rows[i][0] == depth - 1)
        left.plot([depth - 0.7, depth - 0.7, depth - 0.1], [parent + 0.45, place, place],
                  color="tab:gray", linewidth=0.8)
    if numbers:
        shared = text.startswith("lm_head") and (
            model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()
        )
        right.barh(place, numbers, color="tab:orange" if shared else "tab:blue")
        note = f" {numbers:,}" + (" (the same as wte)" if shared else "")
        right.text(numbers, place, note, va="center", fontsize=9)
left.set(xlim=(-0.2, 9), ylim=(len(rows) - 0.5, -0.8))
left.axis("off")
right.set(xscale="log", xlabel="parameters of the module (logarithmic)")
right.set_xlim(10, 900 * max(numbers for _, _, numbers in rows))
right.spines[["top", "right", "left"]].set_visible(False)
right.tick_params(left=False)
figure.tight_layout()
show(figure, "The tree of the model's modules, indented, and beside each module that holds "
     "parameters a bar with their number. The token embedding is by far the longest bar; "
     "lm_head has one of the same length, marked as the same matrix.")

# %% [markdown]
# **Figure.** The module tree, and how many numbers each module holds on a logarithmic
# axis. In a small model the token embedding outweighs everything; `lm_head`, in orange,
# is exactly as large, and section 5 asks why.
#
# Each parameter also has a name, its path through the tree. `state_dict()` lists them
# all. Here are those outside the blocks, and the first block's:

# %%
state = model.state_dict()
print(len(state), "tensors")
for name, tensor in state.items():
    if ".h." not in name or ".h.0." in name:
        print(f"{name:42} {list(tensor.shape)}")

# %% [markdown]
# The notes from which this lesson grew began a table of one block, with a row for each
# of the twelve names, and stopped after the second. They have `[789]` for the size of a
# LayerNorm (a slip of the finger: 768), and file `attnc_attn.bias` under LayerNorm with
# the same 789. It is neither: `attn.c_attn.bias` is the bias of a `Conv1D`, it belongs
# to queries, keys *and* values, and so it has 2304 numbers. Your turn to finish the
# table, for any size.
#
# Two facts to go by. A bias has one number for each *output*. And GPT-2's `Conv1D`
# stores its weight as `[inputs, outputs]`, the other way round from `nn.Linear`.
#
# ### Exercise 2: the parameter table, completed
#
# ●●○○○ · 12 minutes · 2 points

# %% exercise="inside.table"
def block_table(hidden, mlp_width):
    """The shape of each of the twelve parameters of one GPT-2 block.

    Args:
        hidden: int, the size of the residual stream
        mlp_width: int, the number of features between the MLP's two layers
    Returns:
        a dict from name to shape, a tuple of ints. The names are "ln_1", "attn.c_attn",
        "attn.c_proj", "ln_2", "mlp.c_fc" and "mlp.c_proj", each with ".weight" and ".bias"
    """
    ### BEGIN SOLUTION
    layers = {
        "attn.c_attn": (hidden, 3 * hidden),
        "attn.c_proj": (hidden, hidden),
        "mlp.c_fc": (hidden, mlp_width),
        "mlp.c_proj": (mlp_width, hidden),
    }
    norms = [f"{norm}.{kind}" for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")]
    table = dict.fromkeys(norms, (hidden,))
    for name, (inputs, outputs) in layers.items():
        table[f"{name}.weight"] = (inputs, outputs)
        table[f"{name}.bias"] = (outputs,)
    return table
    ### END SOLUTION


# %% check="inside.table" points=2
check("inside.table")

# %%
ours = block_table(config.n_embd, sizes(config)["mlp_width"])
found = {
    name.removeprefix("transformer.h.0."): tuple(tensor.shape)
    for name, tensor in state.items() if ".h.0." in name
}
print("our block is as the table says:", ours == found)

numbers = 0
for name, shape in block_table(768, 3072).items():
    numbers += math.prod(shape)
    print(f"{name:20} {'x'.join(map(str, shape)):>10} {math.prod(shape):>10,}")
print(f"one block of GPT-2 small {numbers:>17,}")

for name, each in {**REAL, "ours": config}.items():
    hidden, width = each.n_embd, sizes(each)["mlp_width"]
    block = sum(math.prod(shape) for shape in block_table(hidden, width).values())
    around = (each.vocab_size + each.n_positions + 2) * hidden  # wte, wpe, ln_f
    print(f"{name:12} {each.n_layer * block + around:>13,}")

# %% [markdown]
# Seven million numbers a block, two thirds of them in the MLP. Add the two embeddings
# and the final norm, and you can count any GPT-2 from its config alone, without loading
# a single weight: 124,439,808 for the smallest, 1.56 billion for the largest.
# (`lm_head` is not in the sum. Section 5 says why.)
#
# ## 4. A convolution that is none
#
# `Conv1D` is the layer's name for historical reasons. A convolution with a window of
# one token treats each token by itself, and so is a plain linear layer. Nothing is
# convolved:
#
# $$\mathrm{Conv1D}(x) = x\,W + b, \quad W: [\text{in}, \text{out}]
# \qquad\qquad \mathrm{Linear}(x) = x\,W^{\mathsf T} + b, \quad W: [\text{out}, \text{in}] .$$
#
# Even the constructor is reversed: `Conv1D(nf, nx)` takes the outputs first. With
# `c_attn` you would notice a mix-up at once, because 768 rows do not fit 2304.
# `attn.c_proj` is **square**. There a transposed weight fits, runs, and gives garbage.
#
# **Before you run this:** we put both weights of the first block through `F.linear`, as
# if they were `nn.Linear`'s. What happens to each?

# %%
attention = model.transformer.h[0].attn
torch.manual_seed(0)
x = torch.randn(1, 5, config.n_embd)  # [batch_size, seq_len, hidden]
for name, layer in (("c_attn", attention.c_attn), ("c_proj", attention.c_proj)):
    try:
        wrong = F.linear(x, layer.weight, layer.bias)  # [batch_size, seq_len, outputs]
        gap = (wrong - layer(x)).abs().max() / layer(x).abs().max()
        print(f"{name}: runs, and is off by {gap:.0%} of the largest value")
    except RuntimeError as error:
        print(f"{name}: {str(error).splitlines()[0]}")

# %% [markdown]
# The second kind of mistake is the one to be afraid of.
#
# ### Exercise 3: Conv1D
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="inside.conv1d"
def conv1d(x, weight, bias):
    """What GPT-2's Conv1D computes, for each token by itself.

    Args:
        x: FloatTensor[batch_size, seq_len, inputs]
        weight: FloatTensor[inputs, outputs]
        bias: FloatTensor[outputs]
    Returns:
        FloatTensor[batch_size, seq_len, outputs]
    """
    ### BEGIN SOLUTION
    return x @ weight + bias  # [batch_size, seq_len, outputs]
    ### END SOLUTION


# %% check="inside.conv1d" points=1
check("inside.conv1d")

# %%
with torch.no_grad():
    for layer in (attention.c_attn, attention.c_proj):
        difference = conv1d(x, layer.weight, layer.bias) - layer(x)
        print(f"largest difference to {layer}: {difference.abs().max():.0e}")

# %% [markdown]
# ## 5. One matrix, two jobs
#
# The embedding $E$ (`wte`) turns a token into a vector: row $t$ is the vector of token
# $t$. The head turns a vector into a number for each token: the dot product with row
# $t$ of *its* matrix. Same shape, so one could ask whether they are the same.

# %%
embedding, head = state["transformer.wte.weight"], state["lm_head.weight"]
print("equal numbers:", torch.equal(embedding, head))
print("same memory:  ", embedding.data_ptr() == head.data_ptr())

# %% [markdown]
# The first line is what many notebooks print, and stop. It does not tell you much: a
# copy is equal too, until the first step of training pulls the two apart. The *second*
# line is the reason for the first. They are **tied**: one tensor under two names, one
# gradient, one step. GPT-2 does it to save parameters, and so the vector that *means* a
# word and the vector that *predicts* it are the same.
#
# Tied parameters are counted once. The state dict, which lists names, lists them twice.
#
# ### Exercise 4: tied, or merely equal?
#
# ●●○○○ · 6 minutes · 1 point

# %% exercise="inside.tying"
def tying(model):
    """Whether the head shares its matrix with the embedding, and how many numbers there are.

    Args:
        model: a GPT2LMHeadModel
    Returns:
        a dict: "tied", True where lm_head.weight and transformer.wte.weight are one tensor
        (and not merely equal); "stored", an int, the numbers under all names of the state
        dict; "learned", an int, the same with shared tensors counted once
    """
    ### BEGIN SOLUTION
    by_name = model.state_dict()
    by_address = {tensor.data_ptr(): tensor for tensor in by_name.values()}
    wte, head = by_name["transformer.wte.weight"], by_name["lm_head.weight"]
    return {
        "tied": wte.data_ptr() == head.data_ptr(),
        "stored": sum(tensor.numel() for tensor in by_name.values()),
        "learned": sum(tensor.numel() for tensor in by_address.values()),
    }
    ### END SOLUTION


# %% check="inside.tying" points=1
check("inside.tying")

# %%
result = tying(model)
print(f"tied: {result['tied']}")
print(f"under all names {result['stored']:,}, learned {result['learned']:,}")
print(f"the shared matrix is {head.numel() / result['learned']:.0%} of the model")

# %% [markdown]
# ## 6. One new token, and all there is to know about it
#
# Now let it speak. `generate` can return everything it computed on the way. We ask for
# one new token, and for all of it.

# %%
outputs = model.generate(
    **inputs,
    max_new_tokens=1,
    do_sample=False,
    return_dict_in_generate=True,
    output_scores=True,
    output_logits=True,
    output_hidden_states=True,
    output_attentions=True,
    pad_token_id=tokenizer.pad_token_id,
)
print(type(outputs).__name__)
print("sequences    ", outputs.sequences.shape)
for name in ("logits", "scores"):
    value = getattr(outputs, name)
    print(f"{name:13} tuple of {len(value)}, each", value[0].shape)
for name in ("hidden_states", "attentions"):
    value = getattr(outputs, name)
    print(f"{name:13} tuple of {len(value)} x {len(value[0])}, each", value[0][0].shape)
print(repr(tokenizer.decode(outputs.sequences[0][0])))
print(repr(tokenizer.decode(outputs.sequences[0])))

# %% [markdown]
# That is the shape of the answer, and it pays to read it slowly:
#
# * `sequences`: `[batch_size, prompt + new tokens]`, here 1 and 6. The prompt is included.
# * `logits`, `scores`: one tensor for each *new token*, `[batch_size, vocab_size]`.
# * `hidden_states[step][station]`: `[batch_size, tokens, hidden]`.
# * `attentions[step][layer]`: `[batch_size, num_heads, queries, keys]`.
#
# There is always a batch axis, also for a single text. (The notes print the hidden
# states' shape as `[5, 768]`: they had indexed once more than they thought, and the
# third `[0]` took the first text of the batch.)
#
# ### Logits
#
# A **logit** is what the head gives for a token: $x \cdot E_t$, any real number. The
# probabilities are their softmax. Here are the ten best continuations.

# %%
logits = outputs.logits[0]  # [batch_size, vocab_size]
values, ids = logits[0].topk(10)  # two times [10]
for value, token_id in zip(values.tolist(), ids.tolist(), strict=True):
    print(f"{token_id:6}  logit {value:8.3f}  {tokenizer.decode([token_id])!r}")

# %% [markdown]
# For the real GPT-2 that list begins with " the" at −80.65, " a" at −81.82, " work" at
# −82.50, " war" at −82.71. Minus eighty! Surely those are log-probabilities, and tiny
# ones?
#
# They are not. A log-probability of −80 for the *best* token would leave nothing for
# the others: 50,257 tokens at $e^{-80}$ each do not nearly sum to 1. These are logits,
# and a logit alone says nothing. Add any number to all of them, and the softmax stays
# the same. Only differences count: " the" is ahead of " a" by 1.17, so it is $e^{1.17}
# \approx 3.2$ times as probable. How probable either is you cannot know without *all*
# the logits:
#
# $$\log p_t = \ell_t - \log \sum_{u} e^{\ell_u} .$$
#
# **Before you run this:** we subtract 100 from every logit. What changes?

# %%
for shift in (0, -100):
    shifted = logits + shift  # [batch_size, vocab_size]
    log_probs = torch.log_softmax(shifted, dim=-1)  # [batch_size, vocab_size]
    best = int(shifted.argmax())
    print(f"shifted by {shift:4}: logit {shifted[0, best]:8.3f}   "
          f"log-probability {log_probs[0, best]:7.3f}")

# %% [markdown]
# ### Exercise 5: the best tokens, with their log-probabilities
#
# ●●○○○ · 7 minutes · 1 point
#
# For each row of a batch. Mind the axis: the probabilities of *one* row must sum to 1.
# And take the logarithm in one go, so that a hopeless token gets a very negative number
# and not minus infinity.

# %% exercise="inside.log_probs"
def top_tokens(logits, k):
    """The k most probable tokens of each row, and their log-probabilities in nats.

    Args:
        logits: FloatTensor[batch_size, vocab_size]
        k: int
    Returns:
        ids: LongTensor[batch_size, k], the most probable first
        log_probs: FloatTensor[batch_size, k], normalised over the whole vocabulary
    """
    ### BEGIN SOLUTION
    all_log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)  # [batch_size, vocab_size]
    log_probs, ids = all_log_probs.topk(k, dim=-1)  # two times [batch_size, k]
    return ids, log_probs
    ### END SOLUTION


# %% check="inside.log_probs" points=1
check("inside.log_probs")

# %%
ids, log_probs = top_tokens(logits, 10)  # two times [batch_size, 10]
words = [tokenizer.decode([token_id]) for token_id in ids[0].tolist()]
figure = plots.top_k_bars(log_probs[0].exp(), words, title=f"After {prompt!r}")
show(figure, f"Ten horizontal bars: the probabilities of the ten most likely tokens after "
     f"the prompt. The first is {words[0]!r}.")
print(f"the ten together: {log_probs[0].exp().sum():.2f}")

# %% [markdown]
# **Figure.** The ten most probable next tokens (a dot stands for the blank in front),
# with probabilities that now mean something: all tokens together have 1.
#
# ### Scores
#
# `outputs.scores` looks just like `outputs.logits`, and the notes read the first into a
# variable called by the name of the second. With greedy decoding that does no harm:

# %%
print("greedy: scores are the logits:", torch.equal(outputs.scores[0], outputs.logits[0]))


def decode_with(**how):
    """The output of `generate` for two new tokens, decoded in some other way."""
    torch.manual_seed(0)
    return model.generate(
        **inputs, max_new_tokens=2, return_dict_in_generate=True, output_scores=True,
        output_logits=True, pad_token_id=tokenizer.pad_token_id, **how,
    )


sampled = decode_with(do_sample=True, temperature=0.7, top_k=5)
beams = decode_with(do_sample=False, num_beams=3)
for name, out in {"top-k": sampled, "beams": beams}.items():
    scores, raw = out.scores[0], out.logits[0]
    print(f"{name}: equal {torch.equal(scores, raw)}, shape {list(scores.shape)}, "
          f"finite {int(scores[0].isfinite().sum())}, largest {scores[0].max():.3f}")
normed = torch.log_softmax(beams.logits[0], dim=-1)  # [num_beams, vocab_size]
print("beams: scores are log-probabilities:", torch.allclose(beams.scores[0], normed, atol=1e-4))

# %% [markdown]
# **Logits** are what the model says. **Scores** are what the way of decoding makes of
# them before it picks. Greedy decoding makes nothing of them. Sampling with a
# temperature divides by it, and top-k then drops all but $k$ tokens. Beam search keeps
# several beginnings at once (so the first axis grows), and needs log-probabilities,
# because it adds them up. (There are more ways: see the library's [generation
# strategies](https://huggingface.co/docs/transformers/en/generation_strategies).)
#
# ### Exercise 6: from logits to the scores of sampling
#
# ●●○○○ · 7 minutes · 1 point
#
# (If you come from lesson 08b you have drawn with both; here it is whole rows of a batch.)
# First the temperature, then top-k: a token that is not among the $k$ best *of its row*
# gets the score minus infinity, so that the softmax gives it exactly 0.

# %% exercise="inside.scores"
def sampling_scores(logits, temperature, top_k):
    """What sampling with a temperature and top-k makes of the logits.

    Args:
        logits: FloatTensor[batch_size, vocab_size]
        temperature: float, above 0; high ones make the choice more even
        top_k: int, how many tokens of each row remain possible
    Returns:
        FloatTensor[batch_size, vocab_size], -inf for tokens that are out; not normalised
    """
    ### BEGIN SOLUTION
    scores = logits / temperature  # [batch_size, vocab_size]
    best = scores.topk(top_k, dim=-1)  # values and indices, [batch_size, top_k]
    nothing = torch.full_like(scores, -math.inf)  # [batch_size, vocab_size]
    return nothing.scatter(-1, best.indices, best.values)  # [batch_size, vocab_size]
    ### END SOLUTION


# %% check="inside.scores" points=1
check("inside.scores")

# %%
mine = sampling_scores(sampled.logits[0], temperature=0.7, top_k=5)
print("the same as generate's scores:", torch.allclose(mine, sampled.scores[0]))

# %% [markdown]
# ## 7. Hidden states: following the stream
#
# The residual stream can be read at every station. How many are there?

# %%
hidden_states = outputs.hidden_states[0]  # the first (and only) step
print(len(hidden_states), "hidden states for", config.n_layer, "blocks")
print("each", hidden_states[0].shape, "= [batch_size, seq_len, hidden]")

# %% [markdown]
# One more than there are blocks: 13 for the twelve of GPT-2 small, "$1 + 12$". Now
# careful, for nearly everyone gets the next step wrong. It is tempting to say that
# `hidden_states[l]` is "the output of layer $l$". Here is what it really is:
#
# | entry | what it is |
# |---|---|
# | `hidden_states[0]` | `wte` + `wpe`: what **enters** block 0 |
# | `hidden_states[l]` | what **enters** block `l`, that is, what left block `l - 1` |
# | `hidden_states[-1]` | what left the last block **and then went through `ln_f`** |
#
# The last entry is the odd one out. The stream before the final norm is not in the
# tuple at all! We can catch it on its way. `record` from the course's library writes
# down what goes into a module, or comes out of it, while the model runs. (In lesson 11
# you write the hooks that it is made of.)

# %%
with torch.no_grad(), record(model, ["h.*", "ln_f:input", "ln_f"]) as acts:
    model(inputs.input_ids)

last = config.n_layer - 1
print("recorded:", ", ".join(acts))
stations = {
    f"output of block {last}": acts[f"h.{last}"],
    "input of ln_f": acts["ln_f:input"],
    "output of ln_f": acts["ln_f"],
}
for name, value in stations.items():
    print(f"hidden_states[-1] is the {name:18}:", torch.allclose(value, hidden_states[-1]))
for layer in range(last):
    same = torch.allclose(acts[f"h.{layer}"], hidden_states[layer + 1])
    print(f"hidden_states[{layer + 1}] is the output of block {layer}:", same)

# %% [markdown]
# ### Exercise 7: what one block writes
#
# ●●●○○ · 10 minutes · 2 points
#
# Each block *adds* to the stream. Return what block `block` (counted from 0) added:
# what left it minus what entered it. It must be right for the last block too.
#
# One more trap on the way: you might call `model.transformer.h[block](x)` yourself. The
# causal mask is made by the model and handed to its blocks; a block that you call alone
# gets none, and looks into the future without a word.

# %% exercise="inside.hidden"
def block_update(model, input_ids, block):
    """What one block adds to the residual stream.

    Args:
        model: a GPT2LMHeadModel
        input_ids: LongTensor[batch_size, seq_len]
        block: int from 0 to n_layer - 1
    Returns:
        FloatTensor[batch_size, seq_len, hidden]
    """
    ### BEGIN SOLUTION
    before, after = f"h.{block}:input", f"h.{block}"
    with torch.no_grad(), record(model, [before, after]) as seen:
        model(input_ids)
    return seen[after] - seen[before]  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="inside.hidden" points=2
check("inside.hidden")

# %%
stream = hidden_states[0]  # [batch_size, seq_len, hidden]
print(f"embedding: norm at the last token {stream[0, -1].norm():6.2f}")
for block in range(config.n_layer):
    update = block_update(model, inputs.input_ids, block)  # [batch_size, seq_len, hidden]
    stream = stream + update  # [batch_size, seq_len, hidden]
    print(f"block {block}: writes {update[0, -1].norm():6.2f}, "
          f"the stream is now {stream[0, -1].norm():6.2f}")
print("the sum, after ln_f, is hidden_states[-1]:",
      torch.allclose(model.transformer.ln_f(stream), hidden_states[-1], atol=1e-4))

# %% [markdown]
# Embedding plus all that was written, normalised: that is the whole model.
#
# ## 8. From the stream to words
#
# The notes write $p(t) \propto \exp(x_N \cdot x_t)$: the probability of token $t$ grows
# with the dot product of the final vector and the token's own. With tied matrices that
# is true, if $x_N$ is `hidden_states[-1]`, which is normalised already. Put `ln_f` on
# it once more and you get something that looks like logits and is not.
#
# **Before you run this:** does a second normalisation change much? After the first one
# the vector is normalised already, is it not?

# %%
with torch.no_grad():
    final = hidden_states[-1][:, -1]  # [batch_size, hidden]
    once = final @ embedding.T  # [batch_size, vocab_size]
    again = model.transformer.ln_f(final) @ embedding.T  # [batch_size, vocab_size]
for name, value in {"as it is": once, "ln_f again": again}.items():
    difference = (value - logits).abs().max()
    best = tokenizer.decode([int(value.argmax())])
    print(f"{name:10}: largest difference to the logits {difference:8.1e}, says {best!r}")

# %% [markdown]
# A LayerNorm ends with a gain and a shift of its own, which are learned. They undo the
# plain normalisation, and a second pass applies them twice.
#
# Now the fun part. The blocks all write into one stream, so we can take the stream at
# an *earlier* station and read it as if it were finished: through `ln_f`, then through
# the head. This is the **logit lens** (nostalgebraist, 2020). It shows what the model
# would say if it stopped there.
#
# ### Exercise 8: the lens
#
# ●●●○○ · 10 minutes · 2 points
#
# You get the tuple as transformers returns it. Return the logits at the last position
# for *every* station. The intermediate ones need the final norm; the last has had it.

# %% exercise="inside.logits"
def lens_logits(model, hidden_states):
    """Logits of the next token as read off at every station of the stream.

    Args:
        model: a GPT2LMHeadModel
        hidden_states: tuple of n_layer + 1 FloatTensor[batch_size, seq_len, hidden], as
            the model returns them: the last one has been through ln_f
    Returns:
        FloatTensor[n_layer + 1, batch_size, vocab_size], at the last position; the last
        entry is what the model itself says
    """
    ### BEGIN SOLUTION
    *unfinished, finished = (h[:, -1] for h in hidden_states)  # [batch_size, hidden] each
    with torch.no_grad():
        ready = [model.transformer.ln_f(h) for h in unfinished] + [finished]
        return model.lm_head(torch.stack(ready))  # [n_layer + 1, batch_size, vocab_size]
    ### END SOLUTION


# %% check="inside.logits" points=2
check("inside.logits")

# %%
readings = lens_logits(model, hidden_states)  # [n_layer + 1, batch_size, vocab_size]
print("last station is the model:", torch.allclose(readings[-1], logits, atol=1e-4))
lens = torch.log_softmax(readings[:, 0], dim=-1)  # [n_layer + 1, vocab_size]
figure = plots.lens_bars(
    lens, lambda token: tokenizer.decode([token]), title=f"Logit lens after {prompt!r}"
)
show(figure, "One panel a station, from the embedding to the last block, each with the five "
     "tokens that the lens reads there and their probabilities.")

# %% [markdown]
# **Figure.** The five most probable tokens at each station. At the embedding the lens
# reads little but the last token itself: nothing has looked at the context yet, and a
# tied model that is asked "which word is this vector like?" answers with the word that
# is there. After block 0 the context has been heard: " bed", " school", " town", places to go to. Then
# the little words that stand before a place take over, " the" and " a". How smoothly that goes
# differs from model to model and from prompt to prompt.
#
# The same in one line: at which station does the final answer take the lead?

# %%
answer = int(logits.argmax())
for station, row in enumerate(lens):
    rank = int((row > row[answer]).sum()) + 1
    name = "embedding" if station == 0 else f"block {station - 1}"
    print(f"{name:10}: {tokenizer.decode([answer])!r} has rank {rank:5}, "
          f"log-probability {row[answer]:7.2f}")

# %% [markdown]
# Block 2 brings it to the front, and block 3 makes sure of it.
#
# ## 9. The attention weights
#
# At last, the probabilities that these lessons are about. Our model returned them:

# %%
attentions = outputs.attentions[0]  # first step
print(len(attentions), "layers, each", attentions[0].shape)
print("rows sum to 1:", torch.allclose(attentions[0].sum(-1), torch.ones(())))
print("nothing above the diagonal:", attentions[0].triu(1).abs().max().item() == 0)

# %% [markdown]
# That worked because `load_gpt2` asks for `attn_implementation="eager"`, the slow way
# that writes out each step. By default transformers uses a fused kernel which never
# forms the whole matrix (lesson 07), so there is nothing to return. What would you
# expect then: an error?

# %%
model.set_attn_implementation("sdpa")
with torch.no_grad():
    nothing = model(inputs.input_ids, output_attentions=True).attentions
print("sdpa: ", nothing)
model.set_attn_implementation("eager")
with torch.no_grad():
    maps = model(inputs.input_ids, output_attentions=True).attentions
print("eager:", len(maps), "maps")

# %% [markdown]
# An **empty tuple**, no error. A loop over it runs zero times, and a plot stays blank.
# Code that works with attention maps should look first, and speak up.
#
# The other surprise comes with the second generated token. (Skip this if you come from lesson
# 07: it is the KV cache.) The model keeps the keys and
# values of what it has read, so from step 1 on it only computes the *new* query:

# %%
steps = model.generate(
    **inputs, max_new_tokens=3, do_sample=False, return_dict_in_generate=True,
    output_attentions=True, pad_token_id=tokenizer.pad_token_id,
).attentions
for number, step in enumerate(steps):
    print(f"step {number}: {len(step)} layers, each {list(step[0].shape)}")

# %% [markdown]
# The documentation's "`generated_length`" for the third axis is the whole prompt in
# step 0, and 1 after that.
#
# ### Exercise 9: what does the newest token look at?
#
# ●●○○○ · 7 minutes · 1 point
#
# Take the tuple of tuples as `generate` returns it. If there are no maps for that step,
# raise a `ValueError` that says so.

# %% exercise="inside.attentions"
def last_row(attentions, step, layer, head):
    """The attention weights of the newest token, for one head.

    Args:
        attentions: attentions[step][layer] is FloatTensor[batch_size, num_heads, queries,
            keys]; queries is the prompt's length in step 0 and 1 later
        step, layer, head: int, all counted from 0
    Returns:
        FloatTensor[batch_size, keys], from the last query to all keys
    Raises:
        ValueError: attentions[step] is empty
    """
    ### BEGIN SOLUTION
    maps = attentions[step]
    if not maps:
        raise ValueError('no attention maps; load with attn_implementation="eager"')
    return maps[layer][:, head, -1, :]  # [batch_size, keys]
    ### END SOLUTION


# %% check="inside.attentions" points=1
check("inside.attentions")

# %%
tokens = [tokenizer.decode([i]) for i in inputs.input_ids[0].tolist()]
rows = torch.stack([
    last_row(steps, 0, layer, head)[0]
    for layer in range(config.n_layer) for head in range(config.n_head)
])  # [n_layer * n_head, keys]
figure, axes = plt.subplots(figsize=(6, 0.22 * len(rows) + 1.4))
image = axes.imshow(rows, vmin=0, vmax=1, cmap="viridis", aspect="auto")
axes.set_xticks(range(len(tokens)), [token.replace(" ", "·") for token in tokens])
names = [
    f"{layer}.{head}" + (" ★" if (layer, head) in guided_heads(model) else "")
    for layer in range(config.n_layer) for head in range(config.n_head)
]
axes.set_yticks(range(len(names)), names)
axes.set(xlabel="key", ylabel="layer.head", title="What the last token looks at")
figure.colorbar(image, label="attention weight")
figure.tight_layout()
show(figure, "One row for each head of each layer, one column for each token of the prompt: "
     "the attention weights of the last token. Heads differ in what they look at.")

# %% [markdown]
# **Figure.** The last query's weights, one row a head. Each row sums to 1. The heads do
# not look at the same things: 0.3 has nearly all its weight on the token before, 1.2 and 1.3 on the
# first one. Why, is lessons 11 and 12.
#
# ## 10. Two questions to take along
#
# The notes end where they began, with a formula and two questions:
#
# $$Q K^{\mathsf T} = X\, (W_Q W_K^{\mathsf T})\, X^{\mathsf T}$$
#
# How far is the matrix in the middle from the identity? If it were the identity,
# attention would compare tokens as they stand, as in lesson 01. And is it symmetric?
#
# You now know enough to say what that formula leaves out. $X$ is not the residual
# stream but `ln_1` of it. Each *head* has such a matrix of its own, and its scores are
# divided by the root of the head size, and masked. And GPT-2's projections have biases,
# so that there are four terms, not one. [Lesson
# 10](../10_reading_the_weights/10_reading_the_weights.ipynb) answers both questions,
# with the biases put back.
#
# ## Did it stick?
#
# **1.** A 768 × 2304 weight of a `Conv1D`: which number is the inputs?
# <details><summary>Answer</summary>768. Conv1D stores [inputs, outputs]; nn.Linear would hold
# 2304 × 768.</details>
#
# **2.** `torch.equal(wte, lm_head)` is True. Are they tied?
# <details><summary>Answer</summary>Perhaps. A copy is equal too. They are tied if they share
# their storage: same data_ptr().</details>
#
# **3.** The best token's value is −80.65. How probable is it?
# <details><summary>Answer</summary>No way to tell. It is a logit: only differences count, and
# the sum over all tokens is needed.</details>
#
# **4.** Twelve blocks. Where is the output of block 11, before the final norm?
# <details><summary>Answer</summary>Not in hidden_states. Entry 11 is its input, entry 12 is its
# output after ln_f. Catch the input of ln_f.</details>
#
# **5.** Your loop over `outputs.attentions` draws nothing, and there is no error. Why?
# <details><summary>Answer</summary>The tuple is empty: a fused attention keeps no weights. Load
# with attn_implementation="eager".</details>
#
# ## What comes next
#
# We know where the weights are. [Lesson
# 10](../10_reading_the_weights/10_reading_the_weights.ipynb) reads them: their spread,
# their heads, and the matrix $W_Q W_K^{\mathsf T}$, in which the model keeps its idea
# of what should look at what.
#
# Words from this lesson in the glossary: [logits](../../docs/glossary.md#logits),
# [log-probability](../../docs/glossary.md#log-probability), [hidden
# state](../../docs/glossary.md#hidden-state), [residual
# stream](../../docs/glossary.md#residual-stream),
# [Conv1D](../../docs/glossary.md#conv1d), [weight
# tying](../../docs/glossary.md#weight-tying), [logit
# lens](../../docs/glossary.md#logit-lens), [eager
# attention](../../docs/glossary.md#eager-attention), [state
# dict](../../docs/glossary.md#state-dict).
