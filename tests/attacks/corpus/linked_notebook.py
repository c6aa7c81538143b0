"""The notebook is a link to the solution.

builds: files
answers: wrong
expect: refused
stock: yes
"""

from pathlib import Path


def hand_in(folder, name, text):
    (folder / name).symlink_to(Path("@REPOSITORY@") / "solutions" / name)
