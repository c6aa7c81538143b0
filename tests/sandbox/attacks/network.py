"""Opens sockets of every kind, and talks.

expected: ok
"""

import contextlib
import socket

from given import found

for family in range(1, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            opened = socket.socket(family, kind)
        except OSError:
            continue
        if family != socket.AF_UNIX:
            found.append(f"family {family}")
        opened.close()
with contextlib.suppress(OSError):
    found.append(socket.gethostbyname("localhost.localdomain.example.org"))
