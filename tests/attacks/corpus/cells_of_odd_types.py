"""Fields of a notebook that hold something else than they should.

builds: the notebook
answers: right
expect: same
"""


def change(notebook):
    notebook["metadata"] = "none"
    for cell in notebook["cells"]:
        cell["outputs"] = {"a": 1}
        cell["execution_count"] = [[]]
        cell["attachments"] = 3
        cell["metadata"]["tags"] = {"x": None}
    notebook["cells"] += [None, 3, [], {"cell_type": 7, "source": {}}, {"source": [None, 1]}]
    notebook["nbformat"], notebook["nbformat_minor"] = "four", -1
