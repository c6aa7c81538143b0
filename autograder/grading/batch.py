"""Many submissions at once, without nbgrader: `autograder grade FOLDER_OR_ZIP`.

Everybody who handed something in stands in the table: with the marks of the notebook that counts,
or with a sentence and no points. Exit status: 0 where the run did its work, whatever the marks; 1
where the grader itself failed on a notebook; 2 where nothing could be read; 130 where it was
stopped, with what had been graded so far.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.course.settings import CourseError, did_you_mean
from autograder.grading.grade import FAULT, Grader
from autograder.grading.work import Done, File, Found, Job, Part, do, given_up, new_seed
from autograder.intake import read as intake
from autograder.intake.collect import opened, shown
from autograder.intake.submission import Submission
from autograder.intake.who import HandedIn, Notebook, Student, sort_out
from autograder.reports.class_table import Row, print_class
from autograder.reports.report import Report
from autograder.wish import Wish

DONE, FAILED, UNREADABLE, STOPPED = 0, 1, 2, 130
MOST_SAID = 50  # lines about what is left out
EVERYTHING = Wish()

Work = Callable[[Iterable[tuple[int, Job]]], Iterator[tuple[int, object]]]


def grade_source(
    source: Path,
    wish: Wish = EVERYTHING,
    as_json: bool = False,
    console: Console | None = None,
    work: Work | None = None,
    book: Kept | None = None,
) -> int:
    """Grades the submissions found in a folder, a submitted/ tree or a zip; the exit status.

    work: who does it, this process where it is left out. book: where marks are kept.
    """
    with Grader(wish.tier, wish.seed) as grader, opened(source) as (entries, refused):
        _known(grader, wish)
        everybody, said = sort_out(entries, Path(source).stem)
        everybody = _chosen(everybody, wish.students)
        _say([*refused, *said])
        run, stopped = Run(grader, wish, work, book), False
        try:
            for _ in run.grade(everybody):
                _tell(run, as_json)
        except KeyboardInterrupt:
            stopped = True
        finally:
            for _ in run.rest():
                _tell(run, as_json)
            _tell(run, as_json)
            if run.rows and not as_json:
                print_class(run.sorted_rows(), console or Console())
            _say(run.said)
    if run.kept:
        print(
            f"autograder: {run.kept} of them were graded before and are unchanged.", file=sys.stderr
        )
    if stopped:
        done = len({row.student for row in run.rows})
        total = len({one.student for one in everybody})
        told = f"autograder: stopped; {done} of {total} students were graded."
        if book is not None:
            told += " Their marks are in the gradebook; the same command goes on from here."
        print(told, file=sys.stderr)
        return STOPPED
    if not run.rows:
        print(f"autograder: no submission was found in {source}.", file=sys.stderr)
        return UNREADABLE
    if any(row.report.error == FAULT for row in run.rows):
        return FAILED
    return UNREADABLE if all(row.report.error for row in run.rows) else DONE


def _tell(run: Run, as_json: bool) -> None:
    """Prints the lines of all rows that have none yet; a stop waits until they are whole."""
    with _unstopped():
        while run.told < len(run.rows):
            run.told += 1
            if as_json:
                print(run.rows[run.told - 1].to_json(), flush=True)


@contextmanager
def _unstopped() -> Iterator[None]:
    """Lets Ctrl-C wait until what was begun is done, where this thread is the one it reaches."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked and callable(before):
        before(signal.SIGINT, None)


def _chosen(everybody: list[HandedIn], names: Sequence[str]) -> list[HandedIn]:
    """Those who are named by id, name or label; all where nobody is."""
    if not names:
        return everybody
    known = {n for one in everybody for n in _names(one.student)}
    for name in names:
        if name not in known:
            likely = did_you_mean(name, known, 0.4, shown)
            raise CourseError(f"Nobody called {shown(name)} handed anything in.{likely}")
    return [one for one in everybody if _names(one.student) & set(names)]


def _names(student: Student) -> set[str]:
    return {student.id, student.name, student.label}


