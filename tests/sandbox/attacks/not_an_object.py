"""Answers with JSON that is no object.

expected: bad reply
"""

import os
import struct

os.write(3, struct.pack("<II", 2, 0) + b"[]")
