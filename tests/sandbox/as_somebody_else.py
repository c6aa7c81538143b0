"""Run as a program: becomes somebody with fewer rights, then uses a sandbox and says how it went.

    python as_somebody_else.py WHO TIER COURSE CANARY

Prints one JSON object: the tier it got, or the reason why none; and of each attack its verdict.
"""

import errno
import json
import os
import re
import sys
from pathlib import Path

from autograder.sandbox import ChildFailed, Limits, Sandbox, box
from autograder.sandbox.inside import sandbox_kernel as kernel

HERE = Path(__file__).parent
ATTACKS = ["escape", "host_sockets", "kill_everything", "stop_the_parent", "read_secrets"]
MORE = ["write_outside", "daemon", "fork_bomb", "memory_bomb"]
CAP_SYS_ADMIN = 21


def ordinary_user() -> None:
    """User 1001 of a new user namespace: no capabilities, and a number other than root's."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"1001 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"1001 {gid} 1")
    kernel.bound_capabilities()
    kernel.drop_capabilities()
    assert os.geteuid() == 1001


def root_without_sys_admin() -> None:
    """As in most containers. For an ordinary user it changes nothing."""
    if os.geteuid() == 0:
        kernel.prctl(kernel.PR_CAPBSET_DROP, CAP_SYS_ADMIN)
        os.execv(sys.executable, [sys.executable, __file__, "as_you_are", *sys.argv[2:]])


def in_a_container() -> None:
    """Docker's default filter refuses new namespaces and mounts."""
    _refuse("unshare", "mount", "setns", "pivot_root")


def in_a_container_without_landlock() -> None:
    _refuse("unshare", "mount", "setns", "pivot_root", "landlock_create_ruleset")


def _refuse(*names: str) -> None:
    import pyseccomp

    refusing = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
    for name in names:
        refusing.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
    refusing.load()


def old_landlock() -> None:
    """A kernel whose Landlock does not yet keep signals in."""
    make = box.make_plan
    box.make_plan = lambda *args: {**make(*args), "landlock_abi": 3}


def as_you_are() -> None:
    return


def main() -> dict:
    who, tier, course, given, every = sys.argv[1:6]
    globals()[who]()
    box.TORCH, box.RECORD = (), Path("/none")
    limits = Limits(call_seconds=1, memory=200 << 20, processes=16)
    try:
        made = Sandbox(course, tier=tier, limits=limits, runner=HERE / "runner.py")
    except ChildFailed as failure:
        return {"tier": None, "reason": failure.reason}
    results = {}
    with made:
        for name in (ATTACKS + (MORE if who == "ordinary_user" else []))[:: int(every)]:
            source = (HERE / "attacks" / f"{name}.py").read_text()
            expected = re.search(r"^expected: (.+)$", source, re.MULTILINE)[1].split(" | ")
            with made.child() as child:
                kind, found = "ok", []
                attack = {"op": "run", "source": source, "given": json.loads(given)}
                try:
                    found = child.request(attack, {}, seconds=1 if "fork" in name else 10)[0][
                        "found"
                    ]
                except ChildFailed as failure:
                    kind = failure.kind
            with made.child() as child:
                honest = child.request({"op": "double", "number": 21}, {}) == ({"answer": 42}, {})
            results[name] = [kind in expected, found, honest]
    return {"tier": made.tier, "results": results}


if __name__ == "__main__":
    print(json.dumps(main()))
