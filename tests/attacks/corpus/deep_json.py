"""JSON that is nested 10000 deep.

builds: files
answers: right
expect: refused
"""


def hand_in(folder, name, text):
    (folder / name).write_text('{"cells": ' + "[" * 10_000 + "]" * 10_000 + "}")
