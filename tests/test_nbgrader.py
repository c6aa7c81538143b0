"""nbgrader's own commands, from the course's folder, with the marks of the grader in them."""

import csv
import json
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade

from autograder.course.asking import Finding
from autograder.course.course import Course
from autograder.grading import gradebook as marks_in
from autograder.grading.grade import FAULT, model_answers
from autograder.grading.gradebook import Export, open_points
from autograder.reports.feedback import page
from autograder.reports.report import Report, Result
from tests import forms
from tests.conftest import ROOT
from tests.journeys.classroom import (
    HOMEWORK,
    NAME,
    WITH_FIGURES,
    Classroom,
    headline,
    marks,
    right,
)

STUDENTS = {
    "aa_right": lambda a: a,
    "bb_blank": lambda a: {},
    "cc_exits": lambda a: {**a, "multi_head": "import os\nos._exit(0)"},
    "dd_broken": lambda a: '{"cells": [',
    "ee_bonus": lambda a: {**a, "self_attention": _three(a["self_attention"])},
    "zz_right": lambda a: a,
}


def _three(answer: str) -> str:
    old = answer[answer.index("        q = self.q(x)") :]
    return answer.replace(
        old,
        "        scores = self.q(x) @ self.k(x).mT / self.scale  # [batch_size, seq_len, seq_len]\n"
        "        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]\n"
        "        return probs @ self.v(x)  # [batch_size, seq_len, hidden]\n",
    )


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    """A course folder with a class that handed in, after every nbgrader step."""
    figures = "" if forms.small else WITH_FIGURES  # drawing takes longer than all marks
    room = Classroom(tmp_path_factory.mktemp("class") / "course", figures)
    for student, change in STUDENTS.items():
        name = "my homework.ipynb" if student == "zz_right" else NAME
        written = change(right())
        if isinstance(written, str):
            (room.place(student) / name).write_text(written)
        else:
            room.hand_in(student, written, name)
        (room.place(student) / "notes.txt").symlink_to("/etc/hostname")
    (room.place("bb_blank") / "timestamp.txt").write_text("yesterday, honest")
    room.nbgrader("db", "assignment", "list")  # writes the sources
    source = room.folder / "build" / "source" / HOMEWORK
    (source / "answers.txt").write_text("all of them")
    (source / "shadow").symlink_to("/etc/hostname")
    (source / "more answers.ipynb").write_text(json.dumps(nbformat.v4.new_notebook()))
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        room.nbgrader(step, HOMEWORK)
    room.nbgrader("export")
    return room


def test_the_gradebook_holds_the_graders_marks(classroom):
    assert classroom.scores() == {
        "aa_right": 10,
        "bb_blank": 0,
        "cc_exits": 4,
        "dd_broken": 0,
        "ee_bonus": 11,
        "zz_right": 10,
    }


def test_feedback_says_what_happened_and_holds_no_solution(classroom):
    page = classroom.page
    assert "10 of 15 points" in page("aa_right")
    assert "Content-Security-Policy" in page("aa_right")
    assert "Your code ended the Python process it ran in" in page("cc_exits")
    assert "not a notebook" in page("dd_broken")
    assert "MARK SCHEME" not in page("bb_blank")


def test_graders_see_the_marking_schemes_and_students_do_not(classroom):
    for student in STUDENTS:
        graded = classroom.folder / "autograded" / student / HOMEWORK / NAME
        assert graded.read_text().count("For the grader only") == 5
        assert "For the grader only" not in classroom.page(student)
    assert "Marking scheme" not in classroom.page("bb_blank")


def test_no_file_beside_a_notebook_is_copied_on(classroom):
    for folder in ("autograded", "feedback"):
        names = {p.name for p in (classroom.folder / folder).rglob("*") if not p.is_dir()}
        assert names == {NAME if folder == "autograded" else f"{HOMEWORK}.html"}


