"""Leaves links, deep folders and closed doors in its folder.

expected: ok | too much output
"""

import os

os.symlink(canary, "link")
os.symlink(os.path.dirname(canary), "folder")
os.symlink("/", "root")
try:
    os.mkfifo("pipe")
except OSError:
    pass
os.mkdir("closed", 0)
here = os.getcwd()
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
