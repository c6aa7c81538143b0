"""Figures of attention: each function returns a matplotlib Figure and shows nothing by itself.

``style="light"`` or ``style="dark"`` on every function. Colours stay apart for colour-blind
readers: Okabe and Ito's palette for lines ("Color Universal Design", 2008), viridis for maps from
zero up, and red-to-blue, white or black at zero, for maps with a sign. ``alt_text`` describes a
figure for those who cannot see it.
"""

import math

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

STYLES = {
    "light": {"face": "#ffffff", "text": "#1a1a1a", "faint": "#b0b0b0"},
    "dark": {"face": "#171717", "text": "#dde2f4", "faint": "#606470"},
}
LINE_COLOURS = {  # Okabe and Ito, without the two that vanish on one of the backgrounds
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    "dark": ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00"),
}
MARKERS = ("o", "s", "^", "D", "v", "P")
SIGNED = {
    "light": LinearSegmentedColormap.from_list("light", ("#b2182b", "#ffffff", "#2166ac")),
    "dark": LinearSegmentedColormap.from_list("dark", ("#ff9d7a", "#171717", "#6db7ff")),
}


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
    values = _matrix(probs, 2)
    figure, axes = _figure(style, (4.8, 4.2))
    image = _map(axes[0, 0], values, tokens, limits, style)
    if annotate or (annotate is None and len(values) <= 8):
        _write_values(axes[0, 0], values, image)
    _set(axes[0, 0], title=title, xlabel="key position", ylabel="query position")
    _colour_bar(figure, image, axes[0, 0], label, style)
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
    values = _matrix(maps, 3)
    limits = limits or (np.nanmin(values), np.nanmax(values))
    names = names or [f"head {head}" for head in range(len(values))]
    columns = min(columns, len(values))
    rows = math.ceil(len(values) / columns)
    figure, axes = _figure(style, (2.3 * columns + 0.9, 2.3 * rows + 0.5), rows, columns)
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
    _colour_bar(figure, image, list(axes.flat), label, style)
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
    densities = _matrix(densities)
    densities = densities[:, :, None] if densities.ndim == 2 else densities
    names = names or [""] * densities.shape[2]
    figure, axes = _figure(style, (3.4 * len(names) + 0.4, 3.4), 1, len(names))
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
        _set(ax, title=names[index], xlabel=xlabel, ylabel="layer" if index == 0 else "")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        _colour_bar(figure, image, ax, label, style)
    figure.suptitle(title, color=STYLES[style]["text"])
    return figure


