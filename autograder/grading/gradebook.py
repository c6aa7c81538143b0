"""nbgrader's gradebook: shared by several processes, and plain about what nobody has marked yet."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

from nbgrader.api import Grade, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import GetGrades
from sqlalchemy import event
from sqlalchemy.engine import Engine

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


def is_open(grade: Grade) -> bool:
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
