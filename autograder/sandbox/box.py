"""Sandbox: a warm process, and the throw-away children it forks."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import files
from .child import Child
from .inside.sandbox_wire import Failure
from .limits import ChildFailed, Limits
from .memory import ControlGroup, remove_stale_groups
from .probe import TIERS, Tier, for_course, make_plan, plan_child, probe, work_folder
from .warm import Warm, WarmDied, WarmUnable
from .warm import prepare as warm_up

RUNNER = Path(__file__).parent / "inside" / "runner.py"
RECORD = Path(__file__).parent / "inside" / "record.py"
WORK = Path(__file__).parent / "inside" / "work.py"
STEPS = Path(__file__).parent / "inside" / "steps.py"
EDITED = Path(__file__).parent / "inside" / "edited.py"
TORCH = ("torch", "numpy.random", "safetensors.torch", "matplotlib.pyplot")

ATTEMPTS = 3  # to start a child, where warm processes die


class Sandbox:
    """Runs other people's code in throw-away child processes; use it as a context manager.

    course: a folder shown read-only as the child's only course files, first on its path.
    tier: "auto" for the strongest that this machine offers, or one by name.
    allow_weak: let "auto" fall back on "limits", which hides nothing; for one's own code only.
    preload: further modules to import once, before the children are forked.
    runner: the file whose `Runner().handle(header, tensors)` answers requests in the child, in
        place of our own `inside/runner.py`.
    hide: further paths never to be shown, should they lie inside the system's folders.

    Raises ChildFailed(Failure.CANNOT_START, why) if the tier asked for can't be had here.
    """

    def __init__(
        self,
        course: Path,
        *,
        tier: str = "auto",
        limits: Limits | None = None,
        allow_weak: bool = False,
        preload: Sequence[str] = (),
        runner: Path | None = None,
        hide: Sequence[Path] = (),
    ):
        self._closed = True
        self.limits = limits or Limits()
        self._course = os.path.realpath(course)
        if not os.path.isdir(self._course):
            raise ChildFailed(Failure.CANNOT_START, f"The course folder {course} is not a folder.")
        self._tier = for_course(_choose(tier, allow_weak), self._course)
        self._plan = make_plan(self._tier, self._course, self.limits, [str(path) for path in hide])
        self._settings = _settings(self._tier.name != "limits", preload, runner)
        remove_stale_groups()
        self._warm = self._start()
        self._closed = False
        self.pressed = 0  # children that failed while the machine had no time or memory for them
        atexit.register(self.close)

    @property
    def tier(self) -> str:
        """What isolates the children: "namespaces", "landlock" or "limits"."""
        return self._tier.name

    @property
    def notes(self) -> str:
        """What this machine lacks of the tier's full wall; empty for nothing."""
        return self._tier.reason

    @property
    def branches(self) -> bool:
        """Whether a child can fork (see `Child.branch`)."""
        return self._settings["fork"]

    @property
    def warm_pid(self) -> int:
        """The process id of the warm process."""
        return self._warm.pid

    @contextlib.contextmanager
    def child(self) -> Iterator[Child]:
        """A fresh child; it and every process it started are gone when the block ends."""
        if self._closed:
            raise ChildFailed(Failure.CANNOT_START, "This sandbox has been closed.")
        with contextlib.ExitStack() as stack:
            work = stack.enter_context(work_folder(self._tier))
            group = None
            if self._settings["fork"]:
                group = ControlGroup(self.limits.memory, self.limits.processes + 4)
                stack.callback(group.remove)
            else:
                # Each child is a warm process of its own; the next one starts in good time.
                stack.callback(self._renew, self._warm)
            child = self._spawn(work, group)
            stack.callback(child.close)
            stack.callback(self._note, child)
            yield child

    def close(self) -> None:
        """Ends the warm process; any number of times."""
        if not self._closed:
            self._closed = True
            atexit.unregister(self.close)
            self._warm.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _note(self, child: Child) -> None:
        self.pressed += child.pressed

    def _start(self) -> Warm:
        try:
            return Warm(self._settings)
        except (WarmDied, WarmUnable) as error:
            raise _cannot_start(error) from None

    def _spawn(self, work: str, group: ControlGroup | None) -> Child:
        """A child of the warm process, or of a new one if the old one has died."""
        plan = plan_child(self._plan, self._tier, work, group.folders if group else [])
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return Child(self._warm, plan, self.limits, group, self._renew)
            except (WarmDied, WarmUnable) as error:
                self._renew(self._warm)
                if attempt == ATTEMPTS or isinstance(error, WarmUnable):
                    raise _cannot_start(error) from None
        raise AssertionError("unreachable")

    def _renew(self, dead: Warm) -> None:
        """Replaces a warm process, unless that has been done."""
        dead.kill()
        if dead is self._warm and not self._closed:
            self._warm = self._start()


def prepare() -> None:
    """Begins to import what children need; returns at once.

    The sandboxes of this process, and of copies that are made of it, start in a moment then, if
    they preload nothing more.
    """
    warm_up(_settings(fork=True))


def _settings(fork: bool, preload: Sequence[str] = (), runner: Path | None = None) -> dict:
    """What a warm process has to import, and whether it forks."""
    modules = [
        ["course_runner", str(runner or RUNNER)],
        ["course_record", str(RECORD)],
        ["course_steps", str(STEPS)],
        ["course_edited", str(EDITED)],
        ["course_work", str(WORK)],
    ]
    return {
        "libraries": files.libraries(),
        "fork": fork,
        "preload": [*TORCH, *preload],
        "modules": [[name, path] for name, path in modules if os.path.exists(path)],
    }


def _cannot_start(error: Exception) -> ChildFailed:
    return ChildFailed(Failure.CANNOT_START, f"The sandbox can't start: {error}.")


def _choose(name: str, allow_weak: bool) -> Tier:
    if name not in ("auto", *TIERS):
        raise ValueError(f"tier is {name!r}; it is one of 'auto', {', '.join(map(repr, TIERS))}")
    offers = probe()
    if name != "auto":
        tier = next(t for t in offers if t.name == name)
        if not tier.available:
            reason = f"This machine can't isolate code by {name}: {tier.reason}."
            raise ChildFailed(Failure.CANNOT_START, reason)
        return tier
    best = next((t for t in offers if t.available), None)
    if best is None or (best.name == "limits" and not allow_weak):
        why = "; ".join(f"{t.name}: {t.reason}" for t in offers if not t.available)
        raise ChildFailed(
            Failure.CANNOT_START,
            f"This machine can't isolate other people's code ({why}). Grade on Linux, in WSL2 or in"
            " a Docker container run as root; or, for code you trust, ask for the tier 'limits'.",
        )
    return best
