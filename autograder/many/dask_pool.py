"""The workers of a Dask scheduler, as a pool: pieces of work in, results out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from autograder.many.pool import Failed, Piece

TIMEOUT = "30s"  # for a scheduler to answer
AHEAD = 3  # pieces for each thread of the workers that lie at the scheduler
RETRIES = 5  # of a piece whose worker ended


class Unreachable(Exception):
    """There is no such scheduler, or it has no workers; the text says what to do."""


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, address: str):
        try:
            from distributed import Client
        except ImportError:
            raise Unreachable(
                "Dask is not installed. `pip install distributed` here and on the workers does it."
            ) from None
        try:
            self._client = Client(address, timeout=TIMEOUT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise Unreachable(f"No Dask scheduler answers at {address} ({error}).") from None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_) -> None:
        self._client.close()

    def everywhere(self, data: object) -> object:
        """Data that every worker gets once."""
        if not self._client.scheduler_info()["workers"]:
            self._client.close()
            raise Unreachable("The Dask scheduler has no workers: start some first.")
        return self._client.scatter(data, broadcast=True, hash=True)

    def run(
        self, work: Callable, pieces: Iterable[Piece], *shared: object
    ) -> Iterator[tuple[Hashable, object]]:
        """Each piece's key and what came of it, as they are finished."""
        from distributed import as_completed

        pieces, keys = iter(pieces), {}
        running = as_completed([], loop=self._client.loop, raise_errors=False)
        more = True
        while True:
            while more and len(keys) < self._most():
                piece = next(pieces, None)
                if piece is None:
                    more = False
                    break
                key, job = piece
                future = self._client.submit(work, job, *shared, pure=False, retries=RETRIES)
                keys[future.key] = key
                running.add(future)
            if not keys:
                return
            future = next(running)
            key = keys.pop(future.key)
            if future.status == "finished":
                yield key, future.result()
            else:
                yield key, Failed(str(future.exception() or future.status))
            future.release()

    def _most(self) -> int:
        workers = self._client.scheduler_info()["workers"].values()
        return AHEAD * max(1, sum(w["nthreads"] for w in workers))
