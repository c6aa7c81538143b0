"""Shows a matplotlib figure in a notebook, with alt text for those who cannot see it."""

import base64
import io
import sys
from html import escape

import matplotlib.pyplot as plt

MOST_OPEN = 20  # figures shown outside a notebook


def show(figure, alt, dpi=110):
    """Displays `figure` as a PNG with `alt` as its alternative text, and closes it.

    Outside a notebook nothing is displayed; the figure stays open, for who runs the cells to
    collect. `alt` says what the figure shows, in a sentence.
    """
    ipython = sys.modules.get("IPython")  # in a notebook it is there; elsewhere it is slow to load
    if ipython is None or ipython.get_ipython() is None:
        for number in plt.get_fignums()[:-MOST_OPEN]:
            plt.close(number)
        return
    data, metadata = _bundle(figure, alt, dpi)
    ipython.display.display(data, raw=True, metadata=metadata)


def show_live(figure, alt, handle=None, dpi=80):
    """As `show`, for a figure that is drawn again and again in one place; returns its handle.

    handle: what the call before gave back; None for the first figure, and outside a notebook.
    """
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        plt.close(figure)
        return None
    data, metadata = _bundle(figure, alt, dpi)
    if handle is None:
        return ipython.display.display(data, raw=True, metadata=metadata, display_id=True)
    handle.update(data, raw=True, metadata=metadata)
    return handle


def _bundle(figure, alt, dpi):
    """The figure as what a notebook stores, and its metadata; the figure is closed."""
    plt.close(figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=dpi, bbox_inches="tight", metadata={"Software": None})
    data = base64.b64encode(picture.getvalue()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    html = f'<img alt="{escape(alt)}" style="max-width:100%" src="{source}">'
    bundle = {"image/png": data, "text/html": html, "text/plain": f"[Figure: {alt}]"}
    return bundle, {"image/png": {"alt": alt}}
