"""How a wrong program of these files is written down."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.tracing.programs import Program


@dataclass
class Group:
    """The programs of one file, in the order in which they were written."""

    programs: list[Program] = field(default_factory=list)

    def add(self, what: str, task: str, source: str, *causes: str) -> None:
        """A wrong answer to a task; causes: what has to be said, a pattern for each mistake."""
        self.programs.append(Program(what, task, source, causes))

    def change(self, what: str, task: str, source: str, *changes, causes) -> None:
        """A right program with some texts exchanged for others."""
        for old, new in changes:
            assert source.count(old) == 1, (what, old)
            source = source.replace(old, new)
        self.add(what, task, source, *causes)


def programs_in(name: str) -> list[Program]:
    """The programs of a text beside this file: `### its name`, `## its task`, a line `## pattern`
    for each of its causes, and then its source."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    found = []
    for block in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        what, *lines = block.split("\n")
        head = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
        source = [line for line in lines if not line.startswith("## ")]
        found.append(Program(what, head[0], "\n".join(source), tuple(head[1:])))
    return found
