"""`autograder check` as a user meets it: its table, its JSON, its exit status."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

HOMEWORK = "05_homework"


def run(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "autograder.cli", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )


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
        ]
        for result in line["results"]:
            assert list(result) == [
                "task",
                "points",
                "max_points",
                "passed",
                "needs_person",
                "findings",
            ]
            for finding in result["findings"]:
                assert list(finding) == ["check", "verdict", "message", "line", "statement"]


def test_scores_and_errors_are_where_they_belong(one_of_each):
    done, _ = one_of_each
    solved, blank, broken, absent = (json.loads(line) for line in done.stdout.splitlines())
    assert (solved["score"], solved["max_score"], solved["error"]) == (10, 10, None)
    assert (blank["score"], blank["error"]) == (0, None)
    assert broken["error"] and absent["error"]
    assert broken["score"] == absent["score"] == 0
    assert {r["task"] for r in solved["results"]} >= {"self_attention.forward", "multi_head.scores"}


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
