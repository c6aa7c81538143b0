"""Changes files that are not its own.

expected: ok
"""

import os
import shutil
import sys

import torch
from given import canary, found

targets = [canary, torch.__file__, os.__file__, sys.executable, "/etc/passwd", "/etc/hosts"]
targets += [os.path.join(p, "planted.py") for p in (*sys.path, "/", "/etc", "/usr")]


def change(action, path):
    """Raises OSError also where the action is only said to have been done."""
    before = os.stat(path)
    action(path)
    if os.stat(path) == before:
        raise PermissionError(path)


actions = [
    lambda path: os.close(os.open(path, os.O_WRONLY | os.O_APPEND)),
    lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
    lambda path: change(lambda p: os.chmod(p, 0o707), path),
    lambda path: change(lambda p: os.utime(p, (0, 0)), path),
    lambda path: os.truncate(path, 0),
    lambda path: os.rename(path, path + ".moved"),
    lambda path: os.unlink(path),
    lambda path: shutil.copy("/etc/hosts", path),
    lambda path: os.setxattr(path, "user.x", b"1"),
    lambda path: os.link(path, "linked"),
    lambda path: os.symlink("/", os.path.join(path, "link")),
]
for path in targets:
    for number, action in enumerate(actions):
        try:
            action(path)
        except OSError:
            continue
        found.append(f"action {number} on {path}")
