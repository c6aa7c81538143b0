"""Figures of attention: each function returns a matplotlib Figure and shows nothing by itself.

``style="light"`` or ``style="dark"`` on every function. Colours stay apart for colour-blind
readers: Okabe and Ito's palette for lines ("Color Universal Design", 2008), viridis for maps from
zero up, and red-to-blue, white or black at zero, for maps with a sign. ``alt_text`` describes a
figure for those who cannot see it.

`maps`, `curves`, `bars` and `flow` hold the figures, `parts` what they share, `words` the
descriptions.
"""

from transformer_lm.plots.bars import lens_bars, top_k_bars
from transformer_lm.plots.curves import (
    eigenvalue_plane,
    histogram_lines,
    lesion_dots,
    lines_by_layer,
    loss_curves,
    marked_scatter,
    spectra,
)
from transformer_lm.plots.flow import flow
from transformer_lm.plots.maps import (
    attention_map,
    head_grid,
    heat_by_layer,
    layer_head_grid,
    layer_position_grid,
    wide_weight,
)
from transformer_lm.plots.parts import LINE_COLOURS, MARKERS, SIGNED, STYLES
from transformer_lm.plots.words import alt_text

__all__ = [
    "LINE_COLOURS",
    "MARKERS",
    "SIGNED",
    "STYLES",
    "alt_text",
    "attention_map",
    "eigenvalue_plane",
    "flow",
    "head_grid",
    "heat_by_layer",
    "histogram_lines",
    "layer_head_grid",
    "layer_position_grid",
    "lens_bars",
    "lesion_dots",
    "lines_by_layer",
    "loss_curves",
    "marked_scatter",
    "spectra",
    "top_k_bars",
    "wide_weight",
]
