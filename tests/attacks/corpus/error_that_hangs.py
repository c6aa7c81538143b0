"""Raises an error whose text takes for ever.

expect: 0
slow: yes
"""

import time


class Slow(Exception):
    def __str__(self):
        time.sleep(1000)
        return ""


class SelfAttention:
    def __init__(self, *_):
        raise Slow
