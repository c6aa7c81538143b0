"""nbgrader's gradebook: how marks come into it, and how they come out of it.

It is shared by several processes, and plain about what nobody has marked yet.
"""

from __future__ import annotations

import atexit
import csv
import os
import sqlite3
from functools import cache
from pathlib import Path

from nbgrader import api
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from sqlalchemy import event
from sqlalchemy.engine import Engine
from traitlets import Bool

from autograder.course.course import Course
from autograder.grading import records, work
from autograder.grading.grade import FAULT, Grader
from autograder.grading.notebooks import GRADED, bonus, filled, is_graded
from autograder.intake.repair import match, raw_cells
from autograder.intake.submission import Submission
from autograder.versions import version

PATIENCE = 120  # seconds
COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "not_marked_yet",
)


def share() -> None:
    """Lets several processes use one SQLite gradebook at once."""
    if not event.contains(Engine, "connect", wait_for_others):
        event.listen(Engine, "connect", wait_for_others)


def wait_for_others(connection, _record) -> None:
    """One process writes to an SQLite file at a time; the others wait for it, not five seconds.

    Not by a write-ahead log: that one is not safe on the network folders that courses lie in.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000}")


# --- marks into it -------------------------------------------------------------------------------
def isolation() -> str:
    """The isolation that was asked for."""
    return os.environ.get("AUTOGRADER_ISOLATION", "auto")


@cache
def grader() -> Grader:
    """One grader, and one warm sandbox, for all submissions of a run.

    The isolation is the strongest that the machine offers, or what AUTOGRADER_ISOLATION names.
    """
    opened = Grader(isolation()).__enter__()
    atexit.register(opened.__exit__, None, None, None)
    return opened


class Grade(NbGraderPreprocessor):
    """Grades the notebook and writes each task's points as the result of its grade cell.

    Then it runs the notebook once more, for what it prints and draws; no mark depends on that.
    """

    figures = Bool(True, help="Show what the student's notebook prints and draws.").tag(config=True)

    def preprocess(self, nb, resources):
        name = resources["nbgrader"]["notebook"]
        lesson = Course.find().lessons[name]
        said = nb.metadata.get("course", {})
        job, done = self._done(nb, lesson)
        report = done.report
        self.log.info(
            "%s: %s of %s points, isolation: %s",
            resources["nbgrader"]["student"],
            report.score,
            report.max_score,
            report.isolation,
        )
        resources["autograder"], resources["given"] = report, said.get("given", {})
        nb = filled(nb, lesson, Course.find(), report, done.shown if self.figures else {})
        nb.metadata.pop("course", None)
        extra = {r.task: bonus(r) for r in report.results}
        nb.metadata[GRADED] = {**said.get("graded", {}), "bonus": extra}
        if job is not None:
            made = work.made_of(Course.find(), job, name)
            nb.metadata[GRADED]["made"] = made
            marks = records.marks_of(report, job.seed, version(), made)
            resources["record"] = records.Record(
                work.digest_of(job), made, done.submission, report, marks, (name,)
            )
        return nb, resources

    def _done(self, nb, lesson) -> tuple[work.Job | None, work.Found]:
        """What comes of the notebook that was read; of this one, where none was."""
        converter = getattr(self.parent, "parent", None)
        if getattr(converter, "done", None) is not None:
            done = converter.done
            judged = done if done.report else work.judged(grader(), converter.job, done)
            return converter.job, judged
        submission = Submission(lesson.name, lesson.name, match(lesson, raw_cells(nb))[0], (), None)
        return None, work.Found(0, 0, submission, grader().grade_submission(submission))


class SaveMore(NbGraderPreprocessor):
    """Writes to the gradebook what the number in a cell cannot say.

    Points above the maximum of a task become extra credit, beside what a person gave of it. Where
    the grader itself failed, nobody has marked the task yet.
    """

    def preprocess(self, nb, resources):
        where, report = resources["nbgrader"], resources["autograder"]
        with Gradebook(where["db_url"]) as gradebook:
            records.METADATA.create_all(gradebook.engine)
            for cell in nb.cells:
                if not is_graded(cell) or cell.cell_type != "code":
                    continue  # questions are a person's alone
                result = report.result(cell.metadata["course"]["task"])
                grade = gradebook.find_grade(
                    cell.metadata.nbgrader["grade_id"],
                    where["notebook"],
                    where["assignment"],
                    where["student"],
                )
                extra = grade.extra_credit or 0.0
                by_hand = extra - resources["given"].get(result.task, extra)
                grade.extra_credit = by_hand + bonus(result)
                if report.error == FAULT:
                    grade.auto_score, grade.needs_manual_grade = None, True
            if "record" in resources:
                student, assignment = where["student"], where["assignment"]
                records.write(gradebook.db, assignment, student, resources["record"])
            gradebook.db.commit()
        return nb, resources


# --- and out of it -------------------------------------------------------------------------------
def is_open(grade: api.Grade) -> bool:
    """Whether neither a machine nor a person has marked this yet."""
    return grade.auto_score is None and grade.manual_score is None


def open_points(submission: SubmittedAssignment) -> float:
    """The points of a submission that nobody has given or refused yet."""
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    return sum((grade.max_score for grade in grades if is_open(grade)), 0.0)


class GetMarks(GetGrades):
    """Brings the marks to the feedback page, and says which are open and which a person gave."""

    def _get_score(self, cell, resources):
        super()._get_score(cell, resources)
        where = (self.notebook_id, self.assignment_id, self.student_id)
        grade = self.gradebook.find_grade(cell.metadata.nbgrader["grade_id"], *where)
        cell.metadata.nbgrader["open"] = is_open(grade)
        cell.metadata.nbgrader["by_hand"] = grade.manual_score is not None


class Export(ExportPlugin):
    """nbgrader's table of marks, with a column for the points that nobody has marked yet."""

    def export(self, gradebook: Gradebook) -> None:
        """Writes the table to `--to`, or to grades.csv."""
        path = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", path)
        students = {str(name) for name in self.student}
        assignments = {str(name) for name in self.assignment}
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            for assignment in gradebook.assignments:
                for student in gradebook.students:
                    wanted = not assignments or assignment.name in assignments
                    if wanted and (not students or student.id in students):
                        table.writerow(_row(gradebook, assignment, student))


def _row(gradebook: Gradebook, assignment, student) -> dict:
    """One student's line; who handed in nothing has no points, and nothing is open."""
    row = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "student_id": student.id,
        "last_name": student.last_name,
        "first_name": student.first_name,
        "email": student.email,
        "max_score": assignment.max_score,
        **dict.fromkeys(("raw_score", "late_submission_penalty", "score", "not_marked_yet"), 0.0),
    }
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return row
    penalty = submission.late_submission_penalty or 0.0
    return {
        **row,
        "timestamp": submission.timestamp,
        "raw_score": submission.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, submission.score - penalty),
        "not_marked_yet": open_points(submission),
    }
