"""Lesson 01: from a recurrent encoder to attention with nothing to learn.

Simple self-attention as in section 3.3 of "Build a Large Language Model (From Scratch)" by
Sebastian Raschka (2024); the recurrent encoder is that of Elman (1990).
"""

from __future__ import annotations

import torch

from autograder import Call, exercise


# --- the encoder ---------------------------------------------------------------------------------
def _encoder_of_small_weights(draw):
    """Weights so small that tanh still tells the numbers apart."""
    seq_len, input_size, hidden = draw.sizes(3, 3, 11)
    shapes = (input_size, hidden), (hidden, hidden), (hidden,)
    args = draw.normal(seq_len, input_size), *(draw.normal(*shape, scale=0.5) for shape in shapes)
    return Call("", args, says=f"{seq_len} tokens, input_size {input_size}, hidden {hidden}")


@exercise(
    "simple.rnn",
    _encoder_of_small_weights,
    hints=(
        "One loop over the tokens. One variable, the state, is handed from step to step.",
        "Start with a state of zeros, of size hidden. Each step needs this token, the state "
        "of the step before, both matrices, the bias, and tanh around it all.",
        "state = tanh(token @ w_input + state @ w_hidden + bias); keep each state in a list "
        "and `torch.stack` the list at the end."))
def encoder_states(x, w_input, w_hidden, bias, *, squash=torch.tanh, first=0.0, recur=1, add_bias=1,
                   tanh_of_all=True, turn=lambda w: w, give=torch.stack):
    state = torch.full_like(bias, first)
    states = []
    for token in x:
        before = recur * state @ turn(w_hidden)
        new = token @ w_input + add_bias * bias
        state = squash(new + before) if tanh_of_all else squash(new) + before
        states.append(state)
    return give(states)


encoder_states.wrong("rnn.no recurrence", "Each state depends on its own token only: the state of "
    "the step before is not used. Is it assigned to the same name at the end of each step?",
    recur=0)
encoder_states.wrong("rnn.no tanh", "There is no tanh around the sum.", squash=lambda t: t)
encoder_states.wrong("rnn.tanh of a part", "The tanh is around the token's part only. It goes "
    "around the whole sum, the state's part included.", tanh_of_all=False)
for squash in (torch.sigmoid, torch.relu):
    encoder_states.wrong("rnn.other function", "Another squashing function stands where tanh "
        "should be.", squash=squash)
encoder_states.wrong("rnn.last state only", "You returned the last state alone. The last one is "
    "what a plain decoder gets; here all of them are asked for.", give=lambda states: states[-1])
encoder_states.wrong("rnn.last state only", "You returned the last state alone, as a row. All "
    "states are asked for, one a token.", give=lambda states: states[-1][None])
encoder_states.wrong("rnn.backwards", "The tokens are read from the last to the first.",
    lambda x, *weights: encoder_states(x.flip(0), *weights).flip(0))
encoder_states.wrong("rnn.one step late", "The states are one step late: the first row should "
    "already have seen the first token.",
    give=lambda states: torch.stack([0 * states[0], *states[:-1]]))
encoder_states.wrong("rnn.matrix transposed", "w_hidden is used transposed: the state stands on "
    "its left.", turn=lambda w: w.T)
encoder_states.wrong("rnn.lost bias", "The bias is not added.", add_bias=0)
encoder_states.wrong("rnn.first state", "The state before the first token should be zeros.",
    first=1.0)


# --- scores --------------------------------------------------------------------------------------
@exercise(
    "simple.scores",
    "attention_scores(query[hidden], inputs[seq_len, hidden])",
    hints=(
        "One number for each token: multiply matching features, then add up.",
        "In a loop, `torch.dot(x_i, query)` fills place i. Without one, a matrix times a "
        "vector does all the dot products at once.",
        "`inputs @ query` has shape [seq_len]: each row of inputs, dotted with the query."))
def attention_scores(query, inputs):
    return inputs @ query


