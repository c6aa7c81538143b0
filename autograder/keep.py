"""`keep`: copies a class from the student's notebook into the course's library."""

from __future__ import annotations

import ast
import builtins
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from autograder.whole import write_whole

MARK = "# kept from your notebook"


class KeepError(Exception):
    """The class was not copied; the text says why and what to do."""

    def _render_traceback_(self):
        return [f"KeepError: {self}"]


def keep(
    name: str,
    path: Path | None = None,
    cells: Sequence[str] | None = None,
    force: bool = False,
) -> None:
    """Replaces class `name` of the file with the one of the last cell that defines it.

    Nothing else in the file is touched, and the file as it was stays beside it as `.py.bak`.

    path: the file, by default the module of the course's library that students fill in. cells: the
    sources to look in, by default the cells run in this notebook so far. force: also where the file
    is the complete library, whose classes are not the students' to fill in. Raises `KeepError`
    where the file is left as it was.
    """
    path = _course_file() if path is None else Path(path)
    new = _last_definition(name, _cells_run() if cells is None else cells)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise KeepError(f"{path} cannot be read ({error.strerror}).") from None
    if not force and "NotImplementedError" not in text and MARK not in text:
        raise KeepError(
            f"{path.name} is the complete library, not the students' file with bodies to fill in; "
            "it was left as it is. Say force=True if you mean to replace its class."
        )
    try:
        place = _find(name, text)
    except SyntaxError as error:
        raise KeepError(f"{path.name} does not parse (line {error.lineno}).") from None
    if place is None:
        raise KeepError(f"{path.name} has no class {name!r} to replace.")
    start, end = place
    lines = text.splitlines(keepends=True)
    if start and lines[start - 1].strip() == MARK:
        start -= 1
    result = "".join([*lines[:start], f"{MARK}\n{new}\n", *lines[end:]])
    try:
        shutil.copyfile(path, path.with_name(path.name + ".bak"))
        write_whole(path, result)
    except OSError as error:
        raise KeepError(
            f"{path} cannot be written ({error.strerror}) and is as it was. Copy the course's "
            "folder to where you may write, and open your notebook there."
        ) from None
    print(f"{name} of your notebook now stands in {path.name}; the old file is {path.name}.bak.")
    unknown = _unknown_names(new, result)
    if unknown:
        print(
            f"It uses names that the file does not define: {', '.join(unknown)}. Import them there."
        )


def _course_file() -> Path:
    from autograder.course.course import Course

    course = Course.find()
    if not course.settings.fill_in:
        raise KeepError("This course has no file that classes are kept in.")
    return course.folder / course.settings.library / course.settings.fill_in[0]


def _cells_run() -> Sequence[str]:
    """The sources of all cells run so far, oldest first."""
    try:
        from IPython import get_ipython

        shell = get_ipython()
    except ImportError:
        shell = None
    if shell is None:
        raise KeepError("keep looks for your class in a notebook's cells; run it in a notebook.")
    return shell.user_ns["In"]


def _last_definition(name: str, cells: Sequence[str]) -> str:
    """The source of the class in the last of these cells that defines it."""
    pattern = re.compile(rf"^class\s+{re.escape(name)}\b", re.MULTILINE)
    cell = next((c for c in reversed(cells) if pattern.search(c)), None)
    if cell is None:
        raise KeepError(f"No cell that you have run defines class {name!r}. Run its cell first.")
    try:
        place = _find(name, cell)
    except SyntaxError as error:
        raise KeepError(
            f"The last cell that defines {name!r} does not parse (line {error.lineno}: "
            f"{error.msg}). Put it right and run it first."
        ) from None
    if place is None:
        raise KeepError(f"{name!r} is not at the top level of the last cell that defines it.")
    start, end = place
    found = "\n".join(cell.splitlines()[start:end])
    if re.search(r"^\s*raise NotImplementedError", found, re.MULTILINE):
        raise KeepError(f"{name!r} is not filled in yet: it still raises NotImplementedError.")
    return found


def _find(name: str, text: str) -> tuple[int, int] | None:
    """Where class `name` stands in a text, as (first line, line after the last), or None.

    Decorators belong to it, and so do the indented comments after its last statement.
    """
    classes = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == name]
    if not classes:
        return None
    node = classes[-1]
    start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    lines = text.splitlines()
    end = node.end_lineno
    for i in range(end, len(lines)):
        if re.match(r"\s+#", lines[i]):
            end = i + 1
        elif lines[i].strip():
            break
    return start, end


def _unknown_names(source: str, whole: str) -> list[str]:
    """Names that the class uses and that neither it, nor the file, nor Python defines."""
    used = set()
    known = set(dir(builtins)) | {"__class__"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else known).add(node.id)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        else:
            known |= _bound(node)
    for node in ast.parse(whole).body:
        known |= _bound(node)
        if isinstance(node, ast.Assign):
            known |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return sorted(used - known)


def _bound(node: ast.AST) -> set[str]:
    """Names bound by an import or a definition."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return set()
