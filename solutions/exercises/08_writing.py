"""The lesson after 08: the parts around attention, targets, a bigram table, and drawing a token."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, exercise
from autograder.judging.compare import named_errors
from autograder.judging.layers import judge_layers
from transformer_lm.modeling_attention import MultiHeadSelfAttention

INF = float("inf")


# --- the parts around attention ------------------------------------------------------------------
def features(draw: Draw) -> list[Call]:
    """Vectors far from 0, vectors that hardly vary (where epsilon counts), and one token alone."""
    calls = []
    for spread, shift in ((2.0, 3.0), (3e-3, 0.5), (1.0, -1.0)):
        batch_size, seq_len, hidden = draw.sizes(3, 3, 13)
        x = draw.normal(batch_size, seq_len, hidden, scale=spread) + shift
        weights = {"weight": draw.normal(hidden) + 1, "bias": draw.normal(hidden)}
        says = f"{batch_size} sequences of {seq_len} vectors of size {hidden}, spread {spread}"
        calls.append(Call("", (x,), init=(hidden,), weights=weights, says=says))
    return calls


@exercise("writing.norm", features, rtol=1e-3, judge=judge_layers,
          hints=(
              "Each vector by itself: take off its mean, divide by its spread.",
              "mean and var(unbiased=False) over the last dimension, keepdim=True. `self.eps` goes "
              "to the variance, below the root.",
              "(x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias"))
class LayerNorm(nn.Module):
    dim, unbiased, centred, gain, shift, where, rooted = -1, False, True, True, True, "inside", True
    own, inside, spread, more = None, False, "variance", 0.0

    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(self.dim, keepdim=True)
        var = x.var(self.dim, keepdim=True, unbiased=self.unbiased)
        if self.centred == "only the spread":
            mean = torch.zeros_like(mean)
        if self.centred == "nothing":
            mean, var = torch.zeros_like(mean), x.square().mean(self.dim, keepdim=True)
        eps = self.eps if self.own is None else self.own
        if self.spread == "distance":
            var = (x - mean).abs().mean(self.dim, keepdim=True).square()
        if self.spread == "square":
            var = x.square().mean(self.dim, keepdim=True)
        if self.spread == "two signs":
            var = x.square().mean(self.dim, keepdim=True) + mean.square()
        if self.spread == "sum":
            var = (x - mean).square().sum(self.dim, keepdim=True)
        below = var + eps if self.where in ("inside", "both") else var
        below = below.sqrt() if self.rooted else below
        below = below + eps if self.where in ("outside", "both") else below
        out = (x - mean) / below
        if self.inside:
            return (out + self.bias) * self.weight
        out = out * (self.weight + self.more if self.gain else 1)
        return out + (self.bias if self.shift else 0)

wrong = LayerNorm.wrong
wrong("norm.unbiased", "The variance is divided by n - 1, as `var` does by itself; here it is n.",
      unbiased=True)
wrong("norm.not centred", "The mean is taken off above the line only: below stands the mean "
      "square, not the variance.", spread="square")
wrong("norm.over the tokens", "Mean and variance run over the tokens. A token must not know of "
      "later ones, so each vector is normalised by itself.", dim=1)
wrong("norm.over the tokens", "Mean and variance run over all tokens of the batch, as in a batch "
      "norm. Each vector is normalised by itself.", dim=(0, 1))
wrong("norm.over the batch", "Mean and variance run over the batch.", dim=0)
wrong("norm.over all", "There is one mean for everything. Each vector has its own.", dim=(0, 1, 2))
wrong("norm.over all", "There is one mean for each sequence. Each vector has its own.", dim=(1, 2))
wrong("norm.eps outside", "Epsilon is added to the root. It belongs to the variance, below the "
      "root.", where="outside")
wrong("norm.no eps", "No epsilon is added to the variance; it keeps a vector that does not vary "
      "from a division by 0.",
      where="nowhere")
wrong("norm.variance", "It is divided by the variance, not by its root.", rooted=False)
wrong("norm.not centred", "The mean is not taken off.", centred="only the spread")
wrong("norm.not centred", "The mean is not taken off, and the spread is counted from 0: this is "
      "an RMS norm.", centred="nothing")
wrong("norm.weight from 0", "The weight counts from 0, as 1 + weight; it begins at 1 and is "
      "used as it is.", more=1.0)
wrong("norm.no weight", "`weight` is not used.", gain=False)
wrong("norm.no bias", "`bias` is not used.", shift=False)
wrong("norm.eps outside", "Epsilon is added twice: below the root, where it belongs, and to the "
      "root.", where="both")
for number in (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0):
    wrong("norm.other eps", f"An epsilon of your own is used, {number:g}; `self.eps` is asked for.",
          own=number)
wrong("norm.bias inside", "The bias is multiplied by the weight; it is added at the end.",
      inside=True)
wrong("norm.variance", "It is divided by the mean distance from the mean, not by the root of the "
      "mean square.", spread="distance")
wrong("norm.variance", "The squared mean is added to the mean square; it is taken away.",
      spread="two signs")
wrong("norm.variance", "The squares are summed, not averaged.", spread="sum")


def by_tanh(x, inner, root=(2 / torch.pi) ** 0.5):
    return 0.5 * x * (1 + torch.tanh(root * inner))


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


@exercise("writing.mlp", "MLP(hidden)(x[batch_size, seq_len, hidden])", rtol=3e-5,
          judge=judge_layers, gradients=True,
          hints=(
              "Two layers and one bend between. How wide is it in the middle?",
              "`up` leads from hidden to 4 * hidden, `down` back.",
              "self.down(F.gelu(self.up(x), approximate='tanh'))"))
class MLP(nn.Module):
    bend, late, skip = staticmethod(tanh_gelu), staticmethod(lambda x: x), False
    early = staticmethod(lambda x: x)

    def __init__(self, hidden):
        super().__init__()
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        return self.late(self.down(self.bend(self.up(self.early(x))))) + (x if self.skip else 0)

wrong = MLP.wrong
wrong("mlp.no bend", "There is nothing between the two layers, so they are one: a product of two "
      "matrices is a matrix.", bend=staticmethod(lambda x: x))
for name, bend in (("relu", torch.relu), ("silu", F.silu), ("tanh", torch.tanh),
                   ("sigmoid", torch.sigmoid), ("the exact gelu", F.gelu),
                   ("leaky relu", F.leaky_relu), ("elu", F.elu),
                   ("x sigmoid(1.702 x)", lambda x: x * torch.sigmoid(1.702 * x)),
                   ("a softmax", lambda x: x.softmax(-1)),
                   ("the formula with h**2 for h**3", lambda x: by_tanh(x, x + 0.044715 * x**2)),
                   ("the formula with - for + before h**3",
                    lambda x: by_tanh(x, x - 0.044715 * x**3)),
                   ("the formula without h", lambda x: by_tanh(x, 0.044715 * x**3)),
                   ("the formula without h**3", lambda x: by_tanh(x, x)),
                   ("the formula with another number than 0.044715",
                    lambda x: by_tanh(x, x + 0.44715 * x**3)),
                   ("the formula without the root of 2 / pi",
                    lambda x: by_tanh(x, x + 0.044715 * x**3, 1.0)),
                   ("the formula with 2 / pi, not its root",
                    lambda x: by_tanh(x, x + 0.044715 * x**3, 2 / torch.pi)),
                   ("the formula without its 1 +", lambda x: tanh_gelu(x) - 0.5 * x),
                   ("the formula without the x in front", lambda x: tanh_gelu(x) / x),
                   ("relu squared", lambda x: torch.relu(x) ** 2),
                   ("softplus", F.softplus), ("selu", F.selu), ("relu6", F.relu6),
                   ("tanh(x) x", lambda x: x.tanh() * x),
                   ("twice as large (the 0.5 of the formula is missing)",
                    lambda x: 2 * tanh_gelu(x))):
    wrong("mlp.other bend", f"The bend is {name}; asked for is GPT-2's, gelu with approximate="
          "'tanh'.", bend=staticmethod(bend))
wrong("mlp.bend at the end", "The bend comes behind the second layer.",
      bend=staticmethod(lambda x: x), late=staticmethod(tanh_gelu))
wrong("mlp.bend at the start", "The bend comes before the first layer. It stands between the two.",
      bend=staticmethod(lambda x: x), early=staticmethod(tanh_gelu))
wrong("mlp.bent twice", "There is a bend behind the second layer too: then the stream could never "
      "be made smaller.", late=staticmethod(tanh_gelu))
wrong("mlp.adds x", "x is added here. The block does that; added twice, it counts twice.",
      skip=True)


@exercise("writing.block", "Block(hidden, num_heads)(x[batch_size, seq_len, hidden]) where "
          "hidden = num_heads * head_size", sizes={"num_heads": (2, 3), "head_size": (4, 5)},
          gradients=True, judge=judge_layers,
          hints=(
              "There is one stream. Attention and MLP read it through a norm, and add to it.",
              "x = x + attention(norm_1(x)), then the same with the MLP and norm_2.",
              "The second line reads the x that the first one has made: x + self.mlp(self.norm_2("
              "x))."))
class Block(nn.Module):
    style, keep_1, keep_2, norms, parallel, causal = "before", True, True, (1, 2), False, True
    order, after = ("attention", "mlp"), ""

    def __init__(self, hidden, num_heads):
        super().__init__()
        self.norm_1 = nn.LayerNorm(hidden)
        self.attention = MultiHeadSelfAttention(hidden, hidden, num_heads, causal=self.causal)
        self.norm_2 = nn.LayerNorm(hidden)
        self.mlp = MLP(hidden)

    def forward(self, x):
        keeps, start = {"attention": self.keep_1, "mlp": self.keep_2}, x
        for name, number in zip(self.order, self.norms, strict=True):
            norm = getattr(self, f"norm_{number}") if number else nn.Identity()
            part, read = getattr(self, name), start if self.parallel else x
            if self.style == "before":
                x = (x if keeps[name] else 0) + part(norm(read))
            elif self.style == "behind":
                x = norm((x if keeps[name] else 0) + part(read))
            elif self.style == "on the part":
                x = (x if keeps[name] else 0) + norm(part(read))
            elif self.style == "from the start":
                x = start + part(norm(read))
            elif self.style == "through both norms":
                x = x + part(norm(read if name == self.order[0] else self.norm_1(read)))
            elif self.style == "attention taken away":
                x = x - part(norm(read)) if name == self.order[0] else x + part(norm(read))
            elif self.style == "averaged":
                x = (x + part(norm(read))) / (2 if name == self.order[0] else 1)
            elif self.style == "scaled":
                x = (x + part(norm(read))) / (2**0.5 if name == self.order[0] else 1)
            elif self.style == "norm of the norm":
                read = x if name == self.order[0] else self.norm_1(start)
                x = x + part(norm(read))
            elif self.style in ("normalised for attention", "normalised for the MLP"):
                here = self.style == f"normalised for {'attention' if x is start else 'the MLP'}"
                x = (norm(read) if here else x) + part(norm(read))
            elif self.style == "alone":
                read = x if name == self.order[0] else x - start
                x = x + part(norm(read))
            elif self.style == "lost":
                x = start * (name == self.order[1]) + part(norm(read))
            else:
                x = norm(read) + part(norm(read))
        return getattr(self, self.after)(x) if self.after else x

wrong = Block.wrong
wrong("block.norm behind", "The norms stand behind the sums, as in the first transformers. Here "
      "each part reads through its norm, and the stream itself is never normalised.",
      style="behind")
wrong("block.norm behind", "The norms stand behind the parts; each part should read through its "
      "norm.", style="on the part")
wrong("block.stream replaced", "What is added to is the normalised stream; then what stood in the "
      "stream is lost.", style="normalised")
wrong("block.stream replaced", "What attention adds to is the normalised stream; then what stood "
      "in the stream is lost.", style="normalised for attention")
wrong("block.stream replaced", "What the MLP adds to is the normalised stream; then what stood in "
      "the stream is lost.", style="normalised for the MLP")
wrong("block.stream lost", "The MLP's part is added to what came into the block: what attention "
      "has added is lost.", style="from the start")
wrong("block.stream not read", "The MLP reads the normalised input of attention, not what "
      "attention has added to the stream.", style="norm of the norm")
wrong("block.stream not read", "The MLP reads what attention has added alone. It reads the whole "
      "stream: x and what attention has added to it.", style="alone")
wrong("block.stream not read", "The MLP reads the stream through both norms.",
      style="through both norms")
wrong("block.no sum", "What attention gives is taken away; it is added.",
      style="attention taken away")
wrong("block.no sum", "The stream and what attention gives are averaged; they are added.",
      style="averaged")
wrong("block.no sum", "The sum with what attention gives is divided by the root of 2. It is added "
      "as it is.", style="scaled")
wrong("block.no sum", "Neither part adds to the stream: each replaces it.",
      keep_1=False, keep_2=False)
wrong("block.no sum", "Attention replaces the stream. It should add to it.", keep_1=False)
wrong("block.no sum", "The MLP replaces the stream. It should add to it.", keep_2=False)
wrong("block.one norm twice", "Both parts read through the first norm.", norms=(1, 1))
wrong("block.one norm twice", "Both parts read through the second norm.", norms=(2, 2))
wrong("block.stream lost", "The MLP adds to what stood in the stream before; what attention "
      "brought is read by the MLP and then lost.", style="lost")
wrong("block.one part", "The MLP is left out.", order=("attention",), norms=(1,))
wrong("block.one part", "Attention is left out.", order=("mlp",), norms=(2,))
wrong("block.one part", "Attention comes twice, and the MLP is left out.",
      order=("attention", "attention"))
wrong("block.norm behind", "There is a norm behind the last sum. The stream leaves the block as it "
      "is.",
      after="norm_2")
wrong("block.norm behind", "There is a norm behind the last sum. The stream leaves the block as it "
      "is.",
      after="norm_1")
wrong("block.norms swapped", "The norms are swapped.", norms=(2, 1))
wrong("block.no norm", "Attention reads the stream without its norm.", norms=(0, 2))
wrong("block.no norm", "The MLP reads the stream without its norm.", norms=(1, 0))
wrong("block.no norm", "There are no norms at work.", norms=(0, 0))
wrong("block.parallel", "The MLP reads the stream as it was before attention.", parallel=True)
wrong("block.order", "The MLP comes first. Attention does, with norm_1.",
      order=("mlp", "attention"), norms=(2, 1))
wrong("block.order", "The MLP comes first, through norm_1. Attention does.",
      order=("mlp", "attention"))
wrong("mask.none", "The attention is not causal: later tokens are seen.", causal=False)


@exercise("writing.embed", "embed(ids[batch_size, seq_len].long(vocab), tokens[vocab, hidden], "
          "places[context_length, hidden]) where context_length = seq_len + 3", gradients=True,
          hints=(
              "A table can be indexed by a tensor of ids. Which row of `places` belongs to which "
              "token?",
              "`tokens[ids]` is [batch_size, seq_len, hidden]. The places 0 to seq_len - 1 are the "
              "same for all sequences.",
              "tokens[ids] + places[: ids.shape[1]]"))
def embed(ids, tokens, places, first=0, of_tokens=True, of_places=True, at=None):
    n = ids.shape[1]
    rows = places[first : first + n] if at is None else at(ids, places)
    return (tokens[ids] if of_tokens else 0) + (rows if of_places else 0)

wrong = embed.wrong
wrong("embed.no positions", "There are no positions: the model cannot know in which order tokens "
      "stand.", of_places=False)
wrong("embed.no tokens", "There are no tokens, only positions.",
      lambda ids, tokens, places: places[: ids.shape[1]].expand(len(ids), -1, -1))
wrong("embed.positions from 1", "Positions count from 1. The first token stands at 0.", first=1)
wrong("embed.of the sequence", "Each sequence gets one position's vector, its own number's in the "
      "batch. Each token has a place in its sequence.",
      at=lambda ids, places: places[torch.arange(len(ids)) % len(places)][:, None])
wrong("embed.one position", "All tokens get the first position's vector.",
      at=lambda ids, places: places[:1])
wrong("embed.one position", "All tokens get the last position's vector.",
      at=lambda ids, places: places[ids.shape[1] - 1])
wrong("embed.averaged", "Tokens and positions are averaged; add them.",
      lambda ids, tokens, places: (tokens[ids] + places[: ids.shape[1]]) / 2)
wrong("embed.last positions", "The last rows of the table are used. Short texts begin at 0 too.",
      at=lambda ids, places: places[-ids.shape[1] :])
wrong("embed.backwards", "Positions count from the end.",
      at=lambda ids, places: places[: ids.shape[1]].flip(0))
wrong("embed.positions by token", "The token's id is used as its position.",
      at=lambda ids, places: places[ids % len(places)])
wrong("embed.multiplied", "Tokens and positions are multiplied; add them.",
      lambda ids, tokens, places: tokens[ids] * places[: ids.shape[1]])
wrong("embed.scaled", "The tokens are multiplied by the root of hidden, as in the first "
      "transformers; GPT-2 does not.",
      lambda ids, tokens, places: tokens[ids] * tokens.shape[1] ** 0.5 + places[: ids.shape[1]])


# --- batches -------------------------------------------------------------------------------------
def pages(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(2):
        batch_size, seq_len = draw.sizes(2, 3, 7)
        n = draw.integer(40, 60)
        starts = draw.integers(0, n - seq_len, batch_size)
        starts[0], starts[1] = n - seq_len - 1, 0  # the last place where a row fits, and the first
        ids = torch.randperm(97, generator=draw.generator)[:n]
        says = f"{batch_size} rows of {seq_len} out of a text of {n} tokens"
        calls.append(Call("", (ids, starts, seq_len), says=says))
    return calls


TOO_FAR = [("out of (bounds|range)", "targets.past the end",
            "A row was read beyond the text, before its first token or behind its last: the "
            "targets reach one token further than the inputs, and no more."),
           ("stack expects|same size", "targets.past the end",
            "Not all rows have seq_len tokens: a slice ends too early, or beyond the text, where "
            "it is cut short. The targets reach one token further than the inputs, and no more.")]


@exercise("writing.batch", pages, judge=partial(named_errors, errors=TOO_FAR),
          hints=(
              "What does the model see at place i, and what should it predict there?",
              "A row of inputs is ids[start : start + seq_len]. The target at each place is the "
              "token that follows it.",
              "Targets are ids[start + 1 : start + seq_len + 1]; torch.stack puts rows together."))
def cut_batch(ids, starts, seq_len, shift=1, late=0, wrapped=False, swapped=False):
    places = starts[:, None] + torch.arange(seq_len)
    inputs = ids[(places + late) % len(ids)]
    targets = ids[(places + late + shift) % len(ids)]
    if wrapped:
        targets = inputs.roll(-shift, 1)
    return (targets, inputs) if swapped else (inputs, targets)

wrong = cut_batch.wrong
wrong("targets.not shifted", "Targets are the inputs themselves. A model learns to copy what it "
      "sees, in no time, and nothing else.", shift=0)
wrong("targets.shifted twice", "Targets are two tokens ahead: the token in between is never "
      "predicted.", shift=2)
wrong("targets.backwards", "Targets are the tokens *before* the inputs. Those have been seen.",
      shift=-1)
wrong("targets.wrapped", "The inputs are rolled, so the last target of each row is its first "
      "input.", wrapped=True)
wrong("targets.wrapped", "The inputs are rolled the other way round.", wrapped=True, shift=-1)
wrong("targets.swapped", "Inputs and targets are swapped.", swapped=True)
wrong("targets.start ignored", "Rows begin one token too late.", late=1)
wrong("targets.start ignored", "The rows follow one another from the beginning; `starts` says "
      "where each begins.", lambda ids, starts, seq_len: cut_batch(
          ids, seq_len * torch.arange(len(starts)), seq_len))
wrong("targets.one token short", "Rows are one token shorter than asked for. Read seq_len + 1 "
      "tokens, to have seq_len pairs.",
      lambda ids, starts, seq_len: cut_batch(ids, starts, seq_len - 1))
wrong("targets.one token short", "The targets' last token is missing: they reach one token further "
      "than the inputs.", lambda ids, starts, seq_len: (
          cut_batch(ids, starts, seq_len)[0], cut_batch(ids, starts, seq_len - 1)[1]))
wrong("targets.last copied", "The last target of each row is its last input; it is the token after "
      "it.",
      lambda ids, starts, seq_len: (
          lambda x, y: (x, torch.cat([y[:, :-1], x[:, -1:]], 1)))(*cut_batch(ids, starts, seq_len)))
wrong("targets.whole row", "Targets are one token only, that after the row. Every place has one.",
      lambda ids, starts, seq_len: (ids[starts[:, None] + torch.arange(seq_len)],
                                    ids[starts + seq_len]))


# --- the baseline --------------------------------------------------------------------------------
def corpora(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        vocab = draw.choice((5, 7, 11))
        likes = draw.normal(vocab, vocab, scale=1.5).softmax(-1)
        texts = []
        for n in (draw.integer(80, 160), draw.integer(40, 70)):
            ids = [0]
            for _ in range(n):
                ids.append(int(torch.multinomial(likes[ids[-1]], 1, generator=draw.generator)))
            texts.append(torch.tensor(ids[1:]))
        texts[1][:2] = torch.tensor([vocab - 1, vocab - 1])
        says = f"{len(texts[0])} tokens to count, {len(texts[1])} held out, {vocab} kinds"
        calls.append(Call("", (*texts, vocab), says=says))
    return calls


@exercise("writing.bigram", corpora,
          hints=(
              "How often does b follow a? Counting pairs makes a table [vocab, vocab].",
              "Add 1 to every count, so that a pair never met is not impossible. Then each *row* "
              "is divided by its sum.",
              "table = torch.ones(V, V); table.index_put_((ids[:-1], ids[1:]), torch.tensor(1.0), "
              "accumulate=True); the loss is the mean of -log(table / row sums)[held[:-1], "
              "held[1:]]."))
def bigram_loss(ids, held_out, vocab_size, add=1.0, over=-1, log=torch.log, turned=False,
                tested=None, total=torch.mean, pairs=True, follows=1, once=False):
    counts = torch.full((vocab_size, vocab_size), float(add), dtype=torch.float64)
    one = torch.tensor(add + 1.0 if once else 1.0, dtype=torch.float64)
    counts.index_put_((ids[:-follows], ids[follows:]), one, accumulate=not once)
    counts = counts.T if turned else counts
    probs = counts / counts.sum(over, keepdim=True)
    if not pairs:
        probs = (counts.sum(0) / counts.sum()).expand_as(counts)
    text = ids if tested == "train" else held_out
    return -total(log(probs[text[:-1], text[1:]])).item()

def bigram_ends(ids, first, second, vocab):
    counts = torch.ones(vocab, vocab, dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    counts.index_put_((ids[:-1], ids[1:]), one, accumulate=True)
    return -by_rows(counts)[first, second].log().mean().item()


def bigram_of_pairs(first, second, held_out, vocab):
    counts = torch.ones(vocab, vocab, dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    n = min(len(first), len(second))
    counts.index_put_((first[:n], second[:n]), one, accumulate=True)
    probs = counts / counts.sum(-1, keepdim=True)
    return -probs[held_out[:-1], held_out[1:]].log().mean().item()


def by_rows(counts):
    return counts / counts.sum(-1, keepdim=True).clamp(min=1)


def from_counts(ids, held_out, vocab_size, probabilities):
    """The loss where the table of counts becomes probabilities in another way."""
    counts = torch.zeros(vocab_size, vocab_size, dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    counts.index_put_((ids[:-1], ids[1:]), one, accumulate=True)
    return -probabilities(counts)[held_out[:-1], held_out[1:]].log().mean().item()


wrong = bigram_loss.wrong
wrong("bigram.transposed", "The table says what comes *before* a token.", turned=True)
wrong("bigram.columns", "Columns are divided by their sums. Of the tokens that follow a given one, "
      "the probabilities should sum to 1: rows.", over=0)
wrong("bigram.columns", "Everything is divided by one sum: these are probabilities of pairs, not "
      "of a token given the one before.", over=(0, 1))
wrong("bigram.not smoothed", "Pairs that were never met have probability 0, and one of them in the "
      "held-out text makes the loss infinite. Add 1 to each count.", add=0.0)
wrong("bigram.other smoothing", "1 / V is added to each count; asked for is 1.",
      lambda ids, held_out, vocab: bigram_loss(ids, held_out, vocab, add=1 / vocab))
for amount in (2.0, 0.5, 0.1, 0.01, 1e-3, 1e-5, 1e-6, 1e-8, 1e-9, 1e-10):
    wrong("bigram.other smoothing", f"{amount:g} is added to each count; asked for is 1.",
          add=amount)
wrong("bigram.bits", "The loss is in bits (log2), not in nats.", log=torch.log2)
wrong("bigram.sign", "The sign is wrong: a loss is not negative.", total=lambda x: -x.mean())
wrong("bigram.summed", "The loss is summed, not averaged.", total=torch.sum)
wrong("bigram.probabilities averaged", "The mean is taken before the logarithm.",
      log=lambda p: p.mean().log())
wrong("bigram.probabilities averaged", "That is the mean probability; the loss is the mean of "
      "-log(probability).", log=lambda p: -p)
wrong("bigram.on its own text", "The loss is measured on the text that was counted.",
      tested="train")
wrong("bigram.unigram", "The token before is not used: these are frequencies.", pairs=False)
wrong("bigram.unigram", "The token before is not used: each row holds the same counts.",
      lambda *a: from_counts(*a, lambda c: ((c.sum(0) + 1) / (c.sum(0) + 1).sum()).expand_as(c)))
wrong("bigram.two apart", "Every other pair is counted: each token is the first of one pair and "
      "the second of another.", lambda ids, held_out, vocab: bigram_of_pairs(
          ids[:-1:2], ids[1::2], held_out, vocab))
wrong("bigram.both texts", "The held-out text is counted as well. The table may not know it.",
      lambda ids, held_out, vocab: bigram_of_pairs(
          torch.cat([ids[:-1], held_out[:-1]]), torch.cat([ids[1:], held_out[1:]]),
          held_out, vocab))
wrong("bigram.both texts", "The pairs are counted in the held-out text. The table may not know it.",
      lambda ids, held_out, vocab: bigram_loss(held_out, held_out, vocab))
wrong("bigram.both texts", "The two texts are swapped: counted is the held-out one.",
      lambda ids, held_out, vocab: bigram_loss(held_out, ids, vocab))
wrong("bigram.other smoothing", "The number of kinds is added to each count; asked for is 1.",
      lambda ids, held_out, vocab: bigram_loss(ids, held_out, vocab, add=vocab))
wrong("bigram.transposed", "Each pair is counted both ways round.",
      lambda *a: from_counts(*a, lambda c: by_rows(c + c.T + 1)))
wrong("bigram.two apart", "The loss is that of predicting the token after the next one.",
      lambda ids, held_out, vocab: bigram_ends(ids, held_out[:-2], held_out[2:], vocab))
wrong("bigram.number of pairs", "The last pair of the held-out text is left out.",
      lambda ids, held_out, vocab: bigram_loss(ids, held_out[:-1], vocab))
wrong("bigram.number of pairs", "The first pair of the held-out text is left out.",
      lambda ids, held_out, vocab: bigram_loss(ids, held_out[1:], vocab))
wrong("bigram.number of pairs", "The sum is divided by the number of tokens; of pairs there is one "
      "less.", total=lambda x: x.sum() / (len(x) + 1))
wrong("bigram.two apart", "The pairs are two tokens apart.", follows=2)
wrong("bigram.perplexity", "That is the perplexity, exp of the loss. The loss is asked for.",
      total=lambda x: -(-x.mean()).exp())
wrong("bigram.softmax twice", "The probabilities went through a softmax, as cross_entropy does "
      "with what it is given. Give it logarithms, or take -log of the probabilities.",
      lambda *a: from_counts(*a, lambda c: by_rows(c + 1).softmax(-1)))
wrong("bigram.log10", "The logarithm is that of base 10; nats are asked for.", log=torch.log10)
wrong("bigram.softmax", "The counts went through a softmax. They are divided by their sum.",
      lambda *a: from_counts(*a, lambda c: (c + 1).softmax(-1)),
      lambda *a: from_counts(*a, lambda c: c.softmax(-1)))
wrong("bigram.other smoothing", "Only the counts that are 0 become 1; 1 is added to all.",
      lambda *a: from_counts(*a, lambda c: by_rows(c.clamp(min=1))))
wrong("bigram.other smoothing", "1 is added to probabilities, not to counts.",
      lambda *a: from_counts(*a, lambda c: by_rows(c) + 1))
wrong("bigram.other smoothing", "1 is added to each count, and only 1 to the sum they are divided "
      "by. A row of V counts has grown by V.",
      lambda *a: from_counts(*a, lambda c: (c + 1) / (c.sum(-1, keepdim=True) + 1)))
wrong("bigram.other smoothing", "1 is added to each count, and not to the sum they are divided by.",
      lambda *a: from_counts(*a, lambda c: (c + 1) / c.sum(-1, keepdim=True)))
wrong("bigram.transposed", "The table is made right and read the wrong way round: the row is the "
      "token before, the column the one that follows.",
      lambda *a: from_counts(*a, lambda c: ((c + 1) / (c + 1).sum(-1, keepdim=True)).T))
wrong("bigram.columns", "Each column is divided by the sum of the row of its number: "
      "`keepdim=True` is missing.", lambda *a: from_counts(*a, lambda c: (c + 1) / (c + 1).sum(1)))
wrong("bigram.counted once", "A pair that comes often counts once. `counts[a, b] += 1` with "
      "tensors as indices adds only once; use accumulate=True, or bincount.", once=True)


# --- drawing a token -----------------------------------------------------------------------------
def peaks(draw: Draw, *more) -> tuple:
    """Logits of three contexts, one of them nearly even; none of two tokens are near each other."""
    vocab = draw.choice((9, 11, 13))
    rows = []
    for step in (0.45, 0.08, 0.8):
        order = torch.randperm(vocab, generator=draw.generator)
        rows.append(step * (torch.arange(vocab) + draw.uniform(vocab, high=0.6))[order] - 2.0)
    return torch.stack(rows), *more


def heated(draw: Draw) -> list[Call]:
    asked = [(t, k) for t in (1.0, draw.choice((0.5, 0.7)), draw.choice((1.6, 2.5)))
             for k in (draw.integer(2, 4), 100)]
    return [Call("", peaks(draw, t, k), says=f"temperature {t}, the best {k}") for t, k in asked]


@exercise("writing.top_k", heated,
          hints=(
              "A temperature below 1 makes the differences of logits larger: divide by it.",
              "All but the k best logits must get probability 0. Which logit does that?",
              "smallest = logits.topk(min(k, V)).values[..., -1:]; where logits < smallest put "
              "-inf; then softmax(logits / t)."))
def top_k(logits, temperature, k, power=-1.0, more=0, fill=-INF, again=True, squashed=False,
          largest=True, hot=True, over=-1):
    scaled = logits * temperature**power if hot else logits
    k = max(min(k + more, logits.shape[-1]), 1)
    best = scaled.topk(k, -1, largest=largest).indices
    dropped = torch.ones_like(logits).bool().scatter(-1, best, False)
    if squashed:
        probs = (scaled.softmax(-1) / temperature).masked_fill(dropped, -INF).softmax(-1)
        return probs
    if not again:
        return scaled.softmax(-1).masked_fill(dropped, 0.0)
    return scaled.masked_fill(dropped, fill).softmax(over)

def one_threshold(logits, temperature, k, of):
    least = of(logits.topk(min(k, logits.shape[-1])).values[..., -1])
    return (logits / temperature).masked_fill(logits < least, -INF).softmax(-1)


wrong = top_k.wrong
wrong("temperature.multiplied", "The logits are multiplied by the temperature; divide by it.",
      power=1.0)
wrong("temperature.ignored", "The temperature is not used.", hot=False)
wrong("temperature.root", "The logits are divided by the temperature's root.", power=-0.5)
wrong("temperature.after the softmax", "The temperature divides probabilities, not logits.",
      lambda logits, t, k: top_k(logits, 1.0, k) / t)
wrong("temperature.after the softmax", "The temperature divides probabilities, and a second "
      "softmax makes them nearly even.", squashed=True)
wrong("top-k.one too many", "One token too many is kept.", more=1)
wrong("top-k.one too few", "One token too few is kept.", more=-1)
wrong("top-k.one too few", "The k-th best itself is taken away: compare with <, not with <=.",
      lambda logits, t, k: logits.masked_fill(
          logits <= logits.topk(min(k, logits.shape[-1])).values[..., -1:],
          -INF).div(t).softmax(-1))
wrong("top-k.not normalised", "What is kept does not sum to 1: the others were taken away after "
      "the softmax.", again=False)
wrong("top-k.filled with 0", "The others' logits become 0 or next to it, and exp of that is 1.",
      fill=0.0)
wrong("softmax.dim", "The softmax runs over the rows, which are contexts. Use the last dimension.",
      over=0)
for number in (-1.0, -2.0, -5.0, -10.0):
    wrong("top-k.filled with a number", f"The others' logits become {number:g}, and exp "
          "of that is no 0.", fill=number)
    wrong("top-k.filled with a number", f"The others' logits become {number:g} before "
          "they are divided by the temperature, and exp of that is no 0.",
          lambda logits, t, k, n=number: top_k(logits, t, k, fill=n / t))
wrong("top-k.smallest", "The k worst tokens are kept.", largest=False)
wrong("top-k.one threshold", "One threshold is used for all rows; each has its own k-th best.",
      lambda logits, t, k: one_threshold(logits, t, k, torch.amin),
      lambda logits, t, k: one_threshold(logits, t, k, torch.amax))
wrong("top-k.missing", "Nothing is taken away.", lambda logits, t, k: (logits / t).softmax(-1))
wrong("top-k.logits", "What comes back are logits, not probabilities.",
      lambda logits, t, k: logits / t)
wrong("top-k.logarithms", "What comes back are logarithms of probabilities.",
      lambda logits, t, k: top_k(logits, t, k).log())
wrong("softmax.dim", "The softmax runs over the rows, which are contexts, before the best are "
      "chosen.", lambda logits, t, k: (lambda p: p / p.sum(-1, keepdim=True))(
          (lambda p: p.masked_fill(p < p.topk(min(k, p.shape[-1])).values[..., -1:], 0.0))(
              (logits / t).softmax(0))))
wrong("top-k.of all rows", "The k best of all rows together are kept; each row has its own.",
      lambda logits, t, k: top_k(logits, t, k) if k >= logits.numel() else (
          logits.masked_fill(logits < logits.flatten().topk(k).values[-1], -INF) / t).softmax(-1))
wrong("top-k.order lost", "The probabilities come back sorted, not at their tokens' places.",
      lambda logits, t, k: top_k(logits, t, k).sort(descending=True).values)
wrong("top-k.order lost", "Only k probabilities come back; each token of the vocabulary has one.",
      lambda logits, t, k: (logits.topk(min(k, logits.shape[-1])).values / t).softmax(-1))
wrong("top-k.even", "What is kept is equally probable; its logits still count.",
      lambda logits, t, k: (top_k(logits, t, k) > 0) / (top_k(logits, t, k) > 0).sum(-1, True))
wrong("top-k.greedy", "All probability is on the best token.",
      lambda logits, t, k: F.one_hot(logits.argmax(-1), logits.shape[-1]).double())


def shares(draw: Draw) -> list[Call]:
    asked = [0.3, draw.choice((0.5, 0.6)), draw.choice((0.75, 0.8)), 0.9, 0.05, 0.15]
    calls = []
    for p in asked:
        while True:  # no sum may come near p, where rounding would decide
            (logits,) = peaks(draw)
            sums = logits.softmax(-1).sort(descending=True).values.cumsum(-1)
            if (sums - p).abs().min() > 1e-3 and (1 - sums - p).abs().min() > 1e-3:
                break
        calls.append(Call("", (logits, p), says=f"p = {p}"))
    return calls


@exercise("writing.top_p", shares,
          hints=(
              "Sort by probability. How much do those before a token have together?",
              "A token stays where those before it have less than p. So the one that reaches p "
              "stays, and the best always does.",
              "probs, order = logits.softmax(-1).sort(descending=True); keep = probs.cumsum(-1) - "
              "probs < p; divide by what is left; put back with scatter(-1, order, kept)."))
def top_p(logits, p, inclusive=True, normalised=True, falling=True, back=True, first=True,
          least=None):
    probs = logits.softmax(-1)
    ordered, order = probs.sort(-1, descending=falling)
    sums = ordered.cumsum(-1)
    kept = (sums - ordered < p) if inclusive else (sums <= p)
    if not inclusive and first:
        kept = kept | (torch.arange(kept.shape[-1]) == 0)
    if least is not None:
        kept = least(ordered, p)
    ordered = ordered * kept
    ordered = ordered / ordered.sum(-1, keepdim=True) if normalised else ordered
    return torch.zeros_like(probs).scatter(-1, order, ordered) if back else ordered

def in_one_order(logits, p):
    """Each row's own numbers, put back to where those of the first belong."""
    order = logits.softmax(-1).argsort(-1, descending=True)
    kept = top_p(logits, p, back=False)
    return torch.zeros_like(kept).scatter(-1, order[:1].expand_as(order), kept)


