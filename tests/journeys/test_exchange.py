"""nbgrader's exchange, from the release to the page that a student fetches, with no flags.

Three students: one hands in twice, one late, one under another name. Where the tests may act for
other users of the machine, they are three of them.
"""

import os
import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError

from autograder.grading import converters, exchange
from autograder.grading.converters import SECRET, TIMESTAMP
from tests.journeys.classroom import (
    HOMEWORK,
    NAME,
    Classroom,
    Student,
    filled,
    half,
    headline,
    marks,
    right,
    students,
)


@pytest.fixture(scope="module")
def place():
    """A folder that every user of the machine can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="exchange-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def term(place):
    """A term's homework through the exchange; what was seen on the way."""
    room = Classroom(
        place / "course",
        f"c.Exchange.root = {str(place / 'exchange')!r}\n"
        "c.AssignLatePenalties.plugin_class = 'autograder.grading.demo.LatePerDay'\n",
    )
    settings = place / "etc"  # as an administrator's /etc/jupyter
    settings.mkdir()
    (settings / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.Exchange.root = {str(place / 'exchange')!r}\n"
    )
    asked = room.start("list")
    seen = {"before": (asked.communicate(timeout=600)[0], asked.returncode)}

    source = room.folder / "build" / "source" / HOMEWORK
    room.nbgrader("generate_assignment", HOMEWORK)
    (room.folder / "build" / "release" / HOMEWORK / "answers.txt").write_text("all of them")
    (room.folder / "build" / "release" / HOMEWORK / "link").symlink_to("/etc/hostname")
    assert source.is_dir()
    seen["release"] = room.nbgrader("release_assignment", HOMEWORK)
    seen["list"] = room.nbgrader("list")
    seen["out"] = [p for p in (place / "exchange").rglob("*") if not p.is_dir()]

    twice, late, renamed = (Student(name, place / "home" / name, settings) for name in students(3))
    fetch = f"fetch_assignment {HOMEWORK} --course attention"
    submit = f"submit {HOMEWORK} --course attention"
    for student in (twice, late, renamed):
        student.nbgrader(fetch)
    seen["fetched"] = (twice.home / HOMEWORK / NAME).read_text()

    twice.write(half())
    twice.nbgrader(submit)
    os.rename(renamed.write(right()), renamed.home / HOMEWORK / "my homework.ipynb")
    (renamed.home / HOMEWORK / "notes.txt").write_text("read me")
    renamed.nbgrader(submit)
    time.sleep(1.1)  # a due date has whole seconds
    due = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    room.nbgrader("db", "assignment", "add", HOMEWORK, f"--duedate={due}")
    time.sleep(1.1)
    late.write(right())
    late.nbgrader(submit)

    room.nbgrader("collect", HOMEWORK)
    seen["graded"] = room.nbgrader("autograde", HOMEWORK)
    seen["first"] = room.scores()
    twice.write(right())
    twice.nbgrader(submit)
    seen["again"] = room.nbgrader("collect", HOMEWORK)
    seen["update"] = room.nbgrader("collect", HOMEWORK, "--update")
    room.hand_in("by_hand", half())  # by mail, say
    seen["regraded"] = room.nbgrader("autograde", HOMEWORK)
    room.nbgrader("generate_feedback", HOMEWORK)
    seen["feedback"] = room.nbgrader("release_feedback", HOMEWORK)
    room.nbgrader("export")
    for student in (twice, late, renamed):
        student.nbgrader(f"fetch_feedback {HOMEWORK} --course attention")
    yield room, (twice, late, renamed), seen


def test_a_list_before_there_is_an_exchange_says_what_to_do(term):
    said, status = term[2]["before"]
    assert status != 0
    assert "nbgrader release_assignment LESSON" in said
    assert "c.Exchange.root in nbgrader_config.py" in said
    assert "Traceback" not in said


def test_nothing_but_the_notebook_is_released(term):
    assert [path.name for path in term[2]["out"]] == [NAME]
    assert "BEGIN SOLUTION" not in term[2]["out"][0].read_text()


def test_the_release_says_what_a_student_types(term):
    room, _, seen = term
    assert f"nbgrader fetch_assignment {HOMEWORK} --course attention" in seen["release"]
    assert f"--Exchange.root={room.folder.parent / 'exchange'}" in seen["release"]
    assert f"attention {HOMEWORK}" in seen["list"]


def test_students_fetch_what_was_released(term):
    assert term[2]["fetched"] == term[2]["out"][0].read_text()


def test_everybody_has_the_marks_of_their_last_work(term):
    room, (twice, late, renamed), seen = term
    assert seen["first"] == {twice.name: 4, late.name: 10, renamed.name: 10}
    assert room.scores() == {twice.name: 10, late.name: 10, renamed.name: 10, "by_hand": 4}


