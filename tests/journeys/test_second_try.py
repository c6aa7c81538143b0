"""A second try by a student, a check that is mended, a mark by hand that survives, two at once."""

import json
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import text

from autograder.grading import gradebook
from autograder.grading.converters import what_was_graded
from tests.conftest import ROOT
from tests.journeys.classroom import (
    HOMEWORK,
    NAME,
    Classroom,
    environ,
    filled,
    half,
    headline,
    marks,
    right,
    tree,
)

EARLY, NEWER = "2026-03-01 10:00:00 UTC", "2026-03-02 10:00:00 UTC"
# What lies in each student's folder at first, and what it earns.
FIRST = {
    "aa_renamed": 4,
    "bb_empty": 0,
    "cc_same": 10,
    "dd_newer": 4,
    "ee_broken": 0,
    "ff_no_date": 10,
    "gg_in_a_copy": 10,
    "hh_in_a_folder": 10,
    "ii_by_hand": 4.5,
    "jj_renamed": 10,
    "zz_same": 10,
}
# Who hands in something else later, and what that earns.
LATER = {
    "aa_renamed": 10,
    "bb_empty": 10,
    "dd_newer": 10,
    "ee_broken": 10,
    "ii_by_hand": 10.5,
    "jj_renamed": 10,
}


def hand_in_first(room: Classroom) -> None:
    room.hand_in("aa_renamed", half(), "homework final (2).ipynb")
    room.place("bb_empty")
    room.hand_in("cc_same", right(), when=EARLY)
    room.hand_in("dd_newer", half(), when=EARLY)
    (room.place("ee_broken") / NAME).write_text(filled(right())[:2000])
    room.hand_in("ff_no_date", right(), when="\N{DOUBLE-STRUCK CAPITAL C}\n last Tuesday, \x00")
    room.hand_in("gg_in_a_copy", {})
    room.hand_in("gg_in_a_copy", right(), f"{HOMEWORK}-Copy1.ipynb")
    inner = room.place("hh_in_a_folder") / "attention" / "notebooks" / HOMEWORK
    inner.mkdir(parents=True)
    (inner / NAME).write_text(filled(right()))
    room.hand_in("ii_by_hand", half(), when=EARLY)
    room.hand_in("jj_renamed", right(), "hw.ipynb")
    room.hand_in("zz_same", right())


def hand_in_later(room: Classroom) -> None:
    room.hand_in("aa_renamed", right())
    room.hand_in("bb_empty", right(), "late but there.ipynb")
    room.hand_in("dd_newer", right(), when=NEWER)
    room.hand_in("ee_broken", right())
    room.hand_in("ii_by_hand", right(), when=NEWER)
    (room.place("jj_renamed") / "hw.ipynb").rename(room.place("jj_renamed") / NAME)


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    """A class that hands in twice; what was seen at each time."""
    room, seen = Classroom(tmp_path_factory.mktemp("second") / "course (1)"), {}
    hand_in_first(room)
    seen["handed in"] = tree(room.folder / "submitted")
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        room.nbgrader(step, HOMEWORK)
    room.mark_by_hand("ii_by_hand", "q1", 0.5)
    seen["graded"] = tree(room.folder / "submitted")
    seen["first"] = room.scores()
    seen["repaired"] = room.page("jj_renamed")
    seen["pages"] = {s: room.page(s) for s in FIRST}

    hand_in_later(room)
    seen["said"] = room.nbgrader("autograde", HOMEWORK)
    seen["later"] = room.scores()
    seen["feedback"] = room.nbgrader("generate_feedback", HOMEWORK)
    return room, seen


def test_whatever_lies_in_a_folder_is_graded(term):
    assert term[1]["first"] == FIRST


def test_a_page_says_what_was_read_and_why_there_are_no_marks(term):
    pages = term[1]["pages"]
    assert "No notebook was handed in." in pages["bb_empty"]
    assert "The file is not a notebook" in pages["ee_broken"]
    assert "name does not say which lesson" in pages["jj_renamed"]


def test_nothing_is_written_into_what_was_handed_in(term):
    assert term[1]["graded"] == term[1]["handed in"]


def test_work_that_comes_later_is_graded_by_a_plain_autograde(term):
    assert term[1]["later"] == {**FIRST, **LATER}


def test_work_that_stayed_the_same_is_not_graded_again(term):
    for student in FIRST:
        assert (f"{student}: " in term[1]["said"]) == (student in LATER)


def test_the_new_marks_reach_the_pages_by_a_plain_generate_feedback(term):
    room, seen = term
    for student in LATER:
        assert headline(room.page(student)).startswith("05_homework: 10")
        assert room.page(student) != seen["pages"][student]
    assert "name does not say which lesson" not in room.page("jj_renamed")
    assert room.page("cc_same") == seen["pages"]["cc_same"]


