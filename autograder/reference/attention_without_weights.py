"""Answers of lesson 01, and the wrong ones that have a name.

Simple self-attention as in section 3.3 of "Build a Large Language Model (From Scratch)" by
Sebastian Raschka (2024); the recurrent encoder is that of Elman (1990).
"""

from __future__ import annotations

import torch

from autograder.course.asking import Mistake


def _states(x, w_input, w_hidden, bias, *, squash=torch.tanh, recur=True, first=0.0, linear=False):
    """The recurrent encoder with switches, each one mistake."""
    state = torch.full_like(bias, first)
    states = []
    for token in x:
        before = state if recur else torch.zeros_like(state)
        if linear:
            state = squash(token @ w_input + bias) + before @ w_hidden
        else:
            state = squash(token @ w_input + before @ w_hidden + bias)
        states.append(state)
    return torch.stack(states)


def _backwards(x, *weights):
    return _states(x.flip(0), *weights).flip(0)


def _previous(x, *weights):
    states = _states(x, *weights)
    return torch.cat([torch.zeros_like(states[:1]), states[:-1]])


def _softmax(scores, dim=-1):
    powers = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


def _naive(scores):
    return torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)


def _over_all(scores):
    return _softmax(scores.reshape(-1)).reshape(scores.shape)


def _shifted(scores, shift):
    powers = torch.exp(scores - shift)
    return powers / powers.sum(-1, keepdim=True)


def _columns(scores):
    """Divided by sums without the axis kept: in a square, the sums meet the columns."""
    return scores / scores.sum(-1)


def _attend(x, weigh=_softmax, scale=1.0):
    return weigh(x @ x.transpose(-2, -1) * scale) @ x


def _sum_normalized(scores):
    return scores / scores.sum(-1, keepdim=True)


def _batch_mixed(x):
    return _attend(x.reshape(-1, x.shape[-1])).reshape(x.shape)


def _without_self(x):
    diagonal = torch.eye(x.shape[-2], dtype=torch.bool)
    return _softmax((x @ x.transpose(-2, -1)).masked_fill(diagonal, -torch.inf)) @ x


def _cosine_scores(query, inputs):
    return torch.nn.functional.cosine_similarity(inputs, query[None], dim=-1)


SOLVE = {
    "simple.rnn": {"encoder_states": _states},
    "simple.scores": {"attention_scores": lambda query, inputs: (inputs * query).sum(-1)},
    "simple.sum_normalized": {"sum_normalized": _sum_normalized},
    "simple.softmax_naive": {"softmax_naive": lambda scores: torch.softmax(scores, -1)},
    "simple.softmax_stable": {"softmax_stable": lambda scores: torch.softmax(scores, -1)},
    "simple.context": {"context_vectors": _attend},
    "simple.matmul": {"simple_attention": _attend},
}


def _of(name: str, *mistakes) -> list[Mistake]:
    return [Mistake(check, message, {name: wrong}) for check, message, wrong in mistakes]


_RNN = _of(
    "encoder_states",
    (
        "rnn.no recurrence",
        "Each state depends on its own token only: the state of the step before "
        "is not used. Is it assigned to the same name at the end of each step?",
        lambda *a: _states(*a, recur=False),
    ),
    ("rnn.no tanh", "There is no tanh around the sum.", lambda *a: _states(*a, squash=lambda t: t)),
    (
        "rnn.tanh of a part",
        "The tanh is around the token's part only. It goes around the whole "
        "sum, the state's part included.",
        lambda *a: _states(*a, linear=True),
    ),
    (
        "rnn.other function",
        "Another squashing function stands where tanh should be.",
        lambda *a: _states(*a, squash=torch.sigmoid),
    ),
    (
        "rnn.other function",
        "Another squashing function stands where tanh should be.",
        lambda *a: _states(*a, squash=torch.relu),
    ),
    (
        "rnn.last state only",
        "You returned the last state alone. The last one is what a plain "
        "decoder gets; here all of them are asked for.",
        lambda *a: _states(*a)[-1],
    ),
    (
        "rnn.last state only",
        "You returned the last state alone, as a row. All states are asked for, one a token.",
        lambda *a: _states(*a)[-1:],
    ),
    ("rnn.backwards", "The tokens are read from the last to the first.", _backwards),
    (
        "rnn.one step late",
        "The states are one step late: the first row should already have seen the first token.",
        _previous,
    ),
    (
        "rnn.matrix transposed",
        "w_hidden is used transposed: the state stands on its left.",
        lambda x, wi, wh, b: _states(x, wi, wh.T, b),
    ),
    (
        "rnn.lost bias",
        "The bias is not added.",
        lambda x, wi, wh, b: _states(x, wi, wh, torch.zeros_like(b)),
    ),
    (
        "rnn.first state",
        "The state before the first token should be zeros.",
        lambda *a: _states(*a, first=1.0),
    ),
)

