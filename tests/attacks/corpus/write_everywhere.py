"""Writes wherever it may.

answers: right
expect: same
"""

import contextlib
import os
import sys

places = ["@CANARY@", "@FOLDER@/new.txt", "/etc/passwd", "@REPOSITORY@/autograder/grade.py"]
places += [f"{path}/sitecustomize.py" for path in sys.path if path]
for place in places:
    with contextlib.suppress(OSError), open(place, "a") as file:
        file.write("# harm\n")
    with contextlib.suppress(OSError):
        os.chmod(place, 0o777)
