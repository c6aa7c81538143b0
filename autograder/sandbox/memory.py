"""A cap on the memory of a child's whole family: a control group where one can be made, else a
watch from outside."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

from .family import family

PREFIX = "autograder"
GROUPS = Path("/sys/fs/cgroup")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class ControlGroup:
    """One control group (version 1 or 2) for one child; `folders` is what it has to join."""

    def __init__(self, memory: int, processes: int):
        self.folders: list[str] = []
        self._memory: Path | None = None
        name = f"{PREFIX}-{os.getpid()}-{secrets.token_hex(4)}"
        for controller, settings in (
            ("memory", {"memory.max": memory, "memory.limit_in_bytes": memory,
                        "memory.swap.max": 0, "memory.memsw.limit_in_bytes": memory}),
            ("pids", {"pids.max": processes}),
        ):  # fmt: skip
            for parent in _places(controller):
                folder = parent / name
                if str(folder) in self.folders or _make(folder, settings):
                    if str(folder) not in self.folders:
                        self.folders.append(str(folder))
                    if controller == "memory":
                        self._memory = folder
                    break

    @property
    def caps_memory(self) -> bool:
        return self._memory is not None

    def ran_out(self) -> bool:
        """Whether the kernel ended a process of the group for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, TypeError):
                for line in (self._memory / name).read_text().splitlines():
                    if line.startswith("oom_kill ") and line.split()[1] != "0":
                        return True
        return False

    def remove(self) -> None:
        for folder in self.folders:
            for _ in range(50):  # the kernel lets go of the last process a moment after its end
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
                else:
                    break
        self.folders = []


def remove_stale_groups() -> None:
    """Removes the groups of graders that were killed; those in use can't be removed."""
    for parent in {*_places("memory"), *_places("pids")}:
        for folder in parent.glob(f"{PREFIX}-*"):
            pid = folder.name.removeprefix(f"{PREFIX}-").split("-")[0]
            if not os.path.exists(f"/proc/{pid}"):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _places(controller: str) -> list[Path]:
    """Folders in which a group with this controller could be made, nearest first."""
    places = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            own = GROUPS / controller / path.lstrip("/")
            places.append(own if own.exists() else GROUPS / controller)
        elif number == "0":
            own = GROUPS / path.lstrip("/")
            for folder in (own, *own.parents):
                if GROUPS not in (folder, *folder.parents):
                    break
                with contextlib.suppress(OSError):
                    if controller in (folder / "cgroup.subtree_control").read_text().split():
                        places.append(folder)
    return places


def _make(folder: Path, settings: dict[str, int]) -> bool:
    """Makes a group and writes those of the settings that it has; False if it has none."""
    try:
        folder.mkdir(exist_ok=True)
        written = 0
        for name, value in settings.items():
            if (folder / name).exists():
                (folder / name).write_text(str(value))
                written += 1
        if written:
            return True
    except OSError:
        pass
    with contextlib.suppress(OSError):
        folder.rmdir()
    return False


def family_memory(root: int) -> int:
    """Bytes of memory in use by a process and its descendants (shared pages shared out)."""
    return sum(_memory_of(pid) for pid in family(root))


def _memory_of(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * PAGE  # resident, less what is shared
    return 0
