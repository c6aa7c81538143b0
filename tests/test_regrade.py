"""Marks judged again: what a changed check would alter, and one judgement as it was made."""

import subprocess
import sys
import threading

import pytest

from autograder.course.asking import Finding, Verdict
from autograder.course.lesson import Role
from autograder.grading.records import Record, marks_of
from autograder.grading.work import Done, File, Job, Part, digest_of, do
from autograder.intake.submission import StudentCell, Submission
from autograder.many.ahead import Ahead
from autograder.many.pool import Pool
from autograder.reports.report import Report, Result
from tests.conftest import ROOT
from tests.journeys.classroom import HOMEWORK, Classroom, environ, filled, right
from tests.pieces import work
from tests.typed import typed

TASK = "multi_head.output"
RULE = '@exercise("multi_head.output", in_all_modes, stages=STEPS, judge=judge_output,'
MILD = '@exercise("multi_head.output", in_all_modes, stages=STEPS, judge=lambda sight: [],'


def run(room: Classroom, *args: str) -> subprocess.CompletedProcess:
    """One of our commands, in the course's folder."""
    environment = environ(room.folder, COLUMNS="200")
    alone = ["--jobs=1"] if args[0] in ("grade", "regrade") else []
    return typed("autograder", *args, *alone, place=room.folder, environment=environment)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """Two students: one is right, one has the softmax over the wrong axis."""
    room = Classroom(tmp_path_factory.mktemp("class") / "course")
    answers = right()
    wrong = {**answers, "multi_head": answers["multi_head"].replace("dim=-1", "dim=1")}
    room.hand_in("ada", answers)
    room.hand_in("ben", wrong)
    done = run(room, "grade", "submitted")
    assert done.returncode == 0, done.stderr
    return room


@pytest.fixture
def milder(room):
    """The check changed: it lets everything pass."""
    path = room.folder / "solutions" / "exercises" / f"{HOMEWORK}.py"
    text = path.read_text()
    assert RULE in text
    path.write_text(text.replace(RULE, MILD))
    yield
    path.write_text(text)


def test_what_did_not_change_is_said_to_be_the_same(room):
    done = run(room, "regrade")
    assert done.returncode == 0
    assert "No mark of 2 submissions would change." in done.stdout
    done = run(room, "explain", "ben", TASK)
    assert done.returncode == 0
    assert "The judgement is the same." in done.stdout and "softmax" in done.stdout


def test_a_changed_check_is_shown_before_it_is_written_and_a_persons_marks_stay(room, milder):
    room.mark_by_hand("ben", "q1", 1, "well said")
    before = room.scores()
    shown = run(room, "regrade")
    assert "1 marks of 1 students would change, of 2 submissions." in shown.stdout
    assert "ben" in shown.stdout and TASK in shown.stdout and "ada" not in shown.stdout
    assert "Nothing was written." in shown.stdout
    assert room.scores() == before
    assert run(room, "explain", "ben", TASK).returncode == 1
    assert run(room, "regrade", "--write").returncode == 0
    assert room.scores() == {**before, "ben": before["ben"] + 2}
    assert run(room, "explain", "ben", TASK).returncode == 0


def test_who_or_what_is_unknown_is_told(room):
    done = run(room, "explain", "nobody", TASK)
    assert done.returncode == 2 and "no marks of nobody" in done.stderr
    done = run(room, "explain", "ada", "no.such")
    assert done.returncode == 2 and "no mark of ada for no.such" in done.stderr
    done = run(room, "regrade", "--student", "nobody")
    assert done.returncode == 2 and "no such marks" in done.stderr


# --- what is kept of a mark ----------------------------------------------------------------------
def test_a_job_done_twice_gives_the_same_answer(grader):
    wrong = {c: t.replace("dim=-1", "dim=1") for c, t in right().items()}
    file = File("x.ipynb", HOMEWORK, filled(wrong).encode())
    job = Job((Part(HOMEWORK, (file,)),), seed=7, only=("self_attention.forward",), notebook=True)
    first, second = do(grader, job), do(grader, job)
    assert first == second
    (found,) = first.found
    assert not found.report.passed
    assert {r.task.partition(".")[0] for r in found.report.results} == {"self_attention"}


def test_other_bytes_are_another_job_and_another_path_is_not():
    def of(data: bytes, shown: str = "a/x.ipynb", lesson: str = HOMEWORK) -> str:
        return digest_of(Job((Part(lesson, (File(shown, "x", data),)),)))

    assert of(b"1") == of(b"1", "b/x.ipynb")
    assert of(b"1") != of(b"2")
    assert of(b"1") != of(b"1", lesson="04_many_heads")


def test_a_record_comes_back_as_it_was_written(tmp_path):
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    from autograder.grading import records

    finding = Finding("a.b", Verdict.WRONG, "It is \N{GREEK SMALL LETTER ALPHA}.", 3, "x = 1")
    results = (
        Result("a.b", 0.0, 2.0, False, findings=(finding,)),
        Result("q1", 0.0, 1.0, False, True),
    )
    cells = (StudentCell("a", Role.EXERCISE, "code", "x = 1", True),)
    read = Submission("x.ipynb", HOMEWORK, cells, ("put right",), None)
    report = Report("x.ipynb", HOMEWORK, "namespaces", results, ("put right",), None, 2.0)
    record = Record("d", "m", read, report, marks_of(report, 2**61, "v", "m"), (HOMEWORK,))
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    records.METADATA.create_all(engine)
    for _ in range(2):  # the second is put in the place of the first
        with Session(engine) as db, db.begin():
            records.write(db, HOMEWORK, "ada", record)
    with Session(engine) as db:
        assert records.read(db, "ada") == {HOMEWORK: record}
        assert records.students(db, HOMEWORK) == ["ada"]
    assert isinstance(records.read(Session(engine), "ada")[HOMEWORK].submission.cells[0].role, Role)


@pytest.mark.slow
def test_an_exercise_is_found_without_importing_those_of_other_lessons():
    code = (
        "import sys; from autograder.course.course import Course; from pathlib import Path; "
        f"found = Course.at(Path({str(ROOT)!r})).exercise('self_attention.init'); "
        "print(found.task, [n for n in sys.modules if n.endswith('.09_inside_gpt2')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["self_attention.init", "[]"], done.stderr


# --- ahead ---------------------------------------------------------------------------------------
def test_results_are_there_for_a_loop_that_asks_one_by_one():
    pieces = {n: n for n in range(30)}
    ahead = Ahead(Pool(work, 2), iter(pieces.items()), pieces, most=4)
    try:
        assert ahead.take("unknown") is None
        assert [ahead.take(n) for n in reversed(range(30))] == [2 * n for n in reversed(range(30))]
        assert ahead.take(3) is None  # it was taken
    finally:
        ahead.close()


def test_a_loop_that_ends_early_leaves_no_thread():
    before = threading.active_count()
    pieces = {n: n for n in range(1000)}
    ahead = Ahead(Pool(work, 1), iter(pieces.items()), pieces, most=4)
    assert ahead.take(0) == 0
    ahead.close()
    assert threading.active_count() == before


def test_what_hinders_all_work_comes_as_a_sentence(monkeypatch):
    from autograder.grading import work
    from autograder.sandbox import ChildFailed

    def refuse(tier):
        raise ChildFailed("cannot start", "No walls here.")

    monkeypatch.setattr(work, "_grader", refuse)
    assert work.answer(Job(())) == Done(unable="No walls here.")
