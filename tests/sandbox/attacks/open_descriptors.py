"""Uses descriptors that it was not given.

expected: ok
"""

import os

from given import found

for number in range(4, 4096):
    try:
        os.fstat(number)
        found.append(str(number))
    except OSError:
        continue