def test_only_what_is_new_is_collected_and_graded_anew(term):
    _, (twice, late, renamed), seen = term
    assert "use --update" in seen["again"]
    assert f"Updating submission: {twice.name} " in seen["update"]
    assert seen["update"].count("Updating submission") == 1
    assert f"{twice.name}: 10.0 of 10.0" in seen["regraded"]
    for other in (late, renamed):
        assert f"{other.name}: " not in seen["regraded"]


def test_the_late_one_stays_late_and_no_other(term):
    room, (twice, late, renamed), _ = term
    table = room.table()
    assert table[late.name]["late_submission_penalty"] == "1.0"
    assert table[late.name]["score"] == "9.0"
    assert table[renamed.name]["late_submission_penalty"] == "0.0"
    assert ("late penalty", "\N{MINUS SIGN}1") in marks(room.page(late.name))
    for student in (twice, late, renamed):
        stamp = (room.place(student.name) / TIMESTAMP).read_text()
        assert table[student.name]["timestamp"] == stamp.removesuffix(" UTC")
    # The second work of the first student came after the due date.
    assert table[twice.name]["late_submission_penalty"] == "1.0"


def test_all_that_was_handed_in_is_there_and_stays_where_it_is(term):
    room, (_, _, renamed), _ = term
    assert (room.place(renamed.name) / "notes.txt").read_text() == "read me"
    assert (room.place(renamed.name) / "my homework.ipynb").is_file()
    assert not (room.place(renamed.name) / NAME).exists()
    for folder in ("autograded", "feedback"):
        files = {p.name for p in (room.folder / folder).rglob("*") if p.is_file()}
        assert files <= {NAME, f"{HOMEWORK}.html", TIMESTAMP, SECRET}


def test_students_fetch_their_own_pages(term):
    _, (twice, late, renamed), _ = term
    assert [headline(page) for page in late.pages()] == [
        "05_homework: 9 of 15 points so far, 5 not marked yet"
    ]
    assert [headline(page) for page in renamed.pages()] == [
        "05_homework: 10 of 15 points so far, 5 not marked yet"
    ]
    assert headline(twice.pages()[-1]) == "05_homework: 9 of 15 points so far, 5 not marked yet"


def test_work_that_came_another_way_stops_nobodys_feedback(term):
    assert "was not handed in through the exchange" in term[2]["feedback"]
    assert "by_hand" in term[2]["feedback"]


# --- the exchange of strangers -------------------------------------------------------------------
@pytest.fixture(scope="module")
def empty_gradebook(tmp_path_factory):
    """A gradebook as nbgrader makes it, which takes a while."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    Gradebook(f"sqlite:///{path}", "attention").close()
    return path


@pytest.fixture
def at(tmp_path, empty_gradebook):
    """Makes one part of the exchange, of a course in which a lesson was released."""
    coursedir = CourseDirectory(
        root=str(tmp_path / "course"),
        course_id="attention",
        assignment_id=HOMEWORK,
        release_directory="build/release",
    )
    released = tmp_path / "course" / "build" / "release" / HOMEWORK
    released.mkdir(parents=True)
    (released / NAME).write_text(filled({}))
    (tmp_path / "exchange").mkdir()
    converters.install()
    shutil.copy(empty_gradebook, tmp_path / "course")

    def make(kind):
        made = kind(coursedir=coursedir, root=str(tmp_path / "exchange"))
        made.log.propagate = True
        return made

    make(exchange.ReleaseAssignment).start()
    make.inbound = tmp_path / "exchange" / "attention" / "inbound"
    make.submitted = tmp_path / "course" / "submitted"
    make.folder = tmp_path / "course"
    return make


def come_in(at, student: str, when: str = "2026-03-01 10:00:00.000000 UTC", text: str = "{}"):
    """A folder as nbgrader's submit writes it; returns it."""
    folder = at.inbound / f"{student}+{HOMEWORK}+{when}+abc"
    folder.mkdir()
    (folder / NAME).write_text(text)
    (folder / TIMESTAMP).write_text(when)
    (folder / SECRET).write_text(f"secret of {student}")
    return folder


def test_no_link_of_a_student_is_followed_on_the_way_in(at, tmp_path):
    (tmp_path / "answers.ipynb").write_text("the answers")
    folder = come_in(at, "ada")
    (folder / NAME).unlink()
    (folder / NAME).symlink_to(tmp_path / "answers.ipynb")
    (folder / "gone").symlink_to(tmp_path / "gone")
    at(exchange.Collect).start()
    assert (at.submitted / "ada" / HOMEWORK / NAME).is_symlink()


