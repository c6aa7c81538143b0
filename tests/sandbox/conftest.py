"""A sandbox of each tier, a canary outside, and a look at what is left of a child."""

import os
import secrets
import socket
import tempfile
import zlib
from pathlib import Path

import pytest
import torch

from autograder.sandbox import Limits, Sandbox, warm

HERE = Path(__file__).parent
RUNNER = HERE / "runner.py"
TIERS = ("namespaces", "landlock")
SMALL = Limits(
    call_seconds=10.0,
    child_seconds=20.0,
    memory=400 << 20,
    disk=16 << 20,
    processes=24,
    reply=16 << 20,
)


@pytest.hookimpl(tryfirst=True)  # before those that are marked slow are left out
def pytest_collection_modifyitems(items) -> None:
    """In the small form each attack is tried in one tier, about half of them in each."""
    for item in items:
        tried = getattr(item, "callspec", None) and item.callspec.params
        if tried and {"attack", "box"} <= tried.keys():
            chosen = TIERS[zlib.crc32(tried["attack"].encode()) % 2]
            if tried["box"] != chosen:
                item.add_marker(pytest.mark.slow)


def ask_honestly(child) -> None:
    """One request whose answer is known; fails the test if it is not exactly right."""
    tensors = {"x": torch.arange(6.0).reshape(2, 3)}
    header, reply = child.request({"op": "double", "number": 21}, tensors)
    assert header == {"answer": 42}
    assert torch.equal(reply["x"], 2 * tensors["x"])


def ask_lightly(child) -> None:
    """The same without tensors."""
    assert child.request({"op": "double", "number": 21}, {}) == ({"answer": 42}, {})


@pytest.fixture(scope="module", autouse=True)
def nothing_is_copied():
    """Here each sandbox has a warm process that was started for it."""
    kept, warm._templates = warm._templates, {}
    yield
    warm._templates = kept


def left_over(box: Sandbox, marker: str) -> list[str]:
    """Processes of the sandbox, besides its warm process."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if f"TMPDIR={marker}".encode() in environment.split(b"\0") and int(pid) != box.warm_pid:
            found.append(f"{pid}: {stat[:80]}")
    return found


class Canary:
    """Files that anyone may write to, but for the wall, and sockets that anyone may call."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.chmod(0o777)
        self.file = folder / "canary.txt"
        self.text = "canary-" + secrets.token_hex(16)
        self.file.write_text(self.text)
        self.file.chmod(0o666)
        self.unix_name = f"canary-{secrets.token_hex(4)}"
        self.sockets = []
        for address in (str(folder / "socket"), "\0" + self.unix_name):
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(address)
            listening.listen()
            self.sockets.append(listening)
        (folder / "socket").chmod(0o777)
        self.before = self.look()

    def look(self):
        files = {p.name: (p.stat().st_mode, p.stat().st_mtime_ns) for p in self.folder.iterdir()}
        return self.file.read_text(), self.folder.stat().st_mode, files

    @property
    def given(self) -> dict:
        """What an attack is told."""
        return {
            "canary": str(self.file),
            "unix_path": str(self.folder / "socket"),
            "unix_name": self.unix_name,
            "repository": str(HERE.parents[1]),
        }


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    """A students' folder: a `transformer_lm` and a stub `autograder`."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("autograder", "transformer_lm"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("STUB = True\n")
    return folder


@pytest.fixture
def canary(tmp_path):
    made = Canary(tmp_path)
    yield made
    for listening in made.sockets:
        listening.close()


@pytest.fixture(scope="session")
def marker(tmp_path_factory):
    """The folder for temporary files; it also marks the sandbox's processes."""
    folder = tmp_path_factory.mktemp("marker")
    folder.chmod(0o711)
    return folder


@pytest.fixture
def light(monkeypatch):
    """Warm processes without torch: they start at once, for tests of how processes come and go."""
    monkeypatch.setattr("autograder.sandbox.box.TORCH", ())
    monkeypatch.setattr("autograder.sandbox.box.RECORD", Path("/none"))


@pytest.fixture(scope="session", params=TIERS)
def box(request, course, marker):
    patch = pytest.MonkeyPatch()
    patch.setattr(tempfile, "tempdir", str(marker))
    with Sandbox(course, tier=request.param, limits=SMALL, runner=RUNNER) as made:
        patch.undo()
        with made.child():
            assert left_over(made, str(marker)), "a running child is not seen"
        yield made
