"""An instructor with files: the page *With nbgrader*, from a course solved in place."""

import csv
import json
import os
import re
import shutil
import subprocess

import pytest

from autograder.course.course import Course
from autograder.grading.demo import fill_in
from tests.conftest import ROOT
from tests.journeys.walk import Place, commands_of, solve

HOMEWORK = "05_homework"
PAGE = (ROOT / "docs" / "with_nbgrader.md").read_text(encoding="utf-8")
LEARN = (ROOT / "docs" / "learn.md").read_text(encoding="utf-8")
STEPS = commands_of(PAGE, "Teach")
FIRST_EXPORT = STEPS.index("nbgrader export")


def nbgrader_steps() -> list[str]:
    """The page's commands from the activation of the environment to the first export."""
    return STEPS[STEPS.index("source .venv/bin/activate") : FIRST_EXPORT + 1]


def hand_in(place: Place, classroom: dict[str, dict[str, str]]) -> None:
    """Puts each student's notebook where the page says, filled in as handed out."""
    assert "`submitted/STUDENT/05_homework/05_homework.ipynb`" in PAGE
    for student, answers in classroom.items():
        target = place.folder / "submitted" / student / HOMEWORK / f"{HOMEWORK}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(fill_in(Course.at(ROOT).lessons[HOMEWORK], answers), encoding="utf-8")


def marks(place: Place) -> dict[str, float]:
    """What grades.csv says, by student."""
    with open(place.folder / "grades.csv", newline="") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def untracked(place: Place) -> str:
    """What `git status` shows besides the notebooks that were solved in place."""
    done = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all", ":!notebooks"],
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def heading(place: Place, student: str) -> str:
    """The first heading of a student's feedback page."""
    page = place.folder / "feedback" / student / HOMEWORK / f"{HOMEWORK}.html"
    return re.search("<h1>(.*?)</h1>", page.read_text(encoding="utf-8"), re.DOTALL)[1]


@pytest.mark.slow
def test_an_instructor_who_solved_in_place_grades_with_files(course_folder, right_answers):
    right = right_answers(HOMEWORK)
    solve(course_folder.notebook(HOMEWORK), right, more=("x = 1",))
    mine = course_folder.notebook(HOMEWORK).read_bytes()
    hand_in(course_folder, {"ada": right})
    course_folder.do(*nbgrader_steps())
    assert marks(course_folder) == {"ada": 10}
    assert re.search(r"\b10 of 1", heading(course_folder, "ada"))
    assert course_folder.notebook(HOMEWORK).read_bytes() == mine
    assert untracked(course_folder) == ""


@pytest.mark.slow
def test_an_instructor_who_solved_in_place_hands_out_no_answer(course_folder, right_answers):
    (release,) = [c for c in STEPS if c.endswith("autograder release")]
    for path in sorted((course_folder.folder / "notebooks").glob("*/*.ipynb")):
        solve(path, right_answers(path.stem), more=("# an instructor's own remark",))
    lines = course_folder.do(release).splitlines()
    (note,) = [line for line in lines if "notebooks/ holds" in line]
    assert HOMEWORK in note and "00_shape_gym" in note
    (folder,) = [line.split()[-1] for line in lines if line.startswith("hand-out:")]
    handed_out = course_folder.folder / folder
    assert not _answers_in(handed_out, right_answers)
    assert "an instructor's own remark" not in _all_text(handed_out)
    assert untracked(course_folder) == ""


def _answers_in(folder, right_answers) -> list[str]:
    """Lines of the model answers of 05 that are long enough to be told from others."""
    text, asked = _all_text(folder), Course.at(ROOT).lessons[HOMEWORK].cell
    found = []
    for cell in ("self_attention", "multi_head"):
        given = asked(cell).source
        lines = [line.strip() for line in right_answers(HOMEWORK)[cell].splitlines()]
        answers = [line for line in lines if len(line) > 40 and line not in given]
        assert len(answers) > 3
        found += [line for line in answers if line in text]
    return found


def _all_text(folder) -> str:
    """All text in a folder, with the quotes of notebooks and JSON files taken out."""
    parts = [p.read_bytes().decode("utf-8", "replace") for p in folder.rglob("*") if p.is_file()]
    return "\n".join(parts).replace('\\"', '"').replace("\\n", "\n")


@pytest.mark.slow
def test_formgrader_opens_where_the_page_says_and_lists_the_lessons(course_folder, right_answers):
    hand_in(course_folder, {"ada": right_answers(HOMEWORK)})
    course_folder.do(*STEPS[STEPS.index("source .venv/bin/activate") : FIRST_EXPORT - 1])
    (start,) = [c for c in STEPS if "jupyter lab" in c]
    address = re.search(r"http://localhost:8888(/\S+)\.", PAGE)[1]
    with course_folder.serving(start) as server:
        assert "formgrader" in server.get(address).lower()
        listed = {a["name"]: a for a in json.loads(server.get(f"{address}/api/assignments"))}
        assert list(listed) == list(Course.at(ROOT).lessons)
        assert listed[HOMEWORK]["num_submissions"] == 1
        (ada,) = json.loads(server.get(f"{address}/api/submissions/{HOMEWORK}"))
        assert ada["student"] == "ada" and ada["needs_manual_grade"]


# --- a course that may only be read --------------------------------------------------------------
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-fowner", "--")


@pytest.fixture
def as_anybody() -> tuple[str, ...]:
    """What takes from root the right to write where nobody may; nothing for other users."""
    if os.geteuid():
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv is not there to change that")
    return WITHOUT_OVERRIDE


@pytest.fixture
def read_only(course_folder):
    """A fresh clone in which nothing can be written."""
    folder = course_folder.folder
    paths = [
        p for p in (folder, *folder.rglob("*")) if not p.is_symlink() and ".git" not in p.parts
    ]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    yield course_folder
    for path in paths:
        path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.slow
def test_a_course_that_may_only_be_read_checks_and_grades(
    read_only, as_anybody, right_answers, tmp_path
):
    (check,) = [c for c in commands_of(LEARN, "Learn") if "autograder check" in c]
    said = read_only.run("touch here", wrapper=as_anybody)
    assert said.status and "denied" in said.text
    blank = read_only.run(check, wrapper=as_anybody)
    report = json.loads(blank.text.splitlines()[-1])
    assert (report["score"], report["max_score"], report["error"]) == (0, 10, None)

    elsewhere = Place(tmp_path / "my class", {"PYTHONPATH": str(read_only.folder)})
    elsewhere.folder.mkdir()
    elsewhere.home.mkdir()
    config = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    (elsewhere.folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
    hand_in(elsewhere, {"ada": right_answers(HOMEWORK), "ben": {}})
    said = elsewhere.run("autograder grade submitted --json", wrapper=as_anybody)
    found = [json.loads(line) for line in said.text.splitlines() if line.startswith("{")]
    assert [line["score"] for line in found] == [10, 0], said.text
    said = elsewhere.run(*nbgrader_steps()[1:], wrapper=as_anybody)
    assert said.status == 0, said.text
    assert marks(elsewhere) == {"ada": 10, "ben": 0}
    assert not (read_only.folder / "build").exists()
