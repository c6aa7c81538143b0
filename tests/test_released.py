"""What was asked is what was released, whatever stands in `notebooks/`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import whole
from autograder.course import released
from autograder.course.build import build
from autograder.course.course import Course
from autograder.course.released import HANDED_OUT, KEPT, CourseError
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from tests.conftest import ROOT

HOMEWORK = "05_homework"
SOURCE = """\
# %% [markdown]
# # A small lesson

# %% exercise="small.add"
def add(a, b):
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

# %% check="small.add" points=2
check("small.add")
"""
EXERCISE = """\
from autograder import exercise

@exercise("small.add", "add(a[n], b[n])", hints=("Two numbers.", "A plus.", "a + b"))
def add(a, b):
    return a + b
"""


@pytest.fixture
def small(tmp_path) -> Path:
    """A course of one lesson, not yet built."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "00_small.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.autograder]\n")
    (tmp_path / "solutions" / "exercises").mkdir()
    (tmp_path / "solutions" / "exercises" / "00_small.py").write_text(EXERCISE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def handed_out(tmp_path, small) -> Path:
    """The hand-out of that course, as far as lessons go."""
    target = tmp_path / "hand-out"
    released.write_handed_out(released.texts(small, "solutions"), target)
    return target


def cells(folder: Path) -> list[str]:
    text = released.texts(folder, "solutions")["00_small"]
    return [c.source for c in nbformat.reads(text, as_version=4).cells]


def test_a_solved_notebook_is_not_the_lesson(tmp_path):
    (tmp_path / "solutions").mkdir()
    shutil.copy(ROOT / "solutions" / f"{HOMEWORK}.py", tmp_path / "solutions")
    place = tmp_path / "notebooks" / HOMEWORK / f"{HOMEWORK}.ipynb"
    place.parent.mkdir(parents=True)
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    place.write_text(fill_in(lesson, model_answers(Course.at(ROOT), HOMEWORK)), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.autograder]\n")
    found = Course.at(tmp_path).lessons[HOMEWORK]
    assert "raise NotImplementedError()" in found.cell("multi_head").source
    assert found.cells == lesson.cells


# --- a course: built, and kept -------------------------------------------------------------------
def test_what_was_built_is_kept_and_read_again(small, monkeypatch):
    first = cells(small)
    monkeypatch.setattr("autograder.course.build.release", None)
    assert cells(small) == first


def test_another_source_is_another_lesson(small):
    cells(small)
    path = small / "solutions" / "00_small.py"
    path.write_text(SOURCE.replace("A small lesson", "A new lesson"), encoding="utf-8")
    assert cells(small)[0] == "# A new lesson"


def test_another_builder_builds_anew(small, monkeypatch):
    cells(small)
    monkeypatch.setattr(released, "_builder", lambda: "a later edition")
    monkeypatch.setattr("autograder.course.build.release", lambda source: source)
    assert "return a + b" in "".join(cells(small))


def test_an_edited_copy_in_build_is_not_believed(small):
    cells(small)
    kept = small / KEPT
    kept.write_text(kept.read_text().replace("A small lesson", "A forged lesson"))
    assert cells(small)[0] == "# A small lesson"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"00_small": 3}', '{"00_small": {}}', "\0\xff"])
def test_a_damaged_copy_in_build_is_made_anew(small, damage):
    expected = cells(small)
    (small / KEPT).write_text(damage, encoding="latin-1")
    assert cells(small) == expected
    assert cells(small) == expected and json.loads((small / KEPT).read_text())["00_small"]


def test_a_lesson_that_is_gone_is_gone(small):
    shutil.copy(small / "solutions" / "00_small.py", small / "solutions" / "01_more.py")
    assert list(released.texts(small, "solutions")) == ["00_small", "01_more"]
    (small / "solutions" / "00_small.py").unlink()
    assert list(released.texts(small, "solutions")) == ["01_more"]


def test_where_nothing_can_be_written_it_is_built_each_time(small, monkeypatch):
    expected = cells(small)
    shutil.rmtree(small / "build")

    def refuse(path, text):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(released, "write_whole", refuse)
    assert cells(small) == expected
    assert not (small / "build").exists()


