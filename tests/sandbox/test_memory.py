"""A child's memory is capped, and counted beyond what torch itself takes."""

import os
import subprocess

import pytest

from autograder.sandbox import ChildFailed, Limits, Sandbox, memory
from tests.forms import first_of
from tests.sandbox.conftest import RUNNER, ask_lightly


def run(child, source: str) -> None:
    child.request({"op": "run", "source": source, "given": {}}, {})


@pytest.mark.parametrize("tier", first_of("namespaces", "landlock", "limits"))
def test_a_child_may_use_its_limit_beyond_what_was_imported_and_no_more(
    light, course, tmp_path, monkeypatch, tier
):
    monkeypatch.setattr(memory, "_places", lambda controller: [])  # no control group
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER.read_text() + "\n\nLARGE = b'x' * (150 << 20)\n")
    limits = Limits(memory=60 << 20, address_space=100 << 20)
    take = "import time\ntaken = b'x' * ({} << 20)\ntime.sleep(0.3)"
    refused = "try:\n    b'x' * (120 << 20)\n    raise ValueError\nexcept MemoryError: pass"
    with Sandbox(course, tier=tier, runner=runner, limits=limits, allow_weak=True) as box:
        with box.child() as child:
            run(child, take.format(30))
        with box.child() as child, pytest.raises(ChildFailed) as failed:
            run(child, take.format(80))
        assert failed.value.kind == "memory"
        assert failed.value.reason == "Your code used more than 60 MiB of memory."
        with box.child() as child:
            run(child, refused)


def test_no_control_group_outlives_its_child_or_a_killed_grader(light, course, monkeypatch):
    dead = subprocess.Popen(["true"])
    dead.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: dead.pid)
        stale = memory.ControlGroup(1 << 30, 10)
    with Sandbox(course, runner=RUNNER) as box, box.child() as child:
        ask_lightly(child)
    assert [folder for folder in stale.folders if os.path.exists(folder)] == []
    for parent in memory._places("memory") + memory._places("pids"):
        assert list(parent.glob(f"{memory.PREFIX}-{os.getpid()}-*")) == []
