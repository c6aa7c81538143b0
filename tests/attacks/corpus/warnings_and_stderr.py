"""Warns, logs and prints on stderr, as honest code does.

answers: right
expect: same
stock: yes
"""

import logging
import sys
import warnings

warnings.warn("careful", stacklevel=1)
logging.getLogger().error("oh dear")
print("a note", file=sys.stderr)
