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


@cache
def _warm() -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.loaded"],
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
