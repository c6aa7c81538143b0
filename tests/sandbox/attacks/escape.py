"""Asks the kernel for more than it has.

expected: ok
"""

import ctypes
import os
import platform

from given import found

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PR_CAPBSET_READ = 16, 23
attempts = {
    "unshare user": lambda: libc.unshare(0x10000000),
    "unshare mounts": lambda: libc.unshare(0x00020000),
    "mount": lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None),
    "remount": lambda: libc.mount(b"none", b"/", None, 32 | 4096, None),
    "umount": lambda: libc.umount2(b"/usr", 2),
    "chroot": lambda: libc.chroot(b"/tmp"),
    "setuid": lambda: libc.setresuid(0, 0, 0) if os.getuid() else -1,
    "setgroups": lambda: libc.setgroups(1, (ctypes.c_uint32 * 1)(0)),
    "ptrace parent": lambda: libc.ptrace(PTRACE_ATTACH, os.getppid(), 0, 0),
    "hostname": lambda: libc.sethostname(b"x", 1),
    "personality of a chroot by handle": lambda: libc.open_by_handle_at(-100, b"x" * 64, 0),
    "io_uring": lambda: libc.syscall(425, 8, ctypes.create_string_buffer(256)),
    "bpf": lambda: libc.syscall(321 if platform.machine() == "x86_64" else 280, 0, 0, 0),
    "nice others": lambda: libc.setpriority(0, os.getppid(), 19),
    "mknod": lambda: libc.mknod(b"device", 0o60666, 0x0800),
    "raise a limit": lambda: libc.setrlimit(7, (ctypes.c_uint64 * 2)(1 << 20, 1 << 20)),
    "limit the parent": lambda: (
        libc.prlimit(os.getppid(), 0, (ctypes.c_uint64 * 2)(1, 1), None) if os.getppid() > 1 else -1
    ),
}
for name, attempt in attempts.items():
    if attempt() >= 0:
        found.append(name)
PR_GET_NO_NEW_PRIVS = 39
if libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
    found.append("programs that raise privileges")
capabilities = (ctypes.c_uint32 * 6)()
libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), capabilities)
if any(capabilities):
    found.append("capabilities")
if os.getuid() == 0 and libc.prctl(PR_CAPBSET_READ, 21, 0, 0, 0) > 0:
    found.append("CAP_SYS_ADMIN for the programs it runs")
