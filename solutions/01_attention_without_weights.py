# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Attention without weights
#
# Attention is a weighted average. That is the whole secret; everything else is about
# where the weights come from. In this lesson they come from the cheapest place there
# is: the tokens themselves. Nothing is learned, nothing is trained, and you will
# still end up with three lines of code that have the skeleton of every GPT in them.
#
# **After this lesson you can**
#
# * explain why translating word by word fails, and why squeezing a sentence into one
#   vector fails later;
# * tell the [scores](../../docs/glossary.md#attention-scores) $\omega$, the
#   [weights](../../docs/glossary.md#attention-weights) $\alpha$ and the
#   [context vector](../../docs/glossary.md#context-vector) $z$ apart;
# * say why the weights come from a softmax and not from a plain division;
# * write a softmax that survives a score of 1000;
# * turn three nested loops into two matrix products, and trust the result.
#
# | | |
# |---|---|
# | Time | 75 minutes |
# | Difficulty | ●●○○○ |
# | Importance | ●●●●○ |
#
# Seven exercises, ten points. `hint("simple.rnn", 1)` gives the first of three hints;
# the worked solutions come with the whole course, in
# `solutions/01_attention_without_weights.ipynb`. Axes, broadcasting and `transpose` are
# assumed: [lesson 00](../00_shape_gym/00_shape_gym.ipynb) is the warm-up.

# %% role="setup"
import matplotlib.pyplot as plt
import torch

from autograder import check, hint
from transformer_lm.figures import show

torch.set_printoptions(precision=4, sci_mode=False)

# %% [markdown]
# ## Where we are going
#
# There are four kinds of self-attention in this course, each one idea richer than the
# last:
#
# | | kind | what is new | lesson |
# |---|---|---|---|
# | 1 | simplified self-attention | tokens weigh one another by similarity | this one |
# | 2 | self-attention | trainable weights decide what counts as similar | 02 |
# | 3 | causal attention | no looking at the future, so that a model can write | 03 |
# | 4 | multi-head attention | several side by side, each with its own idea of similar | 04 |
#
# ## 1. Word by word
#
# Suppose you have a German sentence and a dictionary. Why not look up each word?

# %%
german = ["gestern", "habe", "ich", "den", "Schlüssel", "verloren"]
english = ["yesterday", "I", "lost", "the", "key"]
dictionary = dict(zip(german, ["yesterday", "have", "I", "the", "key", "lost"], strict=True))
print(" ".join(dictionary[word] for word in german))

# %% [markdown]
# *Yesterday have I the key lost.* Every word is right and the sentence is not. The
# verb waits at the end in German and stands in the middle in English; "habe ...
# verloren" are two words there and one word, "lost", here. To produce the third
# English word you must already have read the sixth German one. Grammar is not a list
# of words; it is a list of *who goes with whom*.
#
# So a translator must first read, then write. That is the
# [encoder-decoder](../../docs/glossary.md#encoder-decoder) idea: one network, the
# encoder, reads the sentence and turns it into numbers; another, the decoder, turns
# the numbers into the new sentence.
#
# ## 2. A sentence in one vector
#
# Before transformers, both were usually **recurrent** networks
# ([RNNs](../../docs/glossary.md#rnn)). An RNN reads one token at a time and keeps a
# hidden state, a vector of fixed size. Each step mixes the new token into the state
# left by the step before:
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h + b), \qquad h_0 = 0$$
#
# When the sentence is over, the last state $h_T$ goes to the decoder. Only that one.
# The decoder cannot go back and look at $h_3$; whatever was not carried along is gone.
#
# ### Exercise 1: a recurrent encoder
#
# ●●○○○ · 10 minutes · 2 points
#
# Write `encoder_states`. Return *all* the states, one row a token; we want to look at
# what the last of them still knows. A hint, if you want one:

# %%
hint("simple.rnn", 1)


