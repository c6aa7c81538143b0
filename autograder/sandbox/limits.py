"""What a child may use, and what is raised when it could not answer."""

from __future__ import annotations

import dataclasses

from .inside.sandbox_wire import Failure

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on one child. Sizes are in bytes, times in seconds.

    Memory and address space are counted beyond what a fresh child has: how much torch takes when it
    is imported depends on its build.

    What the child waits for a processor on a busy machine is added to its times, within reason
    (`child.PATIENCE`).
    """

    call_seconds: float = 10.0  # one request, unless it says otherwise
    child_seconds: float = 60.0  # all requests of one child together
    cpu_seconds: int = 20  # processor time, of each process
    memory: int = 2048 * MIB  # of all the child's processes together
    address_space: int = 4096 * MIB  # of each process
    processes: int = 64  # processes and threads
    disk: int = 64 * MIB  # the child's /tmp; each file at most this
    open_files: int = 256
    printed: int = 64 << 10  # kept of what is printed; the rest is read and dropped
    drained: int = 1024 * MIB  # printed in all, before the child is stopped
    header: int = 4 * MIB  # the JSON of one frame
    request: int = 1024 * MIB  # the tensors of one request
    reply: int = 64 * MIB  # the tensors of one reply


class ChildFailed(Exception):
    """The child gave no usable answer.

    reason: one sentence for the person whose code it was.
    """

    def __init__(self, kind: Failure, reason: str):
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
