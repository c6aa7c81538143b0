"""Questions marked by hand: all answers on one page, marks from a sheet, feedback that is seen."""

import csv
import re

import pytest

from autograder.exports.answers import steps
from tests.exports.conftest import NASTY, autograder
from tests.journeys.classroom import HOMEWORK, Classroom, headline, right
from tests.test_feedback import BROWSER, violations


@pytest.fixture(scope="module")
def term(tmp_path_factory) -> Classroom:
    """Ada and Ben with the same answer, Dev with markup, Emil without one."""
    room = Classroom(tmp_path_factory.mktemp("answers") / "course")
    q1 = right()["q1"].partition("**Marking")[0]
    room.hand_in("ada", {"q1": q1})
    room.hand_in("ben", {"q1": q1})
    room.hand_in("dev", {"q1": NASTY})
    room.hand_in("emil", {})
    autograder(room, "grade", "submitted", "--lesson", HOMEWORK, "--jobs=2", "--only", "q1")
    autograder(room, "answers", "q1")
    return room


def page(room) -> str:
    return (room.folder / "reports" / f"{HOMEWORK}-q1.html").read_text(encoding="utf-8")


def sheet(room) -> list[dict]:
    with open(room.folder / "reports" / f"{HOMEWORK}-q1.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_has_each_text_once_with_scheme_and_model(term):
    html = page(term)
    assert html.count('<section class="one"') == 2
    assert re.search(r"<h3>ada, ben</h3>", html) and "No answer: emil" in html
    scheme = html.partition("<h2>Marking scheme</h2>")[2].partition("</aside>")[0]
    assert "with a reason" in scheme and "Points to give: 0, 0.25, 0.5, 0.75, 1" in scheme
    assert "<script" not in html and "default-src 'none'" in html


def test_the_sheet_has_a_row_for_each_and_no_formula(term):
    rows = sheet(term)
    assert [r["student"] for r in rows] == ["ada", "ben", "dev", "emil"]
    assert {r["points"] for r in rows} == {""} and {r["of"] for r in rows} == {"1"}
    assert rows[2]["answer"].startswith("'=")


def test_marks_of_a_sheet_reach_the_gradebook_and_the_students_page(term):
    path = term.folder / "marked.csv"
    path.write_text("student;points;comment\nada;0,5;Why the *root* of it?\nben;1;\ndev;;\n")
    said = autograder(term, "answers", "q1", "--write", str(path))
    assert "2 marks of q1 are in the gradebook" in said
    assert term.scores() == {"ada": 0.5, "ben": 1.0, "dev": 0.0, "emil": 0.0}
    term.nbgrader("generate_feedback", HOMEWORK)
    assert "Why the <em>root</em> of it?" in term.page("ada")
    assert headline(term.page("ada")).startswith("05_homework: 0.5 of 15 points")
    autograder(term, "answers", "q1", "--mark", "dev", "0.25", "Nearly.")
    term.nbgrader("generate_feedback", HOMEWORK)  # without --force
    assert "Nearly." in term.page("dev")


@pytest.mark.parametrize(
    "text, said",
    [
        ("student,points\nada,2\n", "row 2: 2 points for ada: q1 is worth 1"),
        ("student,points\nada,-1\n", "row 2: -1 points for ada"),
        ("student,points\nadda,1\n", "'adda' has handed in nothing. Did you mean 'ada'?"),
        ("student,points\nada,nan\n", "'nan' is no number of points"),
        ("student,points\nben,0\nada,1\nada,1\n", "stands twice"),
        ("who,points\nada,1\n", "needs the columns student and points"),
    ],
)
def test_a_sheet_that_cannot_be_right_changes_nothing(term, text, said):
    before = term.scores()
    path = term.folder / "wrong.csv"
    path.write_text(text)
    assert said in autograder(term, "answers", "q1", "--write", str(path), status=2)
    assert term.scores() == before


def test_a_task_that_a_machine_marks_is_no_question(term):
    said = autograder(term, "answers", "multi_head.mask", status=2)
    assert "has no question 'multi_head.mask'" in said and "q1, q2, q3, q4, q5" in said


@pytest.mark.parametrize(
    "scheme, most, expected",
    [
        ("0.5 for this, 0.5 for that; take off 0.25.", 1, [0, 0.25, 0.5, 0.75, 1]),
        ("All or nothing. See section 3.2.2 and 1.35 nats.", 1, [0, 1]),
        ("0.5 for each of four.", 2, [0, 0.5, 1, 1.5, 2]),
        ("0.75 for the first half.", 2, [0, 0.75, 2]),
    ],
)
def test_the_steps_are_those_of_the_scheme(scheme, most, expected):
    assert steps(scheme, most) == expected


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing(term, tmp_path, width):
    assert violations(page(term), tmp_path, width == 390, width) == []