def lines_by_layer(
    lines, title="By layer", ylabel="value", style="light", baseline=None, baseline_name="baseline"
):
    """Draw one line with its own marker a name, layers across.

    lines: {name: [num_layers]}. baseline: a number or [num_layers], drawn dashed, or None.
    """
    figure, axes = _figure(style, (6.4, 3.4))
    ax = axes[0, 0]
    for index, (name, values) in enumerate(lines.items()):
        ax.plot(_matrix(values, 1), marker=MARKERS[index % len(MARKERS)], markersize=5, label=name)
    _baseline(ax, baseline, baseline_name, style)
    _set(ax, title=title, xlabel="layer", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(ax, style)
    return figure


def histogram_lines(
    histograms, title="Distribution", xlabel="value", ylabel="density", style="light", log=False
):
    """Draw histograms as lines through the middle of their bins.

    histograms: {name: (centres [bins], heights [bins], ...)}, as ``weights.histogram`` returns; or
    a list of them, one a layer, coloured from the first layer to the last.
    """
    figure, axes = _figure(style, (6.4, 3.4))
    ax = axes[0, 0]
    by_layer = not isinstance(histograms, dict)
    if by_layer:
        scale = ScalarMappable(Normalize(0, max(len(histograms) - 1, 1)), cmap="viridis")
        ax.set_prop_cycle(color=scale.to_rgba(range(len(histograms))))
        histograms = {f"layer {index}": each for index, each in enumerate(histograms)}
    for name, (centres, heights, *_) in histograms.items():
        ax.plot(_matrix(centres, 1), _matrix(heights, 1), label=name)
    _set(ax, title=title, xlabel=xlabel, ylabel=ylabel)
    if log:
        ax.set_yscale("log")
    if by_layer:
        _colour_bar(figure, scale, ax, "layer", style)
    else:
        _legend(ax, style)
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
    values = _matrix(values, 1)
    figure, axes = _figure(style, (8.0, 3.4))
    axes[0, 0].plot(values, linestyle="none", marker=".", markersize=2, label="all", alpha=0.6)
    for index, (name, place) in enumerate((marked or {}).items(), start=1):
        colour = LINE_COLOURS[style][index % len(LINE_COLOURS[style])]
        marker = MARKERS[index % len(MARKERS)]
        axes[0, 0].plot([place], [values[place]], marker, color=colour, label=_visible(name))
    _set(axes[0, 0], title=title, xlabel=xlabel, ylabel=ylabel)
    _legend(axes[0, 0], style)
    return figure


def wide_weight(weight, title="Weight of c_attn", names=("W_Q", "W_K", "W_V"), style="light"):
    """Draw c_attn's weight [hidden, 3 * hidden] with a line between queries, keys and values."""
    values = _matrix(weight, 2)
    figure, axes = _figure(style, (8.5, 3.4))
    ax = axes[0, 0]
    limit = np.percentile(np.abs(values), 99) or 1.0
    image = ax.imshow(values, aspect="auto", cmap=SIGNED[style], vmin=-limit, vmax=limit)
    width = values.shape[1] / len(names)
    for border in range(1, len(names)):
        ax.axvline(border * width - 0.5, linestyle="--", color=STYLES[style]["text"])
    ax.set_xticks([(index + 0.5) * width - 0.5 for index in range(len(names))], names)
    _set(ax, title=title, xlabel="output feature", ylabel="input feature (hidden)")
    _colour_bar(figure, image, ax, "weight", style, extend="both")
    return figure


def spectra(values, title="Singular values", ylabel="singular value", style="light", log=False):
    """Draw one curve a name, largest value first.

    values: {name: [rank]}, or [num_heads, rank] for one curve a head.
    """
    if not isinstance(values, dict):
        values = {f"head {head}": row for head, row in enumerate(_matrix(values, 2))}
    figure, axes = _figure(style, (6.4, 3.4))
    for name, row in values.items():
        row = np.sort(_matrix(row, 1))[::-1]
        axes[0, 0].plot(np.arange(1, len(row) + 1), row, label=name)
    if log:
        axes[0, 0].set_yscale("log")
    _set(axes[0, 0], title=title, xlabel="rank, largest first", ylabel=ylabel)
    _legend(axes[0, 0], style)
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
    values = _matrix(values)
    values = values[:, None] if values.ndim == 1 else values
    figure, axes = _figure(style, (6.4, 3.4))
    for column in range(values.shape[1]):
        axes[0, 0].plot(
            values[:, column],
            linestyle="none",
            marker=MARKERS[column % len(MARKERS)],
            markersize=8,
            label=names[column] if names else "after the lesion" if column == 0 else None,
        )
    _baseline(axes[0, 0], float(clean), "clean", style)
    _set(axes[0, 0], title=title, xlabel="layer", ylabel=ylabel)
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(axes[0, 0], style)
    return figure


def layer_head_grid(
    values, title="By layer and head", label="value", style="light", signed=None, annotate=None
):
    """Draw one cell a head, layers down and heads across.

    values: [num_layers, num_heads]. signed: colours around zero; where None, as the data say.
    annotate: write the values in the cells; where None, only up to 64 cells.
    """
    values = _matrix(values, 2)
    signed = bool((values < 0).any()) if signed is None else signed
    high = float(np.nanmax(np.abs(values))) or 1.0
    low = -high if signed else 0
    size = (0.55 * values.shape[1] + 2.4, 0.42 * values.shape[0] + 1.6)
    figure, axes = _figure(style, size)
    ax = axes[0, 0]
    cmap = SIGNED[style] if signed else "viridis"
    image = ax.imshow(values, aspect="auto", cmap=cmap, vmin=low, vmax=high)
    if annotate or (annotate is None and values.size <= 64):
        _write_values(ax, values, image)
    _set(ax, title=title, xlabel="head", ylabel="layer")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _colour_bar(figure, image, ax, label, style)
    return figure


def top_k_bars(probs, names, title="Next token", xlabel="probability", style="light"):
    """Draw one horizontal bar a token, the most probable on top.

    probs: [k]. names: the k tokens as text.
    """
    values = _matrix(probs, 1)
    figure, axes = _figure(style, (5.4, 0.3 * len(values) + 1.2))
    _bars(axes[0, 0], values, names, style)
    _set(axes[0, 0], title=title, xlabel=xlabel)
    return figure


def lens_bars(log_probs, decode, k=5, title="Logit lens", style="light", columns=4):
    """Draw the top k tokens after the embedding and after each block.

    log_probs: [num_layers + 1, vocab_size], of one position. decode: token id -> text.
    """
    probs = np.exp(_matrix(log_probs, 2))
    columns = min(columns, len(probs))
    rows = math.ceil(len(probs) / columns)
    figure, axes = _figure(style, (2.6 * columns, (0.25 * k + 0.9) * rows), rows, columns)
    for depth, ax in enumerate(axes.flat):
        if depth >= len(probs):
            ax.set_visible(False)
            continue
        top = np.argsort(-probs[depth])[:k]
        _bars(ax, probs[depth][top], [decode(int(token)) for token in top], style)
        ax.set_xlim(0, 1)
        _set(ax, title="embedding" if depth == 0 else f"after block {depth - 1}")
    figure.supxlabel("probability", color=STYLES[style]["text"])
    figure.suptitle(title, color=STYLES[style]["text"])
    return figure


def alt_text(figure):
    """Describe a figure in words: titles, axes, ranges, first and last values of lines.

    Say before or after it what the figure shows; this lists what is drawn.
    """
    heading = figure.get_suptitle()
    panels = [_describe(ax) for ax in figure.axes if ax.get_visible() and not _is_colour_bar(ax)]
    kept, rest = panels[:4], len(panels) - 4
    words = (
        ([heading] if heading else []) + kept + ([f"And {rest} more panels"] if rest > 0 else [])
    )
    return ". ".join(word.rstrip(".") for word in words) + "."


# --- Parts shared by the figures ------------------------------------------------------------------


def _figure(style, size, rows=1, columns=1):
    """Return a styled Figure and its axes [rows, columns]; pyplot never learns of it."""
    if style not in STYLES:
        raise ValueError(f"style is {style!r}; expected one of {', '.join(STYLES)}")
    look = STYLES[style]
    figure = Figure(figsize=size, facecolor=look["face"], layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.set_facecolor(look["face"])
        ax.set_prop_cycle(color=LINE_COLOURS[style])
        ax.tick_params(colors=look["text"])
        ax.spines[["top", "right"]].set_visible(False)
        for spine in ax.spines.values():
            spine.set_color(look["text"])
        for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
            text.set_color(look["text"])
    return figure, axes


def _matrix(values, ndim=None):
    """Return a numpy array; raise ValueError where it has not the axes the figure needs."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().float().numpy()
    values = np.asarray(values, dtype=float)
    if ndim is not None and values.ndim != ndim:
        raise ValueError(
            f"expected {ndim} axes, got shape {values.shape}; pick one batch item first"
        )
    return values


def _map(ax, values, tokens, limits, style):
    low, high = limits or (None, None)
    finite = np.where(np.isfinite(values), values, np.nan)
    signed = limits is not None and low == -high
    cmap = SIGNED[style] if signed else "viridis"
    image = ax.imshow(finite, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
    if tokens is not None:
        labels = [_visible(token) for token in tokens]
        ax.set_xticks(range(len(labels)), labels, rotation=90)
        ax.set_yticks(range(len(labels)), labels)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return image


def _visible(token):
    """Show a token's spaces and line breaks; '$' would start mathematics in matplotlib."""
    return token.replace(" ", "\u00b7").replace("\n", "\\n").replace("$", "\\$")


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


def _bars(ax, values, names, style):
    ax.barh(range(len(values)), values, color=LINE_COLOURS[style][0])
    ax.set_yticks(range(len(values)), [_visible(name) for name in names])
    ax.invert_yaxis()


def _baseline(ax, baseline, name, style):
    if baseline is None:
        return
    look = {"linestyle": "--", "color": STYLES[style]["text"], "zorder": 1}
    if np.ndim(baseline) == 0:
        ax.axhline(float(baseline), label=name, **look)
    else:
        ax.plot(_matrix(baseline, 1), label=name, **look)


def _set(ax, **texts):
    ax.set(**{name: text for name, text in texts.items() if text})


def _legend(ax, style):
    handles, labels = ax.get_legend_handles_labels()
    if labels and len(labels) <= 12:
        look = {"facecolor": STYLES[style]["face"], "labelcolor": STYLES[style]["text"]}
        ax.legend(handles, labels, fontsize=8, edgecolor=STYLES[style]["faint"], **look)


def _colour_bar(figure, image, axes, label, style, **more):
    bar = figure.colorbar(image, ax=axes, **more)
    bar.set_label(label, color=STYLES[style]["text"])
    bar.ax.tick_params(colors=STYLES[style]["text"])
    bar.outline.set_edgecolor(STYLES[style]["faint"])


def _is_colour_bar(ax):
    return ax.get_label() == "<colorbar>"


def _describe(ax):
    parts = [ax.get_title()] if ax.get_title() else []
    across, up = ax.get_xlabel(), ax.get_ylabel()
    if across or up:
        parts.append(" against ".join(each for each in (up, across) if each))
    for image in ax.get_images():
        values = np.ma.compressed(np.ma.masked_invalid(image.get_array()))
        rows, columns = image.get_array().shape[:2]
        parts.append(f"map of {rows} by {columns} cells")
        if len(values):
            parts.append(f"values from {values.min():.3g} to {values.max():.3g}")
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    for line in lines[:6]:
        heights = np.asarray(line.get_ydata(), dtype=float)
        flat = len(heights) == 1 or (heights == heights[0]).all()
        ends = f"{heights[0]:.3g}" if flat else f"{heights[0]:.3g} to {heights[-1]:.3g}"
        parts.append(f"{line.get_label()}: {ends}")
    if len(lines) > 6:
        parts.append(f"and {len(lines) - 6} more lines")
    if ax.patches:
        names = [text.get_text() for text in ax.get_yticklabels()]
        bars = zip(names, (bar.get_width() for bar in ax.patches), strict=False)
        parts += [f"{name}: {width:.3g}" for name, width in bars]
    return ", ".join(parts) or "an empty panel"
