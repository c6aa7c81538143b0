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

import nbformat
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.plugins import LateSubmissionPlugin
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from traitlets.config import Config

from autograder.course import lesson as course
from autograder.grading.grade import model_answers
from autograder.grading.gradebook import Export, open_points
from autograder.grading.nbgrader_plugin import configure
from autograder.reports.report import number
from autograder.sandbox import strongest

LESSON = "05_homework"
DUE = "2026-03-02 12:00:00"
ON_TIME, LATE = "2026-03-01 18:30:00 UTC", "2026-03-04 09:00:00 UTC"

Answers = dict[str, str]  # the text of exercise and question cells, by cell id


@dataclass(frozen=True)
class Student:
    """One made-up student: what they changed in the model answers, and what is expected of it."""

    name: str
    story: str
    change: Callable[[Answers], Answers | str]  # answers, or the whole file as text
    handed_in: str = ON_TIME
    file: str = f"{LESSON}.ipynb"


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


THREE_LINES = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2)  # [batch_size, seq_len, seq_len]
        probs = (scores / self.scale).softmax(dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]
""".strip()

UNSCALED = THREE_LINES.replace("(scores / self.scale)", "scores")
SWAPPED_COMMENT = THREE_LINES.replace(
    "[batch_size, seq_len, hidden]", "[batch_size, hidden, seq_len]"
)
CROWDED = THREE_LINES.replace("scores = self.q(x) @ ", "scores=self.q(x)@")
HOSTILE = "import os\nimport torch\ntorch.allclose = lambda *a, **k: True\nos._exit(0)"
CHATTY = "import sys\nimport warnings\nwarnings.warn('a warning')\nprint('note', file=sys.stderr)"


def _class() -> list[Student]:
    single, multi = "self_attention", "multi_head"
    return [
        Student("ada", "everything right", lambda a: a),
        Student("ben", "forgot to scale", lambda a: {**a, single: UNSCALED}),
        Student("chloe", "three lines, for the bonus", lambda a: {**a, single: THREE_LINES}),
        Student("dev", "three lines, one comment false", lambda a: {**a, single: SWAPPED_COMMENT}),
        Student("emil", "handed in blank", lambda a: {}),
        Student("fay", "right, but late", lambda a: a, handed_in=LATE),
        Student("gil", "right, with warnings on stderr", put(single, CHATTY)),
        Student("hana", "a loop without end", put(multi, "while True:\n    pass")),
        Student("ivan", "not a notebook any more", lambda a: '{"cells": [ broken'),
        Student("jo", "renamed the file", lambda a: a, file="homework final (2).ipynb"),
        Student("kim", "three lines, but crowded", lambda a: {**a, single: CROWDED}),
        Student("lea", "hides nothing when causal", swap(multi, "if self.causal", "if False")),
        Student("mallory", "patches torch and exits", put(multi, HOSTILE)),
    ]


def run(folder: Path) -> int:
    """Runs the demo in `folder`; returns the exit status."""
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    students = _class()
    hand_in(folder, students)
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
        _succeed(api.generate_assignment(LESSON))
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "attention") as gradebook:
            gradebook.update_or_create_assignment(LESSON, duedate=DUE)
    with _bar(console) as bar:
        work = bar.add_task("grading", total=len(students))
        for student in students:
            bar.update(work, description=f"grading {student.name}")
            _succeed(api.autograde(LESSON, student.name, force=False))
            _succeed(api.generate_feedback(LESSON, student.name, force=False))
            bar.advance(work)
        bar.update(work, description="graded")
    _print_marks(console, folder, students)
    return 0


def hand_in(folder: Path, students: list[Student]) -> None:
    """Writes the submissions that are not there yet."""
    lesson = course.lessons(course.root())[LESSON]
    answers = {
        cell: text.partition("**Marking scheme.**")[0].rstrip()
        for cell, text in model_answers(course.root(), LESSON).items()
    }
    for student in students:
        place = folder / "submitted" / student.name / LESSON
        if place.exists():
            continue
        written = student.change(dict(answers))
        text = written if isinstance(written, str) else fill_in(lesson, written)
        place.mkdir(parents=True)
        (place / student.file).write_text(text, encoding="utf-8")
        (place / "timestamp.txt").write_text(student.handed_in, encoding="utf-8")


def fill_in(lesson: course.Lesson, answers: Answers) -> str:
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
        raise course.CourseError(f"nbgrader stopped: {result.get('error') or result.get('log')}")


def _print_marks(console: Console, folder: Path, students: list[Student]) -> None:
    table = Table(
        title=f"{LESSON}: marks given by the machine (questions Q1 to Q5 are for a person)"
    )
    for name, justify in (
        ("student", "left"),
        ("story", "left"),
        ("points", "right"),
        ("late", "right"),
        ("not marked yet", "right"),
    ):
        table.add_column(name, justify=justify)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "attention") as gradebook:
        for student in students:
            found = gradebook.find_submission(LESSON, student.name)
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
    console.print(f"feedback pages: {folder / 'feedback'}/STUDENT/{LESSON}/{LESSON}.html")
    console.print(f"gradebook:      {folder / 'gradebook.db'} and {folder / 'grades.csv'}")