_SCORES = _of(
    "attention_scores",
    (
        "scores.not summed",
        "The features are multiplied and not added up: a score is one number a token.",
        lambda query, inputs: inputs * query,
    ),
    (
        "scores.cosine",
        "The vectors' lengths are divided out (cosine similarity). The plain dot "
        "product keeps them.",
        _cosine_scores,
    ),
    (
        "scores.scaled",
        "The scores are divided by the square root of the size. That comes in the next lesson.",
        lambda query, inputs: inputs @ query / query.shape[0] ** 0.5,
    ),
    (
        "scores.averaged",
        "The products are averaged; a dot product adds them up.",
        lambda query, inputs: (inputs * query).mean(-1),
    ),
    (
        "scores.distance",
        "This is a distance between vectors; a dot product multiplies and adds.",
        lambda query, inputs: torch.linalg.vector_norm(inputs - query, dim=-1),
    ),
    (
        "scores.wrong axis",
        "You summed over the tokens, so one number is left a feature. Sum over the features.",
        lambda query, inputs: (inputs * query).sum(0),
    ),
    (
        "scores.already weights",
        "A softmax is applied already. Here the raw scores are asked for.",
        lambda query, inputs: _softmax(inputs @ query),
    ),
    (
        "scores.added",
        "The features are added where they should be multiplied.",
        lambda query, inputs: (inputs + query).sum(-1),
    ),
    (
        "scores.everything",
        "All the scores were added up to one number.",
        lambda query, inputs: (inputs @ query).sum(),
    ),
)

_SUM = _of(
    "sum_normalized",
    (
        "normalize.dim",
        "The sums run over the wrong axis: columns of a table sum to 1 where rows "
        "should. Use dim=-1.",
        lambda s: s / s.sum(0, keepdim=True),
    ),
    (
        "normalize.over all",
        "Everything is divided by one sum over the whole tensor. Each row has a sum of its own.",
        lambda s: s / s.sum(),
    ),
    (
        "normalize.axis lost",
        "The sums lost their axis, so in a square table they meet the columns. "
        "Keep it with keepdim=True.",
        _columns,
    ),
    (
        "normalize.softmax",
        "This is the softmax already. Here the plain scores are divided by their sum.",
        _softmax,
    ),
    (
        "normalize.absolute",
        "You used absolute values. Negative scores stay negative here, which "
        "is one of the reasons why softmax is better.",
        lambda s: s.abs() / s.abs().sum(-1, keepdim=True),
    ),
    (
        "normalize.absolute",
        "The sum is of absolute values; plain scores are asked for.",
        lambda s: s / s.abs().sum(-1, keepdim=True),
    ),
    (
        "normalize.by the largest",
        "You divided by the largest score, not by the sum.",
        lambda s: s / s.amax(-1, keepdim=True),
    ),
    (
        "normalize.by the length",
        "You divided by the length of the vector (the root of the sum of squares), not by the sum.",
        lambda s: s / s.norm(dim=-1, keepdim=True),
    ),
    (
        "normalize.mean",
        "You divided by the mean. The rows then sum to their length.",
        lambda s: s / s.mean(-1, keepdim=True),
    ),
)

