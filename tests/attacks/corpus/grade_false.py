"""Says that no check is worth anything, in nbgrader's metadata.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["metadata"]["nbgrader"]["grade"] = False
