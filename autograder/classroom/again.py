"""Marks that are in the gradebook, judged once more: `autograder regrade` and `autograder explain`.

What was handed in is read from the gradebook's records, with the seed that each mark was made with:
where a mark changes, the check has changed and not the draw.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from autograder.classroom.book import Book
from autograder.course.course import Course
from autograder.course.settings import CourseError
from autograder.grading.converters import what_was_graded
from autograder.grading.grade import FAULT, Grader
from autograder.grading.records import Mark, Record, marks_of
from autograder.grading.work import Done, Job, made_from
from autograder.reports.report import Report, Result, number, print_report, visible
from autograder.versions import version
from autograder.wish import Wish

SAME, OTHER, FAILED = 0, 1, 1


@dataclass(frozen=True)
class Change:
    """One mark as it is and as it would be."""

    student: str
    lesson: str
    task: str
    before: Result
    after: Result

    @property
    def of_points(self) -> bool:
        return self.before.points != self.after.points


def regrade(
    book: Book,
    work,
    wish: Wish,
    write: bool | None = None,
    console: Console | None = None,
) -> int:
    """Shows which marks would change, and writes them where that is wanted; the exit status.

    write: None asks, on a terminal. A person's marks, comments and bonus stay as they are.
    """
    console = console or Console()
    wanted = list(_wanted(book, wish))
    if not wanted:
        raise CourseError("The gradebook has no such marks. `autograder grade` makes them.")
    judged, failed = _judged(book, work, wish.tier, wanted)
    changes = [change for pair in judged for change in _changes(*pair)]
    _show([c for c in changes if c.of_points], len(judged), console)
    words = sum(not c.of_points for c in changes)
    if words:
        console.print(f"{words} more marks keep their points and are explained in other words.")
    for name in failed:
        print(f"autograder: {name}: {FAULT}", file=sys.stderr)
    if write is None:
        write = _asked(changes)
    if not write:
        if changes:
            console.print("Nothing was written. With --write they are.")
        return FAILED if failed else SAME
    for before, after in judged:
        _write(book, before, after)
    console.print(f"{len(judged)} submissions are written.")
    return FAILED if failed else SAME


Named = tuple[str, Record]


def _wanted(book: Book, wish: Wish) -> Iterator[tuple[Named, tuple[str, ...]]]:
    """The records that are meant, each with its student and the tasks to judge."""
    for name in [wish.lesson] if wish.lesson else book.lessons():
        for student in book.students(name):
            if wish.students and student not in wish.students:
                continue
            record = book.record(student, name)
            tasks = tuple(t for t in record.marks if not wish.only or t in wish.only)
            if tasks and record.report.error is None:
                yield (student, record), tasks


def _judged(book: Book, work, tier: str, wanted) -> tuple[list[tuple[Named, Record]], list[str]]:
    """Each record with what it would be now; and whose could not be judged."""
    pieces = {}
    for place, ((_, record), tasks) in enumerate(wanted):
        for seed in {record.marks[task].seed for task in tasks}:
            own = tuple(t for t in tasks if record.marks[t].seed == seed)
            every = len(own) == len(record.marks)
            job = Job((), record.report.lesson, seed, tier, () if every else own)
            pieces[place, seed] = replace(job, submission=record.submission)
    fresh: dict[int, dict[str, Mark]] = {}
    failed = []
    for (place, seed), done in work(pieces.items()):
        (student, record), tasks = wanted[place]
        if isinstance(done, Done) and done.unable:
            raise CourseError(done.unable)
        report = done.found[0].report if isinstance(done, Done) else None
        if report is None or report.error is not None:
            failed.append(student)
            continue
        made = made_from(book.course, record.digest, record.report.lesson, tier)
        marks = marks_of(report, seed, version(), made)
        mine = {t: m for t, m in marks.items() if t in tasks and record.marks[t].seed == seed}
        fresh.setdefault(place, {}).update(mine)
    judged = []
    for place, marks in sorted(fresh.items()):
        (student, before), _ = wanted[place]
        merged = {task: marks.get(task, mark) for task, mark in before.marks.items()}
        results = tuple(mark.result for mark in merged.values())
        after = replace(before, marks=merged, report=replace(before.report, results=results))
        made = {m.made for m in merged.values()}
        judged.append(((student, before), replace(after, made=made.pop() if made else "")))
    return judged, failed


def _changes(named: Named, after: Record) -> Iterator[Change]:
    student, before = named
    for task, mark in before.marks.items():
        if mark.result != after.marks[task].result:
            yield Change(student, before.report.lesson, task, mark.result, after.marks[task].result)


def _show(changes: list[Change], count: int, console: Console) -> None:
    if not changes:
        console.print(f"No mark of {count} submissions would change.")
        return
    table = Table()
    for name in ("student", "task", "points", "would be", "because"):
        table.add_column(name, justify="right" if name in ("points", "would be") else "left")
    for each in changes:
        told = [f.message for f in each.after.findings if f.fails or f.points]
        row = (
            each.student,
            each.task,
            number(each.before.points),
            number(each.after.points),
            told[0] if told else each.after.status,
        )
        table.add_row(*map(visible, row))
    console.print(table)
    who = len({change.student for change in changes})
    console.print(f"{len(changes)} marks of {who} students would change, of {count} submissions.")


def _asked(changes: list[Change]) -> bool:
    if not changes or not sys.stdin.isatty():
        return False
    try:
        return input("Write them? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _write(book: Book, named: Named, after: Record) -> None:
    student, before = named
    graded = what_was_graded(book.notebook(student, before.report.lesson))
    file = graded.get("file", ""), graded.get("fingerprint", "")
    book.save(student, student, after, book.text(after), file)


def explain(book: Book, student: str, task: str, console: Console | None = None) -> int:
    """Makes one judgement again as it was made; the exit status says whether it is the same."""
    console = console or Console()
    record = _with_task(book, student, task)
    mark, lesson = record.marks[task], record.report.lesson
    if record.report.error is not None:
        raise CourseError(f"{student}'s notebook has no judgement: {record.report.error}")
    with Grader(mark.isolation, mark.seed, book.course) as grader:
        report = grader.grade_submission(record.submission, only=(task,))
    result = report.result(task)
    name, most = f"{student}: {task}", result.max_points
    told = Report(name, lesson, report.isolation, (result,), (), report.error, most)
    print_report(told, console)
    console.print(
        f"  in the gradebook: {number(mark.result.points)} of {number(mark.result.max_points)}, "
        f"made with seed {mark.seed}, isolation {mark.isolation}, version {mark.version}"
    )
    if mark.version != version():
        console.print(f"  The grader is another one now: version {version()}.")
    if (result.points, result.passed) == (mark.result.points, mark.result.passed):
        console.print("  The judgement is the same.")
        return SAME
    console.print("  The judgement is another one now. `autograder regrade` shows all that are.")
    return OTHER


def _with_task(book: Book, student: str, task: str) -> Record:
    known: set[str] = set()
    for lesson in book.lessons():
        record = book.record(student, lesson)
        if record is not None:
            known |= set(record.marks)
            if task in record.marks:
                return record
    if not known:
        raise CourseError(f"The gradebook has no marks of {student}.")
    raise CourseError(
        f"The gradebook has no mark of {student} for {task}; it has some for "
        f"{', '.join(sorted(known))}."
    )


def opened(url: str = "") -> Book:
    """The gradebook of the course that this process works in."""
    from autograder.classroom.run import say

    return Book(Course.find(), url, say)
