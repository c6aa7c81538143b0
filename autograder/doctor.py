"""`autograder doctor`: what this machine offers, whether its wall holds, and what is to be done."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autograder.sandbox import ChildFailed, Failure, Limits, Sandbox, Tier, probe

PACKAGES = ("torch", "transformers", "jupyterlab", "nbgrader", "nbformat", "ipython", "matplotlib")
LINUX = ("landlock", "pyseccomp")
SECONDS = 8.0  # for one program of the self-test; it starts in a fraction of one


@dataclass(frozen=True)
class Test:
    """One program that a student might hand in, and what has to become of it."""

    name: str
    passed: bool
    said: str = ""


def doctor(console: Console) -> int:
    """Prints what was found; 0 where other people's code can be graded here, else 1."""
    tiers = probe()
    best = next(tier for tier in tiers if tier.available)
    tests = [*self_test(best.name), *_course()]
    _versions(console)
    _tiers(console, tiers)
    _tests(console, best, tests)
    todo = [*advice(tiers, sys.platform), *_missing()]
    todo += ["The self-test failed: please report this with all that is printed above."] * (
        not all(t.passed for t in tests)
    )
    console.print()
    for line in todo or ["All is well: nothing to do."]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0 if best.name != "limits" and all(t.passed for t in tests) else 1


def advice(tiers: tuple[Tier, ...], system: str) -> list[str]:
    """What to do for a stronger isolation; empty where the strongest is there."""
    namespaces, landlock, _ = tiers
    if namespaces.available:
        return []
    if not system.startswith("linux"):
        where = "WSL2 or Docker" if system.startswith("win") else "Docker or a Linux machine"
        return [f"To grade other people's code, use {where}: only Linux can hold it."]
    said = [
        f"Namespaces are not to be had: {namespaces.reason}. In a container, start it with "
        "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined`, or as root with "
        "`--cap-add SYS_ADMIN`. On Ubuntu 24.04 and later, `sudo sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0` allows them; on others, `sudo sysctl "
        "user.max_user_namespaces=10000`."
    ]
    if not landlock.available:
        said.append(
            f"Landlock is not to be had: {landlock.reason}. It needs Linux 5.13 or newer with "
            "`landlock` in /sys/kernel/security/lsm, and `pip install landlock pyseccomp`."
        )
    return said


def self_test(tier: str) -> Iterator[Test]:
    """Runs small programs behind the wall, as if students had handed them in."""
    with tempfile.TemporaryDirectory(prefix="autograder-doctor-") as name:
        course, secret = Path(name, "course"), Path(name, "secret.txt")
        course.mkdir()
        secret.write_text("secret", encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            limits = Limits(child_seconds=SECONDS)
            try:
                with Sandbox(course, tier=tier, limits=limits) as box:
                    yield _runs(box, "a right program runs", "import torch\ntorch.ones(2) + 1")
                    if tier != "limits":
                        yield _fails(
                            box, "a file outside cannot be read", f"open({str(secret)!r}).read()"
                        )
                        yield _fails(
                            box,
                            "the network cannot be reached",
                            "import socket\n"
                            f"socket.create_connection(('127.0.0.1', {port}), timeout=2)",
                        )
                    yield _stops(box, "a program that never ends is stopped", "while True: pass")
            except ChildFailed as failed:
                yield Test("the sandbox starts", False, failed.reason)


def _run(box: Sandbox, source: str, seconds: float = SECONDS) -> str:
    """The type of the error that ended a program; empty where it ran to its end."""
    with box.child() as child:
        cells = [{"id": "doctor", "source": source}]
        header, _ = child.request({"op": "load", "cells": cells}, {}, seconds=seconds)
    (error,) = header["errors"]
    return error["type"] if error else ""


def _runs(box: Sandbox, name: str, source: str) -> Test:
    error = _run(box, source)
    return Test(name, not error, error)


def _fails(box: Sandbox, name: str, source: str) -> Test:
    error = _run(box, source)
    return Test(name, bool(error), error or "it could")


def _stops(box: Sandbox, name: str, source: str) -> Test:
    try:
        _run(box, source, seconds=1.0)
    except ChildFailed as failed:
        return Test(name, failed.kind == Failure.TIMED_OUT, str(failed.kind))
    return Test(name, False, "it ended")


def _course() -> Iterator[Test]:
    """Whether the course in this folder, if there is one, holds together."""
    from autograder.course.course import Course
    from autograder.course.settings import CourseError, NoCourse

    try:
        course = Course.find()
        course.check()
    except NoCourse:
        yield Test("no course in this folder: the engine alone was looked at", True)
        return
    except CourseError as error:
        yield Test("the course holds together", False, str(error))
        return
    counts = f"{len(course.lessons)} lessons, {len(course.exercises)} exercises"
    yield Test(f"the course {course.settings.id} holds together: {counts}", True)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def version() -> str:
    """Of the package that this engine was installed from, whatever it is called."""
    packages = importlib.metadata.packages_distributions().get("autograder", [])
    return _installed(packages[0]) or "?" if packages else "(not installed)"


def _missing() -> list[str]:
    wanted = (*PACKAGES, *LINUX) if sys.platform.startswith("linux") else PACKAGES
    return [f"{name} is missing: `pip install {name}`." for name in wanted if not _installed(name)]


def _versions(console: Console) -> None:
    system = f"Python {platform.python_version()}, {platform.platform(terse=True)}"
    console.print(f"autograder {version()}, {system}", highlight=False)
    found = (f"{name} {_installed(name)}" for name in (*PACKAGES, *LINUX) if _installed(name))
    console.print(", ".join(found), highlight=False, soft_wrap=True)


def _tiers(console: Console, tiers: tuple[Tier, ...]) -> None:
    table = Table("isolation", "offered", "notes", title_justify="left", box=None, pad_edge=False)
    for tier in tiers:
        table.add_row(tier.name, "yes" if tier.available else "no", tier.reason)
    console.print()
    console.print(table)


def _tests(console: Console, best: Tier, tests: list[Test]) -> None:
    console.print(f"\nself-test, isolation: {best.name}", highlight=False)
    for test in tests:
        word = "ok    " if test.passed else "FAILED"
        said = f" ({test.said})" if test.said and not test.passed else ""
        console.print(f"  {word} {test.name}{said}", highlight=False, markup=False, soft_wrap=True)
