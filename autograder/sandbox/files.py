"""Which files of this machine a child may see, and which it may not."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/nix/store")
SETTINGS = ("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/mime.types")
ENVIRONMENT = ("bin", "lib", "lib64", "pyvenv.cfg")
FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")
PACKAGE = Path(__file__).resolve().parents[1]
MADE = [
    ["/etc/passwd", "student:x:1000:1000::/tmp/student:/bin/sh\n"],
    ["/etc/group", "student:x:1000:\n"],
    ["/etc/hosts", "127.0.0.1 localhost\n"],
]


def libraries() -> list[str]:
    """Folders of installed packages that the children's imports may use, in sys.path's order."""
    found = []
    for entry in map(os.path.realpath, sys.path):
        named = os.path.basename(entry) in ("site-packages", "dist-packages")
        if named and os.path.isdir(entry) and entry not in found:
            found.append(entry)
    return found


def visible(course: str, inside: str) -> tuple[list[list[str]], list[list[str]]]:
    """[[outside, inside], ...] of what is shown read-only, and [[path, target], ...] of links."""
    paths, links = [], []
    for path in (*SYSTEM, *SETTINGS):
        if os.path.islink(path) and path in SYSTEM:
            links.append([path, os.readlink(path)])
        elif os.path.exists(path):
            paths.append([os.path.realpath(path), path])
    prefixes = [sys.base_prefix, sys.base_exec_prefix, sysconfig.get_paths()["stdlib"]]
    if sys.prefix != sys.base_prefix:
        # A virtual environment may have been made in a folder that holds other things as well.
        prefixes += [os.path.join(sys.prefix, name) for name in ENVIRONMENT]
    prefixes = [path for path in prefixes if os.path.exists(path)]
    real = [os.path.realpath(p) for p in prefixes]
    # The interpreter is found by the path it was started with, links and all.
    links += [[p, r] for p, r in zip(prefixes, real, strict=True) if p != r]
    for path in (*real, *libraries()):
        if not any(_within(path, shown) for _, shown in paths):
            paths.append([path, path])
    paths.append([course, inside])
    return paths, links


def hidden(shown: Iterable[str], course: str, extra: Iterable[str]) -> list[str]:
    """What of `shown` must not be: our own package wherever it is, and what `extra` names."""
    ours = [str(PACKAGE), *map(os.path.realpath, extra)]
    if (PACKAGE.parent / "pyproject.toml").exists():  # a checkout: its tests know answers
        ours += [str(PACKAGE.parent / n) for n in ("tests", "tools", ".git")]
    ours += [os.path.join(folder, PACKAGE.name) for folder in libraries()]
    shown = [path for path in shown if path != course]
    return sorted({p for p in ours if os.path.exists(p) and any(_within(p, s) for s in shown)})


def grants(shown: list[str], covered: list[str]) -> tuple[list[str], list[str]]:
    """Landlock can only allow: the folders to allow so that all but `covered` is readable.

    Returns folders and files to read, and folders that may be listed only.
    """
    read: list[str] = []
    listed: list[str] = []

    def visit(path: str) -> None:
        if path in covered:
            return
        if not any(_within(h, path) for h in covered):
            read.append(path)
            return
        listed.append(path)
        for entry in os.scandir(path):
            if not entry.is_symlink():
                visit(entry.path)

    for path in (*shown, *filter(os.path.exists, FACTS)):
        visit(path)
    return read, listed


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
