"""Maps: a number for each query and key, layer and head, or input and output."""

import math

import numpy as np
from matplotlib.ticker import MaxNLocator

from transformer_lm.plots.parts import (
    SIGNED,
    STYLES,
    as_array,
    draw_colour_bar,
    new_figure,
    set_texts,
    visible,
)


def attention_map(
    probs,
    tokens=None,
    title="Attention weights",
    label="attention weight",
    style="light",
    limits=(0, 1),
    annotate=None,
):
    """Draw one map, queries down and keys across.

    Args:
        probs: [seq_len, seq_len] attention weights; or scores, with other limits and label.
        tokens: the seq_len tokens as text, or None for position numbers.
        limits: colours' lowest and highest value, with a sign where one is minus the other; None
            for those of the data. A hidden score (-inf) is left blank.
        annotate: write the values in the cells; where None, only up to 8 tokens.
    """
    values = as_array(probs, 2)
    figure, axes = new_figure(style, (4.8, 4.2))
    image = _map(axes[0, 0], values, tokens, limits, style)
    if annotate or (annotate is None and len(values) <= 8):
        _write_values(axes[0, 0], values, image)
    set_texts(axes[0, 0], title=title, xlabel="key position", ylabel="query position")
    draw_colour_bar(figure, image, axes[0, 0], label, style)
    return figure


def head_grid(
    maps,
    tokens=None,
    title="Attention weights by head",
    names=None,
    style="light",
    limits=(0, 1),
    columns=4,
    label="attention weight",
    xlabel="key position",
    ylabel="query position",
):
    """Draw one small map a head with one colour bar.

    maps: [num_heads, rows, columns]: attention weights [num_heads, seq_len, seq_len], or with other
    limits and labels each head's weights or cosines. names: titles; "head 0"... where None.
    limits: as in attention_map; limits such as (-0.1, 0.1) give the colours with a sign.
    """
    values = as_array(maps, 3)
    limits = limits or (np.nanmin(values), np.nanmax(values))
    names = names or [f"head {head}" for head in range(len(values))]
    columns = min(columns, len(values))
    rows = math.ceil(len(values) / columns)
    figure, axes = new_figure(style, (2.3 * columns + 0.9, 2.3 * rows + 0.5), rows, columns)
    for index, ax in enumerate(axes.flat):
        if index >= len(values):
            ax.set_visible(False)
            continue
        small = tokens if tokens is not None and len(tokens) <= 8 else None
        image = _map(ax, values[index], small, limits, style)
        if values.shape[1] != values.shape[2]:
            ax.set_aspect("auto")
        ax.set_title(names[index])
    figure.supxlabel(xlabel, color=STYLES[style]["text"])
    figure.supylabel(ylabel, color=STYLES[style]["text"])
    figure.suptitle(title, color=STYLES[style]["text"])
    draw_colour_bar(figure, image, list(axes.flat), label, style)
    return figure


def layer_head_grid(
    values, title="By layer and head", label="value", style="light", signed=None, annotate=None
):
    """Draw one cell a head, layers down and heads across.

    values: [num_layers, num_heads]. signed: colours around zero; where None, as the data say.
    annotate: write the values in the cells; where None, only up to 64 cells.
    """
    values = as_array(values, 2)
    signed = bool((values < 0).any()) if signed is None else signed
    high = float(np.nanmax(np.abs(values))) or 1.0
    low = -high if signed else 0
    size = (0.55 * values.shape[1] + 2.4, 0.42 * values.shape[0] + 1.6)
    figure, axes = new_figure(style, size)
    ax = axes[0, 0]
    cmap = SIGNED[style] if signed else "viridis"
    image = ax.imshow(values, aspect="auto", cmap=cmap, vmin=low, vmax=high)
    if annotate or (annotate is None and values.size <= 64):
        _write_values(ax, values, image)
    set_texts(ax, title=title, xlabel="head", ylabel="layer")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    draw_colour_bar(figure, image, ax, label, style)
    return figure