_SOFTMAX = (
    (
        "softmax.dim",
        "The softmax runs over the wrong axis. The rows of a table should sum to 1: use dim=-1.",
        lambda s: _softmax(s, 0),
    ),
    (
        "softmax.over all",
        "There is one sum over the whole tensor. Each row has a sum of its own.",
        _over_all,
    ),
    (
        "softmax.not normalized",
        "The exponentials are not divided by their sum.",
        lambda s: torch.exp(s - s.amax(-1, keepdim=True)),
    ),
    (
        "softmax.negated",
        "The smallest score gets the largest weight: a sign is wrong.",
        lambda s: _softmax(-s),
    ),
    ("softmax.log", "This is the logarithm of the softmax.", lambda s: torch.log_softmax(s, -1)),
    ("softmax.twice", "The softmax is applied twice.", lambda s: _softmax(_softmax(s))),
)

_NAIVE = _of(
    "softmax_naive",
    *_SOFTMAX,
    (
        "softmax.axis lost",
        "The sums lost their axis, so in a square table they meet the columns. "
        "Keep it with keepdim=True.",
        lambda s: _columns(torch.exp(s)),
    ),
    ("softmax.not normalized", "The exponentials are not divided by their sum.", torch.exp),
    (
        "softmax.no exponential",
        "The scores are divided by their sum without an exponential.",
        _sum_normalized,
    ),
    (
        "softmax.numerator",
        "The numerator is the score itself; it should be its exponential.",
        lambda s: s / torch.exp(s).sum(-1, keepdim=True),
    ),
    (
        "softmax.denominator",
        "The denominator is the sum of the scores; it should be the sum of their exponentials.",
        lambda s: torch.exp(s) / s.sum(-1, keepdim=True),
    ),
    (
        "softmax.denominator",
        "The denominator is the exponential of a sum; it should be the sum of exponentials.",
        lambda s: torch.exp(s) / torch.exp(s.sum(-1, keepdim=True)),
    ),
    (
        "softmax.base",
        "The powers are of 2, not of e: use torch.exp.",
        lambda s: _softmax(s * 0.6931471805599453),
    ),
)

_STABLE = _of(
    "softmax_stable",
    (
        "softmax.overflow",
        "For large scores you get NaN: exp overflows to infinity, or all "
        "exponentials are 0, and 0/0 and inf/inf are not numbers. Shift each row first.",
        _naive,
    ),
    (
        "softmax.one maximum for all",
        "One maximum of the whole tensor is subtracted: rows far below "
        "it have only zeros left, and 0/0 is NaN. Each row has a maximum of its own.",
        lambda s: _shifted(s, s.max()),
    ),
    (
        "softmax.maximum of columns",
        "The maximum is taken over the wrong axis. Use the axis that the softmax sums over.",
        lambda s: _shifted(s, s.amax(0, keepdim=True)),
    ),
    (
        "softmax.axis lost",
        "The maxima lost their axis, so in a square table they meet the columns. "
        "Keep it with keepdim=True.",
        lambda s: _shifted(s, s.amax(-1)),
    ),
    (
        "softmax.shifted too little",
        "Subtracting the mean or the smallest score is not enough: a "
        "score that towers above the others still overflows.",
        lambda s: _shifted(s, s.mean(-1, keepdim=True)),
    ),
    (
        "softmax.divided by the maximum",
        "The scores are divided by the maximum; subtract it. Only a "
        "shift leaves the result unchanged.",
        lambda s: _softmax(s / s.amax(-1, keepdim=True)),
    ),
    (
        "softmax.clamped",
        "Scores are cut off at a limit, so that large ones become all alike. "
        "A shift keeps their differences.",
        lambda s: _softmax(s.clamp(-50, 50)),
    ),
    (
        "softmax.NaN papered over",
        "The NaN are replaced by a number after the fact. Prevent the overflow instead.",
        lambda s: _naive(s).nan_to_num(0.0),
    ),
    *_SOFTMAX,
)

