import pytest

from autograder.intake.read import read
from tests.intake.lesson_files import make_lessons, save, solved


@pytest.fixture(scope="session")
def lessons(tmp_path_factory):
    return make_lessons(tmp_path_factory.mktemp("lessons"))


@pytest.fixture
def lesson(lessons):
    return lessons["05_homework"]


@pytest.fixture
def notebook(lesson):
    return solved(lesson)


@pytest.fixture
def reread(lessons, tmp_path):
    """Saves a notebook as 05_homework.ipynb and reads it."""

    def reread(notebook, name="05_homework.ipynb", expected=None):
        return read(save(notebook, tmp_path, name), lessons, expected)

    return reread
