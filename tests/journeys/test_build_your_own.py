"""A lecturer makes a course out of docs/build_your_own.md alone, in an empty folder."""

import csv
import itertools
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.course.calls import Draw, run_here
from autograder.course.course import Course
from autograder.course.exercises import variant
from autograder.grading.grade import model_answers
from autograder.judging.verdict import findings
from tests.conftest import ROOT
from tests.journeys.walk import Place, commands_of, shown, solve

PAGE = (ROOT / "docs" / "build_your_own.md").read_text(encoding="utf-8")
LESSON = "01_pooling"
BUILD = commands_of(PAGE, "Build, and try it as a student")
GRADE = commands_of(PAGE, "Grade")
RELEASE = commands_of(PAGE, "Hand it out")
NBGRADER = commands_of(PAGE, "With nbgrader")
FILES = re.findall(r"^```\w+\n# ([\w./]+\.(?:toml|py))\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def made(folder: Path, engine: Path = ROOT) -> Place:
    """The page's files in an empty folder, where the engine is installed in `engine`."""
    for name, text in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    place = Place(folder, {"PYTHONPATH": str(engine)})
    place.home.mkdir()
    return place


@pytest.fixture
def place(tmp_path) -> Place:
    return made(tmp_path / "pooling")


def right(place: Place) -> dict[str, str]:
    """The model answers of the page's lesson, by cell."""
    return dict(model_answers(Course.at(place.folder), LESSON))


def said_of(course: Course, task: str, program: object, seed: int = 5):
    """What a student is told whose cell defines this program."""
    exercise = course.exercises[task]
    calls = exercise.cases(Draw(seed))
    known = course.answers(exercise, calls)

    def ask(calls):
        return run_here({exercise.name: program}, calls)

    return findings(exercise, calls, ask(calls), known, ask=ask)


def test_every_command_of_the_page_is_run_here():
    run = {*BUILD, *GRADE, *RELEASE, *NBGRADER, *commands_of(PAGE, "Install")}
    assert set(commands_of(PAGE)) == run
    assert [name for name, _ in FILES] == [
        "pyproject.toml",
        f"solutions/{LESSON}.py",
        f"solutions/exercises/{LESSON}.py",
        "nbgrader_config.py",
    ]


def test_the_page_has_all_that_the_build_needs_of_a_lesson_and_an_exercise():
    from autograder.course.build import HEADER_KEYS

    assert [k for k in HEADER_KEYS if not re.search(rf"`{k}=|\b{k}=", PAGE)] == []
    import inspect

    from autograder import exercise

    keywords = [n for n, p in inspect.signature(exercise).parameters.items() if p.kind == 3]
    assert [k for k in keywords if f"`{k}=" not in PAGE] == []


def test_answers_of_the_page_are_right_and_its_mistakes_are_told(place):
    course = Course.at(place.folder)
    course.check()
    told = {}
    for task, written in course.written.items():
        for answer in (written.answer, *written.also):
            assert said_of(course, task, answer) == [], task
        for mistake in written.mistakes:
            (program,) = mistake.namespace.values()
            found = said_of(course, task, program)
            told[task, mistake.check] = [f.check for f in found]
    steps = {"attention_pool.weights": "weights", "attention_pool.output": "output"}
    for (task, check), names in told.items():
        own = steps.get(task, "") in check
        assert names == ([check] if own else []), (task, check)
    assert len(told) == 3 + 2 + 2 + 2 * 3


def test_two_slips_at_once_are_both_told_in_the_course_of_the_page(place):
    course = Course.at(place.folder)
    written = course.written["pool.mean"]
    switches = [s for s in written.switches if s]
    assert len(switches) == 2
    for one, two in itertools.combinations(switches, 2):
        (found,) = said_of(course, "pool.mean", variant(written.answer, {**one, **two}))
        assert "divided by all tokens" in found.message and "are added too" in found.message


@pytest.mark.slow
def test_a_lecturer_builds_the_course_and_grades_what_was_solved_in_place(place):
    place.do(BUILD[0] + " --no-run")
    solve(place.notebook(LESSON), right(place))
    table = place.do(*GRADE)
    assert re.search(r"ada .* 8/8 .* 1 .* All right", table), table


@pytest.mark.slow
def test_a_lecturer_walks_the_whole_page_with_the_engine_from_a_wheel(tmp_path):
    place = made(tmp_path / "pooling", wheel(tmp_path))
    build, serve, check = BUILD
    place.do(build)
    notebook = place.notebook(LESSON)
    assert place.run(f"{check} --json").status == 1
    with place.serving(serve) as server:
        assert LESSON in server.get("/api/contents")
    solve(notebook, right(place), more=('hint("pool.mean", 1)',))
    ran = place.run_all(notebook)
    assert "Which axis" in shown(ran) and "passed" in shown(ran)
    place.do(check)

    blank = place.folder / "submitted" / "bob" / LESSON / f"{LESSON}.ipynb"
    blank.parent.mkdir(parents=True)
    nbformat.write(released(place), blank)
    table = place.do(*GRADE)
    assert re.search(r"ada .* 8/8", table) and re.search(r"bob .* 0/8", table), table

    place.do(*RELEASE)
    handed_out = place.folder / "build" / "hand-out" / "pooling"
    student = Place(handed_out, {"PYTHONPATH": str(handed_out)})
    student.home.mkdir(exist_ok=True)
    assert not [p for p in handed_out.rglob("*") if "exercises" in p.parts]
    solve(student.notebook(LESSON), right(place))
    assert "passed" in shown(student.run_all(student.notebook(LESSON)))

    place.do(*NBGRADER)
    with open(place.folder / "grades.csv", newline="") as file:
        marks = {r["student_id"]: float(r["score"]) for r in csv.DictReader(file)}
    assert marks == {"ada": 8, "bob": 0}
    assert (place.folder / "feedback" / "ada" / LESSON / f"{LESSON}.html").exists()


def released(place: Place) -> nbformat.NotebookNode:
    """The lesson as students get it."""
    return Course.at(place.folder).lessons[LESSON].notebook


def wheel(folder: Path) -> Path:
    """The engine as `pip install` puts it into an environment, from a wheel."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    copy = folder / "repository"
    copy.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "autograder", "transformer_lm", "pyproject.toml", "README.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(copy)]
    subprocess.run([*pip, *build], check=True)
    (built,) = folder.glob("*.whl")
    site = folder / "site-packages"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(built)], check=True)
    return site
