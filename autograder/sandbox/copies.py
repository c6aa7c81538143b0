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
    """What to hide below `folders` of installed packages: every package that holds a secret file.

    secret: files of a course that no child may read. A package holds one where a file's content
    is the same, or its name and that of its folder (exercises/05_homework.py).
    """
    files = [path for path in secret if path.is_file()]
    names = {(p.parent.name, p.name) for p in files if p.name not in TELLS_NOTHING}
    digests = {_digest(path) for path in files if path.stat().st_size}
    found: set[str] = set()
    for folder in folders:
        found |= {os.path.join(folder, top) for top in _recorded(folder, digests)}
        found |= {os.path.join(folder, top) for top in _named(folder, names)}
    return sorted(found)


def _digest(path: Path) -> str:
    """A file's digest as pip's RECORD writes it."""
    raw = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _recorded(folder: str, digests: set[str]) -> set[str]:
    """Top folders and files whose content, by pip's own records, is a secret one's."""
    found = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with open(record, encoding="utf-8", errors="replace", newline="") as lines:
            text = lines.read()
        if any(digest in text for digest in digests):
            rows = csv.reader(text.splitlines())
            found |= {row[0].split("/")[0] for row in rows if len(row) > 1 and row[1] in digests}
    return found - {".."}


def _named(folder: str, names: set[tuple[str, str]]) -> set[str]:
    """Top folders that hold a file of such a name in a folder of such a name."""
    if not names:
        return set()
    found = set()
    for place, folders, files in os.walk(folder):
        inside = os.path.relpath(place, folder)
        if inside != "." and any((os.path.basename(place), file) in names for file in files):
            found.add(inside.split(os.sep)[0])
            folders.clear()
    return found
