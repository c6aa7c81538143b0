"""A child answers by copies of itself, and knows when one of them has left something behind."""

import time

import pytest

from autograder.sandbox import ChildFailed, Failure, Shared
from tests.sandbox.conftest import ask_honestly, ask_lightly
from tests.sandbox.test_sandbox import facts, run


def test_a_branch_finds_nothing_of_the_one_before(box):
    with box.child() as child:
        for _ in range(3):
            with child.branch():
                assert facts(child, "hasattr(__import__('builtins'), 'kept')") is False
                assert facts(child, "str(__import__('torch').get_default_dtype())").endswith("32")
                run(
                    child,
                    "import builtins, os, torch\nbuiltins.kept = 3\nos.environ['KEPT'] = '1'\n"
                    "torch.set_default_dtype(torch.float64)",
                )
                assert facts(child, "__import__('builtins').kept") == 3
            assert child.clean


def test_requests_in_a_branch_reach_one_process(box):
    with box.child() as child, child.branch():
        pid = facts(child, "__import__('os').getpid()")
        ask_honestly(child)
        assert facts(child, "__import__('os').getpid()") == pid


def test_a_branch_that_computes_in_processes_of_its_own_is_clean(box):
    with box.child() as child:
        with child.branch():
            run(child, "import os\npid = os.fork()\npid or os._exit(0)\nos.waitpid(pid, 0)")
        assert child.clean


LEFT = {
    "a file": "open('left', 'w').close()",
    "a folder": "import os; os.mkdir('left')",
    "a hidden file": "open('.left', 'w').close()",
    "a process": "import os, time\nif not os.fork():\n    time.sleep(60)",
    "a process of nobody": """
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(60)
    os._exit(0)
os.wait()
""",
    "another's answer": """
import sys, time
import sandbox_branch, sandbox_wire
def join():
    frame = sys._getframe(1).f_locals
    reply = {"id": frame["envelope"]["id"], "header": {"clean": True}}
    for piece in sandbox_wire.pack(reply, {}):
        frame["connection"].sendall(piece)
    time.sleep(60)
sandbox_branch.join = join
""",
}
ROOT_ONLY = {
    "a file above": "open('/tmp/left', 'w').close()",
    "a shared file": "open('/dev/shm/left', 'w').close()",
    "another mode": "import os; os.chmod('.', 0o500)",
}


@pytest.mark.parametrize("what", LEFT)
def test_what_a_branch_leaves_behind_is_seen(box, what):
    with box.child() as child:
        with child.branch():
            run(child, LEFT[what])
        assert not child.clean


@pytest.mark.parametrize("box", ["namespaces"], indirect=True)
@pytest.mark.parametrize("what", ROOT_ONLY)
def test_what_a_branch_leaves_in_a_root_of_its_own_is_seen(box, what):
    with box.child() as child:
        with child.branch():
            run(child, ROOT_ONLY[what])
        assert not child.clean


@pytest.mark.parametrize(
    "source",
    [
        "import os; os._exit(0)",
        "import os; os._exit(77)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.kill(os.getppid(), 9)",
        "import ctypes; ctypes.string_at(0)",
    ],
)
def test_a_branch_that_ends_the_process_ends_the_child(box, source):
    with box.child() as child:
        with pytest.raises(ChildFailed) as failed, child.branch():
            run(child, source)
        assert failed.value.kind in (Failure.DIED, Failure.BAD_REPLY)
        assert not child.clean
    with box.child() as child, child.branch():
        ask_lightly(child)


def test_how_a_branch_ended_is_told_as_of_a_child(box):
    with box.child() as child, pytest.raises(ChildFailed, match=r"\(exit 3\)"), child.branch():
        run(child, "import os; os._exit(3)")


def test_the_memory_of_a_child_is_closed_to_its_branches(box):
    source = """
import os
from given import found
for name in ("mem", "environ"):
    try:
        open(f"/proc/{os.getppid()}/{name}", "rb").read(1)
        found.append(name)
    except OSError:
        pass
"""
    with box.child() as child, child.branch():
        assert run(child, source)["found"] == []


# --- one child for several questions -------------------------------------------------------------
def test_what_leaves_something_behind_gets_no_second_chance_in_the_shared_child(box):
    with Shared(box) as shared:
        with shared.place("one").child() as child:
            first = facts(child, "__import__('os').getppid()"), child
        with shared.place("two").child() as child:
            assert child is first[1]
            run(child, "open('left', 'w').close()")
        assert shared.place("two") is None
        with shared.place("one").child() as child:
            assert child is not first[1]
            assert facts(child, "__import__('os').listdir()") == []


def test_a_shared_child_that_ends_is_followed_by_another(box):
    with Shared(box) as shared:
        with pytest.raises(ChildFailed), shared.place("one").child() as child:
            run(child, "import os; os._exit(1)")
        assert shared.place("one") is None
        with shared.place("two").child() as child:
            ask_lightly(child)


def test_each_branch_has_the_time_of_a_child(light, course):
    from autograder.sandbox import Limits, Sandbox
    from tests.sandbox.conftest import RUNNER

    limits = Limits(call_seconds=5, child_seconds=3)
    with Sandbox(course, limits=limits, runner=RUNNER) as box, box.child() as child:
        for _ in range(3):
            with child.branch():
                run(child, "import time; time.sleep(1.2)")
        assert child.clean
        before = time.monotonic()
        with pytest.raises(ChildFailed), child.branch():
            run(child, "import time; time.sleep(60)", seconds=1)
        assert time.monotonic() - before < 60
