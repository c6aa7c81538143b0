"""transformer_lm.plots: each gives a labelled Figure in both styles and draws what it was given."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from transformer_lm import plots

PROBS = torch.softmax(
    torch.arange(36.0).view(6, 6).masked_fill(torch.ones(6, 6).triu(1) > 0, -1e9), -1
)
CENTRES = np.linspace(-0.9, 0.9, 10)

FIGURES = {
    "attention_map": lambda style: plots.attention_map(PROBS, list("abcdef"), style=style),
    "head_grid": lambda style: plots.head_grid(PROBS.expand(5, 6, 6), style=style),
    "heat_by_layer": lambda style: plots.heat_by_layer(
        torch.rand(4, 10, 3), CENTRES, ["Q", "K", "V"], style=style
    ),
    "lines_by_layer": lambda style: plots.lines_by_layer(
        {"Q": [1, 2, 3], "K": [3, 2, 1]}, baseline=2.0, baseline_name="random", style=style
    ),
    "histogram_lines": lambda style: plots.histogram_lines(
        {"Q": (CENTRES, np.ones(10), 0.0)}, style=style
    ),
    "histogram_lines by layer": lambda style: plots.histogram_lines(
        [(CENTRES, np.full(10, layer), 0.0) for layer in range(5)], style=style
    ),
    "marked_scatter": lambda style: plots.marked_scatter(
        -torch.arange(20.0), {" the": 3}, style=style
    ),
    "wide_weight": lambda style: plots.wide_weight(torch.randn(8, 24), style=style),
    "spectra": lambda style: plots.spectra({"model": [1, 3, 2]}, style=style),
    "lesion_dots": lambda style: plots.lesion_dots([-1, -2, -3], -1.5, style=style),
    "layer_head_grid": lambda style: plots.layer_head_grid(torch.randn(3, 4), style=style),
    "layer_position_grid": lambda style: plots.layer_position_grid(
        torch.randn(3, 5), list("abcde"), style=style
    ),
    "loss_curves": lambda style: plots.loss_curves(
        {"mine": ([0, 10, 20], [4.0, 3.0, 2.5])}, levels={"uniform": 4.1, "bigrams": 2.4},
        style=style,
    ),
    "eigenvalue_plane": lambda style: plots.eigenvalue_plane(
        {"head 0": torch.tensor([1 + 2j, 1 - 2j, 30 + 0j])}, style=style
    ),
    "top_k_bars": lambda style: plots.top_k_bars([0.6, 0.3], [" the", "$5\n"], style=style),
    "lens_bars": lambda style: plots.lens_bars(
        torch.log_softmax(torch.randn(3, 20), -1), str, k=3, style=style
    ),
}  # fmt: skip


def panels(figure):
    return [ax for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]


def colour_bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


@pytest.mark.parametrize("style", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_each_plot_is_a_figure_that_can_be_drawn_in_its_style(name, style):
    figure = FIGURES[name](style)
    assert isinstance(figure, Figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=40)
    assert picture.getvalue().startswith(b"\x89PNG")
    face = np.mean(figure.get_facecolor()[:3])
    text = np.mean(plt.matplotlib.colors.to_rgb(panels(figure)[0].title.get_color()))
    assert (face > 0.9 and text < 0.2) if style == "light" else (face < 0.2 and text > 0.8)


@pytest.mark.parametrize("name", FIGURES)
def test_each_plot_has_a_title_named_axes_and_named_colours(name):
    figure = FIGURES[name]("light")
    assert figure.get_suptitle() or panels(figure)[0].get_title()
    assert panels(figure)[0].get_xlabel() or figure.get_supxlabel()
    assert all(bar.get_ylabel() for bar in colour_bars(figure))
    has_maps = any(ax.get_images() for ax in panels(figure)) or name == "histogram_lines by layer"
    assert has_maps == bool(colour_bars(figure))


@pytest.mark.parametrize("name", FIGURES)
def test_each_plot_has_an_alt_text_that_names_its_subject(name):
    figure = FIGURES[name]("light")
    words = plots.alt_text(figure)
    assert (figure.get_suptitle() or panels(figure)[0].get_title()) in words
    assert words.endswith(".") and len(words) > 30


def test_no_plot_opens_a_window_or_stays_in_pyplot():
    plt.close("all")
    for draw in FIGURES.values():
        draw("light")
    assert plt.get_fignums() == []


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="style is 'sepia'; expected one of light, dark"):
        plots.attention_map(PROBS, style="sepia")


def test_a_batch_is_refused_with_its_shape():
    with pytest.raises(ValueError, match=r"expected 2 axes, got shape \(3, 6, 6\)"):
        plots.attention_map(PROBS.expand(3, 6, 6))


def test_the_map_shows_the_probabilities_themselves():
    """A second softmax in the picture would lift the hidden cells off zero."""
    image = panels(plots.attention_map(PROBS))[0].get_images()[0]
    np.testing.assert_array_equal(image.get_array(), PROBS.numpy())
    assert image.get_clim() == (0, 1)


def test_hidden_scores_are_left_blank():
    scores = torch.zeros(3, 3).masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf)
    image = panels(plots.attention_map(scores, limits=None))[0].get_images()[0]
    assert np.ma.getmaskarray(np.ma.masked_invalid(image.get_array())).sum() == 3


def test_tokens_label_both_axes_with_their_spaces_shown():
    ax = panels(plots.attention_map(PROBS[:2, :2], ["To", " day"]))[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["To", "·day"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["To", "·day"]


def test_layers_and_bins_stand_where_the_axes_say():
    ax = panels(plots.heat_by_layer(torch.rand(4, 10), CENTRES))[0]
    left, right, bottom, top = ax.get_images()[0].get_extent()
    assert (left, right) == pytest.approx((-1, 1)) and (bottom, top) == (-0.5, 3.5)


def test_the_wide_weight_has_a_line_at_each_border():
    ax = panels(plots.wide_weight(torch.randn(8, 24)))[0]
    assert [line.get_xdata()[0] for line in ax.get_lines()] == [7.5, 15.5]


def test_signed_values_are_white_at_zero():
    image = panels(plots.layer_head_grid(torch.tensor([[-1.0, 0.5]])))[0].get_images()[0]
    assert image.get_clim() == (-1, 1)
    np.testing.assert_allclose(image.cmap(image.norm(0.0))[:3], 1, atol=0.02)


def test_lines_differ_in_marker_as_well_as_colour():
    lines = panels(FIGURES["lines_by_layer"]("light"))[0].get_lines()[:2]
    assert len({line.get_marker() for line in lines}) == 2
    assert len({line.get_color() for line in lines}) == 2


def test_spectra_fall():
    heights = panels(plots.spectra(torch.tensor([[1.0, 3.0, 2.0]])))[0].get_lines()[0].get_ydata()
    assert list(heights) == [3, 2, 1]


def test_lesion_dots_stand_beside_the_clean_value():
    dots, clean = panels(plots.lesion_dots([-1, -2, -3], -1.5))[0].get_lines()
    assert list(dots.get_ydata()) == [-1, -2, -3] and clean.get_ydata()[0] == -1.5


def test_the_lens_shows_the_most_probable_tokens_first():
    log_probs = torch.log(torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]]))
    first, second = panels(plots.lens_bars(log_probs, "abc".__getitem__, k=2))
    assert [text.get_text() for text in first.get_yticklabels()] == ["b", "c"]
    assert [bar.get_width() for bar in second.patches] == pytest.approx([0.5, 0.3])
    assert [ax.get_title() for ax in (first, second)] == ["embedding", "after block 0"]


def test_alt_text_says_where_lines_begin_and_end():
    words = plots.alt_text(FIGURES["lines_by_layer"]("light"))
    assert "Q: 1 to 3" in words and "K: 3 to 1" in words and "random" in words


def test_weights_with_a_sign_share_one_scale_in_the_head_grid():
    figure = plots.head_grid(torch.randn(3, 4, 8), limits=(-0.1, 0.1), label="weight")
    images = [ax.get_images()[0] for ax in panels(figure)]
    assert [image.get_clim() for image in images] == [(-0.1, 0.1)] * 3
    np.testing.assert_allclose(images[0].cmap(images[0].norm(0.0))[:3], 1, atol=0.02)
    assert [bar.get_ylabel() for bar in colour_bars(figure)] == ["weight"]


def test_a_marked_dot_stands_at_its_value():
    _, marked = panels(plots.marked_scatter([0.0, -2.0, -1.0], {"day": 1}))[0].get_lines()
    assert (list(marked.get_xdata()), list(marked.get_ydata())) == ([1], [-2])


def test_layers_of_the_position_grid_go_up_and_tokens_stand_below():
    ax = panels(plots.layer_position_grid(torch.rand(3, 2), ["To", " day"]))[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["To", "·day"]
    assert ax.get_ylim()[0] < ax.get_ylim()[1] and ax.get_ylabel() == "layer"


def test_loss_levels_can_be_told_apart_and_stand_at_their_loss():
    ax = panels(FIGURES["loss_curves"]("light"))[0]
    curve, *levels = ax.get_lines()
    assert list(curve.get_ydata()) == [4.0, 3.0, 2.5]
    assert [line.get_ydata()[0] for line in levels] == [4.1, 2.4]
    assert len({line.get_linestyle() for line in levels}) == 2


def test_a_step_zero_is_not_lost_on_a_logarithmic_axis():
    ax = panels(plots.loss_curves({"mine": ([0, 10], [4.0, 3.0])}, log=True))[0]
    assert list(ax.get_lines()[0].get_xdata()) == [1, 10]


def test_eigenvalues_stand_in_the_complex_plane():
    head, *_ = panels(FIGURES["eigenvalue_plane"]("light"))[0].get_lines()
    assert list(head.get_xdata()) == [1, 1, 30] and list(head.get_ydata()) == [2, -2, 0]
