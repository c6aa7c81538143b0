"""A scratch cell ends the process.

cell: added
answers: right
expect: same
"""

import os

os._exit(1)
