"""Prints 100 MB, in one line and in many.

expected: ok
"""

import os

print("x" * 50_000_000)
for _ in range(1000):
    os.write(2, b"line\n" * 10_000)