def _known(grader: Grader, wish: Wish) -> None:
    """Raises `CourseError` where there is no such lesson, or no such task in it."""
    lesson = wish.lesson
    if lesson is not None and lesson not in grader.lessons:
        likely = did_you_mean(lesson, grader.lessons, 0.4, str)
        raise CourseError(f"There is no lesson called {shown(lesson)}.{likely}")
    lessons = [grader.lessons[lesson]] if lesson else grader.lessons.values()
    known = [cell.task for each in lessons for cell in each.tasks] if wish.only else []
    for task in wish.only:
        if task not in known:
            likely = did_you_mean(task, known, 0.4, str)
            raise CourseError(f"There is no task called {shown(task)}.{likely}")


def _say(lines: list[str]) -> None:
    for line in lines[:MOST_SAID]:
        print(f"autograder: {line}", file=sys.stderr)
    if len(lines) > MOST_SAID:
        print(f"autograder: and {len(lines) - MOST_SAID} more like these.", file=sys.stderr)


class Kept(Protocol):
    """Where marks are kept: a gradebook (see `classroom`)."""

    def kept(self, student: Student, job: Job) -> Done | None:
        """What is there of this very job, with nothing left to do; else None."""

    def keep(self, student: Student, job: Job, one: Found, handed_in: str, all: Done) -> Report:
        """Keeps one of the notebooks that were found; the report with all that is kept of it."""


