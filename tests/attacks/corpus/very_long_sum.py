"""A sum of 60000 numbers: readers of Python that recurse end their process.

builds: the notebook
answers: right
expect: err
"""


def change(notebook):
    cell = next(c for c in notebook["cells"] if c["id"] == "self_attention")
    cell["source"] += "\nx = " + "1+" * 60_000 + "1"
