"""Leaves a process behind that writes later.

answers: right
expect: same
"""

import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(0.01)
            try:
                with open("@CANARY@", "a") as file:
                    file.write("the daemon was here")
            except OSError:
                pass
    os._exit(0)
