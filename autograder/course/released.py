"""What was released of each lesson: the notebook that every answer is compared with.

It is never read from `notebooks/`, whose files people fill in and save. A course builds it from its
sources and keeps what it built in `build/`, to be quick the next time. The hand-out has no sources:
there it is read from a data file, which `autograder release` writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from autograder.course.settings import CourseError, sources
from autograder.whole import write_whole

HANDED_OUT = Path("released") / "lessons.json"  # where the hand-out has it
KEPT = Path("build") / "released.json"  # where a course keeps what it built
MADE = ".made.json"  # beside nbgrader's source notebooks: what they were made from
BUILDERS = ("jupytext", "nbformat", "nbgrader")  # packages that have a say in what is built

Entry = dict[str, str]  # "notebook", "sha256" of it and, in a course, "made_from"


def texts(folder: Path, where: str) -> dict[str, str]:
    """The released notebooks of a course or a hand-out, as files' texts by name, in order.

    where: the course's folder of sources.
    """
    handed_out = folder / HANDED_OUT
    entries = _handed_out(handed_out) if handed_out.exists() else _built(folder, where)
    return {name: entries[name]["notebook"] for name in sorted(entries)}


def write_handed_out(texts: Mapping[str, str], target: Path) -> None:
    """Writes the data file of the hand-out `target`."""
    entries = {name: _entry(text) for name, text in texts.items()}
    write_whole(target / HANDED_OUT, _dumped(entries))


def edited(texts: Mapping[str, str], notebooks: Path) -> list[str]:
    """The lessons whose file in `notebooks` is not what was released: filled in, or older."""
    return [
        name for name, text in texts.items() if _read(notebooks / name / f"{name}.ipynb") != text
    ]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# --- the hand-out's file -------------------------------------------------------------------------
def _handed_out(path: Path) -> dict[str, Entry]:
    entries = _entries(path)
    wrong = [name for name, entry in entries.items() if not _is_whole(entry)]
    if entries and not wrong:
        return entries
    which = f" (lesson {', '.join(sorted(wrong))})" if wrong else ""
    raise CourseError(
        f"{path} is not as it was handed out{which}, so that nothing can be checked against it. "
        f"Take {HANDED_OUT} anew out of the hand-out's zip; your notebooks stay as they are."
    )


# --- what a course builds ------------------------------------------------------------------------
def _built(folder: Path, where: str) -> dict[str, Entry]:
    found = sources(folder, where)
    if not found:
        raise CourseError(
            f"{folder} holds no lessons: neither a course's sources ({where}/NAME.py) nor a "
            f"hand-out's {HANDED_OUT}. Take the missing files anew from where you got the folder."
        )
    kept = _entries(folder / KEPT)
    entries = {path.stem: _up_to_date(path, kept.get(path.stem)) for path in found}
    if entries != kept:
        with contextlib.suppress(OSError):  # a folder that may only be read: built each time
            write_whole(folder / KEPT, _dumped(entries))
    return entries


def _up_to_date(path: Path, kept: Entry | None) -> Entry:
    """The entry that was kept if it was made from this very source, else a new one."""
    text = path.read_text(encoding="utf-8")
    made_from = _sum(text + _builder())
    if kept and kept.get("made_from") == made_from and _is_whole(kept):
        return kept
    # Only here: the builder imports nbgrader, which takes longer than all the rest.
    from autograder.course.build import as_text, parse_source, release

    return {**_entry(as_text(release(parse_source(text, path)))), "made_from": made_from}


def _builder() -> str:
    """What besides the source decides what is built: our builder, and the packages it uses."""
    own = Path(__file__).with_name("build.py").read_text(encoding="utf-8")
    return own + "".join(f"{name} {metadata.version(name)}\n" for name in BUILDERS)


def write_sources(folder: Path, where: str, target: Path) -> None:
    """Writes the source notebooks that nbgrader reads, to target/NAME/NAME.ipynb.

    One that lies there as it was made of this very source is not made again.
    """
    kept, entries = _entries(target / MADE), {}
    for path in sources(folder, where):
        file = target / path.stem / f"{path.stem}.ipynb"
        made_from = _sum(path.read_text(encoding="utf-8") + _builder())
        entry = {"made_from": made_from, "sha256": _sum(_read(file) or "")}
        if entry != kept.get(path.stem):
            from autograder.course.build import as_text, read_source

            text = as_text(read_source(path))
            if text != _read(file):
                write_whole(file, text)
            entry["sha256"] = _sum(text)
        entries[path.stem] = entry
    if entries != kept:
        write_whole(target / MADE, _dumped(entries))


# --- entries -------------------------------------------------------------------------------------
def _entry(text: str) -> Entry:
    return {"notebook": text, "sha256": _sum(text)}


def _is_whole(entry: Entry) -> bool:
    return _sum(entry.get("notebook", "")) == entry.get("sha256")


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _dumped(entries: dict[str, Entry]) -> str:
    return json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _entries(path: Path) -> dict[str, Entry]:
    """What the file holds; nothing where it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    fits = isinstance(found, dict) and all(
        isinstance(entry, dict) and all(isinstance(value, str) for value in entry.values())
        for entry in found.values()
    )
    return found if fits else {}
