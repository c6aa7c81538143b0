"""The notebook is a folder.

builds: files
answers: right
expect: refused | same
"""


def hand_in(folder, name, text):
    (folder / name).mkdir()
    (folder / name / name).write_text(text)