def test_a_mark_by_hand_survives_the_second_try(term):
    room, _ = term
    assert ("q1", "0.5 / 1") in marks(room.page("ii_by_hand"))
    assert headline(room.page("ii_by_hand")) == (
        "05_homework: 10.5 of 15 points so far, 4 not marked yet"
    )


def test_a_run_that_was_cut_off_is_taken_up_again(term):
    room, _ = term
    graded = room.folder / "autograded" / "zz_same" / HOMEWORK / NAME
    whole = json.loads(graded.read_text())
    del whole["metadata"]["graded"]  # as the first of autograde's two passes leaves it
    graded.chmod(0o644)
    graded.write_text(json.dumps(whole))
    said = room.nbgrader("autograde", HOMEWORK)
    assert "zz_same: 10.0 of 10.0" in said
    assert what_was_graded(graded)


# --- a check that was wrong ----------------------------------------------------------------------
WRONG_CHECK = """
from dataclasses import replace
from autograder import Finding
TOO_STRICT = [Finding("self_attention.init.odd", "wrong", "This check was too strict.")]
for written in SelfAttention.exercises:
    if written.exercise.task == "self_attention.init":
        written.exercise = replace(written.exercise, judge=lambda sight: TOO_STRICT)
"""


@pytest.mark.slow
def test_a_mended_check_gives_the_points_back_by_force(tmp_path):
    room = Classroom(tmp_path / "course")
    exercises = room.folder / "solutions" / "exercises" / f"{HOMEWORK}.py"
    mended = exercises.read_text(encoding="utf-8")
    exercises.write_text(mended + WRONG_CHECK, encoding="utf-8")
    room.hand_in("ada", right())
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        room.nbgrader(step, HOMEWORK)
    assert headline(room.page("ada")).startswith("05_homework: 9 of 15")
    assert "This check was too strict." in room.page("ada")
    exercises.write_text(mended, encoding="utf-8")
    assert "Skipping existing" in room.nbgrader("autograde", HOMEWORK)
    room.nbgrader("autograde", HOMEWORK, "--force")
    room.nbgrader("generate_feedback", HOMEWORK)
    assert headline(room.page("ada")).startswith("05_homework: 10 of 15")
    assert "This check was too strict." not in room.page("ada")


# --- folders that cannot be written to -----------------------------------------------------------
ORDINARY = """import sys
from tests.sandbox import as_somebody_else
as_somebody_else.ordinary_user()
import nbgrader.apps.nbgraderapp as apps
apps.main()
"""


@pytest.mark.slow
def test_a_read_only_submitted_with_a_renamed_notebook_stops_nobody(tmp_path):
    room = Classroom(tmp_path / "course")
    room.hand_in("ada", half(), "renamed.ipynb")
    room.hand_in("ben", half(), when="no date at all")
    room.place("chloe")
    room.hand_in("dev", half())
    room.nbgrader("generate_assignment", HOMEWORK)
    submitted = room.folder / "submitted"
    for path in (submitted, *submitted.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", ORDINARY, "autograde", HOMEWORK],
            cwd=room.folder,
            env={**environ(room.folder), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        for path in (submitted, *submitted.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert done.returncode == 0, done.stderr[-4000:]
    assert room.scores() == {"ada": 4, "ben": 4, "chloe": 0, "dev": 4}


# --- two at once ---------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("processes", "size"), [(2, 3), (4, 10)])
def test_autogrades_at_once_end_well_and_with_all_marks(tmp_path, processes, size):
    room = Classroom(tmp_path / "course")
    expected = {}
    for number in range(size):
        student, name = f"s{number:02}", NAME if number % 2 else "renamed.ipynb"
        room.hand_in(student, right() if number % 3 else half(), name)
        expected[student] = 10 if number % 3 else 4
    room.nbgrader("generate_assignment", HOMEWORK)
    started = [room.start("autograde", HOMEWORK) for _ in range(processes)]
    ended = [(p.communicate(timeout=900)[0], p.returncode) for p in started]
    for said, status in ended:
        assert status == 0, said[-4000:]
        assert "Traceback" not in said and "locked" not in said
    assert room.scores() == expected
    for student in expected:
        folder = room.folder / "autograded" / student / HOMEWORK
        assert [path.name for path in folder.iterdir()] == [NAME]
        assert what_was_graded(folder / NAME)
    together = "".join(said for said, _ in ended)
    for student, points in expected.items():  # each by one of them, once
        assert together.count(f"{student}: {points:.1f} of 10.0") == 1


def test_a_gradebook_that_somebody_writes_to_is_waited_for(tmp_path):
    gradebook.share()
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as opened:
        patience = opened.db.execute(text("PRAGMA busy_timeout")).scalar()
    assert patience == gradebook.PATIENCE * 1000 >= 60_000