def test_the_release_has_no_solution_and_no_other_file(classroom):
    found = (classroom.folder / "build" / "release").rglob("*")
    files = [p for p in found if not p.is_dir()]
    assert [p.name for p in files] == [NAME]
    assert "BEGIN SOLUTION" not in files[0].read_text()


def test_grades_are_exported(classroom):
    rows = (classroom.folder / "grades.csv").read_text().splitlines()
    assert len(rows) == 1 + len(STUDENTS)


@pytest.mark.slow
def test_grading_again_keeps_a_persons_marks(classroom):
    classroom.mark_by_hand("aa_right", "q1", 1)
    classroom.extra_credit("ee_bonus", "check-self_attention-forward", 1.5)  # the bonus, and more
    classroom.nbgrader("autograde", HOMEWORK, "--student=aa_right", "--force")
    for _ in range(2):
        classroom.nbgrader("autograde", HOMEWORK, "--student=ee_bonus", "--force")
    assert classroom.scores()["aa_right"] == 11
    assert classroom.scores()["ee_bonus"] == 11.5


@pytest.mark.slow
def test_validate_tells_a_blank_notebook_from_a_right_one(classroom, hand_in):
    answers = model_answers(Course.at(ROOT), "00_shape_gym")
    for name, cells in (("blank.ipynb", {}), ("right.ipynb", answers)):
        shutil.copy(hand_in("00_shape_gym", cells, name), classroom.folder / name)
    assert "Success" in classroom.nbgrader("validate", "right.ipynb")
    assert "Success" not in classroom.nbgrader("validate", "blank.ipynb")


def test_without_submissions_or_without_a_release_autograde_says_what_to_do(tmp_path):
    room = Classroom(tmp_path / "course")
    status, said = room.run("autograde", HOMEWORK)
    assert status != 0 and "Traceback" not in said
    assert f"Run `nbgrader generate_assignment {HOMEWORK}` first" in said
    room.nbgrader("generate_assignment", HOMEWORK)
    status, said = room.run("autograde", HOMEWORK)
    assert status != 0 and "Traceback" not in said
    assert f"nbgrader collect {HOMEWORK}" in said and "submitted/STUDENT/05_homework" in said


# --- deductions, and what nobody has marked ------------------------------------------------------
TASK = "self_attention.init"
RIGHT_BUT = (
    Finding("E225", "deduction", "PEP 8: blanks around <b>=</b> are missing.", 3, points=-1.0),
    Finding("comments", "deduction", "A shape comment is false.", 4, points=-1.0),
    Finding("three lines", "bonus", "forward in three lines.", points=1.0),
)


def graded_cell(result: Result, monkeypatch, error: str | None = None):
    """The cell of one task as `Grade` leaves it."""
    report = Report("x", HOMEWORK, "namespaces", (result,), error=error)
    stand_in = SimpleNamespace(grade_submission=lambda *_: report)
    monkeypatch.setattr(marks_in, "grader", lambda: stand_in)
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    notebook = nbformat.v4.new_notebook()
    released = nbformat.reads(nbformat.writes(lesson.notebook), as_version=4)
    notebook.cells = [c for c in released.cells if c.metadata.get("course", {}).get("task") == TASK]
    notebook.cells[0].metadata.nbgrader.points = result.max_points
    where = {"notebook": HOMEWORK, "assignment": HOMEWORK, "student": "ada", "db_url": ""}
    grade = marks_in.Grade(figures=False)
    notebook, resources = grade.preprocess(notebook, {"nbgrader": where})
    (cell,) = [c for c in notebook.cells if c.cell_type == "code"]
    return notebook, cell, resources