class Run:
    """One run over a class. rows: what was graded so far; said: what else is worth a line.

    kept: how many students were graded before, and had nothing else to be graded now.
    """

    def __init__(
        self,
        grader: Grader,
        wish: Wish = EVERYTHING,
        work: Work | None = None,
        book: Kept | None = None,
    ):
        self.grader, self.asked, self.only, self.book = grader, wish.lesson, wish.only, book
        self.rows: list[Row] = []
        self.told = 0  # how many of the rows were printed
        self.said: list[str] = []
        self.kept = 0
        self._work = work or self._here
        self._everybody: list[list[HandedIn]] = []
        self._done: dict[int, Done] = {}  # what came back and is not told yet, by student
        self._same: dict[tuple, list[int]] = {}  # students of a group, whose work is under way
        self._shared: dict[tuple, tuple[Job, Done]] = {}  # ... and done, once for all of them
        self._times: Counter = Counter()
        self._order: dict[str, int] = {}
        self._waiting: list[tuple[HandedIn, Notebook | None, str | None]] = []

    def grade(self, everybody: list[HandedIn]) -> Iterator[Row]:
        """One row or more for each student, in order; those without a lesson last."""
        everybody = self._asked_for(everybody)
        self._order = {one.student.label: place for place, one in enumerate(everybody)}
        by_student: dict[Student, list[HandedIn]] = {}
        for one in everybody:
            by_student.setdefault(one.student, []).append(one)
        self._everybody = list(by_student.values())
        self._times = Counter(map(_entries, self._everybody))
        with _bar(len(self._everybody)) as advance:
            told = 0
            for _ in self._finished():
                while told in self._done:
                    yield from self._rows(told)
                    told += 1
                advance(len(self._done) + len(self.rows))
        lessons = {row.report.lesson for row in self.rows}
        only = self.asked or (lessons.pop() if len(lessons) == 1 else None)
        waiting, self._waiting = self._waiting, []
        for one, notebook, why in waiting:
            shown_as = notebook.entry.shown if notebook else ""
            name = one.lesson if one.lesson in self.grader.lessons else only
            yield self._without_lesson(one, notebook, Submission(shown_as, name, (), (), why))

    def rest(self) -> Iterator[Row]:
        """The rows of those who were graded, where a run was stopped before their turn came."""
        for place in sorted(self._done):
            yield from self._rows(place)

    def _here(self, pieces: Iterable[tuple[int, Job]]) -> Iterator[tuple[int, Done]]:
        """Does the work in this process."""
        for place, job in pieces:
            yield place, do(self.grader, job)

    def _finished(self) -> Iterator[None]:
        """Stops each time that something more is done."""
        jobs: dict[int, Job] = {}
        for place, done in self._work(self._pieces(jobs)):
            job = jobs.pop(place)
            if isinstance(done, Done) and done.unable:
                raise CourseError(done.unable)
            if not isinstance(done, Done):
                logging.getLogger(__name__).error("a piece of work failed: %s", done.why)
                done = given_up(job, self.grader.lessons, self.grader.course)
            same = _entries(self._everybody[place])
            if self._times[same] > 1:
                self._shared[same] = job, done
            for each in self._same.pop(same):
                self._done[each] = self._saved(each, job, done)
            yield
        yield

    def _pieces(self, jobs: dict[int, Job]) -> Iterator[tuple[int, Job]]:
        for place, parts in enumerate(self._everybody):
            same = _entries(parts)
            if not same:
                self._done[place] = Done()
                continue
            if same in self._shared:
                self._done[place] = self._saved(place, *self._shared[same])
                continue
            if same in self._same:
                self._same[same].append(place)
                continue
            job = self._job(parts)
            before = self.book.kept(parts[0].student, job) if self.book else None
            if before is not None:
                self._done[place] = before
                self.kept += 1
                continue
            self._same[same] = [place]
            jobs[place] = job
            yield place, job

    def _job(self, parts: list[HandedIn]) -> Job:
        given = tuple(Part(p.lesson, tuple(_file(n) for n in p.notebooks)) for p in parts)
        tier, seed = getattr(self.grader, "tier", "auto"), getattr(self.grader, "private", None)
        keeps = self.book is not None
        own = new_seed() if seed is None and keeps else seed
        return Job(given, self.asked, own, tier, self.only, notebook=keeps)

    def _saved(self, place: int, job: Job, done: Done) -> Done:
        """The same, in the gradebook too."""
        if self.book is None:
            return done
        parts, found = self._everybody[place], []
        for each in done.found:
            if each.report is not None:
                source = parts[each.part].notebooks[each.file]
                student = parts[0].student
                report = self.book.keep(student, job, each, source.handed_in, done)
                each = replace(each, report=report)
            found.append(each)
        return replace(done, found=tuple(found))

    def _rows(self, place: int) -> Iterator[Row]:
        """The rows of one student; what has to wait for the others is put aside."""
        parts, done = self._everybody[place], self._done.pop(place)
        for one in parts:
            if not one.notebooks:
                self._waiting.append((one, None, one.without))
        for part, file, text in done.said:
            self.said.append(f"{_of(parts[part], parts[part].notebooks[file])}: {text}")
        for each in done.found:
            one = parts[each.part]
            notebook = one.notebooks[each.file]
            if each.report is None:
                self._waiting.append((one, notebook, each.submission.error))
            else:
                self.rows.append(Row(one.student, each.report, notebook.late, notebook.handed_in))
                yield self.rows[-1]

    def _without_lesson(self, one: HandedIn, notebook: Notebook | None, read: Submission) -> Row:
        """The row of somebody who has no notebook, or none that can be read."""
        report = self.grader.grade_submission(read)
        source = notebook or one
        if self.book is not None and read.lesson is not None:
            job = self._job([one])
            found = Found(0, 0, read, report)
            report = self.book.keep(one.student, job, found, source.handed_in, Done((found,)))
        report = report if notebook else replace(report, notebook=None)
        self.rows.append(Row(one.student, report, source.late, source.handed_in))
        return self.rows[-1]

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


def _entries(parts: list[HandedIn]) -> tuple:
    """Equal for those who handed in the same files: a group."""
    return tuple((id(n.entry), one.lesson) for one in parts for n in one.notebooks)


def _file(notebook: Notebook) -> File:
    entry = notebook.entry
    try:
        return File(entry.shown, entry.stem, entry.read())
    except intake.Unreadable as reason:
        return File(entry.shown, entry.stem, problem=str(reason))


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar with what is done, how fast, and how long it will take; on a terminal only."""
    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task, start = progress.add_task("grading", total=total, rate=""), time.monotonic()

        def advance(done: int) -> None:
            minutes = (time.monotonic() - start) / 60
            rate = f"{done / minutes:.0f} a minute" if minutes > 0.02 else ""
            progress.update(task, completed=min(done, total), rate=rate)

        yield advance


def _of(one: HandedIn, notebook: Notebook) -> str:
    return f"{shown(notebook.entry.name)} of {one.student.label}"
