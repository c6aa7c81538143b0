"""An instructor marks in formgrader, in a real browser; the student sees it, a regrade keeps it."""

import sqlite3
import time

import pytest

from tests.journeys.browser import PATIENCE, browser
from tests.journeys.classroom import HOMEWORK, Classroom, headline, marks, right
from tests.journeys.walk import Place
from tests.test_feedback import BROWSER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="no browser is installed"),
]
COMMENT = "Why the *root* of it, $\\sqrt{d}$?"


def saved(room: Classroom, query: str, *values) -> list[tuple]:
    """What the gradebook holds, as soon as it holds it; the server is still running."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with sqlite3.connect(room.folder / "gradebook.db") as db:
            if found := db.execute(query, values).fetchall():
                return found
        time.sleep(0.2)
    raise AssertionError(f"the gradebook never had {values}")


SCORE = (
    "select g.manual_score from grade g join base_cell c on c.id = g.cell_id "
    "where c.name = ? and g.manual_score = ?"
)
SAID = "select manual_comment from comment where manual_comment = ?"


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    """Ada's homework, marked by hand as a person does it; what was on the instructor's screen."""
    folder = tmp_path_factory.mktemp("formgrader")
    room, seen = Classroom(folder / "course"), {}
    room.hand_in("ada", {cell: text.partition("**Marking")[0] for cell, text in right().items()})
    for step in ("generate_assignment", "autograde"):
        room.nbgrader(step, HOMEWORK)
    place = Place(room.folder)
    place.home.mkdir()
    with place.serving("jupyter lab") as server, browser(folder) as person:
        person.go(f"{server.url}/formgrader?token={server.token}")
        person.follow("Manual Grading")
        person.follow(HOMEWORK)
        person.see("location.pathname.endsWith('/gradebook/05_homework')")
        person.follow(HOMEWORK)
        person.follow("Submission #1")
        # formgrader has fetched the marks: what the machine gave stands in its box
        person.see("document.querySelector('#check-self_attention-init').placeholder === '1'")
        seen["page"] = person.see("document.body.innerText")

        person.click("document.querySelector('#q1')")
        person.write("0.5")
        person.press("Tab")
        person.see("document.activeElement.classList.contains('extra-credit')")
        person.press("Tab")
        person.see("document.activeElement.id === 'q1-comment'")
        person.write(COMMENT)
        person.press("Tab")
        saved(room, SCORE, "q1", 0.5)
        saved(room, SAID, COMMENT)
        person.click("document.querySelector('#check-self_attention-forward')")
        person.write("2.5")
        person.press("Tab")
        saved(room, SCORE, "check-self_attention-forward", 2.5)
    room.nbgrader("generate_feedback", HOMEWORK)
    seen["feedback"] = room.page("ada")
    room.nbgrader("autograde", HOMEWORK, "--force")
    room.nbgrader("generate_feedback", HOMEWORK, "--force")
    seen["again"] = room.page("ada")
    return seen


def test_the_scheme_and_a_model_answer_stand_below_each_question(term):
    page = term["page"]
    assert page.count("For the grader only") == page.count("Marking scheme.") == 5
    first = page.partition("Q1 (1 point)")[2].partition("Q2 (1 point)")[0]
    answer, model = first.index("Student's answer"), first.index("For the grader only")
    assert answer < model < first.index("Marking scheme.")


def test_points_and_comment_of_a_person_reach_the_students_page(term):
    page = term["feedback"]
    assert headline(page) == f"{HOMEWORK}: 10 of 15 points so far, 4 not marked yet"
    assert ("q1", "0.5 / 1") in marks(page)
    assert ("self_attention.forward", "2.5 / 3") in marks(page)
    assert "Why the <em>root</em> of it, <math" in page
    todo = page.partition('id="next"')[2].partition("</ol>")[0]
    assert "read the comment" in todo and "a person gave this mark" in todo


def test_a_regrade_keeps_them(term):
    assert marks(term["again"]) == marks(term["feedback"])
    assert "Why the <em>root</em> of it" in term["again"]
