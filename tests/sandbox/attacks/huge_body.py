"""Announces a body of 4 GiB.

expected: too much output
"""

import os
import struct

os.write(3, struct.pack("<II", 2, 2**32 - 1) + b"{}")
