"""Answers rightly, then does not let its process end.

answers: right
expect: same
"""

import atexit
import threading
import time

threading.Thread(target=time.sleep, args=(1000,)).start()
atexit.register(lambda: time.sleep(1000))
