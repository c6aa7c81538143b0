"""Reads where nothing is.

answers: right
expect: err
"""

import ctypes

ctypes.string_at(0)
