"""Lesson 01: from a recurrent encoder to attention with nothing to learn."""

from __future__ import annotations

import torch

from autograder.course.asking import Exercise
from autograder.course.calls import Call, Draw


def _rnn_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        seq_len, input_size, hidden = draw.sizes(3, 3, 11)
        args = (
            draw.normal(seq_len, input_size),
            draw.normal(input_size, hidden, scale=0.5),
            draw.normal(hidden, hidden, scale=0.5),
            draw.normal(hidden, scale=0.5),
        )
        says = f"{seq_len} tokens, input_size {input_size}, hidden {hidden}"
        calls.append(Call("encoder_states", args, says=says))
    return calls


def _scores_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        seq_len, hidden = draw.sizes(2, 3, 13)
        args = (draw.normal(hidden), draw.normal(seq_len, hidden))
        calls.append(Call("attention_scores", args, says=f"{seq_len} tokens of size {hidden}"))
    return calls


def _row_cases(name: str, low: float, high: float):
    """Calls with one row of scores, a square of rows, and a batch of squares."""

    def cases(draw: Draw) -> list[Call]:
        batch_size, seq_len = draw.sizes(2, 5, 11)
        calls = []
        for shape in ((seq_len,), (seq_len, seq_len), (batch_size, seq_len, seq_len)):
            scores = draw.uniform(*shape, low=low, high=high)
            calls.append(Call(name, (scores,), says=f"scores of shape {list(shape)}"))
        return calls

    return cases


def _stable_cases(draw: Draw) -> list[Call]:
    """Rows near 0, rows far above and far below it, and a row where one score towers."""
    batch_size, seq_len = draw.sizes(2, 5, 11)
    calls = []
    for shape in ((seq_len,), (seq_len, seq_len), (batch_size, seq_len, seq_len)):
        rows = draw.normal(*shape, scale=1.5)
        if len(shape) == 1:
            calls.append(
                Call(
                    "softmax_stable",
                    (rows + draw.integer(1000, 3000),),
                    says="one row of scores, all above 990",
                )
            )
            continue
        levels = [1000.0 * (i - 2) for i in range(seq_len)]  # from far below 0 to far above
        draw.random.shuffle(levels)
        scores = rows + torch.tensor(levels)[:, None]
        scores[..., levels.index(0.0), draw.integer(0, seq_len - 1)] += 2000.0
        calls.append(
            Call(
                "softmax_stable",
                (scores,),
                says=f"shape {list(shape)}, rows far below 0 and far above",
            )
        )
    return calls


def _context_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        seq_len, hidden = draw.sizes(2, 3, 11)
        calls.append(
            Call(
                "context_vectors",
                (draw.normal(seq_len, hidden, scale=0.7),),
                says=f"{seq_len} tokens of size {hidden}",
            )
        )
    return calls


def _matmul_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch_size, seq_len, hidden = draw.sizes(3, 2, 11)
        x = draw.normal(batch_size, seq_len, hidden, scale=0.7)
        calls.append(
            Call(
                "simple_attention",
                (x,),
                says=f"{batch_size} sequences of {seq_len} tokens of size {hidden}",
            )
        )
    return calls


EXERCISES = [
    Exercise(
        "simple.rnn",
        "encoder_states",
        _rnn_cases,
        hints=(
            "One loop over the tokens. One variable, the state, is handed from step to step.",
            "Start with a state of zeros, of size hidden. Each step needs this token, the state "
            "of the step before, both matrices, the bias, and tanh around it all.",
            "state = tanh(token @ w_input + state @ w_hidden + bias); keep each state in a list "
            "and `torch.stack` the list at the end.",
        ),
    ),
    Exercise(
        "simple.scores",
        "attention_scores",
        _scores_cases,
        hints=(
            "One number for each token: multiply matching features, then add up.",
            "In a loop, `torch.dot(x_i, query)` fills place i. Without one, a matrix times a "
            "vector does all the dot products at once.",
            "`inputs @ query` has shape [seq_len]: each row of inputs, dotted with the query.",
        ),
    ),
    Exercise(
        "simple.sum_normalized",
        "sum_normalized",
        _row_cases("sum_normalized", -0.4, 2.0),
        hints=(
            "Each row is divided by its own sum. Nothing else happens.",
            "Sum over the last axis, dim=-1. For a table, the sums must stand as a column.",
            "`scores.sum(dim=-1, keepdim=True)` leaves an axis of size 1 to divide by.",
        ),
    ),
    Exercise(
        "simple.softmax_naive",
        "softmax_naive",
        _row_cases("softmax_naive", -3.0, 3.0),
        hints=(
            "It is the last exercise again, with one more step in front.",
            "First `torch.exp` of every score, then divide by the sum of those, row by row.",
            "Exponentials over the sum of exponentials, with `dim=-1, keepdim=True` in the sum.",
        ),
    ),
    Exercise(
        # Where a score is 8000, one step of float32 is 0.0005: through logsumexp it is seen.
        "simple.softmax_stable",
        "softmax_stable",
        _stable_cases,
        rtol=2e-3,
        hints=(
            "Adding the same number to all scores of a row changes nothing in the result. Which "
            "number makes the exponentials harmless?",
            "After subtracting the largest score of the row, every exponent is 0 or less, so no "
            "exponential is above 1, and one of them is exactly 1.",
            "`scores - scores.amax(dim=-1, keepdim=True)`, and then as before. Each row has a "
            "maximum of its own.",
        ),
    ),
    Exercise(
        "simple.context",
        "context_vectors",
        _context_cases,
        hints=(
            "Three steps for each token: scores, weights, weighted sum. You have the first two.",
            "With loops: for each query token, its scores against all tokens, their softmax, and "
            "then the sum of weight times token over all tokens.",
            "For token i: weights = softmax_stable(attention_scores(inputs[i], inputs)), then "
            "`weights @ inputs`, of shape [hidden]; stack them for all i.",
        ),
    ),
    Exercise(
        "simple.matmul",
        "simple_attention",
        _matmul_cases,
        hints=(
            "Three lines and no loop: all scores, all weights, all context vectors.",
            "The scores of a batch are x times x with its last two axes swapped; `.T` would move "
            "the batch as well.",
            "scores = x @ x.transpose(-2, -1); softmax over dim=-1; then weights @ x.",
        ),
    ),
]
