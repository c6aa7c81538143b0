"""Overflows the stack of the interpreter.

expected: died | bad reply | memory
"""

import sys

sys.setrecursionlimit(10**9)


def down(n):
    return repr(down(n + 1)) + eval("down(n + 1)")


down(0)
