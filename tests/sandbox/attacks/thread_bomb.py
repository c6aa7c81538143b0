"""Starts threads until no more can be had.

expected: ok
"""

import threading

from given import found

stop = threading.Event()
for _ in range(5000):
    try:
        threading.Thread(target=stop.wait, daemon=True).start()
    except RuntimeError:
        break
else:
    found.append("5000 threads")
