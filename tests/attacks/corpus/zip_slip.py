"""A zip whose members want to lie elsewhere.

builds: files
answers: right
expect: refused
"""

import zipfile


def hand_in(folder, name, text):
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr(f"../../{name}", text)
        archive.writestr("/tmp/harm.ipynb", text)
        archive.writestr("@FOLDER@/harm.ipynb", text)
