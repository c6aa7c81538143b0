"""The first wrong line is the one that is wrong, and what is said of it is true."""

import dataclasses
import re

import pytest

from autograder.course.asking import Finding
from tests import first_wrong_lines
from tests.forms import examples, share
from tests.tracing.helper import look, told
from tests.tracing.programs import HELD_OUT, PROGRAMS, TUNED, Program
from tests.tracing.styles import RIGHT


def name(program: Program) -> str:
    return f"{program.task}-{program.what}"


def failing(program: Program) -> Finding:
    return next(f for f in told(program.task, program.text) if f.fails)


def said(found: Finding) -> str:
    return f"{found.message} {found.where.how if found.where else ''}"


def is_right(program: Program) -> bool:
    """Whether the line and each cause are right."""
    found = failing(program)
    line = found.where is not None and found.where.first_wrong in program.lines()
    return line and all(re.search(cause, said(found)) for cause in program.causes)


@pytest.mark.parametrize("program", share(PROGRAMS, 4), ids=name)
def test_the_line_is_right_or_nothing_is_said(program):
    where = failing(program).where
    assert where is None or where.first_wrong in program.lines()


@pytest.mark.slow
@pytest.mark.parametrize("programs", [TUNED, HELD_OUT], ids=["tuned on", "held out"])
def test_most_single_mistakes_and_pairs_get_their_line_and_cause(programs):
    single = [is_right(p) for p in programs if len(p.causes) == 1]
    pairs = [is_right(p) for p in programs if len(p.causes) == 2]
    assert sum(single) >= 0.85 * len(single)
    assert sum(pairs) >= 0.7 * len(pairs)


@pytest.mark.parametrize("program", share(PROGRAMS, 16), ids=name)
def test_what_is_said_of_the_steps_changes_no_verdict(program):
    """A mark depends on a finding's name and verdict."""
    seen = told(program.task, program.text)
    blind = told(program.task, program.text, steps_too=False)
    assert [(f.check, f.verdict) for f in seen] == [(f.check, f.verdict) for f in blind]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("style", RIGHT)
def test_nothing_goes_wrong_in_a_right_program(style, seed):
    """Its steps are looked at here although nobody asks for it."""
    assert told("self_attention.forward", RIGHT[style], seed) == ()
    assert look("self_attention.forward", RIGHT[style], seed).told() == []


def test_the_lines_are_the_same_whatever_is_drawn():
    for program in PROGRAMS[:: examples(21, 7)]:
        lines = {
            f.where.first_wrong
            for s in range(3)
            for f in told(program.task, program.text, s)
            if f.fails and f.where
        }
        assert len(lines) <= 1, program.what


@pytest.mark.parametrize("program", share(PROGRAMS, 4), ids=name)
def test_no_expected_number_is_told(program):
    """Numbers in a sentence are lines, sizes, counts and factors: none of them is a value."""
    own = look(program.task, program.text)
    values = own.bank.right(own.place).steps[-1].value.flatten().tolist()
    shown = {f"{v:.{digits}f}" for v in values for digits in (3, 4) if abs(v) > 1e-2}
    words = set(re.findall(r"-?\d+\.\d+", said(failing(program))))
    assert not words & shown


def test_where_is_plain_data():
    found = failing(PROGRAMS[0])
    fields = {f.name for f in dataclasses.fields(found.where)}
    assert fields == {"last_right", "first_wrong", "landmark", "how"}


def test_the_page_of_first_wrong_lines_says_what_is_said():
    """Where it does not: python -m tests.first_wrong_lines."""
    assert first_wrong_lines.PAGE.read_text(encoding="utf-8") == first_wrong_lines.page()
    assert len(first_wrong_lines.SHOWN) == 20
