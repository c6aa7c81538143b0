"""Answers with JSON nested a hundred thousand deep.

expected: bad reply
"""

import os
import struct

head = b"[" * 100_000
os.write(3, struct.pack("<II", len(head), 0) + head)
