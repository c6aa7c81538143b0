"""Writes marks into the gradebook, now and later.

expect: 0
"""

import os
import sqlite3
import time

places = ["@FOLDER@/gradebook.db", "../../../gradebook.db", "gradebook.db"]
if os.fork() == 0:
    os.setsid()
    for _ in range(200):
        for place in places:
            try:
                if os.path.exists(place):
                    with sqlite3.connect(place) as db:
                        db.execute("update grade set manual_score = 99")
            except sqlite3.Error:
                continue
        time.sleep(0.05)
    os._exit(0)
