"""Stops its own process with a signal that cannot be caught.

answers: right
expect: err
slow: yes
"""

import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
