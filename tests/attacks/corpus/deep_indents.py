"""A hundred blocks inside each other, many times.

builds: the notebook
answers: right
expect: err
"""


def change(notebook):
    cell = next(c for c in notebook["cells"] if c["id"] == "self_attention")
    cell["source"] += "\n" + "".join(" " * i + "if x:\n" for i in range(120)) * 20
