"""An instructor downloads a class from a learning platform and grades the zip as it is."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from autograder import cli
from autograder.course.course import Course
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from tests.conftest import ROOT
from tests.typed import typed

HOMEWORK = "05_homework"


@pytest.fixture(scope="module")
def notebooks() -> dict[str, bytes]:
    """A right notebook, one with a slip, one that Python cannot read, and a blank one."""
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    right = dict(model_answers(Course.at(ROOT), HOMEWORK))
    one = right["self_attention"]
    changed = {
        "right": right,
        "style": {**right, "self_attention": one.replace("scores = q @", "scores=q@")},
        "broken": {**right, "self_attention": one.replace("super().__init__()", "super(", 1)},
        "blank": {},
    }
    return {name: fill_in(lesson, answers).encode() for name, answers in changed.items()}


@pytest.fixture
def download(tmp_path, notebooks):
    """Writes the zip that a platform gives: names in it, and a notebook's name or a text."""

    def download(files: dict[str, str], name: str = "submissions.zip") -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in files.items():
                archive.writestr(member, notebooks.get(content, content.encode()))
        return path

    return download


def shell(*args: str) -> subprocess.CompletedProcess:
    """What a person types, and sees."""
    done = typed("autograder", *args, environment={**os.environ, "COLUMNS": "140"})
    assert "Traceback" not in done.stderr
    return done


def table(text: str) -> list[list[str]]:
    """The rows of a table that was printed; lines of a cell are joined."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("├"):
            rows.append([])
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if cells:
            last = rows[-1] if rows and rows[-1] else [""] * len(cells)
            merged = [f"{a} {b}".strip() for a, b in zip(last, cells, strict=True)]
            rows[-1:] = [merged]
    return rows


@pytest.fixture
def graded(capsys):
    """Grades a source in this process; the lines of JSON by students, and what was said."""

    def graded(source: Path, *args: str, status: int = 0) -> dict[str, dict]:
        assert cli.main(["grade", str(source), "--json", "--no-gradebook", *args]) == status
        out, err = capsys.readouterr()
        lines = [json.loads(line) for line in out.splitlines()]
        found = {line["student"]: {**line, "said": err} for line in lines}
        assert len(found) == len(lines)
        return found

    return graded


def test_a_canvas_class_with_two_of_one_name_one_late_and_one_pdf(download):
    source = download(
        {
            "doejane_LATE_1234_56789_05_homework-1.ipynb": "right",
            "doejane_777_56790_05_homework.ipynb": "style",
            "kimjo_13_56791_Untitled.ipynb": "broken",
            "roebo_12_56792_report.pdf": "%PDF",
        }
    )
    done = shell("grade", str(source), "--no-gradebook")
    assert done.returncode == 0, done.stderr
    title, *_ = done.stdout.splitlines()
    assert title.strip() == HOMEWORK
    rows = {row[1]: row for row in table(done.stdout)}
    assert rows["1234"][:5] == ["doejane", "1234", "late", "10/10", "5"]
    assert rows["777"][:5] == ["doejane", "777", "", "9/10", "5"]
    assert "PEP 8" in rows["777"][5]
    assert rows["13"][:5] == ["kimjo", "13", "", "6/10", "5"]
    assert rows["13"][5].count("SyntaxError") == 1
    assert rows["12"] == [
        "roebo", "12", "", "0/10", "", "No notebook was handed in, only report.pdf."
    ]  # fmt: skip
    assert "4 students, 1 late, 1 without a notebook" in done.stdout
    assert "15 questions not marked yet; isolation: " in done.stdout


@pytest.mark.slow
def test_a_gradescope_class_with_a_group_and_one_without_files(download):
    metadata = """---
submission_1:
  :submitters:
  - :name: Jane Doe
    :sid: '0675'
    :email: jd@example.edu
  - :name: Jane Doe
    :sid: '0676'
    :email: jane@example.edu
  :created_at: 2023-12-02 02:52:07.938335000 Z
submission_2:
  :submitters:
  - :name: Bo Roe
    :sid: '0677'
