"""Says that every check is worth 1000 points.

builds: the notebook
answers: wrong
expect: 0
stock: yes
"""


def change(notebook):
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["points"] = 1000
