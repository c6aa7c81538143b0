"""An answer cell was copied and pasted: its grade id stands there twice.

builds: the notebook
answers: right
expect: same
stock: alone
"""

import copy


def change(notebook):
    cells = notebook["cells"]
    place = next(i for i, c in enumerate(cells) if c["id"] == "self_attention")
    cells.insert(place, copy.deepcopy(cells[place]))
    cells[place + 1]["id"] = "copy"
