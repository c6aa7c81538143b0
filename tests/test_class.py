"""A class marked by `autograder grade`: in nbgrader's gradebook, on all cores, resumable."""

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Container

import pytest

from autograder.classroom.book import Book, BookError
from autograder.grading import work as graded_by
from autograder.many.pool import Failed, Pool
from tests.forms import examples
from tests.journeys.classroom import HOMEWORK, NAME, Classroom, environ, half, right
from tests.pieces import work
from tests.typed import typed

BONUS = "        scores = self.q(x) @ self.k(x).mT / self.scale  # [batch_size, seq_len, seq_len]\n"
BONUS += "        probs = F.softmax(scores, dim=-1)  # [batch_size, seq_len, seq_len]\n"
BONUS += "        return probs @ self.v(x)  # [batch_size, seq_len, hidden]\n"


def three_lines(answers: dict[str, str]) -> dict[str, str]:
    """The first class with the short forward that earns a bonus."""
    text = answers["self_attention"]
    start = text.index("        q = self.q(x)")
    return {**answers, "self_attention": text[:start] + BONUS}


def exits(answers: dict[str, str]) -> dict[str, str]:
    return {**answers, "multi_head": "import os\nos._exit(0)"}


CLASS = {"ada": right, "ben": half, "cy": dict, "dev": lambda: exits(right())}
BONUS_STUDENT = "eve"


def fill(room: Classroom, only: Container[str] = CLASS) -> None:
    """A class of six, of which one handed in no notebook that can be read; or only those named."""
    for name, answers in CLASS.items():
        if name in only:
            room.hand_in(name, answers(), when="2026-03-01 18:30:00 UTC")
    if only is not CLASS:
        return
    room.hand_in(BONUS_STUDENT, three_lines(right()), "my homework.ipynb")
    (room.place("zoe") / NAME).write_text('{"cells": [')


def grade(room: Classroom, *args: str, **more: str) -> subprocess.CompletedProcess:
    """`autograder grade`, as it is typed in the course's folder."""
    command = ("autograder", "grade", "submitted", "--jobs=1", *args)  # the last of a kind counts
    return typed(*command, place=room.folder, environment=environ(room.folder, **more))


def graded(room: Classroom, *args: str) -> list[dict]:
    """The same with --json, which has to succeed: its lines."""
    done = grade(room, "--json", *args)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


MARKS = """
select s.student_id, c.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade
from grade g join base_cell c on c.id = g.cell_id
join submitted_notebook n on n.id = g.notebook_id
join submitted_assignment s on s.id = n.assignment_id order by 1, 2
"""
COMMENTS = """
select s.student_id, c.name, k.auto_comment, k.manual_comment
from comment k join base_cell c on c.id = k.cell_id
join submitted_notebook n on n.id = k.notebook_id
join submitted_assignment s on s.id = n.assignment_id order by 1, 2
"""
SUBMITTED = """
select s.student_id, s.timestamp, n.flagged, n.late_submission_penalty
from submitted_assignment s join submitted_notebook n on n.assignment_id = s.id order by 1
"""


def tables(room: Classroom) -> dict[str, list]:
    """All that nbgrader's tables say of the submissions."""
    with sqlite3.connect(room.folder / "gradebook.db") as db:
        return {q: db.execute(q).fetchall() for q in (MARKS, COMMENTS, SUBMITTED)}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    """The same class twice: marked by nbgrader's autograde, and by `autograder grade`."""
    there = Classroom(tmp_path_factory.mktemp("nbgrader") / "course")
    here = Classroom(tmp_path_factory.mktemp("ours") / "course")
    for room in (there, here):
        fill(room)
    there.nbgrader("generate_assignment", HOMEWORK)
    there.nbgrader("autograde", HOMEWORK)
    here.lines = graded(here, "--jobs=2")
    return there, here


def test_the_gradebook_is_the_one_that_nbgrader_would_have_written(rooms):
    there, here = rooms
    assert tables(here) == tables(there)
    assert here.scores() == {"ada": 10, "ben": 4, "cy": 0, "dev": 4, "eve": 11, "zoe": 0}
    assert {line["id"]: line["score"] for line in here.lines} == here.scores()


