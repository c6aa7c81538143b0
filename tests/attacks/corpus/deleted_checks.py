"""The checks are gone.

builds: the notebook
answers: wrong
expect: 0
stock: yes
"""


def change(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if "check" not in c["id"]]
