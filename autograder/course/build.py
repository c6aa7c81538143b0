"""From one source a lesson (`solutions/NN_name.py`, py:percent) to the notebooks built from it.

Short cell headers say what a cell is:

    # %% role="setup"                              imports; locked, run before every question
    # %%                                           code to run and play with
    # %% exercise="simple.softmax"                 a student's answer, solution between markers
    # %% exercise="x.y" needs="x.a x.b"            ... that builds on earlier answers
    # %% check="simple.softmax" points=2           calls the check, worth 2 points
    # %% [markdown] question="q1" points=2         marked by a person, with a marking scheme

Building twice gives the same bytes: cell ids come from the headers, or from the cell's place.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from autograder.course.lesson import Role
from autograder.course.settings import CourseError, did_you_mean, sources
from autograder.whole import write_whole

if TYPE_CHECKING:
    from autograder.course.course import Course

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
RELEASE_STEPS = (
    "LockCells",
    "ClearSolutions",
    "ClearOutput",
    "CheckCellMetadata",
    "ComputeChecksums",
    "ClearHiddenTests",
    "ClearMarkScheme",
    "ComputeChecksums",
    "CheckCellMetadata",
)
UNREAD = "incorrectly_encoded_metadata"  # jupytext's word for a header that it cannot read
HEADER_KEYS = {"role", "exercise", "check", "question", "points", "needs", "of", "calls"}


def read_source(path: Path) -> NotebookNode:
    """The lesson with solutions and marking schemes: what nbgrader calls the source notebook."""
    return parse_source(path.read_text(encoding="utf-8"), path)


def parse_source(text: str, path: Path) -> NotebookNode:
    """The same from the text of the file; `path` is for messages."""
    parsed = jupytext.reads(text, fmt="py:percent")
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL, "language_info": LANGUAGE})
    if not any(c.source.strip() or HEADER_KEYS & set(c.metadata) for c in parsed.cells):
        raise CourseError(f"{path} has no cells. A cell begins with a line `# %%`.")
    _check_start(parsed.cells[0], path)
    places = [f"{path}:{line}" for line in _first_lines(text, len(parsed.cells))]
    notebook.cells = [_cell(c, i, places[i]) for i, c in enumerate(parsed.cells)]
    _link_checks(notebook, places)
    nbformat.validate(notebook)
    return notebook


def _check_start(cell: NotebookNode, path: Path) -> None:
    """Raises `CourseError` where a lesson begins with comments that are in no text cell."""
    lines = [line for line in cell.source.split("\n") if line.strip()]
    comments = lines and all(line.startswith("#") for line in lines)
    if cell.cell_type == "code" and comments and not HEADER_KEYS & set(cell.metadata):
        raise CourseError(
            f"{path}:1: the lesson begins with comments, which would be a code cell without code. "
            "A text begins with a line `# %% [markdown]`; what students need not read is left out."
        )


def _first_lines(text: str, count: int) -> list[int]:
    """The line on which each cell begins, for messages."""
    lines = [n for n, line in enumerate(text.split("\n"), start=1) if line.startswith("# %%")]
    missing = count - len(lines)  # text before the first marker makes a cell too
    return [1] * missing + lines[: count - missing]


def grade_id(name: str) -> str:
    """A task's name as nbgrader and nbformat allow it in an id: letters, digits, _ and -."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


def _cell(parsed: NotebookNode, place: int, where: str) -> NotebookNode:
    header = {k: v for k, v in parsed.metadata.items() if k != "lines_to_next_cell"}
    if UNREAD in header:
        raise CourseError(
            f"{where}: the header of a cell cannot be read. Keys are written like this: "
            '# %% check="NAME" points=2'
        )
    unknown = set(header) - HEADER_KEYS
    if unknown:
        known = ", ".join(sorted(HEADER_KEYS))
        raise CourseError(
            f"{where}: the header of a cell has no key {min(unknown)!r}; there are {known}."
        )
    make = (
        nbformat.v4.new_code_cell if parsed.cell_type == "code" else nbformat.v4.new_markdown_cell
    )
    cell = make(parsed.source)
    cell.id = f"{parsed.cell_type}-{place:03d}"
    role = header.get("role")
    _check_header(header, cell, where)
    course: dict = {"role": role} if role else {}
    if "exercise" in header:
        cell.id = grade_id(header["exercise"])
        course = {"role": Role.EXERCISE, "task": header["exercise"]}
        for key, separator in (("needs", r"[;\s]"), ("calls", ";")):
            if key in header:
                course[key] = _several(header[key], separator)
        cell.metadata["nbgrader"] = _nbgrader(cell.id, solution=True)
    elif "check" in header:
        cell.id = "check-" + grade_id(header["check"])
        course = {"role": Role.CHECK, "task": header["check"]}
        if "of" in header:
            course["of"] = grade_id(header["of"])
        if header.get("points", 0):
            cell.metadata["nbgrader"] = _nbgrader(
                cell.id, grade=True, locked=True, points=header["points"]
            )
        else:
            course["role"] = Role.DEMO
    elif "question" in header:
        cell.id = grade_id(header["question"])
        course = {"role": Role.QUESTION, "task": header["question"]}
        cell.metadata["nbgrader"] = _nbgrader(
            cell.id, grade=True, solution=True, points=header["points"]
        )
    elif role == Role.SETUP:
        cell.id = f"setup-{place:03d}"
        cell.metadata["nbgrader"] = _nbgrader(cell.id, locked=True)
    if course:
        cell.metadata["course"] = course
    return cell


