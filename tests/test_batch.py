"""A class graded at once: which notebook counts, what a run returns, what is kept when it stops."""

import io
import json
import os
import re
import signal
import zipfile
from types import SimpleNamespace

import pytest
from rich.console import Console

from autograder.course.settings import CourseError
from autograder.grading import batch
from autograder.grading.grade import FAULT
from autograder.intake.read import read_from
from autograder.reports.report import Report, Result
from autograder.sandbox import ChildFailed
from autograder.wish import Wish
from tests.intake.lesson_files import make_lessons, solved

HOMEWORK = "05_homework"


class FakeGrader:
    """Grades without running anything; counts, and fails where it is told to."""

    def __init__(self, lessons):
        self.lessons = lessons
        self.graded: list[str] = []
        self.fails: dict[str, BaseException] = {}
        self.fault = ""

    def __call__(self, *_):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def grade_submission(self, submission, **_):
        if submission.error:
            return Report(submission.notebook, submission.lesson, "none", error=submission.error)
        if submission.notebook in self.fails:
            raise self.fails[submission.notebook]
        self.graded.append(submission.notebook)
        error = FAULT if submission.notebook == self.fault else None
        points = (Result("add", 0.0 if "wrong" in submission.notebook else 2.0, 2.0, True),)
        return Report(submission.notebook, submission.lesson, "limits", points, (), error, 2.0)


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    return make_lessons(tmp_path_factory.mktemp("lessons"))


@pytest.fixture
def grader(lessons, monkeypatch):
    fake = FakeGrader(lessons)
    monkeypatch.setattr(batch, "Grader", fake)
    return fake


@pytest.fixture
def right(lessons) -> bytes:
    return json.dumps(solved(lessons[HOMEWORK])).encode()


@pytest.fixture
def other(lessons) -> bytes:
    return json.dumps(lessons["04_before"].notebook).encode()


@pytest.fixture
def run(tmp_path, capsys):
    """Grades files as a zip: the exit status, the lines of JSON, what was said."""

    def run(files: dict[str, bytes], lesson=None, as_json=True):
        source = tmp_path / "in.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        status = batch.grade_source(source, Wish(lesson), as_json)
        out, err = capsys.readouterr()
        return status, [json.loads(x) for x in out.splitlines()] if as_json else out, err

    return run


def test_marks_say_nothing_about_the_run(grader, run, right):
    assert run({"wrong.ipynb": right, "jo.ipynb": right})[0] == 0
    assert run({"wrong.ipynb": right, "jo.ipynb": b"{"})[0] == 0
    assert run({"bo.ipynb": b"", "jo.ipynb": b"{"})[0] == 2
    assert run({})[0] == 2


def test_a_fault_of_the_graders_is_not_a_run_that_went_well(grader, run, right):
    grader.fault = "jo.ipynb"
    status, lines, _ = run({"jo.ipynb": right, "ada.ipynb": right})
    assert status == 1 and len(lines) == 2


def test_ctrl_c_prints_what_was_graded_so_far(grader, run, right):
    grader.fails = {"c.ipynb": KeyboardInterrupt()}
    files = {f"{name}.ipynb": right for name in "abcd"}
    status, out, err = run(files, as_json=False)
    assert status == 130
    assert "stopped; 2 of 4 students were graded" in err
    assert [name for name in "abcd" if f"│ {name} " in out] == ["a", "b"]
    assert "isolation: limits" in out


def test_ctrl_c_in_the_middle_of_a_line_leaves_it_whole(grader, run, right, monkeypatch):
    whole = batch.Row.to_json

    def stopped(row):
        os.kill(os.getpid(), signal.SIGINT)
        return whole(row)

    monkeypatch.setattr(batch.Row, "to_json", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
    try:
        status, lines, said = run({f"{n}.ipynb": right for n in "abc"})
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == batch.STOPPED
    assert len(lines) >= 1
    assert f"stopped; {len(lines)} of 3 students were graded" in said


def test_a_machine_that_fails_midway_loses_no_marks(grader, tmp_path, right, capsys):
    grader.fails = {str(tmp_path / "in/c.ipynb"): ChildFailed("cannot start", "No process.")}
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / f"in/{name}.ipynb").write_bytes(right)
    with pytest.raises(ChildFailed):
        batch.grade_source(tmp_path / "in")
    out = capsys.readouterr().out
    assert [name for name in "abcd" if f"│ {name} " in out] == ["a", "b"]


def test_a_lesson_that_is_not_there_is_said_before_anything_is_graded(grader, run, right):
    with pytest.raises(CourseError, match="05_homewrok.*Did you mean 05_homework"):
        run({"jo.ipynb": right}, "05_homewrok")
    assert grader.graded == []


def test_a_groups_notebook_is_graded_once_and_told_of_each(grader, run, right):
    metadata = "submission_1:\n  :submitters:\n" + "".join(
        f"  - :name: {name}\n    :sid: {i}\n" for i, name in enumerate("abc")
    )
    files = {"submission_metadata.yml": metadata.encode(), "submission_1/x.ipynb": right}
    _, lines, _ = run(files)
    assert [(line["id"], line["score"]) for line in lines] == [("0", 2), ("1", 2), ("2", 2)]
    assert grader.graded == ["submission_1/x.ipynb"]


