"""Ignores every signal that can be ignored, and sleeps.

expected: timed out
seconds: 0.5
"""

import signal
import time

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(100)
