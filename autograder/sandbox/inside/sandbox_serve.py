"""What the throw-away child does: answer requests, one at a time, until the connection closes."""

from __future__ import annotations

import builtins
import os
import random
import signal
import socket
import sys

import sandbox_wire as wire


def fresh_state(work: str, course: str, libraries: list[str], stdlib: list[str]) -> None:
    """As in a newly started interpreter: signals, environment, path, random numbers, streams."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment(work, course))
    sys.argv = [""]
    sys.path[:] = [course, *stdlib, *libraries]
    builtins.input = _no_input
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = _text(1)
    sys.stderr = sys.__stderr__ = _text(2)
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(random.getrandbits(32))
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()  # torch.seed() also looks for devices


def _text(descriptor: int):
    """A stream that shows each line at once and never fails for want of a character."""
    return os.fdopen(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def environment(work: str, course: str) -> dict[str, str]:
    one = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "HOME": work,
        "TMPDIR": work,
        "MPLCONFIGDIR": work,
        "MPLBACKEND": "Agg",
        "COURSE": course,
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "USER": "student",
        "LOGNAME": "student",
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(one, "1"),
    }


def _no_input(prompt: object = "") -> str:
    raise EOFError("input() has nobody to ask here")


def serve(connection: socket.socket, limits: dict, writable: list[str]) -> None:
    """Reads requests, lets the runner answer, writes replies; returns when the peer leaves.

    A `branch` is answered by a copy of this process, and so is all that comes until its `join`.
    writable: the folders in which code may write.
    """
    stream = connection.makefile("rb")
    runner = sys.modules["course_runner"].Runner()
    while prefix := stream.read(wire.LENGTHS.size):
        header_size, body_size = wire.lengths(prefix, limits["header"], limits["request"])
        envelope, tensors = wire.unpack(stream.read(header_size), stream.read(body_size))
        try:
            asked = envelope["header"]
            if asked["op"] == "branch":
                header, out = _branch(envelope, writable), {}
            elif asked["op"] == "join":
                sys.modules["sandbox_branch"].join()
            else:
                header, out = runner.handle(asked, tensors)
            _flush()
            frame = wire.pack({"id": envelope["id"], "header": header}, out)
        except BaseException as error:  # also SystemExit: the parent must hear of it
            _flush()
            what = f"{type(error).__name__}: {error}"[:500]
            frame = wire.pack({"id": envelope["id"], "error": what}, {})
        for piece in frame:
            connection.sendall(piece)


def _branch(envelope: dict, writable: list[str]) -> dict:
    """Makes a copy. It answers this request; its end is answered by this process, as `then`."""
    branches = sys.modules["sandbox_branch"]
    before = branches.traces(writable)
    _flush()
    if branches.fork():
        return {"branched": True}
    envelope["id"] = envelope["header"]["then"]
    return {"clean": branches.traces(writable) == before}


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # replaced or closed by the student
            continue
