"""Between a run over a class and the gradebook: what was done before, and what is kept now."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace

from autograder.classroom.book import Book
from autograder.course.course import Course
from autograder.grading.grade import FAULT
from autograder.grading.records import Record, marks_of
from autograder.grading.work import Done, Found, Job, digest_of, made_of
from autograder.intake.who import Student
from autograder.reports.report import Report
from autograder.versions import version


@dataclass
class Marks:
    """The marks of a class in a gradebook.

    seed: one that was asked for, by whom marks have to be the same each time. again: whether also
    what is unchanged is graded.
    """

    book: Book
    course: Course
    seed: int | None = None
    again: bool = False

    def kept(self, student: Student, job: Job) -> Done | None:
        """What the gradebook has of this very job, where nothing is left to do."""
        if self.again:
            return None
        digest, records = digest_of(job), self.book.records(student.id)
        mine = {lesson: r for lesson, r in records.items() if r.digest == digest}
        if not mine or any(set(r.together) != set(mine) for r in mine.values()):
            return None
        found = []
        for lesson, record in mine.items():
            if record.report.error == FAULT:
                return None  # perhaps it goes well now
            made = made_of(self.course, job, lesson, self.seed)
            tasks = [c.task for c in self.course.lessons[lesson].tasks]
            wanted = [task for task in tasks if not job.only or task in job.only]
            if any(task not in record.marks or record.marks[task].made != made for task in wanted):
                return None
            place = next(
                (
                    (p, f)
                    for p, part in enumerate(job.parts)
                    for f, file in enumerate(part.files)
                    if file.shown == record.report.notebook
                ),
                (0, 0),
            )
            found.append(Found(*place, record.submission, record.report))
        return Done(tuple(found))

    def keep(self, student: Student, job: Job, one: Found, handed_in: str, all: Done) -> Report:
        """Writes what came of one notebook; the report with all that the gradebook has of it."""
        lesson, digest = one.report.lesson, digest_of(job)
        made = made_of(self.course, job, lesson, self.seed)
        if one.report.error == FAULT:
            before = self.book.record(student.id, lesson)
            if before is not None and before.digest == digest and not before.report.error:
                return one.report  # the marks that this very notebook has are not lost for that
        together = {f.report.lesson for f in all.found if f.report is not None}
        marks = marks_of(one.report, job.seed, version(), made)
        record = Record(digest, made, one.submission, one.report, marks, tuple(sorted(together)))
        text = one.notebook or self.book.text(record)
        kept = self.book.save(
            student.id, student.name, record, text, _fingerprint(job, one), handed_in
        )
        return replace(kept.report, notebook=one.report.notebook)


def _fingerprint(job: Job, one: Found) -> tuple[str, str]:
    """The file's name in the student's folder, and the sum by which `nbgrader autograde` knows it.

    See `converters.fingerprint`; for a submission that came by another way it fits nothing.
    """
    files = job.parts[one.part].files if job.parts else ()
    if not files:
        return "", ""
    file = files[one.file]
    lesson = one.report.lesson
    inside = file.shown.replace(os.sep, "/").rpartition(f"/{lesson}/")[2].rpartition("/")
    name = inside[2] if inside[0].startswith("/") else "/".join(filter(None, inside[::2]))
    data = file.problem.encode() if file.problem else file.data
    return name, hashlib.sha256(os.fsencode(name) + b"\0" + data).hexdigest()