# %% exercise="simple.rnn"
def encoder_states(x, w_input, w_hidden, bias):
    """All hidden states of a recurrent encoder that starts from zeros.

    Args:
        x: FloatTensor[seq_len, input_size]
        w_input: FloatTensor[input_size, hidden]
        w_hidden: FloatTensor[hidden, hidden]
        bias: FloatTensor[hidden]
    Returns:
        FloatTensor[seq_len, hidden], row t is the state after token t
    """
    ### BEGIN SOLUTION
    state = torch.zeros_like(bias)  # [hidden]
    states = []
    for token in x:
        state = torch.tanh(token @ w_input + state @ w_hidden + bias)  # [hidden]
        states.append(state)
    return torch.stack(states)  # [seq_len, hidden]
    ### END SOLUTION


# %% check="simple.rnn" points=2
check("simple.rnn")

# %% [markdown]
# Now an experiment. A network reads numbers, not words. So each word of the vocabulary gets a
# vector, its **embedding**, a row of a table; here the table is random, in a real model it is
# learned like every other weight. We make 1500 "sentences" of 30 random words out of a
# vocabulary of 8, look up their vectors, run your encoder over each, and then play a quiz: given the **last state**
# only, what was word $t$? The player is the best linear guesser that least squares can
# find on 1200 of the sentences; it is asked about the other 300. Guessing blindly gets
# one in eight.
#
# The weights here are random but kindly chosen: `w_hidden` is 0.9 times an orthogonal
# matrix, so that the state neither explodes nor fades at once. And the state has 32
# numbers, for 30 words.
#
# **Before you run this:** sketch the curve. How well can the last word be recovered?
# The tenth from the end? The first?

# %%
torch.manual_seed(0)
vocabulary, sentence_len, state_size = 8, 30, 32
embedding = torch.randn(vocabulary, 16)  # [vocabulary, input_size]
w_input = 0.1 * torch.randn(16, state_size)  # [input_size, hidden]
w_hidden = 0.9 * torch.linalg.qr(torch.randn(state_size, state_size)).Q  # [hidden, hidden]
words = torch.randint(vocabulary, (1500, sentence_len))  # [sentences, seq_len]

all_states = torch.stack(
    [
        encoder_states(embedding[sentence], w_input, w_hidden, torch.zeros(state_size))
        for sentence in words
    ]
)  # [sentences, seq_len, hidden]


def recall(states, answers):
    """How often a linear guess from `states` names the word, on sentences not seen."""
    wanted = torch.nn.functional.one_hot(answers, vocabulary)  # [sentences, vocabulary]
    wanted = wanted.float()  # [sentences, vocabulary]
    ones = torch.ones(len(states), 1)  # [sentences, 1]
    clues = torch.cat([states, ones], dim=1)  # [sentences, hidden + 1]
    # [hidden + 1, vocabulary]
    guesser = torch.linalg.lstsq(clues[:1200], wanted[:1200]).solution
    guesses = (clues[1200:] @ guesser).argmax(dim=-1)  # [sentences kept for the quiz]
    return (guesses == answers[1200:]).float().mean().item()


steps = range(sentence_len)
from_last = [recall(all_states[:, -1], words[:, t]) for t in steps]
from_each = [recall(all_states[:, t], words[:, t]) for t in steps]
for t in (29, 26, 23, 20, 10, 0):
    print(f"word {t:>2} from the last state: {from_last[t]:.0%}")

# %%
fig, ax = plt.subplots(figsize=(7.5, 3.4))
ax.plot(steps, from_each, color="tab:green", label="asked of state t itself")
ax.plot(
    steps, from_last, color="tab:red", marker="o", markersize=3, label="asked of the last state"
)
ax.axhline(1 / vocabulary, color="gray", linestyle=":", label="blind guessing")
ax.set(xlabel="word t of the sentence", ylabel="share of words named right", ylim=(0, 1.05))
ax.legend(loc="center left")
show(
    fig,
    "Line chart of the share of words named right against the word's position. Asked "
    "of the last state, the share is at the level of blind guessing for the first "
    "twenty words and climbs to 100 percent for the last ones. Asked of the state of "
    "the same step, it is at 100 percent everywhere.",
)

