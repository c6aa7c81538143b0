"""The hand-out: complete, and without a line of any solution."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest

from autograder.course import data, released
from autograder.course.build import read_source, sources
from autograder.course.course import Course
from autograder.course.handout import build_release, sandbox_course, strip_bodies
from autograder.course.settings import CourseError, Given
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from autograder.keep import MARK
from tests.conftest import ROOT
from tests.typed import typed

HOMEWORK = "05_homework"


def code_lines(text: str) -> list[str]:
    """Lines of code without blanks around them, comments and empty lines."""
    lines = [line.partition("  #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if len(line) > 3 and not line.startswith("#")]


def solution_pieces() -> dict[str, str]:
    """What only a solution has, with where it stands: long lines, and any two in a row."""
    found = {}
    for path in sources(ROOT, "solutions"):
        for cell in read_source(path).cells:
            for region in re.findall(
                r"BEGIN SOLUTION\n(.*?)\n[^\n]*END SOLUTION", cell.source, re.S
            ):
                lines = code_lines(region)
                pairs = [f"{a}\n{b}" for a, b in zip(lines, lines[1:], strict=False)]
                for piece in [line for line in lines if len(line) >= 45] + pairs:
                    found[piece] = f"{path.stem}, {cell.id}"
    return found


def texts(path) -> str:
    """All that a file says, one line of code after the other."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        return "\n".join("\n".join(code_lines(c.source)) for c in cells)
    return "\n".join(code_lines(path.read_text(encoding="utf-8")))


def test_no_piece_of_a_solution_is_in_the_hand_out(hand_out):
    files = [p for p in hand_out.rglob("*") if p.suffix in (".py", ".md", ".ipynb", ".txt")]
    given = {path: texts(path) for path in files}
    pieces = solution_pieces()
    assert len(pieces) > 50
    leaks = [
        f"{where}: {piece!r} in {path.relative_to(hand_out)}"
        for piece, where in pieces.items()
        for path, text in given.items()
        if f"\n{piece}\n" in f"\n{text}\n"
    ]
    assert "\n".join(leaks) == ""


def test_the_instructors_side_stays_at_home(hand_out):
    assert not (hand_out / "solutions").exists()
    assert not list(hand_out.rglob("reference"))
    assert not list(hand_out.glob("solutions*"))


def test_whoever_may_read_a_file_of_the_hand_out_may_read_all(hand_out):
    rights = {p.stat().st_mode & 0o444 for p in hand_out.rglob("*") if p.is_file()}
    assert len(rights) == 1


def test_the_zip_holds_the_folder(hand_out):
    with zipfile.ZipFile(hand_out.with_name("attention.zip")) as archive:
        names = {n.removeprefix("attention/") for n in archive.namelist()}
    files = {p.relative_to(hand_out).as_posix() for p in hand_out.rglob("*") if p.is_file()}
    assert names == files
    assert "notebooks/05_homework/05_homework.ipynb" in names


def test_the_students_package_keeps_names_and_signatures(hand_out):
    mine = ast.parse((ROOT / "transformer_lm/modeling_attention.py").read_text())
    theirs = ast.parse((hand_out / "transformer_lm/modeling_attention.py").read_text())

    def outline(tree):
        return [
            (n.name, ast.unparse(n.args) if isinstance(n, ast.FunctionDef) else "")
            for n in ast.walk(tree)
            if isinstance(n, ast.FunctionDef | ast.ClassDef)
        ]

    assert outline(mine) == outline(theirs)
    assert "matmul" not in ast.unparse(theirs) and "softmax(" not in _code(theirs)


def _code(tree) -> str:
    """The module without its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def alone(hand_out, tmp_path) -> dict[str, str]:
    """An environment in which Python finds the hand-out and not this checkout."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
    )
    path = f"{hand_out}:{tmp_path}"
    return {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}


def test_checks_work_in_the_hand_out_without_the_reference(hand_out, tmp_path):
    right = (ROOT / "transformer_lm/modeling_attention.py").read_text()
    script = tmp_path / "student.py"
    script.write_text(
        right + "\nfrom autograder import check\n"
        "import autograder\nprint(autograder.__file__)\n"
        "from autograder.course.course import Course\n"
        "print('reference' if Course.find().has_answers else 'no reference')\n"
        'check("self_attention.forward")\ncheck("multi_head.output")\n'
        "class SelfAttention(SelfAttention):\n"
        "    def forward(self, x):\n"
        "        return (self.q(x) @ self.k(x).mT).softmax(-1) @ self.v(x)\n"
        'check("self_attention.forward")\n'
    )
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        cwd=hand_out,
        capture_output=True,
        text=True,
        env=alone(hand_out, tmp_path),
    )
    assert str(hand_out) in done.stdout
    assert "no reference" in done.stdout
    assert done.stdout.count("[passed]") == 2
    assert "not scaled" in done.stdout + done.stderr


def test_an_instructors_command_says_so_where_the_course_is_a_hand_out(hand_out, tmp_path):
    """With the whole engine, as somebody has it who installed it beside a hand-out."""
    environment = {**os.environ, "AUTOGRADER_COURSE": str(hand_out)}
    done = typed("autograder", "demo", place=tmp_path, environment=environment)
    assert done.returncode == 2 and "instructor" in done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_instructors_command_says_so_in_the_hand_out(hand_out, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "autograder.cli", "demo"],
        cwd=hand_out,
        capture_output=True,
        text=True,
        env=alone(hand_out, tmp_path),
    )
    assert done.returncode == 2
    assert "instructor" in done.stderr and "Traceback" not in done.stderr


