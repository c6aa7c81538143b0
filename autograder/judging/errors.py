"""Errors whose text says which mistake was made: they get a name and a message of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autograder.course.asking import Finding, Sight, Verdict
from autograder.judging.compare import compare


def named_errors(sight: Sight, *, errors: Sequence[tuple[str, str, str]]) -> list[Finding]:
    """The usual judge, but errors that are known by their text are told apart first.

    errors: (a pattern of `re`, the finding's name, its message); the first that is found in the
    text of a call's error counts.

        judge=partial(named_errors, errors=[("leaf Variable", "in-place.input", "...")])
    """
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        for pattern, check, message in errors if got.error else ():
            if re.search(pattern, got.error["message"]):
                line, statement = got.error["line"], got.error["statement"]
                return [Finding(check, Verdict.WRONG, message, line, statement, tried=call.says)]
    return compare(sight)
