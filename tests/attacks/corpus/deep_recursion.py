"""Recurses until the stack ends.

answers: right
expect: err
"""

import sys

sys.setrecursionlimit(2**31 - 1)


def deeper(n):
    return deeper(n + 1) + 1


deeper(0)
