"""Says that its metadata comes from nbgrader's future.

builds: the notebook
answers: right
expect: same
stock: alone
"""


def change(notebook):
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["schema_version"] = 99
