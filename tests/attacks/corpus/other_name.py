"""The notebook has another name.

builds: files
answers: right
expect: same
stock: yes
"""


def hand_in(folder, name, text):
    (folder / "homework FINAL (2).ipynb").write_text(text)
