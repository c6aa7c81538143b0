"""The same for a grader that is an ordinary user, and in each tier of isolation."""

import os
import subprocess
import sys

import pytest

from tests.attacks.entries import ROOT

CHOSEN = (
    "zeros",
    "forge_outcomes",
    "os_exit",
    "daemon",
    "escape",
    "network",
    "read_secrets",
    "write_everywhere",
    "linked_notebook",
    "zip_slip",
)
PROGRAM = """import sys
from tests.sandbox import as_somebody_else
getattr(as_somebody_else, sys.argv[1])()
from tests.attacks.table import main
sys.exit(main(["--no-stock", *sys.argv[2:]]))
"""


def table(who: str, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, who, *args, *CHOSEN],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "tier"),
    [("ordinary_user", "namespaces"), ("ordinary_user", "landlock"), ("as_you_are", "landlock")],
)
def test_attacks_fare_no_better_elsewhere(who, tier):
    done = table(who, "--tier", tier)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"{len(CHOSEN)} homeworks, 0 not as expected; held by {tier}" in done.stdout
