"""Bytes that are no text.

builds: files
answers: right
expect: refused
"""


def hand_in(folder, name, text):
    (folder / name).write_bytes(b"\xff\xfe\xfd\x00" * 1000)
