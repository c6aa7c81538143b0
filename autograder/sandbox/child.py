"""One throw-away child, seen from the trusted side."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .family import family, processor_seconds, waiting_seconds
from .inside import sandbox_wire as wire
from .inside.sandbox_wire import Failure
from .limits import MIB, ChildFailed, Limits
from .memory import ControlGroup, family_memory
from .warm import Warm, WarmDied

WATCH_SECONDS = 0.1
PATIENCE = 5  # times its limit that a call may take where the machine has no processor for it
REAPER_SECONDS = 10
LAST_WORDS_SECONDS = 5  # an end takes a moment, and several on a busy machine
CRASHES = {
    "SIGSEGV": "crashed the interpreter (segmentation fault)",
    "SIGBUS": "crashed the interpreter (bus error)",
    "SIGABRT": "aborted the interpreter",
    "SIGFPE": "crashed the interpreter (arithmetic error)",
    "SIGILL": "crashed the interpreter (illegal instruction)",
    "SIGSYS": "made a system call that is not allowed here",
}


class Child:
    """Answers requests, one at a time, until it fails; then every request fails the same way."""

    def __init__(
        self, warm: Warm, plan: dict, limits: Limits, group: ControlGroup | None, renew: Callable
    ):
        self._warm, self._limits, self._group, self._renew = warm, limits, group, renew
        self._plan = plan
        self._failure: ChildFailed | None = None
        self.clean = True  # whether what it was asked so far left no traces (see `branch`)
        self._printed = bytearray()
        self._drained = 0
        self._watched = time.monotonic()
        self._ended = False
        self._exit: int | None = None
        self._process = -1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._output, writer = os.pipe()
        lifeline, self._hold = os.pipe()
        self._socket = ours
        try:
            answer = warm.spawn(plan, [theirs.fileno(), writer, lifeline])
        except BaseException:
            self._close_descriptors()
            raise
        finally:
            theirs.close()
            os.close(writer)
            os.close(lifeline)
        self._pid = answer.get("pid")
        with contextlib.suppress(OSError, AttributeError, TypeError):  # gone, or not Linux
            self._process = os.pidfd_open(self._pid)
        self._until = self._deadline = time.monotonic() + limits.child_seconds
        self._added = self._added_before = 0.0
        if not answer.get("ready"):
            self.close()
            reason = f"The sandbox can't start a child: {answer.get('error', 'no answer')}."
            raise ChildFailed(Failure.CANNOT_START, reason)
        if not self._capped and warm.fresh is None:
            warm.fresh = family_memory(self._pid)
        ours.setblocking(False)
        os.set_blocking(self._output, False)

    @property
    def printed(self) -> str:
        """What the child has written to stdout and stderr, up to `Limits.printed` bytes."""
        if not self._ended:
            self._drain()
        return self._printed.decode("utf-8", errors="replace")

    @property
    def _capped(self) -> bool:
        """Whether the kernel caps the memory; it counts only what the child takes itself."""
        return self._group is not None and self._group.caps_memory

    @property
    def pressed(self) -> bool:
        """Whether it failed where the machine may be the cause, not the code.

        It waited for a processor half as long as a call may take, or was killed by nobody of ours.
        """
        if self._failure is None:
            return False
        waited = self._added > self._limits.call_seconds / 2
        killed = self._failure.kind == "died" and self._exit == 128 + signal.SIGKILL
        return killed or (self._failure.kind == "timed out" and waited)

    def request(self, header: dict, tensors: dict, *, seconds: float | None = None):
        """Sends a header and tensors; returns those of the reply.

        Raises ChildFailed if no usable reply comes within `seconds` (default:
        `Limits.call_seconds`), and at once if this child has failed before.
        """
        return self._request(header, tensors, seconds, secrets.token_hex(16))

    @contextlib.contextmanager
    def branch(self) -> Iterator[Child]:
        """Inside the block, a copy of the child answers; its memory is gone with it.

        The child must not have run any code of a student's. A copy may use as much time as a child.
        Afterwards `clean` says whether it left nothing that a later one could find: no file, as the
        child sees it, and no process, as this side does. What goes wrong ends the child.
        """
        self.clean = False
        then = secrets.token_hex(16)
        before = _children(self._pid)
        self._deadline = time.monotonic() + self._limits.child_seconds
        try:
            self.request({"op": "branch", "then": then}, {})
            yield self
            header, _ = self._request({"op": "join"}, {}, None, then)
        except BaseException:
            self._end()
            raise
        # Who gave that answer was the child, where it is the only process that there is.
        alone = len(before) == 1 and _children(self._pid) == before and not _children(*before)
        self.clean = alone and header.get("clean") is True

    def close(self) -> None:
        """Ends the child and all its processes."""
        self._end()

    # --- one exchange ----------------------------------------------------------------------------
    def _request(self, header: dict, tensors: dict, seconds: float | None, identity: str):
        if self._failure:
            raise self._failure
        seconds = self._limits.call_seconds if seconds is None else seconds
        frame = wire.pack({"id": identity, "header": header}, tensors)
        try:
            return self._exchange(frame, identity, seconds)
        except ChildFailed as failure:
            self._failure = failure
            self._end()
            raise

    def _exchange(self, frame: list[bytes], identity: str, seconds: float):
        self._until = min(time.monotonic() + seconds, self._deadline)
        self._added_before = self._added
        if waiting := self._peek():
            raise ChildFailed(Failure.BAD_REPLY, "Your code sent an answer before it was asked.")
        if waiting is not None:
            raise self._died()
        for piece in frame:
            self._write(piece, seconds)
        prefix = self._read(wire.LENGTHS.size, seconds)
        try:
            sizes = wire.lengths(prefix, self._limits.header, self._limits.reply)
        except wire.TooLarge:
            limit = self._limits.reply // MIB
            reason = f"Your code's answer is too large; {limit} MiB are allowed."
            raise ChildFailed(Failure.TOO_MUCH_OUTPUT, reason) from None
        text, body = (self._read(size, seconds) for size in sizes)
        return self._open(text, body, identity)

    def _open(self, text: bytes, body: bytes, identity: str):
        try:
            envelope, tensors = wire.unpack(text, body)
        except wire.BadFrame as error:
            raise ChildFailed(
                Failure.BAD_REPLY, f"Your code's answer can't be read: {error}."
            ) from None
        if envelope.get("id") != identity:
            raise ChildFailed(
                Failure.BAD_REPLY, "Your code answered a question that was not asked."
            )
        if "error" in envelope:
            what = _plain(envelope["error"])
            reason = f"Your code left Python in a state that gives no answer: {what}."
            raise ChildFailed(Failure.BAD_REPLY, reason)
        if type(envelope.get("header")) is not dict:
            raise ChildFailed(Failure.BAD_REPLY, "Your code's answer has no header.")
        return envelope["header"], tensors

    def _read(self, size: int, seconds: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(select.POLLIN, seconds)
            try:
                piece = self._socket.recv(min(size - len(data), 1 << 20))
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._died()
            data += piece
        return bytes(data)

    def _write(self, data: bytes, seconds: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(select.POLLOUT, seconds)
            try:
                view = view[self._socket.send(view[: 1 << 20]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._died() from None

    def _wait(self, event: int, seconds: float) -> None:
        """Returns when the connection is ready; meanwhile reads output and watches the memory."""
        poll = select.poll()
        poll.register(self._socket, event)
        poll.register(self._output, select.POLLIN)
        while True:
            left = self._until - time.monotonic()
            if left <= 0:
                left = self._more_time(seconds)
            if left <= 0:
                reason = f"Your code did not return within {seconds:g} s."
                if self._until >= self._deadline:
                    limit = self._limits.child_seconds
                    reason = f"Your code did not finish within {limit:g} s in all."
                raise ChildFailed(Failure.TIMED_OUT, reason)
            ready = dict(poll.poll(min(left, WATCH_SECONDS) * 1000))
            if self._output in ready and not self._drain():
                poll.unregister(self._output)
            if self._drained > self._limits.drained:
                limit = self._limits.drained // MIB
                raise ChildFailed(
                    Failure.TOO_MUCH_OUTPUT, f"Your code printed more than {limit} MiB."
                )
            if time.monotonic() - self._watched > WATCH_SECONDS:
                self._watch()
                self._watched = time.monotonic()
            if self._socket.fileno() in ready:
                return

    def _more_time(self, seconds: float) -> float:
        """Adds the time in which the child was ready to run and the machine had no processor.

        On a busy machine a right answer must not fail for want of time. None is added once all the
        child's processes have had the processor as long as one may.
        """
        pids = family(self._pid)
        if processor_seconds(pids) >= self._limits.cpu_seconds:
            return 0.0
        most = (PATIENCE - 1) * seconds - (self._added - self._added_before)
        more = min(waiting_seconds(pids) - self._added, most)
        if more < WATCH_SECONDS:
            return 0.0
        at_the_end = self._until >= self._deadline
        self._added += more
        self._deadline += more
        self._until = self._deadline if at_the_end else self._until + more
        return self._until - time.monotonic()

    def _watch(self) -> None:
        """Where the kernel does not cap memory and disk, this does."""
        limits = self._limits
        if not self._capped and family_memory(self._pid) - self._warm.fresh > limits.memory:
            raise self._out_of_memory()
        on_disk = self._plan["tier"] != "namespaces"
        if on_disk and _size(self._plan["work"], limits.disk) > limits.disk:
            reason = f"Your code wrote more than {limits.disk // MIB} MiB of files."
            raise ChildFailed(Failure.TOO_MUCH_OUTPUT, reason)

    # --- the end ---------------------------------------------------------------------------------
    def _died(self) -> ChildFailed:
        ended = _wait_for(self._process, LAST_WORDS_SECONDS)  # for the reaper to say how
        self._end()
        if self._capped and self._group.ran_out():
            return self._out_of_memory()
        code = self._exit
        if not ended:
            return ChildFailed(
                Failure.DIED, "Your code closed the connection that its answers take."
            )
        if code is None:
            return ChildFailed(Failure.DIED, "Your code ended the Python process it ran in.")
        name = _signal_name(code - 128)
        if name == "SIGXCPU":
            limit = self._limits.cpu_seconds
            reason = f"Your code used more than {limit} s of processor time."
            return ChildFailed(Failure.TIMED_OUT, reason)
        if name in CRASHES:
            return ChildFailed(Failure.DIED, f"Your code {CRASHES[name]}.")
        if name:
            return ChildFailed(Failure.DIED, f"Your code's process was killed ({name}).")
        return ChildFailed(
            Failure.DIED, f"Your code ended the Python process it ran in (exit {code})."
        )

    def _out_of_memory(self) -> ChildFailed:
        limit = self._limits.memory // MIB
        return ChildFailed(Failure.MEMORY, f"Your code used more than {limit} MiB of memory.")

    def _peek(self) -> bytes | None:
        """What has come unasked: bytes, none at all at the end of the connection, or None."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _drain(self) -> bool:
        """Reads what there is of the output; False when nobody can write any more."""
        for _ in range(64):
            try:
                piece = os.read(self._output, 1 << 16)
            except BlockingIOError:
                return True
            if not piece:
                return False
            self._drained += len(piece)
            self._printed += piece[: max(0, self._limits.printed - len(self._printed))]
        return True

    def _end(self) -> None:
        """Closes the lifeline, waits for every process of the child, keeps what it printed."""
        if self._ended:
            return
        self._ended = True
        os.close(self._hold)
        self._hold = -1
        self._socket.close()
        if self._pid is not None:
            try:
                self._exit = self._warm.end(self._pid)
            except WarmDied:
                _wait_for(self._process, REAPER_SECONDS)
                self._renew(self._warm)
        with contextlib.suppress(OSError):
            os.set_blocking(self._output, False)
            self._drain()
        self._close_descriptors()

    def _close_descriptors(self) -> None:
        self._socket.close()
        for descriptor in (self._output, self._hold, self._process):
            if descriptor >= 0:
                os.close(descriptor)
        self._output = self._hold = self._process = -1


def _signal_name(number: int) -> str:
    """Such as "SIGSEGV"; empty for what is no signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _plain(text: object) -> str:
    """One printable line, for a text that the child wrote."""
    line = " ".join(str(text)[:500].split())
    return "".join(c if c.isprintable() else "?" for c in line)


def _children(pid: int) -> list[int]:
    """The processes that a process has started or taken over; none where the kernel says nothing.

    Each of them has one thread that could have started others.
    """
    with contextlib.suppress(OSError):
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _wait_for(process: int, seconds: float) -> bool:
    """Waits for a reaper to end by itself; whether it did, as far as can be seen."""
    if process < 0:
        return True
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _size(folder: str, enough: int) -> int:
    """Bytes below a folder (4 KiB at least for each entry), counted no further than `enough`."""
    total, queue = 0, [folder]
    while queue and total <= enough:
        with contextlib.suppress(OSError):
            for entry in os.scandir(queue.pop()):
                with contextlib.suppress(OSError):
                    total += max(4096, entry.stat(follow_symlinks=False).st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
    return total
