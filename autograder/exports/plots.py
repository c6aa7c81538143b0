"""The pictures of the class report: SVG that needs no network and follows light and dark."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Each colour stands for a variable of the picture's own style: (name, light, dark).
INK = "#010203"
COLOURS = {
    INK: ("ink", "#1f2328", "#e6edf3"),
    "#010204": ("right", "#1a7f37", "#56d364"),
    "#010205": ("partly", "#bf8700", "#e3b341"),
    "#010206": ("wrong", "#b42318", "#ff8577"),
    "#010207": ("blank", "#9198a1", "#6e7681"),
    "#010208": ("waiting", "#8250df", "#bc8cff"),
    "#010209": ("unread", "#59636e", "#9198a1"),
}
RIGHT, PARTLY, WRONG, BLANK, WAITING, UNREAD = tuple(COLOURS)[1:]
STRIPES = {
    PARTLY: "//",
    WRONG: "xx",
    BLANK: "..",
    WAITING: "\\\\",
    UNREAD: "oo",
}  # told apart without colours
WIDTH = 5.2  # inches: text stays readable at the width of a phone


def bars(tasks: Sequence[str], states: Sequence[str], counts: Mapping[str, Sequence[int]]) -> str:
    """How many students have each task in each state: one bar a task. An address for `<img>`."""
    figure = _figure(max(1.6, 0.34 * len(tasks) + 1.1))
    axes = figure.add_subplot()
    left = [0] * len(tasks)
    for state, colour in zip(states, tuple(COLOURS)[1:], strict=True):
        values = counts[state]
        if any(values):
            axes.barh(
                range(len(tasks)),
                values,
                left=left,
                color=colour,
                label=state,
                hatch=STRIPES.get(colour),
                edgecolor=INK,
                linewidth=0.4,
            )
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(range(len(tasks)), tasks)
    axes.invert_yaxis()
    axes.set_xlabel("students")
    axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, labelcolor=INK, fontsize=8)
    return _address(figure, axes)


def totals(points: Sequence[float], most: float) -> str:
    """How many students have how many points. An address for `<img>`."""
    figure = _figure(2.4)
    axes = figure.add_subplot()
    steps = max(1, min(20, round(most)))
    edges = [most * i / steps for i in range(steps + 1)]
    edges[-1] = max(most, max(points, default=0.0)) + 1e-9
    axes.hist(points, bins=edges, color=RIGHT, edgecolor=INK, linewidth=0.4)
    axes.set_xlabel(f"points, of {most:g}")
    axes.set_ylabel("students")
    axes.yaxis.get_major_locator().set_params(integer=True)
    return _address(figure, axes)


def _figure(height: float) -> Figure:
    return Figure(figsize=(WIDTH, height), layout="constrained")


def _address(figure: Figure, axes) -> str:
    axes.tick_params(colors=INK, labelsize=8)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.patch.set_alpha(0)
    figure.patch.set_alpha(0)
    for spine in axes.spines.values():
        spine.set_color(INK)
    file = io.StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": "report", "hatch.linewidth": 0.5}
    with rc_context(settings):
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)
    for colour, (name, _, _) in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    light, dark = (";".join(f"--{c[0]}:{c[i]}" for c in COLOURS.values()) for i in (1, 2))
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    text = re.sub(r"(<svg[^>]*>)", lambda m: m[1] + style, text, count=1)
    return "data:image/svg+xml;base64," + b64encode(text.encode()).decode("ascii")
