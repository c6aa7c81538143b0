"""docs/settings.md has every key that a course may set, with its default and an example."""

import re
import tomllib
from dataclasses import MISSING, fields

import pytest

from autograder.course.course import Course
from autograder.course.settings import CourseError, Given, Late, Rubric, Settings, read_settings
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
TABLES = {
    "[tool.autograder]": (Settings, {"given", "rubric", "late"}),
    "[[tool.autograder.given]]": (Given, set()),
    "[tool.autograder.rubric.EXERCISE]": (Rubric, set()),
    "[tool.autograder.late]": (Late, set()),
}


def rows(table: str) -> dict[str, list[str]]:
    """The rows of one table of the page, by key: default, what it is, example."""
    section = PAGE.partition(f"## `{table}`")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \|(.*)\|$", section, re.MULTILINE)
    return {key: [cell.strip() for cell in rest.split(" | ")] for key, rest in found}


@pytest.mark.parametrize("table", TABLES)
def test_the_page_names_every_key_and_no_other(table):
    kind, elsewhere = TABLES[table]
    assert set(rows(table)) == {f.name for f in fields(kind)} - elsewhere


@pytest.mark.parametrize("table", TABLES)
def test_the_page_gives_every_default(table):
    for each in (f for f in fields(TABLES[table][0]) if f.name in rows(table)):
        default = each.default if each.default is not MISSING else each.default_factory()
        said = rows(table)[each.name][0]
        if default:  # written as in TOML
            value = tomllib.loads(f"value = {said.strip('`')}")["value"]
            assert (tuple(value) if isinstance(value, list) else value) == default, each.name
        elif isinstance(default, (bool, float)):
            assert said == f"`{str(default).lower()}`"
        else:
            assert said in ("none", "the folder's name", "the id", "`README.md` of the course")


def test_the_examples_of_the_page_are_taken(tmp_path):
    path = tmp_path / "pyproject.toml"
    for table in ("[tool.autograder]", "[[tool.autograder.given]]", "[tool.autograder.late]"):
        for row in rows(table).values():
            path.write_text(f"{table}\n{row[-1].strip('`')}\n", encoding="utf-8")
            assert read_settings(tmp_path) != Settings()
    for row in rows("[tool.autograder.rubric.EXERCISE]").values():
        path.write_text(f"[tool.autograder.rubric.x]\n{row[-1].strip('`')}\n", encoding="utf-8")
        assert read_settings(tmp_path).rubric["x"] != Rubric()


def test_the_whole_example_of_the_page_is_taken(tmp_path):
    (example,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(example, encoding="utf-8")
    settings = read_settings(tmp_path)
    assert settings.id == "attention" and settings.given_to("09_inside_gpt2").complete
    assert settings.rubric["self_attention"] != Rubric()


def test_what_is_left_out_gets_its_default(tmp_path):
    folder = tmp_path / "my course"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.autograder]\n", encoding="utf-8")
    assert read_settings(folder) == Settings(id="my course", title="my course")


@pytest.mark.parametrize(
    "text, named",
    [
        ("[tool.autograder]\nlesons = 'x'\n", "'lesons'"),
        ("[tool.autograder]\nhand_out = 'models'\n", "hand_out = 'models'"),
        ("[[tool.autograder.given]]\ncomplete = 'yes'\n", "complete = 'yes'"),
        ("[tool.autograder]\ngiven = 3\n", "[[tool.autograder.given]]"),
        ("[tool.autograder]\nlate = 3\n", "[tool.autograder.late] is a table"),
        ("[tool.autograder.late]\npoints_a_day = 'one'\n", "should be a number"),
        ("[tool.autograder\n", "is not TOML"),
    ],
)
def test_what_cannot_be_taken_is_named_with_its_file(tmp_path, text, named):
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        read_settings(tmp_path)
    assert named in str(raised.value) and str(tmp_path / "pyproject.toml") in str(raised.value)


def test_a_course_can_be_a_key_whatever_its_rubric(tmp_path):
    table = "[tool.autograder.rubric.double]\nforgives = { x = 'y' }\n"
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    assert {read_settings(tmp_path): 1}


def test_answers_are_secret_where_the_exercises_lie_beside_the_lessons(tmp_path):
    table = '[tool.autograder]\nsources = "lessons"\nexercises = "answers"\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    for name in ("lessons/01_a.py", "answers/01_a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    secret = Course.at(tmp_path).secret_files
    assert [p.parent.name for p in secret] == ["answers", "lessons"]