attention_scores.wrong("scores.not summed", "The features are multiplied and not added up: a score "
    "is one number a token.", lambda query, inputs: inputs * query)
attention_scores.wrong("scores.cosine", "The vectors' lengths are divided out (cosine similarity). "
    "The plain dot product keeps them.",
    lambda query, inputs: torch.cosine_similarity(inputs, query[None], dim=-1))
attention_scores.wrong("scores.scaled", "The scores are divided by the square root of the size. "
    "That comes in the next lesson.", lambda query, inputs: inputs @ query / len(query) ** 0.5)
attention_scores.wrong("scores.averaged", "The products are averaged; a dot product adds them up.",
    lambda query, inputs: (inputs * query).mean(-1))
attention_scores.wrong("scores.distance", "This is a distance between vectors; a dot product "
    "multiplies and adds.", lambda query, inputs: (inputs - query).norm(dim=-1))
attention_scores.wrong("scores.wrong axis", "You summed over the tokens, so one number is left a "
    "feature. Sum over the features.", lambda query, inputs: (inputs * query).sum(0))
attention_scores.wrong("scores.already weights", "A softmax is applied already. Here the raw "
    "scores are asked for.", lambda query, inputs: (inputs @ query).softmax(0))
attention_scores.wrong("scores.added", "The features are added where they should be multiplied.",
    lambda query, inputs: (inputs + query).sum(-1))
attention_scores.wrong("scores.everything", "All the scores were added up to one number.",
    lambda query, inputs: (inputs @ query).sum())


# --- from scores to weights ----------------------------------------------------------------------
def _rows(low, high):
    """One row of scores, a square of rows, and a batch of squares, all between low and high."""

    def rows(draw):
        batch_size, seq_len = draw.sizes(2, 5, 11)
        shapes = (seq_len,), (seq_len, seq_len), (batch_size, seq_len, seq_len)
        return [Call("", (draw.uniform(*shape, low=low, high=high),),
                     says=f"scores of shape {list(shape)}") for shape in shapes]

    return rows


@exercise(
    "simple.sum_normalized",
    _rows(-0.4, 2.0),  # some below 0, and no sum near 0
    hints=(
        "Each row is divided by its own sum. Nothing else happens.",
        "Sum over the last axis, dim=-1. For a table, the sums must stand as a column.",
        "`scores.sum(dim=-1, keepdim=True)` leaves an axis of size 1 to divide by."))
def sum_normalized(scores, *, by=lambda s: s.sum(-1, keepdim=True)):
    return scores / by(scores)


sum_normalized.wrong("normalize.dim", "The sums run over the wrong axis: columns of a table sum to "
    "1 where rows should. Use dim=-1.", by=lambda s: s.sum(0, keepdim=True))
sum_normalized.wrong("normalize.over all", "Everything is divided by one sum over the whole "
    "tensor. Each row has a sum of its own.", by=torch.sum)
sum_normalized.wrong("normalize.axis lost", "The sums lost their axis, so in a square table they "
    "meet the columns. Keep it with keepdim=True.", by=lambda s: s.sum(-1))
sum_normalized.wrong("normalize.softmax", "This is the softmax already. Here the plain scores are "
    "divided by their sum.", lambda s: s.softmax(-1))
sum_normalized.wrong("normalize.absolute", "You used absolute values. Negative scores stay "
    "negative here, which is one of the reasons why softmax is better.",
    lambda s: sum_normalized(s.abs()))
sum_normalized.wrong("normalize.absolute", "The sum is of absolute values; plain scores are asked "
    "for.", by=lambda s: s.abs().sum(-1, keepdim=True))
sum_normalized.wrong("normalize.by the largest", "You divided by the largest score, not by the "
    "sum.", by=lambda s: s.amax(-1, keepdim=True))
sum_normalized.wrong("normalize.by the length", "You divided by the length of the vector (the root "
    "of the sum of squares), not by the sum.", by=lambda s: s.norm(dim=-1, keepdim=True))
sum_normalized.wrong("normalize.mean", "You divided by the mean. The rows then sum to their "
    "length.", by=lambda s: s.mean(-1, keepdim=True))


