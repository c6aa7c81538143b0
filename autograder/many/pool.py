"""Processes of this machine that share one list of pieces of work.

    with Pool(work, jobs=2, preload=["a.module"]) as pool:
        for key, result in pool.run({"a": 1, "b": 2}.items()):
            ...

The processes are copies of one that has imported what they need. One that ends is replaced, and
its piece is done once more, alone, when all others are done; a piece that then ends its process
again is given back as `Failed`. Processes end with the one that started them, however that ends.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait

Piece = tuple[Hashable, object]
LAST_SECONDS = 10  # for a process to close what it has open
AHEAD = 2  # pieces that a process has at once, so that it never waits for the next one


@dataclass(frozen=True)
class Failed:
    """A piece that could not be done; the text says why, for who keeps the program."""

    why: str


class Pool:
    """Some processes, started when they are first needed."""

    def __init__(self, work: Callable, jobs: int, preload: Iterable[str] = ()):
        self._work, self._jobs = work, max(1, jobs)
        self._context = multiprocessing.get_context(_kind())
        if hasattr(self._context, "set_forkserver_preload"):
            self._context.set_forkserver_preload(list(preload))
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def prepare(self) -> None:
        """Begins to import what the processes need; returns at once."""
        if self._context.get_start_method() == "forkserver":
            forkserver.ensure_running()

    def _start(self) -> None:
        while len(self._workers) < self._jobs:
            self._workers.append(_Worker(self._context, self._work))

    def run(
        self, pieces: Iterable[Piece], again: Callable[[object], bool] = lambda result: False
    ) -> Iterator[tuple[Hashable, object]]:
        """Each piece's key and what came of it, as they are finished.

        pieces: taken one by one, as processes are free. again: whether a result is to be had once
        more, alone, at the end; what came of that counts.
        """
        pieces, alone = iter(pieces), []
        first = next(pieces, None)
        if first is None:
            return  # and no process is waited for
        self._start()
        pieces, more = itertools.chain([first], pieces), True
        while True:
            while more and (free := self._free()):
                piece = next(pieces, None)
                if piece is None:
                    more = False
                else:
                    free.give(piece)
            busy = [worker for worker in self._workers if worker.has]
            if not busy:
                break
            for piece, result in self._finished(busy):
                if result is None or again(result):
                    alone.append((piece, result))
                else:
                    yield piece[0], result
        for piece, result in alone:
            yield piece[0], self._alone(piece, result)

    def close(self) -> None:
        """Ends all processes, also those that are at work."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def _free(self) -> _Worker | None:
        worker = min(self._workers, key=lambda w: len(w.has))
        return worker if len(worker.has) < AHEAD else None

    def _finished(self, busy: list[_Worker]) -> Iterator[tuple[Piece, object]]:
        """What came back; None in the place of a result where its process has ended."""
        ready = wait([worker.connection for worker in busy])
        for worker in [worker for worker in busy if worker.connection in ready]:
            try:
                result = worker.take()
            except (EOFError, OSError):
                first, *others = worker.has
                self._replace(worker)
                for piece in others:  # it had not begun with these
                    min(self._workers, key=lambda w: len(w.has)).give(piece)
                yield first, None
            else:
                yield worker.has.pop(0), result

    def _alone(self, piece: Piece, first: object) -> object:
        worker = self._workers[0]
        worker.give(piece)
        try:
            result = worker.take()
            worker.has.clear()
        except (EOFError, OSError):
            self._replace(worker)
            return first if first is not None else Failed("its process ended twice")
        return result

    def _replace(self, worker: _Worker) -> None:
        place = self._workers.index(worker)
        worker.close()
        self._workers[place] = _Worker(self._context, self._work)


class _Worker:
    """One process. has: the pieces that it was given, in order."""

    def __init__(self, context, work: Callable):
        self._open = threading.Lock()  # taken once, by who closes it
        self.connection, theirs = context.Pipe()
        self.has: list[Piece] = []
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=False)
        self._process.start()
        theirs.close()

    def give(self, piece: Piece) -> None:
        self.has.append(piece)
        with contextlib.suppress(OSError):  # it has ended: who waits for its answer is told
            self.connection.send(piece[1])

    def take(self) -> object:
        return self.connection.recv()

    def close(self) -> None:
        """Ends the process: one that waits ends by itself, one that works is stopped.

        A pool may be closed by one thread while another finds the process gone: the first does it.
        """
        if not self._open.acquire(blocking=False):
            return
        self.connection.close()
        self._process.join(0 if self.has else LAST_SECONDS)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(LAST_SECONDS)
        self._process.close()


def _kind() -> str:
    """A fork server where there is one: what it has imported is imported once."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def _serve(connection: Connection, work: Callable) -> None:
    """Does one piece after the other until nobody asks for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who gave the work says when to stop
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is open gets closed
    given: queue.SimpleQueue = queue.SimpleQueue()
    busy = threading.Event()
    threading.Thread(target=_listen, args=(connection, given, busy), daemon=True).start()
    while (piece := given.get()) is not None:
        busy.set()
        try:
            result = work(piece[0])
        except Exception:  # a fault of ours; the next piece is done all the same
            result = Failed(traceback.format_exc())
        try:
            connection.send(result)
        except OSError:
            return
        busy.clear()


def _listen(connection: Connection, given: queue.SimpleQueue, busy: threading.Event) -> None:
    """Takes what is sent, so that the sender never waits; notices when the sender has ended."""
    while True:
        try:
            given.put((connection.recv(),))
        except (EOFError, OSError):
            given.put(None)
            if busy.is_set():
                os.kill(os.getpid(), signal.SIGTERM)
            return