@pytest.mark.parametrize("trouble", ["fifo", "second name", "folder for a date", "no rights"])
def test_what_cannot_be_copied_costs_nobody_elses(at, trouble):
    folder = come_in(at, "eve")
    if trouble == "fifo":
        os.mkfifo(folder / "pipe")
    elif trouble == "second name":
        os.link(folder / NAME, folder.parent / "other")
    elif trouble == "folder for a date":
        (folder / TIMESTAMP).unlink()
        (folder / TIMESTAMP).mkdir()
    else:
        (folder / "data").mkdir(mode=0o555)
    come_in(at, "zoe")
    at(exchange.Collect).start()
    for student in ("eve", "zoe"):
        assert (at.submitted / student / HOMEWORK / TIMESTAMP).is_file()
    assert (at.submitted / "zoe" / HOMEWORK / NAME).read_text() == "{}"
    folders = [path for path in at.submitted.rglob("*") if path.is_dir()]
    assert all(path.stat().st_mode & 0o700 == 0o700 for path in folders)  # for the next update


def test_a_folder_that_nbgrader_did_not_write_is_left(at, caplog):
    (at.inbound / f"eve+{HOMEWORK}+yesterday+x").mkdir()
    (at.inbound / f"..+{HOMEWORK}+2026-03-01 10:00:00 UTC+x").mkdir()
    (at.inbound / f"+{HOMEWORK}+2026-03-01 10:00:00 UTC+x").mkdir()
    (at.inbound / f"fay+{HOMEWORK}+2026-03-01 10:00:00 UTC+x").write_text("no folder")
    come_in(at, "zoe")
    at(exchange.Collect).start()
    assert [path.name for path in at.submitted.iterdir()] == ["zoe"]
    assert not (at.folder / HOMEWORK).exists()
    assert "eve" in caplog.text and "fay" in caplog.text


def test_a_deleted_date_does_not_make_a_late_one_early(at):
    folder = come_in(at, "ada", "2026-03-09 10:00:00.000000 UTC")
    (folder / TIMESTAMP).unlink()
    at(exchange.Collect).start()
    stamp = (at.submitted / "ada" / HOMEWORK / TIMESTAMP).read_text()
    assert stamp.startswith("2026-03-09 10:00:00")


def test_a_broken_date_in_submitted_does_not_stop_an_update(at):
    come_in(at, "ada")
    at(exchange.Collect).start()
    (at.submitted / "ada" / HOMEWORK / TIMESTAMP).write_bytes(b"\xff\xfe last week")
    come_in(at, "ada", "2026-03-02 10:00:00.000000 UTC", '{"new": 1}')
    collect = at(exchange.Collect)
    collect.update = True
    collect.start()
    assert (at.submitted / "ada" / HOMEWORK / NAME).read_text() == '{"new": 1}'


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_nobody_hands_in_for_another_user(at, caplog):
    honest, forger = students(2)
    for folder in (come_in(at, honest), come_in(at, honest, "2026-03-05 10:00:00 UTC")):
        shutil.chown(folder, honest if "03-01" in folder.name else forger)
    at(exchange.Collect).start()
    assert "2026-03-01" in (at.submitted / honest / HOMEWORK / TIMESTAMP).read_text()
    assert f"belongs to somebody else than {honest}" in caplog.text


def test_a_release_takes_no_link_for_the_notebook(at, tmp_path):
    notebook = at.folder / "build" / "release" / HOMEWORK / NAME
    notebook.rename(tmp_path / "elsewhere.ipynb")
    notebook.symlink_to(tmp_path / "elsewhere.ipynb")
    release = at(exchange.ReleaseAssignment)
    release.force = True
    with pytest.raises(ExchangeError, match="is a link"):
        release.start()


def test_before_the_first_release_each_command_says_what_to_do(tmp_path, monkeypatch):
    coursedir = CourseDirectory(root=str(tmp_path), course_id="attention", assignment_id=HOMEWORK)
    kinds = (
        exchange.List,
        exchange.FetchAssignment,
        exchange.Submit,
        exchange.Collect,
        exchange.ReleaseFeedback,
        exchange.FetchFeedback,
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / HOMEWORK).mkdir()
    for kind in kinds:
        with pytest.raises(ExchangeError, match="release_assignment 05_homework"):
            kind(coursedir=coursedir, root=str(tmp_path / "none")).start()
    (tmp_path / "empty").mkdir()
    for kind in (kinds[1], kinds[2], kinds[3], kinds[5]):
        with pytest.raises(ExchangeError, match="release_assignment 05_homework"):
            kind(coursedir=coursedir, root=str(tmp_path / "empty")).start()


def test_a_first_try_needs_no_folder_of_the_machines(tmp_path, monkeypatch):
    coursedir = CourseDirectory(root=str(tmp_path))
    (tmp_path / "file").touch()
    monkeypatch.setattr(exchange, "USUAL", str(tmp_path / "file" / "exchange"))  # nobody can
    assert exchange.List(coursedir=coursedir).root == str(tmp_path / "exchange")
    monkeypatch.setattr(exchange, "USUAL", str(tmp_path / "share" / "exchange"))
    assert exchange.List(coursedir=coursedir).root == str(tmp_path / "share" / "exchange")
    (tmp_path / "exchange").mkdir()  # a first try was made: it goes on there
    assert exchange.List(coursedir=coursedir).root == str(tmp_path / "exchange")
