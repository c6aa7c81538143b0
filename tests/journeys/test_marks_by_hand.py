"""Questions that a person marks: open until then, on the page and in the table; then as given."""

import pytest

from tests.journeys.classroom import HOMEWORK, Classroom, half, headline, marks, right

pytestmark = pytest.mark.slow
QUESTION = "q1"


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    """A class before, while and after a person marks; what was seen at each time."""
    room = Classroom(tmp_path_factory.mktemp("hand") / "course")
    room.hand_in("ada", right())
    room.hand_in("ben", half())
    room.hand_in("emil", {})
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        room.nbgrader(step, HOMEWORK)
    room.nbgrader("export")
    seen = {"pages": {s: room.page(s) for s in ("ada", "ben", "emil")}, "table": room.table()}

    room.mark_by_hand("ada", QUESTION, 0.5, "Why the *root* of it?")
    seen["plain"] = room.nbgrader("generate_feedback", HOMEWORK), room.page("ada")
    seen["force"] = room.nbgrader("generate_feedback", HOMEWORK, "--force"), room.page("ada")
    for question in ("q2", "q3", "q4", "q5"):
        room.mark_by_hand("ada", question, 0.0)
    room.mark_by_hand("ada", "check-self_attention-init", 0.25)
    room.extra_credit("ben", "check-self_attention-init", 0.75)
    room.extra_credit("emil", "q2", 0.5)
    room.nbgrader("autograde", HOMEWORK, "--force")
    room.nbgrader("generate_feedback", HOMEWORK, "--force")
    room.nbgrader("export")
    return room, seen


def test_a_question_that_nobody_has_marked_is_open_and_no_zero(term):
    _, seen = term
    page = seen["pages"]["ada"]
    assert headline(page) == "05_homework: 10 of 15 points so far, 5 not marked yet"
    rows = marks(page)
    assert [mark for task, mark in rows if task in ("q1", "q2", "q3", "q4", "q5")] == [
        "not marked yet (of 1)"
    ] * 5
    assert rows[-1] == ("together, so far", "10 / 15, 5 not marked yet")
    assert ">0 / 1<" not in page


def test_a_question_without_an_answer_is_a_zero_and_not_open(term):
    page = term[1]["pages"]["emil"]
    assert headline(page) == "05_homework: 0 of 15 points"
    assert "not marked yet" not in page


def test_the_table_says_what_is_open(term):
    table = term[1]["table"]
    assert {s: (r["score"], r["not_marked_yet"]) for s, r in table.items()} == {
        "ada": ("10.0", "5.0"),
        "ben": ("4.0", "5.0"),
        "emil": ("0.0", "0.0"),
    }


def test_a_mark_by_hand_reaches_the_page_with_force(term):
    said, page = term[1]["plain"]
    assert "Skipping existing" in said
    assert headline(page) == "05_homework: 10 of 15 points so far, 5 not marked yet"
    _, page = term[1]["force"]
    assert headline(page) == "05_homework: 10.5 of 15 points so far, 4 not marked yet"
    assert ("q1", "0.5 / 1") in marks(page)
    assert "Why the <em>root</em> of it?" in page


def test_marks_by_hand_survive_a_regrade_and_the_others_are_whole(term):
    room, _ = term
    page = room.page("ada")
    # 9 of the machine's points, 0.25 where a person overruled it, 0.5 for a question
    assert headline(page) == "05_homework: 9.75 of 15 points"
    assert ("self_attention.init", "0.25 / 1") in marks(page)
    assert ("q2", "0 / 1") in marks(page)
    assert room.table()["ada"]["not_marked_yet"] == "0.0"


def test_extra_credit_by_hand_survives_a_regrade(term):
    room, _ = term
    assert headline(room.page("ben")) == "05_homework: 4.75 of 15 points so far, 5 not marked yet"
    assert headline(room.page("emil")) == "05_homework: 0.5 of 15 points"
