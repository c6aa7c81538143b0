"""Lesson 03: who may look at whom, and what dropout does. Masks are True where a key is hidden."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, exercise
from autograder.judging.compare import named_errors
from autograder.judging.dropout import of_function, of_module
from autograder.judging.layers import judge_layers

INF = float("inf")


# --- what several answers are made of; each may be replaced by a mistake -------------------------
def future(seq_len, diagonal=1):
    return torch.ones(seq_len, seq_len).triu(diagonal).bool()


def at_minus_infinity(scores, hidden):
    return scores.masked_fill(hidden, -INF)


def over_keys(scores):
    return scores.softmax(-1)


def row_sums(probs):
    return probs.sum(-1, keepdim=True)


# --- the causal mask, two ways -------------------------------------------------------------------
def zeros(draw: Draw) -> list[Call]:
    """Some scores are exactly 0, for masks that are made from the scores."""
    batch_size, seq_len = draw.sizes(2, 3, 11)
    shape = (batch_size, seq_len, seq_len)
    scores = draw.normal(*shape, scale=1.5) * draw.integers(0, 2, *shape)
    says = f"{batch_size} sequences of {seq_len} tokens, many scores exactly 0"
    return [Call("", (scores,), says=says)]


@exercise("masks.renormalise", "mask_weights(scores[batch_size, seq_len, seq_len])", zeros,
          hints=(
              "Softmax first, as if nothing were forbidden. Then take the future away.",
              "`torch.tril` keeps the lower triangle with the diagonal. What do the rows sum to "
              "now?",
              "Divide by the sum over the last dimension, with keepdim=True so that each row is "
              "divided by its own sum."))
def mask_weights(scores, softmax=over_keys, keep=torch.tril, total=row_sums):
    weights = softmax(scores)
    masked_weights = keep(weights)
    return masked_weights / total(masked_weights)

mask_weights.wrong(
    "mask.not renormalised", "The future is set to 0, but the rows do not sum to 1 any more.",
    total=torch.ones_like)
mask_weights.wrong("mask.normalised over the queries",
                   "The columns are divided by their sums; divide each row by its own.",
                   total=lambda p: p.sum(-2, keepdim=True))
mask_weights.wrong("mask.normalised over all",
                   "Everything is divided by one sum; divide each row by its own.", total=torch.sum)
mask_weights.wrong("mask.none", "Nothing is hidden.", keep=torch.clone)
mask_weights.wrong("mask.diagonal hidden",
                   "The current token is hidden too; the first row has nothing left and becomes 0 "
                   "/ 0.", keep=partial(torch.tril, diagonal=-1))
mask_weights.wrong(
    "mask.one step late", "Each token sees the one after it.", keep=partial(torch.tril, diagonal=1))
mask_weights.wrong("mask.inverted", "The mask is the wrong way round: what is left is the future.",
                   keep=partial(torch.triu, diagonal=1))
mask_weights.wrong(
    "mask.inverted", "The mask is the wrong way round: the past is gone.", keep=torch.triu)
mask_weights.wrong(
    "softmax.missing", "There is no softmax: raw scores were masked and divided by their sum.",
    softmax=torch.clone)
mask_weights.wrong("softmax.dim", "The softmax runs over the queries. Use the last dimension.",
                   softmax=lambda s: s.softmax(-2))


@exercise("masks.minus_infinity", "mask_scores(scores[batch_size, seq_len, seq_len])", zeros,
          hints=(
              "Which score has weight 0? Solve exp(s) = 0.",
              "`torch.ones(n, n).triu(1).bool()` is True strictly above the diagonal. Make the "
              "mask from positions, never from the scores.",
              "`scores.masked_fill(future, -inf)`, without the underscore, and then the softmax "
              "over the last dimension."))
def mask_scores(scores, diagonal=1, hide=at_minus_infinity, softmax=over_keys):
    masked_scores = hide(scores, future(scores.shape[-1], diagonal))
    return softmax(masked_scores)

HIDDEN_WRONGLY = [  # (name, message, switches): of the causal head below as well
    ("mask.none", "Nothing is hidden.", {"hide": lambda s, future: s}),
    ("mask.diagonal hidden",
     "The current token is hidden too; the first row has nothing left, which gives NaN. Start one "
     "place to the right.", {"diagonal": 0}),
    ("mask.one step late",
     "The mask starts one place too late: each token sees the one after it.", {"diagonal": 2}),
    ("mask.inverted", "The mask is the wrong way round: the past and the present are hidden.",
     {"hide": lambda s, future: s.masked_fill(~future, -INF)}),
    ("mask.inverted", "The mask is the wrong way round: the past is hidden.",
     {"hide": lambda s, future: s.masked_fill(~future, -INF), "diagonal": 0}),
    ("mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
     {"hide": lambda s, future: s, "softmax": lambda s: s.softmax(-1).tril()}),
    ("mask.filled with 0",
     "Hidden scores are set to 0 or next to it, and exp of that is 1: a weight like any other. You "
     "want a score far below zero.", {"hide": lambda s, future: s.masked_fill(future, 0.0)}),
    ("mask.NaN from 0 * inf",
     "0 times infinity is not a number. Multiplying a mask of zeros and ones by infinity fills "
     "the allowed places with NaN; use masked_fill.",
     {"hide": lambda s, future: s + future * -INF}),
    ("mask.made from the scores",
     "The mask is made where `tril(scores)` is 0, so scores in sight that happen to be 0 are "
     "hidden too. Make it from positions.",
     {"hide": lambda s, future: s.masked_fill(s.tril() == 0, -INF)}),
    ("softmax.dim", "The softmax runs over the queries. Use the last dimension.",
     {"softmax": lambda s: s.softmax(-2)}),
    ("softmax.twice", "The softmax is applied twice: hidden places get weight again.",
     {"softmax": lambda s: s.softmax(-1).softmax(-1)}),
    ("softmax.missing", "There is no softmax.", {"softmax": lambda s: s}),
]
for check, message, switches in HIDDEN_WRONGLY:
    mask_scores.wrong(check, message, **switches)


# --- fill values ---------------------------------------------------------------------------------
def dtypes(draw: Draw) -> list[Call]:
    """Scores that leave little room: of 16 bits, and far below zero."""
    calls = []
    for dtype, shift in ((torch.float16, 0.0), (torch.bfloat16, 0.0), (torch.float32, -2e5)):
        seq_len = draw.choice((5, 7, 11))
        scores = draw.normal(seq_len, seq_len) + shift * torch.ones(seq_len, seq_len).tril()
        says = f"{seq_len} tokens, {str(dtype).removeprefix('torch.')} scores"
        says += f", those in sight around {shift:.0f}" if shift else ""
        calls.append(Call("", (scores.to(dtype), future(seq_len)), says=says))
    return calls


OVERFLOW = (
    "cannot be converted|overflow", "fill.overflow",
    "The fill value does not fit into the dtype of the scores. float16 ends at 65504; ask "
    "`torch.finfo`.")
FILLED_WITH_0 = "Hidden scores are set to 0 or next to it, and exp of that is 1."


@exercise("masks.half", dtypes, rtol=2e-2, judge=partial(named_errors, errors=[OVERFLOW]),
          hints=(
              "float16 ends at 65504. Does -1e9 fit?",
              "`torch.finfo(scores.dtype)` knows the limits of every floating dtype.",
              "Fill with `torch.finfo(scores.dtype).min`, or with minus infinity, which every "
              "floating dtype has. Then the softmax over the last dimension."))
def masked_softmax(scores, hidden, fill=-INF, dim=-1):
    masked_scores = scores.masked_fill(hidden, fill)
    return masked_scores.softmax(dim)

for fill in (-100.0, -65504.0):
    masked_softmax.wrong("fill.not low enough",
                         "The fill value is too close to the scores: where all scores in sight are "
                         "lower than it, the hidden keys win.", fill=fill)
masked_softmax.wrong("mask.filled with 0", FILLED_WITH_0, fill=0.0)
masked_softmax.wrong("mask.inverted", "True means hidden; here it is kept.",
                     lambda s, hidden: masked_softmax(s, ~hidden))
masked_softmax.wrong("mask.none", "Nothing is hidden.", lambda s, hidden: s.softmax(-1))
masked_softmax.wrong(
    "mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
    lambda s, hidden: s.softmax(-1).masked_fill(hidden, 0.0))
masked_softmax.wrong(
    "mask.NaN from 0 * inf", "0 times infinity is not a number: the allowed places become NaN.",
    lambda s, hidden: (s + hidden * -INF).softmax(-1))
masked_softmax.wrong("softmax.dim", "The softmax runs over the queries.", dim=0)


# --- leaks ---------------------------------------------------------------------------------------
def leaks(draw: Draw) -> list[Call]:
    calls = []
    for kind in ("no token looks ahead", "some tokens look ahead", "one token looks ahead",
                 "each token sees itself alone"):
        seq_len, size = draw.sizes(2, 5, 13)
        moved = draw.integers(0, 2, seq_len, seq_len).bool()
        if kind != "some tokens look ahead":
            moved = moved.tril()
        if kind == "each token sees itself alone":
            moved = torch.eye(seq_len).bool()
        if kind == "one token looks ahead":
            moved[draw.integer(0, 1), draw.integer(2, seq_len - 1)] = True
        outputs = draw.normal(seq_len, size)
        changed = outputs.expand(seq_len, seq_len, size).clone()  # changed token, output, feature
        changed += draw.normal(seq_len, seq_len, size, scale=1e-6)
        i, j = moved.nonzero().T
        sign = draw.integers(0, 2, len(i)) * 2 - 1
        step = sign * draw.uniform(len(i), low=0.1, high=1.0)
        changed[j, i, draw.integers(0, size, len(i))] += step
        says = f"{seq_len} tokens, {size} features, {kind}"
        calls.append(Call("", (outputs, changed, 1e-4), says=says))
    # One feature up, another down by as much: their sum does not move.
    changed = outputs.expand(seq_len, seq_len, size).clone()
    changed[j, i, 0] += 0.5
    changed[j, i, 1] -= 0.5
    says = f"{seq_len} tokens, {size} features, two of them move in opposite directions"
    return [*calls, Call("", (outputs, changed, 1e-4), says=says)]


@exercise("masks.leak", leaks,
          hints=(
              "Output i moved if any of its features differs by more than the tolerance.",
              "`(changed - outputs).abs()` is [changed token, output, feature]. Which axis goes "
              "away, and which two must swap?",
              "moved = any over the last axis, transposed to [output, token]. It leaks if there "
              "is anything strictly above the diagonal."))
def leak_matrix(outputs, changed, tolerance, feel=lambda d, t: (d.abs() > t).any(-1),
                turn=torch.t, ahead=lambda moved: moved.triu(1)):
    moved = turn(feel(changed - outputs, tolerance))  # [output, changed token]
    return moved, bool(ahead(moved).any())

leak_matrix.wrong("leak.transposed",
                  "The matrix is [changed token, output]; asked for is [output, changed token]. As "
                  "it stands the past counts as the future.", turn=torch.clone)
leak_matrix.wrong("leak.transposed",
                  "The matrix is [changed token, output]; asked for is [output, changed token].",
                  turn=torch.clone, ahead=lambda moved: moved.tril(-1))
leak_matrix.wrong("leak.wrong triangle",
                  "The matrix is right, but the verdict looks below the diagonal, where the past "
                  "is.", ahead=lambda moved: moved.tril(-1))
leak_matrix.wrong("leak.diagonal counted",
                  "A token that depends on itself is no leak: the verdict must look strictly above "
                  "the diagonal.", ahead=torch.triu)
leak_matrix.wrong("leak.no tolerance", "Rounding counts as a change. Compare with the tolerance.",
                  feel=lambda d, t: (d != 0).any(-1))
leak_matrix.wrong(
    "leak.all features", "A change is only seen where all features change; one is enough.",
    feel=lambda d, t: (d.abs() > t).all(-1))
leak_matrix.wrong("leak.changes cancel",
                  "The changes are added up, so that one feature's rise hides another's fall. Take "
                  "the absolute value of each first.", feel=lambda d, t: d.sum(-1).abs() > t)
leak_matrix.wrong("leak.sign", "Only changes in one direction are seen. Take the absolute value.",
                  feel=lambda d, t: (d > t).any(-1))
leak_matrix.wrong("leak.inverted", "True should mean that the output moved.",
                  lambda *args: (~leak_matrix(*args)[0], leak_matrix(*args)[1]))
leak_matrix.wrong(
    "leak.verdict inverted",
    "The matrix is right and the verdict is the wrong way round: it should be True where there is "
    "a leak.", lambda *args: (leak_matrix(*args)[0], not leak_matrix(*args)[1]))


# --- padding, rows with nothing left -------------------------------------------------------------
def lengths_of_all_kinds(draw: Draw) -> Call:
    batch_size, seq_len = draw.sizes(2, 3, 13)
    lengths = draw.integers(1, seq_len + 1, batch_size)
    lengths[0], lengths[1], lengths[2] = seq_len - 1, seq_len, 1
    scores = draw.normal(batch_size, seq_len, seq_len, scale=1.5)
    return Call("", (scores, lengths), says=f"{batch_size} sequences of lengths 1 to {seq_len}")


@exercise("masks.padding", lengths_of_all_kinds,
          hints=(
              "Padding must not be looked at. Is that a matter of rows or of columns?",
              "Compare `torch.arange(seq_len)` with the lengths: keys 0 to length - 1 are real.",
              "`torch.arange(seq_len) >= lengths[:, None]` is [batch_size, seq_len]. Put an axis "
              "for the queries between, and fill with minus infinity."))
def padded_weights(scores, lengths, behind=torch.ge, first=0, own=torch.clone,
                   hide=lambda padding: padding[:, None], fill=-INF):
    places = first + torch.arange(scores.shape[-1])
    padding = behind(places, own(lengths)[:, None])  # [batch_size, seq_len]
    masked_scores = scores.masked_fill(hide(padding), fill)
    return masked_scores.softmax(-1)

padded_weights.wrong("padding.rows hidden",
                     "Rows are hidden instead of columns: padding must not be looked *at*. A row "
                     "with no key left has nothing to share out: filled with minus infinity it "
                     "becomes NaN, filled with a large negative number it gives each key the same.",
                     hide=lambda padding: padding[:, :, None])
padded_weights.wrong(
    "padding.rows hidden",
    "Rows are hidden as well as columns. A row with no key left has nothing to share out: filled "
    "with minus infinity it becomes NaN, filled with a large negative number it gives each key the "
    "same. Hide keys alone.",
    hide=lambda padding: padding[:, :, None] | padding[:, None])
padded_weights.wrong(
    "padding.inverted", "The real tokens are hidden and the padding is kept.", behind=torch.lt)
padded_weights.wrong(
    "padding.one too many seen",
    "One padding token is still seen: key number `length` is the first that is not real.", first=-1)
padded_weights.wrong("padding.one too many hidden", "The last real token is hidden too.", first=1)
padded_weights.wrong("padding.same for all", "All sequences get the length of the first.",
                     own=lambda lengths: lengths[:1])
padded_weights.wrong("padding.same for all", "All sequences get the length of the longest.",
                     own=lambda lengths: lengths.max()[None])
padded_weights.wrong("mask.filled with 0", FILLED_WITH_0, fill=0.0)
padded_weights.wrong(
    "mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
    lambda s, n: s.softmax(-1) * (torch.arange(s.shape[-1]) < n[:, None])[:, None])


def empty_rows(draw: Draw) -> Call:
    batch_size, seq_len = draw.sizes(2, 3, 11)
    hidden = draw.integers(0, 2, batch_size, seq_len, seq_len).bool()
    hidden[:, 0] = True  # nothing left to look at
    hidden[:, 1] = False
    hidden[0, 2] = True
    scores = draw.normal(batch_size, seq_len, seq_len, scale=1.5)
    says = f"{batch_size} sequences of {seq_len} tokens, some rows wholly hidden"
    return Call("", (scores, hidden), says=says)


@exercise("masks.empty_rows", empty_rows, gradients=True,
          hints=(
              "0 / 0 is not a number. Which rows have nothing to add up?",
              "`hidden.all(dim=-1, keepdim=True)` finds them. Their result should be 0, forwards "
              "and backwards.",
              "Fill with minus infinity by masked_fill, take the softmax, and then masked_fill the "
              "hidden places with 0. Adding -inf instead lets NaN into the gradient."))
def safe_weights(scores, hidden):
    probs = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
    return probs.masked_fill(hidden, 0.0)

safe_weights.wrong("empty.NaN", "A row with nothing in sight gives NaN: 0 / 0.", masked_softmax)
safe_weights.wrong("empty.uniform",
                   "A row with nothing in sight spreads its weight over hidden keys. All of its "
                   "weights should be 0.", lambda s, hidden: masked_softmax(s, hidden, -1e30))
safe_weights.wrong(
    "empty.first key", "A row with nothing in sight looks at key 0.",
    lambda s, hidden: torch.where(hidden.all(-1, keepdim=True), torch.eye(s.shape[-1])[0],
                                  masked_softmax(s, hidden, -1e30)))
safe_weights.wrong(
    "empty.NaN in the gradient",
    "The weights are right, but the gradient is NaN: adding -inf keeps 0 / 0 in the backward "
    "pass. Use masked_fill.",
    lambda s, hidden: (s + torch.zeros_like(s).masked_fill(hidden, -INF)).softmax(-1).nan_to_num(0))
safe_weights.wrong(
    "mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
    lambda s, hidden: s.softmax(-1).masked_fill(hidden, 0.0))
safe_weights.wrong("mask.inverted", "True means hidden; here it is kept.",
                   lambda s, hidden: safe_weights(s, ~hidden))
safe_weights.wrong("mask.none", "Nothing is hidden.", lambda s, hidden: s.softmax(-1))
safe_weights.wrong(
    "empty.all rows", "Rows that have something hidden are set to 0 altogether.",
    lambda s, hidden: safe_weights(s, hidden).masked_fill(hidden.any(-1, keepdim=True), 0.0))


# --- the mask as a buffer ------------------------------------------------------------------------
@exercise("masks.buffer", "CausalMask(context_length)(seq_len) where context_length = seq_len + 4",
          "CausalMask(seq_len)(seq_len)", judge=partial(judge_layers, buffers=True),
          hints=(
              "A tensor that moves with the module but is not learned: which method registers it?",
              "`self.register_buffer(name, tensor, persistent=False)`. Make the tensor bool at "
              "once.",
              "Store `torch.ones(c, c).triu(1).bool()` as `hidden`; forward returns its first "
              "seq_len rows and columns."))
class CausalMask(nn.Module):
    triangle, diagonal, dtype = torch.triu, 1, torch.bool

    def __init__(self, context_length):
        super().__init__()
        hidden = self.triangle(torch.ones(context_length, context_length), self.diagonal)
        self.keep(hidden.to(self.dtype))

    def keep(self, hidden):
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, seq_len):
        return self.hidden[:seq_len, :seq_len]

CausalMask.wrong(
    "mask.diagonal hidden", "The diagonal is hidden: no token may see itself.", diagonal=0)
CausalMask.wrong("mask.one step late", "The mask starts one place too late.", diagonal=2)
CausalMask.wrong("mask.inverted", "True should mean hidden; here it means that a key may be seen.",
                 triangle=torch.tril, diagonal=0)
CausalMask.wrong("mask.float",
                 "The mask is made of floating numbers. A bool mask takes a quarter of the room "
                 "and needs no cast at every call.", dtype=torch.float32)
CausalMask.wrong("mask.not sliced", "forward returns the mask of the whole context.",
                 forward=lambda self, seq_len: self.hidden)
CausalMask.wrong("mask.not sliced", "Only the rows were cut to seq_len.",
                 forward=lambda self, seq_len: self.hidden[:seq_len])
CausalMask.wrong("mask.not sliced", "Only the rows were cut to seq_len, and from the wrong end.",
                 forward=lambda self, seq_len: self.hidden[-seq_len:])
CausalMask.wrong("buffer.not registered", "The module has no buffer.",
                 keep=lambda self, hidden: setattr(self, "hidden", hidden))
CausalMask.wrong(
    "buffer.is a parameter", "The mask is a parameter.",
    keep=lambda self, hidden: setattr(self, "hidden", nn.Parameter(hidden, requires_grad=False)))
CausalMask.wrong("buffer.stored", "The mask is stored in the state_dict.",
                 keep=lambda self, hidden: self.register_buffer("hidden", hidden))


# --- dropout -------------------------------------------------------------------------------------
def dice(draw: Draw) -> list[Call]:
    p = draw.choice((0.1, 0.2, 0.3))
    few = draw.uniform(*draw.sizes(3), low=0.1, high=1.0)
    many = draw.uniform(5, 41, 37, low=0.1, high=1.0)
    asked = [(few, p, False, f"evaluation, p={p}"), (few, 0.0, True, "training, p=0"),
             (many, p, True, f"training, p={p}"), (many, p, True, f"training, p={p} again")]
    # Of one share a program may be right by accident.
    asked.append((many, 2 * p + 0.2, True, f"training, p={2 * p + 0.2:.1f}"))
    return [Call("", tuple(args), seed=draw.seed(), says=says) for *args, says in asked]


@exercise("masks.dropout", dice, judge=of_function,
          hints=(
              "Throw a coin for each weight. What must happen to those that stay, so that the "
              "average does not change?",
              "`torch.rand_like(weights) < p` is True with probability p. The share 1 - p stays.",
              "In training: put 0 where the coin says so, and divide the rest by 1 - p. In "
              "evaluation return the weights."))
def dropout(weights, p, training, coins=torch.rand, rescale=lambda kept, p: kept / (1 - p)):
    if not training:
        return weights
    return rescale(weights * (coins(weights.shape) >= p), p)

dropout.wrong("dropout.missing", "Nothing is dropped.", lambda w, p, training: w)
dropout.wrong("dropout.not rescaled", "The weights that stay are not rescaled.",
              rescale=lambda kept, p: kept)
dropout.wrong(
    "dropout.not rescaled", "The weights are rescaled in evaluation instead of in training.",
    lambda w, p, training: w * (torch.rand(w.shape) >= p) if training else w * (1 - p))
dropout.wrong("dropout.rescaled the wrong way", "The weights that stay are multiplied by 1 - p.",
              rescale=lambda kept, p: kept * (1 - p))
dropout.wrong("dropout.rescaled by p", "The weights that stay are divided by p.",
              rescale=lambda kept, p: kept / p if p else kept)
dropout.wrong("dropout.renormalised", "The rows were normalised again.",
              rescale=lambda kept, p: kept / row_sums(kept))
dropout.wrong("dropout.p is the share kept", "p is the probability of being dropped.",
              lambda w, p, training: w * (torch.rand(w.shape) < p) / p if training else w)
dropout.wrong("dropout.in eval", "Dropout is at work in evaluation.",
              lambda w, p, training: dropout(w, p, True))
dropout.wrong("dropout.frozen", "The same places are dropped at each call.",
              coins=lambda shape: torch.rand(shape, generator=torch.Generator().manual_seed(1)))
dropout.wrong("dropout.not one by one", "Whole rows are dropped.",
              coins=lambda shape: torch.rand(*shape[:-1], 1))
dropout.wrong("dropout.not one by one", "The same places are dropped in each sequence.",
              coins=lambda shape: torch.rand(1, *shape[1:]))
dropout.wrong("dropout.not one by one", "Whole columns are dropped.",
              coins=lambda shape: torch.rand(shape[0], 1, shape[2]))


# --- in place ------------------------------------------------------------------------------------
def floors(draw: Draw) -> Call:
    batch_size, seq_len = draw.sizes(2, 3, 11)
    floor = round(0.6 / seq_len, 3)
    says = f"{batch_size} sequences of {seq_len} tokens, floor {floor}"
    return Call("", (draw.normal(batch_size, seq_len, seq_len), floor), says=says)


IN_PLACE = [
    ("modified by an inplace operation", "in-place.softmax output",
     "The output of the softmax was edited in place, and the backward pass needs it as it was: "
     "the softmax's derivative is made of its output. Make a new tensor."),
    ("leaf Variable", "in-place.input",
     "The scores that came in were edited in place. Make a new tensor."),
]


@exercise("masks.in_place", floors, gradients=True, judge=partial(named_errors, errors=IN_PLACE),
          hints=(
              "Which line has a method that ends in `_`, or an assignment to part of a tensor?",
              "The softmax keeps its output for the backward pass. What you change must be a new "
              "tensor.",
              "`masked_fill` without the underscore makes one, and `/` makes one where `/=` does "
              "not. Do not detach: the gradient must pass."))
def prune(scores, floor, softmax=over_keys, low=lambda scores, probs, floor: probs < floor,
          cut=lambda probs, low, floor: probs.masked_fill(low, 0.0), total=row_sums):
    probs = softmax(scores)
    kept = cut(probs, low(scores, probs, floor), floor)
    return kept / total(kept)

prune.wrong("in-place.softmax output", "The output of the softmax was edited in place.",
            cut=lambda probs, low, floor: probs.masked_fill_(low, 0.0))
prune.wrong("in-place.input", "The scores that came in were edited in place.",
            lambda s, floor: s.masked_fill_(s.detach().softmax(-1) < floor, -INF).softmax(-1))
prune.wrong(
    "autograd.detached", "No gradient reaches the scores: something was detached on the way.",
    softmax=lambda s: s.softmax(-1).detach())
prune.wrong(
    "mask.not renormalised",
    "The small weights are gone, and the rows do not sum to 1 any more.", total=torch.ones_like)
prune.wrong("prune.scores for weights",
            "The floor was compared with the scores; it is meant for the weights.",
            low=lambda scores, probs, floor: scores < floor)
prune.wrong("prune.inverted", "The large weights are set to 0 and the small ones kept.",
            low=lambda scores, probs, floor: probs >= floor)
prune.wrong("prune.clamped", "Small weights are raised to the floor; they should become 0.",
            cut=lambda probs, low, floor: probs.clamp(min=floor))


# --- the causal head -----------------------------------------------------------------------------
def special(draw: Draw) -> list[Call]:
    """A `squeeze` shows only where a dimension is 1, a mask made from the scores where one is 0;
    what dropout does shows where one sequence comes many times, with and without training."""
    sizes = (3, 5, 6)  # input_size, hidden, context_length
    weights = {k: v for n in "qkv" for k, v in draw.linear(n, *sizes[:2]).items()}
    one = draw.normal(1, 4, 3)
    zero = one.index_fill(1, torch.tensor(1), 0.0)
    unbiased = {name: w * (not name.endswith("bias")) for name, w in weights.items()}
    says = "1 sequence of 4 tokens, one of them all zeros"
    first = Call("", (zero,), init=(*sizes, 0.0), weights=unbiased, says=says)
    copies = Call("", (one.expand(300, -1, -1).clone(),), init=(*sizes, 0.25), weights=weights)
    modes = ((False, "evaluation"), (True, "training"))
    return [first, *(
        replace(copies, train=train, seed=draw.seed(),
                says=f"one sequence 300 times, dropout 0.25, {mode}") for train, mode in modes)]


@exercise("masks.attention",
          "CausalAttention(input_size, hidden, seq_len, 0.0)(x[batch_size, seq_len, input_size])",
          "CausalAttention(input_size, hidden, context_length, 0.4)(x[batch_size, seq_len,"
          " input_size])", special, times=2, gradients=True,
          sizes={"seq_len": (7, 11), "context_length": (13, 17)},
          judge=partial(of_module, p=3, alone=0),
          hints=(
              "It is the head of lesson 02 with two lines more: a mask before the softmax, dropout "
              "after it.",
              "The mask is made for context_length tokens; take its first seq_len rows and "
              "columns. `nn.Dropout` knows whether the module is in training.",
              "scores / sqrt(hidden) -> masked_fill(self.hidden[:n, :n], -inf) -> softmax over the "
              "last dimension -> self.dropout -> times the values."))
class CausalAttention(nn.Module):
    layers, scaled_by, power = ("q", "k", "v"), "hidden", -0.5
    diagonal, hide, softmax, sliced = 1, at_minus_infinity, over_keys, True
    dropped, always = "weights", False

    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.p, self.sizes = dropout, {"hidden": hidden, "input_size": input_size}
        self.register_buffer("future", future(context_length, self.diagonal), persistent=False)

    def drop(self, what, tensor):
        if what != self.dropped:
            return tensor
        return F.dropout(tensor, self.p, self.training or self.always)

    def forward(self, x):
        how = type(self)  # asked of the class, a function is called without `self`
        queries, keys, values = (getattr(self, name)(x) for name in self.layers)
        n = x.shape[1] if self.sliced else len(self.future)
        scores = queries @ keys.mT
        scaled_scores = scores * self.sizes[self.scaled_by] ** self.power
        masked_scores = how.hide(self.drop("scores", scaled_scores), self.future[:n, :n])
        weights = how.softmax(masked_scores)
        dropped_weights = self.drop("weights", weights)
        context = dropped_weights @ self.drop("values", values)
        return self.drop("output", context)

CausalAttention.wrong("scale.missing", "The scores are not scaled.", power=0)
CausalAttention.wrong("scale.not a root", "The scores are divided by the size itself.", power=-1)
CausalAttention.wrong("scale.multiplied", "The scores are multiplied by the root.", power=0.5)
CausalAttention.wrong("scale.input_size", "The scores are scaled by the square root of input_size.",
                      scaled_by="input_size")
CausalAttention.wrong(
    "projections.q and k swapped", "Queries and keys are swapped.", layers=("k", "q", "v"))
CausalAttention.wrong(
    "projections.v from k", "The values are made with the keys' layer.", layers=("q", "k", "k"))
CausalAttention.wrong(
    "projections.k from q", "The keys are made with the queries' layer.", layers=("q", "q", "v"))
CausalAttention.wrong("mask.not sliced",
                      "The mask is made for context_length tokens and does not fit a shorter "
                      "sequence. Take its first seq_len rows and columns.", sliced=False)
for check, message, switches in HIDDEN_WRONGLY:
    CausalAttention.wrong(check, message, **switches)
CausalAttention.wrong("dropout.in eval", "Dropout is at work in evaluation.", always=True)
CausalAttention.wrong("dropout.missing", "In training nothing is dropped.", dropped="nothing")
CausalAttention.wrong("dropout.on the scores", "Dropout acts before the softmax.", dropped="scores")
CausalAttention.wrong("dropout.not on the weights", "Dropout acts on the values.", dropped="values")
CausalAttention.wrong("dropout.not on the weights", "Dropout acts on the output.", dropped="output")


# --- the picture ---------------------------------------------------------------------------------
def maps(draw: Draw) -> Call:
    batch_size, num_heads, seq_len = draw.sizes(3, 2, 7)
    probs = draw.normal(batch_size * num_heads, seq_len, seq_len, scale=1.5).softmax(-1)
    item, head = draw.integer(1, batch_size - 1), draw.integer(1, num_heads - 1)
    says = f"{batch_size} sequences, {num_heads} heads, {seq_len} tokens: item {item}, head {head}"
    return Call("", (probs, item, head, num_heads), says=says)


@exercise("masks.map", maps,
          hints=(
              "These are probabilities already. What would one more softmax do to them?",
              "The batch comes first: all heads of item 0, then all heads of item 1, and so on.",
              "The map stands at place item * num_heads + head. Return it as it is."))
def attention_map(probs, item, head, num_heads, finish=torch.clone):
    return finish(probs[item * num_heads + head])

attention_map.wrong("softmax.twice",
                    "A softmax was applied to probabilities. Hidden places get weight, and "
                    "everything looks flatter than it is.", finish=over_keys)
attention_map.wrong(
    "map.head-major",
    "The place is counted as if the heads came first. All heads of item 0 stand before those of "
    "item 1.", lambda probs, item, head, n: probs[head * (len(probs) // n) + item])
attention_map.wrong(
    "map.item for place", "The item's number alone is not its place: each item has num_heads maps.",
    lambda probs, item, head, n: probs[item])
attention_map.wrong("map.head ignored", "This is head 0 of the item, whatever head is asked for.",
                    lambda probs, item, head, n: probs[item * n])
attention_map.wrong("map.sum for place",
                    "Item and head are added up without counting the heads of the items before.",
                    lambda probs, item, head, n: probs[item + head])
attention_map.wrong("map.averaged", "This is the mean over the heads.",
                    lambda probs, item, head, n: probs[item * n : (item + 1) * n].mean(0))
attention_map.wrong(
    "map.transposed", "Rows and columns are swapped: rows are queries.", finish=torch.t)
