"""Commands as they are typed, from a process that has imported what they need already.

Importing torch and nbgrader takes a command seconds; what it says, writes and ends with is what
the tests are about. Each command is a child of its own, with the folder, the environment and the
user that it is given. A sandbox that it opens is a copy of one that has imported torch already.
Tests of how commands start, end early or are killed start real ones.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

# As another user, who may not be able to read the folder that Python lies in, all has to be
# imported before.
WARM = """import gc, json, os, pwd, sys
from autograder.one_thread import light, one_thread
one_thread()
light()
import autograder.many.pool
from autograder.sandbox import prepare, probe
prepare()  # what children need is imported beside what commands need
import autograder.grading.nbgrader_plugin, autograder.grading.work, autograder.classroom.marks
import autograder.cli, autograder.classroom.again, autograder.classroom.run
import nbgrader.api, nbgrader.apps.nbgraderapp as apps
from alembic.script import ScriptDirectory
from nbgrader.dbutil import ALEMBIC_DIR
probe()
# Processes of a pool are copies of their command, in place of a server that imports all anew.
autograder.many.pool._kind = lambda: "fork"
# For each new gradebook nbgrader starts a process of alembic's that says this.
head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
nbgrader.api.get_alembic_version = lambda: head
gc.collect()
gc.freeze()  # what is here is neither looked through nor copied in the commands
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in enumerate((os.devnull, job["out"], job["err"])):
            os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
        # Nothing that was read ahead of the parent's own orders is this command's.
        sys.stdin = os.fdopen(0, closefd=False)
        os.environ.clear()
        os.environ.update(job["environment"])
        os.chdir(job["place"])
        if job["user"]:
            facts = pwd.getpwnam(job["user"])
            os.setgroups([])
            os.setgid(facts.pw_gid)
            os.setuid(facts.pw_uid)
        sys.argv = job["command"]
        mains = {"nbgrader": apps.main, "autograder": autograder.cli.main}
        sys.exit(mains[job["command"][0]]())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _warm() -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", WARM],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.kill)
    return process


def typed(
    *command: str,
    place: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    user: str = "",
) -> subprocess.CompletedProcess:
    """Runs a command of `autograder` or `nbgrader` to its end: its status, and what it printed."""
    process = _warm()
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        job = {
            "command": list(command),
            "place": str(place),
            "environment": dict(os.environ if environment is None else environment),
            "user": user,
            "out": out.name,
            "err": err.name,
        }
        print(json.dumps(job), file=process.stdin, flush=True)
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(list(command), status, out.read(), err.read())
