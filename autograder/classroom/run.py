"""`autograder grade`: a class on all cores of this machine, or on those of others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from autograder.wish import Wish

LOADED = "autograder.classroom.loaded"  # what the processes are copies of


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(jobs: int, scheduler: str = "") -> Iterator[Callable]:
    """What does the work: processes here, or those of a Dask scheduler.

    They start at once, beside what else this process has to do first.
    """
    if scheduler:
        from autograder.classroom.cluster import cluster

        with cluster(scheduler) as run:
            yield run
        return
    from autograder.many.pool import Pool

    with Pool(_answer, jobs, [LOADED]) as pool:
        pool.prepare()
        yield lambda pieces: pool.run(pieces, again=_doubtful)


def _answer(job):
    """Does a job, in a process of its own."""
    from autograder.grading.work import answer

    return answer(job)


def _doubtful(result) -> bool:
    return getattr(result, "doubtful", False)


def say(text: str) -> None:
    """A line for who waits."""
    print(f"autograder: {text}", file=sys.stderr, flush=True)


def grade_class(
    source: Path,
    wish: Wish,
    as_json: bool = False,
    console: Console | None = None,
    *,
    jobs: int = 0,
    scheduler: str = "",
    keep: bool = True,
    url: str = "",
    again: bool = False,
) -> int:
    """Grades a class; the exit status (see `batch`).

    keep: whether marks go into the gradebook; url: another one than the course's. jobs: processes,
    by default one a core. again: whether also what is unchanged is graded.
    """
    with workers(jobs or cores(), scheduler) as work:
        # Only now: these imports take a second or two, in which the processes start.
        from autograder.course.course import Course
        from autograder.grading.batch import grade_source

        course, book = Course.find(), None
        if keep and course.has_answers:
            from autograder.classroom.book import Book
            from autograder.classroom.marks import Marks

            book = Marks(Book(course, url, say), course, wish.seed, again)
        try:
            return grade_source(source, wish, as_json, console, work, book)
        finally:
            if book is not None:
                book.book.close()
