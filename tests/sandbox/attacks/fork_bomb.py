"""Forks without end.

expected: timed out | bad reply | died | memory
seconds: 1
"""

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
