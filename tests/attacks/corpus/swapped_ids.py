"""Gives each answer the other's id and grade id.

builds: the notebook
answers: wrong
expect: 0
"""


def change(notebook):
    one, two = (c for c in notebook["cells"] if c["id"] in ("self_attention", "multi_head"))
    one["id"], two["id"] = two["id"], one["id"]
    one["metadata"], two["metadata"] = two["metadata"], one["metadata"]
