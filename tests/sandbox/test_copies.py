"""A course's answers stay hidden where they are installed beside what students import."""

import base64
import hashlib

import pytest

from autograder.sandbox import Sandbox
from autograder.sandbox.copies import installed_copies
from tests.forms import first_of
from tests.sandbox.conftest import RUNNER

ANSWER = "def f(x):\n    return x + 41\n"


@pytest.fixture
def secret(tmp_path):
    """The files of a course that hold answers."""
    folder = tmp_path / "course" / "solutions" / "exercises"
    folder.mkdir(parents=True)
    (folder / "01_lesson.py").write_text(ANSWER)
    (folder / "__init__.py").write_text("")
    return sorted(folder.iterdir())


@pytest.fixture
def packages(tmp_path):
    """A folder of installed packages, with one that has nothing to do with the course."""
    folder = tmp_path / "lib" / "site-packages"
    for name in ("exercises", "other"):
        (folder / "innocent" / name).mkdir(parents=True)
        (folder / "innocent" / name / "__init__.py").write_text("")
    (folder / "innocent" / "exercises" / "07_else.py").write_text("pass\n")
    return folder


def install(packages, name: str, text: str) -> None:
    """Writes a file and what pip records of it."""
    path = packages / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    info = packages / "somebody-1.dist-info"
    info.mkdir(exist_ok=True)
    rows = [f"{name},sha256={digest},{len(text)}", "somebody-1.dist-info/RECORD,,"]
    (info / "RECORD").write_text("\n".join(rows) + "\n")


def test_nothing_is_hidden_where_nothing_of_the_course_is_installed(secret, packages):
    assert installed_copies(secret, [str(packages)]) == []


def test_a_copy_under_another_name_is_found_by_its_content(secret, packages):
    install(packages, "renamed/inner/anything.py", ANSWER)
    assert installed_copies(secret, [str(packages)]) == [str(packages / "renamed")]


def test_a_module_by_itself_is_hidden_with_what_python_compiled_of_it(secret, packages):
    install(packages, "helpers.py", ANSWER)
    compiled = packages / "__pycache__" / "helpers.cpython-312.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"")
    hidden = [str(compiled), str(packages / "helpers.py")]
    assert installed_copies(secret, [str(packages)]) == hidden


def test_a_copy_that_pip_knows_nothing_of_is_found_by_its_content(secret, packages):
    (packages / "innocent" / "copied.py").write_text(ANSWER)
    (packages / "alone.py").write_text(ANSWER)
    hidden = [str(packages / "alone.py"), str(packages / "innocent")]
    assert installed_copies(secret, [str(packages)]) == hidden


def test_a_copy_that_pip_put_beside_the_packages_is_found_by_its_record(secret, packages):
    (packages.parent / "share").mkdir()
    install(packages, "../share/01_lesson.txt", ANSWER)
    hidden = [str(packages.parent / "share" / "01_lesson.txt")]
    assert installed_copies(secret, [str(packages)]) == hidden


def test_another_edition_is_found_by_its_names(secret, packages):
    install(packages, "course_pkg/exercises/01_lesson.py", ANSWER.replace("41", "40"))
    assert installed_copies(secret, [str(packages)]) == [str(packages / "course_pkg")]


@pytest.mark.parametrize("tier", first_of("namespaces", "landlock"))
def test_a_students_cell_cannot_read_installed_answers(
    light, course, secret, packages, monkeypatch, tier
):
    install(packages, "renamed/anything.py", ANSWER)
    for path in (packages.parents[1], *packages.parents[1].rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    monkeypatch.syspath_prepend(str(packages))
    source = f"""
import innocent.other
from given import found
try:
    found.append(open("{packages}/renamed/anything.py").read())
except OSError:
    pass
"""
    for hide, seen in (([], 1), (installed_copies(secret, [str(packages)]), 0)):
        with Sandbox(course, tier=tier, runner=RUNNER, hide=hide) as box, box.child() as child:
            header, _ = child.request({"op": "run", "source": source, "given": {}}, {})
        assert len(header["found"]) == seen


def test_a_grader_hides_its_course_and_the_installed_library(monkeypatch, packages):
    from autograder.course.course import Course
    from autograder.grading.grade import hidden
    from tests.conftest import ROOT

    monkeypatch.syspath_prepend(str(packages))
    paths = hidden.__wrapped__(Course.at(ROOT))  # not what was found before
    assert ROOT in paths and packages / "transformer_lm" in paths