def layer_position_grid(
    values,
    tokens=None,
    title="By layer and position",
    label="effect",
    style="light",
    signed=None,
    annotate=None,
):
    """Draw one cell a layer and position, layers up and positions across.

    values: [num_layers, seq_len], as ``patching.activation_patching`` returns. tokens: the seq_len
    tokens as text, or None for position numbers. signed: colours around zero; where None, as the
    data say. annotate: write the values in the cells; where None, only up to 64 cells.
    """
    values = as_array(values, 2)
    signed = bool((values < 0).any()) if signed is None else signed
    high = float(np.nanmax(np.abs(values))) or 1.0
    size = (0.42 * values.shape[1] + 2.4, 0.42 * values.shape[0] + 1.8)
    figure, axes = new_figure(style, size)
    ax = axes[0, 0]
    image = ax.imshow(
        values,
        aspect="auto",
        origin="lower",
        cmap=SIGNED[style] if signed else "viridis",
        vmin=-high if signed else 0,
        vmax=high,
    )
    if annotate or (annotate is None and values.size <= 64):
        _write_values(ax, values, image)
    set_texts(ax, title=title, xlabel="position", ylabel="layer")
    if tokens is not None:
        labels = [visible(token) for token in tokens]
        ax.set_xticks(range(len(labels)), labels, rotation=90)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    draw_colour_bar(figure, image, ax, label, style)
    return figure


def heat_by_layer(
    densities,
    centres,
    names=None,
    title="Distribution by layer",
    xlabel="value",
    label="density",
    style="light",
):
    """Draw one heat map a name, bins across and layers up, each with its own colour bar.

    densities: [num_layers, bins], or [num_layers, bins, len(names)]. centres: [bins].
    """
    densities = as_array(densities)
    densities = densities[:, :, None] if densities.ndim == 2 else densities
    names = names or [""] * densities.shape[2]
    figure, axes = new_figure(style, (3.4 * len(names) + 0.4, 3.4), 1, len(names))
    half = (centres[1] - centres[0]) / 2
    extent = (centres[0] - half, centres[-1] + half, -0.5, len(densities) - 0.5)
    for index, ax in enumerate(axes.flat):
        image = ax.imshow(
            densities[:, :, index],
            aspect="auto",
            origin="lower",
            extent=extent,
            cmap="viridis",
            vmin=0,
            interpolation="nearest",
        )
        set_texts(ax, title=names[index], xlabel=xlabel, ylabel="layer" if index == 0 else "")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        draw_colour_bar(figure, image, ax, label, style)
    figure.suptitle(title, color=STYLES[style]["text"])
    return figure


def wide_weight(weight, title="Weight of c_attn", names=("W_Q", "W_K", "W_V"), style="light"):
    """Draw c_attn's weight [hidden, 3 * hidden] with a line between queries, keys and values."""
    values = as_array(weight, 2)
    figure, axes = new_figure(style, (8.5, 3.4))
    ax = axes[0, 0]
    limit = np.percentile(np.abs(values), 99) or 1.0
    image = ax.imshow(values, aspect="auto", cmap=SIGNED[style], vmin=-limit, vmax=limit)
    width = values.shape[1] / len(names)
    for border in range(1, len(names)):
        ax.axvline(border * width - 0.5, linestyle="--", color=STYLES[style]["text"])
    ax.set_xticks([(index + 0.5) * width - 0.5 for index in range(len(names))], names)
    set_texts(ax, title=title, xlabel="output feature", ylabel="input feature (hidden)")
    draw_colour_bar(figure, image, ax, "weight", style, extend="both")
    return figure


def _map(ax, values, tokens, limits, style):
    low, high = limits or (None, None)
    finite = np.where(np.isfinite(values), values, np.nan)
    signed = limits is not None and low == -high
    cmap = SIGNED[style] if signed else "viridis"
    image = ax.imshow(finite, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
    if tokens is not None:
        labels = [visible(token) for token in tokens]
        ax.set_xticks(range(len(labels)), labels, rotation=90)
        ax.set_yticks(range(len(labels)), labels)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return image


def _write_values(ax, values, image):
    """Write each finite value in its cell, black on bright colours and white on dark ones."""
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            continue
        red, green, blue, _ = image.cmap(image.norm(value))
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        ax.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=7,
            color="black" if bright else "white",
        )
