"""Shows a matplotlib figure in a notebook, with alt text for those who cannot see it."""

import base64
import io
from html import escape

import matplotlib.pyplot as plt


def show(figure, alt, dpi=110):
    """Displays `figure` as a PNG with `alt` as its alternative text, and closes it.

    Outside a notebook nothing is displayed. `alt` says what the figure shows, in a sentence.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=dpi, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        data = base64.b64encode(picture.getvalue()).decode("ascii")
        source = f"data:image/png;base64,{data}"
        html = f'<img alt="{escape(alt)}" style="max-width:100%" src="{source}">'
        bundle = {"image/png": data, "text/html": html, "text/plain": f"[Figure: {alt}]"}
        display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
