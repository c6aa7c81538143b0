"""nbgrader's own commands, from the course's folder, with the marks of the grader in them."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course.course import Course
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from tests.conftest import ROOT

HOMEWORK = "05_homework"
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
    folder = tmp_path_factory.mktemp("class")
    for name in ("autograder", "transformer_lm", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "solutions").mkdir()
    for path in ROOT.glob("solutions/0[0-5]_*.py"):
        shutil.copy(path, folder / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for student, change in STUDENTS.items():
        place = folder / "submitted" / student / HOMEWORK
        place.mkdir(parents=True)
        written = change(dict(model_answers(Course.at(ROOT), HOMEWORK)))
        lesson = Course.at(ROOT).lessons[HOMEWORK]
        text = written if isinstance(written, str) else fill_in(lesson, written)
        name = "my homework.ipynb" if student == "zz_right" else f"{HOMEWORK}.ipynb"
        (place / name).write_text(text)
        (place / "notes.txt").symlink_to("/etc/hostname")
    (folder / "submitted" / "bb_blank" / HOMEWORK / "timestamp.txt").write_text("yesterday, honest")
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        done = nbgrader(folder, step, HOMEWORK)
        assert done.returncode == 0, done.stderr[-3000:]
    done = nbgrader(folder, "export")
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def nbgrader(folder: Path, *args: str) -> subprocess.CompletedProcess:
    scripts = Path(sys.executable).parent
    return subprocess.run(
        [str(scripts / "nbgrader"), *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        timeout=900,
    )


def scores(folder: Path) -> dict[str, float]:
    """Points by student, straight from the database."""
    with sqlite3.connect(folder / "gradebook.db") as db:
        rows = db.execute(
            "select s.id, sum(coalesce(g.auto_score, 0) + coalesce(g.extra_credit, 0)) "
            "from student s join submitted_assignment a on a.student_id = s.id "
            "join submitted_notebook n on n.assignment_id = a.id "
            "join grade g on g.notebook_id = n.id group by s.id"
        )
        return dict(rows.fetchall())


def test_the_gradebook_holds_the_graders_marks(classroom):
    assert scores(classroom) == {
        "aa_right": 10,
        "bb_blank": 0,
        "cc_exits": 4,
        "dd_broken": 0,
        "ee_bonus": 11,
        "zz_right": 10,
    }


def test_feedback_says_what_happened_and_holds_no_solution(classroom):
    def page(student):
        return (classroom / "feedback" / student / HOMEWORK / f"{HOMEWORK}.html").read_text()

    assert "10 of 15 points" in page("aa_right")
    assert "Content-Security-Policy" in page("aa_right")
    assert "ended" in page("cc_exits") or "exit" in page("cc_exits")
    assert "not a notebook" in page("dd_broken") or "JSON" in page("dd_broken")
    assert "MARK SCHEME" not in page("bb_blank")


def test_graders_see_the_marking_schemes_and_students_do_not(classroom):
    for student in STUDENTS:
        graded = classroom / "autograded" / student / HOMEWORK / f"{HOMEWORK}.ipynb"
        assert graded.read_text().count("For the grader only") == 5
        page = classroom / "feedback" / student / HOMEWORK / f"{HOMEWORK}.html"
        assert "For the grader only" not in page.read_text()
    blank = classroom / "feedback" / "bb_blank" / HOMEWORK / f"{HOMEWORK}.html"
    assert "Marking scheme" not in blank.read_text()


def test_no_file_of_a_student_is_copied(classroom):
    assert not list((classroom / "autograded").rglob("notes.txt"))
    assert not list((classroom / "feedback").rglob("notes.txt"))


def test_the_release_has_no_solution_and_no_other_file(classroom):
    files = [p for p in (classroom / "build" / "release").rglob("*") if p.is_file()]
    assert [p.name for p in files] == [f"{HOMEWORK}.ipynb"]
    assert "BEGIN SOLUTION" not in files[0].read_text()


def test_grades_are_exported(classroom):
    rows = (classroom / "grades.csv").read_text().splitlines()
    assert len(rows) == 1 + len(STUDENTS)


def test_grading_again_keeps_a_persons_marks(classroom):
    with sqlite3.connect(classroom / "gradebook.db") as db:
        db.execute("update grade set manual_score = 1 where auto_score is null")
    done = nbgrader(classroom, "autograde", HOMEWORK, "--student=aa_right", "--force")
    assert done.returncode == 0
    with sqlite3.connect(classroom / "gradebook.db") as db:
        kept = db.execute("select count(*) from grade where manual_score = 1").fetchone()[0]
    assert kept > 0


def test_validate_tells_a_blank_notebook_from_a_right_one(classroom):
    blank = classroom / "blank.ipynb"
    blank.write_text(fill_in(Course.at(ROOT).lessons["00_shape_gym"], {}))
    right = classroom / "right.ipynb"
    answers = model_answers(Course.at(ROOT), "00_shape_gym")
    right.write_text(fill_in(Course.at(ROOT).lessons["00_shape_gym"], answers))
    assert "Success" in nbgrader(classroom, "validate", "right.ipynb").stdout
    assert "Success" not in nbgrader(classroom, "validate", "blank.ipynb").stdout