# %% [markdown]
# **Figure.** What a recurrent encoder remembers. The last state (red) knows the last
# few words and has forgotten the first twenty; they are named no better than by blind
# guessing (dotted). The states along the way (green) each knew their own word.
#
# This is the **[bottleneck](../../docs/glossary.md#bottleneck)**: one vector of fixed
# size for a sentence of any length. Each step overwrites a little. With words that
# belong together but stand far apart ("habe ... verloren", or a pronoun and a name
# three sentences back), what was needed is exactly what is gone. Training helps an RNN
# to choose *what* to keep (and the better kinds, LSTM and GRU, choose well); it cannot
# make 32 numbers hold an endless text.
#
# But look at the green line! Nothing was lost when it was *made*. The states were all
# there. We just did not let anybody look at them.
#
# ## 3. Bahdanau's idea: let the decoder look back
#
# In 2014, Bahdanau, Cho and Bengio did what now looks obvious (Graves had taught a network
# to look along a text while writing it by hand, in 2013): keep all the encoder's states, and at *each* step of the decoder let it choose which of
# them to use. Choosing one would be a hard decision with no gradient, so it takes a
# weighted average of all of them: much of the state of "verloren", a bit of "habe",
# next to nothing of the rest. The weights are recomputed for each new word. That
# mechanism is called [attention](../../docs/glossary.md#attention).
#
# Here is the idea in miniature. We have no trained translator, so we make up the
# vectors by hand: each German word gets a random state, and the decoder's state,
# when it is about to write an English word, is taken to resemble the states it needs
# (plus some noise). Scores are dot products; Bahdanau's own were computed by a small
# network, which would need training.

# %%
torch.manual_seed(1)
needs = {"yesterday": [0], "I": [2], "lost": [1, 5], "the": [3], "key": [4]}
encoder = torch.randn(len(german), 64)  # [german words, hidden]
decoder = torch.stack([encoder[needs[w]].mean(0) for w in english])  # [english words, hidden]
decoder = decoder + 0.3 * torch.randn(decoder.shape)  # [english words, hidden]
scores = decoder @ encoder.T / 8  # [english words, german words], kept small: lesson 02 says why
looks = torch.softmax(scores, dim=-1)  # [english words, german words]

fig, ax = plt.subplots(figsize=(6, 3.8))
ax.imshow(looks, cmap="Blues", vmin=0, vmax=1)
for i in range(len(english)):
    for j in range(len(german)):
        color = "white" if looks[i, j] > 0.6 else "black"
        ax.text(j, i, f"{looks[i, j]:.2f}", ha="center", va="center", color=color)
ax.set_xticks(range(len(german)), german, rotation=30)
ax.set_yticks(range(len(english)), english)
ax.set(xlabel="the encoder's states", ylabel="the decoder writes")
show(
    fig,
    "Heat map of five English words against six German words. Each English word "
    "puts most of its weight on the German word it translates, out of order, and "
    "'lost' splits its weight between 'habe' and 'verloren'.",
)

# %% [markdown]
# **Figure.** Where a decoder would look (hand-made states). The dark cells leave the
# diagonal wherever the word order differs, and "lost" draws on two words at once:
# "habe" and "verloren". No dictionary can do that.
#
# Three years later, "Attention Is All You Need" (Vaswani et al., 2017) threw the RNN
# away and kept the looking.
#
# ## 4. Self-attention
#
# In Bahdanau's attention one sequence looks at *another*: the translation looks at the
# original. That is the traditional kind, nowadays called
# [cross-attention](../../docs/glossary.md#cross-attention). In
# **[self-attention](../../docs/glossary.md#self-attention)** a sequence looks at
# *itself*: each token asks of every token of the same sentence, how much do you matter
# for what I mean here? The answers are used to build a richer vector for each token,
# its **context vector**: part itself, part company it keeps.
#
# Six tokens with three numbers each will do. (They are the running example of Sebastian
# Raschka's *Build a Large Language Model (From Scratch)*, chapter 3, so you can compare.)

# %%
tokens = ["Your", "journey", "starts", "with", "one", "step"]
inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)  # [seq_len, hidden]
print(inputs.shape)