_ATTENTION = (
    (
        "context.unnormalised",
        "The raw scores are used as weights. They need a softmax first, so "
        "that each row sums to 1.",
        lambda x: _attend(x, lambda s: s),
    ),
    (
        "context.sum-normalized",
        "The scores are divided by their sum; use the softmax.",
        lambda x: _attend(x, _sum_normalized),
    ),
    (
        "context.softmax twice",
        "The softmax is applied twice, which flattens the weights.",
        lambda x: _attend(x, lambda s: _softmax(_softmax(s))),
    ),
    (
        "context.softmax over all",
        "There is one softmax over the whole table of scores. Each row has one of its own.",
        lambda x: (
            torch.stack([_attend(s, _over_all) for s in x])
            if x.dim() == 3
            else _attend(x, _over_all)
        ),
    ),
    (
        "context.scaled",
        "The scores are scaled by the square root of the size. That comes in the next lesson.",
        lambda x: _attend(x, scale=x.shape[-1] ** -0.5),
    ),
    (
        "context.weights returned",
        "These are the weights. The context vectors are still to come.",
        lambda x: _softmax(x @ x.transpose(-2, -1)),
    ),
    (
        "context.scores returned",
        "These are the scores. Weights and context vectors are still to come.",
        lambda x: x @ x.transpose(-2, -1),
    ),
    (
        "context.plain average",
        "Every token has the same weight: this is the average of all.",
        lambda x: x.mean(-2, keepdim=True).expand_as(x),
    ),
    (
        "context.self left out",
        "A token does not look at itself. It should: it is one of the tokens.",
        _without_self,
    ),
    (
        "context.result transposed",
        "The result is transposed: it should have a row a token.",
        lambda x: _attend(x).transpose(-2, -1),
    ),
    (
        "context.x.T @ w",
        "`x.T @ w` has the two the wrong way round: a row of weights times "
        "the inputs gives a context vector, so the weights stand on the left.",
        lambda x: x.transpose(-2, -1) @ _softmax(x @ x.transpose(-2, -1)),
    ),
    (
        "context.features attend",
        "The features attend to one another, not the tokens. The table of "
        "scores should be [seq_len, seq_len].",
        lambda x: x @ _softmax(x.transpose(-2, -1) @ x),
    ),
)

_CONTEXT = _of(
    "context_vectors",
    (
        "context.softmax dim",
        "The softmax runs over dim=0, or the weights are used transposed "
        "(scores of tokens with themselves are symmetric, so both give the same). Row i holds the "
        "weights of token i; it is the row that should sum to 1.",
        lambda x: _attend(x, lambda s: _softmax(s, 0)),
    ),
    *_ATTENTION,
    (
        "context.one token",
        "You returned the context vector of one token. All are asked for.",
        lambda x: _attend(x)[1],
    ),
    (
        "context.tokens weighed alone",
        "Each token is multiplied by its own weight and nothing is "
        "added up: a context vector is a sum over all tokens.",
        lambda x: _softmax(x @ x.T).diagonal()[:, None] * x,
    ),
)

_MATMUL = _of(
    "simple_attention",
    (
        "context.softmax dim",
        "The softmax runs over dim=1, or the weights are used transposed "
        "(the scores are symmetric here, so both give the same). In a batch, dim=1 is the axis of "
        "queries; the keys are last, dim=-1.",
        lambda x: _attend(x, lambda s: _softmax(s, 1)),
    ),
    (
        "context.softmax over the batch",
        "The softmax runs over dim=0, which is the batch here. "
        "dim=-1 means the keys, with a batch or without.",
        lambda x: _attend(x, lambda s: _softmax(s, 0)),
    ),
    *_ATTENTION,
    (
        "context.batch mixed",
        "Tokens of different sequences attend to one another: the batch was glued to the tokens.",
        _batch_mixed,
    ),
    (
        "context.reshaped",
        "A reshape stands where two axes should be swapped: use `transpose(-2, -1)`.",
        lambda x: _softmax(x @ x.reshape(x.shape[0], x.shape[2], x.shape[1])) @ x,
    ),
    (
        "context.first sequence",
        "Only the first sequence of the batch was used.",
        lambda x: _attend(x[0]),
    ),
    (
        "context.first sequence",
        "The first sequence's weights are used for all of them.",
        lambda x: _softmax(x[0] @ x[0].T) @ x,
    ),
)

MISTAKES = {
    "simple.rnn": _RNN,
    "simple.scores": _SCORES,
    "simple.sum_normalized": _SUM,
    "simple.softmax_naive": _NAIVE,
    "simple.softmax_stable": _STABLE,
    "simple.context": _CONTEXT,
    "simple.matmul": _MATMUL,
}
