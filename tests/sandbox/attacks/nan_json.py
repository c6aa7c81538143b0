"""Answers with a NaN in the JSON.

expected: bad reply
"""

import os
import struct

head = b'{"id": "0", "header": {"score": NaN}}'
os.write(3, struct.pack("<II", len(head), 0) + head)