# %% [markdown]
# The recipe has three steps, and three Greek and Latin letters to go with them. For
# token $i$:
#
# | step | name | symbol | formula |
# |---|---|---|---|
# | 1 | scores | $\omega_{ij}$ | how similar are tokens $i$ and $j$? |
# | 2 | weights | $\alpha_{ij}$ | the scores, made positive and summing to 1 |
# | 3 | context vector | $z_i$ | $\sum_j \alpha_{ij}\, x_j$ |
#
# We do it first for one token, "journey" (index 1, since we count from 0; books that
# count from 1 call its vectors $x^{(2)}$ and $z^{(2)}$). The token that asks is called
# the **query**.
#
# ## 5. Scores: the dot product
#
# How similar are two vectors? The cheapest good answer is the
# [dot product](../../docs/glossary.md#dot-product): multiply feature by feature and
# add up.
#
# $$a \cdot b = \sum_d a_d\, b_d = \lVert a \rVert\, \lVert b \rVert \cos\theta$$
#
# It is large when the vectors point the same way and are long, zero when they are at
# right angles, negative when they point apart. For "journey" and "starts":
# $0.55 \cdot 0.57 + 0.87 \cdot 0.85 + 0.66 \cdot 0.64 = 0.3135 + 0.7395 + 0.4224 =
# 1.4754$.
#
# ### Exercise 2: the scores of one query
#
# ●○○○○ · 5 minutes · 1 point
#
# Write `attention_scores`: the dot product of the query with each token.


# %% exercise="simple.scores"
def attention_scores(query, inputs):
    """How similar each token is to the query, by dot product.

    Args:
        query: FloatTensor[hidden]
        inputs: FloatTensor[seq_len, hidden]
    Returns:
        FloatTensor[seq_len]
    """
    ### BEGIN SOLUTION
    scores = torch.empty(inputs.shape[0])  # [seq_len]
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)  # []
    return scores  # [seq_len]
    ### END SOLUTION


# %% check="simple.scores" points=1
check("simple.scores")

# %% [markdown]
# **Before you run this:** look at the six vectors. Which token will "journey" find
# most similar? Which least?

# %%
omega_2 = attention_scores(inputs[1], inputs)  # [seq_len]
for token, score in zip(tokens, omega_2.tolist(), strict=True):
    print(f"{token:<8} {score:.4f}")

# %% [markdown]
# Itself most (1.4950, its own length squared), closely followed by "starts" (1.4754),
# whose vector is almost the same. "one" comes last with 0.7070.
#
# A warning while it is cheap: a token is *not* always most similar to itself. "with",
# a short vector, scores 0.4937 with itself and 0.8434 with "journey". Dot products
# reward length.
#
# ## 6. Weights: why not just divide?
#
# Scores are any numbers. For an average we need weights that sum to 1. The obvious
# idea: divide each score by their sum.
#
# ### Exercise 3: divide by the sum
#
# ●●○○○ · 5 minutes · 1 point
#
# Write `sum_normalized` for a row of scores, a table of rows, or a batch of tables.
# The **last axis** is the one that should sum to 1. (Mind the axis that disappears:
# lesson 00, section 6.)


# %% exercise="simple.sum_normalized"
def sum_normalized(scores):
    """Scores divided by their sum, along the last axis.

    Args:
        scores: FloatTensor[..., seq_len]
    Returns:
        FloatTensor[..., seq_len]
    """
    ### BEGIN SOLUTION
    return scores / scores.sum(dim=-1, keepdim=True)  # [..., seq_len]
    ### END SOLUTION


# %% check="simple.sum_normalized" points=1
check("simple.sum_normalized")

# %%
alpha_2_tmp = sum_normalized(omega_2)  # [seq_len]
print("weights:", alpha_2_tmp)
print("sum:    ", alpha_2_tmp.sum())

# %% [markdown]
# It works: .1455, .2278, .2249, ... and they sum to 1. Now feed it scores that a real
# model makes, where some are negative and one may be large.
#
# **Before you run this:** what will the weights of `[2, 1, -1]` be? Of `[2, 1, -2.9]`?

# %%
for scores in ([2.0, 1.0, 0.5], [2.0, 1.0, -1.0], [2.0, 1.0, -2.9], [2.0, 1.0, -3.0]):
    print(f"{scores!s:<18}", sum_normalized(torch.tensor(scores)))

