"""Opens what was handed in: a folder, a zip, or one notebook; and says what lies in it.

Nothing is believed of names or of an archive's own figures, and nothing is unpacked: a path in a
zip is a text that may say who somebody is (see `who`), and a file is read when it is graded. No
link is followed. What is refused is said in one sentence each.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.intake.read import LARGEST_FILE, Unreadable, read_bytes, refuse_linked_folders
from autograder.intake.repair import clean

MOST_FILES = 200_000
DEEPEST = 8  # folders
LARGEST_RATIO = 200  # of a member's size to its size in the archive; notebooks reach about 30
SMALL = 1_000_000  # bytes; below this a ratio says nothing
ARCHIVE = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # as some browsers save it
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UTF8 = 0x800  # the bit of a member that says that its name is UTF-8

Taking = Callable[[int], bytes]


@dataclass(frozen=True)
class Entry:
    """One file or folder of what was handed in.

    parts: its path in the source. shown: the path as it is told: a member's in its zip, a file's
    where it lies. take: reads at most so many bytes, or raises `Unreadable`. changed: when, to be
    compared with other entries of the source only. problem: why it is not read; often empty.
    """

    parts: tuple[str, ...]
    shown: str
    take: Taking
    folder: bool = False
    changed: tuple = ()
    problem: str = ""

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def stem(self) -> str:
        """A notebook's name without what says that it is one."""
        return _NOTEBOOK.sub("", self.name)

    @property
    def notebook(self) -> bool:
        return not self.folder and bool(_NOTEBOOK.search(self.name[-20:]))

    def read(self, limit: int = LARGEST_FILE) -> bytes:
        """The file's bytes; raises `Unreadable`."""
        if self.problem:
            raise Unreadable(self.problem)
        return self.take(limit)


@contextmanager
def opened(source: Path) -> Iterator[tuple[list[Entry], list[str]]]:
    """The files and folders in `source`, by their paths, and why what is missing is missing."""
    source, refused = Path(source), []
    if source.is_dir():
        yield sorted(_in_folder(source, refused), key=_path), refused
    elif _NOTEBOOK.search(source.name) and source.exists():
        yield [Entry((source.name,), str(source), partial(_from_disk, source, None))], refused
    elif source.is_file() and zipfile.is_zipfile(source):
        try:
            archive = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            yield [], [f"{shown(source.name)} cannot be read as a zip ({error})."]
            return
        with archive:
            yield sorted(_in_zip(archive, refused), key=_path), refused
    elif source.exists():
        yield [], [f"{shown(source.name)} is neither a folder nor a zip nor a notebook."]
    else:
        yield [], [f"There is no {shown(str(source))}."]


def shown(name: str, longest: int = 100) -> str:
    """A name from outside that can be printed and stored: one line, nothing invisible."""
    short = name if len(name) <= longest else name[: longest - 3] + "..."
    short = short.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in short)


_LEADS_OUT = "Its path leads out of the archive."


def leads_out(entry: Entry) -> bool:
    """Whether a path is one that no honest archive holds."""
    return entry.problem == _LEADS_OUT


def _path(entry: Entry) -> tuple[str, ...]:
    return entry.parts


def _hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX"))


# --- a folder ------------------------------------------------------------------------------------
def _in_folder(root: Path, refused: list[str]) -> Iterator[Entry]:
    """Level by level, so that a heap of files deep in one student's folder hides nobody else."""
    level: list[tuple[Path, tuple[str, ...]]] = [(root, ())]
    seen = 0
    while level:
        below = []
        for folder, parts in level:
            try:
                found = sorted(os.scandir(folder), key=lambda item: item.name)
            except OSError as error:
                place = shown("/".join(parts) or str(root))
                refused.append(f"{place}: the folder cannot be read ({error.strerror}).")
                continue
            for item in found:
                if _hidden(item.name):
                    continue
                seen += 1
                if seen > MOST_FILES:
                    refused.append(f"There are more than {MOST_FILES} files; the rest is left.")
                    return
                try:
                    entry = _on_disk(item, (*parts, item.name), root)
                except OSError as error:  # gone, or not ours to look at
                    refused.append(f"{shown(item.name)} cannot be looked at ({error.strerror}).")
                    continue
                yield entry
                if entry.folder and not entry.problem:
                    below.append((Path(item.path), entry.parts))
        level = below


def _on_disk(item: os.DirEntry, parts: tuple[str, ...], root: Path) -> Entry:
    path = Path(item.path)
    folder, problem, changed = item.is_dir(follow_symlinks=False), "", ()
    if item.is_symlink():
        problem = "It is a link; links are not followed."
    elif folder:
        problem = "It lies too many folders deep." if len(parts) > DEEPEST else ""
    elif not item.is_file(follow_symlinks=False):
        problem = "It is not a regular file."
    else:
        changed = (os.lstat(path).st_mtime,)
    told = clean(os.fspath(path).encode("utf-8", "replace").decode("utf-8"))
    return Entry(parts, told, partial(_from_disk, path, root), folder, changed, problem)


def _from_disk(path: Path, root: Path | None, limit: int) -> bytes:
    if root is not None:
        refuse_linked_folders(path, root)
    return read_bytes(path, limit)


# --- a zip ---------------------------------------------------------------------------------------
def _in_zip(archive: zipfile.ZipFile, refused: list[str]) -> Iterator[Entry]:
    members = archive.infolist()
    if len(members) > MOST_FILES:
        refused.append(
            f"The zip has {len(members)} files; at most {MOST_FILES} are looked at. Unpack it, "
            "and give the folder with the submissions."
        )
        return
    for member in members:
        name = _name(member)
        parts = tuple(part for part in re.split(r"[/\\]", name) if part not in ("", "."))
        if not parts or any(_hidden(part) and part != ".." for part in parts):
            continue
        problem = _problem(member, name, parts)
        yield Entry(
            (*parts[:DEEPEST], parts[-1]) if len(parts) > DEEPEST else parts,
            clean(name),
            partial(_from_zip, archive, member),
            member.is_dir(),
            member.date_time,
            problem,
        )


def _name(member: zipfile.ZipInfo) -> str:
    """A member's name; where the zip does not say how it is written, UTF-8 is tried first."""
    if not member.flag_bits & _UTF8:
        try:
            return member.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return member.filename


def _problem(member: zipfile.ZipInfo, name: str, parts: tuple[str, ...]) -> str:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if name.startswith(("/", "\\")) or ".." in parts or re.match("[A-Za-z]:", name):
        return _LEADS_OUT
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "It is not a regular file."
    if len(parts) > DEEPEST:
        return "It lies too many folders deep."
    return ""


def _from_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    if member.file_size > limit:
        raise Unreadable(f"It has {member.file_size / 1e6:.0f} MB; at most {limit / 1e6:.0f} MB.")
    if member.file_size > SMALL and member.file_size > LARGEST_RATIO * member.compress_size:
        raise Unreadable("It is so much smaller in the archive that it cannot be a notebook.")
    if member.compress_type not in _PACKED:
        raise Unreadable("It is packed in a way that is not known.")
    try:
        with archive.open(member) as file:
            data = file.read(limit + 1)
    except RuntimeError:
        raise Unreadable("It is locked with a password.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
        raise Unreadable("It is damaged, or packed in a way that is not known.") from None
    if len(data) > limit:
        raise Unreadable(f"It has more than {limit / 1e6:.0f} MB.")
    return data