def rows_carried_over(logits, p):
    """What a loop does that never sets the sum back to 0: each later row keeps its best only."""
    kept = top_p(logits, p)
    kept[1:] = F.one_hot(logits[1:].argmax(-1), logits.shape[-1]).to(kept)
    return kept


def as_they_stand(probs, p):
    kept = probs * (probs.cumsum(-1) - probs < p)
    return kept / kept.sum(-1, keepdim=True)


def over_a_threshold(logits, least):
    probs = logits.softmax(-1)
    kept = probs * (probs >= least)
    return kept / kept.sum(-1, keepdim=True)


wrong = top_p.wrong
wrong("top-p.one too few", "The token that reaches p is taken away: what is left has less than p.",
      inclusive=False)
wrong("top-p.one too few", "The token that reaches p is taken away; where the best alone has more "
      "than p, nothing is left.", inclusive=False, first=False)
wrong("top-p.one too many", "One token too many is kept: the one that reaches p is the last.",
      least=lambda probs, p: F.pad(probs.cumsum(-1) - probs < p, (1, 0), value=True)[..., :-1])
wrong("top-p.back the wrong way", "They are put back to other tokens: gather reads from the "
      "places in `order`. What was sorted is written to them, by scatter.",
      lambda logits, p: top_p(logits, p, back=False).gather(
          -1, logits.sort(-1, descending=True).indices))
