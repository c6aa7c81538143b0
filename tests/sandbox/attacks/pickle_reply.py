"""Answers with a pickle that would run on the other side.

expected: bad reply
"""

import json
import os
import pickle
import struct

from given import canary


class Run:
    def __reduce__(self):
        return os.system, (f"echo pickled >> {canary}",)


head, body = json.dumps({"id": "0" * 32, "header": {}}).encode(), pickle.dumps(Run())
os.write(3, struct.pack("<II", len(head), len(body)) + head + body)
