"""Stops its parent and everything near it.

expected: ok | died
"""

import os
import signal

for pid in (os.getppid(), -1, *range(1, 70_000)):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            continue