@exercise(
    "simple.softmax_naive",
    _rows(-3.0, 3.0),
    hints=(
        "It is the last exercise again, with one more step in front.",
        "First `torch.exp` of every score, then divide by the sum of those, row by row.",
        "Exponentials over the sum of exponentials, with `dim=-1, keepdim=True` in the sum."))
def softmax_naive(scores, *, power=torch.exp, normalise=sum_normalized):
    exponentials = power(scores)
    return normalise(exponentials)


softmax_naive.wrong("softmax.axis lost", "The sums lost their axis, so in a square table they meet "
    "the columns. Keep it with keepdim=True.", normalise=lambda p: p / p.sum(-1))
softmax_naive.wrong("softmax.not normalized", "The exponentials are not divided by their sum.",
    normalise=lambda p: p)
softmax_naive.wrong("softmax.no exponential", "The scores are divided by their sum without an "
    "exponential.", power=lambda s: s)
softmax_naive.wrong("softmax.numerator", "The numerator is the score itself; it should be its "
    "exponential.", lambda s: s / s.exp().sum(-1, keepdim=True))
softmax_naive.wrong("softmax.denominator", "The denominator is the sum of the scores; it should be "
    "the sum of their exponentials.", lambda s: s.exp() / s.sum(-1, keepdim=True))
softmax_naive.wrong("softmax.denominator", "The denominator is the exponential of a sum; it should "
    "be the sum of exponentials.", lambda s: s.exp() / s.sum(-1, keepdim=True).exp())
softmax_naive.wrong("softmax.base", "The powers are of 2, not of e: use torch.exp.",
    power=torch.exp2)


def _rows_far_apart(draw):
    """Rows near 0, rows far above and far below it, and a row where one score towers."""
    batch_size, seq_len = draw.sizes(2, 5, 11)
    row = draw.normal(seq_len, scale=1.5) + draw.integer(1000, 3000)
    calls = [Call("", (row,), says="one row of scores, all above 990")]
    for shape in (seq_len, seq_len), (batch_size, seq_len, seq_len):
        levels = [1000.0 * (i - 2) for i in range(seq_len)]  # from far below 0 to far above
        draw.random.shuffle(levels)
        scores = draw.normal(*shape, scale=1.5) + torch.tensor(levels)[:, None]
        scores[..., levels.index(0.0), draw.integer(0, seq_len - 1)] += 2000.0
        says = f"shape {list(shape)}, rows far below 0 and far above"
        calls.append(Call("", (scores,), says=says))
    return calls


@exercise(
    "simple.softmax_stable",
    _rows_far_apart,
    rtol=2e-3,  # where a score is 8000, a step of float32 is 0.0005: seen through logsumexp
    hints=(
        "Adding the same number to all scores of a row changes nothing in the result. Which "
        "number makes the exponentials harmless?",
        "After subtracting the largest score of the row, every exponent is 0 or less, so no "
        "exponential is above 1, and one of them is exactly 1.",
        "`scores - scores.amax(dim=-1, keepdim=True)`, and then as before. Each row has a "
        "maximum of its own."))
def softmax_stable(scores, *, shift=lambda s: s.amax(-1, keepdim=True)):
    shifted_scores = scores - shift(scores)
    return softmax_naive(shifted_scores)


softmax_stable.wrong("softmax.overflow", "Scores go into exp as they are: of large ones it "
    "overflows to infinity, of very negative ones it gives 0, and a row is lost where it divides "
    "by that. Shift each row first, above and below.",
    softmax_naive)
softmax_stable.wrong("softmax.one maximum for all", "One maximum of the whole tensor is "
    "subtracted: rows far below it have only zeros left, and 0/0 is NaN. Each row has a maximum of "
    "its own.", shift=torch.max)
softmax_stable.wrong("softmax.maximum of columns", "The maximum is taken over the wrong axis. Use "
    "the axis that the softmax sums over.", shift=lambda s: s.amax(0, keepdim=True))
