"""The work of one process: from what a student handed in to reports, and graded notebooks.

A `Job` holds all that it takes, so that it may be done anywhere and twice: the same job gives the
same answer. No gradebook is known here.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import secrets
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from autograder.course.course import Course
from autograder.course.lesson import Lesson
from autograder.course.settings import CourseError
from autograder.grading import figures
from autograder.grading.grade import FAULT, Grader, most, nothing_earned
from autograder.grading.notebooks import as_text, filled, is_graded
from autograder.intake.collect import shown
from autograder.intake.read import Unreadable, read_from
from autograder.intake.repair import rebuild
from autograder.intake.submission import Submission
from autograder.one_thread import one_thread
from autograder.reports.report import Report
from autograder.sandbox import ChildFailed
from autograder.versions import made_with


@dataclass(frozen=True)
class File:
    """A notebook file's bytes, or why there are none. shown, stem: see `read_from`."""

    shown: str
    stem: str
    data: bytes = b""
    problem: str = ""

    def take(self) -> bytes:
        if self.problem:
            raise Unreadable(self.problem)
        return self.data


@dataclass(frozen=True)
class Part:
    """What a student handed in for one lesson; for an unknown one where lesson is None.

    files: the one that should count first.
    """

    lesson: str | None
    files: tuple[File, ...]


@dataclass(frozen=True)
class Job:
    """All that one student handed in, and how it is to be judged.

    asked: the lesson that was asked for, if any. seed: the private seed that the marks are made
    with; where it is None every question draws its own. only: the tasks to judge; all where it is
    empty. shown: whether to run each notebook once more, for what it prints and draws. notebook:
    whether to write the graded notebook. submission: what was read before, in the place of parts.
    """

    parts: tuple[Part, ...]
    asked: str | None = None
    seed: int | None = None
    tier: str = "auto"
    only: tuple[str, ...] = ()
    shown: bool = False
    notebook: bool = False
    submission: Submission | None = None


@dataclass(frozen=True)
class Found:
    """A notebook that counts, or why a part has none: by the places of its part and file.

    report: None where the lesson is not known. shown: by cell, what it prints and draws.
    """

    part: int
    file: int
    submission: Submission
    report: Report | None = None
    notebook: str = ""
    shown: dict[str, figures.Shown] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What came of a job. said: (part, file, sentence) about files that do not count.

    doubtful: something failed while the machine was short of time or memory. unable: why the work
    cannot be done here, of any job. seed, digest: of the job that it was.
    """

    found: tuple[Found, ...] = ()
    said: tuple[tuple[int, int, str], ...] = ()
    doubtful: bool = False
    unable: str = ""
    seed: int | None = None
    digest: str = ""


def digest_of(job: Job) -> str:
    """What tells one hand-in from another: the files, their names, and for what they came."""
    total = hashlib.sha256()
    for part in job.parts:
        total.update(repr((job.asked or part.lesson, len(part.files))).encode())
        for file in part.files:
            total.update(repr((file.stem, len(file.data), file.problem)).encode() + file.data)
    return total.hexdigest()


def made_of(course: Course, job: Job, lesson: str, seed: int | None = None) -> str:
    """The sum of all that decides a job's marks. seed: one that was asked for."""
    return made_from(course, digest_of(job), lesson, job.tier, seed)


def made_from(course: Course, digest: str, lesson: str, tier: str, seed: int | None = None) -> str:
    """The same, for what was handed in by its digest."""
    whole = made_with(course, lesson, tier, seed)
    return hashlib.sha256(f"{digest} {whole}".encode()).hexdigest()


def new_seed() -> int:
    """A seed that nobody can foresee."""
    return secrets.randbits(62)


