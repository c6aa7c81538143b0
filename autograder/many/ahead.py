"""Work that runs ahead of who needs it: for a loop of somebody else's that asks one by one."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator

from autograder.many.pool import Failed, Piece, Pool


class Ahead:
    """The results of a pool's work, each to be taken once, in any order.

    pieces: all that there is to do, by key. most: how many results may wait to be taken, so that
    the memory does not fill. The work begins when the first result is asked for.
    """

    def __init__(self, pool: Pool, pieces: Iterable[Piece], keys: Iterable[Hashable], most: int):
        self._pool, self._pieces, self._most = pool, pieces, most
        self._open = set(keys)  # what has not come yet
        self._results: dict[Hashable, object] = {}
        self._change = threading.Condition()
        self._wanted = False
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def take(self, key: Hashable) -> object | None:
        """What came of a piece; None where there is none of that key, or it could not be done."""
        with self._change:
            if key not in self._open and key not in self._results:
                return None
            if not self._thread.ident:
                self._thread.start()
            self._wanted = True
            self._change.notify_all()
            self._change.wait_for(lambda: key in self._results or key not in self._open)
            self._wanted = False
            result = self._results.pop(key, None)
            self._change.notify_all()
        return None if isinstance(result, Failed) else result

    def close(self) -> None:
        """Stops the work; what was not taken is dropped."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._pool.close()
        if self._thread.ident:
            self._thread.join()

    def _work(self) -> None:
        try:
            for key, result in self._pool.run(self._limited()):
                with self._change:
                    self._open.discard(key)
                    self._results[key] = result
                    self._change.notify_all()
        except Exception:  # closed, or no process can be had: who asks does it alone
            pass
        finally:
            with self._change:
                self._open.clear()
                self._change.notify_all()

    def _limited(self) -> Iterator[Piece]:
        for piece in self._pieces:
            with self._change:
                # Who waits may wait for a piece that is done anew when all others are done.
                self._change.wait_for(
                    lambda: self._wanted or self._closed or len(self._results) < self._most
                )
                if self._closed:
                    return
            yield piece
