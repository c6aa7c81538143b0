"""Lesson 02: queries, keys, values, and the scale that keeps the softmax alive."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.course.asking import Exercise, Finding, Sight
from autograder.course.calls import Call, Draw
from autograder.judging.compare import compare

PROJECTIONS = ("q", "k", "v")


# --- step by step, one sequence ------------------------------------------------------------------
def _project_cases(draw: Draw) -> list[Call]:
    calls = []
    for square in (False, False, True):
        seq_len, input_size, hidden = draw.sizes(3)
        hidden = input_size if square else hidden
        x = draw.normal(seq_len, input_size)
        matrices = tuple(draw.normal(input_size, hidden) for _ in PROJECTIONS)
        says = f"{seq_len} tokens, input_size {input_size}, hidden {hidden}"
        calls.append(Call("project", (x, *matrices), says=says))
    return calls


def _variance_cases(draw: Draw) -> list[Call]:
    calls = []
    for hidden in draw.sizes(3, 3, 23):
        sigma_q, sigma_k = draw.choice((0.3, 0.5, 0.7)), draw.choice((1.3, 1.7, 2.1))
        pairs = draw.integer(900, 1100)
        q = draw.normal(pairs, hidden, scale=sigma_q)
        k = draw.normal(pairs, hidden, scale=sigma_k)
        says = f"{pairs} pairs of vectors, hidden {hidden}, sigma {sigma_q} and {sigma_k}"
        calls.append(Call("score_variance", (q, k, sigma_q, sigma_k), says=says))
    return calls


def _jacobian_cases(draw: Draw) -> list[Call]:
    calls = []
    for seq_len, scale in zip(draw.sizes(3, 3, 11), (0.5, 1.0, 3.0), strict=True):
        scores = draw.normal(seq_len, scale=scale)
        calls.append(Call("softmax_jacobian", (scores,), says=f"{seq_len} scores"))
    large = draw.normal(draw.choice((5, 7)), scale=1.0) + 300.0
    return [*calls, Call("softmax_jacobian", (large,), says="scores around 300")]


def _weights_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        seq_len, hidden = draw.sizes(2, 3, 13)
        q, k = draw.normal(seq_len, hidden), draw.normal(seq_len, hidden)
        says = f"{seq_len} tokens, hidden {hidden}"
        calls.append(Call("attention_weights", (q, k), says=says))
    return calls


# --- parameters, and from layers to parameters ---------------------------------------------------
def _parameters_cases(draw: Draw) -> list[Call]:
    calls = []
    for gradients in (True, False, True):
        seq_len, input_size, hidden = draw.sizes(3)
        weights = {
            name: draw.normal(input_size, hidden, scale=input_size**-0.5)
            for name in ("w_query", "w_key", "w_value")
        }
        says = f"{seq_len} tokens, input_size {input_size}, hidden {hidden}"
        calls.append(
            Call(
                "ParameterAttention",
                (draw.normal(seq_len, input_size),),
                init=(input_size, hidden),
                weights=weights,
                gradients=gradients,
                says=says,
            )
        )
    return calls


def _judge_parameters(sight: Sight) -> list[Finding]:
    """The three matrices are registered, have their shapes, and the values come out right."""
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        for name, problem in got.unset.items():
            text = f"`{name}` is not what was asked for: {problem}. It is [input_size, hidden]."
            return [Finding("parameters.shape", "wrong", text)]
        lost = [] if got.error else [n for n in expected.parameters if n not in got.parameters]
        if lost:
            text = (
                f"The module does not know `{lost[0]}` as a parameter, so no optimiser will ever "
                "move it. A plain tensor is not registered; wrap it in `nn.Parameter`."
            )
            return [Finding("parameters.not registered", "wrong", text)]
    return compare(sight)


def _transfer_cases(draw: Draw) -> list[Call]:
    calls = []
    for square in (False, True, False):
        input_size, hidden = draw.sizes(2)
        hidden = input_size if square else hidden
        state = {f"{n}.weight": draw.normal(hidden, input_size) for n in PROJECTIONS}
        says = f"nn.Linear layers without bias, input_size {input_size}, hidden {hidden}"
        calls.append(Call("transfer", (state,), says=says))
    input_size, hidden = draw.sizes(2)
    state = {}
    for name in PROJECTIONS:
        state.update(draw.linear(name, input_size, hidden))
    return [*calls, Call("transfer", (state,), says="layers that do have a bias")]


# --- a batch, the class, the class in three lines -------------------------------------------------
def _batched_cases(draw: Draw) -> list[Call]:
    calls = []
    for same in (False, False, True):
        batch_size, seq_len, hidden, size = draw.sizes(4)
        seq_len = hidden if same else seq_len
        q, k = draw.normal(batch_size, seq_len, hidden), draw.normal(batch_size, seq_len, hidden)
        v = draw.normal(batch_size, seq_len, size)
        says = f"{batch_size} sequences of {seq_len} tokens, hidden {hidden}, values of {size}"
        calls.append(Call("batched_attention", (q, k, v), says=says))
    # A `squeeze` somewhere shows only where a dimension is 1.
    single = (draw.normal(1, 1, hidden), draw.normal(1, 1, hidden), draw.normal(1, 1, size))
    return [*calls, Call("batched_attention", single, says="1 sequence of 1 token")]


def _class_cases(name: str):
    """Fresh sizes and weights for a class with the layers q, k and v."""

    def cases(draw: Draw) -> list[Call]:
        calls = []
        for gradients in (False, False, True):
            batch_size, seq_len, input_size, hidden = draw.sizes(4)
            weights: dict[str, torch.Tensor] = {}
            for layer in PROJECTIONS:
                weights.update(draw.linear(layer, input_size, hidden))
            says = (
                f"{batch_size} sequences of {seq_len} tokens, input_size {input_size}, "
                f"hidden {hidden}"
            )
            calls.append(
                Call(
                    name,
                    (draw.normal(batch_size, seq_len, input_size),),
                    init=(input_size, hidden),
                    weights=weights,
                    gradients=gradients,
                    says=says,
                )
            )
        x = draw.normal(1, 1, input_size)
        single = replace(calls[-1], args=(x,), gradients=False, says="1 sequence of 1 token")
        return [*calls, single]

    return cases


def judge_layers(sight: Sight) -> list[Finding]:
    """The layers exist and have the right widths as built; then the values are compared."""
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        if got.error is not None and not got.unset:
            continue
        for path, problem in got.unset.items():
            layer, _, kind = path.partition(".")
            if problem.startswith("shape"):
                text = f"`{path}` has {problem}: every projection goes from input_size to hidden."
                return [Finding("projections.wrong width", "wrong", text)]
            if kind == "bias" and problem.startswith("no 'bias'"):
                text = f"`{layer}` has no bias. An `nn.Linear` has one unless it is switched off."
                return [Finding("projections.lost bias", "wrong", text)]
            text = f"There is no layer `{layer}` that learns. Make it an `nn.Linear` in __init__."
            return [Finding("projections.missing layer", "wrong", text)]
        lost = [n for n in expected.parameters if n not in got.parameters]
        if lost and got.error is None:
            text = f"The module does not register `{lost[0]}`: nothing would train it."
            return [Finding("projections.missing layer", "wrong", text)]
    return compare(sight)


EXERCISES = [
    Exercise(
        "one_head.project",
        "project",
        _project_cases,
        hints=(
            "Three questions are put to the same tokens. Each is one matrix product.",
            "Rows are tokens: x is [seq_len, input_size], a matrix is [input_size, hidden]. In "
            "which order must they stand so that the inner sizes meet?",
            "The tokens stand on the left and nothing is transposed. Return the three products "
            "in the order queries, keys, values.",
        ),
    ),
    Exercise(
        "one_head.variance",
        "score_variance",
        _variance_cases,
        rtol=3e-3,
        hints=(
            "Pair i is row i of q with row i of k. How do you get one dot product per row?",
            "Multiply elementwise and sum over the last dimension, then take the variance of "
            "these numbers. For the prediction: what is the variance of a product of two "
            "independent numbers with mean 0? And of a sum of `hidden` such products?",
            "A product has variance sigma_q squared times sigma_k squared; independent terms add "
            "their variances. Variance, not standard deviation, on both sides.",
        ),
    ),
    Exercise(
        "one_head.jacobian",
        "softmax_jacobian",
        _jacobian_cases,
        hints=(
            "Differentiate p_i = exp(s_i) / sum exp(s) by s_j, once for i = j and once for i != j.",
            "Both cases have the term -p_i p_j; one of the two has one more term. "
            "`torch.outer` makes all products, `torch.diag` a diagonal matrix.",
            "On the diagonal it is p_i (1 - p_i), elsewhere -p_i p_j. Take p from torch.softmax, "
            "which survives large scores.",
        ),
    ),
    Exercise(
        "one_head.scale",
        "attention_weights",
        _weights_cases,
        hints=(
            "The scores have a standard deviation of sqrt(hidden). What do you divide by so that "
            "it becomes 1?",
            "Scores first, then the division, then the softmax: the order matters, since the "
            "softmax is not linear.",
            "hidden is the last size of k. The softmax runs over the keys, so that each query's "
            "row sums to 1.",
        ),
    ),
    Exercise(
        "one_head.parameters",
        "ParameterAttention",
        _parameters_cases,
        judge=_judge_parameters,
        hints=(
            "How does a module find out which of its tensors are to be learned?",
            "`nn.Parameter(tensor)`, set as an attribute after `super().__init__()`, is "
            "registered. Leave requires_grad alone: it is True.",
            "Three parameters of shape [input_size, hidden]; forward uses `x @ self.w_query` and "
            "so on, then what you wrote for the weights, then the values.",
        ),
    ),
    Exercise(
        "one_head.transfer",
        "transfer",
        _transfer_cases,
        hints=(
            "Print the shape of the weight of `nn.Linear(3, 2)`. Is it what you expected?",
            "`nn.Linear` computes x @ weight.T + bias. Which matrix W makes x @ W the same?",
            "Transpose each weight, under its new name. Where there is a bias, raise a "
            "ValueError: it would be lost without a word.",
        ),
    ),
    Exercise(
        "one_head.batched",
        "batched_attention",
        _batched_cases,
        hints=(
            "Which lines of the one-sequence version count their dimensions from the left?",
            "`.T` turns all dimensions round. You want only the last two swapped.",
            "`k.transpose(-2, -1)`, the size of the last dimension for the scale, and a softmax "
            "over the last dimension.",
        ),
    ),
    Exercise(
        "one_head.forward",
        "Attention",
        _class_cases("Attention"),
        judge=judge_layers,
        hints=(
            "All of it is written already: three projections in __init__, and "
            "`batched_attention` in forward.",
            "`nn.Linear(input_size, hidden)` three times, under the names q, k and v. Do not "
            "forget `super().__init__()`.",
            "In forward call each layer on x, divide the scores by the square root of hidden, "
            "softmax over the last dimension, then times the values.",
        ),
    ),
    Exercise(
        "one_head.three_lines",
        "ShortAttention",
        _class_cases("ShortAttention"),
        judge=judge_layers,
        hints=(
            "Which intermediate results are used once only? They need no name.",
            "One line for the scores, one for the weights, one for the return.",
            "`self.q(x)` may stand right inside the product, and so may the transposed keys.",
        ),
    ),
]
