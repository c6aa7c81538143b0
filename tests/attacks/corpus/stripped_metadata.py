"""Saved by an editor that keeps no metadata and no ids.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    notebook["metadata"] = {}
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    notebook["nbformat_minor"] = 2
