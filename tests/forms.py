"""The two forms of a suite: the small one of `make test`, and the whole one of `make test-all`.

Many claims are about a product: every wrong program on every draw, every slip in every style. The
whole form tries all of it. The small form tries a share of it that is always the same, and that
touches everything which has a name (each exercise, each mistake, each style) at least once; what
is left to the whole form is marked `slow`. What stands in the whole form alone needs minutes or a
server by its nature, or is a walk through many commands whose rules have tests of their own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator

import pytest

small = False  # whether the small form runs: set by tests/conftest.py


def in_whole_form(case: object):
    """The case, left out of the small form."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)


def first_of(*cases) -> list:
    """The first case in the small form, all of them in the whole one: such as several draws."""
    return [cases[0], *([] if small else map(in_whole_form, cases[1:]))]


def examples(few: int, many: int) -> int:
    """How many random examples are tried: few in the small form, many in the whole one."""
    return few if small else many


def taken(
    cases: Iterable, every: int, touching: Callable[[object], Hashable] | None = None
) -> Iterator[tuple[object, bool]]:
    """Each case, and whether the small form takes it: one of `every`, and the first of each kind.

    touching: what has to be touched by a case, such as its mistake. Which cases are taken depends
    on their own text alone: a new case changes nothing for the others.
    """
    touched = set()
    for case in cases:
        kind = touching(case) if touching else None
        new = touching is not None and kind not in touched
        touched.add(kind)
        yield case, new or zlib.crc32(repr(case).encode()) % every == 0


def share(
    cases: Iterable, every: int, touching: Callable[[object], Hashable] | None = None
) -> list:
    """What the small form takes of the cases, all of them in the whole one: see `taken`.

    What the small form leaves out is not even collected by it, since each process would do that
    anew.
    """
    return [
        case if is_taken else in_whole_form(case)
        for case, is_taken in taken(cases, every, touching)
        if is_taken or not small
    ]
