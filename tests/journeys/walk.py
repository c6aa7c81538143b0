"""What journeys are made of: the commands of a text, a place like a fresh clone, a person in it.

A journey takes its commands from README.md, the students' README or docs/ with `commands_of`, runs
them in a `Place`, and asserts what the person sees at the end. Packages are not installed anew:
`.venv` in the place is the environment that the tests run in, with the place's own code in front.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.conftest import ROOT

PATIENCE = 600  # seconds, for a command on a busy machine
SHELLS = ("", "sh", "bash", "console")
BEFORE_COMMENT = re.compile(r"""([^'"#]|'[^']*'|"[^"]*"|(?<=\S)#|['"])*""")
INSTALLS = re.compile(r"make setup|python3 install\.py|conda |pip install")


# --- commands ------------------------------------------------------------------------------------
def commands_of(text: str, section: str = "") -> list[str]:
    """The commands in the fenced blocks of a text, in order, without their comments.

    section: the heading that they stand under, up to the next one; the whole text by default.
    """
    text = text.replace("\\\n", " ")  # commands that go on in the next line
    commands, inside, language, found = [], False, "", not section
    for line in text.splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if fence:
            inside, language = not inside, fence[1] if not inside else ""
        elif not inside and (heading := re.match(r"#+ (.+)", line)):
            found = not section or heading[1].strip() == section
        elif inside and found and language in SHELLS:
            command = BEFORE_COMMENT.match(line.strip())[0].strip()
            if command:
                commands.append(command)
    if not commands:
        raise LookupError(f"no commands were found{f' under {section!r}' if section else ''}")
    return commands


def after_setup(commands: list[str]) -> list[str]:
    """The commands without those that install: a journey's place has its environment already."""
    return [command for command in commands if not INSTALLS.match(command)]


# --- places --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Said:
    """What a person sees of commands: all that was printed, and the exit status of the last."""

    text: str
    status: int


@dataclass(frozen=True)
class Place:
    """A folder of somebody's, in which the course's commands work."""

    folder: Path
    user: dict[str, str] = field(default_factory=dict)  # more of the environment: HOME, USER, ...

    @property
    def home(self) -> Path:
        """For settings and histories, beside the folder."""
        return self.folder.parent / f"{self.folder.name}-home"

    @property
    def environment(self) -> dict[str, str]:
        """That of a person who has followed the README: nothing says where the course is.

        Python keeps what it compiles there, as it does for most people.
        """
        ours = ("AUTOGRADER_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return {
            **kept,
            "PYTHONPATH": str(self.folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "200",
            **{
                f"{name}_DIR": str(self.home / name.lower())
                for name in ("JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME")
            },
            "IPYTHONDIR": str(self.home),
            **self.user,
        }

    def run(self, *commands: str, wrapper: tuple[str, ...] = ()) -> Said:
        """Runs commands one after the other in one shell, up to the first that fails.

        wrapper: a program and its arguments that the shell is started by.
        """
        script = "set -eo pipefail\n" + "\n".join(commands)
        done = subprocess.run(
            [*wrapper, "bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        return Said(done.stdout, done.returncode)

    def do(self, *commands: str) -> str:
        """As `run`; an AssertionError with all that was said where one of them fails."""
        said = self.run(*commands)
        assert said.status == 0, f"{commands} ended with {said.status}:\n{said.text}"
        return said.text

    def notebook(self, lesson: str) -> Path:
        """Where the README has the student open a lesson."""
        return self.folder / "notebooks" / lesson / f"{lesson}.ipynb"

    def run_all(self, path: Path, allow_errors: bool = False) -> NotebookNode:
        """*Run all cells*, and save; the notebook with what it shows."""
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=PATIENCE,
            allow_errors=allow_errors,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
        )
        client.execute(env=self.environment)
        nbformat.write(notebook, path)
        return notebook

    @contextlib.contextmanager
    def serving(self, command: str) -> Iterator[Server]:
        """Runs a `jupyter lab` command of a text while the context lasts, without a browser."""
        with contextlib.closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        token = secrets.token_hex(8)
        options = ["--no-browser", f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"]
        if os.geteuid() == 0:
            options.append("--allow-root")
        log = self.folder.parent / f"server-{port}.log"
        with open(log, "w") as out:
            process = subprocess.Popen(
                [*command.split(), *options],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        server = Server(f"http://127.0.0.1:{port}", token, log)
        try:
            server.wait(process)
            yield server
        finally:
            process.terminate()
            process.wait(60)


@dataclass(frozen=True)
class Server:
    """A Jupyter server of a place, as a browser reaches it."""

    url: str
    token: str
    log: Path

    def get(self, path: str) -> str:
        """A page; an OSError where there is none."""
        request = urllib.request.Request(
            self.url + path, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            return page.read().decode()

    def wait(self, process: subprocess.Popen) -> None:
        """Returns when the server answers."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                self.get("/api/status")
                return
            time.sleep(0.2)
        raise AssertionError(f"the server did not start:\n{self.log.read_text()}")


def link_environment(folder: Path) -> Place:
    """Makes a folder with the course's code a place; `.venv` in it is the tests' environment."""
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    place = Place(folder)
    place.home.mkdir()
    return place


def without_environment(folder: Path) -> Place:
    """Makes a folder a place in which nothing is installed yet; the README's set-up comes first."""
    place = Place(folder, {"PYTHONPATH": ""})
    place.home.mkdir()
    return place


def clone(folder: Path, settle: Callable[[Path], Place] = link_environment) -> Place:
    """A fresh clone of the repository as it is now, with what is not committed yet."""
    folder.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    for name in (
        "init -q",
        "-c core.compression=0 add -A",
        "-c user.name=a -c user.email=a@b commit -qm start",
    ):
        subprocess.run(["git", *name.split()], cwd=folder, check=True, capture_output=True)
    return settle(folder)


def unzip(archive: Path, folder: Path, settle: Callable[[Path], Place] = link_environment) -> Place:
    """The hand-out, unzipped into an empty folder."""
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    (inside,) = folder.iterdir()
    return settle(inside)


# --- people --------------------------------------------------------------------------------------
def solve(path: Path, answers: dict[str, str], more: tuple[str, ...] = ()) -> None:
    """Writes answers (by cell id) into a notebook in place, and adds cells at its end."""
    notebook = nbformat.read(path, as_version=4)
    missing = set(answers) - {cell.id for cell in notebook.cells}
    assert not missing, f"{path.name} has no cells {missing}"
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
    nbformat.write(notebook, path)


def shown(notebook: NotebookNode) -> str:
    """All that a notebook shows under its cells, as text."""
    lines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
            lines += output.get("traceback", [])
    return "\n".join(lines)
