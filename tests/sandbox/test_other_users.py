"""The sandbox is as strong as its tier says for people and places with fewer rights."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forms import examples, in_whole_form
from tests.sandbox.conftest import left_over

PROGRAM = Path(__file__).parent / "as_somebody_else.py"
ROOT = Path(__file__).parents[2]


def outcome(who: str, tier: str, course: Path, canary, folder: Path) -> dict:
    """What became of attacks by somebody else; in the small form every other one."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    every = str(examples(2, 1))
    done = subprocess.run(
        [sys.executable, str(PROGRAM), who, tier, str(course), json.dumps(canary.given), every],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Gone:
    warm_pid = -1


@pytest.mark.parametrize(
    ("who", "tier", "expected"),
    [
        ("ordinary_user", "auto", "namespaces"),
        in_whole_form(("in_a_container", "auto", "landlock")),
        in_whole_form(("ordinary_user", "landlock", "landlock")),
        in_whole_form(("root_without_sys_admin", "auto", "namespaces")),
        in_whole_form(("old_landlock", "landlock", "landlock")),
    ],
)
def test_attacks_fare_no_better_elsewhere(who, tier, expected, course, canary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    found = outcome(who, tier, course, canary, folder)
    assert found["tier"] == expected
    for attack, (as_expected, loot, honest_next) in found["results"].items():
        assert as_expected and loot == [] and honest_next, attack
    assert canary.look() == canary.before
    assert left_over(Gone, str(folder)) == []
    assert list(folder.iterdir()) == []


def test_a_place_that_offers_no_wall_is_refused_with_the_way_out(course, canary, tmp_path):
    found = outcome("in_a_container_without_landlock", "auto", course, canary, tmp_path)
    assert found["tier"] is None
    assert "Docker" in found["reason"] and "'limits'" in found["reason"]
