"""Sends bytes that are no frame.

expected: too much output | bad reply
"""

import os

os.write(3, b"\xff" * 4096)
