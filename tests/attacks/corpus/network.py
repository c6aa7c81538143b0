"""Sends the homework away.

answers: right
expect: same
"""

import socket

for kind, address in (
    (socket.AF_INET, ("127.0.0.1", 1)),
    (socket.AF_INET, ("192.0.2.1", 80)),
    (socket.AF_INET6, ("::1", 1)),
    (socket.AF_UNIX, "\0@NAME@"),
    (socket.AF_UNIX, "@FOLDER@/socket"),
    (40, (2, 1)),
):
    try:
        with socket.socket(kind, socket.SOCK_STREAM) as calling:
            calling.settimeout(0.2)
            calling.connect(address)
            calling.sendall(b"the homework")
    except OSError:
        continue
