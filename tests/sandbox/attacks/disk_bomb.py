"""Fills every folder it can write to.

expected: ok | too much output
"""

import os

from given import found

written = 0
for folder in ("/tmp", "/dev/shm", "/var/tmp", os.getcwd()):
    for i in range(40):
        try:
            with open(f"{folder}/bomb-{i}", "wb") as file:
                for _ in range(8):
                    written += file.write(b"x" * 2**20)
                    file.flush()
        except OSError:
            break
if written > 200 * 2**20:
    found.append(f"{written} bytes")
