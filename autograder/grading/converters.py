"""nbgrader's steps on a class, as they hold here: generate, autograde, feedback.

* Beside a notebook lie other files; none of them is copied on but nbgrader's own two, which say
  when and by whom a submission was made.
* `submitted/` is read and never written to. A student's notebook may be called anything.
* A submission is graded anew where another notebook was handed in than the one that was graded;
  where the timestamp is newer or `--force` is given, as nbgrader does.
* Several processes may grade the same class: each submission is one process's at a time.
"""

from __future__ import annotations

import fcntl
import fnmatch
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import api, autogradeapp, generateassignmentapp, generatefeedbackapp
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc
from traitlets import Integer

from autograder.course.course import Course
from autograder.course.lesson import Role
from autograder.grading.gradebook import Grade, isolation
from autograder.grading.notebooks import GRADED
from autograder.grading.work import Done, File, Found, Job, Part, answer, digest_of, new_seed
from autograder.intake.read import Unreadable, read, read_bytes, refuse_linked_folders
from autograder.intake.repair import clean
from autograder.many.ahead import Ahead
from autograder.many.pool import Pool

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
MOST_NOTEBOOKS = 20  # of one submission, that are looked into
MOST_FILES = 20_000  # of one submission, that are looked at
DEEPEST = 4  # folders
NOTHING = "No notebook was handed in."
LOADED = "autograder.classroom.loaded"  # what the processes that grade ahead are copies of
WORTH_IT = 3  # submissions for which other processes are started


def install() -> None:
    """Puts these converters where nbgrader's commands and formgrader look for its own."""
    generateassignmentapp.GenerateAssignment = api.GenerateAssignment = GenerateRelease
    autogradeapp.Autograde = api.Autograde = GradeSubmissions
    generatefeedbackapp.GenerateFeedback = api.GenerateFeedback = GeneratePages
    CourseDirectory.get_existing_timestamp = lambda self, folder: timestamp(Path(folder))
    api.NbGraderAPI.get_submitted_timestamp = _submitted_timestamp


def _submitted_timestamp(self, assignment_id: str, student_id: str) -> datetime | None:
    where = self.coursedir.submitted_directory
    return timestamp(Path(self.coursedir.format_path(where, student_id, assignment_id)))


def timestamp(folder: Path) -> datetime | None:
    """When a submission was made; None where its timestamp.txt is none, or is no date.

    nbgrader's own reading of it ends the whole run for a file that it cannot read.
    """
    try:
        return parse_utc(read_bytes(folder / TIMESTAMP, 200).decode("utf-8").strip())
    except (Unreadable, OverflowError, ValueError):
        return None


class _Step(BaseConverter):
    """What the steps have in common; stands between each of them and nbgrader's base class."""

    copied = (TIMESTAMP, SECRET)
    again = ""  # why this step is done again

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._held = ExitStack()

    def convert_notebooks(self) -> None:
        with self._held:
            super().convert_notebooks()

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        self._held.close()  # the last student's, if any
        if student_id in self.coursedir.student_id_exclude.split(","):
            return False
        graded = self.coursedir.format_path(self.coursedir.autograded_directory, student_id, "")
        self._held.enter_context(alone(Path(graded), self.log))
        made = Path(self._format_dest(assignment_id, student_id))
        if made.is_dir() and self._is_old(assignment_id, student_id):
            self.log.warning("%s: %s", self.again, made)
            shutil.rmtree(made)
        return super().init_destination(assignment_id, student_id)

    def _is_old(self, assignment_id: str, student_id: str) -> bool:
        """Whether what this step has made was made of something else than what is there now."""
        raise NotImplementedError

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        source = Path(self._format_source(assignment_id, student_id))
        target = Path(self._format_dest(assignment_id, student_id))
        target.mkdir(parents=True, exist_ok=True)
        for name in self.copied:
            if name == TIMESTAMP and timestamp(source) is None:
                continue
            with suppress(Unreadable):
                data = read_bytes(source / name, 1000)
                (target / name).unlink(missing_ok=True)  # it may be read-only
                (target / name).write_bytes(data)


