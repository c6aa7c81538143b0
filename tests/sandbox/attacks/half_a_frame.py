"""Announces a reply and never sends it.

expected: timed out
seconds: 0.5
"""

import os
import struct
import time

os.write(3, struct.pack("<II", 100, 0) + b"{")
while True:
    time.sleep(100)
