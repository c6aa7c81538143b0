"""A notebook of 200 MB, nearly all of it holes.

builds: files
answers: right
expect: refused
"""


def hand_in(folder, name, text):
    with open(folder / name, "wb") as file:
        file.truncate(200_000_000)
