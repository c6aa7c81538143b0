"""The checks are gone, and the answers are right.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if "check" not in c["id"]]