def test_graded_notebooks_are_where_nbgrader_looks_for_them_and_hold_the_same(rooms):
    def cells(room: Classroom, student: str) -> list:
        path = room.folder / "autograded" / student / HOMEWORK / NAME
        assert path.stat().st_mode & 0o777 == 0o444
        found = json.loads(path.read_text())["cells"]
        for cell in found:  # figures are nbgrader's step alone
            number = cell.get("metadata", {}).get("nbgrader", {}).get("grade", False)
            if not number and cell["cell_type"] == "code":
                cell["outputs"] = []
        return found

    there, here = rooms
    for student in [*CLASS, "eve", "zoe"]:
        ours, theirs = cells(here, student), cells(there, student)
        assert [c["source"] for c in ours] == [c["source"] for c in theirs]
        assert [_numbers(c) for c in ours] == [_numbers(c) for c in theirs]


def _numbers(cell: dict) -> list:
    kinds = [o for o in cell.get("outputs", []) if o["output_type"] == "execute_result"]
    return [o["data"]["text/plain"] for o in kinds]


def test_feedback_and_export_follow_as_after_autograde(rooms):
    _, here = rooms
    here.nbgrader("generate_feedback", HOMEWORK)
    here.nbgrader("export")
    assert "10 of 15 points" in here.page("ada")
    assert float(here.table()["eve"]["score"]) == 11


def test_nbgrader_autograde_has_nothing_left_to_do(rooms):
    _, here = rooms
    before = {p: p.stat().st_mtime_ns for p in (here.folder / "autograded").rglob("*.ipynb")}
    said = here.nbgrader("autograde", HOMEWORK)
    after = {p: p.stat().st_mtime_ns for p in (here.folder / "autograded").rglob("*.ipynb")}
    assert after == before, said[-2000:]


def test_what_is_unchanged_is_not_graded_again_and_what_is_changed_is(rooms):
    _, here = rooms
    again = grade(here)
    assert again.returncode == 0
    assert "6 of them were graded before and are unchanged" in again.stderr
    here.hand_in("cy", right())
    lines = graded(here)
    assert next(line for line in lines if line["id"] == "cy")["score"] == 10
    assert here.scores()["cy"] == 10


def test_one_student_and_one_task_leave_the_others_marks(rooms):
    _, here = rooms
    before = here.scores()
    (line,) = graded(here, "--student=ada", "--only=self_attention.forward", "--force")
    tasks = [r["task"] for r in line["results"]]
    assert "self_attention.forward" in tasks and "multi_head.output" in tasks  # what is kept
    assert here.scores() == before
    wrong = grade(here, "--student=adda")
    assert wrong.returncode == 2 and "Did you mean ada?" in wrong.stderr
    wrong = grade(here, "--only=self_attention.foward")
    assert wrong.returncode == 2 and "Did you mean self_attention.forward?" in wrong.stderr


