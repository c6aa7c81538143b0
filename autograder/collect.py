"""Finds what students handed in: a folder of notebooks, nbgrader's `submitted/` tree, or a zip.

Nothing is believed of names or of an archive's own figures. Only regular files are taken, no
links; out of an archive only notebooks are copied, each under a name of ours, with caps on their
number, size and ratio. What is refused is said in one sentence each.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath

from autograder.intake import LARGEST_FILE, Unreadable

MOST_FILES = 20_000
DEEPEST = 8  # folders
MOST_BYTES = 2_000_000_000  # all notebooks of an archive together
LARGEST_RATIO = 200  # of a member's size to its size in the archive; notebooks reach about 30
SMALL = 1_000_000  # bytes; below this a ratio says nothing
_ARCHIVE = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # as some browsers save it
_LESSON = re.compile(r"\d\d_\w+", re.ASCII)
# Canvas: 'doejane_LATE_1234_56789_05_homework-1.ipynb'
_CANVAS = re.compile(r"(?P<student>[^_]+?)(?P<late>_LATE)?_\d+_\d+_(?P<rest>.+)", re.IGNORECASE)
# Moodle: 'Jane Doe_1234567_assignsubmission_file_/05_homework.ipynb'
_MOODLE = re.compile(r"(?P<student>.+?)_(?P<number>\d+)_assignsubmission_.*", re.IGNORECASE)
# Blackboard: 'Assignment_jdoe_attempt_2024-01-31-12-00-00_05_homework.ipynb'
_BLACKBOARD = re.compile(r".+?_(?P<student>[^_]+)_attempt_[\d-]+_?(?P<rest>.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """One notebook and whose it is.

    student: a name without path parts or control characters; no two students get the same one.
    lesson: the name of the lesson's folder, where the tree says it. note: what is worth knowing,
    such as 'late'; often empty.
    """

    student: str
    path: Path
    lesson: str | None
    note: str


def collect(source: Path, work: Path) -> tuple[list[Found], list[str]]:
    """All notebooks under `source` (a folder, an archive or one notebook), and what was refused.

    work: a folder of ours, into which the notebooks of an archive are copied. Notebooks come in
    the order of their names.
    """
    source, work = Path(source), Path(work)
    refused: list[str] = []
    if source.is_dir():
        files = list(_files(source, refused))
    elif _NOTEBOOK.search(source.name):
        files = [(PurePosixPath(source.name), source)]
    elif source.is_file() and zipfile.is_zipfile(source):
        files = _unpacked(source, work, refused)
    elif source.exists():
        return [], [f"{shown(source.name)} is neither a folder nor a zip nor a notebook."]
    else:
        return [], [f"There is no {shown(str(source))}."]
    files = [(parts, path) for parts, path in _below_wrapper(files) if _regular(path, refused)]
    return _unlike_names(_one_a_lesson(files, refused)), refused


def shown(name: str, longest: int = 100) -> str:
    """A name from outside that can be printed and stored: one line, nothing invisible."""
    name = name.encode("utf-8", "replace").decode("utf-8")
    name = "".join(c if c.isprintable() else "?" for c in name)
    return name if len(name) <= longest else name[: longest - 3] + "..."


def _files(root: Path, refused: list[str]) -> Iterator[tuple[PurePosixPath, Path]]:
    """Regular notebook files below a folder, by their path in it; follows no links."""
    waiting, seen = [(root, 0)], 0
    found: list[tuple[PurePosixPath, Path]] = []
    leaves: list[PurePosixPath] = []  # folders without folders
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            refused.append(f"{shown(folder.name)}: the folder cannot be read ({error.strerror}).")
            continue
        if depth and not any(entry.is_dir(follow_symlinks=False) for entry in entries):
            leaves.append(PurePosixPath(*folder.relative_to(root).parts))
        for entry in entries:
            seen += 1
            if seen > MOST_FILES:
                refused.append(f"The folder has more than {MOST_FILES} files; the rest is left.")
                waiting.clear()
                break
            path = Path(entry.path)
            inside = PurePosixPath(*path.relative_to(root).parts)
            if _hidden(entry.name):
                continue
            if entry.is_symlink():
                refused.append(f"{shown(str(inside))}: a link; links are not followed.")
            elif entry.is_dir(follow_symlinks=False):
                if depth < DEEPEST:
                    waiting.append((path, depth + 1))
                else:
                    refused.append(f"{shown(str(inside))}: too many folders deep.")
            elif _NOTEBOOK.search(entry.name):
                if entry.is_file(follow_symlinks=False):
                    found.append((inside, path))
                else:
                    refused.append(f"{shown(str(inside))}: not a regular file.")
    for folder in sorted(leaves):
        if folder not in {inside.parent for inside, _ in found}:
            refused.append(f"{shown(str(folder))}: holds no notebook.")
    yield from sorted(found)


def _hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX"))


def _unpacked(archive: Path, work: Path, refused: list[str]) -> list[tuple[PurePosixPath, Path]]:
    """Copies the notebooks of a zip into `work`, each in a folder of its own."""
    found: list[tuple[PurePosixPath, Path]] = []
    room = MOST_BYTES
    work.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            if len(members) > MOST_FILES:
                return _refuse(refused, f"The zip has {len(members)} files; at most {MOST_FILES}.")
            for number, member in enumerate(members):
                if member.is_dir():
                    continue
                name = member.filename
                try:
                    inside = _inside(member)
                    if inside is None:
                        continue
                    data = _content(opened, member, min(LARGEST_FILE, room))
                    room -= len(data)
                    folder = tempfile.mkdtemp(prefix=f"{number:05d}-", dir=work)
                    path = Path(folder) / _file_name(inside.name)
                    with open(path, "xb") as file:
                        file.write(data)
                except Unreadable as error:
                    refused.append(f"{shown(name)}: {error}")
                else:
                    found.append((inside, path))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        return _refuse(refused, f"{shown(archive.name)} cannot be read as a zip ({error}).", found)
    return sorted(found)


def _refuse(refused: list[str], sentence: str, found: list | None = None) -> list:
    refused.append(sentence)
    return sorted(found or [])


def _inside(member: zipfile.ZipInfo) -> PurePosixPath | None:
    """A member's path in the archive; None for what is no notebook; `Unreadable` if refused."""
    path = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or re.search(r"\\|^[A-Za-z]:", member.filename):
        raise Unreadable("its path leads out of the archive.")
    if kind not in (0, stat.S_IFREG):
        raise Unreadable("not a regular file.")
    if any(_hidden(part) for part in path.parts):
        return None
    if path.name.lower().endswith(_ARCHIVE):
        raise Unreadable("an archive in an archive; unpack it first.")
    if not _NOTEBOOK.search(path.name):
        raise Unreadable("not a notebook.")
    if len(path.parts) > DEEPEST:
        raise Unreadable("too many folders deep.")
    return path