def test_two_files_of_one_path_in_a_zip_are_two(grader, tmp_path, right, capsys):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive, pytest.warns(UserWarning):
        archive.writestr("jo/x.ipynb", b"{")
        archive.writestr("jo/x.ipynb", right)
    assert batch.grade_source(tmp_path / "in.zip", as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["score"] == 2


def test_the_newest_counts_and_the_others_are_named(grader, run, right):
    _, lines, err = run({f"jo_1_{i}_x.ipynb": right for i in (9, 10, 8)})
    assert [line["notebook"] for line in lines] == ["jo_1_10_x.ipynb"]
    assert err.count("jo_1_10_x.ipynb counts instead") == 2


def test_a_student_with_two_lessons_has_two_lines(grader, run, right, other):
    files = {"jo/a.ipynb": right, "jo/b.ipynb": other, "zoe/c.ipynb": b""}
    _, lines, _ = run(files)
    assert sorted(line["lesson"] for line in lines if line["id"] == "jo") == ["04_before", HOMEWORK]
    _, lines, err = run(files, HOMEWORK)
    assert [line["notebook"] for line in lines] == ["jo/a.ipynb", "zoe/c.ipynb"]
    assert "b.ipynb of jo: This is the notebook of 04_before" in err


def test_a_broken_file_for_one_lesson_stands_beside_the_marks_of_another(grader, run, right):
    _, lines, _ = run({f"jo/{HOMEWORK}/x.ipynb": right, "jo/04_before/x.ipynb": b"{"})
    assert [(line["lesson"], bool(line["error"])) for line in lines] == [
        ("04_before", True),
        (HOMEWORK, False),
    ]


def test_a_notebook_beside_the_folder_of_its_lesson_does_not_count_twice(grader, run, right):
    _, lines, err = run({f"jo/{HOMEWORK}/x.ipynb": right, "jo/copy/y.ipynb": right})
    assert [line["notebook"] for line in lines] == [f"jo/{HOMEWORK}/x.ipynb"]
    assert "y.ipynb of jo: x.ipynb counts instead" in err


def test_asked_for_one_lesson_everybody_is_there(grader, run, right, other):
    files = {f"ada/{HOMEWORK}/x.ipynb": right, "bo/04_before/x.ipynb": other}
    _, lines, _ = run(files, HOMEWORK)
    assert [(line["id"], line["score"], line["error"]) for line in lines] == [
        ("ada", 2, None),
        ("bo", 0, "No notebook of this lesson was handed in."),
    ]


def test_who_has_no_notebook_gets_the_lesson_of_the_others(grader, run, right):
    _, lines, _ = run({"ada_1_10_x.ipynb": right, "bo_2_11_x.pdf": b"x", "cy_3_12_x.ipynb": b"{"})
    assert {line["name"]: line["lesson"] for line in lines} == dict.fromkeys(
        ("ada", "bo", "cy"), HOMEWORK
    )


def test_the_table_stands_in_the_order_of_names(grader, run, right):
    files = {"zoe_1_10_x.ipynb": right, "ada_2_11_x.pdf": b"x", "bo_3_12_x.ipynb": right}
    _, out, _ = run(files, as_json=False)
    places = [out.index(f"│ {name} ") for name in ("ada", "bo", "zoe")]
    assert places == sorted(places)


def test_a_folder_for_a_lesson_that_is_not_the_courses_is_read_by_its_cells(grader, run, right):
    _, lines, _ = run({"ada/99_unknown/x.ipynb": right})
    assert [(line["lesson"], line["score"]) for line in lines] == [(HOMEWORK, 2)]


def test_no_notebook_is_a_path_of_ours(grader, run, right):
    _, lines, err = run({"jo/x.ipynb": right, "ada/y.ipynb": b"{"})
    assert {line["notebook"] for line in lines} == {"jo/x.ipynb", "ada/y.ipynb"}
    assert "tmp" not in json.dumps(lines) + err


def test_a_thousand_remarks_are_fifty_lines(grader, run, right):
    files = {f"s{i}_{i}_{n}_x.ipynb": right for i in range(1, 101) for n in (1, 2)}
    _, lines, err = run(files)
    assert len(lines) == 100
    assert len(err.splitlines()) <= 53 and "and 50 more like these" in err


def test_reading_from_bytes_is_reading_a_file(lessons, right):
    read = read_from(lambda: right, "in a zip", HOMEWORK, lessons)
    assert (read.notebook, read.lesson, read.error) == ("in a zip", HOMEWORK, None)


def test_a_terminal_shows_how_far_how_fast_and_how_long(monkeypatch):
    screen, clock = io.StringIO(), iter((0.0, 60.0))
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(batch, "Console", lambda stderr: console)
    monkeypatch.setattr(batch, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with batch._bar(10) as advance:
        advance(3)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert re.search(r"grading .* 3/10 3 a minute (-:--:--|\d+:\d\d:\d\d)", text)
