"""Searches its whole memory for the grader's secret.

expected: ok
"""

import re

from given import found

try:
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            low, high = (int(n, 16) for n in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and high - low < 2**28:
                try:
                    memory.seek(low)
                    data = memory.read(high - low)
                except (OSError, OverflowError, ValueError):
                    continue
                found += [m.decode() for m in re.findall(rb"canary-[0-9a-f]{32}", data)]
except OSError:
    pass
