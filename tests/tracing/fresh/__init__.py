"""Wrong programs in odd styles, written before the rules were changed for them.

A third of them make two mistakes. They are split in halves by turns: one was looked at while rules
were changed, the other only counted.
"""

from tests.tracing.fresh import heads, later, one_head

PROGRAMS = [*one_head.ADD.programs, *heads.ADD.programs, *later.ADD.programs]
LOOKED_AT, COUNTED = PROGRAMS[::2], PROGRAMS[1::2]
