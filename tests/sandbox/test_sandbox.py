"""What an honest program may count on, and what the caller may."""

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch

from autograder.sandbox import ChildFailed, Limits, Sandbox, Tier, probe
from autograder.sandbox import box as box_module
from autograder.sandbox.family import family, processor_seconds, waiting_seconds
from tests.forms import first_of
from tests.sandbox.conftest import RUNNER, SMALL, ask_honestly, ask_lightly, left_over


def facts(child, source: str):
    """The value of a Python expression in the child."""
    return child.request({"op": "facts", "source": source}, {})[0]["facts"]


def run(child, source: str, **options):
    return child.request({"op": "run", "source": source, "given": {}}, {}, **options)[0]


# --- an honest program ---------------------------------------------------------------------------
def test_several_requests_in_turn_reach_the_same_child(box):
    with box.child() as child:
        run(child, "import builtins\nbuiltins.kept = 3")
        ask_honestly(child)
        assert facts(child, "kept") == 3


def test_each_child_starts_fresh(box):
    seen = []
    for _ in range(2):
        with box.child() as child:
            assert facts(child, "hasattr(__builtins__, 'kept')") is False
            seen.append(facts(child, "__import__('torch').rand(1).item()"))
            run(
                child,
                "import builtins, torch\nbuiltins.kept = 3\ntorch.set_default_dtype(torch.half)",
            )
    assert seen[0] != seen[1]


def test_the_course_folder_comes_first_on_the_path(box):
    with box.child() as child:
        run(child, "import autograder, transformer_lm\nassert autograder.STUB")
        assert facts(child, "sys.path[0]") == facts(child, "__import__('os').environ['COURSE']")


def test_a_child_computes_draws_and_differentiates(box):
    source = """
        import sqlite3, multiprocessing, matplotlib.pyplot as plt, numpy as np, torch
        x = torch.ones(3, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
        assert torch.get_num_threads() == 1
        assert plt.get_backend().lower() == "agg"
        plt.plot(np.arange(3)); plt.title("attention"); plt.savefig("figure.png")
        assert open("figure.png", "rb").read(4) == b"\\x89PNG"
    """
    with box.child() as child:
        run(child, "if True:" + source)


def test_a_child_has_nobody_to_ask(box):
    source = (
        "import sys\nassert sys.stdin.read() == ''\ntry:\n    input()\nexcept EOFError:\n    pass"
    )
    with box.child() as child:
        run(child, source)


def test_a_childs_environment_holds_nothing_of_ours(box, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "hush")
    with box.child() as child:
        names = facts(child, "sorted(__import__('os').environ)")
    assert "GRADER_TOKEN" not in names
    assert set(names) >= {"HOME", "MPLBACKEND", "PATH"}


def test_what_is_printed_is_kept_in_order_and_cut(box):
    with box.child() as child:
        run(child, "import sys\nprint('first')\nprint('second', file=sys.stderr)\nprint('ü' * 3)")
        assert child.printed == "first\nsecond\nüüü\n"
        run(child, "print('x' * 1_000_000)")
    assert child.printed.startswith("first\nsecond\n")
    assert len(child.printed.encode()) <= box.limits.printed


def test_tensors_of_every_common_kind_cross_and_come_back(box):
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]
    sent = {str(kind): torch.arange(5).to(kind) for kind in kinds}
    sent |= {
        "empty": torch.zeros(0, 3),
        "number": torch.tensor(2.0),
        "view": torch.ones(4, 4).T[1:],
    }
    with box.child() as child:
        _, back = child.request({"op": "double", "number": 1}, sent)
    assert back.keys() == sent.keys()
    for name, tensor in sent.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], 2 * tensor)


def test_two_children_at_once_do_not_meet(box):
    with box.child() as one, box.child() as two:
        ask_honestly(one)
        with pytest.raises(ChildFailed):
            run(two, "import os\nos._exit(1)")
        ask_honestly(one)


# --- failures ------------------------------------------------------------------------------------
def test_a_failed_child_says_the_same_to_every_later_request(box):
    with box.child() as child:
        with pytest.raises(ChildFailed) as first:
            run(child, "import os\nos._exit(3)")
        with pytest.raises(ChildFailed) as second:
            ask_honestly(child)
    assert (first.value.kind, first.value.reason) == (second.value.kind, second.value.reason)
    assert first.value.reason == "Your code ended the Python process it ran in (exit 3)."


def test_a_call_may_be_given_less_time(box):
    with box.child() as child, pytest.raises(ChildFailed) as failed:
        run(child, "import time\ntime.sleep(60)", seconds=0.3)
    assert failed.value.kind == "timed out"
    assert failed.value.reason == "Your code did not return within 0.3 s."


def test_a_crash_is_named(box):
    with box.child() as child, pytest.raises(ChildFailed) as failed:
        run(child, "import ctypes\nctypes.string_at(0)")
    assert failed.value.reason == "Your code crashed the interpreter (segmentation fault)."


