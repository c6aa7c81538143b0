"""Data-flow diagrams: boxes for tensors, arrows for what is done to them."""

from matplotlib.patches import FancyBboxPatch

from transformer_lm.plots.parts import LINE_COLOURS, STYLES, new_figure

BOX = (1.7, 0.62)  # width and height


def flow(boxes, arrows, title="", style="light", colours=None):
    """Draw boxes and arrows between them.

    Args:
        boxes: {name: (x, y, text)}, the middle of each box, in units of about a box.
        arrows: (from, to) or (from, to, text) each, by the boxes' names.
        colours: {name: number} of those that are to stand out; equal numbers have equal colours.
    """
    look = STYLES[style]
    across = [x for x, _, _ in boxes.values()]
    up = [y for _, y, _ in boxes.values()]
    width = max(across) - min(across) + BOX[0] + 0.4
    height = max(up) - min(up) + BOX[1] + 0.4
    figure, axes = new_figure(style, (1.05 * width, 1.05 * height + 0.4 * bool(title)))
    ax = axes[0, 0]
    ax.set(
        xlim=(min(across) - BOX[0] / 2 - 0.2, max(across) + BOX[0] / 2 + 0.2),
        ylim=(min(up) - BOX[1] / 2 - 0.2, max(up) + BOX[1] / 2 + 0.2),
        aspect="equal",
        title=title,
    )
    ax.axis("off")
    for name, (x, y, text) in boxes.items():
        number = (colours or {}).get(name)
        edge = look["text"] if number is None else LINE_COLOURS[style][number]
        corner = (x - BOX[0] / 2, y - BOX[1] / 2)
        ax.add_patch(
            FancyBboxPatch(
                corner, *BOX, boxstyle="round,pad=0,rounding_size=0.1", facecolor=look["face"],
                edgecolor=edge, linewidth=1.2 if number is None else 2.5,
            )
        )  # fmt: skip
        ax.text(x, y, text, ha="center", va="center", fontsize=9, color=look["text"])
    for start, end, *text in arrows:
        _arrow(ax, boxes[start][:2], boxes[end][:2], text[0] if text else "", look)
    return figure


def _arrow(ax, start, end, text, look):
    """From border to border: sideways where the boxes stand in other columns, else up or down."""
    (x0, y0), (x1, y1) = start, end
    if abs(x1 - x0) >= BOX[0]:
        step = BOX[0] / 2 if x1 > x0 else -BOX[0] / 2
        x0, x1 = x0 + step, x1 - step
    else:
        step = BOX[1] / 2 if y1 > y0 else -BOX[1] / 2
        y0, y1 = y0 + step, y1 - step
    style = {"arrowstyle": "-|>", "color": look["text"], "shrinkA": 1, "shrinkB": 1}
    ax.annotate("", (x1, y1), (x0, y0), arrowprops=style)
    if text:
        box = {"facecolor": look["face"], "edgecolor": "none", "pad": 1}
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        ax.text(*middle, text, ha="center", va="center", fontsize=8, color=look["text"], bbox=box)
