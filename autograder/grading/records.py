"""What the gradebook keeps beside nbgrader's own tables: how each mark was made.

Two tables in the same database, written in the same transaction as the marks: so they tell what
was done and what was not, whatever stopped a run. nbgrader itself never looks at them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    select,
)
from sqlalchemy.orm import Session

from autograder.course.asking import Finding, Verdict, Where
from autograder.course.lesson import Role
from autograder.grading.notebooks import bonus
from autograder.intake.submission import StudentCell, Submission
from autograder.reports.report import Report, Result

METADATA = MetaData()
SUBMISSIONS = Table(
    "autograder_submission",
    METADATA,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("digest", String(64), nullable=False),  # of what was handed in
    Column("made", String(64), nullable=False),  # see `Record.made`
    Column("cells", LargeBinary, nullable=False),  # the submission as it was read, packed
    Column("facts", Text, nullable=False),
)
MARKS = Table(
    "autograder_mark",
    METADATA,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("task", String(128), primary_key=True),
    Column("points", Float, nullable=False),
    Column("seed", BigInteger),
    Column("isolation", String(32), nullable=False),
    Column("version", String(64), nullable=False),
    Column("made", String(64), nullable=False),
    Column("result", Text, nullable=False),
)


@dataclass(frozen=True)
class Mark:
    """One task's result, and all that it takes to come to it again.

    seed: the private seed, or None where each question drew its own. version: the grader's. made:
    the sum of all that decided it but the submission (see `versions`).
    """

    result: Result
    seed: int | None
    isolation: str
    version: str
    made: str = ""


@dataclass(frozen=True)
class Record:
    """One submission in the gradebook. together: the lessons that were read from one hand-in."""

    digest: str
    made: str
    submission: Submission
    report: Report
    marks: dict[str, Mark]
    together: tuple[str, ...] = ()

    @property
    def bonus(self) -> dict[str, float]:
        """The extra credit that the grader itself gave, by task."""
        return {task: bonus(mark.result) for task, mark in self.marks.items()}


def marks_of(report: Report, seed: int | None, version: str, made: str) -> dict[str, Mark]:
    """A fresh report's marks, by task."""
    return {r.task: Mark(r, seed, report.isolation, version, made) for r in report.results}


def write(db: Session, assignment: str, student: str, record: Record) -> None:
    """Puts a record in the place of the one that is there, in the transaction that is open."""
    where = {"assignment": assignment, "student": student}
    for table in (SUBMISSIONS, MARKS):
        mine = (table.c.assignment == assignment) & (table.c.student == student)
        db.execute(delete(table).where(mine))
    report = record.report
    facts = {
        "notebook": report.notebook,
        "isolation": report.isolation,
        "repairs": report.repairs,
        "error": report.error,
        "max_score": report.max_score,
        "together": record.together,
        "order": list(record.marks),
    }
    row = {
        **where,
        "digest": record.digest,
        "made": record.made,
        "cells": _packed(record.submission),
        "facts": json.dumps(facts),
    }
    db.execute(SUBMISSIONS.insert(), [row])
    rows = [
        {
            **where,
            "task": task,
            "points": mark.result.points,
            "seed": mark.seed,
            "isolation": mark.isolation,
            "version": mark.version,
            "made": mark.made,
            "result": json.dumps(asdict(mark.result)),
        }
        for task, mark in record.marks.items()
    ]
    if rows:
        db.execute(MARKS.insert(), rows)


def read(db: Session, student: str, assignment: str | None = None) -> dict[str, Record]:
    """A student's records by assignment."""
    found = {}
    query = select(SUBMISSIONS).where(SUBMISSIONS.c.student == student)
    if assignment is not None:
        query = query.where(SUBMISSIONS.c.assignment == assignment)
    for row in db.execute(query).all():
        mine = (MARKS.c.student == student) & (MARKS.c.assignment == row.assignment)
        marks = db.execute(select(MARKS).where(mine)).all()
        found[row.assignment] = _record(row, marks)
    return found


def students(db: Session, assignment: str) -> list[str]:
    """Who has a record of this assignment."""
    query = select(SUBMISSIONS.c.student).where(SUBMISSIONS.c.assignment == assignment)
    return sorted(db.execute(query).scalars())


def assignments(db: Session) -> list[str]:
    """The assignments that have records."""
    return sorted(set(db.execute(select(SUBMISSIONS.c.assignment)).scalars()))


def _record(row, marks: Iterable) -> Record:
    facts = json.loads(row.facts)
    together = tuple(facts.pop("together"))
    submission = _unpacked(row.cells)
    made = {
        m.task: Mark(result(json.loads(m.result)), m.seed, m.isolation, m.version, m.made)
        for m in marks
    }
    order = facts.pop("order")
    results = tuple(made[task].result for task in order if task in made)
    facts["repairs"] = tuple(facts["repairs"])
    report = Report(lesson=row.assignment, results=results, **facts)
    return Record(row.digest, row.made, submission, report, made, together)


def result(data: Mapping) -> Result:
    """A task's result from what `asdict` made of it."""
    return Result(**{**data, "findings": tuple(map(_finding, data["findings"]))})


def _finding(data: Mapping) -> Finding:
    where = data.get("where")
    whole = {"verdict": Verdict(data["verdict"]), "where": Where(**where) if where else None}
    return Finding(**{**data, **whole})


def _packed(submission: Submission) -> bytes:
    return zlib.compress(json.dumps(asdict(submission)).encode(), 6)


def _unpacked(data: bytes) -> Submission:
    found = json.loads(zlib.decompress(data))
    cells = tuple(StudentCell(**{**cell, "role": Role(cell["role"])}) for cell in found["cells"])
    return Submission(**{**found, "cells": cells, "repairs": tuple(found["repairs"])})