@pytest.mark.parametrize(
    ("limits", "source", "reason"),
    [
        (
            Limits(cpu_seconds=1, call_seconds=300, child_seconds=300),
            "while True: pass",
            "Your code used more than 1 s of processor time.",
        ),
        (
            Limits(call_seconds=300, child_seconds=1),
            "import time\ntime.sleep(900)",
            "Your code did not finish within 1 s in all.",
        ),
        (
            Limits(call_seconds=300, child_seconds=300, drained=4 << 20),
            "while True: print('x' * 100_000)",
            "Your code printed more than 4 MiB.",
        ),
    ],
    ids=["processor", "time", "output"],
)
def test_each_limit_has_its_sentence(light, course, limits, source, reason):
    with Sandbox(course, limits=limits, runner=RUNNER) as box:
        with box.child() as child, pytest.raises(ChildFailed) as failed:
            run(child, source)
        assert failed.value.reason == reason


def test_time_that_the_machine_did_not_give_does_not_count(light, course, monkeypatch):
    slow = "import time\ntime.sleep(0.6)"
    with Sandbox(course, runner=RUNNER) as box:
        monkeypatch.setattr("autograder.sandbox.child.waiting_seconds", lambda pids: 0.0)
        with box.child() as child, pytest.raises(ChildFailed, match="within 0.3 s"):
            run(child, slow, seconds=0.3)
        # All that it waited counts, but for what it was given already.
        monkeypatch.setattr("autograder.sandbox.child.PATIENCE", 1000)
        monkeypatch.setattr("autograder.sandbox.child.waiting_seconds", lambda pids: 100.0)
        with box.child() as child:
            run(child, slow, seconds=0.3)
            run(child, slow, seconds=300)
    short = Limits(child_seconds=0.3)
    with Sandbox(course, runner=RUNNER, limits=short) as box, box.child() as child:
        run(child, slow, seconds=300)


def test_a_busy_machine_is_no_excuse_for_ever(light, course, monkeypatch):
    monkeypatch.setattr("autograder.sandbox.child.waiting_seconds", lambda pids: 1e9)
    with Sandbox(course, runner=RUNNER) as box:
        with box.child() as child, pytest.raises(ChildFailed, match="within 0.3 s"):
            run(child, "import time\ntime.sleep(600)", seconds=0.3)
        with box.child() as child, pytest.raises(ChildFailed, match="within 0.3 s"):
            monkeypatch.setattr("autograder.sandbox.child.PATIENCE", 1e9)
            monkeypatch.setattr("autograder.sandbox.child.processor_seconds", lambda pids: 99)
            run(child, "import time\ntime.sleep(600)", seconds=0.3)


