"""The trusted side's handle on a warm process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

PROGRAM = Path(__file__).parent / "inside" / "sandbox_warm.py"
START_SECONDS = 180  # importing torch from a cold disk
ANSWER_SECONDS = 60


class WarmDied(Exception):
    """The warm process is gone; the text says why, as far as is known."""


class WarmUnable(Exception):
    """The warm process can't do its work, and a new one couldn't either; the text says why."""


class Warm:
    """A running warm process. Every method raises WarmDied once it is gone."""

    def __init__(self, settings: dict):
        self._forks = settings["fork"]
        self._ready = False
        self._errors: IO[bytes] | None = None  # what it writes to stderr
        self.fresh: int | None = None  # bytes of memory that a child begins with, once measured
        template = _templates.get(json.dumps(settings))
        if template is not None and template.copy_into(self):
            return
        self._begin(settings)

    def _begin(self, settings: dict, kind: int = socket.SOCK_STREAM) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        # Without a name: it is gone with the last process that holds it, however that ends.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        one = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TMPDIR": tempfile.gettempdir(),
            "MPLBACKEND": "Agg",
            "HOME": os.path.expanduser("~"),  # for matplotlib's list of fonts; not the child's
            "HF_HUB_OFFLINE": "1",
            **dict.fromkeys(one, "1"),
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise WarmUnable(f"Python can't be started: {error}") from None
        finally:
            theirs.close()
        self._socket = ours
        self._send(settings, [])

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Returns when everything is imported. Raises WarmUnable if it can't be."""
        if not self._ready:
            answer = self._answer(START_SECONDS)
            if "error" in answer:
                raise WarmUnable(answer["error"])
            self._ready = True

    def spawn(self, plan: dict, descriptors: list[int]) -> dict:
        """Starts a child; the answer holds `pid`, or `error`, and `notes`."""
        self.wait_until_ready()
        self._send({"op": "spawn", "plan": plan}, descriptors)
        return self._answer(ANSWER_SECONDS)

    def end(self, pid: int) -> int | None:
        """Waits until a child, whose lifeline is closed, and all its family are gone.

        Returns its exit code; 128 and more for a signal. A warm process that does not fork is its
        own child, and ends here.
        """
        if not self._forks:
            self.wait(0.1)
            with contextlib.suppress(OSError):  # what it has started, also if it has ended itself
                os.killpg(self._process.pid, signal.SIGKILL)
            code = self._process.wait()
            return code if code >= 0 else 128 - code
        self._send({"op": "end", "pid": pid}, [])
        answer = self._answer(ANSWER_SECONDS)
        while "exit" not in answer:  # to a request before, that Ctrl-C left unread
            answer = self._answer(ANSWER_SECONDS)
        return answer["exit"]

    def wait(self, seconds: float) -> int | None:
        """The exit code, if the process itself ends in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Ends the process, politely if it listens; any number of times."""
        self._socket.close()
        if not self._ready or self.wait(2) is None:
            self.kill()
        else:
            self._forget()

    def kill(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._forget()

    def _forget(self) -> None:
        self._ready = False
        self._socket.close()
        if self._errors:
            self._errors.close()

    def _send(self, message: dict, descriptors: list[int]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            sent = socket.send_fds(self._socket, [data], descriptors)
            if data[sent:]:
                self._socket.sendall(data[sent:])
        except OSError as error:
            raise WarmDied(self._last_words() or str(error)) from None

    def _answer(self, seconds: float) -> dict:
        text, deadline = b"", time.monotonic() + seconds
        while not text.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            try:
                if not _readable(self._socket, left):
                    raise WarmDied(f"no answer within {seconds:g} s")
                piece = self._socket.recv(1 << 16)
            except OSError as error:
                raise WarmDied(str(error)) from None
            if not piece:
                raise WarmDied(self._last_words() or "it ended without a word")
            text += piece
        return json.loads(text)

    def _last_words(self) -> str:
        if self._errors is None or self._errors.closed:
            return ""
        # Read without moving the place that the process, which holds the same file, writes at.
        text = os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace")
        return (text.strip().splitlines() or [""])[-1]


class _Template(Warm):
    """A warm process that others are copied from, in this process and in copies of it."""

    def __init__(self, settings: dict):
        self._forks, self._ready = True, False
        self._begin({**settings, "copies": True}, socket.SOCK_SEQPACKET)

    def copy_into(self, other: Warm) -> bool:
        """Makes `other` a handle on a copy; False where this process has gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        other._socket = ours
        try:
            self._send({"op": "copy"}, [theirs.fileno()])
            theirs.close()  # so that its end is seen
            answer = other._answer(START_SECONDS)
            other._process = _Other(answer["pid"])
        except (WarmDied, OSError, KeyError):
            ours.close()
            return False
        finally:
            theirs.close()
        other._ready = True
        return True


class _Other:
    """A process that is not this one's own child, with what `Popen` offers for one that is."""

    def __init__(self, pid: int):
        self.pid, self._ended = pid, False
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """0 once it has ended: only its parent learns how."""
        if not self._ended and _readable(self._handle, 0):
            os.close(self._handle)
            self._ended = True
        return 0 if self._ended else None

    def wait(self, seconds: float | None = None) -> int:
        if self.poll() is None and not _readable(self._handle, seconds):
            raise subprocess.TimeoutExpired("warm process", seconds)
        return self.poll() or 0


_templates: dict[str, _Template] = {}  # by settings


def prepare(settings: dict) -> None:
    """Starts to import what warm processes with these settings need; returns at once.

    Those that this process starts from now on, and copies of this process, are forked from it:
    they take a moment and share their memory.
    """
    if settings["fork"] and hasattr(os, "pidfd_open"):
        with contextlib.suppress(WarmDied, WarmUnable):
            _templates[json.dumps(settings)] = _Template(settings)


def _readable(connection: socket.socket | int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
