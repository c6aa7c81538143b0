"""An empty file.

builds: files
answers: right
expect: refused
"""


def hand_in(folder, name, text):
    (folder / name).write_text("")
