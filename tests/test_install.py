"""`install.py`: PyTorch's own index is asked where it answers, and for PyTorch alone."""

import http.server
import importlib.util
import threading

import pytest

from tests.conftest import ROOT


@pytest.fixture
def install(monkeypatch):
    """The script as a module that runs no command but writes down which it would have run."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.commands = []

    def run(command, aloud=True):
        module.commands.append(command)
        return True

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module.platform, "system", lambda: "Linux")
    return module


@pytest.fixture
def index():
    """A package index on this machine that has a page for torch."""

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/whl/cpu/torch/" else 404)
            self.end_headers()

        def log_message(self, *args):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/whl/cpu"
    server.shutdown()
    server.server_close()


NOWHERE = "http://127.0.0.1:9/whl/cpu"  # where nothing answers


def call(install, monkeypatch, *options: str) -> int:
    monkeypatch.setattr("sys.argv", ["install.py", *options])
    return install.main()


def test_an_index_that_answers_is_asked_for_torch_alone(install, index, monkeypatch, capsys):
    assert call(install, monkeypatch, "--cpu-index", index) == 0
    _, torch, rest = install.commands
    assert torch[-4:] == ["--no-deps", "--index-url", index, "torch"]
    assert not [word for word in rest if "index" in word]
    for command in (torch, rest):
        assert command[command.index("-c") + 1] == str(ROOT / "constraints.txt")
    assert "cannot be reached" not in capsys.readouterr().out


@pytest.mark.parametrize("there", ["nobody", "another page"])
def test_an_index_that_does_not_answer_costs_one_sentence(
    install, index, monkeypatch, capsys, there
):
    url = NOWHERE if there == "nobody" else index.replace("/cpu", "/none")
    assert call(install, monkeypatch, "--cpu-index", url) == 0
    assert not [c for c in install.commands if url in c]
    said = capsys.readouterr()
    assert len([line for line in said.out.splitlines() if url in line]) == 1
    assert "gigabytes" in said.out and said.err == ""


def test_an_index_that_breaks_off_is_told_like_one_that_does_not_answer(
    install, index, monkeypatch, capsys
):
    monkeypatch.setattr(install, "run", lambda command, aloud=True: index not in command)
    assert call(install, monkeypatch, "--cpu-index", index) == 0
    assert "cannot be reached" in capsys.readouterr().out


def test_elsewhere_than_on_linux_no_index_is_asked(install, index, monkeypatch):
    monkeypatch.setattr(install.platform, "system", lambda: "Darwin")
    assert call(install, monkeypatch, "--cpu-index", index) == 0
    assert not [c for c in install.commands if index in c]


def test_an_old_python_is_told_which_is_needed(install, monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    assert call(install, monkeypatch) == 1
    assert install.commands == []
    assert "3.11 or newer is needed" in capsys.readouterr().err


def test_what_fails_says_so_and_shows_no_traceback(install, monkeypatch, capsys):
    monkeypatch.setattr(install, "run", lambda command, aloud=True: False)
    assert call(install, monkeypatch, "--cpu-index", NOWHERE) == 1
    assert "python3-venv" in capsys.readouterr().err
    monkeypatch.setattr(install, "run", lambda command, aloud=True: "venv" in command)
    assert call(install, monkeypatch, "--cpu-index", NOWHERE) == 1
    assert "run this again" in capsys.readouterr().err


def test_what_a_command_says_is_shown_only_where_it_fails(capfd):
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    warns = "for i in $(seq 99); do echo WARNING: Retrying $i >&2; done"
    assert module.run(["bash", "-c", warns])
    assert capfd.readouterr() == ("", "")
    assert not module.run(["bash", "-c", f"{warns}; echo ERROR: no network; exit 1"])
    shown = capfd.readouterr().err.splitlines()
    assert shown[-1] == "ERROR: no network" and len(shown) <= module.LAST_LINES
