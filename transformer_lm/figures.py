"""Shows a matplotlib figure in a notebook, with alt text for those who cannot see it."""

import base64
import io
import sys
from html import escape

import matplotlib.pyplot as plt
from PIL import Image

MOST_OPEN = 20  # figures shown outside a notebook


def show(figure, alt, dpi=110):
    """Displays `figure` as a picture with `alt` as its alternative text, and closes it.

    Outside a notebook nothing is displayed; the figure stays open, for who runs the cells to
    collect. `alt` says what the figure shows, in a sentence.
    """
    ipython = sys.modules.get("IPython")  # in a notebook it is there; elsewhere it is slow to load
    if ipython is None or ipython.get_ipython() is None:
        for number in plt.get_fignums()[:-MOST_OPEN]:
            plt.close(number)
        return
    ipython.display.display(_bundle(figure, alt, dpi), raw=True)


def show_live(figure, alt, handle=None, dpi=80):
    """As `show`, for a figure that is drawn again and again in one place; returns its handle.

    handle: what the call before gave back; None for the first figure, and outside a notebook.
    """
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        plt.close(figure)
        return None
    data = _bundle(figure, alt, dpi)
    if handle is None:
        return ipython.display.display(data, raw=True, display_id=True)
    handle.update(data, raw=True)
    return handle


def _bundle(figure, alt, dpi):
    """The figure as what a notebook stores; it is closed.

    The picture is stored once, inside an HTML image: JupyterLab shows no alternative text for a
    bare PNG. Its paper is opaque, so that the text on it is as easy to read on a dark page, and a
    little of the page shines through, so that white does not glare there.
    """
    plt.close(figure)
    source = f"data:image/png;base64,{base64.b64encode(_png(figure, dpi)).decode('ascii')}"
    style = "max-width:100%;border-radius:6px;opacity:.9"
    html = f'<img alt="{escape(alt)}" style="{style}" src="{source}">'
    return {"text/html": html, "text/plain": f"[Figure: {alt}]"}


def _png(figure, dpi):
    """The bytes of a PNG of at most 256 colours, a third of the size of one with all colours."""
    drawn, written = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, bbox_inches="tight", metadata={"Software": None})
    with Image.open(drawn) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(written, format="png", optimize=True)
    return written.getvalue()
