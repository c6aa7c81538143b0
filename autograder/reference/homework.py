"""Answers of lesson 05, and its wrong programs by name."""

from __future__ import annotations

from autograder.exercise import Mistake
from autograder.reference.homework_fits import GIVEN, MULTI_SCALE, SINGLE_SCALE, SOFTMAX
from autograder.reference.homework_programs import ManyHeads, SingleHead, program


def _mistake(name: str, base: type, check: str, message: str, stage: str, how: dict) -> Mistake:
    return Mistake(check, message, program(name, base, how), stage)


_SHARED = [
    ("scale.missing", "The scores are not scaled.", "scores", {"scale": "none"}),
    (
        "scale.not a root",
        "The scores are divided by the size itself (or twice by its root), not by its square root.",
        "scores",
        {"scale": "size"},
    ),
    (
        "scale.multiplied",
        "The scores are multiplied by the square root instead of divided by it.",
        "scores",
        {"scale": "multiplied"},
    ),
    (
        "scale.after softmax",
        "The scale comes after the softmax; it belongs on the scores.",
        "scores",
        {"scale": "after softmax"},
    ),
    (
        "scale.fourth root",
        "The scores are divided by the fourth root: the square root was taken twice.",
        "scores",
        {"scale": "fourth root"},
    ),
    (
        "scale.input_size",
        "The scores are scaled by the square root of input_size.",
        "scores",
        {"scale": "input_size"},
    ),
    (
        "scale.seq_len",
        "The scores are scaled by the square root of seq_len.",
        "scores",
        {"scale": "seq_len"},
    ),
    (
        "softmax.dim",
        "The softmax runs over the queries: its columns sum to 1, not its rows. Use "
        "dim=-1, the keys.",
        "output",
        {"softmax": "dim -2"},
    ),
    (
        "softmax.dim",
        "The softmax runs over the batch. Use dim=-1, the keys.",
        "output",
        {"softmax": "dim 0"},
    ),
    ("softmax.twice", "The softmax is applied twice.", "output", {"softmax": "twice"}),
    (
        "softmax.dim",
        "One softmax runs over all queries and keys together. Use dim=-1.",
        "output",
        {"softmax": "all"},
    ),
    (
        "softmax.missing",
        "There is no softmax: the values are averaged with raw scores.",
        "output",
        {"softmax": "none"},
    ),
    (
        "softmax.sigmoid",
        "A sigmoid stands where the softmax belongs.",
        "output",
        {"softmax": "sigmoid"},
    ),
    (
        "softmax.divided by the sum",
        "The scores are divided by their sum instead of put through a softmax.",
        "output",
        {"softmax": "sum"},
    ),
    (
        "softmax.not normalised",
        "The exponentials are not divided by their sum: the rows do not sum to 1.",
        "output",
        {"softmax": "exp"},
    ),
    (
        "softmax.log",
        "This is a log-softmax: its rows do not sum to 1.",
        "output",
        {"softmax": "log"},
    ),
    (
        "projections.q and k swapped",
        "Queries and keys are swapped: the scores come out transposed.",
        "scores",
        {"q": "k", "k": "q"},
    ),
    ("projections.v from k", "The values are made with the keys' layer.", "output", {"v": "k"}),
    ("projections.v from q", "The values are made with the queries' layer.", "output", {"v": "q"}),
    ("projections.k from q", "The keys are made with the queries' layer.", "scores", {"k": "q"}),
    ("projections.k from v", "The keys are made with the values' layer.", "scores", {"k": "v"}),
    ("projections.q from v", "The queries are made with the values' layer.", "scores", {"q": "v"}),
    ("projections.q from k", "The queries are made with the keys' layer.", "scores", {"q": "k"}),
    (
        "projections.rotated",
        "The three projections are mixed up.",
        "scores",
        {"q": "k", "k": "v", "v": "q"},
    ),
    (
        "projections.rotated",
        "The three projections are mixed up.",
        "scores",
        {"q": "v", "k": "q", "v": "k"},
    ),
    (
        "projections.q and v swapped",
        "Queries and values are swapped.",
        "scores",
        {"q": "v", "v": "q"},
    ),
    ("projections.k and v swapped", "Keys and values are swapped.", "scores", {"k": "v", "v": "k"}),
    (
        "projections.lost bias",
        "The biases of the layers are left out. Call the layers: `self.q(x)`.",
        "scores",
        {"bias": False},
    ),
]

