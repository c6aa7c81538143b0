"""The checks were replaced by something that always passes, with full marks as outputs.

builds: the notebook
answers: wrong
expect: 0
stock: yes
"""


def change(notebook):
    for cell in notebook["cells"]:
        if "check" in cell["id"]:
            cell["source"] = "10.0"
            cell["outputs"] = [
                {
                    "output_type": "execute_result",
                    "data": {"text/plain": "10.0"},
                    "metadata": {},
                    "execution_count": 1,
                }
            ]
