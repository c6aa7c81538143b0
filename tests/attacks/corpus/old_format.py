"""Written in the format of ten years ago, with worksheets.

builds: the notebook
answers: right
expect: same
"""


def change(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
    notebook["worksheets"] = [{"cells": notebook.pop("cells")}]
    notebook["nbformat"], notebook["nbformat_minor"] = 3, 0