softmax_stable.wrong("softmax.axis lost", "The maxima lost their axis, so in a square table they "
    "meet the columns. Keep it with keepdim=True.", shift=lambda s: s.amax(-1))
softmax_stable.wrong("softmax.shifted too little", "Subtracting the mean or the smallest score is "
    "not enough: a score that towers above the others still overflows.",
    shift=lambda s: s.mean(-1, keepdim=True))
softmax_stable.wrong("softmax.divided by the maximum", "The scores are divided by the maximum; "
    "subtract it. Only a shift leaves the result unchanged.",
    lambda s: softmax_stable(s / s.amax(-1, keepdim=True)))
softmax_stable.wrong("softmax.clamped", "Scores are cut off at a limit, so that large ones become "
    "all alike. A shift keeps their differences.", lambda s: softmax_stable(s.clamp(-50, 50)))
softmax_stable.wrong("softmax.NaN papered over", "The NaN are replaced by a number after the fact. "
    "Prevent the overflow instead.", lambda s: softmax_naive(s).nan_to_num(0.0))
for answer in (softmax_naive, softmax_stable):
    answer.wrong("softmax.dim", "The softmax runs over the wrong axis. The rows of a table should "
        "sum to 1: use dim=-1.", lambda s: s.softmax(0))
    answer.wrong("softmax.over all", "There is one sum over the whole tensor. Each row has a sum "
        "of its own.", lambda s: s.flatten().softmax(0).reshape(s.shape))
    answer.wrong("softmax.not normalized", "The exponentials are not divided by their sum.",
        lambda s: torch.exp(s - s.amax(-1, keepdim=True)))
    answer.wrong("softmax.negated", "The smallest score gets the largest weight: a sign is wrong.",
        lambda s: (-s).softmax(-1))
    answer.wrong("softmax.log", "This is the logarithm of the softmax.",
        lambda s: s.log_softmax(-1))
    answer.wrong("softmax.twice", "The softmax is applied twice.",
        lambda s: s.softmax(-1).softmax(-1))


# --- context vectors -----------------------------------------------------------------------------
def _tokens(draw):
    """Tokens so short that no softmax is all or nothing."""
    seq_len, hidden = draw.sizes(2, 3, 11)
    x = draw.normal(seq_len, hidden, scale=0.7)
    return Call("", (x,), says=f"{seq_len} tokens of size {hidden}")


def _sequences(draw):
    batch_size, seq_len, hidden = draw.sizes(3, 2, 11)
    x = draw.normal(batch_size, seq_len, hidden, scale=0.7)
    return Call("", (x,), says=f"{batch_size} sequences of {seq_len} tokens of size {hidden}")


@exercise(
    "simple.context",
    _tokens,
    hints=(
        "Three steps for each token: scores, weights, weighted sum. You have the first two.",
        "With loops: for each query token, its scores against all tokens, their softmax, and "
        "then the sum of weight times token over all tokens.",
        "For token i: weights = softmax_stable(attention_scores(inputs[i], inputs)), then "
        "`weights @ inputs`, of shape [hidden]; stack them for all i."))
def context_vectors(inputs, *, score=lambda x: x @ x.mT, weigh=lambda s: s.softmax(-1),
                    give=lambda w, x: w @ x):
    scores = score(inputs)
    weights = weigh(scores)
    return give(weights, inputs)


@exercise(
    "simple.matmul",
    _sequences,
    hints=(
        "Three lines and no loop: all scores, all weights, all context vectors.",
        "The scores of a batch are x times x with its last two axes swapped; `.T` would move "
        "the batch as well.",
        "scores = x @ x.transpose(-2, -1); softmax over dim=-1; then weights @ x."))
def simple_attention(x, *, score=lambda x: x @ x.mT, weigh=lambda s: s.softmax(-1),
                     give=lambda w, x: w @ x):
    scores = score(x)
    weights = weigh(scores)
    return give(weights, x)


