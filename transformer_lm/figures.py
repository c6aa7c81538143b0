"""Shows a matplotlib figure in a notebook, with alt text for those who cannot see it."""

import base64
import io
import sys
from html import escape

import matplotlib.pyplot as plt

MOST_WAITING = 20
waiting = []  # figures shown outside a notebook; who runs the cells may collect them here


def show(figure, alt, dpi=110):
    """Displays `figure` as a PNG with `alt` as its alternative text, and closes it.

    Outside a notebook nothing is displayed; the figure is kept in `waiting`. `alt` says what the
    figure shows, in a sentence.
    """
    plt.close(figure)
    ipython = sys.modules.get("IPython")  # in a notebook it is there; elsewhere it is slow to load
    if ipython is None or ipython.get_ipython() is None:
        waiting.append(figure)
        del waiting[:-MOST_WAITING]
        return
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=dpi, bbox_inches="tight", metadata={"Software": None})
    data = base64.b64encode(picture.getvalue()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    html = f'<img alt="{escape(alt)}" style="max-width:100%" src="{source}">'
    bundle = {"image/png": data, "text/html": html, "text/plain": f"[Figure: {alt}]"}
    ipython.display.display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
