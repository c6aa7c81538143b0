"""Writes rubbish on the grader's socket.

answers: right
expect: err
"""

import os

for number in range(3, 12):
    try:
        os.write(number, b"\xff" * 4096)
    except OSError:
        continue
