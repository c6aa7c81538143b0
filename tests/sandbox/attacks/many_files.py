"""Makes a hundred thousand empty files.

expected: ok | too much output
"""

import os

from given import found

made = 0
try:
    for i in range(100_000):
        os.close(os.open(f"file-{i}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError:
    pass
if made == 100_000:
    found.append("a hundred thousand files")