# %% [markdown]
# $-0.5$ of a token. Then twenty tokens' worth of the first and minus twenty-nine of the
# third; then infinity. They do "sum to 1", in the way that a household with a million
# in debt and a million and one in the bank does. Three things are wrong:
#
# * **Sign.** A weight should say *how much*. Negative amounts are not amounts, and
#   certainly not probabilities.
# * **Gradients.** Near a sum of zero a tiny change of one score turns everything
#   around. The derivative of $\omega_i / s$ has $s^2$ in its denominator.
# * **Emphasis.** A score that is twice as large gets twice the weight, no more; if all
#   scores grow by 100, the weights become all alike, though their differences did not
#   change.
#
# The [softmax](../../docs/glossary.md#softmax) cures all three. First take
# exponentials, then divide:
#
# $$\alpha_i = \operatorname{softmax}(\omega)_i = \frac{e^{\omega_i}}{\sum_j e^{\omega_j}}$$
#
# An exponential is positive whatever the score. The denominator is a sum of positive
# numbers, so it is never zero. Large scores are emphasised: **one more** in score is
# **$e$ times** the weight. And the derivative is tame everywhere,
# $\partial \alpha_i / \partial \omega_i = \alpha_i (1 - \alpha_i)$, between 0 and
# $\tfrac14$ (lesson 02 looks into it).
#
# ### Exercise 4: the naive softmax
#
# ●○○○○ · 5 minutes · 1 point
#
# Write `softmax_naive`, straight from the formula, along the last axis. Please do not
# call `torch.softmax`; the fun is in the next exercise.


# %% exercise="simple.softmax_naive"
def softmax_naive(scores):
    """The softmax along the last axis, as its formula says.

    Args:
        scores: FloatTensor[..., seq_len]
    Returns:
        FloatTensor[..., seq_len]
    """
    ### BEGIN SOLUTION
    powers = torch.exp(scores)  # [..., seq_len]
    return powers / powers.sum(dim=-1, keepdim=True)  # [..., seq_len]
    ### END SOLUTION


# %% check="simple.softmax_naive" points=1
check("simple.softmax_naive")

# %%
alpha_2 = softmax_naive(omega_2)  # [seq_len]
print("weights:", alpha_2)
print("sum:    ", alpha_2.sum())

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2))
cases = (
    ("the scores of 'journey'", omega_2),
    ("the same scores + 10", omega_2 + 10),
    ("some are negative", torch.tensor([0.95, 1.5, -1.2, 0.84, 0.7, -1.4])),
)
places = torch.arange(6)
for ax, (title, scores) in zip(axes, cases, strict=True):
    ax.bar(places - 0.2, sum_normalized(scores), 0.4, label="scores / sum", color="tab:orange")
    ax.bar(places + 0.2, softmax_naive(scores), 0.4, label="softmax", color="tab:blue")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xticks(places, tokens, rotation=40)
    ax.set_title(title, fontsize=11)
axes[0].set_ylabel("weight")
axes[0].legend(fontsize=9, loc="upper center", ncols=2)
for ax in axes[:2]:
    ax.set_ylim(0, 0.3)
fig.tight_layout()
show(
    fig,
    "Three bar charts of weights for six tokens, scores divided by their sum beside "
    "softmax. For the scores of journey both are similar. With 10 added to all "
    "scores, the divided ones become nearly equal and the softmax stays as it was. "
    "With negative scores, the divided weights run from below minus 1 to above 1 and "
    "the softmax stays between 0 and 1.",
)

# %% [markdown]
# **Figure.** Two ways to make weights. On mild scores they agree, more or less. Add 10
# to every score and the division flattens out, while the softmax does not move at all.
# With negative scores the division leaves the interval from 0 to 1; the softmax never
# does.
#
# That the middle blue bars did not move is worth a proof, because the next section
# lives on it. For any number $c$:
#
# $$\frac{e^{\omega_i + c}}{\sum_j e^{\omega_j + c}}
#   = \frac{e^c\, e^{\omega_i}}{e^c \sum_j e^{\omega_j}}
#   = \frac{e^{\omega_i}}{\sum_j e^{\omega_j}}$$
#
# Softmax sees *differences* of scores only.
#
# ## 7. When the numbers are too big
#
# **Before you run this:** by the proof above, all three rows must give the same
# weights. Do they?

# %%
print(softmax_naive(torch.tensor([1.0, 2.0, 3.0])))
print(softmax_naive(torch.tensor([1001.0, 1002.0, 1003.0])))
print(softmax_naive(torch.tensor([-999.0, -998.0, -997.0])))

