"""A figure in words, for those who cannot see it."""

import numpy as np


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


def _is_colour_bar(ax):
    return ax.get_label() == "<colorbar>"
