"""Asks for other namespaces, mounts, user ids and other people's processes.

answers: right
expect: same | err
"""

import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10000000)
libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)
libc.setresuid(0, 0, 0)
libc.ptrace(16, os.getppid(), 0, 0)
libc.syscall(425, 8, ctypes.create_string_buffer(256))
for target in (os.getppid(), -1, 1):
    try:
        os.kill(target, signal.SIGKILL)
    except OSError:
        continue
