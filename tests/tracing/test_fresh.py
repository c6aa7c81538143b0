"""Wrong programs in odd styles: the line is right or nothing is said; errors are told by cause."""

import re

import pytest

from tests.tracing.fresh import COUNTED, LOOKED_AT, PROGRAMS
from tests.tracing.fresh.errors import ADD
from tests.tracing.test_first_line import failing, is_right

FEW = PROGRAMS[::9]


def line_is_right_or_none(program) -> bool:
    where = failing(program).where
    return where is None or where.first_wrong in program.lines()


@pytest.mark.parametrize("program", FEW, ids=[p.what for p in FEW])
def test_a_line_is_right_or_nothing_is_said(program):
    assert line_is_right_or_none(program)


@pytest.mark.slow
@pytest.mark.parametrize("programs", [LOOKED_AT, COUNTED], ids=["looked at", "counted"])
def test_no_program_gets_a_wrong_line_and_most_get_the_right_one(programs):
    assert [p.what for p in programs if not line_is_right_or_none(p)] == []
    assert sum(map(is_right, programs)) >= 0.7 * len(programs)


@pytest.mark.parametrize("program", ADD.programs, ids=[p.what for p in ADD.programs])
def test_an_error_is_told_by_its_cause(program):
    found = failing(program)
    assert re.search(program.causes[0], found.message)
    assert line_is_right_or_none(program)
