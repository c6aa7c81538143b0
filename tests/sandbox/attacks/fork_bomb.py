"""Forks without end.

expected: timed out | bad reply | died | memory
seconds: 0.5
"""

import contextlib
import os

while True:
    with contextlib.suppress(OSError):
        os.fork()
