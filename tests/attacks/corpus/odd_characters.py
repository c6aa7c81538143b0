"""Half characters, invisible ones, and text that runs backwards.

builds: the notebook
answers: right
expect: same
"""


def change(notebook):
    for cell in notebook["cells"]:
        if cell["id"] in ("q1", "q2"):
            cell["source"] = "\ud800 \u202e\u2066 \u200b \x00 \x1b[31m \ufeff \U0010ffff"
    notebook["cells"][0]["id"] = "\ud800" * 100
