"""Passes descriptors of its own over the connection.

expected: ok | bad reply
"""

import os
import socket

with socket.socket(fileno=os.dup(3)) as connection:
    for _ in range(3):
        socket.send_fds(connection, [b""], [0])
