"""Stops its own process and never wakes.

expected: timed out
seconds: 0.5
"""

import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
