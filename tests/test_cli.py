"""`autograder check` and `grade` as a user meets them: tables, JSON, exit status, an early end."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.forms import examples, first_of
from tests.typed import typed

HOMEWORK = "05_homework"


def run(*args: str) -> subprocess.CompletedProcess:
    return typed("autograder", *args)


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory):
    """The JSON lines for a solution, a blank one, one that is not a notebook, one that is not."""
    from autograder.course.course import Course
    from autograder.grading.demo import fill_in
    from autograder.grading.grade import model_answers

    folder = tmp_path_factory.mktemp("mixed")
    released = Course.at(ROOT).lessons[HOMEWORK]
    (folder / "solved.ipynb").write_text(
        fill_in(released, model_answers(Course.at(ROOT), HOMEWORK))
    )
    (folder / "blank.ipynb").write_text(fill_in(released, {}))
    (folder / "broken.ipynb").write_text('{"cells": [')
    names = ["solved", "blank", "broken", "absent"]
    paths = [str(folder / f"{name}.ipynb") for name in names]
    done = run("check", "--json", *paths)
    return done, paths


def test_json_is_one_object_a_line_in_the_order_given(one_of_each):
    done, paths = one_of_each
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["notebook"] for line in lines] == paths
    for line in lines:
        assert list(line) == [
            "notebook",
            "lesson",
            "score",
            "max_score",
            "isolation",
            "error",
            "repairs",
            "results",
            "not_marked",
            "deductions",
        ]
        for result in line["results"]:
            assert list(result) == [
                "task",
                "points",
                "max_points",
                "passed",
                "needs_person",
                "findings",
                "status",
                "earned",
            ]
            for finding in result["findings"]:
                assert list(finding) == [
                    "check",
                    "verdict",
                    "message",
                    "line",
                    "statement",
                    "tried",
                    "expected",
                    "got",
                    "points",
                    "mistake",
                    "where",
                ]


def test_scores_and_errors_are_where_they_belong(one_of_each):
    done, _ = one_of_each
    solved, blank, broken, absent = (json.loads(line) for line in done.stdout.splitlines())
    assert (solved["score"], solved["max_score"], solved["error"]) == (10, 10, None)
    assert (blank["score"], blank["error"]) == (0, None)
    assert broken["error"] and absent["error"]
    assert broken["score"] == absent["score"] == 0
    assert {r["task"] for r in solved["results"]} >= {"self_attention.forward", "multi_head.scores"}


def test_questions_wait_for_a_person_and_blank_ones_do_not(one_of_each):
    done, _ = one_of_each
    solved, blank, broken, absent = (json.loads(line) for line in done.stdout.splitlines())
    assert (solved["not_marked"], blank["not_marked"]) == (5, 0)
    words = {r["status"] for r in solved["results"]}
    assert words == {"right", "not marked yet"}
    assert {r["status"] for r in blank["results"]} == {"not filled in"}
    assert {r["status"] for r in broken["results"] + absent["results"]} <= {"not graded"}


def test_a_notebook_that_cannot_be_read_gets_one_clear_line(one_of_each):
    done, paths = one_of_each
    lines = [line for line in done.stderr.splitlines() if "broken.ipynb" in line]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr


def test_the_exit_status_tells_passed_from_failed_from_unreadable(one_of_each):
    done, paths = one_of_each
    assert done.returncode == 1
    solved = run("check", paths[0])
    assert solved.returncode == 0, solved.stdout
    assert run("check", paths[2], paths[3]).returncode == 2


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    """A class: one whose cell Python cannot read, one without a scale, and several right ones."""
    from autograder.course.course import Course
    from autograder.grading.demo import fill_in
    from autograder.grading.grade import model_answers

    folder = tmp_path_factory.mktemp("class")
    lesson, right = (
        Course.at(ROOT).lessons[HOMEWORK],
        dict(model_answers(Course.at(ROOT), HOMEWORK)),
    )
    one = right["self_attention"]
    changed = {
        "broken": one.replace("super().__init__()", "super().__init__(", 1),
        "scale": one.replace(" / self.scale", ""),
        **dict.fromkeys(("right1", "right2", "right3", "right4"), one),
    }
    for name, answer in changed.items():
        assert answer != one or "right" in name
        text = fill_in(lesson, {**right, "self_attention": answer})
        (folder / f"{name}.ipynb").write_text(text)
    return folder


@pytest.fixture(scope="module")
def broken(mistakes):
    """What is said of the one whose cell Python cannot read."""
    return run("check", str(mistakes / "broken.ipynb"))


def test_a_cell_that_python_cannot_read_is_told_once_and_the_total_in_words(broken):
    done = broken
    assert done.returncode == 1
    assert "6 of 10, 5 questions not marked yet" in done.stdout
    assert done.stdout.count("SyntaxError") == 1
    assert "The same as for" in done.stdout and "could not be seen" not in done.stdout
    assert "isolation: " in done.stdout


def test_the_table_shows_what_was_tried_expected_and_got(mistakes, broken):
    assert " likely  " in broken.stdout
    done = run("check", str(mistakes / "scale.ipynb"))
    assert "not" in done.stdout and "scaled" in done.stdout and ": 9 of 10" in done.stdout
    said = run("check", "--json", str(mistakes / "broken.ipynb")).stdout
    findings = [f for r in json.loads(said)["results"] for f in r["findings"]]
    assert any(f["check"] == "does not parse" and f["line"] for f in findings)


NO_BOOK = "--no-gradebook"


@pytest.mark.parametrize(
    "args", first_of(["check"], ["check", "--json"], ["grade", "--json", NO_BOOK])
)
def test_a_reader_who_has_seen_enough_ends_the_command_quietly(mistakes, args):
    files = sorted(map(str, mistakes.glob("*.ipynb"))) if "check" in args else [str(mistakes)]
    with subprocess.Popen(
        [sys.executable, "-m", "autograder.cli", *args, *files],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()  # as `head -1` does
        said = process.stderr.read()
        status = process.wait(timeout=240)
    assert "Traceback" not in said and "BrokenPipe" not in said and "Exception" not in said
    assert status in (0, 1, 141)


@pytest.fixture
def with_one_that_hangs(mistakes, tmp_path):
    """The same class, which cannot be done before it is stopped, however busy the machine is."""
    folder = shutil.copytree(mistakes, tmp_path / "class")
    right = (folder / "right1.ipynb").read_text()
    hangs = right.replace("super().__init__()", "[None for _ in iter(int, 1)]")
    assert hangs != right
    for name in ("y_hangs", "z_hangs"):
        (folder / f"{name}.ipynb").write_text(hangs)
    return folder


def test_ctrl_c_ends_a_class_with_what_was_graded(with_one_that_hangs):
    folder, jobs = str(with_one_that_hangs), f"--jobs={examples(1, 2)}"
    with subprocess.Popen(
        [sys.executable, "-m", "autograder.cli", "grade", "--json", NO_BOOK, jobs, folder],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what follows the first line is left to be read
        start_new_session=True,  # Ctrl-C reaches every process of a terminal's foreground
    ) as process:
        first = process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=240)
    assert process.returncode == 130
    lines = [json.loads(line) for line in (first + out).decode().splitlines()]
    assert 1 <= len(lines) < 8
    said = said.decode()
    assert "Traceback" not in said
    assert f"stopped; {len(lines)} of 8 students were graded" in said


def test_help_says_what_the_exit_status_means():
    for command in ("check", "grade"):
        assert "Exit status: 0" in run(command, "--help").stdout
