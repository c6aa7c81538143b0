"""Copies of a course among the installed packages, which a child must not see.

A course's answers may have been installed by pip, under any name, beside what the children import.
A copy is known by what is in its files (pip keeps a digest of each), or by their names.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

TELLS_NOTHING = {"__init__.py", "__main__.py", "setup.py", "conftest.py"}


def installed_copies(secret: Iterable[Path], folders: Iterable[str]) -> list[str]:
    """What to hide in `folders` of installed packages: every package that holds a secret file.

    secret: files of a course that no child may read. A package holds one where a file's content
    is the same, or its name and that of its folder (exercises/05_homework.py). What pip put
    elsewhere, such as into `share`, is found by its record.
    """
    files = [path for path in secret if path.is_file()]
    names = {(p.parent.name, p.name) for p in files if p.name not in TELLS_NOTHING}
    digests = {_digest(path) for path in files if path.stat().st_size}
    sizes = {path.stat().st_size for path in files} - {0}
    found: set[str] = set()
    for folder in folders:
        for row in (*_recorded(folder, digests), *_there(folder, names, sizes, digests)):
            found |= _to_hide(folder, row)
    return sorted(found)


def _to_hide(folder: str, row: str) -> set[str]:
    """All of the package that a file belongs to, by its path below `folder`; of a module that lies
    there by itself what Python compiled of it too."""
    top, *inside = row.replace(os.sep, "/").split("/")
    if top == "..":
        return {os.path.normpath(os.path.join(folder, row))}
    compiled = [] if inside else Path(folder, "__pycache__").glob(f"{Path(top).stem}.*.pyc")
    return {os.path.join(folder, top), *map(str, compiled)}


def _digest(path: Path) -> str:
    """A file's digest as pip's RECORD writes it."""
    raw = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _recorded(folder: str, digests: set[str]) -> set[str]:
    """Files whose content, by pip's own records, is a secret one's."""
    found = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with open(record, encoding="utf-8", errors="replace", newline="") as lines:
            text = lines.read()
        if any(digest in text for digest in digests):
            rows = csv.reader(text.splitlines())
            found |= {row[0] for row in rows if len(row) > 1 and row[1] in digests}
    return found


def _there(folder: str, names: set[tuple[str, str]], sizes: set[int], digests: set[str]) -> set:
    """Files of such a name in a folder of such a name, or with a secret one's content."""
    if not names:
        return set()
    suffixes = tuple({Path(name).suffix for _, name in names})
    found = set()
    for place, folders, files in os.walk(folder):
        inside, last = place[len(folder) :].strip(os.sep) or ".", os.path.basename(place)
        for file in files:  # tens of thousands
            if not file.endswith(suffixes):
                continue
            named = (last, file) in names and inside != "."
            if named or _is_one_of(f"{place}{os.sep}{file}", sizes, digests):
                found.add(os.path.normpath(os.path.join(inside, file)))
                if inside != ".":
                    folders.clear()
                    break
    return found


def _is_one_of(path: str, sizes: set[int], digests: set[str]) -> bool:
    try:
        return os.stat(path).st_size in sizes and _digest(Path(path)) in digests
    except OSError:
        return False
