"""What several suites share: one grader (and its warm sandbox) for the whole run."""

import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# nbgrader calls `alembic`: it is found also where the environment is not activated.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

ROOT = Path(__file__).parents[1]


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

    For reading: a test that writes into it copies it first.
    """
    from autograder.course.course import Course
    from autograder.course.handout import build_release

    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    target = shared / "hand-out" / "attention"
    with FileLock(shared / "hand-out.lock"):
        if not target.exists():
            build_release(Course.at(ROOT), target)
    return target


@pytest.fixture
def model():
    """The model answers of lesson 05, by cell id."""
    from autograder.course.course import Course
    from autograder.grading.grade import model_answers

    return dict(model_answers(Course.at(ROOT), "05_homework"))
