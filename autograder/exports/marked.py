"""A class as the gradebook has it: who handed in what, and what each task earned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy import inspect

from autograder.classroom.book import Book
from autograder.course.course import Course
from autograder.course.lesson import Cell, Lesson, Role
from autograder.course.settings import CourseError, did_you_mean
from autograder.grading import records
from autograder.grading.gradebook import is_open
from autograder.grading.records import Mark, Record

RIGHT, PARTLY, WRONG = "right", "partly right", "wrong"
BLANK, WAITING, UNREAD = "not filled in", "not marked yet", "could not be read"
STATES = (RIGHT, PARTLY, WRONG, BLANK, WAITING, UNREAD)
_OF_THE_MACHINE = {"right": RIGHT, "right, with a deduction": PARTLY, "not filled in": BLANK}


@dataclass(frozen=True)
class TaskMark:
    """The mark of one task. points: None where nobody has marked it yet."""

    task: str
    points: float | None
    most: float
    by_hand: bool = False
    comment: str = ""


@dataclass(frozen=True)
class Marked:
    """One student and one lesson. marks: by task, empty where nothing was handed in.

    record: how the machine came to its marks; None where nbgrader alone has made them. late: how
    many seconds it came too late. penalty: the points that this costs.
    """

    id: str
    name: str
    email: str = ""
    section: str = ""
    marks: dict[str, TaskMark] = field(default_factory=dict)
    handed_in: datetime | None = None
    due: datetime | None = None
    penalty: float = 0.0
    record: Record | None = None
    login: str = ""
    platform: str = ""  # the number that the learning platform has for this student
    sis: str = ""  # the number that the school has
    listed: bool = False  # whether the roster has this student

    @property
    def earned(self) -> float:
        return sum(m.points or 0.0 for m in self.marks.values())

    @property
    def total(self) -> float:
        """What is left after the late penalty."""
        return max(0.0, self.earned - self.penalty)

    @property
    def waiting(self) -> float:
        """The points that nobody has given or refused yet."""
        return sum(m.most for m in self.marks.values() if m.points is None)

    @property
    def late(self) -> float:
        """Seconds after the due date."""
        if self.handed_in is None or self.due is None:
            return 0.0
        return max(0.0, (self.handed_in - self.due).total_seconds())

    def state(self, task: str) -> str:
        """What became of a task, one of `STATES`; '' where nothing was handed in."""
        mark, made = self.marks.get(task), self.made(task)
        if mark is None:
            return ""
        if mark.points is None:
            return WAITING
        if not mark.by_hand and self.record is not None and self.record.report.error:
            return UNREAD
        if not mark.by_hand and made is not None:
            if made.result.needs_person:
                return BLANK  # nbgrader's own zero for a question that nobody answered
            return _OF_THE_MACHINE.get(made.result.status, WRONG)
        if mark.points >= mark.most:
            return RIGHT
        return PARTLY if mark.points else WRONG

    def made(self, task: str) -> Mark | None:
        return self.record.marks.get(task) if self.record else None


@dataclass(frozen=True)
class Class:
    """All students' marks of one lesson, in the order of their names."""

    lesson: Lesson
    students: tuple[Marked, ...]
    due: datetime | None = None

    @property
    def tasks(self) -> tuple[Cell, ...]:
        return self.lesson.tasks

    @property
    def most(self) -> float:
        return sum(cell.points for cell in self.tasks)

    @property
    def handed_in(self) -> tuple[Marked, ...]:
        """Those who handed in something."""
        return tuple(s for s in self.students if s.marks)

    def told_apart(self) -> Class:
        """The same class, for a page: names that several have are followed by what tells them."""
        times = Counter(s.name.casefold() for s in self.students)
        students = tuple(
            replace(s, name=f"{s.name} ({s.id})") if times[s.name.casefold()] > 1 else s
            for s in self.students
        )
        return replace(self, students=students)

    def answers(self, task: str) -> str:
        """The id of the cell that answers a task."""
        cell = next(c for c in self.tasks if c.task == task)
        return cell.of or cell.id


def read_class(course: Course, wanted: str | None = None, url: str = "") -> Class:
    """One lesson's marks; of the only lesson that is marked, where none is named."""
    book = Book(course, url, lambda text: None)
    try:
        with Gradebook(book.url, course.settings.id) as gradebook:
            known = [a.name for a in gradebook.assignments if a.name in course.lessons]
            name = _chosen(known, wanted, course)
            return _read(gradebook, course.lessons[name])
    finally:
        book.close()


def _chosen(known: Sequence[str], wanted: str | None, course: Course) -> str:
    if wanted in known:
        return wanted
    if wanted is not None:
        near = "" if wanted in course.lessons else did_you_mean(wanted, course.lessons)
        there = f" It has {', '.join(known)}." if known else ""
        raise CourseError(f"The gradebook has no marks of {wanted}.{there}{near}")
    if not known:
        raise CourseError(
            "The gradebook has no marks yet. `autograder grade FOLDER_OR_ZIP` makes them."
        )
    if len(known) > 1:
        raise CourseError(f"Say which lesson with --lesson: {', '.join(known)}.")
    return known[0]


def _read(gradebook: Gradebook, lesson: Lesson) -> Class:
    assignment = gradebook.find_assignment(lesson.name)
    stored = inspect(gradebook.engine).has_table(records.SUBMISSIONS.name)
    tasks = _tasks(lesson)
    students = []
    for student in gradebook.students:
        name = " ".join(filter(None, (student.first_name, student.last_name))) or student.id
        one = Marked(student.id, name, student.email or "")
        try:
            found = gradebook.find_submission(lesson.name, student.id)
        except MissingEntry:
            students.append(one)
            continue
        record = None
        if stored:
            record = records.read(gradebook.db, student.id, lesson.name).get(lesson.name)
        marks = {}
        for notebook in found.notebooks:
            said = {c.name: c.comment or "" for c in notebook.comments}
            for grade in notebook.grades:
                task = tasks.get(grade.name)
                if task is None:
                    continue
                points = None if is_open(grade) else float(grade.score or 0.0)
                by_hand = grade.manual_score is not None
                comment = said.get(grade.name, "")
                marks[task] = TaskMark(task, points, grade.max_score, by_hand, comment)
        ordered = {c.task: marks[c.task] for c in lesson.tasks if c.task in marks}
        due = found.duedate if assignment.duedate is not None else None
        penalty = float(found.late_submission_penalty or 0.0)
        students.append(
            replace(
                one,
                marks=ordered,
                handed_in=found.timestamp,
                due=due,
                penalty=penalty,
                record=record,
            )
        )
    students.sort(key=lambda s: (s.name.casefold(), s.id))
    return Class(lesson, tuple(students), assignment.duedate)


def _tasks(lesson: Lesson) -> dict[str, str]:
    """Tasks by the names that nbgrader has for their cells."""
    by_id = {cell.id: cell.task for cell in lesson.tasks}
    return {
        cell.metadata["nbgrader"]["grade_id"]: by_id[cell.id]
        for cell in lesson.notebook.cells
        if cell.id in by_id and "grade_id" in cell.metadata.get("nbgrader", {})
    }


def questions(lesson: Lesson) -> tuple[Cell, ...]:
    """The tasks that a person marks."""
    return lesson.with_role(Role.QUESTION)


def grade_ids(lesson: Lesson) -> dict[str, str]:
    """The names that nbgrader has for the cells of tasks, by task."""
    return {task: grade_id for grade_id, task in _tasks(lesson).items()}
