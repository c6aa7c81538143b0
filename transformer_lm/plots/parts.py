"""What the figures share: styles, colours, and the pieces of a figure."""

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

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


def new_figure(style, size, rows=1, columns=1):
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


def as_array(values, ndim=None):
    """Return a numpy array; raise ValueError where it has not the axes the figure needs."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().float().numpy()
    values = np.asarray(values, dtype=float)
    if ndim is not None and values.ndim != ndim:
        raise ValueError(
            f"expected {ndim} axes, got shape {values.shape}; pick one batch item first"
        )
    return values


def visible(token):
    """Show a token's spaces and line breaks; '$' would start mathematics in matplotlib."""
    return token.replace(" ", "\u00b7").replace("\n", "\\n").replace("$", "\\$")


def draw_baseline(ax, baseline, name, style, linestyle="--"):
    if baseline is None:
        return
    look = {"linestyle": linestyle, "color": STYLES[style]["text"], "zorder": 1}
    if np.ndim(baseline) == 0:
        ax.axhline(float(baseline), label=name, **look)
    else:
        ax.plot(as_array(baseline, 1), label=name, **look)


def set_texts(ax, **texts):
    ax.set(**{name: text for name, text in texts.items() if text})


def draw_legend(ax, style):
    handles, labels = ax.get_legend_handles_labels()
    if labels and len(labels) <= 12:
        look = {"facecolor": STYLES[style]["face"], "labelcolor": STYLES[style]["text"]}
        ax.legend(handles, labels, fontsize=8, edgecolor=STYLES[style]["faint"], **look)


def draw_colour_bar(figure, image, axes, label, style, **more):
    bar = figure.colorbar(image, ax=axes, **more)
    bar.set_label(label, color=STYLES[style]["text"])
    bar.ax.tick_params(colors=STYLES[style]["text"])
    bar.outline.set_edgecolor(STYLES[style]["faint"])
