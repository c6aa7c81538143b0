"""Renames every cell and every grade id.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = f"mine-{number}"
