"""Many submissions at once, without nbgrader: `autograder grade FOLDER_OR_ZIP`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track

from autograder.collect import collect
from autograder.grade import Grader
from autograder.report import Report, print_class

PASSED, FAILED, UNREADABLE = 0, 1, 2


def grade_source(source: Path, lesson: str | None, as_json: bool, tier: str, seed: int | None):
    """Grades all submissions found in a folder, a submitted/ tree or a zip; the exit status."""
    with tempfile.TemporaryDirectory(prefix="collected-") as work, Grader(tier, seed) as grader:
        found, refused = collect(source, Path(work))
        for line in refused:
            print(f"autograder: {line}", file=sys.stderr)
        rows: list[tuple[str, Report]] = []
        waiting = track(found, "grading", console=Console(stderr=True), transient=True)
        for submission in waiting:
            report = grader.grade(submission.path, lesson or submission.lesson)
            rows.append((submission.student, report))
            if as_json:
                data = {"student": submission.student, **json.loads(report.to_json())}
                print(json.dumps(data, ensure_ascii=False), flush=True)
    if not rows:
        print(f"autograder: no submission was found in {source}.", file=sys.stderr)
        return UNREADABLE
    if not as_json:
        print_class(rows, Console())
    if all(report.error for _, report in rows):
        return UNREADABLE
    return PASSED if all(report.passed for _, report in rows) else FAILED
