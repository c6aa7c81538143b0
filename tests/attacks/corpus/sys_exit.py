"""Asks Python to exit.

answers: right
expect: err
"""

import sys

sys.exit(0)
