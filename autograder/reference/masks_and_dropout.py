"""Answers of lesson 03 and its wrong programs. Masks are True where a key is hidden."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.asking import Mistake
from autograder.reference import homework_programs as homework
from autograder.reference.homework_programs import normalise, scale_after, scale_factor

INFINITY = float("inf")


def _future(n, diagonal=1):
    return torch.ones(n, n).triu(diagonal).bool()


# --- the right answers, with switches where several mistakes share one computation ---------------
def renormalised(scores, how):
    """Softmax, then the mask, then each row divided by its sum."""
    probs = normalise(scores, how)
    seen = torch.ones_like(probs).tril(how.get("diagonal", 0))
    probs = probs * (1 - seen if how.get("inverted") else seen)
    match how.get("sum", -1):
        case None:
            return probs
        case "all":
            return probs / probs.sum()
        case dim:
            return probs / probs.sum(dim, keepdim=True)


def causal(scores, how):
    """The mask, then the softmax."""
    match how.get("mask", "right"):
        case "from the scores":
            hidden = scores.tril() == 0
            return normalise(scores.masked_fill(hidden, -INFINITY), how)
        case "after softmax":
            return normalise(scores, how).tril()
        case kind:
            return normalise(homework.mask(scores, kind), how)


def masked_softmax(scores, hidden):
    return scores.masked_fill(hidden, -INFINITY).softmax(-1)


def leak_matrix(outputs, changed, tolerance):
    moved = ((changed - outputs).abs() > tolerance).any(-1).T
    return moved, bool(moved.triu(1).any())


def padded(scores, lengths, how):
    """Keys at and after a sequence's length are hidden; `how` holds a mistake."""
    n = scores.shape[-1]
    places = torch.arange(n) - how.get("shift", 0)
    if how.get("lengths") == "first":
        lengths = lengths[:1].expand_as(lengths)
    if how.get("lengths") == "longest":
        lengths = lengths.max().expand_as(lengths)
    hidden = places >= lengths[:, None]
    if how.get("inverted"):
        hidden = ~hidden
    rows, keys = hidden[:, :, None], hidden[:, None, :]
    hidden = {"rows": rows, "both": rows | keys}.get(how.get("axis"), keys)
    match how.get("fill"):
        case "after":
            return scores.softmax(-1).masked_fill(hidden, 0.0)
        case None:
            return scores.masked_fill(hidden, -INFINITY).softmax(-1)
        case number:
            return scores.masked_fill(hidden, number).softmax(-1)


def safe_weights(scores, hidden):
    probs = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
    return probs.masked_fill(hidden, 0.0)


class CausalMask(nn.Module):
    how: dict = {}

    def __init__(self, context_length):
        super().__init__()
        hidden = torch.ones(context_length, context_length).triu(self.how.get("diagonal", 1))
        hidden = hidden if self.how.get("float") else hidden.bool()
        hidden = ~hidden if self.how.get("inverted") else hidden
        match self.how.get("kept as"):
            case "attribute":
                self.hidden = hidden
            case "parameter":
                self.hidden = nn.Parameter(hidden, requires_grad=False)
            case "stored":
                self.register_buffer("hidden", hidden)
            case _:
                self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, seq_len):
        match self.how.get("slice"):
            case "none":
                return self.hidden
            case "rows":
                return self.hidden[:seq_len]
            case "last":
                return self.hidden[-seq_len:]
        return self.hidden[:seq_len, :seq_len]


def dropout(weights, p, training, how):
    """Inverted dropout; `how` holds a mistake."""
    if how.get("always"):
        training = True
    if not training:
        return weights * (1 - p) if how.get("scale") == "in eval" else weights
    shape = how.get("shape", lambda s: s)(weights.shape)
    generator = torch.Generator().manual_seed(1) if how.get("frozen") else None
    keep = torch.rand(shape, generator=generator) >= p
    if how.get("p is kept"):
        keep, p = ~keep, 1 - p
    if how.get("off"):
        return weights
    kept = weights * keep
    match how.get("scale", "right"):
        case "none" | "in eval":
            return kept
        case "multiplied":
            return kept * (1 - p)
        case "p":
            return kept / p if p else kept
        case "rows":
            return kept / kept.sum(-1, keepdim=True)
    return kept / (1 - p)


