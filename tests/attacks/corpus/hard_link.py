"""The notebook is a second name of another file.

builds: files
answers: right
expect: refused
"""

import os


def hand_in(folder, name, text):
    (folder.parents[2] / "other.txt").write_text(text)
    os.link(folder.parents[2] / "other.txt", folder / name)