def do(grader: Grader, job: Job) -> Done:
    """Reads and grades what one student handed in."""
    counted: dict[str | None, str] = {}
    found: list[Found] = [Found(0, 0, job.submission)] if job.submission else []
    said: list[tuple[int, int, str]] = []
    for place, part in enumerate(job.parts):
        expected = job.asked or (part.lesson if part.lesson in grader.lessons else None)
        failed: list[Found] = []
        nothing = True
        for number, file in enumerate(part.files):
            submission = None if expected in counted else _read(file, expected, grader.lessons)
            if submission is not None and submission.error is not None:
                failed.append(Found(place, number, submission))
                continue
            lesson = submission.lesson if submission is not None else expected
            if lesson in counted:
                said.append((place, number, f"{counted[lesson]} counts instead."))
            else:
                nothing = False
                counted[lesson] = _short(file.shown)
                found.append(Found(place, number, submission))
        if nothing and (part.lesson is not None or not counted):
            found += failed[:1]
            failed = failed[1:]
        said += [(f.part, f.file, f.submission.error) for f in failed]
    before = _pressed(grader)
    graded = tuple(judged(grader, job, f) if f.submission.lesson else f for f in found)
    doubtful = _pressed(grader) > before
    return Done(graded, tuple(said), doubtful, seed=job.seed, digest=digest_of(job))


def read_all(job: Job, lessons: dict[str, Lesson]) -> Found:
    """What is read of a job with one file, and not judged yet."""
    return Found(0, 0, _read(job.parts[0].files[0], job.asked, lessons))


def _read(file: File, expected: str | None, lessons: dict[str, Lesson]) -> Submission:
    return read_from(file.take, file.shown, file.stem, lessons, expected)


def _short(path: str) -> str:
    return shown(path.rpartition("/")[2])


def _pressed(grader: Grader) -> int:
    return sum(box.pressed for box in getattr(grader, "boxes", ()))


def judged(grader: Grader, job: Job, found: Found) -> Found:
    """The same with its report, and what else the job asks for."""
    submission = found.submission
    how = {} if job.seed is None and not job.only else {"seed": job.seed, "only": job.only}
    report = grader.grade_submission(submission, **how)
    if not job.notebook and not job.shown:
        return Found(found.part, found.file, submission, report)
    lesson = grader.lessons[submission.lesson]
    notebook = rebuild(lesson, submission)
    shown = {}
    if job.shown and not submission.error:
        cells = [(c.id, c.source) for c in notebook.cells if c.cell_type == "code"]
        graded = {c.id for c in notebook.cells if is_graded(c)}
        shown = figures.show(grader.box(lesson), [c for c in cells if c[0] not in graded])
    text = ""
    if job.notebook:
        text = as_text(filled(notebook, lesson, grader.course, report, shown))
    return Found(found.part, found.file, submission, report, text, shown)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # no more can be written there


# --- in a process of its own ---------------------------------------------------------------------
_ONE = threading.Lock()  # a worker of Dask may have several threads; a grader is for one


@cache
def _grader(tier: str) -> Grader:
    """One grader, and its warm sandboxes, for all jobs of a process."""
    opened = Grader(tier).__enter__()
    _at_end(lambda: opened.__exit__(None, None, None))
    return opened


def _at_end(close: Callable[[], None]) -> None:
    """Runs `close` when this process ends, whichever way it was started."""
    from multiprocessing.util import Finalize

    atexit.register(close)
    Finalize(None, close, exitpriority=10)


def answer(job: Job) -> Done:
    """As `do`, with this process's own grader; what hinders the work comes as a sentence."""
    one_thread()
    try:
        with _ONE:
            return do(_grader(job.tier), job)
    except (CourseError, ChildFailed) as error:
        return Done(unable=str(error))
    except OSError as error:
        if error.errno not in FULL:
            raise
        place = error.filename or f"A file in {tempfile.gettempdir()}"
        return Done(
            unable=f"{place} cannot be written ({error.strerror}). What was graded before is "
            "kept; make room there and run this again."
        )


def given_up(job: Job, lessons: dict[str, Lesson], course: Course) -> Done:
    """What is said of a job whose processes ended, or failed by a fault of ours."""
    for place, part in enumerate(job.parts):
        for number, file in enumerate(part.files):
            read = _read(file, job.asked or part.lesson, lessons)
            lesson = lessons.get(read.lesson or "")
            if lesson is None:
                continue
            zero = nothing_earned(lesson)
            report = Report(file.shown, lesson.name, "none", zero, (), FAULT, most(lesson))
            text = ""
            if job.notebook:
                text = as_text(filled(rebuild(lesson, read), lesson, course, report, {}))
            return Done((Found(place, number, read, report, text),))
    return Done()
