"""Many submissions at once, without nbgrader: `autograder grade FOLDER_OR_ZIP`.

Everybody who handed something in stands in the table: with the marks of the notebook that counts,
or with a sentence and no points. Exit status: 0 where the run did its work, whatever the marks; 1
where the grader itself failed on a notebook; 2 where nothing could be read; 130 where it was
stopped, with what had been graded so far.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track

from autograder.course.settings import CourseError
from autograder.grading.grade import FAULT, Grader
from autograder.intake import read as intake
from autograder.intake.collect import opened, shown
from autograder.intake.submission import Submission
from autograder.intake.who import HandedIn, Notebook, Student, sort_out
from autograder.reports.class_table import Row, print_class
from autograder.reports.report import Report

DONE, FAILED, UNREADABLE, STOPPED = 0, 1, 2, 130
MOST_SAID = 50  # lines about what is left out


def grade_source(
    source: Path,
    lesson: str | None = None,
    as_json: bool = False,
    tier: str = "auto",
    seed: int | None = None,
    console: Console | None = None,
) -> int:
    """Grades all submissions found in a folder, a submitted/ tree or a zip; the exit status."""
    with Grader(tier, seed) as grader, opened(source) as (entries, refused):
        _known(grader, lesson)
        everybody, said = sort_out(entries, Path(source).stem)
        _say([*refused, *said])
        run, stopped = Run(grader, lesson), False
        try:
            for row in run.grade(everybody):
                if as_json:
                    print(row.to_json(), flush=True)
        except KeyboardInterrupt:
            stopped = True
        finally:
            if run.rows and not as_json:
                print_class(run.sorted_rows(), console or Console())
            _say(run.said)
    if stopped:
        done = len({row.student for row in run.rows})
        total = len({one.student for one in everybody})
        print(f"autograder: stopped; {done} of {total} students were graded.", file=sys.stderr)
        return STOPPED
    if not run.rows:
        print(f"autograder: no submission was found in {source}.", file=sys.stderr)
        return UNREADABLE
    if any(row.report.error == FAULT for row in run.rows):
        return FAILED
    return UNREADABLE if all(row.report.error for row in run.rows) else DONE


def _known(grader: Grader, lesson: str | None) -> None:
    if lesson is not None and lesson not in grader.lessons:
        near = difflib.get_close_matches(lesson, grader.lessons, n=1, cutoff=0.4)
        likely = f" Did you mean {near[0]}?" if near else ""
        raise CourseError(f"There is no lesson called {shown(lesson)}.{likely}")


def _say(lines: list[str]) -> None:
    for line in lines[:MOST_SAID]:
        print(f"autograder: {line}", file=sys.stderr)
    if len(lines) > MOST_SAID:
        print(f"autograder: and {len(lines) - MOST_SAID} more like these.", file=sys.stderr)


class Run:
    """One run over a class. rows: what was graded so far; said: what else is worth a line."""

    def __init__(self, grader: Grader, asked: str | None):
        self.grader, self.asked = grader, asked
        self.rows: list[Row] = []
        self.said: list[str] = []
        self._reports: dict[tuple, Report] = {}  # of a group's notebook, which is graded once
        self._counted: dict[Student, dict[str, str]] = {}  # which notebook, by lesson
        self._order: dict[str, int] = {}

    def grade(self, everybody: list[HandedIn]) -> Iterator[Row]:
        """One row or more for each student; those without a lesson last, when it is known."""
        everybody = self._asked_for(everybody)
        self._order = {one.student.label: place for place, one in enumerate(everybody)}
        waiting: list[tuple[HandedIn, Notebook | None, str | None]] = []
        bar = Console(stderr=True)
        for one in track(everybody, "grading", console=bar, transient=True):
            if not one.notebooks:
                waiting.append((one, None, one.without))
            for notebook, submission in self._that_count(one):
                if submission.lesson is None:
                    waiting.append((one, notebook, submission.error))
                else:
                    yield self._row(one, notebook, submission)
        lessons = {row.report.lesson for row in self.rows}
        only = self.asked or (lessons.pop() if len(lessons) == 1 else None)
        for one, notebook, why in waiting:
            told = notebook.entry.shown if notebook else ""
            name = one.lesson if one.lesson in self.grader.lessons else only
            yield self._row(one, notebook, Submission(told, name, (), (), why))

    def sorted_rows(self) -> list[Row]:
        """The rows in the order of the students' names."""
        return sorted(
            self.rows, key=lambda r: (self._order[r.student.label], r.report.lesson or "")
        )

    def _asked_for(self, everybody: list[HandedIn]) -> list[HandedIn]:
        """Without the folders of other lessons, but with everybody who has only those."""
        if self.asked is None:
            return everybody
        fits = [one for one in everybody if one.lesson in (None, self.asked)]
        there = {one.student for one in fits}
        for one in everybody:
            if one.student not in there:
                there.add(one.student)
                nothing = "No notebook of this lesson was handed in."
                fits.append(HandedIn(one.student, self.asked, (), nothing))
        return fits

    def _that_count(self, one: HandedIn) -> Iterator[tuple[Notebook, Submission]]:
        """The notebooks that are graded: for each lesson the first one that can be read.

        Where none can be read, the first, so that its sentence stands in the table.
        """
        expected = self.asked or (one.lesson if one.lesson in self.grader.lessons else None)
        found = self._counted.setdefault(one.student, {})
        failed: list[tuple[Notebook, Submission]] = []
        nothing = True
        for notebook in one.notebooks:
            submission = None if expected in found else self._read(notebook, expected)
            if submission is not None and submission.error is not None:
                failed.append((notebook, submission))
                continue
            lesson = submission.lesson if submission is not None else expected
            if lesson in found:
                counts = shown(found[lesson].rpartition("/")[2])
                self.said.append(f"{_of(one, notebook)}: {counts} counts instead.")
            else:
                nothing = False
                found[lesson] = notebook.entry.shown
                yield notebook, submission
        if nothing and (one.lesson is not None or not found):
            yield from failed[:1]
            failed = failed[1:]
        for notebook, submission in failed:
            self.said.append(f"{_of(one, notebook)}: {submission.error}")

    def _read(self, notebook: Notebook, expected: str | None) -> Submission:
        entry = notebook.entry
        return intake.read_from(entry.read, entry.shown, entry.stem, self.grader.lessons, expected)

    def _row(self, one: HandedIn, notebook: Notebook | None, submission: Submission) -> Row:
        if notebook is None:
            report = replace(self.grader.grade_submission(submission), notebook=None)
        else:
            key = (id(notebook.entry), submission.lesson)
            if key not in self._reports:
                self._reports[key] = self.grader.grade_submission(submission)
            report = self._reports[key]
        source = notebook or one
        self.rows.append(Row(one.student, report, source.late, source.handed_in))
        return self.rows[-1]


def _of(one: HandedIn, notebook: Notebook) -> str:
    return f"{shown(notebook.entry.name)} of {one.student.label}"
