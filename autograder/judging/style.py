"""PEP 8, through pycodestyle, on the lines that a student wrote."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout, suppress

import pycodestyle

from autograder.course.asking import Finding, Verdict

LONGEST_CELL = 20_000  # characters; pycodestyle's time grows with the square of what it is given
LONGEST_LINE = 400  # characters; more than that are not looked at one by one
MAX_LINE = 99  # PEP 8's upper bound; shape comments at the end of lines need it
# What a cell of a notebook cannot or need not follow: imports and blank lines around definitions
# (a cell is not a module), its last line, blanks that no notebook shows, names and lambdas (taste).
IGNORED = (
    "E121",
    "E123",
    "E126",
    "E226",
    "E24",
    "E704",
    "W503",
    "W504",  # pycodestyle's own defaults
    "E301",
    "E302",
    "E303",
    "E304",
    "E305",
    "E306",
    "E402",
    "E731",
    "E741",
    "W291",
    "W292",
    "W293",
    "W391",
    "W605",
    "E9",
    "E261",
    "E262",
    "E265",
    "E266",
)
# Comments with which pycodestyle is told to look away.
_NOQA = re.compile(r"# no(?:qa|pep8)\b", re.IGNORECASE)


def pep8(source: str, released: str = "") -> list[Finding]:
    """What pycodestyle says about the lines of `source` that do not stand in `released`."""
    given = {line.strip() for line in released.splitlines()}
    own = source.split("\n")  # as Python counts lines; `splitlines` breaks them in other places too
    if len(source) > LONGEST_CELL:
        message = f"The cell has {len(source)} characters; at most {LONGEST_CELL} are checked."
        return [Finding("pep8", Verdict.DEDUCTION, message)]
    longest = max(range(len(own)), key=lambda place: len(own[place]))
    if len(own[longest]) > LONGEST_LINE:
        length, line = len(own[longest]), longest + 1
        message = f"Line {line}: line too long ({length} > {MAX_LINE} characters) (E501)."
        return [
            Finding("pep8", Verdict.DEDUCTION, message, line, own[longest][:LONGEST_LINE].strip())
        ]
    lines = [_NOQA.sub("# ----", line) + "\n" for line in own]
    style = pycodestyle.StyleGuide(
        ignore=IGNORED,
        max_line_length=MAX_LINE,
        quiet=0,
        reporter=_Collect,
        config_file=None,
        parse_argv=False,
    )
    checker = pycodestyle.Checker("cell", lines=lines, options=style.options)
    with redirect_stdout(io.StringIO()), suppress(Exception):  # it fails on some broken texts
        checker.check_all()
    found = []
    for number, code, text in sorted(set(checker.report.found)):
        if code == "E203" and "':'" in text:
            continue  # PEP 8 asks for blanks around the colon of a slice between expressions
        line = own[number - 1] if 0 < number <= len(own) else ""
        if line.strip() not in given:
            message = f"Line {number}: {text.partition(' ')[2]} ({code})."
            found.append(Finding("pep8", Verdict.DEDUCTION, message, number, line.strip()))
    return found


class _Collect(pycodestyle.BaseReport):
    """Keeps (line, code, text) instead of printing."""

    def __init__(self, options):
        super().__init__(options)
        self.found: list[tuple[int, str, str]] = []

    def error(self, line_number, offset, text, check):
        code = super().error(line_number, offset, text, check)
        if code:
            self.found.append((line_number, code, text))
        return code
