"""The gradebook of a class: nbgrader's own, with its folders; one process writes, this one.

A submission's marks, comments, record and graded notebook are written together: the notebook beside
its place, then one transaction, then the notebook into its place. Whatever stops that, the next run
sees by the record and the notebook that it was not done.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from nbgrader import api
from nbgrader.apps.baseapp import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course.course import Course
from autograder.course.lesson import Role
from autograder.course.settings import CourseError
from autograder.grading import records
from autograder.grading.converters import TIMESTAMP, GenerateRelease, alone, what_was_graded
from autograder.grading.grade import FAULT
from autograder.grading.gradebook import share
from autograder.grading.nbgrader_plugin import configure
from autograder.grading.notebooks import GRADED, as_text, bonus, filled
from autograder.grading.records import Record
from autograder.intake.repair import rebuild
from autograder.reports.plain import UNCHANGED

PATIENCE = 120  # seconds that a database may be away
PAUSE = 2.0
# What passes by itself, in the words of SQLite and of PostgreSQL's driver.
PASSING = ("locked", "connection", "server closed", "terminating", "starting up", "shutting down")


class BookError(CourseError):
    """The gradebook cannot be used; what is in it is whole, and the text says what to do."""


class Book:
    """One gradebook, open. url: of another one than the course's settings name."""

    def __init__(self, course: Course, url: str = "", say: Callable[[str], None] = print):
        self.course, self._say = course, say
        self._app = _settings(course)
        self._folders = CourseDirectory(parent=self._app)
        if url:
            self._folders.db_url = url
        share()
        self._cells: dict[str, dict[str, str]] = {}
        with self._told():
            Path(self._folders.root).mkdir(parents=True, exist_ok=True)
            book = api.Gradebook(self._folders.db_url, self._folders.course_id)
            self._engine = book.engine
            book.db.remove()
            records.METADATA.create_all(self._engine)

    @property
    def url(self) -> str:
        """Where the gradebook is, for nbgrader's own interface."""
        return self._folders.db_url

    def close(self) -> None:
        self._engine.dispose()

    # --- what is there ---------------------------------------------------------------------------
    def records(self, student: str) -> dict[str, Record]:
        """A student's records by lesson; only those whose graded notebook is there too."""

        def look(db: Session) -> dict[str, Record]:
            return records.read(db, student)

        found = self._do(look)
        return {
            lesson: record
            for lesson, record in found.items()
            if what_was_graded(self.notebook(student, lesson)).get("made") == record.made
        }

    def record(self, student: str, lesson: str) -> Record | None:
        """One record, whatever became of its graded notebook."""
        return self._do(lambda db: records.read(db, student, lesson)).get(lesson)

    def lessons(self) -> list[str]:
        return self._do(records.assignments)

    def students(self, lesson: str) -> list[str]:
        """Who has a record of this lesson."""
        return self._do(lambda db: records.students(db, lesson))

    def notebook(self, student: str, lesson: str) -> Path:
        """Where a graded notebook lies."""
        folders = self._folders
        folder = folders.format_path(folders.autograded_directory, student, lesson)
        return Path(folder) / f"{lesson}.ipynb"

    # --- what is written -------------------------------------------------------------------------
    def prepare(self, lesson: str) -> None:
        """Makes sure that nbgrader knows the lesson, with the cells that it has now."""
        if lesson in self._cells:
            return
        cells = self._do(lambda db: _graded_cells(db, lesson))
        wanted = {
            c.metadata.nbgrader.grade_id
            for c in self.course.lessons[lesson].notebook.cells
            if c.metadata.get("nbgrader", {}).get("grade")
        }
        if cells is None:
            self._say(f"{lesson} is new to the gradebook: nbgrader's generate_assignment makes it.")
            self._generate(lesson)
            cells = self._do(lambda db: _graded_cells(db, lesson))
        if set((cells or {}).values()) != wanted:
            raise BookError(
                f"The gradebook has other cells of {lesson} than the lesson has now. Run `nbgrader "
                f"generate_assignment {lesson} --force`, which nbgrader refuses where it would "
                "lose marks, and then this again."
            )
        self._cells[lesson] = cells

    def save(
        self,
        student: str,
        name: str,
        record: Record,
        text: str,
        file: tuple[str, str] = ("", ""),
        handed_in: str = "",
    ) -> Record:
        """Writes one submission, unless another process has just written the same.

        name: the student's, for one who is new. text: the graded notebook. file: the name of what
        was handed in, in the student's folder, and its fingerprint. handed_in: when. Where the
        record is of some tasks only, the others keep the marks that they have.
        """
        lesson = record.report.lesson
        self.prepare(lesson)
        target = self.notebook(student, lesson)
        judged = len(record.marks)
        with self._told(), alone(target.parents[1], logging.getLogger(__name__)):
            before = self.record(student, lesson)
            given = before.bonus if before else what_was_graded(target).get("bonus", {})
            record = _joined(before, record, self.course.lessons[lesson])
            if len(record.marks) > judged:  # the notebook shows what is kept, too
                text = self.text(record)
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}.new")
            facts = {
                "file": file[0],
                "fingerprint": file[1],
                "bonus": record.bonus,
                "made": record.made,
            }
            beside.write_text(_with(text, facts), encoding="utf-8")

            def write(db: Session) -> None:
                when = _when(handed_in)
                notebook = _submission(db, lesson, student, name, when)
                self._marks(db, notebook, lesson, record, given)
                db.flush()
                self._penalty(db, notebook, student)
                records.write(db, lesson, student, record)

            try:
                self._do(write)
                os.chmod(beside, 0o444)
                os.replace(beside, target)
                if _when(handed_in) is not None:
                    stamp = target.with_name(TIMESTAMP)
                    stamp.unlink(missing_ok=True)
                    stamp.write_text(handed_in)
            finally:
                beside.unlink(missing_ok=True)
        return record

    def text(self, record: Record) -> str:
        """The graded notebook of a record, without figures."""
        lesson = self.course.lessons[record.report.lesson]
        notebook = rebuild(lesson, record.submission)
        return as_text(filled(notebook, lesson, self.course, record.report, {}))

    def _marks(self, db: Session, notebook, lesson: str, record: Record, given: dict) -> None:
        """What nbgrader's SaveAutoGrades writes, and our SaveMore."""
        cells, released = self._cells[lesson], self.course.lessons[lesson]
        own = {c.id: c for c in record.submission.cells}
        grades = {cells.get(g.cell_id): g for g in _of(db, api.Grade, notebook)}
        tasks = {_grade_id(released, c): c for c in released.tasks}
        for grade_id, cell in tasks.items():
            grade, mark = grades.get(grade_id), record.marks.get(cell.task)
            if grade is None or mark is None:
                continue
            if cell.role == Role.QUESTION:
                answer = own.get(cell.id)
                blank = answer is None or answer.source == cell.source
                grade.auto_score = 0.0 if blank else None
            else:
                result = mark.result
                failed = record.report.error == FAULT
                most = result.max_points
                grade.auto_score = None if failed else max(0.0, min(result.points, most))
                extra = grade.extra_credit or 0.0
                grade.extra_credit = extra - given.get(cell.task, extra) + bonus(result)
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        names = self._solutions(db, lesson)
        sources = {_grade_id(released, c): c for c in released.cells if c.role in WRITTEN}
        for comment in _of(db, api.Comment, notebook):
            cell = sources.get(names.get(comment.cell_id))
            if cell is not None:
                answer = own.get(cell.id)
                blank = answer is None or answer.source == cell.source
                comment.auto_comment = UNCHANGED if blank else None

    def _solutions(self, db: Session, lesson: str) -> dict[str, str]:
        rows = select(api.BaseCell.id, api.BaseCell.name).join(api.Notebook).join(api.Assignment)
        return dict(db.execute(rows.where(api.Assignment.name == lesson)).all())

    def _penalty(self, db: Session, notebook, student: str) -> None:
        """What nbgrader's AssignLatePenalties does."""
        notebook.late_submission_penalty = None
        seconds = notebook.assignment.total_seconds_late
        if seconds > 0:
            late = AssignLatePenalties(parent=self._app)
            late.init_plugin()
            db.refresh(notebook, ["score"])
            penalty = late.plugin_inst.late_submission_penalty(student, notebook.score, seconds)
            if penalty is not None:
                notebook.late_submission_penalty = late._check_late_penalty(notebook, penalty)

    # --- the database ----------------------------------------------------------------------------
    def _do(self, work: Callable[[Session], object]):
        """Does something in one transaction; waits for a database that is away or busy."""
        until, told, again = time.monotonic() + PATIENCE, False, True
        while True:
            try:
                with Session(self._engine) as db, db.begin():
                    return work(db)
            except IntegrityError:
                if not again:
                    raise
                again = False  # another process has just made the same row
            except DBAPIError as error:
                passing = error.connection_invalidated or any(
                    word in str(error.orig).lower() for word in PASSING
                )
                if not passing or time.monotonic() > until:
                    raise BookError(self._what_failed(error)) from None
                if not told:
                    self._say(f"The gradebook cannot be reached ({_short(error)}); waiting for it.")
                    told = True
                time.sleep(PAUSE)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Says in a sentence what cannot be written."""
        try:
            yield
        except OSError as error:
            if error.filename == "alembic":
                raise BookError(
                    "nbgrader starts `alembic`, which is not on the PATH nor beside "
                    f"{sys.executable}. Install autograder anew, or put its folder on the PATH."
                ) from None
            place = error.filename or self._folders.root
            raise BookError(
                f"{place} cannot be written ({error.strerror}). What was graded before is kept; "
                "make room or give yourself the right to write there, and run this again."
            ) from None
        except SQLAlchemyError as error:
            raise BookError(self._what_failed(error)) from None

    def _what_failed(self, error: Exception) -> str:
        url = make_url(self._folders.db_url).render_as_string(hide_password=True)
        return (
            f"The gradebook {url} cannot be used ({_short(error)}). What was graded before is "
            "kept; put that right and run this again: it goes on where it was."
        )

    def _generate(self, lesson: str) -> None:
        config = self._app.config.copy()
        folders = CourseDirectory(parent=self._app)
        folders.db_url, folders.assignment_id = self._folders.db_url, lesson
        step = GenerateRelease(coursedir=folders, config=config)
        step.force = True  # a notebook may be left of a gradebook that is gone
        step.log = logging.getLogger("autograder.quiet")
        step.log.setLevel(logging.CRITICAL)
        try:
            step.start()
        except Exception as error:
            raise BookError(
                f"{lesson} cannot be put into the gradebook ({_short(error)}). Run `nbgrader "
                f"generate_assignment {lesson}`, which says more."
            ) from None


WRITTEN = (Role.EXERCISE, Role.QUESTION)


def _settings(course: Course) -> NbGrader:
    """nbgrader's settings, from the course's nbgrader_config.py; ours where there is none."""
    app = NbGrader()
    app.log_level = logging.ERROR
    app.initialize([], root=str(course.folder))
    if "exporter_class" not in app.config.Autograde:
        configure(app.config, course.folder)
    return app


def _graded_cells(db: Session, lesson: str) -> dict[str, str] | None:
    """nbgrader's own ids of a lesson's graded cells, and their names; None for an unknown one."""
    found = db.execute(select(api.Assignment).where(api.Assignment.name == lesson)).scalar()
    if found is None:
        return None
    return {cell.id: cell.name for book in found.notebooks for cell in book.grade_cells}


def _grade_id(lesson, cell) -> str:
    for each in lesson.notebook.cells:
        if each.id == cell.id:
            return each.metadata.get("nbgrader", {}).get("grade_id", "")
    return ""


def _of(db: Session, kind, notebook) -> list:
    return list(db.execute(select(kind).where(kind.notebook_id == notebook.id)).scalars())


def _submission(db: Session, lesson: str, student: str, name: str, when):
    """The notebook's row; it and those that it hangs on are made where they are missing."""
    assignment = db.execute(
        select(api.Assignment).where(api.Assignment.name == lesson)
    ).scalar_one()
    if db.get(api.Student, student) is None:
        db.add(api.Student(id=student, last_name=name if name != student else None))
        db.flush()
    rows = select(api.SubmittedAssignment).where(
        api.SubmittedAssignment.assignment_id == assignment.id,
        api.SubmittedAssignment.student_id == student,
    )
    found = db.execute(rows).scalar()
    if found is None:
        found = api.SubmittedAssignment(assignment_id=assignment.id, student_id=student)
        db.add(found)
        db.flush()
        for notebook in assignment.notebooks:
            own = api.SubmittedNotebook(notebook_id=notebook.id, assignment_id=found.id)
            db.add(own)
            db.flush()
            for cell in (*notebook.grade_cells, *notebook.task_cells):
                db.add(api.Grade(cell_id=cell.id, notebook_id=own.id))
            for cell in (*notebook.solution_cells, *notebook.task_cells):
                db.add(api.Comment(cell_id=cell.id, notebook_id=own.id))
        db.flush()
        db.refresh(found)
    if when is not None:
        found.timestamp = when
    return next(n for n in found.notebooks if n.name == lesson)


def _joined(before: Record | None, record: Record, lesson) -> Record:
    """The record with the marks of those tasks that were not judged now, where there are any."""
    missing = [c.task for c in lesson.tasks if c.task not in record.marks]
    if before is None or not missing:
        return record
    marks = {**before.marks, **record.marks}
    marks = {c.task: marks[c.task] for c in lesson.tasks if c.task in marks}
    report = replace(
        record.report,
        results=tuple(m.result for m in marks.values()),
        max_score=before.report.max_score,
    )
    return replace(record, marks=marks, report=report)


def _with(text: str, facts: dict) -> str:
    """A notebook's text with what was graded in its metadata."""
    notebook = json.loads(text)
    notebook["metadata"][GRADED] = facts
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _when(text: str):
    with suppress(ValueError, OverflowError, TypeError, AttributeError):
        return parse_utc(text) if text else None
    return None


def _short(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())[:200]
