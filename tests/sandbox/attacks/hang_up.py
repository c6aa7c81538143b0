"""Closes the connection and carries on.

expected: died
"""

import os
import time

os.close(3)
while True:
    time.sleep(100)