wrong("top-p.not normalised", "What is kept does not sum to 1.", normalised=False)
wrong("top-p.not normalised", "What is kept is divided by one sum for all rows; each has its own.",
      lambda logits, p: (lambda kept: kept / kept.sum())(top_p(logits, p, normalised=False)))
wrong("top-p.not normalised", "What is kept is divided by the sum of its column; rows sum to 1.",
      lambda logits, p: (lambda kept: (kept / kept.sum(0)).nan_to_num(0.0))(
          top_p(logits, p, normalised=False)))
wrong("top-p.logarithms", "What comes back are logarithms of probabilities.",
      lambda logits, p: top_p(logits, p).log())
wrong("top-p.even", "What is kept is equally probable; its probabilities still count.",
      lambda logits, p: (top_p(logits, p) > 0) / (top_p(logits, p) > 0).sum(-1, True))
wrong("top-p.order lost", "What is kept was decided in sorted order, and is used for the tokens as "
      "they stand.", lambda logits, p: (lambda kept: kept / kept.sum(-1, keepdim=True))(
          logits.softmax(-1) * (top_p(logits, p, back=False) > 0)))
wrong("top-p.carried over", "The sum goes on from one row to the next; each row begins at 0.",
      lambda logits, p: rows_carried_over(logits, p))