# %%
print("exp(88)   =", torch.exp(torch.tensor(88.0)).item())
print("exp(89)   =", torch.exp(torch.tensor(89.0)).item())
print("exp(-104) =", torch.exp(torch.tensor(-104.0)).item())
print("half precision, exp(12) =", torch.exp(torch.tensor(12.0).half()).item())

# %% [markdown]
# Algebra does not know that a float has an end. In float32, $e^{89}$ is already
# infinity ([overflow](../../docs/glossary.md#overflow)), and infinity divided by
# infinity is `nan`, "not a number". At the other end $e^{-104}$ is exactly zero
# (underflow), and $0/0$ is `nan` too. In half precision (float16) infinity begins
# before 12.
#
# One `nan` is enough: everything it touches turns into `nan`, and after one training
# step so have all the weights of the model.
#
# The cure is to use our freedom. We may add any $c$; so choose $c = -\max_j \omega_j$.
# Then the largest exponent is exactly 0, its exponential exactly 1, and all others are
# between 0 and 1. Nothing can overflow. The sum is at least 1, so nothing is divided by
# zero. And what underflows to 0 was too small to see anyway.
#
# ### Exercise 5: the stable softmax
#
# ●●○○○ · 8 minutes · 2 points
#
# Write `softmax_stable`, along the last axis. Each row has its own maximum.


# %% exercise="simple.softmax_stable"
def softmax_stable(scores):
    """The softmax along the last axis, for scores of any size.

    Args:
        scores: FloatTensor[..., seq_len]
    Returns:
        FloatTensor[..., seq_len]
    """
    ### BEGIN SOLUTION
    largest = scores.amax(dim=-1, keepdim=True)  # [..., 1]
    powers = torch.exp(scores - largest)  # [..., seq_len]
    return powers / powers.sum(dim=-1, keepdim=True)  # [..., seq_len]
    ### END SOLUTION


# %% check="simple.softmax_stable" points=2
check("simple.softmax_stable")

# %%
print(softmax_stable(torch.tensor([1001.0, 1002.0, 1003.0])))
print(softmax_stable(torch.tensor([-999.0, -998.0, -997.0])))
print(
    "the same as PyTorch's:",
    torch.allclose(softmax_stable(omega_2), torch.softmax(omega_2, dim=-1), rtol=0, atol=1e-6),
)

# %% [markdown]
# `torch.softmax` does exactly this inside. From here on we may use it with a good
# conscience.
#
# ## 8. The context vector
#
# The rest is an average. The context vector of "journey" is the sum of all six input
# vectors, each times its weight:
#
# $$z_i = \sum_j \alpha_{ij}\, x_j$$

# %%
z_2 = torch.zeros(3)  # [hidden]
for weight, token in zip(alpha_2, inputs, strict=True):
    z_2 += weight * token  # [hidden]
print("x of journey:", inputs[1])
print("z of journey:", z_2)

# %% [markdown]
# $(0.55, 0.87, 0.66)$ went in and $(0.4419, 0.6515, 0.5683)$ came out: "journey", with
# an accent of the words around it. A weighted average with positive weights can never
# leave the region between its inputs; each feature of $z$ lies between the smallest
# and the largest of that feature among the tokens.
#
# ### Exercise 6: every token's context vector
#
# ●●○○○ · 8 minutes · 1 point
#
# Write `context_vectors` for one sequence: all six $z$ at once. Use loops if you like;
# your `attention_scores` and `softmax_stable` are at hand.


# %% exercise="simple.context" needs="simple.scores simple.softmax_stable"
def context_vectors(inputs):
    """Simple self-attention for one sequence: a context vector for every token.

    Args:
        inputs: FloatTensor[seq_len, hidden]
    Returns:
        FloatTensor[seq_len, hidden]
    """
    ### BEGIN SOLUTION
    contexts = torch.zeros_like(inputs)  # [seq_len, hidden]
    for i, query in enumerate(inputs):
        scores = attention_scores(query, inputs)  # [seq_len]
        weights = softmax_stable(scores)  # [seq_len]
        for weight, token in zip(weights, inputs, strict=True):
            contexts[i] += weight * token  # [hidden]
    return contexts  # [seq_len, hidden]
    ### END SOLUTION


# %% check="simple.context" points=1
check("simple.context")

# %%
print(context_vectors(inputs))

