"""A zip in a zip, which nobody opens.

builds: files
answers: right
expect: refused
"""

import io
import zipfile


def hand_in(folder, name, text):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(name, text)
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("ada.zip", inner.getvalue())