def prune(scores, floor, how):
    """Weights below `floor` are set to 0 and the rows normalised again."""
    if how.get("in place") == "scores":
        scores.masked_fill_(scores.detach().softmax(-1) < floor, -INFINITY)
        return scores.softmax(-1)
    probs = scores.softmax(-1)
    low = probs < floor
    if how.get("in place") == "probs":
        probs.masked_fill_(low, 0.0)
        return probs / probs.sum(-1, keepdim=True)
    if how.get("detached"):
        probs = probs.detach()
    if how.get("of scores"):
        low = scores < floor
    if how.get("inverted"):
        low = ~low
    probs = probs.clamp(min=floor) if how.get("to floor") else probs.masked_fill(low, 0.0)
    return probs if how.get("unsummed") else probs / probs.sum(-1, keepdim=True)


class _Causal(nn.Module):
    """One causal head with dropout on its weights; `how` holds the switches of a mistake."""

    how: dict = {}

    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.dropout, self.context_length = dropout, context_length

    def drop(self, place, value):
        if self.how.get("drop", "weights") != place:
            return value
        training = True if self.how.get("eval") else self.training
        return F.dropout(value, self.dropout, training)

    def forward(self, x):
        q, k, v = (getattr(self, self.how.get(n, n))(x) for n in ("q", "k", "v"))
        n, size = x.shape[1], k.shape[-1]
        factor = scale_factor(self.how, {"seq_len": n, "input_size": x.shape[-1]}, size)
        scores = self.drop("scores", q @ k.transpose(1, 2) * factor)
        if self.how.get("slice"):
            m = self.context_length
            scores = scores.masked_fill(_future(m), -INFINITY)
        probs = causal(scores, self.how) * scale_after(self.how, size)
        probs = self.drop("weights", probs)
        return self.drop("output", probs @ self.drop("values", v))


def attention_map(probs, item, head, num_heads):
    return probs[item * num_heads + head]


# --- the wrong ones ------------------------------------------------------------------------------
def _each(name, rows, function):
    """One wrong function for each row, which gets the row's switches as its last argument."""

    def with_how(how):
        return lambda *args: function(*args, how)

    return [Mistake(check, message, {name: with_how(how)}) for check, message, how in rows]


def _built(name, base, rows):
    return [Mistake(c, m, {name: type(name, (base,), {"how": how})}) for c, m, how in rows]


def _plain(name, check, message, function):
    return Mistake(check, message, {name: function})