# %% [markdown]
# ## 9. From loops to matrix products
#
# Count what the loops do. For the scores alone, 6 queries times 6 tokens: 36 dot
# products, each a trip from Python into PyTorch and back. For 1000 tokens it is a
# million trips. But look at the formula:
#
# $$\omega_{ij} = \sum_d x_{id}\, x_{jd} = \sum_d x_{id}\, (x^{\mathsf T})_{dj}
#   \qquad\Longrightarrow\qquad \Omega = X X^{\mathsf T}$$
#
# That *is* a matrix product. So is the last step,
# $z_{id} = \sum_j \alpha_{ij}\, x_{jd}$, or $Z = A X$.

# %%
looped = torch.empty(6, 6)  # [seq_len, seq_len]
for i, x_i in enumerate(inputs):
    for j, x_j in enumerate(inputs):
        looped[i, j] = torch.dot(x_i, x_j)  # []

scores = inputs @ inputs.T  # [seq_len, seq_len]
print("loop equals matmul:", torch.allclose(looped, scores, rtol=0, atol=1e-6))
print(scores)

# %% [markdown]
# "Equals" up to rounding: the two may add the same products in another order, and in
# floating point that can change the last digit. So we compare with a stated tolerance,
# here one millionth, never with `==`.
#
# Now the weights. **Before you run this:** one of the next two softmaxes is wrong.
# Both have the right shape. Which sums tell you?

# %%
weights = torch.softmax(scores, dim=-1)  # [seq_len, seq_len]
columns = torch.softmax(scores, dim=0)  # [seq_len, seq_len]
print("dim=-1, row sums:", weights.sum(dim=-1))
print("dim=0,  row sums:", columns.sum(dim=-1))
print(weights)

# %% [markdown]
# Row $i$ holds the weights of query $i$, so each **row** must sum to 1: the softmax
# runs along the last axis, `dim=-1`. The name of the axis it *sums over* is the axis
# you give. In two dimensions `dim=1` is the same thing, and that is a trap: with a
# batch in front, `dim=1` is the queries. `-1` always means the last axis. Write `-1`.

# %%
fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.6))
for ax, table, title in (
    (axes[0], scores, "scores  $\\omega = X X^T$"),
    (axes[1], weights, "weights  $\\alpha$ = softmax of each row"),
):
    picture = ax.imshow(table, cmap="viridis")
    middle = (table.min() + table.max()) / 2
    for i in range(6):
        for j in range(6):
            color = "white" if table[i, j] < middle else "black"
            ax.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", color=color, fontsize=9)
    ax.set_xticks(range(6), tokens, rotation=40)
    ax.set_yticks(range(6), tokens)
    ax.set(xlabel="key: the token looked at", ylabel="query: the token that looks")
    ax.set_title(title, fontsize=11)
    fig.colorbar(picture, ax=ax, shrink=0.8)
fig.tight_layout()
show(
    fig,
    "Two 6 by 6 heat maps over the tokens Your journey starts with one step. The "
    "scores are symmetric, largest around journey and starts. The weights are not "
    "symmetric; every row sums to 1, and the columns of journey and starts are "
    "bright in every row.",
)

# %% [markdown]
# **Figure.** All scores and all weights. The scores are symmetric, since
# $x_i \cdot x_j = x_j \cdot x_i$; the weights are not, since each row is divided by a
# sum of its own. The columns of "journey" and "starts" are bright in almost every row:
# long vectors are popular with everybody.
#
# One consequence is worth a thought. Because the scores are symmetric, the softmax over
# `dim=0` is exactly the transpose of the one over `dim=-1`. If you ever see this
# message in a check, "the wrong axis *or* the transposed weights", that is why: here
# the two mistakes give the same numbers. From lesson 02 on, they do not.

# %%
Z = weights @ inputs  # [seq_len, hidden]
print(Z)
print("as with loops:", torch.allclose(Z, context_vectors(inputs), rtol=0, atol=1e-6))

