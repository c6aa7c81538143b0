"""Places for journeys: the course as an instructor or self-learner has it, and the hand-out."""

import pytest

from autograder.course.course import Course
from autograder.grading.grade import model_answers
from tests.conftest import ROOT
from tests.journeys.walk import Place, clone, unzip


@pytest.fixture
def course_folder(tmp_path) -> Place:
    """A fresh clone."""
    return clone(tmp_path / "clone")


@pytest.fixture
def unzipped(tmp_path, hand_out) -> Place:
    """The hand-out, in a folder whose name has blanks, as on many people's machines."""
    return unzip(hand_out.with_name("attention.zip"), tmp_path / "my courses, 2026")


@pytest.fixture
def right_answers():
    """The model answers of a lesson by cell id, without their marking schemes."""

    def answers(lesson: str) -> dict[str, str]:
        written = model_answers(Course.at(ROOT), lesson)
        return {k: v.partition("**Marking scheme.**")[0].rstrip() for k, v in written.items()}

    return answers