_SINGLE = [
    (
        "mask.not asked for",
        "Later tokens are hidden. This class has no mask: every token looks at all others.",
        "mask",
        {"mask": "right"},
    ),
]

_MULTI = [
    (
        "dropout.in evaluation",
        "Dropout is at work in evaluation too. `self.dropout` knows the mode; "
        "`F.dropout` has to be told: `training=self.training`.",
        "output",
        {"dropout": "always"},
    ),
    (
        "dropout.missing",
        "In training, nothing is dropped. Apply `self.dropout` to the probabilities.",
        "output",
        {"dropout": "missing"},
    ),
    (
        "dropout.on scores",
        "The dropout is on the scores: a score of 0 is not a probability of 0. "
        "Apply it after the softmax.",
        "output",
        {"dropout": "scores"},
    ),
    (
        "dropout.on the output",
        "The dropout is on the output. Apply it to the probabilities.",
        "scores",
        {"dropout": "output"},
    ),
    (
        "scale.hidden",
        "The scores are scaled by the square root of hidden; each head has "
        "head_size = hidden / num_heads of it.",
        "scores",
        {"scale": "hidden"},
    ),
    (
        "scale.num_heads",
        "The scores are scaled by the square root of num_heads.",
        "scores",
        {"scale": "num_heads"},
    ),
    (
        "softmax.dim",
        "The softmax runs over the heads. Use dim=-1, the keys.",
        "output",
        {"softmax": "dim 1"},
    ),
    (
        "split.scrambled",
        "The heads are split with a reshape alone, which mixes tokens with "
        "features. Split the last dimension first, then transpose.",
        "scores",
        {"split": "scrambled"},
    ),
    (
        "split.interleaved",
        "The heads take every num_heads-th feature; each should take a block "
        "of head_size features in a row.",
        "scores",
        {"split": "interleaved"},
    ),
    (
        "split.scrambled",
        "Tokens and features were swapped before the heads were split.",
        "scores",
        {"split": "transposed first"},
    ),
    (
        "values.scrambled",
        "The values are split into heads with a reshape alone, which mixes tokens with features.",
        "output",
        {"split v": "scrambled"},
    ),
    (
        "values.interleaved",
        "The values' heads take every num_heads-th feature; each should take a block of head_size "
        "features in a row.",
        "output",
        {"split v": "interleaved"},
    ),
    (
        "merge.scrambled",
        "The heads are merged with a reshape alone, without transposing back.",
        "output",
        {"merge": "scrambled"},
    ),
    (
        "merge.scrambled",
        "The heads are merged feature by feature; they should stand one after the other.",
        "output",
        {"merge": "interleaved"},
    ),
    (
        "split and merge.scrambled",
        "The heads are split and merged with a reshape alone, which mixes tokens with features.",
        "scores output",
        {"split": "scrambled", "merge": "scrambled"},
    ),
    (
        "split and merge.interleaved",
        "The heads take every num_heads-th feature, and are merged in that way too; each should "
        "take a block of head_size features in a row.",
        "scores output",
        {"split": "interleaved", "merge": "interleaved"},
    ),
    ("mask.none", "With causal=True nothing is hidden.", "mask", {"mask": "none"}),
    (
        "mask.diagonal hidden",
        "The mask hides the current token too; its first row has nothing left. Use diagonal=1.",
        "mask",
        {"mask": "diagonal hidden"},
    ),
    (
        "mask.one step late",
        "The mask starts one place too late: each token sees the next one.",
        "mask",
        {"mask": "one step late"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is hidden, not the future.",
        "mask",
        {"mask": "inverted"},
    ),
    (
        "mask.inverted",
        "The mask is the wrong way round: the past is hidden, not the future.",
        "mask",
        {"mask": "past hidden"},
    ),
    (
        "mask.after softmax",
        "The mask is applied after the softmax: rows no longer sum to 1, and "
        "the future still counts in them.",
        "mask",
        {"mask": "after softmax"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to 0, and exp(0) is 1. Use minus infinity.",
        "mask",
        {"mask": "filled with 0"},
    ),
    (
        "mask.filled with 0",
        "Hidden scores are set to a tiny number, and exp of it is 1. Use minus infinity.",
        "mask",
        {"mask": "filled with tiny"},
    ),
    (
        "mask.NaN",
        "The mask gives NaN: 0 times infinity is not a number. Use masked_fill.",
        "mask",
        {"mask": "nan"},
    ),
    (
        "mask.from the scores",
        "The mask is made from the scores: a score that happens to be 0 is hidden too. "
        "Make it from positions, such as `torch.ones(seq_len, seq_len)`.",
        "mask",
        {"mask": "from scores"},
    ),
    (
        "mask.condition inverted",
        "The mask is applied when causal is False, and not when it is True.",
        "mask",
        {"mask": "condition inverted"},
    ),
    (
        "mask.by default",
        "Later tokens are hidden where nobody asks for it: causal is True by default.",
        "mask",
        {"causal by default": True},
    ),
    ("mask.always", "The mask is applied when causal is False too.", "mask", {"mask": "always"}),
    ("mix.missing", "`self.mix` is not applied.", "output", {"mixes": 0}),
    ("mix.twice", "`self.mix` is applied twice.", "output", {"mixes": 2}),
    (
        "mix.transposed",
        "The weight of `self.mix` is used the wrong way round. Call the layer: `self.mix(...)`.",
        "output",
        {"mix": "transposed"},
    ),
    (
        "mix.lost bias",
        "The bias of `self.mix` is left out. Call the layer: `self.mix(...)`.",
        "output",
        {"mix": "lost bias"},
    ),
    (
        "heads.all equal",
        "All heads do what the first head does. Each has its own block of features.",
        "scores",
        {"heads": "first"},
    ),
    (
        "merge.mean",
        "The heads are averaged; they should stand side by side.",
        "output",
        {"merge": "mean"},
    ),
    (
        "merge.sum",
        "The heads are added up; they should stand side by side.",
        "output",
        {"merge": "sum"},
    ),
    (
        "probabilities.head-major",
        "The probabilities are in head-major order; head h of item b "
        "should stand at b * num_heads + h.",
        "output",
        {"returns": "head-major"},
    ),
    (
        "probabilities.4-D",
        "The probabilities are 4-D; reshape them to [batch_size * num_heads, seq_len, seq_len].",
        "output",
        {"returns": "4-D"},
    ),
    (
        "probabilities.missing",
        "return_attention=True does not return the probabilities too.",
        "output",
        {"returns": "no probabilities"},
    ),
    (
        "probabilities.are scores",
        "What is returned as probabilities are the scores.",
        "output",
        {"returns": "scores"},
    ),
    (
        "probabilities.transposed",
        "The returned probabilities are transposed: a row should be a query, and sum to 1.",
        "output",
        {"returns": "transposed"},
    ),
    (
        "probabilities.averaged",
        "The returned probabilities are averaged over the heads; each head has its own.",
        "output",
        {"returns": "averaged"},
    ),
    (
        "output.order",
        "Output and probabilities are returned in the wrong order.",
        "output",
        {"returns": "swapped"},
    ),
]

_SINGLE_MISTAKES = [_mistake("SelfAttention", SingleHead, *each) for each in _SHARED + _SINGLE]
_MULTI_MISTAKES = [
    _mistake("MultiHeadSelfAttention", ManyHeads, *each) for each in _SHARED + _MULTI
]
_single = {"SelfAttention": SingleHead}
_multi = {"MultiHeadSelfAttention": ManyHeads}

SOLVE = {
    "self_attention.init": _single,
    "self_attention.forward": _single,
    "multi_head.scores": _multi,
    "multi_head.mask": _multi,
    "multi_head.output": _multi,
}
MISTAKES = {
    "self_attention.forward": _SINGLE_MISTAKES,
    "multi_head.scores": _MULTI_MISTAKES,
    "multi_head.mask": _MULTI_MISTAKES,
    "multi_head.output": _MULTI_MISTAKES,
}
# The likeliest first.
FITTED = {
    "self_attention.forward": [SINGLE_SCALE],
    "multi_head.scores": [MULTI_SCALE, SOFTMAX, GIVEN],
    "multi_head.mask": [MULTI_SCALE, SOFTMAX],
    "multi_head.output": [MULTI_SCALE, SOFTMAX, GIVEN],
}
