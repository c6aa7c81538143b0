"""Forks without an end.

answers: right
expect: err
slow: yes
"""

import contextlib
import os

while True:
    with contextlib.suppress(OSError):
        os.fork()