def test_a_deduction_is_a_line_of_its_own_and_the_task_stays_whole(monkeypatch):
    result = Result(TASK, 2.0, 3.0, True, findings=RIGHT_BUT)
    notebook, cell, _ = graded_cell(result, monkeypatch)
    cell.metadata.nbgrader.score = 2.0  # as GetMarks brings it
    text = page(notebook, "x", 2.0, 3.0)
    minus = "\N{MINUS SIGN}1"
    assert marks(text)[:4] == [
        (TASK, "3 / 3"),
        ("deduction: PEP 8: blanks around <b>=</b> are missing.", minus),
        ("deduction: A shape comment is false.", minus),
        ("bonus: forward in three lines.", "+1"),
    ]
    card = cell.outputs[0].data["text/plain"]
    assert card == f"[passed] {TASK}"
    assert "[deduction -1] A shape comment is false." in cell.outputs[2].data["text/plain"]
    assert "<b>=</b>" not in text and "<b>=</b>" not in cell.outputs[1].data["text/html"]


def test_what_a_person_gave_stands_as_it_is(monkeypatch):
    notebook, cell, _ = graded_cell(Result(TASK, 2.0, 3.0, True, findings=RIGHT_BUT), monkeypatch)
    cell.metadata.nbgrader.update(score=2.5, by_hand=True)
    assert marks(page(notebook, "x", 2.5, 3.0)) == [
        (TASK, "2.5 / 3"),
        ("together", "2.5 / 3"),
    ]


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory):
    """A gradebook with one student, whose name needs quotes in a table."""
    url = f"sqlite:///{tmp_path_factory.mktemp('book') / 'gradebook.db'}"
    with Gradebook(url, "attention") as book:
        book.add_assignment(HOMEWORK)
        book.add_notebook(HOMEWORK, HOMEWORK)
        for name in (TASK, "q1"):
            book.add_grade_cell(name, HOMEWORK, HOMEWORK, max_score=2, cell_type="code")
        book.add_student("ada", first_name="Ada", last_name='Byron, "Lovelace"')
        book.add_student("zoe")
        book.add_submission(HOMEWORK, "ada")
        book.url = url
        yield book


def test_where_the_grader_failed_nobody_has_marked_yet(gradebook, monkeypatch):
    _, cell, resources = graded_cell(Result(TASK, 0.0, 2.0, False), monkeypatch, FAULT)
    cell.metadata.nbgrader.grade_id = TASK
    assert determine_grade(cell)[0] == 0  # what nbgrader would write
    resources["nbgrader"]["db_url"] = gradebook.url
    notebook = nbformat.v4.new_notebook(cells=[cell])
    marks_in.SaveMore().preprocess(notebook, resources)
    gradebook.db.expire_all()
    grade = gradebook.find_grade(TASK, HOMEWORK, HOMEWORK, "ada")
    assert grade.auto_score is None and grade.needs_manual_grade


def test_the_table_has_open_points_and_any_name(gradebook, tmp_path):
    assert open_points(gradebook.find_submission(HOMEWORK, "ada")) == 4
    gradebook.find_grade("q1", HOMEWORK, HOMEWORK, "ada").manual_score = 0
    gradebook.db.commit()
    path = tmp_path / "marks.csv"
    Export(to=str(path)).export(gradebook)
    with open(path, newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert rows["ada"]["last_name"] == 'Byron, "Lovelace"'
    assert [rows[s]["not_marked_yet"] for s in ("ada", "zoe")] == ["2.0", "0.0"]
    Export(to=str(path), student=["zoe"]).export(gradebook)
    assert len(path.read_text().splitlines()) == 2


def test_the_pages_headline_says_what_is_open_only_where_something_is():
    cell = nbformat.v4.new_code_cell("check()")
    cell.metadata.nbgrader = {"grade": True, "grade_id": "q1", "points": 2.0, "score": 0.0}
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert headline(page(notebook, "x", 0.0, 2.0)) == "x: 0 of 2 points"
    cell.metadata.nbgrader.open = True
    assert headline(page(notebook, "x", 0.0, 2.0)) == "x: 0 of 2 points so far, 2 not marked yet"
    assert ("q1", "not marked yet (of 2)") in marks(page(notebook, "x", 0.0, 2.0))