def _content(opened: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    if member.file_size > limit:
        raise Unreadable(f"has {member.file_size / 1e6:.0f} MB; at most {limit / 1e6:.0f} MB.")
    if member.file_size > SMALL and member.file_size > LARGEST_RATIO * member.compress_size:
        raise Unreadable("so much smaller in the archive that it cannot be a notebook.")
    try:
        with opened.open(member) as file:
            data = file.read(limit + 1)
    except RuntimeError:
        raise Unreadable("locked with a password.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
        raise Unreadable("damaged, or packed in a way that is not known.") from None
    if len(data) > limit:
        raise Unreadable(f"has more than {limit / 1e6:.0f} MB.")
    return data


def _file_name(name: str) -> str:
    """A member's own name (it may say the lesson) as a harmless file name."""
    stem = re.sub(r"[^\w. ()-]", "_", _NOTEBOOK.sub("", name), flags=re.ASCII)
    return (stem.strip(". ")[:100] or "notebook") + ".ipynb"


def _below_wrapper(
    files: list[tuple[PurePosixPath, Path]],
) -> list[tuple[tuple[str, ...], Path]]:
    """The parts of each path, below `submitted/` or a folder that merely holds all the others."""
    split = [(inside.parts, path) for inside, path in files]
    if any("submitted" in parts[:-1] for parts, _ in split):
        split = [
            (parts[parts.index("submitted") + 1 :], path)
            for parts, path in split
            if "submitted" in parts[:-1]
        ]
    tops = {parts[0] for parts, _ in split}
    flat = [parts for parts, _ in split if len(parts) == 2]
    lessons = [parts for parts in flat if re.match(r"\d\d_", parts[1])]
    if len(tops) == 1 and len(flat) > 1 and not lessons:
        split = [(parts[1:], path) for parts, path in split]
    return split


def _regular(path: Path, refused: list[str]) -> bool:
    """Whether a file is one with no other name; what is in it, `intake.read` looks at."""
    facts = os.lstat(path)
    if not stat.S_ISREG(facts.st_mode):
        refused.append(f"{shown(path.name)}: not a regular file.")
    elif facts.st_nlink > 1:
        refused.append(f"{shown(path.name)}: has a second name (a hard link); copy it instead.")
    else:
        return True
    return False


def _one_a_lesson(
    files: list[tuple[tuple[str, ...], Path]], refused: list[str]
) -> list[tuple[str, Found]]:
    """Whose each notebook is; of several in a lesson's folder the one named like the lesson, else
    the newest."""
    groups: dict[tuple, list[tuple]] = {}
    for parts, path in files:
        name, lesson, note = _who(parts)
        rank = (path.stem == lesson, -len(parts), path.lstat().st_mtime)
        groups.setdefault((name, lesson or path), []).append((rank, str(path), name, lesson, note))
    out = []
    for several in groups.values():
        _, best, name, lesson, note = max(several)
        out.append((name, Found(_student(name), Path(best), lesson, note)))
        refused += [
            f"{shown(Path(path).name)} of {shown(name)}: {shown(Path(best).name)} counts instead."
            for _, path, *_ in several
            if path != best
        ]
    return out


def _who(parts: tuple[str, ...]) -> tuple[str, str | None, str]:
    """Student, lesson and note, by the names that nbgrader and learning platforms give."""
    if len(parts) > 1:
        folder = _MOODLE.fullmatch(parts[0])
        lesson = parts[1] if len(parts) > 2 and _LESSON.fullmatch(parts[1]) else None
        return folder["student"] if folder else parts[0], lesson, ""
    stem = _NOTEBOOK.sub("", parts[0])
    for pattern in (_MOODLE, _BLACKBOARD, _CANVAS):
        match = pattern.fullmatch(stem)
        if match:
            return match["student"], None, "late" if match.groupdict().get("late") else ""
    return stem, None, ""


def _student(name: str) -> str:
    """A student's name as it may stand in a path and a table."""
    return shown(re.sub(r"[/\\:]+", "_", name)).strip(". ") or "nobody"


def _unlike_names(found: list[tuple[str, Found]]) -> list[Found]:
    """Numbers names that became the same by cleaning, so that no marks replace another's."""
    taken = {one.student.casefold() for _, one in found}
    owner: dict[str, str] = {}
    given: dict[str, str] = {}
    out = []
    for name, one in found:
        if owner.setdefault(one.student.casefold(), name) != name:
            if name not in given:
                numbers = (f"{one.student}-{i}" for i in count(2))
                given[name] = next(n for n in numbers if n.casefold() not in taken)
                taken.add(given[name].casefold())
            note = f"{one.student} is the name of more than one student"
            one = replace(one, student=given[name], note=f"{one.note}; {note}".strip("; "))
        out.append(one)
    return out
