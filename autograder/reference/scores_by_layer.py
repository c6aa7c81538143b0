"""Answers of lesson 11 on scores and attention weights, and its wrong programs."""

from __future__ import annotations

import math

import torch

from autograder.course.asking import Mistake
from autograder.reference.reading_activations import STALE, heads_of, stale, wide_outputs


# --- scores --------------------------------------------------------------------------------------
def raw_scores(wide, num_heads):
    q, k, _ = heads_of(wide, num_heads)
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def hide(scores, diagonal=1, value=-math.inf):
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal)
    return scores.masked_fill(future, value)


def masked_scores(wide, num_heads):
    return hide(raw_scores(wide, num_heads))


def _full_width(wide, num_heads, size=None):
    q, k, _ = wide.chunk(3, dim=-1)
    return q @ k.transpose(-2, -1) / math.sqrt(size or q.shape[-1] // num_heads)


def _head_size(wide, num_heads):
    return wide.shape[-1] // 3 // num_heads


def _inverted(wide, num_heads):
    scores = raw_scores(wide, num_heads)
    return scores.masked_fill(torch.ones_like(scores).tril().bool(), -math.inf)


_SUMMED = (
    "Queries and keys of the full width were multiplied: that adds up the scores of all "
    "heads, and belongs to no head of the model. Split into heads first."
)
_SCORES = [
    ("scores.summed heads", _SUMMED, _full_width),
    ("scores.summed heads", _SUMMED, lambda w, h: hide(_full_width(w, h))),
    ("scores.summed heads", _SUMMED, lambda w, h: _full_width(w, h, w.shape[-1] // 3)),
    ("scores.summed heads", _SUMMED, lambda w, h: hide(_full_width(w, h, w.shape[-1] // 3))),
    ("scores.summed heads", _SUMMED, lambda w, h: masked_scores(w, h).sum(1)),
    (
        "scores.no mask",
        "No key is hidden: these queries see the future, which the model's own never do.",
        raw_scores,
    ),
    (
        "scores.mask hides itself",
        "A token is hidden from itself. Hide what lies strictly above the diagonal.",
        lambda w, h: hide(raw_scores(w, h), 0),
    ),
    ("scores.mask inverted", "The past is hidden and the future visible.", _inverted),
    (
        "scores.filled with 0",
        "Hidden scores are 0, which the softmax turns into weight. It takes "
        "minus infinity to hide a key.",
        lambda w, h: hide(raw_scores(w, h), 1, 0.0),
    ),
    (
        "scores.not scaled",
        "The scores are not divided by the root of the head size.",
        lambda w, h: masked_scores(w, h) * math.sqrt(_head_size(w, h)),
    ),
    (
        "scores.scaled by the full width",
        "The scores are divided by the root of hidden; each head's keys are only head_size long.",
        lambda w, h: masked_scores(w, h) / math.sqrt(h),
    ),
    (
        "scores.scaled without root",
        "The scores are divided by the head size, not by its root.",
        lambda w, h: masked_scores(w, h) / math.sqrt(_head_size(w, h)),
    ),
    (
        "scores.already a softmax",
        "These are attention weights; the scores before the softmax are asked for.",
        lambda w, h: masked_scores(w, h).softmax(-1),
    ),
    (
        "scores.queries and keys swapped",
        "Rows are keys and columns queries: the product is the wrong way round.",
        lambda w, h: hide(raw_scores(w, h).transpose(-2, -1)),
    ),
    (
        "scores.interleaved heads",
        "The heads are interleaved. A head's features stand together.",
        lambda w, h: hide(
            _scores_of(*[p.unflatten(-1, (-1, h)).permute(0, 3, 1, 2) for p in w.chunk(3, -1)][:2])
        ),
    ),
    (
        "scores.scaled by the number of heads",
        "The scores are divided by the root of the number of heads; what counts is their size.",
        lambda w, h: masked_scores(w, h) * math.sqrt(_head_size(w, h) / h),
    ),
    (
        "scores.scaled by the full width",
        "The scores are divided by the root of the whole wide axis; each head's keys are only "
        "head_size long.",
        lambda w, h: masked_scores(w, h) / math.sqrt(3 * h),
    ),
    (
        "scores.scaled by the tokens",
        "The scores are divided by the root of the number of tokens; the root of the head size "
        "is asked for.",
        lambda w, h: masked_scores(w, h) * math.sqrt(_head_size(w, h) / w.shape[1]),
    ),
    (
        "scores.multiplied",
        "The scores are multiplied by the root of the head size; they are divided by it.",
        lambda w, h: masked_scores(w, h) * _head_size(w, h),
    ),
    (
        "scores.one future key",
        "Each token sees the one after it. Hide what lies strictly above the diagonal.",
        lambda w, h: hide(raw_scores(w, h), 2),
    ),
    (
        "scores.reshape for transpose",
        "`view` alone cannot bring the heads to the front: it mixes tokens. Split the last axis "
        "in two, then transpose.",
        lambda w, h: hide(_scores_of(*_reshaped(w, h)[:2])),
    ),
    (
        "scores.values for keys",
        "Queries meet the values; they should meet the keys.",
        lambda w, h: hide(_scores_of(*heads_of(w, h)[::2])),
    ),
    (
        "scores.queries with themselves",
        "Queries meet queries; they should meet the keys.",
        lambda w, h: hide(_scores_of(*heads_of(w, h)[:1] * 2)),
    ),
    (
        "scores.0 * inf",
        "Zero times infinity is not zero but NaN. Use masked_fill or where.",
        lambda w, h: raw_scores(w, h) + torch.ones_like(raw_scores(w, h)).triu(1) * -math.inf,
    ),
]


def _scores_of(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _reshaped(wide, num_heads):
    b, s, _ = wide.shape
    return [part.reshape(b, num_heads, s, -1) for part in wide.chunk(3, dim=-1)]


def _visible(scores):
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores[..., seen]


def _statistics(measure):
    """(means, deviations), each [num_layers, num_heads], of what `measure` gives for one layer."""

    def both(wides, num_heads):
        pairs = [measure(wide, num_heads) for wide in wides]
        return tuple(torch.stack(column) for column in zip(*pairs, strict=True))

    return both


def _moments(values, correction=1):
    return values.mean((0, 2)), values.std((0, 2), correction=correction)


def _seen(wide, num_heads):
    return _visible(masked_scores(wide, num_heads))


score_statistics = _statistics(lambda w, h: _moments(_seen(w, h)))


def _below(wide, num_heads):
    scores = raw_scores(wide, num_heads)
    return scores[..., torch.ones(scores.shape[-2:], dtype=torch.bool).tril(-1)]


def _pooled(wide, num_heads):
    values = _seen(wide, num_heads)
    return values.mean(), values.std()


def _of_full_width(wide, num_heads, seen=False):
    values = _full_width(wide, num_heads)
    values = _visible(values) if seen else values
    return values.mean(), values.std()


def _zeros_counted(wide, num_heads):
    return _moments(hide(raw_scores(wide, num_heads), 1, 0.0).flatten(2))


_STATISTICS = [
    ("statistics.stale tensor", STALE, stale(score_statistics)),
    (
        "statistics.no mask",
        "The pairs with a later key are counted too; the model never uses them.",
        _statistics(lambda w, h: _moments(raw_scores(w, h).flatten(2))),
    ),
    (
        "statistics.infinite",
        "Minus infinity is among the numbers: the mean is -inf and the "
        "deviation nan. Pick the visible pairs first.",
        _statistics(lambda w, h: _moments(masked_scores(w, h).flatten(2))),
    ),
    (
        "statistics.zeros counted",
        "The hidden pairs are counted as zeros. Pick the visible pairs.",
        _statistics(_zeros_counted),
    ),
    (
        "statistics.diagonal left out",
        "A token's score with itself is visible and belongs in.",
        _statistics(lambda w, h: _moments(_below(w, h))),
    ),
    ("statistics.summed heads", _SUMMED, _statistics(_of_full_width)),
    ("statistics.summed heads", _SUMMED, _statistics(lambda w, h: _of_full_width(w, h, True))),
    (
        "statistics.heads pooled",
        "All heads of a layer share one number. Keep them apart.",
        _statistics(_pooled),
    ),
    (
        "statistics.first item alone",
        "Only the first sequence of the batch is counted.",
        _statistics(lambda w, h: _moments(_seen(w[:1], h))),
    ),
    (
        "statistics.ddof",
        "The deviation divides by the number of pairs; torch.std divides by one "
        "less (correction=1), and that is what is asked for.",
        _statistics(lambda w, h: _moments(_seen(w, h), 0)),
    ),
    (
        "statistics.variance",
        "The second result is the variance; the standard deviation is its root.",
        lambda w, h: (score_statistics(w, h)[0], score_statistics(w, h)[1] ** 2),
    ),
    (
        "statistics.of the weights",
        "These are statistics of the attention weights, after the "
        "softmax; the scores are asked for.",
        _statistics(lambda w, h: _moments(_visible(masked_scores(w, h).softmax(-1)))),
    ),
    (
        "statistics.order",
        "Means come first, then deviations.",
        lambda w, h: score_statistics(w, h)[::-1],
    ),
    (
        "statistics.not scaled",
        "The scores are not divided by the root of the head size.",
        _statistics(lambda w, h: _moments(_seen(w, h) * math.sqrt(_head_size(w, h)))),
    ),
    (
        "statistics.first token left out",
        "Token 0 is left out, as query and as key; all visible pairs are asked for.",
        _statistics(lambda w, h: _moments(_visible(masked_scores(w, h)[:, :, 1:, 1:]))),
    ),
    (
        "statistics.sequence by sequence",
        "Each sequence has a deviation of its own, and these are averaged. Put the pairs of all "
        "sequences together first.",
        _statistics(lambda w, h: (_seen(w, h).mean((0, 2)), _seen(w, h).std(2).mean(0))),
    ),
    (
        "statistics.axes swapped",
        "Layers should be rows and heads columns.",
        lambda w, h: tuple(t.T for t in score_statistics(w, h)),
    ),
    (
        "statistics.stale tensor",
        "Every layer has the first layer's numbers; each has a tensor of its own.",
        lambda w, h: score_statistics(w[:1] * len(w), h),
    ),
]


# --- sinks ---------------------------------------------------------------------------------------
def patterns(model, input_ids):
    """[num_layers, batch_size, num_heads, seq_len, seq_len]"""
    with torch.no_grad():
        return torch.stack(model(input_ids, output_attentions=True).attentions)


def sink_attention(model, input_ids):
    return patterns(model, input_ids)[..., 1:, 0].mean((1, 3))


def _of_patterns(pick):
    return lambda model, input_ids: pick(patterns(model, input_ids))


def _unmasked(model, input_ids):
    heads = model.config.n_head
    maps = [raw_scores(w, heads).softmax(-1) for w in wide_outputs(model, input_ids)]
    return torch.stack(maps)[..., 1:, 0].mean((1, 3))


def _of_scores(model, input_ids):
    heads = model.config.n_head
    scores = [raw_scores(w, heads) for w in wide_outputs(model, input_ids)]
    return torch.stack(scores)[..., 1:, 0].mean((1, 3))


_SINKS = [
    (
        "sinks.first query counted",
        "Query 0 is counted, and it has nothing to look at but token 0: "
        "its weight is 1 in every model.",
        _of_patterns(lambda p: p[..., 0].mean((1, 3))),
    ),
    (
        "sinks.row for column",
        "This is what query 0 looks at, not who looks at token 0. Queries go down, keys across.",
        _of_patterns(lambda p: p[..., 0, :].mean((1, 3))),
    ),
    (
        "sinks.row for column",
        "This is what query 0 looks at, not who looks at token 0. Queries go down, keys across.",
        _of_patterns(lambda p: p[..., 0, 1:].mean((1, 3))),
    ),
    (
        "sinks.no mask",
        "These weights come from scores without the causal mask; the model's own are "
        "larger at token 0, because later keys get nothing.",
        _unmasked,
    ),
    (
        "sinks.heads averaged",
        "The heads are averaged; one number a head is wanted.",
        _of_patterns(lambda p: p[..., 1:, 0].mean((1, 2, 3))),
    ),
    (
        "sinks.batch kept",
        "Each sequence has its own number here; average over the batch too.",
        _of_patterns(lambda p: p[..., 1:, 0].mean(3)),
    ),
    (
        "sinks.sum",
        "The weights are summed over the queries; the mean is asked for.",
        _of_patterns(lambda p: p[..., 1:, 0].sum(3).mean(1)),
    ),
    (
        "sinks.last query alone",
        "Only the last query is counted.",
        _of_patterns(lambda p: p[..., -1, 0].mean(1)),
    ),
    (
        "sinks.last query lost",
        "The last query is missing from the mean.",
        _of_patterns(lambda p: p[..., 1:-1, 0].mean((1, 3))),
    ),
    (
        "sinks.another token",
        "This is the attention to token 1; the first token is token 0.",
        _of_patterns(lambda p: p[..., 1:, 1].mean((1, 3))),
    ),
    (
        "sinks.last token",
        "This is the attention to the last token.",
        _of_patterns(lambda p: p[..., 1:, -1].mean((1, 3))),
    ),
    (
        "sinks.itself",
        "This is the attention of a token to itself, the diagonal.",
        _of_patterns(lambda p: p.diagonal(dim1=-2, dim2=-1)[..., 1:].mean((1, 3))),
    ),
    (
        "sinks.first item alone",
        "Only the first sequence of the batch is counted.",
        _of_patterns(lambda p: p[:, 0, :, 1:, 0].mean(2)),
    ),
    (
        "sinks.axes swapped",
        "Layers should be rows and heads columns.",
        lambda m, i: sink_attention(m, i).T,
    ),
    (
        "sinks.scores",
        "These are scores; asked for is the mean of the weights, after the softmax.",
        _of_scores,
    ),
    (
        "sinks.first two queries lost",
        "Query 1 is left out as well; only query 0 has no choice.",
        _of_patterns(lambda p: p[..., 2:, 0].mean((1, 3))),
    ),
    (
        "sinks.largest",
        "This is the largest weight; the mean is asked for.",
        _of_patterns(lambda p: p[..., 1:, 0].amax((1, 3))),
    ),
]


_ANSWERS = {
    "activations.scores": (masked_scores, _SCORES),
    "activations.by_layer": (score_statistics, _STATISTICS),
    "activations.sinks": (sink_attention, _SINKS),
}
_NAMES = {
    "activations.scores": "masked_scores",
    "activations.by_layer": "score_statistics",
    "activations.sinks": "sink_attention",
}
SOLVE = {task: {_NAMES[task]: right} for task, (right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {_NAMES[task]: wrong}) for check, message, wrong in known]
    for task, (_, known) in _ANSWERS.items()
}