def test_two_that_share_a_processor_wait_for_each_other():
    program = (
        "import os, sys\nos.sched_setaffinity(0, [int(sys.argv[1])])\nsys.stdin.read(1)\n"
        "while True: pass"
    )
    cpu = str(min(os.sched_getaffinity(0)))
    both = [
        subprocess.Popen([sys.executable, "-c", program, cpu], stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        for process in both:
            process.stdin.write(b"!")
            process.stdin.flush()
        pids = [process.pid for process in both]
        deadline = time.monotonic() + 60
        while not all(waiting_seconds([p]) and processor_seconds([p]) for p in pids):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert set(family(os.getpid())) >= {os.getpid(), *pids}
        assert processor_seconds(pids) > 0 and waiting_seconds([1 << 30]) == 0
    finally:
        for process in both:
            process.kill()
            process.communicate()


# --- the warm process ----------------------------------------------------------------------------
@pytest.mark.parametrize("tier", first_of("namespaces", "landlock"))
def test_a_dead_warm_process_is_replaced(light, course, tier):
    with Sandbox(course, tier=tier, runner=RUNNER) as box:
        with box.child() as child:
            ask_lightly(child)
        dead = box.warm_pid
        os.kill(dead, signal.SIGKILL)
        with box.child() as child:
            ask_lightly(child)
        assert box.warm_pid != dead


def test_a_child_outlives_its_warm_process_and_still_leaves_nothing(
    light, course, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Sandbox(course, limits=SMALL, runner=RUNNER) as box:
        with box.child() as child:
            ask_lightly(child)
            os.kill(box.warm_pid, signal.SIGKILL)
            ask_lightly(child)
            run(child, "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)")
            assert left_over(box, str(tmp_path)) != []
        with box.child() as child:
            ask_lightly(child)
        assert left_over(box, str(tmp_path)) == []


def test_a_warm_process_that_cannot_start_says_why(light, course, tmp_path):
    (tmp_path / "broken.py").write_text("raise RuntimeError('no runner today')")
    broken = tmp_path / "broken.py"
    with (
        Sandbox(course, runner=broken) as box,
        pytest.raises(ChildFailed) as failed,
        box.child(),
    ):
        raise AssertionError("a child was given")
    assert failed.value.kind == "cannot start"
    assert "no runner today" in failed.value.reason


def test_closing_twice_is_closing_once(light, course):
    box = Sandbox(course, runner=RUNNER)
    box.close()
    box.close()
    with pytest.raises(ChildFailed, match="closed"), box.child():
        raise AssertionError("a child was given")


def test_the_parents_own_threads_and_parallel_work_do_no_harm(course):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (torch.rand(300, 300) @ torch.rand(300, 300)).sum()
        with Sandbox(course, runner=RUNNER) as box, box.child() as child:
            ask_honestly(child)
            run(child, "import torch\n(torch.rand(300, 300) @ torch.rand(300, 300)).sum()")
    finally:
        torch.set_num_threads(threads)


def test_a_killed_parent_leaves_nothing_behind(course, marker):
    program = f"""
import os, sys
from autograder.sandbox import Sandbox, box
box.TORCH, box.RECORD = (), '/none'
with Sandbox({str(course)!r}, runner={str(RUNNER)!r}) as box, box.child() as child:
    source = "import os, time\\nif os.fork() == 0:\\n    os.setsid()\\n    time.sleep(600)"
    child.request({{"op": "run", "source": source, "given": {{}}}}, {{}})
    print(box.warm_pid, flush=True)
    os.kill(os.getpid(), 9)
"""
    folder = str(marker) + "-killed"
    Path(folder).mkdir()
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *sys.path])
    environment = {**os.environ, "TMPDIR": folder, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert done.stdout.strip().isdigit(), done.stderr.decode()

    class Gone:
        warm_pid = -1

    deadline = time.monotonic() + 120
    while left_over(Gone, folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_over(Gone, folder) == []
    assert os.listdir(folder) == []


# --- tiers ---------------------------------------------------------------------------------------
def refused(name: str) -> Tier:
    return Tier(name, False, "not on this machine")


def test_the_weakest_tier_is_refused_unless_asked_for(light, course, monkeypatch):
    weak = next(tier for tier in probe() if tier.name == "limits")
    offers = (refused("namespaces"), refused("landlock"), weak)
    monkeypatch.setattr(box_module, "probe", lambda: offers)
    with pytest.raises(ChildFailed) as failed:
        Sandbox(course, runner=RUNNER)
    assert failed.value.kind == "cannot start"
    assert "Docker" in failed.value.reason and "'limits'" in failed.value.reason
    with pytest.raises(ChildFailed, match="not on this machine"):
        Sandbox(course, tier="landlock", runner=RUNNER)
    with Sandbox(course, allow_weak=True, runner=RUNNER) as box:
        assert box.tier == "limits"


def test_a_machine_without_any_tier_is_refused_with_the_way_out(course, monkeypatch):
    offers = tuple(refused(name) for name in ("namespaces", "landlock", "limits"))
    monkeypatch.setattr(box_module, "probe", lambda: offers)
    for options in ({"allow_weak": True}, {"tier": "limits"}):
        with pytest.raises(ChildFailed, match="not on this machine"):
            Sandbox(course, **options)


def test_an_unknown_tier_is_named(course):
    with pytest.raises(ValueError, match="'vm'"):
        Sandbox(course, tier="vm")


def test_a_missing_course_folder_is_named(tmp_path):
    with pytest.raises(ChildFailed, match="nowhere"):
        Sandbox(tmp_path / "nowhere")


def test_the_probe_names_every_tier_strongest_first():
    assert [tier.name for tier in probe()] == ["namespaces", "landlock", "limits"]
    for tier in probe():
        assert tier.available or tier.reason
        assert dataclasses.is_dataclass(tier)


def test_the_limits_tier_works_and_finds_what_the_wall_hides(light, course, canary):
    """The attacks' own control: without a wall, these find something."""
    folder = Path(__file__).parent / "attacks"
    with Sandbox(course, tier="limits", limits=SMALL, runner=RUNNER) as box:
        with box.child() as child:
            ask_lightly(child)
            for name in ("read_secrets", "network", "host_sockets", "memory_without_a_process"):
                source = (folder / f"{name}.py").read_text()
                attack = {"op": "run", "source": source, "given": canary.given}
                assert child.request(attack, {})[0]["found"], name
        with box.child() as child, pytest.raises(ChildFailed) as failed:
            run(child, "import time\ntime.sleep(60)", seconds=0.3)
        assert failed.value.kind == "timed out"
        with box.child() as child:
            ask_lightly(child)


def test_a_root_that_can_take_no_other_user_is_told_of_in_a_sentence(monkeypatch):
    def refused(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("os.chown", refused)
    offers = {tier.name: tier for tier in probe.__wrapped__()}
    assert offers["landlock"].available or "no other user can be taken" in offers["landlock"].reason
