"""A finding in words. The one place that says how it reads: on a card, in a table, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from autograder.course.asking import STOPS, Finding, Verdict, is_plural

SHAPES = "shape_comments"
TAKEN = (Verdict.DEDUCTION, Verdict.BONUS)  # verdicts of what a rubric takes and gives
UNANSWERED = "unanswered"


def rows(finding: Finding) -> list[tuple[str, str]]:
    """The lines of one finding as (label, text)."""
    if finding.verdict in TAKEN:
        points = f"{finding.points:+g}: " if finding.points else ""
        said = [(finding.verdict, f"{points}{finding.message}")]
        where = where_in_words(finding)
        return [*said, *([("where", where)] if where else []), *_place(finding)]
    if finding.check == SHAPES and finding.line:
        said = finding.message.removeprefix(f"Line {finding.line}: ")
        about = f"`{finding.statement}`" if finding.verdict == Verdict.TRUE else said
        return [(f"line {finding.line}", f"{finding.verdict}: {about}")]
    parts = (
        ("tried", finding.tried),
        ("expected", finding.expected),
        ("got", finding.got),
        ("likely" if finding.fails else "note", finding.message),
        ("where", where_in_words(finding)),
    )
    return [(label, text) for label, text in parts if text] + _place(finding)


def _place(finding: Finding) -> list[tuple[str, str]]:
    return [("line", f"{finding.line}: {finding.statement}")] if finding.statement else []


def where_in_words(finding: Finding) -> str:
    """The last right line and the first wrong one, in one or two sentences; '' where none is known.

    The statement of the first wrong line stands in a line of its own.
    """
    if finding.where is None:
        return ""
    last, first = finding.where.last_right, finding.where.first_wrong
    landmark, how = finding.where.landmark, finding.where.how
    start = ""
    if last is not None and last < first:
        are = "these are" if is_plural(landmark) else "this is"
        start = f"Line {last} is right so far{f': {are} {landmark}' if landmark else ''}. "
    elif last is not None and landmark:
        comes = "come" if is_plural(landmark) else "comes"
        start = f"Within line {last}, {landmark} {comes} out right. "
    if how == STOPS:  # nobody knows whether all lines before it are right
        return f"{start}Line {first} stops with an error."
    return f"{start}{first_wrong(first)}{f': {how}' if how else ''}."


def first_wrong(line: int) -> str:
    return f"Line {line} is the first that goes wrong"


def to_json(finding: Finding) -> dict:
    """Every field of a finding."""
    return {
        "check": finding.check,
        "verdict": finding.verdict,
        "message": finding.message,
        "line": finding.line,
        "statement": finding.statement,
        "tried": finding.tried,
        "expected": finding.expected,
        "got": finding.got,
        "points": finding.points,
        "mistake": finding.mistake,
        "where": asdict(finding.where) if finding.where is not None else None,
    }


def told_once(found: Mapping[str, tuple[Finding, ...]]) -> dict[str, tuple[Finding, ...]]:
    """The findings of the tasks that one cell answers, each cause in full for the first task only.

    A cell that cannot be read fails each of its tasks in the same words: the later ones refer to
    the first. That its shapes cannot be seen either follows from it, and is not told.
    """
    broken = any(f.verdict == Verdict.ERROR for findings in found.values() for f in findings)
    first: dict[tuple, str] = {}
    out = {}
    for task, findings in found.items():
        said = []
        for finding in findings:
            if broken and finding.verdict == Verdict.CANNOT_TELL and not finding.line:
                continue
            cause = (finding.check, finding.verdict, finding.message, finding.line)
            earlier = first.setdefault(cause, task)
            if earlier != task and finding.fails and finding.check != UNANSWERED:
                finding = _refer(finding, earlier)
            said.append(finding)
        out[task] = tuple(said)
    return out


def _refer(finding: Finding, task: str) -> Finding:
    line = f" (line {finding.line})" if finding.line else ""
    message = f"The same as for {task}{line}."
    return Finding(finding.check, finding.verdict, message, finding.line)
