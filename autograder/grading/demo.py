"""`make demo`: a small made-up class, graded through nbgrader from start to end.

Writes submissions into DEMO/submitted, then runs nbgrader's own steps on them: gradebook.db,
autograded notebooks, feedback pages and grades.csv. A second run goes on from what is there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import nbformat
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.plugins import LateSubmissionPlugin
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from traitlets.config import Config

from autograder.course.course import Course
from autograder.course.exercises import load_module
from autograder.course.lesson import Lesson
from autograder.course.settings import CourseError
from autograder.grading.grade import model_answers
from autograder.grading.gradebook import Export, open_points
from autograder.grading.nbgrader_plugin import configure
from autograder.reports.report import number
from autograder.sandbox import strongest

Answers = dict[str, str]  # the text of exercise and question cells, by cell id


@dataclass(frozen=True)
class Student:
    """One made-up student: what they changed in the model answers, and what is expected of it."""

    name: str
    story: str
    change: Callable[[Answers], Answers | str]  # answers, or the whole file as text
    handed_in: str = "2026-03-01 18:30:00 UTC"
    file: str = ""


def swap(cell: str, old: str, new: str) -> Callable[[Answers], Answers]:
    """Changes a piece of one answer; the piece must be there."""

    def change(answers: Answers) -> Answers:
        if old not in answers[cell]:
            raise ValueError(f"the model answer of {cell} no longer holds {old!r}")
        return {**answers, cell: answers[cell].replace(old, new)}

    return change


def put(cell: str, before: str) -> Callable[[Answers], Answers]:
    """Puts lines in front of one answer."""
    return lambda answers: {**answers, cell: before + "\n" + answers[cell]}


def made_up_class(course: Course) -> ModuleType:
    """The course's module with LESSON, DUE and STUDENTS; `CourseError` where there is none."""
    course.need_answers()
    if not course.settings.demo:
        raise CourseError(
            f"The course {course.settings.id} has no made-up class. [tool.autograder] demo = "
            '"FILE.py" in its pyproject.toml names one.'
        )
    return load_module(course.folder / course.settings.demo)


def run(folder: Path) -> int:
    """Runs the demo in `folder`; returns the exit status."""
    console, course = Console(), Course.find()
    made_up = made_up_class(course)
    lesson, students = made_up.LESSON, made_up.STUDENTS
    folder.mkdir(parents=True, exist_ok=True)
    hand_in(course, folder, lesson, students)
    if strongest() == "limits":
        os.environ.setdefault("AUTOGRADER_ISOLATION", "limits")
        console.print(
            "This machine offers no isolation. The class is made up, so the demo goes on "
            "with limits on time and memory only."
        )
    config = Config()
    configure(config, folder)
    config.AssignLatePenalties.plugin_class = LatePerDay
    api = NbGraderAPI(config=config)
    api.log.setLevel("WARNING")
    if not (folder / "gradebook.db").exists():
        _succeed(api.generate_assignment(lesson))
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", course.settings.id) as gradebook:
            gradebook.update_or_create_assignment(lesson, duedate=made_up.DUE)
    with _bar(console) as bar:
        work = bar.add_task("grading", total=len(students))
        for student in students:
            bar.update(work, description=f"grading {student.name}")
            _succeed(api.autograde(lesson, student.name, force=False))
            _succeed(api.generate_feedback(lesson, student.name, force=False))
            bar.advance(work)
        bar.update(work, description="graded")
    _print_marks(console, folder, lesson, students)
    return 0


def hand_in(course: Course, folder: Path, name: str, students: list[Student]) -> None:
    """Writes the submissions that are not there yet."""
    lesson = course.lessons[name]
    answers = {
        cell: text.partition("**Marking scheme.**")[0].rstrip()
        for cell, text in model_answers(course, name).items()
    }
    for student in students:
        place = folder / "submitted" / student.name / name
        if place.exists():
            continue
        written = student.change(dict(answers))
        text = written if isinstance(written, str) else fill_in(lesson, written)
        place.mkdir(parents=True)
        (place / (student.file or f"{name}.ipynb")).write_text(text, encoding="utf-8")
        (place / "timestamp.txt").write_text(student.handed_in, encoding="utf-8")


def fill_in(lesson: Lesson, answers: Answers) -> str:
    """The released notebook with these answers in it, as a file's text."""
    notebook = nbformat.from_dict(json.loads(nbformat.writes(lesson.notebook)))
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    return nbformat.writes(notebook)


class LatePerDay(LateSubmissionPlugin):
    """One point for each day begun after the due date, never more than the score."""

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        """The points to take off."""
        return min(score, float(-(-total_seconds_late // 86_400)))


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _succeed(result: dict) -> None:
    if not result["success"]:
        raise CourseError(f"nbgrader stopped: {result.get('error') or result.get('log')}")


def _print_marks(console: Console, folder: Path, lesson: str, students: list[Student]) -> None:
    table = Table(
        title=f"{lesson}: marks given by the machine (questions Q1 to Q5 are for a person)"
    )
    for name, justify in (
        ("student", "left"),
        ("story", "left"),
        ("points", "right"),
        ("late", "right"),
        ("not marked yet", "right"),
    ):
        table.add_column(name, justify=justify)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", Course.find().settings.id) as gradebook:
        for student in students:
            found = gradebook.find_submission(lesson, student.name)
            late, waiting = found.late_submission_penalty or 0, open_points(found)
            table.add_row(
                student.name,
                escape(student.story),
                number(found.score - late),
                number(-late) if late else "",
                number(waiting) if waiting else "",
            )
        Export(to=str(folder / "grades.csv")).export(gradebook)
    console.print(table)
    console.print(f"feedback pages: {folder / 'feedback'}/STUDENT/{lesson}/{lesson}.html")
    console.print(f"gradebook:      {folder / 'gradebook.db'} and {folder / 'grades.csv'}")
