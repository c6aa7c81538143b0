"""Each room of the engine touches only what its docstring says."""

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import ROOT

ENGINE = ROOT / "autograder"
ROOMS = {
    "sandbox": set(),
    "shapes": {"sandbox.inside"},
    "course": {"sandbox.inside", "shapes"},
    "intake": {"course"},
    "judging": {"course", "sandbox.inside", "reports"},
    "tracing": {"course", "judging", "sandbox.inside"},
    "reports": {"course", "intake"},
    "many": set(),
    "grading": {"course", "intake", "judging", "many", "reports", "sandbox", "shapes", "tracing"},
    "classroom": {"course", "grading", "intake", "many", "reports", "sandbox"},
    "exports": {"classroom", "course", "grading", "intake", "reports", "sandbox"},
}
# Notebooks of the course's own are run by `build`; students' code is run by the sandbox alone.
STARTS = {"subprocess", "multiprocessing", "nbclient"}
# The pool's processes do the grader's own work; the last of them only ends with its process.
MAY_START = {"sandbox", "course/build.py", "many/pool.py", "grading/work.py"}
# What belongs to one course: its models, its layers, its lessons.
OF_ONE_COURSE = r"gpt.?2|transformer_lm|modeling_attention|SelfAttention|self_attention"
OF_ONE_COURSE += r"|multi_head\.|05_homework|attention-course"


def modules(room: str) -> list[Path]:
    return sorted((ENGINE / room).rglob("*.py"))


@cache
def parts(path: Path) -> tuple[ast.AST, ...]:
    """All parts of a file, the whole of it first; several claims are about each."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path: Path) -> set[str]:
    """The modules of the engine that a file imports, without 'autograder.'."""
    found = set()
    for node in parts(path):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            base = node.module or ""
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    prefix = "autograder."
    return {name.removeprefix(prefix) for name in found if name.startswith(prefix)}


def needed(path: Path) -> set[Path]:
    """The engine's files that a file imports, at its top or in the middle of a function.

    Not those that are imported for the names of types alone: they are needed by who reads.
    """
    found: set = set()
    checks = [n for n in parts(path) if isinstance(n, ast.If)]
    checks = [n for n in checks if getattr(n.test, "id", "") == "TYPE_CHECKING"]
    of_types = {part for n in checks for line in n.body for part in ast.walk(line)}
    for node in parts(path):
        if node in of_types:
            continue
        if isinstance(node, ast.ImportFrom):
            above = path.parents[node.level - 1] if node.level else ENGINE.parent
            base = above.joinpath(*(node.module or "").split("."))
            found |= {_file(base / alias.name) or _file(base) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            # What runs inside the sandbox lies there without a package around it.
            found |= {
                _file(top.joinpath(*n)) for n in names for top in (ENGINE.parent, path.parent)
            }
    return found - {None, path, ENGINE / "__init__.py"}


def _file(module: Path) -> Path | None:
    """The file of a module of the engine, or of a package."""
    files = (module.with_name(f"{module.name}.py"), module / "__init__.py")
    return next((f for f in files if f.is_file() and ENGINE in f.parents), None)


def others(path: Path) -> set[str]:
    """Everything else that a file imports, by its first name."""
    found = set()
    for node in parts(path):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_that_it_may(room):
    for path in modules(room):
        for name in imported(path):
            if name.split(".")[0] not in ROOMS or name.split(".")[0] == room:
                continue
            allowed = ROOMS[room]
            assert any(name == a or name.startswith(f"{a}.") for a in allowed), f"{path}: {name}"


def test_no_file_imports_itself_by_way_of_others():
    files = {path: needed(path) for path in ENGINE.rglob("*.py")}
    assert (
        ENGINE / "course" / "build.py" in files[ENGINE / "course" / "released.py"]
    )  # in a function
    assert ENGINE / "sandbox" / "warm.py" in files[ENGINE / "sandbox" / "box.py"]  # from .warm
    try:
        TopologicalSorter(files).prepare()
    except CycleError as error:
        circle = [path.relative_to(ENGINE).as_posix() for path in error.args[1]]
        pytest.fail(" <- ".join(circle))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_may_touch(room):
    text = ast.get_docstring(ast.parse((ENGINE / room / "__init__.py").read_text()))
    assert text and len(text.splitlines()) >= 3


@pytest.mark.parametrize("room", [*ROOMS, "sandbox/inside"])
def test_a_room_can_be_seen_at_a_glance(room):
    assert len(list((ENGINE / room).glob("*.py"))) <= 15


def test_only_the_sandbox_starts_processes():
    for path in ENGINE.rglob("*.py"):
        inside = path.relative_to(ENGINE).as_posix()
        if not any(inside == may or inside.startswith(f"{may}/") for may in MAY_START):
            assert not others(path) & STARTS, inside
            assert not re.search(r"os\.(fork|system|popen|exec\w*|spawn\w*)\(", path.read_text())


def test_what_runs_beside_a_students_code_needs_the_standard_library_and_torch_only():
    own = {path.stem for path in (ENGINE / "sandbox" / "inside").glob("*.py")}
    isolation = {"landlock", "pyseccomp", "safetensors"}  # of the wall itself, before it stands
    for path in (ENGINE / "sandbox" / "inside").rglob("*.py"):
        assert others(path) <= sys.stdlib_module_names | own | isolation | {"torch"}, path


def test_the_engine_knows_no_lesson_no_model_and_no_layer():
    for path in ENGINE.rglob("*.py"):
        if "shapes" in path.parts:
            continue  # its examples are of public notations
        nodes = parts(path)
        docs = {id(n.body[0].value) for n in nodes if _documented(n)}
        texts = {
            n.value
            for n in nodes
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
        }
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        for said in texts | names:
            assert not re.search(OF_ONE_COURSE, said), f"{path}: {said[:80]}"


def _documented(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = node.body[0] if isinstance(node, kinds) and node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
