"""What leaves the house: the students' hand-out, and the course files that the sandbox shows.

Both hold the students' `transformer_lm`, in which the bodies of the exercises are taken out, and
no answer: no `solutions/`, no `autograder/reference/`.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder import answers, course

EXERCISE_MODULES = ("modeling_attention.py",)
# Of our own package, what students need: everything but the answers and the instructor's side.
NOT_FOR_STUDENTS = ("reference", "nbgrader_plugin.py", "feedback.py", "demo.py", "__pycache__")
TO_DO = 'raise NotImplementedError("Your code from the notebook goes here.")'
_PLAIN = shutil.ignore_patterns("__pycache__", "*.pyc", ".ipynb_checkpoints")


def strip_bodies(source: str) -> str:
    """The module with the body of every function and method replaced; docstrings stay."""
    lines = source.splitlines()
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    for node in sorted(functions, key=lambda n: n.lineno, reverse=True):
        body = node.body
        has_docstring = ast.get_docstring(node, clean=False) is not None
        start = body[0].end_lineno if has_docstring else body[0].lineno - 1
        indent = " " * body[0].col_offset
        lines[start : node.end_lineno] = [f"{indent}{TO_DO}"]
    return "\n".join(lines) + "\n"


def students_package(folder: Path, target: Path, complete: bool = False) -> None:
    """Copies `transformer_lm` to `target`; unless `complete`, without the exercises' bodies."""
    shutil.copytree(folder / "transformer_lm", target, ignore=_PLAIN)
    if not complete:
        for name in EXERCISE_MODULES:
            path = target / name
            path.write_text(strip_bodies(path.read_text(encoding="utf-8")), encoding="utf-8")


STAND_IN = '''"""Where answers are graded, checks and hints do nothing."""


def check(task):
    """Does nothing here."""


def hint(task, step=1):
    """Does nothing here."""
'''
KEEP_STAND_IN = '''"""Where answers are graded, nothing is kept."""


def keep(*names, force=False):
    """Does nothing here."""
'''


@contextmanager
def sandbox_course(folder: Path, complete: bool = False) -> Iterator[Path]:
    """A folder with all of the course that the student's code may see while it is graded.

    complete: with the library's own attention classes and the models on board, for the lessons
    that build on them.
    """
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        target = Path(name)
        students_package(folder, target / "transformer_lm", complete)
        (target / "autograder").mkdir()
        (target / "autograder" / "__init__.py").write_text(STAND_IN, encoding="utf-8")
        (target / "autograder" / "keep.py").write_text(KEEP_STAND_IN, encoding="utf-8")
        if complete and (folder / "models").is_dir():
            shutil.copytree(folder / "models", target / "models", ignore=_PLAIN)
        for path in (target, *target.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield target


def build_release(folder: Path, target: Path) -> Path:
    """Writes the hand-out to `target` (replacing it) and beside it as a zip; returns the zip."""
    if target.exists():
        if not (target / ".hand-out").exists():
            raise course.CourseError(
                f"{target} exists and is not a hand-out made here. Name another folder, "
                "or remove it."
            )
        shutil.rmtree(target)
    target.mkdir(parents=True)
    (target / ".hand-out").write_text("Made by `autograder release`.\n", encoding="utf-8")
    shutil.copytree(folder / "notebooks", target / "notebooks", ignore=_PLAIN)
    students_package(folder, target / "transformer_lm")
    left_out = shutil.ignore_patterns(*NOT_FOR_STUDENTS, "*.pyc")
    shutil.copytree(folder / "autograder", target / "autograder", ignore=left_out)
    answers.write(course.exercises().values(), target / "autograder" / answers.FILE.name)
    for name in ("models", "docs"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, target / name, ignore=_PLAIN)
    for name in ("pyproject.toml", "environment.yml", "constraints.txt", "LICENSE"):
        if (folder / name).exists():
            shutil.copy(folder / name, target / name)
    readme = folder / "autograder" / "templates" / "students_readme.md"
    shutil.copy(readme, target / "README.md")
    return _zip(target)


def _zip(target: Path) -> Path:
    """The folder as a zip whose bytes depend on its files only."""
    path = target.with_name(target.name + ".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in target.rglob("*") if p.is_file()):
            info = zipfile.ZipInfo(f"{target.name}/{file.relative_to(target).as_posix()}")
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())
    return path