# %% [markdown]
# Row 1 is our old friend .4419, .6515, .5683. Note the order of the product: **weights
# on the left**. A row of weights, `[seq_len]`, times the inputs,
# `[seq_len, hidden]`, leaves `[hidden]`: one context vector. Written the other way
# round, `inputs.T @ weights` runs too, since all the sizes fit. It gives a table of
# shape `[hidden, seq_len]` that mixes the tokens by the *columns* of the weights. No
# error, no sense.
#
# ### Exercise 7: three lines for a whole batch
#
# ●●●○○ · 10 minutes · 2 points
#
# Write `simple_attention` for a batch of sequences, without a loop. Sequences must not
# see one another. And remember what `.T` does to a batch: it turns *all* the axes
# around.


# %% exercise="simple.matmul"
def simple_attention(x):
    """Simple self-attention: every token becomes an average of its sequence.

    Args:
        x: FloatTensor[batch_size, seq_len, hidden]
    Returns:
        FloatTensor[batch_size, seq_len, hidden]
    """
    ### BEGIN SOLUTION
    scores = x @ x.transpose(-2, -1)  # [batch_size, seq_len, seq_len]
    weights = torch.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]
    return weights @ x  # [batch_size, seq_len, hidden]
    ### END SOLUTION


# %% check="simple.matmul" points=2
check("simple.matmul")

# %% [markdown]
# ## 10. What is still missing
#
# Two experiments, to see what three lines cannot do. **Before you run this:** if we
# shuffle the words of the sentence, what happens to the context vectors?

# %%
order = torch.tensor([5, 2, 0, 4, 1, 3])
shuffled = simple_attention(inputs[order][None])[0]  # [seq_len, hidden]
print("the same vectors, shuffled:", torch.allclose(shuffled, Z[order], rtol=0, atol=1e-6))

# %% [markdown]
# They are shuffled along, and otherwise untouched. Attention by itself does not know
# word order: *dog bites man* and *man bites dog* give the same three context vectors.
# Models therefore add
# [positions](../../docs/glossary.md#positional-embedding) to their inputs.
#
# Second: who is looked at most? Average each column of the weights, and compare with
# the lengths of the vectors.

# %%
popularity = weights.mean(dim=0)  # [seq_len]
length = inputs.norm(dim=-1)  # [seq_len]
for token, share, size in zip(tokens, popularity.tolist(), length.tolist(), strict=True):
    print(f"{token:<8} is given {share:.3f} on average, length {size:.2f}")

# %% [markdown]
# "journey" and "starts", the two longest vectors, get the most attention from
# *everyone*. Similarity is what it is; nobody can ask for anything in particular. A
# verb cannot say "I am looking for my subject", because the only thing it can look for
# is something like itself.
#
# What is missing is the freedom to *ask* with one vector, to *be found* by another, and
# to *hand over* a third. Those are queries, keys and values, and they are learned.
#
# ## Did it stick?
#
# **1.** Why can an encoder-decoder RNN lose the beginning of a long sentence, and what
# did Bahdanau's attention change?
# <details><summary>Answer</summary>The decoder gets the encoder's last state only, a
# vector of fixed size that every step overwrites a little. With attention, all states are
# kept, and at each step the decoder takes a weighted average of them, with weights
# computed anew.</details>
#
# **2.** What is the difference between self-attention and the traditional kind?
# <details><summary>Answer</summary>Traditionally, elements of one sequence look at
# another sequence (a translation at its original). In self-attention the elements of one
# sequence look at each other.</details>
#
# **3.** Two scores are 3 and 5. How many times more weight does the second get from the
# softmax? And if they are 103 and 105?
# <details><summary>Answer</summary>$e^{5-3} = e^2 \approx 7.4$ times, and the same again:
# softmax sees differences only.</details>
#
# **4.** A colleague subtracts the maximum of the whole table before the exponential, to
# save time. When does it go wrong?
# <details><summary>Answer</summary>When some row lies far below that maximum (by more
# than about 100 in float32). All its exponentials underflow to 0, and $0/0$ is <code>nan</code>.
# Each row needs a maximum of its own.</details>
#
# **5.** Can a context vector of simple attention have a feature that is larger than that
# feature of every token?
# <details><summary>Answer</summary>No. The weights are positive and sum to 1, so each
# feature of $z$ is an average of that feature over the tokens and lies between the
# smallest and the largest.</details>
#
# ## What comes next
#
# Lesson 02 gives each token three roles, query, key and value, with matrices
# that can be learned, and explains the most famous square root in machine learning.
