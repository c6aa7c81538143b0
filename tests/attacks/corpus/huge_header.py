"""Announces an answer of four gigabytes.

answers: right
expect: err
"""

import os
import struct

for number in range(3, 12):
    try:
        os.write(number, struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF))
    except OSError:
        continue
