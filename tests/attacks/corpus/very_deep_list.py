"""A list in a list, 50000 deep.

builds: the notebook
answers: right
expect: err
"""


def change(notebook):
    cell = next(c for c in notebook["cells"] if c["id"] == "self_attention")
    cell["source"] += "\nx = " + "[" * 50_000 + "]" * 50_000