def test_a_folder_that_is_not_a_hand_out_is_not_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.txt").write_text("dear")
    with pytest.raises(CourseError, match="not a hand-out"):
        build_release(Course.at(ROOT), tmp_path / "mine")
    assert (tmp_path / "mine" / "work.txt").read_text() == "dear"


@pytest.fixture
def solved_course(tmp_path, hand_out) -> Course:
    """A course of one lesson that somebody has solved in place.

    What its checks expect was computed for the whole course's hand-out, and is the same.
    """
    folder = tmp_path / "course"
    (folder / "solutions").mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{HOMEWORK}.py", folder / "solutions")
    shutil.copy(ROOT / "pyproject.toml", folder)
    exercises = folder / "solutions" / "exercises"
    shutil.copytree(ROOT / "solutions" / "exercises" / "judges", exercises / "judges")
    for path in (ROOT / "solutions" / "exercises").glob("*.py"):
        if path.name.startswith("_") or path.stem == HOMEWORK:
            shutil.copy(path, exercises)
    shutil.copytree(ROOT / "transformer_lm", folder / "transformer_lm")
    (folder / data.KEPT).mkdir(parents=True)
    for path in (ROOT / data.KEPT).glob(f"{HOMEWORK}-*"):
        shutil.copy(path, folder / data.KEPT)
    notebook = folder / "notebooks" / HOMEWORK / f"{HOMEWORK}.ipynb"
    notebook.parent.mkdir(parents=True)
    text = fill_in(Course.at(ROOT).lessons[HOMEWORK], model_answers(Course.at(ROOT), HOMEWORK))
    notebook.write_text(text, encoding="utf-8")
    return Course.at(folder)


def test_a_solved_notebook_stays_at_home_and_is_told(solved_course, tmp_path):
    (solved_course.folder / "notebooks" / "mine.txt").write_text("my own notes")
    _, edited = build_release(solved_course, tmp_path / "out")
    assert edited == [HOMEWORK]
    (given,) = [p for p in (tmp_path / "out" / "notebooks").rglob("*") if p.is_file()]
    assert given.read_text(encoding="utf-8") == released.texts(ROOT, "solutions")[HOMEWORK]
    assert Course.at(tmp_path / "out").lessons[HOMEWORK] == Course.at(ROOT).lessons[HOMEWORK]


def test_what_editors_and_keep_leave_behind_stays_at_home(solved_course, tmp_path):
    library = solved_course.folder / "transformer_lm"
    for name in ("modeling_attention.py.bak", "modeling_attention.py~", ".weights.py.swp", "x.txt"):
        (library / name).write_text("the whole answer")
    build_release(solved_course, tmp_path / "out")
    given = {p.name for p in (tmp_path / "out" / "transformer_lm").rglob("*") if p.is_file()}
    assert given == {p.name for p in (ROOT / "transformer_lm").rglob("*.py")}
    with sandbox_course(solved_course, Given()) as shown:
        seen = (shown / "transformer_lm").rglob("*")
        assert {p.name for p in seen if p.is_file()} == given


def test_a_class_kept_in_the_library_is_not_released(solved_course, tmp_path):
    path = solved_course.folder / "transformer_lm" / "modeling_attention.py"
    path.write_text(f"{MARK}\n{path.read_text()}")
    with pytest.raises(CourseError, match="kept from a notebook"):
        build_release(solved_course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_hand_out_in_which_somebody_works_is_not_overwritten(solved_course, tmp_path):
    build_release(solved_course, tmp_path / "out")
    build_release(solved_course, tmp_path / "out")
    mine = tmp_path / "out" / "notebooks" / HOMEWORK / f"{HOMEWORK}.ipynb"
    mine.write_text("my work")
    with pytest.raises(CourseError, match=f"Somebody works in .*{HOMEWORK}"):
        build_release(solved_course, tmp_path / "out")
    assert mine.read_text() == "my work"


def test_a_release_that_fails_leaves_the_old_one(solved_course, tmp_path):
    build_release(solved_course, tmp_path / "out")

    def fail(exercises):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_release(solved_course, tmp_path / "out", fail)
    assert Course.at(tmp_path / "out").lessons
    assert [p.name for p in tmp_path.glob(".hand-out-*")] == []


def test_a_body_is_taken_out_and_its_docstring_stays():
    source = 'def f(x):\n    """Says."""\n    y = x\n    return y\n'
    stripped = strip_bodies(source)
    assert '"""Says."""' in stripped and "y = x" not in stripped
    with pytest.raises(NotImplementedError):
        namespace = {}
        exec(stripped, namespace)
        namespace["f"](1)


def test_what_is_told_of_a_class_is_not_for_students(hand_out):
    assert not (hand_out / "autograder" / "exports").exists()
    for name in ("class.html", "answers.html"):
        assert not list(hand_out.rglob(name))
    done = subprocess.run(
        [sys.executable, "-m", "autograder.cli", "report"],
        cwd=hand_out,
        env={**os.environ, "PYTHONPATH": str(hand_out), "AUTOGRADER_COURSE": str(hand_out)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "the instructor's" in done.stderr
