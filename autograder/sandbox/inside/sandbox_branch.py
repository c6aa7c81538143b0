"""Copies of the child that answer in its place, one after the other, and leave nothing behind.

A child that has loaded no code of a student's forks for each question: the copy loads the code,
answers, and ends. What a process had in its memory ends with it. The folders that it may write to
are looked at when it has ended, and from outside the processes that there are (`child.branch`);
where anything is left, the child is used no more.
"""

from __future__ import annotations

import os
import signal

import sandbox_kernel as kernel

JOINED = 77  # the exit status of a copy that was told to end


def fork() -> bool:
    """Forks: True in the copy. In the child itself, False when the copy has ended as it was told.

    Where the copy ends in another way, the child ends in the same one.
    """
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # the copy may not look into this process
    copy = os.fork()
    if copy == 0:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        return True
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    if code == JOINED:
        return False
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


def join() -> None:
    """Ends a copy."""
    os._exit(JOINED)


def traces(folders: list[str]) -> list[tuple]:
    """What a copy could leave in the folders that it may write to: files, other modes and owners.

    Two such lists are equal where nothing was left.
    """
    facts = [(folder, os.stat(folder)) for folder in folders]
    return [(name, f.st_mode, f.st_uid, sorted(os.listdir(name))) for name, f in facts]
