"""The same work on the workers of a Dask scheduler: `--scheduler tcp://...`.

A worker needs this package and what it needs; the course's files are sent along, once to each
worker. A worker that ends costs no mark: Dask gives its work to another one.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from autograder.course.settings import CourseError
from autograder.many.dask_pool import Cluster, Unreachable
from autograder.versions import version

LEFT_OUT = {
    *("submitted", "autograded", "feedback", "release", "source", "build", "dist", "demo"),
    *("__pycache__", "node_modules", "gradebook.db", "notebooks", "tests"),
}
LARGEST = 200_000_000  # bytes of a course that is sent to every worker


@contextmanager
def cluster(address: str) -> Iterator[Callable]:
    """What does the work: the workers at a scheduler's address."""
    from autograder.course.course import Course

    course = Course.find()
    try:
        with Cluster(address) as dask:
            files = dask.everywhere(packed(course.folder))
            yield lambda pieces: dask.run(answer_there, pieces, files, version())
    except Unreachable as error:
        raise CourseError(str(error)) from None


def packed(folder: Path) -> bytes:
    """The course's files as a zip: no student's work, nothing hidden, nothing that is built."""
    data, total = io.BytesIO(), 0
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(folder):
            total += path.stat().st_size
            if total > LARGEST:
                raise CourseError(
                    f"The files of {folder} have more than {LARGEST // 1_000_000} MB: too many to "
                    "send to every worker. Keep data and models outside the course's folder."
                )
            archive.write(path, path.relative_to(folder).as_posix())
    return data.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    """All files to be sent, in order; a folder that is linked counts once."""
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        if os.path.realpath(place) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(place))
        folders[:] = sorted(f for f in folders if f not in LEFT_OUT and not f.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if name not in LEFT_OUT and not name.startswith(".") and path.is_file():
                yield path


def answer_there(job, files: bytes, wanted: str):
    """Does a job on a worker, with the course's files that were sent."""
    from autograder.grading.work import Done, answer

    if version() != wanted:
        return Done(
            unable=f"A worker has version {version()} of the grader and this machine {wanted}: "
            "install the same on both."
        )
    os.environ["AUTOGRADER_COURSE"] = _unpacked(files)
    return answer(job)


def _unpacked(files: bytes) -> str:
    return _folder(hashlib.sha256(files).hexdigest(), files)


@cache
def _folder(name: str, files: bytes) -> str:
    """A folder of this process's own, which goes when the process ends."""
    kept = tempfile.TemporaryDirectory(prefix="course-")
    _KEPT.append(kept)
    with zipfile.ZipFile(io.BytesIO(files)) as archive:
        archive.extractall(kept.name)
    return kept.name


_KEPT: list[tempfile.TemporaryDirectory] = []
