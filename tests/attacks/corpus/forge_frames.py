"""Answers on the grader's socket before it is asked.

expect: 0
"""

import json
import os
import struct

answer = {"id": "0" * 32, "header": {"outcomes": [{"value": 1.0}] * 3, "errors": [None]}}
head = json.dumps(answer).encode()
for number in range(3, 12):
    try:
        os.write(number, struct.pack("<II", len(head), 0) + head)
    except OSError:
        continue
