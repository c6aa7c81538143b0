"""Connects to Unix sockets that listen outside.

expected: ok
"""

import socket

from given import found, unix_name, unix_path

for address in (unix_path, "\0" + unix_name):
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(address)
            found.append(address)
    except OSError:
        continue
