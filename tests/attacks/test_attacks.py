"""No homework of the corpus earns what it should not, stops the grader or harms anybody else."""

import tempfile
from pathlib import Path

import pytest

from autograder.course.course import Course
from autograder.grading.grade import Grader
from tests.attacks.entries import HOMEWORK, ROOT, entries
from tests.attacks.run import SHORT, attack, honest_scores_full
from tests.forms import share

ENTRIES = entries()
BY_NAME = {e.name: e for e in ENTRIES}


@pytest.fixture(scope="module")
def marker(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("marker")
    folder.chmod(0o711)
    return folder


@pytest.fixture(scope="module")
def short_grader(marker):
    """A grader of short patience, whose processes can be told from others'."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TMPDIR", str(marker))
    patch.setattr(tempfile, "tempdir", None)
    with Grader(course=Course.at(ROOT), limits=SHORT) as grader:
        grader.box(grader.lessons[HOMEWORK])
        patch.undo()
        yield grader


def test_the_corpus_is_large_and_every_kind_is_in_it():
    assert len(ENTRIES) >= 100
    assert {e.builds for e in ENTRIES} == {"", "files", "the notebook"}
    assert {w for e in ENTRIES for w in e.expect} >= {"0", "same", "err", "refused"}


# Of each kind of attack at least one, by what it is handed in as and what is expected of it.
SMALL = share(
    [e.name for e in ENTRIES if not e.slow],
    8,
    touching=lambda n: (BY_NAME[n].builds, BY_NAME[n].expect),
)


@pytest.mark.parametrize("name", SMALL)
def test_an_attack_gains_nothing_and_harms_nobody(short_grader, marker, name):
    assert attack(BY_NAME[name], short_grader, str(marker)).wrong == ()


def test_an_honest_homework_after_all_of_them_scores_full(short_grader, tmp_path):
    assert honest_scores_full(short_grader, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_the_next_honest_homework_scores_full_whatever_came_before(
    short_grader, marker, tmp_path, entry
):
    assert attack(entry, short_grader, str(marker)).wrong == ()
    assert honest_scores_full(short_grader, tmp_path)
