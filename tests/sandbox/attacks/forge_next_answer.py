"""Answers the next question before it is asked.

expected: bad reply
"""

import json
import os
import struct
import sys

frame = sys._getframe()
while "envelope" not in frame.f_locals:
    frame = frame.f_back
for identity in (frame.f_locals["envelope"]["id"], "1" * 32):
    head = json.dumps({"id": identity, "header": {"found": [], "answer": 100}}).encode()
    os.write(3, struct.pack("<II", len(head), 0) + head)
