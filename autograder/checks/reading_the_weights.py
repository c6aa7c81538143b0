"""Lesson 10: reading the weights. Their spread, their heads, and the matrix W_Q W_K^T."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checks.gpt2_cases import draw_gpt2, says
from autograder.course.asking import Exercise, Finding, Sight, lazily
from autograder.course.calls import Call, Draw, Namespace, Outcome
from autograder.judging.compare import compare
from autograder.judging.forms import results_in_one_tensor


# --- sizes and counts ----------------------------------------------------------------------------
def _params_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        heads, head_size = draw.sizes(2, 3, 23)
        config = {
            "n_layer": draw.integer(24, 40),
            "n_head": heads,
            "n_embd": heads * head_size,
            "n_positions": draw.integer(600, 2000),
            "vocab_size": draw.integer(5000, 60000),
        }
        text = f"n_layer {config['n_layer']}, n_head {heads}, n_embd {config['n_embd']}"
        calls.append(Call("params", (Namespace(config),), says=text))
    return calls


def _model_cases(name: str):
    def cases(draw: Draw) -> list[Call]:
        models = [draw_gpt2(draw, layers) for layers in (2, 3)]
        return [Call(name, (model,), says=says(model)) for model in models]

    return cases


# --- matrices ------------------------------------------------------------------------------------
def _split_cases(draw: Draw) -> list[Call]:
    calls = []
    for hidden in (*draw.sizes(2, 5, 13), 6):
        wide = draw.normal(hidden, 3 * hidden)
        calls.append(Call("split_wide", (wide,), says=f"a weight of [{hidden}, {3 * hidden}]"))
    return calls


def _density_cases(draw: Draw) -> list[Call]:
    calls = []
    for spread, reach in ((0.2, 0.9), (0.5, 0.6), (0.3, 0.4)):
        rows, columns = draw.sizes(2, 7, 17)
        values = draw.normal(rows, columns, scale=spread)
        edges = torch.linspace(-reach, reach, draw.integer(7, 12))
        text = f"a matrix of [{rows}, {columns}], {len(edges)} edges from -{reach} to {reach}"
        calls.append(Call("density", (values, edges), says=text))
    return calls


def _columns_cases(draw: Draw) -> list[Call]:
    calls = []
    for square in (True, False, False):
        heads, head_size, other = draw.sizes(3, 2, 7)
        hidden = heads * head_size if square else heads * other
        weight = draw.normal(hidden, heads * head_size)
        text = f"a weight of [{hidden}, {heads * head_size}], {heads} heads"
        calls.append(Call("head_columns", (weight, heads), says=text))
    return calls


def _cosines_cases(draw: Draw) -> list[Call]:
    calls = []
    for hidden, head_size in ((13, 5), (17, 7), (11, 11)):
        weight = draw.normal(hidden, head_size) * draw.uniform(hidden, 1, low=0.2, high=3.0)
        weight *= draw.uniform(1, head_size, low=0.3, high=3.0)
        text = f"one head's weight, [{hidden}, {head_size}]"
        calls.append(Call("head_cosines", (weight,), says=text))
    return calls


def _any_order(sight: Sight) -> list[Finding]:
    """The pairs may stand in any order."""
    return compare(
        replace(
            sight,
            outcomes=tuple(map(_sorted_pairs, sight.outcomes)),
            expected=tuple(map(_sorted_pairs, sight.expected)),
            mistakes=tuple((c, m, lazily(_sorted_pairs, o)) for c, m, o in sight.mistakes),
        )
    )


def _sorted_pairs(outcome: Outcome) -> Outcome:
    value = outcome.value
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return outcome
    matrix, pairs = value
    if isinstance(pairs, list) and pairs and all(isinstance(each, float) for each in pairs):
        pairs = torch.tensor(pairs, dtype=torch.float64)
    if not isinstance(pairs, torch.Tensor) or pairs.dim() != 1:
        return outcome
    return replace(outcome, value=(matrix, pairs.sort().values))


def _within_cases(draw: Draw) -> list[Call]:
    calls = []
    for heads in (3, 2, 4):
        head_size = draw.choice((4, 5, 7))
        hidden = draw.choice((11, 13, 17))
        weight = draw.normal(hidden, heads * head_size)
        weight += 1.2 * draw.normal(hidden, heads).repeat_interleave(head_size, dim=1)
        text = f"a weight of [{hidden}, {heads * head_size}], {heads} heads"
        calls.append(Call("within_across", (weight, heads), says=text))
    return calls


# --- the QK matrix -------------------------------------------------------------------------------
def _draw_pair(draw: Draw, alike: float) -> tuple[torch.Tensor, torch.Tensor]:
    """W_Q and W_K of one head; alike from -1 to 1 moves W_K towards W_Q, or its negative."""
    hidden, head_size = draw.choice((11, 13, 17)), draw.choice((2, 3, 5))
    w_q = draw.normal(hidden, head_size)
    return w_q, alike * w_q + draw.normal(hidden, head_size, scale=0.6)


def _pair_cases(name: str):
    def cases(draw: Draw) -> list[Call]:
        calls = []
        for alike in (0.8, 0.0, -0.5):
            w_q, w_k = _draw_pair(draw, alike)
            text = f"hidden {w_q.shape[0]}, head_size {w_q.shape[1]}"
            calls.append(Call(name, (w_q, w_k), says=text))
        return calls

    return cases


def _gauge_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        w_q, w_k = _draw_pair(draw, 0.3)
        size = w_q.shape[1]
        r = draw.normal(size, size, scale=0.4) + 2 * torch.eye(size)
        args = (w_q, draw.normal(size), w_k, draw.normal(size), r)
        text = f"hidden {w_q.shape[0]}, head_size {size}"
        calls.append(Call("change_gauge", args, says=text))
    return calls


def _terms_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        seq_len, hidden, size = draw.sizes(3, 2, 13)
        w_q, w_k = draw.normal(hidden, size), draw.normal(hidden, size)
        args = (draw.normal(seq_len, hidden), w_q, draw.normal(size), w_k, draw.normal(size))
        text = f"{seq_len} tokens, hidden {hidden}, head_size {size}"
        calls.append(Call("score_terms", args, says=text))
    return calls


EXERCISES = [
    Exercise(
        "weights.params",
        "params",
        _params_cases,
        hints=(
            "Three of the four stand in the config under a name of their own. Which does not?",
            "The heads share the hidden size, so the last one is a quotient, and a whole number.",
            "n_layers from n_layer, n_emb from n_embd, n_heads from n_head, and head_dim is "
            "n_embd // n_head.",
        ),
    ),
    Exercise(
        "weights.count",
        "attention_parameters",
        _model_cases("attention_parameters"),
        hints=(
            "Which modules belong to the attention of one block? Each has two parameters. How "
            "many blocks are there?",
            "c_attn makes queries, keys and values; c_proj mixes the heads. `numel()` counts the "
            "numbers of a tensor; `len()` counts its rows.",
            "Loop over model.transformer.h. Add c_attn.weight.numel() and c_proj.weight.numel() "
            "to one sum, the two biases' to another.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "weights.split",
        "split_wide",
        _split_cases,
        hints=(
            "A Conv1D weight is [inputs, outputs]. Do queries, keys and values differ in what "
            "they read or in what they are?",
            "The three lie side by side: the first third of the columns makes the queries.",
            "`torch.split` with the size of one part, along the axis of the columns; or three "
            "slices of columns.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "weights.histogram",
        "density",
        _density_cases,
        hints=(
            "A density is a share per unit of width. A share of what? And where on the axis does "
            "a bin sit?",
            "Divide the counts by the number of ALL values, also those beyond the edges, and by "
            "the width of a bin. What is missing from an area of 1 lies outside.",
            "`torch.histogram(values.flatten(), edges)` gives counts (`torch.histc` does with "
            "even bins). Centres are halfway between neighbouring edges; outside is 1 minus the "
            "share of the counted.",
        ),
    ),
    Exercise(
        "weights.statistics",
        "qkv_stats",
        _model_cases("qkv_stats"),
        hints=(
            "One row a layer, in it one row each for queries, keys and values, in it two numbers. "
            "Over which numbers does each run?",
            "Weights only, no bias; all numbers of the matrix at once; and torch's own std.",
            "For each block split c_attn.weight by columns, and stack [part.mean(), part.std()] "
            "for the three parts, then stack the layers.",
        ),
    ),
    Exercise(
        "weights.heads",
        "head_columns",
        _columns_cases,
        hints=(
            "Head 0 owns the first head_size columns, and all rows of them. How does lesson 04 "
            "cut the last axis without scrambling?",
            "First give the columns two axes, head and feature; then move the head to the front. "
            "One view alone cannot do it.",
            "view(hidden, num_heads, head_size), then transpose the first two axes. Or "
            "torch.split along dim 1, and stack.",
        ),
    ),
    Exercise(
        "weights.cosines",
        "head_cosines",
        _cosines_cases,
        hints=(
            "The vectors that are compared are the columns. What is the length of a column, and "
            "which axis does that sum run over? What is the cosine of a vector with itself?",
            "norm over dim 0 with keepdim=True, divide, and one product makes all cosines. The "
            "diagonal is always 1: it says nothing, and it is not a pair.",
            "unit = w / w.norm(dim=0, keepdim=True); unit.T @ unit; and then the entries at "
            "torch.triu_indices(size, size, offset=1).",
        ),
        judge=_any_order,
    ),
    Exercise(
        "weights.within_across",
        "within_across",
        _within_cases,
        hints=(
            "Each pair of columns counts once. Two columns of one head, or of two heads: which "
            "matrix of cosines is symmetric, and which is not?",
            "Within a head: above the diagonal only. Across two heads: all head_size * head_size "
            "cosines, once for each pair of heads, j after i.",
            "Make the matrix of all columns' cosines. Keep what lies above its diagonal; "
            "column // head_size says whose a column is. Mean and std of the two groups.",
        ),
    ),
    Exercise(
        "weights.all_columns",
        "column_stats",
        _model_cases("column_stats"),
        hints=(
            "As exercise 8, but heads do not matter any more, and there are three matrices in each "
            "layer. What must be left out of the cosines?",
            "Normalise the columns of each matrix, one product, and pick entries: a mask that "
            "multiplies leaves zeros behind, which are counted.",
            "cosines[torch.ones_like(cosines, dtype=torch.bool).triu(1)], then mean and std; rows "
            "for Q, K and V, and one such table a layer.",
        ),
    ),
    Exercise(
        "weights.gauge",
        "change_gauge",
        _gauge_cases,
        hints=(
            "New queries are q r. Scores must stay: q r times what gives q k^T?",
            "k must be multiplied by the transposed inverse of r. What makes up a query: only "
            "x W_Q? A bias is one more row.",
            "w_q @ r and b_q @ r; with s = torch.linalg.inv(r).T: w_k @ s and b_k @ s.",
        ),
    ),
    Exercise(
        "weights.identity",
        "identity_distance",
        _pair_cases("identity_distance"),
        hints=(
            "Which multiple of I is nearest? Minimise ||M - c I||^2 over c: only the diagonal of "
            "M has anything to say.",
            "The best c is the mean of the diagonal. The distance is the norm of what is left, as "
            "a share of the norm of M. For the bound ask how large a trace a matrix of that rank "
            "and norm can have.",
            "M = w_q @ w_k.T; c = trace / hidden; (M - c I).norm() / M.norm(); and "
            "sqrt(1 - head_size / hidden), since trace^2 <= rank * norm^2.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "weights.symmetric",
        "symmetric_parts",
        _pair_cases("symmetric_parts"),
        hints=(
            "Every square matrix is the sum of a symmetric and an antisymmetric one. What do you "
            "get if you add a matrix and its transpose?",
            "Half the sum, and half the difference. Compare norms, not squares of norms.",
            "M = w_q @ w_k.T; ((M + M.T) / 2).norm() / M.norm(), and the same with a minus.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "weights.definite",
        "definiteness",
        _pair_cases("definiteness"),
        hints=(
            "Positive semidefinite is said of a symmetric matrix: no eigenvalue below zero. Which "
            "matrix is that here?",
            "torch.linalg.eigvalsh takes a symmetric matrix and returns real eigenvalues, in "
            "ascending order. Singular values would be no use: they never are negative.",
            "values = eigvalsh((M + M.T) / 2); the first, the last, and the sum of the positive "
            "ones over the sum of all absolute values.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "weights.biases",
        "score_terms",
        _terms_cases,
        hints=(
            "Multiply out (x W_Q + b_Q)(x W_K + b_K)^T. Which of the four terms depend on the "
            "query's token, and which on the key's?",
            "A column [seq_len, 1] for what depends on the query alone, a row [1, seq_len] for "
            "what depends on the key alone. All four are divided by the same root.",
            "With q = x @ w_q, k = x @ w_k and s the root of head_size: q @ k.T / s, "
            "(q @ b_k)[:, None] / s, (k @ b_q)[None, :] / s and b_q @ b_k / s.",
        ),
    ),
]
