"""How two things are told that are wrong, each in its line; and the place that a finding gets."""

from __future__ import annotations

import re
from dataclasses import replace

from autograder.course.asking import STOPS, Exercise, Finding, Where
from autograder.judging.difference import is_nameless
from autograder.tracing.edits.pairs import Mended
from autograder.tracing.look import TWO_AT_ONCE, Look
from autograder.tracing.say import listed, sentence
from autograder.tracing.text import function_around

LINE = re.compile(r"\bLine (\d{1,6}): ")


def with_another(placed: Finding, two: tuple[Mended, ...], look: Look | None) -> Finding:
    """An error with its cause, and what else is wrong, where a change of its line and one of
    another make all right."""
    if len(two) != 2:
        return placed
    first, other = two  # the first is what keeps it from stopping
    if placed.line not in (first.line, other.line) and first.line != other.line:
        parts = _by_time(two, look)
        statement, where = statement_of(parts[0].line, look), _of_the_line(parts[0], look)
        message = f"{placed.message} Two things are wrong. {_listed(parts)}"
        line = parts[0].shown
        return replace(placed, message=message, line=line, statement=statement, where=where)
    if other.line == placed.line or not (first.line == placed.line or other.known):
        return placed
    if f"line {other.line} " in placed.message.lower():  # what is wrong there is told already
        return placed
    said = f"Line {other.shown} is wrong, too: {other.known or f'{other.how}.'}"
    where = placed.where or where_of(placed.line, STOPS, look)
    return replace(placed, message=f"{placed.message} {said}", where=where)


def both(
    first: Finding, placed: Finding, two: tuple[Mended, ...], exercise: Exercise, look: Look | None
) -> Finding:
    """A finding with two changes that together make all right, or one beside a known mistake."""
    parts = _by_time(two, look)
    rest = first.message if is_nameless(first.check, exercise.task) else ""
    rest = rest.partition(TWO_AT_ONCE)[0].strip()
    for known in (each.known for each in parts if each.known):  # its line has them
        rest = re.sub(rf" ?Part \d{{1,3}} of the result: {re.escape(known)}", "", rest)
    message = f"Two things are wrong. {_listed(parts)} {rest}".strip()
    line = parts[0].shown
    told = placed.where is not None and placed.where.first_wrong == line
    where = placed.where if told else _of_the_line(parts[0], look)
    statement = statement_of(parts[0].line, look)
    return replace(placed, message=message, where=where, line=line, statement=statement)


def one_of_both(placed: Finding, two: tuple[Mended, ...], look: Look | None) -> Finding:
    """A finding with the line of one of two known mistakes, and the other's words."""
    if LINE.search(placed.message):
        return placed  # the steps tell both
    one, other = two
    rest = placed.message.partition(TWO_AT_ONCE)[0].strip()
    words = one.known or sentence(one.how)
    said = f"Two things are wrong. Line {one.shown}: {words} And: {other.known}"
    where, statement = _of_the_line(one, look), statement_of(one.line, look)
    message = f"{said} {rest}".strip()
    return replace(placed, message=message, where=where, line=one.shown, statement=statement)


def _by_time(two: tuple[Mended, ...], look: Look | None) -> list[Mended]:
    """What is wrong, in the order in which it runs; within a statement as it is written."""
    return sorted(two, key=lambda each: (*_when(each.line, look), each.shown))


def _listed(parts: list[Mended]) -> str:
    """What is wrong, line by line, and what to mend first."""
    return listed([(each.shown, each.known or sentence(each.how)) for each in parts])


def _when(line: int, look: Look | None) -> tuple[int, int]:
    """When a line runs first, as far as the steps show it; before all, what makes the object."""
    if look is None:
        return 0, line
    function = function_around(look.text, line)
    made = function is not None and function.name == "__init__"
    return (-1 if made else look.when(line, len(look.trace.steps))), line


def _of_the_line(one: Mended, look: Look | None) -> Where:
    return where_of(one.line, one.how, look, one.at)


def where_of(line: int, how: str, look: Look | None, at: int | None = None) -> Where:
    """The place of what is wrong. at: its line within a statement of several."""
    before = look.right_before(line) if look is not None else {"last_right": None}
    return Where(first_wrong=at or line, how=how, **before)


def statement_of(line: int, look: Look | None) -> str:
    return look.text.statement(line) if look is not None else ""
