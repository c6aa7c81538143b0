"""The notebook is a pipe that nobody writes to.

builds: files
answers: right
expect: refused
"""

import os


def hand_in(folder, name, text):
    os.mkfifo(folder / name)
