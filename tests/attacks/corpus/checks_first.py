"""The checks stand before the answers, and everything else is reversed.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    notebook["cells"].reverse()
