"""Who handed in what on Gradescope: `submission_metadata.yml` of an export.

An export ("Download Submissions") is a folder assignment_NNN_export with one folder or file for
each submission; the metadata name the people, with keys that are Ruby symbols:

    submission_216975964:
      :submitters:
      - :name: Jane Doe
        :sid: '06758767'
        :email: jane@example.edu
      :created_at: 2023-12-02 02:52:07.938335000 Z
      :results: ...what an autograder printed, megabytes of it
      :history: ...earlier submissions

An export of a large class may hold several YAML documents, divided by a bare `...`.

The file is read event by event: no object is made of it, no alias is followed, every value is the
text that stands there (a name may be "No", an id begin with 0). So it costs time by its length and
nothing else, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

METADATA = "submission_metadata.yml"
LARGEST = 100_000_000  # bytes
DEEPEST = 100
LONGEST = 300  # characters of one value
MOST_PEOPLE = 100  # of one submission
_END = re.compile(rb"^\.\.\.[ \t]*$", re.MULTILINE)  # YAML 1.1 wants a `---` behind it
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Person:
    """One of those who handed in a submission; "" for what is not said."""

    name: str = ""
    sid: str = ""
    email: str = ""
    section: str = ""


@dataclass
class Submission:
    """One entry of the metadata. late: None where nothing is said of it."""

    people: list[Person] = field(default_factory=list)
    created_at: str = ""
    late: bool | None = None
    section: str = ""


class Broken(Exception):
    """The metadata cannot be read to their end; `found` is what came before that."""

    def __init__(self, why: str, found: dict[str, Submission]):
        super().__init__(why)
        self.found = found


def read(data: bytes) -> dict[str, Submission]:
    """The submissions by the names of their folders or files; raises `Broken`."""
    found: dict[str, Submission] = {}
    try:
        for path, value in _values(_END.sub(b"---", data)):
            _note(found, path, value)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        raise Broken(f"it is not the YAML that Gradescope writes{place}", found) from None
    except (_TooDeep, RecursionError, MemoryError):
        raise Broken("it is nested too deeply", found) from None
    except (UnicodeError, ValueError):
        raise Broken("it is not text", found) from None
    return found


class _TooDeep(Exception):
    pass


def _values(data: bytes) -> Iterator[tuple[tuple, str]]:
    """Every scalar value with the keys and places on the way to it; nothing for an alias."""
    path: list = []  # of each collection that is open: the last key, or the place in a list
    kinds: list[str] = []  # of each: 'key' waits for a key, 'value' for a value, 'list'

    def arrived() -> bool:
        """Counts one item of the innermost collection; whether it is a value."""
        if not kinds or kinds[-1] == "list":
            if kinds:
                path[-1] += 1
            return True
        is_value = kinds[-1] == "value"
        kinds[-1] = "key" if is_value else "value"
        return is_value

    for event in yaml.parse(data, Loader=_LOADER):
        if isinstance(event, yaml.ScalarEvent):
            if arrived():
                yield tuple(path), event.value
            elif len(path) <= 4:
                path[-1] = event.value[:LONGEST]
        elif isinstance(event, yaml.AliasEvent):
            arrived()
        elif isinstance(event, yaml.CollectionStartEvent):
            arrived()
            if len(path) >= DEEPEST:
                raise _TooDeep
            is_list = isinstance(event, yaml.SequenceStartEvent)
            path.append(-1 if is_list else "")
            kinds.append("list" if is_list else "key")
        elif isinstance(event, yaml.CollectionEndEvent):
            path.pop()
            kinds.pop()


def _note(found: dict[str, Submission], path: tuple, value: str) -> None:
    """Keeps one value, if it is one of the few that matter here."""
    if len(path) < 2 or not isinstance(path[0], str) or not isinstance(path[1], str):
        return
    field_, text = path[1].lstrip(":"), " ".join(value[:LONGEST].split())
    if field_ == "submitters" and len(path) <= 4:
        one = found.setdefault(path[0], Submission())
        if len(path) == 4 and isinstance(path[2], int) and path[2] < MOST_PEOPLE:
            while len(one.people) <= path[2]:
                one.people.append(Person())
            name = str(path[3]).lstrip(":")
            if name in ("name", "sid", "email", "section", "sections"):
                setattr(one.people[path[2]], name.removesuffix("s"), text)
    elif len(path) == 2 or (len(path) == 3 and field_ in ("section", "sections")):
        one = found.setdefault(path[0], Submission())
        if field_ == "created_at":
            one.created_at = text
        elif field_ in ("section", "sections"):
            one.section = ", ".join(filter(None, (one.section, text)))[:LONGEST]
        elif field_ in ("late", "lateness"):
            one.late = _is_late(text)


def _is_late(text: str) -> bool | None:
    """What is said of lateness: yes or no, or a length of time such as '26:03:11'."""
    text = text.lower()
    if text in ("", "~", "null", "nil"):
        return None
    if text in ("false", "no"):
        return False
    return text in ("true", "yes") or any(c in "123456789" for c in text)
