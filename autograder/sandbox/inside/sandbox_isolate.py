"""Puts a freshly forked process behind the wall, step by step.

A plan (plain data, made outside) says how:
    tier            "namespaces" or "landlock"
    user_namespace  True where the kernel asks an ordinary user for one first
    uid             the number the child's code runs under; None to keep the present one
    visible         [[path outside, path inside], ...]: folders and files shown, read-only
    links           [[path, target], ...]: symbolic links of the new root, such as /lib
    hidden          paths inside `visible` that are not shown
    read, listed    the same for Landlock: what to allow to read, and what to list only
    course, work    the course folder as the child sees it; a folder of its own, writable
    cgroups         folders of control groups to join
    limits          the numbers of `Limits`
"""

from __future__ import annotations

import os
import resource
import sys

import sandbox_filters as filters
import sandbox_kernel as kernel

PLAIN = kernel.MS_NOSUID | kernel.MS_NODEV
SCRATCH = ("/tmp", "/dev/shm")
DEVICES = ("null", "zero", "full", "random", "urandom")
INSIDE_UID = 1000  # of the child in its own user namespace


def join_cgroups(plan: dict) -> None:
    for folder in plan["cgroups"]:
        with open(os.path.join(folder, "cgroup.procs"), "w") as procs:
            procs.write("0")


def new_namespaces(plan: dict) -> None:
    """Leaves files, network, messages and names; the next fork starts new process ids."""
    flags = kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS
    uid, gid = os.geteuid(), os.getegid()
    if not plan["user_namespace"]:
        kernel.unshare(flags)
        return
    kernel.unshare(flags | kernel.NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{INSIDE_UID} {uid} 1")
    _write("/proc/self/gid_map", f"{INSIDE_UID} {gid} 1")


def new_root(plan: dict) -> list[str]:
    """A root in memory with only what `visible` lists; returns what had to be left out."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # Opened here: paths below /tmp are out of reach once the new root stands there.
    sources = [(os.open(source, os.O_PATH), target) for source, target in _entries(plan)]
    sources += [(os.open(f"/dev/{name}", os.O_PATH), f"/dev/{name}") for name in DEVICES]
    base = "/tmp"
    kernel.mount("root", base, "tmpfs", PLAIN, "size=4m,mode=755")
    for folder in SCRATCH:
        # Memory, so it also counts against the child's share of it.
        options = f"size={plan['limits']['disk']},nr_inodes=4096,mode=1777"
        os.makedirs(base + folder)
        kernel.mount("scratch", base + folder, "tmpfs", PLAIN, options)
    for descriptor, target in sources:
        _show(descriptor, base + target)
    notes = _furnish(plan, base)
    os.makedirs(base + "/.old")
    kernel.pivot_root(base, base + "/.old")
    os.chdir("/")
    kernel.unmount("/.old")
    os.rmdir("/.old")
    os.makedirs(plan["work"])
    if plan["uid"] is not None:
        os.chown(plan["work"], plan["uid"], plan["uid"])
    kernel.mount_read_only("/")
    for folder in SCRATCH:
        kernel.mount_writable(folder)
    kernel.set_host_name("sandbox")
    return notes


def _show(descriptor: int, target: str) -> None:
    """Binds an open file or folder to its place in the new root, read-only from the first."""
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(f"/proc/self/fd/{descriptor}", target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.mount_read_only(target)
    os.close(descriptor)


def _furnish(plan: dict, base: str) -> list[str]:
    """Small files, links, covers and /proc; returns what had to be left out."""
    for path, text in plan["files"]:
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        _write(base + path, text)
    standard = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")]
    links = [[f"/dev/{name}", f"/proc/self/fd{rest}"] for name, rest in standard]
    for path, target in [*plan["links"], *links]:
        if not os.path.lexists(base + path):
            os.makedirs(os.path.dirname(base + path), exist_ok=True)
            os.symlink(target, base + path)
    for path in plan["hidden"]:
        _cover(base + path)
    for folder in ("/proc", plan["course"]):
        os.makedirs(base + folder, exist_ok=True)
    try:
        kernel.mount("proc", base + "/proc", "proc", PLAIN | kernel.MS_NOEXEC | kernel.MS_RDONLY)
    except OSError as error:  # inside a container that hides parts of /proc
        return [f"no /proc in the child ({error.strerror})"]
    return []


def _entries(plan: dict) -> list[list[str]]:
    """What to bind: `visible`, with the course folder taken apart into what it holds.

    The child's user id may be unable to enter a private folder, such as a temporary one, that holds
    files which it may read.
    """
    entries = []
    for source, target in plan["visible"]:
        if target != plan["course"]:
            entries.append([source, target])
            continue
        for entry in os.scandir(source):
            if not entry.is_symlink():
                entries.append([entry.path, os.path.join(target, entry.name)])
    return entries


def _cover(target: str) -> None:
    """Hides a folder or a file of the new root behind an empty one."""
    if os.path.isdir(target):
        kernel.mount("hidden", target, "tmpfs", PLAIN | kernel.MS_RDONLY, "size=4k,mode=755")
    elif os.path.exists(target):
        kernel.mount("/dev/null", target, None, kernel.MS_BIND)


def lock_down(plan: dict, seccomp) -> list[str]:
    """The last steps, in the process that will run the code; there is no way back from them."""
    notes = []
    _limit_resources(plan)
    kernel.bound_capabilities()
    if plan["uid"] is not None:
        os.setgroups([])
        os.setresgid(plan["uid"], plan["uid"], plan["uid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # cleared with the uid; the child may see its own /proc
    os.setsid()
    os.umask(0o077)
    os.chdir(plan["work"])
    own_files = plan["tier"] == "namespaces"
    abi = min(filters.landlock_abi(), plan.get("landlock_abi", 99))
    if not own_files and not abi:
        raise OSError(filters.LANDLOCK_MISSING or "this kernel has no Landlock")
    if own_files and abi:
        filters.restrict_files(["/"], [], ["/tmp", "/dev/shm", *_devices()], abi)
    elif own_files:
        notes.append("no Landlock")
    else:
        filters.restrict_files(plan["read"], plan["listed"], [plan["work"], *_devices()], abi)
    if not own_files and abi < 6:
        seccomp = filters.build_seccomp(own_files=False, scoped_signals=False)
    if seccomp is None:
        if not own_files:
            raise OSError(filters.SECCOMP_MISSING)
        notes.append(filters.SECCOMP_MISSING)
    else:
        seccomp.load()
    return notes


def _limit_resources(plan: dict) -> None:
    limits = plan["limits"]
    bounds = {
        resource.RLIMIT_AS: limits["address_space"],
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_FSIZE: limits["disk"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NPROC: limits["processes"] + plan["others"],
    }
    for which, bound in bounds.items():
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            bound = min(bound, hard)
        # At the soft limit on processor time the signal says why; the hard one just kills.
        more = 1 if which == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(which, (bound, bound + more))


def _devices() -> list[str]:
    return [f"/dev/{name}" for name in DEVICES if os.path.exists(f"/dev/{name}")]


def check(plan: dict) -> None:
    """Raises OSError where the wall also keeps out what the child needs."""
    with open(os.path.join(plan["work"], ".check"), "wb") as file:
        file.write(b"x")
    os.remove(file.name)
    os.listdir(plan["course"])
    for folder in plan["libraries"]:
        os.listdir(folder)
    with open(os.__file__, "rb") as file:
        file.read(1)
    if not os.access(sys.executable, os.X_OK):
        raise OSError(f"{sys.executable} can't be run by the child")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
