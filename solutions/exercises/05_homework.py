"""Lesson 05, the graded homework: `SelfAttention` and `MultiHeadSelfAttention`.

The computation follows equation 1 and section 3.2.2 of Vaswani et al. (2017). The tasks of one
class share its answer and its mistakes; each mistake names the step that it is made in, so that it
costs the task of that step and no other.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, exercise
from autograder.judging.layers import judge_layers

from ._homework_fits import any_given, any_rising, from_outputs, from_probabilities
from .judges.homework import judge_mask, judge_output, judge_scores

INF = float("inf")
STEPS = ("scores", "mask", "output")


# --- SelfAttention -------------------------------------------------------------------------------
@exercise("self_attention.init", "SelfAttention(input_size, hidden)",
          *(f"SelfAttention(input_size, hidden).{q}(x[tokens, input_size])" for q in "qkv"),
          times=1,
          judge=partial(
              judge_layers,
              names={"not registered": "missing layer", "not set": "wrong layer"},
              says={
                  "missing layer": "There is no layer `{layer}` that learns. Make it an "
                  "`nn.Linear` in __init__.",
                  "not registered": "There is no layer `{layer}` that learns. Make it an "
                  "`nn.Linear` in __init__.",
                  "wrong width": "`{name}` has shape {got}, expected {expected}: the layer goes "
                  "from input_size to hidden.",
                  "wrong layer": "`{layer}` has the right size, but it is not `x @ weight.T + "
                  "bias` of its own.",
                  "not set": "`{name}` has the right size, but it is not the layer's own: "
                  "{problem}."}),
          hints=(
              "Three projections learn: one each for queries, keys and values. Which PyTorch layer "
              "is a matrix product plus a bias?",
              "`nn.Linear(a, b)` maps vectors of size a to vectors of size b. Here a is "
              "input_size. Do not forget `super().__init__()` before you set a layer.",
              "Name the layers `self.q`, `self.k` and `self.v`; all three go from input_size to "
              "hidden. The scale, the square root of hidden, can be kept here too."))
@exercise("self_attention.forward",
          "SelfAttention(input_size, hidden)(x[batch_size, seq_len, input_size])",
          "SelfAttention(input_size, hidden)(x[1, 1, input_size])",  # a `squeeze` shows only here
          gradients=True,
          sizes={"batch_size": (2, 3, 5)},  # more rows are more sums near 0 for those who divide
          hints=(
              "Four steps: project, score, turn scores into probabilities, average the values.",
              "x has a batch in front. `transpose(1, 2)` (or `transpose(-2, -1)`) swaps tokens and "
              "features and leaves the batch alone; `@` and `torch.bmm` work batch by batch.",
              "scores = queries times transposed keys, divided by the square root of hidden; "
              "softmax over the last dimension, which runs over the keys; then times the values."))
class SelfAttention(nn.Module):
    """One head. Each step is a method, so that a mistake can take its place."""

    made_by = ("q", "k", "v")  # the layers that make queries, keys and values

    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.num_heads, self.head_size = 1, hidden

    def linear(self, layer, x):
        return layer(x)

    def project(self, x):
        return tuple(self.linear(getattr(self, name), x) for name in self.made_by)

    def factor(self, x):
        return self.head_size**-0.5

    def hides(self):
        return False

    def hide(self, scores):
        return hide_future(scores)

    def scores(self, q, k, x):
        scores = q @ k.mT
        scaled_scores = scores * self.factor(x)
        return masked(self, scaled_scores)

    def normalise(self, scores):
        return scores.softmax(-1)

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = self.normalise(self.scores(queries, keys, x))
        return weights @ values


def hide_future(scores, first=1, value=-INF):
    """Later tokens, from the one `first` places on, are hidden: their scores become `value`."""
    return scores.masked_fill(torch.ones_like(scores).triu(first).bool(), value)


def masked(self, scores):
    return self.hide(scores) if self.hides() else scores


def scores_as_they_are(self, scores):
    return scores


# --- MultiHeadSelfAttention ----------------------------------------------------------------------
def many_heads(draw: Draw, seq_len, batch_size, input_size, num_heads, head_size, causal=False):
    hidden = num_heads * head_size
    weights = {k: w for n in "qkv" for k, w in draw.linear(n, input_size, hidden).items()}
    weights |= draw.linear("mix", hidden, hidden)
    return Call(
        "", (draw.normal(batch_size, seq_len, input_size),), {"return_attention": True},
        (input_size, hidden, num_heads), {"causal": causal}, weights,
        says=f"{batch_size} sequences of {seq_len} tokens, {num_heads} heads of size {head_size}, "
        f"causal={causal}")


def with_and_without(draw: Draw, causal=False, gradients=False) -> list[Call]:
    """The same with and without probabilities. Causal: one more, in which scores happen to be 0
    and are in sight: a mask made from the scores hides them."""
    seq_len = draw.choice((5, 7))  # fewer tokens could not tell all masks apart
    others = draw.random.sample([p for p in (2, 3, 5, 7, 11) if p != seq_len], 4)
    call = many_heads(draw, seq_len, *others, causal)
    given = {"causal": True} if causal else {}  # nothing is hidden unless it is asked for
    calls = [call, replace(call, kwargs={}, init_kwargs=given, gradients=gradients)]
    if causal:
        zeros = many_heads(draw, 12 - seq_len, *others, causal)
        zeros.args[0][:, 1] = 0
        weights = {n: w * (n not in ("q.bias", "k.bias")) for n, w in zeros.weights.items()}
        calls.append(replace(zeros, weights=weights, says=f"{zeros.says}, one token all zeros"))
    return calls


def in_all_modes(draw: Draw) -> list[Call]:
    """Gradients, a single token and head, and what dropout does."""
    calls = with_and_without(draw, gradients=True) + with_and_without(draw, gradients=True)
    # All probabilities dropped: in evaluation nothing is; in training what is left is the last
    # layer's bias, however the random numbers fall.
    dropped = replace(calls[-1], init_kwargs={"dropout": 1.0}, gradients=False)
    # A `squeeze` somewhere shows only where a dimension is 1.
    single = many_heads(draw, 1, 1, *draw.sizes(1), 1, *draw.sizes(1))
    # Half of the probabilities dropped where every token has the same values, which come out as
    # they are, and sees all alike: a head's output is those values times the mean of some dice.
    alike = many_heads(draw, 7, 13, 5, 3, 4)
    hidden = alike.init[1]
    weights = alike.weights | {
        "q.weight": torch.zeros(hidden, 5), "q.bias": torch.zeros(hidden),
        "v.weight": torch.zeros(hidden, 5), "v.bias": draw.uniform(hidden, low=1.0, high=2.0),
        "mix.weight": torch.eye(hidden), "mix.bias": torch.zeros(hidden)}
    half = replace(alike, kwargs={}, init_kwargs={"dropout": 0.5}, weights=weights)
    return [
        *calls,
        replace(dropped, says="dropout=1.0 in evaluation"),
        replace(dropped, train=True, says="dropout=1.0 while training"),
        replace(single, says="1 sequence of 1 token, 1 head"),
        replace(half, says="dropout=0.5 in evaluation"),
        replace(half, train=True, seed=draw.seed(), says="dropout=0.5 while training"),
    ]


@exercise("multi_head.scores", with_and_without, with_and_without, stages=STEPS, judge=judge_scores,
          hints=(
              "Project once for all heads, then cut the last dimension into num_heads pieces.",
              "[batch_size, seq_len, hidden] -> view [batch_size, seq_len, num_heads, head_size] "
              "-> transpose so that the heads stand beside the batch. A reshape alone scrambles.",
              "Scale by the square root of head_size, not of hidden: each score is a sum of "
              "head_size products."))
@exercise("multi_head.mask", partial(with_and_without, causal=True), with_and_without, stages=STEPS,
          judge=judge_mask,
          hints=(
              "Token i may look at tokens 0 to i, itself included. Which entries of a "
              "[seq_len, seq_len] table does that hide?",
              "`torch.triu(ones, diagonal=1)` has ones strictly above the diagonal. Make it on the "
              "device of the scores.",
              "Fill the hidden scores with minus infinity before the softmax, only if "
              "self.causal."))
@exercise("multi_head.output", in_all_modes, stages=STEPS, judge=judge_output,
          hints=(
              "Undo the split step by step, in reverse order: the heads go back beside head_size.",
              "After `transpose`, memory is not in order: `.contiguous().view(...)` or "
              "`.reshape(...)` merges the heads. Then comes `self.mix`.",
              "Return probabilities as [batch_size * num_heads, seq_len, seq_len], batch by batch: "
              "the probabilities of head h of item b stand at b * num_heads + h."))
class MultiHeadSelfAttention(SelfAttention):
    by_default = False  # whether the future is hidden where nothing is said of it

    def __init__(self, input_size, hidden, num_heads, causal=None, dropout=0.0):
        super().__init__(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.head_size = num_heads, hidden // num_heads
        self.causal = self.by_default if causal is None else causal

    def hides(self):
        return self.causal

    def split(self, t):
        """[batch_size, seq_len, hidden] -> [batch_size, num_heads, seq_len, head_size]"""
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def split_values(self, t):
        return self.split(t)

    def project(self, x):
        q, k, v = super().project(x)
        return self.split(q), self.split(k), self.split_values(v)

    def drop(self, probs):
        return self.dropout(probs)

    def merge(self, t):
        return t.transpose(1, 2).flatten(-2)

    def mixed(self, att):
        return self.mix(att)

    def give(self, att, probs, scores):
        return att, probs.flatten(0, 1)

    def forward(self, x, return_attention=False):
        queries, keys, values = self.project(x)
        masked_scores = self.scores(queries, keys, x)
        weights = self.normalise(masked_scores)
        probs = self.drop(weights)
        context = probs @ values
        merged_heads = self.merge(context)
        output = self.mixed(merged_heads)
        return self.give(output, probs, masked_scores) if return_attention else output


def split_scrambled(self, t):
    """[batch_size, seq_len, hidden] reshaped straight to [batch_size, num_heads, ...]"""
    return t.reshape(len(t), self.num_heads, t.shape[1], -1)


def split_interleaved(self, t):
    return t.unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2)


def merge_scrambled(self, t):
    return t.reshape(len(t), t.shape[2], -1)


def merge_interleaved(self, t):
    return t.permute(0, 2, 3, 1).flatten(-2)


# --- mistakes: (step, name, what is said, switches) ----------------------------------------------
OF_BOTH = [
    ("scores", "scale.missing", "The scores are not scaled.", {"factor": lambda self, x: 1.0}),
    ("scores", "scale.not a root",
     "The scores are divided by the size itself (or twice by its root), not by its square root.",
     {"factor": lambda self, x: 1 / self.head_size}),
    ("scores", "scale.multiplied",
     "The scores are multiplied by the square root instead of divided by it.",
     {"factor": lambda self, x: self.head_size**0.5}),
    ("scores", "scale.after softmax",
     "The scale comes after the softmax; it belongs on the scores.",
     {"factor": lambda self, x: 1.0,
      "normalise": lambda self, s: s.softmax(-1) / self.head_size**0.5}),
    ("scores", "scale.precedence",
     "`** 1/2` is read as `(... ** 1) / 2`: powers come before division. Write `** 0.5` or "
     "`** (1/2)`.", {"factor": lambda self, x: 0.5 / self.head_size}),
    ("scores", "scale.precedence",
     "`** 1/2` is read as `(... ** 1) / 2`: powers come before division. Write `** 0.5` or "
     "`** (1/2)`.", {"factor": lambda self, x: 2 / self.head_size}),
    ("scores", "transpose.reshaped",
     "The keys are reshaped where they should be transposed: the shape is right, the numbers "
     "stand in other places.",
     {"scores": lambda self, q, k, x: masked(
         self, q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) * self.factor(x))}),
    ("scores", "scale.fourth root",
     "The scores are divided by the fourth root: the square root was taken twice.",
     {"factor": lambda self, x: self.head_size**-0.25}),
    ("scores", "scale.input_size", "The scores are scaled by the square root of input_size.",
     {"factor": lambda self, x: x.shape[-1] ** -0.5}),
    ("scores", "scale.seq_len", "The scores are scaled by the square root of seq_len.",
     {"factor": lambda self, x: x.shape[1] ** -0.5}),
    ("output", "softmax.dim",
     "The softmax runs over the queries: its columns sum to 1, not its rows. "
     "Let it run over the keys.",
     {"normalise": lambda self, s: s.softmax(-2)}),
    ("output", "softmax.dim", "The softmax runs over the batch. Let it run over the keys.",
     {"normalise": lambda self, s: s.softmax(0)}),
    ("output", "softmax.twice", "The softmax is applied twice.",
     {"normalise": lambda self, s: s.softmax(-1).softmax(-1)}),
    ("output", "softmax.dim",
     "One softmax runs over all queries and keys together. Use dim=-1.",
     {"normalise": lambda self, s: s.flatten(-2).softmax(-1).reshape(s.shape)}),
    ("output", "softmax.missing", "There is no softmax: the values are averaged with raw scores.",
     {"normalise": scores_as_they_are}),
    ("output", "softmax.sigmoid", "A sigmoid stands where the softmax belongs.",
     {"normalise": lambda self, s: s.sigmoid()}),
    ("output", "softmax.divided by the sum",
     "The scores are divided by their sum instead of put through a softmax.",
     {"normalise": lambda self, s: s / s.sum(-1, keepdim=True)}),
    ("output", "softmax.not normalised",
     "The exponentials are not divided by their sum: the rows do not sum to 1.",
     {"normalise": lambda self, s: s.exp()}),
    ("output", "softmax.log", "This is a log-softmax: its rows do not sum to 1.",
     {"normalise": lambda self, s: s.log_softmax(-1)}),
    ("scores", "projections.q and k swapped",
     "Queries and keys are swapped: the scores come out transposed.", {"made_by": "kqv"}),
    ("output", "projections.v from k", "The values are made with the keys' layer.",
     {"made_by": "qkk"}),
    ("output", "projections.v from q", "The values are made with the queries' layer.",
     {"made_by": "qkq"}),
    ("scores", "projections.k from q", "The keys are made with the queries' layer.",
     {"made_by": "qqv"}),
    ("scores output", "projections.one for all",
     "Queries, keys and values are all made with the queries' layer.", {"made_by": "qqq"}),
    ("scores", "projections.k from v", "The keys are made with the values' layer.",
     {"made_by": "qvv"}),
    ("scores", "projections.q from v", "The queries are made with the values' layer.",
     {"made_by": "vkv"}),
    ("scores", "projections.q from k", "The queries are made with the keys' layer.",
     {"made_by": "kkv"}),
    ("scores", "projections.rotated", "The three projections are mixed up.", {"made_by": "kvq"}),
    ("scores", "projections.rotated", "The three projections are mixed up.", {"made_by": "vqk"}),
    ("scores", "projections.q and v swapped", "Queries and values are swapped.",
     {"made_by": "vkq"}),
    ("scores", "projections.k and v swapped", "Keys and values are swapped.", {"made_by": "qvk"}),
    ("scores", "projections.lost bias",
     "The biases of the layers are left out. Call the layers: `self.q(x)`.",
     {"linear": lambda self, layer, x: x @ layer.weight.T}),
]
OF_MANY_HEADS = [
    ("output", "dropout.in evaluation",
     "Dropout is at work in evaluation too. `self.dropout` knows the mode; `F.dropout` has to be "
     "told: `training=self.training`, and so has `scaled_dot_product_attention`, whose `dropout_p` "
     "drops in any mode.",
     {"drop": lambda self, probs: F.dropout(probs, self.dropout.p)}),
    ("output", "dropout.missing",
     "In training, nothing is dropped. Apply `self.dropout` to the probabilities.",
     {"drop": lambda self, probs: probs}),
    ("output", "dropout.on scores",
     "The dropout is on the scores: a score of 0 is not a probability of 0. Apply it after the "
     "softmax.",
     {"drop": lambda self, probs: probs,
      "normalise": lambda self, s: self.dropout(s).softmax(-1)}),
    ("output", "dropout.on the output",
     "The dropout is on the output. Apply it to the probabilities.",
     {"drop": lambda self, probs: probs,
      "mixed": lambda self, att: self.dropout(self.mix(att))}),
    ("scores", "scale.hidden",
     "The scores are scaled by the square root of hidden; each head has head_size = hidden / "
     "num_heads of it.", {"factor": lambda self, x: (self.num_heads * self.head_size) ** -0.5}),
    ("scores", "scale.num_heads", "The scores are scaled by the square root of num_heads.",
     {"factor": lambda self, x: self.num_heads**-0.5}),
    ("output", "softmax.dim", "The softmax runs over the heads. Let it run over the keys.",
     {"normalise": lambda self, s: s.softmax(1)}),
    ("scores", "split.scrambled",
     "The heads are split with a reshape alone, which mixes tokens with features. Split the last "
     "dimension first, then transpose.", {"split": split_scrambled}),
    ("scores", "split.interleaved",
     "The heads take every num_heads-th feature; each should take a block of head_size features "
     "in a row.", {"split": split_interleaved}),
    ("scores", "split.scrambled", "Tokens and features were swapped before the heads were split.",
     {"split": lambda self, t: t.mT.reshape(len(t), self.num_heads, t.shape[1], -1)}),
    ("output", "values.scrambled",
     "The values are split into heads with a reshape alone, which mixes tokens with features.",
     {"split_values": split_scrambled}),
    ("output", "values.interleaved",
     "The values' heads take every num_heads-th feature; each should take a block of head_size "
     "features in a row.", {"split_values": split_interleaved}),
    ("output", "merge.scrambled",
     "The heads are merged with a reshape alone, without transposing back.",
     {"merge": merge_scrambled}),
    ("output", "merge.scrambled",
     "The heads are merged feature by feature; they should stand one after the other.",
     {"merge": merge_interleaved}),
    ("scores output", "split and merge.scrambled",
     "The heads are split and merged with a reshape alone, which mixes tokens with features.",
     {"split": split_scrambled, "merge": merge_scrambled}),
    ("scores output", "split and merge.interleaved",
     "The heads take every num_heads-th feature, and are merged in that way too; each should take "
     "a block of head_size features in a row.",
     {"split": split_interleaved, "merge": merge_interleaved}),
    ("mask", "mask.none", "With causal=True nothing is hidden.", {"hide": scores_as_they_are}),
    ("mask", "mask.diagonal hidden",
     "The mask hides the current token too; its first row has nothing left. Use diagonal=1.",
     {"hide": lambda self, s: hide_future(s, 0)}),
    ("mask", "mask.one step late",
     "The mask starts one place too late: each token sees the next one.",
     {"hide": lambda self, s: hide_future(s, 2)}),
    ("mask", "mask.inverted",
     "The mask is the wrong way round: the past is hidden, not the future.",
     {"hide": lambda self, s: s.masked_fill(torch.ones_like(s).tril(0).bool(), -INF)}),
    ("mask", "mask.inverted",
     "The mask is the wrong way round: the past is hidden, not the future.",
     {"hide": lambda self, s: s.masked_fill(torch.ones_like(s).tril(-1).bool(), -INF)}),
    ("mask", "mask.after softmax",
     "The mask is applied after the softmax: rows no longer sum to 1, and the future still counts "
     "in them.",
     {"hide": scores_as_they_are,
      "normalise": lambda self, s: s.softmax(-1).tril() if self.causal else s.softmax(-1)}),
    ("mask", "mask.filled with 0", "Hidden scores are set to 0 or next to it, and exp of that is "
     "1. Use minus infinity.", {"hide": lambda self, s: hide_future(s, value=0.0)}),
    ("mask", "mask.NaN",
     "The mask gives NaN: 0 times infinity is not a number. Use masked_fill.",
     {"hide": lambda self, s: s + torch.ones_like(s).triu(1) * -INF}),
    ("mask", "mask.from the scores",
     "The mask is made from the scores: a score that happens to be 0 is hidden too. Make it from "
     "positions, such as `torch.ones(seq_len, seq_len)`.",
     {"hide": lambda self, s: s.masked_fill(s.tril() == 0, -INF)}),
    ("mask", "mask.condition inverted",
     "The mask is applied when causal is False, and not when it is True.",
     {"hides": lambda self: not self.causal}),
    ("mask", "mask.by default",
     "Later tokens are hidden where nobody asks for it: causal is True by default.",
     {"by_default": True}),
    ("mask", "mask.always", "The mask is applied when causal is False too.",
     {"hides": lambda self: True}),
    ("output", "mix.missing", "`self.mix` is not applied.", {"mixed": lambda self, att: att}),
    ("output", "mix.twice", "`self.mix` is applied twice.",
     {"mixed": lambda self, att: self.mix(self.mix(att))}),
    ("output", "mix.transposed",
     "The weight of `self.mix` is used the wrong way round. Call the layer: `self.mix(...)`.",
     {"mixed": lambda self, att: att @ self.mix.weight + self.mix.bias}),
    ("output", "mix.lost bias",
     "The bias of `self.mix` is left out. Call the layer: `self.mix(...)`.",
     {"mixed": lambda self, att: att @ self.mix.weight.T}),
    ("scores", "heads.all equal",
     "All heads do what the first head does. Each has its own block of features.",
     {"split": lambda self, t: t[:, None, :, : self.head_size].repeat(1, self.num_heads, 1, 1)}),
    ("output", "merge.mean", "The heads are averaged; they should stand side by side.",
     {"merge": lambda self, t: t.mean(1).repeat(1, 1, self.num_heads)}),
    ("output", "merge.sum", "The heads are added up; they should stand side by side.",
     {"merge": lambda self, t: t.sum(1).repeat(1, 1, self.num_heads)}),
    ("output", "probabilities.head-major",
     "The probabilities are in head-major order; head h of item b should stand at b * num_heads "
     "+ h.", {"give": lambda self, att, probs, scores: (att, probs.transpose(0, 1).flatten(0, 1))}),
    ("output", "probabilities.4-D",
     "The probabilities are 4-D; reshape them to [batch_size * num_heads, seq_len, seq_len].",
     {"give": lambda self, att, probs, scores: (att, probs)}),
    ("output", "probabilities.missing",
     "return_attention=True does not return the probabilities too.",
     {"give": lambda self, att, probs, scores: att}),
    ("output", "probabilities.are scores", "What is returned as probabilities are the scores.",
     {"give": lambda self, att, probs, scores: (att, scores.flatten(0, 1))}),
    ("output", "probabilities.transposed",
     "The returned probabilities are transposed: a row should be a query, and sum to 1.",
     {"give": lambda self, att, probs, scores: (att, probs.mT.flatten(0, 1))}),
    ("output", "probabilities.averaged",
     "The returned probabilities are averaged over the heads; each head has its own.",
     {"give": lambda self, att, probs, scores: (att, probs.mean(1))}),
    ("output", "output.order", "Output and probabilities are returned in the wrong order.",
     {"give": lambda self, att, probs, scores: (probs.flatten(0, 1), att)}),
]
FORWARD = "self_attention.forward"
for stage, check, message, switches in OF_BOTH:
    SelfAttention.wrong(check, message, tasks=FORWARD, **switches)
    MultiHeadSelfAttention.wrong(check, message, stage=stage, **switches)
SelfAttention.wrong("mask.not asked for",
    "Later tokens are hidden. This class has no mask: every token looks at all others.",
    tasks=FORWARD, hides=lambda self: True)
for stage, check, message, switches in OF_MANY_HEADS:
    MultiHeadSelfAttention.wrong(check, message, stage=stage, **switches)

# With a free number; the likeliest first. Whether the mask is right is read from its pattern,
# whatever the scale.
ENDS = ("multi_head.scores", "multi_head.output")
SelfAttention.fits("scale.another factor",
    "The scores are multiplied by another number than 1 over the square root of hidden, or scaled "
    "in another place.", partial(from_outputs, SelfAttention), tasks=FORWARD)
MultiHeadSelfAttention.fits("scale.another factor",
    "The scores are multiplied by another number than 1 over the square root of head_size, or "
    "scaled in another place.", partial(from_probabilities, MultiHeadSelfAttention),
    stage="scores")
MultiHeadSelfAttention.fits("softmax.another function",
    "The scores are right; what makes probabilities of them is not a softmax over the keys.",
    partial(any_rising, MultiHeadSelfAttention), stage="output")
MultiHeadSelfAttention.fits("scores.another reason",
    "The probabilities are not what the right scores would give. Look at the projections, the "
    "split into heads and the scores.",
    partial(any_given, MultiHeadSelfAttention), stage="scores", tasks=ENDS)
