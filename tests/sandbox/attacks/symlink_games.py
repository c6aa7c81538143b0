"""Leaves links, deep folders and closed doors in its folder.

expected: ok | too much output
"""

import contextlib
import os

from given import canary

os.symlink(canary, "link")
os.symlink(os.path.dirname(canary), "folder")
os.symlink("/", "root")
with contextlib.suppress(OSError):
    os.mkfifo("pipe")
os.mkdir("closed", 0)
here = os.getcwd()
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
