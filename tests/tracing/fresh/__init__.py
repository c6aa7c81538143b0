"""Wrong programs in odd styles, written before the rules were changed for them.

A third of them make two mistakes. They are split in halves, the first by turns, the second
(`AGAIN`) and the third by a hash of the name: one was looked at while rules were changed, the other
only counted. `MISNAMED` were written to be told wrongly, and all of them were looked at.
"""

import hashlib

from tests.tracing.fresh import heads, later, names, one_head, pairs, right, singles, third
from tests.tracing.programs import Program

PROGRAMS = [*one_head.ADD.programs, *heads.ADD.programs, *later.ADD.programs]
LOOKED_AT, COUNTED = PROGRAMS[::2], PROGRAMS[1::2]


def first_half(program: Program) -> bool:
    """Whether a program is one of those that were looked at, by a hash of its name."""
    return hashlib.sha256(program.what.encode()).digest()[0] % 2 == 0


AGAIN = [*singles.ADD.programs, *pairs.ADD.programs]
AGAIN_LOOKED_AT = [p for p in AGAIN if first_half(p)]
AGAIN_COUNTED = [p for p in AGAIN if not first_half(p)]
THIRD_LOOKED_AT, THIRD_COUNTED = third.LOOKED_AT, third.COUNTED
MISNAMED = names.ADD.programs
RIGHT = right.ADD.programs
