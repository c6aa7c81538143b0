"""What a process and its descendants have had of the processor, and how long they waited for it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def family(root: int) -> list[int]:
    """The process ids of `root` and all that come from it; `root` alone where nothing says so."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                children.setdefault(int(_fields(name)[1]), []).append(int(name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, [])
    return found


def _fields(pid: int | str) -> list[bytes]:
    """Of /proc/PID/stat, those behind the name: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def processor_seconds(pids: list[int]) -> float:
    """Processor time that these processes, and their children that have ended, have used."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            ticks += sum(int(field) for field in _fields(pid)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def waiting_seconds(pids: list[int]) -> float:
    """How long the one that waited longest was ready to run and had no processor; 0 if unknown."""
    longest = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            longest = max(longest, int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]))
    return longest / 1e9
