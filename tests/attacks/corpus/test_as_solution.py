"""Says that the checks are the student's own, and unlocks them.

builds: the notebook
answers: wrong
expect: 0
stock: yes
"""


def change(notebook):
    for cell in notebook["cells"]:
        if "check" in cell["id"]:
            cell["metadata"].setdefault("nbgrader", {}).update(solution=True, locked=False)
            cell["metadata"]["course"] = {"role": "text", "points": 99}
            cell["source"] = "99"
