"""A notebook that breaks off.

builds: files
answers: right
expect: refused
stock: yes
"""


def hand_in(folder, name, text):
    (folder / name).write_text(text[: len(text) // 2])
