"""Cells that are nothing but magics, in other languages.

builds: the notebook
answers: right
expect: same
"""


def change(notebook):
    shell = ("%%bash\nrm -rf '@FOLDER@'", "!kill -9 $PPID")
    for text in (*shell, "%%javascript\nalert(1)", "%reset -f"):
        cell = {"cell_type": "code", "source": text, "metadata": {}, "outputs": []}
        notebook["cells"].insert(2, {**cell, "id": f"m{len(text)}", "execution_count": None})
