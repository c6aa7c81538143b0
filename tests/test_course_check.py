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


SOLVED = """\
# %% role="setup"
import torch

# %% exercise="sum"
def add(a, b):
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

# %% check="sum.value" points=1
check("sum.value")

# %% [markdown] question="why" points=1
# ### BEGIN SOLUTION
# So.
# ### END SOLUTION
"""


@pytest.mark.parametrize(
    "was, becomes, line, said",
    [
        ('question="why" points=1', 'question="why"', 13, "a question is worth points"),
        ("points=1", 'points="two"', 10, "points='two': points are a number"),
        ("points=1", "points=-1", 10, "points=-1: points are a number"),
        ('check("sum.value")', 'check("sum.valve")', 10, "'sum.value' calls check('sum.valve')"),
        ("    ### END SOLUTION\n", "", 4, "do not come in pairs"),
        ("    ### BEGIN SOLUTION\n", "", 4, "do not come in pairs"),
        ("return a + b", "return a +", 4, "line 3 of it, `return a +`: invalid syntax"),
        ('role="setup"', 'role="setpu"', 1, "no role 'setpu'"),
        ('check="sum.value"', 'check="sum.value" of="som"', 10, "of='som' is no exercise"),
        ('check="sum.value"', 'check="sum.value', 10, "cannot be read"),
        ('exercise="sum"', 'tags=["a"]', 4, "has no key 'tags'"),
        ('exercise="sum"', "", 4, "a cell with a solution needs a header"),
    ],
)
def test_a_slip_in_a_lesson_is_said_with_its_line(small, was, becomes, line, said):
    path = small / "solutions" / "00_small.py"
    assert was in SOLVED
    path.write_text(SOLVED.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        Course.at(small).check()
    assert f"00_small.py:{line}: " in str(raised.value) and said in str(raised.value)


def test_a_lesson_without_slips_has_none(small):
    (small / "solutions" / "00_small.py").write_text(SOLVED, encoding="utf-8")
    Course.at(small).check()


@pytest.mark.parametrize(
    "was, becomes, line, said",
    [
        ('("one", "two", "three")', '"abc"', 4, "hints= are three texts"),
        ('"three"', '""', 4, "hints= are three texts"),
        ("hints=", "times=0, hints=", 4, "times= is a whole number"),
        ("hints=", 'rtol="x", hints=', 4, "rtol= is a number"),
        ("hints=", 'judge="x", hints=', 4, "judge= is a function"),
        ("hints=", 'sizes={"k": 3}, hints=', 4, "`k` is a size of no call"),
        ("hints=", 'sizes={"n": 2.5}, hints=', 4, "sizes= gives for each name"),
        ("hints=", 'sizes={"n": "n + 1"}, hints=', 4, "n is not known there"),
        ('b[n])"', 'b[n]) where m = n"', 4, "`m` is no size of"),
        ('b[n])"', 'b[n].lng())"', 4, "Kinds of tensors are .long(n)"),
        ("return a + sign * b", "return a +", 6, "SyntaxError"),
        ("sign=-1)", 'sign=-1, stage="x")', 9, "the steps are none"),
        ('"b is taken off."', '" "', 9, "a name and a message"),
        ("add.wrong(", "ad.wrong(", 9, "NameError: name 'ad' is not defined"),
        ("hints=", "hint=", 4, "has no keyword 'hint'. Did you mean 'hints'?"),
        (', hints=("one", "two", "three")', "", 4, "'sum.value': hints= are three texts"),
    ],
)
def test_a_slip_in_an_exercise_is_said_with_its_line(small, was, becomes, line, said):
    path = small / "solutions" / "exercises" / "00_small.py"
    assert was in EXERCISES
    path.write_text(EXERCISES.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        Course.at(small).check()
    assert f"00_small.py:{line}: " in str(raised.value) and said in str(raised.value)


SECOND = """

@exercise("sum", "twice(a[n])", hints=("one", "two", "three"))
def twice(a):
    return 2 * a
"""


def test_an_exercise_that_a_cell_is_for_but_no_check_asks_for_is_said(small):
    path = small / "solutions" / "exercises" / "00_small.py"
    path.write_text(EXERCISES + SECOND, encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        Course.at(small).check()
    line = EXERCISES.count("\n") + 3
    assert f"exercises/00_small.py:{line}: no lesson asks for 'sum'" in str(raised.value)
    assert '# %% check="sum" points=1' in str(raised.value)


def test_a_check_without_points_asks_for_its_exercise(small):
    path = small / "solutions" / "00_small.py"
    path.write_text(LESSON.replace(" points=1", ""), encoding="utf-8")
    (small / "pyproject.toml").write_text("[tool.autograder]\n", encoding="utf-8")
    Course.at(small).check()


@pytest.mark.parametrize("start", ["# solutions/00_small.py\n", "# %%\n# # Sums\n#\n# Of two.\n\n"])
def test_a_lesson_that_begins_with_comments_in_no_text_cell_is_refused(small, start):
    path = small / "solutions" / "00_small.py"
    path.write_text(start + LESSON, encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        Course.at(small).check()
    assert "00_small.py:1: " in str(raised.value) and "# %% [markdown]" in str(raised.value)


def test_a_syntax_error_in_a_file_that_exercises_share_is_said_with_its_own_line(small):
    folder = small / "solutions" / "exercises"
    (folder / "_shared.py").write_text("one = 1\ntwo = (\n", encoding="utf-8")
    text = "from ._shared import two\n" + EXERCISES
    (folder / "00_small.py").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=r"_shared\.py:2: SyntaxError"):
        Course.at(small).check()


def test_a_lesson_whose_name_has_no_number_is_refused(small):
    (small / "solutions" / "00_small.py").rename(small / "solutions" / "small.py")
    with pytest.raises(CourseError, match="small.py: a lesson's name begins with two digits"):
        Course.at(small).check()


def test_a_made_up_class_that_cannot_be_read_is_told_by_file_and_line(small):
    from autograder.grading.demo import made_up_class

    settings = SETTINGS.replace('id = "small"', 'id = "small"\ndemo = "solutions/made_up.py"')
    (small / "pyproject.toml").write_text(settings)
    (small / "solutions" / "made_up.py").write_text("LESSON = '00_small'\nSTUDENTS = [\n")
    with pytest.raises(CourseError, match=r"made_up\.py:2: SyntaxError"):
        made_up_class(Course.at(small))
