"""Kills its own process.

expected: died
"""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