def _check_header(header: dict, cell: NotebookNode, where: str) -> None:
    """Raises `CourseError` where a header, or the cell under it, is not as it should be."""
    role, points = header.get("role", Role.SETUP), header.get("points", 0)
    if role != Role.SETUP:
        raise CourseError(f'{where}: there is no role {role!r}; the only one is "setup".')
    if type(points) not in (int, float) or points < 0:
        raise CourseError(f"{where}: points={points!r}: points are a number, such as points=2.")
    if "question" in header and "points" not in header:
        raise CourseError(f"{where}: a question is worth points: add points=1, or more.")
    task, called = header.get("check"), re.findall(r"\bcheck\(\s*[\"'](.*?)[\"']", cell.source)
    if task and called and task not in called:
        raise CourseError(f"{where}: the check {task!r} calls check({called[0]!r}).")
    marks = re.findall(r"### (BEGIN|END) SOLUTION", cell.source)
    if marks != ["BEGIN", "END"] * (len(marks) // 2):
        raise CourseError(
            f"{where}: `### BEGIN SOLUTION` and `### END SOLUTION` do not come in pairs."
        )
    if marks and not {"exercise", "question"} & set(header):
        raise CourseError(
            f"{where}: a cell with a solution needs a header that says whose it is: "
            'exercise="NAME" or question="NAME".'
        )
    if cell.cell_type == "code" and not re.search(r"^\s*[%!?]", cell.source, re.MULTILINE):
        try:
            compile(cell.source, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
        except SyntaxError as error:
            raise CourseError(
                f"{where}: Python cannot read this cell: line {error.lineno} of it, "
                f"`{(error.text or '').strip()}`: {error.msg}."
            ) from None


def _several(value, separator: str) -> list[str]:
    """A header's value that may be one string of several, or a list."""
    parts = value if isinstance(value, list) else re.split(separator, value)
    return [part for part in (str(p).strip() for p in parts) if part]


def _nbgrader(name: str, *, grade=False, solution=False, locked=False, points=None) -> dict:
    data = {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
    }
    return data if points is None else {**data, "points": points}


def _link_checks(notebook: NotebookNode, places: list[str]) -> None:
    """Says for each check which exercise it judges: of that name, or of its part before the dot."""
    ids = {c.metadata.course.task: c.id for c in notebook.cells if _role(c) == Role.EXERCISE}
    seen: set[str] = set()
    for cell, where in zip(notebook.cells, places, strict=True):
        if cell.id in seen:
            raise CourseError(f"{where}: another cell is called {cell.id!r} too.")
        seen.add(cell.id)
        if _role(cell) in (Role.CHECK, Role.DEMO) and "of" in cell.metadata.get("course", {}):
            of = cell.metadata.course.of
            if of not in ids.values():
                likely = did_you_mean(of, ids)
                raise CourseError(f"{where}: of={of!r} is no exercise of this lesson.{likely}")
        elif _role(cell) == Role.CHECK:
            task = cell.metadata.course.task
            found = ids.get(task) or ids.get(task.partition(".")[0])
            if found is None:
                likely = did_you_mean(task, ids)
                raise CourseError(
                    f"{where}: the check {task!r} has no exercise cell in this lesson, neither of "
                    f"that name nor of {task.partition('.')[0]!r}.{likely}"
                )
            cell.metadata.course["of"] = found
        if _role(cell) == Role.EXERCISE:
            needs = cell.metadata.course.get("needs", [])
            unknown = [n for n in needs if n not in ids]
            if unknown:
                raise CourseError(
                    f"{where}: {cell.id!r} needs {unknown[0]!r}, which is no exercise of this "
                    "lesson."
                )
            if needs:
                cell.metadata.course["needs"] = [ids[n] for n in needs]


def _role(cell: NotebookNode) -> str:
    return cell.metadata.get("course", {}).get("role", "")


def release(source: NotebookNode) -> NotebookNode:
    """What students get: solutions, marking schemes and outputs taken out, by nbgrader itself."""
    from nbgrader import preprocessors  # only here: it takes longer to import than all the rest

    notebook, resources = copy.deepcopy(source), {"nbgrader": {"notebook": "lesson"}}
    for step in RELEASE_STEPS:
        notebook, resources = getattr(preprocessors, step)().preprocess(notebook, resources)
    return notebook


def execute(source: NotebookNode, folder: Path, seconds: int = 300) -> NotebookNode:
    """The lesson with solutions, run from start to end in `folder`."""
    notebook = readable(source)
    client = NotebookClient(
        notebook,
        timeout=seconds,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    return notebook


def _executed(source: NotebookNode, folder: Path, path: Path) -> NotebookNode:
    """The same; what stops it is said with file and line."""
    try:
        return execute(source, folder)
    except CellExecutionError as error:
        raise CourseError(f"{_place_of_error(error, source, path)}: {_short(error)}") from None
    except CellTimeoutError:
        raise CourseError(f"{path}: a cell runs for longer than five minutes.") from None


def _short(error: CellExecutionError) -> str:
    told = f"{error.evalue}".strip()
    if error.ename == "CheckFailed":
        return f"the lesson's own solution fails its check: {told}"
    return f"this cell stops with an error: {error.ename}: {told}"


def _place_of_error(error: CellExecutionError, source: NotebookNode, path: Path) -> str:
    """File and line of the cell that stopped, as far as its text can be found in the source."""
    text = path.read_text(encoding="utf-8")
    parsed = jupytext.reads(text, fmt="py:percent").cells
    lines = _first_lines(text, len(parsed))
    stopped = next(
        (
            i
            for i, c in enumerate(without_markers(copy.deepcopy(source)).cells)
            if c.source.strip() and c.source.strip() in str(error)
        ),
        None,
    )
    return f"{path}:{lines[stopped]}" if stopped is not None else str(path)


def readable(source: NotebookNode) -> NotebookNode:
    """The lesson with solutions as it is read in `solutions/`: no marks of ours, links that work.

    Links are written for notebooks/NN_name/, one folder deeper.
    """
    notebook = copy.deepcopy(source)
    if any("MARK SCHEME" in cell.source for cell in notebook.cells):
        from nbgrader.preprocessors import ClearMarkScheme  # slow to import, and seldom needed

        notebook, _ = ClearMarkScheme().preprocess(notebook, {})
    for cell in without_markers(notebook).cells:
        cell.source = re.sub(r"\]\(\.\./\.\./", "](../", cell.source)
        cell.source = re.sub(r"\]\(\.\./([\w-]+)/\1\.ipynb", r"](\1.ipynb", cell.source)
    return notebook


def without_markers(notebook: NotebookNode) -> NotebookNode:
    """Takes the lines `### BEGIN SOLUTION` and `### END SOLUTION` out, for reading."""
    for cell in notebook.cells:
        lines = cell.source.split("\n")
        kept = [line for line in lines if not re.search(r"(BEGIN|END) SOLUTION", line)]
        cell.source = "\n".join(kept)
    return notebook


def as_text(notebook: NotebookNode) -> str:
    """A notebook as its file has it: the same notebook gives the same bytes."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def write(notebook: NotebookNode, path: Path) -> None:
    """Writes a notebook, where the file does not hold it already."""
    text = as_text(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)


def build(course: Course, run: bool = True, only: str = "", say=lambda text: None) -> list[Path]:
    """Builds every notebook of the course; returns the released ones.

    Writes notebooks/NAME/NAME.ipynb (released) and, where `run`, solutions/NAME.ipynb (executed,
    with figures). Raises `CourseError` for what cannot be resolved, such as a check without an
    exercise. A notebook that is replaced is kept in build/replaced/: somebody may have written
    answers into it.
    """
    course.check()
    folder = course.folder
    written = []
    for path in sources(folder, course.settings.sources):
        if not path.stem.startswith(only):
            continue
        source = read_source(path)
        target = folder / course.settings.notebooks / path.stem / f"{path.stem}.ipynb"
        new = release(source)
        if _keep_replaced(target, as_text(new), folder / "build" / "replaced"):
            say(f"{path.stem}: the notebook as it was is kept in build/replaced/")
        write(new, target)
        if run:
            say(f"running {path.stem}")
            write(_executed(source, folder, path), path.with_suffix(".ipynb"))
        written.append(target)
    return written


def _keep_replaced(path: Path, new: str, folder: Path) -> bool:
    """Whether the file is about to become another; it is then copied into `folder`.

    Its name there is made from its content, so that an earlier one stays.
    """
    old = path.read_bytes() if path.exists() else b""
    if not old or old == new.encode("utf-8"):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{path.stem}-{hashlib.sha256(old).hexdigest()[:8]}.ipynb").write_bytes(old)
    return True
