"""What is misnamed in a course is said when it is opened for building: file, line, likely name."""

from pathlib import Path

import pytest

from autograder.course import course
from autograder.course.course import Course
from autograder.course.settings import CourseError, NoCourse
from tests.conftest import ROOT

LESSON = """\
# %% role="setup"
import torch

# %% exercise="sum" calls="add(a[n], b[n])"
# YOUR CODE HERE
### BEGIN SOLUTION
def add(a, b):
    return a + b  # [n]


### END SOLUTION

# %% check="sum.value" points=1
"""
EXERCISES = """\
from autograder import exercise


@exercise("sum.value", "add(a[n], b[n])", hints=("one", "two", "three"))
def add(a, b, sign=1):
    return a + sign * b


add.wrong("difference", "b is taken off.", sign=-1)
"""
SETTINGS = '[tool.autograder]\nid = "small"\n[tool.autograder.rubric.sum]\nlayers = "sum.value"\n'
FILES = {
    "pyproject.toml": SETTINGS,
    "solutions/00_small.py": LESSON,
    "solutions/exercises/00_small.py": EXERCISES,
}


@pytest.fixture
def small(tmp_path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_what_is_named_rightly_is_taken(small):
    Course(small, Course.at(small).settings).check()


@pytest.mark.parametrize(
    "name, was, becomes, said",
    [
        (
            "solutions/00_small.py",
            'check="sum.value"',
            'check="sum.valeu"',
            ["solutions/00_small.py:13: ", "'sum.valeu' has no exercise", "'sum.value'?"],
        ),
        (
            "solutions/exercises/00_small.py",
            '@exercise("sum.value"',
            '@exercise("sum.values"',
            ["solutions/00_small.py:13: ", "Did you mean 'sum.values'?"],
        ),
        (
            "solutions/00_small.py",
            "add(a[n], b[n])",
            "add(a[n], b[n]",
            ["solutions/00_small.py:4: ", "add(a[n], b[n]"],
        ),
        (
            "solutions/exercises/00_small.py",
            "add(a[n], b[n])",
            "add(a[n, b[n])",
            ["solutions/exercises/00_small.py:4", "add(a[n, b[n])"],
        ),
        (
            "solutions/exercises/00_small.py",
            "sign=-1)",
            "sing=-1)",
            ["solutions/exercises/00_small.py:9", "sing"],
        ),
        (
            "pyproject.toml",
            "rubric.sum]",
            "rubric.sun]",
            ["pyproject.toml: [tool.autograder.rubric.sun]", "Did you mean 'sum'?"],
        ),
        (
            "pyproject.toml",
            '"sum.value"',
            '"sum.valve"',
            ["pyproject.toml: [tool.autograder.rubric.sum]", "Did you mean 'sum.value'?"],
        ),
        ("pyproject.toml", "layers", "layer", ["[tool.autograder.rubric.sum] has no key 'layer'"]),
        (
            "pyproject.toml",
            'layers = "sum.value"',
            'short_lines = "3"',
            ["[tool.autograder.rubric.sum]: short_lines = '3' should be a whole number"],
        ),
        ("pyproject.toml", "rubric.sum]", "rubric]", ["[tool.autograder.rubric.EXERCISE]"]),
        ("solutions/00_small.py", LESSON, "\n", ["solutions/00_small.py has no cells"]),
    ],
)
def test_what_is_misnamed_is_said_with_its_place(small, name, was, becomes, said):
    text = (small / name).read_text(encoding="utf-8")
    assert was in text
    (small / name).write_text(text.replace(was, becomes), encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        Course.at(small).check()
    for part in said:
        assert part in str(raised.value)


def test_the_course_is_that_of_the_folder_then_the_one_stayed_in_then_the_engines(
    small, tmp_path_factory, monkeypatch
):
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    monkeypatch.setattr(course, "_stayed", [])
    nowhere = tmp_path_factory.mktemp("nowhere")
    assert Course.find(nowhere).folder == ROOT
    Course.at(small).stay()
    assert Course.find(nowhere).folder == small
    assert Course.find(ROOT / "docs").folder == ROOT
    monkeypatch.setattr(course, "has_settings", lambda folder: False)
    with pytest.raises(NoCourse, match="set AUTOGRADER_COURSE"):
        Course.find(nowhere)
