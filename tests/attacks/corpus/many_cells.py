"""A notebook of 100000 cells.

builds: the notebook
answers: right
expect: refused
"""


def change(notebook):
    cell = {"cell_type": "markdown", "source": "", "metadata": {}}
    notebook["cells"] += [{**cell, "id": f"n{i}"} for i in range(100_000)]
