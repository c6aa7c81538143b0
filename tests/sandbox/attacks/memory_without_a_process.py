"""Keeps memory in places that belong to no process.

expected: ok
"""

import ctypes

from given import found

libc = ctypes.CDLL(None, use_errno=True)
if libc.memfd_create(b"x", 0) >= 0:
    found.append("memfd_create")
if libc.shmget(0, 1 << 20, 0o1600) >= 0:
    found.append("shmget")
