"""Curves and dots: numbers by layer, by rank or by value."""

from itertools import cycle

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from transformer_lm.plots.parts import (
    LINE_COLOURS,
    MARKERS,
    STYLES,
    as_array,
    draw_baseline,
    draw_colour_bar,
    draw_legend,
    new_figure,
    set_texts,
    visible,
)


def lines_by_layer(
    lines, title="By layer", ylabel="value", style="light", baseline=None, baseline_name="baseline"
):
    """Draw one line with its own marker a name, layers across.

    lines: {name: [num_layers]}. baseline: a number or [num_layers], drawn dashed, or None.
    """
    figure, axes = new_figure(style, (6.4, 3.4))
    ax = axes[0, 0]
    for index, (name, values) in enumerate(lines.items()):
        ax.plot(as_array(values, 1), marker=MARKERS[index % len(MARKERS)], markersize=5, label=name)
    draw_baseline(ax, baseline, baseline_name, style)
    set_texts(ax, title=title, xlabel="layer", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    draw_legend(ax, style)
    return figure


def histogram_lines(
    histograms, title="Distribution", xlabel="value", ylabel="density", style="light", log=False
):
    """Draw histograms as lines through the middle of their bins.

    histograms: {name: (centres [bins], heights [bins], ...)}, as ``weights.histogram`` returns; or
    a list of them, one a layer, coloured from the first layer to the last.
    """
    figure, axes = new_figure(style, (6.4, 3.4))
    ax = axes[0, 0]
    by_layer = not isinstance(histograms, dict)
    if by_layer:
        scale = ScalarMappable(Normalize(0, max(len(histograms) - 1, 1)), cmap="viridis")
        ax.set_prop_cycle(color=scale.to_rgba(range(len(histograms))))
        histograms = {f"layer {index}": each for index, each in enumerate(histograms)}
    for name, (centres, heights, *_) in histograms.items():
        ax.plot(as_array(centres, 1), as_array(heights, 1), label=name)
    set_texts(ax, title=title, xlabel=xlabel, ylabel=ylabel)
    if log:
        ax.set_yscale("log")
    if by_layer:
        draw_colour_bar(figure, scale, ax, "layer", style)
    else:
        draw_legend(ax, style)
    return figure


def marked_scatter(
    values,
    marked=None,
    title="Log-probability of each next token",
    xlabel="token id",
    ylabel="log-probability (nats)",
    style="light",
):
    """Draw one dot a value, and some of them marked with their names.

    values: [n]. marked: {name: index}, or None.
    """
    values = as_array(values, 1)
    figure, axes = new_figure(style, (8.0, 3.4))
    axes[0, 0].plot(values, linestyle="none", marker=".", markersize=2, label="all", alpha=0.6)
    for index, (name, place) in enumerate((marked or {}).items(), start=1):
        colour = LINE_COLOURS[style][index % len(LINE_COLOURS[style])]
        marker = MARKERS[index % len(MARKERS)]
        axes[0, 0].plot([place], [values[place]], marker, color=colour, label=visible(name))
    set_texts(axes[0, 0], title=title, xlabel=xlabel, ylabel=ylabel)
    draw_legend(axes[0, 0], style)
    return figure


def spectra(values, title="Singular values", ylabel="singular value", style="light", log=False):
    """Draw one curve a name, largest value first.

    values: {name: [rank]}, or [num_heads, rank] for one curve a head.
    """
    if not isinstance(values, dict):
        values = {f"head {head}": row for head, row in enumerate(as_array(values, 2))}
    figure, axes = new_figure(style, (6.4, 3.4))
    for name, row in values.items():
        row = np.sort(as_array(row, 1))[::-1]
        axes[0, 0].plot(np.arange(1, len(row) + 1), row, label=name)
    if log:
        axes[0, 0].set_yscale("log")
    set_texts(axes[0, 0], title=title, xlabel="rank, largest first", ylabel=ylabel)
    draw_legend(axes[0, 0], style)
    return figure


def lesion_dots(
    values,
    clean,
    title="Lesion of one head, layer by layer",
    ylabel="log-probability (nats)",
    style="light",
    names=None,
):
    """Draw what is left after a lesion: one dot a layer, beside the clean value.

    values: [num_layers], or [num_layers, num_heads] for one dot a head. clean: a number.
    """
    values = as_array(values)
    values = values[:, None] if values.ndim == 1 else values
    figure, axes = new_figure(style, (6.4, 3.4))
    for column in range(values.shape[1]):
        axes[0, 0].plot(
            values[:, column],
            linestyle="none",
            marker=MARKERS[column % len(MARKERS)],
            markersize=8,
            label=names[column] if names else "after the lesion" if column == 0 else None,
        )
    draw_baseline(axes[0, 0], float(clean), "clean", style)
    set_texts(axes[0, 0], title=title, xlabel="layer", ylabel=ylabel)
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    draw_legend(axes[0, 0], style)
    return figure


def loss_curves(
    curves,
    title="Loss",
    ylabel="loss (nats a token)",
    style="light",
    levels=None,
    log=False,
):
    """Draw one line a run, steps across.

    curves: {name: (steps [n], losses [n])}. levels: {name: loss}, dashed lines to compare with,
    such as a uniform guess or a bigram table; or None. log: steps on a logarithmic scale, where a
    step 0 is drawn at 1.
    """
    figure, axes = new_figure(style, (6.4, 3.4))
    ax = axes[0, 0]
    for index, (name, (steps, losses)) in enumerate(curves.items()):
        steps, losses = as_array(steps, 1), as_array(losses, 1)
        mark = MARKERS[index % len(MARKERS)] if len(losses) <= 40 else ""
        across = np.maximum(steps, 1) if log else steps
        ax.plot(across, losses, marker=mark, markersize=4, label=name)
    for line, (name, level) in zip(cycle(("--", ":", "-.")), (levels or {}).items(), strict=False):
        draw_baseline(ax, float(level), name, style, line)
    if log:
        ax.set_xscale("log")
    set_texts(ax, title=title, xlabel="step", ylabel=ylabel)
    draw_legend(ax, style)
    return figure


def eigenvalue_plane(values, title="Eigenvalues of the OV circuit", style="light"):
    """Draw complex eigenvalues in the plane, each head's in its own colour and marker.

    values: {name: [n]}, complex, as ``circuits.ov_eigenvalues`` returns for each head. The scale is
    linear near zero and logarithmic further out, for eigenvalues differ by powers of ten.
    """
    figure, axes = new_figure(style, (4.8, 4.4))
    ax = axes[0, 0]
    numbers = {name: np.asarray(torch.as_tensor(each).cpu()) for name, each in values.items()}
    sizes = np.abs(np.concatenate(list(numbers.values())))
    threshold = max(float(np.median(sizes)), 1e-12)
    ax.set_xscale("symlog", linthresh=threshold)
    ax.set_yscale("symlog", linthresh=threshold)
    for index, (name, each) in enumerate(numbers.items()):
        marker = MARKERS[index % len(MARKERS)]
        ax.plot(each.real, each.imag, marker, markersize=4, label=name)
    ax.axvline(0, color=STYLES[style]["faint"], zorder=0)
    ax.axhline(0, color=STYLES[style]["faint"], zorder=0)
    set_texts(ax, title=title, xlabel="real part", ylabel="imaginary part")
    draw_legend(ax, style)
    return figure
