"""Reads from address zero.

expected: died
"""

import ctypes

ctypes.string_at(0)
