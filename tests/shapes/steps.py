"""Counts the lines of the checker's own code that a call executes: work without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import autograder.shapes

FOLDER = str(Path(autograder.shapes.__file__).parent)


def steps(function: Callable[[], object]) -> int:
    """How many lines of `autograder/shapes` are executed by a call."""
    count = 0

    def local(frame, event, arg):
        nonlocal count
        count += event == "line"
        return local

    def new_frame(frame, event, arg):
        return local if frame.f_code.co_filename.startswith(FOLDER) else None

    before = sys.gettrace()
    sys.settrace(new_frame)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
