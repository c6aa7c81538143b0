"""Raises an error whose text is what was found in places that are nobody's business.

expect: 0
"""

import glob
import os

found = []
places = ["/etc/shadow", "/root/.ssh/*", "/proc/*/environ", "/proc/*/mem", "/proc/*/maps"]
places += ["@CANARY@", "@FOLDER@/*", "@REPOSITORY@/autograder/*.py", "/home/*/*", "../*"]
for path in [p for place in places for p in glob.glob(place)]:
    try:
        with open(path, "rb") as file:
            if b"canary" in file.read(100_000):
                found.append(path)
    except OSError:
        continue
found += [value for value in os.environ.values() if "canary" in value]
if found:
    raise ValueError(f"canary seen: {found}")
