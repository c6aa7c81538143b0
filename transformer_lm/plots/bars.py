"""Bars: the most probable tokens."""

import math

import numpy as np

from transformer_lm.plots.parts import (
    LINE_COLOURS,
    STYLES,
    as_array,
    new_figure,
    set_texts,
    visible,
)


def top_k_bars(probs, names, title="Next token", xlabel="probability", style="light"):
    """Draw one horizontal bar a token, the most probable on top.

    probs: [k]. names: the k tokens as text.
    """
    values = as_array(probs, 1)
    figure, axes = new_figure(style, (5.4, 0.3 * len(values) + 1.2))
    _bars(axes[0, 0], values, names, style)
    set_texts(axes[0, 0], title=title, xlabel=xlabel)
    return figure


def lens_bars(log_probs, decode, k=5, title="Logit lens", style="light", columns=4):
    """Draw the top k tokens after the embedding and after each block.

    log_probs: [num_layers + 1, vocab_size], of one position. decode: token id -> text.
    """
    probs = np.exp(as_array(log_probs, 2))
    columns = min(columns, len(probs))
    rows = math.ceil(len(probs) / columns)
    figure, axes = new_figure(style, (2.6 * columns, (0.25 * k + 0.9) * rows), rows, columns)
    for depth, ax in enumerate(axes.flat):
        if depth >= len(probs):
            ax.set_visible(False)
            continue
        top = np.argsort(-probs[depth])[:k]
        _bars(ax, probs[depth][top], [decode(int(token)) for token in top], style)
        ax.set_xlim(0, 1)
        set_texts(ax, title="embedding" if depth == 0 else f"after block {depth - 1}")
    figure.supxlabel("probability", color=STYLES[style]["text"])
    figure.suptitle(title, color=STYLES[style]["text"])
    return figure


def _bars(ax, values, names, style):
    ax.barh(range(len(values)), values, color=LINE_COLOURS[style][0])
    ax.set_yticks(range(len(values)), [visible(name) for name in names])
    ax.invert_yaxis()