@contextmanager
def alone(folder: Path, log) -> Iterator[None]:
    """Waits until no other process holds `folder`, and holds it meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders know no locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("Waiting: another process works on %s", folder)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class GenerateRelease(GenerateAssignment, _Step):
    """From a source to the notebook for students: that one, and no file beside it."""

    copied = ()

    def init_notebooks(self) -> None:
        super().init_notebooks()
        for folder, notebooks in self.assignments.items():
            own = f"{Path(folder).name}.ipynb"
            self.assignments[folder] = [n for n in notebooks if Path(n).name == own]

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        return BaseConverter.init_destination(self, assignment_id, student_id)  # nobody's


class GradeSubmissions(Autograde, _Step):
    """Grades whatever lies in each student's folder."""

    again = "Another notebook lies there than the one that was graded, so grading anew"
    given: dict[str, float] = {}  # the bonus of each task, as it was given the last time
    job: Job | None = None  # what is graded now
    done: Found | None = None  # what other processes have made of it, ahead of this one
    jobs = Integer(0, help="Processes that grade ahead; by default one a core.").tag(config=True)
    _running: Ahead | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._seed = new_seed()  # everybody of a run is asked the same

    def init_notebooks(self) -> None:
        """Gives every student's folder a place in the run, also one without a notebook."""
        lesson = self.coursedir.assignment_id
        if lesson not in Course.find().lessons:
            return super().init_notebooks()
        self._expect(lesson)
        found = glob.glob(self._format_source(lesson, self.coursedir.student_id))
        if not found or not fnmatch.fnmatchcase(lesson, self.coursedir.notebook_id):
            self.log.error(
                "No submissions of %s in %s. Run `nbgrader collect %s`, or put each notebook into "
                "%s.",
                lesson,
                self._format_source("", "").rstrip("/"),
                lesson,
                self._format_source(lesson, "STUDENT"),
            )
            raise NbGraderException(f"no submissions of {lesson}")
        self.assignments = {folder: [os.path.join(folder, f"{lesson}.ipynb")] for folder in found}

    def convert_notebooks(self) -> None:
        lesson = self.coursedir.assignment_id
        folders = [f for f in sorted(self.assignments) if self._is_to_do(lesson, Path(f))]
        jobs = self.jobs or len(os.sched_getaffinity(0))
        if len(folders) < WORTH_IT or lesson not in Course.find().lessons:
            return super().convert_notebooks()
        pieces = ((folder, self.job_of(Path(folder), lesson)) for folder in folders)
        pool = Pool(answer, jobs, [LOADED])
        pool.prepare()
        self._running = Ahead(pool, pieces, folders, most=8 * jobs)
        try:
            super().convert_notebooks()
        finally:
            self._running.close()
            self._running = None

    def _is_to_do(self, lesson: str, folder: Path) -> bool:
        """Whether a submission is likely to be graded; the loop itself looks again."""
        student = folder.parent.name
        made = Path(self._format_dest(lesson, student))
        if self.force or not (made / f"{lesson}.ipynb").exists():
            return True
        new, old = timestamp(folder), timestamp(made)
        return (new and old and new > old) or self._is_old(lesson, student)

    def job_of(self, folder: Path, lesson: str) -> Job:
        """The work on what lies in a student's folder."""
        below = Path(self.coursedir.root) / self.coursedir.submitted_directory
        path = handed_in(folder, lesson)
        shown = clean(os.fspath(path).encode("utf-8", "replace").decode("utf-8"))
        try:
            refuse_linked_folders(path, below)
            file = File(shown, path.stem, read_bytes(path))
        except Unreadable as reason:
            told = str(reason) if os.path.lexists(path) else NOTHING
            file = File(shown, path.stem, problem=told)
        figures = Grade(config=self.config).figures
        return Job((Part(lesson, (file,)),), lesson, self._seed, isolation(), shown=figures)

    def look_up(self, folder: Path, lesson: str) -> Found | None:
        """What other processes have made of a student's folder; sets `job` to the work on it."""
        done = self._running.take(str(folder)) if self._running is not None else None
        self.job = self.job_of(folder, lesson)
        if not isinstance(done, Done) or not done.found or done.digest != digest_of(self.job):
            return None  # nobody did it, or something else was handed in meanwhile
        self.job = replace(self.job, seed=done.seed)
        return done.found[0]

    def _expect(self, lesson: str) -> None:
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                gradebook.find_assignment(lesson)
            except MissingEntry:
                self.log.error(
                    "%s is not in the gradebook yet. Run `nbgrader generate_assignment %s` first.",
                    lesson,
                    lesson,
                )
                raise NbGraderException(f"{lesson} is not in the gradebook") from None

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        self.given = {}
        return super().init_destination(assignment_id, student_id)

    def _is_old(self, assignment_id: str, student_id: str) -> bool:
        folder = Path(self._format_source(assignment_id, student_id))
        made = Path(self._format_dest(assignment_id, student_id))
        graded = what_was_graded(made / f"{assignment_id}.ipynb")
        self.given = graded.get("bonus", {})
        now = fingerprint(folder, handed_in(folder, assignment_id))
        return now != graded.get("fingerprint")

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        # nbgrader would copy what lies beside the source notebook too: answers, perhaps.
        ignore, self.coursedir.ignore = self.coursedir.ignore, ["*"]
        try:
            super().init_assignment(assignment_id, student_id)
        finally:
            self.coursedir.ignore = ignore


