"""Takes memory in twelve processes at once.

answers: right
expect: err
slow: yes
"""

import os
import time

for _ in range(12):
    if os.fork() == 0:
        blocks = [bytearray(b"x" * 200_000_000)]
        time.sleep(60)
        os._exit(len(blocks))
time.sleep(60)
