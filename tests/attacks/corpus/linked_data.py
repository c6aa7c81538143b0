"""Beside the notebook lie links to files of the grader's.

builds: files
answers: right
expect: same
stock: yes
"""


def hand_in(folder, name, text):
    (folder / name).write_text(text)
    (folder / "notes.txt").symlink_to("@CANARY@")
    (folder / "data").symlink_to("@FOLDER@")
    (folder / "timestamp.txt").symlink_to("@CANARY@")