wrong("top-p.smallest", "The sum begins with the least probable: the tail is kept.", falling=False)
wrong("top-p.order lost", "The probabilities come back sorted, not at their tokens' places.",
      back=False)
wrong("top-p.threshold", "Tokens with a probability of p or more are kept. p is meant for their "
      "sum.", least=lambda probs, p: (probs >= p) | (torch.arange(probs.shape[-1]) == 0))
wrong("top-p.threshold", "Tokens with p times the best one's probability are kept (that is "
      "min-p).", least=lambda probs, p: probs >= p * probs[..., :1])
wrong("top-p.share of tokens", "p is taken as a share of the tokens, not of the probability.",
      least=lambda probs, p: torch.arange(probs.shape[-1]) < max(int(p * probs.shape[-1]), 1))
wrong("top-p.not sorted", "The sum runs over the tokens as they stand. It must begin with the "
      "most probable: sort first.", lambda logits, p: as_they_stand(logits.softmax(-1), p))
wrong("top-p.one order", "All rows get the order of the first; each has its own.",
      lambda logits, p: in_one_order(logits, p))
wrong("top-p.filled with 0", "The others' logits become 0 or next to it, and exp of that is 1.",
      lambda logits, p: logits.masked_fill(top_p(logits, p) == 0, 0.0).softmax(-1))
wrong("top-p.missing", "Nothing is taken away.", lambda logits, p: logits.softmax(-1))
wrong("top-p.complement", "Tokens are kept until 1 - p is reached.",
      lambda logits, p: top_p(logits, 1 - p))
wrong("top-p.threshold", "Tokens are kept by their own probability. p is meant for a sum.",
      lambda logits, p: over_a_threshold(logits, 1 - p),
      lambda logits, p: over_a_threshold(logits, p))
wrong("top-p.softmax twice", "A second softmax makes what was taken away possible again.",
      lambda logits, p: top_p(logits, p).softmax(-1),
      lambda logits, p: top_p(logits, p, normalised=False).softmax(-1))
