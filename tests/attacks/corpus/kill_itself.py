"""Kills its own process.

answers: right
expect: err
"""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