class GeneratePages(GenerateFeedback, _Step):
    """From graded notebooks to the pages that students get back."""

    again = "The notebook was graded anew since, so making the page anew"

    def _is_old(self, assignment_id: str, student_id: str) -> bool:
        graded = Path(self._format_source(assignment_id, student_id), f"{assignment_id}.ipynb")
        page = Path(self._format_dest(assignment_id, student_id), f"{assignment_id}.html")
        try:
            return page.stat().st_mtime_ns < graded.stat().st_mtime_ns
        except FileNotFoundError:
            return True


def handed_in(folder: Path, lesson: str) -> Path:
    """The file in a student's folder that answers `lesson`, under whatever name.

    NAME.ipynb it is, unless nothing is filled in there and something is in another notebook of
    the lesson. Where there is none, a path that does not exist.
    """
    wanted = folder / f"{lesson}.ipynb"
    others = [path for path in _notebooks(folder) if path != wanted][:MOST_NOTEBOOKS]
    if not others or _is_answered(wanted, lesson):
        return wanted
    answered = next((path for path in others if _is_answered(path, lesson)), None)
    return answered or (wanted if os.path.lexists(wanted) else others[0])


def _notebooks(folder: Path) -> list[Path]:
    """The notebooks below a folder, the nearest first; also as some browsers save them."""
    found, seen = [], 0
    for place, folders, files in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and depth < DEEPEST)
        seen += len(folders) + len(files)
        if seen > MOST_FILES:
            break
        for name in files:
            kind = name.lower().removesuffix(".txt").removesuffix(".json")
            if kind.endswith(".ipynb") and not name.startswith("."):
                found.append((depth, Path(place, name)))
    return [path for _, path in sorted(found)]


def _is_answered(path: Path, lesson: str) -> bool:
    submission = read(path, Course.find().lessons)
    roles = (Role.EXERCISE, Role.QUESTION)
    return submission.lesson == lesson and any(
        cell.answered for cell in submission.cells if cell.role in roles
    )


def fingerprint(folder: Path, path: Path) -> str:
    """What tells one handed-in file from another: its name and its bytes, or why it has none."""
    try:
        data = read_bytes(path)
    except Unreadable as reason:
        data = str(reason).encode()
    name = os.fsencode(path.relative_to(folder))
    return hashlib.sha256(name + b"\0" + data).hexdigest()


def what_was_graded(autograded: Path) -> dict:
    """What an autograded notebook says of the file it was made of; empty where it is unfinished."""
    try:
        said = json.loads(read_bytes(autograded, 200_000_000))["metadata"][GRADED]
    except (Unreadable, KeyError, TypeError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
