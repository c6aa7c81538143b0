"""Leaves a process behind that would write later.

expected: ok
"""

import os
import time

from given import canary

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(0.01)
            try:
                with open(canary, "a") as file:
                    file.write("the daemon was here")
            except OSError:
                pass
    os._exit(0)
