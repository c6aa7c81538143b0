"""The few Linux calls that Python 3.11 has no function for. Each raises OSError when refused."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET, NEWTIME = 0x10000000, 0x20000000, 0x40000000, 0x00000080

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD, RECURSIVE = -100, 0x8000

PR_SET_DUMPABLE, PR_CAPBSET_DROP = 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

# glibc wraps neither; the second number is the same on every architecture.
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args) -> int:
    ctypes.set_errno(0)
    result = getattr(_libc, name)(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _syscall(name: str, number: int, *args) -> int:
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if s is None else os.fsencode(s) for s in (source, target, kind, data)]
    _call("mount", *encoded[:3], ctypes.c_ulong(flags), encoded[3])


def unmount(target: str) -> None:
    _call("umount2", os.fsencode(target), MNT_DETACH)


def pivot_root(new: str, put_old: str) -> None:
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root: number not known on {platform.machine()}")
    _syscall("pivot_root", number, os.fsencode(new), os.fsencode(put_old))


def mount_read_only(target: str) -> None:
    """Makes a mount and all below it read-only, without set-uid programs (Linux 5.12)."""
    _mount_setattr(target, RECURSIVE, MS_RDONLY | MS_NOSUID, 0)


def mount_writable(target: str) -> None:
    """Makes one mount writable again."""
    _mount_setattr(target, 0, 0, MS_RDONLY)


def _mount_setattr(target: str, flags: int, add: int, clear: int) -> None:
    """The lowest bits of a mount's attributes are the same as those of MS_*."""

    class MountAttr(ctypes.Structure):
        _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns")]

    attr = MountAttr(set=add, clear=clear)
    what = (AT_FDCWD, os.fsencode(target), flags, ctypes.byref(attr), ctypes.sizeof(attr))
    _syscall("mount_setattr", MOUNT_SETATTR, *what)


def set_host_name(name: str) -> None:
    _call("sethostname", name.encode(), len(name.encode()))


def prctl(option: int, *args: int) -> None:
    _call("prctl", option, *(ctypes.c_ulong(a) for a in (*args, 0, 0, 0, 0)[:4]))


def bound_capabilities() -> None:
    """No program run from here on gains a capability; call it while there is a right to."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # the kernel knows no more
                return
            if error.errno != errno.EPERM:  # no right to drop: an ordinary user, who has none
                raise


def drop_capabilities() -> None:
    """Gives up every capability, for good."""

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    nothing = (ctypes.c_uint32 * 6)()
    _call("capset", ctypes.byref(Header(CAPABILITY_VERSION_3, 0)), nothing)


def landlock_scope(abi: int) -> None:
    """No TCP; no signals or abstract sockets to processes outside (Landlock ABI 4 and 6)."""

    class Ruleset(ctypes.Structure):
        _fields_ = [(n, ctypes.c_uint64) for n in ("files", "net", "scoped")]

    if abi < 4:
        return
    scoped = 0b11 if abi >= 6 else 0
    rules = Ruleset(files=0, net=0b11, scoped=scoped)
    size = 24 if abi >= 6 else 16
    fd = _syscall("landlock_create_ruleset", LANDLOCK_CREATE_RULESET, ctypes.byref(rules), size, 0)
    try:
        _syscall("landlock_restrict_self", LANDLOCK_RESTRICT_SELF, fd, 0)
    finally:
        os.close(fd)
