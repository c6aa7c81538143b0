"""Script in text cells, in code and in outputs.

builds: the notebook
answers: right
expect: same
"""

BAD = "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"


def change(notebook):
    output = {"output_type": "display_data", "data": {"text/html": BAD}, "metadata": {}}
    for cell in notebook["cells"]:
        if cell["id"].startswith("q"):
            cell["source"] = f"{BAD}\n\n[x](javascript:alert(4))\n\n`{BAD}`"
        elif cell["cell_type"] == "code":
            cell["outputs"] = [output]
