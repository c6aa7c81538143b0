"""Sends SIGKILL to every process it can name.

expected: ok | died
"""

import os
import signal

for pid in (-1, os.getppid(), *range(1, 70_000)):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
