"""Ends its process on the spot.

answers: right
expect: err
stock: yes
"""

import os

os._exit(0)
