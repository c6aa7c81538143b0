"""The folder with the notebook in it is a link.

builds: files
answers: wrong
expect: refused
"""


def hand_in(folder, name, text):
    elsewhere = folder.parents[2] / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / name).write_text(text)
    folder.rmdir()
    folder.symlink_to(elsewhere)
