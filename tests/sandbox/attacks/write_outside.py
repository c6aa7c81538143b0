"""Changes files that are not its own.

expected: ok
"""

import os
import shutil
import sys

import torch

targets = [canary, torch.__file__, os.__file__, sys.executable, "/etc/passwd", "/etc/hosts"]
targets += [os.path.join(p, "planted.py") for p in (*sys.path, "/", "/etc", "/usr")]
for path in targets:
    for action in (
        lambda: open(path, "a").write("x"),
        lambda: os.chmod(path, 0o777),
        lambda: os.utime(path, (0, 0)),
        lambda: os.truncate(path, 0),
        lambda: os.rename(path, path + ".moved"),
        lambda: os.unlink(path),
        lambda: shutil.copy("/etc/hosts", path),
        lambda: os.setxattr(path, "user.x", b"1"),
        lambda: os.link(path, "linked"),
        lambda: os.symlink("/", os.path.join(path, "link")),
    ):
        try:
            action()
        except OSError:
            continue
        found.append(path)
