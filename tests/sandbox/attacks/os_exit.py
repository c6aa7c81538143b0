"""Leaves at once, without a word.

expected: died
"""

import os

os._exit(0)
