"""How a lesson's figures are stored: once, with words for those who cannot see them."""

import base64
import io
import sys
from html.parser import HTMLParser

import IPython.display
import matplotlib.pyplot as plt
import pytest
from PIL import Image

from transformer_lm import figures


class _Handle:
    def __init__(self):
        self.updates = []

    def update(self, data, raw):
        self.updates.append(data)


@pytest.fixture(autouse=True)
def no_figures_left():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def displayed(monkeypatch):
    """What was displayed, in a notebook that is none."""
    plt.switch_backend("Agg")  # now: matplotlib looks for the shell when it is chosen
    shown, handle = [], _Handle()

    def display(data, raw, display_id=None):
        shown.append(data)
        return handle if display_id else None

    monkeypatch.setattr(IPython, "get_ipython", lambda: object())
    monkeypatch.setattr(IPython.display, "display", display)
    return shown


def drawn(colours=1):
    figure, ax = plt.subplots(figsize=(2, 1))
    for i in range(colours):
        ax.plot([0, i + 1])
    return figure


class _Images(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_a_figure_is_stored_once_with_its_words(displayed):
    figures.show(drawn(), 'a line, "rising" & <straight>')
    (data,) = displayed
    assert set(data) == {"text/html", "text/plain"}  # a bare PNG has no words in JupyterLab
    ((tag, attributes),) = _Images(data["text/html"]).found
    assert tag == "img" and attributes["alt"] == 'a line, "rising" & <straight>'
    kind, _, code = attributes["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(code))).format == "PNG"
    assert not plt.get_fignums()


def test_the_paper_is_opaque_and_white():
    with Image.open(io.BytesIO(figures._png(drawn(6), 80))) as picture:
        assert "transparency" not in picture.info
        assert min(picture.convert("RGB").getpixel((1, 1))) >= 250


def test_the_same_figure_gives_the_same_bytes():
    assert figures._png(drawn(4), 80) == figures._png(drawn(4), 80)


def test_a_live_figure_is_drawn_in_one_place(displayed):
    handle = figures.show_live(drawn(), "the first")
    assert figures.show_live(drawn(2), "the second", handle) is handle
    assert len(displayed) == 1 and len(handle.updates) == 1
    assert 'alt="the second"' in handle.updates[0]["text/html"]
    assert not plt.get_fignums()


def test_outside_a_notebook_a_live_figure_is_closed(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert figures.show_live(drawn(), "unseen") is None
    assert not plt.get_fignums()


def test_outside_a_notebook_figures_stay_for_who_collects_them(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    figure = drawn()
    figures.show(figure, "collected")
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)