def without_self(scores):
    diagonal = torch.eye(scores.shape[-1], dtype=torch.bool)
    return scores.masked_fill(diagonal, -torch.inf).softmax(-1)


context_vectors.wrong("context.softmax dim", "The softmax runs over dim=0, or the weights are used "
    "transposed (scores of tokens with themselves are symmetric, so both give the same). Row i "
    "holds the weights of token i; it is the row that should sum to 1.",
    weigh=lambda s: s.softmax(0))
simple_attention.wrong("context.softmax dim", "The softmax runs over dim=1, or the weights are "
    "used transposed (the scores are symmetric here, so both give the same). In a batch, dim=1 is "
    "the axis of queries; the keys are last, dim=-1.", weigh=lambda s: s.softmax(1))
simple_attention.wrong("context.softmax over the batch", "The softmax runs over dim=0, which is "
    "the batch here. dim=-1 means the keys, with a batch or without.", weigh=lambda s: s.softmax(0))
for answer in (context_vectors, simple_attention):
    answer.wrong("context.unnormalised", "The raw scores are used as weights. They need a softmax "
        "first, so that each row sums to 1.", weigh=lambda s: s)
    answer.wrong("context.sum-normalized", "The scores are divided by their sum; use the softmax.",
        weigh=sum_normalized)
    answer.wrong("context.softmax twice", "The softmax is applied twice, which flattens the "
        "weights.", weigh=lambda s: s.softmax(-1).softmax(-1))
    answer.wrong("context.softmax over all", "There is one softmax over the whole table of scores. "
        "Each row has one of its own.", weigh=lambda s: s.flatten(-2).softmax(-1).reshape(s.shape))
    answer.wrong("context.scaled", "The scores are scaled by the square root of the size. That "
        "comes in the next lesson.", score=lambda x: x @ x.mT / x.shape[-1] ** 0.5)
    answer.wrong("context.weights returned", "These are the weights. The context vectors are still "
        "to come.", give=lambda w, x: w)
    answer.wrong("context.scores returned", "These are the scores. Weights and context vectors are "
        "still to come.", weigh=lambda s: s, give=lambda w, x: w)
    answer.wrong("context.plain average", "Every token has the same weight: this is the average of "
        "all.", weigh=lambda s: (0 * s).softmax(-1))
    answer.wrong("context.self left out", "A token does not look at itself. It should: it is one "
        "of the tokens.", weigh=without_self)
    answer.wrong("context.result transposed", "The result is transposed: it should have a row a "
        "token.", give=lambda w, x: (w @ x).mT)
    answer.wrong("context.x.T @ w", "The weights are used transposed, as `x.T @ w` does: a row of "
        "weights times the inputs gives a context vector.",
        give=lambda w, x: x.mT @ w)
    answer.wrong("context.features attend", "The features attend to one another, not the tokens. "
        "The table of scores should be [seq_len, seq_len].", score=lambda x: x.mT @ x,
        give=lambda w, x: x @ w)
context_vectors.wrong("context.one token", "You returned the context vector of one token. All are "
    "asked for.", give=lambda w, x: (w @ x)[1])
context_vectors.wrong("context.tokens weighed alone", "Each token is multiplied by its own weight "
    "and nothing is added up: a context vector is a sum over all tokens.",
    give=lambda w, x: w.diagonal()[:, None] * x)
simple_attention.wrong("context.batch mixed", "Tokens of different sequences attend to one "
    "another: the batch was glued to the tokens.",
    lambda x: context_vectors(x.flatten(0, 1)).reshape(x.shape))
simple_attention.wrong("context.reshaped", "A reshape stands where two axes should be swapped: use "
    "`transpose(-2, -1)`.", score=lambda x: x @ x.reshape(len(x), x.shape[2], x.shape[1]))
simple_attention.wrong("context.first sequence", "Only the first sequence of the batch was used.",
    lambda x: context_vectors(x[0]))
simple_attention.wrong("context.first sequence", "The first sequence's weights are used for all of "
    "them.", score=lambda x: x[0] @ x[0].T)
