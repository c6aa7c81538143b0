"""A number with 100000 signs in front, a name with 30000 dots, a tower of 20000 powers.

builds: the notebook
answers: right
expect: err
"""


def change(notebook):
    cell = next(c for c in notebook["cells"] if c["id"] == "self_attention")
    cell["source"] += "\nx = " + "-" * 100_000 + "1\n" + "x.a" + ".a" * 30_000
    cell["source"] += "\nx" + "**x" * 20_000
