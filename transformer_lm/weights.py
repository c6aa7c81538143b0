"""Read the attention weights of a GPT-2. Each subject has a module; all names are here too.

    gpt2_weights        from the model to the heads: W_Q, W_K, W_V, W_O, with the norm folded in
    low_rank            spectra and norms of the QK and OV matrices, gauge, random twins
    score_terms         what the biases add to the scores
    weight_statistics   means, spreads and histograms of the entries
    cosines             similarities of columns, within heads and across

The circuits that run through two heads or reach the vocabulary are in ``circuits``.
"""

import torch

from transformer_lm.activations import gpt2_stack, with_progress
from transformer_lm.cosines import (
    Cosines,
    all_column_cosines,
    column_cosines,
    cosine_statistics,
    normalize_columns,
)
from transformer_lm.gpt2_weights import (
    HeadWeights,
    attention_sizes,
    count_attention_parameters,
    head_weights,
    ov_factors,
    ov_matrix,
    qk_factors,
    qk_matrix,
    split_columns,
    split_qkv,
)
from transformer_lm.low_rank import (
    effective_rank,
    eigenvalues,
    identity_distance,
    identity_distance_bound,
    positive_share,
    random_like,
    regauge,
    singular_values,
    singular_vectors,
    squared_norm,
    summarize,
    symmetric_eigenvalues,
    symmetric_share,
    trace,
    trace_share,
)
from transformer_lm.score_terms import (
    ScoreTerms,
    bias_effect,
    score_terms,
)
from transformer_lm.weight_statistics import (
    Histogram,
    histogram,
    qkv_statistics,
)

__all__ = [
    "Cosines",
    "HeadWeights",
    "Histogram",
    "ScoreTerms",
    "all_column_cosines",
    "attention_sizes",
    "bias_effect",
    "column_cosines",
    "cosine_statistics",
    "count_attention_parameters",
    "effective_rank",
    "eigenvalues",
    "head_weights",
    "histogram",
    "identity_distance",
    "identity_distance_bound",
    "normalize_columns",
    "ov_factors",
    "ov_matrix",
    "positive_share",
    "qk_factors",
    "qk_matrix",
    "qkv_statistics",
    "random_baseline",
    "random_like",
    "regauge",
    "score_terms",
    "singular_values",
    "singular_vectors",
    "split_columns",
    "split_qkv",
    "squared_norm",
    "summarize",
    "summarize_model",
    "symmetric_eigenvalues",
    "symmetric_share",
    "trace",
    "trace_share",
]


def summarize_model(
    model, circuit="qk", seed=None, fold_layer_norm=False, progress=False, centre=False
):
    """Return summarize's numbers for all layers: a dict of tensors [num_layers, num_heads].

    circuit: "qk" or "ov". seed: None for the model's weights; an integer for the random baseline,
    Gaussian matrices of the same shapes and standard deviations (one draw: take many seeds before
    you call a difference large). fold_layer_norm, centre: see ``head_weights``; with both, the
    numbers are properties of the model. One layer in memory at a time.
    """
    factors = {"qk": qk_factors, "ov": ov_factors}[circuit]
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    rows = []
    layers = range(len(gpt2_stack(model).h))
    for layer in with_progress(layers, progress, f"{circuit} by layer"):
        a, b = factors(head_weights(model, layer, fold_layer_norm, centre))
        if generator is not None:
            a, b = random_like(a, generator), random_like(b, generator)
            if centre:
                a, b = (w - w.mean(dim=-2, keepdim=True) for w in (a, b))
        rows.append(summarize(a, b))
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def random_baseline(model, circuit="qk", draws=200, fold_layer_norm=False, centre=False):
    """Return what ``summarize_model`` gives for random twins: two dicts, mean and deviation.

    Args: those of ``summarize_model``, and how many twins to draw. A head that is some deviations
    away from the mean differs from chance, which one twin alone cannot tell.

    Returns:
        mean, std: dicts of tensors [num_layers, num_heads].
    """
    rows = [
        summarize_model(model, circuit, seed, fold_layer_norm, centre=centre)
        for seed in range(draws)
    ]
    tables = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    # [draws, num_layers, num_heads] each
    mean = {name: table.mean(dim=0) for name, table in tables.items()}
    return mean, {name: table.std(dim=0) for name, table in tables.items()}