def test_a_persons_marks_comments_and_bonus_survive(rooms):
    _, here = rooms
    here.mark_by_hand("ada", "q1", 1, "well said")
    here.extra_credit("eve", "check-self_attention-forward", 1.5)  # the bonus, and half a point
    for _ in range(examples(1, 2)):
        graded(here, "--force", "--student=ada", "--student=eve")
    assert here.scores()["ada"] == 11 and here.scores()["eve"] == 11.5
    comments = [row for row in tables(here)[COMMENTS] if row[3]]
    assert comments == [("ada", "q1", None, "well said")]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path, rooms):
    there, _ = rooms
    room = Classroom(tmp_path / "course")
    fill(room)
    graded(room, "--student=cy")  # the lesson is in the gradebook
    for enough in (2, 4):
        command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--jobs=2"]
        running = subprocess.Popen(
            command,
            cwd=room.folder,
            env=environ(room.folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while running.poll() is None and _records(room) < enough:
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
        running.wait()
        _whole(room)
    graded(room)
    assert tables(room) == tables(there)


def _records(room: Classroom) -> int:
    """How many submissions have a record of their marks."""
    with sqlite3.connect(room.folder / "gradebook.db") as db:
        return db.execute("select count(*) from autograder_submission").fetchone()[0]


def _whole(room: Classroom) -> None:
    """Whoever has a record has all marks; a notebook in its place is whole."""
    with sqlite3.connect(room.folder / "gradebook.db") as db:
        for (student,) in db.execute("select student from autograder_submission").fetchall():
            (count,) = db.execute(
                "select count(*) from autograder_mark where student = ?", [student]
            ).fetchone()
            assert count == 10
    for path in (room.folder / "autograded").rglob("[!.]*.ipynb"):
        json.loads(path.read_text())


# --- the pool ------------------------------------------------------------------------------------
def test_a_process_that_ends_costs_no_piece_of_work(tmp_path):
    (tmp_path / "once").write_text("")
    once = str(tmp_path / "once")
    pieces = {1: 1, "once": once, "always": "always", "fails": "fails", **{n: n for n in range(40)}}
    with Pool(work, 2) as pool:
        found = dict(pool.run(pieces.items()))
    assert found.keys() == pieces.keys()
    assert [found[n] for n in range(40)] == [2 * n for n in range(40)]
    assert found["once"] == once * 2
    assert isinstance(found["always"], Failed) and "ended twice" in found["always"].why
    assert isinstance(found["fails"], Failed) and "ValueError" in found["fails"].why


def test_large_pieces_and_answers_do_not_block_each_other():
    pieces = [(n, bytes(3_000_000)) for n in range(8)]
    with Pool(work, 2) as pool:
        assert {len(result) for _, result in pool.run(pieces)} == {6_000_000}


def test_what_is_doubtful_is_done_again_alone_at_the_end():
    with Pool(work, 2) as pool:
        order = [key for key, _ in pool.run([(n, n) for n in range(6)], again=lambda r: r == 0)]
    assert order[-1] == 0 and sorted(order) == list(range(6))


def test_no_process_is_waited_for_where_nothing_is_to_do(monkeypatch):
    def start(pool):
        raise AssertionError("processes were started")

    monkeypatch.setattr(Pool, "_start", start)
    with Pool(work, 2) as pool:
        assert list(pool.run([])) == []
        with pytest.raises(AssertionError):
            list(pool.run([(1, 1)]))


def test_a_read_only_folder_is_told_in_a_sentence(tmp_path):
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    room = Classroom(tmp_path / "course")
    fill(room)
    room.folder.chmod(0o555)
    try:
        done = grade(room)
    finally:
        room.folder.chmod(0o755)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be" in done.stderr


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_disk_that_is_full_where_children_work_is_told_in_a_sentence(monkeypatch, number):
    def full(tier):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(graded_by, "_grader", full)
    done = graded_by.answer(graded_by.Job(()))
    assert "make room there and run this again" in done.unable and not done.found


def test_a_damaged_gradebook_is_told_in_a_sentence(tmp_path):
    room = Classroom(tmp_path / "course")
    fill(room)
    (room.folder / "gradebook.db").write_bytes(b"this is no database" * 100)
    done = grade(room)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "gradebook" in done.stderr and "file is not a database" in done.stderr


def test_a_program_of_nbgraders_that_is_not_found_is_told_in_a_sentence():
    with (
        pytest.raises(BookError, match="`alembic`, which is not on the PATH"),
        Book._told(None),
    ):
        subprocess.run(["alembic", "heads"], env={"PATH": ""}, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--force", "--student=cy"]])
def test_the_process_that_keeps_the_marks_imports_nothing_that_judges(rooms, more):
    """Torch takes longer to import than a class that is unchanged takes to be looked through."""
    _, here = rooms
    program = (
        "import sys; from autograder.cli import main; "
        f"status = main(['grade', 'submitted', '--jobs=1', *{more}]); "
        "print(status, [m for m in ('torch', 'jupytext', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=here.folder,
        env=environ(here.folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr[-2000:]


def test_without_a_gradebook_nothing_is_written(tmp_path):
    room = Classroom(tmp_path / "course")
    fill(room, ("ada", "cy"))
    assert len(graded(room, "--no-gradebook")) == 2
    assert not (room.folder / "gradebook.db").exists()
    assert not (room.folder / "autograded").exists()
    shutil.rmtree(room.folder / "build", ignore_errors=True)
