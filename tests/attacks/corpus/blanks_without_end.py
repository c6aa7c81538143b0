"""Lines of 100000 blanks, quotes and hashes, for readers that go back and forth.

builds: the notebook
answers: right
expect: err
"""


def change(notebook):
    cell = next(c for c in notebook["cells"] if c["id"] == "self_attention")
    cell["source"] += "\nx =" + " " * 90_000 + "'" * 3 + "#" * 50_000 + "\n%" + " a=" * 9_000
