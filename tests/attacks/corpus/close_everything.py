"""Closes every file and socket of its process.

answers: right
expect: err
"""

import os

os.closerange(0, 4096)
