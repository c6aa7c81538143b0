"""The slow forms: a large class killed twice, PostgreSQL, Dask, two graders, a loaded machine."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.conftest import ROOT
from tests.journeys.classroom import HOMEWORK, SCRIPTS, Classroom, environ, right
from tests.test_class import COMMENTS, MARKS, SUBMITTED, fill, grade, graded, tables

pytestmark = pytest.mark.slow
LARGE = int(os.environ.get("LARGE_CLASS", "1000"))
KINDS = (
    right,
    lambda: {c: t.replace("dim=-1", "dim=1") for c, t in right().items()},
    dict,
    lambda: {c: t.replace("-inf", "0.0") for c, t in right().items() if c == "self_attention"},
)


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    """The class of `fill`, marked in one go."""
    room = Classroom(tmp_path_factory.mktemp("alone") / "course")
    fill(room)
    graded(room)
    return room


def start(room: Classroom, *args: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--json", *args],
        cwd=room.folder,
        env=environ(room.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_thousand_submissions_killed_twice_have_the_marks_of_a_run_left_alone(tmp_path):
    killed, whole = (Classroom(tmp_path / name / "course") for name in ("killed", "whole"))
    for room in (killed, whole):
        for number in range(LARGE):
            room.hand_in(f"student-{number:04}", KINDS[number % len(KINDS)]())
    for share in (0.2, 0.6):
        running = start(killed)
        for line in running.stdout:
            if json.loads(line)["student"] >= f"student-{int(share * LARGE):04}":
                break
        running.send_signal(signal.SIGKILL)
        running.communicate()
    graded(killed)
    graded(whole)
    assert tables(killed) == tables(whole)
    assert len(killed.scores()) == LARGE


def test_two_graders_at_once_lose_no_mark(tmp_path, left_alone):
    room = Classroom(tmp_path / "course")
    fill(room)
    both = [start(room, "--jobs=1") for _ in range(2)]
    said = [each.communicate(timeout=900)[1] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert tables(room) == tables(left_alone)


def test_a_loaded_machine_gives_the_marks_of_a_quiet_one(tmp_path, left_alone):
    room = Classroom(tmp_path / "course")
    fill(room)
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(8 * len(os.sched_getaffinity(0)))
    ]
    try:
        graded(room)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert tables(room) == tables(left_alone)


def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_half_written(tmp_path, left_alone):
    room = Classroom(tmp_path / "course")
    fill(room)
    graded(room, "--student=cy")
    before = tables(room)
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from autograder.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, "grade", "submitted"],
        cwd=room.folder,
        env=environ(room.folder),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "run this again" in done.stderr
    assert tables(room) == before
    graded(room)
    assert tables(room) == tables(left_alone)


# --- PostgreSQL ----------------------------------------------------------------------------------
def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Server:
    """A PostgreSQL server of this test's own, under a user who may run one."""

    def __init__(self, folder: Path):
        self.programs, self.folder = _programs(), folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        self._run("initdb", "-D", self.folder, "-A", "trust", "-U", "grader", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://grader@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.folder, "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *args) -> None:
        command = [str(self.programs / program), *map(str, args)]
        if os.getuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def tables(self) -> dict[str, list]:
        """As `test_class.tables`, in the types that SQLite has."""
        engine = create_engine(self.url)
        with engine.connect() as db:
            found = {
                q: [_plain(r) for r in db.execute(text(q))] for q in (MARKS, COMMENTS, SUBMITTED)
            }
        engine.dispose()
        return found


def _plain(row) -> tuple:
    return tuple(
        int(v) if isinstance(v, bool) else f"{v:%Y-%m-%d %H:%M:%S.%f}" if hasattr(v, "hour") else v
        for v in row
    )


@pytest.fixture
def server():
    if _programs() is None:
        pytest.skip("no PostgreSQL server is installed: `apt-get install postgresql`")
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        running = Server(Path(folder))
        yield running
        running.stop()


def test_postgresql_holds_the_same_marks_also_where_it_stops_on_the_way(
    tmp_path, server, left_alone
):
    room = Classroom(tmp_path / "course", f'c.CourseDirectory.db_url = "{server.url}"')
    fill(room)
    running = start(room, "--jobs=1")
    assert running.stdout.readline()
    server.stop()
    time.sleep(3)
    server.start()
    _, said = running.communicate(timeout=900)
    assert running.returncode == 0, said
    assert "Traceback" not in said
    assert server.tables() == tables(left_alone)
    again = grade(room)
    assert "6 of them were graded before and are unchanged" in again.stderr
    assert not (room.folder / "gradebook.db").exists()


# --- Dask ----------------------------------------------------------------------------------------
@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and two workers: its address, and the workers' processes."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("AUTOGRADER_COURSE", None)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    dask = str(SCRIPTS / "dask")
    command = [dask, "scheduler", "--host=127.0.0.1", f"--port={port}", "--dashboard-address=:0"]
    started = [subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **quiet)]
    for number in range(2):
        place = tmp_path / f"worker-{number}"
        place.mkdir()
        command = [dask, "worker", address, "--nthreads=1", "--no-dashboard", "--no-nanny"]
        started.append(subprocess.Popen(command, cwd=place, start_new_session=True, **quiet))
    _wait_for_workers(address)
    yield address, started[1:]
    for each in started:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def _wait_for_workers(address: str) -> None:
    from distributed import Client

    with Client(address, timeout="120s", set_as_default=False) as client:
        client.wait_for_workers(2, timeout=120)


def test_the_workers_of_a_scheduler_give_the_same_marks_also_when_one_is_killed(
    tmp_path, scheduler, left_alone
):
    address, workers = scheduler
    room = Classroom(tmp_path / "course")
    fill(room)
    running = start(room, f"--scheduler={address}")
    assert running.stdout.readline()
    os.killpg(workers[0].pid, signal.SIGKILL)
    _, said = running.communicate(timeout=900)
    assert running.returncode == 0, said
    assert tables(room) == tables(left_alone)


def test_a_scheduler_that_is_not_there_is_told_in_a_sentence(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    room = Classroom(tmp_path / "course")
    room.hand_in("ada", right())
    done = grade(room, "--scheduler=tcp://127.0.0.1:9")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert HOMEWORK not in done.stdout
