"""A timestamp that is no time.

builds: files
answers: right
expect: same
stock: alone
"""


def hand_in(folder, name, text):
    (folder / name).write_text(text)
    (folder / "timestamp.txt").write_text("@" * 100 + "\ninfinity")
