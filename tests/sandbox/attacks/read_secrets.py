"""Reads what is none of its business.

expected: ok
"""

import glob
import os

from given import canary, found, repository

places = [canary, os.path.dirname(canary), "/etc/shadow", "/root/.ssh", "/root/.bash_history"]
places += [os.path.expanduser("~root"), "/home", "/var", "/run", "/boot", "/srv", repository]
places += [f"{repository}/{n}" for n in ("autograder", "solutions", "tests", ".git")]
places += glob.glob("/proc/[0-9]*/environ") + ["/proc/1/mem", "/proc/1/maps", "/proc/kcore"]
for path in places:
    try:
        if os.path.isdir(path):
            if set(os.listdir(path)) - {".pyenv", ".venv"}:
                found.append(path)
        elif path != f"/proc/{os.getpid()}/environ":
            with open(path, "rb") as file:
                if file.read(1):
                    found.append(path)
    except OSError:
        continue
