"""Numbers that JSON does not have, and one of a million digits.

builds: files
answers: right
expect: same
"""


def hand_in(folder, name, text):
    odd = '{"x": NaN, "y": -Infinity, "z": 1e999, "n": ' + "9" * 1_000_000 + ", "
    (folder / name).write_text(odd + text[1:])
