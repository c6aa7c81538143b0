"""Twelve processes fill memory together.

expected: memory | ok | died
"""

import os
import time

for _ in range(12):
    if os.fork() == 0:
        block = b"x" * 60_000_000
        time.sleep(60)
time.sleep(0.5)