_RENORMALISE = [
    (
        "mask.not renormalised",
        "The future is set to 0, but the rows do not sum to 1 any more.",
        {"sum": None},
    ),
    (
        "mask.normalised over the queries",
        "The columns are divided by their sums; divide each row by its own.",
        {"sum": -2},
    ),
    (
        "mask.normalised over all",
        "Everything is divided by one sum; divide each row by its own.",
        {"sum": "all"},
    ),
    ("mask.none", "Nothing is hidden.", {"diagonal": 100}),
    (
        "mask.diagonal hidden",
        "The current token is hidden too; the first row has nothing left and becomes 0 / 0.",
        {"diagonal": -1},
    ),
    ("mask.one step late", "Each token sees the one after it.", {"diagonal": 1}),
    (
        "mask.inverted",
        "The mask is the wrong way round: what is left is the future.",
        {"inverted": True},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is gone.",
        {"inverted": True, "diagonal": -1},
    ),
    (
        "softmax.missing",
        "There is no softmax: raw scores were masked and divided by their sum.",
        {"softmax": "none"},
    ),
    (
        "softmax.dim",
        "The softmax runs over the queries. Use the last dimension.",
        {"softmax": "dim -2"},
    ),
]
_MASK = [
    ("mask.none", "Nothing is hidden.", {"mask": "none"}),
    (
        "mask.diagonal hidden",
        "The current token is hidden too; the first row has nothing left, "
        "which gives NaN. Start one place to the right.",
        {"mask": "diagonal hidden"},
    ),
    (
        "mask.one step late",
        "The mask starts one place too late: each token sees the one after it.",
        {"mask": "one step late"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past and the present are hidden.",
        {"mask": "inverted"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is hidden.",
        {"mask": "past hidden"},
    ),
    (
        "mask.after softmax",
        "The mask comes after the softmax, and the rows no longer sum to 1.",
        {"mask": "after softmax"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to 0, but exp(0) is 1: that is a weight like any other.",
        {"mask": "filled with 0"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to a tiny number. exp of it is about 1; you want "
        "a score far below zero.",
        {"mask": "filled with tiny"},
    ),
    (
        "mask.NaN from 0 * inf",
        "0 times infinity is not a number. Multiplying a mask of zeros and "
        "ones by infinity fills the allowed places with NaN; use masked_fill.",
        {"mask": "nan"},
    ),
    (
        "mask.made from the scores",
        "The mask is made where `tril(scores)` is 0, so scores in sight "
        "that happen to be 0 are hidden too. Make it from positions.",
        {"mask": "from the scores"},
    ),
]
_SOFTMAX = [
    (
        "softmax.dim",
        "The softmax runs over the queries. Use the last dimension.",
        {"softmax": "dim -2"},
    ),
    (
        "softmax.twice",
        "The softmax is applied twice: hidden places get weight again.",
        {"softmax": "twice"},
    ),
    ("softmax.missing", "There is no softmax.", {"softmax": "none"}),
]

_HALF = [
    _plain(
        "masked_softmax",
        "fill.not low enough",
        "The fill value is too close to the scores: "
        "where all scores in sight are lower than it, the hidden keys win.",
        lambda s, h: s.masked_fill(h, -100.0).softmax(-1),
    ),
    _plain(
        "masked_softmax",
        "fill.not low enough",
        "The fill value is too close to the scores: "
        "where all scores in sight are lower than it, the hidden keys win.",
        lambda s, h: s.masked_fill(h, -65504.0).softmax(-1),
    ),
    _plain(
        "masked_softmax",
        "mask.filled with 0",
        "Hidden scores are set to 0, but exp(0) is 1.",
        lambda s, h: s.masked_fill(h, 0.0).softmax(-1),
    ),
    _plain(
        "masked_softmax",
        "mask.inverted",
        "True means hidden; here it is kept.",
        lambda s, h: s.masked_fill(~h, -INFINITY).softmax(-1),
    ),
    _plain("masked_softmax", "mask.none", "Nothing is hidden.", lambda s, h: s.softmax(-1)),
    _plain(
        "masked_softmax",
        "mask.after softmax",
        "The mask comes after the softmax, and the rows no longer sum to 1.",
        lambda s, h: s.softmax(-1).masked_fill(h, 0.0),
    ),
    _plain(
        "masked_softmax",
        "mask.NaN from 0 * inf",
        "0 times infinity is not a number: the allowed places become NaN.",
        lambda s, h: (s + h * -INFINITY).softmax(-1),
    ),
    _plain(
        "masked_softmax",
        "softmax.dim",
        "The softmax runs over the queries.",
        lambda s, h: s.masked_fill(h, -INFINITY).softmax(0),
    ),
]


def _moved(outputs, changed, tolerance):
    return ((changed - outputs).abs() > tolerance).any(-1)


_LEAK = [
    _plain(
        "leak_matrix",
        "leak.transposed",
        "The matrix is [changed token, output]; asked for is "
        "[output, changed token]. As it stands the past counts as the future.",
        lambda o, c, t: (_moved(o, c, t), bool(_moved(o, c, t).triu(1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.transposed",
        "The matrix is [changed token, output]; asked for is [output, changed token].",
        lambda o, c, t: (_moved(o, c, t), bool(_moved(o, c, t).tril(-1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.wrong triangle",
        "The matrix is right, but the verdict looks below the diagonal, where the past is.",
        lambda o, c, t: (_moved(o, c, t).T, bool(_moved(o, c, t).T.tril(-1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.diagonal counted",
        "A token that depends on itself is no leak: the "
        "verdict must look strictly above the diagonal.",
        lambda o, c, t: (_moved(o, c, t).T, bool(_moved(o, c, t).T.triu(0).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.no tolerance",
        "Rounding counts as a change. Compare with the tolerance.",
        lambda o, c, t: ((c != o).any(-1).T, bool((c != o).any(-1).T.triu(1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.all features",
        "A change is only seen where all features change; one is enough.",
        lambda o, c, t: (
            ((c - o).abs() > t).all(-1).T,
            bool(((c - o).abs() > t).all(-1).T.triu(1).any()),
        ),
    ),
    _plain(
        "leak_matrix",
        "leak.changes cancel",
        "The changes are added up, so that one feature's rise hides another's fall. "
        "Take the absolute value of each first.",
        lambda o, c, t: (
            ((c - o).sum(-1).abs() > t).T,
            bool(((c - o).sum(-1).abs() > t).T.triu(1).any()),
        ),
    ),
    _plain(
        "leak_matrix",
        "leak.sign",
        "Only changes in one direction are seen. Take the absolute value.",
        lambda o, c, t: ((c - o > t).any(-1).T, bool((c - o > t).any(-1).T.triu(1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.inverted",
        "True should mean that the output moved.",
        lambda o, c, t: (~_moved(o, c, t).T, bool(_moved(o, c, t).T.triu(1).any())),
    ),
    _plain(
        "leak_matrix",
        "leak.verdict inverted",
        "The matrix is right and the verdict is the "
        "wrong way round: it should be True where there is a leak.",
        lambda o, c, t: (_moved(o, c, t).T, not _moved(o, c, t).T.triu(1).any().item()),
    ),
]

_PADDING = [
    (
        "padding.rows hidden",
        "Rows are hidden instead of columns: padding must not be looked *at*. "
        "A row without any key left becomes NaN.",
        {"axis": "rows"},
    ),
    (
        "padding.rows hidden",
        "Rows are hidden as well as columns, and a row without any key left "
        "becomes NaN. Only keys are hidden.",
        {"axis": "both"},
    ),
    ("padding.inverted", "The real tokens are hidden and the padding is kept.", {"inverted": True}),
    (
        "padding.one too many seen",
        "One padding token is still seen: key number `length` is the first that is not real.",
        {"shift": 1},
    ),
    ("padding.one too many hidden", "The last real token is hidden too.", {"shift": -1}),
    ("padding.same for all", "All sequences get the length of the first.", {"lengths": "first"}),
    (
        "padding.same for all",
        "All sequences get the length of the longest.",
        {"lengths": "longest"},
    ),
    ("mask.filled with 0", "Hidden scores are set to 0, but exp(0) is 1.", {"fill": 0.0}),
    (
        "mask.after softmax",
        "The mask comes after the softmax, and the rows no longer sum to 1.",
        {"fill": "after"},
    ),
]

_EMPTY = [
    _plain(
        "safe_weights",
        "empty.NaN",
        "A row with nothing in sight gives NaN: 0 / 0.",
        lambda s, h: s.masked_fill(h, -INFINITY).softmax(-1),
    ),
    _plain(
        "safe_weights",
        "empty.uniform",
        "A row with nothing in sight spreads its weight over "
        "hidden keys. All of its weights should be 0.",
        lambda s, h: s.masked_fill(h, -1e30).softmax(-1),
    ),
    _plain(
        "safe_weights",
        "empty.first key",
        "A row with nothing in sight looks at key 0.",
        lambda s, h: torch.where(
            h.all(-1, keepdim=True), torch.eye(s.shape[-1])[0], s.masked_fill(h, -1e30).softmax(-1)
        ),
    ),
    _plain(
        "safe_weights",
        "empty.NaN in the gradient",
        "The weights are right, but the gradient "
        "is NaN: adding -inf keeps 0 / 0 in the backward pass. Use masked_fill.",
        lambda s, h: (
            (s + torch.zeros_like(s).masked_fill(h, -INFINITY)).softmax(-1).nan_to_num(0.0)
        ),
    ),
    _plain(
        "safe_weights",
        "mask.after softmax",
        "The mask comes after the softmax, and the rows no longer sum to 1.",
        lambda s, h: s.softmax(-1).masked_fill(h, 0.0),
    ),
    _plain(
        "safe_weights",
        "mask.inverted",
        "True means hidden; here it is kept.",
        lambda s, h: safe_weights(s, ~h),
    ),
    _plain("safe_weights", "mask.none", "Nothing is hidden.", lambda s, h: s.softmax(-1)),
    _plain(
        "safe_weights",
        "empty.all rows",
        "Rows that have something hidden are set to 0 altogether.",
        lambda s, h: safe_weights(s, h).masked_fill(h.any(-1, keepdim=True), 0.0),
    ),
]

_BUFFER = [
    ("mask.diagonal hidden", "The diagonal is hidden: no token may see itself.", {"diagonal": 0}),
    ("mask.one step late", "The mask starts one place too late.", {"diagonal": 2}),
    (
        "mask.inverted",
        "True should mean hidden; here it means that a key may be seen.",
        {"inverted": True},
    ),
    (
        "mask.float",
        "The mask is made of floating numbers. A bool mask takes a quarter of the room "
        "and needs no cast at every call.",
        {"float": True},
    ),
    ("mask.not sliced", "forward returns the mask of the whole context.", {"slice": "none"}),
    ("mask.not sliced", "Only the rows were cut to seq_len.", {"slice": "rows"}),
    (
        "mask.not sliced",
        "Only the rows were cut to seq_len, and from the wrong end.",
        {"slice": "last"},
    ),
    ("buffer.not registered", "The module has no buffer.", {"kept as": "attribute"}),
    ("buffer.is a parameter", "The mask is a parameter.", {"kept as": "parameter"}),
    ("buffer.stored", "The mask is stored in the state_dict.", {"kept as": "stored"}),
]

_DROPOUT = [
    ("dropout.missing", "Nothing is dropped.", {"off": True}),
    ("dropout.not rescaled", "The weights that stay are not rescaled.", {"scale": "none"}),
    (
        "dropout.not rescaled",
        "The weights are rescaled in evaluation instead of in training.",
        {"scale": "in eval"},
    ),
    (
        "dropout.rescaled the wrong way",
        "The weights that stay are multiplied by 1 - p.",
        {"scale": "multiplied"},
    ),
    ("dropout.rescaled by p", "The weights that stay are divided by p.", {"scale": "p"}),
    ("dropout.renormalised", "The rows were normalised again.", {"scale": "rows"}),
    ("dropout.p is the share kept", "p is the probability of being dropped.", {"p is kept": True}),
    ("dropout.in eval", "Dropout is at work in evaluation.", {"always": True}),
    ("dropout.frozen", "The same places are dropped at each call.", {"frozen": True}),
    ("dropout.not one by one", "Whole rows are dropped.", {"shape": lambda s: (*s[:-1], 1)}),
    (
        "dropout.not one by one",
        "The same places are dropped in each sequence.",
        {"shape": lambda s: (1, *s[1:])},
    ),
    ("dropout.not one by one", "Whole columns are dropped.", {"shape": lambda s: (s[0], 1, s[2])}),
]

_PRUNE = [
    (
        "in-place.softmax output",
        "The output of the softmax was edited in place.",
        {"in place": "probs"},
    ),
    ("in-place.input", "The scores that came in were edited in place.", {"in place": "scores"}),
    (
        "autograd.detached",
        "No gradient reaches the scores: something was detached on the way.",
        {"detached": True},
    ),
    (
        "mask.not renormalised",
        "The small weights are gone, and the rows do not sum to 1 any more.",
        {"unsummed": True},
    ),
    (
        "prune.scores for weights",
        "The floor was compared with the scores; it is meant for the weights.",
        {"of scores": True},
    ),
    (
        "prune.inverted",
        "The large weights are set to 0 and the small ones kept.",
        {"inverted": True},
    ),
    (
        "prune.clamped",
        "Small weights are raised to the floor; they should become 0.",
        {"to floor": True},
    ),
]

_HEAD = [
    ("scale.missing", "The scores are not scaled.", {"scale": "none"}),
    ("scale.not a root", "The scores are divided by the size itself.", {"scale": "size"}),
    ("scale.multiplied", "The scores are multiplied by the root.", {"scale": "multiplied"}),
    (
        "scale.input_size",
        "The scores are scaled by the square root of input_size.",
        {"scale": "input_size"},
    ),
    ("projections.q and k swapped", "Queries and keys are swapped.", {"q": "k", "k": "q"}),
    ("projections.v from k", "The values are made with the keys' layer.", {"v": "k"}),
    ("projections.k from q", "The keys are made with the queries' layer.", {"k": "q"}),
    (
        "mask.not sliced",
        "The mask is made for context_length tokens and does not fit a shorter "
        "sequence. Take its first seq_len rows and columns.",
        {"slice": True},
    ),
    *_MASK,
    *_SOFTMAX,
    ("dropout.in eval", "Dropout is at work in evaluation.", {"eval": True}),
    ("dropout.missing", "In training nothing is dropped.", {"drop": "nowhere"}),
    ("dropout.on the scores", "Dropout acts before the softmax.", {"drop": "scores"}),
    ("dropout.not on the weights", "Dropout acts on the values.", {"drop": "values"}),
    ("dropout.not on the weights", "Dropout acts on the output.", {"drop": "output"}),
]

_MAP = [
    _plain(
        "attention_map",
        "softmax.twice",
        "A softmax was applied to probabilities. Hidden "
        "places get weight, and everything looks flatter than it is.",
        lambda p, i, h, n: p[i * n + h].softmax(-1),
    ),
    _plain(
        "attention_map",
        "map.head-major",
        "The place is counted as if the heads came first. "
        "All heads of item 0 stand before those of item 1.",
        lambda p, i, h, n: p[h * (len(p) // n) + i],
    ),
    _plain(
        "attention_map",
        "map.item for place",
        "The item's number alone is not its place: each item has num_heads maps.",
        lambda p, i, h, n: p[i],
    ),
    _plain(
        "attention_map",
        "map.head ignored",
        "This is head 0 of the item, whatever head is asked for.",
        lambda p, i, h, n: p[i * n],
    ),
    _plain(
        "attention_map",
        "map.sum for place",
        "Item and head are added up without counting the heads of the items before.",
        lambda p, i, h, n: p[i + h],
    ),
    _plain(
        "attention_map",
        "map.averaged",
        "This is the mean over the heads.",
        lambda p, i, h, n: p[i * n : (i + 1) * n].mean(0),
    ),
    _plain(
        "attention_map",
        "map.transposed",
        "Rows and columns are swapped: rows are queries.",
        lambda p, i, h, n: p[i * n + h].T,
    ),
]

SOLVE = {
    "masks.renormalise": {"mask_weights": lambda s: renormalised(s, {})},
    "masks.minus_infinity": {"mask_scores": lambda s: causal(s, {})},
    "masks.half": {"masked_softmax": masked_softmax},
    "masks.leak": {"leak_matrix": leak_matrix},
    "masks.padding": {"padded_weights": lambda s, n: padded(s, n, {})},
    "masks.empty_rows": {"safe_weights": safe_weights},
    "masks.buffer": {"CausalMask": CausalMask},
    "masks.dropout": {"dropout": lambda w, p, t: dropout(w, p, t, {})},
    "masks.in_place": {"prune": lambda s, f: prune(s, f, {})},
    "masks.attention": {"CausalAttention": _Causal},
    "masks.map": {"attention_map": attention_map},
}
MISTAKES = {
    "masks.renormalise": _each("mask_weights", _RENORMALISE, renormalised),
    "masks.minus_infinity": _each("mask_scores", _MASK + _SOFTMAX, causal),
    "masks.half": _HALF,
    "masks.leak": _LEAK,
    "masks.padding": _each("padded_weights", _PADDING, padded),
    "masks.empty_rows": _EMPTY,
    "masks.buffer": _built("CausalMask", CausalMask, _BUFFER),
    "masks.dropout": _each("dropout", _DROPOUT, dropout),
    "masks.in_place": _each("prune", _PRUNE, prune),
    "masks.attention": _built("CausalAttention", _Causal, _HEAD),
    "masks.map": _MAP,
}
