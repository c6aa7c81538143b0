"""Landlock (which files) and seccomp (which system calls), through their libraries."""

from __future__ import annotations

import ctypes
import errno
import os

import sandbox_kernel as kernel

try:
    import landlock

    LANDLOCK_MISSING = ""
except Exception as error:  # not installed, or not Linux
    landlock = None
    LANDLOCK_MISSING = f"Python package landlock: {error}"

try:
    import pyseccomp

    SECCOMP_MISSING = ""
except Exception as error:  # RuntimeError where libseccomp itself is missing
    pyseccomp = None
    SECCOMP_MISSING = f"seccomp: {error} (install libseccomp2 and the Python package pyseccomp)"

AF_UNIX = 1
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
FIOSETOWN, SIOCSPGRP, TIOCSTI = 0x8901, 0x8902, 0x5412

# Refused everywhere.
OTHER_PROCESSES = (
    "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease"
    " move_pages migrate_pages setpriority ioprio_set sched_setattr"
)
FILE_SYSTEMS = (
    "mount umount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig"
    " fsmount fspick mount_setattr unshare setns name_to_handle_at open_by_handle_at fanotify_init"
    " quotactl quotactl_fd acct"
)
KERNEL = (
    "add_key request_key keyctl bpf perf_event_open userfaultfd lookup_dcookie kexec_load"
    " kexec_file_load init_module finit_module delete_module reboot swapon swapoff iopl ioperm"
    " modify_ldt vhangup sethostname setdomainname syslog settimeofday clock_settime clock_adjtime"
    " adjtimex"
)
SHARED_MESSAGES = (
    "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open"
    " mq_unlink"
)
REFUSED = f"{OTHER_PROCESSES} {FILE_SYSTEMS} {KERNEL} {SHARED_MESSAGES}".split()
# Answered "not implemented", so that callers fall back: clone3 hides its flags from this filter;
# memory files and io_uring escape the caps on memory and on calls.
ABSENT = (
    "clone3",
    "memfd_create",
    "memfd_secret",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
)
# Without a file system of its own, the child sees the host's files, and these Landlock does not
# govern. Changes of modes and times are answered as if done, for the many programs that copy files.
HOST_FILES = (
    "chown lchown fchown fchownat setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr"
    " fremovexattr removexattrat file_setattr truncate socket connect mknod mknodat inotify_init"
    " inotify_init1"
)
PRETENDED = "chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat"
# Calls that libseccomp may be too old to know by name; one number on every architecture.
NUMBERS = {
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "mount_setattr": 442,
    "process_madvise": 440,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
NEW_NAMESPACES = (
    kernel.NEWNS,
    kernel.NEWCGROUP,
    kernel.NEWUTS,
    kernel.NEWIPC,
    kernel.NEWUSER,
    kernel.NEWPID,
    kernel.NEWNET,
    kernel.NEWTIME,
)


def landlock_abi() -> int:
    """The version of Landlock that this kernel offers; 0 for none."""
    if landlock is None:
        return 0
    try:
        return landlock.landlock_abi_version()
    except Exception:
        return 0


def restrict_files(read: list[str], listed: list[str], write: list[str], abi: int) -> None:
    """From now on: read and execute below `read`, list `listed`, anything below `write`."""
    access = landlock.FSAccess
    a_file = access.READ_FILE | access.EXECUTE
    rules = landlock.Ruleset()
    # The library takes an old errno for a failure of its own calls: give it a clean one.
    for path in read:
        _allow(rules, path, a_file | access.READ_DIR if os.path.isdir(path) else a_file)
    for path in listed:
        _allow(rules, path, access.READ_DIR)
    for path in write:
        device = not os.path.isdir(path)
        _allow(rules, path, (access.READ_FILE | access.WRITE_FILE) if device else access.all())
    _clean_errno()
    rules.apply()
    kernel.landlock_scope(abi)


def _allow(rules, path: str, access) -> None:
    _clean_errno()
    rules.allow(path, rules=access)


def _clean_errno() -> None:
    ctypes.set_errno(0)


def build_seccomp(*, own_files: bool, scoped_signals: bool):
    """The filter, to be loaded by the child; None where seccomp's library is missing."""
    if pyseccomp is None:
        return None
    chosen = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
    refuse = pyseccomp.ERRNO(errno.EPERM)

    def rule(action: int, name: str, *args) -> None:
        number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
        if number == -1:
            number = NUMBERS.get(name)
        if number is not None:
            chosen.add_rule(action, number, *args)

    def arg(index: int, how: int, *data: int):
        return pyseccomp.Arg(index, how, *data)

    for name in REFUSED:
        rule(refuse, name)
    for name in ABSENT:
        rule(pyseccomp.ERRNO(errno.ENOSYS), name)
    for flag in NEW_NAMESPACES:
        rule(refuse, "clone", arg(0, pyseccomp.MASKED_EQ, flag, flag))
    for name in ("prlimit64", "sched_setaffinity", "sched_setparam", "sched_setscheduler"):
        rule(refuse, name, arg(0, pyseccomp.NE, 0))  # on itself it may
    rule(refuse, "ioctl", arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, TIOCSTI))
    if own_files:
        # The child's own network namespace confines AF_UNIX, but not, for one, AF_VSOCK.
        not_unix = arg(0, pyseccomp.NE, AF_UNIX)
        rule(pyseccomp.ERRNO(errno.EAFNOSUPPORT), "socket", not_unix)
    else:
        for name in HOST_FILES.split():
            rule(refuse, name)
        for name in PRETENDED.split():
            rule(pyseccomp.ERRNO(0), name)
        everybody = 0xFFFFFFFF  # -1: without process ids of its own, that is the host's
        rule(refuse, "kill", arg(0, pyseccomp.MASKED_EQ, everybody, everybody))
    if not scoped_signals:
        me = os.getpid()
        rule(refuse, "kill", arg(0, pyseccomp.NE, me))
        rule(refuse, "tgkill", arg(0, pyseccomp.NE, me))
        for name in ("tkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            rule(refuse, name)
        for command in (F_SETOWN, F_SETSIG, F_SETOWN_EX):
            rule(refuse, "fcntl", arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, command))
        for command in (FIOSETOWN, SIOCSPGRP):
            rule(refuse, "ioctl", arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, command))
    return chosen
