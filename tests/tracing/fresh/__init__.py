"""Wrong programs in odd styles, written before the rules were changed for them.

A third of them make two mistakes. They are split in halves, the first by turns, the second
(`AGAIN`), the third and the fourth by a hash of the name: one was looked at while rules were
changed, the other only counted. The fifth was written after the fourth was looked at, and counted
as a whole. The sixth to the twenty-sixth hold what was told wrongly, or not at all, until a rule
was changed for it.
`MISNAMED` and `PROVOKED` were written to be told wrongly, and all of them were looked
at.
"""

import hashlib

from tests.tracing.fresh import heads, later, names, one_head, pairs, right, singles, third
from tests.tracing.fresh.program import programs_in
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
FOURTH, FIFTH = programs_in("fourth.txt"), programs_in("fifth.txt")
SIXTH, SEVENTH = programs_in("sixth.txt"), programs_in("seventh.txt")
EIGHTH, NINTH = programs_in("eighth.txt"), programs_in("ninth.txt")
TENTH, ELEVENTH = programs_in("tenth.txt"), programs_in("eleventh.txt")
TWELFTH, THIRTEENTH = programs_in("twelfth.txt"), programs_in("thirteenth.txt")
FOURTEENTH = programs_in("fourteenth.txt")
FIFTEENTH, SIXTEENTH = programs_in("fifteenth.txt"), programs_in("sixteenth.txt")
SEVENTEENTH = programs_in("seventeenth.txt")
EIGHTEENTH, NINETEENTH = programs_in("eighteenth.txt"), programs_in("nineteenth.txt")
TWENTIETH = programs_in("twentieth.txt")
TWENTY_FIRST, TWENTY_SECOND = programs_in("twenty_first.txt"), programs_in("twenty_second.txt")
TWENTY_THIRD, TWENTY_FOURTH = programs_in("twenty_third.txt"), programs_in("twenty_fourth.txt")
TWENTY_FIFTH, TWENTY_SIXTH = programs_in("twenty_fifth.txt"), programs_in("twenty_sixth.txt")


def _in_the_first_half(program: Program) -> bool:
    return hashlib.sha256(f"fourth:{program.what}".encode()).digest()[0] % 2 == 0


FOURTH_LOOKED_AT = [p for p in FOURTH if _in_the_first_half(p)]
FOURTH_COUNTED = [p for p in FOURTH if not _in_the_first_half(p)]
MISNAMED = names.ADD.programs
PROVOKED = programs_in("provoked.txt")
RIGHT = [*right.ADD.programs, *programs_in("right_again.txt")]
