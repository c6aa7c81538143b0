"""What leaves the house: the students' hand-out, and the course files that the sandbox shows.

Both hold the students' copy of the course's library, in which the bodies of the exercises are taken
out, and no answer: nothing of the sources, and nothing of what stands in the course's notebooks,
which somebody may have filled in.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from autograder.course import data, released
from autograder.course.course import Course
from autograder.course.settings import CourseError, Given
from autograder.keep import MARK
from autograder.whole import write_whole

ENGINE = Path(__file__).resolve().parents[1]
# Of the engine, what students need: everything but the instructor's side.
NOT_FOR_STUDENTS = {
    *("nbgrader_plugin.py", "converters.py", "exchange.py", "gradebook.py", "records.py"),
    *("again.py", "book.py", "cluster.py", "marks.py", "rehearsal.py"),
    *("exports", "class.html", "answers.html"),
}
STAND_IN = ENGINE / "sandbox" / "inside" / "stand_in"
TO_DO = 'raise NotImplementedError("Your code from the notebook goes here.")'
LEFT_BEHIND = ("~", ".bak", ".orig", ".rej", ".tmp", ".pyc")  # by editors, by `keep`, by Python


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


def students_library(course: Course, target: Path, complete: bool = False) -> None:
    """Copies the course's library into `target`; unless `complete`, without what students write."""
    name = course.settings.library
    if not name:
        return
    _copy(course.folder / name, target / name, lambda path: path.suffix == ".py")
    for module in () if complete else course.settings.fill_in:
        path = target / name / module
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


@contextmanager
def sandbox_course(course: Course, given: Given) -> Iterator[Path]:
    """A folder with all of the course that the student's code may see while it is graded.

    given: what the lesson is given, such as the library with its bodies, or files.
    """
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        target = Path(name)
        students_library(course, target, given.complete)
        _copy(STAND_IN, target, lambda path: path.suffix == ".py")
        for each in given.files:
            _copy_named(course.folder, each, target)
        for path in (target, *target.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield target


def _copy_named(folder: Path, name: str, target: Path) -> None:
    """Copies a file or a folder of the course, under its own name; nothing where it is missing."""
    if (folder / name).is_dir():
        _copy(folder / name, target / name)
    elif (folder / name).is_file():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target / name)


def build_release(
    course: Course, target: Path, watch: Callable[[list], Iterable] = iter
) -> tuple[Path, list[str]]:
    """Writes the hand-out to `target` (replacing it) and beside it as a zip.

    Its lessons are those that the sources build. watch: wraps the list of the files of exercises
    whose answers are computed, to show how far it is. Returns the zip, and the lessons whose file
    in the course's notebooks is another.
    """
    course.need_answers()
    course.check()
    _refuse_to_replace(course, target)
    _refuse_kept_classes(course)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".hand-out-", dir=target.parent) as work:
        made = Path(work) / target.name
        _write_hand_out(course, made, watch)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    texts = released.texts(course.folder, course.settings.sources)
    return _zip(target), released.edited(texts, course.folder / course.settings.notebooks)


def _refuse_to_replace(course: Course, target: Path) -> None:
    """Raises `CourseError` where the target is something else, or somebody works in it."""
    if not target.exists():
        return
    if not (target / ".hand-out").exists():
        raise CourseError(
            f"{target} exists and is not a hand-out made here. Name another folder, or remove it."
        )
    if not (target / released.HANDED_OUT).exists():
        return
    texts = released.texts(target, course.settings.sources)
    if lessons := released.edited(texts, target / course.settings.notebooks):
        raise CourseError(
            f"Somebody works in {target}: its notebooks of {', '.join(lessons)} were changed since "
            "they were written. Name another folder, or remove this one."
        )


def _refuse_kept_classes(course: Course) -> None:
    """Raises `CourseError` where `keep` put somebody's own class in the place of the library's."""
    for name in course.settings.fill_in:
        path = course.folder / course.settings.library / name
        if MARK in path.read_text(encoding="utf-8"):
            raise CourseError(
                f"{path} holds a class kept from a notebook, which is not for students to see. Put "
                f"the file back as it was (git checkout {path.relative_to(course.folder)}), then "
                "release."
            )


def _write_hand_out(course: Course, target: Path, watch: Callable[[list], Iterable]) -> None:
    folder, settings = course.folder, course.settings
    target.mkdir()
    write_whole(target / ".hand-out", "Made by `autograder release`.\n")
    texts = released.texts(folder, settings.sources)
    for name, text in texts.items():
        write_whole(target / settings.notebooks / name / f"{name}.ipynb", text)
    students_library(course, target)
    _copy(
        ENGINE,
        target / ENGINE.name,
        lambda path: (
            path.suffix in (".py", ".html", ".css") and not NOT_FOR_STUDENTS & set(path.parts)
        ),
    )
    released.write_handed_out(texts, target)
    data.write(course, target / data.CHECKS, watch)
    judges = folder / settings.exercises / data.JUDGES
    _copy(judges, target / data.FOLDER / data.JUDGES, lambda path: path.suffix == ".py")
    for name in settings.hand_out:
        _copy_named(folder, name, target)
    write_whole(target / "pyproject.toml", _students_pyproject(course))
    readme = folder / (settings.readme or "README.md")
    if readme.is_file():
        shutil.copyfile(readme, target / "README.md")


def _students_pyproject(course: Course) -> str:
    """The course's own pyproject.toml; with what pip needs, where the course is no package."""
    text = (course.folder / "pyproject.toml").read_text(encoding="utf-8")
    if "\n[project]" in f"\n{text}":
        return text
    packages = [f"{ENGINE.name}*"] + [f"{course.settings.library}*"] * bool(course.settings.library)
    needs = [n for n in metadata.requires(_distribution()) or [] if "extra ==" not in n]
    lines = [
        "[build-system]",
        'requires = ["setuptools>=77"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f'name = "{course.settings.id}-hand-out"',
        'version = "1"',
        'requires-python = ">=3.11"',
        "dependencies = [",
        *(f"    {need!r}," for need in needs),
        "]",
        "",
        "[project.scripts]",
        f'autograder = "{ENGINE.name}.cli:main"',
        "",
        "[tool.setuptools.packages.find]",
        f"include = {packages}",
        "",
        "[tool.setuptools.package-data]",
        f'{ENGINE.name} = ["**/*.html", "**/*.css"]',
        "",
    ]
    return "\n".join(lines) + "\n" + text


def _distribution() -> str:
    """The name under which the engine was installed."""
    return metadata.packages_distributions()[ENGINE.name][0]


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
