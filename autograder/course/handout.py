"""What leaves the house: the students' hand-out, and the course files that the sandbox shows.

Both hold the students' `transformer_lm`, in which the bodies of the exercises are taken out, and
no answer: no `solutions/`, no `autograder/reference/`, and nothing of what stands in `notebooks/`,
which somebody may have filled in.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.course import answers, released
from autograder.course import lesson as course
from autograder.course.keep import MARK
from autograder.course.whole import write_whole

EXERCISE_MODULES = ("modeling_attention.py",)
# Of our own package, what students need: everything but the answers and the instructor's side.
NOT_FOR_STUDENTS = {"reference", "nbgrader_plugin.py", "feedback.py", "demo.py"}
TO_DO = 'raise NotImplementedError("Your code from the notebook goes here.")'
LEFT_BEHIND = ("~", ".bak", ".orig", ".rej", ".tmp", ".pyc")  # by editors, by `keep`, by Python
ROOT_FILES = ("pyproject.toml", "environment.yml", "constraints.txt", "install.py", "LICENSE")


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
    _copy(folder / "transformer_lm", target, lambda path: path.suffix == ".py")
    if not complete:
        for name in EXERCISE_MODULES:
            path = target / name
            path.write_text(strip_bodies(path.read_text(encoding="utf-8")), encoding="utf-8")


def _copy(folder: Path, target: Path, wanted: Callable[[Path], bool] = lambda path: True) -> None:
    """Copies the files of a folder that `wanted` wants; nothing hidden and nothing left behind.

    Only their contents: a copy of what may only be read can be written to.
    """
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if path.is_file() and not hidden and not path.name.endswith(LEFT_BEHIND) and wanted(inside):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)


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
            _copy(folder / "models", target / "models")
        for path in (target, *target.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield target


def build_release(
    folder: Path, target: Path, watch: Callable[[list], Iterable] = iter
) -> tuple[Path, list[str]]:
    """Writes the hand-out to `target` (replacing it) and beside it as a zip.

    Its lessons are those that the sources build. watch: wraps the list of exercises whose answers
    are computed, to show how far it is. Returns the zip, and the lessons whose file in the course's
    `notebooks/` is another.
    """
    _refuse_to_replace(target)
    _refuse_kept_classes(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".hand-out-", dir=target.parent) as work:
        made = Path(work) / target.name
        _write_hand_out(folder, made, watch)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    return _zip(target), released.edited(folder)


def _refuse_to_replace(target: Path) -> None:
    """Raises `CourseError` where the target is something else, or somebody works in it."""
    if not target.exists():
        return
    if not (target / ".hand-out").exists():
        raise course.CourseError(
            f"{target} exists and is not a hand-out made here. Name another folder, or remove it."
        )
    if (target / released.HANDED_OUT).exists() and (lessons := released.edited(target)):
        raise course.CourseError(
            f"Somebody works in {target}: its notebooks of {', '.join(lessons)} were changed since "
            "they were written. Name another folder, or remove this one."
        )


def _refuse_kept_classes(folder: Path) -> None:
    """Raises `CourseError` where `keep` put somebody's own class in the place of the library's."""
    for name in EXERCISE_MODULES:
        path = folder / "transformer_lm" / name
        if MARK in path.read_text(encoding="utf-8"):
            raise course.CourseError(
                f"{path} holds a class kept from a notebook, which is not for students to see. Put "
                f"the file back as it was (git checkout {path.relative_to(folder)}), then release."
            )


def _write_hand_out(folder: Path, target: Path, watch: Callable[[list], Iterable]) -> None:
    target.mkdir()
    write_whole(target / ".hand-out", "Made by `autograder release`.\n")
    for name, text in released.texts(folder).items():
        write_whole(target / "notebooks" / name / f"{name}.ipynb", text)
    students_package(folder, target / "transformer_lm")
    _copy(
        folder / "autograder",
        target / "autograder",
        lambda path: path.suffix == ".py" and not NOT_FOR_STUDENTS & set(path.parts),
    )
    released.write_handed_out(folder, target)
    exercises = list(course.exercises().values())
    answers.write(watch(exercises), target / "autograder" / answers.FILE.name)
    for name in ("models", "docs"):
        _copy(folder / name, target / name)
    for name in ROOT_FILES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)
    shutil.copyfile(
        folder / "autograder" / "templates" / "students_readme.md", target / "README.md"
    )


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