@pytest.mark.slow
def test_processes_that_start_at_once_do_not_disturb_each_other(small):
    program = (
        "import hashlib, sys\nfrom pathlib import Path\nfrom autograder.course import released\n"
        "texts = released.texts(Path(sys.argv[1]), 'solutions')\n"
        "print(hashlib.sha256(repr(texts).encode()).hexdigest())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(small)], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    said = {process.communicate()[0] for process in started}
    assert len(said) == 1 and said != {b""}
    assert [p.name for p in (small / "build").iterdir()] == [KEPT.name]


def test_where_it_is_kept_nothing_that_takes_a_second_is_imported():
    assert Course.at(ROOT).lessons
    program = (
        "import sys\nfrom autograder.course.course import Course\nCourse.find().lessons\n"
        "print([m for m in ('nbgrader', 'jupytext', 'nbconvert', 'lark') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# --- the hand-out --------------------------------------------------------------------------------
def test_the_hand_out_says_the_same_as_the_course(small, handed_out):
    assert released.texts(handed_out, "solutions") == released.texts(small, "solutions")


def test_a_students_notebook_and_sources_are_not_the_hand_outs_lesson(handed_out):
    expected = cells(handed_out)
    for name in ("notebooks/00_small/00_small.ipynb", "solutions/00_small.py"):
        (handed_out / name).parent.mkdir(parents=True)
        (handed_out / name).write_text("mine", encoding="utf-8")
    assert cells(handed_out) == expected


def test_a_changed_lesson_in_the_hand_out_stops_with_a_sentence(handed_out):
    path = handed_out / HANDED_OUT
    path.write_text(path.read_text().replace("A small lesson", "A simple lesson"))
    with pytest.raises(CourseError, match="00_small.*anew out of the hand-out's zip"):
        released.texts(handed_out, "solutions")


@pytest.mark.parametrize("damage", ["", "{}", "{", "null", '{"00_small": {}}'])
def test_a_damaged_hand_out_stops_with_a_sentence(handed_out, damage):
    (handed_out / HANDED_OUT).write_text(damage)
    with pytest.raises(CourseError, match="anew out of the hand-out's zip"):
        released.texts(handed_out, "solutions")


def test_a_folder_without_lessons_says_what_is_missing(tmp_path):
    (tmp_path / "notebooks" / "00_small").mkdir(parents=True)
    (tmp_path / "notebooks" / "00_small" / "00_small.ipynb").write_text("{}")
    with pytest.raises(CourseError, match="holds no lessons.*solutions/.*lessons.json"):
        released.texts(tmp_path, "solutions")


def test_in_a_notebook_it_is_said_in_one_line(tmp_path):
    with pytest.raises(CourseError) as failed:
        released.texts(tmp_path, "solutions")
    assert failed.value._render_traceback_() == [f"CourseError: {failed.value}"]


# --- who writes into notebooks/ ------------------------------------------------------------------
def test_building_keeps_the_notebook_that_it_replaces(small):
    (written,) = build(Course.at(small), run=False)
    work = "Hours of somebody's work"
    written.write_text(work)
    said = []
    build(Course.at(small), run=False, say=said.append)
    assert nbformat.read(written, as_version=4).cells
    (kept,) = (small / "build" / "replaced").iterdir()
    assert kept.read_text() == work and kept.name.startswith("00_small-")
    assert said == ["00_small: the notebook as it was is kept in build/replaced/"]


def test_building_what_is_there_keeps_and_says_nothing(small):
    said = []
    for _ in range(2):
        build(Course.at(small), run=False, say=said.append)
    assert said == [] and not (small / "build" / "replaced").exists()


def test_what_nbgrader_reads_is_written_without_a_look_at_notebooks(small):
    (written,) = build(Course.at(small), run=False)
    written.write_text("mine")
    released.write_sources(small, "solutions", small / "elsewhere")
    assert written.read_text() == "mine"
    source = small / "elsewhere" / "00_small" / "00_small.ipynb"
    assert "BEGIN SOLUTION" in source.read_text()


def test_what_nbgrader_reads_is_made_anew_only_where_it_has_to_be(small, monkeypatch):
    target = small / "elsewhere"
    source, lesson = target / "00_small" / "00_small.ipynb", small / "solutions" / "00_small.py"
    released.write_sources(small, "solutions", target)
    first = source.read_text()
    with monkeypatch.context() as patch:
        patch.setattr("autograder.course.build.read_source", None)  # nothing is made here
        released.write_sources(small, "solutions", target)
    source.write_text("edited")
    released.write_sources(small, "solutions", target)
    assert source.read_text() == first
    source.unlink()
    released.write_sources(small, "solutions", target)
    assert source.read_text() == first
    lesson.write_text(lesson.read_text().replace("A small lesson", "Another lesson"))
    released.write_sources(small, "solutions", target)
    assert "Another lesson" in source.read_text()


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    path.write_text("old")

    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "replace", refuse)
    with pytest.raises(OSError):
        whole.write_whole(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"] and path.read_text() == "old"