"""
    source = download(
        {
            "assignment_7_export/submission_metadata.yml": metadata,
            "assignment_7_export/submission_1/05_homework.ipynb": "right",
        }
    )
    done = shell("grade", str(source), "--json", "--no-gradebook")
    assert done.returncode == 0, done.stderr
    lines = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert [(lines[i]["name"], lines[i]["score"]) for i in ("0675", "0676", "0677")] == [
        ("Jane Doe", 10),
        ("Jane Doe", 10),
        ("Bo Roe", 0),
    ]
    assert lines["0675"]["notebook"] == "assignment_7_export/submission_1/05_homework.ipynb"
    assert lines["0675"]["results"] == lines["0676"]["results"]
    assert lines["0677"]["error"] == "No notebook was handed in."
    assert (lines["0677"]["lesson"], lines["0677"]["max_score"]) == (HOMEWORK, 10)


@pytest.mark.slow
def test_a_moodle_class_with_and_without_folders(download, graded):
    for name, start in (("folders.zip", "_file_/"), ("flat.zip", "_file_")):
        found = graded(
            download(
                {
                    f"Jane Doe_11_assignsubmission{start}05_homework.ipynb": "right",
                    f"Jane Doe_12_assignsubmission{start}05_homework.ipynb": "blank",
                    "Bo Roe_13_assignsubmission_onlinetext_onlinetext.html": "see my mail",
                },
                name,
            )
        )
        assert {who: (one["id"], one["score"], one["late"]) for who, one in found.items()} == {
            "Jane Doe (11)": ("11", 10, None),
            "Jane Doe (12)": ("12", 0, None),
            "Bo Roe": ("13", 0, None),
        }
        assert "only onlinetext.html" in found["Bo Roe"]["error"]


@pytest.mark.slow
def test_a_blackboard_class_where_the_newest_attempt_counts(download, graded):
    first, second = (f"HW 5_jdoe_attempt_2024-0{i}-01-12-00-00" for i in (1, 2))
    found = graded(
        download(
            {
                f"{first}_05_homework.ipynb": "blank",
                f"{first}.txt": "Name: Jane Doe (jdoe)\nAssignment: HW 5\n",
                f"{second}_05_homework.ipynb": "right",
                f"{second}.txt": "Name: Jane Doe (jdoe)\nAssignment: HW 5\n",
            }
        )
    )
    one = found["Jane Doe"]
    assert (one["id"], one["score"], one["handed_in"]) == ("jdoe", 10, "2024-02-01 12:00:00")
    assert one["notebook"] == f"{second}_05_homework.ipynb"
    assert f"{first}_05_homework.ipynb of Jane Doe: {second}" in one["said"]


@pytest.mark.slow
def test_where_the_newest_file_cannot_be_read_the_one_before_it_counts(download, graded):
    found = graded(download({"jo_1_10_05_homework.ipynb": "right", "jo_1_11_x.ipynb": "{"}))
    assert found["jo"]["score"] == 10
    assert "jo_1_11_x.ipynb of jo: The file is not a notebook" in found["jo"]["said"]


@pytest.mark.slow
def test_nbgraders_folder_of_submissions(tmp_path, notebooks, graded):
    for student, name in (("ada", "right"), ("bo", "blank")):
        folder = tmp_path / "submitted" / student / HOMEWORK
        folder.mkdir(parents=True)
        (folder / f"{HOMEWORK}.ipynb").write_bytes(notebooks[name])
    (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    (tmp_path / "submitted" / "cy" / HOMEWORK).mkdir(parents=True)
    found = graded(tmp_path / "submitted")
    assert [(who, one["score"]) for who, one in found.items()] == [
        ("ada", 10),
        ("bo", 0),
        ("cy", 0),
    ]
    assert found["bo"]["handed_in"] == "2026-03-01 12:00:00 UTC"
    path = tmp_path / "submitted" / "ada" / HOMEWORK / f"{HOMEWORK}.ipynb"
    assert found["ada"]["notebook"] == str(path)
    assert found["cy"]["notebook"] is None and found["cy"]["error"] == "No notebook was handed in."
    assert sorted(p.name for p in (tmp_path / "submitted").rglob("*.ipynb")) == [path.name] * 2


def test_a_class_of_which_nothing_can_be_read_ends_with_2(download, graded):
    found = graded(download({"jo_1_10_x.ipynb": "{", "bo_2_11_report.pdf": "x"}), status=2)
    assert {who: one["score"] for who, one in found.items()} == {"jo": 0, "bo": 0}
    assert graded(download({}), status=2) == {}
