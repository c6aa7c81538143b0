"""Setting up, as the READMEs say, on a machine that has Python and nothing else of ours."""

import pytest

from tests.conftest import ROOT
from tests.journeys.walk import INSTALLS, clone, commands_of, unzip, without_environment

CHECK = ".venv/bin/autograder check notebooks/05_homework/05_homework.ipynb"


def first_of(text: str) -> str:
    """The first command that installs without conda."""
    return next(c for c in commands_of(text) if INSTALLS.match(c) and "conda" not in c)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["clone", "hand-out"])
def test_one_line_sets_up_all_that_is_needed(who, tmp_path, hand_out):
    if who == "clone":
        place = clone(tmp_path / "clone", without_environment)
    else:
        place = unzip(hand_out.with_name("attention.zip"), tmp_path / "mine", without_environment)
    install = first_of((place.folder / "README.md").read_text(encoding="utf-8"))
    said = place.do(install)
    assert "The course is set up." in said
    assert "WARNING" not in said and len(said.splitlines()) < 12
    assert place.run(CHECK).text.count("0/") >= 5
    where = place.do(".venv/bin/python -c 'import autograder; print(autograder.__file__)'")
    assert where.startswith(str(place.folder))
    assert "0.9" in place.do(".venv/bin/nbgrader --version")


def test_the_readmes_begin_with_a_line_that_installs():
    for name in ("README.md", "solutions/students_readme.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert first_of(text) in ("make setup", "python3 install.py")
