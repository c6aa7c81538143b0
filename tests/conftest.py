"""What several suites share: one grader (and its warm sandbox) for the whole run.

`make test` runs the small form of each suite, `make test-all` the whole one: see `tests/forms.py`.
Both spread files over several processes. A file is run by one of them, so that what its tests
share is made once; what takes longest begins first, so that no process is left with it at the end.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from filelock import FileLock
from xdist.scheduler import LoadFileScheduling

from autograder.one_thread import light
from autograder.sandbox import warm
from tests import forms

light()
# What is compiled now need not be compiled by each of the processes; see the Makefile.
sys.dont_write_bytecode = False

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# nbgrader calls `alembic`: it is found also where the environment is not activated.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

ROOT = Path(__file__).parents[1]

# Files that share what is made once a process, by what they share.
TOGETHER = {
    "tests/attacks/test_gradebook.py": "a hostile class",
    "tests/attacks/test_pages.py": "a hostile class",
    "tests/test_homework_styles.py": "the homework's mistakes",
    "tests/test_rubric.py": "the homework's mistakes",
    "tests/exports/test_answers.py": "a marked class",
    "tests/exports/test_class_report.py": "a marked class",
    "tests/exports/test_exports.py": "a marked class",
    "tests/test_checks.py": "the known mistakes",
    "tests/test_judge.py": "the known mistakes",
    "tests/journeys/test_student.py": "the hand-out",
    "tests/test_links.py": "the hand-out",
    "tests/test_release.py": "the hand-out",
}
# What takes longest, or waits for much: the longest first.
LONGEST = (
    "tests/journeys/test_second_try.py",
    "tests/attacks/test_gradebook.py",
    "tests/attacks/test_pages.py",
    "tests/test_class.py",
    "tests/sandbox/test_sandbox.py",
    "tests/sandbox/test_attacks.py",
    "tests/attacks/test_attacks.py",
    "tests/journeys/",
    "tests/test_nbgrader.py",
    "tests/test_grade.py",
    "tests/test_cli.py",
    "tests/exports/",
    "tests/sandbox/",
    "tests/attacks/",
    "tests/test_checks.py",
    "tests/test_homework_styles.py",
    "tests/test_rubric.py",
    "tests/tracing/",
    "tests/shapes/",
    "tests/lessons/",
    "tests/test_models_on_board.py",
    "tests/test_regrade.py",
    "tests/test_release.py",
    "tests/test_released.py",
    "tests/test_doctor.py",
    "tests/intake/",
)

# Where each test runs a program of its own, and takes seconds: the small form runs one of so many,
# and the first of each file.
ONE_OF = {
    "tests/tracing/": 20,
    "tests/sandbox/test_sandbox.py": 3,
    "tests/attacks/test_attacks.py": 3,
    "tests/lessons/": 3,
    "tests/test_grade.py": 5,
    "tests/test_shared.py": 5,
    "tests/test_homework_styles.py": 4,
    "tests/test_rubric.py": 3,
    "tests/test_comments.py": 3,
    "tests/test_models_on_board.py": 3,
    "tests/test_student.py": 3,
    "tests/test_cli.py": 3,
    "tests/test_regrade.py": 2,
    "tests/test_class.py": 2,
    "tests/test_release.py": 2,
    "tests/test_operations.py": 2,
    "tests/test_plots.py": 2,
    "tests/test_patching.py": 3,
    "tests/test_build.py": 3,
    "tests/test_judge.py": 3,
    "tests/test_relation.py": 3,
    "tests/test_relations.py": 3,
    "tests/test_renamed.py": 3,
    "tests/intake/": 3,
    "tests/exports/": 2,
    "tests/sandbox/test_branch.py": 3,
    "tests/sandbox/test_attacks.py": 2,
}

# Those whose checks are in the hand-out of the small form.
FEW_LESSONS = ("05_homework",)


class Templates(dict):
    """Warm processes to copy others from, made where a second one of a kind is asked for.

    Importing torch takes longer than most tests.
    """

    MOST = 4  # each takes some 200 MB
    seen: ClassVar[set[str]] = set()

    def get(self, settings: str) -> object:
        if settings in self.seen and settings not in self and len(self) < self.MOST:
            warm.prepare(json.loads(settings))
        self.seen.add(settings)
        return super().get(settings)


warm._templates = Templates()


def pytest_configure(config) -> None:
    forms.small = "not slow" in config.getoption("markexpr", "")


def pytest_unconfigure() -> None:
    for template in warm._templates.values():
        template.kill()


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = True
    gc.freeze()  # what was imported and collected stays: it is not looked through again and again


@pytest.hookimpl(tryfirst=True)  # before those that are marked slow are left out
def pytest_collection_modifyitems(items) -> None:
    """Puts what takes longest first, and leaves all else in its order; marks what is slow."""
    for start, every in ONE_OF.items():
        of_these = [item for item in items if item.nodeid.startswith(start)]
        for item, is_taken in forms.taken(of_these, every, touching=lambda item: item.path):
            if not is_taken:
                item.add_marker(pytest.mark.slow)

    def place(item) -> int:
        return next((i for i, n in enumerate(LONGEST) if item.nodeid.startswith(n)), len(LONGEST))

    items.sort(key=place)


class Together(LoadFileScheduling):
    """Gives each file, or the files that are named together, to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


def pytest_xdist_make_scheduler(config, log):
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def course_root() -> Path:
    """The course's folder."""
    return ROOT


@pytest.fixture(scope="session")
def grader():
    """A grader with a private seed, so that a failure can be looked at again."""
    from autograder.course.course import Course
    from autograder.grading.grade import Grader
    from autograder.sandbox import strongest

    with Grader(strongest(), private=20260301, course=Course.at(ROOT)) as opened:
        yield opened


@pytest.fixture
def hand_in(tmp_path):
    """Writes a notebook with these answers (by cell id) into a file; returns its path."""
    from autograder.course.course import Course
    from autograder.grading.demo import fill_in

    def write(lesson: str, answers: dict[str, str], name: str = "") -> Path:
        released = Course.at(ROOT).lessons[lesson]
        path = tmp_path / (name or f"{lesson}.ipynb")
        path.write_text(fill_in(released, answers), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def hand_out(tmp_path_factory, worker_id) -> Path:
    """The students' hand-out, built once for all tests and processes; its zip lies beside it.

    For reading: a test that writes into it copies it first. The numbers of all checks take minutes
    to compute where something of the engine has changed: in the small form only those of a few
    lessons are in it.
    """
    from autograder.course.course import Course
    from autograder.course.handout import build_release

    def few(files: list[str]) -> list[str]:
        return [file for file in files if Path(file).stem in FEW_LESSONS]

    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    target = shared / "hand-out" / "attention"
    with FileLock(shared / "hand-out.lock"):
        if not target.exists():
            build_release(Course.at(ROOT), target, few if forms.small else iter)
    return target


@pytest.fixture
def model():
    """The model answers of lesson 05, by cell id."""
    from autograder.course.course import Course
    from autograder.grading.grade import model_answers

    return dict(model_answers(Course.at(ROOT), "05_homework"))
