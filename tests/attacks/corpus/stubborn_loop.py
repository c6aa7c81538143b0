"""Never ends, and hears no signal and no interrupt.

answers: right
expect: err
slow: yes
"""

import signal
import time

for number in range(1, 64):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        continue
while True:
    try:
        time.sleep(1000)
    except BaseException:
        continue
