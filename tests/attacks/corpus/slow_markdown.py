"""Answers of text that make a careless Markdown reader think for hours.

builds: the notebook
answers: right
expect: same
"""


def change(notebook):
    texts = ["[" * 50_000, "*a **a " * 9_000, "`" * 40_000 + "x", "<" * 60_000, "|a" * 30_000]
    cells = [c for c in notebook["cells"] if c["id"] in ("q1", "q2", "q3", "q4", "q5")]
    for cell, text in zip(cells, texts, strict=True):
        cell["source"] = text
