"""What `autograder shapes` looks at: files, notebooks and folders, and how each is to be called."""

from __future__ import annotations

import ast
import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

SKIPPED = {"build", "dist", "node_modules", "__pycache__", "venv", "env", "site-packages"}
MARK = "Shapes:"


@dataclass(frozen=True)
class Settings:
    """How to call what a file holds."""

    calls: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    setup: str = ""
    missing: bool = False


@dataclass(frozen=True)
class Source:
    """The text of a file or of a notebook's code cells, with what to run before it.

    listed: it was found in a folder, and nobody named it. cells: for a notebook, the first line of
    each code cell.
    """

    path: Path
    text: str
    settings: Settings
    setup: str = ""
    listed: bool = False
    cells: tuple[int, ...] = ()
    problem: str = ""

    def place(self, line: int) -> str:
        """Where a line is, as an editor can follow it."""
        if not self.cells:
            return f"{self.path}:{line}"
        cell = sum(first <= line for first in self.cells)
        return f"{self.path}:cell {cell}:{line - self.cells[cell - 1] + 1}"


def sources(paths: list[Path], given: Settings) -> list[Source]:
    """The sources under the paths. Raises OSError for a path that is not there."""
    found = []
    for path in paths:
        if path.is_dir():
            found += [_read(p, given, listed=True) for p in _inside(path)]
        elif path.exists():
            found.append(_read(path, given))
        else:
            raise FileNotFoundError(f"{path}: there is no such file or folder.")
    return found


def _inside(folder: Path) -> list[Path]:
    return [
        path
        for kind in ("*.py", "*.ipynb")
        for path in sorted(folder.rglob(kind))
        if not any(p in SKIPPED or p.startswith(".") for p in path.relative_to(folder).parts)
    ]


def _read(path: Path, given: Settings, listed: bool = False) -> Source:
    settings, cells, prose = _of_project(path), (), ""
    try:
        raw = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            raw, cells, prose = _notebook(raw)
        told = calls_in(raw) + _marked(prose)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, KeyError, TypeError) as error:
        return Source(path, "", given, listed=listed, problem=f"it cannot be read: {error}")
    settings = replace(
        settings,
        calls=given.calls or told or settings.calls,
        where=given.where or settings.where,
        setup="\n".join(filter(None, (settings.setup, given.setup))),
    )
    return Source(path, raw, settings, _surroundings(path, settings.setup), listed, cells)


def calls_in(text: str) -> tuple[str, ...]:
    """The calls behind `Shapes:` in the docstrings of a module, its classes and its functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    docs = [ast.get_docstring(n) or "" for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    return tuple(call for doc in docs for call in _marked(doc))


def _marked(text: str) -> tuple[str, ...]:
    lines = [line.strip() for line in text.splitlines()]
    return tuple(s.removeprefix(MARK).strip(" `") for s in lines if s.startswith(MARK))


def _notebook(raw: str) -> tuple[str, tuple[int, ...], str]:
    """The code of a notebook, the first line of each cell, and its text."""
    lines: list[str] = []
    cells, prose = [], []
    for cell in json.loads(raw)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            prose.append(text)
            continue
        cells.append(len(lines) + 1)
        foreign = text.startswith("%%")
        lines += ["# " + s if foreign or s.startswith(("%", "!")) else s for s in text.split("\n")]
    return "\n".join(lines) + "\n", tuple(cells), "\n".join(prose)


def _surroundings(path: Path, setup: str) -> str:
    """Code that makes the imports of a file work: of its neighbours, and relative ones."""
    folder, package = path.resolve().parent, []
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        package.insert(0, folder.name)
        folder = folder.parent
    places = [str(path.resolve().parent), str(folder)]
    lines = ["import sys", *(f"sys.path.insert(0, {p!r})" for p in dict.fromkeys(places))]
    if package:
        lines.append(f"__package__ = {'.'.join(package)!r}")
    return "\n".join([*lines, setup])


def _of_project(path: Path) -> Settings:
    """What the nearest pyproject.toml says under [tool.autograder.shapes]."""
    for folder in path.resolve().parents:
        file = folder / "pyproject.toml"
        if not file.exists():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: {error}") from None
        asked = table.get("tool", {}).get("autograder", {}).get("shapes", {})
        name = path.resolve().relative_to(folder).as_posix()
        calls = asked.get("calls", {}).get(name, ())
        return Settings(
            (calls,) if isinstance(calls, str) else tuple(calls),
            tuple(asked.get("where", ())),
            asked.get("setup", ""),
            bool(asked.get("missing", False)),
        )
    return Settings()
