"""One child for all questions of a submission, each asked in a branch of it.

To isolate a child takes longer than most questions do. So each is first asked in a branch: a copy
of a child that has run no code of a student's. A right answer counts. What is not right is asked
again in a child of its own, and only that counts: so nothing that an earlier question may have done
costs a later one anything, and nothing is right that was not right on numbers nobody had seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from .box import Sandbox
from .child import Child

MOST_LOST = 3  # children that may fail; then each question gets one of its own at once


class Shared:
    """A context manager; the child starts with the first question."""

    def __init__(self, box: Sandbox):
        self._box, self._stack = box, ExitStack()
        self._child: Child | None = None
        self._lost: list[str] = []  # the cells whose code a child did not survive

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_) -> None:
        self._close()

    def place(self, cell: str) -> Place | None:
        """Where to ask about a cell's code; None where that needs a child of its own at once."""
        gone = cell in self._lost or len(self._lost) >= MOST_LOST
        return Place(self, cell) if self._box.branches and not gone else None

    @contextmanager
    def branch(self, cell: str) -> Iterator[Child]:
        """A branch for a cell's code, used as a child is."""
        if self._child is None:
            self._child = self._stack.enter_context(self._box.child())
        try:
            with self._child.branch() as branch:
                yield branch
        finally:
            if not self._child.clean:
                self._lost.append(cell)
                self._close()

    def _close(self) -> None:
        self._child = None
        self._stack.close()


@dataclass(frozen=True)
class Place:
    """Stands where a sandbox does, for the code of one cell."""

    shared: Shared
    cell: str

    def child(self) -> AbstractContextManager[Child]:
        return self.shared.branch(self.cell)
