"""Which walls this machine can build, found out by building each once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from . import files
from .limits import Limits
from .warm import Warm, WarmDied, WarmUnable

TIERS = ("namespaces", "landlock", "limits")
INSIDE_COURSE = "/course"
INSIDE_WORK = "/tmp/student"


@dataclasses.dataclass(frozen=True)
class Tier:
    """One way to isolate a child, and whether this machine offers it."""

    name: str
    available: bool
    reason: str  # why not; or what is missing all the same
    user_namespace: bool = False
    own_uid: bool = False  # the child runs under a user id that nobody else has


@functools.lru_cache(maxsize=1)
def probe() -> tuple[Tier, ...]:
    """Every tier, strongest first. Takes a fraction of a second, once in a process."""
    weak = Tier(
        "limits", True, "it caps time and memory only: no file, process or network is hidden"
    )
    if not sys.platform.startswith("linux"):
        why = f"needs Linux, and this is {sys.platform}"
        return Tier("namespaces", False, why), Tier("landlock", False, why), weak
    with tempfile.TemporaryDirectory(prefix="attention-probe-") as folder:
        course = os.path.realpath(folder)
        os.chmod(course, 0o755)
        settings = {"libraries": files.libraries(), "fork": True, "preload": [], "modules": []}
        try:
            warm = Warm(settings)
            try:
                return _first(warm, "namespaces", course), _first(warm, "landlock", course), weak
            finally:
                warm.close()
        except (WarmDied, WarmUnable) as error:
            why = f"the warm process can't start: {error}"
            return Tier("namespaces", False, why), Tier("landlock", False, why), weak


def _first(warm: Warm, name: str, course: str) -> Tier:
    """The best form of a tier that works here."""
    forms = [(False, True)] if os.geteuid() == 0 else []
    forms.append((True, False) if name == "namespaces" else (False, False))
    reasons = []
    for user_namespace, own_uid in forms:
        tier = Tier(name, True, "", user_namespace, own_uid)
        with work_folder(tier) as work:
            try:
                plan = plan_child(make_plan(tier, course, Limits(), []), tier, work, [])
            except OSError as error:  # a root without other users, as in a user namespace
                reasons.append(f"no other user can be taken: {error.strerror}")
                continue
            ours, theirs = socket.socketpair()
            reader, writer = os.pipe()
            lifeline, hold = os.pipe()
            with ours, theirs:
                answer = warm.spawn(plan, [theirs.fileno(), writer, lifeline])
            for descriptor in (reader, writer, lifeline, hold):
                os.close(descriptor)
            if "pid" in answer:
                warm.end(answer["pid"])
        if answer.get("ready"):
            return dataclasses.replace(tier, reason="; ".join(answer["notes"]))
        reasons.append(answer.get("error", "no answer"))
    return Tier(name, False, "; ".join(dict.fromkeys(reasons)))


def for_course(tier: Tier, course: str) -> Tier:
    """The tier as it can serve this folder: a private one is out of reach of another user id.

    A root of the child's own shows the folder by itself; without one, each folder above it has to
    let the child through.
    """
    if tier.name == "namespaces" or not tier.own_uid or _open_to_all(course):
        return tier
    why = "the course folder is private, so the child runs under your user id"
    return dataclasses.replace(
        tier, own_uid=False, reason="; ".join(filter(None, (tier.reason, why)))
    )


def _open_to_all(folder: str) -> bool:
    """Whether anyone may list a folder: may enter all above it, and read it."""
    above = Path(folder).parents
    return os.stat(folder).st_mode & 0o5 == 0o5 and all(p.stat().st_mode & 0o1 for p in above)


def make_plan(tier: Tier, course: str, limits: Limits, hide: list[str]) -> dict:
    """What the warm process needs to know to isolate any child of one sandbox."""
    own_root = tier.name == "namespaces"
    inside = INSIDE_COURSE if own_root else course
    shown, links = files.visible(course, inside)
    outside = [source for source, _ in shown]
    hidden = files.hidden(outside, course, hide)
    read, listed = files.grants(outside, hidden) if tier.name == "landlock" else ([], [])
    return {
        "tier": tier.name,
        "user_namespace": tier.user_namespace,
        "visible": shown,
        "links": links,
        "files": files.MADE if own_root else [],
        "hidden": hidden,
        "read": read,
        "listed": listed,
        "libraries": files.libraries(),
        "course": inside,
        "limits": dataclasses.asdict(limits),
    }


def plan_child(plan: dict, tier: Tier, work: str, groups: list[str]) -> dict:
    """The plan for one child: with its user id, its folder and its control groups."""
    uid = free_uid() if tier.own_uid else None
    if work and uid is not None:
        os.chown(work, uid, uid)
    return {
        **plan,
        "uid": uid,
        "work": work or INSIDE_WORK,
        "cgroups": groups,
        "others": 0 if tier.own_uid or tier.user_namespace else tasks_of_this_user(),
    }


@contextlib.contextmanager
def work_folder(tier: Tier):
    """A writable folder for a child that has no root of its own; removed afterwards."""
    if tier.name == "namespaces":
        yield ""
        return
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = os.path.realpath(tempfile.mkdtemp(prefix="attention-work-", dir=memory))
    try:
        yield folder
    finally:
        # Trees deeper than Python's recursion, links and all; rm follows none.
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False)


def free_uid() -> int:
    """A user id that nobody has, as far as the present user namespace reaches."""
    top = 2_000_000_000
    with contextlib.suppress(OSError):
        ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        top = min(top, max(int(start) + int(count) for start, _, count in ranges) - 1)
    if top < 100_000:
        return max(1, top - secrets.randbelow(max(1, top // 4)))
    return top - secrets.randbelow(min(1 << 20, top // 2))


def tasks_of_this_user() -> int:
    """Processes and threads of this user: the kernel counts them against the child's limit."""
    total = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                    total += len(os.listdir(f"/proc/{name}/task"))
    return total


def strongest() -> str:
    """The name of the strongest tier that this machine offers; for one's own code, not others'."""
    return next(tier.name for tier in probe() if tier.available)
